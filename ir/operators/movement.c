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
  Value *dst = node->outputs[0], *unknown = NULL;
  Extent sum = EXTENT(0), rest;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Extent e = node->inputs[i]->shape.extent[axis];
    if (extent_is_unknown(e) && unknown) return true;
    if (extent_is_unknown(e)) unknown = node->inputs[i];
    else if (!infer_sum(inf, sum, 1, e, &sum)) return false;
  }
  if (!unknown) return infer_computed_extent(inf, dst, axis, sum, node->inputs[0]);
  const Extent whole = dst->shape.extent[axis];
  if (extent_is_literal(whole) && extent_is_literal(sum) && whole.value < sum.value)
    return infer_error(inf, "%s: expected an extent of at least %lld on axis %d", dst->name, (long long)sum.value,
                       axis);
  return infer_sum(inf, whole, -1, sum, &rest) && infer_computed_extent(inf, unknown, axis, rest, dst);
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

// The attributes' slice of one axis. A named start or end has its value, too.
typedef struct AxisSlice {
  int64_t start, end, step;
  Extent named_start, named_end; // unknown: a number
} AxisSlice;

// Whether the slice takes all elements of an axis of any extent, forwards or backwards.
static bool is_whole(const AxisSlice *s) {
  const bool ends_first = s->start == -1 || s->start >= MAX_ELEMENTS - 1;
  if (s->named_start.dim || s->named_end.dim) return false;
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

static Extent named_item(const AttributeValue *list, size_t i) {
  return list->list.extents ? list->list.extents[i] : EXTENT_UNKNOWN;
}

static int64_t item_value(const AttributeValue *list, size_t i) {
  const Extent named = named_item(list, i);
  return named.dim ? extent_value(named) : list->list.items[i];
}

// Sets the slice of each axis; by default, the whole axis. `inf` NULL: the node is verified.
static bool find_slices(Inference *inf, const Node *node, int rank, AxisSlice slices[MAX_RANK]) {
  const AttributeValue *starts = node_attribute(node, "starts"), *ends = node_attribute(node, "ends");
  const AttributeValue *axes = node_attribute(node, "axes"), *steps = node_attribute(node, "steps");
  const size_t count = starts->list.count;
  uint32_t seen = 0;
  for (int i = 0; i < rank; i++) slices[i] = (AxisSlice){0, MAX_ELEMENTS, 1, EXTENT_UNKNOWN, EXTENT_UNKNOWN};
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
    AxisSlice *s = &slices[axis];
    *s = (AxisSlice){item_value(starts, i), item_value(ends, i), step, named_item(starts, i), named_item(ends, i)};
    if ((s->named_start.dim && s->start == NO_NUMBER) || (s->named_end.dim && s->end == NO_NUMBER))
      return infer_error(inf, "starts and ends: expected no negative sum of extents on axis %d", (int)axis);
  }
  return true;
}

// The place of a start or end, where -1 is behind the last element for steps above 0, and `before` the place in front
// of the first element for steps below 0. False: it depends on the extent's number.
static bool place_formula(int64_t number, Extent named, Extent whole, int64_t step, Formula *place) {
  const Formula one = {.nterms = 1, .terms = {{.factor = 1}}};
  if (named.dim) return formula_of(named, place);
  if (step < 0 && number <= -MAX_ELEMENTS) return place->nterms = 0, formula_add(place, &one, -1);
  const bool is_behind = number >= MAX_ELEMENTS - 1;
  if (number >= 0 && !is_behind) return formula_of(EXTENT(number), place);
  if (!formula_of(whole, place)) return false;
  return formula_add(place, &one, !is_behind ? number : step > 0 ? 0 : -1);
}

static int64_t is_1(const Dim *dim, const void *unused) {
  (void)dim;
  (void)unused;
  return 1;
}

// Whether the place is on the axis, or behind it, if all dims are at least 1.
static bool is_on_axis(const Formula *place, Extent whole) {
  Formula behind;
  return terms_value(place->terms, place->nterms, is_1, NULL) >= 0 && formula_of(whole, &behind) &&
         formula_add(&behind, place, -1) && terms_value(behind.terms, behind.nterms, is_1, NULL) >= 0;
}

