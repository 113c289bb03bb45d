// Compares the results of ngrad and the peer.
#ifndef NGRAD_TESTS_BENCH_VERDICT_H
#define NGRAD_TESTS_BENCH_VERDICT_H

#include "tests/bench/case.h"

#include <jansson.h>

// The largest relative L2 difference between outputs of ngrad and the peer; NAN: no peer. Adds each output's difference
// to the object.
// *agrees: within the types' tolerances.
double verdict_compare(const Case *c, json_t *differences, bool *agrees);

// If the two differ, compares both with the interpreter, if there is memory for it. *status becomes NG_DIFFERENT unless
// only the peer is wrong.
const char *verdict_judge(Case *c, int *status);

#endif
