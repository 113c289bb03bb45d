#include "backends/codegen/leaves/leaves.h"

#include "backends/codegen/toolchain/compilers.h"

#include <math.h>
#include <string.h>

// Texts that include nothing themselves, as they are also printed.
#include "backends/codegen/leaves/sums.h"

#include "backends/codegen/leaves/run.h"

static bool loop_stores(const Kernel *k, const Loop *loop, const Value *v) {
  for (size_t r = 0; r < loop->nroots; r++)
    if (loop->roots[r].kind == ROOT_STORE && k->accesses[loop->roots[r].access].value == v) return true;
  return false;
}

static bool kernel_loads(const Kernel *k, const Value *v) {
  for (size_t e = 1; e < k->nexprs; e++)
    if (expr_has_access(&k->exprs[e]) && k->accesses[k->exprs[e].access].value == v) return true;
  return false;
}

// The part after which the output is complete and no longer loaded, so that an exchange may overwrite it.
static size_t part_of(const Program *p, size_t index) {
  const Value *output = p->graph->outputs[index];
  size_t part = SIZE_MAX, nloops = 0, slice_group_part = 0;
  if (program_copies_output(p, index)) return SIZE_MAX;
  for (size_t i = 0; i < p->graph->noutputs; i++)
    if (i != index && p->graph->outputs[i] == output) return SIZE_MAX; // the output is copied at the end
  for (size_t i = 0; i < p->nkernels; i++) {
    const Schedule *s = p->schedules[i];
    const ProgramSliceGroup *slice_group = program_slice_group(p, i);
    if (slice_group && slice_group->first == i)
      slice_group_part = 1 + nloops; // a slice group is one part: its first loop
    for (size_t l = 0; l < s->nloops; l++, nloops++)
      if (loop_stores(s->kernel, &s->loops[l], output)) part = slice_group ? slice_group_part : 1 + nloops;
    if (part != SIZE_MAX && kernel_loads(s->kernel, output)) part = slice_group ? slice_group_part : nloops;
  }
  return part;
}

static bool is_in(const struct ngrad_bucket *b, const struct ngrad_place *place) {
  return place->kind == ngrad_PLACE_SHARE && place->offset >= b->offset && place->offset < b->offset + b->nbytes;
}

void step_find_parts(const struct ngrad_stage *stage, const Program *leaf, size_t *parts) {
  const struct ngrad_function *f = stage->leaf;
  for (size_t b = 0; b < stage->nbuckets; b++) {
    parts[b] = 0;
    for (size_t i = 0; i < f->noutputs; i++) {
      const size_t part = is_in(&stage->buckets[b], &f->outputs[i]) ? part_of(leaf, i) : 0;
      if (part > parts[b]) parts[b] = part;
    }
  }
}

typedef struct Functions {
  Compiled *const *items;
  int threads;
} Functions;

static int call(void *context, uint32_t function, const void *const *inputs, void *const *outputs, void *scratch,
                void (*mark)(void *context, size_t part), void *mark_context) {
  const Functions *f = context;
  Watch watch = {.mark = mark, .mark_context = mark_context};
  (void)scratch; // a compiled function has its own workspace
  return compiled_run(f->items[function], (void *const *)inputs, outputs, f->threads, mark ? &watch : NULL)
             ? STEP_DONE
             : STEP_OUT_OF_MEMORY;
}

size_t step_nbytes(const struct ngrad_step *step, const struct ngrad_ranks *ranks) {
  return ngrad_step_nbytes(step, ranks);
}

StepStatus step_run(const struct ngrad_step *step, const struct ngrad_ranks *ranks, Compiled *const *functions,
                    const void *const *inputs, void *const *outputs, int threads, void *memory) {
  Functions all = {functions, threads};
  const struct ngrad_caller caller = {&all, call};
  const int status = ngrad_step_run(step, ranks, &caller, inputs, outputs, memory);
  return status == ngrad_RANKS_FAILED ? STEP_RANKS_FAILED : (StepStatus)status;
}

int64_t step_first_leaf(int64_t nleaves, int64_t rank, int64_t count) {
  return ngrad_first_leaf(nleaves, rank, count);
}

// What a run exchanges

