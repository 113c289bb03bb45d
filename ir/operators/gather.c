// Inference of Gather and its gradient.
#include "ir/operators/movement.h"

#include "ir/operators/rules.h"

// In `taken`, the axes of `indices` take the place of an axis of `whole`.

static bool infer_taken_ranks(Inference *inf, Value *whole, Value *indices, Value *taken) {
  const int before = whole->shape.rank, among = indices->shape.rank, after = taken->shape.rank;
  if (before >= 0 && !infer_rank_at_least(inf, whole, 1)) return false;
  if (before >= 0 && among >= 0 && before - 1 + among > MAX_RANK)
    return infer_error(inf, "%s: expected at most rank %d beside %s of rank %d, found rank %d", indices->name,
                       MAX_RANK + 1 - before, whole->name, before, among);
  if (before >= 0 && among >= 0) return infer_rank_beside(inf, taken, before - 1 + among, whole);
  if (before >= 0 && after >= 0 && after < before - 1)
    return infer_error(inf, "%s: expected rank %d or more beside %s of rank %d, found rank %d", taken->name, before - 1,
                       whole->name, before, after);
  if (before >= 0 && after >= 0) return infer_rank_beside(inf, indices, after + 1 - before, taken);
  return true;
}

static bool infer_taken(Inference *inf, const Node *node, Value *whole, Value *indices, Value *taken) {
  int64_t axis;
  if (!infer_taken_ranks(inf, whole, indices, taken)) return false;
  if (whole->shape.rank < 0 || indices->shape.rank < 0) return true;
  if (!infer_axis(inf, "axis", node_s64(node, "axis"), whole->shape.rank, &axis)) return false;
  for (int i = 0; i < indices->shape.rank; i++)
    if (!infer_same_extent(inf, indices, i, taken, (int)axis + i)) return false;
  for (int i = 0; i < whole->shape.rank; i++)
    if (i != axis && !infer_same_extent(inf, whole, i, taken, i < axis ? i : i - 1 + indices->shape.rank)) return false;
  return true;
}

bool infer_gather(Inference *inf, Node *node) {
  return infer_taken(inf, node, node->inputs[0], node->inputs[1], node->outputs[0]);
}

bool infer_gather_backward(Inference *inf, Node *node) {
  return infer_taken(inf, node, node->outputs[0], node->inputs[0], node->inputs[1]);
}

void gather_backward_domain(const Node *node, Domain *d) {
  const Shape *indices = &node->inputs[0]->shape;
  d->shape = node->outputs[0]->shape;
  d->nextra = indices->rank;
  for (int i = 0; i < indices->rank; i++) d->extra[i] = indices->extent[i];
}

bool gather_place(const Node *node, int64_t *place) {
  const Value *src = node->inputs[0], *indices = node->inputs[1];
  const Extent extent = src->shape.extent[axis_of(node, src->shape.rank)];
  if (!indices->constant || !indices->constant->is_splat || extent_monomial(extent)) return false;
  *place = (int64_t)type_load(indices->type, indices->constant->data, 0);
  if (*place < 0) *place += extent_value(extent);
  return true;
}

static bool reads_open_backwards(const Node *node) {
  AxisRead reads[MAX_RANK];
  Extent first, last;
  bool any = false;
  if (node->op->id != OP_Slice) return false;
  node_reads(node, reads);
  for (int i = 0; i < node->inputs[0]->shape.rank; i++)
    any |= reads[i].step < 0 &&
           (extent_monomial(node->inputs[0]->shape.extent[i]) || node_has_named_reads(node, i, &first, &last));
  return any;
}

int64_t gather_greatest_place(const Node *node) {
  int64_t place;
  if (reads_open_backwards(node)) return MAX_ELEMENTS;
  if (node->op->id != OP_Gather || gather_place(node, &place)) return 0;
  const Value *src = node->inputs[0];
  const int axis = axis_of(node, src->shape.rank);
  for (int i = src->shape.rank - 1; i >= 0; i--) {
    if (extent_monomial(src->shape.extent[layout_axis(&src->layout, i)])) return MAX_ELEMENTS; // for all open dims
    if (layout_axis(&src->layout, i) == axis) break;
  }
  return shape_nelems(&src->shape);
}
