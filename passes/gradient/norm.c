// Gradients of normalisations: their backward operators, applied to the statistics that the forward operators output.
#include "ir/operators/norm.h"

#include "passes/gradient/gradient_state.h"
#include "passes/gradient/norm.h"

// Adds a backward operator with the inputs src, diff_dst and gamma, and the output diff_src.
static Node *begin(Gradient *g, const Node *node, Value *diff, OperatorId id) {
  const Value *src = node->inputs[0], *gamma = norm_input(node, "gamma");
  Node *backward = gradient_node(g, id, node);
  if (!backward) return NULL;
  norm_set_input(backward, "src", gradient_guarded(g, node, 0));
  norm_set_input(backward, "diff_dst", diff);
  gradient_give(g, node, 0, gradient_output(g, backward, 0, src->type, &src->shape));
  if (gamma) norm_set_input(backward, "gamma", gradient_saved(g, gamma));
  return backward;
}

static bool parameters_are_wanted(const Gradient *g, const Node *node) {
  return gradient_is_wanted(g, norm_input(node, "gamma")) || gradient_is_wanted(g, norm_input(node, "beta"));
}

static Value *diff_of_parameter(Gradient *g, Node *backward, uint32_t slot, const Value *parameter) {
  return parameter ? gradient_output(g, backward, slot, parameter->type, &parameter->shape) : NULL;
}

// Adds both diff_gamma and diff_beta: the operators require both or neither.
static void give_parameters(Gradient *g, const Node *node, Node *backward) {
  const Value *gamma = norm_input(node, "gamma"), *beta = norm_input(node, "beta");
  gradient_give(g, node, norm_input_slot(node, "gamma"), diff_of_parameter(g, backward, 1, gamma));
  gradient_give(g, node, norm_input_slot(node, "beta"), diff_of_parameter(g, backward, 2, beta));
}

// The type of statistics that the backward graph computes again.
Type norm_type_of_statistics(const Value *src) {
  return src->type == TYPE_F64 ? TYPE_F64 : TYPE_F32;
}

// Whether the statistic is precise enough for gradients. With a mean rounded to 16 bits, x - mean has few correct
// digits if |mean| is many times the deviation.
bool norm_is_precise(const Value *statistic, const Value *src) {
  return statistic->type == norm_type_of_statistics(src);
}

// Sets the inputs mean and variance to outputs `first` and `first` + 1 of a copy of the forward node.
static void set_computed(Gradient *g, Node *backward, Node *again, uint32_t first, Type type, const Shape *shape) {
  norm_set_input(backward, "mean", gradient_output(g, again, first, type, shape));
  norm_set_input(backward, "variance", gradient_output(g, again, first + 1, type, shape));
}

Value *norm_mean(Gradient *g, const NormView *view, Value *v) {
  return gradient_reduced(g, OP_ReduceMean, v, view->reduced, true);
}

Value *norm_shifted_variance(Gradient *g, const Node *node, Value *variance) {
  if (!variance) return NULL;
  return gradient_binary(g, OP_Add, variance, gradient_number(g, variance->type, node_f32(node, "epsilon")));
}

uint32_t norm_statistics_slot(const Node *forward) {
  return forward->op->id == OP_BatchNormForwardTraining ? 3 : 1;
}

static void expand_statistics(Gradient *g, const Node *node, Value **results) {
  const uint32_t slot = norm_statistics_slot(node);
  NormView view;
  if (!norm_view(g, node, &view)) return;
  Value *x = gradient_in_shape(g, gradient_widened(g, gradient_saved(g, node->inputs[0])), &view.src);
  Value *mean = norm_mean(g, &view, x);
  Value *square = gradient_unary(g, OP_Square, gradient_binary(g, OP_Subtract, x, mean));
  Value *const both[] = {mean, norm_mean(g, &view, square)};
  for (uint32_t i = 0; i < 2; i++)
    if (node->outputs[slot + i]) results[slot + i] = gradient_in_shape(g, both[i], &node->outputs[slot + i]->shape);
}

static void make_of_statistics(Gradient *g, const Node *node) {
  gradient_expand(g, node, expand_statistics);
}

