// An executor of loop trees (ir/loops). It computes the bits that the emitted scalar C computes, without a compiler.
//
// It also checks the trees. Every access must stay within its tensor, read initialised memory and be free of races with
// other blocks of the loop; a loop must store each element once, and the program every element of its outputs; and each
// variable must be declared, in scope and of the right type, as in C.
#ifndef NGRAD_TESTS_LOOPS_EXECUTE_H
#define NGRAD_TESTS_LOOPS_EXECUTE_H

#include "ir/graph/tensor.h"
#include "ir/kernel/kernel.h"

typedef struct ExecuteOptions {
  const int64_t *dims;       // values of the graph's open dims; NULL: the hints
  bool are_outputs_optional; // as in emitted files: an output whose data is NULL is left out
} ExecuteOptions;

// Runs a program. Tensors are parallel to the graph's inputs and outputs, with the shapes that these have at the dims'
// values. False after telling why: a tree is wrong, or out of memory. options NULL: all zero.
bool execute_program(const Program *p, const Tensor *inputs, const Tensor *outputs, const ExecuteOptions *options,
                     Text *why);

#endif
