// The operators that move elements.
#include "ir/operators/movement.h"

#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/sum.h"
#include "backends/interpreter/walk.h"

#include <math.h>
#include <string.h>

bool interpret_StaticReshape(const Evaluation *e) {
  memcpy(e->outputs[0], e->inputs[0], (size_t)shape_nelems(&e->node->outputs[0]->shape) * sizeof(double));
  return true;
}

bool interpret_StaticTranspose(const Evaluation *e) {
  const Shape *src = &e->node->inputs[0]->shape;
  int axes[MAX_RANK];
  if (!transpose_axes(e->node, src->rank, axes)) return true; // cannot happen: the node is verified
  Walk w = walk_over(&e->node->outputs[0]->shape);
  for (int i = 0; i < src->rank; i++) {
    int64_t stride = 1;
    for (int axis = src->rank - 1; axis > axes[i]; axis--) stride *= extent_value(src->extent[axis]);
    w.stride[i][0] = stride;
  }
  for (; w.i < w.nelems; walk_step(&w)) e->outputs[0][w.i] = e->inputs[0][w.at[0]];
  return true;
}

bool interpret_Diagonal(const Evaluation *e) {
  const Shape *src = &e->node->inputs[0]->shape;
  int to[MAX_RANK];
  int64_t stride = 1;
  Walk w = walk_over(&e->node->outputs[0]->shape);
  diagonal_axes(e->node, to);
  for (int i = src->rank - 1; i >= 0; i--) {
    w.stride[to[i]][0] += stride;
    stride *= extent_value(src->extent[i]);
  }
  for (; w.i < w.nelems; walk_step(&w)) e->outputs[0][w.i] = e->inputs[0][w.at[0]];
  return true;
}

bool interpret_Reorder(const Evaluation *e) {
  memcpy(e->outputs[0], e->inputs[0], (size_t)shape_nelems(&e->node->outputs[0]->shape) * sizeof(double));
  return true;
}

bool interpret_GenIndex(const Evaluation *e) {
  int axis = axis_of(e->node, e->node->inputs[0]->shape.rank);
  for (Walk w = walk_over(&e->node->outputs[0]->shape); w.i < w.nelems; walk_step(&w))
    e->outputs[0][w.i] = (double)w.index[axis];
  return true;
}

bool interpret_Concat(const Evaluation *e) {
  const Shape *dst = &e->node->outputs[0]->shape;
  int axis = axis_of(e->node, dst->rank);
  int64_t start = 0, below = 1; // below: elements for each index along the axis
  for (int i = axis + 1; i < dst->rank; i++) below *= extent_value(dst->extent[i]);
  const int64_t row = below * extent_value(dst->extent[axis]);
  for (uint32_t i = 0; i < e->node->ninputs; i++) {
    int64_t own = below * extent_value(e->node->inputs[i]->shape.extent[axis]);
    int64_t nelems = shape_nelems(&e->node->inputs[i]->shape);
    for (int64_t k = 0; k < nelems; k++) e->outputs[0][k / own * row + start + k % own] = e->inputs[i][k];
    start += own;
  }
  return true;
}

static bool read_moved(const Evaluation *e, double outside) {
  const Shape *src = &e->node->inputs[0]->shape;
  AxisRead reads[MAX_RANK];
  node_reads(e->node, reads);
  for (Walk w = walk_over(&e->node->outputs[0]->shape); w.i < w.nelems; walk_step(&w)) {
    int64_t at = 0;
    bool is_inside = true;
    for (int i = 0; i < src->rank; i++) {
      const int64_t index = reads[i].begin + reads[i].step * w.index[i], extent = extent_value(src->extent[i]);
      is_inside &= index >= 0 && index < extent;
      at = at * extent + index;
    }
    e->outputs[0][w.i] = is_inside ? e->inputs[0][at] : outside;
  }
  return true;
}

INTERPRET(Slice, read_moved(e, 0))
INTERPRET(Pad, read_moved(e, evaluation_element(e, node_f32(e->node, "value"))))

