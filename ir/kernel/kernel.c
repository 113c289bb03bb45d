// Building kernels: expressions made once, axes merged.
#include "ir/kernel/kernel.h"

#include "ir/graph/open.h"
#include "ir/operators/operator.h"
#include "ir/support/escape.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const ExprInfo expr_info[EXPR_OP_COUNT] = {
    [EXPR_LOAD] = {"load", 0, false},
    [EXPR_CONSTANT] = {"set", 0, false},
    [EXPR_REDUCE_SUM] = {"sum", 1, false},
    [EXPR_REDUCE_MAXIMUM] = {"greatest", 1, false},
    [EXPR_REDUCE_PRODUCT] = {"product", 1, false},
    [EXPR_COMBINE] = {"combine", 0, false},
    [EXPR_ADD] = {"add", 2, false},
    [EXPR_SUB] = {"sub", 2, false},
    [EXPR_MUL] = {"mul", 2, false},
    [EXPR_DIV] = {"div", 2, false},
    [EXPR_NEG] = {"neg", 1, false},
    [EXPR_SQRT] = {"sqrt", 1, false},
    [EXPR_MAX] = {"max", 2, false},
    [EXPR_FMA] = {"fma", 3, false},
    [EXPR_GT] = {"gt", 2, true},
    [EXPR_SELECT] = {"select", 3, false},
    [EXPR_ROUND_F32] = {"round_f32", 1, false},
    [EXPR_ROUND_F16] = {"round_f16", 1, false},
    [EXPR_ROUND_BF16] = {"round_bf16", 1, false},
    [EXPR_ABS] = {"abs", 1, false},
    [EXPR_MIN] = {"min", 2, false},
    [EXPR_EQ] = {"eq", 2, true},
    [EXPR_GE] = {"ge", 2, true},
    [EXPR_EXP] = {"exp", 1, false},
    [EXPR_EXPM1] = {"expm1", 1, false},
    [EXPR_LOG] = {"log", 1, false},
    [EXPR_LOG1P] = {"log1p", 1, false},
    [EXPR_TANH] = {"tanh", 1, false},
    [EXPR_GELU] = {"gelu", 1, false},
    [EXPR_GELU_SLOPE] = {"gelu_slope", 1, false},
    [EXPR_POW] = {"pow", 2, false},
    [EXPR_FLOOR] = {"floor", 1, false},
    [EXPR_ROUND] = {"round", 1, false},
    [EXPR_MAXIMUM] = {"maximum", 2, false},
    [EXPR_ROUND_E4M3] = {"round_e4m3", 1, false},
    [EXPR_ROUND_E5M2] = {"round_e5m2", 1, false},
    [EXPR_INDEX] = {"index", 0, false},
    [EXPR_INTEGER] = {"integer", 0, false},
    [EXPR_IS_KEPT] = {"is_kept", 3, true},
    [EXPR_COUNT] = {"count", 0, false},
    [EXPR_SHARE] = {"share", 0, false},
};

const ReductionInfo reductions[EXPR_OP_COUNT] = {
    [EXPR_REDUCE_SUM] = {EXPR_ADD, 0},
    [EXPR_REDUCE_MAXIMUM] = {EXPR_MAXIMUM, -INFINITY},
    [EXPR_REDUCE_PRODUCT] = {EXPR_MUL, 1},
};

bool expr_is_reduction(const Expr *e) {
  return reductions[e->op].combine != EXPR_NONE;
}

bool expr_is_s64(const Kernel *k, const Expr *e) {
  return e->op == EXPR_INTEGER || (e->op == EXPR_LOAD && k->accesses[e->access].type == TYPE_S64);
}

bool expr_has_access(const Expr *e) {
  return e->op == EXPR_LOAD || e->op == EXPR_IS_KEPT;
}

void kernel_init(Kernel *k, Arena *arena, const char *name) {
  *k = (Kernel){.arena = arena, .name = name, .nexprs = 1};
}

int kernel_add_axis(Kernel *k, const char *name, int64_t extent, Monomial monomial) {
  if (k->naxes == MAX_AXES) {
    k->out_of_memory = true;
    return 0;
  }
  k->axes[k->naxes] = (Axis){name, extent, monomial};
  return k->naxes++;
}

AxisSet access_axes(const Kernel *k, const Access *access) {
  AxisSet axes = 0;
  for (int i = 0; i < k->naxes; i++)
    if (access->stride[i]) axes |= 1U << i;
  return axes;
}

bool access_is_mask(const Access *access) {
  return !access->value && access->type == TYPE_BOOLEAN;
}

bool access_has_addresses(const Access *access) {
  return access->type != TYPE_NONE && !type_is_packed(access->type);
}

