// Turns a kernel's expressions into loops: for each phase its producer loops, then its main loop.
//
// Producer loops compute values that vary over few axes and store them in temporaries ("materialised values"), which
// main loops load. A main loop stores the partial sums of its blocks for each outer reduction, and loops of later
// phases combine the partial sums.
#include "ir/kernel/simplify.h"
#include "passes/schedule/order/scheduling.h"

#include <stdint.h>
#include <string.h>

static bool is_leaf(const Expr *e) {
  return !e->args[0] && e->op != EXPR_COMBINE;
}

// The access of a dense temporary over these axes: row-major, with the vector axis last. The temporary has *nelems
// elements, times *monomial.
static Access dense_access(const Scheduling *s, AxisSet axes, int64_t *nelems, Monomial *monomial) {
  const AxisSet vector = 1U << s->vector_axis;
  Access a = {0};
  *monomial = 0;
  *nelems = access_stack_axes(s->k, axes & vector, 1, monomial, &a);
  *nelems = access_stack_axes(s->k, axes & ~vector, *nelems, monomial, &a);
  return a;
}

// Whether a value that a main loop uses is materialised: a hoistable value that is not cheap to recompute, as loads
// are, and values of a row that need no partial sums. Masks are never materialised; main loops recompute
// them. Main loops without elements compute nothing.
static bool should_materialise(const Scheduling *s, ExprId id) {
  const Expr *e = &s->k->exprs[id];
  const Product *p = &s->product;
  if (has_contraction(s) && id == p->vector && schedule_rounds_in_place(s->k, p->sum, id, p->vector_axis)) return false;
  if (!s->plan[id].is_hoistable || is_leaf(e) || expr_info[e->op].is_mask || s->plan[id].needs_inner) return false;
  return s->plan[id].needs_combine || (e->axes & s->inner && axes_nelems(s->k, all_axes(s->k)));
}

// Lays out a dense temporary in panels. Factor of vectors: [outer axes, panel, summed axes, lane]. Factor of rows:
// [outer axes, summed axes, row in panel], or without the last axis if panels have a single row.
static void use_panels(const Scheduling *s, AxisSet axes, Access *a, int64_t *nelems) {
  const Kernel *k = s->k;
  const Product *p = &s->product;
  const AxisSet summed = axes & k->exprs[p->sum].reduced;
  Monomial monomial = 0;
  *a = (Access){0};
  if (!(axes >> s->vector_axis & 1)) {
    const AxisSet rows = p->panel_axis ? 1U << (p->panel_axis - 1) : 0;
    const int64_t inside = access_stack_axes(k, rows, 1, &monomial, a),
                  panel = access_stack_axes(k, summed, inside, &monomial, a);
    access_stack_axes(k, axes & ~summed & ~rows, panel, &monomial, a);
    return;
  }
  const int64_t length = axes_nelems(k, summed), extent = k->axes[s->vector_axis].extent;
  access_stack_axes(k, summed, LANES, &monomial, a);
  a->stride[s->vector_axis] = length; // no open extents: schedule_packs_vectors
  a->panel_axis = s->vector_axis + 1;
  *nelems = access_stack_axes(k, axes & ~summed & ~(1U << s->vector_axis),
                              (extent + LANES - 1) / LANES * LANES * length, &monomial, a);
}

// Whether the factor of rows is packed in panels of a single row: with its summed axes last.
static bool is_packed_by_rows(const Scheduling *s, ExprId id) {
  const Product *p = &s->product;
  return has_contraction(s) && id == p->row && !p->panel_axis && !axes_monomial(s->k, s->k->exprs[id].axes);
}

bool schedule_materialise(Scheduling *s, ExprId id, const char *name, AccessId *access) {
  Kernel *k = s->k;
  int64_t nelems;
  Monomial monomial;
  Access a = dense_access(s, k->exprs[id].axes, &nelems, &monomial);
  const Product *p = &s->product;
  if (has_contraction(s) && ((id == p->vector && schedule_packs_vectors(k, p)) || (id == p->row && p->panel_axis) ||
                             is_packed_by_rows(s, id)))
    use_panels(s, k->exprs[id].axes, &a, &nelems);
  a.type = kernel_type(k);
  a.temporary = schedule_add_temporary(s->schedule, name, a.type, nelems);
  if (!k->out_of_memory) s->schedule->temporaries[a.temporary].monomial = monomial;
  *access = kernel_add_access(k, &a);
  return !k->out_of_memory;
}

