// Chooses, for a target, everything that does not affect bits: rows per micro-kernel, register tiles (rows and
// vectors), columns and blocks of products, serial or parallel, separate sweeps for stores, peeling, streamed stores,
// the direction of the last sweep.
#include "passes/schedule/tune/tune.h"

#include "ir/kernel/scatter.h"
#include "passes/costs/costs.h"

typedef struct Tuning {
  const Kernel *k;
  const Target *target;
  const ScheduleOverrides *overrides;
  AxisSet outer, inner; // of the current loop
} Tuning;

static bool has_dense_lanes(const Loop *loop) {
  return loop_has(loop, LOOP_ROW_LANES) && loop_outer_axes(loop) >> loop->dense_axis & 1;
}

// Bytes that an outer iteration reads from tensors that vary over outer and inner axes.
static int64_t row_nbytes(const Tuning *t) {
  const Kernel *k = t->k;
  int64_t nbytes = 0;
  for (AccessId i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    AxisSet axes = access_axes(k, a);
    const bool is_stored = kernel_stores(k, i); // large stores are streamed and do not occupy the caches
    if (a->value && !is_stored && (axes & t->outer) && (axes & t->inner))
      nbytes +=
          (a->nbounds ? access_nelems_along(k, a, t->inner) : axes_nelems(k, t->inner)) * (int64_t)type_nbytes(a->type);
  }
  return nbytes;
}

// Counts stores of 16-bit types: a vector of them fills half of a cache line, and a core has few buffers for
// half-filled lines.
static int count_narrow_stores(const Tuning *t) {
  int n = 0;
  for (size_t i = 0; i < t->k->nstores; i++) {
    const Access *a = &t->k->accesses[t->k->stores[i].access];
    n += type_nbytes(a->type) < 4 && (access_axes(t->k, a) & t->outer);
  }
  return n;
}

// Whether neighbouring rows should be computed together because their runs along the vector axis are short and adjacent
// in memory. Each iteration of the middle axes loads such a run from elsewhere, which costs more than computing with
// it.
static bool are_neighbours(const Tuning *t, const Loop *loop) {
  return loop->may_share_rows && loop_has_roots(loop, ROOT_REDUCE_INNER) && !loop_has_roots(loop, ROOT_REDUCE_OUTER) &&
         loop->ninner > 1 && row_nbytes(t) > t->target->l1_nbytes;
}

// The time of the slowest thread for its rows, `together` rows in a micro-kernel, in units of a row's work if the data
// is in the cache. The remaining rows are computed one by one.
static int64_t neighbours_cost(const Tuning *t, int64_t together) {
  const int64_t misses = t->k->costs->neighbour_misses;
  const int64_t nrows = axes_nelems(t->k, t->outer), threads = t->target->threads;
  const int64_t nblocks = nrows / together, rest = nrows % together * (misses + 1), block = misses + together;
  const int64_t most = (nblocks + threads - 1) / threads * block, least = nblocks / threads * block;
  return most > least + rest ? most : least + rest;
}

// The rows per micro-kernel of least cost whose adjacent runs are short enough.
static int choose_neighbours(const Tuning *t, const Loop *loop) {
  const int64_t most = schedule_keys[SCHEDULE_ROWS].most, nbytes = t->k->costs->neighbour_run;
  const int64_t run = t->k->axes[loop_vector_axis(loop)].extent * (int64_t)sizeof(float);
  int best = 1;
  for (int rows = 2; rows <= most && rows * run <= nbytes && rows <= axes_nelems(t->k, t->outer); rows++)
    if (neighbours_cost(t, rows) < neighbours_cost(t, best)) best = rows;
  return best;
}

