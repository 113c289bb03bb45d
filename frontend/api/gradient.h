// The gradient of a graph, for functions that return it or check it.
#ifndef NGRAD_FRONTEND_API_GRADIENT_H
#define NGRAD_FRONTEND_API_GRADIENT_H

#include "frontend/api/handles.h"
#include "passes/gradient/gradient.h"

// The result shares the dims of g's graph. NULL: *status says why. options may be NULL.
Graph *gradient_of(ng_graph *g, const ng_gradient_options *options, GradientEnds *ends, ng_status *status);

#endif
