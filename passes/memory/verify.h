// The verifier of memory plans.
#ifndef NGRAD_PASSES_MEMORY_VERIFY_H
#define NGRAD_PASSES_MEMORY_VERIFY_H

#include "ir/kernel/program.h"

// Simulates the loads and stores of a planned program without computing values, and checks:
//   - every load finds its own value or temporary in each byte, not another one that was stored there later;
//   - every element of a result is stored exactly once;
//   - nothing is read from a state after its update was stored in its place;
//   - no block of a loop reads or writes bytes that another block of the same loop writes.
// False, with the reason in `why`, or with why->out_of_memory. *nsteps bounds the number of simulated loads and stores,
// and is set to what is left of it. A program with more of them is checked up to there; one with more bytes of memory
// than steps, or with open dims, is not checked.
bool memory_verify(const Program *p, int64_t *nsteps, Text *why);

#endif
