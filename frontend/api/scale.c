// Costs of steps on many ranks: the times of a step's functions, measured or given, and one row for each number of
// ranks.
#include "frontend/api/scale_model.h"

#include "backends/codegen/toolchain/compilers.h"
#include "frontend/api/budget.h"
#include "frontend/api/kernel.h"
#include "frontend/api/random.h"
#include "frontend/api/timing.h"

#include <math.h>
#include <string.h>

enum { MOST_RANKS = 1000000 };

typedef struct Scale {
  ng_graph *g;
  const ng_options *options;
  const ng_scale_options *wanted;
  ng_scale_basis *basis;
  Arena arena;
  struct ngrad_step step;
  size_t nfunctions, nbuckets;
  StepTimes times; // for one leaf
  double *common_ms, *leaf_ms;
} Scale;

static double *numbers_new(Scale *s, size_t count, double value) {
  double *numbers = ARENA_ARRAY(&s->arena, double, count + 1);
  for (size_t i = 0; numbers && i < count; i++) numbers[i] = value;
  return numbers;
}

static ng_status begin(Scale *s, const Stages *stages) {
  s->step = stages->step;
  s->nfunctions = stages->nfunctions;
  s->nbuckets = 0;
  for (size_t i = 0; i < s->step.nstages; i++) s->nbuckets += s->step.stages[i].nbuckets;
  s->times.functions = numbers_new(s, s->nfunctions, INFINITY);
  s->times.buckets = numbers_new(s, s->nbuckets, INFINITY);
  s->common_ms = numbers_new(s, s->step.nstages, 0);
  s->leaf_ms = numbers_new(s, s->step.nstages, 0);
  return s->times.functions && s->times.buckets && s->common_ms && s->leaf_ms ? NG_OK : out_of_memory_status(s->g->ctx);
}

static void set_stages(Scale *s) {
  for (size_t i = 0; i < s->step.nstages; i++) {
    const struct ngrad_stage *stage = &s->step.stages[i];
    if (stage->common) s->common_ms[i] = s->times.functions[stage->common->number];
    if (stage->leaf) s->leaf_ms[i] = s->times.functions[stage->leaf->number];
  }
}

// Measured times

typedef struct Run {
  ng_kernel *kernel;
  Tensor *tensors; // for one leaf; outputs are the inputs' memory where they update states
  void **pointers;
  bool *is_own;
  void *memory;
  size_t count;
} Run;

static bool make_tensor(const Scale *s, Run *r, size_t i, const Value *v) {
  if (!tensor_make(s->g->ctx, v->name, &r->tensors[i])) return false;
  r->is_own[i] = true;
  r->pointers[i] = r->tensors[i].data;
  if (i < r->kernel->ninputs) random_fill(&r->tensors[i], 0, i, distribution_of(v));
  return true;
}

// Makes random inputs of one leaf, and its outputs.
static bool make_tensors(Scale *s, Run *r) {
  const Graph *g = s->g->graph;
  const ng_kernel *k = r->kernel;
  const ng_ranks first = {.count = g->nleaves};
  r->count = k->ninputs + k->noutputs;
  r->tensors = ARENA_ARRAY(&s->arena, Tensor, r->count + 1);
  r->pointers = ARENA_ARRAY(&s->arena, void *, r->count + 1);
  r->is_own = ARENA_ARRAY(&s->arena, bool, r->count + 1);
  if (!r->tensors || !r->pointers || !r->is_own) return false;
  memcpy(r->tensors, k->tensors, r->count * sizeof *r->tensors);
  staged_own_extents(k->graph, &first, r->tensors);
  for (size_t i = 0; i < k->ninputs; i++)
    if (!make_tensor(s, r, i, g->inputs[i])) return false;
  for (size_t i = 0; i < ng_graph_state_count(s->g); i++) {
    const ng_state state = ng_graph_state(s->g, i);
    if (state.is_updated) r->pointers[k->ninputs + state.output] = r->pointers[state.input];
  }
  for (size_t i = 0; i < k->noutputs; i++)
    if (!r->pointers[k->ninputs + i] && !make_tensor(s, r, k->ninputs + i, g->outputs[i])) return false;
  return true;
}

