// Prints the calls of a program's loops.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_CALLS_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_CALLS_H

#include "backends/codegen/emit/flow.h"
#include "backends/codegen/print/printer.h"

// Prints IDENTIFIER_visitN(args, chunk) for each visit, behind the kernels' functions.
void print_visits(Printer *p);

// Prints the calls of all loops and visits, in a function with the arguments `a`, `outputs` and `pool`. With
// p->is_profiled, the pool's function `mark` attributes the time since its last call to a part: 0, the code before the
// loops, or 1 + a loop's number; of a visit, its first loop's.
void print_parts(Printer *p, const Flow *flow); // the functions that the calls of a long program are in
void print_calls(Printer *p, const Flow *flow);

#endif
