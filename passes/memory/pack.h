// A second placement of the workspace's tenants, tried after the memory plan.
#ifndef NGRAD_PASSES_MEMORY_PACK_H
#define NGRAD_PASSES_MEMORY_PACK_H

#include "ir/kernel/program.h"

// Places the tenants of a planned workspace again, in several orders, such as the largest first: each at the lowest
// offset that is free during its whole lifetime. Uses the new placement if the workspace becomes smaller. The program
// has no open dims. False: out of memory.
bool pack_workspace(Program *p);
// The same for an arena of a program with open dims; sets arena->free.
bool pack_arena(Program *p, MonomialArena *arena);

// Adds `by` to the places of a schedule's temporaries, or of all that a slice group's chunks hold; a negative
// difference works modulo 2^64.
void schedule_move_temporaries(const Schedule *s, size_t by);
void slice_group_move(Program *p, ProgramSliceGroup *slice_group, size_t by);

#endif
