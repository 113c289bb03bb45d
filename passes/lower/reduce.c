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

void lower_ReduceSum(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  lower_result(l, node, 0, sum_of(&r, lower_value(l, node->inputs[0])), r.axis);
}

void lower_ReduceMean(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Reduction r = reduction_begin(l, node);
  ExprId sum = sum_of(&r, lower_value(l, node->inputs[0])), count = expr_count(k, r.count, r.monomial);
  lower_result(l, node, 0, DIV(sum, count), r.axis);
}

void lower_ReduceL1(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Reduction r = reduction_begin(l, node);
  lower_result(l, node, 0, sum_of(&r, ABS(lower_value(l, node->inputs[0]))), r.axis);
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
  ExprId greatest = expr_reduce(k, EXPR_REDUCE_MAXIMUM, ABS(x), r->reduced);
  ExprId scale = SELECT(GT(infinity, greatest), greatest, one);
  scale = SELECT(GT(greatest, zero), scale, one);
  return MUL(scale, root_of_squares(r, DIV(x, scale)));
}

// The norm of a single element is |x|. Types narrower than f64 need no scaling: TRAIT_WIDE makes the kernel compute in
// f64.
void lower_ReduceL2(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Reduction r = reduction_begin(l, node);
  ExprId x = lower_value(l, node->inputs[0]), norm = ABS(x);
  bool is_f64 = node->inputs[0]->type == TYPE_F64;
  if (r.count != 1) norm = is_f64 ? scaled_root_of_squares(&r, x) : root_of_squares(&r, x);
  lower_result(l, node, 0, norm, r.axis);
}

// `e`, or `number` if the reduced axes have no elements.
static ExprId unless_empty(const Reduction *r, ExprId e, double number) {
  Kernel *k = r->k;
  if (r->count == 0) return NUMBER(number);
  if (!r->monomial) return e;
  ExprId is_empty = EQ(expr_count(k, r->count, r->monomial), NUMBER(0));
  return SELECT(is_empty, NUMBER(number), e);
}

void lower_ReduceMax(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  ExprId max = expr_reduce(r.k, EXPR_REDUCE_MAXIMUM, lower_value(l, node->inputs[0]), r.reduced);
  max = unless_empty(&r, max, -type_greatest(node->outputs[0]->type));
  lower_result(l, node, 0, max, r.axis);
}

void lower_ReduceMin(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Reduction r = reduction_begin(l, node);
  ExprId minus = NEG(lower_value(l, node->inputs[0]));
  ExprId min = NEG(expr_reduce(k, EXPR_REDUCE_MAXIMUM, minus, r.reduced));
  min = unless_empty(&r, min, type_greatest(node->outputs[0]->type));
  lower_result(l, node, 0, min, r.axis);
}

void lower_ReduceProd(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  ExprId product = expr_reduce(r.k, EXPR_REDUCE_PRODUCT, lower_value(l, node->inputs[0]), r.reduced);
  lower_result(l, node, 0, product, r.axis);
}

// The first index along the axis at which src (with is_least, -src) is greatest or NaN, by a maximum of negated
// candidate indices.
static void lower_first(Lowering *l, const Node *node, bool is_least) {
  Reduction r = reduction_begin(l, node);
  Kernel *k = r.k;
  const int axis = axis_of(node, node->inputs[0]->shape.rank);
  ExprId x = lower_value(l, node->inputs[0]);
  if (is_least) x = NEG(x);
  const ExprId greatest = expr_reduce(k, EXPR_REDUCE_MAXIMUM, x, r.reduced);
  const ExprId own = NEG(lower_index(l, axis)), none = NUMBER(-INFINITY);
  const ExprId if_number = SELECT(EQ(x, greatest), own, none);
  const ExprId if_nan = SELECT(EQ(x, x), none, own);
  const ExprId candidate = SELECT(EQ(greatest, greatest), if_number, if_nan);
  const ExprId first = NEG(expr_reduce(k, EXPR_REDUCE_MAXIMUM, candidate, r.reduced));
  lower_result(l, node, 0, unless_empty(&r, first, 0), r.axis);
}

void lower_ArgMax(Lowering *l, const Node *node) {
  lower_first(l, node, false);
}

void lower_ArgMin(Lowering *l, const Node *node) {
  lower_first(l, node, true);
}
