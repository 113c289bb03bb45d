// Which loops of a program may run at the same time.
#ifndef NGRAD_PASSES_MEMORY_LOOP_NEEDS_H
#define NGRAD_PASSES_MEMORY_LOOP_NEEDS_H

#include "ir/kernel/program.h"

// Sets p->liveness->needs. Requires the rest of p->liveness, and the final places in the workspace. False: out of
// memory.
bool find_loop_needs(Program *p);

#endif
