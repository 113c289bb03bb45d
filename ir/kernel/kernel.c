// Kernels: the tables of expression operators, builders and queries. Each builder returns an equal expression if there
// is one, so that common subexpressions are shared.
#include "ir/kernel/kernel.h"

#include "ir/graph/open_dims.h"
#include "ir/operators/operator.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

const ExprInfo expr_info[EXPR_OP_COUNT] = {
    [EXPR_LOAD] = {"load", 0, .has_s64 = true},
    [EXPR_CONSTANT] = {"set", 0, .has_s64 = true},
    [EXPR_REDUCE_SUM] = {"sum", 1, .operations = 1},
    [EXPR_REDUCE_MAXIMUM] = {"greatest", 1, .operations = 1},
    [EXPR_REDUCE_PRODUCT] = {"product", 1, .operations = 1},
    [EXPR_COMBINE] = {"combine", 0},
    [EXPR_ADD] = {"add", 2, .has_s64 = true, .operations = 1},
    [EXPR_SUB] = {"sub", 2, .has_s64 = true, .operations = 1},
    [EXPR_MUL] = {"mul", 2, .has_s64 = true, .operations = 1},
    [EXPR_DIV] = {"div", 2, .operations = 1},
    [EXPR_NEG] = {"neg", 1, .has_s64 = true, .operations = 1},
    [EXPR_SQRT] = {"sqrt", 1, .operations = 1},
    [EXPR_MAX] = {"max", 2, .has_s64 = true, .operations = 1},
    [EXPR_FMA] = {"fma", 3, .has_s64 = true, .operations = 2},
    [EXPR_GT] = {"gt", 2, true, .has_s64 = true},
    [EXPR_SELECT] = {"select", 3, .has_s64 = true},
    [EXPR_ROUND_F32] = {"round_f32", 1},
    [EXPR_ROUND_F16] = {"round_f16", 1},
    [EXPR_ROUND_BF16] = {"round_bf16", 1},
    [EXPR_ABS] = {"abs", 1, .operations = 1},
    [EXPR_MIN] = {"min", 2, .has_s64 = true, .operations = 1},
    [EXPR_EQ] = {"eq", 2, true, .has_s64 = true},
    [EXPR_GE] = {"ge", 2, true, .has_s64 = true},
    [EXPR_EXP] = {"exp", 1, .is_elementary = true, .operations = 1},
    [EXPR_EXPM1] = {"expm1", 1, .is_elementary = true, .operations = 1},
    [EXPR_LOG] = {"log", 1, .is_elementary = true, .operations = 1},
    [EXPR_LOG1P] = {"log1p", 1, .is_elementary = true, .operations = 1},
    [EXPR_TANH] = {"tanh", 1, .is_elementary = true, .operations = 1},
    [EXPR_ERF] = {"erf", 1, .is_elementary = true, .operations = 1},
    [EXPR_SIN] = {"sin", 1, .is_elementary = true, .operations = 1},
    [EXPR_COS] = {"cos", 1, .is_elementary = true, .operations = 1},
    [EXPR_GELU] = {"gelu", 1, .is_elementary = true, .operations = 1},
    [EXPR_GELU_SLOPE] = {"gelu_slope", 1, .is_elementary = true, .operations = 1},
    [EXPR_POW] = {"pow", 2, .is_elementary = true, .operations = 1},
    [EXPR_FLOOR] = {"floor", 1, .operations = 1},
    [EXPR_ROUND] = {"round", 1, .operations = 1},
    [EXPR_MAXIMUM] = {"maximum", 2, .operations = 1},
    [EXPR_ROUND_E4M3] = {"round_e4m3", 1},
    [EXPR_ROUND_E5M2] = {"round_e5m2", 1},
    [EXPR_INDEX] = {"index", 0, .has_s64 = true},
    [EXPR_INTEGER] = {"integer", 0},
    [EXPR_IS_KEPT] = {"is_kept", 3, true},
    [EXPR_COUNT] = {"count", 0, .has_s64 = true},
    [EXPR_RECIPROCAL] = {"share", 0},
    [EXPR_FMOD] = {"fmod", 2, .is_elementary = true, .has_s64 = true, .operations = 1},
    [EXPR_ROUND_ODD] = {"round_odd", 1},
};

const ReductionInfo reductions[EXPR_OP_COUNT] = {
    [EXPR_REDUCE_SUM] = {EXPR_ADD, 0},
    [EXPR_REDUCE_MAXIMUM] = {EXPR_MAXIMUM, -INFINITY},
    [EXPR_REDUCE_PRODUCT] = {EXPR_MUL, 1},
};

Type kernel_type(const Kernel *k) {
  return k->is_s64 ? TYPE_S64 : k->is_f64 ? TYPE_F64 : TYPE_F32;
}