bool expr_is_mask(const Kernel *k, ExprId e) {
  const Expr *expr = &k->exprs[e];
  return expr->op == EXPR_LOAD ? access_is_mask(&k->accesses[expr->access]) : expr_info[expr->op].is_mask;
}

AxisSet root_axes(const Kernel *k, const Root *root) {
  AxisSet axes = k->exprs[root->expr].axes;
  return root->kind == ROOT_STORE ? axes | access_axes(k, &k->accesses[root->access]) : axes;
}

bool access_strides_equal(const Access *a, const Access *b) {
  return memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
         memcmp(a->stride_monomial, b->stride_monomial, sizeof a->stride_monomial) == 0;
}

AccessId kernel_add_access(Kernel *k, const Access *access) {
  for (AccessId i = 0; i < k->naccesses; i++)
    if (memcmp(&k->accesses[i], access, sizeof *access) == 0) return i;
  if (!arena_grow(k->arena, &k->accesses, k->naccesses, &k->accesses_capacity, sizeof *k->accesses)) {
    k->out_of_memory = true;
    return 0;
  }
  k->accesses[k->naccesses] = *access;
  return (AccessId)k->naccesses++;
}

// Not for NaN, which is made anew each time.
static bool same_number(double a, double b) {
  return a == b && !signbit(a) == !signbit(b);
}

static bool expr_equals(const Expr *a, const Expr *b) {
  return a->op == b->op && a->axes == b->axes && memcmp(a->args, b->args, sizeof a->args) == 0 &&
         a->access == b->access && a->reduced == b->reduced && a->loop == b->loop && a->integer == b->integer &&
         a->monomial == b->monomial && same_number(a->number, b->number);
}

static ExprId add_expr(Kernel *k, Expr e) {
  for (int i = 0; i < expr_info[e.op].narguments; i++)
    if (!e.args[i]) return 0;
  for (ExprId i = 1; i < k->nexprs; i++)
    if (expr_equals(&k->exprs[i], &e)) return i;
  if (!arena_grow(k->arena, &k->exprs, k->nexprs, &k->exprs_capacity, sizeof *k->exprs)) {
    k->out_of_memory = true;
    return 0;
  }
  k->exprs[k->nexprs] = e;
  return (ExprId)k->nexprs++;
}

ExprId expr_load(Kernel *k, AccessId access) {
  if (k->out_of_memory) return 0;
  return add_expr(k, (Expr){.op = EXPR_LOAD, .access = access, .axes = access_axes(k, &k->accesses[access])});
}

ExprId expr_load_at(Kernel *k, AccessId access, ExprId offset) {
  if (k->out_of_memory || !offset) return 0;
  AxisSet axes = access_axes(k, &k->accesses[access]) | k->exprs[offset].axes;
  return add_expr(k, (Expr){.op = EXPR_LOAD, .access = access, .args = {offset}, .axes = axes});
}

ExprId expr_index(Kernel *k, int axis) {
  if (k->axes[axis].extent == 1) return expr_constant(k, 0);
  return add_expr(k, (Expr){.op = EXPR_INDEX, .axes = 1U << axis});
}

ExprId expr_integer(Kernel *k, int64_t integer) {
  return add_expr(k, (Expr){.op = EXPR_INTEGER, .integer = integer});
}

ExprId expr_is_kept(Kernel *k, AccessId place, ExprId seed, ExprId offset, ExprId probability) {
  if (k->out_of_memory || !seed || !offset || !probability) return 0;
  AxisSet axes = access_axes(k, &k->accesses[place]) | k->exprs[probability].axes;
  return add_expr(k, (Expr){.op = EXPR_IS_KEPT, .access = place, .args = {seed, offset, probability}, .axes = axes});
}

ExprId expr_constant_over(Kernel *k, double number, AxisSet axes) {
  return add_expr(k, (Expr){.op = EXPR_CONSTANT, .number = k->is_f64 ? number : (float)number, .axes = axes});
}

ExprId expr_count(Kernel *k, int64_t count, Monomial monomial) {
  if (!monomial) return expr_constant(k, (double)count);
  return add_expr(k, (Expr){.op = EXPR_COUNT, .number = (double)count, .monomial = monomial});
}

ExprId expr_share(Kernel *k, int64_t count, Monomial monomial) {
  if (!monomial) return expr_constant(k, 1 / (double)(count > 0 ? count : 1));
  return add_expr(k, (Expr){.op = EXPR_SHARE, .number = (double)count, .monomial = monomial});
}

ExprId expr_constant(Kernel *k, double number) {
  return expr_constant_over(k, number, 0);
}

ExprId expr_unary(Kernel *k, ExprOp op, ExprId a) {
  return add_expr(k, (Expr){.op = op, .args = {a}, .axes = a ? k->exprs[a].axes : 0});
}

