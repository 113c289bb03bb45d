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
  NormView view;
  bool is_frozen, is_own;
  bool is_about_src;            // N has x about src's own mean
  bool has_channels;            // a batch norm whose statistics are vectors, as BatchNormInference takes them
  Value *src, *mean, *variance; // in f32 or f64, as all others; NULL: there is none
  Value *diff_dst, *gamma, *u;  // in the view; NULL: gamma is 1, u is 0
  Value *p, *q;                 // NULL: 0
  Value *deviation;             // in the view; NULL: has_channels
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

static Value *without(Gradient *g, Value *a, Value *b) {
  return a && b ? gradient_binary(g, OP_Subtract, a, b) : a ? a : gradient_scaled(g, b, -1);
}

static Value *wide_input(Gradient *g, const Node *node, const char *name) {
  const Value *v = norm_input(node, name);
  return v ? gradient_cast(g, gradient_saved(g, v), norm_type_of_statistics(node->inputs[0])) : NULL;
}

static Value *wide_diff(Gradient *g, const Node *node, uint32_t slot) {
  Value *diff = slot < node->noutputs ? gradient_of_output(g, node, slot) : NULL;
  return gradient_cast(g, diff, norm_type_of_statistics(node->inputs[0]));
}

// Whether a forward node has computed the statistics from src.
static bool has_own_statistics(const Node *node) {
  const Value *mean = norm_input(node, "mean"), *variance = norm_input(node, "variance");
  const Node *from = mean ? mean->producer : NULL;
  if (!from || !variance || variance->producer != from || from->inputs[0] != node->inputs[0]) return false;
  const uint32_t slot = norm_statistics_slot(from);
  return from->op->norm_scope == node->op->norm_scope && mean->output_slot == slot &&
         variance->output_slot == slot + 1 && norm_reduced_axes(from) == norm_reduced_axes(node) &&
         (from->op->norm_scope != SCOPE_GROUP || extent_equals(norm_ngroups(from), norm_ngroups(node)));
}

static Value *in_view(Gradient *g, const Twice *t, Value *v) {
  return gradient_in_shape(g, v, &t->view.src);
}

// variance + epsilon, in the view
static Value *shifted_variance(Gradient *g, const Twice *t) {
  Value *variance = t->variance ? gradient_in_shape(g, t->variance, &t->view.statistic)
                                : norm_mean(g, &t->view, gradient_unary(g, OP_Square, in_view(g, t, t->src)));
  return norm_shifted_variance(g, t->node, variance);
}

static bool twice_begin(Gradient *g, const Node *node, bool is_frozen, Twice *t) {
  const bool is_about_src = operator_has_attribute(node->op, "center") && node_s64(node, "center") == CENTER_SRC;
  *t = (Twice){.node = node, .is_frozen = is_frozen, .is_about_src = is_about_src && !is_frozen};
  if (!norm_view(g, node, &t->view)) return false;
  t->is_own = !is_frozen && (!norm_input(node, "mean") || has_own_statistics(node));
  t->has_channels =
      node->op->norm_scope == SCOPE_CHANNEL && !batch_norm_has_broadcast_statistics(node) && !t->is_about_src;
  t->src = wide_input(g, node, "src");
  t->mean = wide_input(g, node, "mean");
  t->variance = wide_input(g, node, "variance");
  t->gamma = wide_input(g, node, "gamma");
  t->diff_dst = in_view(g, t, wide_input(g, node, "diff_dst"));
  t->u = in_view(g, t, wide_diff(g, node, 0));
  t->p = wide_diff(g, node, 1);
  t->q = wide_diff(g, node, 2);
  if (!t->has_channels) t->deviation = gradient_unary(g, OP_Sqrt, shifted_variance(g, t));
  return !g->failed;
}

// gamma * (v - mean) * r + beta, of channels. NULL: gamma is 1, the others are 0.
static Value *of_channels(Gradient *g, const Twice *t, Value *v, Value *mean, Value *gamma, Value *beta) {
  Node *node = v ? gradient_node(g, OP_BatchNormInference, t->node) : NULL;
  Value *zero = node ? gradient_filled(g, t->mean->type, &t->mean->shape, 0) : NULL;
  if (!zero) return NULL;
  norm_set_input(node, "src", v);
  norm_set_input(node, "gamma", gamma ? gamma : gradient_filled(g, zero->type, &zero->shape, 1));
  norm_set_input(node, "beta", beta ? beta : zero);
  norm_set_input(node, "mean", mean ? mean : zero);
  norm_set_input(node, "variance", t->variance);
  return gradient_output(g, node, 0, t->src->type, &t->src->shape);
}

