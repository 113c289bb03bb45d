// Values as polynomials: the axes of the frame, and a table with a formula for each algebraic operator.
#include "passes/rewrite/algebra.h"

#include "ir/operators/movement.h"
#include "ir/operators/reduce.h"

#include <math.h>

static const Polynomial none;

static bool is_widened(const Value *v) {
  return v->producer && v->producer->op->id == OP_TypeCast && type_widens(v->producer->inputs[0]->type, v->type);
}

static bool is_one(Extent e) {
  return extent_equals(e, EXTENT(1));
}

void algebra_init(Algebra *a, Arena *scratch, const Value *frame) {
  *a = (Algebra){.scratch = scratch, .frame = frame, .data = frame};
  while (is_widened(a->data)) a->data = a->data->producer->inputs[0];
  for (int i = 0; i < frame->shape.rank; i++)
    if (!is_one(frame->shape.extent[i])) a->extent[a->rank++] = frame->shape.extent[i];
  a->tolerance = frame->type == TYPE_F64 ? 1e-13 : 1e-6; // above the rounding errors of constants in the graph
}

static bool is_literal(const Extent *extent, int rank) {
  for (int i = 0; i < rank; i++)
    if (!extent_is_literal(extent[i]) || !extent_value(extent[i])) return false;
  return true;
}

// A border between two axes is identified by the product of the extents to its right. The borders of the frame and the
// shape are merged from the right; each product must divide the next. Named extents are allowed only on leading axes
// that the frame and the shape have in common.
void algebra_split_axes(Algebra *a, const Shape *shape) {
  Extent split[MOST_FRAME_AXES]; // from the right
  int count = 0, own = a->rank, other = shape->rank, front = 0;
  int64_t behind = 1, next_own = 1, next_other = 1;
  while (front < a->rank && front < shape->rank && !is_literal(&a->extent[front], 1) &&
         extent_equals(a->extent[front], shape->extent[front]))
    front++;
  if (!is_literal(a->extent + front, own - front) || !is_literal(shape->extent + front, other - front)) return;
  for (;;) {
    while (own > front && next_own == behind) next_own *= extent_value(a->extent[--own]);
    while (other > front && next_other == behind) next_other *= extent_value(shape->extent[--other]);
    if (next_own == behind && next_other == behind) break;
    if (next_own == behind || next_other == behind || count + front == MOST_FRAME_AXES) return;
    int64_t next = next_own < next_other ? next_own : next_other;
    if (next % behind) return;
    split[count++] = EXTENT(next / behind);
    behind = next;
  }
  a->rank = front + count;
  for (int i = 0; i < count; i++) a->extent[front + i] = split[count - 1 - i];
}

uint32_t algebra_axes(const Algebra *a) {
  return (1U << a->rank) - 1;
}

static Polynomial of_value(Algebra *a, const Value *v, const Labels *labels) {
  Symbol s = {.value = v, .labels = *labels};
  s.axes = labels_axes(labels);
  return polynomial_of_symbol(a, &s, 2);
}

// Labels

uint32_t labels_axes(const Labels *labels) {
  uint32_t axes = 0;
  for (int i = 0; i < labels->rank; i++) axes |= labels->axes[i];
  return axes;
}

// Takes consecutive frame axes, with this product of extents, from the list. Returns their mask; 0: there are none.
static uint32_t take_axes(const Algebra *a, Extent extent, const int **next, const int *end) {
  uint32_t axes = 0;
  int64_t nelems = 1;
  if (*next < end && extent_equals(a->extent[**next], extent)) return 1U << *(*next)++;
  while (*next < end && extent_is_literal(extent) && nelems < extent_value(extent)) {
    if (!extent_is_literal(a->extent[**next]) || (axes && *(*next - 1) + 1 != **next)) return 0;
    axes |= 1U << **next;
    nelems *= extent_value(a->extent[*(*next)++]);
  }
  return nelems == extent_value(extent) ? axes : 0;
}

// The labels of a value of this shape with exactly the frame axes in the list, in the list's order.
static bool labels_of_list(const Algebra *a, const int *list, int count, const Shape *shape, Labels *labels) {
  const int *end = list + count;
  *labels = (Labels){.rank = shape->rank};
  for (int i = 0; i < shape->rank; i++) {
    if (is_one(shape->extent[i])) continue;
    labels->axes[i] = (uint16_t)take_axes(a, shape->extent[i], &list, end);
    if (!labels->axes[i]) return false;
  }
  return list == end;
}

bool labels_of_axes(const Algebra *a, uint32_t axes, const Value *v, Labels *labels) {
  int list[MOST_FRAME_AXES], count = 0;
  for (int i = 0; i < a->rank; i++)
    if (axes >> i & 1) list[count++] = i;
  return labels_of_list(a, list, count, &v->shape, labels);
}

Labels labels_of_frame(const Algebra *a) {
  Labels labels;
  labels_of_axes(a, algebra_axes(a), a->frame, &labels); // cannot fail
  return labels;
}

