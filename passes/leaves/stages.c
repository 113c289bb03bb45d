#include "passes/leaves/stages.h"

#include "ir/graph/copies.h"
#include "ir/graph/leaves.h"
#include "ir/operators/leaves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE UINT32_MAX

typedef struct Cut {
  Stages *out;
  const Graph *g;
  Diagnostics *d;
  Arena scratch;
  // By value->index:
  bool *is_own;
  uint32_t *level;           // the stage that computes the value
  bool *is_early;            // some leaf needs the value
  uint32_t *function;        // the function that computes the value; NOWHERE: none does
  struct ngrad_place *place; // the place of a value that another function reads
  uint32_t nstages;
  bool failed;
} Cut;

// Functions are numbered: 2k is stage k's common function, 2k + 1 its leaves' function.
static uint32_t common_function(uint32_t stage) {
  return 2 * stage;
}

static uint32_t leaf_function(uint32_t stage) {
  return 2 * stage + 1;
}

static bool out_of_memory(Cut *c) {
  c->failed = true;
  return error_out_of_memory(c->d);
}

// Levels and functions

static void find_levels(Cut *c) {
  for (size_t n = 0; n < c->g->nnodes; n++) {
    const Node *node = c->g->nodes[n];
    uint32_t level = 0;
    for (uint32_t i = 0; i < node->ninputs; i++)
      if (node->inputs[i] && c->level[node->inputs[i]->index] > level) level = c->level[node->inputs[i]->index];
    level += node->op->id == OP_AllReduce;
    for (uint32_t i = 0; i < node->noutputs; i++)
      if (node->outputs[i]) c->level[node->outputs[i]->index] = level;
    if (level >= c->nstages) c->nstages = level + 1;
  }
}

static const Value *first_output(const Node *node) {
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (node->outputs[i]) return node->outputs[i];
  return NULL;
}

static void find_early(Cut *c) {
  for (size_t n = c->g->nnodes; n-- > 0;) {
    const Node *node = c->g->nodes[n];
    bool is_early = false;
    for (uint32_t i = 0; i < node->noutputs; i++)
      if (node->outputs[i]) is_early |= c->is_own[node->outputs[i]->index] || c->is_early[node->outputs[i]->index];
    for (uint32_t i = 0; i < node->ninputs && is_early; i++)
      if (node->inputs[i]) c->is_early[node->inputs[i]->index] = true;
  }
}

static bool is_cheap(const Node *node) {
  return node->noutputs == 1 && node->outputs[0] && node->op->traits & (TRAIT_ELEMENTWISE | TRAIT_MOVES);
}

// The stage of the function that contains the use.
static uint32_t stage_of_use(const Cut *c, const Use *use) {
  const Value *result = first_output(use->node);
  return result ? c->level[result->index] - (use->node->op->id == OP_AllReduce) : c->nstages;
}

// Whether all uses of the value are in one stage's leaves' function.
static bool is_used_by_leaves(const Cut *c, const Value *v) {
  bool is_used = v->uses && !v->is_output;
  for (const Use *use = v->uses; use && is_used; use = use->next) {
    const Value *result = first_output(use->node);
    is_used = result && c->is_own[result->index] && stage_of_use(c, use) == stage_of_use(c, v->uses);
  }
  return is_used;
}

// Moves common values that broadcast smaller values into the leaves' functions, which then need not read them from
// memory.
static bool broadcast_in_leaves(Cut *c) {
  bool *is_broadcast = ARENA_ARRAY(&c->scratch, bool, c->g->nvalues + 1);
  if (!is_broadcast) return out_of_memory(c);
  for (size_t n = 0; n < c->g->nnodes; n++) {
    const Node *node = c->g->nodes[n];
    size_t nbytes = 0;
    if (!is_cheap(node) || c->is_own[node->outputs[0]->index]) continue;
    for (uint32_t i = 0; i < node->ninputs; i++) {
      const Value *v = node->inputs[i];
      if (v && !v->constant && !is_broadcast[v->index]) nbytes += value_nbytes(v);
    }
    is_broadcast[node->outputs[0]->index] = nbytes < value_nbytes(node->outputs[0]);
  }
  for (size_t n = c->g->nnodes; n-- > 0;) {
    const Value *v = first_output(c->g->nodes[n]);
    if (v && is_broadcast[v->index] && is_used_by_leaves(c, v)) c->is_own[v->index] = true;
  }
  return true;
}

