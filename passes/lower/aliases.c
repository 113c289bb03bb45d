// Walks forwards to give each node that moves elements a view of its operand's memory, if such a view exists; a view of
// a view refers to the memory below. Then walks backwards to refuse views that some user cannot load through; a user
// that is an alias itself can. The remaining views are aliases.
#include "passes/lower/aliases.h"

#include "ir/operators/movement.h"
#include "passes/lower/lower.h"

#include <string.h>

static Strides own_strides(const Value *v) {
  return strides_of(&v->shape, &v->layout);
}

// The view of the whole value.
static Alias view_of(Value *v) {
  if (v->alias) return *v->alias;
  Alias view = {.of = v};
  const Strides own = own_strides(v);
  memcpy(view.stride, own.stride, sizeof view.stride);
  memcpy(view.monomial, own.monomial, sizeof view.monomial);
  return view;
}

static bool is_one(Extent e) {
  return extent_is_literal(e) && e.value == 1;
}

// Whether the view is a tensor of this shape and layout without gaps.
static bool is_dense(const Alias *view, const Shape *shape, const Layout *layout) {
  const Strides dense = strides_of(shape, layout);
  bool is = !view->offset;
  for (int i = 0; i < shape->rank; i++)
    is &= is_one(shape->extent[i]) || (view->stride[i] == dense.stride[i] && view->monomial[i] == dense.monomial[i]);
  return is;
}

// Reshapes: matches groups of axes of both shapes that have the same number of elements, from the fastest axis on.

typedef struct Grouping {
  const Shape *from, *to;
  const Alias *view; // of `from`
  Alias *out;
  int i, j; // the last axes that are not in a group yet
} Grouping;

// Whether axis i can be merged with the group's faster axes, which have nelems elements: together they have one stride.
static bool extend_group(const Grouping *g, int i, int64_t nelems) {
  const int fastest = g->i;
  return i >= 0 && extent_is_literal(g->from->extent[i]) && g->view->monomial[i] == g->view->monomial[fastest] &&
         g->view->stride[i] == g->view->stride[fastest] * nelems;
}

// Matches the next group. False: there is no view.
static bool take_group(Grouping *g) {
  int i = g->i, j = g->j;
  if (i < 0 || j < 0) return false;
  g->out->stride[j] = g->view->stride[i];
  g->out->monomial[j] = g->view->monomial[i];
  if (!extent_equals(g->from->extent[i], g->to->extent[j])) {
    int64_t nfrom = g->from->extent[i].value, nto = g->to->extent[j].value;
    if (!extent_is_literal(g->from->extent[i]) || !extent_is_literal(g->to->extent[j])) return false;
    while (nfrom != nto) {
      if (nfrom < nto) {
        if (!extend_group(g, --i, nfrom)) return false;
        nfrom *= g->from->extent[i].value;
      } else {
        if (--j < 0 || !extent_is_literal(g->to->extent[j])) return false;
        g->out->stride[j] = g->view->stride[g->i] * nto;
        g->out->monomial[j] = g->view->monomial[g->i];
        nto *= g->to->extent[j].value;
      }
    }
  }
  g->i = i - 1;
  g->j = j - 1;
  return true;
}

static bool view_reshape(const Node *node, const Alias *view, Alias *out) {
  const Shape *from = &node->inputs[0]->shape, *to = &node->outputs[0]->shape;
  if (is_dense(view, from, &(Layout){{0}})) {
    const Strides dense = strides_of(to, &(Layout){{0}});
    memcpy(out->stride, dense.stride, sizeof out->stride);
    memcpy(out->monomial, dense.monomial, sizeof out->monomial);
    return true;
  }
  Grouping g = {from, to, view, out, from->rank - 1, to->rank - 1};
  while (true) {
    while (g.i >= 0 && is_one(from->extent[g.i])) g.i--;
    while (g.j >= 0 && is_one(to->extent[g.j])) g.j--;
    if (g.i < 0 && g.j < 0) return true;
    if (!take_group(&g)) return false;
  }
}

static bool view_transpose(const Node *node, const Alias *view, Alias *out) {
  const int rank = node->inputs[0]->shape.rank;
  int axes[MAX_RANK];
  if (!transpose_axes(node, rank, axes)) return false;
  for (int i = 0; i < rank; i++) {
    out->stride[i] = view->stride[axes[i]];
    out->monomial[i] = view->monomial[axes[i]];
  }
  return true;
}

static bool view_slice(const Node *node, const Alias *view, Alias *out) {
  const Shape *src = &node->inputs[0]->shape, *dst = &node->outputs[0]->shape;
  AxisRead reads[MAX_RANK];
  node_reads(node, reads);
  for (int i = 0; i < src->rank; i++) {
    const AxisRead r = reads[i];
    Extent first, last;
    out->stride[i] = view->stride[i] * r.step;
    out->monomial[i] = view->monomial[i];
    if (node_has_named_reads(node, i, &first, &last)) return false;
    if (!r.begin && r.step == 1 && extent_equals(src->extent[i], dst->extent[i])) continue;
    if (!extent_is_literal(src->extent[i]) || !extent_is_literal(dst->extent[i]) || r.step < 1) return false;
    if (!r.begin) continue;
    if (out->offset && out->offset_monomial != view->monomial[i]) return false;
    out->offset += r.begin * view->stride[i];
    out->offset_monomial = view->monomial[i];
  }
  return true;
}

