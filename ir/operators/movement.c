// Inference of the operators that move elements.
#include "ir/operators/movement.h"

#include "ir/operators/rules.h"

bool transpose_axes(const Node *node, int rank, int axes[MAX_RANK]) {
  const AttributeValue *order = node_attribute(node, "order");
  uint32_t seen = 0;
  if (order->list.count && order->list.count != (size_t)rank) return false;
  for (int i = 0; i < rank; i++) {
    int64_t axis = order->list.count ? order->list.items[i] : rank - 1 - i;
    if (axis < -rank || axis >= rank) return false;
    axes[i] = (int)(axis < 0 ? axis + rank : axis);
    seen |= 1U << axes[i];
  }
  return seen == (1U << rank) - 1;
}

bool infer_static_transpose(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *dst = node->outputs[0];
  const AttributeValue *order = node_attribute(node, "order");
  int rank = src->shape.rank >= 0 ? src->shape.rank : dst->shape.rank, axes[MAX_RANK];
  if (rank < 0 && order->list.count) rank = order->list.count <= MAX_RANK ? (int)order->list.count : MAX_RANK;
  if (rank < 0) return true;
  if (!transpose_axes(node, rank, axes))
    return infer_error(inf, "order: expected each of %d axes once, or an empty list", rank);
  if (!infer_rank_beside(inf, src, rank, dst) || !infer_rank_beside(inf, dst, rank, src)) return false;
  for (int i = 0; i < rank; i++)
    if (!infer_same_extent(inf, dst, i, src, axes[i])) return false;
  return true;
}

void diagonal_axes(const Node *node, int to[MAX_RANK]) {
  const int rank = node->inputs[0]->shape.rank;
  const int64_t axis1 = node_s64(node, "axis1"), axis2 = node_s64(node, "axis2");
  int nothers = 0;
  for (int i = 0; i < rank; i++) {
    const bool is_joined = axis1 == i || axis1 == i - rank || axis2 == i || axis2 == i - rank;
    to[i] = is_joined ? rank - 2 : nothers++;
  }
}

bool infer_diagonal(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *dst = node->outputs[0];
  int64_t axis1, axis2;
  int to[MAX_RANK] = {0};
  if (dst->shape.rank >= 0 &&
      (!infer_rank_at_least(inf, dst, 1) || !infer_rank_beside(inf, src, dst->shape.rank + 1, dst)))
    return false;
  const int rank = src->shape.rank;
  if (rank < 0) return true;
  if (!infer_rank_at_least(inf, src, 2) || !infer_rank_beside(inf, dst, rank - 1, src)) return false;
  if (!infer_axis(inf, "axis1", node_s64(node, "axis1"), rank, &axis1)) return false;
  if (!infer_axis(inf, "axis2", node_s64(node, "axis2"), rank, &axis2)) return false;
  if (axis1 == axis2)
    return infer_error(inf, "axis1 and axis2: expected two axes, found axis %lld twice", (long long)axis1);
  if (!infer_same_extent(inf, src, (int)axis1, src, (int)axis2)) return false;
  diagonal_axes(node, to);
  for (int i = 0; i < rank; i++)
    if (!infer_same_extent(inf, dst, to[i], src, i)) return false;
  return true;
}

int axis_of(const Node *node, int rank) {
  int64_t axis = node_s64(node, "axis");
  return (int)(axis < 0 ? axis + rank : axis);
}

bool infer_gen_index(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *dst = node->outputs[0];
  int64_t axis;
  if (!infer_same_shape(inf, src, dst)) return false;
  if (src->shape.rank < 0) return true;
  if (!infer_axis(inf, "axis", node_s64(node, "axis"), src->shape.rank, &axis)) return false;
  return extent_value(src->shape.extent[axis]) <= INT32_MAX ||
         infer_error(inf, "%s: expected an extent below 2^31 on axis %d", src->name, (int)axis);
}