// The bytes of operands that would be kept for a later stage only because the node would run there.
static size_t saved_nbytes(const Cut *c, const Node *node) {
  size_t nbytes = 0;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Value *v = node->inputs[i];
    bool is_saved = !v || !v->producer || v->producer->op->id == OP_Leaf;
    for (const Use *use = v ? v->uses : NULL; use && !is_saved; use = use->next)
      is_saved = use->node != node && use->node->op->id != OP_AllReduce && stage_of_use(c, use) != c->level[v->index];
    if (!is_saved) nbytes += value_nbytes(v);
  }
  return nbytes;
}

// Moves a leaf's value that only later stages use to the first of these stages, if keeping its operands takes no more
// memory than keeping the value.
static void put_off(Cut *c) {
  for (size_t n = c->g->nnodes; n-- > 0;) {
    const Node *node = c->g->nodes[n];
    const Value *v = first_output(node);
    if (!is_cheap(node) || !c->is_own[v->index]) continue;
    uint32_t later = c->nstages;
    for (const Use *use = v->uses; use; use = use->next)
      if (stage_of_use(c, use) < later) later = stage_of_use(c, use);
    if (later < c->nstages && later > c->level[v->index] && saved_nbytes(c, node) <= value_nbytes(v))
      c->level[v->index] = later;
  }
}

static void find_functions(Cut *c) {
  for (size_t n = 0; n < c->g->nnodes; n++) {
    const Node *node = c->g->nodes[n];
    const Value *v = first_output(node);
    if (!v || node->op->traits & TRAIT_COLLECTIVE) continue;
    bool is_early = false;
    for (uint32_t i = 0; i < node->noutputs; i++)
      if (node->outputs[i]) is_early |= c->is_early[node->outputs[i]->index];
    const uint32_t stage = c->is_own[v->index] || is_early ? c->level[v->index] : c->nstages - 1;
    const uint32_t function = c->is_own[v->index] ? leaf_function(stage) : common_function(stage);
    for (uint32_t i = 0; i < node->noutputs; i++)
      if (node->outputs[i]) c->function[node->outputs[i]->index] = function;
  }
}

// Shared tensors

static enum ngrad_element element_of(Type type) {
  return type == TYPE_F32   ? ngrad_LEAF_F32
         : type == TYPE_F64 ? ngrad_LEAF_F64
         : type == TYPE_S32 ? ngrad_LEAF_S32
                            : ngrad_LEAF_S64;
}

static enum ngrad_reduction reduction_of(const Node *node) {
  static const enum ngrad_reduction of[] = {
      [REDUCTION_SUM] = ngrad_LEAF_SUM, [REDUCTION_MEAN] = ngrad_LEAF_MEAN, [REDUCTION_MAX] = ngrad_LEAF_MAX};
  return of[node_s64(node, "reduction")];
}

static bool is_shared_in(const Cut *c, const Node *node, uint32_t stage) {
  return node->op->id == OP_AllReduce && c->level[node->inputs[0]->index] == stage;
}

// Orders AllReduces by the nodes that compute their operands.
static int compare_sources(const void *a, const void *b) {
  const Node *const *x = a, *const *y = b;
  const Node *made_x = (*x)->inputs[0]->producer, *made_y = (*y)->inputs[0]->producer;
  if (made_x->index != made_y->index) return made_x->index < made_y->index ? -1 : 1;
  return (*x)->index < (*y)->index ? -1 : (*x)->index > (*y)->index;
}

