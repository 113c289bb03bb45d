// A second way to place what the memory plan placed.
#ifndef NGRAD_PASSES_MEMORY_PACK_H
#define NGRAD_PASSES_MEMORY_PACK_H

#include "ir/kernel/program.h"

// Places the tenants of a planned workspace anew, in several orders, such as the largest first, each at the lowest
// offset that is free whenever it lives. Keeps the result if it is smaller. The program has no open dims. False: out of
// memory.
bool pack_workspace(Program *p);

#endif