Labels labels_of_operand(const Value *operand, const Labels *result) {
  Labels labels = {.rank = operand->shape.rank};
  for (int i = 0; i < labels.rank; i++)
    labels.axes[i] = is_one(operand->shape.extent[i]) ? 0 : result->axes[i + result->rank - labels.rank];
  return labels;
}

// Operators

static Polynomial operand(Algebra *a, const Node *node, uint32_t slot, const Labels *labels) {
  Labels own = labels_of_operand(node->inputs[slot], labels);
  return algebra_evaluate(a, node->inputs[slot], &own);
}

#define FORMULA(name, expression)                                                                                      \
  static Polynomial of_##name(Algebra *a, const Node *node, const Labels *l) {                                         \
    return expression;                                                                                                 \
  }
#define X operand(a, node, 0, l)
#define Y operand(a, node, 1, l)

FORMULA(Add, polynomial_sum(a, X, Y, 1))
FORMULA(Subtract, polynomial_sum(a, X, Y, -1))
FORMULA(Multiply, polynomial_product(a, X, Y))
FORMULA(Neg, polynomial_sum(a, none, X, -1))
FORMULA(Square, polynomial_power(a, X, 4))
FORMULA(SquaredDifference, polynomial_power(a, of_Subtract(a, node, l), 4))
FORMULA(Sqrt, polynomial_power(a, X, 1))
FORMULA(Reciprocal, polynomial_power(a, X, -2))

// x * z / z is replaced by x if z is 0 only for isolated data, as in gradients of quotients and products: for these
// data the graph's result is NaN, and the formula's result is the limit.
static Polynomial of_Divide(Algebra *a, const Node *node, const Labels *l) {
  const Polynomial p = X, q = Y;
  if (a->failed) return none;
  if (p.nterms >= q.nterms && polynomial_depends_on_frame(a, &q)) {
    const Polynomial quotient = polynomial_quotient(a, p, q);
    if (!a->failed || a->out_of_memory) return quotient;
    a->failed = false;
  }
  return polynomial_product(a, p, polynomial_power(a, q, -2));
}

static Polynomial of_Pow(Algebra *a, const Node *node, const Labels *l) {
  double halves = 2 * node_f32(node, "beta");
  if (halves != nearbyint(halves) || fabs(halves) > 8 || halves == 0) return polynomial_fail(a);
  return polynomial_power(a, X, (int)halves);
}

static Polynomial of_TypeCast(Algebra *a, const Node *node, const Labels *l) {
  Type from = node->inputs[0]->type, to = node->outputs[0]->type, least = a->frame->type;
  bool is_rounding = type_widens(to, from) && (to == least || type_widens(least, to));
  return is_rounding || type_widens(from, to) ? X : polynomial_fail(a);
}

// dy / (2 * sqrt(x))
static Polynomial of_SqrtBackward(Algebra *a, const Node *node, const Labels *l) {
  Polynomial over = polynomial_power(a, X, node_bool(node, "use_dst") ? -2 : -1);
  Polynomial product = polynomial_product(a, Y, over);
  return polynomial_sum(a, none, product, 0.5);
}

// Frame axes for an axis that is summed over. Any unused frame axes of this extent are correct, as the axis is not in
// the result. Axes behind `last` are tried first, as these most often match the labels of other values.
static uint32_t axes_to_reduce(const Algebra *a, Extent extent, uint32_t used, int last) {
  for (int i = 0; i < a->rank; i++) {
    int list[MOST_FRAME_AXES], count = 0;
    for (int axis = (last + 1 + i) % a->rank; axis < a->rank && !(used >> axis & 1); axis++) list[count++] = axis;
    const int *next = list;
    uint32_t axes = take_axes(a, extent, &next, list + count);
    if (axes) return axes;
  }
  return 0;
}

// The labels of a reduction's operand, from the result's labels, and the frame axes that are summed over. If the
// operand can have all frame axes in the frame's order, consistent with the result, these are its labels.
static bool labels_of_reduced(const Algebra *a, const Node *node, const Labels *l, Labels *own, uint32_t *reduced) {
  const Value *src = node->inputs[0];
  uint32_t axes = reduce_axes(node), used = labels_axes(l);
  bool keeps = node_bool(node, "keep_dims"), is_in_order = labels_of_axes(a, algebra_axes(a), src, own);
  *reduced = 0;
  for (int i = 0, on = 0; i < src->shape.rank; i++) {
    bool is_reduced = axes >> i & 1;
    if (!is_reduced) is_in_order &= own->axes[i] == l->axes[on];
    on += keeps || !is_reduced;
  }
  int last = -1;
  own->rank = src->shape.rank;
  for (int i = 0, on = 0; i < src->shape.rank; i++) {
    bool is_reduced = axes >> i & 1;
    if (!is_reduced) own->axes[i] = l->axes[on];
    else if (is_one(src->shape.extent[i])) own->axes[i] = 0;
    else if (!is_in_order) own->axes[i] = (uint16_t)axes_to_reduce(a, src->shape.extent[i], used, last);
    if (is_reduced && !own->axes[i] && !is_one(src->shape.extent[i])) return false;
    if (is_reduced) *reduced |= own->axes[i];
    used |= own->axes[i];
    if (own->axes[i]) last = 31 - __builtin_clz(own->axes[i]);
    on += keeps || !is_reduced;
  }
  return true;
}

