// Reshapes keep row-major order, so that is how what they take must lie in memory.
#ifndef NGRAD_PASSES_REWRITE_RESHAPE_ORDERS_H
#define NGRAD_PASSES_REWRITE_RESHAPE_ORDERS_H

#include "passes/pass.h"

// Puts a copy before each reshape of a tensor that lies in another order. The lowering relies on it.
bool pass_reshape_orders(Graph *g, PassContext *c);

#endif
