// Pins threads to processors, and takes the median of samples.
#include "frontend/api/timing.h"

#include "ir/support/threads.h"

#include <stdlib.h>

void team_init(Team *team, int threads) {
  team->threads = threads;
  if (sched_getaffinity(0, sizeof team->allowed, &team->allowed) != 0) CPU_ZERO(&team->allowed);
}

void team_pin(const Team *team) {
  if (CPU_COUNT(&team->allowed) >= team->threads) threads_pin(team->threads, &team->allowed);
}

void team_unpin(const Team *team) {
  if (CPU_COUNT(&team->allowed) >= team->threads) threads_unpin(team->threads, &team->allowed);
}

size_t runs_in_sample(double ms) {
  const double shortest_sample_ms = 0.2;
  return ms >= shortest_sample_ms ? 1 : (size_t)(shortest_sample_ms / (ms > 1e-4 ? ms : 1e-4)) + 1;
}

int compare_numbers(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double samples_median(double *sorted_here, size_t count) {
  qsort(sorted_here, count, sizeof *sorted_here, compare_numbers);
  return count % 2 ? sorted_here[count / 2] : (sorted_here[count / 2 - 1] + sorted_here[count / 2]) / 2;
}
