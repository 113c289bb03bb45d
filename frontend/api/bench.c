// Timing a kernel in turns with the ceiling, on threads that stay where they are.
#include "frontend/api/ceiling.h"
#include "frontend/api/kernel.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_ROUNDS = 20000, LEAST_ROUNDS = 5, WARM_UP_ROUNDS = 3, MOST_PROFILED = 1 << 20 };
static const double shortest_sample_ms = 0.2; // shorter runs are timed several at once: a clock's and a wake-up's cost

typedef struct Timing {
  ng_kernel *kernel;
  const ng_tensor *inputs;
  ng_tensor *outputs;
  const ng_bench_options *options;
  int threads;
  Ceiling ceiling;
  cpu_set_t allowed; // the processors that the caller may run on
  double *samples;   // MOST_ROUNDS of the kernel, then as many of the ceiling
  double *profile;   // most_rounds samples of profile_length numbers; NULL: none is wanted
  size_t profile_length;
  size_t most_rounds, nrounds, kernel_batch, ceiling_batch;
  ng_status status;
} Timing;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// Threads

static size_t nth_cpu(const cpu_set_t *cpus, int n) {
  size_t cpu = 0;
  while (!CPU_ISSET(cpu, cpus) || n-- > 0) cpu++;
  return cpu;
}

// Each thread of the team to a processor of its own, unless there are too few. To be done before every sample: OpenMP
// lets threads end that a smaller team does without, and those that it starts anew stay where their maker is.
static void pin_threads(const Timing *t) {
  if (CPU_COUNT(&t->allowed) < t->threads) return;
#pragma omp parallel num_threads(t->threads)
  {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(nth_cpu(&t->allowed, omp_get_thread_num()), &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  }
}

static void unpin_threads(const Timing *t) {
#pragma omp parallel num_threads(t->threads)
  pthread_setaffinity_np(pthread_self(), sizeof t->allowed, &t->allowed);
}

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
  pin_threads(t);
  double *spent = t->profile ? t->profile + t->nrounds * t->profile_length : NULL;
  if (spent) memset(spent, 0, t->profile_length * sizeof *spent);
  double start = now_ms();
  for (size_t i = 0; i < batch && t->status == NG_OK; i++)
    t->status = kernel_run(t->kernel, t->inputs, t->outputs, t->threads, spent);
  double ms = now_ms() - start;
  if (spent) spent[0] = ms; // of the whole, in place of what comes before the loops
  for (size_t i = 0; spent && i < t->profile_length; i++) spent[i] /= (double)batch;
  return ms / (double)batch;
}

static double time_ceiling(const Timing *t, size_t batch) {
  const Ceiling *c = &t->ceiling;
  if (t->options->cold) cache_flush(c->from, (c->nread + c->nwritten) * 64);
  pin_threads(t);
  double start = now_ms();
  for (size_t i = 0; i < batch; i++) ceiling_run(c);
  return (now_ms() - start) / (double)batch;
}

static size_t batch_for(const Timing *t, double ms) {
  if (t->options->cold || ms >= shortest_sample_ms) return 1;
  return (size_t)(shortest_sample_ms / (ms > 1e-4 ? ms : 1e-4)) + 1;
}

// Finds how many runs a sample needs, and which way of writing is the ceiling's.
static void warm_up(Timing *t) {
  double kernel = 1e300, ceiling[2] = {1e300, 1e300};
  for (int round = 0; round < WARM_UP_ROUNDS && t->status == NG_OK; round++) {
    double ms = time_kernel(t, 1);
    if (ms < kernel) kernel = ms;
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
  double start = now_ms(), elapsed = 0;
  while (t->status == NG_OK && t->nrounds < t->most_rounds && (elapsed < seconds * 1e3 || t->nrounds < LEAST_ROUNDS)) {
    t->samples[t->nrounds] = time_kernel(t, t->kernel_batch);
    t->samples[MOST_ROUNDS + t->nrounds] = time_ceiling(t, t->ceiling_batch);
    t->nrounds++;
    elapsed = now_ms() - start;
    report_progress(t->kernel->ctx, what, elapsed < seconds * 1e3 ? elapsed / (seconds * 1e3) : 1);
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

static void count_bytes(const ng_kernel *k, ng_bench_result *result) {
  for (size_t i = 0; i < k->ninputs; i++) result->bytes_read += tensor_nbytes(&k->tensors[i]);
  for (size_t i = 0; i < k->noutputs; i++) result->bytes_written += tensor_nbytes(&k->tensors[k->ninputs + i]);
}

// A profile of very many loops takes fewer rounds.
static bool profile_begin(Timing *t) {
  t->most_rounds = MOST_ROUNDS;
  if (!t->kernel->profile) return true;
  t->profile_length = profile_sample_length(t->kernel->profile);
  if (t->most_rounds > MOST_PROFILED / t->profile_length) t->most_rounds = MOST_PROFILED / t->profile_length;
  if (t->most_rounds < LEAST_ROUNDS) t->most_rounds = LEAST_ROUNDS;
  t->profile = allocator_alloc(&t->kernel->ctx->allocator, t->most_rounds * t->profile_length * sizeof *t->profile);
  return t->profile;
}

static void measure(Timing *t, ng_bench_result *result) {
  if (sched_getaffinity(0, sizeof t->allowed, &t->allowed) != 0) CPU_ZERO(&t->allowed);
  warm_up(t);
  take_samples(t);
  if (CPU_COUNT(&t->allowed)) unpin_threads(t);
  if (t->status != NG_OK) return;
  if (t->profile) profile_set(t->kernel->profile, t->profile, t->nrounds);
  result->runs = t->nrounds * t->kernel_batch;
  result->median_ms = median(t->samples, t->nrounds);
  result->min_ms = t->samples[0];
  result->ceiling_ms = median(t->samples + MOST_ROUNDS, t->nrounds);
  if (result->median_ms > 0) result->ceiling_ratio = result->ceiling_ms / result->median_ms;
}

ng_status ng_bench(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, const ng_bench_options *options,
                   ng_bench_result *result) {
  const Allocator *a = &k->ctx->allocator;
  *result = (ng_bench_result){0};
  if (options->threads < 0 || options->threads > MOST_THREADS || !kernel_accepts(k, inputs, outputs))
    return argument_error(k->ctx, "expected the graph's tensors, and threads that there can be");
  Timing t = {.kernel = k, .inputs = inputs, .outputs = outputs, .options = options};
  t.threads = options->threads ? options->threads : ng_thread_count();
  count_bytes(k, result);
  t.samples = allocator_alloc(a, 2 * (size_t)MOST_ROUNDS * sizeof *t.samples);
  bool ok = t.samples && profile_begin(&t) &&
            ceiling_init(&t.ceiling, a, result->bytes_read, result->bytes_written, t.threads);
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
