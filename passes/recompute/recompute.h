// Recomputation: lowers the peak of the workspace at the cost of more operations.
#ifndef NGRAD_PASSES_RECOMPUTE_RECOMPUTE_H
#define NGRAD_PASSES_RECOMPUTE_RECOMPUTE_H

#include "ir/kernel/program.h"
#include "passes/pass.h"

// Makes the workspace of a planned program at most c->memory_nbytes. Values that are live, but not accessed, at the
// peak are computed again before their next read: elementwise values first, then sums, then products. Warns of the
// added operations; `before` is the workspace's size before. All results keep their bits. False after reporting an
// error: the workspace cannot be made so small.
bool fit_memory(Program *p, size_t before, PassContext *c);

#endif
