// Building graphs, maintaining use lists, sorting nodes.
#include "ir/graph/graph.h"

#include "ir/operators/operator.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Graph *graph_new(const Allocator *allocator, const char *name) {
  Arena arena;
  arena_init(&arena, allocator);
  Graph *g = ARENA_NEW(&arena, Graph);
  const char *copy = g ? arena_copy_text(&arena, name, strlen(name)) : NULL;
  if (!copy) {
    arena_deinit(&arena);
    return NULL;
  }
  g->arena = arena;
  g->name = copy;
  return g;
}

Graph *graph_keep(Graph *g) {
  g->nkeepers++;
  return g;
}

void graph_free(Graph *g) {
  while (g && g->nkeepers-- == 0) {
    Graph *origin = g->origin;
    Arena arena = g->arena; // g itself is in the arena
    arena_deinit(&arena);
    g = origin;
  }
}

Value *graph_add_value(Graph *g, const char *name, Type type, const Shape *shape) {
  Value *v = ARENA_NEW(&g->arena, Value);
  if (!v || !arena_grow(&g->arena, &g->values, g->nvalues, &g->values_capacity, sizeof *g->values)) return NULL;
  v->name = arena_copy_text(&g->arena, name, strlen(name));
  if (!v->name) return NULL;
  v->type = type;
  v->shape = shape ? *shape : (Shape){.rank = -1};
  v->index = (uint32_t)g->nvalues;
  g->values[g->nvalues++] = v;
  return v;
}

bool graph_name_file(Graph *g, Value *constant) {
  enum { MOST = 80, ENDING = 16 }; // bytes used of each name; bytes for a number and .npy
  char name[2 * MOST + ENDING + 8];
  if (constant->constant->file) return true;
  int length = snprintf(name, sizeof name, "%.*s_%.*s", MOST, g->name, MOST, constant->name);
  for (char *c = name; *c; c++) // letters and digits are allowed in every file system
    if (!isascii((unsigned char)*c) || !isalnum((unsigned char)*c)) *c = '_';
  snprintf(name + length, sizeof name - (size_t)length, "_%u.npy", constant->index);
  constant->constant->file = arena_copy_text(&g->arena, name, strlen(name));
  return constant->constant->file != NULL;
}

Value *graph_add_number(Graph *g, const char *name, Type type, const Shape *shape, double number) {
  Value *v = name ? graph_add_value(g, name, type, shape) : NULL;
  Constant *constant = v ? ARENA_NEW(&g->arena, Constant) : NULL;
  if (constant) constant->data = arena_alloc(&g->arena, type_nbytes(type));
  if (!constant || !constant->data) return NULL;
  constant->is_splat = true;
  type_store(type, constant->data, 0, number);
  v->constant = constant;
  return v;
}

Value *graph_add_input(Graph *g, const char *name, Type type, const Shape *shape) {
  if (!arena_grow(&g->arena, &g->inputs, g->ninputs, &g->inputs_capacity, sizeof *g->inputs)) return NULL;
  Value *v = graph_add_value(g, name, type, shape);
  if (!v) return NULL;
  v->is_input = true;
  return g->inputs[g->ninputs++] = v;
}

bool graph_add_output(Graph *g, Value *v) {
  if (!arena_grow(&g->arena, &g->outputs, g->noutputs, &g->outputs_capacity, sizeof *g->outputs)) return false;
  if (!v->is_output) v->first_output = (uint32_t)g->noutputs;
  v->is_output = true;
  g->outputs[g->noutputs++] = v;
  return true;
}

State *graph_add_state(Graph *g, const char *name, Type type, const Shape *shape, const Init *init) {
  if (!arena_grow(&g->arena, &g->states, g->nstates, &g->states_capacity, sizeof *g->states)) return NULL;
  if (!graph_add_input(g, name, type, shape)) return NULL;
  State *state = &g->states[g->nstates++];
  *state = (State){.input = (uint32_t)(g->ninputs - 1), .output = -1, .init = *init};
  return state;
}

bool graph_add_update(Graph *g, State *state, Value *v, Position position) {
  if (!graph_add_output(g, v)) return false;
  state->output = (int64_t)g->noutputs - 1;
  state->update = position;
  g->nupdates++;
  return true;
}

