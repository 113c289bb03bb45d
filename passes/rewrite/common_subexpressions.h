// Merges common subexpressions: nodes that compute the same values.
#ifndef NGRAD_PASSES_REWRITE_COMMON_SUBEXPRESSIONS_H
#define NGRAD_PASSES_REWRITE_COMMON_SUBEXPRESSIONS_H

#include "passes/pass.h"

bool pass_common_subexpressions(Graph *g, PassContext *c);

#endif