// A micro-kernel with several rows loads vectors that are the same for all rows only once, and loads and stores partial
// sums once.
static int choose_rows(const Tuning *t, const Loop *loop) {
  if (!loop->may_share_rows) return 1;
  const bool is_long = t->target->code == CODE_SCALAR && t->k->is_f64; // two rows of f64 take 3 kB of the stack
  if (t->target->code == CODE_SMALL || is_long) return (int)schedule_number(t->overrides, SCHEDULE_ROWS, 1);
  const bool has_sums = loop_has_roots(loop, ROOT_REDUCE_INNER), has_partials = loop_has_partial_arrays(t->k, loop);
  int most = t->target->vector_registers < 16 ? 2 : 4, narrow = count_narrow_stores(t);
  if (loop->ninner == 1 && narrow) most = narrow > 1 ? 1 : 2;
  // Data that later sweeps load again must fit in the L1 cache, unless fewer loads and stores of partial sums gain
  // more.
  while (has_sums && !has_partials && most > 1 && most * row_nbytes(t) > t->target->l1_nbytes) most /= 2;
  const bool are_shared =
      has_sums || has_partials ||
      axes_nelems(t->k, t->inner) >= t->k->costs->rows_inner_nelems; // else several rows gain nothing
  if (are_neighbours(t, loop)) most = choose_neighbours(t, loop);
  return (int)schedule_number(t->overrides, SCHEDULE_ROWS, are_shared ? most : 1);
}

// Elements of a result that stay in the caches until the next use of the result.
static int64_t cached_nelems(const Tuning *t, const Access *a) {
  return 2 * t->target->l2_nbytes / (int64_t)type_nbytes(a->type);
}

// All slices of a tensor count. Values that a slice group's kernels (which run slice by slice) store for each other are
// read soon, and are not streamed.
static bool is_worth_streaming(const Tuning *t, const Access *a) {
  const SlicedTensor *tensor = t->k->slice_group && a->value ? slice_group_find(t->k->slice_group, a->value) : NULL;
  const int64_t nslices = tensor ? t->k->slice_group->nslices : 1;
  if (tensor && tensor->is_passed_on) return false;
  return schedule_number(t->overrides, SCHEDULE_STREAM,
                         axes_nelems(t->k, access_axes(t->k, a)) > cached_nelems(t, a) / nslices);
}

// Whether some row of the access begins inside of a cache line although the tensor begins at a cache line.
static bool has_rows_within_lines(const Tuning *t, const Loop *loop, const Access *a) {
  for (int axis = 0; axis < t->k->naxes; axis++)
    if (axis != loop->dense_axis &&
        kernel_factor(t->k, a->stride[axis], a->stride_monomial[axis]) * (int64_t)type_nbytes(a->type) % LINE_NBYTES)
      return true;
  return false;
}

// Vectors of rows that begin inside of cache lines fill parts of two lines. With several such tensors, many half-filled
// lines wait at the same time, which is slow. Each such store gets its own sweep, if the data that the sweep loads
// again is still in the L2 cache.
static void split_stores(const Tuning *t, Loop *loop) {
  const int last = loop->nsweeps - 1;
  bool has_store = false, has_sums = false;
  for (size_t i = 0; i < loop->nroots; i++)
    has_sums |= loop->roots[i].sweep == last && loop->roots[i].kind != ROOT_STORE;
  if (loop_tile(loop) || loop_has(loop, LOOP_ROW_LANES) || loop->rows > 1 || !loop->nouter || has_sums) return;
  const bool is_split = t->target->code != CODE_SMALL && row_nbytes(t) <= t->target->l2_nbytes / 2;
  if (!schedule_number(t->overrides, SCHEDULE_SEPARATE, is_split)) return;
  for (size_t i = 0; i < loop->nroots; i++) {
    Root *root = &loop->roots[i];
    const Access *a = &t->k->accesses[root->access];
    if (root->sweep != last || a->stride[loop->dense_axis] != 1 || !has_rows_within_lines(t, loop, a)) continue;
    if (has_store) root->sweep = loop->nsweeps++;
    has_store = true;
  }
}

// The store whose rows the last sweep peels: of long rows, some of which begin inside of cache lines. It must be the
// sweep's only store of vectors, and the sweep must have no sums, as peeling would change their order of additions.
// NULL: rows are not peeled.
static const Access *peeled_store(const Tuning *t, const Loop *loop) {
  const Kernel *k = t->k;
  const Axis *dense = &k->axes[loop->dense_axis];
  const Access *a = NULL;
  if (loop_has(loop, LOOP_ROW_LANES) || loop_tile(loop) || k->is_f64 || dense->extent < k->costs->peel_row ||
      dense->monomial || t->target->code == CODE_SMALL)
    return NULL;
  for (const Root *root = loop->roots; root < loop->roots + loop->nroots; root++) {
    const bool is_scalar = root->kind == ROOT_STORE && !(root_axes(k, root) >> loop->dense_axis & 1);
    if (root->sweep != loop->nsweeps - 1 || is_scalar) continue;
    if (root->kind != ROOT_STORE || a) return NULL;
    a = &k->accesses[root->access];
  }
  const bool is_peeled =
      a && a->value && a->type == TYPE_F32 && a->stride[loop->dense_axis] == 1 && has_rows_within_lines(t, loop, a);
  return is_peeled ? a : NULL;
}

