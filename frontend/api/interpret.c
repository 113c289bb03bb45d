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

ng_status ng_interpret(ng_graph *g, const ng_tensor *inputs, ng_tensor *outputs, int nan_check) {
  ng_context *ctx = g->ctx;
  const Graph *graph = g->graph;
  ng_status status = ng_graph_bind(g);
  if (status != NG_OK) return status;
  ng_memory memory;
  status = ng_graph_memory(g, &memory);
  if (status == NG_OK)
    status = graph_check_memory(g, "interpreting", "values and sums in f64", memory.interpreter_nbytes);
  if (status != NG_OK) return status;
  Arena scratch;
  arena_init(&scratch, &ctx->allocator);
  const size_t ninputs = graph->ninputs, noutputs = graph->noutputs;
  Tensor *in = ARENA_ARRAY(&scratch, Tensor, ninputs + noutputs + 1), *out = in ? in + ninputs : NULL;
  for (size_t i = 0; in && i < ninputs; i++) in[i] = tensor_like(graph->inputs[i]);
  for (size_t i = 0; out && i < noutputs; i++) out[i] = tensor_like(graph->outputs[i]);
  const char *refusal =
      in ? tensors_refusal(inputs, ninputs, outputs, noutputs, in, NULL, &ctx->allocator) : refused_for_memory;
  if (refusal && refusal != refused_for_memory) {
    arena_deinit(&scratch);
    return argument_error(ctx, "%s", refusal);
  }
  status = refusal ? NG_OK : indices_tell(ctx, graph, inputs);
  if (status != NG_OK) {
    arena_deinit(&scratch);
    return status;
  }
  Call call = call_begin(ctx);
  bool ok = !refusal || error_out_of_memory(&ctx->diagnostics);
  for (size_t i = 0; ok && i < ninputs; i++) in[i] = tensor_of_api(&inputs[i]);
  for (size_t i = 0; ok && out && i < noutputs; i++) out[i] = tensor_of_api(&outputs[i]);
  const bool is_rounded = nan_check == NG_CHECK_FINITE;
  const InterpreterOptions options = {.allocator = &ctx->allocator,
                                      .nan_check = nan_check != 0,
                                      .finite_check = is_rounded,
                                      .progress = interpreter_progress,
                                      .progress_context = ctx,
                                      .rounds_values = is_rounded};
  ok = ok && interpret(graph, in, out, &options, &ctx->diagnostics);
  status = call_end(ctx, call);
  arena_deinit(&scratch);
  return ok ? NG_OK : status;
}
