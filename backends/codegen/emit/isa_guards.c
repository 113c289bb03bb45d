#include "backends/codegen/emit/emit.h"

#include <string.h>

void print_target(const Isa *isa, Text *out) {
  if (!isa->target) return;
  text_format(out,
              "#if defined(__clang__)\n"
              "#pragma clang attribute push(__attribute__((target(\"%s\"))), apply_to = function)\n"
              "#elif defined(__GNUC__)\n#pragma GCC push_options\n#pragma GCC target(\"%s\")\n#endif\n\n",
              isa->target, isa->target);
}

void print_target_end(const Isa *isa, Text *out) {
  if (isa->target)
    text_add_string(out, "#if defined(__clang__)\n#pragma clang attribute pop\n"
                         "#elif defined(__GNUC__)\n#pragma GCC pop_options\n#endif\n\n");
}

void change_guard(const char **open, const Isa *isa, Text *out) {
  const char *condition = isa && (isa->target || strcmp(isa->compiles, "1") != 0) ? isa->compiles : NULL;
  if (*open && condition && strcmp(*open, condition) == 0) return;
  if (*open) text_add_string(out, "#endif\n");
  if (condition) text_format(out, "#if %s\n", condition);
  *open = condition;
}
