// Merges common subexpressions: nodes that compute the same values.
//
// Visits nodes in topological order and looks each up in a hash table of earlier nodes, by operator, attributes and
// operands, which are merged already. Merges small constants with equal bytes. Never merges two outputs of the graph,
// as each needs its name.
#include "passes/rewrite/passes.h"

#include "ir/operators/operator.h"

#include <string.h>

enum { MOST_CONSTANT_BYTES = 4096 };

typedef struct Table { // open addressing, at most half full
  void **slots;
  size_t mask;
} Table;

static bool table_init(Table *t, Arena *scratch, size_t count) {
  size_t nslots = 16;
  while (nslots < 2 * count) nslots *= 2;
  *t = (Table){ARENA_ARRAY(scratch, void *, nslots), nslots - 1};
  return t->slots;
}

static uint64_t mix(uint64_t hash, uint64_t word) { // splitmix64's finalizer
  hash = (hash ^ word) + 0x9E3779B97F4A7C15U;
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9U;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBU;
  return hash ^ (hash >> 31);
}

// Constants

static size_t constant_nbytes(const Value *v) {
  int64_t nelems = v->constant->is_splat ? 1 : shape_nelems(&v->shape);
  return nelems < 0 ? SIZE_MAX : type_array_nbytes(v->type, (size_t)nelems);
}

static uint64_t hash_constant(const Value *v) {
  uint64_t hash = mix(v->type, v->constant->is_splat);
  const unsigned char *bytes = v->constant->data;
  for (int i = 0; i < v->shape.rank; i++) hash = mix(hash, (uint64_t)extent_value(v->shape.extent[i]));
  for (size_t i = 0, n = constant_nbytes(v); i < n; i++) hash = mix(hash, bytes[i]);
  return hash;
}

static bool is_same_constant(const Value *a, const Value *b) {
  return a->type == b->type && a->constant->is_splat == b->constant->is_splat && shape_equals(&a->shape, &b->shape) &&
         memcmp(a->constant->data, b->constant->data, constant_nbytes(a)) == 0;
}

static bool merge_constants(const Graph *g, Table *t) {
  bool changed = false;
  for (size_t i = 0; i < g->nvalues; i++) {
    Value *v = g->values[i];
    if (!v->constant || constant_nbytes(v) > MOST_CONSTANT_BYTES) continue;
    size_t at = hash_constant(v) & t->mask;
    while (t->slots[at] && !is_same_constant(t->slots[at], v)) at = (at + 1) & t->mask;
    if (!t->slots[at]) {
      t->slots[at] = v;
      continue;
    }
    changed |= v->uses != NULL;
    value_replace_uses(v, t->slots[at]);
  }
  return changed;
}

// Nodes

static uint64_t hash_attribute(uint64_t hash, const Attribute *row, const AttributeValue *value) {
  if (!value->is_set) return hash;
  if (row->kind == ATTRIBUTE_BOOL) return mix(hash, value->boolean);
  if (row->kind == ATTRIBUTE_F32_LIST) return mix(hash, value->numbers.count);
  if (row->kind != ATTRIBUTE_S64_LIST) return mix(hash, (uint64_t)value->s64); // for f32, the bits of the double
  for (size_t i = 0; i < value->list.count; i++) hash = mix(hash, (uint64_t)value->list.items[i]);
  return hash;
}

static bool is_same_attribute(const Attribute *row, const AttributeValue *a, const AttributeValue *b) {
  if (!a->is_set || !b->is_set) return a->is_set == b->is_set;
  if (row->kind == ATTRIBUTE_BOOL) return a->boolean == b->boolean;
  if (row->kind == ATTRIBUTE_F32_LIST)
    return a->numbers.count == b->numbers.count &&
           (!a->numbers.count ||
            memcmp(a->numbers.items, b->numbers.items, a->numbers.count * sizeof *a->numbers.items) == 0);
  if (row->kind != ATTRIBUTE_S64_LIST) return a->s64 == b->s64;
  if (!a->list.extents != !b->list.extents) return false;
  for (size_t i = 0; a->list.extents && i < a->list.count && i < b->list.count; i++)
    if (a->list.extents[i].dim && !extent_equals(a->list.extents[i], b->list.extents[i])) return false;
  return a->list.count == b->list.count &&
         (!a->list.count || memcmp(a->list.items, b->list.items, a->list.count * sizeof *a->list.items) == 0);
}

