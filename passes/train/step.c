// Makes the step graph: the forward graph, its gradient, and an optimizer's node for each parameter.
//
// The backward graph's nodes follow the forward graph's nodes and use their values directly; the gradient of each loss
// is the constant 1. With several leaves, both graphs are graphs with leaves. Optimizer states and rates are f64 for
// f64 parameters, and f32 for all other types.
#include "passes/train/step.h"

#include "passes/rewrite/dead_code.h"

#include <math.h>

// Parameters

static bool is_trained(const Step *s, size_t state) {
  const TrainOptions *o = s->options;
  return state_is_parameter(s->forward, &s->forward->states[state]) && !(o->is_frozen && o->is_frozen[state]);
}

static bool tell_no_parameters(const Step *s) {
  const char *name = s->forward->name;
  size_t nparameters = 0;
  for (size_t i = 0; i < s->forward->nstates; i++)
    nparameters += state_is_parameter(s->forward, &s->forward->states[i]);
  if (nparameters) return error_at(s->b.d, (Position){0}, "%s: expected a parameter that is not frozen", name);
  return error_at(
      s->b.d, (Position){0},
      s->forward->nstates
          ? "%s: expected parameters to train, which are floating-point states; an input becomes one when it stands "
            "under state: instead of inputs:, as in {name: w, type: f32, shape: [784, 10], init: {fan_in: 784}}"
          : "%s: expected parameters to train: states, as in state: [{name: w, type: f32, shape: [784, 10], init: "
            "{fan_in: 784}}], or constants from files and an ONNX model's weights that a gradient reaches",
      name);
}

// Refuses parameters that no gradient reaches: probably a mistake.
static bool check_effects(Step *s) {
  const TrainOptions *o = s->options;
  bool *reached = ARENA_ARRAY(&s->b.scratch, bool, s->forward->nvalues + 1);
  Value **others = ARENA_ARRAY(&s->b.scratch, Value *, s->nparameters + 1);
  size_t nothers = 0;
  if (!reached || !others) return error_out_of_memory(s->b.d);
  train_find_reached(s->forward, o->losses, o->nlosses, reached);
  for (size_t i = 0; i < s->nparameters; i++)
    if (!reached[s->parameters[i]->index]) others[nothers++] = s->parameters[i];
  if (!nothers) return true;
  Text message;
  text_init(&message, s->b.scratch.allocator);
  bool ok = train_list_unreached(s->forward, others, nothers, o->losses, o->nlosses, &message);
  const char *before = "; ";
  for (size_t i = 0; i < nothers && i < MOST_TOLD; i++, before = " ")
    text_format(&message, "%s--freeze %s", before, others[i]->name);
  if (!ok || message.out_of_memory) error_out_of_memory(s->b.d);
  else
    error_at(s->b.d, others[0]->position, "no gradient reaches %s: %s leaves %s",
             nothers == 1 ? "the parameter" : "the parameters", text_string(&message),
             nothers == 1 ? "it as it is" : "them as they are");
  text_deinit(&message);
  return false;
}

static bool find_parameters(Step *s) {
  const Graph *forward = s->forward;
  const size_t n = forward->nstates + 1;
  s->states = ARENA_ARRAY(&s->b.scratch, size_t, n);
  s->parameters = ARENA_ARRAY(&s->b.scratch, Value *, n);
  s->gradients = ARENA_ARRAY(&s->b.scratch, Value *, n);
  s->next = ARENA_ARRAY(&s->b.scratch, Value *, (MOST_SLOTS + 1) * n + MOST_OWN_STATES);
  if (!s->states || !s->parameters || !s->gradients || !s->next) return build_out_of_memory(&s->b);
  s->rate_type = TYPE_F32;
  for (size_t i = 0; i < forward->nstates; i++) {
    if (!is_trained(s, i)) continue;
    Value *parameter = graph_state(forward, i);
    if (parameter->type == TYPE_F64) s->rate_type = TYPE_F64;
    s->states[s->nparameters] = i;
    s->parameters[s->nparameters++] = parameter;
  }
  s->b.failed = s->nparameters ? !check_effects(s) : !tell_no_parameters(s);
  return !s->b.failed;
}

// The numbers of the options become constants in the type of the rate.
static bool numbers_are_in_range(Step *s) {
  const TrainOptions *o = s->options;
  const char *const names[] = {"learning_rate", "clip_norm", "gamma"};
  const double numbers[] = {o->learning_rate, o->clip_norm, o->schedule.gamma};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!isfinite(type_round(s->rate_type, numbers[i])))
      s->b.failed = !error_at(s->b.d, (Position){0}, "%s: expected a number within the range of %s, found %g", names[i],
                              type_name(s->rate_type), numbers[i]);
  return !s->b.failed;
}

