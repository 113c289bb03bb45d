// Reshapes and transposes: fewer of them, and later ones.
#ifndef NGRAD_PASSES_MOVEMENT_H
#define NGRAD_PASSES_MOVEMENT_H

#include "passes/pipeline.h"

extern const Rules movement_rules;

bool pass_movement(Graph *g, PassContext *c);

#endif
