// The forward graph as it is used after training.
//
// A batch norm uses its running statistics as they were before the call; they must be states. Dropout is removed, and
// so are updates of states, with the nodes that only they need.
#include "ir/graph/copies.h"
#include "passes/rewrite/dead_code.h"
#include "passes/train/train.h"

#include <string.h>

enum { RUNNING_MEAN = 1, RUNNING_VARIANCE, BATCH_MEAN, BATCH_VARIANCE }; // outputs of BatchNormForwardTraining
enum { SRC, MEAN, VARIANCE, GAMMA, BETA };                               // inputs of BatchNormForwardTraining

typedef struct InferenceGraph {
  Builder b;
  const Graph *forward;
  Value **map;     // by index in the forward graph: the value in the inference graph
  bool *is_wanted; // by index in forward->outputs
} InferenceGraph;

static bool refuse(InferenceGraph *f, const Node *node, const char *why) {
  char title[NODE_TITLE_BYTES];
  f->b.failed = true;
  warn_at(f->b.d, node->position, "%s has no form for inference: %s", node_title(node, title), why);
  return false;
}

// Outputs

static size_t count_outputs(const Graph *forward) {
  return forward->noutputs - forward->nupdates;
}

// Marks the data inputs that the output depends on. Returns their number.
static size_t find_inputs(InferenceGraph *f, Value *output, bool *needed, bool *needs) {
  const size_t ndata = f->forward->ninputs - f->forward->nstates;
  size_t count = 0;
  memset(needed, 0, f->forward->nvalues * sizeof *needed);
  train_find_needed(f->forward, &output, 1, needed);
  for (size_t i = 0; i < ndata; i++) count += needs[i] = needed[f->forward->inputs[i]->index];
  return count;
}

static bool is_loss(const Value *v, Value *const *losses, size_t nlosses) {
  bool any = false;
  for (size_t k = 0; k < nlosses; k++) any |= losses[k] == v;
  return any;
}

// Marks as wanted the outputs, except losses, that need no unwanted input. Returns whether there is one that needs any.
static bool want_outputs(InferenceGraph *f, Value *const *losses, size_t nlosses, const bool *is_unwanted, bool *needed,
                         bool *needs) {
  const Graph *forward = f->forward;
  bool any = false;
  for (size_t i = 0; i < count_outputs(forward); i++) {
    const bool has_inputs = find_inputs(f, forward->outputs[i], needed, needs) > 0;
    f->is_wanted[i] = !is_loss(forward->outputs[i], losses, nlosses);
    for (size_t k = 0; k < forward->ninputs - forward->nstates; k++) f->is_wanted[i] &= !(needs[k] && is_unwanted[k]);
    any |= f->is_wanted[i] && has_inputs;
  }
  return any;
}

// Marks the inputs that some outputs need, but not all outputs that need any.
static void find_uncommon(InferenceGraph *f, bool *is_uncommon, bool *needed, bool *needs) {
  const size_t ndata = f->forward->ninputs - f->forward->nstates;
  for (size_t i = 0; i < count_outputs(f->forward); i++) {
    if (find_inputs(f, f->forward->outputs[i], needed, needs) == 0) continue;
    for (size_t k = 0; k < ndata; k++) is_uncommon[k] |= !needs[k];
  }
}

