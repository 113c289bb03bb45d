// Finds contractions: sums of products whose factors lack different axes of the result. Matrix products, convolutions
// and their spellings with broadcasts all have this form. Only axes and strides matter, not the graph's operators.
#include "passes/schedule/order/scheduling.h"

enum { AXES_OF_CUT = 5 }; // that blocks of a long sum and panels may add

// The number of elements accessed with stride 1 along the axis; stored elements count `stored` times.
static int64_t dense_nelems(const Kernel *k, int axis, int64_t stored) {
  int64_t nelems = 0;
  for (AccessId i = 0; i < k->naccesses; i++)
    if (k->accesses[i].stride[axis] == 1)
      nelems += access_nelems(k, &k->accesses[i]) * (kernel_stores(k, i) ? stored : 1);
  return nelems;
}

// How well the axis suits vectors of results; `own` are the axes that only the same factor varies over. 0: vectors
// would not be full. 1: the axis has few columns, so that the other factor is read again for each index on the rest of
// `own`, which takes longer than storing results one by one, as vectors along another axis may have to. 2: the axis
// suits.
static int rank_vector_axis(const Kernel *k, AxisSet own, AxisSet summed, int axis) {
  const int64_t extent = k->axes[axis].extent;
  if (extent < LANES) return 0;
  const bool is_read_again = extent < k->costs->vector_axis_columns && axes_nelems(k, own & ~(1U << axis)) > 1;
  return is_read_again && axes_nelems(k, summed) >= k->costs->vector_axis_sum ? 1 : 2;
}

// The axes that step along an axis of some tensor through a bound.
static AxisSet window_axes(const Kernel *k) {
  AxisSet axes = 0;
  for (size_t i = 0; i < k->naccesses; i++)
    for (size_t b = 0; b < k->accesses[i].nbounds; b++) axes |= bound_axes(&k->accesses[i].bounds[b]);
  return axes;
}

// Whether the factor is dense along the axis: a load with stride 1, or a computed factor, which is stored densely.
static bool is_dense_along(const Kernel *k, ExprId id, int axis) {
  const Expr *e = &k->exprs[id];
  return e->op != EXPR_LOAD || k->accesses[e->access].stride[axis] == 1;
}

// The middle axis along which consecutive products are summed: the innermost one.
static int summed_axis(const Kernel *k, const Product *p) {
  return 31 - __builtin_clz(k->exprs[p->sum].reduced);
}

// Whether the factor is read through a window, so that a copy without windows would be larger than its tensor.
static bool is_window(const Kernel *k, ExprId id) {
  const Expr *e = &k->exprs[id];
  if (e->op != EXPR_LOAD) return schedule_reads_windows(k, id);
  const Access *a = &k->accesses[e->access];
  return a->nbounds || (a->value && axes_nelems(k, e->axes) > shape_nelems(&a->value->shape));
}

// The number of elements that are dense along the axis. If the factor is transposed_times as large as the results
// and must be transposed, its elements are subtracted. Results that are not dense along the axis are stored one by
// one; beside a short sum, storing an element takes as long as loading stored_loads elements of a factor.
static int64_t count_suited(const Kernel *k, ExprId sum, ExprId factor, int axis) {
  const Costs *c = k->costs;
  const Expr *e = &k->exprs[factor];
  const int64_t nelems = axes_nelems(k, e->axes), nresults = axes_nelems(k, k->exprs[sum].axes);
  const bool is_transposed =
      nelems >= c->transposed_times * nresults && !is_dense_along(k, factor, axis) && !window_axes(k);
  const bool is_short = axes_nelems(k, k->exprs[sum].reduced) <= c->stored_sum;
  return dense_nelems(k, axis, is_short ? c->stored_loads : 1) - (is_transposed ? nelems : 0);
}

