// Lowers a region: chooses the domain, turns operands into loads and results into stores.
#include "passes/lower/lower.h"

#include "ir/kernel/simplify.h"
#include "ir/kernel/slice.h"
#include "ir/operators/elementwise.h"
#include "ir/operators/interpolate.h"
#include "ir/operators/loss.h"
#include "ir/operators/movement.h"
#include "ir/operators/norm.h"
#include "ir/operators/quantize.h"
#include "passes/lower/pieces.h"
#include "passes/lower/windows.h"

#include <assert.h>
#include <string.h>

static void (*const lowerings[OP_COUNT])(Lowering *, const Node *) = {
#define OP(name, ...) [OP_##name] = lower_##name,
#include "ir/operators/operators.def"
#undef OP
};

// A flattened value has rank 1 and covers the domain's axes from axis[0] to the last. Example: gamma of a layer norm
// over several axes.
static bool is_flattened(const Lowering *l, const Value *v, const int *axis) {
  return axis && v->shape.rank == 1 && extent_value(v->shape.extent[0]) != 1 && !(l->cut_axes >> axis[0] & 1) &&
         !extent_equals(v->shape.extent[0], l->domain.extent[axis[0]]);
}

// The number of channels in a group.
static Extent group_length(const Lowering *l) {
  Extent whole = l->domain.extent[l->split_axis];
  return extent_equals(whole, l->ngroups) ? EXTENT(1) : EXTENT(extent_value(whole) / extent_value(l->ngroups));
}

// Converts the access's strides from the domain's axes to the kernel's.
static void split_strides(const Lowering *l, Access *a) {
  const int split = l->split_axis;
  if (l->view) view_place(l, a);
  if (split < 0) return;
  int64_t group = a->stride[GROUP_AXIS], length = group_length(l).value;
  Monomial group_monomial = a->stride_monomial[GROUP_AXIS];
  for (int i = l->domain.rank; i > split; i--) {
    a->stride[i] = a->stride[i - 1];
    a->stride_monomial[i] = a->stride_monomial[i - 1];
  }
  if (l->domain.rank < GROUP_AXIS) a->stride[GROUP_AXIS] = 0, a->stride_monomial[GROUP_AXIS] = 0;
  if (group) a->stride[split] = group, a->stride_monomial[split] = group_monomial;
  else a->stride[split] *= length;
  if (extent_value(l->ngroups) == 1) a->stride[split] = group;
  if (length == 1) a->stride[split + 1] = 0, a->stride_monomial[split + 1] = 0; // axes of extent 1 do not vary
}

AxisSet lower_axes(const Lowering *l, uint32_t axes) {
  if (l->split_axis < 0) return axes;
  uint32_t below = (1U << l->split_axis) - 1, with = (axes & ~below) << 1;
  return (axes & (below | 1U << l->split_axis)) | with;
}

Strides strides_of(const Shape *shape, const Layout *layout) {
  Strides s = {0};
  int64_t extent[MAX_RANK];
  Monomial monomial[MAX_RANK];
  for (int i = 0; i < shape->rank; i++) {
    extent[i] = extent_value(shape->extent[i]);
    monomial[i] = extent_monomial(shape->extent[i]);
  }
  layout_strides(layout, shape->rank, extent, s.stride);
  layout_stride_monomial(layout, shape->rank, monomial, s.monomial);
  return s;
}

// The value's shape; for a flattened value, the extents of the domain's axes that it covers.
static Shape unflattened_shape(const Lowering *l, const Value *v, const int *axis) {
  if (!is_flattened(l, v, axis)) return v->shape;
  Shape flat = {.rank = l->domain.rank - axis[0]};
  for (int i = 0; i < flat.rank; i++) flat.extent[i] = l->domain.extent[axis[i]];
  return flat;
}

// Converts the access from indices of the results to the kernel's places: index = begin + step * place.
static void take_places(const Lowering *l, Access *a) {
  for (int axis = 0; axis < l->domain.rank; axis++) {
    const Places places = l->places[axis];
    if (places.step == 1 && !places.begin) continue;
    kernel_close(l->kernel, a->stride_monomial[axis]);
    a->offset += places.begin * a->stride[axis];
    a->stride[axis] *= places.step;
  }
}

Strides value_strides(const Value *v) {
  Strides s;
  if (!v->alias) return strides_of(&v->shape, &v->layout);
  memcpy(s.stride, v->alias->stride, sizeof s.stride);
  memcpy(s.monomial, v->alias->monomial, sizeof s.monomial);
  return s;
}

