// Lowers normalisations and their gradients, in the centred form.
//
// x - mean is computed first, and everything else from the difference: the form a * dy + b * x + c would lose as many
// digits as |mean| / deviation has. Factors of a channel or row are multiplied with each other before the data.
#include "ir/operators/norm.h"

#include "passes/lower/formulas.h"
#include "passes/lower/lower.h"

typedef struct Norm {
  Lowering *l;
  Kernel *k;
  AxisSet reduced;              // the kernel's axes that statistics are taken over
  AxisSet rows;                 // the kernel's axes that gamma and beta do not have
  int axis[MAX_RANK];           // by the statistics' axis: the domain's axis
  int parameter_axis[MAX_RANK]; // by gamma's and beta's axis: the domain's axis
  int64_t count;                // elements per statistic: count times the open dims in `monomial`
  Monomial monomial;
} Norm;

static Norm norm_begin(Lowering *l, const Node *node) {
  Norm n = {.l = l, .k = l->kernel, .reduced = lower_axes(l, norm_reduced_axes(node))};
  n.count = norm_reduced_nelems(node);
  n.monomial = norm_reduced_monomial(node);
  return n;
}

// The kernel's axes for the complement of a mask of the domain's axes.
static AxisSet axes_without(const Lowering *l, uint32_t axes) {
  return lower_axes(l, ((1U << l->domain.rank) - 1) & ~axes);
}

// The sum over the reduced axes. `e` must vary over all of them.
static ExprId norm_sum(const Norm *n, ExprId e, const char *label) {
  return expr_label(n->k, expr_sum(n->k, e, n->reduced), label);
}

// a / count
static ExprId scaled(const Norm *n, ExprId a) {
  Kernel *k = n->k;
  return MUL(a, expr_reciprocal(k, n->count, n->monomial));
}

typedef struct Deviation {
  ExprId square; // variance + epsilon
  ExprId root;   // its square root
  ExprId rstd;   // 1 / root
} Deviation;

static Deviation deviation(const Norm *n, const Node *node, ExprId variance) {
  Kernel *k = n->k;
  Deviation d;
  d.square = ADD(variance, NUMBER(node_f32(node, "epsilon")));
  d.root = SQRT(d.square);
  d.rstd = expr_label(k, DIV(NUMBER(1), d.root), "rstd");
  return d;
}

// gamma * rstd. If gamma and the statistics have the same axes, as in batch norms, gamma / root instead, which rounds
// once less. In other norms they seem to have the same in a batch of one sample.
static ExprId scale_factor(const Norm *n, const Deviation *d, ExprId gamma) {
  Kernel *k = n->k;
  if (!gamma) return d->rstd;
  bool is_channels = !n->rows && k->exprs[gamma].axes == k->exprs[d->root].axes;
  ExprId factor = is_channels ? DIV(gamma, d->root) : MUL(gamma, d->rstd);
  return expr_label(k, factor, "factor");
}

static ExprId centered(Kernel *k, ExprId x, ExprId mean) {
  return expr_label(k, SUB(x, mean), "centered");
}

static ExprId operand(const Norm *n, const Value *v, const int *axis) {
  return v ? lower_value_on(n->l, v, axis) : 0;
}

static ExprId times(Kernel *k, ExprId factor, ExprId e) { // without a factor (0): e
  return factor ? MUL(factor, e) : e;
}

// Batch norm

static Norm batch_norm_begin(Lowering *l, const Node *node) {
  Norm n = norm_begin(l, node);
  for (int i = 0; i < MAX_RANK; i++) n.axis[i] = i;
  if (!batch_norm_has_broadcast_statistics(node)) n.axis[0] = norm_channel_axis(node);
  return n;
}

// gamma * (x - mean) * rstd + beta
static void normalise(const Norm *n, const Node *node, ExprId center, Deviation d, ExprId gamma, ExprId beta) {
  Kernel *k = n->k;
  ExprId factor = scale_factor(n, &d, gamma);
  ExprId y = beta ? FMA(factor, center, beta) : MUL(factor, center);
  lower_result(n->l, node, 0, y, NULL);
}

