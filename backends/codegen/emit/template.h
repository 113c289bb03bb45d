// Prints template texts. In these, @ stands for the file's prefix, %NAME% for a part that add_part prints, and
// %IF_NAME%TEXT%END% for TEXT if the fact NAME is true; %NO_NAME%TEXT%END%, if not.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_TEMPLATE_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_TEMPLATE_H

#include "ir/support/text.h"

#include <stdbool.h>

typedef struct TemplateFact {
  const char *name;
  bool is_true;
} TemplateFact;

typedef struct Template {
  const char *text, *prefix;
  void (*add_part)(const void *context, const char *name, Text *out); // in `name`, % follows the part's name
  const void *context;
  const TemplateFact *facts; // ended by a name NULL
} Template;

void print_template(const Template *t, Text *out);
bool is_part(const char *name, const char *expected);

#endif