// The peeled sweep takes the rows of a micro-kernel one by one. If they are streamed, more of them only hide each
// other's latencies, unless the micro-kernel adds them up.
static void limit_streamed_rows(const Tuning *t, Loop *loop) {
  const Access *a = peeled_store(t, loop);
  if (a && loop->rows > t->k->costs->peel_rows && is_worth_streaming(t, a) && !loop_has_partial_arrays(t->k, loop))
    loop->rows = (int)t->k->costs->peel_rows;
}

// Whether a store can be streamed: every row begins at a cache line, or is peeled. With rows in lanes, every group of
// LANES rows must begin at a cache line, and rows must have no gaps between them.
static bool can_stream(const Tuning *t, const Loop *loop, const Root *store) {
  const Kernel *k = t->k;
  const Access *a = &k->accesses[store->access];
  if (!a->value || !type_is_float(a->type) || k->is_f64 != (a->type == TYPE_F64) || a->stride[loop->dense_axis] != 1)
    return false;
  if ((loop_tile(loop) || loop_has(loop, LOOP_ROW_LANES)) && !cut_is_multiple(&loop->cut, LANES))
    return false; // only overrides choose such numbers
  const Axis *dense = &k->axes[loop->dense_axis];
  if (!loop_has(loop, LOOP_ROW_LANES) && dense->extent < LANES && !dense->monomial) return false; // no vector is whole
  const bool is_peeled = loop->is_peeled && store->sweep == loop->nsweeps - 1;
  if (!loop_has(loop, LOOP_ROW_LANES) || has_dense_lanes(loop)) return is_peeled || !has_rows_within_lines(t, loop, a);
  return a->stride[loop->axes[0]] == k->axes[loop->dense_axis].extent &&
         a->stride_monomial[loop->axes[0]] == k->axes[loop->dense_axis].monomial;
}

static void choose_streams(const Tuning *t, Loop *loop) {
  bool is_set = t->overrides->key[SCHEDULE_STREAM].is_set;
  for (size_t i = 0; i < loop->nroots && t->target->code != CODE_SMALL; i++) {
    Root *root = &loop->roots[i];
    const Access *a = &t->k->accesses[root->access];
    if (root->kind != ROOT_STORE || !can_stream(t, loop, root)) continue;
    bool is_open = !is_set && axes_monomial(t->k, access_axes(t->k, a));
    root->is_streamed = is_open || is_worth_streaming(t, a);
    root->stream_nelems = is_open ? cached_nelems(t, a) : 0;
  }
}

// Loops of little work, in elements or multiplications, run on one thread, as starting threads costs more.
static void choose_threads(const Tuning *t, Loop *loop, int64_t little) {
  loop->is_serial = axes_nelems(t->k, t->outer | t->inner) <= little;
  if (axes_monomial(t->k, t->outer | t->inner)) loop->serial_work = little;
}

static int64_t whole_steps(const Loop *loop, int64_t nrows) { // rounded up
  return (nrows + loop->rows - 1) / loop->rows * loop->rows;
}

// Sets the length of blocks, unless it decides bits.
static void set_block(Loop *loop, int64_t length) {
  if (!loop_has_roots(loop, ROOT_REDUCE_OUTER)) loop->cut.length = length;
}

// Products. The registers hold a micro-kernel's accumulators, one for each of `rows` rows and `vectors` vectors, and
// beside them all vectors and one row's scalar. With more than FEW_VECTORS (tree_passes.h), they hold all rows' scalars
// and one vector: as many, if there are no more rows than vectors, else the compiler keeps some scalars in memory.
static int64_t tile_registers(int64_t rows, int64_t vectors) {
  return rows * vectors + vectors + 1;
}

