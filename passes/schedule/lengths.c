// Chooses the numbers of a main loop that decide the order of additions: lengths of blocks and tiles,
// accumulators, types of totals. They follow from shapes and types, never from the target.
#include "ir/kernel/needed.h"
#include "passes/schedule/order_kernel_internal.h"

#include <stdint.h>

// Iterations in a block. Lower limits: enough work for a thread to be worth starting, and partial sums much smaller
// than the data that they sum up. Upper limit: short chains of additions to a partial sum.
static int64_t block_length(const Scheduling *s, bool is_small, int64_t partial_nelems, bool rows_in_lanes) {
  const Costs *c = s->k->costs;
  int64_t width = axes_nelems(s->k, s->inner);
  int64_t block = (is_small ? c->block_few_nelems : c->block_nelems) / (width > 0 ? width : 1);
  int64_t together = rows_in_lanes ? LANES : 4, longest = rows_in_lanes ? LONGEST_CHAIN * LANES : LONGEST_CHAIN;
  block = (clamp(block, 1, INT32_MAX) + together - 1) / together * together;
  int64_t least = width > 0 ? (c->block_operands * partial_nelems + width - 1) / width : c->block_operands;
  return partial_nelems ? clamp(block, clamp(least, 1, c->block_operands), longest) : block;
}

// The largest number of blocks for each index on the free axes (0: any), so that partial sums stay much smaller than
// the tensors. If some tensor varies over all axes that are cut, free or of the result, each block reads much more than
// it stores, and any number of blocks will do. Otherwise a block may store more than it reads: the sum of a[i, j] *
// b[j, k] over j has i * k partial sums in each block. Depends on axes, not on extents, so that open extents get the
// same bits.
static int64_t most_blocks(const Scheduling *s, const Loop *loop) {
  const Costs *c = s->k->costs;
  int64_t most = 0;
  if (loop_has(loop, LOOP_ROW_LANES) || s->is_tiled || s->overrides->key[SCHEDULE_BLOCK].is_set) return 0;
  for (size_t i = 0; i < loop->nroots && most != c->cut_blocks_of_arrays; i++) {
    if (loop->roots[i].kind != ROOT_REDUCE_OUTER) continue;
    const AxisSet result = s->free_axes | access_axes(s->k, &s->k->accesses[loop->roots[i].access]);
    if (!is_within_tensor(s->k, s->cut | result)) most = result ? c->cut_blocks_of_arrays : c->cut_blocks_of_numbers;
  }
  return most;
}

static void choose_block(const Scheduling *s, Loop *loop, int64_t partial_nelems) {
  const int64_t small = s->k->costs->block_small_loop;
  AxisSet axes = (s->outer & ~s->free_axes) | s->inner;
  bool is_small = axes_nelems(s->k, axes) <= small, is_set = s->overrides->key[SCHEDULE_BLOCK].is_set;
  Cut *cut = &loop->cut;
  cut->length = schedule_number(s->overrides, SCHEDULE_BLOCK,
                                block_length(s, is_small, partial_nelems, loop_has(loop, LOOP_ROW_LANES)));
  if (is_set || loop_has(loop, LOOP_TAPS) || !axes_monomial(s->k, axes)) return; // a block of taps has a fixed length
  const int64_t few = block_length(s, true, partial_nelems, loop_has(loop, LOOP_ROW_LANES));
  cut->length = block_length(s, false, partial_nelems, loop_has(loop, LOOP_ROW_LANES));
  if (few != cut->length) cut->few_work = small, cut->few_length = few;
}

// Whether runs of some tensor along the vector axis are shorter than two cache lines, so that neighbouring rows have
// cache lines in common.
static bool has_short_runs(const Scheduling *s) {
  const Kernel *k = s->k;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    int64_t nbytes = k->axes[s->vector_axis].extent * (int64_t)type_nbytes(a->type);
    if (a->value && (access_axes(k, a) & s->outer) && a->stride[s->vector_axis] == 1 && nbytes / 2 < LINE_NBYTES)
      return true;
  }
  return false;
}

// Whether the vector axis is too short to use several accumulators.
static bool has_single_vectors(const Scheduling *s, const Loop *loop) {
  const Axis *axis = &s->k->axes[s->vector_axis];
  return loop->ninner > 1 && has_short_runs(s) && !axis->monomial && axis->extent < s->k->costs->accumulators * LANES;
}

// Whether some scalar varies over middle axes and rows: then a step cannot compute several rows.
static bool has_middle_scalars(const Scheduling *s, const Loop *loop) {
  const AxisSet middle = s->inner & ~(1U << last_axis(s));
  for (ExprId i = 1; loop->ninner > 1 && i < s->k->nexprs; i++) {
    const AxisSet axes = s->k->exprs[i].axes;
    if ((axes & middle) && (axes & s->outer) && !(axes >> last_axis(s) & 1)) return true;
  }
  return false;
}

// Elements of the largest array of partial sums in a block; 0: there is no array. With rows in lanes, a number is an
// array, too: each lane has an f32 sum.
static int64_t largest_partial(const Scheduling *s, const Loop *loop) {
  int64_t most = 0;
  for (size_t i = 0; i < loop->nroots; i++) {
    const Access *a = &s->k->accesses[loop->roots[i].access];
    if (loop->roots[i].kind == ROOT_REDUCE_OUTER && (access_axes(s->k, a) || loop_has(loop, LOOP_ROW_LANES)) &&
        access_nelems(s->k, a) > most)
      most = access_nelems(s->k, a);
  }
  return most;
}

