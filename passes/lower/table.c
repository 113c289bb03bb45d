// The function of each operator.
#include "passes/lower/lower.h"

#include "passes/lower/fusible.h"

static void (*const lowerings[OP_COUNT])(Lowering *, const Node *) = {
#define OP(name, ...) [OP_##name] = lower_##name,
#include "ir/operators/operators.def"
#undef OP
};

void lower_node(Lowering *l, const Node *node) {
  l->has_sums = node_has_sums(node);
  lowerings[node->op->id](l, node);
}
