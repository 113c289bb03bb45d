// First values of states from checkpoints, and narrow types for them.
#include "frontend/npz/npz.h"

#include "frontend/api/handles.h"
#include "frontend/api/text.h"
#include "ir/graph/tensor.h"
#include "passes/train/train.h"

#include <string.h>

// Makes the numbers the first value of the state, as if they were in a file that ng_graph_write_weights writes.
static bool give_value(Graph *g, State *state, const Tensor *t) {
  Value named = *g->inputs[state->input]; // whose constant gets a file's name
  const size_t nbytes = tensor_nbytes(t);
  Constant *constant = ARENA_NEW(&g->arena, Constant);
  void *data = arena_alloc(&g->arena, nbytes + 1);
  if (!constant || !data) return false;
  memcpy(data, t->data, nbytes);
  *constant = (Constant){.data = data, .is_initializer = true};
  named.constant = constant;
  state->init = (Init){.kind = INIT_FILE, .constant = constant};
  return graph_name_file(g, &named);
}

static bool read_states(Graph *g, const char *path, bool takes_some, const Allocator *allocator, Diagnostics *d) {
  Arena scratch;
  arena_init(&scratch, allocator);
  NpzEntry *entries = ARENA_ARRAY(&scratch, NpzEntry, g->nstates + 1);
  bool ok = entries || error_out_of_memory(d);
  for (size_t i = 0; ok && i < g->nstates; i++) {
    entries[i] = (NpzEntry){graph_state(g, i)->name, tensor_like(graph_state(g, i))};
    entries[i].tensor.layout = (Layout){{0}}; // as first values are
  }
  const bool is_read = ok && npz_read(path, entries, g->nstates, takes_some, allocator, d);
  ok = is_read;
  for (size_t i = 0; ok && i < g->nstates; i++)
    if (entries[i].tensor.data) ok = give_value(g, &g->states[i], &entries[i].tensor) || error_out_of_memory(d);
  for (size_t i = 0; is_read && i < g->nstates; i++) tensor_free(&entries[i].tensor, allocator);
  arena_deinit(&scratch);
  return ok;
}

ng_status ng_graph_read_states(ng_graph *g, const char *path, int takes_some) {
  const Call call = call_begin(g->ctx);
  read_states(g->graph, path, takes_some != 0, &g->ctx->allocator, &g->ctx->diagnostics);
  return g->ctx->last_status = call_end(g->ctx, call);
}

char *ng_checkpoint_names(ng_context *ctx, const char *path) {
  const Call call = call_begin(ctx);
  Text names;
  text_init(&names, &ctx->allocator);
  const bool ok = npz_names(path, &names, &ctx->diagnostics);
  char *text = ok ? text_release(ctx, &names) : NULL;
  ctx->last_status = call_end(ctx, call);
  if (ok && !text) ctx->last_status = NG_OUT_OF_MEMORY;
  text_deinit(&names);
  return text;
}

static bool narrow(ng_graph *g, Type type) {
  Graph *graph = g->graph;
  NarrowWeight *weights = ARENA_ARRAY(&graph->arena, NarrowWeight, graph->nstates + 1);
  size_t count = 0;
  if (!weights) return error_out_of_memory(&g->ctx->diagnostics);
  const bool ok = graph_narrow_weights(graph, type, weights, &count, &g->ctx->diagnostics);
  g->narrow = ARENA_ARRAY(&graph->arena, ng_narrow_weight, count + 1);
  g->nnarrow = g->narrow ? count : 0;
  for (size_t i = 0; i < g->nnarrow; i++)
    g->narrow[i] = (ng_narrow_weight){.name = weights[i].name,
                                      .nbytes_before = weights[i].nbytes_before,
                                      .nbytes = weights[i].nbytes,
                                      .max_error = weights[i].max_error,
                                      .rms_error = weights[i].rms_error,
                                      .rms = weights[i].rms};
  return ok && (g->narrow || error_out_of_memory(&g->ctx->diagnostics));
}

ng_status ng_graph_narrow_weights(ng_graph *g, ng_type type) {
  if (type != NG_S8 && type != NG_BF16) return argument_error(g->ctx, "weights: expected type s8 or bf16");
  const Call call = call_begin(g->ctx);
  narrow(g, (Type)type);
  return g->ctx->last_status = call_end(g->ctx, call);
}

size_t ng_graph_narrow_count(const ng_graph *g) {
  return g->nnarrow;
}

ng_narrow_weight ng_graph_narrow(const ng_graph *g, size_t i) {
  return g->narrow[i];
}