// The vector axis: among the candidates, which only one factor varies over, the axis of the highest rank, then of most
// suited elements. *factor: the argument of the product that varies over the axis.
static int choose_vector_axis(const Kernel *k, ExprId sum, const AxisSet own[2], AxisSet candidates, int *factor) {
  int best = -1, best_rank = 0;
  int64_t most = 0;
  for (int axis = k->naxes - 1; axis >= 0; axis--) {
    if (!(candidates >> axis & 1)) continue;
    const int of = own[0] >> axis & 1 ? 0 : 1, rank = rank_vector_axis(k, own[of], k->exprs[sum].reduced, axis);
    const int64_t nsuited = count_suited(k, sum, k->exprs[k->exprs[sum].args[0]].args[of], axis);
    if (best >= 0 && (rank < best_rank || (rank == best_rank && nsuited <= most))) continue;
    best = axis, best_rank = rank, most = nsuited;
    *factor = of;
  }
  return best;
}

// The axis of rows along which the factor of rows is dense in memory; -1: none.
static int dense_row_axis(const Kernel *k, const Product *p) {
  const Expr *e = &k->exprs[p->row];
  for (ExprId i = 1; i <= p->row; i++) {
    const Expr *load = &k->exprs[i];
    if (load->op != EXPR_LOAD || (load->axes & ~e->axes) || (e->op == EXPR_LOAD && i != p->row)) continue;
    for (int axis = 0; axis < k->naxes; axis++)
      if (k->accesses[load->access].stride[axis] == 1 && k->exprs[p->sum].axes >> axis & 1) return axis;
  }
  return -1;
}

// Whether a long sum's products can read a factor from its tensor.
static bool is_plain(const Kernel *k, ExprId factor) {
  const Expr *e = &k->exprs[factor];
  if (e->op != EXPR_LOAD || e->args[0] || is_window(k, factor)) return false;
  const Type type = k->accesses[e->access].type;
  return type == TYPE_F32 || type == TYPE_F64;
}

static int64_t summed_pitch(const Kernel *k, const Product *p, ExprId factor) {
  return k->accesses[k->exprs[factor].access].stride[summed_axis(k, p)];
}

// Whether the blocks of a long sum read both factors from their tensors, without a copy: a block's parts of both
// factors must stay in the L2 cache, too.
static bool reads_in_place(const Kernel *k, const Product *p) {
  return is_plain(k, p->row) && dense_row_axis(k, p) >= 0 && is_plain(k, p->vector) &&
         is_dense_along(k, p->vector, p->vector_axis) &&
         summed_pitch(k, p, p->row) + summed_pitch(k, p, p->vector) <= k->costs->long_sum_pitch;
}

bool schedule_rounds_in_place(const Kernel *k, ExprId sum, ExprId factor, int axis) {
  const Expr *e = &k->exprs[factor], *load = &k->exprs[e->args[0]];
  return (e->op == EXPR_ROUND_BF16 || e->op == EXPR_ROUND_F16) && load->op == EXPR_LOAD && !load->args[0] &&
         k->accesses[load->access].stride[axis] == 1 &&
         axes_nelems(k, k->exprs[sum].axes & ~e->axes) < k->costs->copy_rows;
}

bool schedule_packs_vectors(const Kernel *k, const Product *p) {
  const Costs *c = k->costs;
  const Expr *e = &k->exprs[p->vector];
  if (k->axes[p->vector_axis].monomial || axes_monomial(k, e->axes & k->exprs[p->sum].reduced)) return false;
  if (is_window(k, p->vector) || (p->cut.length && !p->cut.is_padded && reads_in_place(k, p))) return false;
  if (schedule_rounds_in_place(k, p->sum, p->vector, p->vector_axis) && !p->cut.length) return false;
  if (e->op != EXPR_LOAD || e->args[0]) return true;
  if (p->in_place && !p->cut.is_padded) return false;
  const Access *a = &k->accesses[e->access];
  const int64_t rows = axes_nelems(k, k->exprs[p->sum].axes & ~e->axes), pitch = a->stride[summed_axis(k, p)];
  if (a->stride[p->vector_axis] != 1) return true;
  if (rows >= c->copy_rows && a->type != TYPE_F32 && a->type != TYPE_F64) return true;
  const bool is_short =
      axes_nelems(k, k->exprs[p->sum].reduced) <= c->copy_sum && pitch > c->copy_pitch && pitch % c->copy_alias;
  if (is_short && rows <= c->copy_many_rows && !p->cut.length) return false;
  if (pitch > c->copy_pitch && ((p->cut.length && rows > LANES) || rows >= c->copy_rows)) return true;
  return pitch > LANES && (p->cut.is_padded || rows >= c->copy_many_rows);
}

