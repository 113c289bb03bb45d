// Replaces each Split by a Slice for each output, which can be fused with the users of its result; each Pad along an
// open axis by a Concat; and a Slice along several axes by one for each axis, if a kernel cannot add up their places.
//
// An unused output of a Split becomes an unused Slice, which pass dead-code removes.
#include "passes/rewrite/passes.h"

#include "ir/graph/builder.h"
#include "ir/graph/open_dims.h"
#include "ir/operators/movement.h"
#include "passes/rewrite/open_pads.h"

static bool replace(Builder *b, Node *node) {
  Value *src = node->inputs[0];
  const int64_t axis = axis_of(node, src->shape.rank);
  Extent start = EXTENT(0), own, end;
  for (uint32_t part = 0; part < node->noutputs; part++, start = end) {
    Value *dst = node->outputs[part];
    if (part >= split_nparts(node)) break;
    if (!split_extent(node, b->graph, part, &own) || !extent_add(b->graph, start, 1, own, &end)) return false;
    if (!dst) continue;
    Node *slice = build_node(b, OP_Slice, 1, &src);
    if (!slice || !node_set_extents(b->graph, slice, "starts", &start, 1) ||
        !node_set_extents(b->graph, slice, "ends", &end, 1) || !build_set_list(b, slice, "axes", &axis, 1))
      return false;
    node_set_defaults(slice);
    node_set_output(node, part, NULL);
    node_set_output(slice, 0, dst);
  }
  node_set_input(node, 0, NULL);
  return true;
}

// Whether the first element that the Slice reads is at an offset that is a number times one monomial of open dims, or
// one that is not known, as of a dim that cannot stay open: lowering refuses it.
static bool has_one_offset(const Graph *g, const Node *node) {
  const Value *src = node->inputs[0];
  Formula stride = {.nterms = 1, .terms = {{.factor = 1}}}, first, count, extent;
  Monomial monomial, found = 0;
  bool any = false, is_one = true;
  for (int i = src->shape.rank; i-- > 0;) {
    const int axis = layout_axis(&src->layout, i);
    AxisRead reads[MAX_RANK];
    Extent start, end;
    int64_t number;
    node_reads(node, reads);
    if (extent_is_literal(src->shape.extent[axis]) && !node_has_named_reads(node, axis, &start, &end))
      first = (Formula){.nterms = reads[axis].begin != 0, .terms = {{.factor = reads[axis].begin}}};
    else if (!node_read_formulas(node, axis, &first, &count)) return true; // as for every axis
    if (first.nterms && reads[axis].step > 0) {
      is_one = is_one && formula_multiply(&first, &stride) && formula_number(g, &first, &number, &monomial) &&
               (!any || monomial == found);
      found = is_one ? monomial : 0;
      any = true;
    }
    if (!formula_of(src->shape.extent[axis], &extent) || !formula_multiply(&stride, &extent)) return is_one;
  }
  return is_one;
}

// Leaves the node its last axis; a new Slice takes the others.
static bool take_apart(Builder *b, Node *node) {
  static const char *const lists[] = {"starts", "ends", "axes", "steps"};
  const size_t count = node_attribute(node, "starts")->list.count, last = count - 1;
  Node *slice = build_node(b, OP_Slice, 1, node->inputs);
  for (int i = 0; slice && i < 4; i++) {
    AttributeValue *own = node_attribute_slot(node, lists[i]), *other = node_attribute_slot(slice, lists[i]);
    *other = *own;
    if (!own->list.count) continue;
    other->list.count = last;
    own->list.items += last;
    own->list.count = 1;
    if (own->list.extents) own->list.extents += last;
  }
  if (!slice || !node_attribute(node, "axes")->list.count) {
    const int64_t axis = (int64_t)last;
    if (!slice || !build_set_list(b, node, "axes", &axis, 1)) return false;
  }
  Value *v = build_one(b, slice);
  if (!v) return false;
  node_set_input(node, 0, v);
  return count == 2 || take_apart(b, slice);
}

static bool is_apart(const Graph *g, const Node *node) {
  return node->op->id == OP_Slice && g->is_open && node_attribute(node, "starts")->list.count > 1 &&
         !has_one_offset(g, node);
}

// Removes the nodes that others have replaced: they have no operands.
static void remove_replaced(Graph *g) {
  size_t count = 0;
  for (size_t i = 0; i < g->nnodes; i++) {
    const OperatorId id = g->nodes[i]->op->id;
    if ((id != OP_Split && id != OP_Pad) || g->nodes[i]->inputs[0]) g->nodes[count++] = g->nodes[i];
  }
  g->nnodes = count;
}

bool pass_splits(Graph *g, PassContext *c) {
  const size_t before = g->nnodes;
  Diagnostics refusals;
  Builder b = {.graph = g, .d = &refusals};
  bool ok = true, has_any = false;
  diagnostics_init(&refusals, c->allocator);
  for (size_t i = 0; i < before && ok; i++) {
    const OperatorId id = g->nodes[i]->op->id;
    b.origin = g->nodes[i];
    if (id == OP_Split) ok = replace(&b, g->nodes[i]);
    if (is_apart(g, g->nodes[i])) {
      ok = take_apart(&b, g->nodes[i]);
      has_any = true;
    }
    if (id == OP_Split || (id == OP_Pad && g->is_open && replace_open_pad(&b, g->nodes[i]))) has_any = true;
    ok &= !refusals.out_of_memory;
  }
  if (ok && has_any) {
    remove_replaced(g);
    ok = graph_sort(g, c->diagnostics);
  }
  diagnostics_deinit(&refusals);
  if (!ok) pass_out_of_memory(c);
  return has_any;
}
