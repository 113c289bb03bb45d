// Verifies loops in their order, recording the temporaries that earlier loops have filled.
#include "ir/kernel/verify.h"

#include "ir/kernel/needed.h"
#include "ir/kernel/nest.h"
#include "ir/kernel/scatter.h"
#include "ir/kernel/verifying.h"

#include <stdarg.h>
#include <string.h>

typedef struct ScheduleVerifying {
  KernelVerifying kernel;
  const Schedule *schedule;
  const Kernel *k;   // the schedule's
  bool *is_needed;   // by ExprId: the root being checked needs the expression
  bool *is_filled;   // by temporary: an earlier sweep or loop has filled it
  uint32_t *nstored; // by AccessId: number of roots that store it
  ExprId *moved;     // by ExprId of a copying loop: the kernel's expression with the same value; 0: not known
  ExprId *same;      // by ExprId: union-find parent, among expressions with the same value
} ScheduleVerifying;

static bool __attribute__((format(printf, 3, 4)))
wrong_loop(const ScheduleVerifying *v, const Loop *loop, const char *format, ...) {
  va_list args;
  text_format(v->kernel.why, "loop %zu: ", (size_t)(loop - v->schedule->loops));
  va_start(args, format);
  text_format_list(v->kernel.why, format, args);
  va_end(args);
  text_add_string(v->kernel.why, "\n");
  return false;
}

static bool __attribute__((format(printf, 4, 5)))
wrong_root(const ScheduleVerifying *v, const Loop *loop, const Root *root, const char *format, ...) {
  va_list args;
  text_format(v->kernel.why, "loop %zu, sweep %d, expression %u (%s): ", (size_t)(loop - v->schedule->loops),
              root->sweep + 1, root->expr, expr_info[v->k->exprs[root->expr].op].name);
  va_start(args, format);
  text_format_list(v->kernel.why, format, args);
  va_end(args);
  text_add_string(v->kernel.why, "\n");
  return false;
}

static bool verify_axes(const ScheduleVerifying *v, const Loop *loop) {
  AxisSet seen = 0;
  for (int i = 0; i < loop->nouter + loop->ninner; i++) {
    int axis = loop->axes[i];
    if (axis < 0 || axis >= v->k->naxes)
      return wrong_loop(v, loop, "its axis %d has the number %d, expected one of %d", i, axis, v->k->naxes);
    if (seen >> axis & 1) return wrong_loop(v, loop, "it goes over %s twice", v->k->axes[axis].name);
    seen |= 1U << axis;
  }
  return true;
}

// The root that stores through an access, or adds to its partial sums, in `loop` (NULL: in any loop). NULL: there is
// none.
static const Root *find_maker(const ScheduleVerifying *v, const Loop *loop, RootKind kind, AccessId access) {
  for (size_t i = 0; i < v->schedule->nloops; i++)
    for (size_t r = 0; r < v->schedule->loops[i].nroots; r++) {
      const Root *root = &v->schedule->loops[i].roots[r];
      if (loop && loop != &v->schedule->loops[i]) break;
      if (root->kind == kind && root->access == access) return root;
    }
  return NULL;
}

// Whether an earlier loop stores the result.
static bool is_stored_before(const ScheduleVerifying *v, const Loop *loop, AccessId access) {
  bool is_stored = false;
  for (const Loop *l = v->schedule->loops; l < loop; l++) is_stored |= find_maker(v, l, ROOT_STORE, access) != NULL;
  return is_stored;
}

// Whether the temporaries and partial results that a root reads are finished. Values of the same loop are checked in
// the loop's tree (ir/loops/verify.h).
static bool verify_needed(const ScheduleVerifying *v, const Loop *loop, const Root *root) {
  const Kernel *k = v->k;
  memset(v->is_needed, 0, k->nexprs * sizeof *v->is_needed);
  loop_mark_root(k, loop, root, v->is_needed);
  for (ExprId id = 1; id < k->nexprs; id++) {
    const Expr *e = &k->exprs[id];
    if (!v->is_needed[id] || (e->op != EXPR_COMBINE && e->op != EXPR_LOAD)) continue;
    if (e->op == EXPR_COMBINE && e->loop >= (uint32_t)(loop - v->schedule->loops))
      return wrong_root(v, loop, root, "it needs the partial results of loop %u, which runs later", e->loop);
    const Access *a = &k->accesses[e->access];
    if (!a->value && !v->is_filled[a->temporary])
      return wrong_root(v, loop, root, "it reads temporary %u (%s), which no earlier sweep or loop stores",
                        a->temporary, v->schedule->temporaries[a->temporary].name);
    if (e->op == EXPR_LOAD && a->value && kernel_stores(k, e->access) && !is_stored_before(v, loop, e->access))
      return wrong_root(v, loop, root, "it reads a result through access %u, which no earlier loop stores", e->access);
  }
  return true;
}

