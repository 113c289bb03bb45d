// The numbers of a main loop: blocks and tiles, rows and accumulators of a step, rows to fetch ahead, and what goes
// past the caches; and the keys by which they can be set from outside.
#include "passes/schedule/scheduling.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const ScheduleKeyInfo schedule_keys[SCHEDULE_KEYS] = {
    [SCHEDULE_ROWS] = {"rows", 1, 8, false, "outer iterations handled together"},
    [SCHEDULE_ACROSS] = {"across", 0, 1, true,
                         "1: rows of at most 64 elements across lanes, where that can be; 0: never"},
    [SCHEDULE_ACCUMULATORS] = {"accumulators", 1, 8, true, "partial sums a lane keeps in a row's sum"},
    [SCHEDULE_BLOCK] = {"block", 1, LONGEST_CHAIN, true, "outer iterations in a block; sums over them go by blocks"},
    [SCHEDULE_TILE] = {"tile", 16, 1 << 24, true, "elements in a block, where there is but one axis"},
    [SCHEDULE_PREFETCH] = {"prefetch", 0, 64, false, "outer iterations ahead that are fetched; 0: none"},
    [SCHEDULE_AHEAD] = {"ahead", 0, 1 << 16, false,
                        "elements ahead that are fetched within an outer iteration; 0: none"},
    [SCHEDULE_APART] = {"apart", 0, 1, false,
                        "1: a sweep for each store of rows that begin within cache lines; 0: one for all"},
    [SCHEDULE_STREAM] = {"stream", 0, 1, false, "1: store past the caches where rows are aligned; 0: never"},
    [SCHEDULE_MASKS] = {"masks", 0, 1, false, "1: keep masks that spare later sweeps a tensor; 0: never"},
};

bool schedule_override(ScheduleOverrides *overrides, const char *setting, Diagnostics *d) {
  const char *equals = strchr(setting, '=');
  size_t length = equals ? (size_t)(equals - setting) : 0;
  for (int key = 0; key < SCHEDULE_KEYS; key++) {
    const ScheduleKeyInfo *info = &schedule_keys[key];
    if (!length || strlen(info->name) != length || memcmp(info->name, setting, length) != 0) continue;
    char *end;
    long long value = strtoll(equals + 1, &end, 10);
    if (end == equals + 1 || *end || value < info->least || value > info->most)
      return error_at(d, (Position){0}, "schedule %s: expected %lld to %lld, found %s", info->name,
                      (long long)info->least, (long long)info->most, equals + 1);
    overrides->key[key].is_set = true;
    overrides->key[key].value = value;
    return true;
  }
  Text names;
  text_init(&names, d->arena.allocator);
  for (int key = 0; key < SCHEDULE_KEYS; key++) text_format(&names, "%s%s", key ? ", " : "", schedule_keys[key].name);
  error_at(d, (Position){0}, "schedule %s: expected key=number with a key of %s", setting, text_string(&names));
  text_deinit(&names);
  return false;
}

int64_t overridden(const Scheduling *s, ScheduleKey key, int64_t chosen) {
  return s->overrides->key[key].is_set ? s->overrides->key[key].value : chosen;
}

// Iterations in a block: enough work to be worth handing out, few enough that a chain of additions stays short and
// partial sums stay small beside the data. Shapes alone decide.
static int64_t block_length(const Scheduling *s, bool is_small, int64_t partial_nelems, bool is_across) {
  enum { ELEMENTS = 1 << 16, FEW_ELEMENTS = 1 << 12, LEAST_WITH_PARTIALS = 32 };
  int64_t width = axes_nelems(s->k, s->inner);
  int64_t block = (is_small ? FEW_ELEMENTS : ELEMENTS) / (width > 0 ? width : 1);
  int64_t together = is_across ? LANES : 4, longest = is_across ? LONGEST_CHAIN * LANES : LONGEST_CHAIN;
  block = (clamp(block, 1, INT32_MAX) + together - 1) / together * together;
  int64_t least = width > 0 ? ((int64_t)LEAST_WITH_PARTIALS * partial_nelems + width - 1) / width : LEAST_WITH_PARTIALS;
  return partial_nelems ? clamp(block, clamp(least, 1, LEAST_WITH_PARTIALS), longest) : block;
}

static bool is_within_tensor(const Scheduling *s, AxisSet axes) { // that the kernel reads or writes
  for (size_t i = 0; i < s->k->naccesses; i++)
    if (s->k->accesses[i].value && !(axes & ~access_axes(s->k, &s->k->accesses[i]))) return true;
  return false;
}