// Sets *out to the result as a view of memory. False: there is no such view.
static bool view_node(const Node *node, Alias *out) {
  Value *src = node->inputs[0];
  if (src->constant || !shape_nelems(&node->outputs[0]->shape)) return false;
  const Alias view = view_of(src);
  *out = (Alias){.of = view.of, .offset = view.offset, .offset_monomial = view.offset_monomial};
  switch (node->op->id) {
  case OP_StaticReshape: return view_reshape(node, &view, out);
  case OP_StaticTranspose: return view_transpose(node, &view, out);
  case OP_Slice: return view_slice(node, &view, out);
  default: return false;
  }
}

bool node_is_alias(const Node *node) {
  return node->noutputs && node->outputs[0] && node->outputs[0]->alias;
}

// Whether the node can load operands with any strides.
static bool takes_strides(const Node *node) {
  static const char *const families[] = {"elementwise", "reduce", "softmax", "norm", "optimizer"};
  if (node->op->id == OP_MatMul || node->op->id == OP_Concat) return true;
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    if (strcmp(node->op->family, families[i]) == 0) return true;
  return false;
}

// Whether all users can load the value as an alias. The length of a view's rows decides nothing: it may be open, and a
// sum over a view has another order than over a copy.
static bool is_usable(const Value *v) {
  const Alias *view = v->alias;
  const int last = v->shape.rank - 1;
  if (v->is_output) return false;
  if (is_dense(view, &v->shape, &v->layout)) return true;
  if (last < 1 || view->stride[last] != 1 || view->monomial[last]) return false;
  for (const Use *use = v->uses; use; use = use->next)
    if (!node_is_alias(use->node) && !takes_strides(use->node)) return false;
  return true;
}

// Sets the views of all nodes that have one and are not refused.
static bool set_aliases(Graph *g, const bool *is_refused) {
  for (size_t i = 0; i < g->nnodes; i++) {
    const Node *node = g->nodes[i];
    Alias view;
    if (!(node->op->traits & TRAIT_MOVES) || !node->outputs[0]) continue;
    node->outputs[0]->alias = NULL;
    if (is_refused[i] || !view_node(node, &view)) continue;
    Alias *alias = ARENA_NEW(&g->arena, Alias);
    if (!alias) return false;
    *alias = view;
    node->outputs[0]->alias = alias;
  }
  return true;
}

// Layouts

// The permutation of the transposes that use the value. False: another node uses the value, or the transposes differ.
static bool transposed_axes(const Value *v, int *axes) {
  if (v->is_output || !v->uses || v->constant || !layout_is_row_major(&v->layout)) return false;
  for (const Use *use = v->uses; use; use = use->next) {
    int own[MAX_RANK];
    if (use->node->op->id != OP_StaticTranspose || !transpose_axes(use->node, v->shape.rank, own)) return false;
    if (use == v->uses) memcpy(axes, own, sizeof own);
    else if (memcmp(axes, own, (size_t)v->shape.rank * sizeof *axes) != 0) return false;
  }
  return axes[v->shape.rank - 1] == v->shape.rank - 1;
}

// Stores products in the layout of the transposes that read them, if rows stay contiguous.
static void choose_layouts(Graph *g) {
  for (size_t i = 0; i < g->nnodes; i++) {
    const Node *node = g->nodes[i];
    Value *v = node->outputs[0];
    int axes[MAX_RANK];
    const bool may = node->op->id == OP_MatMul && v && v->shape.rank > 2;
    if (may && transposed_axes(v, axes)) v->layout = layout_of_axes(axes, v->shape.rank);
  }
}

// Refuses aliases that some user cannot load. Returns whether it refused any.
static bool refuse_aliases(const Graph *g, bool *is_refused) {
  bool any = false;
  for (size_t i = g->nnodes; i-- > 0;) {
    if (!node_is_alias(g->nodes[i]) || is_usable(g->nodes[i]->outputs[0])) continue;
    g->nodes[i]->outputs[0]->alias = NULL;
    any = is_refused[i] = true;
  }
  return any;
}

bool pass_aliases(Graph *g, PassContext *c) {
  Arena scratch;
  arena_init(&scratch, c->allocator);
  bool *is_refused = ARENA_ARRAY(&scratch, bool, g->nnodes + 1), changed = false;
  choose_layouts(g);
  bool ok = is_refused && set_aliases(g, is_refused);
  while (ok && refuse_aliases(g, is_refused)) ok = set_aliases(g, is_refused); // refused results have memory: new views
  arena_deinit(&scratch);
  for (size_t i = 0; i < g->nnodes; i++) changed |= node_is_alias(g->nodes[i]);
  return ok ? changed : pass_out_of_memory(c);
}