static bool verify_root(const ScheduleVerifying *v, const Loop *loop, const Root *root) {
  const Kernel *k = v->k;
  if (root->sweep < 0 || root->sweep >= loop->nsweeps)
    return wrong_root(v, loop, root, "the loop has %d sweeps only", loop->nsweeps);
  if (!verify_needed(v, loop, root)) return false;
  if (root->kind == ROOT_REDUCE_INNER)
    return expr_is_reduction(&k->exprs[root->expr]) || wrong_root(v, loop, root, "expected a reduction");
  if (root->kind == ROOT_STORE) v->nstored[root->access]++;
  return true;
}

// Whether each sum of a product, or of a depthwise loop, adds products of a factor that does not vary over the row
// axes. The other factor of a product does not vary over the vector axis.
static bool has_factors(const Kernel *k, const Loop *loop) {
  const AxisSet vector = 1U << loop_vector_axis(loop), rows = loop_cut_axes(loop);
  for (size_t i = 0; i < loop->nroots; i++) {
    if (loop->roots[i].kind != ROOT_REDUCE_INNER) continue;
    const Expr *sum = &k->exprs[loop->roots[i].expr], *e = &k->exprs[sum->args[0]];
    if (sum->op != EXPR_REDUCE_SUM || e->op != EXPR_MUL) return false;
    const AxisSet x = k->exprs[e->args[0]].axes, y = k->exprs[e->args[1]].axes;
    const bool is_product = !(x & vector || y & rows) || !(y & vector || x & rows);
    if (loop_has(loop, LOOP_COLUMNS) ? !is_product : x & y & rows) return false;
  }
  return loop_has(loop, LOOP_COLUMNS) || loop->nbatch < loop->nouter;
}

// Whether the levels go over all axes, each once apart from cuts, and suit the loop's inner sums.
static bool verify_levels(const ScheduleVerifying *v, const Loop *loop) {
  const bool has_products = loop_shares_factors(loop);
  const Nest nest = loop_nest(v->k, loop, &(Segments){0});
  AxisSet seen = 0;
  for (int i = 0; i < nest.nlevels; i++) {
    const AxisSet axes = nest_level_axes(loop, &nest.levels[i]);
    if (nest.levels[i].role == ROLE_CUT) continue;
    if (seen & axes) return wrong_loop(v, loop, "two levels of its nest go over the same axis");
    seen |= axes;
  }
  if ((seen | loop_cut_axes(loop)) != (loop_outer_axes(loop) | loop_inner_axes(loop)))
    return wrong_loop(v, loop, "no level of its nest goes over one of its axes");
  if (loop_has(loop, LOOP_ROW_LANES) && loop_has_roots(loop, ROOT_REDUCE_OUTER))
    return wrong_loop(v, loop, "rows are in lanes, but it has sums over rows");
  if (!loop_has_roots(loop, ROOT_REDUCE_INNER)) return true;
  return !has_products || has_factors(v->k, loop) ||
         wrong_loop(v, loop, "its nest is of a product or depthwise, but factors of some sum vary over more axes");
}

// The operands that an f32 accumulator adds one after the other; a sum within a tile has at most the tile's.
static int64_t longest_chain(const Kernel *k, const Loop *loop, const SumOrder *o) {
  const int64_t chain = sum_order_chain(k, o), accumulators = o->levels[0].accumulators;
  const int64_t of_tile = (loop_tile(loop) + accumulators - 1) / accumulators;
  return loop_tile(loop) && of_tile < chain ? of_tile : chain;
}