static ng_status time_functions(Scale *s, Run *r) {
  const Staged *staged = r->kernel->staged;
  const double seconds = s->wanted->seconds > 0 ? s->wanted->seconds : 1, start = milliseconds_now();
  double elapsed = 0;
  Team team;
  StepStatus status = STEP_DONE;
  team_init(&team, s->wanted->threads ? s->wanted->threads : ng_thread_count());
  team_pin(&team);
  for (int i = 0; status == STEP_DONE && (i < LEAST_ROUNDS || (elapsed < seconds * 1e3 && i < MOST_ROUNDS)); i++) {
    status = step_time(&s->step, staged->functions, (const void *const *)r->pointers, r->pointers + r->kernel->ninputs,
                       team.threads, r->memory, &s->times);
    elapsed = milliseconds_now() - start;
    report_progress(s->g->ctx, "timing the functions of the step", fmin(elapsed / (seconds * 1e3), 1));
  }
  team_unpin(&team);
  return status == STEP_DONE ? NG_OK : out_of_memory_status(s->g->ctx);
}

static void run_free(Scale *s, Run *r) {
  for (size_t i = 0; r->is_own && i < r->count; i++)
    if (r->is_own[i]) tensor_free(&r->tensors[i], &s->g->ctx->allocator);
  allocator_free(&s->g->ctx->allocator, r->memory);
}

static ng_status measure(Scale *s, const ng_kernel *k) {
  enum { ALIGNMENT = 64 };
  Run r = {.kernel = (ng_kernel *)k};
  ng_status status = begin(s, &k->staged->stages);
  if (status == NG_OK && !make_tensors(s, &r)) status = NG_OUT_OF_MEMORY;
  if (status == NG_OK) r.memory = allocator_alloc(&s->g->ctx->allocator, step_time_nbytes(&s->step) + ALIGNMENT);
  if (status == NG_OK && !r.memory) status = out_of_memory_status(s->g->ctx);
  if (status == NG_OK) {
    Run aligned = r;
    aligned.memory = (char *)r.memory + (ALIGNMENT - (size_t)r.memory % ALIGNMENT) % ALIGNMENT;
    status = time_functions(s, &aligned);
  }
  run_free(s, &r);
  if (status == NG_OK) set_stages(s);
  return status;
}

// Measures how fast a rank adds the buffers that leaves share, outside the caches.
static ng_status measure_additions(const Scale *s, double *bandwidth) {
  enum { NBYTES = 16 << 20, ROUNDS = 5 };
  float *numbers = allocator_alloc(&s->g->ctx->allocator, (size_t)2 * NBYTES);
  double least = INFINITY;
  if (!numbers) return out_of_memory_status(s->g->ctx);
  memset(numbers, 0, (size_t)2 * NBYTES);
  for (int i = 0; i < ROUNDS; i++) {
    const double start = milliseconds_now();
    step_add(numbers, numbers + NBYTES / sizeof *numbers, NBYTES);
    least = fmin(least, milliseconds_now() - start);
  }
  allocator_free(&s->g->ctx->allocator, numbers);
  *bandwidth = NBYTES / fmax(least, 1e-6) * 1e3;
  return NG_OK;
}

// Given times are divided among the leaf's kernels by operations, or by bytes where these take longer.

static double kernel_work(const ng_profile_kernel *k) {
  const double operations_per_byte = 4; // operations that a processor does in the time of one byte from memory
  return fmax(k->operations, operations_per_byte * (double)(k->bytes_read + k->bytes_written));
}

// The work of the program's kernels, up to and including the kernel with this part.
static double work_until(const Profile *p, size_t part) {
  double work = 0;
  size_t nparts = 0;
  for (size_t i = 0; i < p->shown.nkernels; i++) {
    work += kernel_work(&p->kernels[i]);
    nparts += p->nsamples[i];
    if (part <= nparts) return work;
  }
  return work;
}