// The number after the last _ of a name; 0 if there is none, or if it has so many digits that graph_fresh_name never
// reaches it.
static size_t name_suffix(const char *name) {
  enum { MOST_DIGITS = 15 };
  const char *last = strrchr(name, '_');
  size_t ndigits = last ? strspn(last + 1, "0123456789") : 0;
  return ndigits && ndigits <= MOST_DIGITS && !last[1 + ndigits] ? (size_t)strtoull(last + 1, NULL, 10) : 0;
}

const char *graph_fresh_name(Graph *g, const char *stem) {
  if (g->nsuffixes > g->nvalues) g->nsuffixes = g->nvalues; // values were removed; the others are counted
  for (; g->nsuffixes < g->nvalues; g->nsuffixes++) {
    size_t suffix = name_suffix(g->values[g->nsuffixes]->name);
    if (suffix > g->largest_suffix) g->largest_suffix = suffix;
  }
  if (g->largest_suffix < g->nvalues) g->largest_suffix = g->nvalues;
  return arena_format(&g->arena, "%s_%zu", stem, ++g->largest_suffix);
}

static int compare_names(const void *a, const void *b) {
  const Value *v = *(Value *const *)a, *w = *(Value *const *)b;
  const int order = strcmp(v->name, w->name);
  const bool has_caller = v->is_input || v->is_output, other_has_caller = w->is_input || w->is_output;
  if (order) return order;
  return has_caller != other_has_caller ? other_has_caller - has_caller : (v->index > w->index) - (v->index < w->index);
}

bool graph_make_names_unique(Graph *g) {
  enum { MOST_NAME_BYTES = 255 };
  Arena scratch;
  arena_init(&scratch, g->arena.allocator);
  Value **sorted = ARENA_ARRAY(&scratch, Value *, g->nvalues + 1);
  bool ok = sorted != NULL;
  if (ok && g->nvalues) {
    memcpy(sorted, g->values, g->nvalues * sizeof *sorted);
    qsort(sorted, g->nvalues, sizeof *sorted, compare_names);
  }
  const char *previous = "";
  for (size_t i = 0; ok && i < g->nvalues; i++) {
    const char *name = sorted[i]->name;
    const bool is_too_long = strlen(name) > MOST_NAME_BYTES;
    const char *fresh =
        strcmp(previous, name) == 0 || is_too_long ? graph_fresh_name(g, is_too_long ? "long" : name) : name;
    ok = fresh != NULL;
    if (ok) sorted[i]->name = fresh;
    previous = name;
  }
  arena_deinit(&scratch);
  return ok;
}

Node *graph_add_node(Graph *g, const Operator *op, const Signature *signature, uint32_t ninputs, uint32_t noutputs) {
  Node *node = ARENA_NEW(&g->arena, Node);
  if (!node || !arena_grow(&g->arena, &g->nodes, g->nnodes, &g->nodes_capacity, sizeof *g->nodes)) return NULL;
  *node = (Node){.op = op, .signature = signature, .ninputs = ninputs, .noutputs = noutputs};
  node->inputs = ARENA_ARRAY(&g->arena, Value *, ninputs);
  node->outputs = ARENA_ARRAY(&g->arena, Value *, noutputs);
  node->input_uses = ARENA_ARRAY(&g->arena, Use, ninputs);
  node->attributes = ARENA_ARRAY(&g->arena, AttributeValue, op->nattributes);
  if (!node->inputs || !node->outputs || !node->input_uses || !node->attributes) return NULL;
  node->index = (uint32_t)g->nnodes;
  g->nodes[g->nnodes++] = node;
  return node;
}

static void use_unlink(Use *use) {
  *use->link = use->next;
  if (use->next) use->next->link = use->link;
}

void node_set_input(Node *node, uint32_t slot, Value *v) {
  Use *use = &node->input_uses[slot];
  if (node->inputs[slot]) use_unlink(use);
  node->inputs[slot] = v;
  if (!v) return;
  *use = (Use){node, slot, v->uses, &v->uses};
  if (v->uses) v->uses->link = &use->next;
  v->uses = use;
}