static Polynomial of_ReduceSum(Algebra *a, const Node *node, const Labels *l) {
  Labels own;
  uint32_t reduced;
  if (!labels_of_reduced(a, node, l, &own, &reduced)) return polynomial_fail(a);
  Polynomial sum = polynomial_reduce(a, algebra_evaluate(a, node->inputs[0], &own), reduced);
  const double count = node->op->id == OP_ReduceMean ? algebra_count(a, reduced) : 1;
  return a->failed || count == 1 ? sum : polynomial_sum(a, none, sum, 1 / count);
}

// A reshape joins and splits axes, and adds or removes axes of extent 1. It keeps the sequence of frame axes.
static Polynomial of_StaticReshape(Algebra *a, const Node *node, const Labels *l) {
  int list[MOST_FRAME_AXES], count = 0;
  Labels own;
  for (int i = 0; i < l->rank; i++)
    for (int axis = 0; axis < a->rank; axis++)
      if (l->axes[i] >> axis & 1) list[count++] = axis;
  if (!labels_of_list(a, list, count, &node->inputs[0]->shape, &own)) return polynomial_fail(a);
  return algebra_evaluate(a, node->inputs[0], &own);
}

static Polynomial of_StaticTranspose(Algebra *a, const Node *node, const Labels *l) {
  Labels own = {.rank = l->rank};
  int axes[MAX_RANK];
  if (!transpose_axes(node, l->rank, axes)) return polynomial_fail(a);
  for (int i = 0; i < l->rank; i++) own.axes[axes[i]] = l->axes[i];
  return algebra_evaluate(a, node->inputs[0], &own);
}

static Polynomial (*const formulas[OP_COUNT])(Algebra *, const Node *, const Labels *) = {
    [OP_Add] = of_Add,
    [OP_Subtract] = of_Subtract,
    [OP_Multiply] = of_Multiply,
    [OP_Divide] = of_Divide,
    [OP_Neg] = of_Neg,
    [OP_Square] = of_Square,
    [OP_SquaredDifference] = of_SquaredDifference,
    [OP_Sqrt] = of_Sqrt,
    [OP_Reciprocal] = of_Reciprocal,
    [OP_Pow] = of_Pow,
    [OP_TypeCast] = of_TypeCast,
    [OP_SqrtBackward] = of_SqrtBackward,
    [OP_ReduceSum] = of_ReduceSum,
    [OP_ReduceMean] = of_ReduceSum,
    [OP_StaticReshape] = of_StaticReshape,
    [OP_StaticTranspose] = of_StaticTranspose,
};

bool operator_is_algebraic(OperatorId op) {
  return formulas[op] != NULL;
}

static const Polynomial *find_evaluated(const Algebra *a, const Value *v, const Labels *labels) {
  for (uint32_t i = 0; i < a->nevaluated; i++)
    if (a->evaluated[i].value == v && labels_equal(&a->evaluated[i].labels, labels)) return &a->evaluated[i].p;
  return NULL;
}

// Whether the node rounds: its result has fewer digits than the frame and than an operand.
static bool is_narrowing(const Algebra *a, const Node *node) {
  Type to = node->outputs[0]->type, least = a->frame->type;
  bool is_wide_enough = to == least || type_widens(least, to);
  for (uint32_t i = 0; i < node->ninputs && !is_wide_enough; i++)
    if (node->inputs[i] && type_widens(to, node->inputs[i]->type)) return true;
  return false;
}

Polynomial algebra_evaluate(Algebra *a, const Value *v, const Labels *labels) {
  enum { DEEPEST = 48 };
  if (a->failed) return none;
  if (v == a->data) v = a->frame;
  double number = v->constant && v->constant->is_splat ? type_load(v->type, v->constant->data, 0) : NAN;
  if (isfinite(number)) return polynomial_number(a, number);
  const Polynomial *before = find_evaluated(a, v, labels);
  if (before) return *before;
  const Node *node = v->producer;
  Polynomial p = none;
  bool is_open = v != a->frame && node && formulas[node->op->id] && a->depth < DEEPEST && !is_narrowing(a, node);
  if (is_open) {
    a->depth++;
    p = formulas[node->op->id](a, node, labels);
    a->depth--;
  }
  if (!is_open || (a->failed && !a->out_of_memory && a->nsymbols < MOST_SYMBOLS)) {
    a->failed = false;
    p = of_value(a, v, labels);
  }
  if (a->failed || a->nevaluated == MOST_EVALUATED) return polynomial_fail(a);
  a->evaluated[a->nevaluated++] = (Evaluated){v, *labels, p};
  return p;
}
