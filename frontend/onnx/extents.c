// Extents as elements of constants. A named extent has no number when the model is read. A negative number that no
// shape has stands for it, and the constant is marked. Operators that move elements also move these numbers. Arithmetic
// with them gives formulas, or the unknown extent, which Reshape accepts as the remaining extent.
#include "ir/graph/extents.h"
#include "frontend/onnx/translation.h"
#include "ir/operators/movement.h"

#include <stdio.h>
#include <string.h>

// Exact in f64. Smaller numbers are extents, in the order of stood_for, and MOST_STOOD_FOR further on, their opposites.
static const int64_t UNKNOWN = -((int64_t)1 << 52);
enum { MOST_STOOD_FOR = 1024 };

int64_t onnx_integer(const Value *v, size_t i) {
  const size_t at = v->constant->is_splat ? 0 : i;
  return v->type == TYPE_S64 ? ((const int64_t *)v->constant->data)[at]
                             : type_integer(type_load(v->type, v->constant->data, at));
}

bool onnx_has_extents(const Onnx *x, const Value *v) {
  return v && v->constant && v->index < x->nextents && x->has_extents[v->index];
}

// The first input of the model that v is computed from; NULL: none. Examines at most *most values.
static const Value *input_behind(const Value *v, int *most) {
  if (!v || v->is_input || --*most < 0) return v && v->is_input ? v : NULL;
  const Value *found = NULL;
  for (uint32_t i = 0; v->producer && !found && i < v->producer->ninputs; i++)
    found = input_behind(v->producer->inputs[i], most);
  return found;
}

static bool is_open(const Value *v) {
  bool any = v->shape.rank < 0;
  for (int i = 0; i < v->shape.rank; i++) any |= extent_is_unknown(v->shape.extent[i]);
  return any;
}

// The first input that has an unknown extent and that v is computed from; NULL: none. Examines at most *most values.
static const Value *open_input_behind(const Value *v, int *most) {
  if (!v || v->is_input || --*most < 0) return v && v->is_input && is_open(v) ? v : NULL;
  const Value *found = NULL;
  for (uint32_t i = 0; v->producer && !found && i < v->producer->ninputs; i++)
    found = open_input_behind(v->producer->inputs[i], most);
  return found;
}

static const char *name_of(Extent e) {
  return e.dim && e.dim->terms ? e.dim->terms[0].dims[0]->name : e.dim ? e.dim->name : NULL;
}

// A name in the shape of an input; NULL: there is none.
static const char *name_of_input(const Value *v) {
  const char *name = NULL;
  for (int i = 0; v && !name && i < v->shape.rank; i++) name = name_of(v->shape.extent[i]);
  return name;
}

const char *onnx_shape_to_give(const Onnx *x, const Value *v, char *text, size_t nbytes) {
  const Graph *g = x->build.graph;
  int most = 1000;
  const Value *input = open_input_behind(v, &most);
  for (size_t i = 0; i < g->ninputs && !input; i++) input = is_open(g->inputs[i]) ? g->inputs[i] : NULL;
  const char *name = input ? NULL : name_of_input(input_behind(v, &(int){1000}));
  for (size_t i = 0; i < g->ninputs && !input && !name; i++) name = name_of_input(g->inputs[i]);
  if (!input) return snprintf(text, nbytes, "give it a number, as in --dim %.80s=1", name ? name : "NAME"), text;
  size_t n = (size_t)snprintf(text, nbytes, "give the shape of %.80s, as in --shape %.80s=", input->name, input->name);
  for (int i = 0; i < (input->shape.rank < 0 ? 2 : input->shape.rank) && n < nbytes; i++) {
    const Extent e = input->shape.rank < 0 ? EXTENT_UNKNOWN : input->shape.extent[i];
    n +=
        (size_t)snprintf(text + n, nbytes - n, "%s%lld", i ? "," : "", extent_is_literal(e) ? (long long)e.value : 1LL);
  }
  return text;
}

// A name in the shape of a constant that v is computed from. Examines at most *most values.
static const char *name_behind(const Value *v, int *most) {
  const char *found = NULL;
  if (!v || --*most < 0) return NULL;
  for (int i = 0; v->constant && !found && i < v->shape.rank; i++) found = name_of(v->shape.extent[i]);
  for (uint32_t i = 0; v->producer && !found && i < v->producer->ninputs; i++)
    found = name_behind(v->producer->inputs[i], most);
  return found;
}

// The number of stored integers; a splat stores one.
static int64_t count_integers(const Value *v) {
  const int64_t nelems = shape_nelems(&v->shape);
  return v->constant->is_splat && nelems > 1 ? 1 : nelems;
}

