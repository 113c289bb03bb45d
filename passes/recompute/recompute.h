// Recomputation: less memory for more operations.
#ifndef NGRAD_PASSES_RECOMPUTE_RECOMPUTE_H
#define NGRAD_PASSES_RECOMPUTE_RECOMPUTE_H

#include "ir/kernel/program.h"
#include "passes/pass.h"

// Makes the workspace of a planned program at most c->memory_nbytes: where most bytes live, values that are not read
// then are computed again before their next read, elementwise ones first, then sums, then products. Warns of the price,
// beside a workspace of `before` bytes. All results keep their bits. False: an error, which has been reported: the
// workspace cannot be made so small.
bool fit_memory(Program *p, size_t before, PassContext *c);

#endif
