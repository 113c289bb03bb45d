// Reports failures of passes, and looks up disabled passes and rules.
#include "passes/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pass_out_of_memory(PassContext *c) {
  c->failed = true;
  return error_out_of_memory(c->diagnostics);
}

bool pass_require(PassContext *c, bool is_sound, Text *why) {
  if (!is_sound && !why->out_of_memory) {
    fprintf(stderr, "internal error: %s", text_string(why));
    abort();
  }
  text_deinit(why);
  return is_sound || pass_out_of_memory(c);
}

bool pass_is_disabled(const PassContext *c, const char *name) {
  for (size_t i = 0; i < c->ndisabled; i++)
    if (strcmp(c->disabled[i], name) == 0) return true;
  return false;
}
