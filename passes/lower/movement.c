// Lowers operators that move elements: loads of the input at indices that are affine in the result's indices. The input
// must be in memory, so fusion never puts its producer into the same region.
#include "ir/operators/movement.h"
#include "ir/graph/formula.h"
#include "ir/graph/open_dims.h"

#include "passes/lower/formulas.h"
#include "passes/lower/lower.h"

#include <math.h>

// src is row-major (a rewrite pass ensures it), so src can be read as if it had dst's shape.
void lower_StaticReshape(Lowering *l, const Node *node) {
  const Shape *dst = &node->outputs[0]->shape;
  const Strides as_dst = strides_of(dst, &(Layout){{0}});
  lower_result(l, node, 0, lower_strided_load(l, node->inputs[0], &as_dst, dst->rank, 0), NULL);
}

void lower_StaticTranspose(Lowering *l, const Node *node) {
  const Shape *src = &node->inputs[0]->shape;
  const Strides own = value_strides(node->inputs[0]);
  Strides moved = {0};
  int axes[MAX_RANK];
  if (!transpose_axes(node, src->rank, axes)) return; // never in a verified graph
  for (int i = 0; i < src->rank; i++) {
    moved.stride[i] = own.stride[axes[i]];
    moved.monomial[i] = own.monomial[axes[i]];
  }
  lower_result(l, node, 0, lower_strided_load(l, node->inputs[0], &moved, src->rank, 0), NULL);
}

// A step along the diagonal is a step on both axes, so its stride is the sum of their strides. Strides that grow with
// different open dims have no such sum. Example: [N, N] has the strides N and 1. A stride of 1 is then added as a
// computed offset, the index, which is exact in f32: a diagonal is shorter than the root of MAX_ELEMENTS.
void lower_Diagonal(Lowering *l, const Node *node) {
  const Value *src = node->inputs[0];
  const Strides own = value_strides(src);
  Strides moved = {0};
  int to[MAX_RANK];
  ExprId offset = 0;
  diagonal_axes(node, to);
  for (int i = 0; i < src->shape.rank; i++) {
    const int on = to[i];
    const bool is_apart = moved.stride[on] && moved.monomial[on] != own.monomial[i];
    if (is_apart && own.stride[i] == 1 && !own.monomial[i]) {
      offset = lower_index(l, on);
      continue;
    }
    if (is_apart) kernel_close(l->kernel, moved.monomial[on] + own.monomial[i]);
    moved.stride[on] += own.stride[i];
    moved.monomial[on] = own.monomial[i];
  }
  lower_result(l, node, 0, lower_strided_load(l, src, &moved, src->shape.rank - 1, offset), NULL);
}

LOWER(Reorder, lower_result(l, node, 0, lower_value(l, node->inputs[0]), NULL))

void lower_GenIndex(Lowering *l, const Node *node) {
  int axis = axis_of(node, node->inputs[0]->shape.rank);
  lower_result(l, node, 0, lower_index(l, axis), NULL);
}

void lower_Concat(Lowering *l, const Node *node) {
  int axis = axis_of(node, node->outputs[0]->shape.rank);
  int64_t start = 0;
  Monomial monomial = 0;
  Formula place = {0}, next;
  for (uint32_t i = 0; i < l->part.piece; i++) {
    if (formula_of(node->inputs[i]->shape.extent[axis], &next) && formula_add(&place, &next, 1)) continue;
    kernel_close(l->kernel, extent_monomial(node->outputs[0]->shape.extent[axis]));
    return;
  }
  if (!formula_number(l->kernel->graph, &place, &start, &monomial))
    kernel_close(l->kernel, extent_monomial(node->outputs[0]->shape.extent[axis]));
  lower_piece(l, node, lower_value(l, node->inputs[l->part.piece]), axis, start, monomial);
}

// The indices that a Slice reads from an axis with an open extent, all of which are inside. Backwards they are computed
// offsets, which are added to *offset. False: they have no formula.
static bool open_read(Lowering *l, const Node *node, int i, int64_t step, int *axis, Bound *bound, ExprId *offset) {
  Kernel *k = l->kernel;
  const Value *src = node->inputs[0];
  const Strides own = strides_of(&src->shape, &src->layout);
  Formula first, count;
  int64_t begin;
  Monomial monomial;
  if (node->op->id != OP_Slice || !node_read_formulas(node, i, &first, &count) ||
      !formula_number(k->graph, &first, &begin, &monomial) ||
      (step > 0 && (l->places[i].begin || l->places[i].step != 1)))
    return false;
  if (step > 0) {
    *axis = STEPPED;
    *bound = lower_index_bound(l, i, begin, step);
    bound->offset_monomial = monomial;
    return true;
  }
  const ExprId index = SUB(expr_count(k, begin, monomial), MUL(NUMBER(-step), lower_index(l, i)));
  const ExprId place = MUL(index, expr_count(k, own.stride[i], own.monomial[i]));
  *axis = COMPUTED;
  *offset = *offset ? ADD(*offset, place) : place;
  return true;
}

