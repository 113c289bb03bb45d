// Computes a graph for many values of some inputs at once: these inputs, and all that depends on them, get a new first
// axis. Elementwise nodes, reductions, softmax, products, reshapes and transposes take it as one more axis; other nodes
// are repeated for each index, and their results concatenated.
#include "ir/graph/builder.h"
#include "ir/operators/contraction.h"
#include "passes/gradient/gradient.h"
#include "passes/rewrite/dead_code.h"

#include <string.h>

typedef struct Batch {
  Builder b;
  int64_t count;
  Value **with; // by the index of a value: the one with the new axis; NULL: it has none
} Batch;

static Shape with_axis(const Shape *shape, int64_t extent, int nones) {
  Shape s = {.rank = shape->rank + 1 + nones, .extent = {EXTENT(extent)}};
  for (int i = 0; i < nones; i++) s.extent[1 + i] = EXTENT(1);
  for (int i = 0; i < shape->rank; i++) s.extent[1 + nones + i] = shape->extent[i];
  return s;
}

// The value as an operand that broadcasts to a result that has `rank` axes besides the new one.
static Value *broadcast(Batch *t, Value *v, int rank) {
  Value *with = v ? t->with[v->index] : NULL;
  if (!with) return v;
  const Shape shape = with_axis(&v->shape, t->count, rank - v->shape.rank);
  return build_in_shape(&t->b, with, &shape);
}

// The value with the new axis: copies, if it does not depend on it.
static Value *copied(Batch *t, Value *v) {
  if (!v || t->with[v->index]) return v ? t->with[v->index] : NULL;
  const Shape shape = with_axis(&v->shape, 1, 0);
  int64_t repeats[MAX_RANK];
  for (int i = 0; i < shape.rank; i++) repeats[i] = i ? 1 : t->count;
  Value *one = build_in_shape(&t->b, v, &shape);
  Node *node = build_node(&t->b, OP_Tile, 1, &one);
  return build_set_list(&t->b, node, "repeats", repeats, (size_t)shape.rank) ? build_one(&t->b, node) : NULL;
}

// A node like another, of these operands.
static Node *like(Batch *t, const Node *node, Value *const *inputs) {
  Node *own = build_node(&t->b, node->op->id, node->ninputs, inputs);
  for (uint32_t i = 0; own && i < node->op->nattributes; i++) own->attributes[i] = node->attributes[i];
  return own;
}

// The node's only result, from a node made like it.
static bool finish(Batch *t, const Node *node, Node *own) {
  Value *v = node->outputs[0];
  t->with[v->index] = own ? build_one_of_type(&t->b, own, v->type) : NULL;
  return t->with[v->index] != NULL;
}

// Attributes that name axes, which are one further back. An order begins with the new axis.
static bool shift_axes(Batch *t, Node *own) {
  bool ok = own != NULL;
  for (uint32_t i = 0; ok && i < own->op->nattributes; i++) {
    const char *name = own->op->attributes[i].name;
    AttributeValue *value = &own->attributes[i];
    const bool is_order = strcmp(name, "order") == 0;
    if (strcmp(name, "axis") == 0) value->s64 += value->s64 >= 0;
    if (strcmp(name, "auto_broadcast") == 0) build_set_choice(own, name, "numpy");
    if (!is_order && strcmp(name, "axes") != 0) continue;
    int64_t items[MAX_RANK + 1] = {0};
    const size_t count = value->list.count + is_order;
    for (size_t k = is_order; k < count; k++) {
      const int64_t axis = value->list.items[k - is_order];
      items[k] = axis + (axis >= 0);
    }
    ok = build_set_list(&t->b, own, name, items, count);
  }
  return ok;
}

// The same operator, which takes the new axis as one of the batch.
static bool make_alike(Batch *t, const Node *node) {
  const bool broadcasts = operator_has_attribute(node->op, "auto_broadcast") || node->op->id == OP_MatMul;
  Value *inputs[MAX_OPERANDS] = {NULL};
  for (uint32_t i = 0; i < node->ninputs; i++)
    inputs[i] = broadcasts ? broadcast(t, node->inputs[i], node->outputs[0]->shape.rank) : copied(t, node->inputs[i]);
  Node *own = like(t, node, inputs);
  return shift_axes(t, own) && finish(t, node, own);
}

static bool make_reshape(Batch *t, const Node *node) {
  const Value *v = node->outputs[0];
  const Shape shape = with_axis(&v->shape, t->count, 0);
  return (t->with[v->index] = build_in_shape(&t->b, t->with[node->inputs[0]->index], &shape)) != NULL;
}

