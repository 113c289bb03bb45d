// Verifies loop trees, as kernel_verify does kernels: what loops_verify accepts can be printed and executed.
#ifndef NGRAD_IR_LOOPS_VERIFY_H
#define NGRAD_IR_LOOPS_VERIFY_H

#include "ir/loops/loops.h"

// Whether a tree computes what its kernel's loop says, for all values of open dims. False: `why` names the kernel, the
// loop and the node, and says what is wrong with it. This is a message for people who work on ngrad, as an unsound tree
// is a mistake in a recipe or in a pass over trees. Out of memory: false, with why->out_of_memory. In a sound tree
// - each value, variable, pointer, flag and local array is declared once, before its uses and in their scope;
// - each element of a result is stored once, with the value at its index: the loops around a store cover all indices on
//   the axes that the value varies over, and repeat it over no other axis. An axis is covered by a loop over it, by
//   runs of it, or by groups of vectors, then vectors, then the tail; other forms are refused;
// - each load, store and copy has its element's address, inside of its tensor; a prefetch may go beyond;
// - each operand enters its sum once, in the accumulator and run that the loop's order says, fused or not; partial sums
//   are initialised before a block, stored by each block and combined over all blocks;
// - a streamed store has a flag that says whether its rows are aligned, and the block ends with a fence.
// The kernel must be sound (ir/kernel/verify.h). Takes time in proportion to the tree.
bool loops_verify(const LoopTree *t, Text *why);

#endif
