// Chooses the numbers of a main loop that decide the order of additions: lengths of blocks and tiles. They follow from
// shapes and types, never from the target.
#include "ir/kernel/needed.h"
#include "passes/schedule/order/scheduling.h"

#include <stdint.h>

// Iterations in a block without outer reductions, which decides no bits: enough blocks for many threads, if each has
// enough work for a thread to be worth starting.
static int64_t block_length(const Scheduling *s, bool rows_in_lanes) {
  const Costs *c = s->k->costs;
  const int64_t all = axes_nelems(s->k, s->outer | s->inner), width = axes_nelems(s->k, s->inner);
  const int64_t together = rows_in_lanes ? LANES : 1;
  const int64_t nelems = clamp(all / c->blocks, c->block_few_nelems, c->block_nelems);
  const int64_t block = nelems / (width > 0 ? width : 1);
  return (clamp(block, 1, INT32_MAX) + together - 1) / together * together;
}

// The rows that a block adds to its partial sums: few, so that there are blocks for many threads, but so many that
// arrays of partial sums are much smaller than the data, and adding them up takes at most a fiftieth of the time.
// Chains of f32 additions must be short. Numbers for each index on batch axes, such as channels, are few rows each, and
// may have shorter blocks; other numbers have the blocks of arrays, beside which they may be. Only the number of rows
// decides.
static Cut cut_rows(const Costs *c, bool has_arrays, AxisSet batch_axes) {
  return (Cut){has_arrays || !batch_axes ? c->block_operands : c->block_numbers, c->blocks,
               has_arrays ? LONGEST_CHAIN : 0};
}

// The largest number of blocks for each index on the batch axes (0: any), so that partial sums stay much smaller than
// the tensors. If some tensor varies over all axes that are cut, of the batch or of the result, each block reads much
// more than it stores, and any number of blocks will do. Otherwise a block may store more than it reads: the sum of
// a[i, j] * b[j, k] over j has i * k partial sums in each block. Depends on axes, not on extents, so that open extents
// get the same bits.
static int64_t most_blocks(const Scheduling *s, const Loop *loop) {
  const Costs *c = s->k->costs;
  int64_t most = 0;
  if (s->strategy == TILED || s->overrides->key[SCHEDULE_BLOCK].is_set) return 0;
  for (size_t i = 0; i < loop->nroots && most != c->cut_blocks_of_arrays; i++) {
    if (loop->roots[i].kind != ROOT_REDUCE_OUTER) continue;
    const AxisSet result = s->batch_axes | access_axes(s->k, &s->k->accesses[loop->roots[i].access]);
    if (!is_within_tensor(s->k, s->cut | result)) most = result ? c->cut_blocks_of_arrays : c->cut_blocks_of_numbers;
  }
  return most;
}

// Whether runs of some tensor along the vector axis are shorter than two cache lines, so that neighbouring rows have
// cache lines in common. Decides no bits.
static bool has_short_runs(const Scheduling *s) {
  const Kernel *k = s->k;
  const Axis *axis = &k->axes[s->vector_axis];
  bool is_any = false;
  for (AccessId i = 0; i < k->naccesses && !axis->monomial; i++) {
    const Access *a = &k->accesses[i];
    const bool has_rows = a->value && (access_axes(k, a) & s->outer) && a->stride[s->vector_axis] == 1;
    is_any |= has_rows && axis->extent * (int64_t)type_nbytes(a->type) / 2 < LINE_NBYTES;
  }
  return is_any;
}

// Whether some scalar varies over middle axes and rows: then a micro-kernel cannot compute several rows.
static bool has_middle_scalars(const Scheduling *s, const Loop *loop) {
  const AxisSet middle = s->inner & ~(1U << last_axis(s));
  for (ExprId i = 1; loop->ninner > 1 && i < s->k->nexprs; i++) {
    const AxisSet axes = s->k->exprs[i].axes;
    if ((axes & middle) && (axes & s->outer) && !(axes >> last_axis(s) & 1)) return true;
  }
  return false;
}

// Whether loads of the loop have bounds: the addresses of such loads need each row's indices, not only a pointer to the
// row.
static bool has_bounds(Kernel *k, const Loop *loop) {
  bool *is_needed = KERNEL_ARRAY(k, bool, k->nexprs), is_any = false;
  if (!is_needed) return true;
  for (size_t i = 0; i < loop->nroots; i++) loop_mark_root(k, loop, &loop->roots[i], is_needed);
  for (ExprId i = 1; i < k->nexprs; i++)
    is_any |= is_needed[i] && expr_has_access(&k->exprs[i]) && k->accesses[k->exprs[i].access].nbounds;
  return is_any;
}

