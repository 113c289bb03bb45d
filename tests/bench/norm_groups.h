// The elements that each statistic of a norm is computed from.
#ifndef NGRAD_TESTS_BENCH_NORM_GROUPS_H
#define NGRAD_TESTS_BENCH_NORM_GROUPS_H

#include "ir/graph/graph.h"

// src, row-major, seen as [outer, count, inner]: a statistic for each of count.
typedef struct NormGroups {
  size_t outer, count, inner;
} NormGroups;

// Whether the node is a normalisation or the gradient of one, with statistics that lie so: not those of groups of
// channels that come last.
bool norm_groups(const Node *node, NormGroups *out);

// A node's operands by the operator's names for them; NULL: absent, or it has none of that name.
Value *node_input(const Node *node, const char *name);
Value *node_output(const Node *node, const char *name);

#endif