void lower_BatchNormInference(Lowering *l, const Node *node) {
  Norm n = batch_norm_begin(l, node);
  ExprId mean = operand(&n, node->inputs[3], n.axis), variance = operand(&n, node->inputs[4], n.axis);
  normalise(&n, node, centered(n.k, lower_value(l, node->inputs[0]), mean), deviation(&n, node, variance),
            operand(&n, node->inputs[1], n.axis), operand(&n, node->inputs[2], n.axis));
}

typedef struct Statistics {
  ExprId mean, variance, center;
} Statistics;

static ExprId average(const Norm *n, ExprId e, const char *label) {
  Kernel *k = n->k;
  ExprId count = expr_count(k, n->count > 0 ? n->count : 1, n->monomial);
  if (n->monomial) count = MAX(count, NUMBER(1));
  return DIV(norm_sum(n, e, label), count);
}

// Two passes: the mean, then the moments about the mean. The first moment is not exactly 0, because the mean was
// rounded to f32; subtracting it from the centred data and from the variance keeps both accurate even if |mean| is
// large.
static Statistics statistics(const Norm *n, ExprId x) {
  Kernel *k = n->k;
  Statistics s;
  s.mean = expr_label(k, average(n, x, "sum"), "mean");
  ExprId about = centered(k, x, s.mean), rest = average(n, about, "sum_centered");
  ExprId square = average(n, MUL(about, about), "sum_squares");
  s.variance = expr_label(k, SUB(square, MUL(rest, rest)), "variance");
  s.center = SUB(about, rest);
  return s;
}

// Output `slot` is momentum * running + (1 - momentum) * batch.
static void lower_running(const Norm *n, const Node *node, uint32_t slot, const Value *running, ExprId batch) {
  Kernel *k = n->k;
  double momentum = node_f32(node, "momentum");
  ExprId fresh = MUL(NUMBER(1 - momentum), batch);
  ExprId mixed = FMA(NUMBER(momentum), operand(n, running, n->axis), fresh);
  lower_result(n->l, node, slot, mixed, n->axis);
}

void lower_BatchNormForwardTraining(Lowering *l, const Node *node) {
  Norm n = batch_norm_begin(l, node);
  Statistics s = statistics(&n, lower_value(l, node->inputs[0]));
  normalise(&n, node, s.center, deviation(&n, node, s.variance), operand(&n, node->inputs[3], n.axis),
            operand(&n, node->inputs[4], n.axis));
  lower_running(&n, node, 1, node->inputs[1], s.mean);
  lower_running(&n, node, 2, node->inputs[2], s.variance);
  lower_result(l, node, 3, s.mean, n.axis);
  lower_result(l, node, 4, s.variance, n.axis);
}

typedef struct BatchNormGradient {
  ExprId dy, center, factor; // factor: gamma * rstd
  Deviation deviation;
  ExprId sum_dy, sum_product; // sums of dy and of dy * (x - mean), or of dy * (x - mean(src)) with a shift
  ExprId shift; // mean(src) - mean, if diff_src is centred about mean(src). No expression (0): about the given mean
} BatchNormGradient;

// If diff_src is centred about mean(src), the given mean only keeps sums small, so a mean that is not finite is
// replaced by 0.
static ExprId finite_or_zero(Kernel *k, ExprId mean) {
  ExprId zero = NUMBER(0), one = NUMBER(1);
  return SELECT(GT(FMA(mean, zero, one), zero), mean, zero);
}

