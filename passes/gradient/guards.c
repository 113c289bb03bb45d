// Branches of Select. The gradient by a branch is 0 where the branch was not taken, but 0 times an infinite derivative
// is NaN. So it is set to 0 again behind each node of the branch that may multiply it by such a number.
//
// A mask follows the gradient through elementwise nodes. Through other nodes it goes where a value of the branch may be
// infinite, and as the gradient goes: their own rules are run for numbers that are 1 where the branch was taken, and 0
// elsewhere. These rules move and add elements (GradientRule.passes_on), so the mask of an input is where the result is
// not 0. Operands that a rule multiplies by count as ones there. A norm, a softmax or a loss of each row gives its
// input what any element of the row gets.
#include "ir/operators/loss.h"
#include "ir/operators/norm.h"
#include "ir/operators/softmax.h"
#include "passes/gradient/gradient_state.h"
#include "passes/gradient/norm.h"

#include <math.h>
#include <string.h>

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

static Value *taken(Gradient *g, Guard guard) {
  return guard.when ? guard.mask : gradient_unary(g, OP_LogicalNot, guard.mask);
}

// The guard of what is 0 where either guard says so (OP_LogicalAnd), or where both do (OP_LogicalOr).
static Guard joined(Gradient *g, OperatorId how, Guard a, Guard b) {
  if (a.mask == b.mask && a.when == b.when) return a;
  if (!a.mask || !b.mask) return how == OP_LogicalOr ? (Guard){0} : a.mask ? a : b;
  return (Guard){gradient_binary(g, how, taken(g, a), taken(g, b)), true};
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

// 1 where an element counts, 0 where the gradient is known to be 0, with this shape.
static Value *as_numbers(Gradient *g, Guard guard, Type type, const Shape *shape) {
  Value *ones = gradient_filled(g, type, shape, 1), *zeros = gradient_filled(g, type, shape, 0);
  if (guard.mask)
    ones = guard.when ? gradient_select(g, guard.mask, ones, zeros) : gradient_select(g, guard.mask, zeros, ones);
  return gradient_cast(g, ones, type);
}

static Guard where_positive(Gradient *g, Value *numbers) {
  Value *zero = numbers ? gradient_cast(g, gradient_number(g, numbers->type, 0), numbers->type) : NULL;
  return (Guard){gradient_binary(g, OP_Greater, numbers, zero), true};
}

// The guard of a value that was broadcast: of what is 0 where all elements that were computed from it are.
static Guard guard_of_broadcast(Gradient *g, Guard guard, const Shape *to) {
  if (guard.mask->shape.rank < to->rank) guard.mask = with_axes_of(g, guard.mask, to);
  Value *numbers = guard.mask ? as_numbers(g, guard, TYPE_F32, &guard.mask->shape) : NULL;
  return where_positive(g, gradient_summed(g, numbers, to));
}

static bool is_loss_of_each(const Node *node) {
  const OperatorId id = node->op->id;
  const bool is_loss = id == OP_MeanSquaredError || id == OP_BinaryCrossEntropy || id == OP_SoftmaxCrossEntropy;
  return is_loss && node_s64(node, "reduction") == LOSS_NONE;
}

// Whether a mask of the result is one of the input.
static bool is_alike(const Node *node, uint32_t slot) {
  const bool keeps_axes = node->op->traits & TRAIT_REDUCES && node_bool(node, "keep_dims");
  const bool is_each = is_loss_of_each(node) && node->op->id != OP_SoftmaxCrossEntropy;
  return (node->op->traits & TRAIT_ELEMENTWISE || keeps_axes || is_each) && (slot == 0 || !node_places_by_axis(node));
}

static bool is_risky(const Gradient *g, const Value *v) {
  return v && type_is_float(v->type) && g->is_risky[v->index - g->first];
}

static Guard *guard_of_result(const Gradient *g, const Node *node, uint32_t slot) {
  return node->outputs[slot] ? &g->guard[node->outputs[slot]->index - g->first] : NULL;
}

// The axes along which each element of the result depends on all of input 0. 0: it is no norm and no softmax.
static uint32_t axes_of_rows(const Node *node) {
  const OperatorId id = node->op->id;
  if (id == OP_SoftMax || id == OP_LogSoftmax || id == OP_SoftMaxBackward) return 1U << softmax_axis(node);
  return node->op->norm_scope == SCOPE_NONE ? 0 : norm_reduced_axes(node);
}

// Runs the rule for masks of the results, as numbers.
static void run_for_masks(Gradient *g, const Node *node, const GradientRule *rule) {
  Value *own[MAX_VARIADIC] = {NULL}, *given[MAX_VARIADIC] = {NULL};
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    if (!v || !gradient_of_output(g, node, i)) continue;
    own[i] = g->diff[v->index - g->first];
    g->diff[v->index - g->first] = as_numbers(g, *guard_of_result(g, node, i), v->type, &v->shape);
  }
  g->given_masks = given;
  rule->make(g, node, gradient_of_output(g, node, 0));
  g->given_masks = NULL;
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (own[i]) g->diff[node->outputs[i]->index - g->first] = own[i];
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (given[i]) g->guard_of_input[i] = where_positive(g, given[i]);
}

