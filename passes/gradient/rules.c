// The functions that rules build the backward graph with.
#include "ir/operators/contraction.h"
#include "ir/operators/movement.h"
#include "ir/operators/reduce.h"
#include "passes/gradient/gradient_state.h"

#include <math.h>

void *gradient_out_of_memory(Gradient *g) {
  g->failed = true;
  error_out_of_memory(g->diagnostics);
  return NULL;
}

bool gradient_is_wanted(const Gradient *g, const Value *forward) {
  return forward && g->depends[forward->index - g->first];
}

static bool is_expansion(const Gradient *g) {
  return g->forward == g->graph;
}

bool gradient_is_at_hand(const Gradient *g, const Value *forward) {
  return is_expansion(g) || forward->is_input || forward->constant || g->here[forward->index];
}

Value *gradient_saved(Gradient *g, const Value *forward) {
  if (is_expansion(g)) return (Value *)forward; // the cast is valid: it is a value of the backward graph
  Value **here = &g->here[forward->index];
  if (*here) return *here;
  bool is_given = !forward->constant || forward->constant->file;
  *here = (is_given ? graph_add_input : graph_add_value)(g->graph, forward->name, forward->type, &forward->shape);
  if (!*here) return gradient_out_of_memory(g);
  (*here)->position = forward->position;
  (*here)->layout = forward->layout;
  (*here)->is_of_leaf = is_given && g->is_own[forward->index];
  if (!is_given) (*here)->constant = forward->constant;
  return *here;
}

// For nodes at the place of the forward node whose rule is running.
static Builder *builder(Gradient *g) {
  g->build.at = g->node ? g->node->position : (Position){0};
  return &g->build;
}

static Value *made(Gradient *g, Value *v) { // NULL: the builder has reported why
  g->failed |= !v;
  return v;
}

Value *gradient_filled(Gradient *g, Type type, const Shape *shape, double number) {
  // 16-bit floats are not precise enough for counts and attributes.
  return made(g, build_number(builder(g), type == TYPE_F64 ? TYPE_F64 : TYPE_F32, shape, number));
}

Value *gradient_number(Gradient *g, Type type, double number) {
  return gradient_filled(g, type, &(Shape){.rank = 0}, number);
}

void gradient_refuse(Gradient *g, const Node *node, const char *why) {
  char title[NODE_TITLE_BYTES];
  g->failed = true;
  error_at(g->diagnostics, node->position, "%s has no gradient: %s", node_title(node, title), why);
}

Value *gradient_of_output(const Gradient *g, const Node *node, uint32_t slot) {
  return node->outputs[slot] ? g->diff[node->outputs[slot]->index - g->first] : NULL;
}

Node *gradient_add_node(Gradient *g, OperatorId id, uint32_t ninputs, const Node *like) {
  const Operator *op = &operators[id];
  Node *node = g->failed ? NULL : build_bare_node(builder(g), id, ninputs);
  g->failed |= !node;
  if (!node) return NULL;
  for (uint32_t i = 0; like && i < op->nattributes; i++)
    if (operator_has_attribute(like->op, op->attributes[i].name))
      node->attributes[i] = *node_attribute(like, op->attributes[i].name);
  node_set_defaults(node);
  return node;
}

Node *gradient_node(Gradient *g, OperatorId id, const Node *like) {
  return gradient_add_node(g, id, operators[id].ninputs, like);
}

Node *gradient_variadic(Gradient *g, OperatorId id, uint32_t ninputs) {
  return gradient_add_node(g, id, ninputs, NULL);
}

Value *gradient_output(Gradient *g, Node *node, uint32_t slot, Type type, const Shape *shape) {
  Value *v = node ? made(g, build_result(builder(g), node, slot, type)) : NULL;
  if (v) v->shape = *shape;
  return v;
}

void gradient_set_extents(Gradient *g, Node *node, const char *name, const Extent *extents, size_t count) {
  if (!node_set_extents(g->graph, node, name, extents, count)) gradient_out_of_memory(g);
}

void gradient_set_list(Gradient *g, Node *node, const char *name, const int64_t *items, size_t count) {
  if (!node_set_list(g->graph, node, name, items, count)) gradient_out_of_memory(g);
}