static BatchNormGradient batch_norm_gradient(const Norm *n, const Node *node, bool is_about_src) {
  Kernel *k = n->k;
  BatchNormGradient b = {0};
  ExprId gamma = operand(n, node->inputs[4], n->axis);
  b.dy = lower_value(n->l, node->inputs[1]);
  const ExprId x = lower_value(n->l, node->inputs[0]), mean = operand(n, node->inputs[2], n->axis);
  b.center = centered(k, x, is_about_src ? finite_or_zero(k, mean) : mean);
  b.deviation = deviation(n, node, operand(n, node->inputs[3], n->axis));
  b.factor = scale_factor(n, &b.deviation, gamma);
  b.sum_dy = norm_sum(n, b.dy, "sum_dy");
  b.sum_product = norm_sum(n, MUL(b.dy, b.center), "sum_dy_centered");
  ExprId about_mean = b.sum_product;
  if (is_about_src) {
    about_mean = norm_sum(n, MUL(b.dy, centered(k, x, mean)), "sum_dy_about_mean");
    b.shift = scaled(n, norm_sum(n, b.center, "sum_centered"));
    b.sum_product = SUB(b.sum_product, MUL(b.shift, b.sum_dy));
  }
  if (node->outputs[1]) lower_result(n->l, node, 1, MUL(about_mean, b.deviation.rstd), n->axis);
  if (node->outputs[2]) lower_result(n->l, node, 2, b.sum_dy, n->axis);
  return b;
}

// factor * (dy - offset - slope * (x - mean)). The offset (the mean of dy) is subtracted first, because the terms
// nearly cancel in small batches.
void lower_BatchNormTrainingBackward(Lowering *l, const Node *node) {
  Norm n = batch_norm_begin(l, node);
  Kernel *k = n.k;
  BatchNormGradient b = batch_norm_gradient(&n, node, node_s64(node, "center") == CENTER_SRC);
  ExprId slope = DIV(scaled(&n, b.sum_product), b.deviation.square);
  ExprId offset = scaled(&n, b.sum_dy);
  if (b.shift) offset = SUB(offset, MUL(slope, b.shift));
  slope = expr_label(k, NEG(slope), "slope");
  ExprId rest = SUB(b.dy, expr_label(k, offset, "offset"));
  lower_result(l, node, 0, MUL(b.factor, FMA(slope, b.center, rest)), NULL);
}

void lower_BatchNormInferenceBackward(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Norm n = batch_norm_begin(l, node);
  BatchNormGradient b = batch_norm_gradient(&n, node, false);
  lower_result(l, node, 0, MUL(b.factor, b.dy), NULL);
}

// Layer norm

static Norm layer_norm_begin(Lowering *l, const Node *node) {
  Norm n = norm_begin(l, node);
  int k = layer_norm_begin_axis(node);
  n.rows = axes_without(l, norm_reduced_axes(node));
  for (int i = 0; i < MAX_RANK; i++) {
    n.axis[i] = i;
    n.parameter_axis[i] = k + i;
  }
  return n;
}

// Statistics have the axes (batch, group), parameters the axis (channel).
static Norm group_norm_begin(Lowering *l, const Node *node) {
  Norm n = norm_begin(l, node);
  int channels = norm_channel_axis(node);
  n.reduced &= ~(1U << l->split_axis);
  n.rows = axes_without(l, 1U << channels);
  n.axis[1] = GROUP_AXIS;
  n.parameter_axis[0] = channels;
  return n;
}

// gamma * (src - mean) * rstd + beta, with the statistics of src, which are outputs 1 and 2.
static void lower_forward(const Norm *n, const Node *node) {
  Statistics s = statistics(n, lower_value(n->l, node->inputs[0]));
  normalise(n, node, s.center, deviation(n, node, s.variance), operand(n, node->inputs[1], n->parameter_axis),
            operand(n, node->inputs[2], n->parameter_axis));
  lower_result(n->l, node, 1, s.mean, n->axis);
  lower_result(n->l, node, 2, s.variance, n->axis);
}

