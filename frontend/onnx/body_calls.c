// Calls ONNX's operators from bodies (bodies.h): each call is a node of its own, in the newest opset.
#include "frontend/onnx/bodies.h"

#include "frontend/onnx/fields.h"
#include "ir/graph/extents.h"

#include <math.h>
#include <string.h>

static const Term nothing = {.kind = TERM_ABSENT};

static size_t put_varint(uint8_t *to, uint64_t number) {
  size_t n = 0;
  for (; number > 127; number >>= 7) to[n++] = (uint8_t)(number | 128);
  to[n++] = (uint8_t)number;
  return n;
}

// An attribute of no declared kind, which is read as any kind of its field. False after a message.
static bool put_attribute(Body *f, OnnxNamed *a, Bytes name, const Term *t) {
  uint8_t *to = ARENA_ARRAY(f->recipe.arena, uint8_t, 32 + (t->kind == TERM_TEXT ? t->text.count : 11 * t->count));
  size_t n = 0;
  if (!to) return body_out_of_memory(f), false;
  if (t->kind == TERM_NUMBER) {
    const float number = (float)t->number;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    to[n++] = ATTRIBUTE_F << 3 | WIRE_FIXED32;
    for (int i = 0; i < 4; i++) to[n++] = (uint8_t)(bits >> 8 * i);
    to[n++] = ATTRIBUTE_I << 3 | WIRE_VARINT;
    n += put_varint(to + n, (uint64_t)(fabs(t->number) <= (double)MAX_ELEMENTS ? (int64_t)t->number : 0));
  } else if (t->kind == TERM_TEXT) {
    to[n++] = ATTRIBUTE_S << 3 | WIRE_BYTES;
    n += put_varint(to + n, t->text.count);
    if (t->text.count) memcpy(to + n, t->text.at, t->text.count);
    n += t->text.count;
  } else if (t->kind == TERM_LIST) {
    for (size_t i = 0; i < t->count; i++) {
      if (t->list[i].dim) return body_fail(f, "expected numbers, found an extent with a name in it");
      to[n++] = ATTRIBUTE_INTS << 3 | WIRE_VARINT;
      n += put_varint(to + n, (uint64_t)t->list[i].value);
    }
  } else {
    return body_fail(f, "expected numbers");
  }
  *a = (OnnxNamed){.name = name, .message = {to, n}};
  return true;
}

typedef struct Operands {
  Value *inputs[MOST_RECIPE_ARGUMENTS];
  OnnxNamed attributes[MOST_RECIPE_ARGUMENTS];
  size_t ninputs, nattributes;
} Operands;

static Value *call_operator(Body *f, Bytes op, size_t output, Operands *operands) {
  static const uint8_t result_name[] = {1}, input_name[] = {2}; // no graph's names, so that values keep theirs
  Onnx *x = f->x;
  const Onnx before = *x;
  OnnxScope scope = {.outer = NULL};
  Bytes inputs[MOST_RECIPE_ARGUMENTS], outputs[MOST_RECIPE_ARGUMENTS] = {{NULL, 0}};
  for (size_t i = 0; i < operands->ninputs; i++) inputs[i] = (Bytes){input_name, operands->inputs[i] != NULL};
  outputs[output] = (Bytes){result_name, 1};
  const OnnxNode node = {.op = op,
                         .inputs = inputs,
                         .ninputs = operands->ninputs,
                         .outputs = outputs,
                         .noutputs = output + 1,
                         .attributes = {operands->attributes, operands->nattributes}};
  names_init(&scope.values, f->recipe.arena);
  if (++x->nnodes > ONNX_MAX_NODES) return body_fail(f, "with its functions, the model has more than 2^18 nodes"), NULL;
  x->scope = &scope;
  x->node = &node;
  x->inputs = operands->inputs;
  x->opset = ONNX_NEWEST;
  x->row = onnx_find_row(op, x->opset);
  const bool ok = x->row && onnx_translate_by_row(x);
  Value *result = ok ? names_find(&scope.values, "\1") : NULL;
  x->scope = before.scope;
  x->node = before.node;
  x->inputs = before.inputs;
  x->opset = before.opset;
  x->row = before.row;
  f->recipe.has_failed |= !result;
  return result;
}

Term body_call_operator(Recipe *recipe, RecipeCall *call) {
  Body *f = (Body *)recipe;
  Operands operands = {.ninputs = 0};
  for (size_t i = 0; i < call->count && !recipe->has_failed; i++) {
    if (!call->keys[i].count) operands.inputs[operands.ninputs++] = term_tensor(f, &call->arguments[i], NULL);
    else if (put_attribute(f, &operands.attributes[operands.nattributes], call->keys[i], &call->arguments[i]))
      operands.nattributes++;
  }
  return recipe->has_failed ? nothing : term_value(call_operator(f, call->name, call->output, &operands));
}

Term body_call(Body *f, const char *name, const Term *arguments, size_t count) {
  Operands operands = {.ninputs = count};
  for (size_t i = 0; i < count; i++) operands.inputs[i] = term_tensor(f, &arguments[i], NULL);
  return f->recipe.has_failed ? nothing : term_value(call_operator(f, bytes_of(name), 0, &operands));
}

static bool is_extent(const Term *t) {
  return t->kind == TERM_NUMBER || t->kind == TERM_EXTENT;
}

// Of extents, at least one of which is no number; unknown if it is no formula of extents.
static Term combine_extents(Body *f, char sign, const Term *a, const Term *b) {
  Graph *g = f->x->build.graph;
  int64_t number = 0;
  Extent p = a->extent, q = b->extent, e = EXTENT_UNKNOWN;
  bool ok = true;
  if (a->kind == TERM_NUMBER && !recipe_int(&f->recipe, a, &number)) return nothing;
  if (a->kind == TERM_NUMBER) p = EXTENT(number);
  if (b->kind == TERM_NUMBER && !recipe_int(&f->recipe, b, &number)) return nothing;
  if (b->kind == TERM_NUMBER) q = EXTENT(number);
  if (sign == '=' || sign == '!') return term_number(extent_equals(p, q) == (sign == '='));
  if (sign == '*') ok = extent_multiply(g, p, q, &e);
  else if (sign == '/') ok = extent_divide(g, p, q, &e);
  else if ((sign == '+' || sign == '-') && b->kind == TERM_NUMBER && number < 0)
    ok = extent_add(g, p, sign == '+' ? -1 : 1, EXTENT(-number), &e);
  else if (sign == '+' || sign == '-') ok = extent_add(g, p, sign == '+' ? 1 : -1, q, &e);
  else return body_fail(f, "expected numbers, found an extent with a name in it"), nothing;
  return ok ? term_extent(e) : body_out_of_memory(f);
}

Term body_combine(Recipe *recipe, char sign, Term a, Term b) {
  Body *f = (Body *)recipe;
  if (is_extent(&a) && is_extent(&b)) return combine_extents(f, sign, &a, &b);
  const char *op = recipe_operator(sign);
  if (!op || (a.kind != TERM_VALUE && b.kind != TERM_VALUE))
    return body_fail(f, "expected tensors or numbers"), nothing;
  const Value *like = a.kind == TERM_VALUE ? a.value : b.value;
  const Term operands[] = {term_value(term_tensor(f, &a, like)), term_value(term_tensor(f, &b, like))};
  return body_call(f, op, operands, 2);
}
