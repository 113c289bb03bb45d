// Finds the states that are trained, and the values that depend on them.
#include "ir/operators/operator.h"
#include "passes/train/train.h"

#include <math.h>

const Use *value_running_use(const Value *v) {
  const Use *use = v->uses;
  const bool is_running = use && !use->next && use->node->op->id == OP_BatchNormForwardTraining &&
                          use->node->op->inputs[use->slot].is_statistic;
  return is_running ? use : NULL;
}

bool value_is_weight(const Value *v) {
  return v->constant && type_is_float(v->type) && !v->is_output && (v->constant->file || v->constant->is_initializer);
}

static size_t constant_nelems(const Value *v) {
  return v->constant->is_splat ? 1 : (size_t)shape_nelems(&v->shape);
}

// The index of the first number that is 2^24 or more, infinite or NaN.
static size_t find_fixed_number(const Value *v) {
  size_t i = 0;
  while (i < constant_nelems(v) && fabs(type_load(v->type, v->constant->data, i)) < 16777216.0) i++;
  return i;
}

bool value_has_fixed_number(const Value *v) {
  return find_fixed_number(v) < constant_nelems(v);
}

int64_t value_odd_number(const Value *v) {
  const size_t nelems = constant_nelems(v), found = find_fixed_number(v);
  for (size_t i = 0; found < nelems && i < nelems; i++) {
    const double number = fabs(type_load(v->type, v->constant->data, i));
    if (number > 0 && number < 16777216.0) return (int64_t)found;
  }
  return -1;
}

bool value_is_statistic(const Value *v) {
  for (const Use *use = v->uses; use; use = use->next) {
    const Operator *op = use->node->op;
    const bool is_statistic = op->inputs[use->slot < op->ninputs ? use->slot : op->ninputs - 1].is_statistic;
    if (!is_statistic && !gradient_by_input(op->id, use->slot).is_setting) return false;
  }
  return v->uses && !v->is_output;
}

bool state_is_parameter(const Graph *forward, const State *state) {
  const Value *v = forward->inputs[state->input];
  return state->output < 0 && type_is_float(v->type) && !value_is_statistic(v);
}

bool train_has_parameters(const Graph *forward) {
  bool any = false;
  for (size_t i = 0; i < forward->nstates; i++) any |= state_is_parameter(forward, &forward->states[i]);
  return any;
}

void train_find_dependants(const Graph *forward, const bool *is_frozen, bool *depends) {
  for (size_t i = 0; i < forward->nstates; i++)
    if (state_is_parameter(forward, &forward->states[i]) && !(is_frozen && is_frozen[i]))
      depends[graph_state(forward, i)->index] = true;
  for (size_t n = 0; n < forward->nnodes; n++) {
    const Node *node = forward->nodes[n];
    bool any = false;
    for (uint32_t i = 0; i < node->ninputs; i++) any |= node->inputs[i] && depends[node->inputs[i]->index];
    for (uint32_t i = 0; i < node->noutputs; i++) {
      const Value *v = node->outputs[i];
      if (v && any) depends[v->index] = type_is_float(v->type) && !node->op->outputs[i].is_statistic;
    }
  }
}

void train_find_changing(const Graph *forward, bool *changes) {
  for (size_t i = 0; i < forward->ninputs - forward->nstates; i++) changes[forward->inputs[i]->index] = true;
  for (size_t i = 0; i < forward->nstates; i++)
    if (forward->states[i].output >= 0) changes[graph_state(forward, i)->index] = true;
  for (size_t n = 0; n < forward->nnodes; n++) {
    const Node *node = forward->nodes[n];
    bool any = false;
    for (uint32_t i = 0; i < node->ninputs; i++) any |= node->inputs[i] && changes[node->inputs[i]->index];
    for (uint32_t i = 0; i < node->noutputs; i++)
      if (node->outputs[i] && any) changes[node->outputs[i]->index] = true;
  }
}

void train_find_needed(const Graph *forward, Value *const *losses, size_t nlosses, bool *needed) {
  for (size_t i = 0; i < nlosses; i++) needed[losses[i]->index] = true;
  for (size_t n = forward->nnodes; n-- > 0;) {
    const Node *node = forward->nodes[n];
    bool any = false;
    for (uint32_t i = 0; i < node->noutputs; i++) any |= node->outputs[i] && needed[node->outputs[i]->index];
    for (uint32_t i = 0; i < node->ninputs && any; i++)
      if (node->inputs[i]) needed[node->inputs[i]->index] = true;
  }
}
