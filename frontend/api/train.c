// Training: translates the options' names and numbers for passes/train.
#include "passes/train/train.h"
#include "frontend/api/handles.h"
#include "frontend/api/parameters.h"
#include "frontend/api/precision.h"
#include "frontend/api/unpack.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

typedef struct OptimizerName {
  const char *name;
  OperatorId op;
  double learning_rate; // default
} OptimizerName;

// The default rates are PyTorch's, except for sgd and momentum, for which PyTorch long had no default.
static const OptimizerName optimizers[] = {
    {"sgd", OP_SGD, 0.01},      {"momentum", OP_Momentum, 0.01}, {"adam", OP_Adam, 0.001},
    {"adamw", OP_AdamW, 0.001}, {"adagrad", OP_Adagrad, 0.01},
};
enum { NOPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static const char *const schedule_names[] = {"constant", "step", "cosine"}; // by ScheduleKind

typedef struct Training {
  ng_graph *g;
  Graph *own;           // a trainable form of g's graph; NULL: g's graph is trainable itself
  const Graph *forward; // `own`, or g's graph
  const ng_train_options *options;
  const OptimizerName *optimizer;
  TrainOptions made;
  Arena scratch;
  bool adds_loss;
} Training;

static ng_status choose_optimizer(Training *t) {
  const char *known[NOPTIMIZERS], *name = t->options->optimizer ? t->options->optimizer : "sgd";
  for (size_t i = 0; i < NOPTIMIZERS; i++) {
    known[i] = optimizers[i].name;
    if (strcmp(name, known[i]) == 0) t->optimizer = &optimizers[i];
  }
  if (!t->optimizer) return unknown_name(t->g->ctx, "optimizer", name, known, NOPTIMIZERS);
  t->made.optimizer = t->optimizer->op;
  t->made.learning_rate = t->optimizer->learning_rate;
  return NG_OK;
}

// Settings. Names without a row here are attributes of the optimizer.

typedef struct SettingRow {
  const char *name;
  size_t offset;      // in TrainOptions
  bool is_count;      // an int64_t, else a double
  unsigned schedules; // bit mask of the schedules that use the setting
  double least, most;
} SettingRow;

#define FIELD(name) offsetof(TrainOptions, name)
#define ANY_SCHEDULE 7U
enum { MOST_STEPS = 1 << 24 };

static const SettingRow setting_rows[] = {
    {"learning_rate", FIELD(learning_rate), false, ANY_SCHEDULE, 0, INFINITY},
    {"clip_norm", FIELD(clip_norm), false, ANY_SCHEDULE, 0, INFINITY},
    {"warmup", FIELD(schedule.warmup), true, ANY_SCHEDULE, 0, MOST_STEPS},
    {"steps", FIELD(schedule.steps), true, 1U << SCHEDULE_COSINE, 1, MOST_STEPS},
    {"step_size", FIELD(schedule.step_size), true, 1U << SCHEDULE_STEP, 1, MOST_STEPS},
    {"gamma", FIELD(schedule.gamma), false, 1U << SCHEDULE_STEP, 0, INFINITY},
    {"accumulate", FIELD(nleaves), true, ANY_SCHEDULE, 1, MOST_LEAVES},
    {"sync_batch_norm", FIELD(syncs_batch_norms), true, ANY_SCHEDULE, 0, 1},
};
enum { NSETTINGS = sizeof setting_rows / sizeof *setting_rows };

static ng_status set_number(Training *t, const SettingRow *row, double value) {
  char *field = (char *)&t->made + row->offset;
  if (!(row->schedules >> t->made.schedule.kind & 1))
    return argument_error(t->g->ctx, "%s: the schedule %s does not use it", row->name,
                          schedule_names[t->made.schedule.kind]);
  if (row->is_count && !(value >= row->least && value <= row->most && value == floor(value)))
    return argument_error(t->g->ctx, "%s: expected a whole number from %.0f to %.0f, found %g", row->name, row->least,
                          row->most, value);
  if (!(value >= row->least) || !isfinite(value))
    return argument_error(t->g->ctx, "%s: expected a number of %g or more, found %g", row->name, row->least, value);
  if (row->is_count) *(int64_t *)(void *)field = (int64_t)value;
  else *(double *)(void *)field = value;
  return NG_OK;
}

static ng_status unknown_setting(Training *t, const char *name) {
  const Operator *op = &operators[t->optimizer->op];
  const char *known[NSETTINGS + MAX_ATTRIBUTES];
  size_t nknown = 0;
  for (uint32_t i = 0; i < op->nattributes; i++) known[nknown++] = op->attributes[i].name;
  for (size_t i = 0; i < NSETTINGS; i++) known[nknown++] = setting_rows[i].name;
  for (size_t i = 0; i < NOPTIMIZERS; i++) {
    if (operator_has_attribute(&operators[optimizers[i].op], name))
      return argument_error(t->g->ctx, "%s: not a setting of %s, but of %s", name, t->optimizer->name,
                            optimizers[i].name);
  }
  return unknown_name(t->g->ctx, "setting", name, known, nknown);
}

static ng_status set_attribute(Training *t, const char *name, double value) {
  const Operator *op = &operators[t->optimizer->op];
  uint32_t i = 0;
  while (i < op->nattributes && strcmp(op->attributes[i].name, name) != 0) i++;
  if (i == op->nattributes) return unknown_setting(t, name);
  AttributeValue *attribute = &t->made.attributes[i];
  attribute->is_set = true;
  if (op->attributes[i].kind == ATTRIBUTE_BOOL) attribute->boolean = value != 0;
  else attribute->f32 = value;
  return NG_OK;
}

static ng_status apply_setting(Training *t, const ng_setting *setting) {
  for (size_t i = 0; i < NSETTINGS; i++)
    if (strcmp(setting->name, setting_rows[i].name) == 0) return set_number(t, &setting_rows[i], setting->value);
  return set_attribute(t, setting->name, setting->value);
}

static ng_status choose_schedule(Training *t) {
  enum { NSCHEDULES = sizeof schedule_names / sizeof *schedule_names };
  const char *name = t->options->schedule ? t->options->schedule : schedule_names[0];
  size_t kind = 0;
  while (kind < NSCHEDULES && strcmp(name, schedule_names[kind]) != 0) kind++;
  if (kind == NSCHEDULES) return unknown_name(t->g->ctx, "schedule", name, schedule_names, NSCHEDULES);
  t->made.schedule = (RateSchedule){.kind = (ScheduleKind)kind, .gamma = 0.1};
  return NG_OK;
}

static ng_status check_schedule(const Training *t) {
  const RateSchedule *r = &t->made.schedule;
  if (r->kind == SCHEDULE_STEP && !r->step_size)
    return argument_error(t->g->ctx,
                          "step_size: the schedule step needs the number of steps after which the rate changes");
  if (r->kind == SCHEDULE_COSINE && r->steps <= r->warmup)
    return argument_error(t->g->ctx, "steps: the schedule cosine needs the total number of steps%s",
                          r->warmup ? ", more than warmup" : "");
  return NG_OK;
}

static ng_status choose_numbers(Training *t) {
  ng_status status = choose_schedule(t);
  if (status == NG_OK && t->made.optimizer == OP_Momentum) status = set_attribute(t, "momentum", 0.9);
  for (size_t i = 0; i < t->options->nsettings && status == NG_OK; i++)
    status = apply_setting(t, &t->options->settings[i]);
  if (status == NG_OK && t->made.syncs_batch_norms && !t->made.nleaves)
    return argument_error(t->g->ctx, "sync_batch_norm: expected accumulate with it, the number of leaves of the batch; "
                                     "batch norms use the statistics of all leaves");
  if (status == NG_OK && t->made.nleaves > 1 && t->g->graph->nleaves)
    return argument_error(t->g->ctx, "accumulate: %s has %lld leaves already, expected a graph without leaves",
                          t->g->graph->name, (long long)t->g->graph->nleaves);
  return status == NG_OK ? check_schedule(t) : status;
}

// Parameters that match patterns

static ng_status tell_no_match(Training *t, const char *setting, const char *pattern) {
  const Graph *g = t->forward;
  const char *before = "there are ";
  Text names;
  text_init(&names, &t->g->ctx->allocator);
  for (size_t i = 0; i < g->nstates; i++) {
    if (!state_is_parameter(g, &g->states[i])) continue;
    text_format(&names, "%s%s", before, g->inputs[g->states[i].input]->name);
    before = ", ";
  }
  ng_status status = argument_error(t->g->ctx, "%s: no parameter matches %s; %s", setting, pattern,
                                    names.nbytes ? text_string(&names) : "there are none");
  text_deinit(&names);
  return status;
}

// The word for parameters with at most one axis, or a name that ends in "bias".
static const char norms_and_biases[] = "norms-and-biases";

static bool matches(const char *pattern, const Value *v) {
  if (strcmp(pattern, norms_and_biases) != 0) return fnmatch(pattern, v->name, 0) == 0;
  return v->shape.rank <= 1 || fnmatch("*bias", v->name, 0) == 0;
}

// Whether the pattern matches a constant, which is not trained anyway.
static bool matches_constant(const Graph *g, const char *pattern) {
  bool any = false;
  for (size_t i = 0; i < g->nvalues && !any; i++)
    any = g->values[i]->constant && type_is_float(g->values[i]->type) && matches(pattern, g->values[i]);
  return any;
}

// Marks, by state, the parameters that match one of the patterns. Each pattern must match one, or a constant.
static ng_status mark(Training *t, const char *setting, const char *const *patterns, size_t count,
                      const bool **marked) {
  const Graph *g = t->forward;
  bool *is_marked = ARENA_ARRAY(&t->scratch, bool, g->nstates + 1);
  if (!is_marked) return out_of_memory_status(t->g->ctx);
  *marked = is_marked;
  for (size_t p = 0; p < count; p++) {
    bool any = false;
    for (size_t i = 0; i < g->nstates; i++) {
      if (!state_is_parameter(g, &g->states[i]) || !matches(patterns[p], graph_state(g, i))) continue;
      any = is_marked[i] = true;
    }
    if (!any && !matches_constant(g, patterns[p])) return tell_no_match(t, setting, patterns[p]);
  }
  return NG_OK;
}

static ng_status mark_parameters(Training *t) {
  const ng_train_options *o = t->options;
  const ng_status status = mark(t, "freeze", o->freeze, o->nfreeze, &t->made.is_frozen);
  return status == NG_OK ? mark(t, "no_decay", o->no_decay, o->nno_decay, &t->made.has_no_decay) : status;
}

static bool is_frozen(const Training *t, const Value *v) {
  bool any = false;
  for (size_t p = 0; p < t->options->nfreeze; p++) any |= matches(t->options->freeze[p], v);
  return any;
}

static void warn_of_odd_number(const Training *t, const Value *v, int64_t i) {
  Text element;
  text_init(&element, &t->g->ctx->allocator);
  text_add_string(&element, v->name);
  int64_t below = shape_nelems(&v->shape);
  for (int axis = 0; axis < v->shape.rank; axis++) {
    const int64_t extent = extent_value(v->shape.extent[axis]);
    below /= extent;
    text_format(&element, "%s%lld", axis ? ", " : "[", (long long)(i / below % extent));
  }
  text_add_string(&element, v->shape.rank ? "]" : "");
  warn_at(
      &t->g->ctx->diagnostics, v->position,
      "%s: not trained, because %s is %g, and constants with a number of 2^24 or more are taken for masks; if it is "
      "none, correct this number, otherwise --freeze %s leaves it without a warning",
      v->name, text_string(&element), type_load(v->type, v->constant->data, (size_t)i), v->name);
  text_deinit(&element);
}

// Warns of constants that a single number may have made masks.
static ng_status warn_of_odd_numbers(Training *t) {
  const Graph *g = t->forward;
  bool *reached = ARENA_ARRAY(&t->scratch, bool, g->nvalues + 1);
  if (!reached) return out_of_memory_status(t->g->ctx);
  if (train_has_parameters(t->g->graph)) return NG_OK; // then no constant is trained
  const Call call = call_begin(t->g->ctx);
  train_find_reached(g, t->made.losses, t->made.nlosses, reached);
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (!reached[v->index] || !value_is_weight(v) || value_is_statistic(v) || is_frozen(t, v)) continue;
    const int64_t odd = value_odd_number(v);
    if (odd >= 0) warn_of_odd_number(t, v, odd);
  }
  return call_end(t->g->ctx, call);
}

