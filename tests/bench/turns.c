// Samples in turns. What ran before leaves its data in the caches, so the order goes through all rotations, forwards
// and backwards: everyone follows everyone else equally often.
#include "tests/bench/turns.h"

#include "frontend/cli/session.h"

#include <assert.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { MOST_ROUNDS = 20000, LEAST_ROUNDS = 5, WARM_UP_ROUNDS = 3 };
static const double shortest_sample_ms = 0.2; // shorter runs are timed several at once

typedef struct Turns {
  Contestant *contestants;
  size_t count, nrounds;
  int threads;
  cpu_set_t allowed; // the processors that the caller may run on
  size_t batch[MOST_CONTESTANTS];
  double *samples[MOST_CONTESTANTS]; // MOST_ROUNDS each
} Turns;

static size_t nth_cpu(const cpu_set_t *cpus, int n) {
  size_t cpu = 0;
  while (!CPU_ISSET(cpu, cpus) || n-- > 0) cpu++;
  return cpu;
}

// Before every sample: OpenMP may have made new threads, and those stay where their maker is.
static void pin_threads(const Turns *t) {
  if (CPU_COUNT(&t->allowed) < t->threads) return;
#pragma omp parallel num_threads(t->threads)
  {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(nth_cpu(&t->allowed, omp_get_thread_num()), &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  }
}

static void unpin_threads(const Turns *t) {
  if (!CPU_COUNT(&t->allowed)) return;
#pragma omp parallel num_threads(t->threads)
  pthread_setaffinity_np(pthread_self(), sizeof t->allowed, &t->allowed);
}

static double take_sample(const Turns *t, size_t who, size_t batch) {
  const Contestant *c = &t->contestants[who];
  pin_threads(t);
  double start = now_ms();
  for (size_t i = 0; i < batch; i++) c->run(c->self);
  return (now_ms() - start) / (double)batch;
}

static void warm_up(Turns *t) {
  for (size_t who = 0; who < t->count; who++) {
    double shortest = 1e300;
    for (int round = 0; round < WARM_UP_ROUNDS; round++) {
      double ms = take_sample(t, who, 1);
      if (ms < shortest) shortest = ms;
    }
    t->batch[who] = shortest >= shortest_sample_ms ? 1 : (size_t)(shortest_sample_ms / (shortest + 1e-4)) + 1;
  }
}

// Whose turn it is: rotations of 0..count-1, each forwards and then backwards.
static size_t nth_of_round(const Turns *t, size_t round, size_t n) {
  size_t first = round / 2 % t->count;
  return (round % 2 ? first + t->count - n : first + n) % t->count;
}

static void take_samples(Turns *t, double seconds) {
  const double end = now_ms() + seconds * 1e3;
  for (; t->nrounds < MOST_ROUNDS && (t->nrounds < LEAST_ROUNDS || now_ms() < end); t->nrounds++)
    for (size_t n = 0; n < t->count; n++) {
      size_t who = nth_of_round(t, t->nrounds, n);
      t->samples[who][t->nrounds] = take_sample(t, who, t->batch[who]);
    }
}

static int compare_numbers(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *sorted_here, size_t count) {
  qsort(sorted_here, count, sizeof *sorted_here, compare_numbers);
  return count % 2 ? sorted_here[count / 2] : (sorted_here[count / 2 - 1] + sorted_here[count / 2]) / 2;
}

size_t turns_take(Contestant *contestants, size_t count, int threads, double seconds) {
  assert(count > 0 && count <= MOST_CONTESTANTS);
  double *samples = malloc(count * MOST_ROUNDS * sizeof *samples);
  if (!samples) return 0;
  Turns t = {.contestants = contestants, .count = count, .threads = threads};
  for (size_t who = 0; who < count; who++) t.samples[who] = samples + who * MOST_ROUNDS;
  if (sched_getaffinity(0, sizeof t.allowed, &t.allowed) != 0) CPU_ZERO(&t.allowed);
  warm_up(&t);
  take_samples(&t, seconds);
  unpin_threads(&t);
  for (size_t who = 0; who < count; who++) contestants[who].median_ms = median(t.samples[who], t.nrounds);
  free(samples);
  return t.nrounds;
}
