// Updates in place: decides which updates of states a program may store in the states' own memory.
#ifndef NGRAD_PASSES_MEMORY_IN_PLACE_H
#define NGRAD_PASSES_MEMORY_IN_PLACE_H

#include "ir/kernel/program.h"

// Sets p->is_staged, so that a caller may pass the same memory for a state and its update. False: out of memory.
bool stage_updates(Program *p);

#endif
