// The verifier. It checks the structure first, with functions that follow a pointer only after checking it, then
// inference.
#include "ir/graph/verify.h"

#include "ir/graph/leaves.h"
#include "ir/operators/infer.h"

#include <stdlib.h>
#include <string.h>

static bool node_error(const Node *node, Diagnostics *d, const char *what, const char *which) {
  char title[NODE_TITLE_BYTES];
  return error_at(d, node->position, "%s: %s %s", node_title(node, title), what, which);
}

static bool type_error(const Node *node, Diagnostics *d, const Value *v, const char *property) {
  char title[NODE_TITLE_BYTES];
  return error_at(d, node->position, "%s: the %s of %s does not follow from the inputs, expected it to be declared",
                  node_title(node, title), property, v->name);
}

static bool has_value(const Graph *g, const Value *v) {
  return v->index < g->nvalues && g->values[v->index] == v;
}

static bool has_node(const Graph *g, const Node *node) {
  return node->index < g->nnodes && g->nodes[node->index] == node;
}

static bool verify_count(const Node *node, Diagnostics *d) {
  const Operator *op = node->op;
  bool is_right = op->traits & TRAIT_VARIADIC ? node->ninputs >= op->ninputs && node->ninputs <= MAX_VARIADIC
                                              : node->ninputs == op->ninputs;
  if (node->signature && &operators[node->signature->op] != op)
    return node_error(node, d, "its signature is another operator's, expected one of", op->name);
  char title[NODE_TITLE_BYTES];
  return (is_right && node->noutputs == op->noutputs) ||
         error_at(d, node->position, "%s: has %u inputs and %u outputs, expected %u%s and %u", node_title(node, title),
                  (unsigned)node->ninputs, (unsigned)node->noutputs, (unsigned)op->ninputs,
                  op->traits & TRAIT_VARIADIC ? " or more" : "", (unsigned)op->noutputs);
}

static bool verify_input(const Graph *g, const Node *node, uint32_t slot, Diagnostics *d) {
  const Operator *op = node->op;
  const Operand *row = &op->inputs[slot < op->ninputs ? slot : op->ninputs - 1];
  const Value *v = node->inputs[slot];
  if (!v) return row->is_optional || node_error(node, d, "missing input", row->name);
  if (!has_value(g, v)) return node_error(node, d, "has an operand that is no value of this graph:", v->name);
  if (v->producer && v->producer->index >= node->index)
    return node_error(node, d, "must come after the producer of its input", v->name);
  if (!v->producer && !v->is_input && !v->constant)
    return node_error(node, d, "no node, graph input or constant provides its input", v->name);
  return true;
}

static bool verify_output(const Graph *g, const Node *node, uint32_t slot, Diagnostics *d) {
  const Operand *row = &node->op->outputs[slot];
  const Value *v = node->outputs[slot];
  if (!v) return row->is_optional || node_error(node, d, "missing output", row->name);
  if (!has_value(g, v)) return node_error(node, d, "has an operand that is no value of this graph:", v->name);
  if (v->producer != node || v->output_slot != slot)
    return node_error(node, d, "is not recorded as the producer of its output", v->name);
  if (v->type == TYPE_NONE) return type_error(node, d, v, "type");
  return v->shape.rank >= 0 || type_error(node, d, v, "rank");
}

static bool verify_attributes(const Node *node, Diagnostics *d) {
  bool ok = true;
  for (uint32_t i = 0; i < node->op->nattributes; i++) {
    const Attribute *row = &node->op->attributes[i];
    const AttributeValue *value = &node->attributes[i];
    if (!value->is_set) {
      if (!row->is_optional) ok = node_error(node, d, "missing attribute", row->name);
      continue;
    }
    bool is_positive = row->kind == ATTRIBUTE_F32 ? value->f32 > 0 : value->s64 > 0;
    if (row->must_be_positive && !is_positive) ok = node_error(node, d, "expected a positive", row->name);
    if (row->kind == ATTRIBUTE_CHOICE && (value->s64 < 0 || value->s64 >= MAX_CHOICES || !row->choices[value->s64]))
      ok = node_error(node, d, "expected one of the choices of", row->name);
  }
  return ok;
}

static bool verify_node(const Graph *g, uint32_t index, Diagnostics *d) {
  const Node *node = g->nodes[index];
  if (node->index != index) return node_error(node, d, "its index in the graph is another node's, expected", "its own");
  if (!verify_count(node, d)) return false;
  bool ok = true;
  for (uint32_t i = 0; i < node->ninputs; i++) ok &= verify_input(g, node, i, d);
  for (uint32_t i = 0; i < node->noutputs; i++) ok &= verify_output(g, node, i, d);
  return ok & verify_attributes(node, d);
}

