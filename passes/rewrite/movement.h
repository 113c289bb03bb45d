// Simplifies reshapes and transposes: joins, removes and sinks them.
#ifndef NGRAD_PASSES_REWRITE_MOVEMENT_H
#define NGRAD_PASSES_REWRITE_MOVEMENT_H

#include "passes/pass.h"

extern const Rules movement_rules;

bool pass_movement(Graph *g, PassContext *c);

#endif
