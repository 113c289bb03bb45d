// Graphs with open dims: named extents whose values are known only when the compiled function is called.
//
// Every number that depends on open dims (an extent, a stride, a number of elements) is a literal factor times a
// monomial of open dims and of sums of them. A sum, as T + 1, is a dim of the graph after the open dims: a call's
// arguments give the open dims, and the sums follow. It is stored as a pair: its value at the dims' hints, and the
// monomial. With N open and hint 64, 4 * N * N is (16384, N^2). Heuristics use the value alone. Facts that must hold
// for all values of the dims use the pair: two numbers are equal if both their values and their monomials are. A hint
// is at least 2, so that a number with a monomial is never 1, and each exponent of a number below MAX_ELEMENTS fits a
// byte.
#ifndef NGRAD_IR_GRAPH_OPEN_DIMS_H
#define NGRAD_IR_GRAPH_OPEN_DIMS_H

#include "ir/graph/graph.h"

// A clone of g in which fixed dims are replaced by their values, all other dims are open, and every type and shape is
// known. The hint of an open dim is its value (at least 2), or a default if it has none. g must outlive the clone. NULL
// after reporting a dim that cannot stay open, or an error in the graph.
Graph *graph_with_open_dims(const Graph *g, Diagnostics *d);

// A clone of g in which g->dims[i] has the value values[i], and types and shapes are inferred again. NULL after
// reporting a contradiction.
Graph *graph_with_dims(const Graph *g, const int64_t *values, Diagnostics *d);

// The value of a monomial if g->dims[i] is values[i]; values NULL: at the hints.
int64_t monomial_value(const Graph *g, Monomial monomial, const int64_t *values);
int monomial_exponent(Monomial monomial, size_t dim); // of g->dims[dim]
Monomial monomial_of_dim(size_t dim);                 // with exponent 1
size_t graph_narguments(const Graph *g);              // the number of open dims; the sums come after them
// The value of g->dims[dim] if the open dims have these values; NULL: at the hints; -1: a sum is negative.
int64_t open_dim_value(const Graph *g, size_t dim, const int64_t *values);
const Dim *open_dim_of(const Graph *g, size_t dim); // g->dims[dim], or of a sum the first open dim in it

// Divides the formula by the dims and sums that it is a multiple of, and sets *monomial to their product.
void formula_take_dims(const Graph *g, Formula *f, Monomial *monomial);
// The formula as a number at the hints and a monomial. False: it is no product of the graph's dims and sums.
bool formula_number(const Graph *g, const Formula *f, int64_t *number, Monomial *monomial);

// `number` is a value at the hints. open_factor: its literal factor; open_number: its value at other values of the
// dims.
int64_t open_factor(const Graph *g, int64_t number, Monomial monomial);
int64_t open_number(const Graph *g, int64_t number, Monomial monomial, const int64_t *values);

// The size of a tensor: (factor times the open dims in the monomial) elements of nbytes.
typedef struct TensorSize {
  Monomial monomial;
  int64_t factor; // an extent of 0 counts as 1
  size_t nbytes;
} TensorSize;

typedef struct LargestTensors { // none is at most as large as another for all values of the dims
  TensorSize *items;
  size_t count, capacity;
} LargestTensors;

// Adds the graph's tensors with open dims, and drops those that another is at least as large as. A dim of 0 counts as
// 1. False: out of memory.
bool graph_add_largest(const Graph *g, LargestTensors *largest, Arena *arena);

#endif