// Loads src at the indices from node_reads; `outside` beyond src. If the read is not of a whole axis, its indices
// depend on the axis's extent, which must have a value or a formula.
static void lower_reads(Lowering *l, const Node *node, double outside) {
  Kernel *k = l->kernel;
  const Shape *src = &node->inputs[0]->shape, *dst = &node->outputs[0]->shape;
  AxisRead reads[MAX_RANK];
  Bound bounds[MAX_RANK];
  int axis[MAX_RANK];
  bool is_all_outside = false;
  ExprId offset = 0;
  node_reads(node, reads);
  for (int i = 0; i < src->rank; i++) {
    const int64_t extent = extent_value(src->extent[i]), first = reads[i].begin;
    const int64_t last = first + reads[i].step * (extent_value(dst->extent[i]) - 1);
    Extent front, behind;
    const bool is_named = node_has_named_reads(node, i, &front, &behind);
    const bool is_whole =
        first == 0 && reads[i].step == 1 && extent_equals(src->extent[i], dst->extent[i]) && !is_named;
    const Monomial open = extent_monomial(src->extent[i]) | extent_monomial(dst->extent[i]) | extent_monomial(front) |
                          extent_monomial(behind);
    if (!is_whole && open && open_read(l, node, i, reads[i].step, &axis[i], &bounds[i], &offset)) continue;
    if (!is_whole) kernel_close(k, extent_monomial(src->extent[i]));
    if (!is_whole) kernel_close(k, extent_monomial(dst->extent[i]));
    kernel_close(k, extent_monomial(front));
    kernel_close(k, extent_monomial(behind));
    bounds[i] = lower_index_bound(l, i, first, reads[i].step);
    axis[i] = first >= 0 && last >= first && last < extent ? STEPPED : BOUNDED;
    is_all_outside |= (first < 0 && last < 0) || (first >= extent && last >= extent);
  }
  lower_result(l, node, 0,
               is_all_outside ? NUMBER(outside) : lower_bounded_load(l, node->inputs[0], axis, bounds, outside, offset),
               NULL);
}

LOWER(Slice, lower_reads(l, node, 0))
// As a number of the kernel: u64 is computed as the s64 with its bits.
static double pad_value(const Node *node) {
  const double value = node_f32(node, "value");
  const bool is_beyond = node->outputs[0]->type == TYPE_U64 && value >= 0x1p63;
  return !is_beyond ? value : value < 0x1p64 ? value - 0x1p64 : -1;
}

LOWER(Pad, lower_reads(l, node, pad_value(node)))

void lower_Split(Lowering *l, const Node *node) {
  (void)node; // pass `splits` has replaced the node
  l->kernel->unsupported = "it is computed as a Slice for each part";
}

// The kernel iterates over src, and stores each element to all of its copies.
void lower_Tile(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Value *dst = node->outputs[0];
  const Shape *src = &node->inputs[0]->shape;
  const Strides own = strides_of(&dst->shape, &dst->layout);
  Access a = {.value = dst, .type = dst->type};
  for (int i = 0; i < src->rank; i++) {
    if (node_attribute(node, "repeats")->list.items[i]) continue;
    a.stride[lower_extra_axis(l, i)] = 1; // there are no copies
    kernel_store(l->kernel, kernel_add_access(l->kernel, &a), NUMBER(0));
    return;
  }
  for (int i = 0; i < src->rank; i++) {
    const int64_t extent = extent_value(src->extent[i]);
    const int copy = lower_extra_axis(l, i);
    if (extent != 1) a.stride[i] = own.stride[i], a.stride_monomial[i] = own.monomial[i];
    if (node_attribute(node, "repeats")->list.items[i] == 1) continue;
    a.stride[copy] = extent * own.stride[i];
    a.stride_monomial[copy] = extent_monomial(src->extent[i]) + own.monomial[i];
  }
  kernel_store(l->kernel, kernel_add_access(l->kernel, &a), lower_value(l, node->inputs[0]));
}

