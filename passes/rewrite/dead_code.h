// Dead code: nodes that no output needs.
#ifndef NGRAD_PASSES_REWRITE_DEAD_CODE_H
#define NGRAD_PASSES_REWRITE_DEAD_CODE_H

#include "passes/pass.h"

// Takes apart a node whose values nobody needs, and those before it that were there for it alone, as far as the
// stack goes; the rest of them stay as they are. All stay in the graph's list until pass_dead_code.
void nodes_remove_dead(Node *node);

bool pass_dead_code(Graph *g, PassContext *c);

#endif
