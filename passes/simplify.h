// Algebraic identities.
#ifndef NGRAD_PASSES_SIMPLIFY_H
#define NGRAD_PASSES_SIMPLIFY_H

#include "passes/pipeline.h"

extern const Rules simplify_rules;

bool pass_simplify(Graph *g, PassContext *c);

#endif