static bool materialise(Scheduling *s, ExprId id) {
  const char *label = s->k->exprs[id].label;
  if (s->plan[id].is_materialised) return true;
  s->plan[id].is_materialised = true;
  return schedule_materialise(s, id, label ? label : "folded", &s->plan[id].materialised);
}

// Marks the expressions that main loops compute: expressions that are not narrow, reductions, and the masks that these
// use.
static void find_full_domain(const Scheduling *s, bool *is_full_domain) {
  const Kernel *k = s->k;
  for (ExprId i = (ExprId)s->noriginals; i-- > 1;) {
    const Expr *e = &k->exprs[i];
    if (!s->plan[i].is_of_part) continue;
    is_full_domain[i] |= !s->plan[i].is_hoistable || expr_is_reduction(e);
    for (int a = 0; a < 3 && e->args[a]; a++)
      is_full_domain[e->args[a]] |= is_full_domain[i] && expr_info[k->exprs[e->args[a]].op].is_mask;
  }
}

// Marks the expressions that main loops compute or load. Expressions that only a product's materialised factors need
// are not marked.
static void find_needed(const Scheduling *s, bool *is_needed) {
  const Kernel *k = s->k;
  for (ExprId i = 1; i < s->noriginals; i++) is_needed[i] = !has_contraction(s);
  for (size_t i = 0; i < k->nstores; i++) is_needed[k->stores[i].value] = true;
  for (ExprId i = (ExprId)s->noriginals; i-- > 1;)
    for (int a = 0; a < 3 && k->exprs[i].args[a] && is_needed[i]; a++)
      is_needed[k->exprs[i].args[a]] |= !s->plan[i].is_materialised;
}

// Adds the materialised values or copies of a product's factors that producer loops compute.
static bool materialise_factors(Scheduling *s) {
  const Product *p = &s->product;
  const bool copies_vectors = schedule_copies_window(s->k, p, p->vector);
  if (!copies_vectors && schedule_packs_vectors(s->k, p) && !materialise(s, p->vector)) return false;
  if (copies_vectors && !schedule_copy_window(s, p->vector)) return false;
  const bool copies_rows = schedule_copies_window(s->k, p, p->row);
  if (!copies_rows && schedule_packs_rows(s->k, p) && !materialise(s, p->row)) return false;
  return !copies_rows || schedule_copy_window(s, p->row);
}

// Finds the access through which later phases load each result of the product's loop: a stored tensor of the type of
// computation, else a temporary.
static bool find_results(Scheduling *s) {
  const Kernel *k = s->k;
  for (ExprId id = 1; id < s->noriginals; id++) {
    AccessId access = 0;
    bool is_found = !s->plan[id].is_result;
    for (size_t i = 0; i < k->nstores && !is_found; i++) {
      access = k->stores[i].access;
      is_found = k->stores[i].value == id && k->accesses[access].type == kernel_type(k);
    }
    const char *label = k->exprs[id].label;
    if (!is_found && !schedule_materialise(s, id, label ? label : "result", &access)) return false;
    s->plan[id].result = access;
  }
  return true;
}

// Marks the values that producer loops compute for main loops.
static bool materialise_values(Scheduling *s) {
  Kernel *k = s->k;
  if (s->strategy == SCATTERED) return true; // a scatter's main loop loads the indices itself
  bool *is_full_domain = KERNEL_ARRAY(k, bool, s->noriginals);
  bool *is_needed = KERNEL_ARRAY(k, bool, s->noriginals);
  if (!is_full_domain || !is_needed) return false;
  if (has_contraction(s) && !materialise_factors(s)) return false;
  find_full_domain(s, is_full_domain);
  find_needed(s, is_needed);
  for (ExprId i = 1; i < s->noriginals; i++) {
    const Expr *e = &k->exprs[i];
    for (int a = 0; a < 3 && e->args[a]; a++)
      if (is_full_domain[i] && is_needed[i] && !(has_contraction(s) && s->plan[i].is_materialised) &&
          should_materialise(s, e->args[a]) && !materialise(s, e->args[a]))
        return false;
  }
  for (size_t i = 0; i < k->nstores; i++) {
    ExprId value = k->stores[i].value;
    if (!is_produced_store(s, &k->stores[i]) && should_materialise(s, value) && !materialise(s, value)) return false;
  }
  return true;
}

