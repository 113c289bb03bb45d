// Gradients of norms' gradients.
//
// With r = 1 / sqrt(variance + epsilon), x = (src - mean) * r and v = gamma * diff_dst, diff_src is N(v) = r * (v -
// mean(v) - x * mean(v * x)), without mean(v) in an RMS norm, and r * v with frozen statistics. N is linear and
// symmetric. So with the gradients u, p and q of diff_src, diff_gamma and diff_beta:
//
//   by diff_dst  gamma * N(u) + p * x + q
//   by gamma     sum(diff_dst * N(u))
//   by x         t = p * diff_dst - r * (u * mean(v * x) + v * mean(u * x)); with frozen statistics p * diff_dst
//   by src       r * t
//   by mean      -sum(r * t)
//   by variance  -r^2 / 2 * sum(v * N(u) + t * x)
//
// Where the statistics are src's own, those of the forward node or of an RMS norm, what flows through them is included:
//
//   by src       N(t) - r * x * mean(v * N(u))
#include "ir/operators/norm.h"

#include "passes/gradient/gradient_state.h"
#include "passes/gradient/norm.h"

typedef struct Twice {
  const Node *node;
  bool is_frozen, is_own;
  Value *src, *diff_dst, *mean, *variance, *gamma; // in f32 or f64; NULL: there is none
  Value *u, *p, *q;                                // NULL: no gradient
} Twice;

static Value *times(Gradient *g, Value *a, Value *b) {
  return gradient_binary(g, OP_Multiply, a, b);
}

static Value *over(Gradient *g, Value *a, Value *b) {
  return gradient_binary(g, OP_Divide, a, b);
}

// The sum of those that are not NULL.
static Value *sum_of(Gradient *g, Value *a, Value *b) {
  return a && b ? gradient_binary(g, OP_Add, a, b) : a ? a : b;
}

static Value *wide_input(Gradient *g, const Node *node, const char *name) {
  const Value *v = norm_input(node, name);
  return v ? gradient_cast(g, gradient_saved(g, v), norm_type_of_statistics(node->inputs[0])) : NULL;
}

static Value *wide_diff(Gradient *g, const Node *node, uint32_t slot) {
  Value *diff = slot < node->noutputs ? gradient_of_output(g, node, slot) : NULL;
  return diff ? gradient_cast(g, diff, norm_type_of_statistics(node->inputs[0])) : NULL;
}

// Whether a forward node has computed the statistics from src.
static bool has_own_statistics(const Node *node) {
  const Value *mean = norm_input(node, "mean"), *variance = norm_input(node, "variance");
  const Node *from = mean ? mean->producer : NULL;
  if (!from || !variance || variance->producer != from || from->inputs[0] != node->inputs[0]) return false;
  const uint32_t slot = from->op->id == OP_BatchNormForwardTraining ? 3 : 1;
  return from->op->norm_scope == node->op->norm_scope && mean->output_slot == slot &&
         variance->output_slot == slot + 1 && norm_reduced_axes(from) == norm_reduced_axes(node) &&
         (from->op->norm_scope != SCOPE_GROUP || extent_equals(norm_ngroups(from), norm_ngroups(node)));
}

static Twice twice_begin(Gradient *g, const Node *node, bool is_frozen) {
  const bool is_centered = norm_input(node, "mean") != NULL;
  return (Twice){.node = node,
                 .is_frozen = is_frozen,
                 .is_own = !is_frozen && (!is_centered || has_own_statistics(node)),
                 .src = wide_input(g, node, "src"),
                 .diff_dst = wide_input(g, node, "diff_dst"),
                 .mean = wide_input(g, node, "mean"),
                 .variance = wide_input(g, node, "variance"),
                 .gamma = wide_input(g, node, "gamma"),
                 .u = wide_diff(g, node, 0),
                 .p = wide_diff(g, node, 1),
                 .q = wide_diff(g, node, 2)};
}

// A norm's gradient, for v in place of diff_dst.
static Node *again(Gradient *g, const Twice *t, OperatorId id, Value *v, Value *gamma) {
  Node *node = t->src && v ? gradient_node(g, id, t->node) : NULL;
  if (!node) return NULL;
  if (operator_has_attribute(node->op, "use_affine")) node_attribute_slot(node, "use_affine")->boolean = gamma != NULL;
  norm_set_input(node, "src", t->src);
  norm_set_input(node, "diff_dst", v);
  if (t->mean) norm_set_input(node, "mean", t->mean);
  if (t->mean) norm_set_input(node, "variance", t->variance);
  if (gamma) norm_set_input(node, "gamma", gamma);
  gradient_output(g, node, 0, t->src->type, &t->src->shape);
  return node;
}

