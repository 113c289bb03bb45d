// Gradients of losses.
#include "ir/operators/loss.h"

#include "passes/gradient/gradient_state.h"

#include <math.h>

#define BINARY(op, a, b) gradient_binary(g, OP_##op, a, b)

enum { WEIGHTS = 2 }; // the slot of SoftmaxCrossEntropy's classes' weights

// The sum of the labels' weights, which is recomputed if the forward node does not output it.
static Value *total_of(Gradient *g, const Node *node) {
  if (node->outputs[1]) return gradient_saved(g, node->outputs[1]);
  const Value *loss = node->outputs[0];
  const Shape scalar = {.rank = 0};
  Node *again = gradient_node(g, OP_SoftmaxCrossEntropy, node);
  if (!again) return NULL;
  for (uint32_t i = 0; i < 3; i++)
    if (node->inputs[i]) node_set_input(again, i, gradient_saved(g, node->inputs[i]));
  gradient_output(g, again, 0, loss->type, &loss->shape);
  return gradient_output(g, again, 1, loss->type, &scalar);
}

// v, which lacks src's axis of classes, with an axis of extent 1 there.
static Value *beside_classes(Gradient *g, const Node *node, Value *v) {
  Shape shape = node->inputs[0]->shape;
  shape.extent[loss_class_axis(node)] = EXTENT(1);
  return v ? gradient_reshaped(g, v, &shape) : NULL;
}

// Booleans of src's shape: whether the class is the label.
static Value *is_own_class(Gradient *g, const Node *node, Value *labels, Value *src) {
  Value *index = src ? gradient_apply(g, OP_GenIndex, NULL, TYPE_S32, &src->shape, src, NULL, NULL) : NULL;
  if (!index || !labels) return NULL;
  *node_attribute_slot(index->producer, "axis") = (AttributeValue){.is_set = true, .s64 = loss_class_axis(node)};
  return BINARY(Equal, gradient_cast(g, index, labels->type), labels);
}

static Value *sum_of_class(Gradient *g, const Node *node, Value *v) {
  const uint32_t all = (1U << node->inputs[0]->shape.rank) - 1;
  return gradient_reduced(g, OP_ReduceSum, v, all & ~(1U << loss_class_axis(node)), false);
}

// Booleans, with an axis of extent 1 for the classes: whether the label is a class.
static Value *is_class(Gradient *g, const Node *node, Value *is_own, Value *zero, Value *one) {
  const Value *src = node->inputs[0];
  Value *own = gradient_select(g, is_own, gradient_filled(g, src->type, &src->shape, 1), zero);
  return BINARY(Equal, gradient_reduced(g, OP_ReduceSum, own, 1U << loss_class_axis(node), true), one);
}

static Value *number_of_classes(Gradient *g, const Node *node, Type type) {
  return gradient_count(g, type, &node->inputs[0]->shape, 1U << loss_class_axis(node));
}

// Booleans: whether the label is ignored. NULL: none is.
static Value *is_ignored(Gradient *g, const Node *node, Value *labels) {
  const AttributeValue *ignored = node_attribute(node, "ignore_index");
  if (!ignored->is_set || !labels) return NULL;
  Value *number = graph_add_number(g->graph, "", labels->type, &(Shape){.rank = 0}, (double)ignored->s64);
  return BINARY(Equal, labels, number);
}

// How much the row's loss, times `factor` unless that is NULL, grows with each class's weight, of src's shape: l[c] *
// ((1 - label_smoothing) * (c = y) + label_smoothing / C) with the logarithms l of SoftmaxCrossEntropy's formula. NaN
// in rows whose label is no class.
static Value *costs_of_classes(Gradient *g, const Node *node, Value *src, Value *is_own, Value *factor) {
  const int axis = loss_class_axis(node);
  const double smoothing = node_f32(node, "label_smoothing");
  if (!src || !is_own) return NULL;
  Value *zero = gradient_number(g, src->type, 0), *one = gradient_number(g, src->type, 1);
  Value *log = gradient_apply(g, OP_LogSoftmax, NULL, src->type, &src->shape, src, NULL, NULL);
  if (!log) return NULL;
  *node_attribute_slot(log->producer, "axis") = (AttributeValue){.is_set = true, .s64 = axis};
  Value *cost = gradient_scaled(g, log, -1);
  if (factor) cost = BINARY(Multiply, cost, factor);
  Value *costs = gradient_scaled(g, gradient_select(g, is_own, cost, zero), 1 - smoothing);
  if (smoothing != 0) {
    Value *nclasses = number_of_classes(g, node, src->type);
    costs = BINARY(Add, costs, BINARY(Divide, gradient_scaled(g, cost, smoothing), nclasses));
  }
  Value *has_class = is_class(g, node, is_own, zero, one);
  return gradient_select(g, has_class, costs, gradient_number(g, src->type, (double)NAN));
}