// Warns of a model's batch norms that were exported for inference.
static void warn_of_batch_norms(const Training *t) {
  const Graph *g = t->forward;
  const Node *first = NULL;
  size_t count = 0;
  for (size_t i = 0; i < g->nnodes; i++) {
    const Node *node = g->nodes[i];
    if (node->op->id != OP_BatchNormInference || !node->inputs[3]->constant ||
        !node->inputs[3]->constant->is_initializer)
      continue;
    if (!count++) first = node;
  }
  if (count)
    warn_at(&t->g->ctx->diagnostics, first->position,
            "batch norms were exported for inference (%zu of them): they keep their statistics; --train-batch-norms "
            "(Python: load(..., train_batch_norms=True)) takes those of each batch",
            count);
}

// Losses

static bool is_loss(const Value *v, const bool *depends) {
  return v->shape.rank == 0 && type_is_float(v->type) && depends[v->index];
}

static ng_status tell_no_default(Training *t, const bool *depends) {
  const Graph *g = t->forward;
  const char *before = "";
  char shape[160];
  Text names;
  text_init(&names, &t->g->ctx->allocator);
  for (size_t i = 0; i < g->noutputs - g->nupdates; i++) {
    const Value *v = g->outputs[i];
    if (t->made.nlosses && !is_loss(v, depends)) continue;
    text_format(&names, "%s%s", before, v->name);
    if (!t->made.nlosses)
      text_format(&names, " %s %s", type_name(v->type), shape_string(&v->shape, shape, sizeof shape));
    before = ", ";
  }
  ng_status status =
      argument_error(t->g->ctx,
                     t->made.nlosses ? "loss: expected the name of one or more of the outputs %s"
                                     : "loss: expected an output of shape [], a floating-point number that depends "
                                       "on parameters, found %s; cross-entropy, mse or bce adds one",
                     names.nbytes ? text_string(&names) : "no outputs");
  text_deinit(&names);
  return status;
}

