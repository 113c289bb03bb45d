// The numbers of a main loop that decide the order of additions: blocks and tiles, lanes, accumulators, the length of
// chains in f32, and which products enter sums unrounded. They follow from shapes and types alone.
#include "passes/schedule/scheduling.h"

#include <stdint.h>

// Iterations in a block: enough work to be worth handing out, few enough that a chain of additions stays short and
// partial sums stay small beside the data. Shapes alone decide.
static int64_t block_length(const Scheduling *s, bool is_small, int64_t partial_nelems, bool rows_in_lanes) {
  enum { ELEMENTS = 1 << 16, FEW_ELEMENTS = 1 << 12, LEAST_WITH_PARTIALS = 32 };
  int64_t width = axes_nelems(s->k, s->inner);
  int64_t block = (is_small ? FEW_ELEMENTS : ELEMENTS) / (width > 0 ? width : 1);
  int64_t together = rows_in_lanes ? LANES : 4, longest = rows_in_lanes ? LONGEST_CHAIN * LANES : LONGEST_CHAIN;
  block = (clamp(block, 1, INT32_MAX) + together - 1) / together * together;
  int64_t least = width > 0 ? ((int64_t)LEAST_WITH_PARTIALS * partial_nelems + width - 1) / width : LEAST_WITH_PARTIALS;
  return partial_nelems ? clamp(block, clamp(least, 1, LEAST_WITH_PARTIALS), longest) : block;
}

// How many blocks an iteration of the kept axes may have, so that partial sums stay small beside the largest tensor; 0:
// any number. Where a tensor varies over all that is cut, kept and summed up to, each block adds up much more of the
// tensor than it leaves. Else operands are spread over more than any of them has, as in the sum of a[i, j] * b[j, k]
// over j, whose partial sums have a result's elements each. Axes alone decide: bits are the same for open extents.
static int64_t most_chunks(const Scheduling *s, const Loop *loop) {
  enum { FEW = 4, MANY = 1024 };
  int64_t most = 0;
  if (loop->rows_in_lanes || s->is_tiled || s->overrides->key[SCHEDULE_BLOCK].is_set) return 0;
  for (size_t i = 0; i < loop->nroots && most != FEW; i++) {
    if (loop->roots[i].kind != ROOT_REDUCE_OUTER) continue;
    const AxisSet result = s->free_axes | access_axes(s->k, &s->k->accesses[loop->roots[i].access]);
    if (!is_within_tensor(s->k, s->cut | result)) most = result ? FEW : MANY;
  }
  return most;
}

static void choose_block(const Scheduling *s, Loop *loop, int64_t partial_nelems) {
  enum { SMALL = 1 << 18 };
  AxisSet axes = (s->outer & ~s->free_axes) | s->inner;
  bool is_small = axes_nelems(s->k, axes) <= SMALL, is_set = s->overrides->key[SCHEDULE_BLOCK].is_set;
  loop->block =
      schedule_number(s->overrides, SCHEDULE_BLOCK, block_length(s, is_small, partial_nelems, loop->rows_in_lanes));
  if (is_set || s->is_tiled || !axes_monomial(s->k, axes)) return;
  loop->few_block = block_length(s, true, partial_nelems, loop->rows_in_lanes);
  loop->many_block = block_length(s, false, partial_nelems, loop->rows_in_lanes);
  if (loop->few_block != loop->many_block) loop->few_work = SMALL;
}

// Whether a row's run along the vector axis is shorter than two cache lines, so that its neighbours' share them.
static bool has_short_runs(const Scheduling *s) {
  enum { TWO_LINES = 128 };
  const Kernel *k = s->k;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    int64_t nbytes = k->axes[s->vector_axis].extent * (int64_t)type_nbytes(a->type);
    if (a->value && (access_axes(k, a) & s->outer) && a->stride[s->vector_axis] == 1 && nbytes < TWO_LINES) return true;
  }
  return false;
}

// Whether runs along the vector axis are too short for several accumulators to have turns: they are as good as one.
static bool has_single_vectors(const Scheduling *s, const Loop *loop) {
  enum { ACCUMULATORS = 4 };
  const Axis *axis = &s->k->axes[s->vector_axis];
  return loop->ninner > 1 && has_short_runs(s) && !axis->monomial && axis->extent < (int64_t)ACCUMULATORS * LANES;
}

// Rows so short that vectors along them are mostly sums across lanes and rests go across lanes instead: one outer axis,
// one inner, and every access along both in the order of rows or of columns.
static bool can_lie_in_lanes(const Scheduling *s, const Loop *loop) {
  enum { WIDEST = 64 }; // what a row's copy in the first level allows
  const Kernel *k = s->k;
  if (s->is_tiled || k->is_f64 || loop->nouter != 1 || loop->nfree || loop->ninner != 1) return false;
  int outer = loop->order[0], inner = loop->order[1];
  for (size_t i = 0; i < loop->nroots; i++) // a sum of no row's own would be the same in each lane
    if (loop->roots[i].kind == ROOT_REDUCE_INNER && !(k->exprs[loop->roots[i].expr].axes >> outer & 1)) return false;
  if (k->axes[outer].extent < LANES || k->axes[inner].monomial || k->axes[inner].extent < 1 ||
      k->axes[inner].extent > WIDEST)
    return false;
  for (ExprId i = 1; i < k->nexprs; i++) // nor are coordinates and what lies at them
    if (k->exprs[i].op == EXPR_INDEX || k->exprs[i].op == EXPR_IS_KEPT ||
        (k->exprs[i].op == EXPR_LOAD && k->exprs[i].args[0]))
      return false;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    bool is_float = a->type == TYPE_F32 || a->type == TYPE_BF16 || a->type == TYPE_F16;
    if (type_is_packed(a->type)) return false;
    if (a->stride[outer] && (!is_float || (a->stride[inner] > 1 && a->stride[outer] != 1))) return false;
  }
  return true;
}

