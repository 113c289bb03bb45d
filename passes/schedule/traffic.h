// What a scheduled kernel moves between memory and caches: the cost that decides what becomes one kernel.
#ifndef NGRAD_PASSES_SCHEDULE_TRAFFIC_H
#define NGRAD_PASSES_SCHEDULE_TRAFFIC_H

#include "ir/kernel/kernel.h"
#include "ir/loops/target.h"

// Bytes that all loops read and write. A tensor that several sweeps of an outer iteration look at counts once where
// what the iteration reads fits in half of a core's second level, else once for each sweep; of one that goes backwards,
// only for what does not fit.
// -1: out of memory.
int64_t kernel_traffic(Kernel *k, const Target *target);

// Bytes of the tensors and temporaries that a loop reads and writes, each once. False: out of memory.
bool loop_tensor_nbytes(Kernel *k, const Loop *loop, Traffic *traffic);

// What a sweep of a scheduled kernel's loop computes (is_seen, by ExprId) and loads (is_loaded, by AccessId), if
// `known` (0: nothing) were there already.
void mark_sweep_loads(const Kernel *k, const Loop *loop, int sweep, ExprId known, bool *is_seen, bool *is_loaded);

#endif
