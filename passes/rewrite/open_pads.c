// A Pad along an axis with an open extent, or by one, becomes a Concat with constants; where it removes elements, a
// Slice. Kernels test the bounds of other axes, which have numbers.
#include "passes/rewrite/open_pads.h"

#include "ir/operators/movement.h"

static bool is_open(const Node *pad, int axis) {
  Extent front, behind;
  return node_has_named_reads(pad, axis, &front, &behind) || extent_monomial(pad->inputs[0]->shape.extent[axis]) ||
         extent_monomial(pad->outputs[0]->shape.extent[axis]);
}

// The elements that a Pad adds in front of an axis, or behind it; below 0: a number that it removes.
static Extent added(const Node *pad, const char *list, int axis) {
  const AttributeValue *value = node_attribute(pad, list);
  const size_t i = (size_t)axis;
  if (value->list.extents && value->list.extents[i].dim) return value->list.extents[i];
  return (Extent){NULL, value->list.items[i]};
}

static bool is_number(Extent e, int64_t number) {
  return !e.dim && e.value == number;
}

static bool is_positive(Extent e) {
  return e.dim || e.value > 0;
}

// v without the elements that the Pad removes on the axis.
static Value *cut(Builder *b, Value *v, const Node *pad, int axis) {
  const Extent front = added(pad, "pads_begin", axis), behind = added(pad, "pads_end", axis);
  const bool cuts_front = !front.dim && front.value < 0, cuts_behind = !behind.dim && behind.value < 0;
  const int64_t start = cuts_front ? -front.value : 0, end = cuts_behind ? behind.value : MAX_ELEMENTS;
  if (!v || !(cuts_front || cuts_behind)) return v;
  return build_slice(b, v, axis, start, end);
}

static Value *pad_constant(Builder *b, const Value *v, const Node *pad, int axis, Extent extent) {
  Shape shape = v->shape;
  shape.extent[axis] = extent;
  return build_number(b, v->type, &shape, node_f32(pad, "value"));
}

// v with the elements that the Pad adds on the axis.
static Value *join(Builder *b, Value *v, const Node *pad, int axis) {
  const Extent front = added(pad, "pads_begin", axis), behind = added(pad, "pads_end", axis);
  Value *parts[3];
  uint32_t n = 0;
  if (!v || !(is_positive(front) || is_positive(behind))) return v;
  if (is_positive(front)) parts[n++] = pad_constant(b, v, pad, axis, front);
  parts[n++] = v;
  if (is_positive(behind)) parts[n++] = pad_constant(b, v, pad, axis, behind);
  Node *concat = build_node(b, OP_Concat, n, parts);
  if (concat) build_set(concat, "axis")->s64 = axis;
  return build_one(b, concat);
}

// A Pad of the axes whose extents are numbers.
static Value *pad_others(Builder *b, Value *v, const Node *pad) {
  const int rank = pad->inputs[0]->shape.rank;
  int64_t front[MAX_RANK] = {0}, behind[MAX_RANK] = {0};
  bool any = false;
  for (int i = 0; i < rank; i++) {
    if (is_open(pad, i)) continue;
    front[i] = added(pad, "pads_begin", i).value;
    behind[i] = added(pad, "pads_end", i).value;
    any |= front[i] || behind[i];
  }
  return any ? build_pad(b, v, front, behind, (size_t)rank, node_f32(pad, "value")) : v;
}

bool replace_open_pad(Builder *b, Node *pad) {
  Value *dst = pad->outputs[0], *v = pad->inputs[0];
  bool any = false;
  for (int i = 0; i < v->shape.rank; i++)
    any |= is_open(pad, i) && !(is_number(added(pad, "pads_begin", i), 0) && is_number(added(pad, "pads_end", i), 0));
  if (!any) return false;
  v = pad_others(b, v, pad);
  for (int i = 0; i < pad->inputs[0]->shape.rank; i++)
    if (is_open(pad, i)) v = join(b, cut(b, v, pad, i), pad, i);
  if (!v || v->producer == pad || !shape_equals(&v->shape, &dst->shape)) return false;
  Node *last = v->producer;
  node_set_output(pad, 0, NULL);
  node_set_input(pad, 0, NULL);
  node_set_output(last, 0, dst);
  return true;
}
