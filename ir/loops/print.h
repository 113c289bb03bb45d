// Prints loop trees, for `ngrad show --format loops` and for messages.
#ifndef NGRAD_IR_LOOPS_PRINT_H
#define NGRAD_IR_LOOPS_PRINT_H

#include "ir/kernel/program.h"
#include "ir/loops/loops.h"

void loops_print_node(const LoopTree *t, const LoopNode *n, Text *out); // the node's line, without its body and newline

// Prints the trees of all loops of a program, which must be built: a line with the loop's schedule, then the functions
// `block`, `step` and, if there is one, `tail step`: a line for each node, with the body indented below.
// ir/loops/loops.h quotes the lines. Variables have the same names as in the emitted C. An expression is named after
// its label; if several share a label, all but the first append their number.
void program_print_loops(const Program *program, Text *out);

#endif
