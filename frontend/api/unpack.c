// Weights that a model stores in integers of few bits or in 8-bit floats become constants of f32, which can be trained.
#include "frontend/api/unpack.h"

#include "backends/interpreter/interpreter.h"
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

static double *load(Arena *arena, const Value *v) {
  const size_t nelems = (size_t)shape_nelems(&v->shape);
  double *elements = ARENA_ARRAY(arena, double, nelems + 1);
  for (size_t i = 0; elements && i < nelems; i++)
    type_load_wide(v->type, v->constant->data, v->constant->is_splat ? 0 : i, &elements[i]);
  return elements;
}

// The result becomes a constant, and the node loses its operands.
static bool evaluate(Graph *g, Node *node) {
  const double *inputs[MAX_VARIADIC + MAX_OPERANDS] = {NULL};
  Value *v = node->outputs[0];
  const size_t nelems = (size_t)shape_nelems(&v->shape);
  Arena scratch;
  arena_init(&scratch, g->arena.allocator);
  double *result = ARENA_ARRAY(&scratch, double, nelems + 1);
  Constant *constant = ARENA_NEW(&g->arena, Constant);
  bool ok = result && constant && (constant->data = arena_array(&g->arena, nelems + 1, type_nbytes(v->type)));
  for (uint32_t i = 0; ok && i < node->ninputs; i++)
    ok = !node->inputs[i] || (inputs[i] = load(&scratch, node->inputs[i]));
  ok = ok && interpret_node(node, inputs, &result, g->arena.allocator);
  for (size_t i = 0; ok && i < nelems; i++) type_store_wide(v->type, constant->data, i, &result[i]);
  arena_deinit(&scratch);
  if (!ok) return false;
  v->constant = constant;
  v->producer = NULL;
  node->outputs[0] = NULL;
  for (uint32_t i = 0; i < node->ninputs; i++) node_set_input(node, i, NULL);
  return true;
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