// The time of a micro-kernel: its rows, as fewer than tile_least_rows do not fill the pipelines, and loading the
// vectors.
static int64_t step_cost(const Costs *c, int64_t rows) {
  return (rows > c->tile_least_rows ? rows : c->tile_least_rows) + c->tile_loads;
}

// The time for all rows of an index on the batch axes: `together` rows in a micro-kernel, and the remaining rows in
// another.
static int64_t product_cost(const Costs *c, int64_t nrows, int64_t together) {
  return nrows / together * step_cost(c, together) + (nrows % together ? step_cost(c, nrows % together) : 0);
}

// Whether the product's loop itself loads the access, rather than a loop that copies the tensor. Of a computed factor,
// all accesses count.
static bool is_loaded(const Tuning *t, const Loop *loop, AccessId access) {
  bool is_any = false;
  for (size_t i = 0; i < loop->nroots; i++) {
    if (loop->roots[i].kind != ROOT_REDUCE_INNER) continue;
    const Expr *product = &t->k->exprs[t->k->exprs[loop->roots[i].expr].args[0]];
    for (int a = 0; a < 2; a++) {
      const Expr *e = &t->k->exprs[product->args[a]];
      is_any |= e->op != EXPR_LOAD || e->access == access;
    }
  }
  return is_any;
}

// Whether rows of a factor that is read from its tensor are multiples of a page apart: then the elements that a
// micro-kernel reads at the same time are in a single set of the L1 cache.
static bool has_aliased_rows(const Tuning *t, const Loop *loop) {
  const int middle = loop->axes[loop->nouter + loop->ninner - 2];
  bool is_any = false;
  for (AccessId i = 0; loop->nouter && i < t->k->naccesses; i++) {
    const Access *a = &t->k->accesses[i];
    const int64_t pitch = a->stride[loop->axes[loop->nouter - 1]];
    is_any |= is_loaded(t, loop, i) && pitch && pitch * (int64_t)type_nbytes(a->type) % PAGE_NBYTES == 0 &&
              a->stride[middle] == 1;
  }
  return is_any;
}

static int choose_product_rows(const Tuning *t, const Loop *loop, int most) {
  const Costs *c = t->k->costs;
  const bool has_block = loop_has_roots(loop, ROOT_REDUCE_OUTER);
  const int64_t nrows = has_block ? loop->cut.length : axes_nelems(t->k, loop_cut_axes(loop));
  const int64_t ways = t->target->l1_nbytes / PAGE_NBYTES; // of the L1 cache, whose sets cover a page
  if (has_aliased_rows(t, loop) && ways && most > ways) most = (int)ways;
  if (axes_monomial(t->k, loop_cut_axes(loop)) && !has_block) return most;
  if (nrows < most) most = nrows > 1 ? (int)nrows : 1;
  int best = most;
  for (int rows = most; rows >= 1; rows--)
    if (product_cost(c, nrows, rows) < product_cost(c, nrows, best)) best = rows;
  return best;
}

// Rows in a block: few enough that their factors stay in the L2 cache for all columns, and that each thread has several
// blocks; but product_block_rows if a block would have fewer, as reading all vectors again for each block would take
// longer than reading the rows' factors from beyond the L2 cache.
static int64_t product_block(const Tuning *t, const Loop *loop) {
  const Kernel *k = t->k;
  const int64_t nbytes = axes_nelems(k, loop_middle_axes(loop)) * (int64_t)(k->is_f64 ? sizeof(double) : sizeof(float));
  const int64_t nrows = axes_nelems(k, loop_cut_axes(loop)), threads = t->target->threads;
  int64_t block = t->target->l2_nbytes / 2 / (nbytes > 0 ? nbytes : 1);
  if (block < k->costs->product_block_rows) block = k->costs->product_block_rows;
  const int64_t nbatch = axes_nelems(k, t->outer & ~loop_cut_axes(loop)),
                least = k->costs->product_thread_blocks * threads;
  // Rounded up to whole micro-kernels, so that there are not one or two blocks more than threads can divide evenly.
  const int64_t even = (nrows * nbatch + least - 1) / least;
  if (nbatch * ((nrows + block - 1) / block) < least && even < block)
    return even > 0 ? whole_steps(loop, even) : loop->rows;
  return block > loop->rows ? block / loop->rows * loop->rows : loop->rows;
}

