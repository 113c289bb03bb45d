// Arithmetic with a graph's extents. Each function returns false if memory has run out.
#ifndef NGRAD_IR_GRAPH_EXTENTS_H
#define NGRAD_IR_GRAPH_EXTENTS_H

#include "ir/graph/formula.h"

// The extent of a formula, as formula_extent. In a graph with open dims (ir/graph/open_dims.h), the extent of a sum
// that the graph does not have is unknown.
bool graph_extent(Graph *g, const Formula *f, Extent *e);

// a + times * b, a * b, and a / b without a remainder; unknown if an operand is, or if the result is no formula.
bool extent_add(Graph *g, Extent a, int64_t times, Extent b, Extent *result);
bool extent_multiply(Graph *g, Extent a, Extent b, Extent *result);
bool extent_divide(Graph *g, Extent a, Extent b, Extent *result);

#endif