// A name in the constant's extents that has no number yet; NULL: the extent has no name.
static const char *name_in(const Onnx *x, const Value *v) {
  for (int64_t i = 0; i < count_integers(v); i++) {
    const char *name = name_of(onnx_extent_of(x, onnx_integer(v, (size_t)i)));
    if (name) return name;
  }
  return NULL;
}

bool onnx_must_be_known(Onnx *x, const Value *v) {
  Builder *b = &x->build;
  int most = 1000;
  char shape[SHAPE_TO_GIVE];
  if (v->constant && name_in(x, v))
    return build_error(b, "expected numbers, found a shape with a name in it: give it a number, as in --dim %s=1",
                       name_in(x, v));
  if (v->constant)
    return build_error(b, "expected numbers, found a shape with an unknown extent: %s",
                       onnx_shape_to_give(x, NULL, shape, sizeof shape));
  const Value *input = input_behind(v, &most);
  const char *name = input ? NULL : name_behind(v, &most);
  if (name)
    return build_error(
        b, "%.80s must be known when the model is read: give the name in its shape a number, as in --dim %s=1", v->name,
        name);
  if (!input) return build_error(b, "%.80s must be known when the model is read", v->name);
  return build_error(b, "the input %.80s must be known when the model is read: --constant %.80s=FILE, of .npy or .pb",
                     input->name, input->name);
}

static Value *evaluate(Onnx *x, Value *v, int *most) {
  Builder *b = &x->build;
  if (v->constant || !v->producer || --*most < 0) return v;
  const Node *node = v->producer;
  Value *inputs[MAX_VARIADIC] = {NULL};
  if (node->ninputs > MAX_VARIADIC || node->noutputs != 1) return v;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    inputs[i] = node->inputs[i] ? evaluate(x, node->inputs[i], most) : NULL;
    if (inputs[i] && (!inputs[i]->constant || onnx_has_extents(x, inputs[i]))) return v;
  }
  Node *copy = build_node(b, node->op->id, node->ninputs, inputs);
  Value *known = copy ? build_result(b, copy, 0, v->type) : NULL;
  if (!known) return NULL;
  memcpy(copy->attributes, node->attributes, node->op->nattributes * sizeof *node->attributes);
  known->shape = v->shape;
  return build_is_quick(b, copy) ? build_fold(b, copy) ? known : NULL : v;
}

Value *onnx_known(Onnx *x, Value *v) {
  int most = 128; // nodes, as the stack grows with them
  return v ? evaluate(x, v, &most) : NULL;
}

bool onnx_mark_extents(Onnx *x, const Value *v) {
  bool any = false;
  for (int64_t i = 0; i < count_integers(v) && !any; i++) any = onnx_integer(v, (size_t)i) <= UNKNOWN;
  if (!any) return true; // all are ordinary numbers
  for (; x->nextents <= v->index; x->nextents++)
    if (!arena_grow(x->reading.arena, &x->has_extents, x->nextents, &x->extents_capacity, 1))
      return error_out_of_memory(x->reading.d);
    else x->has_extents[x->nextents] = 0;
  x->has_extents[v->index] = 1;
  return true;
}

bool onnx_extent_number(Onnx *x, Extent e, int64_t *number) {
  size_t i = 0;
  *number = extent_is_literal(e) ? e.value : UNKNOWN;
  if (!e.dim) return true;
  while (i < x->nstood_for && !extent_equals(x->stood_for[i], e)) i++;
  if (i == MOST_STOOD_FOR) return true;
  if (i == x->nstood_for) {
    if (!arena_grow(x->reading.arena, &x->stood_for, i, &x->stood_for_capacity, sizeof e))
      return error_out_of_memory(x->reading.d);
    x->stood_for[x->nstood_for++] = e;
  }
  *number = UNKNOWN - 1 - (int64_t)i;
  return true;
}

Extent onnx_extent_of(const Onnx *x, int64_t number) {
  if (number > UNKNOWN) return EXTENT(number);
  const uint64_t at = (uint64_t)UNKNOWN - (uint64_t)number;
  return at == 0 || at > x->nstood_for ? EXTENT_UNKNOWN : x->stood_for[at - 1];
}

int64_t onnx_opposite(int64_t number) {
  if (number > UNKNOWN) return -number;
  const int64_t most = MOST_STOOD_FOR, at = UNKNOWN - number;
  return at == 0 || at > 2 * most ? UNKNOWN : number + (at > most ? most : -most);
}

static bool is_opposite(const Onnx *x, int64_t number) {
  return extent_is_unknown(onnx_extent_of(x, number)) && onnx_extent_of(x, onnx_opposite(number)).dim;
}

static bool is_below_0(const Value *v) {
  if (!v->constant || v->type != TYPE_S64) return false;
  for (int64_t i = 0; i < count_integers(v); i++) {
    const int64_t number = onnx_integer(v, (size_t)i);
    if (number >= 0 || number <= UNKNOWN) return false;
  }
  return true;
}

