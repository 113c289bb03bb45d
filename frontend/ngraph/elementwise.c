// Elementwise operators. An operand that is constant along an axis keeps the extent 1 there.
#include "frontend/ngraph/translation.h"

Value *ngraph_carry(Ngraph *x, OperatorId op, Value *v) {
  const Operator *row = &operators[op];
  const char letter = row->inputs[op == OP_Select ? 1 : 0].type;
  TypeSet types = 0;
  for (const TypeVariable *t = row->types; t->letter; t++)
    if (t->letter == letter) types = t->types;
  if (!v || TYPE_BIT(v->type) & types || type_is_float(v->type)) return v;
  const bool fits_s32 = v->type == TYPE_BOOLEAN || v->type == TYPE_S8 || v->type == TYPE_U8;
  if (fits_s32 && types & TYPE_BIT(TYPE_S32)) return build_cast(&x->build, v, TYPE_S32);
  return types & TYPE_BIT(TYPE_F64) ? build_cast(&x->build, v, TYPE_F64) : v;
}

// The common shape of all operands or, where nGraph broadcasts by numpy's rules, the broadcast shape.
static bool common_shape(Ngraph *x, Shape *shape) {
  const NgraphArgument *broadcast = x->ninputs > 1 ? ngraph_argument(x, "auto_broadcast") : NULL;
  const bool is_numpy = broadcast && broadcast->number == 1;
  char a[80], b[80];
  *shape = x->inputs[0]->shape;
  for (size_t i = 1; i < x->ninputs; i++) {
    const Shape *other = &x->inputs[i]->shape, before = *shape;
    if (shape_equals(shape, other)) continue;
    bool fits = is_numpy;
    if (other->rank > shape->rank) *shape = *other;
    for (int axis = 0; fits && axis < shape->rank; axis++) { // from the last axis on
      const int p = before.rank - 1 - axis, q = other->rank - 1 - axis;
      const int64_t m = p < 0 ? 1 : before.extent[p].value, n = q < 0 ? 1 : other->extent[q].value;
      fits = m == n || m == 1 || n == 1;
      shape->extent[shape->rank - 1 - axis] = EXTENT(m == 1 ? n : m);
    }
    if (!fits)
      return ngraph_tell(x, x->at, "expected operands of one shape, found %s and %s",
                         shape_string(&before, a, sizeof a), shape_string(other, b, sizeof b));
  }
  return true;
}

static bool have_one_type(Ngraph *x, size_t from) {
  for (size_t i = from + 1; i < x->ninputs; i++) {
    const Type a = x->inputs[from]->value->type, b = x->inputs[i]->value->type;
    if (a != b)
      return ngraph_tell(x, x->at, "expected operands of one type, found %s and %s", type_name(a), type_name(b));
  }
  return true;
}

bool ngraph_elementwise(Ngraph *x) {
  Shape shape;
  Value *in[MAX_OPERANDS];
  if (!common_shape(x, &shape) || !have_one_type(x, 0)) return false;
  for (size_t i = 0; i < x->ninputs; i++) in[i] = ngraph_carry(x, x->row->op, x->inputs[i]->value);
  Value *v = build_one(&x->build, build_node(&x->build, x->row->op, (uint32_t)x->ninputs, in));
  if (v && v->type != TYPE_BOOLEAN) v = build_cast(&x->build, v, x->inputs[0]->value->type);
  return ngraph_out_broadcast(x, 0, v, &shape);
}

bool ngraph_select(Ngraph *x) {
  Shape shape;
  if (!common_shape(x, &shape) || !have_one_type(x, 1)) return false;
  Value *condition = x->inputs[0]->value, *a = ngraph_carry(x, OP_Select, x->inputs[1]->value),
        *b = ngraph_carry(x, OP_Select, x->inputs[2]->value);
  Value *v = build_choose(&x->build, condition, a, b);
  return ngraph_out_broadcast(x, 0, build_cast(&x->build, v, x->inputs[1]->value->type), &shape);
}

// The gradients of activations, by the activation's input.
bool ngraph_backprop(Ngraph *x) {
  Value *const in[] = {ngraph_in(x, 0), ngraph_in(x, 1)};
  if (!shape_equals(ngraph_shape(x, 0), ngraph_shape(x, 1)))
    return ngraph_tell(x, x->at, "expected operands of one shape");
  Node *node = build_node(&x->build, x->row->op, 2, in);
  if (!node) return false;
  build_set(node, "use_dst")->boolean = false;
  return ngraph_out(x, 0, build_one(&x->build, node));
}

// Functions with a formula in frontend/foreign/.
#define FUNCTION(name)                                                                                                 \
  bool ngraph_##name(Ngraph *x) {                                                                                      \
    return ngraph_out_broadcast(x, 0, build_##name(&x->build, x->inputs[0]->value), ngraph_shape(x, 0));               \
  }
FUNCTION(acos)
FUNCTION(asin)
FUNCTION(atan)
FUNCTION(ceiling)
FUNCTION(cosh)
FUNCTION(floor)
FUNCTION(sinh)
FUNCTION(tan)

bool ngraph_sign(Ngraph *x) {
  Builder *b = &x->build;
  Value *v = x->inputs[0]->value, *zero = build_like(b, v, 0);
  Value *above = build_cast(b, build_binary(b, OP_Greater, v, zero), v->type),
        *below = build_cast(b, build_binary(b, OP_Less, v, zero), v->type);
  return ngraph_out_broadcast(x, 0, build_binary(b, OP_Subtract, above, below), ngraph_shape(x, 0));
}

// Quotients of integers are rounded down as in Python, unless pythondiv is false. f64 is exact enough for quotients of
// 32-bit integers.
bool ngraph_divide(Ngraph *x) {
  const Type type = x->inputs[0]->value->type;
  const NgraphArgument *python = ngraph_argument(x, "pythondiv");
  Shape shape;
  if (type_is_float(type)) return ngraph_elementwise(x);
  if (!common_shape(x, &shape) || !have_one_type(x, 0)) return false;
  if (type == TYPE_S64) return ngraph_tell(x, x->at, "the quotient of 64-bit integers is not supported");
  Value *a = build_cast(&x->build, x->inputs[0]->value, TYPE_F64),
        *b = build_cast(&x->build, x->inputs[1]->value, TYPE_F64), *v = build_binary(&x->build, OP_Divide, a, b);
  if (!v) return false;
  v = !python->y || python->number != 0 ? build_floor(&x->build, v) : build_truncate(&x->build, v);
  return ngraph_out_broadcast(x, 0, build_cast(&x->build, v, type), &shape);
}

// Rounds towards zero, as C converts floats to integers.
bool ngraph_convert(Ngraph *x) {
  const Type type = ngraph_argument(x, "target_type")->type;
  Value *v = x->inputs[0]->value;
  if (type_is_float(v->type) && !type_is_float(type) && type != TYPE_BOOLEAN) v = build_truncate(&x->build, v);
  return ngraph_out_broadcast(x, 0, build_cast(&x->build, v, type), ngraph_shape(x, 0));
}
