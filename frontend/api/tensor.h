// Converts tensors of the API to the inner type, and back. The data is shared.
#ifndef NGRAD_FRONTEND_API_TENSOR_H
#define NGRAD_FRONTEND_API_TENSOR_H

#include "frontend/api/ngrad.h"
#include "ir/graph/tensor.h"

Tensor tensor_of_api(const ng_tensor *t);
ng_tensor tensor_to_api(const Tensor *t);

#endif
