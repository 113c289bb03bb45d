// Times a kernel in alternation with the ceiling and the peak, on threads pinned to processors.
#include "backends/codegen/toolchain/compilers.h"
#include "frontend/api/ceiling.h"
#include "frontend/api/indices.h"
#include "frontend/api/kernel.h"
#include "frontend/api/peak.h"
#include "frontend/api/tensor_check.h"
#include "frontend/api/timing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PROFILED = 1 << 20 };

typedef struct Timing {
  ng_kernel *kernel;
  const ng_tensor *inputs;
  ng_tensor *outputs;
  const ng_bench_options *options;
  Team team;
  Ceiling ceiling;
  double *samples; // MOST_ROUNDS samples of the kernel, then of the ceiling, then of the peak
  double *profile; // most_rounds samples of profile_length numbers; NULL: no profile
  size_t profile_length;
  size_t most_rounds, nrounds, kernel_batch, ceiling_batch;
  ng_status status;
} Timing;

// Samples

static bool flush_tensors(const Timing *t) {
  bool ok = true;
  for (size_t i = 0; i < t->kernel->ninputs; i++) ok &= cache_flush(t->inputs[i].data, ng_tensor_nbytes(&t->inputs[i]));
  for (size_t i = 0; i < t->kernel->noutputs; i++)
    ok &= cache_flush(t->outputs[i].data, ng_tensor_nbytes(&t->outputs[i]));
  return ok;
}

static double time_kernel(Timing *t, size_t batch) {
  if (t->options->cold && !flush_tensors(t)) t->status = NG_USAGE;
  team_pin(&t->team);
  double *spent = t->profile ? t->profile + t->nrounds * t->profile_length : NULL;
  Watch watch = {.spent_ms = spent};
  if (spent) memset(spent, 0, t->profile_length * sizeof *spent);
  double start = milliseconds_now();
  for (size_t i = 0; i < batch && t->status == NG_OK; i++)
    t->status = kernel_run(t->kernel, t->inputs, t->outputs, t->team.threads, spent ? &watch : NULL);
  double ms = milliseconds_now() - start;
  if (spent) spent[0] = ms; // time of the whole run, instead of the time before the first loop
  for (size_t i = 0; spent && i < t->profile_length; i++) spent[i] /= (double)batch;
  return ms / (double)batch;
}

static double time_ceiling(const Timing *t, size_t batch) {
  const Ceiling *c = &t->ceiling;
  if (t->options->cold) cache_flush(c->from, (c->nread + c->nwritten) * 64);
  team_pin(&t->team);
  double start = milliseconds_now();
  for (size_t i = 0; i < batch; i++) ceiling_run(c);
  return (milliseconds_now() - start) / (double)batch;
}

static double time_peak(const Timing *t) {
  team_pin(&t->team);
  double start = milliseconds_now();
  peak_run(t->kernel->info.isa, t->team.threads);
  return milliseconds_now() - start;
}

static size_t batch_for(const Timing *t, double ms) {
  return t->options->cold ? 1 : runs_in_sample(ms);
}

// Finds how many runs a sample needs, and whether the ceiling is faster with streaming stores.
static void warm_up(Timing *t) {
  double kernel = 1e300, ceiling[2] = {1e300, 1e300};
  for (int round = 0; round < WARM_UP_ROUNDS && t->status == NG_OK; round++) {
    double ms = time_kernel(t, 1);
    if (ms < kernel) kernel = ms;
    time_peak(t);
    for (int way = 0; way < 2; way++) {
      t->ceiling.bypasses_cache = way;
      ms = time_ceiling(t, 1);
      if (ms < ceiling[way]) ceiling[way] = ms;
    }
  }
  t->ceiling.bypasses_cache = ceiling[1] < ceiling[0];
  t->kernel_batch = batch_for(t, kernel);
  t->ceiling_batch = batch_for(t, ceiling[t->ceiling.bypasses_cache]);
}

static void take_samples(Timing *t) {
  const double seconds = t->options->seconds > 0 ? t->options->seconds : 1;
  char what[320];
  snprintf(what, sizeof what, "timing %s", t->kernel->name);
  double start = milliseconds_now(), elapsed = 0;
  while (t->status == NG_OK && t->nrounds < t->most_rounds && (elapsed < seconds * 1e3 || t->nrounds < LEAST_ROUNDS)) {
    t->samples[t->nrounds] = time_kernel(t, t->kernel_batch);
    t->samples[MOST_ROUNDS + t->nrounds] = time_ceiling(t, t->ceiling_batch);
    t->samples[(size_t)2 * MOST_ROUNDS + t->nrounds] = time_peak(t);
    t->nrounds++;
    elapsed = milliseconds_now() - start;
    report_progress(t->kernel->ctx, what, elapsed < seconds * 1e3 ? elapsed / (seconds * 1e3) : 1);
  }
}

static void count_bytes(const ng_kernel *k, ng_bench_result *result) {
  for (size_t i = 0; i < k->ninputs; i++) result->bytes_read += tensor_nbytes(&k->tensors[i]);
  for (size_t i = 0; i < k->noutputs; i++) result->bytes_written += tensor_nbytes(&k->tensors[k->ninputs + i]);
}