static ng_status find_loss(Training *t, const char *name, Value **loss) {
  const Graph *g = t->forward;
  const size_t count = g->noutputs - g->nupdates;
  char shape[160];
  const char **known = ARENA_ARRAY(&t->scratch, const char *, count + 1);
  if (!known) return out_of_memory_status(t->g->ctx);
  for (size_t i = 0; i < count; i++) {
    known[i] = g->outputs[i]->name;
    if (strcmp(name, known[i]) == 0) *loss = g->outputs[i];
  }
  if (!*loss) return unknown_name(t->g->ctx, "output", name, known, count);
  if ((*loss)->shape.rank == 0 && type_is_float((*loss)->type)) return NG_OK;
  return argument_error(t->g->ctx, "loss: expected a floating-point number, found %s, which is %s %s%s", name,
                        type_name((*loss)->type), shape_string(&(*loss)->shape, shape, sizeof shape),
                        type_is_float((*loss)->type) ? "; ReduceMean over all axes makes one" : "");
}

static bool has_output(const Graph *g, const char *name) {
  bool found = false;
  for (size_t i = 0; i < g->noutputs - g->nupdates && !found; i++) found = strcmp(g->outputs[i]->name, name) == 0;
  return found;
}

// Marks the outputs that the options name as losses; NULL: they name none. Unknown names are reported later.
static const bool *given_losses(Training *t) {
  const Graph *g = t->g->graph;
  bool *is_loss = t->options->losses ? ARENA_ARRAY(&t->scratch, bool, g->noutputs + 1) : NULL;
  for (size_t i = 0; is_loss && i < g->noutputs; i++)
    for (size_t k = 0; k < t->options->nlosses; k++)
      is_loss[i] |= strcmp(g->outputs[i]->name, t->options->losses[k]) == 0;
  return is_loss;
}