static bool has_bounded_rows(const Tuning *t, const Loop *loop) {
  for (size_t i = 0; i < t->k->naccesses; i++)
    if (access_has_conditions(t->k, &t->k->accesses[i]) &&
        access_axes(t->k, &t->k->accesses[i]) & loop_cut_axes(loop) && is_loaded(t, loop, (AccessId)i))
      return true;
  return false;
}

// As many vectors as the vector axis has, at most `most`.
static int count_vectors(const Tuning *t, const Loop *loop, int64_t most) {
  const Axis *axis = &t->k->axes[loop_vector_axis(loop)];
  const int64_t vectors = (axis->extent + LANES - 1) / LANES;
  return (int)(axis->monomial || vectors > most ? most : vectors > 1 ? vectors : 1);
}

// Chooses the register tile. A micro-kernel of few rows leaves registers for more vectors, which read longer pieces of
// memory.
static void choose_tile(const Tuning *t, Loop *loop) {
  const Costs *c = t->k->costs;
  const int registers = t->target->vector_registers / (t->k->is_f64 ? 2 : 1);
  int vectors = registers >= c->tile_two_vectors && c->tile_vectors > 1 ? 2 : 1;
  const int most = (registers - (int)tile_registers(0, vectors)) / vectors;
  const int rows = choose_product_rows(t, loop, most > 1 ? most : 1);
  if (!axes_monomial(t->k, loop_cut_axes(loop)))
    while (vectors < c->tile_vectors && tile_registers(rows, vectors + 1) <= registers) vectors++;
  loop->vectors = count_vectors(t, loop, vectors);
  loop->rows = (int)schedule_number(t->overrides, SCHEDULE_ROWS, rows);
  if (has_bounded_rows(t, loop)) loop->rows = 1; // conditions differ between rows
}

// Whether results are far apart along the vectors, and not next to each other along rows, so that each is stored alone:
// those of several rows share cache lines, and those of many columns are in as many pages.
static bool scatters_results(const Tuning *t, const Loop *loop) {
  const int rows = loop->axes[loop->nouter - 1], vectors = loop_vector_axis(loop);
  bool is_any = false;
  for (size_t i = 0; i < loop->nroots; i++) {
    const Access *a = &t->k->accesses[loop->roots[i].access];
    is_any |= loop->roots[i].kind == ROOT_STORE && a->stride[vectors] > 1 && a->stride[rows] != 1;
  }
  return is_any;
}

// Columns of a micro-kernel. For short sums, several groups of vectors, so that a row's results are long runs of
// memory, but so few that the factor of these columns stays in the L2 cache from one micro-kernel to the next.
static int64_t choose_columns(const Tuning *t, const Loop *loop) {
  const Kernel *k = t->k;
  const int axis = loop_vector_axis(loop);
  const int64_t group = (int64_t)loop->vectors * LANES, length = axes_nelems(k, loop_middle_axes(loop));
  const int64_t nbytes = group * length * (int64_t)(k->is_f64 ? sizeof(double) : sizeof(float));
  if (t->target->code == CODE_SMALL && !k->axes[axis].monomial)
    return (k->axes[axis].extent + LANES - 1) / LANES * LANES;
  if (axes_monomial(k, t->inner) || !nbytes || scatters_results(t, loop)) return group;
  int64_t groups = t->target->l2_nbytes / k->costs->product_columns_share / nbytes;
  if (groups > k->axes[axis].extent / group) groups = k->axes[axis].extent / group;
  return groups > 1 ? groups * group : group;
}

static bool exceeds_l2(const Tuning *t, const Access *a) {
  return access_nelems_along(t->k, a, ~0U) * (int64_t)type_nbytes(a->type) > t->target->l2_nbytes;
}

// Whether the access loads vectors of a factor that is larger than the L2 cache, at distances of at least a page:
// processors prefetch only within a page. (At distances of 4000 bytes, prefetching was measured to be slower.)
static bool loads_from_pages(const Tuning *t, const Loop *loop, AccessId id) {
  const Access *a = &t->k->accesses[id];
  const int middle = loop->axes[loop->nouter + loop->ninner - 2];
  return a->value && !a->nbounds && a->stride[loop_vector_axis(loop)] == 1 &&
         a->stride[middle] * (int64_t)type_nbytes(a->type) >= PAGE_NBYTES && is_loaded(t, loop, id) && exceeds_l2(t, a);
}