// Whether the loop takes the sum in the order that was decided for it, and chains of f32 additions are short. Sums of a
// scatter are as long as there are indices.
static bool verify_order(const ScheduleVerifying *v, const Loop *loop, const Root *root) {
  const SumOrder *o = root->order;
  if ((o != NULL) != (root->kind != ROOT_STORE))
    return wrong_root(v, loop, root, "expected an order of additions for each reduction, and for nothing else");
  if (!o) return true;
  SumOrder implied = loop_sum_order(v->schedule, loop, root, o->levels[0].cut.length == 1);
  implied.is_fused = o->is_fused;
  if (!sum_order_equal(o, &implied)) {
    wrong_root(v, loop, root, "the loop's order of additions is not the reduction's");
    sum_order_print(v->k, &implied, v->kernel.why);
    text_add_string(v->kernel.why, "\n");
    sum_order_print(v->k, o, v->kernel.why);
    text_add_string(v->kernel.why, "\n");
    return false;
  }
  const int64_t chain = longest_chain(v->k, loop, o);
  const bool is_empty = !axes_nelems(v->k, v->k->exprs[root->expr].axes | o->levels[0].axes);
  const bool rounds = o->levels[0].type == TYPE_F32 && !reduction_is_exact(v->k, o->reduction);
  const bool has_chains = root->kind == ROOT_REDUCE_INNER && loop_sums_in_lanes(loop);
  const int64_t longest = has_chains ? 2 * CHAIN - 1 : LONGEST_CHAIN;
  return chain <= longest || is_empty || kernel_is_scatter(v->k) || !rounds ||
         wrong_root(v, loop, root, "f32 accumulators take %lld operands one after the other, expected at most %d",
                    (long long)chain, (int)longest);
}

static bool verify_loop(const ScheduleVerifying *v, const Loop *loop) {
  const Kernel *k = v->k;
  if (!verify_axes(v, loop) || !verify_levels(v, loop)) return false;
  for (size_t i = 0; i < loop->nroots; i++)
    if (!verify_order(v, loop, &loop->roots[i])) return false;
  for (int sweep = 0; sweep < loop->nsweeps; sweep++) {
    for (size_t i = 0; i < loop->nroots; i++)
      if (loop->roots[i].sweep == sweep && !verify_root(v, loop, &loop->roots[i])) return false;
    for (size_t i = 0; i < loop->nroots; i++) { // later sweeps and loops may read these
      const Root *root = &loop->roots[i];
      const Access *a = &k->accesses[root->access];
      if (root->kind == ROOT_STORE && !a->value && root->sweep == sweep) v->is_filled[a->temporary] = true;
    }
  }
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_REDUCE_OUTER) v->is_filled[k->accesses[loop->roots[i].access].temporary] = true;
  return true;
}

static bool verify_loops(const ScheduleVerifying *v) {
  const Kernel *k = v->k;
  for (size_t i = 0; i < v->schedule->nloops; i++)
    if (!verify_loop(v, &v->schedule->loops[i])) return false;
  for (size_t i = 0; i < k->nstores; i++)
    if (v->nstored[k->stores[i].access] != 1)
      return wrong_access(&v->kernel, k->stores[i].access, "the loops store it %u times, expected once",
                          v->nstored[k->stores[i].access]);
  return true;
}

// Values

static ExprId same_of(const ScheduleVerifying *v, ExprId id) {
  while (v->same[id] != id) id = v->same[id] = v->same[v->same[id]];
  return id;
}

static bool is_same(const ScheduleVerifying *v, ExprId id, ExprId specified);

// The root that stores the access's temporary through another access. NULL: there is none, or several.
static const Root *find_copy(const ScheduleVerifying *v, const Access *use) {
  const Root *found = NULL;
  for (size_t i = 0; i < v->schedule->nloops; i++)
    for (size_t r = 0; r < v->schedule->loops[i].nroots; r++) {
      const Root *root = &v->schedule->loops[i].roots[r];
      const Access *a = &v->k->accesses[root->access];
      if (root->kind != ROOT_STORE || a->value || a->temporary != use->temporary) continue;
      if (found) return NULL;
      found = root;
    }
  return found;
}

// Whether a copy of a window's tensor is read as the tensor would be: index i of the copy, on `axis`, holds the
// tensor's index first + step * i, and the copy's use reads the i at which that is the wanted index.
static bool is_same_window(const Kernel *k, const Bound *wanted, const Bound *from, const Bound *use,
                           const Access *to) {
  const AxisSet axes = bound_axes(from);
  const int axis = __builtin_ctz(axes);
  const int64_t step = from->factor[axis];
  if (axes & (axes - 1) || (step != 1 && step != -1) || from->extent != wanted->extent ||
      from->stride != wanted->stride)
    return false;
  if (use->extent != k->axes[axis].extent || use->stride != to->stride[axis] || !bound_always_holds(k, use))
    return false;
  for (int i = 0; i < k->naxes; i++)
    if (use->factor[i] * step != wanted->factor[i] || (wanted->factor[i] && to->stride[i])) return false;
  return from->offset + step * use->offset == wanted->offset;
}