static uint64_t most(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

typedef struct RankLoad {
  uint64_t nsubtrees, nbytes_sent, nbytes_received, nmessages;
} RankLoad;

typedef struct LoadOfAll {
  struct ngrad_run run; // its rank is not set
  RankLoad *ranks;
  uint64_t nsubtrees; // of all ranks
} LoadOfAll;

static void add_messages(StepLoad *load, RankLoad *rank, StepMessages *phase, StepMessages sent,
                         StepMessages received) {
  rank->nbytes_sent += sent.nbytes;
  rank->nbytes_received += received.nbytes;
  rank->nmessages += sent.count;
  load->all_nbytes += sent.nbytes;
  load->all_messages += sent.count;
  phase->nbytes = most(phase->nbytes, most(sent.nbytes, received.nbytes));
  phase->count = most(phase->count, most(sent.count, received.count));
}

// Counts the messages that ngrad_send_half sends.
static void load_tree(LoadOfAll *all, const struct ngrad_bucket *b, StepLoad *load, StepExchange *exchange) {
  const int rounds = all->run.rounds;
  exchange->nrounds = (uint64_t)rounds;
  for (int64_t q = 0; q < all->run.nranks; q++) {
    StepMessages up = {0}, down = {0};
    uint64_t nadded = 0;
    for (int round = 0; round < rounds; round++) {
      size_t begin, end;
      ngrad_find_half(b, q, round + 1, &begin, &end);
      const uint64_t own = end - begin;
      ngrad_find_half(b, q ^ (int64_t)1 << round, round + 1, &begin, &end);
      const uint64_t others = end - begin;
      up.nbytes += others;
      down.nbytes += own;
      up.count += others > 0;
      down.count += own > 0;
      nadded += round + 1 < rounds ? own : 2 * own; // the last round divides, too
    }
    // A rank sends down as many bytes as it receives up, and the reverse.
    add_messages(load, &all->ranks[q], &exchange->subtrees, up, down);
    add_messages(load, &all->ranks[q], &exchange->results, down, up);
    exchange->nbytes_added = most(exchange->nbytes_added, nadded);
  }
}

// Counts the messages that ngrad_send_subtrees and ngrad_send_results send.
static void load_bucket(LoadOfAll *all, const struct ngrad_bucket *b, StepLoad *load, StepExchange *exchange) {
  const uint64_t count = (uint64_t)all->run.nranks;
  uint64_t nsegments = 0;
  size_t begin, end;
  *exchange = (StepExchange){.nrounds = count > 1};
  if (all->run.rounds) {
    load_tree(all, b, load, exchange);
    return;
  }
  for (uint64_t q = 0; q < count; q++) {
    ngrad_find_segment(&all->run, b, (int64_t)q, &begin, &end);
    nsegments += end > begin;
  }
  for (uint64_t q = 0; q < count && count > 1; q++) {
    RankLoad *rank = &all->ranks[q];
    ngrad_find_segment(&all->run, b, (int64_t)q, &begin, &end);
    const uint64_t own = end - begin, has_own = own > 0, nsubtrees = all->nsubtrees - rank->nsubtrees;
    add_messages(load, rank, &exchange->subtrees,
                 (StepMessages){rank->nsubtrees * (b->nbytes - own), rank->nsubtrees * (nsegments - has_own)},
                 (StepMessages){nsubtrees * own, nsubtrees * has_own});
    add_messages(load, rank, &exchange->results, (StepMessages){(count - 1) * own, (count - 1) * has_own},
                 (StepMessages){b->nbytes - own, nsegments - has_own});
    exchange->nbytes_added = most(exchange->nbytes_added, all->nsubtrees * own);
  }
}

static void load_leaves(LoadOfAll *all, StepLoad *load) {
  const int64_t nleaves = all->run.step->nleaves, count = all->run.nranks;
  for (int64_t q = 0; q < count; q++) {
    const int64_t first = ngrad_first_leaf(nleaves, q, count), end = ngrad_first_leaf(nleaves, q + 1, count);
    struct ngrad_node nodes[ngrad_MOST_NODES];
    int depth = 0, merges = 0;
    for (int64_t leaf = first; leaf < end; leaf++) {
      merges = ngrad_push_node(nleaves, nodes, depth, leaf, leaf + 1);
      depth += 1 - merges;
    }
    all->ranks[q].nsubtrees = (uint64_t)depth;
    all->nsubtrees += (uint64_t)depth;
    if (depth > load->most_subtrees) load->most_subtrees = depth;
    const bool is_busier = end - first > load->most_leaves;
    if (!is_busier && (end - first < load->most_leaves || merges <= load->last_additions)) continue;
    load->most_leaves = end - first;
    load->additions = end - first - depth;
    load->last_additions = merges;
  }
}

bool step_find_load(const struct ngrad_step *step, int64_t count, const Allocator *a, StepLoad *load,
                    StepExchange *exchanges) {
  LoadOfAll all = {.run = {.step = step, .nranks = count, .rounds = ngrad_find_rounds(step->nleaves, count)}};
  all.ranks = allocator_alloc(a, (size_t)count * sizeof *all.ranks);
  *load = (StepLoad){0};
  if (!all.ranks) return false;
  memset(all.ranks, 0, (size_t)count * sizeof *all.ranks);
  load_leaves(&all, load);
  for (size_t i = 0; i < step->nstages; i++)
    for (size_t b = 0; b < step->stages[i].nbuckets; b++)
      load_bucket(&all, &step->stages[i].buckets[b], load, exchanges++);
  for (int64_t q = 0; q < count; q++) {
    load->nbytes_sent = most(load->nbytes_sent, all.ranks[q].nbytes_sent);
    load->nbytes_received = most(load->nbytes_received, all.ranks[q].nbytes_received);
    load->nmessages = most(load->nmessages, all.ranks[q].nmessages);
  }
  allocator_free(a, all.ranks);
  return true;
}

// Times

typedef struct Timed {
  Functions functions;
  const struct ngrad_step *step;
  const StepTimes *times;
  double *buckets; // of the running function; NULL: not the leaves' function
  const struct ngrad_stage *stage;
  double begin_ms;
} Timed;

static void mark_time(void *context, size_t part) {
  const Timed *t = context;
  const double ms = milliseconds_now() - t->begin_ms;
  for (size_t i = 0; i < t->stage->nbuckets; i++)
    if (t->stage->buckets[i].part == part) t->buckets[i] = fmin(t->buckets[i], ms);
}

static int call_timed(void *context, uint32_t function, const void *const *inputs, void *const *outputs, void *scratch,
                      void (*mark)(void *context, size_t part), void *mark_context) {
  Timed *t = context;
  Watch watch = {.mark = mark_time, .mark_context = t};
  double *buckets = t->times->buckets;
  (void)scratch, (void)mark, (void)mark_context;
  t->buckets = NULL;
  for (size_t i = 0; i < t->step->nstages && !t->buckets; buckets += t->step->stages[i++].nbuckets) {
    t->stage = &t->step->stages[i];
    if (t->stage->leaf && t->stage->leaf->number == function) t->buckets = buckets;
  }
  t->begin_ms = milliseconds_now();
  const bool ok = compiled_run(t->functions.items[function], (void *const *)inputs, outputs, t->functions.threads,
                               t->buckets ? &watch : NULL);
  t->times->functions[function] = fmin(t->times->functions[function], milliseconds_now() - t->begin_ms);
  return ok ? STEP_DONE : STEP_OUT_OF_MEMORY;
}

static struct ngrad_step with_one_leaf(const struct ngrad_step *step) {
  struct ngrad_step one = *step;
  one.nleaves = 1;
  return one;
}

size_t step_time_nbytes(const struct ngrad_step *step) {
  const struct ngrad_step one = with_one_leaf(step);
  return ngrad_step_nbytes(&one, NULL);
}

StepStatus step_time(const struct ngrad_step *step, Compiled *const *functions, const void *const *inputs,
                     void *const *outputs, int threads, void *memory, const StepTimes *times) {
  const struct ngrad_step one = with_one_leaf(step);
  Timed timed = {.functions = {functions, threads}, .step = &one, .times = times};
  const struct ngrad_caller caller = {&timed, call_timed};
  const struct ngrad_ranks alone = {.count = 1};
  return (StepStatus)ngrad_step_run(&one, &alone, &caller, inputs, outputs, memory);
}

void step_add(float *a, const float *b, size_t nbytes) {
  ngrad_reduce_f32(a, b, nbytes / sizeof *a, 0);
}