// Whether the access loads vectors of a factor that is larger than the L2 cache and has a part for each index on the
// batch axes: the first micro-kernel over a part's rows waits for each column. But all micro-kernels prefetch the next
// columns; with more than fetch_steps, the prefetches cost more than the wait.
static bool loads_parts(const Tuning *t, const Loop *loop, AccessId id) {
  if (axes_nelems(t->k, loop_cut_axes(loop)) > t->k->costs->fetch_steps * loop->rows) return false;
  const Access *a = &t->k->accesses[id];
  const int vector_axis = loop_vector_axis(loop), middle = loop->axes[loop->nouter + loop->ninner - 2];
  const int64_t group = (int64_t)loop->vectors * LANES;
  bool has_parts = false;
  for (int i = 0; i < loop->nbatch; i++) has_parts |= a->stride[loop->axes[i]] > a->stride[middle];
  return has_parts && a->value && !a->nbounds && a->stride[vector_axis] == 1 && a->stride[middle] > group &&
         t->k->axes[vector_axis].extent > group && is_loaded(t, loop, id) && exceeds_l2(t, a);
}

// The distance to the columns that are prefetched.
static int choose_columns_ahead(const Tuning *t, const Loop *loop) {
  int groups = 0; // of vectors
  if (axes_monomial(t->k, t->outer | t->inner)) return 0;
  for (AccessId i = 0; i < t->k->naccesses; i++)
    if (loads_from_pages(t, loop, i)) groups = 2;
    else if (!groups && loads_parts(t, loop, i)) groups = 1;
  return (int)schedule_number(t->overrides, SCHEDULE_AHEAD, (int64_t)groups * loop->vectors * LANES);
}

// Whether the access loads vectors through windows of a copy that is larger than the L2 cache. The next windows overlap
// the current windows; their new elements are small pieces of memory, which processors do not prefetch.
static bool loads_windows(const Tuning *t, const Loop *loop, AccessId id) {
  const Access *a = &t->k->accesses[id];
  return !a->value && a->nbounds && a->stride[loop_vector_axis(loop)] == 1 && is_loaded(t, loop, id) &&
         loop_axis_outside_windows(t->k, loop, id) >= 0 && exceeds_l2(t, a);
}

static int choose_windows_ahead(const Tuning *t, const Loop *loop) {
  bool has_windows = false;
  for (AccessId i = 0; i < t->k->naccesses; i++) has_windows |= loads_windows(t, loop, i);
  return has_windows ? (int)schedule_number(t->overrides, SCHEDULE_PREFETCH, 1) : 0;
}

// Whether to prefetch the next micro-kernel's rows: a factor that is larger than the L2 cache has contiguous rows, so
// that a micro-kernel would wait for the beginning of each row. With a sum longer than fetch_rows_sum, the wait is a
// small part of the time.
static bool choose_fetch_of_rows(const Tuning *t, const Loop *loop) {
  bool is_far = false;
  if (axes_nelems(t->k, loop_middle_axes(loop)) > t->k->costs->fetch_rows_sum) return false;
  for (AccessId i = 0; i < t->k->naccesses; i++)
    is_far |= loop_has_contiguous_rows(t->k, loop, i) && is_loaded(t, loop, i) && exceeds_l2(t, &t->k->accesses[i]);
  return is_far;
}

static void tune_product(Tuning *t, Loop *loop) {
  choose_tile(t, loop);
  loop->columns = choose_columns(t, loop);
  loop->ahead = choose_columns_ahead(t, loop);
  loop->prefetch = choose_windows_ahead(t, loop);
  loop->fetches_rows = choose_fetch_of_rows(t, loop);
  set_block(loop, product_block(t, loop));
  choose_threads(t, loop, t->k->costs->serial_products);
}

