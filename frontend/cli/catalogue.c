// ngrad ops and ngrad passes: prints the tables of operators, passes and rules.
#include "frontend/cli/schema.h"
#include "frontend/cli/session.h"
#include "frontend/cli/table.h"
#include "frontend/cli/verbs.h"

#include <inttypes.h>
#include <string.h>

// One operator in full

static json_t *types_json(unsigned types) {
  json_t *list = memory_or_exit(json_array());
  for (ng_type type = NG_F64; type < NG_TYPE_COUNT; type++)
    if (types & 1U << type) json_add(list, json_text(ng_type_name(type)));
  return list;
}

static json_t *operands_json(size_t op, size_t count, ng_operand_info (*at)(size_t op, size_t k)) {
  json_t *list = memory_or_exit(json_array());
  for (size_t k = 0; k < count; k++) {
    ng_operand_info info = at(op, k);
    char variable[2] = {info.type_variable, 0};
    json_t *operand = json_object_of({"name", json_text(info.name)});
    if (info.dst_name) json_set(operand, "dst_name", json_text(info.dst_name));
    json_set_all(operand, {"canonical", json_text(info.canonical)}, {"optional", json_boolean(info.is_optional)},
                 {"repeated", json_boolean(info.is_repeated)}, {"type_variable", json_text(variable)},
                 {"types", types_json(info.types)}, {"gradient", json_text(info.gradient)},
                 {"gradient_why", json_text(info.why)});
    json_add(list, operand);
  }
  return list;
}

static json_t *default_json(const ng_attribute_info *a) {
  if (!a->has_default) return json_text(NULL);
  if (a->nchoices) return json_text(a->choices[(size_t)a->default_value]);
  if (strcmp(a->kind, "bool") == 0) return memory_or_exit(json_boolean(a->default_value != 0));
  if (strcmp(a->kind, "s64") == 0) return memory_or_exit(json_integer((json_int_t)a->default_value));
  return strcmp(a->kind, "f32") == 0 ? json_number(a->default_value) : memory_or_exit(json_array());
}

static json_t *foreign_json(const char *canonical) {
  json_t *list = memory_or_exit(json_array());
  for (size_t i = 0; i < ng_foreign_count(); i++) {
    const ng_foreign_info f = ng_foreign_at(i);
    if (!f.canonical || strcmp(f.canonical, canonical) != 0) continue;
    json_t *form = json_object_of({"system", json_text(f.system)}, {"name", json_text(f.name)});
    if (f.since) json_set(form, "since", json_integer(f.since));
    if (f.last) json_set(form, "last", json_integer(f.last));
    json_add(list, form);
  }
  return list;
}

static json_t *operator_json(size_t i) {
  ng_operator_info op = ng_operator_at(i);
  json_t *object = memory_or_exit(json_object()), *attributes = memory_or_exit(json_array());
  json_set_all(object, {"name", json_text(op.name)}, {"canonical", json_text(op.canonical)},
               {"family", json_text(op.family)}, {"doc", json_text(op.doc)}, {"formula", json_text(op.formula)},
               {"no_gradient", json_text(op.no_gradient)}, {"read_from", foreign_json(op.canonical)},
               {"inputs", operands_json(i, op.ninputs, ng_operator_input)},
               {"outputs", operands_json(i, op.noutputs, ng_operator_output)});
  for (size_t k = 0; k < op.nattributes; k++) {
    ng_attribute_info a = ng_operator_attribute(i, k);
    json_t *attribute = json_object_of({"name", json_text(a.name)}, {"kind", json_text(a.kind)},
                                       {"required", json_boolean(a.is_required)}, {"default", default_json(&a)});
    if (a.nchoices) {
      json_t *choices = memory_or_exit(json_array());
      for (size_t c = 0; c < a.nchoices; c++) json_add(choices, json_text(a.choices[c]));
      json_set(attribute, "choices", choices);
    }
    json_add(attributes, attribute);
  }
  json_set(object, "attributes", attributes);
  return object;
}