static bool has_opposite(const Onnx *x, const Value *v) {
  bool any = false;
  for (int64_t i = 0; i < count_integers(v) && !any; i++) any = is_opposite(x, onnx_integer(v, (size_t)i));
  return any;
}

// What happens to extents in a node's inputs when the node is folded with the numbers that stand for them.
typedef enum ExtentUse { EXTENTS_REFUSED, EXTENTS_GONE, EXTENTS_KEPT } ExtentUse;

static ExtentUse extent_use(const Onnx *x, const Node *node) {
  Value *const *in = node->inputs;
  const Type type = node->noutputs && node->outputs[0] ? node->outputs[0]->type : TYPE_NONE;
  const OperatorId id = node->op->id;
  if (id == OP_TypeCast) return type == TYPE_S64 || type == TYPE_F64 ? EXTENTS_KEPT : EXTENTS_REFUSED;
  if (id == OP_Equal || id == OP_NotEqual) { // no extent is negative
    const int other = onnx_has_extents(x, in[0]);
    return is_below_0(in[other]) && !has_opposite(x, in[1 - other]) ? EXTENTS_GONE : EXTENTS_REFUSED;
  }
  if (id == OP_Select) return onnx_has_extents(x, in[0]) ? EXTENTS_REFUSED : EXTENTS_KEPT;
  if (id == OP_Gather) return onnx_has_extents(x, in[1]) ? EXTENTS_REFUSED : EXTENTS_KEPT;
  const bool moves = id == OP_StaticReshape || id == OP_StaticTranspose || id == OP_Slice || id == OP_Concat;
  return moves ? EXTENTS_KEPT : EXTENTS_REFUSED;
}

// Arithmetic with extents; unknown where the result is no extent.
static bool combine_extents(Onnx *x, OperatorId id, int64_t a, int64_t b, int64_t *result) {
  Graph *g = x->build.graph;
  const Extent p = onnx_extent_of(x, a), q = onnx_extent_of(x, b);
  const Formula number = {.nterms = b != 0, .terms = {{.factor = b}}};
  Formula f;
  Extent e = EXTENT_UNKNOWN;
  bool ok = true;
  if (id == OP_Multiply) ok = extent_multiply(g, p, q, &e);
  else if (id == OP_Divide) ok = extent_divide(g, p, q, &e);
  else if (b > UNKNOWN) { // may be negative
    const bool fits = b > -MAX_ELEMENTS && b < MAX_ELEMENTS && formula_of(p, &f);
    ok = !fits || !formula_add(&f, &number, id == OP_Add ? 1 : -1) || graph_extent(g, &f, &e);
  } else {
    ok = extent_add(g, p, id == OP_Add ? 1 : -1, q, &e);
  }
  return ok ? onnx_extent_number(x, e, result) : error_out_of_memory(x->reading.d);
}

// False after a message.
static bool combine(Onnx *x, OperatorId id, int64_t a, int64_t b, int64_t *result) {
  const bool are_numbers = a > UNKNOWN && b > UNKNOWN;
  if (id == OP_Divide && b == 0) return build_error(&x->build, "a quotient by 0");
  if (are_numbers) {
    const uint64_t p = (uint64_t)a, q = (uint64_t)b;
    *result = (int64_t)(id == OP_Add ? p + q : id == OP_Subtract ? p - q : p * q);
    if (id == OP_Divide) *result = b == -1 ? (int64_t)(0 - p) : a / b;
    return true;
  }
  if (id == OP_Multiply && (a == -1 || b == -1)) return *result = onnx_opposite(a == -1 ? b : a), true;
  if (id == OP_Subtract && a == 0) return *result = onnx_opposite(b), true;
  if (id == OP_Add && is_opposite(x, a)) return combine_extents(x, OP_Subtract, b, onnx_opposite(a), result);
  if (is_opposite(x, b) && (id == OP_Add || id == OP_Subtract))
    return combine_extents(x, id == OP_Add ? OP_Subtract : OP_Add, a, onnx_opposite(b), result);
  if (a > UNKNOWN && id == OP_Add) return combine_extents(x, id, b, a, result);
  return combine_extents(x, id, a, b, result);
}

