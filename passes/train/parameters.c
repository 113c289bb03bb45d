// Finds the states that are trained, and the values that depend on them.
#include "passes/train/train.h"

bool state_is_parameter(const Graph *forward, const State *state) {
  return state->output < 0 && type_is_float(forward->inputs[state->input]->type);
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