// gamma * v * r; gamma: of channels, NULL: 1. Vectors of channels stay operands of norms, so that all of it can be one
// kernel with the norm that computes them.
static Value *by_deviation(Gradient *g, const Twice *t, Value *v, Value *gamma) {
  return t->has_channels ? of_channels(g, t, v, NULL, gamma, NULL) : over(g, v, t->deviation);
}

// (v - mean) * r
static Value *normalised(Gradient *g, const Twice *t, Value *mean) {
  if (t->has_channels) return of_channels(g, t, t->src, t->mean, NULL, NULL);
  Value *src = in_view(g, t, t->src);
  return over(g, mean ? gradient_binary(g, OP_Subtract, src, mean) : src, t->deviation);
}

// N(gamma * v), with x of N; gamma: of channels, NULL: 1. A batch norm whose statistics are no vectors has other names
// for them.
static Value *through_norm(Gradient *g, const Twice *t, Value *v, Value *gamma, Value *x) {
  const OperatorId id = t->node->op->id;
  if (!v || t->is_frozen) return by_deviation(g, t, v, gamma);
  if (t->node->op->norm_scope == SCOPE_CHANNEL && !t->has_channels) {
    Value *part = times(g, x, norm_mean(g, &t->view, times(g, v, x)));
    return over(g, without(g, without(g, v, norm_mean(g, &t->view, v)), part), t->deviation);
  }
  Node *node = t->src ? gradient_node(g, id, t->node) : NULL;
  if (!node) return NULL;
  if (operator_has_attribute(node->op, "use_affine")) node_attribute_slot(node, "use_affine")->boolean = false;
  norm_set_input(node, "src", t->src);
  norm_set_input(node, "diff_dst", gradient_in_shape(g, v, &t->src->shape));
  if (t->mean) norm_set_input(node, "mean", t->mean);
  if (t->mean) norm_set_input(node, "variance", t->variance);
  if (id == OP_RMSNormBackward) gamma = gradient_filled(g, t->src->type, &(Shape){.rank = 1, .extent = {EXTENT(1)}}, 1);
  if (gamma) norm_set_input(node, "gamma", gamma);
  for (uint32_t slot = 1; t->has_channels && gamma && slot <= 2; slot++) // without them gamma has no effect
    gradient_output(g, node, slot, t->src->type, &gamma->shape);
  return in_view(g, t, gradient_output(g, node, 0, t->src->type, &t->src->shape));
}

// Zeros where diff is NULL.
static void give(Gradient *g, const Twice *t, const char *name, Value *diff) {
  const Value *v = norm_input(t->node, name);
  if (!gradient_is_wanted(g, v)) return;
  if (!diff) diff = gradient_filled(g, v->type, &v->shape, 0);
  if (!gradient_broadcasts(&v->shape, &diff->shape)) diff = gradient_in_shape(g, diff, &v->shape);
  gradient_give(g, t->node, norm_input_slot(t->node, name), diff);
}

// One of the norm's parameters, or its gradient, as it broadcasts to the view
static Value *parameter(Gradient *g, const Twice *t, Value *v) {
  const Shape *shape = &t->view.parameter;
  return v && gradient_broadcasts(&v->shape, shape) ? v : gradient_in_shape(g, v, shape);
}

// scaled_n: gamma * N(u)
static void give_by_diff(Gradient *g, const Twice *t, Value *scaled_n, Value *x) {
  const bool has_both = t->has_channels && t->p;
  Value *part = has_both ? of_channels(g, t, t->src, t->mean, t->p, t->q) : times(g, parameter(g, t, t->p), x);
  Value *by_diff = sum_of(g, scaled_n, part), *q = has_both ? NULL : parameter(g, t, t->q);
  if (q && !by_diff) q = times(g, q, gradient_filled(g, q->type, &t->view.src, 1));
  give(g, t, "diff_dst", sum_of(g, by_diff, q));
}