// Warns of states that no step changes because nodes take them as statistics or settings.
static bool warn_of_statistics(Step *s) {
  const Graph *forward = s->forward;
  Text names;
  const Value *first = NULL;
  text_init(&names, s->b.scratch.allocator);
  for (size_t i = 0; i < forward->nstates; i++) {
    const Value *v = graph_state(forward, i);
    if (forward->states[i].output >= 0 || !type_is_float(v->type) || !value_is_statistic(v)) continue;
    text_format(&names, "%s%s", first ? ", " : "", v->name);
    if (!first) first = v;
  }
  if (first && !names.out_of_memory)
    warn_at(
        s->b.d, first->position,
        "states that are not trained, as nodes such as %s take them as statistics or settings, and have no updates: %s",
        first->uses->node->op->name, text_string(&names));
  const bool ok = !names.out_of_memory || build_out_of_memory(&s->b);
  text_deinit(&names);
  return ok;
}

// Warns of dropouts whose mask is the same in each step: probably a mistake.
static bool warn_of_fixed_masks(Step *s) {
  bool *changes = ARENA_ARRAY(&s->b.scratch, bool, s->forward->nvalues + 1);
  if (!changes) return build_out_of_memory(&s->b);
  train_find_changing(s->forward, changes);
  for (size_t i = 0; i < s->forward->nnodes; i++) {
    const Node *node = s->forward->nodes[i];
    char title[NODE_TITLE_BYTES];
    if (node->op->id != OP_Dropout) continue;
    const Value *seed = node->inputs[1], *offset = node->inputs[2];
    if (changes[seed->index] || changes[offset->index]) continue;
    warn_at(s->b.d, node->position,
            "%s drops the same elements in each step, as %s and %s stay the same; expected an offset that is a state, "
            "{name: calls, type: s64, shape: [], init: ones}, and a node that adds 1 to it for updates: {calls: ...}",
            node_title(node, title), seed->name, offset->name);
  }
  return true;
}

// Parts of the graph

// The step graph's values for the backward graph's inputs.
static Value **backward_inputs(Step *s, const Graph *backward, const GradientEnds *ends, Value *const *forward) {
  Builder *b = &s->b;
  Value **inputs = ARENA_ARRAY(&b->scratch, Value *, backward->ninputs + 1);
  if (!inputs) return build_out_of_memory(b);
  for (size_t i = 0; i < backward->ninputs; i++) {
    const Value *v = backward->inputs[i];
    const bool is_diff = i >= backward->ninputs - ends->ndiffs;
    inputs[i] = !is_diff   ? forward[ends->inputs[i]->index]
                : s->scale ? build_named_cast(b, s->scale, v->type, v->name)
                           : build_shared_number(b, v->name, v->type, 1);
  }
  return inputs;
}

// Adds a state that counts from 0, and returns what it is after this call.
static Value *add_counter(Step *s, const char *name, const char *comment) {
  Builder *b = &s->b;
  const size_t state = build_state_like(b, name, STEP_TYPE, NULL);
  if (b->failed) return NULL;
  Value *before = b->graph->inputs[b->graph->ninputs - 1], *one = build_shared_number(b, "one_step", STEP_TYPE, 1);
  b->comment = comment;
  s->next[state] = build_name(b, build_binary(b, OP_Add, before, one), build_text(b, "%s.next", name));
  return s->next[state];
}

// Adds the step's outputs: the forward graph's outputs of rank 0, losses and metrics.
static void add_outputs(Step *s, Value *const *values) {
  const Graph *forward = s->forward;
  for (size_t i = 0; i < forward->noutputs - forward->nupdates && !s->b.failed; i++)
    if (forward->outputs[i]->shape.rank == 0 && !graph_add_output(s->b.graph, values[forward->outputs[i]->index]))
      build_out_of_memory(&s->b);
}

static void add_updates(Step *s) {
  Graph *g = s->b.graph;
  for (size_t i = 0; i < g->nstates && !s->b.failed; i++)
    if (s->next[i] && !graph_add_update(g, &g->states[i], s->next[i], (Position){0})) build_out_of_memory(&s->b);
}