void node_set_output(Node *node, uint32_t slot, Value *v) {
  Value *old = node->outputs[slot];
  if (old && old->producer == node && old->output_slot == slot) old->producer = NULL; // may be another node's by now
  node->outputs[slot] = v;
  if (!v) return;
  v->producer = node;
  v->output_slot = slot;
}

void value_replace_uses(Value *old, Value *replacement) {
  while (old->uses && old != replacement) node_set_input(old->uses->node, old->uses->slot, replacement);
}

bool graph_has_state(const Graph *g, const Value *v) {
  for (size_t i = 0; i < g->nstates; i++)
    if (graph_state(g, i) == v) return true;
  return false;
}

size_t value_nbytes(const Value *v) {
  return type_array_nbytes(v->type, (size_t)shape_nelems(&v->shape));
}

size_t value_count_uses(const Value *v) {
  size_t n = 0;
  for (const Use *use = v->uses; use; use = use->next) n++;
  return n;
}

static int compare_positions(const void *a, const void *b) {
  const Position *p = a, *q = b;
  if (p->line != q->line) return p->line < q->line ? -1 : 1;
  return (p->column > q->column) - (p->column < q->column);
}

bool node_add_origin(Graph *g, Node *node, const Node *from) {
  if (!node->origins) node->origins = ARENA_ARRAY(&g->arena, Position, MAX_ORIGINS);
  if (!node->origins) return false;
  const Position *places = from->norigins ? from->origins : &from->position;
  for (uint32_t i = 0; i < (from->norigins ? from->norigins : 1); i++) {
    bool is_there = !places[i].line || node->norigins == MAX_ORIGINS;
    for (uint32_t k = 0; k < node->norigins && !is_there; k++)
      is_there = compare_positions(&node->origins[k], &places[i]) == 0;
    if (!is_there) node->origins[node->norigins++] = places[i];
  }
  qsort(node->origins, node->norigins, sizeof *node->origins, compare_positions);
  return true;
}

void node_print_lines(const Node *node, Text *out) {
  const Position *places = node->norigins ? node->origins : &node->position;
  uint32_t count = node->norigins ? node->norigins : 1;
  if (!places[0].line) return;
  text_add_string(out, places[0].line == places[count - 1].line ? "line " : "lines ");
  for (uint32_t i = 0, last; i < count; i = last + 1) {
    for (last = i; last + 1 < count && places[last + 1].line <= places[last].line + 1;) last++;
    text_format(out, "%s%u", i ? ", " : "", (unsigned)places[i].line);
    if (places[last].line > places[i].line) text_format(out, " to %u", (unsigned)places[last].line);
  }
}

void node_print(const Node *node, Text *out) {
  text_add_string(out, node->op->name);
  if (!node->position.line && !node->norigins) return;
  text_add_string(out, " (");
  node_print_lines(node, out);
  text_add_string(out, ")");
}

static bool clone_values(Graph *copy, const Graph *g) {
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    Value *own = graph_add_value(copy, v->name, v->type, &v->shape);
    if (!own) return false;
    own->position = v->position;
    own->layout = v->layout;
    own->is_input = v->is_input;
    own->range = v->range;
    own->nproducts = v->nproducts;
    own->is_in_chain = v->is_in_chain;
    if (!v->constant) continue;
    own->constant = ARENA_NEW(&copy->arena, Constant);
    if (!own->constant) return false;
    *own->constant = *v->constant;
  }
  copy->inputs_capacity = g->ninputs;
  copy->inputs = ARENA_ARRAY(&copy->arena, Value *, g->ninputs);
  if (!copy->inputs) return false;
  for (; copy->ninputs < g->ninputs; copy->ninputs++)
    copy->inputs[copy->ninputs] = copy->values[g->inputs[copy->ninputs]->index];
  for (size_t i = 0; i < g->noutputs; i++)
    if (!graph_add_output(copy, copy->values[g->outputs[i]->index])) return false;
  copy->states_capacity = copy->nstates = g->nstates;
  copy->nupdates = g->nupdates;
  copy->states = ARENA_ARRAY(&copy->arena, State, g->nstates);
  if (!copy->states) return false;
  if (g->nstates) memcpy(copy->states, g->states, g->nstates * sizeof *g->states);
  return true;
}