bool reduction_is_exact(const Kernel *k, ExprOp reduction) {
  return !k->is_f64 && reduction == EXPR_REDUCE_MAXIMUM;
}

bool expr_is_reduction(const Expr *e) {
  return reductions[e->op].combine != EXPR_NONE;
}

bool expr_has_access(const Expr *e) {
  return e->op == EXPR_LOAD || e->op == EXPR_IS_KEPT;
}

void kernel_init(Kernel *k, Arena *arena, const char *name) {
  *k = (Kernel){.arena = arena, .name = name, .nexprs = 1};
}

void *kernel_array(Kernel *k, size_t count, size_t nbytes_each) {
  void *array = arena_array(k->arena, count, nbytes_each);
  k->out_of_memory |= !array;
  return array;
}

bool kernel_grow(Kernel *k, void *array, size_t count, size_t *capacity, size_t nbytes_each) {
  const bool is_grown = arena_grow(k->arena, array, count, capacity, nbytes_each);
  k->out_of_memory |= !is_grown;
  return is_grown;
}

int kernel_add_axis(Kernel *k, const char *name, int64_t extent, Monomial monomial) {
  if (k->naxes == MAX_AXES) {
    k->out_of_memory = true;
    return 0;
  }
  k->axes[k->naxes] = (Axis){.name = name, .extent = extent, .monomial = monomial};
  return k->naxes++;
}

uint64_t places_join(uint64_t outer, uint64_t inner) {
  int nbits = 0;
  while (nbits < 64 && inner >> nbits) nbits += 4;
  if (nbits && (inner >> (nbits - 4)) == (outer & 15)) outer >>= 4;
  return nbits < 64 ? outer << nbits | inner : inner;
}

int64_t access_stack_axes(const Kernel *k, AxisSet axes, int64_t next, Monomial *monomial, Access *a) {
  for (int i = 0; i < k->naxes; i++) {
    const int axis = k->naxes - 1 - i;
    if (!(axes >> axis & 1)) continue;
    a->stride[axis] = next;
    a->stride_monomial[axis] = *monomial;
    next *= k->axes[axis].extent;
    *monomial += k->axes[axis].monomial;
  }
  return next;
}

void access_take_unit_axis(Access *a, int axis) {
  a->stride[axis] = GREATEST_NELEMS; // no axis of a tensor is adjacent to it
}

void kernel_spread_axis(Kernel *k, int axis) {
  for (ExprId i = 1; i < k->nexprs; i++) {
    Expr *e = &k->exprs[i];
    AxisSet axes = expr_has_access(e) ? access_axes(k, &k->accesses[e->access]) : 0;
    for (int a = 0; a < 3 && e->args[a]; a++) axes |= k->exprs[e->args[a]].axes;
    e->axes |= axes & ~e->reduced & 1U << axis;
  }
}

AxisSet bound_axes(const Bound *b) {
  AxisSet axes = 0;
  for (int axis = 0; axis < MAX_AXES; axis++)
    if (b->factor[axis]) axes |= 1U << axis;
  return axes;
}

