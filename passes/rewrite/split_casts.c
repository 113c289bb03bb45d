// Gives each reader of some casts a cast of its own, which its kernel computes as it loads.
//
// Of casts that widen a half float: one that several kernels share would be stored between them, with more bytes than
// the half float. Of casts that narrow an input or a state to a half float: the caller holds the wide value in any
// case, so that a narrow one between kernels would be memory that a step in f32 does not take.
//
// Runs after common-subexpressions, which would merge the casts again.
#include "passes/rewrite/passes.h"

#include "ir/operators/operator.h"

static bool is_half(Type type) {
  return type_is_float(type) && type_nbytes(type) == 2;
}

static bool is_split(const Node *node) {
  if (node->op->id != OP_TypeCast) return false;
  const Value *from = node->inputs[0], *to = node->outputs[0];
  return is_half(from->type) ? type_widens(from->type, to->type)
                             : is_half(to->type) && type_widens(to->type, from->type) && from->is_input;
}

// A cast like `cast`, for one reader.
static bool give_own(Graph *g, Node *cast, Node *reader) {
  Value *shared = cast->outputs[0];
  const char *name = graph_fresh_name(g, shared->name);
  Value *v = name ? graph_add_value(g, name, shared->type, &shared->shape) : NULL;
  Node *own = v ? graph_add_node(g, cast->op, NULL, 1, 1) : NULL;
  if (!own || !node_add_origin(g, own, cast)) return false;
  v->layout = shared->layout;
  v->range = shared->range;
  node_set_input(own, 0, cast->inputs[0]);
  node_set_output(own, 0, v);
  for (uint32_t i = 0; i < reader->ninputs; i++)
    if (reader->inputs[i] == shared) node_set_input(reader, i, v);
  return true;
}

// The last reader of the cast keeps it, or the graph if it is an output.
static bool split(Graph *g, Node *cast) {
  Value *shared = cast->outputs[0];
  bool ok = true;
  while (ok && shared->uses) {
    Node *reader = shared->uses->node;
    bool has_others = shared->is_output;
    for (const Use *use = shared->uses; use; use = use->next) has_others |= use->node != reader;
    if (!has_others) break;
    ok = give_own(g, cast, reader);
  }
  return ok;
}

bool pass_split_casts(Graph *g, PassContext *c) {
  const size_t before = g->nnodes;
  bool ok = true;
  for (size_t i = 0; i < before && ok; i++)
    if (is_split(g->nodes[i])) ok = split(g, g->nodes[i]);
  ok = ok && (g->nnodes == before || graph_sort(g, c->diagnostics));
  if (!ok) pass_out_of_memory(c);
  return g->nnodes > before;
}
