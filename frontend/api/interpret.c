// Interpreting a graph on the caller's tensors.
#include "frontend/api/handles.h"

#include "backends/interpreter/interpreter.h"

static void interpreter_progress(void *context, size_t done, size_t total) {
  report_progress(context, "interpreting", total ? (double)done / (double)total : 1);
}

static bool tensors_fit(const ng_tensor *given, Value *const *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    Tensor wanted = tensor_like(values[i]);
    if (!tensor_fits(&given[i], &wanted)) return false;
  }
  return true;
}

ng_status ng_interpret(ng_graph *g, const ng_tensor *inputs, ng_tensor *outputs, int nan_check) {
  ng_context *ctx = g->ctx;
  const Graph *graph = g->graph;
  ng_status status = ng_graph_bind(g);
  if (status != NG_OK) return status;
  if (!tensors_fit(inputs, graph->inputs, graph->ninputs) || !tensors_fit(outputs, graph->outputs, graph->noutputs))
    return argument_error(ctx, "expected tensors of the graph's types and shapes");
  ng_memory memory;
  status = ng_graph_memory(g, &memory);
  if (status == NG_OK) status = graph_check_memory(g, "interpreting", "values in f64", memory.interpreter_nbytes);
  if (status != NG_OK) return status;
  Arena scratch;
  arena_init(&scratch, &ctx->allocator);
  Tensor *in = ARENA_ARRAY(&scratch, Tensor, graph->ninputs), *out = ARENA_ARRAY(&scratch, Tensor, graph->noutputs);
  Call call = call_begin(ctx);
  bool ok = in && out;
  if (!ok) error_out_of_memory(&ctx->diagnostics);
  for (size_t i = 0; ok && i < graph->ninputs; i++) in[i] = tensor_of_api(&inputs[i]);
  for (size_t i = 0; ok && i < graph->noutputs; i++) out[i] = tensor_of_api(&outputs[i]);
  const InterpreterOptions options = {&ctx->allocator, nan_check != 0, interpreter_progress, ctx};
  ok = ok && interpret(graph, in, out, &options, &ctx->diagnostics);
  status = call_end(ctx, call);
  arena_deinit(&scratch);
  return ok ? NG_OK : status;
}
