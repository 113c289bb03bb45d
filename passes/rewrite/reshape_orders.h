// Copying the inputs of reshapes to row-major layout: a reshape that only reinterprets memory needs it.
#ifndef NGRAD_PASSES_REWRITE_RESHAPE_ORDERS_H
#define NGRAD_PASSES_REWRITE_RESHAPE_ORDERS_H

#include "passes/pass.h"

// Inserts a copy before each reshape whose input has another layout. Lowering relies on it.
bool pass_reshape_orders(Graph *g, PassContext *c);

#endif
