// Calls ONNX's operators from bodies (bodies.h): each call is a node of its own, in the newest opset.
#include "frontend/onnx/bodies.h"

#include "frontend/onnx/fields.h"

#include <math.h>
#include <string.h>

static const Term nothing = {.kind = TERM_ABSENT};

static size_t put_varint(uint8_t *to, uint64_t number) {
  size_t n = 0;
  for (; number > 127; number >>= 7) to[n++] = (uint8_t)(number | 128);
  to[n++] = (uint8_t)number;
  return n;
}

bool body_put_attribute(Body *f, OnnxNamed *a, const char *name, size_t length, const Term *t) {
  uint8_t *to = ARENA_ARRAY(f->scratch, uint8_t, 32 + t->text.count + 11 * t->count);
  size_t n = 0;
  if (!to) return f->has_failed = true, error_out_of_memory(f->x->reading.d);
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
      if (t->extents[i].dim) return body_fail(f, "expected numbers, found an extent with a name in it");
      to[n++] = ATTRIBUTE_INTS << 3 | WIRE_VARINT;
      n += put_varint(to + n, (uint64_t)t->extents[i].value);
    }
  } else {
    return body_fail(f, "expected numbers");
  }
  *a = (OnnxNamed){.name = {(const uint8_t *)name, length}, .message = {to, n}};
  return true;
}

Value *body_call_operator(Body *f, BodyCall *call) {
  static const uint8_t result_name[] = {1}, input_name[] = {2}; // no graph's names, so that values keep theirs
  Onnx *x = f->x;
  const Onnx before = *x;
  OnnxScope scope = {.outer = NULL};
  Bytes inputs[MOST_BODY_ARGUMENTS], outputs[MOST_BODY_ARGUMENTS] = {{NULL, 0}};
  for (size_t i = 0; i < call->ninputs; i++) inputs[i] = (Bytes){input_name, call->inputs[i] != NULL};
  outputs[call->output] = (Bytes){result_name, 1};
  const OnnxNode node = {.op = call->op,
                         .inputs = inputs,
                         .ninputs = call->ninputs,
                         .outputs = outputs,
                         .noutputs = call->output + 1,
                         .attributes = {call->attributes, call->nattributes}};
  names_init(&scope.values, f->scratch);
  if (++x->nnodes > ONNX_MAX_NODES) return body_fail(f, "with its functions, the model has more than 2^18 nodes"), NULL;
  x->scope = &scope;
  x->node = &node;
  x->inputs = call->inputs;
  x->opset = ONNX_NEWEST;
  x->row = onnx_find_row(call->op, x->opset);
  const bool ok = x->row && onnx_translate_by_row(x);
  Value *result = ok ? names_find(&scope.values, "\1") : NULL;
  x->scope = before.scope;
  x->node = before.node;
  x->inputs = before.inputs;
  x->opset = before.opset;
  x->row = before.row;
  f->has_failed |= !result;
  return result;
}

Term body_call(Body *f, const char *name, size_t length, Term *arguments, size_t count) {
  BodyCall call = {.op = {(const uint8_t *)name, length}, .ninputs = count};
  for (size_t i = 0; i < count; i++) call.inputs[i] = term_tensor(f, &arguments[i], NULL);
  return body_is_idle(f) ? nothing : term_value(body_call_operator(f, &call));
}

static bool is_extent(const Term *t) {
  return t->kind == TERM_NUMBER || t->kind == TERM_EXTENT;
}

Term term_combine(Body *f, char sign, Term a, Term b) {
  static const char signs[] = "+-*/%<L>G=";
  static const char *const names[] = {
      "Add", "Sub", "Mul", "Div", "Mod", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"};
  if (body_is_idle(f)) return (Term){.kind = TERM_ABSENT};
  if (b.kind == TERM_ABSENT) return a;
  if (a.kind == TERM_ABSENT && (sign == '+' || sign == '*')) return b;
  if (a.kind == TERM_NUMBER && b.kind == TERM_NUMBER) return term_combine_numbers(sign, a.number, b.number);
  if (is_extent(&a) && is_extent(&b)) return term_combine_extents(f, sign, &a, &b);
  const char *at = strchr(signs, sign);
  if (!at || (a.kind != TERM_VALUE && b.kind != TERM_VALUE))
    return body_fail(f, "expected tensors or numbers"), (Term){.kind = TERM_ABSENT};
  Term operands[] = {a, b};
  const Value *like = a.kind == TERM_VALUE ? a.value : b.value;
  for (int i = 0; i < 2; i++) operands[i] = term_value(term_tensor(f, &operands[i], like));
  const char *name = names[at - signs];
  return body_call(f, name, strlen(name), operands, 2);
}