// The bound of `use` along an axis of the copy; NULL: there is none.
static const Bound *find_use(const Access *use, const Access *to, int axis) {
  for (size_t i = 0; i < use->nbounds; i++)
    if (to->stride[axis] && use->bounds[i].stride == to->stride[axis]) return &use->bounds[i];
  return NULL;
}

// Whether the copying loop's load is the wanted load, which goes through windows.
static bool is_moved_load(const Kernel *k, const Expr *copied, const Expr *wanted, const Access *use,
                          const Access *to) {
  const Access *from = &k->accesses[copied->access], *a = &k->accesses[wanted->access];
  AxisSet windows = 0;
  int64_t offset = from->offset - a->offset;
  if (from->value != a->value || from->outside != a->outside || from->nbounds != a->nbounds) return false;
  for (size_t i = 0; i < a->nbounds; i++) {
    const Bound *of =
        bound_axes(&from->bounds[i]) ? find_use(use, to, __builtin_ctz(bound_axes(&from->bounds[i]))) : NULL;
    if (!of || !is_same_window(k, &a->bounds[i], &from->bounds[i], of, to)) return false;
    windows |= bound_axes(&a->bounds[i]) | bound_axes(&from->bounds[i]);
    offset -= a->bounds[i].stride * (from->bounds[i].offset - a->bounds[i].offset);
  }
  for (int axis = 0; axis < k->naxes; axis++) // the other axes are the same
    if (!(windows >> axis & 1) &&
        (from->stride[axis] != a->stride[axis] || from->stride_monomial[axis] != a->stride_monomial[axis]))
      return false;
  return !offset;
}

// Whether an index that the copying loop computes is the wanted index of a window.
static bool is_moved_index(const Kernel *k, ExprId copied, ExprId wanted, const Access *use, const Access *to) {
  Bound own, other;
  if (!bound_of_index(k, copied, &own) || !bound_of_index(k, wanted, &other) || !bound_axes(&own)) return false;
  const int axis = __builtin_ctz(bound_axes(&own));
  const Bound *of = find_use(use, to, axis);
  const int64_t step = own.factor[axis];
  if (bound_axes(&own) & (bound_axes(&own) - 1) || !of || own.offset + step * of->offset != other.offset) return false;
  for (int i = 0; i < k->naxes; i++)
    if (step * of->factor[i] != other.factor[i]) return false;
  return true;
}

// Whether the copying loop computes the wanted expression, with the copy's axes for windows.
static bool is_moved(const ScheduleVerifying *v, ExprId copied, ExprId wanted, const Access *use, const Access *to) {
  const Kernel *k = v->k;
  const Expr *e = &k->exprs[copied], *other = &k->exprs[wanted];
  AxisSet windows = 0;
  if (!copied || !wanted) return copied == wanted;
  if (v->moved[copied]) return v->moved[copied] == wanted;
  for (size_t i = 0; i < use->nbounds; i++) windows |= bound_axes(&use->bounds[i]);
  bool is_right = (copied == wanted && !(e->axes & windows)) || is_moved_index(k, copied, wanted, use, to);
  if (!is_right) {
    const bool is_load = e->op == EXPR_LOAD && other->op == EXPR_LOAD;
    is_right = is_load ? is_moved_load(k, e, other, use, to)
                       : expr_operations_equal(e, other) && expr_info[e->op].narguments && !expr_has_access(e);
    for (int i = 0; i < 3 && is_right; i++) is_right = is_moved(v, e->args[i], other->args[i], use, to);
  }
  if (is_right) v->moved[copied] = wanted;
  return is_right;
}

// Whether the load of a temporary yields a value that goes through windows, read from a copy along the windows' axes.
static bool is_copied_window(const ScheduleVerifying *v, const Expr *e, ExprId wanted) {
  const Kernel *k = v->k;
  const Access *use = &k->accesses[e->access];
  const Root *root = find_copy(v, use);
  if (!root || e->args[0] || !use->nbounds) return false;
  const Access *to = &k->accesses[root->access];
  if (to->nbounds || to->offset || use->panel_axis) return false;
  AxisSet windows = 0;
  int64_t use_offset = use->offset;
  for (size_t i = 0; i < use->nbounds; i++) {
    windows |= bound_axes(&use->bounds[i]);
    use_offset -= use->bounds[i].stride * use->bounds[i].offset;
  }
  for (int axis = 0; axis < k->naxes; axis++) { // the other axes are the same
    if (windows >> axis & 1 || (!use->stride[axis] && find_use(use, to, axis))) continue;
    if (use->stride[axis] != to->stride[axis] || use->stride_monomial[axis] != to->stride_monomial[axis]) return false;
  }
  memset(v->moved, 0, k->nexprs * sizeof *v->moved);
  return !use_offset && is_moved(v, root->expr, wanted, use, to);
}

