// Builds graphs out of nodes and copies of other graphs.
#include "passes/train/builder.h"

#include "ir/graph/verify.h"
#include "ir/operators/infer.h"

#include <string.h>

void *builder_out_of_memory(Builder *b) {
  b->failed = true;
  error_out_of_memory(b->diagnostics);
  return NULL;
}

const char *builder_name(Builder *b, const char *format, const char *name) {
  const char *text = arena_format(&b->scratch, format, name);
  return text ? text : builder_out_of_memory(b);
}

// Copies

static Value *copy_input(Builder *b, const Value *v, const State *state) {
  Graph *g = b->graph;
  const State *added = state ? graph_add_state(g, v->name, v->type, &v->shape, &state->init) : NULL;
  if (state ? !added : !graph_add_input(g, v->name, v->type, &v->shape)) return builder_out_of_memory(b);
  Value *own = g->inputs[g->ninputs - 1];
  own->position = v->position;
  own->layout = v->layout;
  own->range = v->range;
  return own;
}

Value *builder_copy_input(Builder *b, const Value *like) {
  return copy_input(b, like, NULL);
}

size_t builder_state(Builder *b, const char *name, Type type, const Value *like) {
  Graph *g = b->graph;
  const Shape scalar = {.rank = 0};
  if (b->failed || !name || !graph_add_state(g, name, type, like ? &like->shape : &scalar, &(Init){INIT_ZEROS})) {
    builder_out_of_memory(b);
    return 0;
  }
  if (like) g->inputs[g->ninputs - 1]->layout = like->layout;
  return g->nstates - 1;
}

void builder_init_empty(Builder *b, const Graph *from, const char *suffix, Diagnostics *d) {
  *b = (Builder){.diagnostics = d};
  arena_init(&b->scratch, from->arena.allocator);
  const char *name = arena_format(&b->scratch, "%s%s", from->name, suffix);
  b->graph = name ? graph_new(from->arena.allocator, name) : NULL;
  if (!b->graph) {
    builder_out_of_memory(b);
    return;
  }
  Graph *g = b->graph;
  g->origin = graph_keep((Graph *)from); // the cast is valid: only the reference count changes
  g->source = from->source;
  if (!graph_share_dims(g, from)) builder_out_of_memory(b);
}

void builder_init(Builder *b, const Graph *forward, const char *suffix, Diagnostics *d) {
  builder_init_empty(b, forward, suffix, d);
  if (b->failed) return;
  b->graph->nleaves = forward->nleaves;
  const size_t ndata = forward->ninputs - forward->nstates;
  for (size_t i = 0; i < forward->ninputs && !b->failed; i++)
    copy_input(b, forward->inputs[i], i < ndata ? NULL : &forward->states[i - ndata]);
}

// Copies the element of a splat. Other constants use the original's elements, as the new graph keeps a reference to the
// original graph.
static Constant *copy_constant(Builder *b, const Value *v) {
  Constant *copy = ARENA_NEW(&b->graph->arena, Constant);
  const size_t nbytes = type_nbytes(v->type);
  if (!copy) return NULL;
  *copy = *v->constant;
  if (!copy->is_splat) return copy;
  copy->data = arena_alloc(&b->graph->arena, nbytes);
  if (!copy->data) return NULL;
  memcpy(copy->data, v->constant->data, nbytes);
  return copy;
}

static bool copy_attributes(Builder *b, Node *node, const Node *from) {
  Arena *arena = &b->graph->arena;
  for (uint32_t i = 0; i < node->op->nattributes; i++) {
    AttributeValue *own = &node->attributes[i];
    *own = from->attributes[i];
    const size_t count = own->list.count;
    if (node->op->attributes[i].kind != ATTRIBUTE_S64_LIST || !own->is_set) continue;
    int64_t *items = ARENA_ARRAY(arena, int64_t, count + 1);
    if (!items) return false;
    if (count) memcpy(items, own->list.items, count * sizeof *items);
    own->list.items = items;
  }
  return true;
}

static Value *copy_value(Builder *b, const Value *v) {
  Value *own = graph_add_value(b->graph, v->name, v->type, &v->shape);
  if (!own) return NULL;
  own->position = v->position;
  own->layout = v->layout;
  own->range = v->range;
  if (v->constant && !(own->constant = copy_constant(b, v))) return NULL;
  return own;
}

