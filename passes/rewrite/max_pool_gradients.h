// Replaces each MaxPoolBackward by MaxPoolWinners, which finds the greatest element of each window once, and
// MaxPoolScatter. A single kernel over src would search each window again for each of its elements.
#ifndef NGRAD_PASSES_REWRITE_MAX_POOL_GRADIENTS_H
#define NGRAD_PASSES_REWRITE_MAX_POOL_GRADIENTS_H

#include "passes/pass.h"

bool pass_max_pool_gradients(Graph *g, PassContext *c);

#endif