static void print_types(unsigned types) {
  const char *separator = "";
  for (ng_type type = NG_F64; type < NG_TYPE_COUNT; type++) {
    if (!(types & 1U << type)) continue;
    printf("%s%s", separator, ng_type_name(type));
    separator = " ";
  }
}

static void print_operands(const char *title, size_t op, size_t count, ng_operand_info (*at)(size_t op, size_t k)) {
  printf("\n%s:\n", title);
  Table table = table_new("lll");
  for (size_t k = 0; k < count; k++) {
    ng_operand_info info = at(op, k);
    table_add(&table, "  %s", info.name);
    table_add(&table, "%c", info.type_variable);
    bool is_renamed = strcmp(info.name, info.canonical) != 0;
    if (info.dst_name) table_add(&table, "%s when use_dst", info.dst_name);
    else if (is_renamed) table_add(&table, "%s%s", info.canonical, info.is_optional ? ", optional" : "");
    else table_add(&table, "%s", info.is_repeated ? "one or more" : info.is_optional ? "optional" : "");
  }
  table_print(&table);
}

// Prints a line for each type variable: operands with the same letter have the same type.
static void print_type_variables(size_t i, const ng_operator_info *op) {
  bool is_printed[128] = {false};
  printf("\ntypes:\n");
  for (size_t k = 0; k < op->ninputs + op->noutputs; k++) {
    ng_operand_info info = k < op->ninputs ? ng_operator_input(i, k) : ng_operator_output(i, k - op->ninputs);
    bool *seen = &is_printed[(unsigned char)info.type_variable & 127U];
    if (*seen) continue;
    *seen = true;
    printf("  %c  ", info.type_variable);
    print_types(info.types);
    putchar('\n');
  }
}

enum { LONGEST_DEFAULT = 64 };

static const char *default_text(const ng_attribute_info *a, char text[LONGEST_DEFAULT]) {
  if (a->nchoices) snprintf(text, LONGEST_DEFAULT, "%s", a->choices[(size_t)a->default_value]);
  else if (strcmp(a->kind, "bool") == 0)
    snprintf(text, LONGEST_DEFAULT, "%s", a->default_value != 0 ? "true" : "false");
  else if (strstr(a->kind, "list")) snprintf(text, LONGEST_DEFAULT, "[]");
  else snprintf(text, LONGEST_DEFAULT, "%g", a->default_value);
  return text;
}

static void print_attribute_value(Table *table, const ng_attribute_info *a) {
  char text[LONGEST_DEFAULT];
  if (a->is_required) table_add(table, "required");
  else if (!a->has_default) table_add(table, "optional");
  else table_add(table, "default %s", default_text(a, text));
}

// dst, mean?, variance?
static void print_names(size_t op, size_t count, ng_operand_info (*at)(size_t op, size_t k)) {
  for (size_t k = 0; k < count; k++) {
    ng_operand_info info = at(op, k);
    printf("%s%s%s", k ? ", " : "", info.name, info.is_repeated ? "..." : info.is_optional ? "?" : "");
  }
}

// LayerNorm(src, gamma?, beta?; epsilon = 1e-05) -> dst, mean?, variance?
static void print_signature(size_t i, const ng_operator_info *op) {
  printf("  %s(", op->name);
  print_names(i, op->ninputs, ng_operator_input);
  for (size_t k = 0; k < op->nattributes; k++) {
    char text[LONGEST_DEFAULT];
    ng_attribute_info a = ng_operator_attribute(i, k);
    printf("%s%s", k ? ", " : "; ", a.name);
    if (a.has_default) printf(" = %s", default_text(&a, text));
    else if (!a.is_required) printf("?");
  }
  printf(") -> ");
  print_names(i, op->noutputs, ng_operator_output);
  putchar('\n');
}