static Value *result_of(Node *node, uint32_t slot) {
  return node ? node->outputs[slot] : NULL;
}

// N(v)
static Value *through_norm(Gradient *g, const Twice *t, Value *v) {
  Value *ones = NULL;
  if (t->src && t->node->op->id == OP_RMSNormBackward)
    ones = gradient_filled(g, t->src->type, &(Shape){.rank = 1, .extent = {EXTENT(1)}}, 1);
  return result_of(again(g, t, t->node->op->id, v, ones), 0);
}

// Adds the results diff_gamma and diff_beta to that of channels.
static Node *with_parameters(Gradient *g, Node *node) {
  if (!node) return NULL;
  const Shape *channels = &norm_input(node, "mean")->shape;
  for (uint32_t slot = 1; slot <= 2; slot++) gradient_output(g, node, slot, node->inputs[0]->type, channels);
  return node;
}

// gamma * (v - mean) * r + beta, with numbers of each channel. NULL: gamma is 1, the others are 0.
static Value *normalised(Gradient *g, const Twice *t, Value *v, Value *mean, Value *gamma, Value *beta) {
  Node *node = t->mean && v ? gradient_node(g, OP_BatchNormInference, t->node) : NULL;
  Value *zero = node ? gradient_filled(g, t->mean->type, &t->mean->shape, 0) : NULL;
  if (!zero) return NULL;
  norm_set_input(node, "src", v);
  norm_set_input(node, "gamma", gamma ? gamma : gradient_filled(g, zero->type, &zero->shape, 1));
  norm_set_input(node, "beta", beta ? beta : zero);
  norm_set_input(node, "mean", mean ? mean : zero);
  norm_set_input(node, "variance", t->variance);
  return gradient_output(g, node, 0, t->src->type, &t->src->shape);
}

// Zeros where diff is NULL.
static void give(Gradient *g, const Twice *t, const char *name, Value *diff) {
  const Value *v = norm_input(t->node, name);
  if (!gradient_is_wanted(g, v)) return;
  if (!diff) diff = gradient_filled(g, v->type, &v->shape, 0);
  if (!gradient_broadcasts(&v->shape, &diff->shape)) diff = gradient_in_shape(g, diff, &v->shape);
  gradient_give(g, t->node, norm_input_slot(t->node, name), diff);
}

// By src, and by statistics that are not src's own.
static void give_by_data(Gradient *g, const Twice *t, Value *by_src, Value *by_mean, Value *by_variance) {
  give(g, t, "src", by_src);
  if (t->is_own && t->mean) g->given |= UINT64_C(1) << norm_input_slot(t->node, "mean");
  if (t->is_own && t->mean) g->given |= UINT64_C(1) << norm_input_slot(t->node, "variance");
  if (t->is_own) return;
  give(g, t, "mean", by_mean);
  give(g, t, "variance", by_variance);
}

static bool wants_statistics(const Gradient *g, const Twice *t) {
  return gradient_is_wanted(g, norm_input(t->node, "mean")) || gradient_is_wanted(g, norm_input(t->node, "variance"));
}

// N(v) of a batch norm whose statistics are no vectors, by its formula: the operator has other names there.
static Value *through_batch_norm(Gradient *g, const Twice *t, const NormView *view, Value *v, Value *x,
                                 Value *deviation) {
  if (!v || t->is_frozen) return v ? over(g, v, deviation) : NULL;
  Value *centered = gradient_binary(g, OP_Subtract, v, norm_mean(g, view, v));
  Value *part = times(g, x, norm_mean(g, view, times(g, v, x)));
  return over(g, gradient_binary(g, OP_Subtract, centered, part), deviation);
}

