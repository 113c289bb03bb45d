// Lowers losses and their gradients. As in softmax.c, the row's maximum is subtracted first.
#include "ir/operators/loss.h"

#include "passes/lower/formulas.h"
#include "passes/lower/lower.h"

#include <math.h>

typedef struct CrossEntropy { // expressions of a row, which has one element for each class
  Kernel *k;
  AxisSet classes, rows;
  int64_t reduction;
  double smoothing;
  bool has_weights;
  int on[MAX_RANK];  // by the label's axis: the domain's axis
  ExprId shifted;    // src - max
  ExprId power, sum; // e^shifted, and its sum
  ExprId weight;     // the class's weight
  ExprId is_own;     // a mask: the class is the label
  ExprId is_used;    // 1, or 0 where the label is ignored. No expression (0): no label is ignored
  ExprId is_wrong;   // a mask: the label is no class
  ExprId own_weight; // the weight of the label's class
  ExprId nclasses;
} CrossEntropy;

static ExprId over_classes(const CrossEntropy *c, ExprId e) {
  return expr_sum(c->k, e, c->classes);
}

// The element at the label's class.
static ExprId picked(const CrossEntropy *c, ExprId e) {
  Kernel *k = c->k;
  return over_classes(c, SELECT(c->is_own, e, NUMBER(0)));
}

static CrossEntropy cross_entropy_begin(Lowering *l, const Node *node, const Value *labels, const Value *weights) {
  Kernel *k = l->kernel;
  const int axis = loss_class_axis(node), rank = node->inputs[0]->shape.rank;
  const AttributeValue *ignored = node_attribute(node, "ignore_index");
  CrossEntropy c = {.k = k,
                    .classes = lower_axes(l, 1U << axis),
                    .rows = lower_axes(l, ((1U << rank) - 1) & ~(1U << axis)),
                    .reduction = node_s64(node, "reduction"),
                    .smoothing = node_f32(node, "label_smoothing"),
                    .has_weights = weights};
  for (int i = 0; i + 1 < rank; i++) c.on[i] = i + (i >= axis);
  const ExprId x = lower_value(l, node->inputs[0]), label = lower_value_on(l, labels, c.on);
  const ExprId zero = NUMBER(0), one = NUMBER(1);
  c.nclasses = expr_count(k, axes_nelems(k, c.classes), axes_monomial(k, c.classes));
  c.shifted = expr_label(k, SUB(x, expr_label(k, expr_reduce(k, EXPR_REDUCE_MAXIMUM, x, c.classes), "max")), "shifted");
  c.power = expr_label(k, EXP(c.shifted), "power");
  c.sum = expr_label(k, over_classes(&c, c.power), "sum");
  c.weight = weights ? lower_value_on(l, weights, &axis) : one;
  c.is_own = EQ(lower_index(l, axis), label);
  const ExprId is_low = GT(zero, label), is_high = GE(label, c.nclasses);
  c.is_wrong = SELECT(is_low, one, SELECT(is_high, one, zero));
  c.own_weight = weights ? expr_label(k, picked(&c, c.weight), "weight") : one;
  if (!ignored->is_set) return c;
  const ExprId is_ignored = EQ(label, NUMBER(ignored->s64));
  c.is_used = SELECT(is_ignored, zero, one);
  return c;
}

// `e` where the label is used, 0 where it is ignored; NaN where it is neither a class nor ignored.
static ExprId where_used(const CrossEntropy *c, ExprId e) {
  Kernel *k = c->k;
  const ExprId zero = NUMBER(0);
  e = SELECT(GT(c->is_wrong, zero), NUMBER(NAN), e);
  return c->is_used ? SELECT(GT(c->is_used, zero), e, zero) : e;
}

static ExprId number_of_labels(const CrossEntropy *c) {
  return expr_count(c->k, axes_nelems(c->k, c->rows), axes_monomial(c->k, c->rows));
}

