// Timing things that do the same work, in turns: one sample of each, in an order that changes from round to round.
#ifndef NGRAD_TESTS_BENCH_TURNS_H
#define NGRAD_TESTS_BENCH_TURNS_H

#include <stddef.h>

enum { MOST_CONTESTANTS = 8 };

typedef struct Contestant {
  void (*run)(void *self);
  void *self;
  double median_ms; // of one run; turns_take sets it
} Contestant;

// Warms up, then goes on for about `seconds`, five rounds at least. Runs too short for the clock are timed several at
// once. Each of the team's threads stays on a processor of its own meanwhile, when there are enough.
// Returns how many samples each gave; 0: out of memory, or interrupted.
size_t turns_take(Contestant *contestants, size_t count, int threads, double seconds);

// Cold: a turn is one run, however short, so that each run follows one of another's.
size_t turns_take_cold(Contestant *contestants, size_t count, int threads, double seconds);

// Hot: before each sample its contestant runs twice untimed, as if it were alone in a loop. What disturbs the machine
// meanwhile still disturbs all of them.
size_t turns_take_hot(Contestant *contestants, size_t count, int threads, double seconds);

#endif
