#include "passes/pass.h"

#include <string.h>

bool pass_is_disabled(const PassContext *c, const char *name) {
  for (size_t i = 0; i < c->ndisabled; i++)
    if (strcmp(c->disabled[i], name) == 0) return true;
  return false;
}