ExprId expr_binary(Kernel *k, ExprOp op, ExprId a, ExprId b) {
  if (!a || !b) return 0;
  return add_expr(k, (Expr){.op = op, .args = {a, b}, .axes = k->exprs[a].axes | k->exprs[b].axes});
}

static ExprId expr_ternary(Kernel *k, ExprOp op, ExprId a, ExprId b, ExprId c) {
  if (!a || !b || !c) return 0;
  AxisSet axes = k->exprs[a].axes | k->exprs[b].axes | k->exprs[c].axes;
  return add_expr(k, (Expr){.op = op, .args = {a, b, c}, .axes = axes});
}

ExprId expr_fma(Kernel *k, ExprId a, ExprId b, ExprId c) {
  return expr_ternary(k, EXPR_FMA, a, b, c);
}

ExprId expr_select(Kernel *k, ExprId mask, ExprId a, ExprId b) {
  return expr_ternary(k, EXPR_SELECT, mask, a, b);
}

int64_t axes_nelems(const Kernel *k, AxisSet axes) {
  int64_t n = 1;
  for (int i = 0; i < k->naxes; i++)
    if (axes >> i & 1) n *= k->axes[i].extent;
  return n;
}

Monomial axes_monomial(const Kernel *k, AxisSet axes) {
  Monomial monomial = 0;
  for (int i = 0; i < k->naxes; i++)
    if (axes >> i & 1) monomial += k->axes[i].monomial;
  return monomial;
}

int64_t kernel_factor(const Kernel *k, int64_t number, Monomial monomial) {
  return monomial ? open_factor(k->graph, number, monomial) : number;
}

void kernel_close(Kernel *k, Monomial monomial) {
  for (size_t i = 0; monomial && !k->closed && i < k->graph->ndims; i++)
    if (monomial_exponent(monomial, i)) k->closed = k->graph->dims[i];
}

// `a` combined with itself, `times` of it: a product is a power, by squaring.
static ExprId repeated(Kernel *k, ExprOp reduction, ExprId a, int64_t times, Monomial monomial) {
  if (reduction == EXPR_REDUCE_SUM) return expr_binary(k, EXPR_MUL, a, expr_count(k, times, monomial));
  if (reduction == EXPR_REDUCE_MAXIMUM) return a;
  kernel_close(k, monomial);
  ExprId power = 0;
  for (; times; times /= 2) {
    if (times % 2) power = power ? expr_binary(k, EXPR_MUL, power, a) : a;
    if (times > 1) a = expr_binary(k, EXPR_MUL, a, a);
  }
  return power;
}

ExprId expr_reduce(Kernel *k, ExprOp reduction, ExprId a, AxisSet reduced) {
  if (!a) return 0;
  AxisSet others = reduced & ~k->exprs[a].axes;
  int64_t times = axes_nelems(k, others); // of the same
  Monomial monomial = axes_monomial(k, others);
  reduced &= k->exprs[a].axes;
  if (times == 0) return expr_constant(k, reductions[reduction].identity);
  if (times != 1) a = repeated(k, reduction, a, times, monomial);
  if (a && reduced)
    a = add_expr(k, (Expr){.op = reduction, .args = {a}, .reduced = reduced, .axes = k->exprs[a].axes & ~reduced});
  else if (reduction == EXPR_REDUCE_SUM) a = expr_binary(k, EXPR_ADD, a, expr_constant(k, 0)); // as loops begin with it
  if (!monomial) return a;
  ExprId is_none = expr_binary(k, EXPR_EQ, expr_count(k, times, monomial), expr_constant(k, 0));
  return expr_select(k, is_none, expr_constant(k, reductions[reduction].identity), a);
}

ExprId expr_sum(Kernel *k, ExprId a, AxisSet reduced) {
  return expr_reduce(k, EXPR_REDUCE_SUM, a, reduced);
}

ExprId expr_combine(Kernel *k, AccessId partial_sums, uint32_t loop, AxisSet axes) {
  if (k->out_of_memory) return 0;
  return add_expr(k, (Expr){.op = EXPR_COMBINE, .access = partial_sums, .loop = loop, .axes = axes});
}

ExprId expr_with_arguments(Kernel *k, const Expr *e, const ExprId *args) {
  if (expr_is_reduction(e)) return expr_reduce(k, e->op, args[0], e->reduced);
  if (e->op == EXPR_LOAD) return expr_load_at(k, e->access, args[0]);
  if (e->op == EXPR_IS_KEPT) return expr_is_kept(k, e->access, args[0], args[1], args[2]);
  switch (expr_info[e->op].narguments) {
  case 1: return expr_unary(k, e->op, args[0]);
  case 2: return expr_binary(k, e->op, args[0], args[1]);
  default: return expr_ternary(k, e->op, args[0], args[1], args[2]);
  }
}