// Whether the combined partial results of blocks are the specified reduction. A block reduces the axes that are cut;
// the loop may have reduced the inner axes of each row before.
static bool is_combined(const ScheduleVerifying *v, const Expr *e, const Expr *specified) {
  const Loop *loop = &v->schedule->loops[e->loop];
  const Root *root = find_maker(v, loop, ROOT_REDUCE_OUTER, e->access);
  if (!root || v->schedule->temporaries[v->k->accesses[e->access].temporary].reduction != specified->op) return false;
  const Expr *part = &v->k->exprs[root->expr];
  const bool has_row = part->op == specified->op && !(part->reduced & ~specified->reduced);
  const AxisSet others = loop_is_tiled(loop) ? loop_outer_axes(loop) & ~e->axes : 0; // whose tiles are combined, too
  return specified->reduced == (loop_cut_axes(loop) | others | (has_row ? part->reduced : 0)) &&
         is_same(v, has_row ? part->args[0] : root->expr, specified->args[0]);
}

// Whether an expression that a loop computes has the specified value. A load of a temporary has the value that was
// stored there. Expressions found equal are joined (union-find), so that each pair is compared once.
static bool is_same(const ScheduleVerifying *v, ExprId id, ExprId specified) {
  const Expr *e = &v->k->exprs[id], *wanted = &v->k->exprs[specified];
  if (same_of(v, id) == same_of(v, specified)) return true;
  if (!id || !specified) return false;
  bool is_right = true;
  if (e->op == EXPR_LOAD && !e->args[0] && (!v->k->accesses[e->access].value || kernel_stores(v->k, e->access))) {
    const Root *root = find_maker(v, NULL, ROOT_STORE, e->access);
    is_right = root ? is_same(v, root->expr, specified) : is_copied_window(v, e, specified);
  } else if (e->op == EXPR_COMBINE) {
    is_right = is_combined(v, e, wanted);
  } else {
    is_right = expr_operations_equal(e, wanted);
    for (int i = 0; i < 3 && is_right; i++) is_right = is_same(v, e->args[i], wanted->args[i]);
  }
  if (is_right) v->same[same_of(v, id)] = same_of(v, specified);
  return is_right;
}

// Accesses to tensors without elements have no strides, so expressions lose axes.
static bool has_empty_axis(const Kernel *k) {
  for (int axis = 0; axis < k->naxes; axis++)
    if (!k->axes[axis].extent) return true;
  return false;
}

static bool verify_values(const ScheduleVerifying *v) {
  const Kernel *k = v->k;
  for (size_t i = 0; i < k->nstores && !has_empty_axis(k); i++) {
    const Root *root = find_maker(v, NULL, ROOT_STORE, k->stores[i].access);
    if (!root || !is_same(v, root->expr, k->stores[i].value))
      return wrong_access(&v->kernel, k->stores[i].access,
                          "the value that the loops store is not the value that the kernel specifies (expression %u)",
                          k->stores[i].value);
  }
  return true;
}

bool schedule_verify(const Schedule *s, Text *why) {
  Arena scratch;
  const Kernel *k = s->kernel;
  arena_init(&scratch, k->arena->allocator);
  ScheduleVerifying v = {.kernel = {.k = k,
                                    .temporaries = s->temporaries,
                                    .ntemporaries = s->ntemporaries,
                                    .is_scheduled = true,
                                    .why = why},
                         .schedule = s,
                         .k = k};
  v.is_needed = ARENA_ARRAY(&scratch, bool, k->nexprs);
  v.is_filled = ARENA_ARRAY(&scratch, bool, s->ntemporaries + 1);
  v.nstored = ARENA_ARRAY(&scratch, uint32_t, k->naccesses + 1);
  v.same = ARENA_ARRAY(&scratch, ExprId, k->nexprs);
  v.moved = ARENA_ARRAY(&scratch, ExprId, k->nexprs);
  if (!v.is_needed || !v.is_filled || !v.nstored || !v.same || !v.moved) why->out_of_memory = true;
  for (ExprId id = 0; v.same && id < k->nexprs; id++) v.same[id] = id;
  const bool is_sound = !why->out_of_memory && verify_any_kernel(&v.kernel) && verify_loops(&v) && verify_values(&v);
  arena_deinit(&scratch);
  return is_sound;
}