// rstd * g + slope * (x - mean) + offset, with g = gamma * dy. All sums, for diff_src, diff_gamma and diff_beta, are of
// dy or of the product dy * (x - mean), which is computed once.
static void lower_backward(const Norm *n, const Node *node) {
  Kernel *k = n->k;
  ExprId gamma = operand(n, node->inputs[4], n->parameter_axis), dy = lower_value(n->l, node->inputs[1]);
  ExprId center = centered(k, lower_value(n->l, node->inputs[0]), operand(n, node->inputs[2], n->axis));
  Deviation d = deviation(n, node, operand(n, node->inputs[3], n->axis));
  ExprId g = expr_label(k, times(k, gamma, dy), "g");
  ExprId sum_g = norm_sum(n, g, "sum_g");
  ExprId product = expr_label(k, MUL(dy, center), "product");
  ExprId sum_product = norm_sum(n, times(k, gamma, product), "sum_g_centered");
  ExprId ratio = DIV(scaled(n, sum_product), d.square);
  ExprId slope = expr_label(k, NEG(MUL(d.rstd, ratio)), "slope");
  ExprId offset = expr_label(k, NEG(MUL(d.rstd, scaled(n, sum_g))), "offset");
  lower_result(n->l, node, 0, FMA(d.rstd, g, FMA(slope, center, offset)), NULL);
  lower_result(n->l, node, 1, expr_sum(k, MUL(d.rstd, product), n->rows), n->parameter_axis);
  lower_result(n->l, node, 2, expr_sum(k, dy, n->rows), n->parameter_axis);
}

#define NORM(name, begin, lower)                                                                                       \
  void lower_##name(Lowering *l, const Node *node) {                                                                   \
    const Norm n = begin(l, node);                                                                                     \
    lower(&n, node);                                                                                                   \
  }

NORM(LayerNorm, layer_norm_begin, lower_forward)
NORM(LayerNormBackward, layer_norm_begin, lower_backward)
NORM(GroupNorm, group_norm_begin, lower_forward)
NORM(GroupNormBackward, group_norm_begin, lower_backward)
NORM(InstanceNorm, group_norm_begin, lower_forward) // a group norm with one channel in each group
NORM(InstanceNormBackward, group_norm_begin, lower_backward)

// RMSNorm

// 1 / sqrt(mean(x^2) + epsilon)
static Deviation rms_deviation(const Norm *n, const Node *node, ExprId x) {
  Kernel *k = n->k;
  return deviation(n, node, expr_label(k, average(n, MUL(x, x), "sum_squares"), "mean_square"));
}

void lower_RMSNorm(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Norm n = norm_begin(l, node);
  ExprId x = lower_value(l, node->inputs[0]), gamma = operand(&n, node->inputs[1], NULL);
  Deviation d = rms_deviation(&n, node, x);
  lower_result(l, node, 0, times(k, gamma, MUL(x, d.rstd)), NULL);
}

// The axes along which the value is broadcast.
static AxisSet broadcast_axes(const Lowering *l, const Value *v) {
  int missing = l->domain.rank - v->shape.rank;
  AxisSet axes = 0;
  for (int i = 0; i < l->domain.rank; i++)
    if (i < missing || extent_value(v->shape.extent[i - missing]) == 1) axes |= 1U << i;
  return lower_axes(l, axes);
}

// rstd * g + slope * x, with g = gamma * dy. The sums for diff_src and for diff_gamma are both of the product dy * x.
void lower_RMSNormBackward(Lowering *l, const Node *node) {
  Norm n = norm_begin(l, node);
  Kernel *k = n.k;
  ExprId x = lower_value(l, node->inputs[0]), dy = lower_value(l, node->inputs[1]);
  ExprId gamma = operand(&n, node->inputs[2], NULL);
  Deviation d = rms_deviation(&n, node, x);
  ExprId g = expr_label(k, times(k, gamma, dy), "g"), product = expr_label(k, MUL(dy, x), "product");
  ExprId sum = norm_sum(&n, times(k, gamma, product), "sum_g_x");
  ExprId ratio = DIV(scaled(&n, sum), d.square);
  ExprId slope = expr_label(k, NEG(MUL(d.rstd, ratio)), "slope");
  lower_result(l, node, 0, FMA(d.rstd, g, MUL(slope, x)), NULL);
  if (!node->outputs[1]) return;
  lower_result(l, node, 1, expr_sum(k, MUL(d.rstd, product), broadcast_axes(l, node->inputs[2])), NULL);
}