bool schedule_packs_rows(const Kernel *k, const Product *p) {
  const Expr *e = &k->exprs[p->row];
  const int64_t columns = axes_nelems(k, k->exprs[p->sum].axes & ~e->axes);
  if (columns < k->costs->copy_columns) return false;
  if (is_window(k, p->row) || (p->cut.length && !p->cut.is_padded && reads_in_place(k, p))) return false;
  if (e->op != EXPR_LOAD || e->args[0]) return true;
  if (p->in_place && !p->cut.is_padded) return false;
  const Access *a = &k->accesses[e->access];
  const int64_t pitch = a->stride[summed_axis(k, p)];
  if (a->type != TYPE_F32 && a->type != TYPE_F64) return true;
  if (pitch > LANES && (p->cut.is_padded || columns >= k->costs->copy_many_columns)) return true;
  return pitch > 1 && (pitch > k->costs->copy_pitch || dense_row_axis(k, p) < 0);
}

// Whether all other reductions reduce the same axes of the sum's results. *rows: these axes; 0: no other reductions.
static bool find_rows(const Kernel *k, ExprId sum, AxisSet *rows) {
  const AxisSet results = k->exprs[sum].axes;
  *rows = 0;
  for (ExprId i = 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i];
    if (!expr_is_reduction(e) || i == sum) continue;
    if ((*rows && e->reduced != *rows) || e->axes != (results & ~e->reduced) || (e->reduced & ~results)) return false;
    *rows = e->reduced;
  }
  return true;
}

// Updates s after a split of the kernel's axes. False: the other reductions no longer reduce rows of the product's
// results.
static bool take_axes(Scheduling *s) {
  const bool is_product = find_rows(s->k, s->product.sum, &s->product.rows);
  schedule_set_product_axes(s);
  return is_product;
}

// Splits the axis of rows along which the factor of rows is dense in memory, if the factor is copied.
bool schedule_panel_rows(Scheduling *s) {
  Kernel *k = s->k;
  Product *p = &s->product;
  if (!has_contraction(s)) return true;
  const int axis = dense_row_axis(k, p);
  if (axis < 0 || k->exprs[p->vector].axes >> axis & 1 || axes_monomial(k, k->exprs[p->row].axes)) return true;
  if (!schedule_packs_rows(k, p) && !schedule_copies_window(k, p, p->row)) return true;
  if (k->axes[axis].extent % PANEL_ROWS || window_axes(k) >> axis & 1 || !kernel_can_split_axis(k, axis)) return true;
  p->panel_axis = axis + 1;
  if (k->axes[axis].extent == PANEL_ROWS) return true;
  return schedule_split_axis(k, p, axis, PANEL_ROWS) && take_axes(s);
}

// Splits the vector axis if the factor of vectors is copied from windows or padded: the copy is in panels of two
// vectors.
bool schedule_panel_vectors(Scheduling *s) {
  Kernel *k = s->k;
  Product *p = &s->product;
  if (!has_contraction(s)) return true;
  const int axis = p->vector_axis;
  if (!(schedule_copies_window(k, p, p->vector) || p->cut.is_padded) || axes_monomial(k, k->exprs[p->vector].axes))
    return true;
  if (window_axes(k) >> axis & 1) return true;
  const int64_t extent = k->axes[axis].extent, panel = (int64_t)2 * LANES;
  if (extent == panel || extent % panel || !kernel_can_split_axis(k, axis)) return true;
  return schedule_split_axis(k, p, axis, panel) && take_axes(s);
}

typedef struct ColumnBlocks { // what is asked of them
  int64_t extent;             // all columns
  int64_t wanted;             // blocks
  int64_t least;              // columns in a block: few rows leave registers for more vectors
} ColumnBlocks;