ExprId expr_label(Kernel *k, ExprId e, const char *label) {
  if (e && !k->exprs[e].label) k->exprs[e].label = label;
  return e;
}

void kernel_store(Kernel *k, AccessId access, ExprId value) {
  if (!value || !arena_grow(k->arena, &k->stores, k->nstores, &k->stores_capacity, sizeof *k->stores)) {
    k->out_of_memory = true;
    return;
  }
  k->stores[k->nstores++] = (Store){access, value};
}

uint32_t kernel_add_temporary(Kernel *k, const char *name, Type type, int64_t nelems) {
  if (!arena_grow(k->arena, &k->temporaries, k->ntemporaries, &k->temporaries_capacity, sizeof *k->temporaries)) {
    k->out_of_memory = true;
    return 0;
  }
  k->temporaries[k->ntemporaries] = (Temporary){.name = name, .type = type, .nelems = nelems};
  return (uint32_t)k->ntemporaries++;
}

Loop *kernel_add_loop(Kernel *k) {
  if (!arena_grow(k->arena, &k->loops, k->nloops, &k->loops_capacity, sizeof *k->loops)) {
    k->out_of_memory = true;
    return NULL;
  }
  k->loops[k->nloops] = (Loop){.rows = 1, .accumulators = 1, .block = 1};
  return &k->loops[k->nloops++];
}

static int compare_roots(const void *a, const void *b) {
  const Root *x = a, *y = b;
  if (x->sweep != y->sweep) return x->sweep < y->sweep ? -1 : 1;
  return x->kind != y->kind ? (x->kind > y->kind ? -1 : 1) : x->expr < y->expr ? -1 : x->expr > y->expr;
}

void loop_sort_roots(Loop *loop) {
  qsort(loop->roots, loop->nroots, sizeof *loop->roots, compare_roots);
}

bool loop_add_root(Kernel *k, Loop *loop, Root root) {
  if (!arena_grow(k->arena, &loop->roots, loop->nroots, &loop->roots_capacity, sizeof *loop->roots)) {
    k->out_of_memory = true;
    return false;
  }
  loop->roots[loop->nroots++] = root;
  return true;
}

bool kernel_stores(const Kernel *k, AccessId id) {
  for (size_t i = 0; i < k->nstores; i++)
    if (k->stores[i].access == id) return true;
  return false;
}

// Axes

static AxisSet remove_axis(AxisSet set, int axis) {
  AxisSet below = set & ((1U << axis) - 1);
  return below | (set >> (axis + 1) << axis);
}

// Takes axis out of every set and access; what varied over it then does not.
static void drop_axis(Kernel *k, int axis) {
  for (size_t i = 1; i < k->nexprs; i++) {
    k->exprs[i].axes = remove_axis(k->exprs[i].axes, axis);
    k->exprs[i].reduced = remove_axis(k->exprs[i].reduced, axis);
  }
  for (size_t i = 0; i < k->naccesses; i++) {
    int64_t *stride = k->accesses[i].stride;
    Monomial *monomial = k->accesses[i].stride_monomial;
    memmove(&stride[axis], &stride[axis + 1], (size_t)(MAX_AXES - 1 - axis) * sizeof *stride);
    memmove(&monomial[axis], &monomial[axis + 1], (size_t)(MAX_AXES - 1 - axis) * sizeof *monomial);
    stride[MAX_AXES - 1] = 0;
    monomial[MAX_AXES - 1] = 0;
  }
  memmove(&k->axes[axis], &k->axes[axis + 1], (size_t)(MAX_AXES - 1 - axis) * sizeof *k->axes);
  k->naxes--;
}

static bool are_alike(const Kernel *k, int axis) {
  AxisSet both = 3U << axis;
  for (size_t i = 1; i < k->nexprs; i++) {
    AxisSet axes = k->exprs[i].axes & both, reduced = k->exprs[i].reduced & both;
    if ((axes && axes != both) || (reduced && reduced != both)) return false;
  }
  for (size_t i = 0; i < k->naccesses; i++) {
    const int64_t *stride = k->accesses[i].stride;
    const Monomial *monomial = k->accesses[i].stride_monomial;
    if (stride[axis] != stride[axis + 1] * k->axes[axis + 1].extent) return false;
    if (stride[axis] && monomial[axis] != monomial[axis + 1] + k->axes[axis + 1].monomial) return false;
  }
  return true;
}

