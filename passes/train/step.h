// The parts of a step graph that stand behind its gradients (passes/train/step.c).
#ifndef NGRAD_PASSES_TRAIN_STEP_H
#define NGRAD_PASSES_TRAIN_STEP_H

#include "passes/train/build.h"
#include "passes/train/train.h"

typedef struct Step {
  Builder b;
  const Graph *forward;
  const TrainOptions *options;
  size_t *states;     // [nparameters] of each parameter, the index of its state
  Value **parameters; // [nparameters]
  Value **gradients;  // [nparameters]
  Value **next;       // what a call leaves in each state of the step graph; NULL: what was there
  size_t nparameters;
  Type rate_type; // f64 if a parameter is, else f32
  Value *count;   // of calls, with this one; an integer
} Step;

enum { MOST_SLOTS = 2 }; // states that an optimizer has for each parameter

#define STEP_TYPE TYPE_S64

// The learning rate of this call: a number, or what the schedule makes of it and s->count.
Value *step_add_rate(Step *s);
// Scales s->gradients so that the L2 norm of all together is at most options->clip_norm: as PyTorch's clip_grad_norm_,
// all are multiplied by min(1, clip_norm / (norm + 1e-6)).
void step_clip_gradients(Step *s);
// A node of the optimizer for each parameter, and its states.
void step_update_parameters(Step *s, Value *rate);
// Adds a state of zeros in the shape and layout of `like` (NULL: of rank 0); it is the graph's last input. Returns its
// index.
size_t step_add_state(Step *s, const char *name, Type type, const Value *like);

#endif