// Whether all losses name no outputs but losses that can be added, such as cross-entropy, or mse:y.
static bool adds_losses(const ng_train_options *options, const Graph *g) {
  const char *output;
  bool all = options->losses && options->nlosses > 0;
  for (size_t i = 0; all && i < options->nlosses; i++)
    all = train_adds_loss(options->losses[i], &output) && !has_output(g, options->losses[i]);
  return all;
}

static ng_status make_trainable(Training *t, bool tells) {
  const Graph *g = t->g->graph;
  const bool adds_loss = adds_losses(t->options, g);
  const ng_status status = graph_bind_fixed(t->g);
  if (status != NG_OK) return status;
  t->forward = g;
  if (train_has_parameters(g) && !adds_loss) return NG_OK;
  const Call call = call_begin(t->g->ctx);
  const bool *is_loss = adds_loss ? NULL : given_losses(t);
  Graph *unpacked = graph_clone(g);
  if (unpacked && (train_has_parameters(g) || graph_unpack_weights(unpacked)))
    t->own = graph_trainable(unpacked, t->options->losses, adds_loss ? t->options->nlosses : 0, is_loss, tells,
                             &t->g->ctx->diagnostics);
  else error_out_of_memory(&t->g->ctx->diagnostics);
  graph_free(unpacked);
  t->forward = t->own;
  t->adds_loss = adds_loss;
  return call_end(t->g->ctx, call);
}

