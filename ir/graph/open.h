// Graphs with open dims: named extents whose values are known only when the compiled function is called.
//
// Every number that depends on open dims (an extent, a stride, a number of elements) is a literal factor times a
// monomial, and is stored as a pair: its value at the dims' hints, and the monomial. With N open and hint 64, 4 * N * N
// is (16384, N^2). Heuristics use the value; facts that must hold for all values of the dims use the pair, and two
// numbers are equal when their values and monomials are. A hint is at least 2: so a number with a monomial is never 1,
// and a number below MAX_ELEMENTS has no exponent that needs more than a byte.
#ifndef NGRAD_IR_GRAPH_OPEN_H
#define NGRAD_IR_GRAPH_OPEN_H

#include "ir/graph/graph.h"

// A clone of g in which fixed dims are replaced by their values, all other dims are open, and every type and shape is
// known. The hint of an open dim is its value (at least 2) or a default. g must outlive the clone. NULL after reporting
// which dim cannot stay open, or what is wrong with the graph.
Graph *graph_with_open_dims(const Graph *g, Diagnostics *d);

// A clone of g in which g's dims have the given values (values[i] is that of g->dims[i]) and types and shapes are
// inferred again; NULL after reporting a contradiction.
Graph *graph_with_dims(const Graph *g, const int64_t *values, Diagnostics *d);

// The value of a monomial at these values of g's dims; values NULL: at the hints.
int64_t powers_value(const Graph *g, Monomial monomial, const int64_t *values);
int monomial_exponent(Monomial monomial, size_t dim); // of g->dims[dim]

// `number` is a value at the hints. Its literal factor; and its value at other values of the dims.
int64_t open_factor(const Graph *g, int64_t number, Monomial monomial);
int64_t open_number(const Graph *g, int64_t number, Monomial monomial, const int64_t *values);

#endif
