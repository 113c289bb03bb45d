// A case with cold caches and with hot ones, beside its ceiling.
#ifndef NGRAD_TESTS_BENCH_STATES_H
#define NGRAD_TESTS_BENCH_STATES_H

#include "tests/bench/case.h"

// Each number is the median of three measurements; so the ratios are not exactly those of the times here.
typedef struct CacheState {
  double ngrad_ms, peer_ms, ceiling_ms; // of a run; NAN: there is no peer
  double speed_up, ceiling_ratio;       // the peer's time and the ceiling's over ngrad's
} CacheState;

typedef struct States {
  CacheState cold; // in turns, a run each: the caches hold what the others used
  CacheState hot;  // in turns, too, but each after runs of its own, as in a loop
} States;

// The ceiling is the fastest streaming loop in the same state: with plain or with streaming stores, and if
// it takes microseconds, on one thread or on all. It reads nread_twice bytes more than the inputs have.
// False after telling why, or silently when interrupted.
bool states_measure(Case *c, uint64_t nread_twice, States *out);

#endif