Value *gradient_apply(Gradient *g, OperatorId id, const Node *like, Type type, const Shape *shape, Value *a, Value *b,
                      Value *c) {
  Value *const inputs[] = {a, b, c};
  Node *node = gradient_node(g, id, like);
  for (uint32_t i = 0; node && i < node->ninputs && i < sizeof inputs / sizeof *inputs; i++)
    node_set_input(node, i, inputs[i]);
  return gradient_output(g, node, 0, type, shape);
}

Value *gradient_unary(Gradient *g, OperatorId op, Value *a) {
  return a ? made(g, build_unary(builder(g), op, a)) : NULL;
}

Value *gradient_cast(Gradient *g, Value *v, Type type) {
  if (!v || v->type == type) return v;
  // TypeCast converts only from or to f32 or f64.
  const bool is_direct = type_nbytes(v->type) > 2 || type_nbytes(type) > 2;
  Value *between = is_direct ? v : gradient_cast(g, v, TYPE_F32);
  return between ? made(g, build_cast(builder(g), between, type)) : NULL;
}

Value *gradient_widened(Gradient *g, Value *v) {
  return gradient_cast(g, v, v && v->type == TYPE_F64 ? TYPE_F64 : TYPE_F32);
}

Value *gradient_binary(Gradient *g, OperatorId op, Value *a, Value *b) {
  if (a && b && (a->type == TYPE_F64) != (b->type == TYPE_F64)) { // f64 mixes with no other type
    a = gradient_cast(g, a, TYPE_F64);
    b = gradient_cast(g, b, TYPE_F64);
  }
  if (!a || !b) return NULL;
  const bool compares = op == OP_GreaterEqual || op == OP_Greater || op == OP_Equal;
  Node *node = build_node(builder(g), op, 2, (Value *const[]){a, b});
  return made(g, build_one_of_type(builder(g), node, compares || a->type == b->type ? TYPE_NONE : TYPE_F32));
}

Value *gradient_scaled(Gradient *g, Value *v, double number) {
  return v ? gradient_binary(g, OP_Multiply, v, gradient_number(g, v->type, number)) : NULL;
}

Value *gradient_select(Gradient *g, Value *condition, Value *a, Value *b) {
  const bool is_f64 = a && b && (a->type == TYPE_F64 || b->type == TYPE_F64);
  a = gradient_cast(g, a, is_f64 ? TYPE_F64 : TYPE_F32);
  b = gradient_cast(g, b, is_f64 ? TYPE_F64 : TYPE_F32);
  if (!condition || !a || !b) return NULL;
  return made(g, build_one(builder(g), build_node(builder(g), OP_Select, 3, (Value *const[]){condition, a, b})));
}

Value *gradient_reduced(Gradient *g, OperatorId op, Value *v, uint32_t axes, bool keep_dims) {
  return v && axes ? made(g, build_reduce_mask(builder(g), op, v, axes, keep_dims)) : v;
}

Value *gradient_count(Gradient *g, Type type, const Shape *shape, uint32_t axes) {
  Shape counted = {.rank = 0};
  double count = 1;
  bool is_known = true;
  for (int i = 0; i < shape->rank; i++) {
    if (!(axes >> i & 1)) continue;
    counted.extent[counted.rank++] = shape->extent[i];
    is_known &= extent_is_literal(shape->extent[i]);
    count *= (double)extent_value(shape->extent[i]);
  }
  if (is_known) return gradient_number(g, type, count);
  return gradient_reduced(g, OP_ReduceSum, gradient_filled(g, type, &counted, 1), (1U << counted.rank) - 1, false);
}

Value *gradient_reshaped(Gradient *g, Value *v, const Shape *shape) {
  Node *node = v ? gradient_node(g, OP_StaticReshape, NULL) : NULL;
  if (!node) return NULL;
  if (!node_set_shape(g->graph, node, &v->shape, shape)) return gradient_out_of_memory(g);
  node_set_input(node, 0, v);
  return gradient_output(g, node, 0, v->type, shape);
}

