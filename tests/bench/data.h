// Inputs for timing and comparison: random, but consistent with a forward pass.
#ifndef NGRAD_TESTS_BENCH_DATA_H
#define NGRAD_TESTS_BENCH_DATA_H

#include "frontend/api/handles.h"

// Makes every input of a bound graph. The data of a norm has deviation 1 and about this mean (added to the random
// numbers, then rounded to the tensor's type). A gradient's statistics are computed from the data. The output
// of a ReLU is not negative.
ng_status inputs_make(ng_graph *g, double mean, ng_tensor *inputs);

#endif