// The expression as a loop computes it: outer reductions of earlier phases become EXPR_COMBINE, and, in main loops,
// materialised values become loads.
static ExprId rebuild(Scheduling *s, ExprId id) {
  Kernel *k = s->k;
  if (!id || s->plan[id].rebuilt) return id ? s->plan[id].rebuilt : 0;
  Expr e = k->exprs[id];
  ExprId result, args[3];
  if (s->plan[id].is_result && s->phase > s->plan[id].time.phase) result = expr_load(k, s->plan[id].result);
  else if (s->loads_materialised && s->plan[id].is_materialised) result = expr_load(k, s->plan[id].materialised);
  else if (is_outer_reduction(s, &e)) result = s->plan[id].combine;
  else if (is_leaf(&e)) result = id;
  else {
    for (int a = 0; a < 3; a++) args[a] = rebuild(s, e.args[a]);
    result = expr_with_arguments(k, &e, args);
  }
  expr_label(k, result, e.label);
  s->plan[id].rebuilt = result;
  return result;
}

static void start_loops(Scheduling *s, bool loads_materialised) {
  s->loads_materialised = loads_materialised;
  for (ExprId i = 1; i < s->noriginals; i++) s->plan[i].rebuilt = 0;
}

// Producer loops. Kept values and stores that precede a phase's main loop are in one producer loop if they vary over
// the same axes.

// The producer loop over these axes, which is added unless the phase has one. last: the axis along which vectors lie;
// -1: the last axis. middle: a further inner axis; -1: none.
static Loop *producer_loop(Scheduling *s, AxisSet axes, int middle, int last, size_t first) {
  const Kernel *k = s->k;
  const int64_t nelems = k->costs->side_block; // of a block or tile
  Schedule *schedule = s->schedule;
  for (size_t i = first; i < schedule->nloops; i++)
    if (!loop_has(&schedule->loops[i], LOOP_ROW_COPY) &&
        (loop_outer_axes(&schedule->loops[i]) | loop_inner_axes(&schedule->loops[i])) == axes)
      return &schedule->loops[i];
  Loop *loop = schedule_add_loop(schedule);
  if (!loop) return NULL;
  loop->levels = schedule_rows;
  loop->nsweeps = 1;
  loop->is_producer = true;
  for (int axis = 0; axis < k->naxes; axis++)
    if (axes >> axis & 1 && axis != last && axis != middle) loop->axes[loop->nouter++] = axis;
  if (middle >= 0) loop->axes[loop->nouter++] = middle;
  if (last >= 0) loop->axes[loop->nouter++] = last;
  loop->ninner = middle >= 0 ? 2 : loop->nouter ? 1 : 0;
  loop->nouter -= loop->ninner;
  const AxisSet inside = loop->nouter ? loop_inner_axes(loop) : 0; // of an element of a tile: no axes
  loop->cut.length = nelems / clamp(axes_nelems(k, inside), 1, nelems);
  return loop;
}

// If the materialised value is a copy of a tensor into panels along the vector axis, along which the tensor is not
// dense: the axis along which the tensor is dense. Otherwise -1.
static int row_axis(const Scheduling *s, ExprId id, AccessId access) {
  const Kernel *k = s->k;
  const Expr *e = &k->exprs[id];
  const Access *from = &k->accesses[e->access], *to = &k->accesses[access];
  if (e->op != EXPR_LOAD || e->args[0] || !to->panel_axis || k->is_f64 || access_has_conditions(k, from)) return -1;
  if (from->type != TYPE_F32 && from->type != TYPE_BF16 && from->type != TYPE_F16) return -1;
  if (axes_monomial(k, e->axes) || from->stride[s->vector_axis] <= 1) return -1;
  const int axis = dense_axis_of(k, from);
  const bool is_row = axis >= 0 && axis != s->vector_axis && to->stride[axis] == LANES;
  return is_row && k->axes[axis].extent >= LANES && k->axes[axis].extent <= INT32_MAX ? axis : -1;
}