// A reduction over nothing but dropped axes is its operand.
static void forward_empty_reductions(Kernel *k) {
  for (size_t i = 1; i < k->nexprs; i++) {
    Expr *e = &k->exprs[i];
    for (int a = 0; a < 3; a++) {
      const Expr *arg = &k->exprs[e->args[a]];
      if (e->args[a] && expr_is_reduction(arg) && !arg->reduced) e->args[a] = arg->args[0];
    }
  }
  for (size_t i = 0; i < k->nstores; i++) {
    const Expr *e = &k->exprs[k->stores[i].value];
    if (expr_is_reduction(e) && !e->reduced) k->stores[i].value = e->args[0];
  }
}

static AxisSet swap_bits(AxisSet set, int axis) {
  AxisSet both = 3U << axis, own = set & both;
  return (set & ~both) | ((own << 1 | own >> 1) & both);
}

static void swap_axes(Kernel *k, int axis) { // with the next
  for (size_t i = 1; i < k->nexprs; i++) {
    k->exprs[i].axes = swap_bits(k->exprs[i].axes, axis);
    k->exprs[i].reduced = swap_bits(k->exprs[i].reduced, axis);
  }
  for (size_t i = 0; i < k->naccesses; i++) {
    int64_t *stride = k->accesses[i].stride, own = stride[axis];
    stride[axis] = stride[axis + 1];
    stride[axis + 1] = own;
    Monomial *monomial = k->accesses[i].stride_monomial, own_monomial = monomial[axis];
    monomial[axis] = monomial[axis + 1];
    monomial[axis + 1] = own_monomial;
  }
  Axis own = k->axes[axis];
  k->axes[axis] = k->axes[axis + 1];
  k->axes[axis + 1] = own;
}

// Whether more elements are in tensors whose memory has the axis inside the next than the other way round.
static bool belongs_inside(const Kernel *k, int axis) {
  int64_t inside = 0;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    int64_t own = a->stride[axis], next = a->stride[axis + 1];
    if (!own || !next || own == next || a->type == TYPE_NONE) continue;
    int64_t nelems = axes_nelems(k, access_axes(k, a));
    inside += own < next ? nelems : -nelems;
  }
  return inside > 0;
}

// Axes in the order that most of memory has them, so that loops go through it as it lies.
static void order_axes(Kernel *k) {
  for (int round = 1; round < k->naxes; round++) // the order between each two need not make one of all
    for (int axis = 0; axis + 1 < k->naxes; axis++)
      if (belongs_inside(k, axis)) swap_axes(k, axis);
}

void kernel_drop_unneeded(Kernel *k) {
  ExprId *expr = ARENA_ARRAY(k->arena, ExprId, k->nexprs); // new id; 0: not needed
  AccessId *access = ARENA_ARRAY(k->arena, AccessId, k->naccesses + 1);
  bool *is_used = ARENA_ARRAY(k->arena, bool, k->naccesses + 1);
  if (!expr || !access || !is_used) {
    k->out_of_memory = true;
    return;
  }
  for (size_t i = 0; i < k->nstores; i++) {
    expr[k->stores[i].value] = 1;
    is_used[k->stores[i].access] = true;
  }
  for (size_t i = k->nexprs; i-- > 1;) {
    if (!expr[i]) continue;
    for (int a = 0; a < 3; a++) expr[k->exprs[i].args[a]] = 1;
    if (expr_has_access(&k->exprs[i])) is_used[k->exprs[i].access] = true;
  }
  expr[0] = 0;
  AccessId naccesses = 0;
  for (size_t i = 0; i < k->naccesses; i++) {
    if (!is_used[i]) continue;
    k->accesses[naccesses] = k->accesses[i];
    access[i] = naccesses++;
  }
  ExprId nexprs = 1;
  for (size_t i = 1; i < k->nexprs; i++) {
    if (!expr[i]) continue;
    Expr e = k->exprs[i];
    for (int a = 0; a < 3; a++) e.args[a] = expr[e.args[a]];
    if (expr_has_access(&e)) e.access = access[e.access];
    k->exprs[nexprs] = e;
    expr[i] = nexprs++;
  }
  for (size_t i = 0; i < k->nstores; i++) k->stores[i] = (Store){access[k->stores[i].access], expr[k->stores[i].value]};
  k->naccesses = naccesses;
  k->nexprs = nexprs;
}

void kernel_simplify_axes(Kernel *k) {
  assert(k->naxes >= 0 && k->naxes <= MAX_AXES);
  for (int axis = k->naxes - 1; axis >= 0; axis--)
    if (k->axes[axis].extent == 1) drop_axis(k, axis);
  forward_empty_reductions(k);
  order_axes(k);
  for (int axis = k->naxes - 2; axis >= 0; axis--) {
    if (!are_alike(k, axis)) continue;
    k->axes[axis + 1].extent *= k->axes[axis].extent;
    k->axes[axis + 1].monomial += k->axes[axis].monomial;
    k->axes[axis + 1].name = k->axes[axis].name;
    drop_axis(k, axis);
  }
}

