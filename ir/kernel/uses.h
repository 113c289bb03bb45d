// What computing an expression in a sweep takes: the one answer for scheduling, verification and the order of kernels.
#ifndef NGRAD_IR_KERNEL_USES_H
#define NGRAD_IR_KERNEL_USES_H

#include "ir/kernel/kernel.h"

typedef struct Finds { // what is there already
  const Kernel *k;
  const Loop *loop;
  int sums;    // those that sweeps before this one finish
  int vectors; // those that sweeps before this one have left in a step's own memory
  ExprId expr; // one more; 0: none
} Finds;

bool is_found(const Finds *f, ExprId id);

// Marks (by ExprId) the expression and what computing it takes; not what computing what is found would.
void mark_needed(const Finds *f, ExprId id, bool *is_needed);

// Marks what a root takes in its sweep.
void loop_mark_root(const Kernel *k, const Loop *loop, const Root *root, bool *is_needed);

bool loop_finishes(const Loop *loop, ExprId sum, int before); // whether an earlier sweep has the sum over a row

#endif
