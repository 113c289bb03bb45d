// Executes scatters as the kernel says: each row adds all operands whose index refers to it, and 0 for the others.
#include "ir/kernel/scatter.h"
#include "ir/loops/executing.h"

#include <string.h>

// Whether index i refers to the row: place = index < 0 ? index + number of rows : index; place == row.
static void is_of_row(Executing *x, const Scatter *s, uint64_t i, const Datum *nrows, const Datum *row, Datum *y) {
  Datum index[LANES], zero[LANES], is_negative[LANES], sum[LANES];
  read_elements(x, s->indices, x->type, (Pointer){buffer_of(x, s->indices), i}, (Elements){.count = 1}, index);
  if (x->has_failed) return;
  set_lanes(index, index[0], 1, LANES);
  set_lanes(zero, number_of(x, x->type, 0), 0, LANES);
  apply(x, EXPR_GT, x->type, (const Datum *const[]){zero, index, NULL}, is_negative);
  apply(x, EXPR_ADD, x->type, (const Datum *const[]){index, nrows, NULL}, sum);
  apply(x, EXPR_SELECT, x->type, (const Datum *const[]){is_negative, sum, index}, sum);
  apply(x, EXPR_EQ, x->type, (const Datum *const[]){sum, row, NULL}, y);
}

static uint64_t extent_of(Executing *x, int axis) {
  const Axis *a = &x->k->axes[axis];
  return index_of_run(x, &(Index){.op = INDEX_NUMBER, .number = a->extent, .monomial = a->monomial});
}

void execute_scatter(Executing *x, const LoopNode *n) {
  Scatter s;
  (void)n;
  if (!kernel_find_scatter(x->k, &s)) {
    execute_fail(x, "the kernel is no scatter");
    return;
  }
  const uint64_t nrows = extent_of(x, s.rows), width = extent_of(x, s.columns), count = extent_of(x, s.summed);
  const uint64_t end = var_of(x, VAR_END);
  Datum all[LANES], own[LANES], zero[LANES];
  set_lanes(all, number_of(x, x->type, (double)nrows), 0, LANES);
  set_lanes(zero, number_of(x, x->type, 0), 0, LANES);
  for (uint64_t row = var_of(x, VAR_BEGIN); row < end && !x->has_failed; row++)
    for (uint64_t c = 0; c < width && !x->has_failed; c += LANES) {
      const Elements part = {.step = 1, .count = width - c < LANES ? (int)(width - c) : LANES};
      Datum sum[LANES], from[LANES], is_own[LANES];
      memcpy(sum, zero, sizeof sum);
      memcpy(from, zero, sizeof from);
      set_lanes(own, number_of(x, x->type, (double)(row % nrows)), 0, LANES);
      for (uint64_t i = 0; i < count && !x->has_failed; i++) {
        is_of_row(x, &s, i, all, own, is_own);
        read_elements(x, s.from, x->type, (Pointer){buffer_of(x, s.from), (row / nrows * count + i) * width + c}, part,
                      from);
        apply(x, EXPR_SELECT, x->type, (const Datum *const[]){is_own, from, zero}, from);
        apply(x, EXPR_ADD, x->type, (const Datum *const[]){sum, from, NULL}, sum);
      }
      write_elements(x, s.to, x->type, (Pointer){buffer_of(x, s.to), row * width + c}, part, sum, false);
    }
}