// Fills the stage's list of shared tensors, in the order in which they are computed.
static bool find_shared(Cut *c, uint32_t stage, size_t bucket_nbytes) {
  struct ngrad_stage *s = &c->out->stages[stage];
  Arena *arena = &c->out->arena;
  const size_t most = c->g->nnodes + 1;
  uint32_t count = 0;
  const Node **nodes = ARENA_ARRAY(&c->scratch, const Node *, most);
  for (size_t n = 0; nodes && n < c->g->nnodes; n++)
    if (is_shared_in(c, c->g->nodes[n], stage)) nodes[count++] = c->g->nodes[n];
  struct ngrad_shared *shared = ARENA_ARRAY(arena, struct ngrad_shared, (size_t)count + 1);
  struct ngrad_bucket *buckets = ARENA_ARRAY(arena, struct ngrad_bucket, (size_t)count + 1), *bucket = NULL;
  if (!nodes || !shared || !buckets) return out_of_memory(c);
  if (count) qsort(nodes, count, sizeof *nodes, compare_sources);
  for (uint32_t i = 0; i < count; i++) {
    const Value *result = nodes[i]->outputs[0];
    shared[i] = (struct ngrad_shared){s->shared_nbytes, (size_t)shape_nelems(&result->shape),
                                      (int)element_of(result->type), (int)reduction_of(nodes[i])};
    c->place[result->index] = (struct ngrad_place){ngrad_PLACE_REDUCED, stage, s->shared_nbytes, 0};
    if (!bucket || bucket->nbytes >= bucket_nbytes) {
      bucket = &buckets[s->nbuckets++];
      *bucket = (struct ngrad_bucket){.first = i, .offset = s->shared_nbytes};
    }
    s->shared_nbytes += whole_lines(value_nbytes(result));
    bucket->end = i + 1;
    bucket->nbytes = s->shared_nbytes - bucket->offset;
  }
  s->shared = shared;
  s->buckets = buckets;
  return true;
}

// Places

static struct ngrad_place *place_of(Cut *c, const Value *v) {
  return &c->place[v->index];
}

// Finds the constants with a row for each leaf.
static bool find_numbers(Cut *c) {
  size_t count = 0;
  c->out->numbers = ARENA_ARRAY(&c->out->arena, const Value *, c->g->nnodes + 1);
  if (!c->out->numbers) return out_of_memory(c);
  for (size_t n = 0; n < c->g->nnodes; n++) {
    const Node *node = c->g->nodes[n];
    if (node->op->id != OP_Leaf) continue;
    const Value *src = node->inputs[0], *dst = node->outputs[0];
    struct ngrad_place *p = place_of(c, dst);
    *p = (struct ngrad_place){ngrad_PLACE_LEAF, 0, 0, value_nbytes(dst)};
    if (src->constant) {
      p->kind = ngrad_PLACE_NUMBERS;
      p->number = (uint32_t)count;
      c->out->numbers[count++] = src;
    }
    for (uint32_t i = 0; i < c->g->ninputs; i++)
      if (c->g->inputs[i] == src) p->number = i;
  }
  return true;
}

// Whether a function other than the one that computes the value reads it.
static bool crosses(const Cut *c, const Value *v) {
  for (const Use *use = v->uses; use; use = use->next) {
    const Value *result = first_output(use->node);
    if (use->node->op->id != OP_AllReduce && result && c->function[result->index] != c->function[v->index]) return true;
  }
  return v->is_output && c->function[v->index] != common_function(c->nstages - 1);
}

static void place_values(Cut *c) {
  struct ngrad_step *step = &c->out->step;
  for (size_t i = 0; i < c->g->nvalues; i++) {
    const Value *v = c->g->values[i];
    if (c->function[i] == NOWHERE || !crosses(c, v)) continue;
    size_t *used = c->is_own[i] ? &step->own_nbytes : &step->common_nbytes;
    *place_of(c, v) = (struct ngrad_place){c->is_own[i] ? ngrad_PLACE_OWN : ngrad_PLACE_COMMON, 0, *used, 0};
    *used += whole_lines(value_nbytes(v));
  }
}

