// Executes calls of programs in numbers, by their loop trees (ir/loops/execute.h). The results have the same bits as
// the results of the emitted scalar C. A call must write every element of its outputs.
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
