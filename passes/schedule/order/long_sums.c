// Products with many more summed indices than results: gradients by weights, which are summed over a whole batch. The
// sum is split into its chains (chain_iterations): each is a product of its own, and a second loop adds their sums in
// order. The parts of the factors that a block reads stay in the caches for all results, and blocks can run in
// parallel. The bits are those of a loop that adds each chain to a total.
//
//   loop over blocks and rows; inside the block's part of the summed axes, vectors     a product
//     sums_of_blocks[block, row, vector] = sum x * y
//   loop over rows; inside blocks, vectors
//     store f(sum of sums_of_blocks[block, row, vector])
//
// Shorter sums are stored, too, before other tensors are combined with them, if the tensors are many, as in an
// optimizer: a product's micro-kernels would read small parts of many rows of each tensor, which takes longer than to
// store and load the sums.
#include "passes/schedule/order/scheduling.h"

static int64_t count_products(const Kernel *k, const Product *p) {
  return axes_nelems(k, k->exprs[p->sum].axes | k->exprs[p->sum].reduced);
}

// Whether all blocks' sums together have at most as many elements as the largest tensor.
static bool has_few_sums(const Kernel *k, const Product *p, int64_t block) {
  return count_products(k, p) / block <= schedule_largest_tensor(k);
}

// Whether the sum has at least long_sum_times as many products as the shorter side of the results has indices: then a
// thread reads many more elements of the factors than it stores.
static bool is_long(const Kernel *k, const Product *p) {
  const AxisSet results = k->exprs[p->sum].axes;
  const int64_t rows = axes_nelems(k, results & ~k->exprs[p->vector].axes);
  const int64_t columns = axes_nelems(k, results & ~k->exprs[p->row].axes);
  const int64_t side = rows < columns ? rows : columns;
  return axes_nelems(k, k->exprs[p->sum].reduced) >= k->costs->long_sum_times * side;
}

// Whether the axis can be split after two other axes, for panels.
static bool can_split(const Kernel *k, int axis) {
  return k->naxes + 2 < MAX_AXES && kernel_can_split_axis(k, axis);
}

// Whether the factor can be copied with zeros appended along the axis: it is a load of a tensor without bounds.
static bool can_pad(const Kernel *k, ExprId factor, int axis) {
  const Expr *e = &k->exprs[factor];
  if (e->op != EXPR_LOAD || e->args[0] || !(e->axes >> axis & 1)) return false;
  const Access *a = &k->accesses[e->access];
  return a->value && !a->nbounds && k->naxes + 4 < MAX_AXES; // reserves two axes of panels, the block's and the copy's
}

// Whether the last block can extend beyond the only summed axis, where both factors are 0, and adds little work.
static bool can_be_padded(const Kernel *k, const Product *p, const SumCut *cut) {
  const AxisSet summed = k->exprs[p->sum].reduced;
  const int64_t extent = k->axes[cut->axis].extent, missing = cut->inner - extent % cut->inner;
  return !p->is_depthwise && !(summed & (summed - 1)) && missing <= extent / k->costs->long_sum_padding &&
         can_pad(k, p->row, cut->axis) && can_pad(k, p->vector, cut->axis);
}

// The chains of the sum as blocks; none if the sum is a single chain.
static SumCut find_chains(const Kernel *k, AxisSet summed) {
  int64_t inside = 1;
  for (int axis = k->naxes - 1; axis >= 0; axis--) {
    if (!(summed >> axis & 1)) continue;
    const int64_t extent = k->axes[axis].extent;
    if (extent * inside >= (int64_t)2 * CHAIN) {
      const int64_t inner = chain_iterations(extent, inside);
      return (SumCut){axis, inner, inside * inner, extent % inner != 0};
    }
    inside *= extent;
  }
  return (SumCut){0};
}

static SumCut choose_cut(const Kernel *k, const Product *p) {
  const SumCut none = {0};
  if (axes_monomial(k, all_axes(k)) || !axes_nelems(k, k->exprs[p->sum].axes) || k->is_f64) return none;
  if (count_products(k, p) == GREATEST_NELEMS) return none; // the blocks' sums would be too many to count
  const SumCut cut = find_chains(k, k->exprs[p->sum].reduced);
  if (!cut.length || !is_long(k, p) || !has_few_sums(k, p, cut.length)) return none;
  if ((cut.inner > 1 && !can_split(k, cut.axis)) || (cut.is_padded && !can_be_padded(k, p, &cut))) return none;
  return cut;
}