static bool copy_node(Builder *b, const Node *from, Value **map) {
  Node *node = graph_add_node(b->graph, from->op, from->signature, from->ninputs, from->noutputs);
  if (!node || !copy_attributes(b, node, from)) return false;
  node->position = from->position;
  node->label = from->label;
  node->comment = from->comment;
  if (b->comment) node->comment = b->comment;
  b->comment = NULL;
  for (uint32_t i = 0; i < from->ninputs; i++)
    if (from->inputs[i]) node_set_input(node, i, map[from->inputs[i]->index]);
  for (uint32_t i = 0; i < from->noutputs; i++) {
    const Value *v = from->outputs[i];
    Value *own = v ? copy_value(b, v) : NULL;
    if (v && !own) return false;
    if (!v) continue;
    node_set_output(node, i, own);
    map[v->index] = own;
  }
  return true;
}

static bool is_read(const Value *v, const bool *is_wanted) {
  for (const Use *use = v->uses; use; use = use->next)
    if (!is_wanted || is_wanted[use->node->index]) return true;
  return v->is_output;
}

bool builder_copy(Builder *b, const Graph *from, const bool *is_wanted, Value **map) {
  bool ok = !b->failed;
  for (size_t i = 0; ok && i < from->nvalues; i++) {
    const Value *v = from->values[i];
    if (!v->constant || map[i] || !is_read(v, is_wanted)) continue;
    map[i] = copy_value(b, v);
    ok = map[i] != NULL;
  }
  for (size_t i = 0; ok && i < from->nnodes; i++)
    if (!is_wanted || is_wanted[i]) ok = copy_node(b, from->nodes[i], map);
  return ok || (!b->failed && builder_out_of_memory(b));
}

Value **builder_inline(Builder *b, const Graph *from, Value *const *inputs) {
  Value **map = b->failed ? NULL : ARENA_ARRAY(&b->scratch, Value *, from->nvalues + 1);
  if (!map) return b->failed ? NULL : builder_out_of_memory(b);
  for (size_t i = 0; i < from->ninputs; i++) map[from->inputs[i]->index] = inputs[i];
  return builder_copy(b, from, NULL, map) ? map : NULL;
}

// Nodes

Value *builder_number(Builder *b, const char *name, Type type, double number) {
  if (b->failed) return NULL;
  for (size_t i = 0; i < b->nnumbers; i++)
    if (b->numbers[i]->type == type && strcmp(b->numbers[i]->name, name) == 0) return b->numbers[i];
  bool ok = arena_grow(&b->scratch, &b->numbers, b->nnumbers, &b->numbers_capacity, sizeof *b->numbers);
  Value *v = ok ? graph_add_number(b->graph, name, type, &(Shape){.rank = 0}, number) : NULL;
  return v ? b->numbers[b->nnumbers++] = v : builder_out_of_memory(b);
}

static bool reduce_axes_of(Builder *b, Node *node, uint32_t mask) {
  int64_t axes[MAX_RANK];
  size_t count = 0;
  for (int i = 0; i < node->inputs[0]->shape.rank; i++)
    if (mask >> i & 1) axes[count++] = i;
  return node_set_list(b->graph, node, "axes", axes, count) || builder_out_of_memory(b);
}

// Adds a node without inferring the shape of its output 0.
static Node *add_node(Builder *b, OperatorId id, Value *const *inputs, uint32_t ninputs, const char *name, Type type) {
  const Operator *op = &operators[id];
  if (b->failed || !name) return NULL;
  Node *node = graph_add_node(b->graph, op, NULL, ninputs, op->noutputs);
  Value *v = node ? graph_add_value(b->graph, name, type, NULL) : NULL;
  if (!v) return builder_out_of_memory(b);
  node->comment = b->comment;
  b->comment = NULL;
  for (uint32_t i = 0; i < ninputs; i++) node_set_input(node, i, inputs[i]);
  node_set_output(node, 0, v);
  node_set_defaults(node);
  return node;
}

static Value *infer(Builder *b, Node *node) {
  b->failed = !graph_infer_node(b->graph, node, b->diagnostics);
  return b->failed ? NULL : node->outputs[0];
}

Value *builder_add(Builder *b, OperatorId id, Value *const *inputs, uint32_t ninputs, const char *name, Type type) {
  Node *node = add_node(b, id, inputs, ninputs, name, type);
  if (!node || (node->op->traits & TRAIT_REDUCES && !reduce_axes_of(b, node, ~0U))) return NULL;
  return infer(b, node);
}

