// An executor of loop trees (ir/loops): the bits of the scalar C that would be emitted, without a compiler. It is also
// a checker: each access stays within its tensor, reads what was written and meets no other block of its loop; each
// output is written once and whole; and nothing is used that C would not have there.
#ifndef NGRAD_TESTS_LOOPS_EXECUTE_H
#define NGRAD_TESTS_LOOPS_EXECUTE_H

#include "ir/graph/tensor.h"
#include "ir/kernel/kernel.h"

typedef struct ExecuteOptions {
  const int64_t *dims;       // values of the graph's open dims; NULL: their hints
  bool are_outputs_optional; // as emitted files have them: those without data are left out
} ExecuteOptions;

// Runs a program's loops on tensors that are parallel to its graph's inputs and outputs, and have the shapes that the
// graph's are at these dims. False after telling why: a tree is wrong, or out of memory. options NULL: none.
bool execute_program(const Program *p, const Tensor *inputs, const Tensor *outputs, const ExecuteOptions *options,
                     Text *why);

#endif
