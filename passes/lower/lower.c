// The lowering of a region: domain, operands, results; what is used outside is stored.
#include "passes/lower/lower.h"

#include "ir/operators/interpolate.h"
#include "ir/operators/norm.h"

#include <assert.h>
#include <string.h>

static void (*const lowerings[OP_COUNT])(Lowering *, const Node *) = {
#define OP(name, ...) [OP_##name] = lower_##name,
#include "ir/operators/operators.def"
#undef OP
};

// A value in one axis may stand for all of the domain's axes from its own on, flattened.
static bool is_flattened(const Lowering *l, const Value *v, const int *axis) {
  return axis && v->shape.rank == 1 && extent_value(v->shape.extent[0]) != 1 &&
         !extent_equals(v->shape.extent[0], l->domain.extent[axis[0]]);
}

// The length of a part of the axis that is split.
static Extent part_length(const Lowering *l) {
  Extent whole = l->domain.extent[l->split_axis];
  return extent_equals(whole, l->nparts) ? EXTENT(1) : EXTENT(extent_value(whole) / extent_value(l->nparts));
}

// Strides along the kernel's axes from those along the domain's.
static void split_strides(const Lowering *l, Access *a) {
  const int split = l->split_axis;
  if (split < 0) return;
  int64_t part = a->stride[PART_AXIS], length = part_length(l).value;
  Monomial part_monomial = a->stride_monomial[PART_AXIS];
  for (int i = l->domain.rank; i > split; i--) {
    a->stride[i] = a->stride[i - 1];
    a->stride_monomial[i] = a->stride_monomial[i - 1];
  }
  if (l->domain.rank < PART_AXIS) a->stride[PART_AXIS] = 0, a->stride_monomial[PART_AXIS] = 0;
  if (part) a->stride[split] = part, a->stride_monomial[split] = part_monomial;
  else a->stride[split] *= length;
  if (extent_value(l->nparts) == 1) a->stride[split] = part;
  if (length == 1) a->stride[split + 1] = 0, a->stride_monomial[split + 1] = 0; // axes of extent 1 do not vary
}

AxisSet lower_axes(const Lowering *l, uint32_t axes) {
  if (l->split_axis < 0) return axes;
  uint32_t below = (1U << l->split_axis) - 1, with = (axes & ~below) << 1;
  return (axes & (below | 1U << l->split_axis)) | with;
}

Strides strides_of(const Shape *shape, const Order *order) {
  Strides s = {0};
  int64_t extent[MAX_RANK];
  Monomial monomial[MAX_RANK];
  for (int i = 0; i < shape->rank; i++) {
    extent[i] = extent_value(shape->extent[i]);
    monomial[i] = extent_monomial(shape->extent[i]);
  }
  order_strides(order, shape->rank, extent, s.stride);
  order_stride_monomial(order, shape->rank, monomial, s.monomial);
  return s;
}

// What the value is read as: of the domain's axes where it stands for them.
static Shape seen_shape(const Lowering *l, const Value *v, const int *axis) {
  if (!is_flattened(l, v, axis)) return v->shape;
  Shape flat = {.rank = l->domain.rank - axis[0]};
  for (int i = 0; i < flat.rank; i++) flat.extent[i] = l->domain.extent[axis[i]];
  return flat;
}

static Access access_of(const Lowering *l, const Value *v, const int *axis) {
  Access a = {.value = (Value *)v, .type = v->type};
  const Shape shape = seen_shape(l, v, axis);
  const Strides own = strides_of(&shape, &v->order);
  for (int i = 0; i < shape.rank; i++) {
    int on = axis ? axis[i] : i + l->domain.rank - shape.rank;
    if (extent_value(shape.extent[i]) == 1) continue;
    a.stride[on] = own.stride[i];
    a.stride_monomial[on] = own.monomial[i];
  }
  split_strides(l, &a);
  return a;
}

ExprId lower_value_on(Lowering *l, const Value *v, const int *axis) {
  Kernel *k = l->kernel;
  if (l->value_expr[v->index]) return l->value_expr[v->index];
  Access a = access_of(l, v, axis);
  if (v->constant && v->constant->is_splat && v->type == TYPE_S64) {
    int64_t integer;
    memcpy(&integer, v->constant->data, sizeof integer);
    return expr_label(k, expr_integer(k, integer), v->name);
  }
  if (v->constant && v->constant->is_splat) {
    AxisSet axes = l->part.spreads_constants ? access_axes(k, &a) : 0;
    return expr_constant_over(k, type_load(v->type, v->constant->data, 0), axes);
  }
  return expr_label(k, expr_load(k, kernel_add_access(k, &a)), v->name);
}

