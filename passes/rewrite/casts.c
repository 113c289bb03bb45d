// Widening and narrowing back is the identity, since widening is exact. Narrowing and widening back rounds, and
// remains. The second cast must go back to the first one's type: that is the type check on the replacement.
#include "passes/rewrite/casts.h"

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