// The hash does not depend on the order of a commutative operator's operands.
static uint64_t hash_node(const Node *node) {
  uint64_t hash = node->op->id;
  for (uint32_t i = 0; i < node->op->nattributes; i++)
    hash = hash_attribute(hash, &node->op->attributes[i], &node->attributes[i]);
  uint64_t pair = 0;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    uint64_t index = node->inputs[i] ? node->inputs[i]->index + 1 : 0;
    if (node->op->is_commutative && i < 2) pair += mix(1, index);
    else hash = mix(hash, index);
  }
  for (uint32_t i = 0; i < node->noutputs; i++) hash = mix(hash, node->outputs[i] ? node->outputs[i]->type : TYPE_NONE);
  return mix(hash, pair);
}

static bool is_same_node(const Node *a, const Node *b) {
  if (a->op != b->op || a->signature != b->signature || a->ninputs != b->ninputs) return false;
  for (uint32_t i = 0; i < a->op->nattributes; i++)
    if (!is_same_attribute(&a->op->attributes[i], &a->attributes[i], &b->attributes[i])) return false;
  bool is_exchanged = a->op->is_commutative && a->inputs[0] == b->inputs[1] && a->inputs[1] == b->inputs[0];
  for (uint32_t i = is_exchanged ? 2 : 0; i < a->ninputs; i++)
    if (a->inputs[i] != b->inputs[i]) return false;
  for (uint32_t i = 0; i < a->noutputs; i++) {
    const Value *v = a->outputs[i], *w = b->outputs[i];
    if (!v != !w || (v && (v->type != w->type || !shape_equals(&v->shape, &w->shape)))) return false;
  }
  return true;
}

// Whether the nodes may be merged: not if corresponding outputs of both are outputs of the graph, as each needs its
// name.
static bool may_merge(const Node *first, const Node *later) {
  for (uint32_t i = 0; i < first->noutputs; i++)
    if (first->outputs[i] && first->outputs[i]->is_output && later->outputs[i]->is_output) return false;
  return true;
}

// Replaces the outputs of `later` by the outputs of `first`. An output of the graph keeps its name. False: out of
// memory.
static bool merge_nodes(Graph *g, Node *first, Node *later) {
  if (!node_add_origin(g, first, first) || !node_add_origin(g, first, later)) return false;
  for (uint32_t i = 0; i < first->noutputs; i++) {
    Value *v = first->outputs[i], *w = later->outputs[i];
    if (!v) continue;
    node_set_output(later, i, NULL);
    if (w->is_output) node_set_output(first, i, w);
    value_replace_uses(w->is_output ? v : w, w->is_output ? w : v);
  }
  for (uint32_t i = 0; i < later->ninputs; i++) node_set_input(later, i, NULL);
  return true;
}

bool pass_common_subexpressions(Graph *g, PassContext *c) {
  Arena scratch;
  arena_init(&scratch, c->allocator);
  Table constants, nodes;
  bool changed = false, ok = true;
  if (table_init(&constants, &scratch, g->nvalues) && table_init(&nodes, &scratch, g->nnodes)) {
    changed = merge_constants(g, &constants);
    size_t nremaining = 0;
    for (size_t i = 0; i < g->nnodes; i++) {
      Node *node = g->nodes[i];
      size_t at = hash_node(node) & nodes.mask;
      while (nodes.slots[at] && !is_same_node(nodes.slots[at], node)) at = (at + 1) & nodes.mask;
      bool is_merged = ok && nodes.slots[at] && may_merge(nodes.slots[at], node);
      if (is_merged) ok = is_merged = merge_nodes(g, nodes.slots[at], node);
      if (!nodes.slots[at]) nodes.slots[at] = node;
      changed |= is_merged;
      if (is_merged) continue;
      node->index = (uint32_t)nremaining;
      g->nodes[nremaining++] = node;
    }
    g->nnodes = nremaining;
  } else {
    ok = false;
  }
  if (!ok) pass_out_of_memory(c);
  arena_deinit(&scratch);
  return changed;
}
