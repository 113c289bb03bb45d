// Graphs whose named extents stay open: they get their values when what a graph has become is called.
//
// Till then every number that depends on them (an extent, a stride, how many elements there are) is a literal times a
// product of powers of them. It is kept as what it is at their hints, which decisions go by, beside those powers, which
// what holds for every value goes by: two numbers are equal when both agree. A hint is at least 2, so that a number
// with powers is never 1, and no product of fewer than MAX_ELEMENTS has a power that a byte would not hold.
#ifndef NGRAD_IR_GRAPH_OPEN_H
#define NGRAD_IR_GRAPH_OPEN_H

#include "ir/graph/graph.h"

// A graph of its own in which the dims that are not fixed are open, at their value or else a default as the hint, the
// fixed ones are bound, and every type and shape is known; g stays as it is and must outlive it. NULL after telling
// which dim cannot stay open, or what is wrong with the graph.
Graph *graph_with_open_dims(const Graph *g, Diagnostics *d);

// A graph of its own in which g's dims have these values, inferred anew; NULL after telling what contradicts.
Graph *graph_with_dims(const Graph *g, const int64_t *values, Diagnostics *d);

// A power product at these values of g's dims; at the hints with values NULL.
int64_t powers_value(const Graph *g, Monomial monomial, const int64_t *values);
int monomial_exponent(Monomial monomial, size_t dim);

// A number's literal factor, and what it is at other values than the hints.
int64_t open_factor(const Graph *g, int64_t number, Monomial monomial);
int64_t open_number(const Graph *g, int64_t number, Monomial monomial, const int64_t *values);

#endif
