// Samples in turns. What ran before leaves its data in the caches, so the order goes through all rotations, forwards
// and backwards: everyone follows everyone else equally often.
#include "tests/bench/turns.h"

#include "frontend/api/timing.h"
#include "frontend/cli/session.h"
#include "tests/bench/interrupt.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct Turns {
  Contestant *contestants;
  size_t count, nrounds;
  bool has_single_runs; // a sample is one run
  Team team;
  size_t batch[MOST_CONTESTANTS];
  double *samples[MOST_CONTESTANTS]; // MOST_ROUNDS each
} Turns;

static double take_sample(const Turns *t, size_t who, size_t batch) {
  const Contestant *c = &t->contestants[who];
  team_pin(&t->team);
  double start = now_ms();
  for (size_t i = 0; i < batch; i++) c->run(c->self);
  return (now_ms() - start) / (double)batch;
}

// A run of that many milliseconds warms up by itself.
static const double long_run_ms = 200;

static void warm_up(Turns *t) {
  for (size_t who = 0; who < t->count; who++) {
    double shortest = 1e300, spent = 0;
    for (int round = 0; round < WARM_UP_ROUNDS && spent < long_run_ms && !is_interrupted(); round++) {
      double ms = take_sample(t, who, 1);
      spent += ms;
      if (ms < shortest) shortest = ms;
    }
    t->batch[who] = t->has_single_runs ? 1 : runs_in_sample(shortest);
  }
}

// Whose turn it is: rotations of 0..count-1, each forwards and then backwards.
static size_t nth_of_round(const Turns *t, size_t round, size_t n) {
  size_t first = round / 2 % t->count;
  return (round % 2 ? first + t->count - n : first + n) % t->count;
}

static void take_samples(Turns *t, double seconds) {
  const double end = now_ms() + seconds * 1e3;
  for (; t->nrounds < MOST_ROUNDS && (t->nrounds < LEAST_ROUNDS || now_ms() < end); t->nrounds++) {
    if (is_interrupted()) {
      t->nrounds = 0;
      return;
    }
    for (size_t n = 0; n < t->count; n++) {
      size_t who = nth_of_round(t, t->nrounds, n);
      t->samples[who][t->nrounds] = take_sample(t, who, t->batch[who]);
    }
  }
}

static size_t take(Contestant *contestants, size_t count, int threads, double seconds, bool has_single_runs) {
  assert(count > 0 && count <= MOST_CONTESTANTS);
  double *samples = malloc(count * MOST_ROUNDS * sizeof *samples);
  if (!samples) return 0;
  Turns t = {.contestants = contestants, .count = count, .has_single_runs = has_single_runs};
  team_init(&t.team, threads);
  for (size_t who = 0; who < count; who++) t.samples[who] = samples + who * MOST_ROUNDS;
  warm_up(&t);
  take_samples(&t, seconds);
  team_unpin(&t.team);
  for (size_t who = 0; who < count; who++)
    contestants[who].median_ms = t.nrounds ? samples_median(t.samples[who], t.nrounds) : NAN;
  free(samples);
  return t.nrounds;
}

size_t turns_take(Contestant *contestants, size_t count, int threads, double seconds) {
  return take(contestants, count, threads, seconds, false);
}

size_t turns_take_cold(Contestant *contestants, size_t count, int threads, double seconds) {
  return take(contestants, count, threads, seconds, true);
}

size_t turns_take_hot(Contestant *contestants, size_t count, int threads, double seconds) {
  size_t fewest = MOST_ROUNDS;
  for (size_t who = 0; who < count; who++) {
    size_t nrounds = take(&contestants[who], 1, threads, seconds / (double)count, false);
    if (nrounds < fewest) fewest = nrounds;
  }
  return fewest;
}
