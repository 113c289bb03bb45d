// Simplifies kernels after lowering.
#ifndef NGRAD_IR_KERNEL_SIMPLIFY_H
#define NGRAD_IR_KERNEL_SIMPLIFY_H

#include "ir/kernel/kernel.h"

// Removes expressions that no store needs, and accesses that no remaining expression or store uses. Out of memory: sets
// k->out_of_memory.
void kernel_drop_unneeded(Kernel *k);

// Removes the stores of results that nothing uses. Returns whether there were some.
bool kernel_drop_unused(Kernel *k);

// Removes axes of extent 1, sorts the others by the layout that most of the accessed memory has, and merges
// neighbouring axes that no expression or access tells apart.
void kernel_simplify_axes(Kernel *k);

#endif
