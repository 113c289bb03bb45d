// Finds the values that a gradient of the losses reaches, and the reasons why others are not reached.
#include "ir/operators/operator.h"
#include "passes/train/train.h"

#include <string.h>

// Whether a gradient flows through the value.
static bool carries(const Value *v) {
  const Node *node = v->producer;
  const bool is_statistic = node && node->op->outputs[v->output_slot].is_statistic;
  return type_is_float(v->type) && !v->is_detached &&
         !(is_statistic && gradient_of_result(node->op->id, v->output_slot).kind == DERIVATIVE_REFUSED);
}

// Whether a gradient of the node's results flows on to the operand, be it 0 because results change in steps.
static bool passes_on(const Node *node, uint32_t slot) {
  if (!node->inputs[slot] || !carries(node->inputs[slot])) return false;
  const Derivative derivative = gradient_by_input(node->op->id, slot);
  return derivative.kind != DERIVATIVE_ZERO || derivative.is_told;
}

void train_find_reached(const Graph *forward, Value *const *losses, size_t nlosses, bool *reached) {
  for (size_t i = 0; i < nlosses; i++) reached[losses[i]->index] = carries(losses[i]);
  for (size_t n = forward->nnodes; n-- > 0;) {
    const Node *node = forward->nodes[n];
    bool any = false;
    for (uint32_t i = 0; i < node->noutputs; i++) any |= node->outputs[i] && reached[node->outputs[i]->index];
    for (uint32_t i = 0; i < node->ninputs && any; i++)
      if (passes_on(node, i)) reached[node->inputs[i]->index] = true;
  }
}

typedef struct Search {
  const Graph *forward;
  bool *needed; // by index: a loss depends on the value
  bool *leads;  // floating-point values lead from the examined value to it
} Search;

// Whether a loss depends on a result of the node, but no gradient flows on to the values that lead to it.
static bool cuts(const Search *s, const Node *node) {
  bool any = false, goes_on = false, is_needed = false;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const bool leads = node->inputs[i] && s->leads[node->inputs[i]->index];
    any |= leads;
    goes_on |= leads && passes_on(node, i);
  }
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    if (!v || !any) continue;
    s->leads[v->index] = goes_on && carries(v);
    is_needed |= s->needed[v->index] && !s->leads[v->index];
  }
  return is_needed;
}

// Appends the operators where the way from v to the losses ends.
static void tell_why(const Search *s, const Value *v, const char *loss, Text *out) {
  bool is_told[OP_COUNT] = {false};
  const char *before = "only ";
  size_t count = 0;
  memset(s->leads, 0, s->forward->nvalues * sizeof *s->leads);
  s->leads[v->index] = true;
  for (size_t n = 0; n < s->forward->nnodes && s->needed[v->index]; n++) {
    const Node *node = s->forward->nodes[n];
    if (!cuts(s, node) || is_told[node->op->id]) continue;
    is_told[node->op->id] = true;
    text_format(out, "%s%s", before, node->op->name);
    before = " and ";
    count++;
  }
  if (count) text_format(out, " read%s it", count == 1 ? "s" : "");
  else if (s->needed[v->index]) text_format(out, "only statistics depend on it");
  else text_format(out, "%s does not depend on it", loss);
}

bool train_list_unreached(const Graph *forward, Value *const *values, size_t nvalues, Value *const *losses,
                          size_t nlosses, Text *out) {
  Arena scratch;
  arena_init(&scratch, forward->arena.allocator);
  const Search s = {forward, ARENA_ARRAY(&scratch, bool, forward->nvalues + 1),
                    ARENA_ARRAY(&scratch, bool, forward->nvalues + 1)};
  const bool ok = s.needed && s.leads;
  if (ok) train_find_needed(forward, losses, nlosses, s.needed);
  for (size_t i = 0; ok && i < nvalues && i < MOST_TOLD; i++) {
    text_format(out, "%s%s (", i ? ", " : "", values[i]->name);
    tell_why(&s, values[i], nlosses == 1 ? losses[0]->name : "the loss", out);
    text_format(out, ")");
  }
  if (nvalues > MOST_TOLD) text_format(out, ", and %zu more", nvalues - MOST_TOLD);
  arena_deinit(&scratch);
  return ok && !out->out_of_memory;
}