// Checks that every use in v's list belongs to an input of a node that reads v. The lists are then complete if together
// they have as many uses as the nodes have inputs: *nuses counts down from the number of inputs.
static bool verify_uses(const Graph *g, const Value *v, size_t *nuses, Diagnostics *d) {
  for (const Use *use = v->uses; use; use = use->next) {
    const Node *node = use->node;
    bool is_own = has_node(g, node) && use->slot < node->ninputs && use == &node->input_uses[use->slot];
    if (!is_own || node->inputs[use->slot] != v || *use->link != use || (*nuses)-- == 0)
      return error_at(d, v->position, "%s: its list of uses does not match the inputs of nodes", v->name);
  }
  return true;
}

static bool verify_all_uses(const Graph *g, Diagnostics *d) {
  size_t nuses = 0;
  for (size_t i = 0; i < g->nnodes; i++)
    for (uint32_t k = 0; k < g->nodes[i]->ninputs; k++) nuses += g->nodes[i]->inputs[k] != NULL;
  for (size_t i = 0; i < g->nvalues; i++)
    if (!verify_uses(g, g->values[i], &nuses, d)) return false;
  return nuses == 0 || error_at(d, (Position){0}, "%s: nodes have inputs whose values do not list these uses", g->name);
}

// A live value is exactly one of a node's output, a graph input and a constant; a dead value is none of these.
static bool verify_origin(const Graph *g, const Value *v, Diagnostics *d) {
  const Node *node = v->producer;
  bool is_made = node && has_node(g, node) && v->output_slot < node->noutputs && node->outputs[v->output_slot] == v;
  if (node && !is_made) return error_at(d, v->position, "%s: its producer does not list it as an output", v->name);
  if ((node != NULL) + v->is_input + (v->constant != NULL) > 1)
    return error_at(d, v->position, "%s: expected exactly one origin: a node, the graph's inputs or a constant",
                    v->name);
  if ((v->is_input || v->constant) && v->type == TYPE_NONE)
    return error_at(d, v->position, "%s: expected a type", v->name);
  return true;
}

static bool verify_shape(const Value *v, Diagnostics *d) {
  bool ok = v->shape.rank <= MAX_RANK;
  for (int i = 0; ok && i < v->shape.rank; i++) ok = v->shape.extent[i].dim || v->shape.extent[i].value >= -1;
  if (!ok) return error_at(d, v->position, "%s: expected at most %d axes and no negative extent", v->name, MAX_RANK);
  ok = layout_is_valid(&v->layout, v->shape.rank) && (!v->constant || layout_is_row_major(&v->layout));
  return ok ||
         error_at(d, v->position, "%s: expected a layout with each axis once, or row-major for a constant", v->name);
}

// A splat constant may have named extents; a constant with a list of elements needs literal extents.
static bool verify_constant(const Value *v, Diagnostics *d) {
  char text[160];
  bool ok = v->shape.rank >= 0;
  for (int i = 0; v->constant && i < v->shape.rank; i++)
    ok &= v->constant->is_splat ? !extent_is_unknown(v->shape.extent[i]) : extent_is_literal(v->shape.extent[i]);
  return !v->constant || ok ||
         error_at(d, v->position, "constant %s: expected a shape without unknown extents, found %s", v->name,
                  shape_string(&v->shape, text, sizeof text));
}

static bool verify_value(const Graph *g, uint32_t index, Diagnostics *d) {
  const Value *v = g->values[index];
  if (v->index != index) return error_at(d, v->position, "%s: its index in the graph is another value's", v->name);
  return verify_origin(g, v, d) && verify_shape(v, d) && verify_constant(v, d);
}

static int compare_names(const void *a, const void *b) {
  return strcmp((*(Value *const *)a)->name, (*(Value *const *)b)->name);
}

static bool verify_names(const Graph *g, Diagnostics *d) {
  Arena scratch;
  arena_init(&scratch, g->arena.allocator);
  Value **sorted = ARENA_ARRAY(&scratch, Value *, g->nvalues + 1);
  bool ok = sorted || error_out_of_memory(d);
  if (ok && g->nvalues) {
    memcpy(sorted, g->values, g->nvalues * sizeof *sorted);
    qsort(sorted, g->nvalues, sizeof *sorted, compare_names);
  }
  for (size_t i = 1; ok && i < g->nvalues; i++)
    if (compare_names(&sorted[i - 1], &sorted[i]) == 0)
      ok = error_at(d, sorted[i]->position, "two values are named %s", sorted[i]->name);
  arena_deinit(&scratch);
  return ok;
}