AxisSet loop_outer_axes(const Loop *loop) {
  AxisSet axes = 0;
  for (int i = 0; i < loop->nouter; i++) axes |= 1U << loop->order[i];
  return axes;
}

AxisSet loop_inner_axes(const Loop *loop) {
  AxisSet axes = 0;
  for (int i = 0; i < loop->ninner; i++) axes |= 1U << loop->order[loop->nouter + i];
  return axes;
}

int loop_vector_axis(const Loop *loop) {
  return loop->ninner ? loop->order[loop->nouter + loop->ninner - 1] : -1;
}

int loop_lane_axis(const Loop *loop) {
  if (loop->rows_in_lanes) return loop->order[loop->nouter - 1];
  return loop->ninner ? loop_vector_axis(loop) : -1;
}

int64_t loop_row_nelems(const Kernel *k, const Loop *loop) {
  int64_t extent = k->axes[loop->order[loop->nouter]].extent;
  const int64_t whole = (extent + LANES - 1) / LANES * LANES;
  return loop->rows_in_lanes ? extent
         : loop->is_peeled   ? whole + LANES
                             : whole; // vectors of peeled rows begin anywhere
}

AxisSet loop_cut_axes(const Loop *loop) {
  AxisSet axes = loop->tile ? 1U << loop->order[0] : 0;
  for (int i = loop->nfree; i < loop->nouter; i++) axes |= 1U << loop->order[i];
  return axes;
}

static AxisSet free_axes(const Loop *loop) {
  return loop_outer_axes(loop) & ~loop_cut_axes(loop);
}

bool loop_has_open_length(const Kernel *k, const Loop *loop) {
  return loop->few_work || (loop->most_chunks && axes_monomial(k, loop_cut_axes(loop)));
}

int64_t loop_block_length(const Kernel *k, const Loop *loop) {
  const int64_t length = loop->tile ? loop->tile : loop->block, most = loop->most_chunks;
  const int64_t least = most ? (axes_nelems(k, loop_cut_axes(loop)) + most - 1) / most : 0;
  return length > least ? length : least;
}

int64_t loop_nchunks(const Kernel *k, const Loop *loop) {
  const int64_t length = loop_block_length(k, loop);
  assert(length > 0);
  return (axes_nelems(k, loop_cut_axes(loop)) + length - 1) / length;
}

bool loop_has_open_chunks(const Kernel *k, const Loop *loop) {
  return loop_has_open_length(k, loop) || axes_monomial(k, loop_cut_axes(loop));
}

int64_t loop_nblocks(const Kernel *k, const Loop *loop) {
  return axes_nelems(k, free_axes(loop)) * loop_nchunks(k, loop);
}

bool loop_is_idle(const Kernel *k, const Loop *loop) {
  bool leaves_any = false;
  for (size_t i = 0; i < loop->nroots; i++) {
    const Root *root = &loop->roots[i];
    if (root->kind == ROOT_STORE) leaves_any |= axes_nelems(k, root_axes(k, root)) != 0;
    if (root->kind == ROOT_REDUCE_OUTER) leaves_any |= axes_nelems(k, access_axes(k, &k->accesses[root->access])) != 0;
  }
  return !leaves_any || loop_nblocks(k, loop) == 0;
}

// Bytes

int64_t access_tensor_nbytes(const Kernel *k, AccessId id) {
  const Access *a = &k->accesses[id];
  const Temporary *temporary = a->value ? NULL : &k->temporaries[a->temporary];
  if (temporary && temporary->is_own) return 0;
  if (temporary) return (int64_t)type_array_nbytes(temporary->type, (size_t)temporary->nelems);
  int64_t nelems = kernel_stores(k, id) ? axes_nelems(k, access_axes(k, a)) : shape_nelems(&a->value->shape);
  return (int64_t)type_array_nbytes(a->type, (size_t)nelems);
}

Traffic kernel_tensor_nbytes(const Kernel *k) {
  Traffic traffic = {0};
  for (AccessId i = 0; i < k->naccesses; i++) {
    if (!k->accesses[i].value) continue;
    *(kernel_stores(k, i) ? &traffic.written : &traffic.read) += access_tensor_nbytes(k, i);
  }
  return traffic;
}

void program_free(Program *p) {
  if (!p) return;
  Arena arena = p->arena; // p itself lies in it
  arena_deinit(&arena);
}

// Printing

enum { MOST_REFUSALS = 32, MOST_USES = 64 };

static void print_name(const char *before, const char *name, Text *out) {
  text_format(out, "%s ", before);
  text_add_user_string(out, SINK_TERMINAL, name);
}