// The rows of a scatter's block. Each block goes over all indices, so that few blocks are better.
static int64_t scatter_block(const Scheduling *s) {
  const Costs *c = s->k->costs;
  const int64_t rows = axes_nelems(s->k, s->outer & ~s->batch_axes), width = s->k->axes[s->vector_axis].extent;
  const int64_t least = clamp(rows / c->scatter_blocks, 1, INT64_MAX);
  return clamp(c->scatter_block / clamp(width, 1, c->scatter_block), least, INT64_MAX);
}

// The cut into blocks or tiles. The length of blocks decides bits if the loop has outer reductions. Returns whether
// partial sums may be long.
static bool choose_cut(const Scheduling *s, Loop *loop) {
  const Costs *c = s->k->costs;
  bool is_long = false;
  if (s->strategy == SCATTERED) {
    loop->cut.length = scatter_block(s);
  } else if (loop_is_tiled(loop)) {
    loop->cut.length = loop_has_roots(loop, ROOT_REDUCE_INNER)
                           ? (int64_t)LONGEST_SEGMENT * LANES // a segment of a row's sum: rows have the same order
                           : schedule_number(s->overrides, SCHEDULE_TILE, c->tile);
  } else if (loop_has_roots(loop, ROOT_REDUCE_OUTER) && !s->overrides->key[SCHEDULE_BLOCK].is_set) {
    const int64_t most = most_blocks(s, loop);
    loop->cut = cut_rows(c, loop_has_partial_arrays(s->k, loop), s->batch_axes);
    if (most) loop->cut.most = most, loop->cut.longest = 0;
    is_long = most && loop_has_partial_arrays(s->k, loop);
    if (!axes_monomial(s->k, loop_cut_axes(loop))) loop->cut = (Cut){.length = loop_block_length(s->k, loop)};
  } else {
    loop->cut.length = schedule_number(s->overrides, SCHEDULE_BLOCK, block_length(s, loop_has(loop, LOOP_ROW_LANES)));
  }
  if (s->strategy == OF_COLUMNS) loop->cut.length = (loop->cut.length + LANES - 1) / LANES * LANES;
  return is_long;
}

// Whether a micro-kernel may have several rows.
static bool may_share_rows(const Scheduling *s, const Loop *loop) {
  if (loop_has(loop, LOOP_ROW_LANES) || loop_sums_in_lanes(loop) || s->strategy == NESTED || loop_is_tiled(loop))
    return false;
  const bool has_short = has_short_runs(s), is_short = axes_nelems(s->k, s->inner) <= s->k->costs->shared_row_nelems;
  return (loop->ninner == 1 ? is_short : has_short) && !has_middle_scalars(s, loop) && !has_bounds(s->k, loop);
}

// Partial sums of few blocks, which may be long, are f64.
static void widen_partials(const Scheduling *s, const Loop *loop) {
  for (size_t i = 0; i < loop->nroots; i++) {
    Access *a = &s->k->accesses[loop->roots[i].access];
    if (loop->roots[i].kind == ROOT_REDUCE_OUTER) s->schedule->temporaries[a->temporary].type = a->type = TYPE_F64;
  }
}

// Whether the sum adds vectors of products unrounded: all that an operator makes for itself, but elements of a tensor
// of products are rounded, and so are products that are added to f64.
static bool adds_unrounded(const Kernel *k, const Loop *loop, const Root *root) {
  const Expr *e = &k->exprs[root_operand(k, root)];
  const bool is_vector = loop->ninner && e->axes >> loop_vector_axis(loop) & 1;
  if (e->op != EXPR_MUL || e->is_element || !is_vector) return false;
  return root->kind == ROOT_REDUCE_INNER || k->accesses[root->access].type == kernel_type(k);
}

static bool write_orders(const Scheduling *s, Loop *loop) {
  for (size_t i = 0; i < loop->nroots; i++) {
    Root *root = &loop->roots[i];
    if (root->kind == ROOT_STORE) continue;
    SumOrder *order = KERNEL_ARRAY(s->k, SumOrder, 1);
    if (!order) return false;
    *order = loop_sum_order(s->schedule, loop, root, s->strategy == OF_CHAINS);
    order->is_fused = order->reduction == EXPR_REDUCE_SUM && adds_unrounded(s->k, loop, root);
    root->order = order;
  }
  return true;
}

bool schedule_choose_lengths(const Scheduling *s, Loop *loop) {
  if (choose_cut(s, loop)) widen_partials(s, loop);
  loop->may_share_rows = may_share_rows(s, loop);
  return write_orders(s, loop);
}
