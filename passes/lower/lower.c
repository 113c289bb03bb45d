// Lowers a region: chooses the domain and the type, and lowers the nodes in turn.
#include "passes/lower/lower.h"

#include "ir/kernel/simplify.h"
#include "ir/kernel/slice.h"
#include "ir/operators/elementwise.h"
#include "ir/operators/interpolate.h"
#include "ir/operators/loss.h"
#include "ir/operators/movement.h"
#include "ir/operators/norm.h"
#include "ir/operators/quantize.h"
#include "passes/lower/fusible.h"
#include "passes/lower/pieces.h"
#include "passes/lower/windows.h"

#include <string.h>

Shape node_domain(const Node *node) {
  if (node->op->domain) return node->outputs[0]->shape;
  return node->op->traits & (TRAIT_ELEMENTWISE | TRAIT_MOVES) ? node->outputs[0]->shape : node->inputs[0]->shape;
}

// Whether the operand is not data: a count, or a shape that could also be an attribute.
static bool is_no_data(const Node *node, uint32_t operand) {
  if (operand >= node->op->ninputs) return false;
  const Operand *row = &node->op->inputs[operand];
  return row->is_count || operator_has_attribute(node->op, row->name);
}

// Whether the elements are indices that are exact in f32 for all values of open dims.
static bool is_small_index(const Value *v) {
  if (!v->producer || v->producer->op->id != OP_GenIndex) return false;
  const Extent extent = v->shape.extent[axis_of(v->producer, v->shape.rank)];
  return !extent_monomial(extent) && extent_value(extent) <= 1 << 24;
}

// A kernel computes in f64 if a node has f64 data, u32 data, s32 data other than indices of an axis (they are exact in
// f64, not in f32), intermediate values outside of f32's range (TRAIT_WIDE), indices above 2^24 (not exact in f32), an
// ignored label above 2^24, or a gradient that loses digits by cancellation.
bool node_computes_in_f64(const Costs *costs, const Node *node) {
  for (uint32_t i = 0; i < node->ninputs + node->noutputs; i++) {
    const Value *v = i < node->ninputs ? node->inputs[i] : node->outputs[i - node->ninputs];
    const int64_t nindices = i < node->ninputs ? node_indexed_extent(node, i) : -1;
    if (nindices > 1 << 24) return true;
    if (!v || nindices >= 0) continue;
    if (v->type == TYPE_F64) return true;
    if (TYPE_BIT(v->type) & (TYPE_BIT(TYPE_S32) | TYPE_BIT(TYPE_U32)) && !is_no_data(node, i) && !is_small_index(v))
      return true;
    if (TYPES_64_BITS & TYPE_BIT(v->type) && (i == 0 || i >= node->ninputs)) return true; // labels or results, no seed
  }
  if (loss_ignored_is_large(node)) return true;
  if (node->op->traits & TRAIT_WIDE) return true;
  if (node->op->traits & TRAIT_RESAMPLES && node_greatest_place(node) > 1 << 24) return true;
  if (scaling_greatest_place(node) > 1 << 24) return true;
  if (gather_greatest_place(node) > 1 << 24) return true;
  if (windows_greatest_place(costs, node) > 1 << 24) return true;
  return norm_cancels(node);
}

bool nodes_compute_alike(const Costs *costs, const Node *node, const Node *other) {
  return node_computes_in_s64(node) == node_computes_in_s64(other) &&
         node_computes_in_f64(costs, node) == node_computes_in_f64(costs, other);
}

static void add_axis(Kernel *k, Extent extent, int place) {
  static const char *const names[MAX_AXES] = {"d0", "d1", "d2",  "d3",  "d4",  "d5",  "d6",  "d7",
                                              "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15"};
  const int axis = kernel_add_axis(k, names[k->naxes], extent_value(extent), extent_monomial(extent));
  k->axes[axis].places = (uint64_t)place;
}

static void add_axes(Lowering *l, const Domain *extra) {
  for (int i = 0; i < l->domain.rank; i++) {
    const int place = l->domain.rank - i; // operators of a lower rank have the domain's last axes
    if (i == l->split_axis) add_axis(l->kernel, l->ngroups, place);
    add_axis(l->kernel, i == l->split_axis ? lower_group_length(l) : l->domain.extent[i], place);
  }
  for (int i = 0; i < extra->nextra; i++) add_axis(l->kernel, extra->extra[i], MAX_RANK + 1 + i);
}

// Records, for the error message, the first node that needs an open dim's value.
static void note_closing_node(Kernel *k, const Node *node) {
  if (k->closed && !k->closing) k->closing = node;
}

bool lower_scratch_init(LowerScratch *scratch, Arena *arena, const Graph *g, const Costs *costs) {
  scratch->costs = costs_or_usual(costs);
  scratch->value_expr = ARENA_ARRAY(arena, ExprId, g->nvalues);
  scratch->is_inside = ARENA_ARRAY(arena, bool, g->nnodes);
  scratch->is_prologue = ARENA_ARRAY(arena, bool, g->nnodes);
  return scratch->value_expr && scratch->is_inside && scratch->is_prologue;
}

static void scratch_clear(const LowerScratch *scratch, Node *const *nodes, size_t nnodes) {
  for (size_t i = 0; i < nnodes; i++) {
    scratch->is_inside[nodes[i]->index] = scratch->is_prologue[nodes[i]->index] = false;
    for (uint32_t slot = 0; slot < nodes[i]->noutputs; slot++)
      if (nodes[i]->outputs[slot]) scratch->value_expr[nodes[i]->outputs[slot]->index] = 0;
  }
}