static void print_axes(const Kernel *k, const int *order, int count, Text *out) {
  for (int i = 0; i < count; i++)
    text_format(out, "%s%s %lld", i ? ", " : "", k->axes[order[i]].name, (long long)k->axes[order[i]].extent);
}

static const char *access_name(const Kernel *k, AccessId id) {
  const Access *a = &k->accesses[id];
  return a->value ? a->value->name : k->temporaries[a->temporary].name;
}

static const char *store_verb(const Kernel *k, const Root *root) {
  const Access *a = &k->accesses[root->access];
  if (!a->value && k->temporaries[a->temporary].is_own) return "keep";
  return root->is_streamed ? "stream" : "store";
}

void kernel_print_nodes(const Kernel *k, Text *out) {
  for (size_t i = 0; i < k->nnodes; i++) {
    if (i) text_add_string(out, ", ");
    node_print(k->nodes[i], out);
  }
}

static void print_parts(int64_t count, const char *part, int64_t length, Text *out) {
  text_format(out, " in %lld %s%s of %lld", (long long)count, part, count == 1 ? "" : "s", (long long)length);
}

void loop_print_order(const Kernel *k, const Loop *loop, Text *out) {
  text_add_string(out, "over ");
  if (loop->nouter) {
    print_axes(k, loop->order, loop->nouter, out);
    print_parts(loop_nblocks(k, loop), "block", loop_block_length(k, loop), out);
    if (loop->rows_in_lanes) text_format(out, ", %d at once, across lanes", LANES);
    if (loop->rows > 1) text_format(out, ", %d at once", loop->rows);
    text_add_string(out, "; inside ");
  }
  print_axes(k, loop->order + loop->nouter, loop->ninner, out);
  if (!loop->ninner) text_add_string(out, "nothing");
  if (loop->tile) print_parts(loop_nblocks(k, loop), "tile", loop->tile, out);
  if (loop->is_peeled) text_add_string(out, ", rows peeled to cache lines");
  if (loop->is_nested) text_add_string(out, ", sums within sums");
  if (loop->sums_middle) text_format(out, ", %d vectors of sums at once", loop->vectors);
  if (loop->is_serial) text_add_string(out, ", on one thread");
  if (loop->is_backwards) text_add_string(out, ", last sweep backwards");
  if (loop->prefetch) text_format(out, ", prefetching %d rows ahead", loop->prefetch);
  if (loop->ahead) text_format(out, ", prefetching %d elements ahead", loop->ahead);
  if (loop->iterations_ahead)
    text_format(out, ", prefetching %d iteration%s ahead", loop->iterations_ahead, loop->iterations_ahead == 1 ? "" : "s");
}

void loop_print_sweep(const Kernel *k, const Loop *loop, int sweep, Text *out) {
  const char *before = "";
  for (size_t i = 0; i < loop->nroots; i++) {
    const Root *root = &loop->roots[i];
    const char *label = k->exprs[root->expr].label;
    if (root->sweep != sweep) continue;
    text_add_string(out, before);
    const bool is_inner = root->kind == ROOT_REDUCE_INNER;
    const char *verb = root->kind == ROOT_STORE ? store_verb(k, root)
                       : is_inner               ? expr_info[k->exprs[root->expr].op].name
                                                : "add up";
    print_name(verb, !is_inner ? access_name(k, root->access) : label ? label : "a row", out);
    if (root->is_fused) text_add_string(out, " of unrounded products");
    before = ", ";
  }
  for (int i = 0; i < loop->nspills; i++) {
    const char *label = k->exprs[loop->spills[i].expr].label;
    if (loop->spills[i].sweep == sweep) print_name(", keep", label ? label : "a vector", out);
  }
}

// The order of additions within an outer iteration: of each lane, then over lanes.
static void print_inner_order(const Kernel *k, const Loop *loop, Text *out) {
  const Runs *runs = &loop->runs;
  const char *axis = k->axes[loop_vector_axis(loop)].name, *type = k->is_f64 ? "f64" : "f32";
  if (loop->sums_middle) {
    text_add_string(out, "    sums over ");
    print_axes(k, loop->order + loop->nouter, loop->ninner - 1, out);
    text_format(out, ": one by one, in %s", type);
    if (runs->middle_run)
      text_format(out, ", runs of %lld along %s into f64", (long long)runs->middle_run,
                  k->axes[loop->order[loop->nouter + loop->ninner - 2]].name);
    text_add_string(out, "\n");
    return;
  }
  if (loop->rows_in_lanes) {
    text_format(out, "    sums within a row: along %s one by one, in %s\n", axis, type);
    return;
  }
  text_format(out, "    sums within a row: %d lanes along %s, %d accumulator%s each, in %s", LANES, axis,
              loop->accumulators, loop->accumulators == 1 ? "" : "s", type);
  if (runs->vector_run) text_format(out, ", runs of %lld along %s into f64", (long long)runs->vector_run, axis);
  if (runs->middle_run)
    text_format(out, ", runs of %lld along %s into f64", (long long)runs->middle_run,
                k->axes[loop->order[loop->nouter + loop->ninner - 2]].name);
  if (runs->is_open) text_format(out, ", runs of %d additions into f64", LONGEST_RUN);
  text_add_string(out, "; then lanes by pairs, in f64\n");
}