// The sum of the weights of the labels that are used.
static ExprId total_of(const CrossEntropy *c) {
  return expr_sum(c->k, where_used(c, c->own_weight), c->rows);
}

// The number that a mean divides by. Without weights and ignored labels it is the number of labels: an invalid label
// makes the losses NaN already.
static ExprId divisor_of(const CrossEntropy *c) {
  return c->has_weights || c->is_used ? total_of(c) : number_of_labels(c);
}

void lower_SoftmaxCrossEntropy(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const CrossEntropy c = cross_entropy_begin(l, node, node->inputs[1], node->inputs[2]);
  const ExprId log = expr_label(k, LOG(c.sum), "log");
  ExprId loss = MUL(c.own_weight, SUB(log, picked(&c, c.shifted)));
  if (c.smoothing != 0) {
    const ExprId all_weights = c.has_weights ? over_classes(&c, c.weight) : c.nclasses;
    const ExprId all = SUB(MUL(all_weights, log), over_classes(&c, MUL(c.weight, c.shifted)));
    const ExprId spread = DIV(NUMBER(c.smoothing), c.nclasses);
    loss = ADD(MUL(NUMBER(1 - c.smoothing), loss), MUL(spread, all));
  }
  loss = where_used(&c, loss);
  if (c.reduction != LOSS_NONE) loss = expr_sum(k, loss, c.rows);
  if (c.reduction == LOSS_MEAN) loss = DIV(loss, divisor_of(&c));
  lower_result(l, node, 0, loss, c.on);
  if (node->outputs[1]) lower_result(l, node, 1, total_of(&c), NULL);
}

void lower_SoftmaxCrossEntropyBackward(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const CrossEntropy c = cross_entropy_begin(l, node, node->inputs[2], node->inputs[4]);
  const ExprId spread = DIV(NUMBER(c.smoothing), c.nclasses);
  const ExprId unsmoothed = NUMBER(1 - c.smoothing), zero = NUMBER(0);
  ExprId own = SELECT(c.is_own, MUL(unsmoothed, c.weight), zero), all = MUL(unsmoothed, c.own_weight);
  if (c.smoothing != 0) {
    const ExprId all_weights = c.has_weights ? over_classes(&c, c.weight) : c.nclasses;
    own = ADD(own, MUL(spread, c.weight));
    all = ADD(all, MUL(spread, all_weights));
  }
  const ExprId share = expr_label(k, DIV(all, c.sum), "share");
  ExprId dy = lower_value_on(l, node->inputs[1], c.on);
  if (c.reduction == LOSS_MEAN) dy = DIV(dy, node->inputs[3] ? lower_value(l, node->inputs[3]) : number_of_labels(&c));
  const ExprId slope = SUB(MUL(c.power, share), own);
  lower_result(l, node, 0, where_used(&c, MUL(dy, slope)), NULL);
}

// Applies the node's reduction (none, sum or mean) to the losses.
static void lower_loss(Lowering *l, const Node *node, ExprId loss) {
  Kernel *k = l->kernel;
  const int64_t reduction = node_s64(node, "reduction");
  const AxisSet all = lower_axes(l, (1U << l->domain.rank) - 1);
  if (reduction != LOSS_NONE) loss = expr_sum(k, loss, all);
  if (reduction == LOSS_MEAN) loss = DIV(loss, expr_count(k, axes_nelems(k, all), axes_monomial(k, all)));
  lower_result(l, node, 0, loss, NULL);
}

void lower_MeanSquaredError(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const ExprId error = SUB(lower_value(l, node->inputs[0]), lower_value(l, node->inputs[1]));
  lower_loss(l, node, MUL(error, error));
}

void lower_BinaryCrossEntropy(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const ExprId x = lower_value(l, node->inputs[0]), target = lower_value(l, node->inputs[1]);
  const ExprId log = LOG1P(EXP(NEG(ABS(x))));
  const ExprId part = SUB(MAXIMUM(x, NUMBER(0)), MUL(x, target));
  lower_loss(l, node, ADD(part, log));
}
