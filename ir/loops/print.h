// Prints loop trees, for `ngrad show --format loops` and for messages.
#ifndef NGRAD_IR_LOOPS_PRINT_H
#define NGRAD_IR_LOOPS_PRINT_H

#include "ir/kernel/program.h"
#include "ir/loops/loops.h"

// Prints a line with the loop's schedule, then the functions `block`, `step` and, if there is one, `tail step`: a line
// for each node, with the body indented below. ir/loops/loops.h quotes the lines. Variables have the same names as in
// the emitted C. An expression is named after its label; if several share a label, all but the first append their
// number.
void loops_print(const LoopTree *t, Text *out);
void loops_print_node(const LoopTree *t, const LoopNode *n, Text *out); // the node's line, without its body and newline
void loops_print_index(const LoopTree *t, const Index *i, Text *out);

// Prints the trees of all loops of a program, which must be built.
void program_print_loops(const Program *program, Text *out);

#endif