static bool has_roots(const Loop *loop, RootKind kind) {
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == kind) return true;
  return false;
}

static void print_outer_order(const Kernel *k, const Loop *loop, Text *out) {
  bool is_narrow = false; // some partial sums are in f32
  for (size_t i = 0; i < loop->nroots; i++)
    is_narrow |= loop->roots[i].kind == ROOT_REDUCE_OUTER && k->accesses[loop->roots[i].access].type == TYPE_F32;
  const char *what = loop->rows_in_lanes ? "rows of a lane" : loop->nouter ? "rows" : "a tile";
  text_format(out, "    sums over rows: %s of a block one by one%s, in %s; then blocks one by one, in f64\n", what,
              loop->rows_in_lanes ? ", then lanes by pairs" : "", is_narrow ? "f32" : "f64");
}

static void print_loop(const Kernel *k, const Loop *loop, Text *out) {
  text_add_string(out, "  loop ");
  loop_print_order(k, loop, out);
  text_add_string(out, "\n");
  if (has_roots(loop, ROOT_REDUCE_INNER)) print_inner_order(k, loop, out);
  if (has_roots(loop, ROOT_REDUCE_OUTER)) print_outer_order(k, loop, out);
  for (int sweep = 0; sweep < loop->nsweeps; sweep++) {
    text_format(out, "    sweep %d: ", sweep + 1);
    loop_print_sweep(k, loop, sweep, out);
    text_add_string(out, "\n");
  }
}

static void print_traffic(const Kernel *k, Text *out) {
  const Traffic traffic = kernel_tensor_nbytes(k);
  for (int is_written = 0; is_written < 2; is_written++) {
    text_add_string(out, is_written ? "  writes" : "  reads");
    for (AccessId i = 0; i < k->naccesses; i++)
      if (k->accesses[i].value && kernel_stores(k, i) == is_written) print_name("", k->accesses[i].value->name, out);
    text_format(out, ": %lld bytes\n", (long long)(is_written ? traffic.written : traffic.read));
  }
}

// A program being printed.
typedef struct Printing {
  const Program *program;
  Text *out;
  uint32_t told[MOST_REFUSALS]; // kernels that it has been said of why they are apart from the kernel at hand
  uint32_t ntold;
} Printing;

static void print_refusal(Printing *p, const Kernel *k, const Node *node) {
  if (!node) return;
  const uint32_t *kernel_of = p->program->first_kernel, own = kernel_of[k->nodes[0]->index];
  const uint32_t other = kernel_of[node->index];
  const Refusal *r = p->program->partition->refusals[node->index];
  while (r && kernel_of[r->with->index] != own) r = r->next;
  if (!r || other == own || p->ntold == MOST_REFUSALS) return;
  for (uint32_t i = 0; i < p->ntold; i++)
    if (p->told[i] == other) return;
  p->told[p->ntold++] = other;
  text_format(p->out, "  not with kernel %u, ", (unsigned)other);
  node_print(node, p->out);
  print_name(":", r->why, p->out);
  text_add_string(p->out, "\n");
}

// Why kernels that it shares values with are others: of each the first reason.
static void print_apart(Printing *p, const Kernel *k) {
  p->ntold = 0;
  for (AccessId i = 0; i < k->naccesses; i++) {
    const Value *v = k->accesses[i].value;
    if (!v) continue;
    print_refusal(p, k, v->producer);
    int looked = 0;
    for (const Use *use = v->uses; use && looked < MOST_USES; use = use->next, looked++) print_refusal(p, k, use->node);
  }
}

void program_print(const Program *p, Text *out) {
  Printing printing = {.program = p, .out = out};
  for (size_t i = 0; i < p->nkernels; i++) {
    const Kernel *k = p->kernels[i];
    text_format(out, "kernel %zu: ", i);
    kernel_print_nodes(k, out);
    text_add_string(out, k->is_f64 ? ", in f64\n" : "\n");
    print_traffic(k, out);
    print_apart(&printing, k);
    for (size_t l = 0; l < k->nloops; l++) print_loop(k, &k->loops[l], out);
  }
  text_format(out, "workspace: %zu bytes, %zu without reuse\n", p->workspace_nbytes, p->unshared_nbytes);
}
