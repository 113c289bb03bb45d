// The verifier of memory plans.
#ifndef NGRAD_PASSES_MEMORY_VERIFY_H
#define NGRAD_PASSES_MEMORY_VERIFY_H

#include "ir/kernel/kernel.h"

// Walks a planned program without computing anything: every byte of memory remembers which value or temporary was
// stored there last, every load wants its own tensor there, every element of a result is stored once, and no block of a
// loop reads or writes what another block of it writes. False after saying in `why` what is wrong; out of memory:
// false, with why->out_of_memory. *nsteps is how many loads and stores may be walked, and then how many are left; a
// program that has more, or more memory than steps, or open extents, is left alone.
bool memory_verify(const Program *p, int64_t *nsteps, Text *why);

#endif
