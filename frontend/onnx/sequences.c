// Sequences of tensors, which exist only while a model is read: lists of the graph's values, whose lengths and
// positions must be known. In place of a value, the names of a scope have the list.
#include "frontend/onnx/translation.h"

#include <string.h>

enum { MOST_ITEMS = 4096 };

typedef struct Sequence {
  Value value; // the first member: what the names have
  Value **items;
  size_t count;
} Sequence;

static const char mark[] = "a sequence"; // the name of a sequence's value, by its address

bool onnx_is_sequence(const Value *v) {
  return v && v->name == mark;
}

static const Sequence *sequence_in(Onnx *x, size_t i) {
  const Value *v = onnx_in(x, i);
  if (onnx_is_sequence(v)) return (const Sequence *)(const void *)v;
  build_error(&x->build, "expected a sequence as input %zu", i);
  return NULL;
}

// A sequence with room for the items; counted, because the nodes of a small file may copy long ones.
static Sequence *new_sequence(Onnx *x, size_t count) {
  if (count > MOST_ITEMS) return build_error(&x->build, "a sequence of more than %d tensors", MOST_ITEMS), NULL;
  if (!build_spend(&x->build, (int64_t)((count + 1) * sizeof(Value *)))) return NULL;
  Sequence *s = ARENA_NEW(x->reading.arena, Sequence);
  if (s) *s = (Sequence){.value = {.name = mark}, .items = ARENA_ARRAY(x->reading.arena, Value *, count + 1)};
  if (!s || !s->items) return error_out_of_memory(x->reading.d), NULL;
  s->count = count;
  return s;
}

static bool put_sequence(Onnx *x, Sequence *s) {
  return s && onnx_out(x, 0, &s->value);
}

// The position in input i, up to `most`; a negative one counts from the end of `count` items. Absent: `most`, if that
// is not below 0.
static bool take_position(Onnx *x, size_t i, size_t count, int64_t most, size_t *position) {
  const double n = (double)count;
  double number = (double)most;
  if ((onnx_in(x, i) || most < 0) && !onnx_number(x, onnx_in(x, i), &number)) return false;
  if (!(number >= -n && number <= (double)most))
    return build_error(&x->build, "position: expected %lld to %lld, found %g", -(long long)count, (long long)most,
                       number);
  *position = (size_t)(number < 0 ? number + n : number);
  return true;
}

bool onnx_sequence_empty(Onnx *x) {
  return put_sequence(x, new_sequence(x, 0));
}

bool onnx_sequence_construct(Onnx *x) {
  Sequence *s = new_sequence(x, x->node->ninputs);
  for (size_t i = 0; s && i < s->count; i++)
    if (!(s->items[i] = onnx_in(x, i))) return false;
  return put_sequence(x, s);
}

bool onnx_sequence_insert(Onnx *x) {
  const Sequence *from = sequence_in(x, 0);
  if (onnx_is_sequence(onnx_in(x, 1))) return build_error(&x->build, "expected a tensor as input 1, found a sequence");
  Sequence *s = from && onnx_in(x, 1) ? new_sequence(x, from->count + 1) : NULL;
  size_t at = 0;
  if (!s || !take_position(x, 2, from->count, (int64_t)from->count, &at)) return false;
  for (size_t i = 0; i < s->count; i++) s->items[i] = i == at ? onnx_in(x, 1) : from->items[i - (i > at)];
  return put_sequence(x, s);
}

bool onnx_sequence_erase(Onnx *x) {
  const Sequence *from = sequence_in(x, 0);
  size_t at = 0;
  if (!from || !take_position(x, 1, from->count, (int64_t)from->count - 1, &at)) return false;
  Sequence *s = new_sequence(x, from->count - 1);
  for (size_t i = 0; s && i < s->count; i++) s->items[i] = from->items[i + (i >= at)];
  return put_sequence(x, s);
}

bool onnx_sequence_at(Onnx *x) {
  const Sequence *from = sequence_in(x, 0);
  size_t at = 0;
  if (from && !onnx_in(x, 1)) return build_error(&x->build, "expected a position");
  return from && take_position(x, 1, from->count, (int64_t)from->count - 1, &at) && onnx_out(x, 0, from->items[at]);
}

bool onnx_sequence_length(Onnx *x) {
  const Sequence *from = sequence_in(x, 0);
  return from && onnx_out(x, 0, build_number(&x->build, TYPE_S64, NULL, (double)from->count));
}