// The domain of the node alone; with TRAIT_PIECES, of the piece.
static Shape piece_domain(const Node *node, uint32_t piece) {
  return node->op->traits & TRAIT_PIECES ? node->inputs[piece]->shape : node_domain(node);
}

// Sets the domain, the largest of the nodes' domains; the axis that is split into groups of channels; and the kernel's
// type.
static void choose_domain(Lowering *l, Node *const *nodes, size_t nnodes, const bool *is_prologue) {
  Kernel *k = l->kernel;
  bool has_domain = false;
  for (size_t i = 0; i < nnodes; i++) {
    const Shape shape = piece_domain(nodes[i], l->part.piece);
    k->is_s64 |= node_computes_in_s64(nodes[i]);
    k->is_f64 |= k->is_s64 || node_computes_in_f64(k->costs, nodes[i]);
    if (is_prologue[nodes[i]->index]) continue;
    if (!has_domain || shape_is_domain_of_both(&shape, &l->domain)) l->domain = shape;
    has_domain = true;
    if (nodes[i]->op->norm_scope != SCOPE_GROUP) continue;
    l->split_axis = norm_channel_axis(nodes[i]);
    Extent channels = nodes[i]->inputs[0]->shape.extent[l->split_axis];
    l->ngroups = norm_ngroups(nodes[i]);
    if (!extent_equals(channels, l->ngroups)) kernel_close(k, extent_monomial(channels)); // a group's length
    note_closing_node(k, nodes[i]);
  }
  for (int axis = 0; axis < MAX_RANK; axis++) l->places[axis].step = 1;
}

// Takes the extra axes of a node; with windows, the taps come first.
static void take_own_axes(Lowering *l, const Node *node, Domain *own) {
  node->op->domain(node, own);
  if (own->ngroups > 1) {
    l->split_axis = own->split_axis;
    l->ngroups = EXTENT(own->ngroups);
    kernel_close(l->kernel, extent_monomial(l->domain.extent[l->split_axis])); // a group's length
    note_closing_node(l->kernel, node);
  }
  const ProductPiece piece = node_product_piece(l->kernel->costs, node, l->part.piece);
  if (piece.axis >= 0) {
    l->places[piece.axis].begin = piece.begin;
    l->domain.extent[piece.axis] = EXTENT(piece.extent);
    l->cut_axes |= 1U << piece.axis;
  }
  if (!node_makes_side(node)) return;
  const int first = spatial_axis(node), nspatial = node_side(node, SIDE_LARGE)->shape.rank - 2;
  const bool has_axes = own->nextra && !node_writes_taps(l->kernel->costs, node, l->part.piece);
  bool has_taps = true;
  for (int i = 0; i < nspatial; i++) {
    const PieceAxis axis = node_piece_axis(l->kernel->costs, node, l->part.piece, i);
    Extent *extent = &l->domain.extent[first + i], *taps = &own->extra[i];
    const int64_t ntaps = has_axes ? axis.ntaps : 1;
    l->places[first + i] = (Places){axis.begin, axis.step};
    if (extent_value(*extent) != axis.extent) {
      *extent = EXTENT(axis.extent);
      l->cut_axes |= 1U << (first + i);
    }
    if (own->nextra && extent_value(*taps) != ntaps) *taps = EXTENT(ntaps);
    has_taps &= axis.ntaps != 0;
  }
  if (!has_taps) own->nextra = 0;
}

Kernel *lower_region(Arena *arena, const Graph *g, Node *const *nodes, size_t nnodes, LoweredPart part,
                     const LowerScratch *scratch) {
  Kernel *k = ARENA_NEW(arena, Kernel);
  Node **copy = ARENA_ARRAY(arena, Node *, nnodes);
  if (!k || !copy) return NULL;
  memcpy(copy, nodes, nnodes * sizeof *copy);
  kernel_init(k, arena, nodes[0]->op->name);
  k->graph = g;
  k->costs = scratch->costs;
  k->nodes = copy;
  k->nnodes = nnodes;
  Lowering l = {
      .kernel = k, .split_axis = -1, .part = part, .value_expr = scratch->value_expr, .is_inside = scratch->is_inside};
  mark_prologues(nodes, nnodes, scratch);
  choose_domain(&l, nodes, nnodes, scratch->is_prologue);
  Domain own = {.nextra = 0};
  for (size_t i = 0; i < nnodes; i++) // at most one has extra axes
    if (nodes[i]->op->domain) take_own_axes(&l, nodes[i], &own);
  add_axes(&l, &own);
  for (size_t i = 0; i < nnodes && !k->piece; i++) // at most one is cut into pieces
    if (!node_piece_text(k->costs, nodes[i], part.piece, arena, &k->piece)) return NULL;
  for (size_t i = 0; i < nnodes; i++) {
    if (!scratch->is_prologue[nodes[i]->index]) lower_node(&l, nodes[i]);
    note_closing_node(k, nodes[i]);
  }
  scratch_clear(scratch, nodes, nnodes);
  if (!k->out_of_memory) kernel_drop_unneeded(k);
  if (!k->out_of_memory && part.slice_group) kernel_slice(k, part.slice_group);
  if (!k->out_of_memory && !part.keeps_axes) kernel_simplify_axes(k);
  return k->out_of_memory ? NULL : k;
}