static Access access_of(const Lowering *l, const Value *v, const int *axis) {
  Access a = value_access(v);
  const Shape shape = unflattened_shape(l, v, axis);
  const Strides own = is_flattened(l, v, axis) ? strides_of(&shape, &v->layout) : value_strides(v);
  for (int i = 0; i < shape.rank; i++) {
    int on = axis ? axis[i] : i + l->domain.rank - shape.rank;
    if (extent_value(shape.extent[i]) == 1) continue;
    a.stride[on] = own.stride[i];
    a.stride_monomial[on] = own.monomial[i];
  }
  take_places(l, &a);
  split_strides(l, &a);
  return a;
}

ExprId lower_value_on(Lowering *l, const Value *v, const int *axis) {
  Kernel *k = l->kernel;
  if (l->value_expr[v->index]) return l->value_expr[v->index];
  Access a = access_of(l, v, axis);
  if (v->constant && v->constant->is_splat) {
    AxisSet axes = l->part.broadcasts_constants ? access_axes(k, &a) : 0;
    int64_t integer;
    if (v->type != TYPE_S64) return expr_constant_over(k, type_load(v->type, v->constant->data, 0), axes);
    memcpy(&integer, v->constant->data, sizeof integer);
    return k->is_s64 ? expr_integer_over(k, integer, axes) : expr_constant_over(k, (double)integer, axes);
  }
  return expr_label(k, expr_load(k, kernel_add_access(k, &a)), v->name);
}

ExprId lower_s64(Lowering *l, const Value *v) {
  Kernel *k = l->kernel;
  const Access a = access_of(l, v, NULL);
  int64_t integer;
  if (!v->constant || !v->constant->is_splat) return expr_label(k, expr_load_s64(k, kernel_add_access(k, &a)), v->name);
  memcpy(&integer, v->constant->data, sizeof integer);
  return expr_label(k, expr_integer(k, integer), v->name);
}

ExprId lower_strided_load(Lowering *l, const Value *v, const Strides *strides, int rank, ExprId offset) {
  assert(!l->value_expr[v->index]);
  if (v->constant && v->constant->is_splat) return expr_constant(l->kernel, type_load(v->type, v->constant->data, 0));
  Access a = value_access(v);
  for (int i = 0; i < rank; i++) {
    int on = i + l->domain.rank - rank;
    const bool varies = extent_value(l->domain.extent[on]) != 1 || l->places[on].begin;
    if (!varies || !strides->stride[i]) continue;
    a.stride[on] = strides->stride[i];
    a.stride_monomial[on] = strides->monomial[i];
  }
  take_places(l, &a);
  split_strides(l, &a);
  Kernel *k = l->kernel;
  if (offset && a.nbounds) k->unsupported = "an operand's scale is at a computed place in a window";
  AccessId access = kernel_add_access(k, &a);
  return expr_label(k, offset ? expr_load_at(k, access, offset) : expr_load(k, access), v->name);
}

ExprId lower_value(Lowering *l, const Value *v) {
  return lower_value_on(l, v, NULL);
}

static bool is_used_outside(const Lowering *l, const Value *v) {
  if (v->is_output) return true;
  for (const Use *use = v->uses; use; use = use->next)
    if (!l->is_inside[use->node->index]) return true;
  return false;
}

void lower_result(Lowering *l, const Node *node, uint32_t slot, ExprId e, const int *axis) {
  const Value *v = node->outputs[slot];
  if (!v || !(l->part.slots >> slot & 1)) return;
  expr_label(l->kernel, e, v->name);
  l->value_expr[v->index] = e;
  if (!is_used_outside(l, v)) return;
  Access a = access_of(l, v, axis);
  kernel_store(l->kernel, kernel_add_access(l->kernel, &a), e);
}

AccessId lower_index_of_element(Lowering *l, const Value *v) {
  Value row_major = *v;
  row_major.layout = (Layout){0};
  Access a = access_of(l, &row_major, NULL);
  a.value = NULL;
  a.type = TYPE_NONE;
  a.nbounds = 0; // numbers of elements outside of the tensor are unused
  return kernel_add_access(l->kernel, &a);
}

ExprId lower_index(const Lowering *l, int axis) {
  Kernel *k = l->kernel;
  if (l->view) return view_index(l, axis);
  const Places places = l->places[axis];
  const ExprId within = expr_index(k, lower_axis(l, axis));
  if (places.step != 1 || places.begin)
    return expr_fma(k, expr_constant(k, (double)places.step), within, expr_constant(k, (double)places.begin));
  if (axis != l->split_axis) return within;
  return expr_fma(k, expr_constant(k, (double)group_length(l).value), expr_index(k, axis), within);
}

Bound lower_index_bound(const Lowering *l, int axis, int64_t begin, int64_t step) {
  const Places places = l->places[axis];
  Bound b = {.offset = begin + step * places.begin};
  b.factor[lower_axis(l, axis)] = step * places.step;
  if (axis == l->split_axis) b.factor[axis] = step * group_length(l).value;
  return b;
}

