// What the names and operators of a body stand for: numbers, extents, lists and tensors.
#include "frontend/onnx/bodies.h"

Term body_out_of_memory(Body *f) {
  f->recipe.has_failed = true;
  error_out_of_memory(f->x->reading.d);
  return (Term){.kind = TERM_ABSENT};
}

Term term_extent(Extent e) {
  return extent_is_literal(e) ? term_number((double)e.value) : (Term){.kind = TERM_EXTENT, .extent = e};
}

Term term_value(Value *v) {
  return v ? (Term){.kind = TERM_VALUE, .value = v} : (Term){.kind = TERM_ABSENT};
}

static Value *list_tensor(Onnx *x, const Term *t) {
  const Shape shape = {.rank = t->kind == TERM_LIST, .extent = {EXTENT((int64_t)t->count)}};
  Constant *constant;
  Value *v = build_constant(&x->build, TYPE_S64, &shape, &constant);
  for (size_t i = 0; v && i < t->count; i++) {
    int64_t *element = (int64_t *)constant->data + i;
    *element = t->list[i].value;
    if (t->list[i].dim && !onnx_extent_number(x, t->list[i], element)) return NULL;
  }
  return v && onnx_mark_extents(x, v) ? v : NULL;
}

Value *term_tensor(Body *f, const Term *t, const Value *like) {
  Builder *b = &f->x->build;
  Value *v = t->kind == TERM_VALUE    ? t->value
             : t->kind == TERM_NUMBER ? build_number(b, like ? like->type : TYPE_S64, NULL, t->number)
             : t->kind == TERM_LIST   ? list_tensor(f->x, t)
             : t->kind == TERM_EXTENT ? onnx_extent_tensor(f->x, t->extent)
                                      : NULL;
  if (v && t->kind == TERM_EXTENT && like) v = build_cast(b, v, like->type);
  if (!v && t->kind != TERM_ABSENT) body_fail(f, "expected a tensor");
  return v;
}