Value *gradient_transposed(Gradient *g, Value *v, const int64_t *order, const Shape *shape) {
  Value *moved = gradient_apply(g, OP_StaticTranspose, NULL, v->type, shape, v, NULL, NULL);
  if (moved) gradient_set_list(g, moved->producer, "order", order, (size_t)shape->rank);
  return moved;
}

Value *gradient_transposed_back(Gradient *g, const Node *node, Value *v) {
  const Shape *src = &node->inputs[0]->shape;
  int axes[MAX_RANK];
  int64_t back[MAX_RANK];
  if (!v || !transpose_axes(node, src->rank, axes)) return NULL;
  for (int i = 0; i < src->rank; i++) back[axes[i]] = i;
  return gradient_transposed(g, v, back, src);
}

Value *gradient_in_shape(Gradient *g, Value *v, const Shape *shape) {
  return v && !shape_equals(&v->shape, shape) ? gradient_reshaped(g, v, shape) : v;
}

// Reduces the missing and the broadcast axes.
Value *gradient_summed(Gradient *g, Value *v, const Shape *shape) {
  if (!v) return NULL;
  int missing = v->shape.rank - shape->rank;
  uint32_t broadcast = 0;
  v = gradient_reduced(g, OP_ReduceSum, v, (1U << missing) - 1, false);
  for (int i = 0; v && i < shape->rank; i++)
    if (extent_equals(shape->extent[i], EXTENT(1)) && !extent_equals(v->shape.extent[i], EXTENT(1)))
      broadcast |= 1U << i;
  return gradient_reduced(g, OP_ReduceSum, v, broadcast, true);
}

static void report_statistic(Gradient *g, const Value *v) {
  char title[NODE_TITLE_BYTES];
  const char *why = gradient_of_result(v->producer->op->id, v->output_slot).why;
  g->failed = true;
  if (g->node)
    error_at(g->diagnostics, g->node->position, "%s has no gradient for %s, a result of the %s on line %u: %s",
             node_title(g->node, title), v->name, v->producer->op->name, v->producer->position.line, why);
  else error_at(g->diagnostics, v->position, "%s is a result of a %s: %s", v->name, v->producer->op->name, why);
}

bool gradient_is_statistic(const Value *v) {
  return v->producer && v->producer->op->outputs[v->output_slot].is_statistic;
}

static Value *taken(Gradient *g, Guard guard) {
  return guard.when ? guard.mask : gradient_unary(g, OP_LogicalNot, guard.mask);
}

// The guard of what is 0 where either guard says so (OP_LogicalAnd), or where both do (OP_LogicalOr).
static Guard joined(Gradient *g, OperatorId how, Guard a, Guard b) {
  if (a.mask == b.mask && a.when == b.when) return a;
  if (!a.mask || !b.mask) return how == OP_LogicalOr ? (Guard){0} : a.mask ? a : b;
  return (Guard){gradient_binary(g, how, taken(g, a), taken(g, b)), true};
}

void gradient_add(Gradient *g, const Value *forward, Value *diff, Guard guard) {
  const size_t index = forward->index - g->first;
  if (gradient_is_statistic(forward) &&
      gradient_of_result(forward->producer->op->id, forward->output_slot).kind == DERIVATIVE_REFUSED) {
    report_statistic(g, forward);
    return;
  }
  diff = gradient_cast(g, gradient_summed(g, diff, &forward->shape), forward->type);
  Value **sum = &g->diff[index];
  Guard *known = &g->guard[index];
  *known = *sum ? joined(g, OP_LogicalOr, *known, guard) : guard;
  *sum = *sum ? gradient_binary(g, OP_Add, *sum, diff) : diff;
}

// Branches of Select. The gradient by a branch is 0 where the branch was not taken, but 0 times an infinite derivative
// is NaN. So it is set to 0 again behind each node of the branch that may multiply it by such a number. A mask follows
// the gradient through elementwise nodes; through others, only where a value of the branch may be infinite.

bool gradient_broadcasts(const Shape *from, const Shape *to) {
  const int missing = to->rank - from->rank;
  bool fits = missing >= 0;
  for (int i = 0; fits && i < from->rank; i++)
    fits = extent_equals(from->extent[i], EXTENT(1)) || extent_equals(from->extent[i], to->extent[missing + i]);
  return fits;
}