// In the view. An operator whose center is src has x about src's own mean in N, called `own`.
static void make_in_view(Gradient *g, const Twice *t) {
  NormView view;
  if (!norm_view(g, t->node, &view)) return;
  const Shape *whole = &view.src, *parameter = &view.parameter, *statistic = &view.statistic;
  const bool is_about_src = operator_has_attribute(t->node->op, "center") && node_s64(t->node, "center") == CENTER_SRC;
  Value *src = gradient_in_shape(g, t->src, whole), *diff_dst = gradient_in_shape(g, t->diff_dst, whole);
  Value *gamma = gradient_in_shape(g, t->gamma, parameter), *u = gradient_in_shape(g, t->u, whole);
  Value *p = gradient_in_shape(g, t->p, parameter), *q = gradient_in_shape(g, t->q, parameter);
  Value *variance = t->variance ? gradient_in_shape(g, t->variance, statistic)
                                : norm_mean(g, &view, gradient_unary(g, OP_Square, src));
  Value *shifted = norm_shifted_variance(g, t->node, variance), *deviation = gradient_unary(g, OP_Sqrt, shifted);
  Value *mean = gradient_in_shape(g, t->mean, statistic);
  Value *x = over(g, mean ? gradient_binary(g, OP_Subtract, src, mean) : src, deviation), *own = x;
  if (is_about_src) own = over(g, gradient_binary(g, OP_Subtract, src, norm_mean(g, &view, src)), deviation);
  const bool is_batch_norm = t->node->op->norm_scope == SCOPE_CHANNEL;
  Value *n = is_batch_norm ? through_batch_norm(g, t, &view, u, own, deviation)
                           : gradient_in_shape(g, through_norm(g, t, t->u), whole);
  Value *v = gamma ? times(g, diff_dst, gamma) : diff_dst;
  Value *by_diff = sum_of(g, n && gamma ? times(g, n, gamma) : n, p ? times(g, p, x) : NULL);
  if (q && !by_diff) q = times(g, q, gradient_filled(g, q->type, whole, 1));
  give(g, t, "diff_dst", sum_of(g, by_diff, q));
  Value *by_gamma = n ? times(g, diff_dst, n) : NULL;
  if (gamma && !gradient_broadcasts(&norm_input(t->node, "gamma")->shape, parameter))
    by_gamma = gradient_summed(g, by_gamma, parameter);
  give(g, t, "gamma", by_gamma);

  Value *by_p = p ? times(g, p, diff_dst) : NULL, *by_n = NULL, *product = n ? times(g, v, n) : NULL;
  if (n && !t->is_frozen) {
    by_n = sum_of(g, times(g, u, norm_mean(g, &view, times(g, v, own))),
                  times(g, v, norm_mean(g, &view, times(g, u, own))));
    by_n = over(g, by_n, deviation);
    if (is_about_src) by_n = gradient_binary(g, OP_Subtract, by_n, norm_mean(g, &view, by_n));
    by_n = gradient_scaled(g, by_n, -1);
  }
  Value *by_x = sum_of(g, by_p, by_n), *by_src;
  if (t->is_own) {
    by_src = through_norm(g, t, gradient_in_shape(g, by_x, &t->src->shape));
    by_src = gradient_in_shape(g, by_src, whole);
    if (product) product = over(g, times(g, x, norm_mean(g, &view, product)), deviation);
    if (product) by_src = gradient_binary(g, OP_Subtract, by_src, product);
    give_by_data(g, t, by_src, NULL, NULL);
    return;
  }
  by_src = over(g, by_x, deviation);
  if (!wants_statistics(g, t)) {
    give_by_data(g, t, by_src, NULL, NULL);
    return;
  }
  Value *about_mean = is_about_src ? over(g, by_p, deviation) : by_src;
  product = sum_of(g, product, sum_of(g, by_p ? times(g, by_p, x) : NULL, by_n ? times(g, by_n, own) : NULL));
  give_by_data(
      g, t, by_src, gradient_scaled(g, gradient_reduced(g, OP_ReduceSum, about_mean, view.reduced, true), -1),
      gradient_scaled(g, over(g, gradient_reduced(g, OP_ReduceSum, product, view.reduced, true), shifted), -0.5));
}

// a * mean(b * c), the mean of each channel
static Value *times_mean(Gradient *g, uint32_t reduced, Value *a, Value *b, Value *c) {
  return times(g, a, gradient_reduced(g, OP_ReduceMean, c ? times(g, b, c) : b, reduced, true));
}

