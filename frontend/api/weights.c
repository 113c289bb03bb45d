// Writes weights of other systems' models to files.
#include "frontend/api/handles.h"
#include "frontend/npy/npy.h"
#include "ir/graph/tensor.h"

static bool write_weight(ng_graph *g, const char *folder, const Value *v, const Constant *constant) {
  Diagnostics *d = &g->ctx->diagnostics;
  Tensor t = tensor_like(v);
  t.layout = (Layout){{0}}; // that of constants and first values
  Text path;
  t.data = constant->data;
  text_init(&path, &g->ctx->allocator);
  text_format(&path, "%s/%s", folder, constant->file);
  const bool ok = path.out_of_memory ? error_out_of_memory(d) : npy_write(text_string(&path), &t, d);
  text_deinit(&path);
  return ok;
}

ng_status ng_graph_write_weights(ng_graph *g, const char *folder, size_t least) {
  Graph *graph = g->graph;
  const Call call = call_begin(g->ctx);
  bool ok = true;
  for (size_t i = 0; ok && i < graph->nvalues; i++) {
    Value *v = graph->values[i];
    if (!v->constant || !v->constant->is_initializer || !v->uses || (size_t)shape_nelems(&v->shape) < least) continue;
    ok =
        graph_name_file(graph, v) ? write_weight(g, folder, v, v->constant) : error_out_of_memory(&g->ctx->diagnostics);
  }
  for (size_t i = 0; ok && i < graph->nstates; i++) {
    const Init *init = &graph->states[i].init;
    if (init->kind == INIT_FILE && init->constant->is_initializer)
      ok = write_weight(g, folder, graph->inputs[graph->states[i].input], init->constant);
  }
  return g->ctx->last_status = call_end(g->ctx, call);
}
