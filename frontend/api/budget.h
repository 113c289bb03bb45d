// Checks memory against the context's budget before allocating it.
#ifndef NGRAD_FRONTEND_API_BUDGET_H
#define NGRAD_FRONTEND_API_BUDGET_H

#include "frontend/api/handles.h"
#include "ir/graph/tensor.h"

// Allocates the data of tensor `name` (NULL: without a name). False after a message: out of memory, or over the budget.
bool tensor_make(ng_context *ctx, const char *name, Tensor *t);

// ng_context_check_memory for one part: "interpreting NAME needs ...".
ng_status graph_check_memory(ng_graph *g, const char *doing, const char *what, uint64_t nbytes);

uint64_t values_nbytes(Value *const *values, size_t count); // as tensors of known extents

#endif
