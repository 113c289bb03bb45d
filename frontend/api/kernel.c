// Compiles graphs and runs the kernels.
#include "frontend/api/kernel.h"

#include "frontend/api/build.h"
#include "frontend/api/indices.h"
#include "frontend/api/tensor_check.h"

#include <string.h>

enum { FEW_POINTERS = 64 };

// Makes the handle, with everything of the graph that the kernel needs.
static ng_kernel *kernel_new(ng_graph *g) {
  const Allocator *a = &g->ctx->allocator;
  const Graph *graph = g->graph;
  ng_kernel *k = allocator_alloc(a, sizeof *k);
  if (!k) return NULL;
  *k = (ng_kernel){.ctx = g->ctx, .ninputs = graph->ninputs, .noutputs = graph->noutputs};
  k->name = allocator_alloc(a, strlen(graph->name) + 1);
  k->tensors = allocator_alloc(a, (graph->ninputs + graph->noutputs) * sizeof *k->tensors);
  if (!k->name || !k->tensors) {
    ng_kernel_free(k);
    return NULL;
  }
  memcpy(k->name, graph->name, strlen(graph->name) + 1);
  for (size_t i = 0; i < graph->ninputs; i++) k->tensors[i] = tensor_like(graph->inputs[i]);
  for (size_t i = 0; i < graph->noutputs; i++) k->tensors[graph->ninputs + i] = tensor_like(graph->outputs[i]);
  return k;
}

void ng_kernel_free(ng_kernel *k) {
  if (!k) return;
  const Allocator *a = &k->ctx->allocator;
  if (k->compiled) compiled_free(k->compiled);
  if (k->staged) staged_free(k->staged, k->ctx);
  allocator_free(a, k->staged);
  profile_free(k->profile);
  graph_free(k->graph);
  allocator_free(a, k->name);
  allocator_free(a, k->tensors);
  allocator_free(a, k);
}

static bool count_operations(ng_kernel *k, const Program *p) {
  Arena scratch;
  bool ok = true;
  arena_init(&scratch, &k->ctx->allocator);
  for (size_t i = 0; ok && i < p->nkernels; i++) {
    double operations = 0;
    ok = kernel_count_operations(p->schedules[i]->kernel, &scratch, &operations);
    k->operations += operations;
  }
  arena_deinit(&scratch);
  return ok;
}

static ng_status keep_graph(ng_kernel *k, Graph *graph) {
  k->graph = graph_keep(graph);
  k->checks = graph_index_checks(k->graph, true, &k->graph->arena, &k->nchecks);
  return k->checks ? NG_OK : out_of_memory_status(k->ctx);
}

static ng_status compile_program(ng_kernel *k, const Build *b) {
  const bool is_profiled = b->options->profile;
  ng_context *ctx = k->ctx;
  CompileTimes times = {0};
  if (!count_operations(k, b->program) || (is_profiled && !(k->profile = profile_new(b->program, &ctx->allocator))))
    return out_of_memory_status(ctx);
  ng_status status = build_compile(b, &k->compiled, &times);
  if (status == NG_OK) status = keep_graph(k, b->graph);
  if (status != NG_OK) return status;
  k->rounding = (CompiledGraph){k->graph, program_node_types(b->program, &k->graph->arena)};
  if (!k->rounding.types) return out_of_memory_status(ctx);
  k->info = (ng_kernel_info){
      .isa = b->isa->name,
      .nkernels = b->program->nkernels,
      .workspace_nbytes = compiled_workspace_nbytes(k->compiled),
      .was_cached = times.was_cached,
      .emit_ms = times.emit_ms,
      .compile_ms = times.compile_ms,
      .load_ms = times.load_ms,
  };
  return NG_OK;
}

ng_status kernel_of_build(const Build *b, ng_kernel **kernel) {
  *kernel = kernel_new(b->owner);
  return *kernel ? compile_program(*kernel, b) : out_of_memory_status(b->owner->ctx);
}

static ng_status compile_whole(ng_graph *g, const ng_options *options, ng_kernel **kernel) {
  Build b;
  ng_status status = build_to_run(&b, g, g->graph, options);
  if (status == NG_OK) status = kernel_of_build(&b, kernel);
  build_deinit(&b);
  return status;
}

static ng_status compile_stages(ng_graph *g, const ng_options *options, ng_kernel **kernel) {
  ng_context *ctx = g->ctx;
  ng_status status = ng_graph_bind(g);
  if (status != NG_OK) return status;
  ng_kernel *k = *kernel = kernel_new(g);
  if (options && options->profile)
    return argument_error(ctx, "a graph with leaves has several functions and cannot be profiled");
  if (k) k->staged = allocator_alloc(&ctx->allocator, sizeof *k->staged);
  if (!k || !k->staged) return out_of_memory_status(ctx);
  status = staged_compile(k->staged, g, options);
  k->info = k->staged->info;
  return status == NG_OK ? keep_graph(k, g->graph) : status;
}

