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

// Rows of src, the operand 0, by class. Values of each row have an axis of extent 1 for the classes.
typedef struct Rows {
  int axis; // of classes
  Type type;
  Value *src;     // in f32 or f64; 0 in rows whose label is ignored, whatever it is
  Value *weights; // of classes, which broadcast to src; ones
  Value *is_own;  // whether the class is the label
  Value *ignored; // whether the label is ignored; NULL: none is
  Value *counts;  // 1, or NaN where the label is no class
  Value *zero;
} Rows;

// v, which lacks src's axis of classes, with an axis of extent 1 there.
static Value *beside_classes(Gradient *g, const Node *node, Value *v) {
  Shape shape = node->inputs[0]->shape;
  shape.extent[loss_class_axis(node)] = EXTENT(1);
  return v ? gradient_reshaped(g, v, &shape) : NULL;
}

static Value *along_classes(Gradient *g, const Rows *rows, OperatorId id) {
  Value *v = gradient_apply(g, id, NULL, rows->type, &rows->src->shape, rows->src, NULL, NULL);
  if (v) *node_attribute_slot(v->producer, "axis") = (AttributeValue){.is_set = true, .s64 = rows->axis};
  return v;
}

static Value *sum_of_classes(Gradient *g, const Rows *rows, Value *v) {
  return gradient_reduced(g, OP_ReduceSum, v, 1U << rows->axis, true);
}

static bool rows_begin(Gradient *g, const Node *node, const Value *given_labels, const Value *weights, Rows *rows) {
  const Value *forward = node->inputs[0];
  const AttributeValue *ignored = node_attribute(node, "ignore_index");
  Value *src = gradient_widened(g, gradient_saved(g, forward));
  Value *labels = beside_classes(g, node, gradient_saved(g, given_labels));
  if (!src || !labels) return false;
  *rows = (Rows){.axis = loss_class_axis(node), .type = src->type, .src = src};
  rows->zero = gradient_number(g, src->type, 0);
  if (ignored->is_set) {
    Value *number = graph_add_number(g->graph, "", labels->type, &(Shape){.rank = 0}, (double)ignored->s64);
    rows->ignored = BINARY(Equal, labels, number);
    if (!(rows->src = gradient_select(g, rows->ignored, rows->zero, src))) return false;
  }
  Value *index = gradient_apply(g, OP_GenIndex, NULL, TYPE_S32, &src->shape, src, NULL, NULL);
  if (!index) return false;
  *node_attribute_slot(index->producer, "axis") = (AttributeValue){.is_set = true, .s64 = rows->axis};
  rows->is_own = BINARY(Equal, gradient_cast(g, index, labels->type), labels);
  Shape classes = {.rank = forward->shape.rank};
  for (int i = 0; i < classes.rank; i++) classes.extent[i] = i == rows->axis ? forward->shape.extent[i] : EXTENT(1);
  Value *ones = rows->weights = gradient_filled(g, src->type, &src->shape, 1), *one = gradient_number(g, src->type, 1);
  if (weights) rows->weights = gradient_in_shape(g, gradient_cast(g, gradient_saved(g, weights), src->type), &classes);
  Value *own = sum_of_classes(g, rows, gradient_select(g, rows->is_own, ones, rows->zero));
  rows->counts = gradient_select(g, BINARY(Equal, own, one), one, gradient_number(g, src->type, (double)NAN));
  return !g->failed;
}

// v of each row or its classes, if the row counts
static Value *counted(Gradient *g, const Rows *rows, Value *v) {
  v = BINARY(Multiply, v, rows->counts);
  return rows->ignored ? gradient_select(g, rows->ignored, rows->zero, v) : v;
}

// (1 - label_smoothing) * (c = y) * v[c] + label_smoothing / C * v[c]
static Value *smoothed(Gradient *g, const Node *node, const Rows *rows, Value *v) {
  const double smoothing = node_f32(node, "label_smoothing");
  Value *share = gradient_select(g, rows->is_own, v, rows->zero);
  if (smoothing == 0) return share;
  Value *nclasses = gradient_count(g, rows->type, &rows->src->shape, 1U << rows->axis);
  Value *each = BINARY(Divide, gradient_scaled(g, v, smoothing), nclasses);
  return BINARY(Add, gradient_scaled(g, share, 1 - smoothing), each);
}

static void expand_loss(Gradient *g, const Node *node, Value **results) {
  const int64_t reduction = node_s64(node, "reduction");
  Rows rows;
  if (!rows_begin(g, node, node->inputs[1], node->inputs[WEIGHTS], &rows)) return;
  const uint32_t all = (1U << rows.src->shape.rank) - 1;
  // Where the label is no class, each is: the loss, which is NaN, follows all weights.
  rows.is_own = BINARY(LogicalOr, rows.is_own, BINARY(NotEqual, rows.counts, rows.counts));
  Value *costs = BINARY(Multiply, rows.weights, gradient_scaled(g, along_classes(g, &rows, OP_LogSoftmax), -1));
  Value *losses = counted(g, &rows, sum_of_classes(g, &rows, smoothed(g, node, &rows, costs)));
  Value *weights = sum_of_classes(g, &rows, gradient_select(g, rows.is_own, rows.weights, rows.zero));
  Value *total = gradient_reduced(g, OP_ReduceSum, counted(g, &rows, weights), all, false);
  results[1] = total;
  if (reduction == LOSS_NONE) results[0] = gradient_in_shape(g, losses, &node->outputs[0]->shape);
  else results[0] = gradient_reduced(g, OP_ReduceSum, losses, all, false);
  if (reduction == LOSS_MEAN) results[0] = BINARY(Divide, results[0], total);
}

// Weights of classes are differentiated by the formula.
static void make_of_total(Gradient *g, const Node *node) {
  if (gradient_is_wanted(g, node->inputs[WEIGHTS]) && !gradient_of_output(g, node, 0))
    gradient_expand(g, node, expand_loss);
}

GRADIENT_WITH(SoftmaxCrossEntropy, .make_of_statistics = make_of_total) {
  const Value *src = node->inputs[0], *weights = node->inputs[WEIGHTS];
  const bool is_weighted = weights || node_attribute(node, "ignore_index")->is_set;
  if (gradient_is_wanted(g, weights)) {
    gradient_expand(g, node, expand_loss);
    return;
  }
  Node *backward = gradient_node(g, OP_SoftmaxCrossEntropyBackward, node);
  if (!backward) return;
  node_set_input(backward, 0, gradient_saved(g, src));
  node_set_input(backward, 1, diff);
  node_set_input(backward, 2, gradient_saved(g, node->inputs[1]));
  if (weights) node_set_input(backward, 4, gradient_saved(g, weights));
  if (is_weighted && node_s64(node, "reduction") == LOSS_MEAN) node_set_input(backward, 3, total_of(g, node));
  gradient_give(g, node, 0, gradient_output(g, backward, 0, src->type, &src->shape));
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
  enum { LABELS = 2, OF_CLASSES = 4 };
  Rows rows;
  if (!rows_begin(g, node, node->inputs[LABELS], node->inputs[OF_CLASSES], &rows)) return;
  Value *share = smoothed(g, node, &rows, rows.weights);
  Value *slope = BINARY(Multiply, along_classes(g, &rows, OP_SoftMax), sum_of_classes(g, &rows, share));
  slope = BINARY(Multiply, diff_of_rows(g, node, rows.type), BINARY(Subtract, slope, share));
  results[0] = counted(g, &rows, slope);
}
