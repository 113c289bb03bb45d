// Constant folding: evaluates nodes whose inputs are all constants.
#ifndef NGRAD_PASSES_REWRITE_FOLD_CONSTANTS_H
#define NGRAD_PASSES_REWRITE_FOLD_CONSTANTS_H

#include "passes/pass.h"

bool pass_fold_constants(Graph *g, PassContext *c);

#endif