// The loss is linear in the weights. A mean is the quotient of two sums that are.
static void give_weights(Gradient *g, const Node *node, Value *diff) {
  const int64_t reduction = node_s64(node, "reduction");
  Value *src = gradient_widened(g, gradient_saved(g, node->inputs[0]));
  Value *labels = beside_classes(g, node, gradient_saved(g, node->inputs[1]));
  Value *is_own = is_own_class(g, node, labels, src);
  if (!is_own) return;
  diff = gradient_cast(g, diff, src->type);
  Value *costs = costs_of_classes(g, node, src, is_own, reduction == LOSS_NONE ? beside_classes(g, node, diff) : NULL);
  Value *zero = gradient_number(g, src->type, 0);
  Value *counts = gradient_select(g, is_own, gradient_filled(g, src->type, &src->shape, 1), zero);
  Value *ignored = is_ignored(g, node, labels);
  if (ignored) {
    costs = gradient_select(g, ignored, zero, costs);
    counts = gradient_select(g, ignored, zero, counts);
  }
  Value *slope = sum_of_class(g, node, costs);
  if (reduction == LOSS_MEAN) {
    Value *loss = gradient_cast(g, gradient_saved(g, node->outputs[0]), src->type);
    slope = BINARY(Subtract, slope, BINARY(Multiply, loss, sum_of_class(g, node, counts)));
    slope = BINARY(Divide, slope, gradient_cast(g, total_of(g, node), src->type));
  }
  gradient_give(g, node, WEIGHTS, reduction == LOSS_NONE ? slope : BINARY(Multiply, slope, diff));
}

// The total is the sum of the labels' weights, NaN if one is no class.
static void make_of_total(Gradient *g, const Node *node) {
  Value *src = gradient_widened(g, gradient_saved(g, node->inputs[0]));
  Value *labels = beside_classes(g, node, gradient_saved(g, node->inputs[1]));
  Value *is_own = is_own_class(g, node, labels, src);
  if (!is_own) return;
  Value *zero = gradient_number(g, src->type, 0), *ones = gradient_filled(g, src->type, &src->shape, 1);
  Value *is_one = is_class(g, node, is_own, zero, gradient_number(g, src->type, 1));
  Value *counts = gradient_select(g, is_own, ones, zero), *ignored = is_ignored(g, node, labels);
  counts = gradient_select(g, is_one, counts, gradient_number(g, src->type, (double)NAN));
  if (ignored) counts = gradient_select(g, ignored, zero, counts);
  gradient_give(g, node, WEIGHTS, BINARY(Multiply, gradient_of_output(g, node, 1), sum_of_class(g, node, counts)));
}

GRADIENT_WITH(SoftmaxCrossEntropy, .make_of_statistics = make_of_total) {
  const Value *src = node->inputs[0], *weights = node->inputs[2];
  const bool is_weighted = weights || node_attribute(node, "ignore_index")->is_set;
  Node *backward = gradient_node(g, OP_SoftmaxCrossEntropyBackward, node);
  if (!backward) return;
  node_set_input(backward, 0, gradient_saved(g, src));
  node_set_input(backward, 1, diff);
  node_set_input(backward, 2, gradient_saved(g, node->inputs[1]));
  if (weights) node_set_input(backward, 4, gradient_saved(g, weights));
  if (is_weighted && node_s64(node, "reduction") == LOSS_MEAN) node_set_input(backward, 3, total_of(g, node));
  gradient_give(g, node, 0, gradient_output(g, backward, 0, src->type, &src->shape));
  if (gradient_is_wanted(g, weights)) give_weights(g, node, diff);
}

// The gradient of each element's loss.
static Value *diff_of_losses(Gradient *g, const Node *node, Value *diff) {
  const Value *src = node->inputs[0];
  if (node_s64(node, "reduction") != LOSS_MEAN) return diff;
  return BINARY(Divide, diff, gradient_count(g, src->type, &src->shape, (1U << src->shape.rank) - 1));
}

