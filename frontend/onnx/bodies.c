// Makes nodes of bodies (bodies.h): finds an operator's row, binds its operands and attributes, and takes its results.
#include "frontend/onnx/bodies.h"

#include <string.h>

typedef struct BodyRow {
  const char *name;
  int since;
  const char *inputs, *attributes, *outputs, *text;
} BodyRow;

// Attributes with their kinds (f, i, s, l, g, m) and defaults; one without a default is absent, and so are graphs and
// lists of floats (g, m), which functions read. Outputs are names that the text assigns.
static const BodyRow rows[] = {
#define BODY(name, since, ...) {#name, since, __VA_ARGS__},
#include "frontend/onnx/bodies.def"
#undef BODY
};

static const Term nothing = {.kind = TERM_ABSENT};

// The next of names between spaces; empty at the end.
static Bytes next_name(const char **list) {
  while (**list == ' ') ++*list;
  const char *name = *list;
  while (**list && !strchr(" :?", **list)) ++*list;
  return (Bytes){(const uint8_t *)name, (size_t)(*list - name)};
}

// The node's attribute of the kind behind *at, which is the colon; else the default.
static Term attribute_or(Body *f, Bytes name, const char **at) {
  static const char kinds[] = "fislg";
  static const OnnxKind onnx_kinds[] = {ONNX_FLOAT, ONNX_INT, ONNX_STRING, ONNX_INTS, ONNX_GRAPH};
  const char *text = arena_copy_text(f->recipe.arena, (const char *)name.at, name.count);
  const char kind = (*at)[1];
  Recipe *recipe = &f->recipe;
  Term t = nothing;
  Ints list;
  OnnxAttribute a;
  if (!text) return body_out_of_memory(f);
  recipe->at = *at + 2;
  if (*recipe->at == '=') recipe->at++, t = recipe_read_term(recipe);
  *at = recipe->at;
  if (kind == 'g' || kind == 'm' || !onnx_has(f->x, text)) return t;
  if (!onnx_attribute(f->x, text, onnx_kinds[strchr(kinds, kind) - kinds], &a))
    return recipe->has_failed = true, nothing;
  if (kind == 'f') return term_number((double)a.f);
  if (kind == 'i') return term_number((double)a.i);
  if (kind == 's') return (Term){.kind = TERM_TEXT, .text = a.s};
  if (!onnx_list(f->x, text, &list) || list.count > MOST_TERMS_OF_A_LIST)
    return body_fail(f, "%s: expected at most %d numbers", text, MOST_TERMS_OF_A_LIST), nothing;
  t = recipe_new_list(recipe);
  for (; t.kind == TERM_LIST && t.count < list.count; t.count++) t.list[t.count] = EXTENT(list.items[t.count]);
  return t;
}

static const BodyRow *find_row(const char *op, int64_t opset) {
  const BodyRow *found = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].name, op) == 0 && rows[i].since <= opset) found = &rows[i];
  return found;
}

const char *onnx_body_attributes(const char *op, int64_t opset) {
  const BodyRow *row = find_row(op, opset);
  return row ? row->attributes : "";
}

static bool give_outputs(Body *f, const char *list) {
  Bytes name;
  for (size_t i = 0; (name = next_name(&list)).count > 0; i++) {
    const Term *t = recipe_find(&f->recipe, name);
    if (!onnx_wants(f->x, i)) continue;
    if (!t || t->kind != TERM_VALUE) return build_error(&f->x->build, "output %zu is not supported", i);
    if (!onnx_out(f->x, i, t->value)) return false;
  }
  return true;
}

static bool read_body(Body *f, const BodyRow *row) {
  Onnx *x = f->x;
  const char *list = row->inputs;
  Bytes name;
  size_t count = 0;
  for (; (name = next_name(&list)).count > 0; count++) {
    if (*list == '?') list++;
    else if (!onnx_in(x, count)) return build_error(&x->build, "the input %.*s is absent", (int)name.count, name.at);
    recipe_bind(&f->recipe, name, term_value(onnx_in(x, count)));
  }
  if (x->node->ninputs > count) return build_error(&x->build, "expected at most %zu inputs", count);
  for (list = row->attributes; (name = next_name(&list)).count > 0 && !f->recipe.has_failed;)
    recipe_bind(&f->recipe, name, attribute_or(f, name, &list));
  if (!f->recipe.has_failed) recipe_read(&f->recipe, row->text);
  return !f->recipe.has_failed && give_outputs(f, row->outputs);
}

bool onnx_body(Onnx *x) {
  static const RecipeMaker maker = {body_combine, body_call_operator, body_call_function, NULL, NULL};
  const BodyRow *row = find_row(x->row->name, x->opset);
  Arena scratch;
  if (!row) return build_error(&x->build, "the operator is not supported");
  arena_init(&scratch, x->reading.arena->allocator);
  Body *f = ARENA_NEW(&scratch, Body); // as long as a call: a model may have many
  if (!f) error_out_of_memory(x->reading.d);
  else *f = (Body){.recipe = {.maker = &maker, .builder = &x->build, .arena = &scratch}, .x = x};
  const bool ok = f && read_body(f, row);
  arena_deinit(&scratch);
  return ok;
}
