#include "backends/codegen/emit/template.h"

#include <string.h>

bool is_part(const char *name, const char *expected) {
  const size_t length = strlen(expected);
  return strncmp(name, expected, length) == 0 && name[length] == '%';
}

void print_template(const Template *t, Text *out) {
  for (const char *at = t->text; *at;) {
    const size_t plain = strcspn(at, "%@");
    text_add(out, at, plain);
    at += plain;
    if (*at == '@') {
      text_add_string(out, t->prefix);
      at++;
    } else if (*at == '%' && at[1] >= 'A' && at[1] <= 'Z') {
      t->add_part(t->context, at + 1, out);
      at = strchr(at + 1, '%') + 1;
    } else if (*at) {
      text_add(out, at++, 1);
    }
  }
}