// Of batch norms, by operators that apply the numbers of a channel themselves. Sums keep the axes of their operands, so
// that all of it is one kernel.
static void make_of_channels(Gradient *g, const Twice *t) {
  const Node *node = t->node;
  const uint32_t all = (1U << node->inputs[0]->shape.rank) - 1, reduced = all & ~(1U << norm_channel_axis(node));
  const bool wants_all = t->is_own || wants_statistics(g, t);
  Value *by_diff = result_of(with_parameters(g, again(g, t, node->op->id, t->u, t->gamma)), 0), *n = by_diff;
  Value *p = t->p ? t->p : gradient_filled(g, t->mean->type, &t->mean->shape, 0);
  give(g, t, "diff_dst", t->p || t->q ? sum_of(g, by_diff, normalised(g, t, t->src, t->mean, p, t->q)) : by_diff);
  if (t->gamma && (wants_all || gradient_is_wanted(g, norm_input(node, "gamma")))) n = through_norm(g, t, t->u);
  Value *product = n ? times(g, t->diff_dst, n) : NULL, *by_gamma = NULL;
  if (n) by_gamma = gradient_reduced(g, OP_ReduceSum, product, reduced, false);
  give(g, t, "gamma", by_gamma);
  if (!wants_all && !gradient_is_wanted(g, node->inputs[0])) return;

  // r * t
  Value *x = normalised(g, t, t->src, t->mean, NULL, NULL);
  Value *by_src = t->p ? normalised(g, t, t->diff_dst, NULL, t->p, NULL) : NULL;
  if (t->u && !t->is_frozen) {
    Value *both = sum_of(g, times_mean(g, reduced, t->u, t->diff_dst, x), times_mean(g, reduced, t->diff_dst, t->u, x));
    both = normalised(g, t, normalised(g, t, both, NULL, t->gamma, NULL), NULL, NULL, NULL);
    by_src = by_src ? gradient_binary(g, OP_Subtract, by_src, both) : gradient_scaled(g, both, -1);
  }
  Value *deviation = wants_all ? gradient_unary(g, OP_Sqrt, norm_shifted_variance(g, node, t->variance)) : NULL;
  if (t->is_own) {
    by_src = result_of(with_parameters(g, again(g, t, OP_BatchNormTrainingBackward, by_src, deviation)), 0);
    if (product) product = normalised(g, t, times_mean(g, reduced, x, product, NULL), NULL, t->gamma, NULL);
    if (product) by_src = gradient_binary(g, OP_Subtract, by_src, product);
  }
  Node *sums =
      !t->is_own && wants_all ? with_parameters(g, again(g, t, OP_BatchNormInferenceBackward, by_src, NULL)) : NULL;
  Value *by_variance = result_of(sums, 1);
  if (by_gamma && wants_all && !t->is_own) {
    Value *part = t->gamma ? times(g, t->gamma, by_gamma) : by_gamma;
    by_variance = sum_of(g, over(g, part, deviation), by_variance);
  }
  give_by_data(g, t, by_src, gradient_scaled(g, result_of(sums, 2), -1),
               gradient_scaled(g, by_variance ? over(g, by_variance, deviation) : NULL, -0.5));
}

static void make_twice(Gradient *g, const Node *node, bool is_frozen) {
  const Twice t = twice_begin(g, node, is_frozen);
  const bool has_channels = node->op->norm_scope == SCOPE_CHANNEL && !batch_norm_has_broadcast_statistics(node);
  if (!t.diff_dst) return;
  if (has_channels && (is_frozen || node_s64(node, "center") == CENTER_MEAN)) make_of_channels(g, &t);
  else make_in_view(g, &t);
}

#define ON_REQUEST                                                                                                     \
  { .why = "a gradient on request: the forward graph computes it", .is_setting = true }
#define OF_STATISTICS                                                                                                  \
  {"mean", ON_REQUEST}, {                                                                                              \
    "variance", ON_REQUEST                                                                                             \
  }
#define OF_BACKWARD(name, is_frozen, ...)                                                                              \
  GRADIENT_EXCEPT(name##Backward, __VA_ARGS__) {                                                                       \
    (void)diff;                                                                                                        \
    make_twice(g, node, is_frozen);                                                                                    \
  }
#define UNUSED_BETA                                                                                                    \
  { "beta", ZERO("the results do not depend on it") }

OF_BACKWARD(BatchNormTraining, false, OF_STATISTICS)
OF_BACKWARD(BatchNormInference, true, {NULL})
OF_BACKWARD(GroupNorm, false, OF_STATISTICS, UNUSED_BETA)
OF_BACKWARD(InstanceNorm, false, OF_STATISTICS, UNUSED_BETA)
OF_BACKWARD(LayerNorm, false, OF_STATISTICS, UNUSED_BETA)
OF_BACKWARD(RMSNorm, false, {NULL})