// Functions

typedef struct Part { // a function being built
  Cut *c;
  uint32_t number;
  Builder b;
  Value **map;
  struct ngrad_place *inputs, *outputs;
  size_t ninputs, noutputs;
} Part;

static Value *part_input(Part *p, const Value *v) {
  Value *own = build_input_like(&p->b, v);
  if (!own) return NULL;
  own->nproducts = v->nproducts;
  own->is_in_chain = v->is_in_chain;
  p->inputs[p->ninputs++] = *place_of(p->c, v);
  p->map[v->index] = own;
  return own;
}

static bool is_in_part(const Part *p, const Node *node) {
  const Value *v = first_output(node);
  return v && p->c->function[v->index] == p->number;
}

// Adds the values that the part's nodes read but do not compute as inputs; states are not among them, as they come
// last.
static void add_part_inputs(Part *p, const bool *is_state) {
  const Cut *c = p->c;
  for (size_t n = 0; n < c->g->nnodes; n++) {
    const Node *node = c->g->nodes[n];
    if (!is_in_part(p, node)) continue;
    for (uint32_t i = 0; i < node->ninputs && !p->b.failed; i++) {
      const Value *v = node->inputs[i];
      if (!v || v->constant || p->map[v->index] || c->function[v->index] == p->number) continue;
      if (!is_state || !is_state[v->index]) part_input(p, v);
    }
  }
}

// Adds the value as an output, through a reorder if `order` is not the value's layout.
static void add_output(Part *p, const Value *v, const Layout *layout, struct ngrad_place place) {
  if (!p->map[v->index] && !v->constant) part_input(p, v);
  if (p->b.failed) return;
  Value *output = p->map[v->index];
  if (memcmp(layout, &v->layout, sizeof *layout) != 0) {
    output = build_name(&p->b, build_unary(&p->b, OP_Reorder, output), output->name);
    if (output) output->layout = *layout;
  }
  if (output && !graph_add_output(p->b.graph, output)) build_out_of_memory(&p->b);
  p->outputs[p->noutputs++] = place;
}

static void add_crossing(Part *p) {
  const Cut *c = p->c;
  for (size_t i = 0; i < c->g->nvalues && !p->b.failed; i++)
    if (c->function[i] == p->number && crosses(c, c->g->values[i]))
      add_output(p, c->g->values[i], &c->g->values[i]->layout, c->place[i]);
}

static void add_shares(Part *p, uint32_t stage) {
  const Cut *c = p->c;
  for (size_t n = 0; n < c->g->nnodes && !p->b.failed; n++) {
    const Node *node = c->g->nodes[n];
    if (!is_shared_in(c, node, stage)) continue;
    struct ngrad_place place = *place_of(p->c, node->outputs[0]);
    place.kind = ngrad_PLACE_SHARE;
    add_output(p, node->inputs[0], &node->outputs[0]->layout, place);
  }
}

static bool copy_part(Part *p) {
  const Graph *g = p->c->g;
  bool *is_wanted = ARENA_ARRAY(&p->b.scratch, bool, g->nnodes + 1);
  if (!is_wanted) return build_out_of_memory(&p->b);
  for (size_t n = 0; n < g->nnodes; n++) is_wanted[n] = is_in_part(p, g->nodes[n]);
  if (!build_copies(&p->b, g, is_wanted, p->map)) return false;
  for (size_t i = 0; i < g->nvalues; i++) {
    if (!p->map[i]) continue;
    p->map[i]->nproducts = g->values[i]->nproducts;
    p->map[i]->is_in_chain = g->values[i]->is_in_chain;
  }
  return true;
}