static ng_status estimate_stage(Scale *s, Stages *stages, size_t index, double *ready, size_t *parts) {
  const struct ngrad_stage *stage = &stages->stages[index];
  Build b;
  Profile *profile = NULL;
  ng_status status = build_graph_of(&b, s->g, stages->functions[stage->leaf->number], s->options);
  if (status == NG_OK) status = build_kernels(&b);
  if (status == NG_OK) profile = profile_new(b.program, &s->g->ctx->allocator);
  if (status == NG_OK && !profile) status = out_of_memory_status(s->g->ctx);
  if (status == NG_OK) {
    step_find_parts(stage, b.program, parts);
    s->leaf_ms[index] = work_until(profile, SIZE_MAX);
    for (size_t i = 0; i < stage->nbuckets; i++) ready[i] = work_until(profile, parts[i]);
  }
  profile_free(profile);
  build_deinit(&b);
  return status;
}

static ng_status estimate_stages(Scale *s, Stages *stages) {
  ng_status status = begin(s, stages);
  size_t *parts = ARENA_ARRAY(&s->arena, size_t, s->nbuckets + 1);
  double *ready = s->times.buckets, work = 0;
  if (status == NG_OK && !parts) status = out_of_memory_status(s->g->ctx);
  for (size_t i = 0; i < s->step.nstages && status == NG_OK; i++) {
    if (s->step.stages[i].leaf) status = estimate_stage(s, stages, i, ready, parts);
    work += s->leaf_ms[i];
    ready += s->step.stages[i].nbuckets;
  }
  if (status != NG_OK || !s->step.nstages) return status;
  const double ms_of_work = work > 0 ? s->wanted->leaf_ms / work : 0;
  for (size_t i = 0; i < s->step.nstages; i++) s->leaf_ms[i] *= ms_of_work;
  for (size_t i = 0; i < s->nbuckets; i++) s->times.buckets[i] *= ms_of_work;
  s->common_ms[s->step.nstages - 1] = s->wanted->common_ms;
  return NG_OK;
}

// Rows

static double given_or(double given, double otherwise) {
  return given > 0 ? given : given < 0 ? 0 : otherwise;
}

static void set_basis(Scale *s) {
  ng_scale_basis *b = s->basis;
  b->leaves = s->step.nleaves;
  b->buckets = s->nbuckets;
  b->latency_ms = given_or(s->wanted->latency_ms, 2e-3);
  b->overhead_ms = given_or(s->wanted->overhead_ms, b->latency_ms);
  b->bandwidth = given_or(s->wanted->bandwidth, 12.5e9);
  b->is_measured = !(s->wanted->leaf_ms > 0);
  for (size_t i = 0; i < s->step.nstages; i++) {
    b->leaf_ms += s->leaf_ms[i];
    b->common_ms += s->common_ms[i];
    b->exchanges += s->step.stages[i].nbuckets > 0;
    for (size_t k = 0; k < s->step.stages[i].nbuckets; k++) b->shared_nbytes += s->step.stages[i].buckets[k].nbytes;
  }
}

typedef struct StepCosts {
  StepLoad load;
  ModelCost by_scheme[SCHEME_COUNT];
} StepCosts;

// The cost for a batch of `leaves` leaves, each of which takes `size` times as long as a leaf of the graph.
static bool find_costs(const Scale *s, int64_t leaves, double size, int64_t ranks, StepCosts *costs) {
  const ng_scale_basis *b = s->basis;
  const Allocator *a = &s->g->ctx->allocator;
  const int threads = s->wanted->threads ? s->wanted->threads : ng_thread_count();
  const double cores = s->wanted->cores, slower = cores > 0 ? fmax((double)ranks * threads / cores, 1) : 1;
  const double adders = cores > 0 ? fmax((double)ranks / cores, 1) : 1;
  const Network network = {b->latency_ms, b->overhead_ms, b->bandwidth / 1e3, b->add_bandwidth / adders / 1e3};
  struct ngrad_step step = s->step;
  Arena arena;
  bool ok = true;
  step.nleaves = leaves;
  arena_init(&arena, a);
  StepExchange *exchanges = ARENA_ARRAY(&arena, StepExchange, s->nbuckets + 1);
  double *common = ARENA_ARRAY(&arena, double, step.nstages + 1), *leaf = ARENA_ARRAY(&arena, double, step.nstages + 1);
  double *ready = ARENA_ARRAY(&arena, double, s->nbuckets + 1);
  ok = exchanges && common && leaf && ready && step_find_load(&step, ranks, a, &costs->load, exchanges);
  for (size_t i = 0; ok && i < step.nstages; i++) {
    common[i] = s->common_ms[i] * slower;
    leaf[i] = s->leaf_ms[i] * size * slower;
  }
  for (size_t i = 0; ok && i < s->nbuckets; i++) ready[i] = s->times.buckets[i] * size * slower;
  const ModelStep model = {&step, common, leaf, ready, s->nbuckets};
  for (Scheme scheme = SCHEME_OWN; ok && scheme < SCHEME_COUNT; scheme++)
    ok = model_cost(&model, ranks, &costs->load, exchanges, scheme, &network, a, &costs->by_scheme[scheme]);
  arena_deinit(&arena);
  return ok;
}

