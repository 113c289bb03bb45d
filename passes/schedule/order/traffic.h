// Estimates the bytes that a kernel moves between memory and caches: the cost by which fusion decides which operators
// become one kernel. It follows from the axes, their extents and the order of sums, not from a target.
#ifndef NGRAD_PASSES_SCHEDULE_ORDER_TRAFFIC_H
#define NGRAD_PASSES_SCHEDULE_ORDER_TRAFFIC_H

#include "ir/kernel/schedule.h"

// Bytes that all loops read and write, with a cache of `cache` bytes. A tensor that several sweeps load counts once if
// the data of an outer iteration fits in the cache, else once for each sweep. With middle axes, sweeps can go to and
// fro, so that only the part that does not fit counts again. -1: out of memory.
int64_t schedule_traffic(const Schedule *s, int64_t cache);

// Bytes of the tensors and temporaries that a loop reads and writes, each once. False: out of memory.
bool loop_tensor_nbytes(const Schedule *s, const Loop *loop, Traffic *traffic);

// Whether some loop recomputes a factor of a sum of products for each product, instead of once into a copy: more than
// twice as often as the tensors have elements that the factor is computed from.
bool schedule_recomputes(const Schedule *s);

// Marks the expressions that a loop's sweep computes (is_seen, by ExprId) and the accesses that it loads (is_loaded, by
// AccessId; may be NULL), on the assumption that the expression `known` is available without computing (0: none).
void mark_sweep_loads(const Kernel *k, const Loop *loop, int sweep, ExprId known, bool *is_seen, bool *is_loaded);

#endif