// How many blocks an iteration of the kept axes may have, so that partial sums stay small beside the largest tensor; 0:
// any number. Where a tensor varies over all that is cut, kept and summed up to, each block adds up much more of the
// tensor than it leaves. Else operands are spread over more than any of them has, as in the sum of a[i, j] * b[j, k]
// over j, whose partial sums have a result's elements each. Axes alone decide: bits are the same for open extents.
static int64_t most_chunks(const Scheduling *s, const Loop *loop) {
  enum { FEW = 4, MANY = 1024 };
  int64_t most = 0;
  if (loop->is_across || s->is_tiled || s->overrides->key[SCHEDULE_BLOCK].is_set) return 0;
  for (size_t i = 0; i < loop->nroots && most != FEW; i++) {
    if (loop->roots[i].kind != ROOT_REDUCE_OUTER) continue;
    const AxisSet result = s->kept | access_axes(s->k, &s->k->accesses[loop->roots[i].access]);
    if (!is_within_tensor(s, s->cut | result)) most = result ? FEW : MANY;
  }
  return most;
}

static void choose_block(const Scheduling *s, Loop *loop, int64_t partial_nelems) {
  enum { SMALL = 1 << 18 };
  AxisSet axes = (s->outer & ~s->kept) | s->inner;
  bool is_small = axes_nelems(s->k, axes) <= SMALL, is_set = s->overrides->key[SCHEDULE_BLOCK].is_set;
  loop->block = overridden(s, SCHEDULE_BLOCK, block_length(s, is_small, partial_nelems, loop->is_across));
  if (is_set || s->is_tiled || !axes_powers(s->k, axes)) return;
  loop->few_block = block_length(s, true, partial_nelems, loop->is_across);
  loop->many_block = block_length(s, false, partial_nelems, loop->is_across);
  if (loop->few_block != loop->many_block) loop->few_work = SMALL;
}

// Bytes that an outer iteration reads.
static int64_t row_nbytes(const Scheduling *s) {
  const Kernel *k = s->k;
  int64_t nbytes = 0;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    AxisSet axes = access_axes(k, a);
    bool is_stored = false; // past the caches, when there is much
    for (size_t n = 0; n < k->nstores; n++) is_stored |= k->stores[n].access == i;
    if (a->value && !is_stored && (axes & s->outer) && (axes & s->inner))
      nbytes += axes_nelems(k, s->inner) * (int64_t)type_nbytes(a->type);
  }
  return nbytes;
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

