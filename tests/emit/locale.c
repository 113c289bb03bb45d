// Preloaded into ngrad, which sets no locale by itself: a program that uses the library may.
#include <locale.h>

__attribute__((constructor)) static void set_locale(void) {
  setlocale(LC_ALL, "");
}