// A copy of the forward node with running statistics that have no effect.
static void compute_batch_statistics(Gradient *g, const Node *node, Node *backward) {
  const Value *src = node->inputs[0], *mean = node->outputs[3];
  const Type type = norm_type_of_statistics(src);
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
#define NO_RESULT REFUSED("gradients do not flow through running statistics")
GRADIENT_WITH(BatchNormForwardTraining, .make_of_statistics = make_of_statistics,
              .exceptions = {{"mean", RUNNING},
                             {"variance", RUNNING},
                             {"running_mean", NO_RESULT},
                             {"running_variance", NO_RESULT}}) {
  Node *backward = begin(g, node, diff, OP_BatchNormTrainingBackward);
  if (norm_is_precise(node->outputs[3], node->inputs[0])) {
    norm_set_input(backward, "mean", gradient_saved(g, node->outputs[3]));
    norm_set_input(backward, "variance", gradient_saved(g, node->outputs[4]));
  } else {
    compute_batch_statistics(g, node, backward);
  }
  give_parameters(g, node, backward);
}

// Gradients of given statistics, which are ordinary inputs: with r = 1 / sqrt(variance + epsilon) and s = gamma * r,
// diff_mean = -s * diff_beta and diff_variance = -s * r * diff_gamma / 2.
static void give_statistics(Gradient *g, const Node *node, const Node *backward) {
  const Value *variance = node->inputs[4];
  Value *sum = norm_shifted_variance(g, node, gradient_saved(g, variance));
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
  norm_set_input(backward, "mean", gradient_saved(g, node->inputs[3]));
  norm_set_input(backward, "variance", gradient_saved(g, node->inputs[4]));
  if (by_statistics || parameters_are_wanted(g, node)) give_parameters(g, node, backward);
  if (backward && by_statistics) give_statistics(g, node, backward);
}

// Sets the inputs mean and variance to the forward node's outputs, or to outputs of a copy of the forward node whose
// statistics are precise enough.
static void set_statistics(Gradient *g, const Node *node, Node *backward) {
  const bool is_guarded = g->guard_of_input[0].mask != NULL; // rows that do not count may be infinite
  if (node->outputs[1] && norm_is_precise(node->outputs[1], node->inputs[0]) && !is_guarded) {
    norm_set_input(backward, "mean", gradient_saved(g, node->outputs[1]));
    norm_set_input(backward, "variance", gradient_saved(g, node->outputs[2]));
    return;
  }
  const Value *src = node->inputs[0];
  Node *again = gradient_node(g, node->op->id, node);
  if (!again) return;
  node_attribute_slot(again, "keep_stats")->boolean = true;
  node_attribute_slot(again, "use_affine")->boolean = false;
  node_set_input(again, 0, gradient_guarded(g, node, 0));
  gradient_output(g, again, 0, src->type, &src->shape);
  Shape shape = {.rank = 0};
  const bool has_groups = node->op->norm_scope == SCOPE_GROUP;
  for (int i = 0; i < (has_groups ? 1 : layer_norm_begin_axis(node)); i++)
    shape.extent[shape.rank++] = src->shape.extent[i];
  if (has_groups) shape.extent[shape.rank++] = norm_ngroups(node);
  set_computed(g, backward, again, 1, norm_type_of_statistics(src), &shape);
}

static void make_of_rows(Gradient *g, const Node *node, Value *diff, OperatorId id) {
  Node *backward = begin(g, node, diff, id);
  if (!backward) return;
  set_statistics(g, node, backward);
  if (parameters_are_wanted(g, node)) give_parameters(g, node, backward);
}

#define OF_ROWS(name)                                                                                                  \
  GRADIENT_WITH(name, .make_of_statistics = make_of_statistics) {                                                      \
    make_of_rows(g, node, diff, OP_##name##Backward);                                                                  \
  }
OF_ROWS(LayerNorm)
OF_ROWS(GroupNorm)
OF_ROWS(InstanceNorm)

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
  norm_set_input(backward, "gamma", whole);
  gradient_give(g, node, 1, gradient_output(g, backward, 1, whole->type, &shape));
}
