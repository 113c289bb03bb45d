// Algebraic identities.
#ifndef NGRAD_PASSES_REWRITE_SIMPLIFY_H
#define NGRAD_PASSES_REWRITE_SIMPLIFY_H

#include "passes/pass.h"

extern const Rules simplify_rules;

bool pass_simplify(Graph *g, PassContext *c);

#endif