static bool begin_part(Part *p, Cut *c, uint32_t number, const char *name) {
  *p = (Part){.c = c, .number = number};
  const size_t most = c->g->ninputs + c->g->nvalues + c->g->noutputs + c->g->nnodes + 1;
  builder_begin(&p->b, c->g, name, c->d);
  p->map = ARENA_ARRAY(&p->b.scratch, Value *, c->g->nvalues + 1);
  p->inputs = ARENA_ARRAY(&c->out->arena, struct ngrad_place, most);
  p->outputs = ARENA_ARRAY(&c->out->arena, struct ngrad_place, most);
  if (!p->b.failed && (!p->map || !p->inputs || !p->outputs)) build_out_of_memory(&p->b);
  return !p->b.failed;
}

static const struct ngrad_function *end_part(Part *p) {
  Cut *c = p->c;
  struct ngrad_step *step = &c->out->step;
  struct ngrad_function *f = ARENA_NEW(&c->out->arena, struct ngrad_function);
  if (!f && !p->b.failed) build_out_of_memory(&p->b);
  Graph *graph = builder_end(&p->b);
  if (!graph) {
    c->failed = true;
    return NULL;
  }
  *f = (struct ngrad_function){(uint32_t)c->out->nfunctions, p->inputs, p->outputs, p->ninputs, p->noutputs};
  c->out->functions[c->out->nfunctions++] = graph;
  if (f->ninputs > step->most_operands) step->most_operands = f->ninputs;
  if (f->noutputs > step->most_operands) step->most_operands = f->noutputs;
  return f;
}

static bool has_nodes(const Cut *c, uint32_t function) {
  for (size_t i = 0; i < c->g->nvalues; i++)
    if (c->function[i] == function) return true;
  return false;
}

// Makes a stage's common function, unless it is the last one, or its leaves' function. NULL: it has nothing to do.
static const struct ngrad_function *make_part(Cut *c, uint32_t stage, bool is_of_leaf) {
  Part p;
  char name[32];
  const uint32_t number = is_of_leaf ? leaf_function(stage) : common_function(stage);
  if (!has_nodes(c, number) && !(is_of_leaf && c->out->stages[stage].nbuckets)) return NULL;
  snprintf(name, sizeof name, is_of_leaf ? "_leaf_%u" : "_common_%u", stage);
  if (begin_part(&p, c, number, name)) add_part_inputs(&p, NULL);
  if (!p.b.failed && copy_part(&p)) add_crossing(&p);
  if (is_of_leaf) add_shares(&p, stage);
  return end_part(&p);
}

static void add_states(Part *p) {
  const Graph *g = p->c->g;
  for (size_t i = 0; i < g->nstates && !p->b.failed; i++) {
    const Value *v = graph_state(g, i);
    if (!graph_add_state(p->b.graph, v->name, v->type, &v->shape, &g->states[i].init)) {
      build_out_of_memory(&p->b);
      return;
    }
    Value *own = p->b.graph->inputs[p->b.graph->ninputs - 1];
    own->layout = v->layout;
    own->range = v->range;
    p->inputs[p->ninputs++] = *place_of(p->c, v);
    p->map[v->index] = own;
  }
}

static void add_results(Part *p) {
  const Graph *g = p->c->g;
  for (uint32_t i = 0; i < g->noutputs - g->nupdates && !p->b.failed; i++)
    add_output(p, g->outputs[i], &g->outputs[i]->layout, (struct ngrad_place){ngrad_PLACE_OUTPUT, i, 0, 0});
  for (size_t i = 0; i < g->nstates && !p->b.failed; i++) {
    const State *state = &g->states[i];
    if (state->output < 0) continue;
    const Value *update = g->outputs[state->output];
    if (!graph_add_update(p->b.graph, &p->b.graph->states[i], p->map[update->index], state->update))
      build_out_of_memory(&p->b);
    p->outputs[p->noutputs++] = (struct ngrad_place){ngrad_PLACE_OUTPUT, (uint32_t)state->output, 0, 0};
  }
}

