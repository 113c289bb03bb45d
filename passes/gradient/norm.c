// Gradients of normalisations: their backward operators, applied to the statistics that the forward operators output.
#include "ir/operators/norm.h"

#include "passes/gradient/gradient.h"

#include <string.h>

static uint32_t slot_of(const Operand *operands, uint32_t count, const char *name) {
  uint32_t slot = 0;
  while (slot < count && strcmp(operands[slot].name, name) != 0) slot++;
  return slot;
}

static void set_input(Node *backward, const char *name, Value *v) {
  if (backward) node_set_input(backward, slot_of(backward->op->inputs, backward->op->ninputs, name), v);
}

static uint32_t input_slot(const Node *node, const char *name) {
  return slot_of(node->op->inputs, node->op->ninputs, name);
}

static const Value *forward_input(const Node *node, const char *name) {
  const uint32_t slot = input_slot(node, name);
  return slot < node->ninputs ? node->inputs[slot] : NULL;
}

// Adds a backward operator with the inputs src, diff_dst and gamma, and the output diff_src.
static Node *begin(Gradient *g, const Node *node, Value *diff, OperatorId id) {
  const Value *src = node->inputs[0], *gamma = forward_input(node, "gamma");
  Node *backward = gradient_node(g, id, node);
  if (!backward) return NULL;
  set_input(backward, "src", gradient_saved(g, src));
  set_input(backward, "diff_dst", diff);
  gradient_give(g, node, 0, gradient_output(g, backward, 0, src->type, &src->shape));
  if (gamma) set_input(backward, "gamma", gradient_saved(g, gamma));
  return backward;
}

static bool parameters_are_wanted(const Gradient *g, const Node *node) {
  return gradient_is_wanted(g, forward_input(node, "gamma")) || gradient_is_wanted(g, forward_input(node, "beta"));
}

static Value *diff_of_parameter(Gradient *g, Node *backward, uint32_t slot, const Value *parameter) {
  return parameter ? gradient_output(g, backward, slot, parameter->type, &parameter->shape) : NULL;
}

// Adds both diff_gamma and diff_beta: the operators require both or neither.
static void give_parameters(Gradient *g, const Node *node, Node *backward) {
  const Value *gamma = forward_input(node, "gamma"), *beta = forward_input(node, "beta");
  gradient_give(g, node, input_slot(node, "gamma"), diff_of_parameter(g, backward, 1, gamma));
  gradient_give(g, node, input_slot(node, "beta"), diff_of_parameter(g, backward, 2, beta));
}

// The type of statistics that the backward graph computes again.
static Type type_of_statistics(const Value *src) {
  return src->type == TYPE_F64 ? TYPE_F64 : TYPE_F32;
}

// Whether the statistic is precise enough for gradients. With a mean rounded to 16 bits, x - mean has few correct
// digits if |mean| is many times the deviation.
static bool is_precise(const Value *statistic, const Value *src) {
  return statistic->type == type_of_statistics(src);
}

// Sets the inputs mean and variance to outputs `first` and `first` + 1 of a copy of the forward node.
static void set_computed(Gradient *g, Node *backward, Node *again, uint32_t first, Type type, const Shape *shape) {
  set_input(backward, "mean", gradient_output(g, again, first, type, shape));
  set_input(backward, "variance", gradient_output(g, again, first + 1, type, shape));
}

// A copy of the forward node with running statistics that have no effect.
static void compute_batch_statistics(Gradient *g, const Node *node, Node *backward) {
  const Value *src = node->inputs[0], *mean = node->outputs[3];
  const Type type = type_of_statistics(src);
  Node *again = gradient_node(g, OP_BatchNormForwardTraining, node);
  Value *zeros = again ? gradient_filled(g, type, &mean->shape, 0) : NULL;
  if (!zeros) return;
  node_set_input(again, 0, gradient_saved(g, src));
  node_set_input(again, 1, zeros);
  node_set_input(again, 2, zeros);
  gradient_output(g, again, 0, src->type, &src->shape);
  gradient_output(g, again, 1, type, &mean->shape);
  gradient_output(g, again, 2, type, &mean->shape);
  set_computed(g, backward, again, 3, type, &mean->shape);
}

// Always adds the outputs diff_gamma and diff_beta: without them BatchNormTrainingBackward ignores gamma.
#define RUNNING ZERO("dst does not depend on running statistics")
GRADIENT_EXCEPT(BatchNormForwardTraining, {"mean", RUNNING}, {"variance", RUNNING}) {
  Node *backward = begin(g, node, diff, OP_BatchNormTrainingBackward);
  if (is_precise(node->outputs[3], node->inputs[0])) {
    set_input(backward, "mean", gradient_saved(g, node->outputs[3]));
    set_input(backward, "variance", gradient_saved(g, node->outputs[4]));
  } else {
    compute_batch_statistics(g, node, backward);
  }
  give_parameters(g, node, backward);
}