// Marks the inputs from which a way leads to a loss past all other outputs, and that no output on a way to a loss
// needs: labels. Outputs that have nothing to do with the losses, such as a state that is passed on, do not matter.
static bool find_labels(InferenceGraph *f, Value *const *losses, size_t nlosses, bool *is_label, bool *needed) {
  const Graph *forward = f->forward;
  const size_t nbytes = forward->nvalues * sizeof(bool);
  bool *past = ARENA_ARRAY(&f->b.scratch, bool, forward->nvalues + 1);
  Value **leading = ARENA_ARRAY(&f->b.scratch, Value *, count_outputs(forward) + 1);
  size_t nleading = 0;
  if (!past || !leading) return build_out_of_memory(&f->b);
  memset(needed, 0, nbytes);
  train_find_needed(forward, losses, nlosses, needed);
  for (size_t i = 0; i < count_outputs(forward); i++)
    if (needed[forward->outputs[i]->index] && !is_loss(forward->outputs[i], losses, nlosses))
      leading[nleading++] = forward->outputs[i];
  for (size_t i = 0; i < nlosses; i++) past[losses[i]->index] = true;
  for (size_t n = forward->nnodes; n-- > 0;) {
    const Node *node = forward->nodes[n];
    bool any = false;
    for (uint32_t i = 0; i < node->noutputs; i++) {
      const Value *v = node->outputs[i];
      any |= v && past[v->index] && (!v->is_output || is_loss(v, losses, nlosses));
    }
    for (uint32_t i = 0; i < node->ninputs && any; i++)
      if (node->inputs[i]) past[node->inputs[i]->index] = true;
  }
  memset(needed, 0, nbytes);
  train_find_needed(forward, leading, nleading, needed);
  for (size_t k = 0; k < forward->ninputs - forward->nstates; k++)
    is_label[k] = past[forward->inputs[k]->index] && !needed[forward->inputs[k]->index];
  return true;
}

// Marks as wanted the outputs, except losses, that need only inputs that all outputs need; if there are none, those
// that need no labels.
static bool choose_results(InferenceGraph *f, Value *const *losses, size_t nlosses) {
  const Graph *forward = f->forward;
  const size_t ndata = forward->ninputs - forward->nstates;
  bool *needed = ARENA_ARRAY(&f->b.scratch, bool, forward->nvalues + 1);
  bool *needs = ARENA_ARRAY(&f->b.scratch, bool, ndata + 1);
  bool *is_unwanted = ARENA_ARRAY(&f->b.scratch, bool, ndata + 1);
  if (!needed || !needs || !is_unwanted) return build_out_of_memory(&f->b);
  find_uncommon(f, is_unwanted, needed, needs);
  if (want_outputs(f, losses, nlosses, is_unwanted, needed, needs)) return true;
  if (!find_labels(f, losses, nlosses, is_unwanted, needed)) return false;
  if (want_outputs(f, losses, nlosses, is_unwanted, needed, needs)) return true;
  f->b.failed = true;
  warn_at(f->b.d, (Position){0},
          "%s has no graph for inference: expected an output besides losses that needs no labels, such as logits",
          forward->name);
  return false;
}

static bool choose_outputs(InferenceGraph *f, InferenceForm form, Value *const *losses, size_t nlosses) {
  const size_t count = count_outputs(f->forward);
  f->is_wanted = ARENA_ARRAY(&f->b.scratch, bool, count + 1);
  if (!f->is_wanted) return build_out_of_memory(&f->b);
  if (form == FORM_INFER) return choose_results(f, losses, nlosses);
  for (size_t i = 0; i < count; i++) f->is_wanted[i] = f->forward->outputs[i]->shape.rank == 0;
  return true;
}

static bool add_outputs(InferenceGraph *f) {
  for (size_t i = 0; i < count_outputs(f->forward); i++)
    if (f->is_wanted[i] && !graph_add_output(f->b.graph, f->map[f->forward->outputs[i]->index]))
      return build_out_of_memory(&f->b);
  return true;
}

// Nodes

// Makes `node` produce the result of `from`: moves output 0, and the node's position, label and comment.
static void replace_node(Node *from, Node *node) {
  Value *dst = from->outputs[0];
  node->position = from->position;
  node->label = from->label;
  node->comment = from->comment;
  node_set_output(from, 0, NULL);
  node_set_output(node, 0, dst);
}

// A constant for an operand that is optional in BatchNormForwardTraining.
static Value *filled(InferenceGraph *f, const Value *like, const char *name, double number) {
  return build_name(&f->b, build_number(&f->b, like->type, &like->shape, number), name);
}

