// Removes casts that a later cast undoes.
#ifndef NGRAD_PASSES_REWRITE_CASTS_H
#define NGRAD_PASSES_REWRITE_CASTS_H

#include "passes/pass.h"

extern const Rules casts_rules;

bool pass_casts(Graph *g, PassContext *c);

#endif
