// Graphs within graphs: functions of the model, and the branches of If. Their nodes replace the node that calls them.
#include "frontend/onnx/translation.h"

#include <string.h>

// Calls repeat a function's nodes, names and constants. The repeated bytes are counted, so that a small file cannot
// cause much work.
enum {
  MOST_DEPTH = 32,
  MOST_CALLED_BYTES = 1 << 27, // bytes of functions, counted once for each call
  NODES_OF_A_CALL = 4          // a call counts as this many nodes, so that calls of empty functions are limited too
};

Value *onnx_find(const Onnx *x, const char *name) {
  Value *v = NULL;
  for (const OnnxScope *scope = x->scope; scope && !v; scope = scope->outer) v = names_find(&scope->values, name);
  return v;
}

static bool bind_inputs(Onnx *x, const OnnxGraph *g, Names *values) {
  for (size_t i = 0; i < g->ninputs; i++) {
    const char *name = onnx_text_of(x, g->inputs[i].name);
    Value *v = onnx_in(x, i);
    if (!name || !names_set(values, name, v ? v : &x->absent)) return error_out_of_memory(x->reading.d);
  }
  return true;
}

static bool find_results(Onnx *x, const OnnxGraph *g, Value **results) {
  for (size_t i = 0; i < g->noutputs; i++) {
    const char *name = onnx_text_of(x, g->outputs[i].name);
    if (!name) return false;
    results[i] = onnx_find(x, name);
  }
  return true;
}

// Sets a result of the node, and reports an error only if none was reported for it yet.
static bool give_result(Onnx *x, size_t i, Value *v) {
  if (v && v != &x->failed && v != &x->absent) return onnx_out(x, i, v);
  x->build.has_told = v != NULL;
  return v ? false : build_error(&x->build, "output %zu: no node makes it", i);
}

// Translates g in its own scope, and makes its outputs the results of the current node.
static bool inline_graph(Onnx *x, const OnnxGraph *g, const OnnxScope *outer, const OnnxNode *caller, int64_t opset) {
  OnnxScope scope = {.outer = outer};
  const Onnx before = *x;
  x->nnodes += NODES_OF_A_CALL + g->ninitializers + (g->ninputs + g->noutputs) / OPERANDS_OF_A_NODE;
  if (x->depth >= MOST_DEPTH)
    return build_error(&x->build, "functions and branches are nested deeper than %d", MOST_DEPTH);
  if (x->node->noutputs > g->noutputs) return build_error(&x->build, "expected at most %zu outputs", g->noutputs);
  Value **results = ARENA_ARRAY(x->reading.arena, Value *, g->noutputs + 1);
  if (!results) return error_out_of_memory(x->reading.d);
  names_init(&scope.values, x->reading.arena);
  if (!outer && !bind_inputs(x, g, &scope.values)) return false;
  x->scope = &scope;
  x->caller = caller;
  x->opset = opset;
  x->depth++;
  const bool ok = onnx_add_initializers(x, g) && onnx_translate_nodes(x, g) && find_results(x, g, results);
  x->scope = before.scope;
  x->caller = before.caller;
  x->opset = before.opset;
  x->depth = before.depth;
  x->node = before.node;
  x->row = before.row;
  x->build.title = before.build.title;
  x->inputs = before.inputs;
  if (!ok) return false;
  for (size_t i = 0; i < x->node->noutputs; i++)
    if (onnx_wants(x, i) && !give_result(x, i, results[i])) return false;
  return true;
}

bool onnx_call(Onnx *x, const OnnxFunction *function) {
  const OnnxGraph *g = &function->graph;
  if (x->node->ninputs > g->ninputs) return build_error(&x->build, "expected at most %zu inputs", g->ninputs);
  x->ncalled += function->nbytes;
  if (x->ncalled > MOST_CALLED_BYTES)
    return build_error(&x->build, "the functions that the model calls are more than %d MiB, counted at each call",
                       MOST_CALLED_BYTES >> 20);
  OnnxNode call = *x->node;
  call.defaults = function->defaults;
  return inline_graph(x, g, NULL, &call, function->opset ? function->opset : x->opset);
}

bool onnx_if(Onnx *x) {
  OnnxAttribute branch;
  OnnxGraph g;
  double condition;
  if (!onnx_number(x, onnx_in(x, 0), &condition)) return false;
  const char *name = condition != 0 ? "then_branch" : "else_branch";
  if (!onnx_attribute(x, name, ONNX_GRAPH, &branch) || !branch.g.at)
    return build_error(&x->build, "expected a %s", name);
  return onnx_read_graph(&x->reading, branch.g, &g) && inline_graph(x, &g, x->scope, x->caller, x->opset);
}
