// Weights that a model stores in integers of few bits or in 8-bit floats become constants of f32, which can be trained.
#include "frontend/api/unpack.h"

#include "backends/interpreter/interpreter.h"
#include "ir/graph/fold.h"
#include "ir/operators/operator.h"

#include <string.h>

// Whether the node makes one value of constants, by a step for each element.
static bool is_of_constants(const Node *node) {
  const char *const family = node->op->family;
  const Value *result = node->noutputs == 1 ? node->outputs[0] : NULL;
  const bool is_plain = !strcmp(family, "elementwise") || !strcmp(family, "movement") || !strcmp(family, "quantize");
  bool all = is_plain && result && shape_is_known(&result->shape) && layout_is_row_major(&result->layout);
  for (uint32_t i = 0; i < node->ninputs && all; i++) {
    const Value *v = node->inputs[i];
    all = !v || (v->constant && shape_is_known(&v->shape) && layout_is_row_major(&v->layout));
  }
  return all;
}

static bool is_packed(const Value *v, const bool *unpacked) {
  return v && (unpacked[v->index] || (v->constant && TYPE_BIT(v->type) & TYPES_QUANTIZED && v->shape.rank > 0));
}

static bool evaluate(Graph *g, Node *node) {
  return graph_fold_node(g, node, &(Folding){interpret_node}) == FOLD_DONE;
}

// Evaluates a node that takes something packed, behind the nodes that make its other operands, as the shape of a scale.
static bool unpack(Graph *g, Node *node, bool *unpacked) {
  bool any = false;
  for (uint32_t i = 0; i < node->ninputs; i++) any |= is_packed(node->inputs[i], unpacked);
  if (!any || node->noutputs != 1 || !node->outputs[0] || !type_is_float(node->outputs[0]->type)) return true;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    Node *before = node->inputs[i] ? node->inputs[i]->producer : NULL;
    if (before && is_of_constants(before) && !evaluate(g, before)) return false;
  }
  const Value *v = node->outputs[0];
  if (!is_of_constants(node) || v->shape.rank < 1) return true;
  unpacked[v->index] = true;
  return evaluate(g, node);
}

bool graph_unpack_weights(Graph *g) {
  Arena scratch;
  size_t count = 0;
  arena_init(&scratch, g->arena.allocator);
  bool *unpacked = ARENA_ARRAY(&scratch, bool, g->nvalues + 1), ok = unpacked != NULL;
  for (size_t i = 0; ok && i < g->nnodes; i++) ok = unpack(g, g->nodes[i], unpacked);
  for (size_t i = 0; ok && i < g->nnodes; i++) {
    Node *node = g->nodes[i];
    if (node->noutputs == 1 && !node->outputs[0]) continue; // evaluated
    node->index = (uint32_t)count;
    g->nodes[count++] = node;
  }
  if (ok) g->nnodes = count;
  for (size_t i = 0; ok && i < g->nvalues; i++)
    if (unpacked[i] && g->values[i]->uses) g->values[i]->constant->is_initializer = true;
  arena_deinit(&scratch);
  return ok;
}
