// The arguments of the interpreter's functions: a node and the arrays of its operands.
//
// There is one function for each row of ir/operators/operators.def, in the file of the row's family, called interpret_
// and the operator's name. It may assume a verified node whose extents all have numbers.
#ifndef NGRAD_BACKENDS_INTERPRETER_EVALUATION_H
#define NGRAD_BACKENDS_INTERPRETER_EVALUATION_H

#include "backends/interpreter/noise.h"
#include "backends/interpreter/sum.h"
#include "ir/operators/operator.h"

typedef struct Evaluation {
  const Node *node;
  const double *const *inputs; // parallel to node->inputs; row-major; NULL: absent; elements of s64 are int64_t
  double *const *outputs;      // parallel to node->outputs; to be written, likewise; NULL: absent
  Arena *scratch;              // for temporary memory, freed after the node
  Noise *noise;                // to be added to sums; NULL: none
  int64_t leaf;                // the leaf of the batch that is evaluated
  int64_t nleaves;             // AllReduce: number of leaves in inputs[0], one after the other
} Evaluation;

// The array of the operand that the operator's row calls `name`; NULL: it is absent, or the operator does not have it.
const double *evaluation_input(const Evaluation *e, const char *name);
double *evaluation_output(const Evaluation *e, const char *name);
int64_t evaluation_s64(const Evaluation *e, uint32_t slot);                // element 0 of an input of type s64
int64_t evaluation_integer(const Evaluation *e, uint32_t slot, int64_t i); // element i of an input of an integer type
// Stores the number as element i of output 0, whose type is an integer type. The number must be in the type's range.
void evaluation_put_integer(const Evaluation *e, int64_t i, int64_t number);
// The number as an f64 array element of output 0: for s64 the bits of type_integer(number), else the number.
double evaluation_element(const Evaluation *e, double number);

// One empty sum for each element of an output; NULL: out of memory. sums_store sets the output to the sums; true.
Sum *sums_of_output(const Evaluation *e, uint32_t slot);
bool sums_store(const Evaluation *e, uint32_t slot, const Sum *sums);

// scratch_of_NAME(e): an upper bound of the bytes that a function allocates from e->scratch. Of the arrays in e, only
// their presence is used. footprint.c has a row for each operator that allocates any.
uint64_t scratch_of_sums(const Evaluation *e); // one sum for each element of the last output
uint64_t scratch_of_product(const Evaluation *e);
uint64_t scratch_of_convolution(const Evaluation *e);
uint64_t scratch_of_pool(const Evaluation *e);
uint64_t scratch_of_pool_sums(const Evaluation *e);
uint64_t scratch_of_norm(const Evaluation *e);
uint64_t scratch_of_rows(const Evaluation *e);
uint64_t scratch_of_softmax(const Evaluation *e);

// False: out of memory, the only possible failure.
#define OP(name, ...) bool interpret_##name(const Evaluation *e);
#include "ir/operators/operators.def"
#undef OP
#define INTERPRET(name, result) /* a function that returns this */                                                     \
  bool interpret_##name(const Evaluation *e) {                                                                         \
    return result;                                                                                                     \
  }

extern bool (*const interpreter_functions[OP_COUNT])(const Evaluation *); // table.c

#endif
