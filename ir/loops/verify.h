// The verifier of loop trees, as kernel_verify for kernels. Printers and executors accept every tree that it accepts.
#ifndef NGRAD_IR_LOOPS_VERIFY_H
#define NGRAD_IR_LOOPS_VERIFY_H

#include "ir/loops/loops.h"

// Whether a tree computes the roots of its loop, for all values of open dims. False: `why` names the kernel, the loop
// and the node, and describes the defect for developers of ngrad: an unsound tree is a bug in the builder
// (passes/schedule) or in a pass over trees. Out of memory: false, with why->out_of_memory set. In a sound tree
// - each value, variable, pointer, flag and local array is declared once, before its uses and in their scope;
// - each element of a result is stored once, with the value at its index: the loops around a store cover all indices on
//   the axes that the value varies over, and go over no other axis. An axis is covered by a loop over it, by runs, or
//   by groups of vectors, then vectors, then the tail; other forms are refused;
// - each load, store and copy has its element's address, and stays inside its tensor; a prefetch may go beyond;
// - each operand is added to its sum once, in the accumulator and run that the loop's order prescribes, fused or not;
//   partial sums are initialised before a block, stored by each block and combined over all blocks;
// - a streamed store has a flag that says whether its rows are aligned, and the block ends with a fence.
// The kernel must be sound (ir/kernel/verify.h). Takes time in proportion to the tree.
bool loops_verify(const LoopTree *t, Text *why);

#endif
