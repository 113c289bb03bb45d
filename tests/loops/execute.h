// Executes loop trees (ir/loops) without a compiler. The results have the same bits as the results of the emitted
// scalar C.
//
// It also checks the trees while it executes them: every access must be inside of its tensor, read initialised memory
// and not race with other blocks of the loop; a loop must store each element once, and the program every element of its
// outputs; each variable must be declared, in scope and of the right type, as in C.
#ifndef NGRAD_TESTS_LOOPS_EXECUTE_H
#define NGRAD_TESTS_LOOPS_EXECUTE_H

#include "ir/graph/tensor.h"
#include "ir/kernel/program.h"

typedef struct ExecuteOptions {
  const int64_t *dims; // values of the graph's open dims; NULL: the hints
} ExecuteOptions;

// Runs a program, whose trees are built; if they have optional outputs, an output whose data is NULL is left out.
// `inputs` and `outputs` are in the graph's order, with the shapes at the dims' values. False: a tree
// is wrong or memory is exhausted, as `why` says. options NULL: all zero.
bool execute_program(const Program *p, const Tensor *inputs, const Tensor *outputs, const ExecuteOptions *options,
                     Text *why);

#endif