// The mask with all axes of a shape that it broadcasts to; extents stay 1.
static Value *with_axes_of(Gradient *g, Value *mask, const Shape *shape) {
  Shape own = {.rank = shape->rank};
  const int missing = shape->rank - mask->shape.rank;
  for (int i = 0; i < own.rank; i++) own.extent[i] = i < missing ? EXTENT(1) : mask->shape.extent[i - missing];
  return gradient_in_shape(g, mask, &own);
}

// The guard of what is 0 where all of the guarded elements along these axes are.
static Guard any_of(Gradient *g, Guard guard, uint32_t axes) {
  Value *one = gradient_filled(g, TYPE_F32, &guard.mask->shape, 1), *zero = gradient_number(g, TYPE_F32, 0);
  Value *zeros = gradient_filled(g, TYPE_F32, &guard.mask->shape, 0);
  Value *ones = guard.when ? gradient_select(g, guard.mask, one, zeros) : gradient_select(g, guard.mask, zeros, one);
  return (Guard){gradient_binary(g, OP_Greater, gradient_reduced(g, OP_ReduceMax, ones, axes, true), zero), true};
}

// The guard of a value that was broadcast: of what is 0 where all elements that were computed from it are.
static Guard guard_of_broadcast(Gradient *g, Guard guard, const Shape *to) {
  const Shape *from = &guard.mask->shape;
  const int more = from->rank - to->rank;
  uint32_t axes = 0;
  for (int i = 0; i < from->rank; i++)
    if (i < more || (extent_equals(to->extent[i - more], EXTENT(1)) && !extent_equals(from->extent[i], EXTENT(1))))
      axes |= 1U << i;
  guard = any_of(g, guard, axes);
  if (!guard.mask || more <= 0) return guard;
  Shape shape = {.rank = to->rank};
  for (int i = 0; i < to->rank; i++) shape.extent[i] = guard.mask->shape.extent[i + more];
  guard.mask = gradient_in_shape(g, guard.mask, &shape);
  return guard;
}

// A factor of a product counts where any of its products does.
static Guard guard_of_factor(Gradient *g, const Node *node, uint32_t slot, Guard guard) {
  const Product p = node_product(node);
  const Shape *dst = &node->outputs[0]->shape, *own = &node->inputs[slot]->shape;
  const int from = slot ? p.dst_n : p.dst_m, other = slot ? p.dst_m : p.dst_n, to = slot ? p.weights_n : p.src_m;
  Shape shape = {.rank = own->rank};
  guard.mask = with_axes_of(g, guard.mask, dst);
  if (!guard.mask) return (Guard){0};
  uint32_t axes = other >= 0 ? 1U << other : 0;
  for (int i = 0; i < own->rank; i++) shape.extent[i] = EXTENT(1);
  for (int i = 0; i < p.nbatch; i++) {
    const int axis = product_batch_axis(&p, own->rank, i);
    if (axis < 0 || extent_equals(own->extent[axis], EXTENT(1))) axes |= 1U << i;
    else shape.extent[axis] = guard.mask->shape.extent[i];
  }
  if (from >= 0 && to >= 0) shape.extent[to] = guard.mask->shape.extent[from];
  for (int i = 0; i < dst->rank; i++)
    if (extent_equals(guard.mask->shape.extent[i], EXTENT(1))) axes &= ~(1U << i);
  if (axes) guard = any_of(g, guard, axes);
  guard.mask = gradient_in_shape(g, guard.mask, &shape);
  return guard;
}

