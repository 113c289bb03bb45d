// Removes dead code: nodes that no output of the graph needs.
#ifndef NGRAD_PASSES_REWRITE_DEAD_CODE_H
#define NGRAD_PASSES_REWRITE_DEAD_CODE_H

#include "passes/pass.h"

// If no output of the node is used, detaches the node from its operands; then likewise producers that become unused, up
// to a limited depth. Detached nodes remain in the graph's list until pass_dead_code.
void nodes_remove_dead(Node *node);

bool pass_dead_code(Graph *g, PassContext *c);

// Ends a pass that may have added nodes: reports that it ran out of memory, or sorts the graph and removes dead code.
void pass_end(Graph *g, PassContext *c, bool out_of_memory, bool has_added);

#endif
