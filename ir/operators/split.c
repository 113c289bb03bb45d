// Inference of Split.
#include "ir/operators/movement.h"
#include "ir/operators/rules.h"

uint32_t split_nparts(const Node *node) {
  const AttributeValue *splits = node_attribute(node, "splits"), *parts = node_attribute(node, "parts");
  return parts->is_set ? (uint32_t)parts->s64 : (uint32_t)splits->list.count;
}

static bool check_parts(Inference *inf, const Node *node) {
  const AttributeValue *splits = node_attribute(node, "splits"), *parts = node_attribute(node, "parts");
  const int64_t nparts = parts->is_set ? parts->s64 : (int64_t)splits->list.count;
  if ((splits->list.count > 0) == parts->is_set || nparts < 1)
    return infer_error(inf, "expected either splits, a list of extents, or parts, a number");
  if (nparts > MAX_OPERANDS)
    return infer_error(inf, "expected at most %d parts, found %lld", MAX_OPERANDS, (long long)nparts);
  for (size_t i = 0; i < splits->list.count; i++)
    if (splits->list.items[i] < 0 || splits->list.items[i] >= MAX_ELEMENTS)
      return infer_error(inf, "splits: expected extents of at least 0, found %lld", (long long)splits->list.items[i]);
  for (uint32_t i = (uint32_t)nparts; i < node->noutputs; i++)
    if (node->outputs[i])
      return infer_error(inf, "expected at most %lld outputs, one for each part, found %s", (long long)nparts,
                         node->outputs[i]->name);
  return true;
}

// Infers extents along the axis, of src and of one part.
static bool infer_split_extents(Inference *inf, const Node *node, int axis, uint32_t part) {
  Value *src = node->inputs[0], *dst = node->outputs[part];
  const AttributeValue *splits = node_attribute(node, "splits");
  const int64_t nparts = split_nparts(node);
  if (splits->list.count) return infer_extent_beside(inf, dst, axis, EXTENT(splits->list.items[part]), src);
  const Extent whole = src->shape.extent[axis], own = dst->shape.extent[axis];
  Extent e;
  if (nparts == 1) return infer_same_extent(inf, dst, axis, src, axis);
  if (extent_is_unknown(whole))
    return infer_product(inf, own, EXTENT(nparts), &e) && infer_computed_extent(inf, src, axis, e, dst);
  return infer_quotient(inf, whole, EXTENT(nparts), &e) && infer_computed_extent(inf, dst, axis, e, src);
}

// src's extent along the axis must be the sum of splits, or a multiple of parts.
static bool infer_split_sum(Inference *inf, const Node *node, int axis) {
  Value *src = node->inputs[0];
  const Value *dst = node->outputs[0];
  const AttributeValue *splits = node_attribute(node, "splits");
  const Extent whole = src->shape.extent[axis];
  char src_text[160], dst_text[160];
  int64_t sum = 0;
  for (size_t i = 0; i < splits->list.count; i++) sum += splits->list.items[i];
  if (splits->list.count) return infer_extent_beside(inf, src, axis, EXTENT(sum), dst);
  return !extent_is_literal(whole) || whole.value % split_nparts(node) == 0 ||
         infer_error(inf, "%s %s, beside %s %s: expected an extent on axis %d that %u parts divide; splits may differ",
                     src->name, shape_string(&src->shape, src_text, sizeof src_text), dst->name,
                     shape_string(&dst->shape, dst_text, sizeof dst_text), axis, (unsigned)split_nparts(node));
}

bool infer_split(Inference *inf, Node *node) {
  Value *src = node->inputs[0];
  int64_t axis;
  if (!check_parts(inf, node)) return false;
  if (!infer_same_rank(inf, src, node->outputs[0])) return false;
  for (uint32_t i = 1; i < node->noutputs; i++)
    if (node->outputs[i] && !infer_same_rank(inf, src, node->outputs[i])) return false;
  const int rank = src->shape.rank;
  if (rank < 0) return true;
  if (!infer_axis(inf, "axis", node_s64(node, "axis"), rank, &axis)) return false;
  if (!infer_split_sum(inf, node, (int)axis)) return false;
  for (uint32_t part = 0; part < node->noutputs; part++) {
    Value *dst = node->outputs[part];
    if (dst && !infer_split_extents(inf, node, (int)axis, part)) return false;
    for (int i = 0; i < rank && dst; i++)
      if (i != axis && !infer_same_extent(inf, src, i, dst, i)) return false;
  }
  return true;
}

void split_starts(const Node *node, int64_t starts[MAX_OPERANDS + 1]) {
  const Shape *src = &node->inputs[0]->shape;
  const AttributeValue *splits = node_attribute(node, "splits");
  const uint32_t nparts = split_nparts(node);
  const int64_t equal = extent_value(src->extent[axis_of(node, src->rank)]) / nparts;
  starts[0] = 0;
  for (uint32_t i = 0; i < nparts; i++)
    starts[i + 1] = starts[i] + (splits->list.count ? splits->list.items[i] : equal);
}

bool split_extent(const Node *node, Graph *g, uint32_t part, Extent *e) {
  const Shape *src = &node->inputs[0]->shape;
  const AttributeValue *splits = node_attribute(node, "splits");
  *e = splits->list.count ? EXTENT(splits->list.items[part]) : EXTENT_UNKNOWN;
  return splits->list.count || extent_divide(g, src->extent[axis_of(node, src->rank)], EXTENT(split_nparts(node)), e);
}