// The better of two lengths of a block of columns (0: none): the longest that makes as many blocks as are wanted; if
// none does, the shortest. A length must waste at most 1 / column_waste of its vectors' lanes.
static int64_t better_block(const Costs *c, const ColumnBlocks *b, int64_t best, int64_t block) {
  const int64_t missing = (LANES - block % LANES) % LANES, longest = b->extent / b->wanted;
  if (block < b->least || block > b->extent / 2 || missing * c->column_waste > block) return best;
  if (!best) return block;
  if (block <= longest) return best > longest || best < block ? block : best;
  return best < block ? best : block;
}

// The length of a block of columns: a divisor of the extent; 0: none suits. Beyond MOST_DIVISORS * MOST_DIVISORS
// columns, some divisors are not tried.
static int64_t choose_column_block(const Costs *c, const ColumnBlocks *b) {
  int64_t best = 0;
  for (int64_t divisor = 1; divisor <= MOST_DIVISORS && divisor <= b->extent / divisor; divisor++) {
    if (b->extent % divisor != 0) continue;
    best = better_block(c, b, best, divisor);
    best = better_block(c, b, best, b->extent / divisor);
  }
  return best;
}

// The blocks of columns that are wanted beside the micro-kernels of rows, the batch indices and the blocks of a long
// sum.
static ColumnBlocks want_column_blocks(const Scheduling *s) {
  const Kernel *k = s->k;
  const Costs *c = k->costs;
  const Product *p = &s->product;
  const int64_t rows = axes_nelems(k, s->outer & ~s->batch_axes), products = axes_nelems(k, all_axes(k));
  const int64_t nblocks = p->cut.length ? axes_nelems(k, k->exprs[p->sum].reduced) / p->cut.length : 1;
  const int64_t steps = (rows + c->column_rows - 1) / c->column_rows, nbatch = axes_nelems(k, s->batch_axes);
  const int64_t most = products / c->column_work < c->column_blocks ? products / c->column_work : c->column_blocks;
  ColumnBlocks b = {.extent = k->axes[p->vector_axis].extent};
  if (!steps || !nbatch || !nblocks) return b;
  b.wanted = most / steps / nbatch / nblocks; // their product may overflow
  b.least = clamp(c->column_results / rows, (int64_t)2 * LANES, c->column_block);
  return b;
}

// Splits the vector axis if there are few micro-kernels of rows, so that threads divide the columns among them, too. A
// slice is computed by one thread. Windows are copied for all columns: in blocks, gradients by data of 512 channels and
// 3x3 taps took a tenth longer.
bool schedule_split_columns(Scheduling *s) {
  Kernel *k = s->k;
  Product *p = &s->product;
  if (!has_contraction(s) || k->slice_group || axes_monomial(k, all_axes(k)) || window_axes(k)) return true;
  const ColumnBlocks wanted = want_column_blocks(s);
  if (wanted.wanted < 2 || (p->cut.length && k->naxes + AXES_OF_CUT >= MAX_AXES)) return true;
  const int64_t block = choose_column_block(k->costs, &wanted);
  if (!block || !kernel_can_split_axis(k, p->vector_axis)) return true;
  return schedule_split_axis(k, p, p->vector_axis, block) && take_axes(s);
}

// The sum of products whose results all other reductions reduce; 0: none.
static ExprId find_sum(const Kernel *k, AxisSet *rows) {
  for (ExprId i = 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i];
    if (e->op == EXPR_REDUCE_SUM && k->exprs[e->args[0]].op == EXPR_MUL && find_rows(k, i, rows)) return i;
  }
  return 0;
}

// Whether no expression after the sum varies over the reduced axes, and every store varies over all other axes, except
// `rows`, which later reductions may reduce.
static bool has_results_of(const Kernel *k, ExprId sum, AxisSet rows) {
  const AxisSet reduced = k->exprs[sum].reduced, others = all_axes(k) & ~reduced;
  if (k->exprs[sum].axes != others) return false;
  for (ExprId i = sum + 1; i < k->nexprs; i++)
    if (k->exprs[i].axes & reduced) return false;
  for (size_t i = 0; i < k->nstores; i++) {
    const AxisSet axes = store_axes(k, &k->stores[i]);
    if (axes != others && axes != (others & ~rows)) return false;
  }
  return axes_nelems(k, reduced) > 0;
}

