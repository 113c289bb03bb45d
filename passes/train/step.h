// Functions that add the parts of a step graph after its gradients (called by passes/train/step.c).
#ifndef NGRAD_PASSES_TRAIN_STEP_H
#define NGRAD_PASSES_TRAIN_STEP_H

#include "ir/graph/copies.h"
#include "passes/train/train.h"

typedef struct Step {
  Builder b;
  const Graph *forward;
  const TrainOptions *options;
  size_t *states;     // [nparameters] the index of each parameter's state
  Value **parameters; // [nparameters]
  Value **gradients;  // [nparameters]
  Value **next;       // the update of each state of the step graph; NULL: the state does not change
  size_t nparameters;
  Type rate_type; // f64 if some parameter is f64, else f32
  Value *count;   // the number of calls, including this call; an integer
  Value *updates; // likewise, of the calls that updated parameters
  Value *scale;   // of the losses, as their gradients have it; NULL: 1
} Step;

enum {
  MOST_SLOTS = 2,     // the most states that an optimizer adds for each parameter
  MOST_OWN_STATES = 4 // the most other states that a step adds
};

#define STEP_TYPE TYPE_S64

// Adds the state s->scale.
void step_scale_losses(Step *s);
// Divides s->gradients by the scale. Where one is not finite then, all floating-point states stay as they are, and the
// scale is halved; after many calls without that it is doubled. Called when s->next has all updates.
void step_unscale_gradients(Step *s);
void step_skip_overflow(Step *s);
// Adds the learning rate of this call: a constant, or a function of s->count that the schedule defines.
Value *step_add_rate(Step *s);
// Scales s->gradients so that the L2 norm of all gradients together is at most options->clip_norm. As in PyTorch's
// clip_grad_norm_, the factor is min(1, clip_norm / (norm + 1e-6)).
void step_clip_gradients(Step *s);
// Adds an optimizer's node, and its states, for each parameter.
void step_update_parameters(Step *s, Value *rate);

// A vector of values of rank 0; changes the list.
Value *step_vector(Builder *b, Value **items, size_t count, const char *name);
// The product with a factor of rank 0, in the type that the gradient's kernels compute in.
Value *step_scaled(Builder *b, Value *gradient, Value *factor, const char *name, Type type);

#endif