ng_kernel *ng_compile(ng_graph *g, const ng_options *options) {
  ng_kernel *k = NULL;
  g->ctx->last_status = g->graph->nleaves ? compile_stages(g, options, &k) : compile_whole(g, options, &k);
  if (k) k->is_fast_math = options && options->fast_math;
  if (g->ctx->last_status == NG_OK) return k;
  ng_kernel_free(k);
  return NULL;
}

ng_kernel_info ng_kernel_get_info(const ng_kernel *k) {
  return k->info;
}

const ng_profile *ng_kernel_profile(const ng_kernel *k) {
  return k->profile ? &k->profile->shown : NULL;
}

int ng_thread_count(void) {
  return target_of_machine().threads;
}

const char *ng_kernel_refusal(const ng_kernel *k, const ng_tensor *inputs, const ng_tensor *outputs) {
  return tensors_refusal(inputs, k->ninputs, outputs, k->noutputs, k->tensors, k->graph, &k->ctx->allocator);
}

// The inputs and outputs that a rank must pass; NULL: out of memory.
static Tensor *tensors_of_rank(const ng_kernel *k, const ng_ranks *ranks) {
  const size_t count = k->ninputs + k->noutputs;
  Tensor *own = allocator_alloc(&k->ctx->allocator, (count + 1) * sizeof *own);
  if (own) memcpy(own, k->tensors, count * sizeof *own);
  if (own) staged_own_extents(k->graph, ranks, own);
  return own;
}

static ng_status check_tensors(const ng_kernel *k, const ng_tensor *inputs, const ng_tensor *outputs,
                               const ng_ranks *ranks) {
  Tensor *own = ranks ? tensors_of_rank(k, ranks) : NULL;
  if (ranks && !own) return NG_OUT_OF_MEMORY;
  const char *refusal =
      tensors_refusal(inputs, k->ninputs, outputs, k->noutputs, own ? own : k->tensors, k->graph, &k->ctx->allocator);
  allocator_free(&k->ctx->allocator, own);
  return !refusal ? NG_OK : refusal == refused_for_memory ? NG_OUT_OF_MEMORY : NG_USAGE;
}

static ng_status run(const ng_kernel *k, const ng_tensor *inputs, const ng_tensor *outputs, int threads, Watch *watch,
                     const ng_ranks *ranks) {
  if (threads < 0 || threads > MOST_THREADS) return NG_USAGE;
  ng_status status = check_tensors(k, inputs, outputs, ranks);
  if (status != NG_OK) return status;
  if (!indices_are_right(k->checks, k->nchecks, inputs)) return NG_WRONG;
  void *few[FEW_POINTERS];
  size_t npointers = k->ninputs + k->noutputs;
  void **pointers = npointers <= FEW_POINTERS ? few : allocator_alloc(&k->ctx->allocator, npointers * sizeof *pointers);
  if (!pointers) return NG_OUT_OF_MEMORY;
  for (size_t i = 0; i < k->ninputs; i++) pointers[i] = inputs[i].data;
  for (size_t i = 0; i < k->noutputs; i++) pointers[k->ninputs + i] = outputs[i].data;
  if (!threads) threads = ng_thread_count();
  if (k->staged) status = staged_run(k->staged, k->ctx, pointers, pointers + k->ninputs, threads, ranks);
  else if (!compiled_run(k->compiled, pointers, pointers + k->ninputs, threads, watch)) status = NG_OUT_OF_MEMORY;
  if (pointers != few) allocator_free(&k->ctx->allocator, pointers);
  return status;
}

ng_status kernel_run(const ng_kernel *k, const ng_tensor *inputs, const ng_tensor *outputs, int threads, Watch *watch) {
  return run(k, inputs, outputs, threads, watch, NULL);
}

ng_status ng_kernel_run_ranks(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, int threads,
                              const ng_ranks *ranks) {
  if (ranks && (ranks->count < 1 || ranks->rank < 0 || ranks->rank >= ranks->count)) return NG_USAGE;
  if (ranks && !k->staged && ranks->count > 1) return NG_USAGE;
  return run(k, inputs, outputs, threads, NULL, k->staged ? ranks : NULL);
}

ng_status ng_kernel_run(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, int threads) {
  return kernel_run(k, inputs, outputs, threads, NULL);
}

ng_status ng_kernel_trace(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, int threads, const ng_span **spans,
                          size_t *count) {
  *spans = NULL;
  *count = 0;
  if (!k->profile || threads < 0 || threads > MOST_THREADS) return NG_USAGE;
  const size_t most = profile_sample_length(k->profile) * (size_t)(threads ? threads : ng_thread_count());
  Watch watch = {.spans = allocator_alloc(&k->ctx->allocator, most * sizeof *watch.spans), .most_spans = most};
  ng_status status = watch.spans ? kernel_run(k, inputs, outputs, threads, &watch) : NG_OUT_OF_MEMORY;
  if (status == NG_OK && !profile_set_spans(k->profile, watch.spans, watch.nspans)) status = NG_OUT_OF_MEMORY;
  allocator_free(&k->ctx->allocator, watch.spans);
  if (status != NG_OK) return status;
  *spans = k->profile->spans;
  *count = k->profile->nspans;
  return NG_OK;
}