GRADIENT(MeanSquaredError) {
  Value *src = gradient_widened(g, gradient_saved(g, node->inputs[0]));
  Value *error = BINARY(Subtract, src, gradient_widened(g, gradient_saved(g, node->inputs[1])));
  Value *slope = BINARY(Multiply, gradient_scaled(g, error, 2), diff_of_losses(g, node, diff));
  gradient_give(g, node, 0, slope);
  if (gradient_is_wanted(g, node->inputs[1])) gradient_give(g, node, 1, gradient_scaled(g, slope, -1));
}

// Derivative by src: sigmoid(src) - target; by target: -src.
GRADIENT(BinaryCrossEntropy) {
  Value *src = gradient_widened(g, gradient_saved(g, node->inputs[0])), *own = diff_of_losses(g, node, diff);
  Value *target = gradient_widened(g, gradient_saved(g, node->inputs[1]));
  Value *error = BINARY(Subtract, gradient_unary(g, OP_Sigmoid, src), target);
  gradient_give(g, node, 0, BINARY(Multiply, error, own));
  if (gradient_is_wanted(g, node->inputs[1]))
    gradient_give(g, node, 1, BINARY(Multiply, gradient_scaled(g, src, -1), own));
}

// q of the formula, which is linear in the weights.
static Value *share_of_classes(Gradient *g, const Node *node, Value *weights, Value *is_own) {
  const double smoothing = node_f32(node, "label_smoothing");
  Value *share = weights ? gradient_select(g, is_own, weights, gradient_number(g, weights->type, 0)) : NULL;
  if (!share || smoothing == 0) return share;
  Value *each = BINARY(Divide, gradient_scaled(g, weights, smoothing), number_of_classes(g, node, weights->type));
  return BINARY(Add, gradient_scaled(g, share, 1 - smoothing), each);
}

// The gradient of each row's loss.
static Value *diff_of_rows(Gradient *g, const Node *node, Type type) {
  enum { DIFF_LOSS = 1, LABELS, TOTAL };
  const Value *labels = node->inputs[LABELS];
  const int64_t reduction = node_s64(node, "reduction");
  Value *diff = gradient_cast(g, gradient_saved(g, node->inputs[DIFF_LOSS]), type);
  if (reduction == LOSS_NONE) return beside_classes(g, node, diff);
  if (reduction != LOSS_MEAN) return diff;
  Value *total = node->inputs[TOTAL] ? gradient_cast(g, gradient_saved(g, node->inputs[TOTAL]), type)
                                     : gradient_count(g, type, &labels->shape, (1U << labels->shape.rank) - 1);
  return BINARY(Divide, diff, total);
}

// In rows whose label is no class, a factor of NaN makes all further derivatives NaN, too.
EXPANSION(SoftmaxCrossEntropyBackward) {
  enum { SRC, LABELS = 2, OF_CLASSES = 4 };
  Value *src = gradient_widened(g, gradient_saved(g, node->inputs[SRC]));
  Value *labels = beside_classes(g, node, gradient_saved(g, node->inputs[LABELS]));
  Value *is_own = is_own_class(g, node, labels, src);
  if (!is_own) return;
  const int axis = loss_class_axis(node);
  Value *ignored = is_ignored(g, node, labels), *zero = gradient_number(g, src->type, 0);
  if (ignored) src = gradient_select(g, ignored, zero, src); // whatever it is
  if (!src) return;
  Shape classes = src->shape;
  for (int i = 0; i < classes.rank; i++)
    if (i != axis) classes.extent[i] = EXTENT(1);
  Value *weights =
      node->inputs[OF_CLASSES]
          ? gradient_in_shape(g, gradient_cast(g, gradient_saved(g, node->inputs[OF_CLASSES]), src->type), &classes)
          : gradient_filled(g, src->type, &src->shape, 1);
  Value *share = share_of_classes(g, node, weights, is_own);
  Value *softmax = gradient_apply(g, OP_SoftMax, NULL, src->type, &src->shape, src, NULL, NULL);
  if (!softmax) return;
  *node_attribute_slot(softmax->producer, "axis") = (AttributeValue){.is_set = true, .s64 = axis};
  Value *slope = BINARY(Multiply, softmax, gradient_reduced(g, OP_ReduceSum, share, 1U << axis, true));
  slope = BINARY(Multiply, diff_of_rows(g, node, src->type), BINARY(Subtract, slope, share));
  Value *one = gradient_number(g, src->type, 1), *nan = gradient_number(g, src->type, (double)NAN);
  Value *factor = gradient_select(g, is_class(g, node, is_own, zero, one), one, nan);
  results[0] = BINARY(Multiply, slope, factor);
  if (ignored) results[0] = gradient_select(g, ignored, zero, results[0]);
}
