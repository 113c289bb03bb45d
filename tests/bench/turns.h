// Times contestants that do the same work, in turns: a sample of each in each round, in an order that changes from
// round to round.
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
// once. Meanwhile each thread of the team is bound to its own processor, if there are enough.
// Returns the number of samples of each; 0: out of memory, or interrupted.
size_t turns_take(Contestant *contestants, size_t count, int threads, double seconds);

// Cold: a turn is one run, however short, so that each run follows a run of another contestant.
size_t turns_take_cold(Contestant *contestants, size_t count, int threads, double seconds);

// Hot: before each sample its contestant runs twice untimed, as in a loop of its own. Other work on the machine still
// disturbs all contestants equally.
size_t turns_take_hot(Contestant *contestants, size_t count, int threads, double seconds);

#endif