void lower_piece(Lowering *l, const Node *node, ExprId e, int axis, int64_t start, Monomial start_monomial) {
  Access a = access_of(l, node->outputs[0], NULL);
  a.offset = start * a.stride[axis];
  if (start) a.offset_monomial = start_monomial + a.stride_monomial[axis];
  kernel_store(l->kernel, kernel_add_access(l->kernel, &a), e);
}

int lower_axis(const Lowering *l, int axis) {
  return axis + (l->split_axis >= 0 && axis >= l->split_axis);
}

int lower_extra_axis(const Lowering *l, int extra) {
  return l->domain.rank + (l->split_axis >= 0) + extra;
}

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

// A kernel computes in f64 if a node has f64 data, s32 data other than indices of an axis (s32 is exact in f64, not in
// f32), intermediate values outside of f32's range (TRAIT_WIDE), indices above 2^24 (not exact in f32), an ignored
// label above 2^24, or a gradient that loses digits by cancellation.
bool node_computes_in_f64(const Node *node) {
  for (uint32_t i = 0; i < node->ninputs + node->noutputs; i++) {
    const Value *v = i < node->ninputs ? node->inputs[i] : node->outputs[i - node->ninputs];
    const int64_t nindices = i < node->ninputs ? node_indexed_extent(node, i) : -1;
    if (nindices > 1 << 24) return true;
    if (!v || nindices >= 0) continue;
    if (v->type == TYPE_F64) return true;
    if (v->type == TYPE_S32 && !is_no_data(node, i) && !is_small_index(v)) return true;
    if (v->type == TYPE_S64 && (i == 0 || i >= node->ninputs)) return true; // labels or results, no seed
  }
  if (loss_ignored_is_large(node)) return true;
  if (node->op->traits & TRAIT_WIDE) return true;
  if (node->op->traits & TRAIT_RESAMPLES && node_greatest_place(node) > 1 << 24) return true;
  if (scaling_greatest_place(node) > 1 << 24) return true;
  if (gather_greatest_place(node) > 1 << 24) return true;
  if (windows_greatest_place(node) > 1 << 24) return true;
  return norm_cancels(node);
}

static void add_axes(Lowering *l, const Domain *extra) {
  static const char *const names[MAX_AXES] = {"d0", "d1", "d2",  "d3",  "d4",  "d5",  "d6",  "d7",
                                              "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15"};
  Kernel *k = l->kernel;
  for (int i = 0; i < l->domain.rank; i++) {
    Extent e = l->domain.extent[i];
    if (i == l->split_axis) {
      kernel_add_axis(k, names[k->naxes], extent_value(l->ngroups), extent_monomial(l->ngroups));
      e = group_length(l);
    }
    kernel_add_axis(k, names[k->naxes], extent_value(e), extent_monomial(e));
  }
  for (int i = 0; i < extra->nextra; i++)
    kernel_add_axis(k, names[k->naxes], extent_value(extra->extra[i]), extent_monomial(extra->extra[i]));
}

// Records, for the error message, the first node that needs an open dim's value.
static void note_closing_node(Kernel *k, const Node *node) {
  if (k->closed && !k->closing) k->closing = node;
}

bool lower_scratch_init(LowerScratch *scratch, Arena *arena, const Graph *g) {
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

void lower_node(Lowering *l, const Node *node) {
  lowerings[node->op->id](l, node);
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
    k->is_f64 |= k->is_s64 || node_computes_in_f64(nodes[i]);
    if (is_prologue[nodes[i]->index]) continue;
    if (!has_domain || shape_nelems(&shape) > shape_nelems(&l->domain) ||
        (shape_nelems(&shape) == shape_nelems(&l->domain) && shape.rank > l->domain.rank))
      l->domain = shape;
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
  const ProductPiece piece = node_product_piece(node, l->part.piece);
  if (piece.axis >= 0) {
    l->places[piece.axis].begin = piece.begin;
    l->domain.extent[piece.axis] = EXTENT(piece.extent);
    l->cut_axes |= 1U << piece.axis;
  }
  if (!node_makes_side(node)) return;
  const int first = spatial_axis(node), nspatial = node_side(node, SIDE_LARGE)->shape.rank - 2;
  const bool has_axes = own->nextra && !node_writes_taps(node, l->part.piece);
  bool has_taps = true;
  for (int i = 0; i < nspatial; i++) {
    const PieceAxis axis = node_piece_axis(node, l->part.piece, i);
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
    if (!node_piece_text(nodes[i], part.piece, arena, &k->piece)) return NULL;
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