// Prints the operator's names in other systems, or its canonical operator.
static void print_other_names(const ng_operator_info *op) {
  size_t count = 0;
  for (size_t i = 0; i < ng_operator_count(); i++) {
    ng_operator_info other = ng_operator_at(i);
    if (strcmp(op->name, op->canonical) != 0 || strcmp(other.canonical, op->name) != 0) continue;
    if (strcmp(other.name, op->name) != 0) printf("%s%s", count++ ? ", " : "also ", other.name);
  }
  if (strcmp(op->name, op->canonical) != 0) printf("another system's name for %s", op->canonical);
  if (count || strcmp(op->name, op->canonical) != 0) putchar('\n');
}

static void print_attributes(size_t i, const ng_operator_info *op) {
  if (!op->nattributes) return;
  printf("\nattributes:\n");
  Table table = table_new("lll");
  for (size_t k = 0; k < op->nattributes; k++) {
    ng_attribute_info a = ng_operator_attribute(i, k);
    table_add(&table, "  %s", a.name);
    if (a.nchoices) {
      char choices[256] = "";
      for (size_t c = 0, used = 0; c < a.nchoices && used < sizeof choices; c++)
        used += (size_t)snprintf(choices + used, sizeof choices - used, "%s%s", c ? " | " : "", a.choices[c]);
      table_add(&table, "%s", choices);
    } else {
      table_add(&table, "%s%s", a.kind, a.is_positive ? ", > 0" : "");
    }
    print_attribute_value(&table, &a);
  }
  table_print(&table);
}

// Prints the first and the last version: "1 to 6", "7 on".
static void print_versions(FILE *out, const ng_foreign_info *f) {
  if (f->last) fprintf(out, "%d to %d", f->since, f->last);
  else if (f->since) fprintf(out, "%d on", f->since);
}

// Whether row i is a later version of the form in row i - 1, with the same operator.
static bool is_same_form(size_t i) {
  const ng_foreign_info f = ng_foreign_at(i), before = ng_foreign_at(i ? i - 1 : 0);
  return i && strcmp(f.name, before.name) == 0 && f.canonical && before.canonical &&
         strcmp(f.canonical, before.canonical) == 0;
}

// Prints the operators of other systems that become this one.
static void print_foreign(const ng_operator_info *op) {
  const char *system = NULL;
  for (size_t i = 0; i < ng_foreign_count(); i++) {
    ng_foreign_info f = ng_foreign_at(i);
    if (!f.canonical || strcmp(f.canonical, op->canonical) != 0 || is_same_form(i)) continue;
    for (size_t k = i + 1; k < ng_foreign_count() && is_same_form(k); k++) f.last = ng_foreign_at(k).last;
    if (!system) printf("\nread from, alone or with other operators:");
    if (!system || strcmp(system, f.system) != 0) printf("\n  %s%s", f.system, strlen(f.system) < 6 ? "    " : "  ");
    else printf(", ");
    system = f.system;
    printf("%s%s", f.name, f.since ? " " : "");
    print_versions(stdout, &f);
  }
  if (system) putchar('\n');
}

static json_t *onnx_json(void) {
  json_t *document = memory_or_exit(json_array());
  for (size_t i = 0; i < ng_foreign_count(); i++) {
    const ng_foreign_info f = ng_foreign_at(i);
    if (strcmp(f.system, "ONNX") != 0) continue;
    json_add(document, json_object_of({"name", json_text(f.name)}, {"since", json_integer(f.since)},
                                      {"last", f.last ? json_integer(f.last) : json_null()},
                                      {"canonical", json_text(f.canonical)}));
  }
  return document;
}

static void print_onnx(void) {
  Table table = table_new("lll");
  for (size_t i = 0; i < ng_foreign_count(); i++) {
    ng_foreign_info f = ng_foreign_at(i);
    if (strcmp(f.system, "ONNX") != 0) continue;
    table_add(&table, "%s", f.name);
    if (f.last) table_add(&table, "opset %d to %d", f.since, f.last);
    else table_add(&table, "opset %d on", f.since);
    table_add(&table, "%s", f.canonical ? f.canonical : "");
  }
  table_print(&table);
}

