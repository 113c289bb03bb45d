// Lowers softmax and its gradients. The row's maximum is subtracted first, so that no power overflows.
#include "ir/operators/softmax.h"

#include "passes/lower/formulas.h"
#include "passes/lower/lower.h"

#include <math.h>

typedef struct Softmax { // a row's expressions
  Kernel *k;
  ExprId shifted;  // src - max
  ExprId power;    // e^shifted
  ExprId max, sum; // max(src), sum(power)
} Softmax;

static AxisSet summed_axes(const Lowering *l, const Node *node) {
  return lower_axes(l, 1U << softmax_axis(node));
}

// With inf_as_zero, a row of only -inf gives zeros instead of NaNs: its maximum is replaced by 0 and its sum by 1.
static Softmax softmax_begin(Lowering *l, const Node *node, bool inf_as_zero) {
  Kernel *k = l->kernel;
  Softmax s = {.k = k};
  ExprId x = lower_value(l, node->inputs[0]), is_empty = 0;
  s.max = expr_label(k, expr_reduce(k, EXPR_REDUCE_MAXIMUM, x, summed_axes(l, node)), "max");
  if (inf_as_zero) {
    is_empty = EQ(s.max, NUMBER(-INFINITY));
    s.max = SELECT(is_empty, NUMBER(0), s.max);
  }
  s.shifted = expr_label(k, SUB(x, s.max), "shifted");
  s.power = expr_label(k, EXP(s.shifted), "power");
  s.sum = expr_label(k, expr_sum(k, s.power, summed_axes(l, node)), "sum");
  if (inf_as_zero) s.sum = SELECT(is_empty, NUMBER(1), s.sum);
  return s;
}

void lower_SoftMax(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Softmax s = softmax_begin(l, node, node_s64(node, "mode") == SOFTMAX_INF_AS_ZERO);
  ExprId inverse = expr_label(k, DIV(NUMBER(1), s.sum), "share");
  lower_result(l, node, 0, MUL(s.power, inverse), NULL);
  if (node->outputs[1]) lower_result(l, node, 1, ADD(s.max, LOG(s.sum)), NULL);
}

void lower_LogSoftmax(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Softmax s = softmax_begin(l, node, false);
  ExprId log = expr_label(k, LOG(s.sum), "log");
  lower_result(l, node, 0, SUB(s.shifted, log), NULL);
}

void lower_SoftMaxBackward(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  ExprId dy = lower_value(l, node->inputs[0]), y = lower_value(l, node->inputs[1]);
  ExprId sum = expr_label(k, expr_sum(k, MUL(dy, y), summed_axes(l, node)), "sum");
  lower_result(l, node, 0, MUL(y, SUB(dy, sum)), NULL);
}

void lower_LogSoftmaxBackward(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  ExprId dy = lower_value(l, node->inputs[0]), power = EXP(lower_value(l, node->inputs[1]));
  ExprId minus = NEG(expr_sum(k, dy, summed_axes(l, node)));
  lower_result(l, node, 0, FMA(power, expr_label(k, minus, "minus_sum"), dy), NULL);
}