Value *builder_reduce(Builder *b, OperatorId id, Value *a, uint32_t axes, bool keep_dims, const char *name) {
  Node *node = add_node(b, id, &a, 1, name, TYPE_NONE);
  if (!node || !reduce_axes_of(b, node, axes)) return NULL;
  node_attribute_slot(node, "keep_dims")->boolean = keep_dims;
  return infer(b, node);
}

Value *builder_output(Builder *b, Value *first, uint32_t slot, const char *name) {
  Value *v = first && name ? graph_add_value(b->graph, name, TYPE_NONE, NULL) : NULL;
  if (!v) return first && name ? builder_out_of_memory(b) : NULL;
  node_set_output(first->producer, slot, v);
  b->failed = !graph_infer_node(b->graph, first->producer, b->diagnostics);
  return b->failed ? NULL : v;
}

Value *builder_unary(Builder *b, OperatorId op, Value *a, const char *name) {
  return builder_add(b, op, &a, 1, name, TYPE_NONE);
}

Value *builder_binary(Builder *b, OperatorId op, Value *a, Value *c, const char *name) {
  Value *inputs[] = {a, c};
  return builder_add(b, op, inputs, 2, name, TYPE_NONE);
}

Value *builder_cast(Builder *b, Value *v, Type type, const char *name) {
  return !v || v->type == type ? v : builder_add(b, OP_TypeCast, &v, 1, name, type);
}

// As a vector of one element.
static Value *as_vector(Builder *b, Value *v, const char *name) {
  Node *node = v ? add_node(b, OP_StaticReshape, &v, 1, name, TYPE_NONE) : NULL;
  if (!node) return NULL;
  if (!node_set_list(b->graph, node, "shape", &(int64_t){1}, 1)) return builder_out_of_memory(b);
  *node_attribute_slot(node, "special_zero") = (AttributeValue){.is_set = true};
  return infer(b, node);
}

Value *builder_vector(Builder *b, Value **items, size_t count, const char *name) {
  for (size_t i = 0; i < count && !b->failed; i++) items[i] = as_vector(b, items[i], name);
  while (count > 1 && !b->failed) { // in groups: Concat's operands are limited
    size_t ngroups = 0;
    for (size_t i = 0; i < count && !b->failed; i += MAX_VARIADIC) {
      const size_t n = count - i < MAX_VARIADIC ? count - i : MAX_VARIADIC;
      Node *node = add_node(b, OP_Concat, items + i, (uint32_t)n, name, TYPE_NONE);
      if (!node) return NULL;
      *node_attribute_slot(node, "axis") = (AttributeValue){.is_set = true};
      items[ngroups++] = infer(b, node);
    }
    count = ngroups;
  }
  return b->failed ? NULL : items[0];
}

Value *builder_all_reduce(Builder *b, Value *v, Reduction how, const char *name) {
  Value *reduced = v ? builder_unary(b, OP_AllReduce, v, name) : NULL;
  if (reduced) *node_attribute_slot(reduced->producer, "reduction") = (AttributeValue){.is_set = true, .s64 = how};
  return reduced;
}

// Finishing

typedef struct UsedDims {
  const Graph *graph;
  bool *is_used; // by dim
} UsedDims;

static Extent mark_used(const Dim *dim, const void *context) {
  const UsedDims *used = context;
  for (size_t k = 0; k < used->graph->ndims; k++) used->is_used[k] |= used->graph->dims[k] == dim;
  return (Extent){dim, -1};
}

// A dim that no extent, formula or attribute has would take a number, as by --dim, without any effect.
static bool drop_unused_dims(Builder *b) {
  Graph *g = b->graph;
  const UsedDims used = {g, ARENA_ARRAY(&b->scratch, bool, g->ndims + 1)};
  size_t nkept = 0;
  if (!used.is_used) return false;
  memset(used.is_used, 0, g->ndims * sizeof *used.is_used);
  if (!graph_replace_dims(g, mark_used, &used)) return false;
  for (size_t k = 0; k < g->ndims; k++)
    if (used.is_used[k]) g->dims[nkept++] = g->dims[k];
  g->ndims = nkept;
  return true;
}

Graph *builder_finish(Builder *b) {
  Graph *g = b->graph;
  if (!b->failed && (!graph_own_dims(g) || !drop_unused_dims(b) || !graph_make_names_unique(g)))
    builder_out_of_memory(b);
  b->failed = b->failed || !graph_sort(g, b->diagnostics) || !graph_verify(g, b->diagnostics);
  arena_deinit(&b->scratch);
  if (!b->failed) return g;
  graph_free(g);
  return NULL;
}