// On the axis, the result's extent is the sum of the inputs' extents. If a single input's extent is unknown, it is the
// difference.
static bool infer_joined_extent(Inference *inf, Node *node, int axis) {
  Value *dst = node->outputs[0], *open = NULL;
  int64_t sum = 0;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    Extent e = node->inputs[i]->shape.extent[axis];
    if (!extent_is_literal(e) && open) return true;
    if (!extent_is_literal(e)) open = node->inputs[i];
    else if (e.value > MAX_ELEMENTS - sum) return true; // dst has too many elements, which is reported later
    else sum += e.value;
  }
  if (!open) return infer_extent_beside(inf, dst, axis, EXTENT(sum), node->inputs[0]);
  Extent e = dst->shape.extent[axis];
  if (!extent_is_literal(e) || !extent_is_unknown(open->shape.extent[axis])) return true;
  if (e.value < sum)
    return infer_error(inf, "%s: expected an extent of at least %lld on axis %d", dst->name, (long long)sum, axis);
  return infer_extent(inf, open, axis, EXTENT(e.value - sum));
}

bool infer_concat(Inference *inf, Node *node) {
  Value *dst = node->outputs[0], *known = dst->shape.rank >= 0 ? dst : NULL;
  int64_t axis;
  for (uint32_t i = 0; i < node->ninputs && !known; i++)
    if (node->inputs[i]->shape.rank >= 0) known = node->inputs[i];
  if (!known) return true;
  const int rank = known->shape.rank;
  if (!infer_rank_beside(inf, dst, rank, known)) return false;
  if (!infer_axis(inf, "axis", node_s64(node, "axis"), rank, &axis)) return false;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    Value *v = node->inputs[i];
    if (!infer_rank_beside(inf, v, rank, known)) return false;
    for (int k = 0; k < rank; k++)
      if (k != axis && !infer_same_extent(inf, v, k, dst, k)) return false;
  }
  return infer_joined_extent(inf, node, (int)axis);
}

// Slices and pads

// The attributes' slice of one axis.
typedef struct AxisSlice {
  int64_t start, end, step;
} AxisSlice;

// Whether the slice takes all elements of an axis of any extent, forwards or backwards.
static bool is_whole(const AxisSlice *s) {
  const bool ends_first = s->start == -1 || s->start >= MAX_ELEMENTS - 1;
  return s->step == 1 ? s->start == 0 && s->end >= MAX_ELEMENTS - 1
                      : s->step == -1 && ends_first && s->end <= -MAX_ELEMENTS;
}

static int64_t clamped(int64_t i, int64_t least, int64_t most) {
  return i < least ? least : i > most ? most : i;
}

// The indices that the slice takes from an axis. Sets *count to their number.
static AxisRead read_slice(const AxisSlice *s, int64_t extent, int64_t *count) {
  const int64_t first = s->step > 0 ? 0 : -1, last = s->step > 0 ? extent : extent - 1;
  const int64_t start = clamped(s->start < 0 ? s->start + extent : s->start, first, last);
  const int64_t end = clamped(s->end < 0 ? s->end + extent : s->end, first, last);
  *count = 0;
  if (s->step > 0 && start < end) *count = (end - start - 1) / s->step + 1;
  if (s->step < 0 && start > end) *count = (end - start + 1) / s->step + 1;
  return (AxisRead){*count ? start : 0, *count > 1 ? s->step : 1};
}

// Sets the slice of each axis; by default, the whole axis. `inf` NULL: the node is verified.
static bool find_slices(Inference *inf, const Node *node, int rank, AxisSlice slices[MAX_RANK]) {
  const AttributeValue *starts = node_attribute(node, "starts"), *ends = node_attribute(node, "ends");
  const AttributeValue *axes = node_attribute(node, "axes"), *steps = node_attribute(node, "steps");
  const size_t count = starts->list.count;
  uint32_t seen = 0;
  for (int i = 0; i < rank; i++) slices[i] = (AxisSlice){0, MAX_ELEMENTS, 1};
  if (ends->list.count != count || (axes->list.count && axes->list.count != count) ||
      (steps->list.count && steps->list.count != count))
    return infer_error(inf, "starts, ends, axes and steps: expected lists of one length");
  if (count > (size_t)rank) return infer_error(inf, "starts: expected at most %d numbers, one for each axis", rank);
  for (size_t i = 0; i < count; i++) {
    int64_t axis = (int64_t)i, step = steps->list.count ? steps->list.items[i] : 1;
    if (axes->list.count && !infer_axis(inf, "axes", axes->list.items[i], rank, &axis)) return false;
    if (seen >> axis & 1)
      return infer_error(inf, "axes: expected each axis once, found axis %lld twice", (long long)axis);
    if (!step) return infer_error(inf, "steps: expected numbers other than 0");
    seen |= 1U << axis;
    slices[axis] = (AxisSlice){starts->list.items[i], ends->list.items[i], step};
  }
  return true;
}

