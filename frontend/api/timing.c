// Pins threads to processors, and takes the median of samples.
#include "frontend/api/timing.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>

void team_init(Team *team, int threads) {
  team->threads = threads;
  if (sched_getaffinity(0, sizeof team->allowed, &team->allowed) != 0) CPU_ZERO(&team->allowed);
}

static size_t nth_cpu(const cpu_set_t *cpus, int n) {
  size_t cpu = 0;
  while (!CPU_ISSET(cpu, cpus) || n-- > 0) cpu++;
  return cpu;
}

void team_pin(const Team *team) {
  if (CPU_COUNT(&team->allowed) < team->threads) return;
#pragma omp parallel num_threads(team->threads)
  {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(nth_cpu(&team->allowed, omp_get_thread_num()), &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  }
}

void team_unpin(const Team *team) {
  if (!CPU_COUNT(&team->allowed)) return;
#pragma omp parallel num_threads(team->threads)
  pthread_setaffinity_np(pthread_self(), sizeof team->allowed, &team->allowed);
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
