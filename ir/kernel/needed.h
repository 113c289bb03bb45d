// Which expressions a sweep computes. Scheduling, verification and liveness analysis between loops share this
// definition.
#ifndef NGRAD_IR_KERNEL_NEEDED_H
#define NGRAD_IR_KERNEL_NEEDED_H

#include "ir/kernel/schedule.h"

typedef struct Available { // the values that a sweep loads or holds already, and so does not compute
  const Kernel *k;
  const Loop *loop;
  int sums;    // number of the sweep: reductions of sweeps before it are finished
  int vectors; // number of the sweep: vectors of sweeps before it are spilled
  ExprId expr; // one more expression that is available; 0: none
} Available;

bool is_available(const Available *f, ExprId id);

// Marks (by ExprId) the expression and, transitively, its operands. The walk stops at available expressions: their
// operands are not marked.
void mark_needed(const Available *f, ExprId id, bool *is_needed);

// Marks the expressions that a root needs in its sweep.
void loop_mark_root(const Kernel *k, const Loop *loop, const Root *root, bool *is_needed);

// The sweep that computes the vector and spills it; loop->nsweeps: none does.
int loop_spilling_sweep(const Loop *loop, ExprId vector);
bool loop_finishes(const Loop *loop, ExprId sum, int before); // a sweep before this one finishes the reduction

#endif