// Rewrites the step for mixed precision. values: the step graph's values by index in the forward graph.
static void mix_precision(Step *s, Value *const *values, size_t first_backward) {
  Builder *b = &s->b;
  const MixedPrecision *mixed = &s->options->mixed;
  bool *may_keep = ARENA_ARRAY(&b->scratch, bool, s->forward->nvalues + 1);
  bool *is_kept = ARENA_ARRAY(&b->scratch, bool, b->graph->nvalues + 1);
  if (!may_keep || !is_kept || !mixed_find_kept(s->forward, mixed, may_keep)) {
    build_out_of_memory(b);
    return;
  }
  for (size_t i = 0; i < s->forward->nvalues; i++)
    if (may_keep[i]) is_kept[values[i]->index] = true;
  b->failed = !mixed_rewrite(b->graph, mixed, first_backward, b->graph->noutputs, is_kept, b->d);
}

static void make(Step *s, const Graph *backward, const GradientEnds *ends) {
  Builder *b = &s->b;
  const Graph *forward = s->forward;
  b->comment = "The forward graph.";
  Value **values = build_inlined(b, forward, b->graph->inputs);
  const size_t nforward = b->graph->nnodes;
  if (s->options->mixed.type == TYPE_F16) step_scale_losses(s);
  Value **saved = values ? backward_inputs(s, backward, ends, values) : NULL;
  b->comment = "The gradients.";
  Value **gradients = saved ? build_inlined(b, backward, saved) : NULL;
  if (!gradients) return;
  add_outputs(s, values);
  for (size_t i = 0; i < s->nparameters; i++) s->gradients[i] = gradients[backward->outputs[i]->index];
  for (size_t i = 0; i < s->nparameters; i++) s->parameters[i] = values[s->parameters[i]->index];
  for (size_t i = 0; i < forward->nstates; i++)
    if (forward->states[i].output >= 0) s->next[i] = values[forward->outputs[forward->states[i].output]->index];
  if (s->scale) step_unscale_gradients(s);
  if (s->options->clip_norm > 0) step_clip_gradients(s);
  s->count = s->updates = add_counter(s, "step", "The number of calls, including this one.");
  if (s->scale) s->updates = add_counter(s, "updates", "The number of updates of parameters, including this one.");
  Value *rate = step_add_rate(s);
  step_update_parameters(s, rate);
  if (s->scale) step_skip_overflow(s);
  add_updates(s);
  if (s->options->mixed.type && !b->failed) mix_precision(s, values, nforward);
  if (b->failed) return;
  pass_dead_code(b->graph, &(PassContext){.diagnostics = b->d, .allocator = b->scratch.allocator});
}

static Graph *make_step(const Graph *forward, const TrainOptions *options, Diagnostics *d) {
  Step s = {.forward = forward, .options = options};
  GradientEnds ends;
  builder_begin_with_inputs(&s.b, forward, "_step", d);
  if (s.b.failed || !find_parameters(&s) || !numbers_are_in_range(&s) || !warn_of_fixed_masks(&s) ||
      !warn_of_statistics(&s))
    return builder_end(&s.b);
  const GradientRequest request = {s.parameters, s.nparameters, options->losses, options->nlosses};
  Graph *backward = graph_gradient(forward, &request, &ends, d);
  if (backward) make(&s, backward, &ends);
  else s.b.failed = true;
  Graph *step = builder_end(&s.b);
  graph_free(backward);
  return step;
}

// The loss's number among the outputs of rank 0, which are the outputs of the graph with leaves.
static size_t loss_number(const Graph *forward, const Value *loss) {
  size_t number = 0;
  for (size_t i = 0; forward->outputs[i] != loss; i++) number += forward->outputs[i]->shape.rank == 0;
  return number;
}

Graph *graph_train_step(const Graph *forward, const TrainOptions *options, Diagnostics *d) {
  if (options->nleaves <= 1) return make_step(forward, options, d);
  TrainOptions own = *options;
  Graph *leaves = graph_with_leaves(forward, options->nleaves, options->syncs_batch_norms, d), *step = NULL;
  Value **losses = leaves ? ARENA_ARRAY(&leaves->arena, Value *, options->nlosses + 1) : NULL;
  for (size_t i = 0; losses && i < options->nlosses; i++)
    losses[i] = leaves->outputs[loss_number(forward, options->losses[i])];
  own.losses = losses;
  if (losses) step = make_step(leaves, &own, d);
  else if (leaves) error_out_of_memory(d);
  graph_free(leaves);
  return step;
}
