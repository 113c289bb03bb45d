// Lowers reductions.
#include "ir/operators/reduce.h"

#include "ir/operators/movement.h"
#include "passes/lower/formulas.h"
#include "passes/lower/lower.h"

#include <math.h>

typedef struct Reduction {
  Kernel *k;
  AxisSet reduced;    // the kernel's axes that are reduced
  int axis[MAX_RANK]; // by the result's axis: the domain's axis
  int64_t count;      // elements reduced to one element of the result; grows with `monomial`
  Monomial monomial;
} Reduction;

static Reduction reduction_begin(const Lowering *l, const Node *node) {
  Reduction r = {.k = l->kernel, .reduced = lower_axes(l, reduce_axes(node))};
  bool keeps = node_bool(node, "keep_dims");
  for (int axis = 0, on = 0; axis < l->domain.rank; axis++)
    if (keeps || !(reduce_axes(node) >> axis & 1)) r.axis[on++] = axis;
  r.count = axes_nelems(l->kernel, r.reduced);
  r.monomial = axes_monomial(l->kernel, r.reduced);
  return r;
}

static ExprId sum_of(const Reduction *r, ExprId e) {
  return expr_sum(r->k, e, r->reduced);
}

static ExprId mean_of(const Reduction *r, ExprId e) {
  Kernel *k = r->k;
  const ExprId sum = sum_of(r, e), count = expr_count(k, r->count, r->monomial);
  return DIV(sum, count);
}

static ExprId maximum_of(const Reduction *r, ExprId e) {
  return expr_reduce(r->k, EXPR_REDUCE_MAXIMUM, e, r->reduced);
}

// sqrt(sum(x^2))
static ExprId root_of_squares(const Reduction *r, ExprId x) {
  Kernel *k = r->k;
  return SQRT(sum_of(r, MUL(x, x)));
}

// m * sqrt(sum((x / m)^2)) with m = max(|x|), so that squares of large f64 numbers do not overflow. m is 1 if max(|x|)
// is 0, infinite or NaN.
static ExprId scaled_root_of_squares(const Reduction *r, ExprId x) {
  Kernel *k = r->k;
  ExprId zero = NUMBER(0), one = NUMBER(1), infinity = NUMBER(INFINITY);
  ExprId greatest = maximum_of(r, ABS(x));
  ExprId scale = SELECT(GT(infinity, greatest), greatest, one);
  scale = SELECT(GT(greatest, zero), scale, one);
  return MUL(scale, root_of_squares(r, DIV(x, scale)));
}

// Whether its elements may be any of f64, and not only those of a narrower type.
static bool is_full_f64(const Value *v) {
  const Node *maker = v->producer;
  const bool is_widened = maker && maker->op->id == OP_TypeCast && type_widens(maker->inputs[0]->type, v->type);
  return v->type == TYPE_F64 && !is_widened;
}

// The norm of a single element is |x|. Elements of types narrower than f64 need no scaling: TRAIT_WIDE makes the kernel
// compute in f64.
static ExprId norm_of(const Reduction *r, ExprId x, const Value *src) {
  Kernel *k = r->k;
  const ExprId norm = ABS(x);
  if (r->count == 1) return norm;
  return is_full_f64(src) ? scaled_root_of_squares(r, x) : root_of_squares(r, x);
}

// `e`, or `number` if the reduced axes have no elements.
static ExprId unless_empty(const Reduction *r, ExprId e, double number) {
  Kernel *k = r->k;
  if (r->count == 0) return NUMBER(number);
  if (!r->monomial) return e;
  ExprId is_empty = EQ(expr_count(k, r->count, r->monomial), NUMBER(0));
  return SELECT(is_empty, NUMBER(number), e);
}

#define REDUCTION(name, expression)                                                                                    \
  void lower_##name(Lowering *l, const Node *node) {                                                                   \
    Kernel *k = l->kernel;                                                                                             \
    const Type type = node->outputs[0]->type;                                                                          \
    const Reduction r = reduction_begin(l, node);                                                                      \
    const ExprId x = lower_value(l, node->inputs[0]);                                                                  \
    (void)k, (void)type;                                                                                               \
    lower_result(l, node, 0, expression, r.axis);                                                                      \
  }

REDUCTION(ReduceSum, sum_of(&r, x))
REDUCTION(ReduceMean, mean_of(&r, x))
REDUCTION(ReduceL1, sum_of(&r, ABS(x)))
REDUCTION(ReduceL2, norm_of(&r, x, node->inputs[0]))
REDUCTION(ReduceMax, unless_empty(&r, maximum_of(&r, x), -INFINITY))
REDUCTION(ReduceMin, unless_empty(&r, NEG(maximum_of(&r, NEG(x))), INFINITY))
REDUCTION(ReduceProd, expr_reduce(k, EXPR_REDUCE_PRODUCT, x, r.reduced))

// The first index along the axis at which src (with is_least, -src) is greatest or NaN, by a maximum of negated
// candidate indices.
static void lower_first(Lowering *l, const Node *node, bool is_least) {
  Reduction r = reduction_begin(l, node);
  Kernel *k = r.k;
  const int axis = axis_of(node, node->inputs[0]->shape.rank);
  ExprId x = lower_value(l, node->inputs[0]);
  if (is_least) x = NEG(x);
  const ExprId greatest = maximum_of(&r, x);
  const ExprId own = NEG(lower_index(l, axis)), none = NUMBER(-INFINITY);
  const ExprId if_number = SELECT(EQ(x, greatest), own, none);
  const ExprId if_nan = SELECT(EQ(x, x), none, own);
  const ExprId candidate = SELECT(EQ(greatest, greatest), if_number, if_nan);
  const ExprId first = NEG(maximum_of(&r, candidate));
  lower_result(l, node, 0, unless_empty(&r, first, 0), r.axis);
}

LOWER(ArgMax, lower_first(l, node, false))
LOWER(ArgMin, lower_first(l, node, true))
