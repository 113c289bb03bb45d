// Copies inputs of reshapes to row-major layout, so that a reshape only reinterprets memory.
#ifndef NGRAD_PASSES_REWRITE_RESHAPE_LAYOUTS_H
#define NGRAD_PASSES_REWRITE_RESHAPE_LAYOUTS_H

#include "passes/pass.h"

// Inserts a copy before each reshape whose input has another layout. Lowering relies on this pass.
bool pass_reshape_layouts(Graph *g, PassContext *c);

#endif
