// Makes a graph with leaves (ir/graph/leaves.h) from a forward graph: its nodes compute one leaf of the batch.
#include "ir/graph/leaves.h"

#include "ir/graph/copies.h"
#include "ir/operators/indices.h"
#include "passes/rewrite/dead_code.h"
#include "passes/train/sync_batch_norm.h"
#include "passes/train/train.h"

#include <string.h>

typedef struct Leaves {
  Builder b;
  const Graph *forward;
  int64_t count;
  Value **inputs; // by input of the forward graph: the leaf's value for it
  Value **values; // by value of the forward graph: the leaf's value
  Value **next;   // by state: the counter after a call; NULL: the state is no counter
  bool *is_own;   // by index: the value differs between leaves
} Leaves;

// Inputs

static bool give_axis(Leaves *l, Value *v) {
  Diagnostics *d = l->b.d;
  char names[160];
  if (v->shape.rank == MAX_RANK)
    return error_at(d, v->position, "%s: with leaves, expected fewer than %d axes", v->name, MAX_RANK);
  if (!(TYPES_MOVED & TYPE_BIT(v->type)))
    return error_at(d, v->position, "%s: with leaves, expected type %s, found %s", v->name,
                    type_set_names(TYPES_MOVED, names, sizeof names), type_name(v->type));
  int axes[MAX_RANK] = {0};
  for (int i = 0; i < v->shape.rank; i++) axes[i + 1] = layout_axis(&v->layout, i) + 1;
  for (int i = v->shape.rank++; i > 0; i--) v->shape.extent[i] = v->shape.extent[i - 1];
  v->shape.extent[0] = EXTENT(l->count);
  v->layout = layout_of_axes(axes, v->shape.rank);
  return true;
}

static void take_leaf(Leaves *l, size_t input) {
  Builder *b = &l->b;
  Value *whole = b->graph->inputs[input];
  if (!give_axis(l, whole)) b->failed = true;
  b->comment = "What belongs to one leaf of the batch.";
  l->inputs[input] = build_name(b, build_unary(b, OP_Leaf, whole), build_text(b, "leaf.%s", whole->name));
  if (l->inputs[input]) l->inputs[input]->layout = l->forward->inputs[input]->layout;
}

// Counters: integers to which a call adds a constant. Each leaf reads the counter as if the leaves before it had run as
// calls.

static bool is_integer(Type type) {
  return type == TYPE_S32 || type == TYPE_S64;
}

static void put_integer(Type type, void *data, int64_t at, int64_t number) {
  if (type == TYPE_S64) ((int64_t *)data)[at] = number;
  else ((int32_t *)data)[at] = (int32_t)number;
}

// A constant with an element for each leaf: the sum that the leaves before it add to the counter.
static Value *constant_offsets(Leaves *l, const Value *state, int64_t step) {
  Graph *g = l->b.graph;
  const char *name = build_text(&l->b, "%s.before", state->name);
  const Shape shape = {.rank = 1, .extent = {EXTENT(l->count)}};
  Constant *constant = ARENA_NEW(&g->arena, Constant);
  if (constant) constant->data = arena_alloc(&g->arena, (size_t)l->count * type_nbytes(state->type));
  Value *v = name && constant && constant->data ? graph_add_value(g, name, state->type, &shape) : NULL;
  if (!v) return build_out_of_memory(&l->b);
  for (int64_t i = 0; i < l->count; i++)
    put_integer(state->type, constant->data, i, (int64_t)((uint64_t)i * (uint64_t)step));
  v->constant = constant;
  return v;
}

static void count_leaves(Leaves *l, size_t state, int64_t each) {
  Builder *b = &l->b;
  Value *counter = b->graph->inputs[l->forward->states[state].input];
  Value *offset = build_name(b, build_unary(b, OP_Leaf, constant_offsets(l, counter, each)),
                             build_text(b, "%s.offset", counter->name));
  l->inputs[l->forward->states[state].input] =
      build_name(b, build_binary(b, OP_Add, counter, offset), build_text(b, "leaf.%s", counter->name));
  Value *all =
      graph_add_number(b->graph, build_text(b, "%s.step", counter->name), counter->type, &(Shape){.rank = 0}, 0);
  if (!all) {
    build_out_of_memory(b);
    return;
  }
  put_integer(all->type, all->constant->data, 0, (int64_t)((uint64_t)each * (uint64_t)l->count));
  l->next[state] = build_name(b, build_binary(b, OP_Add, counter, all), build_text(b, "%s.next", counter->name));
}

static void add_inputs(Leaves *l) {
  const Graph *forward = l->forward;
  const size_t ndata = forward->ninputs - forward->nstates;
  for (size_t i = 0; i < forward->ninputs && !l->b.failed; i++) {
    l->inputs[i] = l->b.graph->inputs[i];
    if (i < ndata) take_leaf(l, i);
  }
  for (size_t i = 0; i < forward->nstates && !l->b.failed; i++) {
    const State *state = &forward->states[i];
    int64_t each;
    if (state->output >= 0 &&
        value_adds_constant(forward->inputs[state->input], forward->outputs[state->output], &each))
      count_leaves(l, i, each);
  }
}

