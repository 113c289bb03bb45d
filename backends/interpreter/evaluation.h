// The arguments of the interpreter's functions: a node and the arrays of its operands.
//
// There is one function for each row of ir/operators/operators.def, in the file of the row's family, called interpret_
// and the operator's name. It may assume a verified node whose extents all have numbers.
#ifndef NGRAD_BACKENDS_INTERPRETER_EVALUATION_H
#define NGRAD_BACKENDS_INTERPRETER_EVALUATION_H

#include "backends/interpreter/noise.h"
#include "ir/operators/operator.h"

typedef struct Evaluation {
  const Node *node;
  const double *const *inputs; // parallel to node->inputs; row-major; NULL: absent; elements of s64 are int64_t
  double *const *outputs;      // parallel to node->outputs; to be written; NULL: absent
  Arena *scratch;              // for temporary memory, freed after the node
  Noise *noise;                // to be added to sums; NULL: none
} Evaluation;

// The array of the operand that the operator's row calls `name`; NULL: it is absent, or the operator does not have it.
const double *evaluation_input(const Evaluation *e, const char *name);
double *evaluation_output(const Evaluation *e, const char *name);
int64_t evaluation_s64(const Evaluation *e, uint32_t slot); // element 0 of an input of type s64

// False: out of memory, the only possible failure.
#define OP(name, ...) bool interpret_##name(const Evaluation *e);
#include "ir/operators/operators.def"
#undef OP

#endif
