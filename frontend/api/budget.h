// Memory that is checked against the context's budget before it is asked for.
#ifndef NGRAD_FRONTEND_API_BUDGET_H
#define NGRAD_FRONTEND_API_BUDGET_H

#include "frontend/api/handles.h"
#include "ir/graph/tensor.h"

// Memory for the tensor `name` (NULL: it has none). False after telling that there is none, or too little left of the
// budget.
bool tensor_make(ng_context *ctx, const char *name, Tensor *t);

// ng_context_check_memory for one part: "interpreting NAME needs ...".
ng_status graph_check_memory(ng_graph *g, const char *doing, const char *what, uint64_t nbytes);

uint64_t values_nbytes(Value *const *values, size_t count); // as tensors; all extents have numbers

#endif
