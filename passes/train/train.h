// Training: a forward graph becomes a step graph, and the graphs that evaluate and use what steps have learnt.
//
// The parameters of a forward graph are its floating-point states without an update of its own. A call of the step
// graph computes the losses and their gradients and updates the parameters. It has the forward graph's inputs, states
// and updates, and its outputs of rank 0. The optimizer adds states: NAME.momentum, NAME.m and NAME.v, or NAME.sum for
// a parameter NAME, and step, an integer that counts calls from 0.
//
// With several leaves, the step is that of a graph with leaves (ir/graph/leaves.h), and gradients are means over them.
//
// All graphs made here share what the forward graph read from files, and hold a reference to it for that. They have
// dims of their own and are verified.
#ifndef NGRAD_PASSES_TRAIN_TRAIN_H
#define NGRAD_PASSES_TRAIN_TRAIN_H

#include "passes/gradient/gradient.h"

// The learning rate of step t, which counts from 0: the base rate times min(1, (t + 1) / warmup) and, with u = max(0, t
// - warmup), times gamma^floor(u / step_size) or (1 + cos(pi * min(1, u / (steps - warmup)))) / 2.
typedef enum ScheduleKind { SCHEDULE_CONSTANT, SCHEDULE_STEP, SCHEDULE_COSINE } ScheduleKind;

typedef struct RateSchedule {
  ScheduleKind kind;
  int64_t warmup;    // steps in which the rate grows linearly; 0: none
  int64_t steps;     // SCHEDULE_COSINE: the step from which on the rate is 0; more than warmup
  int64_t step_size; // SCHEDULE_STEP: at least 1
  double gamma;      // SCHEDULE_STEP
} RateSchedule;

typedef struct TrainOptions {
  Value *const *losses; // floating-point outputs of rank 0, whose sum is minimised
  size_t nlosses;
  const bool *is_frozen; // by state; NULL: none is. A frozen parameter gets neither gradient nor optimizer states
  OperatorId optimizer;
  AttributeValue attributes[MAX_ATTRIBUTES]; // the optimizer's; those not set have its defaults
  double learning_rate;
  RateSchedule schedule;
  int64_t nleaves;           // parts that the batch comes in, each alike; 0: one
  int64_t syncs_batch_norms; // 1: batch norms take the statistics of all leaves; 0: of one
  double clip_norm; // gradients are scaled so that the L2 norm of all together is at most this; 0: they are not
} TrainOptions;

// A copy of the graph that has a loss, unless that is NULL, between its first output and a new input: "cross-entropy"
// of the classes along the last axis with s32 labels, which gives the output accuracy, too; "mse" or "bce" (the binary
// cross entropy of the sigmoid) with a target. If the graph has no parameters, its floating-point constants that come
// from files or are initializers of a model become states, but for statistics that an operator is given; a batch norm
// of the batch's own statistics updates its running ones. NULL after reporting why.
Graph *graph_trainable(const Graph *forward, const char *loss, Diagnostics *d);
bool train_adds_loss(const char *name); // whether it is the name of such a loss

// The forward graph for a batch that comes in several leaves. Inputs that are data get an axis of so many leaves before
// their others. Outputs of rank 0 are means over the leaves (sums, of integers), the others are left out. So are
// updates of floating-point states, as those of running statistics. A counter, an integer to which the update adds a
// constant, goes on by that for each leaf. If it syncs batch norms, these take the statistics of the whole batch. NULL
// after reporting why there is none.
Graph *graph_with_leaves(const Graph *forward, int64_t count, bool syncs_batch_norms, Diagnostics *d);

// The gradient of a graph with leaves as one that computes the forward graph's values itself, since those of a leaf are
// no inputs that a caller has. Makes `ends` its own. Refers to forward and its dims. NULL after reporting why.
Graph *gradient_with_forward(const Graph *forward, const Graph *backward, GradientEnds *ends, Diagnostics *d);

bool train_has_parameters(const Graph *forward);

// Whether the state is a parameter.
bool state_is_parameter(const Graph *forward, const State *state);

// Marks, by index, the values that depend on parameters by way of floating-point values alone.
void train_find_dependants(const Graph *forward, const bool *is_frozen, bool *depends);

// Marks the values that may differ from call to call, whatever the parameters do: those that depend on data, or on a
// state that the graph updates itself.
void train_find_changing(const Graph *forward, bool *changes);

// Marks the values that the losses depend on in any way.
void train_find_needed(const Graph *forward, Value *const *losses, size_t nlosses, bool *needed);

// The step graph of a valid forward graph whose extents all have numbers or names. NULL after reporting why there is
// none.
Graph *graph_train_step(const Graph *forward, const TrainOptions *options, Diagnostics *d);

// The forward graph as it is used after training: batch norms take the running statistics in the forward graph's
// states, dropout does nothing, no state is updated. All states stay, used or not, so that their places in memory are
// the same.
typedef enum InferenceForm {
  FORM_TEST, // the outputs are those of rank 0: losses and metrics
  FORM_INFER // the outputs are those that need no input but the ones that all outputs need, without the losses
} InferenceForm;

// NULL after telling why there is none, as a warning: a graph can be trained without.
Graph *graph_inference(const Graph *forward, InferenceForm form, Value *const *losses, size_t nlosses, Diagnostics *d);

#endif
