// Inference of reductions.
#include "ir/operators/reduce.h"

#include "ir/operators/rules.h"

static int64_t from_left(int64_t axis, int rank) {
  return axis < 0 ? axis + rank : axis;
}

// ArgMax and ArgMin have one axis.
static bool has_one_axis(const Node *node) {
  return operator_has_attribute(node->op, "axis");
}

uint32_t reduce_axes(const Node *node) {
  if (has_one_axis(node)) return 1U << from_left(node_s64(node, "axis"), node->inputs[0]->shape.rank);
  const AttributeValue *axes = node_attribute(node, "axes");
  uint32_t mask = 0;
  for (size_t i = 0; i < axes->list.count; i++)
    mask |= 1U << from_left(axes->list.items[i], node->inputs[0]->shape.rank);
  return mask;
}

// The indices along the axis must fit s32.
static bool check_index(Inference *inf, const Node *node) {
  const Value *src = node->inputs[0];
  int64_t axis;
  if (!infer_axis(inf, "axis", node_s64(node, "axis"), src->shape.rank, &axis)) return false;
  return extent_value(src->shape.extent[axis]) <= INT32_MAX ||
         infer_error(inf, "%s: expected an extent below 2^31 on axis %d", src->name, (int)axis);
}

static bool check_axes(Inference *inf, const Node *node, int rank) {
  if (has_one_axis(node)) return check_index(inf, node);
  const AttributeValue *axes = node_attribute(node, "axes");
  uint32_t mask = 0;
  for (size_t i = 0; i < axes->list.count; i++) {
    int64_t given = axes->list.items[i], axis;
    if (!infer_axis(inf, "axes", given, rank, &axis)) return false;
    if (mask >> axis & 1)
      return infer_error(inf, "axes: expected each axis once, found axis %lld twice", (long long)axis);
    mask |= 1U << axis;
  }
  return true;
}

static bool infer_reduced_extent(Inference *inf, const Value *src, Value *dst, int axis) {
  char src_text[160], dst_text[160];
  Extent e = dst->shape.extent[axis];
  if (extent_is_unknown(e) || extent_equals(e, EXTENT(1))) return infer_extent(inf, dst, axis, EXTENT(1));
  return infer_error(inf, "%s %s: expected extent 1 on axis %d, along which %s %s is reduced", dst->name,
                     shape_string(&dst->shape, dst_text, sizeof dst_text), axis, src->name,
                     shape_string(&src->shape, src_text, sizeof src_text));
}

// dst has the axes of src in the same order; reduced axes have extent 1 or are removed.
bool infer_reduce(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *dst = node->outputs[0];
  bool keep_dims = node_bool(node, "keep_dims");
  size_t count = has_one_axis(node) ? 1 : node_attribute(node, "axes")->list.count;
  int removed = keep_dims ? 0 : count < MAX_RANK ? (int)count : MAX_RANK;
  if (src->shape.rank < 0 && dst->shape.rank >= 0 && !infer_rank(inf, src, dst->shape.rank + removed)) return false;
  if (src->shape.rank < 0) return true;
  if (!check_axes(inf, node, src->shape.rank) || !infer_rank_beside(inf, dst, src->shape.rank - removed, src))
    return false;
  uint32_t reduced = reduce_axes(node);
  for (int axis = 0, on = 0; axis < src->shape.rank; axis++) {
    bool is_reduced = reduced >> axis & 1;
    if (is_reduced && keep_dims && !infer_reduced_extent(inf, src, dst, on)) return false;
    if (!is_reduced && !infer_same_extent(inf, src, axis, dst, on)) return false;
    on += keep_dims || !is_reduced;
  }
  return true;
}

bool infer_arg_reduce(Inference *inf, Node *node) {
  Value *dst = node->outputs[0];
  return (dst->type != TYPE_NONE || infer_type(inf, dst, TYPE_S32)) && infer_reduce(inf, node);
}
