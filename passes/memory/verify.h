// The verifier of memory plans.
#ifndef NGRAD_PASSES_MEMORY_VERIFY_H
#define NGRAD_PASSES_MEMORY_VERIFY_H

#include "ir/kernel/program.h"

// Runs the loop trees of a planned program, which are built, in their order, without computing values, and checks:
//   - every load finds its value or temporary in each byte, not another value that was stored there later;
//   - every element of a result is stored exactly once;
//   - nothing is read from a state after its update was stored in its place;
//   - no block of a loop reads or writes bytes that another block of the same loop writes.
// False, with the reason in `why`, or with why->out_of_memory. *nsteps bounds the steps of the executor; those taken
// are subtracted. What is beyond the bound is not checked, nor are programs with more bytes of memory than steps, or
// with open dims.
bool memory_verify(const Program *p, int64_t *nsteps, Text *why);

#endif
