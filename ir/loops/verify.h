// The static verifier of loop trees, as kernel_verify for kernels: what holds for all values of open dims. It runs the
// tree once, with amounts for numbers that are not known (ir/loops/reach.h). That a tree
// computes its kernel is proved by running it (ir/loops/prove.h). Printers and executors accept every tree that the
// verifier accepts.
#ifndef NGRAD_IR_LOOPS_VERIFY_H
#define NGRAD_IR_LOOPS_VERIFY_H

#include "ir/loops/loops.h"

// False: `why` names the kernel, the loop and the node, and describes the defect for developers of ngrad: an unsound
// tree is a bug in the builder (passes/schedule) or in a pass over trees. Out of memory: false, with why->out_of_memory
// set. In a sound tree
// - each value, variable, pointer, flag, sum and local array is declared once, before its uses and in their scope, and
//   has the type and number of elements of its uses;
// - each load, store and copy is inside of its tensor or array; a prefetch may go beyond;
// - blocks that run at the same time store different bytes, and a block with streamed stores ends with a fence.
// The kernel must be sound (ir/kernel/verify.h). Takes time in proportion to the tree, times the calls of its step.
bool loops_verify(const LoopTree *t, Text *why);

#endif
