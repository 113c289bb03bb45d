// Makes a graph that can be trained from a graph without states: constants become parameters, and a loss is added.
#include "ir/graph/copies.h"
#include "passes/train/train.h"

#include <string.h>

// Parameters

static bool make_state(Builder *b, Value *v) {
  const char *name = v->name, *hidden = graph_fresh_name(b->graph, "constant");
  if (!hidden || !graph_name_file(b->graph, v)) return false;
  v->name = hidden; // nothing uses the constant any more
  const Init init = {.kind = INIT_FILE, .constant = v->constant};
  if (!graph_add_state(b->graph, name, v->type, &v->shape, &init)) return false;
  value_replace_uses(v, b->graph->inputs[b->graph->ninputs - 1]);
  return true;
}

// Whether the constant becomes a state if a gradient reaches it; the running statistics of a batch norm do without.
static bool is_candidate(const Value *v) {
  if (!value_is_weight(v) || !v->uses) return false;
  return value_running_use(v) || (!value_is_statistic(v) && !value_has_fixed_number(v));
}

static bool tell_unreached(Builder *b, Value *const *values, size_t count, Value *const *losses, size_t nlosses) {
  Text names;
  text_init(&names, b->scratch.allocator);
  const bool ok = train_list_unreached(b->graph, values, count, losses, nlosses, &names);
  if (ok)
    warn_at(b->d, (Position){0}, "%s: constants that are not trained, as no gradient reaches them: %s", b->graph->name,
            text_string(&names));
  text_deinit(&names);
  return ok;
}

// is_loss: by output of the graph without added losses; NULL: each of rank 0. Added losses are the only ones.
static bool make_states(Builder *b, const bool *is_loss, Value *const *added, size_t nadded, bool tells) {
  Graph *g = b->graph;
  const size_t nvalues = g->nvalues;
  bool *reached = ARENA_ARRAY(&b->scratch, bool, nvalues + 1);
  Value **losses = ARENA_ARRAY(&b->scratch, Value *, g->noutputs + nadded + 1);
  Value **others = ARENA_ARRAY(&b->scratch, Value *, nvalues + 1);
  size_t nlosses = 0, nothers = 0;
  if (!reached || !losses || !others) return false;
  for (; nlosses < nadded; nlosses++) losses[nlosses] = added[nlosses];
  for (size_t i = 0; i < g->noutputs - g->nupdates && !nadded; i++)
    if (is_loss ? is_loss[i] : g->outputs[i]->shape.rank == 0 && type_is_float(g->outputs[i]->type))
      losses[nlosses++] = g->outputs[i];
  const bool has_loss = nlosses > 0; // else the caller reports it
  for (size_t i = 0; i < g->noutputs - g->nupdates && !has_loss; i++) losses[nlosses++] = g->outputs[i];
  train_find_reached(g, losses, nlosses, reached);
  for (size_t i = 0; i < nvalues; i++) {
    Value *v = g->values[i];
    if (!is_candidate(v)) continue;
    if (!reached[v->index] && !value_running_use(v)) others[nothers++] = v;
    else if (!make_state(b, v)) return false;
  }
  return !tells || !nothers || !has_loss || tell_unreached(b, others, nothers, losses, nlosses);
}

// Adds updates for running statistics: the next ones that BatchNormForwardTraining computes.
static bool add_updates(Builder *b) {
  Graph *g = b->graph;
  for (size_t i = 0; i < g->nstates; i++) {
    const Use *use = value_running_use(graph_state(g, i));
    if (!use) continue;
    Value *v =
        use->node->outputs[use->slot]; // inputs 1 and 2 are the running statistics, outputs 1 and 2 the next ones
    if (!v || v->is_output) continue;
    const char *name = build_text(b, "%s.next", graph_state(g, i)->name);
    v->name = name ? arena_copy_text(&g->arena, name, strlen(name)) : NULL;
    if (!v->name || !graph_add_update(g, &g->states[i], v, (Position){0})) return false;
  }
  return true;
}

// Losses

// Adds a data input, before the states' inputs.
static Value *add_input(Builder *b, const char *name, Type type, const Shape *shape) {
  Graph *g = b->graph;
  Value *v = graph_add_input(g, name, type, shape);
  if (!v) return build_out_of_memory(b);
  memmove(&g->inputs[g->ninputs - g->nstates], &g->inputs[g->ninputs - g->nstates - 1], g->nstates * sizeof *g->inputs);
  g->inputs[g->ninputs - g->nstates - 1] = v;
  for (size_t i = 0; i < g->nstates; i++) g->states[i].input++;
  return v;
}

