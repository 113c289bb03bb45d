// Replaces each MaxPoolBackward by two operators: MaxPoolWinners, which finds the greatest element of each window once,
// and MaxPoolScatter. Found again for each element of src, it would be for as many elements as a window has.
#ifndef NGRAD_PASSES_REWRITE_MAX_POOL_GRADIENTS_H
#define NGRAD_PASSES_REWRITE_MAX_POOL_GRADIENTS_H

#include "passes/pass.h"

bool pass_max_pool_gradients(Graph *g, PassContext *c);

#endif