// Repeats the node for each index.
static bool make_each(Batch *t, const Node *node) {
  Value *results[MAX_OPERANDS][MOST_BATCH], *inputs[MAX_VARIADIC] = {NULL};
  for (int64_t k = 0; k < t->count; k++) {
    for (uint32_t i = 0; i < node->ninputs; i++) {
      Value *v = node->inputs[i], *with = v ? t->with[v->index] : NULL;
      inputs[i] = with ? build_in_shape(&t->b, build_slice(&t->b, with, 0, k, k + 1), &v->shape) : v;
    }
    Node *own = like(t, node, inputs);
    for (uint32_t i = 0; i < node->noutputs; i++) {
      const Value *v = node->outputs[i];
      Value *result = v ? build_result(&t->b, own, i, v->type) : NULL;
      if (v && !result) return false;
      if (v) result->shape = v->shape;
    }
    if (!build_infer(&t->b, own)) return false;
    for (uint32_t i = 0; i < node->noutputs; i++) {
      const Shape shape = node->outputs[i] ? with_axis(&node->outputs[i]->shape, 1, 0) : (Shape){.rank = 0};
      results[i][k] = node->outputs[i] ? build_in_shape(&t->b, own->outputs[i], &shape) : NULL;
    }
  }
  for (uint32_t i = 0; i < node->noutputs; i++) {
    if (!node->outputs[i]) continue;
    Node *concat = build_node(&t->b, OP_Concat, (uint32_t)t->count, results[i]);
    if (!concat) return false;
    build_set(concat, "axis")->s64 = 0;
    if (!(t->with[node->outputs[i]->index] = build_one(&t->b, concat))) return false;
  }
  return true;
}

// How the node takes the new axis.
static bool (*way_of(const Node *node))(Batch *, const Node *) {
  const unsigned traits = node->op->traits;
  const OperatorId id = node->op->id;
  const bool has_axes = operator_places_by_axis(node->op) || traits & TRAIT_ALONG_AXIS || id == OP_Dropout;
  const bool is_softmax = id == OP_SoftMaxBackward || id == OP_LogSoftmaxBackward || id == OP_LogSoftmax;
  const bool is_product = id == OP_MatMul && node->inputs[0]->shape.rank > 1 && node->inputs[1]->shape.rank > 1;
  if (!node->outputs[0]) return make_each;
  if (id == OP_StaticReshape) return make_reshape;
  const bool is_alike = (traits & TRAIT_ELEMENTWISE && !has_axes) || traits & TRAIT_REDUCES || is_softmax || is_product;
  return is_alike || id == OP_StaticTranspose ? make_alike : make_each;
}

static bool make_node(Batch *t, const Node *node) {
  char title[NODE_TITLE_BYTES];
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (node->outputs[i] && node->outputs[i]->shape.rank == MAX_RANK)
      return error_at(t->b.d, node->position, "%s: expected results of fewer than %d axes, as a matrix has one more",
                      node_title(node, title), MAX_RANK);
  return way_of(node)(t, node);
}

static bool is_with(const Batch *t, const Node *node) {
  bool any = false;
  for (uint32_t i = 0; i < node->ninputs; i++) any |= node->inputs[i] && t->with[node->inputs[i]->index];
  return any;
}

bool graph_batch(Graph *g, Value *const *inputs, Value *const *values, size_t ninputs, int64_t count, Diagnostics *d) {
  Arena scratch;
  arena_init(&scratch, g->arena.allocator);
  Batch t = {.b = {.graph = g, .d = d, .stem = "batch"}, .count = count};
  t.with = ARENA_ARRAY(&scratch, Value *, g->nvalues + 1);
  bool ok = true;
  if (!t.with) {
    arena_deinit(&scratch);
    return error_out_of_memory(d);
  }
  for (size_t i = 0; ok && i < ninputs; i++) t.with[inputs[i]->index] = values[i];
  const size_t nnodes = g->nnodes;
  for (size_t i = 0; ok && i < nnodes; i++) {
    const Node *node = g->nodes[i];
    t.b.at = node->position;
    ok = !is_with(&t, node) || make_node(&t, node);
  }
  for (size_t i = 0; ok && i < g->noutputs; i++) {
    Value *old = g->outputs[i], *v = copied(&t, old);
    ok = v != NULL;
    if (!ok) break;
    old->is_output = false;
    v->is_output = true;
    v->first_output = old->first_output;
    g->outputs[i] = v;
  }
  arena_deinit(&scratch);
  if (!ok || d->out_of_memory || !graph_sort(g, d)) return false;
  pass_dead_code(g, &(PassContext){.diagnostics = d, .allocator = g->arena.allocator});
  return true;
}
