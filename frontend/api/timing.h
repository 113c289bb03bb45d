// Timing: the number of samples, and a team of threads pinned to processors.
#ifndef NGRAD_FRONTEND_API_TIMING_H
#define NGRAD_FRONTEND_API_TIMING_H

#include <sched.h>
#include <stddef.h>

enum { MOST_ROUNDS = 20000, LEAST_ROUNDS = 5, WARM_UP_ROUNDS = 3 };

typedef struct Team {
  int threads;
  cpu_set_t allowed; // the processors that the caller may run on
} Team;

void team_init(Team *team, int threads);

// Pins each thread to a processor of its own, unless there are too few.
void team_pin(const Team *team);
void team_unpin(const Team *team);

// How many runs of `ms` milliseconds make a sample: short runs are timed together, so that the costs of the clock and
// of waking threads do not matter.
size_t runs_in_sample(double ms);

int compare_numbers(const void *a, const void *b); // for qsort of doubles, or of rows that begin with one
double samples_median(double *sorted_here, size_t count);

#endif
