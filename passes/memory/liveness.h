// Data flow between the loops of a scheduled program.
#ifndef NGRAD_PASSES_MEMORY_LIVENESS_H
#define NGRAD_PASSES_MEMORY_LIVENESS_H

#include "ir/kernel/program.h"

// Sets p->liveness. Requires p->is_staged (passes/memory/in_place.h) and the final order of kernels. False: out of
// memory.
bool find_liveness(Program *p);

#endif
