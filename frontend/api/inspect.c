// Describes a graph: its nodes, their operands and attributes, and the files that it was read from.
#include "frontend/api/catalogue.h"
#include "frontend/api/handles.h"
#include "ir/operators/indices.h"

size_t ng_graph_node_count(const ng_graph *g) {
  return g->graph->nnodes;
}

ng_node_info ng_graph_node(const ng_graph *g, size_t i) {
  const Node *node = g->graph->nodes[i];
  return (ng_node_info){
      .name = node->signature ? node->signature->full_name : node->op->name,
      .canonical = node->op->name,
      .ninputs = node->ninputs,
      .noutputs = node->noutputs,
      .nattributes = node->op->nattributes,
      .line = node->position.line,
  };
}

ng_tensor_info ng_graph_node_input(const ng_graph *g, size_t i, size_t k) {
  return value_info(g->graph->nodes[i]->inputs[k]);
}

ng_tensor_info ng_graph_node_output(const ng_graph *g, size_t i, size_t k) {
  return value_info(g->graph->nodes[i]->outputs[k]);
}

ng_attribute ng_graph_node_attribute(const ng_graph *g, size_t i, size_t k) {
  const Node *node = g->graph->nodes[i];
  const Attribute *row = &node->op->attributes[k];
  const AttributeValue *value = &node->attributes[k];
  ng_attribute a = {.name = row->name, .kind = attribute_kind_name(row->kind), .is_set = value->is_set};
  if (!value->is_set) return a;
  switch (row->kind) {
  case ATTRIBUTE_BOOL: a.integer = value->boolean; break;
  case ATTRIBUTE_S64:
  case ATTRIBUTE_CHOICE: a.integer = value->s64; break;
  case ATTRIBUTE_F32: a.number = value->f32; break;
  case ATTRIBUTE_S64_LIST:
    a.items = value->list.items;
    a.nitems = value->list.count;
    break;
  case ATTRIBUTE_F32_LIST:
    a.numbers = value->numbers.items;
    a.nitems = value->numbers.count;
    break;
  }
  return a;
}

int64_t ng_graph_leaf_count(const ng_graph *g) {
  return g->graph->nleaves;
}

size_t ng_graph_state_count(const ng_graph *g) {
  return g->graph->nstates;
}

ng_state ng_graph_state(const ng_graph *g, size_t i) {
  const State *state = &g->graph->states[i];
  const bool is_updated = state->output >= 0;
  ng_state s = {.input = state->input, .output = is_updated ? (size_t)state->output : 0, .is_updated = is_updated};
  state_range(g->graph, state, &s.least, &s.most);
  return s;
}

size_t ng_graph_file_count(const ng_graph *g) {
  size_t count = 0;
  while (ng_graph_file(g, count)) count++;
  return count;
}

const char *ng_graph_file(const ng_graph *g, size_t i) {
  for (size_t v = 0; v < g->graph->nvalues; v++) {
    const Constant *constant = g->graph->values[v]->constant;
    if (constant && constant->file && !constant->is_initializer && i-- == 0) return constant->file;
  }
  for (size_t s = 0; s < g->graph->nstates; s++) {
    const Init *init = &g->graph->states[s].init;
    if (init->kind == INIT_FILE && !init->constant->is_initializer && i-- == 0) return init->constant->file;
  }
  return NULL;
}