// Measured on layer norm's gradient, from width 8 to 64: across lanes a row costs by its elements; along it, by its
// vectors, by sums across lanes, and by a last part, which delays as much as two or three vectors.
static bool should_lie_in_lanes(const Scheduling *s, const Loop *loop, bool has_inner_sums) {
  int64_t width = axes_nelems(s->k, s->inner);
  bool is_short = has_inner_sums ? width <= LANES || (width % LANES && width < 5 * LANES / 2) : width < LANES;
  return can_lie_in_lanes(s, loop) && schedule_number(s->overrides, SCHEDULE_LANES, is_short);
}

// Whether a row has scalars of its own that an iteration of the middle axes computes: rows that are handled together
// have none.
static bool has_middle_scalars(const Scheduling *s, const Loop *loop) {
  const AxisSet middle = s->inner & ~(1U << last_axis(s));
  for (ExprId i = 1; loop->ninner > 1 && i < s->k->nexprs; i++) {
    const AxisSet axes = s->k->exprs[i].axes;
    if ((axes & middle) && (axes & s->outer) && !(axes >> last_axis(s) & 1)) return true;
  }
  return false;
}

static bool has_inner_sums(const Loop *loop) {
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_REDUCE_INNER) return true;
  return false;
}

// Elements of the largest array of partial sums; 0: there is none.
static int64_t largest_partial(const Scheduling *s, const Loop *loop) {
  int64_t most = 0;
  for (size_t i = 0; i < loop->nroots; i++) {
    const Access *a = &s->k->accesses[loop->roots[i].access];
    if (loop->roots[i].kind == ROOT_REDUCE_OUTER && access_axes(s->k, a) && access_nelems(s->k, a) > most)
      most = access_nelems(s->k, a);
  }
  return most;
}

// The additions that an accumulator makes in an iteration of the middle axes; the first takes the rest, too.
static int64_t chain_length(int64_t width, int accumulators) {
  const int64_t group = (int64_t)LANES * accumulators;
  return width / group + width % group / LANES + (width % LANES != 0);
}

// One run has the bits of no runs at all, so that where extents are open they may always be there. Across lanes rows
// are short.
static void choose_runs(const Scheduling *s, Loop *loop) {
  if (!has_inner_sums(loop) || s->k->is_f64 || loop->rows_in_lanes) return;
  const int v = loop_vector_axis(loop);
  const Axis *vector = &s->k->axes[v];
  const int64_t chain = chain_length(loop->tile ? loop->tile : vector->extent, loop->accumulators);
  const AxisSet middle =
      loop->is_nested ? 0 : loop_inner_axes(loop) & ~(1U << v); // whose iterations a chain goes on in
  const bool is_open = axes_monomial(s->k, middle), is_vector_open = !loop->tile && vector->monomial;
  Runs *runs = &loop->runs;
  if (is_vector_open && middle) runs->is_open = true;
  else if (is_vector_open || chain > LONGEST_RUN) runs->vector_run = (int64_t)LONGEST_RUN * LANES * loop->accumulators;
  else if (chain * axes_nelems(s->k, middle) > LONGEST_RUN || (is_open && chain))
    runs->middle_run = LONGEST_RUN / chain;
}

// Sums over middle axes are chains as they are, up to a length.
static void choose_middle_run(const Scheduling *s, Loop *loop) {
  const AxisSet middle = loop_inner_axes(loop) & ~(1U << loop_vector_axis(loop));
  if (!s->k->is_f64 && axes_nelems(s->k, middle) > LONGEST_RUN) loop->runs.middle_run = LONGEST_RUN;
}

void schedule_choose_numbers(const Scheduling *s, Loop *loop) {
  enum { MANY_ROWS = 16, LONG_ROW = 1 << 14, TILE = 1 << 15, TILE_WITH_SUMS = 1 << 13 };
  const bool has_sums = has_inner_sums(loop);
  const int64_t rows = axes_nelems(s->k, s->outer), width = axes_nelems(s->k, s->inner);
  loop->rows_in_lanes = s->is_column || should_lie_in_lanes(s, loop, has_sums);
  if (s->is_tiled) loop->tile = schedule_number(s->overrides, SCHEDULE_TILE, has_sums ? TILE_WITH_SUMS : TILE);
  choose_block(s, loop, largest_partial(s, loop));
  loop->most_chunks = most_chunks(s, loop);
  if (s->is_column) loop->block = (loop->block + LANES - 1) / LANES * LANES;
  if (loop->sums_middle) choose_middle_run(s, loop);
  if (loop->rows_in_lanes || loop->sums_middle) return;
  const bool has_short = has_short_runs(s), is_short = rows >= MANY_ROWS && width <= LONG_ROW;
  loop->may_share_rows = !loop->is_nested && loop->nouter &&
                         ((is_short && (loop->ninner == 1 || has_short)) || has_single_vectors(s, loop));
  if (has_sums)
    loop->accumulators = (int)schedule_number(s->overrides, SCHEDULE_ACCUMULATORS, loop->may_share_rows ? 1 : 4);
  loop->may_share_rows &= loop->accumulators == 1 && !has_middle_scalars(s, loop);
  choose_runs(s, loop);
}