// Makes the last function: all outputs, and updates of states, which are stored in the states' memory.
static const struct ngrad_function *make_last(Cut *c) {
  Part p;
  const Graph *g = c->g;
  if (!begin_part(&p, c, common_function(c->nstages - 1), "")) return end_part(&p);
  bool *is_state = ARENA_ARRAY(&p.b.scratch, bool, g->nvalues + 1);
  if (!is_state) build_out_of_memory(&p.b);
  for (size_t i = 0; i < g->nstates && is_state; i++) is_state[graph_state(g, i)->index] = true;
  if (!p.b.failed) add_part_inputs(&p, is_state);
  for (size_t i = 0; i < g->noutputs && !p.b.failed; i++) { // outputs that other functions compute
    const Value *v = g->outputs[i];
    if (!p.map[v->index] && !v->constant && !is_state[v->index] && c->function[v->index] != p.number) part_input(&p, v);
  }
  if (!p.b.failed) add_states(&p);
  if (!p.b.failed && copy_part(&p)) add_results(&p);
  return end_part(&p);
}

static bool begin(Cut *c) {
  const size_t n = c->g->nvalues + 1;
  c->is_own = ARENA_ARRAY(&c->scratch, bool, n);
  c->is_early = ARENA_ARRAY(&c->scratch, bool, n);
  c->level = ARENA_ARRAY(&c->scratch, uint32_t, n);
  c->function = ARENA_ARRAY(&c->scratch, uint32_t, n);
  c->place = ARENA_ARRAY(&c->scratch, struct ngrad_place, n);
  if (!c->is_own || !c->is_early || !c->level || !c->function || !c->place) return out_of_memory(c);
  for (size_t i = 0; i < n; i++) c->function[i] = NOWHERE;
  graph_find_own_values(c->g, c->is_own);
  c->nstages = 1;
  find_levels(c);
  if (!broadcast_in_leaves(c)) return false;
  put_off(c);
  find_early(c);
  find_functions(c);
  c->out->stages = ARENA_ARRAY(&c->out->arena, struct ngrad_stage, c->nstages);
  c->out->functions = ARENA_ARRAY(&c->out->arena, Graph *, 2 * (size_t)c->nstages);
  return (c->out->stages && c->out->functions) || out_of_memory(c);
}

static void make_stages(Cut *c, size_t bucket_nbytes) {
  Stages *out = c->out;
  out->step.stages = out->stages;
  out->step.nstages = c->nstages;
  out->step.most_operands = 1;
  for (uint32_t k = 0; k < c->nstages && !c->failed; k++) find_shared(c, k, bucket_nbytes);
  if (c->failed || !find_numbers(c)) return;
  for (uint32_t i = 0; i < c->g->ninputs; i++)
    *place_of(c, c->g->inputs[i]) = (struct ngrad_place){ngrad_PLACE_INPUT, i, 0, 0};
  place_values(c);
  for (uint32_t k = 0; k < c->nstages && !c->failed; k++) {
    out->stages[k].common = k + 1 < c->nstages ? make_part(c, k, false) : make_last(c);
    if (!c->failed) out->stages[k].leaf = make_part(c, k, true);
  }
}

bool stages_cut(Stages *s, const Graph *g, size_t bucket_nbytes, Diagnostics *d) {
  Cut c = {.out = s, .g = g, .d = d};
  *s = (Stages){.step = {.nleaves = g->nleaves}};
  arena_init(&s->arena, g->arena.allocator);
  arena_init(&c.scratch, g->arena.allocator);
  if (begin(&c)) make_stages(&c, bucket_nbytes);
  arena_deinit(&c.scratch);
  return !c.failed;
}

void stages_free(Stages *s) {
  for (size_t i = 0; i < s->nfunctions; i++) graph_free(s->functions[i]);
  arena_deinit(&s->arena);
  *s = (Stages){0};
}
