// Differences of tensors that allow for rounding errors.
#ifndef NGRAD_FRONTEND_API_COMPARE_H
#define NGRAD_FRONTEND_API_COMPARE_H

#include "backends/interpreter/magnitude.h"
#include "frontend/api/handles.h"

// As ng_tensor_compare, for tensors of one shape and an output with this magnitude: the norm is at least the magnitude.
// A quantised output may differ by more than a step if rounding errors move it by as much. A few elements that rounding
// errors move farther than usual are excluded, if they move the element as far as it differs; m NULL: none is excluded.
// No element may differ by several times more than noise moves it and moves most others, in an output however large;
// limits NULL: each may.
void difference_find(const Tensor *actual, const Tensor *expected, const Movement *m, const Movement *limits,
                     double magnitude, double tolerance, ng_difference *d);

// Whether an element differs by more than the type's tolerance, of itself and of most others.
bool has_far_element(const Tensor *actual, const Tensor *expected);

// Adds the results of one more run with other choices. The last two of m->results are kept for this: of all runs that
// were added, they have for each element the results that are nearest to the actual and to the expected one. False: no
// element's are nearer than before.
bool movement_add(Movement *m, const Tensor *flipped, const Tensor *actual, const Tensor *expected);

#endif
