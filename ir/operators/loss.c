// Inference and check functions of losses and their gradients.
#include "ir/operators/loss.h"

#include "ir/operators/movement.h"
#include "ir/operators/rules.h"

int loss_class_axis(const Node *node) {
  return axis_of(node, node->inputs[0]->shape.rank);
}

bool loss_ignored_is_large(const Node *node) {
  if (!operator_has_attribute(node->op, "ignore_index")) return false;
  const AttributeValue *ignored = node_attribute(node, "ignore_index");
  return ignored->is_set && (ignored->s64 > 1 << 24 || ignored->s64 < -(1 << 24));
}

// The loss is f32 unless another type is declared; f64 if src is f64.
static bool infer_loss_type(Inference *inf, const Value *src, Value *loss) {
  if (src->type == TYPE_NONE || loss->type != TYPE_NONE) return true;
  return infer_type(inf, loss, src->type == TYPE_F64 ? TYPE_F64 : TYPE_F32);
}

// Reports labels that are one-hot vectors.
static bool tell_one_hot(Inference *inf, const Value *src, int axis, const Value *labels) {
  char text[160];
  return infer_error(inf,
                     "%s %s: expected one label for each row of %s, the number of its class, found a number for each "
                     "class; ArgMax with axis: %d makes labels of them",
                     labels->name, shape_string(&labels->shape, text, sizeof text), src->name, axis);
}

// `rest` has all axes of src but `axis`.
static bool infer_rest(Inference *inf, Value *src, int axis, Value *rest) {
  if (!infer_rank_beside(inf, rest, src->shape.rank - 1, src)) return false;
  for (int i = 0; i + 1 < src->shape.rank; i++)
    if (!infer_same_extent(inf, src, i + (i >= axis), rest, i)) return false;
  return true;
}

static bool infer_cross_entropy(Inference *inf, Node *node, Value *labels, Value *weights, Value *loss) {
  Value *src = node->inputs[0];
  const bool is_reduced = node_s64(node, "reduction") != LOSS_NONE;
  int64_t axis;
  if (!infer_loss_type(inf, src, loss)) return false;
  if (is_reduced && !infer_rank(inf, loss, 0)) return false;
  if (src->shape.rank < 0 && labels->shape.rank >= 0 && !infer_rank(inf, src, labels->shape.rank + 1)) return false;
  if (src->shape.rank < 0) return true;
  if (!infer_axis(inf, "axis", node_s64(node, "axis"), src->shape.rank, &axis)) return false;
  if (src->shape.rank > 1 && shape_equals(&src->shape, &labels->shape))
    return tell_one_hot(inf, src, (int)axis, labels);
  if (!infer_rest(inf, src, (int)axis, labels)) return false;
  if (!is_reduced && !infer_rest(inf, src, (int)axis, loss)) return false;
  return !weights || (infer_rank(inf, weights, 1) && infer_same_extent(inf, src, (int)axis, weights, 0));
}

static bool infer_total(Inference *inf, const Node *node, Value *total) {
  return !total || (infer_loss_type(inf, node->inputs[0], total) && infer_rank(inf, total, 0));
}

bool infer_softmax_cross_entropy(Inference *inf, Node *node) {
  return infer_total(inf, node, node->outputs[1]) &&
         infer_cross_entropy(inf, node, node->inputs[1], node->inputs[2], node->outputs[0]);
}

bool infer_softmax_cross_entropy_backward(Inference *inf, Node *node) {
  return infer_same_shape(inf, node->inputs[0], node->outputs[0]) && infer_total(inf, node, node->inputs[3]) &&
         infer_cross_entropy(inf, node, node->inputs[2], node->inputs[4], node->inputs[1]);
}

bool infer_loss(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *loss = node->outputs[0];
  if (!infer_loss_type(inf, src, loss) || !infer_same_shape(inf, src, node->inputs[1])) return false;
  return node_s64(node, "reduction") == LOSS_NONE ? infer_same_shape(inf, src, loss) : infer_rank(inf, loss, 0);
}

bool check_label_smoothing(Node *node, Diagnostics *d) {
  char title[NODE_TITLE_BYTES];
  const double smoothing = node_f32(node, "label_smoothing");
  return (smoothing >= 0 && smoothing <= 1) ||
         error_at(d, node->position, "%s: label_smoothing: expected a number from 0 to 1, found %g",
                  node_title(node, title), smoothing);
}

bool check_cross_entropy_backward(Node *node, Diagnostics *d) {
  char title[NODE_TITLE_BYTES];
  const bool is_weighted = node->inputs[4] || node_attribute(node, "ignore_index")->is_set;
  const bool needs_total = is_weighted && node_s64(node, "reduction") == LOSS_MEAN;
  if (needs_total && !node->inputs[3])
    return error_at(d, node->position,
                    "%s: missing input total, SoftmaxCrossEntropy's second output, which a mean with weights or "
                    "ignore_index is divided by",
                    node_title(node, title));
  if (!needs_total) node_set_input(node, 3, NULL);
  return check_label_smoothing(node, d);
}