// The value becomes an input; the copy of its constant stays, without uses.
static bool make_input(Builder *b, Value *v) {
  const char *name = v->name, *hidden = graph_fresh_name(b->graph, "constant");
  if (!hidden) return false;
  v->name = hidden;
  Value *input = add_input(b, name, v->type, &v->shape);
  if (input) value_replace_uses(v, input);
  return input != NULL;
}

Graph *graph_with_inputs(const Graph *forward, const char *const *names, size_t count, Diagnostics *d) {
  const size_t errors = d->nerrors;
  Builder b;
  builder_begin_clone(&b, forward, d);
  bool ok = !b.failed;
  for (size_t i = 0; ok && i < count; i++) {
    Value *v = NULL;
    for (size_t k = 0; k < b.graph->nvalues && !v; k++)
      if (b.graph->values[k]->constant && strcmp(b.graph->values[k]->name, names[i]) == 0) v = b.graph->values[k];
    ok = !v || make_input(&b, v);
  }
  if (!ok && d->nerrors == errors) build_out_of_memory(&b);
  b.failed |= !ok;
  return builder_end(&b);
}

// The data input of a loss: the graph's own, or a new one.
static Value *loss_input(Builder *b, const char *name, Type type, const Shape *shape) {
  const Graph *g = b->graph;
  char wanted[160];
  for (size_t i = 0; i < g->ninputs - g->nstates; i++) {
    Value *v = g->inputs[i];
    if (strcmp(v->name, name) != 0) continue;
    if (v->type == type && shape_equals(&v->shape, shape)) return v;
    error_at(b->d, v->position, "%s: the loss takes this input, expected %s %s", name, type_name(type),
             shape_string(shape, wanted, sizeof wanted));
    return NULL;
  }
  return add_input(b, name, type, shape);
}

// Removes the updates from the end of the outputs, so that other outputs can be added; put_updates appends them again.
static void take_updates(Graph *g) {
  for (; g->nupdates; g->nupdates--) {
    Value *v = g->outputs[--g->noutputs];
    if (v->first_output == g->noutputs) v->is_output = false;
  }
}

static bool put_updates(Graph *g, Value *const *updates) {
  bool ok = true;
  for (size_t i = 0; ok && i < g->nstates; i++)
    if (g->states[i].output >= 0) ok = graph_add_update(g, &g->states[i], updates[i], g->states[i].update);
  return ok;
}

static const char *const added_losses[] = {"cross-entropy", "mse", "bce"};
enum { CROSS_ENTROPY, SQUARED_ERROR, BINARY_CROSS_ENTROPY, NLOSSES };

// Of "mse" or "mse:NAME". *output: NAME; NULL: the first result.
static int find_loss(const char *name, const char **output) {
  const size_t length = strcspn(name, ":");
  int kind = 0;
  *output = name[length] ? name + length + 1 : NULL;
  while (kind < NLOSSES && (strlen(added_losses[kind]) != length || strncmp(name, added_losses[kind], length) != 0))
    kind++;
  return kind;
}

bool train_adds_loss(const char *name, const char **output) {
  return find_loss(name, output) < NLOSSES;
}

bool train_is_added_with_accuracy(const char *name) {
  const char *output;
  return find_loss(name, &output) == CROSS_ENTROPY;
}

static Value *add_class(Builder *b, Value *logits) {
  Node *node = build_node(b, OP_ArgMax, 1, &logits);
  if (!node) return NULL;
  build_set(node, "axis")->s64 = logits->shape.rank - 1;
  return build_name(b, build_one_of_type(b, node, TYPE_S32), "class");
}

// Adds the mean cross entropy of the classes along the last axis, and the accuracy: the fraction of labels that are the
// class of the greatest logit.
static bool add_cross_entropy(Builder *b, Value *logits, const char *of) {
  Shape shape = logits->shape;
  if (shape.rank-- == 0) return error_at(b->d, (Position){0}, "%s: expected logits, found one number", logits->name);
  Value *labels = loss_input(b, build_text(b, "labels%s", of), TYPE_S32, &shape);
  if (!labels) return false;
  Value *const inputs[] = {logits, labels, NULL};
  Value *loss =
      build_name(b, build_one(b, build_node(b, OP_SoftmaxCrossEntropy, 3, inputs)), build_text(b, "loss%s", of));
  Value *is_right = build_name(b, build_binary(b, OP_Equal, add_class(b, logits), labels), "is_right");
  Value *right = build_named_cast(b, is_right, TYPE_F32, "right");
  Value *mean = build_reduce_mask(b, OP_ReduceMean, right, ~0U, false);
  Value *accuracy = build_name(b, mean, build_text(b, "accuracy%s", of));
  return loss && accuracy && graph_add_output(b->graph, loss) && graph_add_output(b->graph, accuracy);
}

