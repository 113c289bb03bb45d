// Whether tensors are those that a graph is run with.
#ifndef NGRAD_FRONTEND_API_FITS_H
#define NGRAD_FRONTEND_API_FITS_H

#include "frontend/api/ngrad.h"
#include "ir/graph/tensor.h"

// Why a graph is not run with these: one of them is unlike `wanted`, which has what the inputs and then the outputs
// must be like, is misaligned, or overlaps an output. NULL: it is. refused_for_memory: that could not be found out.
// in_place: a graph whose updates may be where its states are; NULL: none may.
const char *tensors_refusal(const ng_tensor *inputs, size_t ninputs, const ng_tensor *outputs, size_t noutputs,
                            const Tensor *wanted, const Graph *in_place, const Allocator *allocator);
extern const char refused_for_memory[];

#endif
