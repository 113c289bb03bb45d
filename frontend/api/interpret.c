// Interpreting a graph on the caller's tensors.
#include "backends/interpreter/interpreter.h"
#include "frontend/api/budget.h"
#include "frontend/api/handles.h"
#include "frontend/api/indices.h"
#include "frontend/api/tensor.h"
#include "frontend/api/tensor_check.h"

static void interpreter_progress(void *context, size_t done, size_t total) {
  report_progress(context, "interpreting", total ? (double)done / (double)total : 1);
}

// in: memory for all tensors of the graph's inputs and outputs.
static ng_status interpret_tensors(ng_context *ctx, const Graph *g, const ng_tensor *inputs, const ng_tensor *outputs,
                                   int nan_check, Tensor *in) {
  const size_t ninputs = g->ninputs, noutputs = g->noutputs;
  Tensor *out = in + ninputs;
  for (size_t i = 0; i < ninputs; i++) in[i] = tensor_like(g->inputs[i]);
  for (size_t i = 0; i < noutputs; i++) out[i] = tensor_like(g->outputs[i]);
  const char *refusal = tensors_refusal(inputs, ninputs, outputs, noutputs, in, NULL, &ctx->allocator);
  if (refusal == refused_for_memory) return out_of_memory_status(ctx);
  if (refusal) return argument_error(ctx, "%s", refusal);
  ng_status status = indices_tell(ctx, g, inputs);
  if (status != NG_OK) return status;
  for (size_t i = 0; i < ninputs; i++) in[i] = tensor_of_api(&inputs[i]);
  for (size_t i = 0; i < noutputs; i++) out[i] = tensor_of_api(&outputs[i]);
  const bool is_rounded = nan_check == NG_CHECK_FINITE;
  const InterpreterOptions options = {.allocator = &ctx->allocator,
                                      .nan_check = nan_check != 0,
                                      .finite_check = is_rounded,
                                      .progress = interpreter_progress,
                                      .progress_context = ctx,
                                      .rounds_values = is_rounded};
  Call call = call_begin(ctx);
  const bool ok = interpret(g, in, out, &options, &ctx->diagnostics);
  status = call_end(ctx, call);
  return ok ? NG_OK : status;
}

ng_status ng_interpret(ng_graph *g, const ng_tensor *inputs, ng_tensor *outputs, int nan_check) {
  ng_context *ctx = g->ctx;
  const Graph *graph = g->graph;
  ng_memory memory;
  ng_status status = ng_graph_memory(g, &memory);
  if (status == NG_OK)
    status = graph_check_memory(g, "interpreting", "values and sums in f64", memory.interpreter_nbytes);
  if (status != NG_OK) return status;
  Arena scratch;
  arena_init(&scratch, &ctx->allocator);
  Tensor *tensors = ARENA_ARRAY(&scratch, Tensor, graph->ninputs + graph->noutputs + 1);
  status = tensors ? interpret_tensors(ctx, graph, inputs, outputs, nan_check, tensors) : out_of_memory_status(ctx);
  arena_deinit(&scratch);
  return status;
}
