// Turns operands of a region into loads and its results into stores: maps axes of the domain to axes of the kernel.
#include "passes/lower/lower.h"

#include <assert.h>
#include <string.h>

// A flattened value has rank 1 and covers the domain's axes from axis[0] to the last. Example: gamma of a layer norm
// over several axes.
static bool is_flattened(const Lowering *l, const Value *v, const int *axis) {
  return axis && v->shape.rank == 1 && extent_value(v->shape.extent[0]) != 1 && !(l->cut_axes >> axis[0] & 1) &&
         !extent_equals(v->shape.extent[0], l->domain.extent[axis[0]]);
}

Extent lower_group_length(const Lowering *l) {
  Extent whole = l->domain.extent[l->split_axis];
  return extent_equals(whole, l->ngroups) ? EXTENT(1) : EXTENT(extent_value(whole) / extent_value(l->ngroups));
}

// Converts the access's strides from the domain's axes to the kernel's.
static void split_strides(const Lowering *l, Access *a) {
  const int split = l->split_axis;
  if (l->view) view_place(l, a);
  if (split < 0) return;
  int64_t group = a->stride[GROUP_AXIS], length = lower_group_length(l).value;
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

// A computed value as an operand. A sum adds up each element of the tensor, also along axes on which all are the same,
// as it does if the tensor is in memory.
static ExprId lower_computed(Lowering *l, const Value *v, const Access *a) {
  Kernel *k = l->kernel;
  const ExprId e = l->value_expr[v->index];
  const AxisSet same = access_axes(k, a) & ~k->exprs[e].axes;
  if (!same || !l->has_sums || v->type == TYPE_BOOLEAN) return e;
  return expr_binary(k, EXPR_MUL, e, expr_constant_over(k, 1, same));
}

ExprId lower_value_on(Lowering *l, const Value *v, const int *axis) {
  Kernel *k = l->kernel;
  Access a = access_of(l, v, axis);
  if (l->value_expr[v->index]) return lower_computed(l, v, &a);
  if (v->constant && v->constant->is_splat) {
    AxisSet axes = l->part.broadcasts_constants ? access_axes(k, &a) : 0;
    int64_t integer;
    if (!(TYPES_64_BITS & TYPE_BIT(v->type)))
      return expr_constant_over(k, type_load(v->type, v->constant->data, 0), axes);
    memcpy(&integer, v->constant->data, sizeof integer);
    return k->is_s64 ? expr_integer_over(k, integer, axes) : expr_constant_over(k, type_number(v->type, integer), axes);
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

bool node_spells_products(const Node *node) {
  const Value *v = node->outputs[0];
  const Use *use = v->uses;
  if (node->op->id != OP_Multiply || v->is_output || !use || use->next) return false;
  if (use->node->op->id != OP_ReduceSum && use->node->op->id != OP_ReduceMean) return false;
  return !shape_equals(&node->inputs[0]->shape, &v->shape) && !shape_equals(&node->inputs[1]->shape, &v->shape);
}

// Stores a group norm's result that nothing uses, as a row-major tensor of its axes.
static void store_unused(const Lowering *l, ExprId e) {
  Kernel *k = l->kernel;
  Value *v = ARENA_NEW(k->arena, Value);
  k->out_of_memory |= !v;
  if (!v || !e) return;
  *v = (Value){.name = "unused", .type = TYPE_F32};
  for (AxisSet rest = k->exprs[e].axes; rest; rest &= rest - 1) {
    const int axis = __builtin_ctz(rest), after = axis - l->split_axis;
    v->shape.extent[v->shape.rank++] = !after       ? l->ngroups
                                       : after == 1 ? lower_group_length(l)
                                                    : l->domain.extent[after < 0 ? axis : axis - 1];
  }
  Access a = value_access(v);
  Monomial monomial = 0;
  access_stack_axes(k, k->exprs[e].axes, 1, &monomial, &a);
  kernel_store(k, kernel_add_access(k, &a), e);
}

void lower_result(Lowering *l, const Node *node, uint32_t slot, ExprId e, const int *axis) {
  const Value *v = node->outputs[slot];
  if (l->part.has_unused && node->op->norm_scope == SCOPE_GROUP && !value_is_used(v)) store_unused(l, e);
  if (!v || !(l->part.slots >> slot & 1)) return;
  expr_label(l->kernel, e, v->name);
  l->value_expr[v->index] = node_spells_products(node) ? e : expr_element(l->kernel, v->type, e);
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
  return expr_fma(k, expr_constant(k, (double)lower_group_length(l).value), expr_index(k, axis), within);
}

Bound lower_index_bound(const Lowering *l, int axis, int64_t begin, int64_t step) {
  const Places places = l->places[axis];
  Bound b = {.offset = begin + step * places.begin};
  b.factor[lower_axis(l, axis)] = step * places.step;
  if (axis == l->split_axis) b.factor[axis] = step * lower_group_length(l).value;
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
