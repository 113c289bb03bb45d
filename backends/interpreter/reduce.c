// Reductions. SUM(name, term, result): sums `term`, a formula of the element x; `result` is a formula of the total and
// the number n of elements. FOLD(name, first, step, of_nothing): starts with `first`; `step` is a formula of the total
// so far and x; `of_nothing` is the result without elements.
#include "ir/operators/reduce.h"

#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/sum.h"
#include "backends/interpreter/walk.h"
#include "ir/operators/movement.h"
#include "ir/support/budget.h"

#include <math.h>

uint64_t scratch_of_sums(const Evaluation *e) {
  const Value *v = e->node->outputs[e->node->noutputs - 1];
  return v ? nbytes_multiply((uint64_t)shape_nelems(&v->shape), sizeof(Sum)) : 0;
}

Sum *sums_of_output(const Evaluation *e, uint32_t slot) {
  return ARENA_ARRAY(e->scratch, Sum, (size_t)shape_nelems(&e->node->outputs[slot]->shape));
}

bool sums_store(const Evaluation *e, uint32_t slot, const Sum *sums) {
  const int64_t nelems = shape_nelems(&e->node->outputs[slot]->shape);
  for (int64_t i = 0; i < nelems; i++) e->outputs[slot][i] = sum_value(&sums[i], e->noise);
  return true;
}

#define SUM(name, term, result)                                                                                        \
  bool interpret_##name(const Evaluation *e) {                                                                         \
    Walk w = walk_over(&e->node->inputs[0]->shape);                                                                    \
    int64_t count = walk_axes(&w, 0, ~reduce_axes(e->node));                                                           \
    double n = nelems_reduced(e->node);                                                                                \
    Sum *totals = ARENA_ARRAY(e->scratch, Sum, (size_t)count);                                                         \
    if (!totals) return false;                                                                                         \
    for (; w.i < w.nelems; walk_step(&w)) {                                                                            \
      const double x = e->inputs[0][w.i];                                                                              \
      sum_add(&totals[w.at[0]], term);                                                                                 \
    }                                                                                                                  \
    for (int64_t i = 0; i < count; i++) {                                                                              \
      const double total = sum_value(&totals[i], e->noise);                                                            \
      e->outputs[0][i] = (result);                                                                                     \
    }                                                                                                                  \
    (void)n;                                                                                                           \
    return true;                                                                                                       \
  }

static double nelems_reduced(const Node *node) {
  const Shape *src = &node->inputs[0]->shape;
  double n = 1;
  for (int axis = 0; axis < src->rank; axis++)
    if (reduce_axes(node) >> axis & 1) n *= (double)extent_value(src->extent[axis]);
  return n;
}

SUM(ReduceSum, x, total)
SUM(ReduceMean, x, total / n)
SUM(ReduceL1, fabs(x), total)

#define FOLD(name, first, step, of_nothing)                                                                            \
  bool interpret_##name(const Evaluation *e) {                                                                         \
    Walk w = walk_over(&e->node->inputs[0]->shape);                                                                    \
    int64_t count = walk_axes(&w, 0, ~reduce_axes(e->node));                                                           \
    const Type type = e->node->outputs[0]->type;                                                                       \
    double *y = e->outputs[0];                                                                                         \
    (void)type;                                                                                                        \
    for (int64_t i = 0; i < count; i++) y[i] = nelems_reduced(e->node) > 0 ? (first) : (of_nothing);                   \
    for (; w.i < w.nelems; walk_step(&w)) {                                                                            \
      const double x = e->inputs[0][w.i], total = y[w.at[0]];                                                          \
      y[w.at[0]] = (step);                                                                                             \
    }                                                                                                                  \
    return true;                                                                                                       \
  }

// A power of 2 near the greatest magnitude. Elements are divided by it so that squares neither overflow nor underflow;
// 1 if the greatest magnitude is 0 or not finite.
static double scale_near(double greatest) {
  return greatest > 0 && isfinite(greatest) ? ldexp(1, ilogb(greatest)) : 1;
}

bool interpret_ReduceL2(const Evaluation *e) {
  Walk w = walk_over(&e->node->inputs[0]->shape), again = w;
  int64_t count = walk_axes(&w, 0, ~reduce_axes(e->node));
  (void)walk_axes(&again, 0, ~reduce_axes(e->node));
  Sum *totals = ARENA_ARRAY(e->scratch, Sum, (size_t)count);
  double *greatest = ARENA_ARRAY(e->scratch, double, (size_t)count);
  if (!totals || !greatest) return false;
  for (; w.i < w.nelems; walk_step(&w)) greatest[w.at[0]] = fmax(greatest[w.at[0]], fabs(e->inputs[0][w.i]));
  for (; again.i < again.nelems; walk_step(&again)) {
    const double x = e->inputs[0][again.i] / scale_near(greatest[again.at[0]]);
    sum_add(&totals[again.at[0]], x * x);
  }
  for (int64_t i = 0; i < count; i++)
    e->outputs[0][i] = scale_near(greatest[i]) * sqrt(sum_value(&totals[i], e->noise));
  return true;
}

// IEEE 754's maximum: propagates NaN, and +0 is greater than -0.
static double maximum(double a, double b) {
  if (a == 0 && b == 0) return a + b;
  return isnan(a) || a > b ? a : b;
}

FOLD(ReduceMax, -INFINITY, maximum(total, x), -INFINITY)
FOLD(ReduceMin, INFINITY, -maximum(-total, -x), INFINITY)
FOLD(ReduceProd, 1, (total * x), 1)

// Writes the index of the first greatest element, or first NaN, of sign * src.
static bool find_first(const Evaluation *e, double sign) {
  const int axis = axis_of(e->node, e->node->inputs[0]->shape.rank);
  Walk w = walk_over(&e->node->inputs[0]->shape);
  const int64_t count = walk_axes(&w, 0, ~reduce_axes(e->node));
  double *greatest = ARENA_ARRAY(e->scratch, double, (size_t)count + 1);
  if (!greatest) return false;
  for (int64_t i = 0; i < count; i++) e->outputs[0][i] = 0; // also 0 as s64
  for (; w.i < w.nelems; walk_step(&w)) {
    const double x = sign * e->inputs[0][w.i], before = greatest[w.at[0]];
    if (w.index[axis] && (isnan(before) || x <= before)) continue;
    greatest[w.at[0]] = x;
    evaluation_put_integer(e, w.at[0], w.index[axis]);
  }
  return true;
}

INTERPRET(ArgMax, find_first(e, 1))
INTERPRET(ArgMin, find_first(e, -1))
