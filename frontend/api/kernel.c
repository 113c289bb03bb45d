// Compiling a graph, and running what came of it.
#include "frontend/api/kernel.h"

#include "frontend/api/budget.h"
#include "frontend/api/build.h"
#include "frontend/api/fits.h"

#include <string.h>

enum { FEW_POINTERS = 64 };

// The handle, with all that it keeps of the graph.
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

static ng_status compile_program(ng_kernel *k, const Build *b) {
  enum { DEFAULT_TIMEOUT_S = 300 };
  const bool is_profiled = b->options->profile;
  const double timeout_s = b->options->compile_timeout;
  ng_context *ctx = k->ctx;
  CompileTimes times = {0};
  bool compiler_failed = false;
  Call call = call_begin(ctx);
  if (!count_operations(k, b->program) || (is_profiled && !(k->profile = profile_new(b->program, &ctx->allocator)))) {
    error_out_of_memory(&ctx->diagnostics);
    return call_end(ctx, call);
  }
  k->compiled = codegen_compile(b->program, b->isa, is_profiled,
                                timeout_s < 0   ? 0
                                : timeout_s > 0 ? timeout_s
                                                : DEFAULT_TIMEOUT_S,
                                &ctx->allocator, &times, &compiler_failed, &ctx->diagnostics);
  ng_status status = call_end(ctx, call);
  if (!k->compiled) return status == NG_OUT_OF_MEMORY || !compiler_failed ? status : NG_COMPILER_FAILED;
  k->graph = graph_keep(b->graph);
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

ng_kernel *ng_compile(ng_graph *g, const ng_options *options) {
  ng_context *ctx = g->ctx;
  Build b;
  ng_kernel *k = NULL;
  ng_status status = build_graph(&b, g, options);
  if (status == NG_OK && b.passes.after)
    status = argument_error(ctx, "expected nothing to stop after, found %s", b.passes.after);
  if (status == NG_OK && !b.isa->is_available())
    status = argument_error(ctx, "%s: this processor does not have that instruction set", b.isa->name);
  if (status == NG_OK) status = build_kernels(&b);
  if (status == NG_OK) status = graph_check_memory(g, "running", "workspace", b.program->workspace_nbytes);
  if (status == NG_OK) {
    k = kernel_new(g);
    if (!k) error_out_of_memory(&ctx->diagnostics);
    status = k ? compile_program(k, &b) : NG_OUT_OF_MEMORY;
  }
  build_deinit(&b);
  ctx->last_status = status;
  if (status == NG_OK) return k;
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
  return tensors_refusal(inputs, k->ninputs, outputs, k->noutputs, k->tensors, &k->ctx->allocator);
}

ng_status kernel_run(const ng_kernel *k, const ng_tensor *inputs, const ng_tensor *outputs, int threads,
                     double *spent_ms) {
  if (threads < 0 || threads > MOST_THREADS) return NG_USAGE;
  const char *refusal = ng_kernel_refusal(k, inputs, outputs);
  if (refusal) return refusal == refused_for_memory ? NG_OUT_OF_MEMORY : NG_USAGE;
  void *few[FEW_POINTERS];
  size_t npointers = k->ninputs + k->noutputs;
  void **pointers = npointers <= FEW_POINTERS ? few : allocator_alloc(&k->ctx->allocator, npointers * sizeof *pointers);
  if (!pointers) return NG_OUT_OF_MEMORY;
  for (size_t i = 0; i < k->ninputs; i++) pointers[i] = inputs[i].data;
  for (size_t i = 0; i < k->noutputs; i++) pointers[k->ninputs + i] = outputs[i].data;
  if (!threads) threads = ng_thread_count();
  bool ok = compiled_run(k->compiled, pointers, pointers + k->ninputs, threads, spent_ms);
  if (pointers != few) allocator_free(&k->ctx->allocator, pointers);
  return ok ? NG_OK : NG_OUT_OF_MEMORY;
}

ng_status ng_kernel_run(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, int threads) {
  return kernel_run(k, inputs, outputs, threads, NULL);
}
