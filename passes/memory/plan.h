// The memory plan: the places in the workspace of values between kernels and of each kernel's temporaries.
#ifndef NGRAD_PASSES_MEMORY_PLAN_H
#define NGRAD_PASSES_MEMORY_PLAN_H

#include "ir/kernel/program.h"

// Requires p->is_staged (passes/memory/in_place.h). Sets p's value_offset, is_in_workspace, rooms and workspace sizes,
// and adds their places to the offsets of kernels' temporaries. Values with disjoint lifetimes may share memory. A
// kernel may store a result in place of an operand that it is the last to read, if it reads each element before it
// stores to its place (ir/kernel/overwrite.h). May be called
// again when kernels have been added or moved. False: out of memory.
bool plan_memory(Program *p);

#endif