// Moves a place that is behind the axis for all values of the dims, such as N + 1 of N, to its end.
static void place_clamp(Formula *place, Extent whole, int64_t step) {
  Formula end, behind = *place;
  if (!place_formula(MAX_ELEMENTS, EXTENT_UNKNOWN, whole, step, &end) || !formula_add(&behind, &end, -1)) return;
  for (uint32_t i = 0; i < behind.nterms; i++)
    if (behind.terms[i].factor < 0) return;
  *place = end;
}

// Whether a slice that goes from one end of a named axis to a number, as in x[-4:9], depends on which of both is first.
static bool may_end_first(const AxisSlice *s, const Formula *place, Extent whole) {
  const int64_t number = s->step > 0 ? s->end : s->start;
  return !s->named_start.dim && !s->named_end.dim && number >= 0 && number < MAX_ELEMENTS - 1 &&
         !is_on_axis(place, whole);
}

// The first index of a slice of an axis with a named extent, or with named bounds, and the number of indices. False:
// there is no formula that holds for all values, at least if each dim is 1 or more and no formula is negative.
static bool slice_formulas(const AxisSlice *s, Extent whole, Formula *first, Formula *count) {
  const Formula one = {.nterms = 1, .terms = {{.factor = 1}}};
  const int64_t step = s->step < 0 ? -s->step : s->step;
  Formula end, start;
  int64_t number;
  if (step >= MAX_ELEMENTS || !place_formula(s->start, s->named_start, whole, s->step, &start) ||
      !place_formula(s->end, s->named_end, whole, s->step, &end))
    return false;
  place_clamp(&start, whole, s->step);
  place_clamp(&end, whole, s->step);
  *first = start;
  *count = s->step > 0 ? end : start;
  if (!formula_add(count, s->step > 0 ? &start : &end, -1)) return false;
  const bool are_on_axis =
      (s->named_start.dim || is_on_axis(&start, whole)) && (s->named_end.dim || is_on_axis(&end, whole));
  if (formula_is_number(count, &number) && !are_on_axis) return false;
  if (may_end_first(s, s->step > 0 ? &end : &start, whole)) return false;
  if (formula_is_number(count, &number) && number < 0) return count->nterms = 0, true;
  return formula_add(count, &one, step - 1) && formula_floor(count, step);
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
    Formula first, taken;
    int64_t count;
    if (is_whole(&slices[i])) {
      if (!infer_same_extent(inf, src, i, dst, i)) return false;
    } else if (extent_is_literal(e) && !slices[i].named_start.dim && !slices[i].named_end.dim) {
      read_slice(&slices[i], e.value, &count);
      if (!infer_extent_beside(inf, dst, i, EXTENT(count), src)) return false;
    } else if (!extent_is_unknown(e) && slice_formulas(&slices[i], e, &first, &taken)) {
      Extent extent;
      if (!graph_extent(inf->graph, &taken, &extent)) return error_out_of_memory(inf->diagnostics);
      if (!infer_computed_extent(inf, dst, i, extent, src)) return false;
    }
  }
  return true;
}

bool item_formula(const AttributeValue *list, size_t i, Formula *f) {
  const FormulaTerm number = {.factor = list->list.items[i]};
  const Extent named = named_item(list, i);
  if (named.dim) return formula_of(named, f);
  *f = (Formula){.nterms = number.factor != 0, .terms = {number}};
  return number.factor > -MAX_ELEMENTS && number.factor < MAX_ELEMENTS;
}

// The axis's extent in `to` is that in `from`, and `times` the pads.
static bool infer_beside_pads(Inference *inf, const Node *node, Value *from, Value *to, int axis, int64_t times) {
  Formula f, front, behind;
  Extent e;
  if (!item_formula(node_attribute(node, "pads_begin"), (size_t)axis, &front) ||
      !item_formula(node_attribute(node, "pads_end"), (size_t)axis, &behind) ||
      !formula_of(from->shape.extent[axis], &f) || !formula_add(&f, &front, times) || !formula_add(&f, &behind, times))
    return true;
  if (!graph_extent(inf->graph, &f, &e)) return error_out_of_memory(inf->diagnostics);
  return infer_computed_extent(inf, to, axis, e, from);
}