AxisSet access_axes(const Kernel *k, const Access *access) {
  AxisSet axes = 0;
  for (int i = 0; i < k->naxes; i++)
    if (access->stride[i]) axes |= 1U << i;
  for (size_t i = 0; i < access->nbounds; i++) axes |= bound_axes(&access->bounds[i]);
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

bool access_strides_equal(const Access *a, const Access *b) {
  return memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
         memcmp(a->stride_monomial, b->stride_monomial, sizeof a->stride_monomial) == 0;
}

static bool accesses_equal(const Access *a, const Access *b) {
  if (memcmp(a, b, offsetof(Access, bounds)) != 0 || a->nbounds != b->nbounds) return false;
  const bool is_same_outside = a->outside == b->outside && signbit(a->outside) == signbit(b->outside);
  return !a->nbounds || (is_same_outside && memcmp(a->bounds, b->bounds, a->nbounds * sizeof *a->bounds) == 0);
}

AccessId kernel_add_access(Kernel *k, const Access *access) {
  for (AccessId i = 0; i < k->naccesses; i++)
    if (accesses_equal(&k->accesses[i], access)) return i;
  Bound *bounds = access->nbounds ? KERNEL_ARRAY(k, Bound, access->nbounds) : NULL;
  if ((access->nbounds && !bounds) ||
      !kernel_grow(k, &k->accesses, k->naccesses, &k->accesses_capacity, sizeof *k->accesses))
    return 0;
  if (bounds) memcpy(bounds, access->bounds, access->nbounds * sizeof *bounds);
  k->accesses[k->naccesses] = *access;
  k->accesses[k->naccesses].bounds = bounds;
  return (AccessId)k->naccesses++;
}

// False for NaNs, whose payloads may differ.
static bool same_number(double a, double b) {
  return a == b && !signbit(a) == !signbit(b);
}

bool expr_operations_equal(const Expr *a, const Expr *b) {
  return a->op == b->op && a->access == b->access && a->reduced == b->reduced && a->loop == b->loop &&
         a->integer == b->integer && a->is_element == b->is_element && a->is_s64 == b->is_s64 &&
         a->monomial == b->monomial && same_number(a->number, b->number);
}

static bool expr_equals(const Expr *a, const Expr *b) {
  return a->axes == b->axes && memcmp(a->args, b->args, sizeof a->args) == 0 && expr_operations_equal(a, b);
}

static ExprId add_expr(Kernel *k, Expr e) {
  for (int i = 0; i < expr_info[e.op].narguments; i++)
    if (!e.args[i]) return 0;
  for (ExprId i = 1; i < k->nexprs; i++)
    if (expr_equals(&k->exprs[i], &e)) return i;
  if (!kernel_grow(k, &k->exprs, k->nexprs, &k->exprs_capacity, sizeof *k->exprs)) return 0;
  k->exprs[k->nexprs] = e;
  return (ExprId)k->nexprs++;
}

ExprId expr_load(Kernel *k, AccessId access) {
  if (k->out_of_memory) return 0;
  return add_expr(k, (Expr){.op = EXPR_LOAD, .access = access, .axes = access_axes(k, &k->accesses[access])});
}

ExprId expr_load_s64(Kernel *k, AccessId access) {
  if (k->out_of_memory) return 0;
  const AxisSet axes = access_axes(k, &k->accesses[access]);
  return add_expr(k, (Expr){.op = EXPR_LOAD, .access = access, .is_s64 = true, .axes = axes});
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
  return add_expr(k, (Expr){.op = EXPR_INTEGER, .integer = integer, .is_s64 = true});
}

ExprId expr_is_kept(Kernel *k, AccessId counter, ExprId seed, ExprId offset, ExprId probability) {
  if (k->out_of_memory || !seed || !offset || !probability) return 0;
  AxisSet axes = access_axes(k, &k->accesses[counter]) | k->exprs[probability].axes;
  return add_expr(k, (Expr){.op = EXPR_IS_KEPT, .access = counter, .args = {seed, offset, probability}, .axes = axes});
}

ExprId expr_integer_over(Kernel *k, int64_t integer, AxisSet axes) {
  return add_expr(k, (Expr){.op = EXPR_CONSTANT, .number = (double)integer, .integer = integer, .axes = axes});
}

ExprId expr_constant_over(Kernel *k, double number, AxisSet axes) {
  if (k->is_s64) return expr_integer_over(k, type_integer(number), axes);
  return add_expr(k, (Expr){.op = EXPR_CONSTANT, .number = k->is_f64 ? number : (float)number, .axes = axes});
}

ExprId expr_count(Kernel *k, int64_t count, Monomial monomial) {
  if (!monomial) return expr_constant(k, (double)count);
  return add_expr(k, (Expr){.op = EXPR_COUNT, .number = (double)count, .monomial = monomial});
}

ExprId expr_reciprocal(Kernel *k, int64_t count, Monomial monomial) {
  if (!monomial) return expr_constant(k, 1 / (double)(count > 0 ? count : 1));
  return add_expr(k, (Expr){.op = EXPR_RECIPROCAL, .number = (double)count, .monomial = monomial});
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

// Whether the expression is a number of the type, as far as its operator says.
static bool is_of_type(const Kernel *k, Type type, ExprId id, ExprOp rounding) {
  const Expr *e = &k->exprs[id];
  if (e->op == EXPR_LOAD) {
    const Access *a = &k->accesses[e->access];
    return a->type == type && (!a->nbounds || type_round(type, a->outside) == a->outside);
  }
  return e->op == rounding || (e->op == EXPR_CONSTANT && type_round(type, e->number) == e->number);
}

ExprId expr_element(Kernel *k, Type type, ExprId e) {
  static const ExprOp roundings[TYPE_COUNT] = {[TYPE_F32] = EXPR_ROUND_F32,
                                               [TYPE_F16] = EXPR_ROUND_F16,
                                               [TYPE_BF16] = EXPR_ROUND_BF16,
                                               [TYPE_F8_E4M3] = EXPR_ROUND_E4M3,
                                               [TYPE_F8_E5M2] = EXPR_ROUND_E5M2};
  const ExprOp op = type == kernel_type(k) ? EXPR_NONE : roundings[type];
  if (!e) return 0;
  if (op) return is_of_type(k, type, e, op) ? e : expr_unary(k, op, e);
  Expr element = k->exprs[e];
  element.is_element = element.op == EXPR_MUL;
  return element.is_element ? add_expr(k, element) : e;
}

ExprId expr_select(Kernel *k, ExprId mask, ExprId a, ExprId b) {
  return expr_ternary(k, EXPR_SELECT, mask, a, b);
}

int64_t axes_nelems(const Kernel *k, AxisSet axes) {
  int64_t n = 1;
  bool is_empty = false;
  for (int i = 0; i < k->naxes; i++) {
    const int64_t extent = axes >> i & 1 ? k->axes[i].extent : 1;
    is_empty |= extent == 0;
    if (extent > 0) n = n > GREATEST_NELEMS / extent ? GREATEST_NELEMS : n * extent;
  }
  arena_step(k->arena, 1);
  return is_empty ? 0 : n;
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
    if (monomial_exponent(monomial, i)) k->closed = open_dim_of(k->graph, i);
}

// The reduction of `times` copies of `a`. A product is computed by repeated squaring.
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

// Whether one of the axes has extent 0 for all values of open dims.
static bool has_empty_axis(const Kernel *k, AxisSet axes) {
  bool has_any = false;
  for (int i = 0; i < k->naxes; i++) has_any |= axes >> i & 1 && !k->axes[i].extent && !k->axes[i].monomial;
  return has_any;
}

ExprId expr_reduce(Kernel *k, ExprOp reduction, ExprId a, AxisSet reduced) {
  if (!a) return 0;
  if (has_empty_axis(k, reduced)) return expr_constant(k, reductions[reduction].identity);
  AxisSet others = reduced & ~k->exprs[a].axes;
  int64_t times = axes_nelems(k, others); // each element occurs this often
  Monomial monomial = axes_monomial(k, others);
  reduced &= k->exprs[a].axes;
  if (times == 0) return expr_constant(k, reductions[reduction].identity);
  if (times != 1) a = repeated(k, reduction, a, times, monomial);
  if (a && reduced)
    a = add_expr(k, (Expr){.op = reduction, .args = {a}, .reduced = reduced, .axes = k->exprs[a].axes & ~reduced});
  else if (reduction == EXPR_REDUCE_SUM)
    a = expr_binary(k, EXPR_ADD, a, expr_constant(k, 0)); // a loop's sum starts at +0, so that a sum of -0 alone is +0
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
  Expr with = {.op = e->op, .is_element = e->is_element};
  for (int a = 0; a < expr_info[e->op].narguments; a++) {
    with.args[a] = args[a];
    with.axes |= k->exprs[args[a]].axes; // exprs[0] has none
  }
  return add_expr(k, with);
}

ExprId expr_label(Kernel *k, ExprId e, const char *label) {
  if (e && !k->exprs[e].label) k->exprs[e].label = label;
  return e;
}

void kernel_store(Kernel *k, AccessId access, ExprId value) {
  k->out_of_memory |= !value;
  if (value && kernel_grow(k, &k->stores, k->nstores, &k->stores_capacity, sizeof *k->stores))
    k->stores[k->nstores++] = (Store){access, value};
}

bool kernel_stores(const Kernel *k, AccessId id) {
  for (size_t i = 0; i < k->nstores; i++)
    if (k->stores[i].access == id) return true;
  return false;
}

bool kernel_stores_value(const Kernel *k, const Value *v) {
  for (size_t i = 0; i < k->nstores; i++)
    if (k->accesses[k->stores[i].access].value == v) return true;
  return false;
}

// Bytes

int64_t access_value_nbytes(const Kernel *k, AccessId id) {
  const Access *a = &k->accesses[id];
  int64_t nelems = kernel_stores(k, id) ? axes_nelems(k, access_axes(k, a)) : shape_nelems(&a->value->shape);
  if (k->slice_group && kernel_stores(k, id)) nelems *= k->slice_group->nslices;
  return (int64_t)type_array_nbytes(a->type, (size_t)nelems);
}

bool access_reads_again(const Kernel *k, AccessId id) {
  if (kernel_stores(k, id)) return false;
  for (AccessId i = 0; i < id; i++)
    if (k->accesses[i].value == k->accesses[id].value && !kernel_stores(k, i)) return true;
  return false;
}

Traffic kernel_tensor_nbytes(const Kernel *k) {
  Traffic traffic = {0};
  for (AccessId i = 0; i < k->naccesses; i++) {
    if (!k->accesses[i].value || access_reads_again(k, i)) continue;
    *(kernel_stores(k, i) ? &traffic.written : &traffic.read) += access_value_nbytes(k, i);
  }
  return traffic;
}

void kernel_print_nodes(const Kernel *k, Text *out) {
  for (size_t i = 0; i < k->nnodes; i++) {
    if (i) text_add_string(out, ", ");
    node_print(k->nodes[i], out);
  }
  if (k->piece) text_format(out, " %s", k->piece);
}