// The rows of a micro-kernel are all taps of a window, or of its last axis. A micro-kernel has as many vectors as there
// are registers for the sums, beside a vector of the factor that all rows use.
static void tune_depthwise(const Tuning *t, Loop *loop) {
  const int most = (int)t->k->costs->depthwise_vectors;
  const int registers = t->target->vector_registers / (t->k->is_f64 ? 2 : 1) - 1;
  int64_t rows = 1;
  for (int i = loop->nouter - 1; i >= loop->nbatch; i--) {
    const int64_t extent = t->k->axes[loop->axes[i]].extent;
    if (extent * rows > registers) break;
    rows *= extent;
  }
  if (rows > 1) loop->rows = (int)rows;
  set_block(loop, rows > 1 ? rows : axes_nelems(t->k, loop_cut_axes(loop)));
  if (!loop_sums_in_lanes(loop)) return;
  loop->vectors = count_vectors(t, loop, registers / loop->rows < most ? registers / loop->rows : most);
}

// Whether the loop copies a tensor into panels: each iteration stores a part of every panel, next to the previous
// iteration's part.
static bool copies_into_panels(const Tuning *t, const Loop *loop) {
  const Root *root = loop->roots;
  if (loop->nroots != 1 || !loop->nouter || loop_has(loop, LOOP_ROW_LANES) || root->kind != ROOT_STORE) return false;
  const Expr *e = &t->k->exprs[root->expr];
  const Access *to = &t->k->accesses[root->access];
  return e->op == EXPR_LOAD && !e->args[0] && !access_has_conditions(t->k, &t->k->accesses[e->access]) &&
         !axes_monomial(t->k, t->outer | t->inner) && to->stride[loop->axes[loop->nouter - 1]] > 1 &&
         to->stride[loop->axes[loop->nouter - 1]] < axes_nelems(t->k, t->inner);
}

// Panels are far apart, in memory that uses few sets of the caches and many pages. With several rows in a micro-kernel,
// more of a panel's cache lines are filled at once.
static void tune_copy(Tuning *t, Loop *loop) {
  const Costs *c = t->k->costs;
  t->outer = loop_outer_axes(loop);
  t->inner = loop_inner_axes(loop);
  if (!copies_into_panels(t, loop)) return;
  const int64_t nrows = axes_nelems(t->k, t->outer), threads = t->target->threads;
  const int64_t least = threads > 1 ? c->copying_blocks * threads : 1;
  loop->rows = (int)c->copying_rows;
  while (loop->rows > 1 && nrows < loop->rows * least) loop->rows /= 2;
  set_block(loop, whole_steps(loop, loop->cut.length));
}

static void tune_loop(Tuning *t, Loop *loop) {
  const Costs *c = t->k->costs;
  t->outer = loop_outer_axes(loop);
  t->inner = loop_inner_axes(loop);
  if (loop_has(loop, LOOP_COLUMNS)) {
    tune_product(t, loop);
    return;
  }
  if (kernel_is_scatter(t->k)) {
    choose_threads(t, loop, c->serial_work);
    return;
  }
  loop->rows = choose_rows(t, loop);
  if (!t->overrides->key[SCHEDULE_ROWS].is_set) limit_streamed_rows(t, loop);
  set_block(loop, are_neighbours(t, loop) && loop->rows > 1 ? loop->rows : whole_steps(loop, loop->cut.length));
  choose_threads(t, loop, c->serial_work);
  if (has_dense_lanes(loop) && !loop->is_serial)
    loop->prefetch = (int)schedule_number(t->overrides, SCHEDULE_PREFETCH, c->fetch_columns);
  loop->vectors = loop_sums_in_lanes(loop) ? count_vectors(t, loop, t->target->vector_registers / 2) : 0;
  if (loop_has(loop, LOOP_TAPS)) tune_depthwise(t, loop);
  split_stores(t, loop);
  loop->is_peeled = peeled_store(t, loop);
  choose_streams(t, loop);
  loop->is_backwards = loop->nsweeps > 1 && loop->ninner > 1 && row_nbytes(t) > t->target->l2_nbytes / 2;
  loop_sort_roots(loop);
}

bool schedule_tune_loops(Schedule *s, const Target *target, const ScheduleOverrides *overrides) {
  Tuning t = {.k = s->kernel, .target = target, .overrides = overrides};
  for (size_t i = 0; i < s->nloops; i++)
    if (!s->loops[i].is_producer) tune_loop(&t, &s->loops[i]);
    else if (target->code != CODE_SMALL) tune_copy(&t, &s->loops[i]);
  return true;
}
