// Proves by running that loop trees compute their kernels: in hashes (ir/kernel/domain.h), each element that the trees
// store must be the element that the kernel's reference computes (ir/kernel/reference.h), bit by bit and in the same
// order of additions. With open dims, a proof holds for the values that it ran with.
#ifndef NGRAD_IR_LOOPS_PROVE_H
#define NGRAD_IR_LOOPS_PROVE_H

#include "ir/kernel/program.h"

// The program's trees are built. Runs each unit of kernels (ir/kernel/program.h) at the hints or literal extents, and
// with open dims at other values: few indices, a lane less and more than a vector has, where open segments take their
// last choice, more than two blocks. Outputs that a call may leave out are left out, too, and tensors begin within
// cache lines. *nsteps bounds the nodes and operations on numbers; units and values that need more are left out, and
// what was used is subtracted. False: `why` says which tree is wrong, at which values, and how; or why->out_of_memory.
bool program_prove(const Program *p, int64_t *nsteps, Text *why);

bool unit_prove(const Program *p, size_t kernel, int64_t *nsteps, Text *why); // of the unit that the kernel begins

#endif
