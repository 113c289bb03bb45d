// Inference of softmax and its gradients.
#include "ir/operators/softmax.h"

#include "ir/operators/movement.h"
#include "ir/operators/rules.h"

int softmax_axis(const Node *node) {
  return axis_of(node, node->inputs[0]->shape.rank);
}

// Statistics are f32, or f64 if src is f64 and no type is declared.
static bool infer_stats_type(Inference *inf, const Value *src, Value *stats) {
  if (src->type == TYPE_NONE) return true;
  if (stats->type == TYPE_NONE) return infer_type(inf, stats, src->type == TYPE_F64 ? TYPE_F64 : TYPE_F32);
  if (stats->type == TYPE_F32 || src->type == TYPE_F64) return true;
  return infer_error(inf, "%s is %s while %s is %s: expected f32", stats->name, type_name(stats->type), src->name,
                     type_name(src->type));
}

static bool infer_stats(Inference *inf, Value *src, int axis, Value *stats) {
  char src_text[160], text[160];
  if (!infer_rank_beside(inf, stats, src->shape.rank, src)) return false;
  for (int i = 0; i < src->shape.rank; i++) {
    Extent e = stats->shape.extent[i];
    if (i != axis && !infer_same_extent(inf, src, i, stats, i)) return false;
    if (i == axis && !extent_is_unknown(e) && !extent_equals(e, EXTENT(1)))
      return infer_error(inf, "%s %s: expected extent 1 on axis %d, the axis of %s %s that is summed", stats->name,
                         shape_string(&stats->shape, text, sizeof text), axis, src->name,
                         shape_string(&src->shape, src_text, sizeof src_text));
    if (i == axis && !infer_extent(inf, stats, i, EXTENT(1))) return false;
  }
  return true;
}

static bool infer_softmax_axis(Inference *inf, const Node *node, const Value *src, int64_t *axis) {
  const int64_t given = *axis = node_s64(node, "axis");
  char shape[160];
  if (node_attribute(node, "axis")->is_default && given >= src->shape.rank && src->shape.rank > 0)
    return infer_error(inf, "the default axis is 1, and %s %s has none: write axis: -1 for the last axis", src->name,
                       shape_string(&src->shape, shape, sizeof shape));
  return infer_axis(inf, "axis", given, src->shape.rank, axis);
}

bool infer_softmax(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *stats = node->noutputs > 1 ? node->outputs[1] : NULL;
  int64_t axis;
  if (!infer_result_type(inf, src, node->outputs[0], true) || !infer_same_shape(inf, src, node->outputs[0]))
    return false;
  if (stats && !infer_stats_type(inf, src, stats)) return false;
  if (stats && src->shape.rank < 0 && stats->shape.rank >= 0 && !infer_rank(inf, src, stats->shape.rank)) return false;
  if (src->shape.rank < 0) return true;
  if (!infer_softmax_axis(inf, node, src, &axis)) return false;
  return !stats || infer_stats(inf, src, (int)axis, stats);
}

bool infer_softmax_backward(Inference *inf, Node *node) {
  Value *diff_dst = node->inputs[0];
  int64_t axis;
  if (!infer_result_type(inf, diff_dst, node->outputs[0], false)) return false;
  if (!infer_same_shape(inf, diff_dst, node->inputs[1]) || !infer_same_shape(inf, diff_dst, node->outputs[0]))
    return false;
  return diff_dst->shape.rank < 0 || infer_softmax_axis(inf, node, diff_dst, &axis);
}

// The default axis is 1. For tensors of rank 3 or more, users nearly always mean the last axis.
void warn_softmax(const Node *node, Diagnostics *d) {
  const Value *src = node->inputs[0];
  char title[NODE_TITLE_BYTES], shape[160];
  if (!node_attribute(node, "axis")->is_default || src->shape.rank < 3) return;
  warn_at(d, node->position,
          "%s goes over axis 1 of %s %s, which is the default: write axis: -1 for the last axis, or axis: 1",
          node_title(node, title), src->name, shape_string(&src->shape, shape, sizeof shape));
}