// The sum of each row, or of each group of channels of an image, as it broadcasts to input 0.
static Value *sum_of_rows(Gradient *g, const Node *node, Value *numbers, uint32_t rows) {
  const Shape *src = &node->inputs[0]->shape;
  NormView view = {.src = *src, .reduced = rows};
  if (node->op->norm_scope == SCOPE_GROUP && src->rank < MAX_RANK && !norm_view(g, node, &view)) return NULL;
  Value *sum = gradient_reduced(g, OP_ReduceSum, gradient_in_shape(g, numbers, &view.src), view.reduced, true);
  if (view.src.rank == src->rank) return sum;
  return gradient_in_shape(g, gradient_binary(g, OP_Multiply, sum, gradient_filled(g, TYPE_F32, &view.src, 1)), src);
}

void gradient_guard_inputs(Gradient *g, const Node *node) {
  const GradientRule *rule = gradient_rules[node->op->traits & TRAIT_REDUCES ? OP_ReduceSum : node->op->id];
  const uint32_t rows = axes_of_rows(node);
  bool has_mask = false, is_asked = false;
  memset(g->guard_of_input, 0, sizeof g->guard_of_input);
  for (uint32_t i = 0; i < node->noutputs; i++) has_mask |= node->outputs[i] && guard_of_result(g, node, i)->mask;
  for (uint32_t i = 0; i < node->ninputs; i++) is_asked |= is_risky(g, node->inputs[i]) && !is_alike(node, i);
  if (!has_mask || !is_asked) return;
  if (rule->passes_on) {
    run_for_masks(g, node, rule);
  } else if ((rows || is_loss_of_each(node)) && node->outputs[0] && guard_of_result(g, node, 0)->mask) {
    Value *numbers = as_numbers(g, *guard_of_result(g, node, 0), TYPE_F32, &node->outputs[0]->shape);
    Shape shape = node->inputs[0]->shape;
    if (!rows) shape.extent[loss_class_axis(node)] = EXTENT(1);
    numbers = rows ? sum_of_rows(g, node, numbers, rows) : gradient_in_shape(g, numbers, &shape);
    g->guard_of_input[0] = where_positive(g, numbers);
    if (node->op->id == OP_SoftMaxBackward) g->guard_of_input[1] = g->guard_of_input[0];
  }
}

// What is known of the gradient that the node gives to an input.
static Guard guard_of(Gradient *g, const Node *node, uint32_t slot) {
  enum { COND };
  Guard guard = g->guard_of_input[slot];
  if (is_alike(node, slot) && node->outputs[0]) guard = *guard_of_result(g, node, 0);
  if (node->op->id != OP_Select || slot == COND) return guard;
  return joined(g, OP_LogicalAnd, guard, (Guard){gradient_saved(g, node->inputs[COND]), slot == 1});
}

static Value *guarded(Gradient *g, Guard guard, Value *v) {
  Value *zero = v ? gradient_number(g, v->type, 0) : NULL;
  return guard.when ? gradient_select(g, guard.mask, v, zero) : gradient_select(g, guard.mask, zero, v);
}

Value *gradient_guarded(Gradient *g, const Node *node, uint32_t slot) {
  const Value *forward = node->inputs[slot];
  if (g->given_masks) return as_numbers(g, (Guard){0}, forward->type, &forward->shape);
  Value *v = gradient_saved(g, forward);
  const Guard guard = guard_of(g, node, slot);
  return guard.mask ? gradient_cast(g, guarded(g, guard, v), forward->type) : v;
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
  if (!diff || !forward || g->failed || !gradient_is_wanted(g, forward)) return;
  if (g->given_masks) {
    g->given_masks[slot] =
        gradient_broadcasts(&diff->shape, &forward->shape) ? diff : gradient_summed(g, diff, &forward->shape);
    return;
  }
  g->given |= UINT64_C(1) << slot;
  Guard guard = guard_of(g, node, slot);
  if (guard.mask && may_multiply(node) && gradient_broadcasts(&guard.mask->shape, &diff->shape))
    diff = guarded(g, guard, diff);
  if (guard.mask && !gradient_broadcasts(&guard.mask->shape, &forward->shape))
    guard = g->is_risky[forward->index - g->first] ? guard_of_broadcast(g, guard, &forward->shape) : (Guard){0};
  gradient_add(g, forward, diff, guard);
}
