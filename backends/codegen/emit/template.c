#include "backends/codegen/emit/template.h"

#include <string.h>

bool is_part(const char *name, const char *expected) {
  const size_t length = strlen(expected);
  return strncmp(name, expected, length) == 0 && name[length] == '%';
}

static bool is_true(const TemplateFact *facts, const char *name) {
  while (!is_part(name, facts->name)) facts++;
  return facts->is_true;
}

// Prints the text up to its end, or to the %END% of the condition in which it is; returns what follows.
static const char *print_text(const Template *t, const char *at, bool is_printed, Text *out) {
  while (*at) {
    const bool is_name = *at == '%' && at[1] >= 'A' && at[1] <= 'Z';
    const size_t plain = is_name || *at == '@' ? 0 : 1 + strcspn(at + 1, "%@");
    const char *name = at + 1, *behind = is_name ? strchr(name, '%') + 1 : at + (plain ? plain : 1);
    if (plain && is_printed) text_add(out, at, plain);
    else if (*at == '@' && is_printed) text_add_string(out, t->prefix);
    at = behind;
    if (!is_name) continue;
    if (is_part(name, "END")) return behind;
    const bool is_if = strncmp(name, "IF_", 3) == 0;
    if (is_if || strncmp(name, "NO_", 3) == 0)
      at = print_text(t, behind, is_printed && is_true(t->facts, name + 3) == is_if, out);
    else if (is_printed) t->add_part(t->context, name, out);
  }
  return at;
}

void print_template(const Template *t, Text *out) {
  print_text(t, t->text, true, out);
}
