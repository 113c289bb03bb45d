// Where in the workspace each value lives that one kernel hands to another, and each kernel's temporaries.
#ifndef NGRAD_PASSES_MEMORY_PLAN_H
#define NGRAD_PASSES_MEMORY_PLAN_H

#include "ir/kernel/kernel.h"

// Sets p's value_offset, is_in_workspace and workspace sizes, and moves its kernels' temporaries to their places. What
// is no longer needed makes room; a kernel writes over what it is the last to read, where it reads each element before
// it writes that place. False: out of memory.
bool plan_memory(Program *p);

#endif