static void give_gamma(Gradient *g, const Twice *t, Value *n) {
  uint32_t axes = 0;
  if (!gradient_is_wanted(g, norm_input(t->node, "gamma"))) return;
  for (int i = 0; i < t->view.parameter.rank; i++)
    if (extent_equals(t->view.parameter.extent[i], EXTENT(1))) axes |= 1U << i;
  give(g, t, "gamma", gradient_reduced(g, OP_ReduceSum, times(g, t->diff_dst, n), axes, false));
}

// Of statistics that are not src's own.
static void give_statistics(Gradient *g, const Twice *t, Value *by_src, Value *products, Value *x) {
  const uint32_t axes = t->view.reduced;
  if (!gradient_is_wanted(g, norm_input(t->node, "mean")) && !gradient_is_wanted(g, norm_input(t->node, "variance")))
    return;
  Value *deviation = gradient_unary(g, OP_Sqrt, shifted_variance(g, t));
  Value *sum = over(g, gradient_reduced(g, OP_ReduceSum, products, axes, true), deviation);
  sum = sum_of(g, sum, gradient_reduced(g, OP_ReduceSum, times(g, by_src, x), axes, true));
  give(g, t, "mean", gradient_scaled(g, gradient_reduced(g, OP_ReduceSum, by_src, axes, true), -1));
  give(g, t, "variance", gradient_scaled(g, over(g, sum, deviation), -0.5));
}

// v * mean(u * x) + u * mean(v * x)
static Value *of_both(Gradient *g, const Twice *t, Value *v, Value *x) {
  Value *sum = sum_of(g, times(g, v, norm_mean(g, &t->view, times(g, t->u, x))),
                      times(g, t->u, norm_mean(g, &t->view, times(g, v, x))));
  return t->is_about_src ? without(g, sum, norm_mean(g, &t->view, sum)) : sum;
}

// r * gamma * v, or N(gamma * v) if what flows through the statistics is included. gamma: of channels, NULL: 1.
static Value *to_src(Gradient *g, const Twice *t, Value *v, Value *gamma, Value *x) {
  return t->is_own ? through_norm(g, t, v, gamma, x) : by_deviation(g, t, v, gamma);
}

static void make_twice(Gradient *g, const Node *node, bool is_frozen) {
  Twice t;
  if (!twice_begin(g, node, is_frozen, &t) || !t.diff_dst) return;
  Value *x = normalised(g, &t, gradient_in_shape(g, t.mean, &t.view.statistic)), *own = x;
  if (t.is_about_src) own = normalised(g, &t, norm_mean(g, &t.view, t.src));
  Value *n = t.u ? through_norm(g, &t, t.u, NULL, own) : NULL, *gamma = parameter(g, &t, t.gamma);
  Value *scaled_n = n && gamma ? times(g, n, gamma) : n, *products = times(g, t.diff_dst, scaled_n);
  give_by_diff(g, &t, scaled_n, x);
  give_gamma(g, &t, n);

  Value *v = gamma && !t.has_channels ? times(g, t.diff_dst, gamma) : t.diff_dst;
  Value *scaled_x = n && !is_frozen ? by_deviation(g, &t, own, NULL) : NULL;
  Value *by_n = scaled_x ? of_both(g, &t, v, scaled_x) : NULL, *by_src;
  if (t.has_channels) {
    by_src = to_src(g, &t, t.p ? v : NULL, t.p, own);
    by_src = without(g, by_src, to_src(g, &t, by_n, t.gamma, own));
  } else {
    by_src = to_src(g, &t, without(g, times(g, parameter(g, &t, t.p), t.diff_dst), by_n), NULL, own);
  }
  if (!t.is_own) give_statistics(g, &t, by_src, products, x);
  else if (products) by_src = without(g, by_src, times(g, scaled_x, norm_mean(g, &t.view, products)));
  give(g, &t, "src", by_src);
  if (t.is_own && t.mean)
    g->given |= UINT64_C(1) << norm_input_slot(node, "mean") | UINT64_C(1) << norm_input_slot(node, "variance");
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

OF_BACKWARD(BatchNormTraining, false, OF_STATISTICS, UNUSED_BETA)
OF_BACKWARD(BatchNormInference, true, UNUSED_BETA)
OF_BACKWARD(GroupNorm, false, OF_STATISTICS, UNUSED_BETA)
OF_BACKWARD(InstanceNorm, false, OF_STATISTICS, UNUSED_BETA)
OF_BACKWARD(LayerNorm, false, OF_STATISTICS, UNUSED_BETA)
OF_BACKWARD(RMSNorm, false, {NULL})