// A profile of very many loops takes fewer rounds, to bound its memory.
static bool profile_begin(Timing *t) {
  t->most_rounds = MOST_ROUNDS;
  if (!t->kernel->profile) return true;
  t->profile_length = profile_sample_length(t->kernel->profile);
  if (t->most_rounds > MOST_PROFILED / t->profile_length) t->most_rounds = MOST_PROFILED / t->profile_length;
  if (t->most_rounds < LEAST_ROUNDS) t->most_rounds = LEAST_ROUNDS;
  t->profile = allocator_alloc(&t->kernel->ctx->allocator, t->most_rounds * t->profile_length * sizeof *t->profile);
  return t->profile;
}

// `samples` are sorted; replaces them by their distances from the median.
static void set_spread(double *samples, size_t count, ng_bench_result *result) {
  const double deviations = 5, deviation_of_mad = 1.4826; // of a normal distribution
  result->samples = count;
  result->min_ms = samples[0];
  result->max_ms = samples[count - 1];
  for (size_t i = 0; i < count; i++) samples[i] = fabs(samples[i] - result->median_ms);
  result->mad_ms = samples_median(samples, count);
  const double farthest = deviations * deviation_of_mad * result->mad_ms;
  for (size_t i = 0; i < count; i++) result->outliers += samples[i] > farthest;
}

static void set_bounds(const Timing *t, ng_bench_result *result) {
  const double peak_ms = samples_median(t->samples + (size_t)2 * MOST_ROUNDS, t->nrounds);
  const double peak_rate = peak_operations(t->kernel->info.isa, t->team.threads) / peak_ms;
  const double nbytes = (double)(result->bytes_read + result->bytes_written);
  result->operations = t->kernel->operations;
  result->peak_gflops = peak_rate * 1e-6;
  result->computes_longer = result->operations / peak_rate > result->ceiling_ms;
  if (t->profile) profile_set_bounds(t->kernel->profile, nbytes / result->ceiling_ms, peak_rate);
}

static void measure(Timing *t, ng_bench_result *result) {
  warm_up(t);
  take_samples(t);
  team_unpin(&t->team);
  if (t->status != NG_OK) return;
  if (t->profile) profile_set(t->kernel->profile, t->profile, t->nrounds);
  result->runs = t->nrounds * t->kernel_batch;
  result->median_ms = samples_median(t->samples, t->nrounds);
  set_spread(t->samples, t->nrounds, result);
  result->ceiling_ms = samples_median(t->samples + MOST_ROUNDS, t->nrounds);
  if (result->median_ms > 0) result->ceiling_ratio = result->ceiling_ms / result->median_ms;
  set_bounds(t, result);
}

ng_status ng_bench(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, const ng_bench_options *options,
                   ng_bench_result *result) {
  const Allocator *a = &k->ctx->allocator;
  *result = (ng_bench_result){0};
  if (options->threads < 0 || options->threads > MOST_THREADS)
    return argument_error(k->ctx, "expected threads from 0 to %d, found %d", MOST_THREADS, options->threads);
  const char *refusal = ng_kernel_refusal(k, inputs, outputs);
  if (refusal && refusal != refused_for_memory) return argument_error(k->ctx, "%s", refusal);
  const ng_status of_indices = refusal ? NG_OK : indices_tell(k->ctx, k->graph, inputs);
  if (of_indices != NG_OK) return of_indices;
  Timing t = {.kernel = k, .inputs = inputs, .outputs = outputs, .options = options};
  team_init(&t.team, options->threads ? options->threads : ng_thread_count());
  if (t.team.threads > CPU_COUNT(&t.team.allowed))
    return argument_error(k->ctx,
                          "expected at most %d threads, one for each processor that this process may use, found %d",
                          CPU_COUNT(&t.team.allowed), t.team.threads);
  count_bytes(k, result);
  const ng_memory_part ceiling = {"a loop to compare with", result->bytes_read + result->bytes_written};
  char doing[320];
  snprintf(doing, sizeof doing, "timing %s", k->name);
  if (ng_context_check_memory(k->ctx, doing, &ceiling, 1) != NG_OK) return NG_OUT_OF_MEMORY;
  t.samples = allocator_alloc(a, 3 * (size_t)MOST_ROUNDS * sizeof *t.samples);
  bool ok = t.samples && profile_begin(&t) &&
            ceiling_init(&t.ceiling, a, result->bytes_read, result->bytes_written, t.team.threads);
  if (ok) {
    measure(&t, result);
    ceiling_deinit(&t.ceiling);
  }
  allocator_free(a, t.samples);
  allocator_free(a, t.profile);
  if (!ok) t.status = NG_OUT_OF_MEMORY;
  if (t.status == NG_OUT_OF_MEMORY) error_out_of_memory(&k->ctx->diagnostics);
  if (t.status == NG_USAGE) return argument_error(k->ctx, "cold: this processor has no way to flush its caches");
  return t.status;
}