static ng_status choose_losses(Training *t) {
  const Graph *g = t->forward;
  bool *depends = ARENA_ARRAY(&t->scratch, bool, g->nvalues + 1);
  Value **losses = ARENA_ARRAY(&t->scratch, Value *, t->options->nlosses + 2);
  if (!depends || !losses) return out_of_memory_status(t->g->ctx);
  train_find_dependants(g, NULL, depends);
  t->made.losses = losses;
  size_t next = t->g->graph->noutputs - t->g->graph->nupdates; // behind the graph's own
  for (size_t i = 0; t->adds_loss && i < t->options->nlosses; i++) {
    losses[t->made.nlosses++] = g->outputs[next];
    next += 1 + train_is_added_with_accuracy(t->options->losses[i]);
  }
  if (t->adds_loss) return NG_OK;
  if (!t->options->losses) {
    for (size_t i = 0; i < g->noutputs - g->nupdates; i++)
      if (is_loss(g->outputs[i], depends)) losses[t->made.nlosses++ != 0] = g->outputs[i];
    return t->made.nlosses == 1 || !g->nstates ? NG_OK : tell_no_default(t, depends);
  }
  for (size_t i = 0; i < t->options->nlosses; i++) {
    Value *loss = NULL;
    ng_status status = find_loss(t, t->options->losses[i], &loss);
    if (status != NG_OK) return status;
    for (size_t k = 0; k < t->made.nlosses; k++)
      if (losses[k] == loss) return argument_error(t->g->ctx, "loss: expected %s once", t->options->losses[i]);
    losses[t->made.nlosses++] = loss;
  }
  return NG_OK;
}

ng_graph *ng_graph_train(ng_graph *g, const ng_train_options *options) {
  static const ng_train_options defaults = {0};
  ng_context *ctx = g->ctx;
  Training t = {.g = g, .options = options ? options : &defaults};
  arena_init(&t.scratch, &ctx->allocator);
  ng_status status = choose_optimizer(&t);
  if (status == NG_OK) status = choose_numbers(&t);
  if (status == NG_OK)
    status = precision_choose(ctx, t.options->precision, t.options->keep_f32, t.options->nkeep_f32, &t.scratch,
                              &t.made.mixed);
  if (status == NG_OK) status = make_trainable(&t, true);
  if (status == NG_OK) status = choose_losses(&t);
  if (status == NG_OK) status = mark_parameters(&t);
  if (status == NG_OK) status = warn_of_odd_numbers(&t);
  if (status == NG_OK) warn_of_batch_norms(&t);
  ctx->last_status = status;
  ng_graph *step = NULL;
  if (status == NG_OK) {
    const Call call = call_begin(ctx);
    step = graph_wrap(ctx, call, graph_train_step(t.forward, &t.made, &ctx->diagnostics));
    if (step && !graph_list_parameters(step, g->graph, t.forward, &t.made)) {
      ctx->last_status = out_of_memory_status(ctx);
      ng_graph_free(step);
      step = NULL;
    }
  }
  graph_free(t.own);
  arena_deinit(&t.scratch);
  return step;
}

ng_graph *ng_graph_trainable(ng_graph *g) {
  ng_context *ctx = g->ctx;
  ctx->last_status = graph_bind_fixed(g);
  if (ctx->last_status != NG_OK) return NULL;
  const Call call = call_begin(ctx);
  bool *is_loss = allocator_alloc(&ctx->allocator, g->graph->noutputs + 1); // each output may become one
  if (is_loss) memset(is_loss, true, g->graph->noutputs + 1);
  else error_out_of_memory(&ctx->diagnostics);
  Graph *made = is_loss ? graph_trainable(g->graph, NULL, 0, is_loss, false, &ctx->diagnostics) : NULL;
  allocator_free(&ctx->allocator, is_loss);
  return graph_wrap(ctx, call, made);
}

ng_graph *ng_graph_inference(ng_graph *g, ng_inference_form form, const ng_train_options *options) {
  static const ng_train_options defaults = {0};
  ng_context *ctx = g->ctx;
  Training t = {.g = g, .options = options ? options : &defaults};
  arena_init(&t.scratch, &ctx->allocator);
  ctx->last_status = make_trainable(&t, false);
  if (ctx->last_status == NG_OK) ctx->last_status = choose_losses(&t);
  ng_graph *result = NULL;
  if (ctx->last_status == NG_OK) {
    const Call call = call_begin(ctx);
    result = graph_wrap(ctx, call,
                        graph_inference(t.forward, form == NG_TEST ? FORM_TEST : FORM_INFER, t.made.losses,
                                        t.made.nlosses, &ctx->diagnostics));
    if (!result && ctx->last_status == NG_OK) ctx->last_status = NG_WRONG; // a warning says why
  }
  graph_free(t.own);
  arena_deinit(&t.scratch);
  return result;
}
