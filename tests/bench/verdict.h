// Whether ngrad and the peer computed the same.
#ifndef NGRAD_TESTS_BENCH_VERDICT_H
#define NGRAD_TESTS_BENCH_VERDICT_H

#include "tests/bench/case.h"

#include <jansson.h>

// The worst relative L2 between the two's outputs; NAN: there is no peer. Each output's goes into the object.
// *agrees: within the types' tolerances.
double verdict_compare(const Case *c, json_t *differences, bool *agrees);

// Who is wrong when the two differ; the interpreter knows, if there is memory for it. *status becomes NG_DIFFERENT
// unless that is the peer.
const char *verdict_judge(Case *c, int *status);

#endif