static bool clone_node(Graph *copy, const Node *node) {
  Node *own = graph_add_node(copy, node->op, node->signature, node->ninputs, node->noutputs);
  if (!own) return false;
  own->position = node->position;
  own->label = node->label;
  own->comment = node->comment;
  if (node->norigins && !node_add_origin(copy, own, node)) return false;
  memcpy(own->attributes, node->attributes, node->op->nattributes * sizeof *own->attributes);
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (node->inputs[i]) node_set_input(own, i, copy->values[node->inputs[i]->index]);
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (node->outputs[i]) node_set_output(own, i, copy->values[node->outputs[i]->index]);
  return true;
}

Graph *graph_clone(const Graph *g) {
  Graph *copy = graph_new(g->arena.allocator, g->name);
  if (!copy) return NULL;
  copy->origin = graph_keep((Graph *)g); // changes only g's reference count
  copy->source = g->source;
  copy->nleaves = g->nleaves;
  bool ok = graph_share_dims(copy, g) && clone_values(copy, g);
  for (size_t i = 0; ok && i < g->nnodes; i++) ok = clone_node(copy, g->nodes[i]);
  if (ok) return copy;
  graph_free(copy);
  return NULL;
}

// A stack frame of graph_sort's depth-first walk, which starts at each node in the current order and visits producers
// first.
typedef struct SortFrame {
  Node *node;
  uint32_t next_input;
} SortFrame;

static bool report_cycle(const SortFrame *stack, size_t depth, const Node *again, Diagnostics *d) {
  enum { MOST_NAMED = 8 };
  Text names;
  text_init(&names, d->arena.allocator);
  size_t from = depth;
  while (from && stack[from - 1].node != again) from--;
  from = from ? from - 1 : 0;
  for (size_t i = depth; i > from && depth - i < MOST_NAMED; i--) { // from producers to users
    const Node *node = stack[i - 1].node;
    const char *made = "?";
    for (uint32_t k = 0; k < node->noutputs; k++)
      if (node->outputs[k]) {
        made = node->outputs[k]->name;
        break;
      }
    text_format(&names, "%s%s", i == depth ? "" : ", ", made);
  }
  if (depth - from > MOST_NAMED) text_add_string(&names, ", ...");
  if (names.out_of_memory) error_out_of_memory(d);
  else
    error_at(d, again->position, "cycle: each of these depends on the next, and the last on the first: %s",
             text_string(&names));
  text_deinit(&names);
  return false;
}

bool graph_sort(Graph *g, Diagnostics *d) {
  enum { UNSEEN, OPEN, DONE };
  Arena scratch;
  arena_init(&scratch, g->arena.allocator);
  Node **sorted = ARENA_ARRAY(&g->arena, Node *, g->nnodes ? g->nnodes : 1);
  SortFrame *stack = ARENA_ARRAY(&scratch, SortFrame, g->nnodes + 1);
  char *state = ARENA_ARRAY(&scratch, char, g->nnodes + 1);
  bool ok = sorted && stack && state;
  if (!ok) error_out_of_memory(d);
  for (size_t i = 0; i < g->nnodes; i++) g->nodes[i]->index = (uint32_t)i;
  size_t nsorted = 0;
  for (size_t i = 0; ok && i < g->nnodes; i++) {
    if (state[i] != UNSEEN) continue;
    size_t depth = 0;
    stack[depth++] = (SortFrame){g->nodes[i], 0};
    state[i] = OPEN;
    while (ok && depth) {
      SortFrame *top = &stack[depth - 1];
      if (top->next_input == top->node->ninputs) {
        state[top->node->index] = DONE;
        sorted[nsorted++] = top->node;
        depth--;
        continue;
      }
      const Value *v = top->node->inputs[top->next_input++];
      Node *producer = v ? v->producer : NULL;
      if (!producer || state[producer->index] == DONE) continue;
      if (state[producer->index] == OPEN) {
        ok = report_cycle(stack, depth, producer, d);
        break;
      }
      state[producer->index] = OPEN;
      stack[depth++] = (SortFrame){producer, 0};
    }
  }
  if (ok) {
    g->nodes = sorted;
    g->nodes_capacity = g->nnodes;
    for (size_t i = 0; i < g->nnodes; i++) g->nodes[i]->index = (uint32_t)i;
  }
  arena_deinit(&scratch);
  return ok;
}
