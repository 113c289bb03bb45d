// What an operator's function in the interpreter is given: one node and the arrays of its operands.
//
// There is one function a row of ir/operators/operators.def, in the file of the row's family, called interpret_ and the
// operator's name. It may rely on a verified node whose extents all have numbers.
#ifndef NGRAD_BACKENDS_INTERPRETER_EVALUATION_H
#define NGRAD_BACKENDS_INTERPRETER_EVALUATION_H

#include "backends/interpreter/noise.h"
#include "ir/operators/operator.h"

typedef struct Evaluation {
  const Node *node;
  const double *const *inputs; // parallel to node->inputs; row-major and dense; NULL: absent; s64 as themselves
  double *const *outputs;      // parallel to node->outputs; to be written; NULL: not asked for
  Arena *scratch;              // zeroed memory, freed after the node
  Noise *noise;                // for its sums; NULL: none
} Evaluation;

// The array of the operand that the operator's row calls `name`; NULL: absent, or the operator has none such.
const double *evaluation_input(const Evaluation *e, const char *name);
double *evaluation_output(const Evaluation *e, const char *name);
int64_t evaluation_s64(const Evaluation *e, uint32_t slot); // the one element of an s64

// False: out of memory, the one way to fail.
#define OP(name, ...) bool interpret_##name(const Evaluation *e);
#include "ir/operators/operators.def"
#undef OP

#endif