// The loop that copies rows along the axis into panels.
static Loop *row_loop(Scheduling *s, AxisSet axes, int axis) {
  const Kernel *k = s->k;
  const int64_t nelems = k->costs->panel_block;
  Loop *loop = schedule_add_loop(s->schedule);
  if (!loop) return NULL;
  loop->nsweeps = loop->ninner = 1;
  loop->levels = schedule_row_copies;
  loop->is_producer = true;
  for (int other = 0; other < k->naxes; other++)
    if (axes >> other & 1 && other != axis && other != s->vector_axis) loop->axes[loop->nouter++] = other;
  loop->nbatch = loop->nouter;
  loop->axes[loop->nouter++] = s->vector_axis;
  loop->axes[loop->nouter] = axis;
  loop->cut.length = clamp(nelems / (k->axes[axis].extent * LANES), 1, nelems) * LANES;
  return loop;
}

// The axis over blocks of columns of a tensor whose columns are next to each other; -1: there is none.
static int axis_of_column_blocks(const Scheduling *s, ExprId id) {
  const Kernel *k = s->k;
  const int columns = s->vector_axis, blocks = columns - 1;
  if (k->exprs[id].op != EXPR_LOAD || blocks < 0 || k->axes[columns].monomial) return -1;
  const int64_t *stride = k->accesses[k->exprs[id].access].stride;
  const AxisSet own = k->exprs[id].axes & ~k->exprs[s->product.sum].reduced;
  return own >> blocks & 1 && stride[columns] == 1 && stride[blocks] == k->axes[columns].extent ? blocks : -1;
}

// If the factor is copied into panels: the axis over panels of rows, or over blocks of columns. It is an inner axis of
// the copy, so that an iteration fills all panels and reads whole rows of the tensor. Otherwise -1.
static int axis_of_panels(const Scheduling *s, ExprId id) {
  const Product *p = &s->product;
  if (has_contraction(s) && id == p->vector) return axis_of_column_blocks(s, id);
  if (!has_contraction(s) || id != p->row || !p->panel_axis) return -1;
  const AxisSet reduced = s->k->exprs[p->sum].reduced, own = s->k->exprs[id].axes;
  const AxisSet axes = own & ~reduced & ~(1U << (p->panel_axis - 1));
  return axes && own & reduced ? 31 - __builtin_clz(axes) : -1;
}

// Adds a store of the expression to a producer loop.
static bool add_produced(Scheduling *s, ExprId id, AccessId access, size_t first) {
  const AxisSet axes = store_axes(s->k, &(Store){access, id});
  const int row = has_contraction(s) ? row_axis(s, id, access) : -1;
  if (row >= 0) {
    Loop *rows = row_loop(s, axes, row);
    return rows && loop_add_root(s->k, rows, (Root){ROOT_STORE, 0, id, access, false, 0});
  }
  int last = has_contraction(s) && axes >> s->vector_axis & 1 ? s->vector_axis : -1;
  if (is_packed_by_rows(s, id)) last = dense_axis_of(s->k, &s->k->accesses[access]);
  const int middle = axis_of_panels(s, id);
  if (middle >= 0 && id == s->product.row) last = s->product.panel_axis - 1;
  Loop *loop = producer_loop(s, axes, middle, last, first);
  return loop && loop_add_root(s->k, loop, (Root){ROOT_STORE, 0, rebuild(s, id), access, false, 0});
}

// The loop that copies a tensor with its padding.
static bool add_copy(Scheduling *s, ExprId id, size_t first) {
  const AccessId to = s->plan[id].copy;
  Loop *loop =
      producer_loop(s, access_axes(s->k, &s->k->accesses[to]), -1, dense_axis_of(s->k, &s->k->accesses[to]), first);
  return loop && loop_add_root(s->k, loop, (Root){ROOT_STORE, 0, s->plan[id].copied, to, false, 0});
}

static bool add_producer_loops(Scheduling *s, int phase) {
  const Kernel *k = s->k;
  size_t first = s->schedule->nloops;
  start_loops(s, false);
  for (ExprId i = 1; i < s->noriginals; i++) {
    if (!s->plan[i].is_materialised || s->plan[i].time.phase != phase) continue;
    if (s->plan[i].copied ? !add_copy(s, i, first) : !add_produced(s, i, s->plan[i].materialised, first)) return false;
  }
  for (size_t i = 0; i < k->nstores; i++) {
    Store store = k->stores[i];
    if (is_produced_store(s, &store) && s->plan[store.value].time.phase == phase &&
        !add_produced(s, store.value, store.access, first))
      return false;
  }
  return true;
}

// Main loops

