// What the names and operators of a body stand for: numbers, extents, lists and tensors.
#include "frontend/onnx/bodies.h"
#include "ir/graph/extents.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool body_fail(Body *f, const char *format, ...) {
  char message[256];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  f->has_failed = true;
  return build_error(&f->x->build, "%s", message);
}

Term term_number(double number) {
  return (Term){.kind = TERM_NUMBER, .number = number};
}

Term term_extent(Extent e) {
  return extent_is_literal(e) ? term_number((double)e.value) : (Term){.kind = TERM_EXTENT, .extents = {e}, .count = 1};
}

Term term_value(Value *v) {
  return v ? (Term){.kind = TERM_VALUE, .value = v} : (Term){.kind = TERM_ABSENT};
}

bool term_int(Body *f, const Term *t, int64_t *number) {
  const bool is_int =
      t->kind == TERM_NUMBER && fabs(t->number) <= (double)MAX_ELEMENTS && floor(t->number) == t->number;
  *number = is_int ? (int64_t)t->number : 0;
  if (is_int || body_is_idle(f)) return is_int;
  if (t->kind == TERM_NUMBER) return body_fail(f, "expected integers, found %g", t->number);
  if (t->kind != TERM_EXTENT || !t->extents[0].dim)
    return body_fail(f, "expected a number, which must be known when the model is read");
  return body_fail(f, "expected a number in place of the extent %.80s: give it one, as in --dim NAME=1",
                   t->extents[0].dim->name);
}

static Value *list_tensor(Onnx *x, const Term *t) {
  const Shape shape = {.rank = t->kind == TERM_LIST, .extent = {EXTENT((int64_t)t->count)}};
  Constant *constant;
  Value *v = build_constant(&x->build, TYPE_S64, &shape, &constant);
  for (size_t i = 0; v && i < t->count; i++) {
    int64_t *element = (int64_t *)constant->data + i;
    *element = t->extents[i].value;
    const bool is_number = !t->extents[i].dim && t->extents[i].value != EXTENT_UNKNOWN.value;
    if (!is_number && t->extents[i].dim && !onnx_extent_number(x, t->extents[i], element)) return NULL;
  }
  return v && onnx_mark_extents(x, v) ? v : NULL;
}

Value *term_tensor(Body *f, const Term *t, const Value *like) {
  Builder *b = &f->x->build;
  if (body_is_idle(f)) return NULL;
  Value *v = t->kind == TERM_VALUE    ? t->value
             : t->kind == TERM_NUMBER ? build_number(b, like ? like->type : TYPE_S64, NULL, t->number)
             : t->kind == TERM_LIST   ? list_tensor(f->x, t)
             : t->kind == TERM_EXTENT ? onnx_extent_tensor(f->x, t->extents[0])
                                      : NULL;
  if (v && t->kind == TERM_EXTENT && like) v = build_cast(b, v, like->type);
  if (!v && t->kind != TERM_ABSENT) body_fail(f, "expected a tensor");
  return v;
}

Term term_combine_numbers(char sign, double a, double b) {
  switch (sign) {
  case '+': return term_number(a + b);
  case '-': return term_number(a - b);
  case '*': return term_number(a * b);
  case '/': return term_number(a / b);
  case '%': return term_number(fmod(a, b));
  case '&': return term_number(a != 0 && b != 0);
  case '<': return term_number(a < b);
  case 'L': return term_number(a <= b);
  case '>': return term_number(a > b);
  case 'G': return term_number(a >= b);
  case '!': return term_number(a != b);
  default: return term_number(a == b);
  }
}

// Of extents, at least one of which is no number; unknown if it is no formula.
Term term_combine_extents(Body *f, char sign, const Term *a, const Term *b) {
  Graph *g = f->x->build.graph;
  int64_t number = 0;
  Extent p = a->extents[0], q = b->extents[0], e = EXTENT_UNKNOWN;
  bool ok = true;
  if (a->kind == TERM_NUMBER) ok = term_int(f, a, &number), p = EXTENT(number);
  if (b->kind == TERM_NUMBER) ok = term_int(f, b, &number), q = EXTENT(number);
  if (!ok) return (Term){.kind = TERM_ABSENT};
  if (sign == '=' || sign == '!') return term_number(extent_equals(p, q) == (sign == '='));
  if (sign == '*') ok = extent_multiply(g, p, q, &e);
  else if (sign == '/') ok = extent_divide(g, p, q, &e);
  else if ((sign == '+' || sign == '-') && b->kind == TERM_NUMBER && number < 0)
    ok = extent_add(g, p, sign == '+' ? -1 : 1, EXTENT(-number), &e);
  else if (sign == '+' || sign == '-') ok = extent_add(g, p, sign == '+' ? 1 : -1, q, &e);
  else return body_fail(f, "expected numbers, found an extent with a name in it"), (Term){.kind = TERM_ABSENT};
  if (!ok) error_out_of_memory(f->x->reading.d);
  return ok ? term_extent(e) : (Term){.kind = TERM_ABSENT};
}
