// Checks the context's memory budget, and finds how much memory a graph needs.
#include "frontend/api/budget.h"

#include "backends/interpreter/interpreter.h"

#include <stdio.h>
#include <stdlib.h>

static void tell_need(ng_context *ctx, const char *doing, uint64_t needed, const ng_memory_part *parts, size_t nparts) {
  char number[NBYTES_TEXT];
  const size_t limit = ctx->budget.limit, used = limit - budget_left(&ctx->budget);
  const char *before = " (";
  Text text;
  text_init(&text, &ctx->budget.lender); // the budget may be used up
  text_format(&text, "%s needs %s", doing, nbytes_string(needed, number));
  for (size_t i = 0; i < nparts; i++) {
    if (!parts[i].nbytes) continue;
    text_format(&text, "%s%s %s", before, parts[i].what, nbytes_string(parts[i].nbytes, number));
    before = ", ";
  }
  text_format(&text, "), more than the memory budget of %s", nbytes_string(limit, number));
  if (used > limit / 100) text_format(&text, ", of which %s are in use", nbytes_string(used, number));
  text_add_string(&text, "; raise it with --max-memory");
  if (text.out_of_memory) error_out_of_memory(&ctx->diagnostics);
  else error_at(&ctx->diagnostics, (Position){0}, "%s", text_string(&text));
  text_deinit(&text);
}

ng_status ng_context_check_memory(ng_context *ctx, const char *doing, const ng_memory_part *parts, size_t nparts) {
  uint64_t needed = 0;
  for (size_t i = 0; i < nparts; i++) needed = nbytes_add(needed, parts[i].nbytes);
  if (needed <= budget_left(&ctx->budget)) return NG_OK;
  tell_need(ctx, doing, needed, parts, nparts);
  return NG_OUT_OF_MEMORY;
}

bool tensor_make(ng_context *ctx, const char *name, Tensor *t) {
  char doing[320];
  snprintf(doing, sizeof doing, "the tensor %s", name ? name : "?");
  const ng_memory_part part = {type_name(t->type), tensor_nbytes(t)};
  if (ng_context_check_memory(ctx, doing, &part, 1) != NG_OK) return false;
  return tensor_alloc(t, &ctx->allocator) || error_out_of_memory(&ctx->diagnostics);
}

ng_status graph_check_memory(ng_graph *g, const char *doing, const char *what, uint64_t nbytes) {
  char text[320];
  snprintf(text, sizeof text, "%s %s", doing, g->graph->name);
  return ng_context_check_memory(g->ctx, text, &(ng_memory_part){what, nbytes}, 1);
}

uint64_t values_nbytes(Value *const *values, size_t count) {
  uint64_t nbytes = 0;
  for (size_t i = 0; i < count; i++) {
    const Tensor t = tensor_like(values[i]);
    nbytes = nbytes_add(nbytes, tensor_nbytes(&t));
  }
  return nbytes;
}

static int compare_data(const void *a, const void *b) {
  const uintptr_t x = (uintptr_t)(*(Value *const *)a)->constant->data,
                  y = (uintptr_t)(*(Value *const *)b)->constant->data;
  return (x > y) - (x < y);
}

// Constants of one file share their data. False: out of memory.
static bool constants_nbytes(const Graph *g, const Allocator *allocator, uint64_t *nbytes) {
  size_t count = 0;
  Value **list = allocator_alloc(allocator, (g->nvalues + 1) * sizeof(Value *));
  if (!list) return false;
  for (size_t i = 0; i < g->nvalues; i++)
    if (g->values[i]->constant && !g->values[i]->constant->is_splat) list[count++] = g->values[i];
  qsort(list, count, sizeof(Value *), compare_data);
  for (size_t i = 0; i < count; i++)
    if (!i || compare_data(&list[i - 1], &list[i]) != 0) *nbytes = nbytes_add(*nbytes, values_nbytes(&list[i], 1));
  allocator_free(allocator, list);
  return true;
}

ng_status ng_graph_memory(ng_graph *g, ng_memory *out) {
  *out = (ng_memory){0};
  ng_status status = ng_graph_bind(g);
  if (status != NG_OK) return status;
  const Graph *graph = g->graph;
  if (!interpreter_nbytes(graph, &g->ctx->allocator, &out->interpreter_nbytes)) return out_of_memory_status(g->ctx);
  out->inputs_nbytes = values_nbytes(graph->inputs, graph->ninputs);
  out->outputs_nbytes = values_nbytes(graph->outputs, graph->noutputs);
  const bool ok = constants_nbytes(graph, &g->ctx->allocator, &out->constants_nbytes);
  return ok ? NG_OK : out_of_memory_status(g->ctx);
}
