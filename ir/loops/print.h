// Prints loop trees, for `ngrad show --format loops` and for messages.
#ifndef NGRAD_IR_LOOPS_PRINT_H
#define NGRAD_IR_LOOPS_PRINT_H

#include "ir/kernel/program.h"
#include "ir/loops/loops.h"

// A line with the loop's schedule, then the functions `block`, `step` and, if there is one, `tail step`: a line for
// each node, its body indented below it. ir/loops/loops.h quotes the lines. Variables have the names that they have in
// the emitted C. An expression has its label's name; if several have the same label, all but the first append their
// number.
void loops_print(const LoopTree *t, Text *out);
void loops_print_node(const LoopTree *t, const LoopNode *n, Text *out); // the node's line, without its body and newline

// The trees of all loops of a program, for a call in which the caller wants every output. False: out of memory.
bool program_print_loops(const Program *program, Text *out);

#endif
