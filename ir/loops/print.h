// A loop's tree as text for people.
#ifndef NGRAD_IR_LOOPS_PRINT_H
#define NGRAD_IR_LOOPS_PRINT_H

#include "ir/loops/loops.h"

// The loop's schedule in a line, then its functions: what a block does, what a step does, and what the step of a
// block's last rows does, where there is one. A line a node, what a node contains indented below it. Variables have the
// names that they have in the emitted C; an expression is called by its label, with its number behind it where an
// earlier expression has the same one.
void loops_print(const LoopTree *t, Text *out);
void loops_print_node(const LoopTree *t, const LoopNode *n, Text *out); // a node's line alone, without its end

// All loops of a program's kernels, as a call that wants every output does them. False: out of memory.
bool program_print_loops(const Program *program, Text *out);

#endif