// One behind the other along an axis; changes the list.
static Value *join(Onnx *x, Value **items, size_t count, int axis) {
  if (!count) return build_error(&x->build, "expected a tensor or more"), NULL;
  while (count > 1) { // in groups, as an operator takes no more
    size_t ngroups = 0;
    for (size_t i = 0; i < count; i += MAX_VARIADIC) {
      const size_t n = count - i < MAX_VARIADIC ? count - i : MAX_VARIADIC;
      Node *node = n > 1 ? build_node(&x->build, OP_Concat, (uint32_t)n, items + i) : NULL;
      if (node) build_set(node, "axis")->s64 = axis;
      items[ngroups] = n > 1 ? build_one(&x->build, node) : items[i];
      if (!items[ngroups++]) return NULL;
    }
    count = ngroups;
  }
  return items[0];
}

Value *onnx_at_index(Onnx *x, Value *v, int axis, int64_t i) {
  Shape to = {.rank = 0};
  if (v && v->shape.rank <= axis) return build_error(&x->build, "%.80s: expected more axes", v->name), NULL;
  for (int k = 0; v && k < v->shape.rank; k++)
    if (k != axis) to.extent[to.rank++] = v->shape.extent[k];
  return v ? onnx_reshape_extents(x, build_slice(&x->build, v, axis, i, i + 1), &to) : NULL;
}

Value *onnx_stack(Onnx *x, Value **items, size_t count, int axis) {
  const int rank = count ? items[0]->shape.rank : 0;
  for (size_t k = 0; k < count; k++) {
    Shape to = {.rank = 0};
    if (onnx_is_sequence(items[k]) || items[k]->shape.rank != rank || rank == MAX_RANK)
      return build_error(&x->build, "expected tensors of one rank, below %d", MAX_RANK), NULL;
    for (int i = 0; i <= rank; i++)
      to.extent[to.rank++] = i == axis ? EXTENT(1) : items[k]->shape.extent[i - (i > axis)];
    items[k] = onnx_reshape_extents(x, items[k], &to);
    if (!items[k]) return NULL;
  }
  return join(x, items, count, axis);
}

static bool refuse_lengths(Onnx *x, int64_t extent) {
  return build_error(&x->build, "split: expected lengths that add up to %lld", (long long)extent);
}

// In parts of the lengths in input 1; of one length, the last one shorter; or in single indices.
bool onnx_split_to_sequence(Onnx *x) {
  Value *v = onnx_in(x, 0);
  const Value *split = onnx_in(x, 1);
  Ints parts = {.count = 1, .items = {1}};
  int axis;
  if (!v || (split && !onnx_constant_ints(x, 1, &parts)) ||
      !onnx_axis(x, onnx_int(x, "axis", 0), v->shape.rank, &axis) || !onnx_has_number(x, v, axis))
    return false;
  const int64_t extent = v->shape.extent[axis].value;
  const bool is_list = split && split->shape.rank == 1, keeps = split || onnx_int(x, "keepdims", 1) != 0;
  if (!is_list && (parts.count != 1 || parts.items[0] < 1))
    return build_error(&x->build, "split: expected lengths above 0");
  const int64_t whole = is_list ? 0 : extent / parts.items[0];
  Sequence *s = new_sequence(x, is_list ? parts.count : (size_t)(whole + (whole * parts.items[0] < extent)));
  int64_t from = 0;
  for (size_t i = 0; s && i < s->count; i++) {
    const int64_t rest = extent - from, wanted = parts.items[is_list ? i : 0];
    const int64_t length = !is_list && wanted > rest ? rest : wanted;
    if (length < 0 || length > rest) return refuse_lengths(x, extent);
    s->items[i] = keeps ? build_slice(&x->build, v, axis, from, from + length) : onnx_at_index(x, v, axis, from);
    if (!s->items[i]) return false;
    from += length;
  }
  if (s && from != extent) return refuse_lengths(x, extent);
  x->nnodes += s ? s->count : 0;
  return put_sequence(x, s);
}

// Along an axis, or stacked along a new one.
bool onnx_concat_from_sequence(Onnx *x) {
  const Sequence *from = sequence_in(x, 0);
  const bool is_new = onnx_int(x, "new_axis", 0) != 0;
  int axis;
  if (!from) return false;
  if (from->count == 0) return build_error(&x->build, "expected a tensor or more");
  Sequence *parts = new_sequence(x, from->count);
  if (!parts || !onnx_axis(x, onnx_int(x, "axis", 0), from->items[0]->shape.rank + is_new, &axis)) return false;
  memcpy(parts->items, from->items, from->count * sizeof *from->items);
  return onnx_out(x, 0, (is_new ? onnx_stack : join)(x, parts->items, parts->count, axis));
}

// Optional values: an absent input has no element, any other is its own element.
bool onnx_optional_has(Onnx *x) {
  return onnx_out(x, 0, build_number(&x->build, TYPE_BOOLEAN, NULL, onnx_in(x, 0) != NULL));
}

bool onnx_optional_element(Onnx *x) {
  return onnx_out(x, 0, onnx_in(x, 0));
}