// Gradients of given statistics, which are ordinary inputs: with r = 1 / sqrt(variance + epsilon) and s = gamma * r,
// diff_mean = -s * diff_beta and diff_variance = -s * r * diff_gamma / 2.
static void give_statistics(Gradient *g, const Node *node, const Node *backward) {
  const Value *variance = node->inputs[4];
  Value *epsilon = gradient_number(g, variance->type, node_f32(node, "epsilon"));
  Value *sum = gradient_binary(g, OP_Add, gradient_saved(g, variance), epsilon);
  Value *r = sum ? gradient_unary(g, OP_Reciprocal, gradient_unary(g, OP_Sqrt, sum)) : NULL;
  Value *s = gradient_binary(g, OP_Multiply, gradient_saved(g, node->inputs[1]), r);
  Value *by_mean = gradient_binary(g, OP_Multiply, s, backward->outputs[2]);
  Value *by_variance = gradient_binary(g, OP_Multiply, gradient_binary(g, OP_Multiply, s, r), backward->outputs[1]);
  gradient_give(g, node, 3, gradient_scaled(g, by_mean, -1));
  gradient_give(g, node, 4, gradient_scaled(g, by_variance, -0.5));
}

GRADIENT(BatchNormInference) {
  Node *backward = begin(g, node, diff, OP_BatchNormInferenceBackward);
  bool by_statistics = gradient_is_wanted(g, node->inputs[3]) || gradient_is_wanted(g, node->inputs[4]);
  set_input(backward, "mean", gradient_saved(g, node->inputs[3]));
  set_input(backward, "variance", gradient_saved(g, node->inputs[4]));
  if (by_statistics || parameters_are_wanted(g, node)) give_parameters(g, node, backward);
  if (backward && by_statistics) give_statistics(g, node, backward);
}

// Sets the inputs mean and variance to the forward node's outputs, or to outputs of a copy of the forward node whose
// statistics are precise enough.
static void set_statistics(Gradient *g, const Node *node, Node *backward) {
  if (node->outputs[1] && is_precise(node->outputs[1], node->inputs[0])) {
    set_input(backward, "mean", gradient_saved(g, node->outputs[1]));
    set_input(backward, "variance", gradient_saved(g, node->outputs[2]));
    return;
  }
  const Value *src = node->inputs[0];
  Node *again = gradient_node(g, node->op->id, node);
  if (!again) return;
  node_attribute_slot(again, "keep_stats")->boolean = true;
  node_attribute_slot(again, "use_affine")->boolean = false;
  node_set_input(again, 0, gradient_saved(g, src));
  gradient_output(g, again, 0, src->type, &src->shape);
  Shape shape = {.rank = 0};
  const bool has_groups = node->op->norm_scope == SCOPE_GROUP;
  for (int i = 0; i < (has_groups ? 1 : layer_norm_begin_axis(node)); i++)
    shape.extent[shape.rank++] = src->shape.extent[i];
  if (has_groups) shape.extent[shape.rank++] = norm_ngroups(node);
  set_computed(g, backward, again, 1, type_of_statistics(src), &shape);
}

static void make_of_rows(Gradient *g, const Node *node, Value *diff, OperatorId id) {
  Node *backward = begin(g, node, diff, id);
  if (!backward) return;
  set_statistics(g, node, backward);
  if (parameters_are_wanted(g, node)) give_parameters(g, node, backward);
}

RULE(LayerNorm, make_of_rows(g, node, diff, OP_LayerNormBackward))
RULE(GroupNorm, make_of_rows(g, node, diff, OP_GroupNormBackward))
RULE(InstanceNorm, make_of_rows(g, node, diff, OP_InstanceNormBackward))

// The shape of gamma with src's extents on all axes of a row. False if gamma varies along all axes of a row or along
// none: RMSNormBackward then computes its gradient.
static bool whole_rows(const Node *node, Shape *shape) {
  const Shape *src = &node->inputs[0]->shape, *gamma = &node->inputs[1]->shape;
  const int missing = src->rank - gamma->rank;
  bool is_broadcast = false, is_whole = false;
  *shape = *src;
  for (int i = 0; i < src->rank; i++) {
    const Extent own = i < missing ? EXTENT(1) : gamma->extent[i - missing];
    if (i < layer_norm_begin_axis(node)) shape->extent[i] = own;
    if (i < layer_norm_begin_axis(node) || extent_equals(src->extent[i], EXTENT(1))) continue;
    if (extent_equals(own, EXTENT(1))) is_broadcast = true;
    else is_whole = true;
  }
  return is_broadcast && is_whole;
}

GRADIENT(RMSNorm) {
  const Value *gamma = node->inputs[1];
  Node *backward = begin(g, node, diff, OP_RMSNormBackward);
  Shape shape;
  if (!backward || !gradient_is_wanted(g, gamma)) return;
  if (!whole_rows(node, &shape)) {
    gradient_give(g, node, 1, diff_of_parameter(g, backward, 1, gamma));
    return;
  }
  Value *ones = gradient_filled(g, gamma->type, &shape, 1);
  Value *whole = gradient_binary(g, OP_Multiply, gradient_saved(g, gamma), ones);
  if (!whole) return;
  set_input(backward, "gamma", whole);
  gradient_give(g, node, 1, gradient_output(g, backward, 1, whole->type, &shape));
}

NO_GRADIENT(BatchNormTrainingBackward, SECOND_ORDER)
NO_GRADIENT(BatchNormInferenceBackward, SECOND_ORDER)
NO_GRADIENT(LayerNormBackward, SECOND_ORDER)
NO_GRADIENT(GroupNormBackward, SECOND_ORDER)
NO_GRADIENT(InstanceNormBackward, SECOND_ORDER)
NO_GRADIENT(RMSNormBackward, SECOND_ORDER)