static bool add_partial(Scheduling *s, ExprId id, AccessId *access) {
  Kernel *k = s->k;
  const Expr e = k->exprs[id];
  AxisSet own = e.axes & s->inner;
  bool is_array = own >> s->vector_axis & 1;
  int64_t nelems;
  Monomial monomial;
  Access a = dense_access(s, own, &nelems, &monomial);
  a.type = k->is_f64 || !is_array ? TYPE_F64 : TYPE_F32;
  // The size of one block's partial sums; finish_partials multiplies it by the number of blocks.
  a.temporary = schedule_add_temporary(s->schedule, e.label ? e.label : "sum", a.type, nelems);
  if (!k->out_of_memory) {
    s->schedule->temporaries[a.temporary].reduction = e.op;
    s->schedule->temporaries[a.temporary].monomial = monomial;
  }
  *access = kernel_add_access(k, &a);
  return !k->out_of_memory;
}

static bool add_inner_sum(Scheduling *s, Loop *loop, ExprId sum, int sweep) {
  if (sum && !expr_is_reduction(&s->k->exprs[sum])) return true; // folded to a constant: a sum of no elements
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_REDUCE_INNER && loop->roots[i].expr == sum) return true;
  return loop_add_root(s->k, loop, (Root){ROOT_REDUCE_INNER, sweep, sum, 0, false, 0});
}

// Adds a row's contribution to an outer reduction: the operand, or, if the vector axis is reduced too, its sum over the
// row.
static bool add_outer_reduction(Scheduling *s, Loop *loop, ExprId id) {
  Kernel *k = s->k;
  Expr e = k->exprs[id];
  Time t = s->plan[e.args[0]].time;
  ExprId contribution = rebuild(s, e.args[0]);
  int sweep = t.sweep;
  const bool has_inner = e.reduced >> s->vector_axis & 1;
  if (has_inner) {
    contribution = expr_label(k, expr_reduce(k, e.op, contribution, s->inner), e.label);
    if (!add_inner_sum(s, loop, contribution, sweep)) return false;
  }
  AccessId access;
  if (!add_partial(s, id, &access)) return false;
  const uint32_t at = (uint32_t)s->schedule->nloops; // where the loop will be
  if (!schedule_add_sum(s->schedule, (ScheduledSum){id, at, has_inner ? contribution : 0, access})) return false;
  return loop_add_root(k, loop, (Root){ROOT_REDUCE_OUTER, sweep, contribution, access, false, 0});
}

// Adds stores of the results that later phases load from temporaries.
static bool fill_results(Scheduling *s, Loop *loop, int phase) {
  for (ExprId id = 1; id < s->noriginals; id++) {
    if (!s->plan[id].is_result || s->plan[id].time.phase != phase || s->k->accesses[s->plan[id].result].value) continue;
    if (!loop_add_root(s->k, loop, (Root){ROOT_STORE, 0, rebuild(s, id), s->plan[id].result, false, 0})) return false;
  }
  return true;
}

// Adds the roots of a phase: its reductions, and the stores that no producer loop makes.
static bool fill_main_loop(Scheduling *s, Loop *loop, int phase) {
  Kernel *k = s->k;
  for (ExprId i = 1; i < s->noriginals; i++) {
    const Expr *e = &k->exprs[i];
    if (!s->plan[i].is_of_part || !expr_is_reduction(e) || s->plan[e->args[0]].time.phase != phase) continue;
    if (is_outer_reduction(s, e)) {
      if (!add_outer_reduction(s, loop, i)) return false;
      continue;
    }
    const ExprId sum = rebuild(s, i);
    if (!add_inner_sum(s, loop, sum, s->plan[e->args[0]].time.sweep)) return false;
    if (!schedule_add_sum(s->schedule, (ScheduledSum){i, (uint32_t)s->schedule->nloops, sum, 0})) return false;
  }
  for (size_t i = 0; i < k->nstores; i++) {
    Store store = k->stores[i];
    Time t = s->plan[store.value].time;
    if (t.phase != phase || is_produced_store(s, &store)) continue;
    if (!loop_add_root(k, loop, (Root){ROOT_STORE, t.sweep, rebuild(s, store.value), store.access, false, 0}))
      return false;
  }
  return fill_results(s, loop, phase);
}

