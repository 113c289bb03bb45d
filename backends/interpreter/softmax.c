// Softmax and its gradients. A row is the elements along the axis; track 0 of the walk is the row's index.
#include "ir/operators/softmax.h"

#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/sum.h"
#include "backends/interpreter/walk.h"
#include "ir/support/budget.h"

#include <math.h>

typedef struct Rows {
  Walk walk;
  int64_t count;
} Rows;

static Rows rows_of(const Evaluation *e) {
  Rows rows = {.walk = walk_over(&e->node->inputs[0]->shape)};
  rows.count = walk_axes(&rows.walk, 0, ~(1U << softmax_axis(e->node)));
  // Empty rows need no memory; there may be more of them than memory.
  if (!rows.walk.nelems && !evaluation_output(e, "stats")) rows.count = 0;
  return rows;
}

uint64_t scratch_of_softmax(const Evaluation *e) {
  const bool has_maxima = !(e->node->op->inputs[1].name); // gradients read the results instead
  return nbytes_multiply((uint64_t)rows_of(e).count, sizeof(Sum) + (has_maxima ? sizeof(double) : 0));
}

// The maximum of each row, which propagates NaN; -inf for empty rows. NULL: out of memory.
static double *row_maxima(const Evaluation *e, const Rows *rows) {
  double *m = ARENA_ARRAY(e->scratch, double, (size_t)rows->count);
  for (int64_t i = 0; m && i < rows->count; i++) m[i] = -INFINITY;
  for (Walk w = rows->walk; m && w.i < w.nelems; walk_step(&w)) {
    double x = e->inputs[0][w.i], *greatest = &m[w.at[0]];
    if (x > *greatest || isnan(x)) *greatest = x; // no comparison with NaN is true, so NaN stays
  }
  return m;
}

// Sums `term`, a formula of the walk's element w.i, in each row.
#define ROW_SUMS(sums, rows, term)                                                                                     \
  for (Walk w = (rows)->walk; (sums) && w.i < w.nelems; walk_step(&w)) sum_add(&(sums)[w.at[0]], term)

bool interpret_SoftMax(const Evaluation *e) {
  Rows rows = rows_of(e);
  const double *x = e->inputs[0];
  double *dst = e->outputs[0], *stats = evaluation_output(e, "stats"), *m = row_maxima(e, &rows);
  Sum *sums = ARENA_ARRAY(e->scratch, Sum, (size_t)rows.count);
  if (!m || !sums) return false;
  bool inf_as_zero = node_s64(e->node, "mode") == SOFTMAX_INF_AS_ZERO;
  ROW_SUMS(sums, &rows, exp(x[w.i] - m[w.at[0]]));
  for (Walk w = rows.walk; w.i < w.nelems; walk_step(&w)) {
    int64_t row = w.at[0];
    dst[w.i] = inf_as_zero && m[row] == -INFINITY ? 0 : exp(x[w.i] - m[row]) / sum_value(&sums[row], e->noise);
  }
  for (int64_t row = 0; stats && row < rows.count; row++)
    stats[row] = inf_as_zero && m[row] == -INFINITY ? 0 : m[row] + sum_log(&sums[row], e->noise);
  return true;
}

bool interpret_LogSoftmax(const Evaluation *e) {
  Rows rows = rows_of(e);
  const double *x = e->inputs[0];
  double *dst = e->outputs[0], *m = row_maxima(e, &rows);
  Sum *sums = ARENA_ARRAY(e->scratch, Sum, (size_t)rows.count);
  if (!m || !sums) return false;
  ROW_SUMS(sums, &rows, exp(x[w.i] - m[w.at[0]]));
  for (Walk w = rows.walk; w.i < w.nelems; walk_step(&w))
    dst[w.i] = x[w.i] - m[w.at[0]] - sum_log(&sums[w.at[0]], e->noise);
  return true;
}

// The gradient from dy and y: `term` is summed in each row, and `formula` has the row's sum.
#define GRADIENT(name, term, formula)                                                                                  \
  bool interpret_##name(const Evaluation *e) {                                                                         \
    Rows rows = rows_of(e);                                                                                            \
    const double *dy = e->inputs[0], *y = e->inputs[1];                                                                \
    Sum *sums = ARENA_ARRAY(e->scratch, Sum, (size_t)rows.count);                                                      \
    if (!sums) return false;                                                                                           \
    ROW_SUMS(sums, &rows, term);                                                                                       \
    for (Walk w = rows.walk; w.i < w.nelems; walk_step(&w)) {                                                          \
      const double sum = sum_value(&sums[w.at[0]], e->noise);                                                          \
      e->outputs[0][w.i] = (formula);                                                                                  \
    }                                                                                                                  \
    return true;                                                                                                       \
  }

GRADIENT(SoftMaxBackward, dy[w.i] * y[w.i], y[w.i] * (dy[w.i] - sum))
GRADIENT(LogSoftmaxBackward, dy[w.i], dy[w.i] - exp(y[w.i]) * sum)
