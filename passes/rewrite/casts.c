// Removes casts that a later cast undoes.
//
// A widening cast followed by the narrowing cast back is the identity, because widening is exact. The reverse pair
// rounds, and remains. That the second cast returns to the original type is checked by the engine: a replacement must
// have the type of the value that it replaces.
#include "passes/rewrite/passes.h"

#include "passes/rewrite/rewrite.h"

static bool inner_widens(Match *m) {
  return type_widens(m->values[0]->type, m->nodes[1]->outputs[0]->type);
}

static const Rule rules[] = {
    {.name = "cast-back",
     .pattern = NODE(TypeCast, NAMED(1, TypeCast, X)),
     .replacement = X,
     .condition = inner_widens},
};
const Rules casts_rules = {rules, sizeof rules / sizeof *rules};

bool pass_casts(Graph *g, PassContext *c) {
  return rewrite_graph(g, c, &casts_rules);
}
