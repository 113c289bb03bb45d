// Checks that inputs which hold indices are in range.
#ifndef NGRAD_FRONTEND_API_INDICES_H
#define NGRAD_FRONTEND_API_INDICES_H

#include "frontend/api/handles.h"
#include "ir/graph/tensor.h"
#include "ir/operators/indices.h"

// The tensors must fit the graph.
bool indices_are_right(const IndexCheck *checks, size_t count, const ng_tensor *inputs);

// An element of a tensor of integers; of u64, its bits.
int64_t integer_at(Type type, const void *data, size_t place);

// The offset in memory of an element that is checked; -1: there is none.
int64_t indices_place(const IndexCheck *c, const Tensor *t);

// Reports the first wrong index of each check. NG_OK, NG_WRONG or NG_OUT_OF_MEMORY.
ng_status indices_tell(ng_context *ctx, const Graph *g, const ng_tensor *inputs);

#endif