// of: "", or "_NAME" where there are several losses.
static bool add_result(Builder *b, int kind, Value *result, const char *of) {
  if (!type_is_float(result->type))
    return error_at(b->d, (Position){0}, "%s: expected an output of floating-point numbers", result->name);
  if (kind == CROSS_ENTROPY) return add_cross_entropy(b, result, of);
  const OperatorId op = kind == SQUARED_ERROR ? OP_MeanSquaredError : OP_BinaryCrossEntropy;
  Value *target = loss_input(b, build_text(b, "target%s", of), result->type, &result->shape);
  Value *loss = target ? build_name(b, build_binary(b, op, result, target), build_text(b, "loss%s", of)) : NULL;
  return loss && graph_add_output(b->graph, loss);
}

// By value: whether it is computed from a weight, by floating-point numbers.
static bool *find_weighted(Builder *b) {
  const Graph *g = b->graph;
  bool *weighted = ARENA_ARRAY(&b->scratch, bool, g->nvalues + 1);
  for (size_t i = 0; weighted && i < g->nvalues; i++) weighted[i] = value_is_weight(g->values[i]);
  if (weighted) train_find_dependants(g, NULL, weighted);
  return weighted;
}

// The output that a loss is of: the named one, else the first one that depends on weights.
static Value *find_result(Builder *b, const char *name, const bool *weighted) {
  const Graph *g = b->graph;
  Value *found = NULL;
  for (size_t i = 0; i < g->noutputs && !found; i++) {
    const Value *v = g->outputs[i];
    if (name ? strcmp(v->name, name) == 0 : weighted[v->index] && type_is_float(v->type)) found = g->outputs[i];
  }
  if (!found && name) error_at(b->d, (Position){0}, "loss: unknown output %s, expected one of the graph's", name);
  return found || name ? found : g->outputs[0];
}

// Warns of results that no loss is of.
static bool tell_others(Builder *b, Value *const *results, size_t count, size_t noutputs, const bool *weighted) {
  const Graph *g = b->graph;
  const Value *other = NULL;
  Text names;
  text_init(&names, b->scratch.allocator);
  for (size_t i = 0; i < noutputs; i++) {
    const Value *v = g->outputs[i];
    bool has_loss = !weighted[v->index] || !type_is_float(v->type);
    for (size_t k = 0; k < count; k++) has_loss |= results[k] == v;
    if (has_loss) continue;
    text_format(&names, "%s%s", other ? ", " : "", v->name);
    other = v;
  }
  if (other)
    warn_at(b->d, (Position){0}, "%s: outputs without a loss: %s; several are named as in --loss mse:%s --loss mse:%s",
            g->name, text_string(&names), results[0]->name, other->name);
  text_deinit(&names);
  return true;
}

// added: the losses, which are behind the graph's own outputs.
static bool add_losses(Builder *b, const char *const *losses, size_t count, bool tells, Value **added) {
  Graph *g = b->graph;
  const bool *weighted = find_weighted(b);
  Value **results = ARENA_ARRAY(&b->scratch, Value *, count + 1);
  Value **updates = ARENA_ARRAY(&b->scratch, Value *, g->nstates + 1);
  if (!updates || !weighted || !results) return false;
  for (size_t i = 0; i < g->nstates; i++)
    if (g->states[i].output >= 0) updates[i] = g->outputs[g->states[i].output];
  take_updates(g);
  const size_t noutputs = g->noutputs;
  for (size_t i = 0; i < count; i++) {
    const char *output;
    const int kind = find_loss(losses[i], &output);
    results[i] = find_result(b, output, weighted);
    if (!results[i]) return false;
    tells &= !output;
    const size_t before = g->noutputs;
    if (!add_result(b, kind, results[i], count > 1 ? build_text(b, "_%s", results[i]->name) : "")) return false;
    added[i] = g->outputs[before];
  }
  if (tells && !tell_others(b, results, count, noutputs, weighted)) return false;
  return put_updates(g, updates);
}

Graph *graph_trainable(const Graph *forward, const char *const *added, size_t nadded, const bool *is_loss, bool tells,
                       Diagnostics *d) {
  const size_t errors = d->nerrors;
  Builder b;
  builder_begin_clone(&b, forward, d);
  Value **losses = b.failed ? NULL : ARENA_ARRAY(&b.scratch, Value *, nadded + 1);
  bool ok = losses && (!nadded || add_losses(&b, added, nadded, tells, losses));
  if (ok && !train_has_parameters(forward)) ok = make_states(&b, is_loss, losses, nadded, tells) && add_updates(&b);
  if (!ok && d->nerrors == errors) build_out_of_memory(&b);
  b.failed |= !ok;
  return builder_end(&b);
}
