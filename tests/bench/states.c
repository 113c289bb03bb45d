// Takes three measurements in each state, and the median of each number.
#include "tests/bench/states.h"

#include "frontend/api/timing.h"
#include "frontend/cli/session.h"
#include "tests/bench/interrupt.h"

#include <math.h>

enum { MEASUREMENTS = 3, CEILING_WAYS = 4 };

typedef size_t TakeTurns(Contestant *contestants, size_t count, int threads, double seconds);

typedef struct Way { // of the ceiling's
  Ceiling ceiling;
  double ms;
} Way;

typedef struct Samples { // as in CacheState
  double ngrad_ms[MEASUREMENTS], peer_ms[MEASUREMENTS], ceiling_ms[MEASUREMENTS];
  double speed_up[MEASUREMENTS], ceiling_ratio[MEASUREMENTS];
} Samples;

// Finds the fastest loop: alone, or in turns with ngrad (nothers 1). False: interrupted or out of memory.
static bool choose_way(Case *c, TakeTurns *take, size_t nothers, const Ceiling *ceiling, Way *best) {
  const double seconds = 0.05 * c->settings->seconds, start_counts_ms = 0.1; // of threads
  best->ms = INFINITY;
  for (unsigned way = 0; way < CEILING_WAYS; way++) {
    if (way & 2U && best->ms > start_counts_ms) break;
    Ceiling tried = *ceiling;
    tried.bypasses_cache = way & 1U;
    if (way & 2U) tried.threads = 1;
    Contestant both[2] = {case_ceiling(&tried), case_ngrad(c)};
    if (!take(both, 1 + nothers, c->settings->threads, seconds)) return false;
    if (both[0].median_ms < best->ms) *best = (Way){tried, both[0].median_ms};
  }
  return true;
}

// Data that exceeds all caches is cold in both states.
static bool choose_ways(Case *c, const Ceiling *ceiling, Way *cold, Way *hot) {
  const double beyond_caches_ms = 20;
  if (!choose_way(c, turns_take_hot, 0, ceiling, hot)) return false;
  *cold = *hot;
  return hot->ms > beyond_caches_ms || choose_way(c, turns_take_cold, 1, ceiling, cold);
}

static bool take_measurement(Case *c, TakeTurns *take, Ceiling *ceiling, Samples *s, size_t i) {
  const double seconds = c->settings->seconds / 2 / MEASUREMENTS;
  Contestant contestants[3] = {case_ngrad(c), case_ceiling(ceiling)};
  if (c->peer) contestants[2] = case_peer(c);
  if (!take(contestants, c->peer ? 3 : 2, c->settings->threads, seconds)) return false;
  s->ngrad_ms[i] = contestants[0].median_ms;
  s->ceiling_ms[i] = contestants[1].median_ms;
  s->peer_ms[i] = c->peer ? contestants[2].median_ms : NAN;
  s->speed_up[i] = s->peer_ms[i] / s->ngrad_ms[i];
  s->ceiling_ratio[i] = s->ceiling_ms[i] / s->ngrad_ms[i];
  return true;
}

static double middle(double *sorted_here) {
  return isnan(sorted_here[0]) ? NAN : samples_median(sorted_here, MEASUREMENTS);
}

static CacheState middle_of(Samples *s) {
  return (CacheState){.ngrad_ms = middle(s->ngrad_ms),
                      .peer_ms = middle(s->peer_ms),
                      .ceiling_ms = middle(s->ceiling_ms),
                      .speed_up = middle(s->speed_up),
                      .ceiling_ratio = middle(s->ceiling_ratio)};
}

static bool measure(Case *c, const Ceiling *ceiling, States *out) {
  Way cold_way, hot_way;
  Samples cold, hot;
  bool ok = choose_ways(c, ceiling, &cold_way, &hot_way);
  for (size_t i = 0; ok && i < MEASUREMENTS; i++)
    ok = take_measurement(c, turns_take_cold, &cold_way.ceiling, &cold, i) &&
         take_measurement(c, turns_take_hot, &hot_way.ceiling, &hot, i);
  if (!ok || c->has_failed) return false;
  *out = (States){middle_of(&cold), middle_of(&hot)};
  return true;
}

bool states_measure(Case *c, uint64_t nread_twice, States *out) {
  Ceiling ceiling;
  bool ok = ceiling_init(&ceiling, &system_allocator, case_bytes_read(c) + nread_twice, case_bytes_written(c),
                         c->settings->threads);
  if (ok) {
    ok = measure(c, &ceiling, out);
    ceiling_deinit(&ceiling);
  }
  if (!ok && !is_interrupted()) plain_error("%s: it did not run", ng_graph_name(c->graph));
  return ok;
}