// Reports an unknown operator; if other systems have an operator of that name, prints its forms there.
static void tell_unknown(const char *name) {
  const char *nearest = ng_operator_nearest(name), *system = NULL;
  char elsewhere[256] = "";
  for (size_t i = 0; i < ng_foreign_count(); i++) {
    const ng_foreign_info f = ng_foreign_at(i);
    if (strcmp(f.name, name) != 0 || (system && strcmp(f.system, system) == 0)) continue;
    const size_t nbytes = strlen(elsewhere);
    snprintf(elsewhere + nbytes, sizeof elsewhere - nbytes, "; %s's operator is read as %s%s", f.system,
             f.canonical ? f.canonical : "others", f.canonical ? ", alone or with others" : "");
    system = f.system;
  }
  if (system) plain_error("unknown operator %s%s", name, elsewhere);
  else
    plain_error("unknown operator %s, %s%s", name, nearest ? "did you mean " : "see ngrad ops for the list",
                nearest ? nearest : "");
}

// Prints a line for each input, and for outputs whose gradient is refused.
static void print_gradients(size_t i, const ng_operator_info *op) {
  printf("\ngradient:\n");
  Table table = table_new("ll");
  for (size_t k = 0; k < op->ninputs + op->noutputs; k++) {
    const bool is_input = k < op->ninputs;
    const ng_operand_info info = is_input ? ng_operator_input(i, k) : ng_operator_output(i, k - op->ninputs);
    if (!is_input && (op->no_gradient || strcmp(info.gradient, "refused") != 0)) continue;
    table_add(&table, "  %s", info.name);
    table_add(&table, "%s%s%s", info.gradient, info.why ? ", because " : "", info.why ? info.why : "");
  }
  table_print(&table);
}

static void print_operator(size_t i) {
  ng_operator_info op = ng_operator_at(i);
  printf("%s: %s\n", op.name, op.doc);
  print_other_names(&op);
  putchar('\n');
  print_signature(i, &op);
  print_operands("inputs", i, op.ninputs, ng_operator_input);
  print_operands("outputs", i, op.noutputs, ng_operator_output);
  print_type_variables(i, &op);
  print_attributes(i, &op);
  printf("\nformula%s%s:\n  ", strcmp(op.name, op.canonical) == 0 ? "" : ", in the operands of ",
         strcmp(op.name, op.canonical) == 0 ? "" : op.canonical);
  for (const char *c = op.formula; *c; c++) {
    if (c[0] == ';' && c[1] == ' ') {
      fputs("\n  ", stdout);
      c++;
    } else {
      putchar(*c);
    }
  }
  putchar('\n');
  print_foreign(&op);
  print_gradients(i, &op);
}

static void print_operators(void) {
  Table table = table_new("ll");
  for (size_t i = 0; i < ng_operator_count(); i++) {
    ng_operator_info op = ng_operator_at(i);
    table_add(&table, "%s", op.name);
    if (strcmp(op.name, op.canonical) == 0) table_add(&table, "%s", op.doc);
    else table_add(&table, "%s under another system's name", op.canonical);
  }
  table_print(&table);
}

static json_t *operators_json(void) {
  json_t *document = memory_or_exit(json_array());
  for (size_t i = 0; i < ng_operator_count(); i++) json_add(document, operator_json(i));
  return document;
}

int verb_ops(const Settings *s) {
  const bool is_one = s->noperands && !s->wants_schema && !s->lists_onnx;
  const size_t i = is_one ? ng_operator_find(s->operands[0]) : 0;
  if (is_one && i == ng_operator_count()) {
    tell_unknown(s->operands[0]);
    return NG_USAGE;
  }
  if (s->wants_schema) json_print(schema_of_graphs());
  else if (s->lists_onnx && s->is_json) json_print(onnx_json());
  else if (s->lists_onnx) print_onnx();
  else if (is_one && s->is_json) json_print(operator_json(i));
  else if (is_one) print_operator(i);
  else if (s->is_json) json_print(operators_json());
  else print_operators();
  return 0;
}