bool interpret_Split(const Evaluation *e) {
  const Shape *src = &e->node->inputs[0]->shape;
  const int axis = axis_of(e->node, src->rank);
  int64_t starts[MAX_OPERANDS + 1], written[MAX_OPERANDS] = {0};
  uint32_t part = 0;
  split_starts(e->node, starts);
  for (Walk w = walk_over(src); w.i < w.nelems; walk_step(&w)) {
    while (w.index[axis] < starts[part]) part--;
    while (w.index[axis] >= starts[part + 1]) part++;
    if (e->outputs[part]) e->outputs[part][written[part]++] = e->inputs[0][w.i];
  }
  return true;
}

bool interpret_Tile(const Evaluation *e) {
  const Shape *src = &e->node->inputs[0]->shape;
  for (Walk w = walk_over(&e->node->outputs[0]->shape); w.i < w.nelems; walk_step(&w)) {
    int64_t at = 0;
    for (int i = 0; i < src->rank; i++) {
      const int64_t extent = extent_value(src->extent[i]);
      at = at * extent + w.index[i] % extent;
    }
    e->outputs[0][w.i] = e->inputs[0][at];
  }
  return true;
}

bool interpret_OneHot(const Evaluation *e) {
  const Shape *dst = &e->node->outputs[0]->shape;
  const int axis = axis_of(e->node, dst->rank);
  const double on = evaluation_element(e, node_f32(e->node, "on_value")),
               off = evaluation_element(e, node_f32(e->node, "off_value"));
  Walk w = walk_over(dst);
  walk_axes(&w, 0, ~(1U << axis));
  for (; w.i < w.nelems; walk_step(&w))
    e->outputs[0][w.i] = evaluation_integer(e, 0, w.at[0]) == w.index[axis] ? on : off;
  return true;
}

// The index of an element of `whole` along the axis; -1: out of range.
static int64_t taken_index(const Evaluation *e, uint32_t slot, int64_t i, int64_t extent) {
  const int64_t given = evaluation_integer(e, slot, i);
  const int64_t index = given < 0 ? given + extent : given;
  return index >= 0 && index < extent ? index : -1;
}

// A walk over `taken`: track 0 is the element of `whole` with index 0 along the axis, track 1 the element of `indices`.
// *below: elements of `whole` from one index along the axis to the next.
static Walk walk_taken(const Shape *whole, const Shape *indices, const Shape *taken, int axis, int64_t *below) {
  Walk w = walk_over(taken);
  int64_t stride = 1;
  for (int i = whole->rank - 1; i >= 0; i--) {
    if (i == axis) *below = stride;
    else w.stride[i < axis ? i : i - 1 + indices->rank][0] = stride;
    stride *= extent_value(whole->extent[i]);
  }
  stride = 1;
  for (int i = indices->rank - 1; i >= 0; i--) {
    w.stride[axis + i][1] = stride;
    stride *= extent_value(indices->extent[i]);
  }
  return w;
}

bool interpret_Gather(const Evaluation *e) {
  const Value *src = e->node->inputs[0], *dst = e->node->outputs[0];
  const int axis = axis_of(e->node, src->shape.rank);
  const int64_t extent = extent_value(src->shape.extent[axis]);
  int64_t below = 0;
  Walk w = walk_taken(&src->shape, &e->node->inputs[1]->shape, &dst->shape, axis, &below);
  for (; w.i < w.nelems; walk_step(&w)) {
    const int64_t index = taken_index(e, 1, w.at[1], extent);
    const double outside = type_is_float(dst->type) ? (double)NAN : 0;
    e->outputs[0][w.i] = index < 0 ? outside : e->inputs[0][w.at[0] + index * below];
  }
  return true;
}

bool interpret_GatherBackward(const Evaluation *e) {
  const Value *diff_src = e->node->outputs[0];
  const int axis = axis_of(e->node, diff_src->shape.rank);
  const int64_t extent = extent_value(diff_src->shape.extent[axis]);
  Sum *sums = sums_of_output(e, 0);
  int64_t below = 0;
  if (!sums) return false;
  Walk w = walk_taken(&diff_src->shape, &e->node->inputs[0]->shape, &e->node->inputs[1]->shape, axis, &below);
  for (; w.i < w.nelems; walk_step(&w)) {
    const int64_t index = taken_index(e, 0, w.at[1], extent);
    if (index >= 0) sum_add(&sums[w.at[0] + index * below], e->inputs[1][w.i]);
  }
  return sums_store(e, 0, sums);
}