// Results

// A value that differs between leaves, combined over all leaves: the mean, or, of integers, the sum.
static Value *in_common(Leaves *l, Value *v) {
  Builder *b = &l->b;
  if (!v || !l->is_own[v->index]) return v;
  const char *name = build_text(b, "all.%s", v->name);
  if (is_integer(v->type)) return build_name(b, build_all_reduce(b, v, REDUCTION_SUM), name);
  if (!type_is_float(v->type)) {
    b->failed = true;
    error_at(b->d, v->position, "%s: each leaf has its own, expected f64, f32, f16, bf16, s32 or s64, found %s",
             v->name, type_name(v->type));
    return NULL;
  }
  Value *wide = build_named_cast(b, v, v->type == TYPE_F64 ? TYPE_F64 : TYPE_F32, name);
  return build_named_cast(b, build_name(b, build_all_reduce(b, wide, REDUCTION_MEAN), name), v->type, name);
}

// Gives the combined result the name of the forward graph's value; the leaf's value becomes leaf.NAME.
static void name_result(Leaves *l, Value *result, const Value *forward) {
  Value *own = l->values[forward->index];
  if (!result || result == own || l->b.failed) return;
  const char *name = build_text(&l->b, "leaf.%s", own->name);
  const char *copy = name ? arena_copy_text(&l->b.graph->arena, name, strlen(name)) : NULL;
  if (!copy) {
    build_out_of_memory(&l->b);
    return;
  }
  result->name = own->name;
  own->name = copy;
}

static void add_outputs(Leaves *l) {
  const Graph *forward = l->forward;
  l->b.comment = "What all leaves have in common.";
  for (size_t i = 0; i < forward->noutputs - forward->nupdates && !l->b.failed; i++) {
    const Value *output = forward->outputs[i];
    if (output->shape.rank) continue;
    Value *result = in_common(l, l->values[output->index]);
    name_result(l, result, output);
    if (result && !graph_add_output(l->b.graph, result)) build_out_of_memory(&l->b);
  }
}

static bool is_changed_alike(Leaves *l, const Value *v) {
  if (type_is_float(v->type)) return true;
  l->b.failed = true;
  return error_at(l->b.d, v->position,
                  "%s: its updates differ between leaves; expected a floating-point state, which gets their mean, or "
                  "an integer to which a constant is added",
                  v->name);
}

static void add_updates(Leaves *l) {
  const Graph *forward = l->forward;
  Graph *g = l->b.graph;
  for (size_t i = 0; i < forward->nstates && !l->b.failed; i++) {
    const State *state = &forward->states[i];
    if (state->output < 0) continue;
    Value *update = l->values[forward->outputs[state->output]->index];
    if (l->next[i]) update = l->next[i];
    else if (l->is_own[update->index] && is_changed_alike(l, g->inputs[state->input])) update = in_common(l, update);
    if (update && !l->b.failed && !graph_add_update(g, &g->states[i], update, state->update))
      build_out_of_memory(&l->b);
  }
}

static bool find_own(Leaves *l) {
  l->is_own = ARENA_ARRAY(&l->b.scratch, bool, l->b.graph->nvalues + 1);
  if (!l->is_own || !graph_sort(l->b.graph, l->b.d)) return build_out_of_memory(&l->b);
  graph_find_own_values(l->b.graph, l->is_own);
  return true;
}

Graph *graph_with_leaves(const Graph *forward, int64_t count, bool syncs_batch_norms, Diagnostics *d) {
  Leaves l = {.forward = forward, .count = count};
  Builder *b = &l.b;
  builder_begin_with_inputs(b, forward, "", d);
  if (!b->failed) b->graph->nleaves = count;
  l.inputs = ARENA_ARRAY(&b->scratch, Value *, forward->ninputs + 1);
  l.next = ARENA_ARRAY(&b->scratch, Value *, forward->nstates + 1);
  if (!b->failed && (!l.inputs || !l.next)) build_out_of_memory(b);
  if (!b->failed) add_inputs(&l);
  if (!b->failed) l.values = build_inlined(b, forward, l.inputs);
  if (l.values && find_own(&l) && syncs_batch_norms && train_sync_batch_norms(b, l.is_own)) find_own(&l);
  if (l.values && !b->failed) add_outputs(&l);
  if (l.values && !b->failed) add_updates(&l);
  b->failed = b->failed || !graph_sort(b->graph, d);
  if (!b->failed) pass_dead_code(b->graph, &(PassContext){.diagnostics = d, .allocator = b->scratch.allocator});
  return builder_end(b);
}
