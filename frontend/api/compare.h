// Differences of tensors, beside what rounding errors explain.
#ifndef NGRAD_FRONTEND_API_COMPARE_H
#define NGRAD_FRONTEND_API_COMPARE_H

#include "backends/interpreter/magnitude.h"
#include "frontend/api/handles.h"

// Sets the distance and the norm, and what follows from them. The relative distance is larger the smaller the norm is;
// infinite where zeros are expected.
void difference_set(ng_difference *d, double distance, double norm);

// As ng_tensor_compare of tensors of one shape, for an output of this magnitude: its norm counts as no less. A
// quantised output may be off by more than a step where rounding errors of its tensors' types change it by more.
// A few elements are left out that rounding errors move farther than usual, and as far as they are off; m NULL: none.
void difference_find(const Tensor *actual, const Tensor *expected, const Movement *m, double magnitude,
                     double tolerance, ng_difference *d);

#endif
