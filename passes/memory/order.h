// The order of kernels that needs least memory.
#ifndef NGRAD_PASSES_MEMORY_ORDER_H
#define NGRAD_PASSES_MEMORY_ORDER_H

#include "ir/kernel/program.h"

// Runs kernels that take no more of the workspace than they free as early as they can run, such as the update of a
// parameter by its gradient, if the bytes that live at once become fewer by that, or, with is_tight, no more. Else the
// order stays as it is: a value is read soon after it is made. The kernels of a visit stay together. No bit of a result
// depends on the order. Comes before the memory plan. False: out of memory.
bool order_kernels(Program *p, bool is_tight);
#endif