// Both ranks are equal.
static bool infer_same_rank(Inference *inf, Value *a, Value *b) {
  return a->shape.rank >= 0   ? infer_rank_beside(inf, b, a->shape.rank, a)
         : b->shape.rank >= 0 ? infer_rank(inf, a, b->shape.rank)
                              : true;
}

bool infer_slice(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *dst = node->outputs[0];
  AxisSlice slices[MAX_RANK];
  if (!infer_same_rank(inf, src, dst)) return false;
  const int rank = src->shape.rank;
  if (rank < 0) return true;
  if (!find_slices(inf, node, rank, slices)) return false;
  for (int i = 0; i < rank; i++) {
    const Extent e = src->shape.extent[i];
    int64_t count;
    if (is_whole(&slices[i])) {
      if (!infer_same_extent(inf, src, i, dst, i)) return false;
    } else if (extent_is_literal(e)) {
      read_slice(&slices[i], e.value, &count);
      if (!infer_extent_beside(inf, dst, i, EXTENT(count), src)) return false;
    }
  }
  return true;
}

// Infers dst's extent = src's extent + pads; pads may be negative.
static bool infer_padded_extent(Inference *inf, Value *src, Value *dst, int axis, int64_t pads) {
  const Extent from = src->shape.extent[axis], to = dst->shape.extent[axis];
  if (!pads && !extent_is_literal(from)) return infer_same_extent(inf, src, axis, dst, axis);
  if (extent_is_literal(from)) return infer_extent_beside(inf, dst, axis, EXTENT(from.value + pads), src);
  if (!extent_is_unknown(from) || !extent_is_literal(to) || to.value < pads) return true;
  return infer_extent(inf, src, axis, EXTENT(to.value - pads));
}

bool infer_pad(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *dst = node->outputs[0];
  const AttributeValue *begin = node_attribute(node, "pads_begin"), *end = node_attribute(node, "pads_end");
  const double value = node_f32(node, "value");
  if (!infer_same_rank(inf, src, dst)) return false;
  const Type type = src->type;
  if (type != TYPE_NONE && !type_is_float(type) && type_round(type, value) != value)
    return infer_error(inf, "value: expected a number of type %s, found %g", type_name(type), value);
  const int rank = src->shape.rank;
  if (rank < 0) return true;
  if (begin->list.count != (size_t)rank || end->list.count != (size_t)rank)
    return infer_error(inf, "pads_begin and pads_end: expected %d numbers each, one for each axis", rank);
  for (int i = 0; i < rank; i++) {
    const int64_t before = begin->list.items[i], behind = end->list.items[i];
    if (before <= -MAX_ELEMENTS || before >= MAX_ELEMENTS || behind <= -MAX_ELEMENTS || behind >= MAX_ELEMENTS)
      return infer_error(inf, "pads_begin and pads_end: expected numbers below 2^47");
    const Extent e = src->shape.extent[i];
    if (extent_is_literal(e) && e.value + before + behind < 0)
      return infer_error(inf, "pads_begin and pads_end: expected to remove at most %lld elements of %s on axis %d",
                         (long long)e.value, src->name, i);
    if (!infer_padded_extent(inf, src, dst, i, before + behind)) return false;
  }
  return true;
}

void node_reads(const Node *node, AxisRead reads[MAX_RANK]) {
  const Shape *src = &node->inputs[0]->shape;
  AxisSlice slices[MAX_RANK];
  const bool pads = operator_has_attribute(node->op, "pads_begin");
  if (!pads && !find_slices(NULL, node, src->rank, slices)) return; // never in a verified graph
  for (int i = 0; i < src->rank; i++) {
    const int64_t extent = extent_value(src->extent[i]);
    int64_t count;
    reads[i] = pads ? (AxisRead){-node_attribute(node, "pads_begin")->list.items[i], 1}
                    : read_slice(&slices[i], extent < 0 ? 2 : extent, &count);
  }
}

// Split

uint32_t split_nparts(const Node *node) {
  const AttributeValue *splits = node_attribute(node, "splits"), *parts = node_attribute(node, "parts");
  return parts->is_set ? (uint32_t)parts->s64 : (uint32_t)splits->list.count;
}

