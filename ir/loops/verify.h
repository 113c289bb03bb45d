// The verifier of loops' trees: what those who print or execute them may rely on. kernel_verify's counterpart.
#ifndef NGRAD_IR_LOOPS_VERIFY_H
#define NGRAD_IR_LOOPS_VERIFY_H

#include "ir/loops/loops.h"

// Whether a tree does what its kernel's loop says, for all values of open dims. False after saying in `why` which node
// of which kernel's loop is wrong, and how, for people who work on ngrad: an unsound tree is a mistake in a recipe or a
// pass over trees. Out of memory: false, with why->out_of_memory. In a sound tree
// - each value, variable, pointer, flag and room is there where it is used, and is made once;
// - each element of a result is stored once, as the value at its index: the loops around a store go over all indices of
//   the axes that it varies over, and over no others. Such loops are over an axis, over runs of it, or over whole
//   groups of vectors, whole vectors and the rest; other shapes are refused;
// - each load, store and copy is at its element's address and inside its tensor; a prefetch may leave it;
// - each operand enters its sum once, in the order that the loop says: by which accumulator, in which run, fused or
//   not; partial sums of blocks are cleared before, left by each block and combined from all;
// - a store past the caches has a flag that tells whether its rows are aligned, and a fence behind it.
// The kernel itself must be sound (ir/kernel/verify.h). Takes time in proportion to the tree.
bool loops_verify(const LoopTree *t, Text *why);

#endif
