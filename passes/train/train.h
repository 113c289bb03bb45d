// Training: makes, from a forward graph, the step graph, and the graphs that test and use the trained parameters.
//
// The parameters of a forward graph are its floating-point states without an update. A call of the step graph computes
// the losses and their gradients and updates the parameters. The step graph has the forward graph's inputs, states and
// updates, and its outputs of rank 0. The optimizer adds states: for a parameter NAME, NAME.momentum, NAME.m and
// NAME.v, or NAME.sum; and step, an integer that counts calls from 0.
//
// With several leaves, the step graph is made from a graph with leaves (ir/graph/leaves.h), and gradients are means
// over leaves.
//
// All graphs made here use the data that the forward graph read from files, and hold a reference to the forward graph.
// They have their own dims and are verified.
#ifndef NGRAD_PASSES_TRAIN_TRAIN_H
#define NGRAD_PASSES_TRAIN_TRAIN_H

#include "passes/train/mixed_precision.h"

// The learning rate of step t = 0, 1, ...: the base rate times min(1, (t + 1) / warmup), and, with u = max(0, t -
// warmup), times gamma^floor(u / step_size) for SCHEDULE_STEP or (1 + cos(pi * min(1, u / (steps - warmup)))) / 2 for
// SCHEDULE_COSINE.
typedef enum ScheduleKind { SCHEDULE_CONSTANT, SCHEDULE_STEP, SCHEDULE_COSINE } ScheduleKind;

typedef struct RateSchedule {
  ScheduleKind kind;
  int64_t warmup;    // steps in which the rate grows linearly; 0: none
  int64_t steps;     // SCHEDULE_COSINE: the first step whose rate is 0; more than warmup
  int64_t step_size; // SCHEDULE_STEP: at least 1
  double gamma;      // SCHEDULE_STEP
} RateSchedule;

typedef struct TrainOptions {
  Value *const *losses; // floating-point outputs of rank 0; their sum is minimised
  size_t nlosses;
  const bool
      *is_frozen; // by state; NULL: none is frozen. A frozen parameter gets neither a gradient nor optimizer states
  OperatorId optimizer;
  AttributeValue attributes[MAX_ATTRIBUTES]; // the optimizer's; attributes that are not set get their defaults
  double learning_rate;
  RateSchedule schedule;
  const bool *has_no_decay;  // by state; NULL: weight decay applies to all parameters
  int64_t nleaves;           // the number of equal parts of the batch; 0: one
  int64_t syncs_batch_norms; // 1: batch norms use the statistics of all leaves together; 0: of each leaf alone
  double clip_norm; // the largest L2 norm of all gradients together, which are scaled down to it; 0: no scaling
  MixedPrecision mixed;
} TrainOptions;

// A copy of the graph that can be trained. Losses of an output and a new input are added: "cross-entropy" with s32
// labels (classes are along the last axis; adds the output accuracy, too), or "mse" or "bce" (binary cross entropy of
// the sigmoid) with a target. The output is the first one that depends on weights, or the one behind a colon: "mse:y".
// With `tells`, a warning lists other such outputs. Names of inputs and outputs that several losses add end in the
// output's. If the graph has no parameters, its floating-point constants
// from files or a model's weights become states, except statistics that a node takes as operands, and those that no
// gradient of the losses reaches, such as masks; with `tells`, one warning lists the latter. is_loss marks the losses
// among the outputs; NULL: all of rank 0 may be losses. The running statistics of a batch norm that computes the
// batch's statistics become states with updates. NULL after reporting an error.
Graph *graph_trainable(const Graph *forward, const char *const *added, size_t nadded, const bool *is_loss, bool tells,
                       Diagnostics *d);

// A copy of the graph in which the named floating-point constants are inputs, behind its own. Names of inputs are
// passed over. NULL after reporting an error.
Graph *graph_with_inputs(const Graph *forward, const char *const *names, size_t count, Diagnostics *d);

// Whether graph_trainable has a loss of this name. *output: what is behind the colon; NULL: nothing.
bool train_adds_loss(const char *name, const char **output);
bool train_is_added_with_accuracy(const char *name); // whether it adds two outputs

// The forward graph for a batch that is divided into leaves. Data inputs get a first axis of `count` leaves. Outputs of
// rank 0 become means over the leaves (integers: sums); other outputs are dropped. Updates of floating-point states,
// such as running statistics, become means, too. A counter (an integer to which the update adds a constant) is advanced
// once for each leaf. With syncs_batch_norms, batch norms use the statistics of the whole batch. NULL after reporting
// an error.
Graph *graph_with_leaves(const Graph *forward, int64_t count, bool syncs_batch_norms, Diagnostics *d);