// Infers dst's extent = src's extent + pads; pads may be negative.
static bool infer_padded_extent(Inference *inf, const Node *node, int axis) {
  const AttributeValue *begin = node_attribute(node, "pads_begin"), *end = node_attribute(node, "pads_end");
  Value *src = node->inputs[0], *dst = node->outputs[0];
  const size_t i = (size_t)axis;
  const int64_t pads = begin->list.items[i] + end->list.items[i];
  const bool are_numbers = !named_item(begin, i).dim && !named_item(end, i).dim;
  const Extent from = src->shape.extent[axis];
  if (are_numbers && !pads) return infer_same_extent(inf, src, axis, dst, axis);
  if (are_numbers && extent_is_literal(from))
    return infer_extent_beside(inf, dst, axis, EXTENT(from.value + pads), src);
  return extent_is_unknown(from) ? infer_beside_pads(inf, node, dst, src, axis, -1)
                                 : infer_beside_pads(inf, node, src, dst, axis, 1);
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
    const bool are_numbers = !named_item(begin, (size_t)i).dim && !named_item(end, (size_t)i).dim;
    if (before == NO_NUMBER || behind == NO_NUMBER)
      return infer_error(
          inf, "pads_begin and pads_end: expected names and formulas of at least 0, found less on axis %d", i);
    if (before <= -MAX_ELEMENTS || before >= MAX_ELEMENTS || behind <= -MAX_ELEMENTS || behind >= MAX_ELEMENTS)
      return infer_error(inf, "pads_begin and pads_end: expected numbers below 2^47");
    const Extent e = src->shape.extent[i];
    if (are_numbers && extent_is_literal(e) && e.value + before + behind < 0)
      return infer_error(inf, "pads_begin and pads_end: expected to remove at most %lld elements of %s on axis %d",
                         (long long)e.value, src->name, i);
    if (!infer_padded_extent(inf, node, i)) return false;
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
    reads[i] = pads ? (AxisRead){-item_value(node_attribute(node, "pads_begin"), (size_t)i), 1}
                    : read_slice(&slices[i], extent < 0 ? 2 : extent, &count);
  }
}

bool node_has_named_reads(const Node *node, int axis, Extent *first, Extent *last) {
  AxisSlice slices[MAX_RANK];
  *first = *last = EXTENT_UNKNOWN;
  if (operator_has_attribute(node->op, "pads_begin")) {
    *first = named_item(node_attribute(node, "pads_begin"), (size_t)axis);
    *last = named_item(node_attribute(node, "pads_end"), (size_t)axis);
  } else if (find_slices(NULL, node, node->inputs[0]->shape.rank, slices)) {
    *first = slices[axis].named_start;
    *last = slices[axis].named_end;
  }
  return first->dim || last->dim;
}

bool node_read_formulas(const Node *node, int axis, Formula *first, Formula *count) {
  const Shape *src = &node->inputs[0]->shape;
  AxisSlice slices[MAX_RANK];
  Formula pads;
  if (!operator_has_attribute(node->op, "pads_begin"))
    return find_slices(NULL, node, src->rank, slices) && slice_formulas(&slices[axis], src->extent[axis], first, count);
  first->nterms = 0;
  return item_formula(node_attribute(node, "pads_begin"), (size_t)axis, &pads) && formula_add(first, &pads, -1) &&
         formula_of(node->outputs[0]->shape.extent[axis], count);
}

bool node_left_out(const Node *node, int axis, Formula *front, Formula *behind) {
  const Formula one = {.nterms = 1, .terms = {{.factor = 1}}};
  const Extent whole = node->inputs[0]->shape.extent[axis];
  AxisSlice slices[MAX_RANK];
  Formula first, count;
  if (!find_slices(NULL, node, node->inputs[0]->shape.rank, slices)) return false;
  const int64_t step = slices[axis].step;
  if (!slice_formulas(&slices[axis], whole, &first, &count)) return false;
  Formula last = first; // of no elements: the index before the first one
  if (!formula_add(&last, &count, step) || !formula_add(&last, &one, -step)) return false;
  *front = step > 0 ? first : last;
  return formula_of(whole, behind) && formula_add(behind, &one, -1) &&
         formula_add(behind, step > 0 ? &last : &first, -1);
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
    Extent e;
    bool ok = true;
    if (times == 1) ok = infer_same_extent(inf, src, i, dst, i);
    else if (!times) ok = infer_extent_beside(inf, dst, i, EXTENT(0), src);
    else if (extent_is_literal(from) && from.value >= MAX_ELEMENTS / times) ok = infer_too_long(inf, src);
    else if (extent_is_unknown(from))
      ok = infer_quotient(inf, to, EXTENT(times), &e) && infer_computed_extent(inf, src, i, e, dst);
    else ok = infer_product(inf, from, EXTENT(times), &e) && infer_computed_extent(inf, dst, i, e, src);
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