// Checks that the lists of inputs and outputs agree with the values' flags. A value may be listed more than once as
// output.
static bool verify_ends(const Graph *g, bool *is_listed, Diagnostics *d) {
  size_t nunlisted = 0;
  for (size_t i = 0; i < g->ninputs; i++) {
    const Value *v = g->inputs[i];
    if (!has_value(g, v) || !v->is_input || is_listed[v->index])
      return error_at(d, v->position, "%s: the graph lists it as an input twice, or it is not marked as an input",
                      v->name);
    is_listed[v->index] = true;
  }
  for (size_t i = 0; i < g->nvalues; i++) {
    nunlisted += g->values[i]->is_input && !is_listed[i];
    is_listed[i] = false;
  }
  for (size_t i = 0; i < g->noutputs; i++) {
    const Value *v = g->outputs[i];
    if (!has_value(g, v) || !v->is_output || (!v->producer && !v->is_input && !v->constant))
      return error_at(d, v->position, "%s: expected an output that a node, input or constant provides", v->name);
    is_listed[v->index] = true;
  }
  for (size_t i = 0; i < g->nvalues; i++) nunlisted += g->values[i]->is_output && !is_listed[i];
  return nunlisted == 0 ||
         error_at(d, (Position){0}, "%s: a value is marked as input or output, but the graph does not list it",
                  g->name);
}

static bool verify_update(const Graph *g, const State *state, Diagnostics *d) {
  char text[2][160];
  if (state->output < 0) return true;
  if (state->output < (int64_t)(g->noutputs - g->nupdates) || state->output >= (int64_t)g->noutputs)
    return error_at(d, state->update, "%s: the update of this state is not one of the graph's updates",
                    g->inputs[state->input]->name);
  const Value *v = g->inputs[state->input], *next = g->outputs[state->output];
  if (next->type == TYPE_NONE || next->shape.rank < 0) return true; // reported elsewhere
  if (next->type != v->type)
    return error_at(d, state->update, "updates: %s is %s, expected %s to be the same, found %s", v->name,
                    type_name(v->type), next->name, type_name(next->type));
  if (!shape_equals(&v->shape, &next->shape))
    return error_at(d, state->update, "updates: %s is %s, expected %s to be the same, found %s", v->name,
                    shape_string(&v->shape, text[0], sizeof text[0]), next->name,
                    shape_string(&next->shape, text[1], sizeof text[1]));
  return memcmp(&v->layout, &next->layout, sizeof v->layout) == 0 ||
         error_at(d, state->update, "updates: %s and %s have different layouts, expected the same layout", v->name,
                  next->name);
}

// Checks that states are the last inputs, and updates the last outputs.
static bool verify_states(const Graph *g, Diagnostics *d) {
  size_t nupdates = 0;
  bool ok = g->nstates <= g->ninputs && g->nupdates <= g->noutputs;
  for (size_t i = 0; ok && i < g->nstates; i++) {
    ok = g->states[i].input == g->ninputs - g->nstates + i;
    nupdates += g->states[i].output >= 0;
  }
  if (!ok || nupdates != g->nupdates)
    return error_at(d, (Position){0}, "%s: states must be the last inputs of the graph, and updates its last outputs",
                    g->name);
  for (size_t i = 0; i < g->nstates; i++) ok &= verify_update(g, &g->states[i], d);
  return ok;
}

// The checks that make it safe for inference to follow the graph's pointers.
static bool verify_structure(Graph *g, Diagnostics *d) {
  bool ok = true;
  for (uint32_t i = 0; i < g->nvalues; i++) ok &= verify_value(g, i, d);
  for (uint32_t i = 0; i < g->nnodes; i++) ok &= verify_node(g, i, d);
  if (!ok) return false;
  Arena scratch;
  arena_init(&scratch, g->arena.allocator);
  bool *is_listed = ARENA_ARRAY(&scratch, bool, g->nvalues + 1);
  ok = is_listed ? verify_ends(g, is_listed, d) && verify_all_uses(g, d) : error_out_of_memory(d);
  arena_deinit(&scratch);
  return ok;
}

bool graph_verify(Graph *g, Diagnostics *d) {
  bool ok = verify_names(g, d);
  return verify_structure(g, d) && verify_states(g, d) && ok && graph_infers_nothing_new(g, d) &&
         graph_verify_leaves(g, d);
}
