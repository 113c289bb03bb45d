// Estimates the bytes that a scheduled kernel moves between memory and caches: the cost by which fusion decides which
// operators become one kernel.
#ifndef NGRAD_PASSES_SCHEDULE_TRAFFIC_H
#define NGRAD_PASSES_SCHEDULE_TRAFFIC_H

#include "ir/kernel/schedule.h"
#include "ir/loops/target.h"

// Bytes that all loops read and write. A tensor that several sweeps load counts once if the data of an outer iteration
// fits in half of the L2 cache, else once for each sweep. If the last sweep goes backwards, only the part that does not
// fit counts again. -1: out of memory.
int64_t schedule_traffic(const Schedule *s, const Target *target);

// Bytes of the tensors and temporaries that a loop reads and writes, each once. False: out of memory.
bool loop_tensor_nbytes(const Schedule *s, const Loop *loop, Traffic *traffic);

// Whether some loop recomputes a factor of a sum of products for each product, instead of once into a copy: more than
// twice as often as the tensors have elements that the factor is computed from.
bool schedule_recomputes(const Schedule *s);

// Marks the expressions that a loop's sweep computes (is_seen, by ExprId) and the accesses that it loads (is_loaded, by
// AccessId), on the assumption that the expression `known` is available without computing (0: none).
void mark_sweep_loads(const Kernel *k, const Loop *loop, int sweep, ExprId known, bool *is_seen, bool *is_loaded);

#endif
