#include "frontend/api/scale_model.h"

#include <math.h>

typedef struct Phase {
  double nmessages, nbytes, nadded; // nadded: bytes added after the phase
  double nsteps;                    // messages that wait for each other
} Phase;

typedef struct Exchange { // of one bucket
  Phase phases[2];
  double ready_ms, done_ms; // of the leaf's function; of the current phase
  int phase;                // the current phase, from 0; -1: not begun
} Exchange;

typedef struct Clock {
  const Network *network;
  double cpu, link;          // when they become free
  double latency, bandwidth; // times that exchanges need
  double additions;          // time on the processor
} Clock;

// Phases

static void set_phases(Phase *phases, Scheme scheme, double count, const struct ngrad_bucket *b,
                       const StepExchange *exchange) {
  const double others = (b->nbytes ? 1 : 0) * (count - 1), nbytes = (double)b->nbytes * (count - 1) / count;
  if (scheme == SCHEME_RING) {
    phases[0] = (Phase){others, nbytes, nbytes, others};
    phases[1] = (Phase){others, nbytes, 0, others};
  } else {
    const double rounds = (double)exchange->nrounds;
    phases[0] = (Phase){(double)exchange->subtrees.count, (double)exchange->subtrees.nbytes,
                        (double)exchange->nbytes_added, rounds};
    phases[1] = (Phase){(double)exchange->results.count, (double)exchange->results.nbytes, 0, rounds};
  }
}

// Events

static void add_bytes(Clock *t, double nbytes) {
  const double ms = nbytes / t->network->added_per_ms;
  t->cpu += ms;
  t->additions += ms;
}

// The link sends one message after the other; each message that waits for the previous one adds a latency.
static void begin_phase(Clock *t, Exchange *e, int phase) {
  const Phase *p = &e->phases[phase];
  const Network *n = t->network;
  const double own_latency = p->nsteps * fmax(n->latency_ms - n->overhead_ms, 0);
  const double overhead = p->nmessages * n->overhead_ms, transfer = p->nbytes / n->nbytes_per_ms;
  t->link = fmax(t->link, t->cpu) + overhead + transfer;
  t->latency += overhead + own_latency;
  t->bandwidth += transfer;
  e->done_ms = t->link + own_latency;
  e->phase = phase;
}

static void go_on(Clock *t, Exchange *e) {
  if (e->phase == 1) {
    e->phase = 2;
    return;
  }
  add_bytes(t, e->phases[0].nadded);
  begin_phase(t, e, 1);
}

static void poke(Clock *t, Exchange *exchanges, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (exchanges[i].phase >= 0 && exchanges[i].phase < 2 && exchanges[i].done_ms <= t->cpu) go_on(t, &exchanges[i]);
}

static size_t next_ready(const Exchange *exchanges, size_t count) {
  size_t next = count;
  for (size_t i = 0; i < count; i++)
    if (exchanges[i].phase < 0 && (next == count || exchanges[i].ready_ms < exchanges[next].ready_ms)) next = i;
  return next;
}

// Simulates the last leaf, during which exchanges begin, and the wait for them, in the order of a run.
static void run_last_leaf(Clock *t, const struct ngrad_stage *s, Exchange *exchanges, double leaf_ms,
                          int64_t additions) {
  double computed = 0;
  for (size_t i = next_ready(exchanges, s->nbuckets); i < s->nbuckets; i = next_ready(exchanges, s->nbuckets)) {
    t->cpu += exchanges[i].ready_ms - computed;
    computed = exchanges[i].ready_ms;
    add_bytes(t, (double)additions * (double)s->buckets[i].nbytes);
    begin_phase(t, &exchanges[i], 0);
    poke(t, exchanges, s->nbuckets);
  }
  t->cpu += leaf_ms - computed;
  poke(t, exchanges, s->nbuckets);
  for (size_t i = 0; i < s->nbuckets; i++)
    while (exchanges[i].phase < 2) {
      t->cpu = fmax(t->cpu, exchanges[i].done_ms);
      go_on(t, &exchanges[i]);
    }
}

bool model_cost(const ModelStep *m, int64_t count, const StepLoad *load, const StepExchange *exchanges, Scheme scheme,
                const Network *network, const Allocator *a, ModelCost *cost) {
  Clock t = {.network = network};
  const double leaves = (double)load->most_leaves, average = (double)m->step->nleaves / (double)count;
  const double *ready = m->ready_ms;
  Exchange *own = allocator_alloc(a, (m->nbuckets + 1) * sizeof *own);
  *cost = (ModelCost){0};
  if (!own) return false;
  for (size_t i = 0; i < m->step->nstages; i++) {
    const struct ngrad_stage *s = &m->step->stages[i];
    for (size_t b = 0; b < s->nbuckets; b++) {
      own[b] = (Exchange){.ready_ms = fmin(ready[b], m->leaf_ms[i]), .phase = -1};
      set_phases(own[b].phases, scheme, (double)count, &s->buckets[b], &exchanges[b]);
    }
    t.cpu += m->common_ms[i] + (leaves - 1) * m->leaf_ms[i];
    add_bytes(&t, (double)(load->additions - load->last_additions) * (double)s->shared_nbytes);
    run_last_leaf(&t, s, own, m->leaf_ms[i], load->last_additions);
    cost->common += m->common_ms[i];
    cost->leaves += average * m->leaf_ms[i];
    cost->imbalance += (leaves - average) * m->leaf_ms[i];
    ready += s->nbuckets;
    exchanges += s->nbuckets;
  }
  allocator_free(a, own);
  const double waited = t.cpu - cost->common - cost->leaves - cost->imbalance - t.additions;
  const double needed = t.latency + t.bandwidth;
  cost->step = t.cpu;
  cost->additions = t.additions;
  cost->latency = needed > 0 ? fmax(waited, 0) * t.latency / needed : 0;
  cost->bandwidth = needed > 0 ? fmax(waited, 0) * t.bandwidth / needed : 0;
  return true;
}