// The text of a rule; the caller frees it with ng_text_free.
static char *rule_text(ng_context *ctx, size_t pass, size_t i) {
  return memory_or_exit(ng_pass_rule_text(ctx, pass, i));
}

static void print_passes(ng_context *ctx) {
  Table table = table_new("ll");
  for (size_t i = 0; i < ng_pass_count(); i++) {
    table_add(&table, "%s", ng_pass_at(i).name);
    table_add(&table, "%s%s%s", ng_pass_at(i).doc, ng_pass_at(i).is_of_kernels ? "  (on kernels)" : "",
              ng_pass_at(i).is_needed ? "  (cannot be disabled)" : "");
    for (size_t k = 0; k < ng_pass_rule_count(i); k++) {
      ng_rule_info rule = ng_pass_rule_at(i, k);
      char *text = rule_text(ctx, i, k);
      table_add(&table, "  %s", rule.name);
      table_add(&table, "%s%s", text, rule.is_fast_math ? "  (with --fast-math)" : "");
      ng_text_free(ctx, text);
    }
  }
  table_print(&table);
}

static json_t *rules_json(ng_context *ctx, size_t pass) {
  json_t *rules = memory_or_exit(json_array());
  for (size_t k = 0; k < ng_pass_rule_count(pass); k++) {
    json_t *rule = memory_or_exit(json_object());
    char *text = rule_text(ctx, pass, k);
    json_set_all(rule, {"name", json_text(ng_pass_rule_at(pass, k).name)}, {"rule", json_text(text)},
                 {"fast_math", json_boolean(ng_pass_rule_at(pass, k).is_fast_math)});
    json_add(rules, rule);
    ng_text_free(ctx, text);
  }
  return rules;
}

static json_t *passes_json(ng_context *ctx) {
  json_t *document = memory_or_exit(json_array());
  for (size_t i = 0; i < ng_pass_count(); i++) {
    json_add(document,
             json_object_of({"name", json_text(ng_pass_at(i).name)}, {"doc", json_text(ng_pass_at(i).doc)},
                            {"needed", json_boolean(ng_pass_at(i).is_needed)},
                            {"kernels", json_boolean(ng_pass_at(i).is_of_kernels)}, {"rules", rules_json(ctx, i)}));
  }
  return document;
}

static void print_costs(void) {
  Table table = table_new("lrlll");
  for (size_t i = 0; i < ng_cost_count(); i++) {
    const ng_cost_info c = ng_cost_at(i);
    table_add(&table, "%s", c.name);
    table_add(&table, "%" PRId64, c.value);
    table_add(&table, "%s", c.unit);
    table_add(&table, "%s", c.decides);
    table_add(&table, "%s%s%s%s", c.what, c.measured ? " (" : "", c.measured ? c.measured : "", c.measured ? ")" : "");
  }
  table_print(&table);
}

static json_t *costs_json(void) {
  json_t *document = memory_or_exit(json_array());
  for (size_t i = 0; i < ng_cost_count(); i++) {
    const ng_cost_info c = ng_cost_at(i);
    json_add(document,
             json_object_of({"name", json_text(c.name)}, {"value", json_integer(c.value)},
                            {"least", json_integer(c.least)}, {"most", json_integer(c.most)},
                            {"unit", json_text(c.unit)}, {"decides", json_text(c.decides)}, {"what", json_text(c.what)},
                            {"measured", c.measured ? json_text(c.measured) : json_null()},
                            {"graph", json_text(c.graph)}));
  }
  return document;
}

int verb_passes(const Settings *s) {
  ng_context *ctx = session_open(s->max_memory, s->max_steps);
  if (s->is_json) json_print(s->lists_costs ? costs_json() : passes_json(ctx));
  else if (s->lists_costs) print_costs();
  else print_passes(ctx);
  session_close(ctx);
  return 0;
}
