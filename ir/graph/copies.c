#include "ir/graph/copies.h"

#include "ir/graph/verify.h"

#include <string.h>

Value *build_named_cast(Builder *b, Value *v, Type type, const char *name) {
  return v && v->type != type ? build_name(b, build_cast(b, v, type), name) : v;
}

const char *build_text(Builder *b, const char *format, const char *name) {
  const char *text = arena_format(&b->scratch, format, name);
  return text ? text : build_out_of_memory(b);
}

// Copies

static Value *copy_input(Builder *b, const Value *v, const State *state) {
  Graph *g = b->graph;
  const State *added = state ? graph_add_state(g, v->name, v->type, &v->shape, &state->init) : NULL;
  if (state ? !added : !graph_add_input(g, v->name, v->type, &v->shape)) return build_out_of_memory(b);
  Value *own = g->inputs[g->ninputs - 1];
  own->position = v->position;
  own->layout = v->layout;
  own->range = v->range;
  return own;
}

Value *build_input_like(Builder *b, const Value *like) {
  return copy_input(b, like, NULL);
}

size_t build_state_like(Builder *b, const char *name, Type type, const Value *like) {
  Graph *g = b->graph;
  const Shape scalar = {.rank = 0};
  if (b->failed || !name || !graph_add_state(g, name, type, like ? &like->shape : &scalar, &(Init){INIT_ZEROS})) {
    build_out_of_memory(b);
    return 0;
  }
  if (like) g->inputs[g->ninputs - 1]->layout = like->layout;
  return g->nstates - 1;
}

void builder_begin(Builder *b, const Graph *from, const char *suffix, Diagnostics *d) {
  *b = (Builder){.d = d, .stem = ""};
  arena_init(&b->scratch, from->arena.allocator);
  const char *name = arena_format(&b->scratch, "%s%s", from->name, suffix);
  b->graph = name ? graph_new(from->arena.allocator, name) : NULL;
  if (!b->graph) {
    build_out_of_memory(b);
    return;
  }
  Graph *g = b->graph;
  g->origin = graph_keep((Graph *)from); // the cast is valid: only the reference count changes
  g->source = from->source;
  if (!graph_share_dims(g, from)) build_out_of_memory(b);
}

void builder_begin_with_inputs(Builder *b, const Graph *from, const char *suffix, Diagnostics *d) {
  builder_begin(b, from, suffix, d);
  if (b->failed) return;
  b->graph->nleaves = from->nleaves;
  const size_t ndata = from->ninputs - from->nstates;
  for (size_t i = 0; i < from->ninputs && !b->failed; i++)
    copy_input(b, from->inputs[i], i < ndata ? NULL : &from->states[i - ndata]);
}

void builder_begin_clone(Builder *b, const Graph *from, Diagnostics *d) {
  *b = (Builder){.graph = graph_clone(from), .d = d, .stem = ""};
  arena_init(&b->scratch, from->arena.allocator);
  if (!b->graph) build_out_of_memory(b);
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

bool build_copies(Builder *b, const Graph *from, const bool *is_wanted, Value **map) {
  bool ok = !b->failed;
  for (size_t i = 0; ok && i < from->nvalues; i++) {
    const Value *v = from->values[i];
    if (!v->constant || map[i] || !is_read(v, is_wanted)) continue;
    map[i] = copy_value(b, v);
    ok = map[i] != NULL;
  }
  for (size_t i = 0; ok && i < from->nnodes; i++)
    if (!is_wanted || is_wanted[i]) ok = copy_node(b, from->nodes[i], map);
  return ok || (!b->failed && build_out_of_memory(b));
}

Value **build_inlined(Builder *b, const Graph *from, Value *const *inputs) {
  Value **map = b->failed ? NULL : ARENA_ARRAY(&b->scratch, Value *, from->nvalues + 1);
  if (!map) return b->failed ? NULL : build_out_of_memory(b);
  for (size_t i = 0; i < from->ninputs; i++) map[from->inputs[i]->index] = inputs[i];
  return build_copies(b, from, NULL, map) ? map : NULL;
}

Value *build_shared_number(Builder *b, const char *name, Type type, double number) {
  if (b->failed) return NULL;
  for (size_t i = 0; i < b->nnumbers; i++)
    if (b->numbers[i]->type == type && strcmp(b->numbers[i]->name, name) == 0) return b->numbers[i];
  bool ok = arena_grow(&b->scratch, &b->numbers, b->nnumbers, &b->numbers_capacity, sizeof *b->numbers);
  Value *v = ok ? graph_add_number(b->graph, name, type, &(Shape){.rank = 0}, number) : NULL;
  return v ? b->numbers[b->nnumbers++] = v : build_out_of_memory(b);
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

Graph *builder_end(Builder *b) {
  Graph *g = b->graph;
  if (!b->failed && (!graph_own_dims(g) || !drop_unused_dims(b) || !graph_make_names_unique(g))) build_out_of_memory(b);
  b->failed = b->failed || !graph_sort(g, b->d) || !graph_verify(g, b->d);
  arena_deinit(&b->scratch);
  if (!b->failed) return g;
  graph_free(g);
  return NULL;
}
