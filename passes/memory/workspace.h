// The rows that lay out the workspace of a program with open dims.
#ifndef NGRAD_PASSES_MEMORY_WORKSPACE_H
#define NGRAD_PASSES_MEMORY_WORKSPACE_H

#include "ir/kernel/program.h"

// Sets p->open_workspace, after plan_memory and find_liveness. False: out of memory.
bool lay_out_workspace(Program *p);

#endif
