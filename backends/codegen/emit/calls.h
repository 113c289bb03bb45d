// Prints the calls of a program's loops.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_CALLS_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_CALLS_H

#include "backends/codegen/print/printer.h"

// Prints IDENTIFIER_visitN(args, chunk) for each slice group, after the kernels' functions.
void print_slice_groups(Printer *p);

// Prints the calls of all loops and slice groups, in a function with the arguments `a`, `outputs` and `pool`. With
// p->is_profiled, the pool's function `mark` attributes the time since its last call to a part. Part 0 is the code
// before the loops, part 1 + n is loop n; a slice group is the part of its first loop.
void print_parts(Printer *p); // functions that contain the calls of a long program
void print_calls(Printer *p);

bool program_has_shared_loops(const Program *p); // some loop may run on several threads (PREFIX_for)

#endif