static bool check_parts(Inference *inf, const Node *node) {
  const AttributeValue *splits = node_attribute(node, "splits"), *parts = node_attribute(node, "parts");
  const int64_t nparts = parts->is_set ? parts->s64 : (int64_t)splits->list.count;
  if ((splits->list.count > 0) == parts->is_set || nparts < 1)
    return infer_error(inf, "expected either splits, a list of extents, or parts, a number");
  if (nparts > MAX_OPERANDS)
    return infer_error(inf, "expected at most %d parts, found %lld", MAX_OPERANDS, (long long)nparts);
  for (size_t i = 0; i < splits->list.count; i++)
    if (splits->list.items[i] < 0 || splits->list.items[i] >= MAX_ELEMENTS)
      return infer_error(inf, "splits: expected extents of at least 0, found %lld", (long long)splits->list.items[i]);
  for (uint32_t i = (uint32_t)nparts; i < node->noutputs; i++)
    if (node->outputs[i])
      return infer_error(inf, "expected at most %lld outputs, one for each part, found %s", (long long)nparts,
                         node->outputs[i]->name);
  return true;
}

// Infers extents along the axis, of src and of one part.
static bool infer_split_extents(Inference *inf, const Node *node, int axis, uint32_t part) {
  Value *src = node->inputs[0], *dst = node->outputs[part];
  const AttributeValue *splits = node_attribute(node, "splits");
  const int64_t nparts = split_nparts(node);
  if (splits->list.count) return infer_extent_beside(inf, dst, axis, EXTENT(splits->list.items[part]), src);
  const Extent whole = src->shape.extent[axis], own = dst->shape.extent[axis];
  if (nparts == 1) return infer_same_extent(inf, dst, axis, src, axis);
  if (extent_is_literal(whole)) return infer_extent_beside(inf, dst, axis, EXTENT(whole.value / nparts), src);
  if (!extent_is_literal(own) || !extent_is_unknown(whole)) return true;
  return infer_extent(inf, src, axis, EXTENT(own.value * nparts));
}

// src's extent along the axis must be the sum of splits, or a multiple of parts.
static bool infer_split_sum(Inference *inf, const Node *node, int axis) {
  Value *src = node->inputs[0];
  const Value *dst = node->outputs[0];
  const AttributeValue *splits = node_attribute(node, "splits");
  const Extent whole = src->shape.extent[axis];
  char src_text[160], dst_text[160];
  int64_t sum = 0;
  for (size_t i = 0; i < splits->list.count; i++) sum += splits->list.items[i];
  if (splits->list.count) return infer_extent_beside(inf, src, axis, EXTENT(sum), dst);
  return !extent_is_literal(whole) || whole.value % split_nparts(node) == 0 ||
         infer_error(inf, "%s %s, beside %s %s: expected an extent on axis %d that %u parts divide; splits may differ",
                     src->name, shape_string(&src->shape, src_text, sizeof src_text), dst->name,
                     shape_string(&dst->shape, dst_text, sizeof dst_text), axis, (unsigned)split_nparts(node));
}

bool infer_split(Inference *inf, Node *node) {
  Value *src = node->inputs[0];
  int64_t axis;
  if (!check_parts(inf, node)) return false;
  if (!infer_same_rank(inf, src, node->outputs[0])) return false;
  for (uint32_t i = 1; i < node->noutputs; i++)
    if (node->outputs[i] && !infer_same_rank(inf, src, node->outputs[i])) return false;
  const int rank = src->shape.rank;
  if (rank < 0) return true;
  if (!infer_axis(inf, "axis", node_s64(node, "axis"), rank, &axis)) return false;
  if (!infer_split_sum(inf, node, (int)axis)) return false;
  for (uint32_t part = 0; part < node->noutputs; part++) {
    Value *dst = node->outputs[part];
    if (dst && !infer_split_extents(inf, node, (int)axis, part)) return false;
    for (int i = 0; i < rank && dst; i++)
      if (i != axis && !infer_same_extent(inf, src, i, dst, i)) return false;
  }
  return true;
}

void split_starts(const Node *node, int64_t starts[MAX_OPERANDS + 1]) {
  const Shape *src = &node->inputs[0]->shape;
  const AttributeValue *splits = node_attribute(node, "splits");
  const uint32_t nparts = split_nparts(node);
  const int64_t equal = extent_value(src->extent[axis_of(node, src->rank)]) / nparts;
  starts[0] = 0;
  for (uint32_t i = 0; i < nparts; i++)
    starts[i + 1] = starts[i] + (splits->list.count ? splits->list.items[i] : equal);
}

