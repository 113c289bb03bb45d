// Checks that tensors fit a graph.
#ifndef NGRAD_FRONTEND_API_TENSOR_CHECK_H
#define NGRAD_FRONTEND_API_TENSOR_CHECK_H

#include "frontend/api/ngrad.h"
#include "ir/graph/tensor.h"

// Why a graph refuses these tensors: a tensor is unlike `wanted` (which describes the inputs, then the outputs), is
// misaligned, or overlaps an output. NULL: the tensors fit. refused_for_memory: out of memory while checking. in_place:
// a graph whose updates may have the addresses of its states; NULL: no update may.
const char *tensors_refusal(const ng_tensor *inputs, size_t ninputs, const ng_tensor *outputs, size_t noutputs,
                            const Tensor *wanted, const Graph *in_place, const Allocator *allocator);
extern const char refused_for_memory[];

#endif