// Rows so short that vectors along them are mostly sums across lanes and rests go across lanes instead: one outer axis,
// one inner, and every access along both in the order of rows or of columns.
static bool can_go_across(const Scheduling *s, const Loop *loop) {
  enum { WIDEST = 64 }; // what a row's copy in the first level allows
  const Kernel *k = s->k;
  if (s->is_tiled || k->is_f64 || loop->nouter != 1 || loop->nkept || loop->ninner != 1) return false;
  int outer = loop->order[0], inner = loop->order[1];
  for (size_t i = 0; i < loop->nroots; i++) // a sum of no row's own would be the same in each lane
    if (loop->roots[i].kind == ROOT_REDUCE_INNER && !(k->exprs[loop->roots[i].expr].axes >> outer & 1)) return false;
  if (k->axes[outer].extent < LANES || k->axes[inner].powers || k->axes[inner].extent < 1 ||
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
static bool should_go_across(const Scheduling *s, const Loop *loop, bool has_inner_sums) {
  int64_t width = axes_nelems(s->k, s->inner);
  bool is_short = has_inner_sums ? width <= LANES || (width % LANES && width < 5 * LANES / 2) : width < LANES;
  return can_go_across(s, loop) && overridden(s, SCHEDULE_ACROSS, is_short);
}

// Vectors of 16-bit numbers fill a line by halves, and lines that wait for their other half are few.
static int count_narrow_stores(const Scheduling *s) {
  int n = 0;
  for (size_t i = 0; i < s->k->nstores; i++) {
    const Access *a = &s->k->accesses[s->k->stores[i].access];
    n += type_nbytes(a->type) < 4 && (access_axes(s->k, a) & s->outer);
  }
  return n;
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

static void choose_steps(const Scheduling *s, Loop *loop) {
  enum {
    COLUMNS_AHEAD = 2 * LANES,
    MANY_ROWS = 16,
    LONG_ROW = 1 << 14,
    TILE = 1 << 15,
    TILE_WITH_SUMS = 1 << 13,
    PAGE = 1 << 10, // of f32
    FEW_ELEMENTS = 1 << 15
  };
  bool has_inner_sums = false;
  int64_t partial_nelems = 0; // of the largest array of partial sums
  for (size_t i = 0; i < loop->nroots; i++) {
    has_inner_sums |= loop->roots[i].kind == ROOT_REDUCE_INNER;
    const Access *a = &s->k->accesses[loop->roots[i].access];
    if (loop->roots[i].kind != ROOT_REDUCE_OUTER || !access_axes(s->k, a)) continue;
    if (access_nelems(s->k, a) > partial_nelems) partial_nelems = access_nelems(s->k, a);
  }
  const bool has_partials = partial_nelems;
  int64_t rows = axes_nelems(s->k, s->outer), width = axes_nelems(s->k, s->inner);
  loop->is_serial = rows * width <= FEW_ELEMENTS;
  if (axes_powers(s->k, s->outer | s->inner)) loop->serial_work = FEW_ELEMENTS;
  loop->is_across = s->is_column || should_go_across(s, loop, has_inner_sums);
  bool can_share_rows = !loop->is_across && !loop->is_nested && loop->nouter && rows >= MANY_ROWS &&
                        width <= LONG_ROW && (loop->ninner == 1 || has_short_runs(s));
  if (s->is_tiled) loop->tile = overridden(s, SCHEDULE_TILE, has_inner_sums ? TILE_WITH_SUMS : TILE);
  choose_block(s, loop, partial_nelems);
  loop->most_chunks = most_chunks(s, loop);
  if (s->is_column) loop->block = (loop->block + LANES - 1) / LANES * LANES;
  if (s->is_column && rows * width > FEW_ELEMENTS)
    loop->prefetch = (int)overridden(s, SCHEDULE_PREFETCH, COLUMNS_AHEAD);
  if (loop->is_across) return;
  if (has_inner_sums) loop->accumulators = (int)overridden(s, SCHEDULE_ACCUMULATORS, can_share_rows ? 1 : 4);
  if (can_share_rows && loop->accumulators == 1) {
    int most = s->target->vector_registers < 16 ? 2 : 4, narrow = count_narrow_stores(s);
    if (loop->ninner == 1 && narrow) most = narrow > 1 ? 1 : 2;
    // What is looked at again must stay in the first level, unless shared partial sums are worth more.
    while (has_inner_sums && !has_partials && most > 1 && most * row_nbytes(s) > s->target->l1_nbytes) most /= 2;
    bool are_shared = has_inner_sums || has_partials || width >= PAGE; // shorter ones are best one behind the other
    loop->rows = has_middle_scalars(s, loop) ? 1 : (int)overridden(s, SCHEDULE_ROWS, are_shared ? most : 1);
  }
}

// Elements of an access that stay in the caches.
static int64_t cached_nelems(const Scheduling *s, const Access *a) {
  return 2 * s->target->l2_nbytes / (int64_t)type_nbytes(a->type);
}

static bool is_worth_streaming(const Scheduling *s, const Access *a) {
  return overridden(s, SCHEDULE_STREAM, access_nelems(s->k, a) > cached_nelems(s, a));
}

// Whether some row of an access begins within a cache line though the tensor begins one.
static bool has_rows_within_lines(const Scheduling *s, const Access *a) {
  enum { LINE = 64 };
  for (int axis = 0; axis < s->k->naxes; axis++)
    if (axis != s->vector_axis &&
        kernel_factor(s->k, a->stride[axis], a->stride_powers[axis]) * (int64_t)type_nbytes(a->type) % LINE)
      return true;
  return false;
}

// Vectors of rows that begin within cache lines fill these by parts, which is slow where several tensors' lines wait
// for the rest of theirs at the same time: such stores are made in a sweep each, as long as what they read again has
// not left the second level.
static void part_stores(const Scheduling *s, Loop *loop) {
  const int last = loop->nsweeps - 1;
  bool has_store = false, has_sums = false;
  for (size_t i = 0; i < loop->nroots; i++)
    has_sums |= loop->roots[i].sweep == last && loop->roots[i].kind != ROOT_STORE;
  if (s->is_tiled || loop->is_across || loop->rows > 1 || !loop->nouter || has_sums) return;
  if (!overridden(s, SCHEDULE_APART, row_nbytes(s) <= s->target->l2_nbytes / 2)) return;
  for (size_t i = 0; i < loop->nroots; i++) {
    Root *root = &loop->roots[i];
    const Access *a = &s->k->accesses[root->access];
    if (root->sweep != last || a->stride[s->vector_axis] != 1 || !has_rows_within_lines(s, a)) continue;
    if (has_store) root->sweep = loop->nsweeps++;
    has_store = true;
  }
}

// Long rows that do not all begin a cache line: a sweep with one store and no sums may begin where a line does.
static bool should_peel(const Scheduling *s, const Loop *loop) {
  enum { LONG_RUN = 1 << 12 };
  const Kernel *k = s->k;
  const Root *store = NULL;
  if (loop->is_across || s->is_tiled || loop->rows > 1 || k->is_f64) return false;
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_STORE && loop->roots[i].sweep == loop->nsweeps - 1) store = &loop->roots[i];
  if (!store || k->axes[s->vector_axis].extent < LONG_RUN || k->axes[s->vector_axis].powers) return false;
  for (size_t i = 0; i < loop->nroots; i++)
    if (&loop->roots[i] != store && loop->roots[i].sweep == store->sweep) return false;
  const Access *a = &k->accesses[store->access];
  return a->value && a->type == TYPE_F32 && a->stride[s->vector_axis] == 1 && has_rows_within_lines(s, a) &&
         is_worth_streaming(s, a);
}

// Stores go past the caches when they would not stay there, and every row of them starts a cache line; across lanes,
// every LANES rows that lie one behind the other.
static bool can_stream(const Scheduling *s, const Loop *loop, const Root *store) {
  const Kernel *k = s->k;
  const Access *a = &k->accesses[store->access];
  if (!a->value || !type_is_float(a->type) || k->is_f64 != (a->type == TYPE_F64) || a->stride[s->vector_axis] != 1)
    return false;
  const bool is_peeled = loop->is_peeled && store->sweep == loop->nsweeps - 1;
  if (!loop->is_across || s->is_column) return is_peeled || !has_rows_within_lines(s, a);
  return a->stride[loop->order[0]] == k->axes[s->vector_axis].extent &&
         a->stride_powers[loop->order[0]] == k->axes[s->vector_axis].powers;
}

// Whether two blocks may write halves of one byte: each must be neighbours in memory, from a whole byte on.
static bool shares_bytes(const Kernel *k, const Loop *loop, const Access *a) {
  int64_t nelems = loop->tile ? loop->tile : loop->block, next = 1;
  bool is_dense = !loop->nkept && a->offset % 2 == 0 && !a->offset_powers;
  if (!type_is_packed(a->type)) return false;
  for (int i = loop->nouter + loop->ninner - 1; i >= 0; i--) {
    is_dense &= a->stride[loop->order[i]] == next && !a->stride_powers[loop->order[i]];
    is_dense &= !k->axes[loop->order[i]].powers || i == 0; // of the slowest nothing depends on the extent
    next *= k->axes[loop->order[i]].extent;
    if (i >= loop->nouter && !loop->tile) nelems *= k->axes[loop->order[i]].extent;
  }
  return !is_dense || nelems % 2 || loop->most_chunks ||
         (loop->few_work && (loop->few_block % 2 || loop->many_block % 2));
}

static void choose_streams(const Scheduling *s, Loop *loop) {
  bool is_set = s->overrides->key[SCHEDULE_STREAM].is_set;
  for (size_t i = 0; i < loop->nroots; i++) {
    Root *root = &loop->roots[i];
    const Access *a = &s->k->accesses[root->access];
    if (root->kind != ROOT_STORE || !can_stream(s, loop, root)) continue;
    bool is_open = !is_set && axes_powers(s->k, access_axes(s->k, a));
    root->is_streamed = is_open || is_worth_streaming(s, a);
    root->stream_nelems = is_open ? cached_nelems(s, a) : 0;
  }
}

void schedule_choose_numbers(const Scheduling *s, Loop *loop) {
  choose_steps(s, loop);
  part_stores(s, loop);
  for (size_t i = 0; i < loop->nroots; i++) {
    const Root *root = &loop->roots[i];
    if (root->kind != ROOT_STORE || !shares_bytes(s->k, loop, &s->k->accesses[root->access])) continue;
    loop->is_serial = true;
    loop->serial_work = 0;
  }
  loop->is_peeled = should_peel(s, loop);
  choose_streams(s, loop);
  loop->is_backwards = loop->nsweeps > 1 && loop->ninner > 1 && row_nbytes(s) > s->target->l2_nbytes / 2;
}