// Fills in the loop's axes, slowest first: batch, cut, middle axes and the last one.
static void order_axes(const Scheduling *s, Loop *loop) {
  // Taps are the fastest of these axes: the data of a block of a depthwise sum stays in the caches for all taps.
  const AxisSet slow = s->product.is_depthwise ? s->k->exprs[s->product.vector].axes : ~0U;
  const AxisSet groups[] = {s->batch_axes & slow, s->batch_axes & ~slow, s->outer & ~s->batch_axes,
                            s->inner & ~(1U << last_axis(s))};
  int n = 0;
  for (int g = 0; g < 4; g++) {
    for (int axis = 0; axis < s->k->naxes; axis++)
      if (groups[g] >> axis & 1) loop->axes[n++] = axis;
    if (g == 1) loop->nbatch = n;
    if (g == 2) loop->nouter = n;
  }
  if (s->strategy == TILED && loop_has_roots(loop, ROOT_REDUCE_OUTER))
    loop->nbatch = loop->nouter; // a tile is of one row
  loop->axes[n++] = last_axis(s);
  loop->ninner = n - loop->nouter;
}

// Called when the number of a loop's blocks is known: sizes the temporaries for partial sums, and adds the expressions
// that combine partial sums.
static bool finish_partials(Scheduling *s, size_t loop_index, int phase) {
  Kernel *k = s->k;
  size_t next = 0;
  for (ExprId i = 1; i < s->noriginals; i++) {
    const Expr e = k->exprs[i];
    if (!s->plan[i].is_of_part || !is_outer_reduction(s, &e) || s->plan[e.args[0]].time.phase != phase) continue;
    const Loop *loop = &s->schedule->loops[loop_index];
    while (loop->roots[next].kind != ROOT_REDUCE_OUTER) next++;
    AccessId access = loop->roots[next++].access;
    Temporary *temporary = &s->schedule->temporaries[k->accesses[access].temporary];
    temporary->nelems *= loop_nblocks(k, loop);
    temporary->loop = (uint32_t)loop_index;
    s->plan[i].combine = expr_label(k, expr_combine(k, access, (uint32_t)loop_index, e.axes), e.label);
    if (!s->plan[i].combine) return false;
  }
  return true;
}

static bool add_main_loop(Scheduling *s, int phase) {
  Kernel *k = s->k;
  Loop loop = {.rows = 1, .dense_axis = s->vector_axis};
  start_loops(s, true);
  if (!fill_main_loop(s, &loop, phase)) return false;
  if (!loop.nroots) return true;
  for (size_t i = 0; i < loop.nroots; i++)
    if (loop.roots[i].sweep >= loop.nsweeps) loop.nsweeps = loop.roots[i].sweep + 1;
  if (k->naxes) order_axes(s, &loop);
  loop.levels = schedule_choose_nest(s, &loop);
  if (!schedule_choose_lengths(s, &loop)) return false;
  Loop *added = schedule_add_loop(s->schedule);
  if (!added) return false;
  *added = loop;
  if (!finish_partials(s, s->schedule->nloops - 1, phase)) return false;
  loop_sort_roots(added);
  return true;
}

// Marks the expressions that the stores of the part being ordered need.
static void find_part(Scheduling *s) {
  const Kernel *k = s->k;
  for (size_t i = 0; i < k->nstores; i++) s->plan[k->stores[i].value].is_of_part = true;
  for (ExprId i = (ExprId)s->noriginals; i-- > 1;)
    for (int a = 0; a < 3 && s->plan[i].is_of_part; a++) s->plan[k->exprs[i].args[a]].is_of_part = true;
}

bool schedule_order_part(Scheduling *s) {
  Kernel *k = s->k;
  do {
    s->noriginals = k->nexprs;
    s->plan = KERNEL_ARRAY(k, ExprPlan, k->nexprs);
    if (!s->plan || k->out_of_memory) return false;
    find_part(s);
    if (k->naxes && !schedule_find_times(s)) return false;
  } while (!s->product.sum && kernel_drop_unused(k)); // the form of all results' sums suits: that is their form
  if (k->naxes && (!materialise_values(s) || !find_results(s))) return false;
  int last = 0;
  for (ExprId i = 1; i < s->noriginals; i++)
    if (s->plan[i].time.phase > last) last = s->plan[i].time.phase;
  for (s->phase = 0; s->phase <= last; s->phase++) {
    if (s->product.rows && s->phase == 1) // the product's results are in memory
      s->strategy = ALONG_ROWS, s->inner = 1U << s->vector_axis;
    if (!add_producer_loops(s, s->phase) || !add_main_loop(s, s->phase)) return false;
  }
  return true;
}
