// Prologues: elementwise nodes that compute an operand of a product or convolution inside its kernel. Their domain is
// the operand's shape; a view (lower.h) maps its axes to the kernel's axes. They are lowered in place of the operand's
// load, and all their loads go through the view.
//
// Fusion puts such a node into a region only if all uses of its results are in the prologue of one operand.
#include "ir/operators/contraction.h"
#include "passes/lower/lower.h"

static bool is_in_prologue(const Node *node, const LowerScratch *scratch) {
  for (uint32_t i = 0; i < node->noutputs; i++)
    for (const Use *use = node->outputs[i] ? node->outputs[i]->uses : NULL; use; use = use->next)
      if (scratch->is_inside[use->node->index] &&
          (scratch->is_prologue[use->node->index] || contraction_operand(use->node, node->outputs[i])))
        return true;
  return false;
}

void mark_prologues(Node *const *nodes, size_t nnodes, const LowerScratch *scratch) {
  for (size_t i = 0; i < nnodes; i++) scratch->is_inside[nodes[i]->index] = true;
  for (size_t i = nnodes; i-- > 0;) scratch->is_prologue[nodes[i]->index] = is_in_prologue(nodes[i], scratch);
}

static bool makes(const Node *node, const Value *v) {
  return v && v->producer == node;
}

// Marks the nodes that compute the value.
static void mark_makers(const Lowering *l, const Value *v, bool *is_maker) {
  const Kernel *k = l->kernel;
  for (size_t i = k->nnodes; i-- > 0;) {
    is_maker[i] = makes(k->nodes[i], v);
    for (size_t user = i + 1; user < k->nnodes && !is_maker[i]; user++)
      for (uint32_t s = 0; s < k->nodes[user]->ninputs; s++)
        is_maker[i] |= is_maker[user] && makes(k->nodes[i], k->nodes[user]->inputs[s]);
  }
}

ExprId lower_prologue(Lowering *l, const Value *v, const int *axis, const Bound *bounds, double outside) {
  Kernel *k = l->kernel;
  View view = {.axis = {0}};
  Lowering inner = *l;
  bool *is_maker = ARENA_ARRAY(k->arena, bool, k->nnodes);
  if (!is_maker) {
    k->out_of_memory = true;
    return 0;
  }
  inner.domain = v->shape;
  inner.split_axis = -1;
  inner.view = &view;
  for (int i = 0; i < MAX_RANK; i++) inner.places[i] = (Places){.step = 1}; // the view gives the operand's places
  for (int i = 0; i < v->shape.rank; i++) {
    view.axis[i] = axis[i];
    if (axis[i] < 0 && bounds) view.bounds[i] = bounds[i];
  }
  mark_makers(l, v, is_maker);
  for (size_t i = 0; i < k->nnodes; i++)
    if (is_maker[i]) lower_node(&inner, k->nodes[i]);
  ExprId e = l->value_expr[v->index];
  for (int i = 0; i < v->shape.rank && e; i++) { // elsewhere the operand is `outside`
    Bound b = view.bounds[i];
    if (axis[i] != BOUNDED) continue;
    b.extent = extent_value(v->shape.extent[i]);
    kernel_close(k, extent_monomial(v->shape.extent[i]));
    for (int on = 0; on < k->naxes; on++) {
      if (k->axes[on].extent == 1 && !k->axes[on].monomial) b.factor[on] = 0;
      if (b.factor[on]) kernel_close(k, k->axes[on].monomial);
    }
    if (!bound_always_holds(k, &b)) e = expr_label(k, lower_inside(l, &b, e, outside), v->name);
  }
  return e;
}