Value *onnx_combine_extents(Onnx *x, OperatorId id, const Value *a, const Value *b) {
  Constant *constant;
  if (!a || !b) return NULL;
  const int64_t na = shape_nelems(&a->shape), nb = shape_nelems(&b->shape);
  const bool is_known = a->constant && b->constant && a->type == TYPE_S64 && b->type == TYPE_S64;
  const bool is_arithmetic = id == OP_Add || id == OP_Subtract || id == OP_Multiply || id == OP_Divide;
  const bool are_alike = na == 1 || nb == 1 || shape_equals(&a->shape, &b->shape);
  if (!is_known || !is_arithmetic || na < 0 || nb < 0 || !are_alike)
    return onnx_must_be_known(x, a->constant ? b->constant && onnx_has_extents(x, a) ? a : b : a), NULL;
  const Value *larger = nb > na || (nb == na && b->shape.rank > a->shape.rank) ? b : a;
  const Shape shape = larger->shape;
  Value *v = build_constant(&x->build, TYPE_S64, &shape, &constant);
  for (int64_t i = 0; v && i < shape_nelems(&shape); i++) {
    const int64_t p = onnx_integer(a, na == 1 ? 0 : (size_t)i), q = onnx_integer(b, nb == 1 ? 0 : (size_t)i);
    if (!combine(x, id, p, q, &((int64_t *)constant->data)[i])) return NULL;
  }
  return v && onnx_mark_extents(x, v) ? v : NULL;
}

Value *onnx_multiply_extents(Onnx *x, const Value *v, bool keeps_axes) {
  const Shape one = {.rank = keeps_axes, .extent = {EXTENT(1)}};
  Constant *constant;
  int64_t product = 1;
  if (v->shape.rank != 1) return onnx_must_be_known(x, v), NULL;
  for (int64_t i = 0; i < shape_nelems(&v->shape); i++)
    if (!combine(x, OP_Multiply, product, onnx_integer(v, (size_t)i), &product)) return NULL;
  Value *result = build_constant(&x->build, TYPE_S64, &one, &constant);
  if (result) *(int64_t *)constant->data = product;
  return result && onnx_mark_extents(x, result) ? result : NULL;
}

Value *onnx_float_of_extent(Onnx *x, const Value *v, Type type) {
  Builder *b = &x->build;
  const Extent e = shape_nelems(&v->shape) == 1 ? onnx_extent_of(x, onnx_integer(v, 0)) : EXTENT_UNKNOWN;
  const Shape shape = {.rank = 1, .extent = {e}};
  if (!e.dim || v->shape.rank > 1) return onnx_must_be_known(x, v), NULL;
  Value *ones = build_number(b, TYPE_F32, &shape, 1); // their sum is exact up to 2^24, and then rounded
  return build_cast(b, build_reduce(b, OP_ReduceSum, ones, (int64_t[]){0}, 1, v->shape.rank == 1), type);
}

Extent onnx_one_extent(const Onnx *x, const Value *v) {
  if (!v) return EXTENT_UNKNOWN;
  if (v->constant && onnx_has_extents(x, v) && shape_nelems(&v->shape) == 1)
    return onnx_extent_of(x, onnx_integer(v, 0));
  while (v->producer && v->producer->op->id == OP_TypeCast && type_is_float(v->type)) v = v->producer->inputs[0];
  const Value *ones = v->producer && v->producer->op->id == OP_ReduceSum ? v->producer->inputs[0] : NULL;
  const bool is_count = ones && ones->shape.rank == 1 && ones->constant && ones->constant->is_splat &&
                        ones->type == TYPE_F32 && type_load(TYPE_F32, ones->constant->data, 0) == 1;
  return is_count ? ones->shape.extent[0] : EXTENT_UNKNOWN;
}

Value *onnx_reshape_extents(Onnx *x, Value *v, const Shape *to) {
  Builder *b = &x->build;
  int nunknown = 0;
  for (int i = 0; i < to->rank; i++) nunknown += extent_is_unknown(to->extent[i]);
  if (!v) return NULL;
  char shape[SHAPE_TO_GIVE];
  if (nunknown > 1)
    return build_error(b, "expected at most one extent that is neither a number nor has a name: %s",
                       onnx_shape_to_give(x, v, shape, sizeof shape)),
           NULL;
  Node *node = build_node(b, OP_StaticReshape, 1, &v);
  if (!node) return NULL;
  if (!node_set_shape(b->graph, node, &v->shape, to)) return error_out_of_memory(x->reading.d), NULL;
  return build_one(b, node);
}

bool onnx_finish(Builder *b, Node *node) {
  Onnx *x = (Onnx *)b;
  if (!build_checked(b, node)) return false;
  const bool is_constant = build_can_fold(b, node);
  Value *outputs[MAX_OPERANDS] = {NULL};
  ExtentUse use = EXTENTS_GONE;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    if (!onnx_has_extents(x, node->inputs[i])) continue;
    use = is_constant ? extent_use(x, node) : EXTENTS_REFUSED;
    if (use == EXTENTS_REFUSED) return onnx_must_be_known(x, node->inputs[i]);
  }
  for (uint32_t i = 0; i < node->noutputs; i++) outputs[i] = node->outputs[i];
  bool ok = !is_constant || build_fold(b, node);
  for (uint32_t i = 0; ok && use == EXTENTS_KEPT && i < node->noutputs; i++)
    ok = !outputs[i] || onnx_mark_extents(x, outputs[i]);
  return ok;
}
