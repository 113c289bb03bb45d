// Prints template texts, in which @ stands for the file's prefix, and %NAME% for a part that add_part prints.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_TEMPLATE_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_TEMPLATE_H

#include "ir/support/text.h"

#include <stdbool.h>

typedef struct Template {
  const char *text, *prefix;
  void (*add_part)(const void *context, const char *name, Text *out); // in `name`, % follows the part's name
  const void *context;
} Template;

void print_template(const Template *t, Text *out);
bool is_part(const char *name, const char *expected);

#endif