ExprId lower_moved(Lowering *l, const Value *v, const Strides *strides, int rank, ExprId offset) {
  assert(!l->value_expr[v->index]);
  if (v->constant && v->constant->is_splat) return expr_constant(l->kernel, type_load(v->type, v->constant->data, 0));
  Access a = {.value = (Value *)v, .type = v->type};
  for (int i = 0; i < rank; i++) {
    int on = i + l->domain.rank - rank;
    if (extent_value(l->domain.extent[on]) == 1 || !strides->stride[i]) continue;
    a.stride[on] = strides->stride[i];
    a.stride_monomial[on] = strides->monomial[i];
  }
  split_strides(l, &a);
  Kernel *k = l->kernel;
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
  row_major.order = (Order){0};
  Access a = access_of(l, &row_major, NULL);
  a.value = NULL;
  a.type = TYPE_NONE;
  return kernel_add_access(l->kernel, &a);
}

ExprId lower_index(const Lowering *l, int axis) {
  Kernel *k = l->kernel;
  if (l->split_axis < 0 || axis < l->split_axis) return expr_index(k, axis);
  ExprId within = expr_index(k, axis + 1);
  if (axis > l->split_axis) return within;
  return expr_fma(k, expr_constant(k, (double)part_length(l).value), expr_index(k, axis), within);
}

void lower_piece(Lowering *l, const Node *node, ExprId e, int axis, int64_t start, Monomial start_monomial) {
  Access a = access_of(l, node->outputs[0], NULL);
  a.offset = start * a.stride[axis];
  if (start) a.offset_monomial = start_monomial + a.stride_monomial[axis];
  kernel_store(l->kernel, kernel_add_access(l->kernel, &a), e);
}

Shape node_domain(const Node *node) {
  if (node->op->traits & TRAIT_ADJOINT) return adjoint_domain(node);
  return node->op->traits & (TRAIT_ELEMENTWISE | TRAIT_MOVES) ? node->outputs[0]->shape : node->inputs[0]->shape;
}

// f64 data, s32 (each exact in f64), places that f32 does not count up to, what would leave f32's range on its way, and
// gradients that cancel.
static bool computes_in_f64(const Node *node) {
  for (uint32_t i = 0; i < node->ninputs + node->noutputs; i++) {
    const Value *v = i < node->ninputs ? node->inputs[i] : node->outputs[i - node->ninputs];
    if (v && (v->type == TYPE_F64 || v->type == TYPE_S32)) return true;
  }
  if (node->op->traits & TRAIT_WIDE) return true;
  if (node->op->traits & TRAIT_RESAMPLES && node_greatest_place(node) > 1 << 24) return true;
  return norm_cancels(node);
}

static void add_axes(Lowering *l) {
  static const char *const names[MAX_RANK + 1] = {"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8"};
  Kernel *k = l->kernel;
  for (int i = 0; i < l->domain.rank; i++) {
    Extent e = l->domain.extent[i];
    if (i == l->split_axis) {
      kernel_add_axis(k, names[k->naxes], extent_value(l->nparts), extent_monomial(l->nparts));
      e = part_length(l);
    }
    kernel_add_axis(k, names[k->naxes], extent_value(e), extent_monomial(e));
  }
}

static void blame(Kernel *k, const Node *node) {
  if (k->closed && !k->closing) k->closing = node;
}

bool lower_scratch_init(LowerScratch *scratch, Arena *arena, const Graph *g) {
  scratch->value_expr = ARENA_ARRAY(arena, ExprId, g->nvalues);
  scratch->is_inside = ARENA_ARRAY(arena, bool, g->nnodes);
  return scratch->value_expr && scratch->is_inside;
}

static void scratch_clear(const LowerScratch *scratch, Node *const *nodes, size_t nnodes) {
  for (size_t i = 0; i < nnodes; i++) {
    scratch->is_inside[nodes[i]->index] = false;
    for (uint32_t slot = 0; slot < nodes[i]->noutputs; slot++)
      if (nodes[i]->outputs[slot]) scratch->value_expr[nodes[i]->outputs[slot]->index] = 0;
  }
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
  for (size_t i = 0; i < nnodes; i++) {
    scratch->is_inside[nodes[i]->index] = true;
    k->is_f64 |= computes_in_f64(nodes[i]);
    Shape shape = nodes[i]->op->traits & TRAIT_PIECES ? nodes[i]->inputs[part.piece]->shape : node_domain(nodes[i]);
    if (i == 0 || shape_nelems(&shape) > shape_nelems(&l.domain) ||
        (shape_nelems(&shape) == shape_nelems(&l.domain) && shape.rank > l.domain.rank))
      l.domain = shape;
    if (nodes[i]->op->norm_scope != SCOPE_GROUP) continue;
    l.split_axis = norm_channel_axis(nodes[i]);
    Extent channels = nodes[i]->inputs[0]->shape.extent[l.split_axis];
    l.nparts = norm_ngroups(nodes[i]);
    if (!extent_equals(channels, l.nparts)) kernel_close(k, extent_monomial(channels)); // parts of several channels
    blame(k, nodes[i]);
  }
  add_axes(&l);
  for (size_t i = 0; i < nnodes; i++) {
    lowerings[nodes[i]->op->id](&l, nodes[i]);
    blame(k, nodes[i]);
  }
  scratch_clear(scratch, nodes, nnodes);
  if (!k->out_of_memory) kernel_drop_unneeded(k);
  if (!k->out_of_memory) kernel_simplify_axes(k);
  return k->out_of_memory ? NULL : k;
}