// Sums of products have longer runs, and totals in f32, which are as exact as f64 totals at that length. Rows in lanes
// are short and need no runs.
static Type type_of_totals(const Scheduling *s, const Loop *loop) {
  if (s->k->is_f64 || loop_has(loop, LOOP_ROW_LANES) || s->is_scatter) return TYPE_NONE;
  if (loop_sums_in_lanes(loop)) return loop_shares_factors(loop) ? TYPE_F32 : TYPE_F64;
  return loop_has_roots(loop, ROOT_REDUCE_INNER) ? TYPE_F64 : TYPE_NONE;
}

// Whether loads of the loop have bounds: the addresses of such loads need each row's indices, not only a pointer to the
// row.
static bool has_bounds(Kernel *k, const Loop *loop) {
  bool *is_needed = ARENA_ARRAY(k->arena, bool, k->nexprs), is_any = false;
  if (!is_needed) {
    k->out_of_memory = true;
    return true;
  }
  for (size_t i = 0; i < loop->nroots; i++) loop_mark_root(k, loop, &loop->roots[i], is_needed);
  for (ExprId i = 1; i < k->nexprs; i++)
    is_any |= is_needed[i] && expr_has_access(&k->exprs[i]) && k->accesses[k->exprs[i].access].nbounds;
  return is_any;
}

// The rows of a scatter's block. Each block goes over all indices, so that few blocks are better.
static int64_t scatter_block(const Scheduling *s) {
  const Costs *c = s->k->costs;
  const int64_t rows = axes_nelems(s->k, s->outer & ~s->free_axes), width = s->k->axes[s->vector_axis].extent;
  const int64_t least = clamp(rows / c->scatter_blocks, 1, INT64_MAX);
  return clamp(c->scatter_block / clamp(width, 1, c->scatter_block), least, INT64_MAX);
}

// The cut into blocks or tiles. The length of blocks decides bits if the loop has outer reductions.
static void choose_cut(const Scheduling *s, Loop *loop) {
  const Costs *c = s->k->costs;
  const bool has_sums = loop_has_roots(loop, ROOT_REDUCE_INNER);
  if (s->is_scatter) {
    loop->cut.length = scatter_block(s);
  } else if (s->is_tiled) {
    loop->cut.length = schedule_number(s->overrides, SCHEDULE_TILE, has_sums ? c->tile_with_sums : c->tile);
  } else if (loop_has(loop, LOOP_COLUMNS) && s->product.rows) {
    loop->cut.length = schedule_number(s->overrides, SCHEDULE_BLOCK, c->product_block); // does not depend on extents
  } else {
    choose_block(s, loop, largest_partial(s, loop));
    loop->cut.most = most_blocks(s, loop);
  }
  if (s->sums_columns) loop->cut.length = (loop->cut.length + LANES - 1) / LANES * LANES;
}

// Chooses the accumulators of each lane, and whether a step may have several rows.
static int choose_accumulators(const Scheduling *s, Loop *loop) {
  const Costs *c = s->k->costs;
  const int64_t rows = axes_nelems(s->k, s->outer), width = axes_nelems(s->k, s->inner);
  int accumulators = 1;
  if (loop_has(loop, LOOP_ROW_LANES) || loop_sums_in_lanes(loop)) return 1;
  const bool has_short = has_short_runs(s), is_short = rows >= c->shared_rows && width <= c->shared_row_nelems;
  loop->may_share_rows =
      !s->is_nested && loop->nouter && ((is_short && (loop->ninner == 1 || has_short)) || has_single_vectors(s, loop));
  if (loop_has_roots(loop, ROOT_REDUCE_INNER) && !loop_has(loop, LOOP_TAPS)) // many rows have an accumulator each
    accumulators =
        (int)schedule_number(s->overrides, SCHEDULE_ACCUMULATORS, loop->may_share_rows ? 1 : c->accumulators);
  loop->may_share_rows &= accumulators == 1 && !has_middle_scalars(s, loop) && !has_bounds(s->k, loop);
  return accumulators;
}

// Partial sums of few blocks, which may be long, are f64.
static void widen_partials(const Scheduling *s, const Loop *loop) {
  for (size_t i = 0; i < loop->nroots; i++) {
    Access *a = &s->k->accesses[loop->roots[i].access];
    if (loop->roots[i].kind == ROOT_REDUCE_OUTER) s->schedule->temporaries[a->temporary].type = a->type = TYPE_F64;
  }
}

static bool write_orders(const Scheduling *s, Loop *loop, SumNumbers numbers) {
  for (size_t i = 0; i < loop->nroots; i++) {
    Root *root = &loop->roots[i];
    if (root->kind == ROOT_STORE) continue;
    SumOrder *order = ARENA_NEW(s->k->arena, SumOrder);
    s->k->out_of_memory |= !order;
    if (!order) return false;
    *order = loop_sum_order(s->schedule, loop, root, numbers);
    root->order = order;
  }
  return true;
}

bool schedule_choose_lengths(const Scheduling *s, Loop *loop) {
  choose_cut(s, loop);
  if (loop->cut.most) widen_partials(s, loop);
  const SumNumbers numbers = {.accumulators = choose_accumulators(s, loop), .totals = type_of_totals(s, loop)};
  return write_orders(s, loop, numbers);
}