// The kernel's stores with another expression in place of one. *new_ids: by old id, the new id; 0: unchanged. NULL: out
// of memory.
static Store *replace_expr(Kernel *k, ExprId replaced, ExprId with, const ExprId **new_ids) {
  const size_t count = k->nexprs;
  ExprId *now = KERNEL_ARRAY(k, ExprId, count);
  *new_ids = now;
  Store *stores = KERNEL_ARRAY(k, Store, k->nstores);
  if (!now || !stores) return NULL;
  now[replaced] = with;
  for (ExprId i = replaced + 1; i < count && !k->out_of_memory; i++) {
    const Expr e = k->exprs[i];
    ExprId args[3];
    bool is_user = false;
    for (int a = 0; a < 3; a++) {
      args[a] = now[e.args[a]] ? now[e.args[a]] : e.args[a];
      is_user |= args[a] != e.args[a];
    }
    if (is_user) now[i] = expr_label(k, expr_with_arguments(k, &e, args), e.label);
  }
  for (size_t i = 0; i < k->nstores; i++) {
    const Store store = k->stores[i];
    stores[i] = (Store){store.access, now[store.value] ? now[store.value] : store.value};
  }
  return k->out_of_memory ? NULL : stores;
}

// Orders a part of the kernel: the expressions that these stores need.
static bool order_part(Scheduling *s, Store *stores, size_t nstores) {
  Kernel *k = s->k;
  Store *const all = k->stores;
  const size_t nall = k->nstores;
  k->stores = stores;
  k->nstores = nstores;
  const bool is_ordered = schedule_order_part(s);
  k->stores = all;
  k->nstores = nall;
  return is_ordered;
}

// Splits an axis, and the sum into a sum of sums over blocks; p->sum becomes the sum over a block. Returns the axes of
// the blocks; 0: out of memory.
static AxisSet split_sum(Kernel *k, Product *p) {
  const int last = p->cut.axis;
  if (p->cut.inner > 1 && !schedule_split_axis(k, p, last, p->cut.inner)) return 0;
  const Expr whole = k->exprs[p->sum];
  const AxisSet blocks = whole.reduced & ((2U << last) - 1);
  const ExprId sums = expr_label(k, expr_sum(k, whole.args[0], whole.reduced & ~blocks), whole.label);
  const ExprId sum = expr_label(k, expr_sum(k, sums, blocks), whole.label);
  const ExprId *now;
  Store *stores = sum ? replace_expr(k, p->sum, sum, &now) : NULL;
  if (!stores) return 0;
  k->stores = stores;
  k->stores_capacity = k->nstores;
  p->sum = sums;
  return blocks;
}

void schedule_cut_long_sum(const Scheduling *s, Product *p) {
  if (p->sum && !schedule_disables(s->overrides, "long-sums")) p->cut = choose_cut(s->k, p);
}

// Whether results combine the sums with many tensors of the same size.
static bool combines_many(const Kernel *k, const Product *p) {
  const AxisSet results = k->exprs[p->sum].axes;
  int ntensors = 0;
  for (AccessId i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    ntensors += a->value && !a->nbounds && access_axes(k, a) == results;
  }
  return ntensors >= k->costs->stored_sums_tensors && axes_nelems(k, results) >= k->costs->stored_sums_nelems &&
         !axes_monomial(k, results);
}

bool schedule_store_sums(Scheduling *s) {
  const Product *p = &s->product;
  s->is_in_two |= has_contraction(s) && !p->cut.length && !p->rows && combines_many(s->k, p);
  return true;
}

bool schedule_split_long_sum(Scheduling *s) {
  Product *p = &s->product;
  if (!p->cut.length) return true;
  s->is_in_two = true;
  s->blocks = split_sum(s->k, p);
  if (s->blocks) schedule_set_product_axes(s);
  return s->blocks;
}

bool schedule_make_loops(Scheduling *s) {
  if (!s->is_in_two) return schedule_order_part(s);
  Kernel *k = s->k;
  Product *p = &s->product;
  const ExprId sums = p->sum;
  const char *label = k->exprs[sums].label;
  AccessId materialised;
  if (!schedule_materialise(s, sums, label ? label : "sums", &materialised)) return false;
  if (!order_part(s, &(Store){materialised, sums}, 1)) return false;
  *p = (Product){0};
  s->inner = s->blocks | 1U << s->vector_axis;
  s->outer &= ~s->blocks;
  s->batch_axes = 0;
  s->strategy = s->blocks ? OF_CHAINS : s->outer ? ALONG_ROWS : TILED;
  const size_t noriginals = k->nexprs, first = s->schedule->nsums;
  const ExprId *now;
  Store *stores = replace_expr(k, sums, expr_load(k, materialised), &now);
  if (!stores || !order_part(s, stores, k->nstores)) return false;
  for (size_t i = first; i < s->schedule->nsums; i++) // the sums as the kernel's own stores use them
    for (ExprId e = 1; e < noriginals; e++)
      if (now[e] == s->schedule->sums[i].sum) s->schedule->sums[i].sum = e;
  return true;
}