// The gradient as a graph that also computes the forward graph's values: those of a leaf cannot be inputs, as no caller
// has them. With keeps_inputs, all of forward's inputs are inputs; otherwise those that are used. Replaces `ends` by
// the ends of the new graph, which refers to forward and its dims. NULL after reporting an error.
Graph *gradient_with_forward(const Graph *forward, const Graph *backward, GradientEnds *ends, bool keeps_inputs,
                             Diagnostics *d);

// Derivatives other than the gradient; `ngrad grad --help` says what the graphs compute.
typedef enum DerivativeForm {
  DERIVATIVE_GRADIENT, // not of graph_derivative
  DERIVATIVE_TANGENTS,
  DERIVATIVE_HVP,
  DERIVATIVE_JACOBIAN,
  DERIVATIVE_HESSIAN,
  DERIVATIVE_WHOLE // the gradient, computing the values of forward that it needs
} DerivativeForm;

// The graph of these derivatives, which refers to forward and its dims. NULL after reporting an error.
Graph *graph_derivative(const Graph *forward, const GradientRequest *request, DerivativeForm form, Diagnostics *d);

bool train_has_parameters(const Graph *forward);

// Whether the state is a parameter: of floating point, without an update, and not read as a statistic or setting only.
bool state_is_parameter(const Graph *forward, const State *state);

// Whether a value is a floating-point constant from a file or a weight of a model.
bool value_is_weight(const Value *v);
// Whether an element of the constant is 2^24 or more, infinite or NaN, as in a mask of -1e9 or minus infinity: steps of
// training would not change it, but its neighbours.
bool value_has_fixed_number(const Value *v);
// The index of the first such element, if there are other numbers than such and 0, so that the constant may be no mask
// but a weight with a wrong number; otherwise -1.
int64_t value_odd_number(const Value *v);
// Whether nodes take the value only as a statistic, such as the mean of a BatchNormInference or the weights of classes,
// or as a setting, such as Dropout's probability.
bool value_is_statistic(const Value *v);
// The only use of v, as the running mean or variance of a batch norm whose same output is the next one; NULL: other
// uses.
const Use *value_running_use(const Value *v);

// Marks, by index, the values that depend on parameters through floating-point values only.
void train_find_dependants(const Graph *forward, const bool *is_frozen, bool *depends);

// Marks the values that may change between calls even if the parameters do not: values that depend on data, or on a
// state that the forward graph updates.
void train_find_changing(const Graph *forward, bool *changes);

// Marks the values that the losses depend on.
void train_find_needed(const Graph *forward, Value *const *losses, size_t nlosses, bool *needed);

// Marks the values that a gradient of the losses reaches: those from which floating-point values that are no statistics
// lead to a loss.
void train_find_reached(const Graph *forward, Value *const *losses, size_t nlosses, bool *reached);

enum { MOST_TOLD = 16 }; // values that a message lists

// Appends the names of values that are not reached, each with the reason: "t (only Less reads it), u (loss does not
// depend on it)", at most MOST_TOLD of them. False: out of memory.
bool train_list_unreached(const Graph *forward, Value *const *values, size_t nvalues, Value *const *losses,
                          size_t nlosses, Text *out);

// The step graph of a valid forward graph, whose extents are all numbers or names. NULL after reporting an error.
Graph *graph_train_step(const Graph *forward, const TrainOptions *options, Diagnostics *d);

// The forward graph as it is used after training: batch norms use the running statistics in the forward graph's states,
// dropout does nothing, no state is updated. All states stay, even unused states, so that the layout of the caller's
// states is the same.
typedef enum InferenceForm {
  FORM_TEST, // the outputs of rank 0: losses and metrics
  FORM_INFER // the outputs, except losses, that need only the inputs that all outputs need: logits, but no output that
             // needs labels
} InferenceForm;

// NULL after a warning that says why: training does not need this graph.
Graph *graph_inference(const Graph *forward, InferenceForm form, Value *const *losses, size_t nlosses, Diagnostics *d);

typedef struct NarrowWeight { // a state that became narrow
  const char *name;
  size_t nbytes_before, nbytes;     // with the scales
  double max_error, rms_error, rms; // of an element; root mean squares of errors and of the numbers before
} NarrowWeight;

// Makes weights narrow: changes states of f32 with two or more axes, without updates and with numbers from a file, to
// s8 or bf16, and adds nodes that turn them into f32 again. `weights` has room for each state; *count is how many
// changed. False after reporting an error, such as a number that s8 cannot hold.
bool graph_narrow_weights(Graph *g, Type type, NarrowWeight *weights, size_t *count, Diagnostics *d);

#endif
