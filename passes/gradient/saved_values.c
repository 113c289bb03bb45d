// Decides which forward values the backward graph takes as inputs and which it recomputes (the policy of gradient.h).
//
// Visits forward nodes from the last to the first. A value that is replaced by its operands stays computable from the
// inputs, so one walk is enough.
#include "passes/gradient/gradient_state.h"

typedef struct Saving {
  Gradient *g;
  // By the index of a forward value:
  bool *is_given;      // it is an input of the backward graph, or available without cost
  bool *is_computable; // cheap nodes can compute it from given values
  bool *is_made;       // the backward graph computes it
} Saving;

static bool is_cheap(const Node *node) {
  const unsigned cheap = TRAIT_ELEMENTWISE | TRAIT_MOVES | TRAIT_PIECES;
  return node->op->traits & cheap && !(node->op->traits & TRAIT_RESAMPLES);
}

// Whether the result is a rearrangement of input 0.
static bool is_view(const Node *node) {
  const OperatorId id = node->op->id;
  return id == OP_StaticReshape || id == OP_StaticTranspose || id == OP_Reorder;
}

// Bytes of a value; named extents without a value count as GUESSED_EXTENT.
static double nbytes_of(const Value *v) {
  enum { GUESSED_EXTENT = 64 };
  double nbytes = (double)type_nbytes(v->type);
  for (int i = 0; i < v->shape.rank; i++) {
    const int64_t extent = extent_value(v->shape.extent[i]);
    nbytes *= (double)(extent < 0 ? GUESSED_EXTENT : extent);
  }
  return nbytes;
}

static bool is_there(const Saving *s, const Value *v) {
  return !v || s->is_given[v->index] || s->is_computable[v->index];
}

// States, and constants in the graph, cost nothing: the backward graph can read them anyway.
static void find_given(Saving *s) {
  const Graph *forward = s->g->forward;
  for (size_t i = 0; i < forward->nvalues; i++) {
    const Value *v = forward->values[i];
    s->is_given[i] = gradient_is_needed(s->g->here[i]) || (v->constant && !v->constant->file);
  }
  for (size_t i = 0; i < forward->nstates; i++) s->is_given[graph_state(forward, i)->index] = true;
}

static void find_computable(Saving *s) {
  const Graph *forward = s->g->forward;
  for (size_t n = 0; n < forward->nnodes; n++) {
    const Node *node = forward->nodes[n];
    bool is_computable = is_cheap(node);
    for (uint32_t i = 0; i < node->ninputs && is_computable; i++) is_computable = is_there(s, node->inputs[i]);
    for (uint32_t i = 0; i < node->noutputs; i++)
      if (node->outputs[i]) s->is_computable[node->outputs[i]->index] = is_computable;
  }
}

// The bytes of the node's inputs that would have to be saved.
static double cost_of_inputs(const Saving *s, const Node *node) {
  double nbytes = 0;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    bool is_repeated = false;
    for (uint32_t k = 0; k < i; k++) is_repeated |= node->inputs[k] == node->inputs[i];
    if (!is_repeated && !is_there(s, node->inputs[i])) nbytes += nbytes_of(node->inputs[i]);
  }
  return nbytes;
}

static bool is_given_output(const Saving *s, const Node *node, uint32_t slot) {
  return node->outputs[slot] && s->is_given[node->outputs[slot]->index];
}

static void choose(Saving *s, const Node *node) {
  double saved = 0;
  bool is_given = false;
  for (uint32_t i = 0; i < node->noutputs; i++) {
    if (!is_given_output(s, node, i)) continue;
    saved += nbytes_of(node->outputs[i]);
    is_given = true;
  }
  if (!is_given || !is_cheap(node)) return;
  const double cost = cost_of_inputs(s, node);
  if (cost > 0 && !(cost < saved) && !(cost == saved && is_view(node))) return;
  for (uint32_t i = 0; i < node->noutputs; i++) {
    if (!is_given_output(s, node, i)) continue;
    s->is_given[node->outputs[i]->index] = false;
    s->is_computable[node->outputs[i]->index] = s->is_made[node->outputs[i]->index] = true;
  }
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (!is_there(s, node->inputs[i])) s->is_given[node->inputs[i]->index] = true;
}

