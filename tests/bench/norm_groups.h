// The elements that each statistic of a norm is computed from.
#ifndef NGRAD_TESTS_BENCH_NORM_GROUPS_H
#define NGRAD_TESTS_BENCH_NORM_GROUPS_H

#include "ir/graph/graph.h"

// A norm's src, row-major, as [outer, count, inner], with one statistic for each of `count` indices.
typedef struct NormGroups {
  size_t outer, count, inner;
} NormGroups;

// Whether the node is a normalisation, or the gradient of one, whose statistics have this form. Groups of channels that
// are last do not have it.
bool norm_groups(const Node *node, NormGroups *out);

// The node's operand with this name in its operator; NULL: absent, or the operator has no such operand.
Value *node_input(const Node *node, const char *name);
Value *node_output(const Node *node, const char *name);

#endif
