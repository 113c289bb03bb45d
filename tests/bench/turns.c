// Takes samples in turns. The caches hold data of the previous contestant, so the order goes through all rotations,
// forwards and backwards: each contestant follows each other contestant equally often.
#include "tests/bench/turns.h"

#include "frontend/api/timing.h"
#include "frontend/cli/clock.h"
#include "frontend/cli/session.h"
#include "tests/bench/interrupt.h"

#include <assert.h>
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

// The contents of the caches when a sample begins: data of the previous sample; the same, with one run a sample; the
// contestant's own data.
typedef enum TurnState { STATE_AS_LEFT, STATE_COLD, STATE_HOT } TurnState;

typedef struct Turns {
  Contestant *contestants;
  size_t count, nrounds;
  TurnState state;
  Team team;
  size_t batch[MOST_CONTESTANTS], lead[MOST_CONTESTANTS]; // runs of a sample, and untimed runs before it
  double *samples[MOST_CONTESTANTS];                      // MOST_ROUNDS each
} Turns;

// Pins the threads of OpenMP, which the peers use, to the same processors as ngrad's.
static void pin_peers(const Team *team) {
  if (CPU_COUNT(&team->allowed) < team->threads) return;
#pragma omp parallel num_threads(team->threads)
  {
    size_t cpu = 0;
    cpu_set_t one;
    for (int n = omp_get_thread_num(); !CPU_ISSET(cpu, &team->allowed) || n-- > 0;) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
}

static double take_sample(const Turns *t, size_t who) {
  const Contestant *c = &t->contestants[who];
  const size_t batch = t->batch[who];
  pin_peers(&t->team);
  team_pin(&t->team);
  for (size_t i = 0; i < t->lead[who]; i++) c->run(c->self);
  double start = now_ms();
  for (size_t i = 0; i < batch; i++) c->run(c->self);
  return (now_ms() - start) / (double)batch;
}

// A run of this many milliseconds needs no untimed run before it, as its data exceeds all caches.
static const double long_run_ms = 200;
enum { LEADING_RUNS = 2 };

static void warm_up(Turns *t) {
  for (size_t who = 0; who < t->count; who++) {
    double shortest = 1e300, spent = 0;
    t->batch[who] = 1;
    for (int round = 0; round < WARM_UP_ROUNDS && spent < long_run_ms && !is_interrupted(); round++) {
      double ms = take_sample(t, who);
      spent += ms;
      if (ms < shortest) shortest = ms;
    }
    if (t->state != STATE_COLD) t->batch[who] = runs_in_sample(shortest);
    if (t->state == STATE_HOT && shortest < long_run_ms) t->lead[who] = LEADING_RUNS;
  }
}

// The contestant that is next: rotations of 0..count-1, each forwards and then backwards.
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
      t->samples[who][t->nrounds] = take_sample(t, who);
    }
  }
}

static size_t take(Contestant *contestants, size_t count, int threads, double seconds, TurnState state) {
  assert(count > 0 && count <= MOST_CONTESTANTS);
  double *samples = malloc(count * MOST_ROUNDS * sizeof *samples);
  if (!samples) return 0;
  Turns t = {.contestants = contestants, .count = count, .state = state};
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
  return take(contestants, count, threads, seconds, STATE_AS_LEFT);
}

size_t turns_take_cold(Contestant *contestants, size_t count, int threads, double seconds) {
  return take(contestants, count, threads, seconds, STATE_COLD);
}

size_t turns_take_hot(Contestant *contestants, size_t count, int threads, double seconds) {
  return take(contestants, count, threads, seconds, STATE_HOT);
}