static bool is_made_by(const Saving *s, const Node *node) {
  bool any = false;
  for (uint32_t i = 0; i < node->noutputs; i++) any |= node->outputs[i] && s->is_made[node->outputs[i]->index];
  return any;
}

// If the node is recomputed, its inputs that are not given must be recomputed, too.
static void spread(Saving *s, const Node *node) {
  for (uint32_t i = 0; i < node->ninputs && is_made_by(s, node); i++) {
    const Value *v = node->inputs[i];
    if (v && !s->is_given[v->index]) s->is_made[v->index] = true;
  }
}

// Copies the node to the backward graph. The copy's results replace inputs of the backward graph.
static void make_again(Saving *s, const Node *node) {
  Gradient *g = s->g;
  g->node = node;
  Node *again = gradient_add_node(g, node->op->id, node->ninputs, node);
  for (uint32_t i = 0; again && i < node->ninputs; i++)
    if (node->inputs[i]) node_set_input(again, i, gradient_saved(g, node->inputs[i]));
  for (uint32_t i = 0; again && i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    if (!v || (!s->is_made[v->index] && node->op->outputs[i].is_optional)) continue;
    Value *own = gradient_output(g, again, i, v->type, &v->shape), *input = g->here[v->index];
    if (!own) return;
    own->layout = v->layout;
    if (!s->is_made[v->index]) continue;
    own->name = v->name;
    if (input) value_replace_uses(input, own);
    g->here[v->index] = own;
  }
}

void gradient_choose_saved(Gradient *g) {
  const Graph *forward = g->forward;
  const size_t n = forward->nvalues + 1;
  Saving s = {g, ARENA_ARRAY(&g->scratch, bool, n), ARENA_ARRAY(&g->scratch, bool, n),
              ARENA_ARRAY(&g->scratch, bool, n)};
  if (!s.is_given || !s.is_computable || !s.is_made) {
    g->failed = true;
    error_out_of_memory(g->diagnostics);
    return;
  }
  find_given(&s);
  find_computable(&s);
  for (size_t i = forward->nnodes; i-- > 0;) choose(&s, forward->nodes[i]);
  for (size_t i = forward->nnodes; i-- > 0;) spread(&s, forward->nodes[i]);
  for (size_t i = 0; i < forward->nnodes && !g->failed; i++)
    if (is_made_by(&s, forward->nodes[i])) make_again(&s, forward->nodes[i]);
  g->node = NULL;
}

Graph *graph_with_saved(const Graph *forward, const Graph *backward, const GradientEnds *ends) {
  Graph *g = graph_clone(forward);
  if (!g) return NULL;
  const size_t nresults = forward->noutputs - forward->nupdates;
  bool ok = graph_own_dims(g);
  for (size_t i = 0; i < g->noutputs; i++) g->outputs[i]->is_output = false;
  g->noutputs = 0;
  for (size_t i = 0; ok && i < nresults; i++) ok = graph_add_output(g, g->values[forward->outputs[i]->index]);
  for (size_t i = 0; ok && i < backward->ninputs - ends->ndiffs; i++) {
    const Value *v = ends->inputs[i];
    if (!v->is_input && !g->values[v->index]->is_output) ok = graph_add_output(g, g->values[v->index]);
  }
  const size_t nsaved = g->noutputs - nresults;
  for (size_t i = nresults; ok && i < forward->noutputs; i++)
    ok = graph_add_output(g, g->values[forward->outputs[i]->index]);
  for (size_t i = 0; i < g->nstates; i++)
    if (g->states[i].output >= 0) g->states[i].output += (int64_t)nsaved;
  if (ok) return g;
  graph_free(g);
  return NULL;
}
