// What timings share: how many samples they take, and a team of threads that stay where they are meanwhile.
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

// Each thread to a processor of its own, unless there are too few. To be done before every sample: OpenMP lets threads
// end that a smaller team does without, and those that it starts anew stay where their maker is.
void team_pin(const Team *team);
void team_unpin(const Team *team);

// How many runs of so many milliseconds a sample takes: short ones are timed several at once, for a clock's and a
// wake-up's cost.
size_t runs_in_sample(double ms);

double samples_median(double *sorted_here, size_t count);

#endif
