// The memory plan: places values between kernels, and each kernel's temporaries, in the workspace.
#ifndef NGRAD_PASSES_MEMORY_PLAN_H
#define NGRAD_PASSES_MEMORY_PLAN_H

#include "ir/kernel/program.h"

// Requires p->is_staged (passes/memory/in_place.h). Sets p's value_offset, is_in_workspace, arenas and workspace sizes,
// and makes the offsets of kernels' temporaries relative to the workspace. Values with disjoint lifetimes may overlap.
// A result may overwrite an operand that no later kernel reads, if the kernel reads each element before it stores to
// that place (ir/kernel/overwrite.h). May be called again after kernels were added or moved. False: out of memory.
bool plan_memory(Program *p);

#endif