static const char *bound_of(const ModelCost *c) {
  const struct {
    const char *name;
    double ms;
  } parts[] = {{"compute", c->leaves},      {"leaves", c->imbalance}, {"common", c->common},
               {"additions", c->additions}, {"latency", c->latency},  {"bandwidth", c->bandwidth}};
  size_t largest = 0;
  for (size_t i = 1; i < sizeof parts / sizeof *parts; i++)
    if (parts[i].ms > parts[largest].ms) largest = i;
  return parts[largest].name;
}

// Tries the two numbers ranks * 2^k nearest to the number of leaves, below and above. Takes the one with the shorter
// steps, if they are at least one percent shorter than now.
static bool find_better(const Scale *s, ng_scale_row *row) {
  const int64_t leaves = s->step.nleaves;
  const double halvings = fmax(log2((double)leaves / (double)row->ranks), 0),
               ways[] = {floor(halvings), ceil(halvings)};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    const int64_t better = row->ranks << (int)ways[i];
    StepCosts costs;
    if (better > MOST_LEAVES || better == leaves) continue;
    if (!find_costs(s, better, (double)leaves / (double)better, row->ranks, &costs)) return false;
    const double ms = costs.by_scheme[SCHEME_OWN].step;
    if (ms >= (row->better_leaves ? row->better_ms : 0.99 * row->step_ms)) continue;
    row->better_leaves = better;
    row->better_ms = ms;
    row->better_nbytes = costs.load.nbytes_sent;
  }
  return true;
}

// Tries the largest power of two that is at most the number of ranks with leaves, and takes it if its steps are
// shorter.
static bool find_fewer(const Scale *s, ng_scale_row *row) {
  int64_t fewer = 1;
  StepCosts costs;
  while (fewer <= (row->ranks - row->idle_ranks) / 2) fewer *= 2;
  if (!find_costs(s, s->step.nleaves, 1, fewer, &costs)) return false;
  const double ms = costs.by_scheme[SCHEME_OWN].step;
  if (ms >= row->step_ms) return true;
  row->fewer_ranks = fewer;
  row->fewer_ms = ms;
  return true;
}

static bool set_row(const Scale *s, const ModelCost *alone, int64_t ranks, ng_scale_row *row) {
  const int64_t leaves = s->step.nleaves;
  const double enough = 1.1;
  StepCosts costs;
  if (!find_costs(s, leaves, 1, ranks, &costs)) return false;
  const ModelCost *own = &costs.by_scheme[SCHEME_OWN];
  *row = (ng_scale_row){
      .ranks = ranks,
      .idle_ranks = ranks > leaves ? ranks - leaves : 0,
      .most_leaves = costs.load.most_leaves,
      .step_ms = own->step,
      .ring_ms = costs.by_scheme[SCHEME_RING].step,
      .efficiency = own->step > 0 ? alone->step / own->step / (double)ranks : 1,
      .leaves_ms = own->leaves,
      .imbalance_ms = own->imbalance,
      .common_ms = own->common,
      .additions_ms = own->additions,
      .latency_ms = own->latency,
      .bandwidth_ms = own->bandwidth,
      .bound = bound_of(own),
      .nbytes = costs.load.nbytes_sent,
      .ring_nbytes = (uint64_t)(2 * (double)s->basis->shared_nbytes * (double)(ranks - 1) / (double)ranks),
      .nmessages = costs.load.nmessages,
      .all_nbytes = costs.load.all_nbytes,
      .all_nmessages = costs.load.all_messages,
  };
  row->is_uneven = (double)row->most_leaves * (double)ranks > enough * (double)leaves;
  row->is_costly = (double)row->nbytes > enough * (double)row->ring_nbytes;
  return find_fewer(s, row) && ((!row->is_uneven && !row->is_costly) || find_better(s, row));
}