// Whether the axis of a factor counts as one of columns: not if the factor is read through windows, and not dense along
// the axis. The batch is none, then, so that its extent does not decide whether this is a product.
static bool are_columns(const Kernel *k, const Expr *product, const AxisSet own[2], int axis) {
  const ExprId factor = product->args[own[0] >> axis & 1 ? 0 : 1];
  return is_dense_along(k, factor, axis) || !schedule_reads_windows(k, factor);
}

// The axes along which vectors may lie. Axes of windows, if long and the factor is dense along them, only if all
// other axes are shorter than window_columns: along these, a scalar of a row would serve few products, and results
// that are far apart take as long to store as to sum.
static AxisSet find_candidates(const Kernel *k, ExprId sum, const AxisSet own[2]) {
  const Expr *product = &k->exprs[k->exprs[sum].args[0]];
  const int64_t many = k->costs->window_columns;
  const AxisSet all = own[0] | own[1], windows = window_axes(k) & all;
  int64_t longest = 0; // of the axes without windows
  AxisSet dense = 0;
  for (AxisSet rest = all; rest; rest &= rest - 1) {
    const int axis = __builtin_ctz(rest);
    const bool is_window = windows >> axis & 1;
    if (is_window && is_dense_along(k, product->args[own[0] >> axis & 1 ? 0 : 1], axis)) dense |= 1U << axis;
    if (!is_window && are_columns(k, product, own, axis) && k->axes[axis].extent > longest)
      longest = k->axes[axis].extent;
  }
  for (AxisSet rest = dense; rest; rest &= rest - 1)
    if (k->axes[__builtin_ctz(rest)].extent < (longest < LANES ? LANES : many)) dense &= ~(rest & -rest);
  if (dense && (longest < many || axes_nelems(k, k->exprs[sum].reduced) <= k->costs->window_sum)) return dense;
  return all & ~windows ? all & ~windows : all;
}

// Whether the other reductions go along rows of results in memory, if these are stored: on their own, they would have
// lanes along the row, but a product adds vector to vector.
static bool sums_rows_along(const Kernel *k, const Product *p) {
  const AxisSet results = k->exprs[p->sum].axes;
  return p->rows && p->rows >> (31 - __builtin_clz(results)) & 1;
}

// The axes that vary with rows in one of the factors: all rows of a block must use the same vectors. Whether other axes
// would suit vectors better decides nothing, as they may be longer in another batch.
static AxisSet sides_of_rows(const Product *p, const AxisSet own[2]) {
  return (p->rows & own[0] ? own[0] : 0) | (p->rows & own[1] ? own[1] : 0);
}

// Whether products through windows have few columns.
static bool has_few_columns(const Kernel *k, const Expr *product, const AxisSet own[2], AxisSet candidates) {
  bool has_few = window_axes(k);
  for (AxisSet rest = candidates; rest; rest &= rest - 1) {
    const int axis = __builtin_ctz(rest);
    has_few &= k->axes[axis].extent < k->costs->product_columns || !are_columns(k, product, own, axis);
  }
  return has_few;
}

Product schedule_find_product(const Kernel *k) {
  const Product none = {0};
  Product p = {0};
  p.sum = find_sum(k, &p.rows);
  const Expr *e = p.sum ? &k->exprs[k->exprs[p.sum].args[0]] : NULL;
  if (!p.sum || !has_results_of(k, p.sum, p.rows) || sums_rows_along(k, &p)) return none;
  const AxisSet of_first = k->exprs[e->args[0]].axes, of_second = k->exprs[e->args[1]].axes;
  const AxisSet others = k->exprs[p.sum].axes, own[] = {of_first & ~of_second & others, of_second & ~of_first & others};
  if (!own[0] || !own[1]) return none;
  int factor = 0;
  const AxisSet candidates = find_candidates(k, p.sum, own), usable = candidates & ~sides_of_rows(&p, own);
  p.vector_axis = choose_vector_axis(k, p.sum, own, usable ? usable : candidates, &factor);
  p.vector = e->args[factor];
  p.row = e->args[1 - factor];
  if (p.rows & k->exprs[p.vector].axes) return none; // all rows of a block must use the same vectors
  return !k->axes[p.vector_axis].extent || has_few_columns(k, e, own, candidates) ? none : p;
}