// Replaces a batch norm that computes statistics by a batch norm that takes the running statistics as operands.
static bool convert_batch_norm(InferenceGraph *f, Node *node) {
  Value *mean = node->inputs[MEAN], *variance = node->inputs[VARIANCE];
  if (value_is_used(node->outputs[BATCH_MEAN]) || value_is_used(node->outputs[BATCH_VARIANCE]))
    return refuse(f, node, "something besides updates uses the statistics of its batch");
  if (!graph_has_state(f->b.graph, mean) || !graph_has_state(f->b.graph, variance))
    return refuse(f, node,
                  "its running mean and variance are not states; expected them under state:, and the node's "
                  "next mean and variance under updates:");
  Node *given = build_bare_node(&f->b, OP_BatchNormInference, 0);
  if (!given) return false;
  *node_attribute_slot(given, "epsilon") = *node_attribute(node, "epsilon");
  *node_attribute_slot(given, "data_format") = *node_attribute(node, "data_format");
  Value *gamma = node->inputs[GAMMA] ? node->inputs[GAMMA] : filled(f, mean, "gamma", 1);
  Value *beta = node->inputs[BETA] ? node->inputs[BETA] : filled(f, mean, "beta", 0);
  Value *const inputs[] = {node->inputs[SRC], gamma, beta, mean, variance};
  for (uint32_t i = 0; i < given->ninputs; i++) node_set_input(given, i, inputs[i]);
  replace_node(node, given);
  return !f->b.failed;
}

static bool remove_dropout(InferenceGraph *f, Node *node) {
  Value *src = node->inputs[SRC], *dst = node->outputs[0];
  if (value_is_used(node->outputs[1])) return refuse(f, node, "something uses its mask");
  if (!dst->is_output) {
    value_replace_uses(dst, src);
    return true;
  }
  Node *identity = build_bare_node(&f->b, OP_Reorder, 0); // an output of the graph keeps its name
  if (!identity) return false;
  node_set_input(identity, 0, src);
  replace_node(node, identity);
  return true;
}

static void convert_nodes(InferenceGraph *f) {
  Graph *g = f->b.graph;
  const size_t count = g->nnodes;
  for (size_t i = 0; i < count && !f->b.failed; i++) {
    Node *node = g->nodes[i];
    if (node->op->id == OP_BatchNormForwardTraining) convert_batch_norm(f, node);
    else if (node->op->id == OP_Dropout) remove_dropout(f, node);
  }
}

// Removes the data inputs that nothing uses.
static void remove_unused_inputs(Graph *g) {
  const size_t ndata = g->ninputs - g->nstates;
  size_t count = 0;
  for (size_t i = 0; i < g->ninputs; i++) {
    Value *v = g->inputs[i];
    v->is_input = i >= ndata || value_is_used(v);
    if (v->is_input) g->inputs[count++] = v;
  }
  for (size_t i = 0; i < g->nstates; i++) g->states[i].input -= (uint32_t)(g->ninputs - count);
  g->ninputs = count;
}

static void make(InferenceGraph *f) {
  Builder *b = &f->b;
  PassContext context = {.diagnostics = b->d, .allocator = b->scratch.allocator};
  f->map = build_inlined(b, f->forward, b->graph->inputs);
  if (!f->map || !add_outputs(f)) return;
  pass_dead_code(b->graph, &context);
  convert_nodes(f);
  if (b->failed) return;
  pass_dead_code(b->graph, &context);
  remove_unused_inputs(b->graph);
  pass_dead_code(b->graph, &context);
}

Graph *graph_inference(const Graph *forward, InferenceForm form, Value *const *losses, size_t nlosses, Diagnostics *d) {
  InferenceGraph f = {.forward = forward};
  builder_begin_with_inputs(&f.b, forward, form == FORM_TEST ? "_test" : "_infer", d);
  if (!f.b.failed && choose_outputs(&f, form, losses, nlosses)) make(&f);
  return builder_end(&f.b);
}