static ng_status set_rows(Scale *s, const int64_t *ranks, size_t nranks, ng_scale_row *rows) {
  ng_status status = NG_OK;
  StepCosts alone;
  if (s->wanted->leaves > 0) s->step.nleaves = s->wanted->leaves;
  set_basis(s);
  s->basis->add_bandwidth = s->wanted->add_bandwidth;
  if (!(s->wanted->add_bandwidth > 0)) status = measure_additions(s, &s->basis->add_bandwidth);
  if (status != NG_OK) return status;
  bool ok = find_costs(s, s->step.nleaves, 1, 1, &alone);
  for (size_t i = 0; ok && i < nranks; i++) {
    ok = set_row(s, &alone.by_scheme[SCHEME_OWN], ranks[i], &rows[i]);
    report_progress(s->g->ctx, "counting messages", (double)(i + 1) / (double)nranks);
  }
  return ok ? NG_OK : out_of_memory_status(s->g->ctx);
}

static ng_status check(const Scale *s, const int64_t *ranks, size_t nranks) {
  ng_context *ctx = s->g->ctx;
  if (!s->g->graph->nleaves)
    return argument_error(ctx, "%s: has no leaves, which ngrad train --accumulate N makes for N of 2 or more",
                          s->g->graph->name);
  if (s->wanted->leaves < 0 || s->wanted->leaves > MOST_LEAVES)
    return argument_error(ctx, "expected leaves up to %d, found %lld", MOST_LEAVES, (long long)s->wanted->leaves);
  if (s->wanted->threads < 0 || s->wanted->threads > MOST_THREADS)
    return argument_error(ctx, "expected threads from 0 to %d, found %d", MOST_THREADS, s->wanted->threads);
  if (!(s->wanted->bandwidth >= 0)) return argument_error(ctx, "expected a bandwidth of more than 0");
  for (size_t i = 0; i < nranks; i++)
    if (ranks[i] < 1 || ranks[i] > MOST_RANKS)
      return argument_error(ctx, "expected ranks from 1 to %d, found %lld", MOST_RANKS, (long long)ranks[i]);
  return ng_graph_bind(s->g);
}

static ng_status scale_given(Scale *s, const int64_t *ranks, size_t nranks, ng_scale_row *rows) {
  Stages stages;
  Call call = call_begin(s->g->ctx);
  const bool is_cut = stages_cut(&stages, s->g->graph, BUCKET_NBYTES, &s->g->ctx->diagnostics);
  ng_status status = is_cut ? NG_OK : call_end(s->g->ctx, call);
  if (status == NG_OK) status = estimate_stages(s, &stages);
  if (status == NG_OK) status = set_rows(s, ranks, nranks, rows);
  stages_free(&stages);
  return status;
}

static ng_status scale_measured(Scale *s, const int64_t *ranks, size_t nranks, ng_scale_row *rows) {
  ng_kernel *k = ng_compile(s->g, s->options);
  ng_status status = k ? measure(s, k) : ng_last_status(s->g->ctx);
  if (status == NG_OK) status = set_rows(s, ranks, nranks, rows);
  ng_kernel_free(k);
  return status;
}

ng_status ng_scale(ng_graph *g, const ng_options *options, const ng_scale_options *scale, const int64_t *ranks,
                   size_t nranks, ng_scale_basis *basis, ng_scale_row *rows) {
  Scale s = {.g = g, .options = options, .wanted = scale, .basis = basis};
  *basis = (ng_scale_basis){0};
  ng_status status = check(&s, ranks, nranks);
  if (status != NG_OK) return status;
  arena_init(&s.arena, &g->ctx->allocator);
  status = scale->leaf_ms > 0 ? scale_given(&s, ranks, nranks, rows) : scale_measured(&s, ranks, nranks, rows);
  arena_deinit(&s.arena);
  return status;
}