// An index of Gather, converted to a place on the axis.
typedef struct Taken {
  ExprId place;     // in 0 .. extent - 1 if the index is valid
  ExprId is_inside; // a mask: the place exists
  ExprId inner;     // the place clamped to the axis
} Taken;

static Taken taken_at(Kernel *k, ExprId index, Extent e) {
  const ExprId extent = expr_count(k, extent_value(e), extent_monomial(e)), zero = NUMBER(0);
  const ExprId last = SUB(extent, NUMBER(1));
  Taken t = {.place = SELECT(GT(zero, index), ADD(index, extent), index)};
  t.inner = MAX(MIN(t.place, last), zero);
  t.is_inside = EQ(t.inner, t.place);
  return t;
}

// Loads src at a known place on the axis.
static ExprId load_part(Lowering *l, const Value *src, const Value *indices, int axis, int64_t place) {
  Bound bounds[MAX_RANK];
  int on[MAX_RANK];
  for (int i = 0; i < src->shape.rank; i++) {
    on[i] = STEPPED;
    if (i == axis) bounds[i] = (Bound){.offset = place};
    else bounds[i] = lower_index_bound(l, i < axis ? i : i - 1 + indices->shape.rank, 0, 1);
  }
  return lower_bounded_load(l, src, on, bounds, 0, 0);
}

void lower_Gather(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const Value *src = node->inputs[0], *indices = node->inputs[1], *dst = node->outputs[0];
  const int axis = axis_of(node, src->shape.rank), count = indices->shape.rank;
  const Strides own = strides_of(&src->shape, &src->layout);
  const ExprId outside = NUMBER(type_is_float(dst->type) ? (double)NAN : 0);
  Strides moved = {0};
  int axes[MAX_RANK];
  int64_t place;
  const bool is_one_place = gather_place(node, &place);
  if (is_one_place || !extent_value(src->shape.extent[axis])) {
    const bool is_inside = is_one_place && place >= 0 && place < extent_value(src->shape.extent[axis]);
    lower_result(l, node, 0, is_inside ? load_part(l, src, indices, axis, place) : outside, NULL);
    return;
  }
  for (int i = 0; i < src->shape.rank; i++) {
    const int on = i < axis ? i : i - 1 + count;
    if (i == axis) continue;
    moved.stride[on] = own.stride[i];
    moved.monomial[on] = own.monomial[i];
  }
  for (int i = 0; i < count; i++) axes[i] = axis + i;
  const Taken at = taken_at(k, lower_value_on(l, indices, axes), src->shape.extent[axis]);
  const ExprId stride = expr_count(k, own.stride[axis], own.monomial[axis]);
  const ExprId offset = MUL(at.inner, stride);
  const ExprId e = lower_strided_load(l, src, &moved, dst->shape.rank, offset);
  lower_result(l, node, 0, SELECT(at.is_inside, e, outside), NULL);
}

void lower_GatherBackward(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const Value *indices = node->inputs[0], *diff_dst = node->inputs[1], *diff_src = node->outputs[0];
  const int axis = axis_of(node, diff_src->shape.rank), count = indices->shape.rank;
  int of_indices[MAX_RANK], of_diff[MAX_RANK], own[MAX_RANK];
  AxisSet summed = 0;
  for (int i = 0; i < count; i++) {
    of_indices[i] = of_diff[axis + i] = lower_extra_axis(l, i);
    summed |= 1U << of_indices[i];
  }
  for (int i = 0; i < diff_src->shape.rank; i++) {
    own[i] = i;
    if (i != axis) of_diff[i < axis ? i : i - 1 + count] = i;
  }
  const ExprId index = lower_bounded_load(l, indices, of_indices, NULL, 0, 0);
  const ExprId e = lower_bounded_load(l, diff_dst, of_diff, NULL, 0, 0);
  const Taken at = taken_at(k, index, diff_src->shape.extent[axis]);
  const ExprId is_own = EQ(at.place, lower_index(l, axis));
  lower_result(l, node, 0, expr_sum(k, SELECT(is_own, e, NUMBER(0)), summed), own);
}

void lower_OneHot(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const int rank = node->outputs[0]->shape.rank, axis = axis_of(node, rank);
  int axes[MAX_RANK];
  for (int i = 0; i < rank - 1; i++) axes[i] = i + (i >= axis);
  const ExprId label = lower_value_on(l, node->inputs[0], axes);
  const ExprId on = NUMBER(node_f32(node, "on_value")), off = NUMBER(node_f32(node, "off_value"));
  lower_result(l, node, 0, SELECT(EQ(label, lower_index(l, axis)), on, off), NULL);
}
