// Which expressions a sweep computes: the one relation for scheduling, verification and liveness between loops.
#ifndef NGRAD_IR_KERNEL_USES_H
#define NGRAD_IR_KERNEL_USES_H

#include "ir/kernel/schedule.h"

typedef struct Finds { // the values that a sweep finds, and does not compute
  const Kernel *k;
  const Loop *loop;
  int sums;    // reductions that sweeps before this one have finished
  int vectors; // vectors that sweeps before this one have spilled
  ExprId expr; // one more expression; 0: none
} Finds;

bool is_found(const Finds *f, ExprId id);

// Marks (by ExprId) the expression and, transitively, the operands that have to be computed for it. Operands of what is
// found are not marked.
void mark_needed(const Finds *f, ExprId id, bool *is_needed);

// Marks what a root needs in its sweep.
void loop_mark_root(const Kernel *k, const Loop *loop, const Root *root, bool *is_needed);

bool loop_finishes(const Loop *loop, ExprId sum, int before); // a sweep before this one finishes the reduction

#endif
