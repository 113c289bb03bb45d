// Lists the floating-point constants and states that a training step was made from: whether it trains them, and why
// not.
#include "frontend/api/parameters.h"

#include <string.h>

typedef struct List {
  const Graph *from, *forward;
  const TrainOptions *options;
  bool decays; // the options have weight decay
} List;

static bool has_decay(const TrainOptions *o) {
  const Operator *op = &operators[o->optimizer];
  for (uint32_t i = 0; i < op->nattributes; i++)
    if (strcmp(op->attributes[i].name, "weight_decay") == 0)
      return (o->attributes[i].is_set ? o->attributes[i].f32 : op->attributes[i].default_value) > 0;
  return false;
}

static const char *why_not_state(const List *list, size_t state) {
  if (list->forward->states[state].output >= 0) return "updated by the graph";
  if (!state_is_parameter(list->forward, &list->forward->states[state])) return "a statistic or a setting";
  return list->options->is_frozen[state] ? "frozen" : NULL;
}

static const char *why_not_constant(const List *list, const Value *v) {
  if (!value_is_weight(v)) return "a number of a formula";
  if (value_is_statistic(v)) return "a statistic or a setting";
  if (value_has_fixed_number(v)) return "a number of it is 2^24 or more, as in a mask";
  return train_has_parameters(list->from) ? "a constant beside states" : "no gradient reaches it";
}

// state: of the graph that is trained; its number of states: none.
static bool add(ng_graph *step, const List *list, const Value *v, size_t state) {
  const bool is_state = state < list->forward->nstates;
  const char *why_not = is_state ? why_not_state(list, state) : why_not_constant(list, v);
  const bool decays = !why_not && list->decays && !list->options->has_no_decay[state];
  const char *name = arena_copy_text(&step->graph->arena, v->name, strlen(v->name));
  step->parameters[step->nparameters++] = (ng_parameter){name, v->constant != NULL, !why_not, decays, why_not};
  return name != NULL;
}

// The states of `from` are the first ones of `forward`. The constants that became states follow, in their order.
bool graph_list_parameters(ng_graph *step, const Graph *from, const Graph *forward, const TrainOptions *options) {
  const List list = {from, forward, options, has_decay(options)};
  step->parameters = ARENA_ARRAY(&step->graph->arena, ng_parameter, from->nvalues + 1);
  bool ok = step->parameters != NULL;
  for (size_t i = 0; i < from->nstates && ok; i++)
    if (type_is_float(graph_state(from, i)->type)) ok = add(step, &list, graph_state(from, i), i);
  size_t next = from->nstates;
  for (size_t i = 0; i < from->nvalues && ok; i++) {
    const Value *v = from->values[i];
    if (!v->constant || !v->uses || !type_is_float(v->type)) continue;
    const bool is_state = next < forward->nstates && strcmp(graph_state(forward, next)->name, v->name) == 0;
    ok = add(step, &list, v, is_state ? next++ : forward->nstates);
  }
  return ok;
}

size_t ng_graph_parameter_count(const ng_graph *step) {
  return step->nparameters;
}

ng_parameter ng_graph_parameter(const ng_graph *step, size_t i) {
  return step->parameters[i];
}
