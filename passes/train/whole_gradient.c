// Makes a gradient that computes the forward graph's values itself: that of a graph with leaves, as a leaf's values
// cannot be inputs, and one that is differentiated again.
#include "ir/graph/copies.h"
#include "passes/rewrite/dead_code.h"
#include "passes/train/train.h"

#include <string.h>

static Value **copy_inputs(Builder *b, Value *const *inputs, size_t count) {
  Value **copies = ARENA_ARRAY(&b->scratch, Value *, count + 1);
  if (!copies) return build_out_of_memory(b);
  for (size_t i = 0; i < count && !b->failed; i++) copies[i] = build_input_like(b, inputs[i]);
  return b->failed ? NULL : copies;
}

// Adds both graphs and the gradient's outputs.
static void add_graphs(Builder *b, const Graph *forward, const Graph *backward, const GradientEnds *ends) {
  const size_t nothers = backward->ninputs - ends->ndiffs;
  Value **inputs = copy_inputs(b, forward->inputs, forward->ninputs);
  Value **given = inputs ? copy_inputs(b, backward->inputs + nothers, ends->ndiffs) : NULL;
  Value **values = given ? build_inlined(b, forward, inputs) : NULL;
  Value **all = ARENA_ARRAY(&b->scratch, Value *, backward->ninputs + 1);
  if (!values || !all) {
    if (!all) build_out_of_memory(b);
    return;
  }
  for (size_t i = 0; i < nothers; i++) all[i] = values[ends->inputs[i]->index];
  for (size_t i = 0; i < ends->ndiffs; i++) all[nothers + i] = given[i];
  Value **gradients = build_inlined(b, backward, all);
  for (size_t i = 0; i < backward->noutputs && gradients && !b->failed; i++)
    if (!graph_add_output(b->graph, gradients[backward->outputs[i]->index])) build_out_of_memory(b);
}

// Removes inputs without uses, unless all of forward's stay, and sets `ends` to the remaining ends.
static bool find_ends(Graph *g, const Graph *forward, const Graph *backward, GradientEnds *ends, bool keeps_inputs) {
  const size_t nothers = backward->ninputs - ends->ndiffs, nall = g->ninputs;
  const Value **inputs = ARENA_ARRAY(&g->arena, const Value *, nall + 1);
  const Value **outputs = ARENA_ARRAY(&g->arena, const Value *, g->noutputs + 1);
  if (!inputs || !outputs) return false;
  if (g->noutputs) memcpy(outputs, ends->outputs, g->noutputs * sizeof *outputs);
  g->ninputs = 0;
  for (size_t i = 0; i < nall; i++) {
    Value *v = g->inputs[i];
    v->is_input = keeps_inputs || v->uses;
    if (!v->is_input) continue;
    inputs[g->ninputs] = i < forward->ninputs ? forward->inputs[i] : ends->inputs[nothers + i - forward->ninputs];
    g->inputs[g->ninputs++] = v;
  }
  *ends = (GradientEnds){inputs, outputs, ends->ndiffs};
  return true;
}

Graph *gradient_with_forward(const Graph *forward, const Graph *backward, GradientEnds *ends, bool keeps_inputs,
                             Diagnostics *d) {
  Builder b;
  builder_begin(&b, forward, "_backward", d);
  if (!b.failed) {
    b.graph->nleaves = forward->nleaves;
    add_graphs(&b, forward, backward, ends);
  }
  PassContext context = {.diagnostics = d, .allocator = b.scratch.allocator};
  if (!b.failed) pass_dead_code(b.graph, &context);
  if (!b.failed && !find_ends(b.graph, forward, backward, ends, keeps_inputs)) build_out_of_memory(&b);
  if (!b.failed) pass_dead_code(b.graph, &context); // removes nodes of inputs that nothing uses
  return builder_end(&b);
}