// Tile

static bool infer_too_long(Inference *inf, const Value *src) {
  char text[160];
  return infer_error(inf, "%s %s: expected fewer elements or repeats, found a result of 2^47 elements or more",
                     src->name, shape_string(&src->shape, text, sizeof text));
}

bool infer_tile(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *dst = node->outputs[0];
  const AttributeValue *repeats = node_attribute(node, "repeats");
  if (!infer_same_rank(inf, src, dst)) return false;
  if (src->shape.rank < 0) return true;
  if (repeats->list.count != (size_t)src->shape.rank)
    return infer_error(inf, "repeats: expected %d numbers, one for each axis", src->shape.rank);
  for (int i = 0; i < src->shape.rank; i++) {
    const int64_t times = repeats->list.items[i];
    const Extent from = src->shape.extent[i], to = dst->shape.extent[i];
    if (times < 0 || times >= MAX_ELEMENTS)
      return infer_error(inf, "repeats: expected numbers of at least 0, found %lld", (long long)times);
    bool ok = true;
    if (times == 1) ok = infer_same_extent(inf, src, i, dst, i);
    else if (!times) ok = infer_extent_beside(inf, dst, i, EXTENT(0), src);
    else if (extent_is_literal(from) && from.value < MAX_ELEMENTS / times)
      ok = infer_extent_beside(inf, dst, i, EXTENT(from.value * times), src);
    else if (extent_is_literal(from)) ok = infer_too_long(inf, src);
    else if (extent_is_unknown(from) && extent_is_literal(to) && to.value % times == 0)
      ok = infer_extent(inf, src, i, EXTENT(to.value / times));
    if (!ok) return false;
  }
  return true;
}

void tile_domain(const Node *node, Domain *d) {
  const AttributeValue *repeats = node_attribute(node, "repeats");
  d->shape = node->inputs[0]->shape;
  d->nextra = d->shape.rank;
  for (int i = 0; i < d->shape.rank; i++) d->extra[i] = EXTENT(repeats->list.items[i]);
}

// OneHot

bool infer_one_hot(Inference *inf, Node *node) {
  Value *labels = node->inputs[0], *dst = node->outputs[0];
  static const char *const values[] = {"on_value", "off_value"};
  const int64_t depth = node_s64(node, "depth");
  int64_t axis;
  if (dst->type == TYPE_NONE && !infer_type(inf, dst, TYPE_F32)) return false;
  for (int i = 0; i < 2 && !type_is_float(dst->type); i++)
    if (type_round(dst->type, node_f32(node, values[i])) != node_f32(node, values[i]))
      return infer_error(inf, "%s: expected a number of type %s, found %g", values[i], type_name(dst->type),
                         node_f32(node, values[i]));
  if (depth > INT32_MAX) return infer_error(inf, "depth: expected a number below 2^31");
  if (labels->shape.rank >= 0 && !infer_rank_beside(inf, dst, labels->shape.rank + 1, labels)) return false;
  if (dst->shape.rank < 0) return true;
  if (!infer_rank_at_least(inf, dst, 1) || !infer_rank_beside(inf, labels, dst->shape.rank - 1, dst)) return false;
  if (!infer_axis(inf, "axis", node_s64(node, "axis"), dst->shape.rank, &axis)) return false;
  if (!infer_extent_beside(inf, dst, (int)axis, EXTENT(depth), labels)) return false;
  for (int i = 0; i < labels->shape.rank; i++)
    if (!infer_same_extent(inf, labels, i, dst, i + (i >= axis))) return false;
  return true;
}

// Gather. In `taken`, the axes of `indices` take the place of an axis of `whole`.

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

int64_t gather_greatest_place(const Node *node) {
  int64_t place;
  if (node->op->id != OP_Gather || gather_place(node, &place)) return 0;
  const Value *src = node->inputs[0];
  const int axis = axis_of(node, src->shape.rank);
  for (int i = src->shape.rank - 1; i >= 0; i--) {
    if (extent_monomial(src->shape.extent[layout_axis(&src->layout, i)])) return MAX_ELEMENTS; // for all open dims
    if (layout_axis(&src->layout, i) == axis) break;
  }
  return shape_nelems(&src->shape);
}
