// Reorders kernels to lower the peak of the workspace.
#ifndef NGRAD_PASSES_MEMORY_ORDER_KERNELS_H
#define NGRAD_PASSES_MEMORY_ORDER_KERNELS_H

#include "ir/kernel/program.h"

// Runs kernels that free at least as many bytes as they take as early as possible; example: the update of a parameter
// by its gradient. Keeps the old order, in which a value is read soon after it is stored, unless the peak becomes lower
// (with is_tight: no higher). The kernels of a slice group stay together. The order does not affect results. Comes
// before the memory plan. False: out of memory.
bool order_kernels(Program *p, bool is_tight);
#endif