// The guard of an input whose elements are those of the result in other places: as the gradient moves.
static Guard guard_of_moved(Gradient *g, const Node *node, Guard guard) {
  const Shape *dst = &node->outputs[0]->shape, *src = &node->inputs[0]->shape;
  if (node->op->traits & TRAIT_REDUCES) {
    Shape shape = *src;
    const uint32_t axes = reduce_axes(node);
    guard.mask = with_axes_of(g, guard.mask, dst);
    for (int i = 0, k = 0; guard.mask && i < src->rank; i++)
      shape.extent[i] = axes >> i & 1 ? EXTENT(1) : guard.mask->shape.extent[k++];
    guard.mask = gradient_in_shape(g, guard.mask, &shape);
    return guard;
  }
  Value *all = graph_add_number(g->graph, "", TYPE_BOOLEAN, dst, guard.when), *whole;
  if (!all) return gradient_out_of_memory(g), (Guard){0};
  whole = gradient_binary(g, guard.when ? OP_LogicalAnd : OP_LogicalOr, guard.mask, all);
  const bool is_reshape = node->op->id == OP_StaticReshape;
  guard.mask = is_reshape ? gradient_in_shape(g, whole, src) : gradient_transposed_back(g, node, whole);
  return guard;
}

// What is known of the gradient that the node gives to an input.
static Guard guard_of(Gradient *g, const Node *node, uint32_t slot) {
  enum { COND };
  const Value *forward = node->inputs[slot];
  const OperatorId id = node->op->id;
  const bool reduces = node->op->traits & TRAIT_REDUCES, keeps_axes = reduces && node_bool(node, "keep_dims");
  const bool is_alike = node->op->traits & TRAIT_ELEMENTWISE || keeps_axes;
  const bool has_one = node->outputs[0] && (slot == 0 || !node_places_by_axis(node));
  Guard guard = has_one ? g->guard[node->outputs[0]->index - g->first] : (Guard){0};
  if (guard.mask && !is_alike) {
    const bool is_risky = g->is_risky[forward->index - g->first];
    if (is_risky && id == OP_MatMul && slot < 2) guard = guard_of_factor(g, node, slot, guard);
    else if (is_risky && (reduces || id == OP_StaticReshape || id == OP_StaticTranspose))
      guard = guard_of_moved(g, node, guard);
    else guard = (Guard){0};
  }
  if (id != OP_Select || slot == COND) return guard;
  return joined(g, OP_LogicalAnd, guard, (Guard){gradient_saved(g, node->inputs[COND]), slot == 1});
}

static Value *guarded(Gradient *g, Guard guard, Value *v) {
  Value *zero = v ? gradient_number(g, v->type, 0) : NULL;
  return guard.when ? gradient_select(g, guard.mask, v, zero) : gradient_select(g, guard.mask, zero, v);
}

Value *gradient_guarded(Gradient *g, const Node *node, uint32_t slot) {
  Value *v = gradient_saved(g, node->inputs[slot]);
  const Guard guard = guard_of(g, node, slot);
  return guard.mask ? gradient_cast(g, guarded(g, guard, v), node->inputs[slot]->type) : v;
}

// A number that is finite, and does not depend on an input.
static bool is_finite_number(const Value *v) {
  return v->constant && !v->constant->file && v->constant->is_splat &&
         isfinite(type_load(v->type, v->constant->data, 0));
}

bool gradient_has_pole(const Node *node) {
  return gradient_rules[node->op->id]->has_pole && !(node->op->id == OP_Divide && is_finite_number(node->inputs[1]));
}

static bool may_multiply(const Node *node) {
  const bool is_product = node->op->id == OP_Multiply;
  return !gradient_rules[node->op->id]->passes_on &&
         !(is_product && (is_finite_number(node->inputs[0]) || is_finite_number(node->inputs[1])));
}

void gradient_give(Gradient *g, const Node *node, uint32_t slot, Value *diff) {
  const Value *forward = slot < node->ninputs ? node->inputs[slot] : NULL;
  if (!diff || g->failed || !gradient_is_wanted(g, forward)) return;
  g->given |= UINT64_C(1) << slot;
  Guard guard = guard_of(g, node, slot);
  if (guard.mask && may_multiply(node) && gradient_broadcasts(&guard.mask->shape, &diff->shape))
    diff = guarded(g, guard, diff);
  if (guard.mask && !gradient_broadcasts(&guard.mask->shape, &forward->shape))
    guard = g->is_risky[forward->index - g->first] ? guard_of_broadcast(g, guard, &forward->shape) : (Guard){0};
  gradient_add(g, forward, diff, guard);
}

bool gradient_is_needed(const Value *v) {
  return v && v->is_input && (v->uses || v->is_output);
}
