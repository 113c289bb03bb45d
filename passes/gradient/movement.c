// Gradients of operators that move elements: the inverse movement.
#include "ir/operators/movement.h"

#include "passes/gradient/gradient_state.h"

PASSES_ON(StaticReshape) {
  const Value *src = node->inputs[0];
  gradient_give(g, node, 0, gradient_reshaped(g, diff, &src->shape));
}

PASSING_RULE(StaticTranspose, gradient_give(g, node, 0, gradient_transposed_back(g, node, diff)))

static Value *index_on(Gradient *g, Value *v, int axis) {
  Value *index = v ? gradient_apply(g, OP_GenIndex, NULL, TYPE_S32, &v->shape, v, NULL, NULL) : NULL;
  if (index) *node_attribute_slot(index->producer, "axis") = (AttributeValue){.is_set = true, .s64 = axis};
  return index;
}

// Moves the diagonal back to the first of its two axes, and gives the second one extent 1. Elements whose indices on
// both axes differ get zeros.
PASSES_ON(Diagonal) {
  const Value *src = node->inputs[0];
  const int last = diff->shape.rank - 1;
  int to[MAX_RANK] = {0}, axes[2] = {0}, naxes = 0, nmoved = 0;
  int64_t order[MAX_RANK];
  Shape moved = diff->shape, spread = src->shape;
  Value *zeros = gradient_filled(g, src->type, &src->shape, 0);
  if (!zeros) return;
  diagonal_axes(node, to);
  for (int i = 0; i < src->shape.rank; i++) {
    if (to[i] == last) axes[naxes++] = i;
    if (to[i] == last && naxes == 2) continue;
    order[nmoved] = to[i];
    moved.extent[nmoved++] = src->shape.extent[i];
  }
  spread.extent[axes[1]] = EXTENT(1);
  diff = gradient_reshaped(g, gradient_transposed(g, diff, order, &moved), &spread);
  Value *is_on = gradient_binary(g, OP_Equal, index_on(g, zeros, axes[0]), index_on(g, zeros, axes[1]));
  gradient_give(g, node, 0, gradient_select(g, is_on, diff, zeros));
}

PASSING_RULE(Reorder, gradient_give(g, node, 0, diff))

// Elements to add by axis, in front and behind. Negative numbers remove elements.
typedef struct Pads {
  Extent front[MAX_RANK], behind[MAX_RANK]; // literal numbers may be negative
} Pads;

static Extent number(int64_t n) {
  return (Extent){NULL, n};
}

static Pads no_pads(void) {
  Pads pads;
  for (int i = 0; i < MAX_RANK; i++) pads.front[i] = pads.behind[i] = number(0);
  return pads;
}

static bool pads_anything(const Pads *pads, int axis) {
  const Extent front = pads->front[axis], behind = pads->behind[axis];
  return front.dim || front.value || behind.dim || behind.value;
}

// Pads v with zeros to the shape.
static Value *padded(Gradient *g, Value *v, const Pads *pads, const Shape *shape) {
  bool has_any = false;
  for (int i = 0; i < shape->rank; i++) has_any |= pads_anything(pads, i);
  if (!has_any || !v) return v;
  Value *wide = gradient_apply(g, OP_Pad, NULL, v->type, shape, v, NULL, NULL);
  if (!wide) return NULL;
  gradient_set_extents(g, wide->producer, "pads_begin", pads->front, (size_t)shape->rank);
  gradient_set_extents(g, wide->producer, "pads_end", pads->behind, (size_t)shape->rank);
  return wide;
}

static void refuse_long(Gradient *g, const Node *node) {
  gradient_refuse(g, node,
                  "an index is neither a number nor a sum of few products of named extents: give these numbers");
}

// The extent of a formula that may be a negative number. False after refusing others.
static bool extent_of_formula(Gradient *g, const Node *node, const Formula *f, Extent *e) {
  int64_t n;
  if (formula_is_number(f, &n)) {
    *e = number(n);
    return true;
  }
  if (!graph_extent(g->graph, f, e)) return gradient_out_of_memory(g), false;
  if (!e->dim) refuse_long(g, node);
  return e->dim != NULL;
}

// v[start : end : step] along the axis; the result has the shape.
static Value *sliced(Gradient *g, Value *v, int axis, int64_t start, int64_t end, int64_t step, const Shape *shape) {
  Node *node = gradient_node(g, OP_Slice, NULL);
  if (!node || !v) return NULL;
  gradient_set_list(g, node, "starts", &start, 1);
  gradient_set_list(g, node, "ends", &end, 1);
  gradient_set_list(g, node, "axes", (const int64_t[]){axis}, 1);
  gradient_set_list(g, node, "steps", &step, 1);
  node_set_input(node, 0, v);
  return gradient_output(g, node, 0, v->type, shape);
}

// The part of v that begins at the place on the axis, and has the shape. The last part ends where v ends.
static Value *part_of(Gradient *g, const Node *node, Value *v, int axis, Formula place, const Shape *shape,
                      bool is_last) {
  Node *slice = v ? gradient_node(g, OP_Slice, NULL) : NULL;
  Formula own;
  Extent start, end = number(MAX_ELEMENTS);
  if (!slice || !extent_of_formula(g, node, &place, &start)) return NULL;
  if (!is_last && !(formula_of(shape->extent[axis], &own) && formula_add(&place, &own, 1))) {
    refuse_long(g, node);
    return NULL;
  }
  if (!is_last && !extent_of_formula(g, node, &place, &end)) return NULL;
  gradient_set_extents(g, slice, "starts", &start, 1);
  gradient_set_extents(g, slice, "ends", &end, 1);
  gradient_set_list(g, slice, "axes", (const int64_t[]){axis}, 1);
  node_set_input(slice, 0, v);
  return gradient_output(g, slice, 0, v->type, shape);
}

static Value *reversed(Gradient *g, Value *v, int axis) {
  return v ? sliced(g, v, axis, -1, -MAX_ELEMENTS, -1, &v->shape) : NULL;
}

// v with step - 1 zeros behind each element along the axis.
static Value *spread(Gradient *g, Value *v, int axis, int64_t step) {
  if (!v) return NULL;
  Pads pads = no_pads();
  Shape shape = v->shape, joined = v->shape;
  if (!extent_multiply(g->graph, v->shape.extent[axis], EXTENT(step), &joined.extent[axis]))
    return gradient_out_of_memory(g);
  for (int i = shape.rank++; i > axis + 1; i--) shape.extent[i] = shape.extent[i - 1];
  shape.extent[axis + 1] = EXTENT(1);
  v = gradient_reshaped(g, v, &shape);
  shape.extent[axis + 1] = EXTENT(step);
  pads.behind[axis + 1] = number(step - 1);
  return gradient_reshaped(g, padded(g, v, &pads, &shape), &joined);
}

// The zeros beside the elements that a slice has read along an axis, after steps are undone. False after a refusal.
static bool find_zeros(Gradient *g, const Node *node, int axis, int64_t step, Pads *pads) {
  const Extent src = node->inputs[0]->shape.extent[axis];
  Formula first, count, all;
  const bool are_formulas = node_read_formulas(node, axis, &first, &count) && formula_of(src, &all);
  const Formula one = {.nterms = 1, .terms = {{.factor = 1}}};
  const int64_t distance = step < 0 ? -step : step;
  if (!are_formulas || (step < 0 && !(formula_add(&first, &count, step) && formula_add(&first, &one, distance))) ||
      !formula_add(&all, &first, -1) || !formula_add(&all, &count, -distance)) {
    gradient_refuse(g, node, "it takes a part of an axis with a named extent, and which part depends on its number");
    return false;
  }
  return extent_of_formula(g, node, &first, &pads->front[axis]) &&
         extent_of_formula(g, node, &all, &pads->behind[axis]);
}

// Writes each element back to where the slice read it; elements that the slice leaves out get zeros.
PASSES_ON(Slice) {
  const Value *src = node->inputs[0];
  const Shape taken = diff->shape;
  Pads pads = no_pads();
  AxisRead reads[MAX_RANK];
  node_reads(node, reads);
  for (int i = 0; i < taken.rank; i++) {
    const int64_t extent = extent_value(src->shape.extent[i]), count = extent_value(taken.extent[i]);
    const int64_t step = reads[i].step < 0 ? -reads[i].step : reads[i].step;
    Extent first, last;
    const bool is_named = node_has_named_reads(node, i, &first, &last);
    const bool is_literal = extent_is_literal(src->shape.extent[i]) && extent_is_literal(taken.extent[i]) && !is_named;
    if (step > 1 && taken.rank == MAX_RANK) {
      gradient_refuse(g, node, "expected fewer than 8 axes where steps are not 1");
      return;
    }
    if (is_literal) {
      const int64_t begin = reads[i].step < 0 ? reads[i].begin + reads[i].step * (count - 1) : reads[i].begin;
      pads.front[i] = number(begin);
      pads.behind[i] = number(extent - begin - count * step);
    } else if ((is_named || !extent_equals(src->shape.extent[i], taken.extent[i])) &&
               !find_zeros(g, node, i, reads[i].step, &pads)) {
      return;
    }
    if (reads[i].step < 0) diff = reversed(g, diff, i);
    if (step > 1) diff = spread(g, diff, i, step);
  }
  gradient_give(g, node, 0, padded(g, diff, &pads, &src->shape));
}

static bool is_named_item(const AttributeValue *list, size_t i) {
  return list->list.extents && list->list.extents[i].dim;
}

// The number of elements that a pad removes: names only add, as a formula that becomes negative is an error.
static int64_t removed(const AttributeValue *pads, size_t i) {
  return is_named_item(pads, i) || pads->list.items[i] >= 0 ? 0 : -pads->list.items[i];
}

// A Pad with negated pads: removed elements get zeros, added elements are removed. A Slice removes named pads.
PASSES_ON(Pad) {
  const Value *src = node->inputs[0];
  const AttributeValue *begin = node_attribute(node, "pads_begin"), *end = node_attribute(node, "pads_end");
  Pads pads = no_pads();
  Shape shape = diff->shape;
  for (int i = 0; i < src->shape.rank; i++) {
    Formula front = {0}, kept;
    const size_t k = (size_t)i;
    if (!is_named_item(begin, k) && !is_named_item(end, k)) {
      pads.front[i] = number(-begin->list.items[k]);
      pads.behind[i] = number(-end->list.items[k]);
      continue;
    }
    const int64_t before = removed(begin, k), after = removed(end, k);
    const Formula less = {.nterms = before + after > 0, .terms = {{.factor = before + after}}};
    pads.front[i] = number(before);
    pads.behind[i] = number(after);
    const bool is_read = (before || item_formula(begin, k, &front)) && formula_of(src->shape.extent[i], &kept) &&
                         formula_add(&kept, &less, -1);
    if (!is_read) refuse_long(g, node);
    if (!is_read || !extent_of_formula(g, node, &kept, &shape.extent[i])) return;
    if (extent_is_unknown(shape.extent[i])) {
      gradient_refuse(g, node, "it removes more elements than its input has beside a named number of pads");
      return;
    }
    diff = part_of(g, node, diff, i, front, &shape, false);
  }
  gradient_give(g, node, 0, padded(g, diff, &pads, &src->shape));
}

// For 16-bit floats, sums are f32 and rounded once.
PASSES_ON(Gather) {
  const Value *src = node->inputs[0];
  Value *wide = gradient_widened(g, diff), *indices = gradient_saved(g, node->inputs[1]);
  if (!wide) return;
  gradient_give(g, node, 0, gradient_apply(g, OP_GatherBackward, node, wide->type, &src->shape, indices, wide, NULL));
}

// Whether all indices are constants along the axis, from its start or from its end.
static bool are_inside(const Value *indices, Extent extent) {
  if (!indices->constant || indices->constant->file || !extent_is_literal(extent)) return false;
  const int64_t nelems = indices->constant->is_splat ? 1 : shape_nelems(&indices->shape);
  bool all = nelems >= 0;
  for (int64_t i = 0; i < nelems && all; i++) {
    const double index = type_load(indices->type, indices->constant->data, (size_t)i);
    all = index >= (double)-extent.value && index < (double)extent.value;
  }
  return all;
}

// 0 in place of the rows whose index is outside of the axis: Gather gives NaN there, also for an axis of ones.
static Value *inside_rows(Gradient *g, Value *rows, Value *indices, int axis, Extent extent) {
  const Shape all = {.rank = 1, .extent = {extent}};
  Value *ones = gradient_filled(g, TYPE_F32, &all, 1);
  if (!rows || !indices || !ones) return NULL;
  Value *found = gradient_apply(g, OP_Gather, NULL, ones->type, &indices->shape, ones, indices, NULL);
  Shape shape = indices->shape;
  const int nbehind = rows->shape.rank - axis - shape.rank;
  if (!found) return NULL;
  for (int i = 0; i < nbehind; i++) shape.extent[shape.rank++] = EXTENT(1);
  if (nbehind) found = gradient_reshaped(g, found, &shape);
  Value *is_inside = gradient_binary(g, OP_Equal, found, gradient_number(g, TYPE_F32, 1));
  return gradient_select(g, is_inside, rows, gradient_number(g, rows->type, 0));
}

// Each row of diff_dst gets the gradient of the row that it was added to.
PASSES_ON(GatherBackward) {
  enum { INDICES, DIFF_DST };
  const Value *indices = node->inputs[INDICES], *diff_dst = node->inputs[DIFF_DST];
  const int axis = axis_of(node, diff->shape.rank);
  const Extent extent = diff->shape.extent[axis];
  Value *given = gradient_saved(g, indices);
  Value *rows = gradient_apply(g, OP_Gather, node, diff->type, &diff_dst->shape, diff, given, NULL);
  if (!are_inside(indices, extent)) rows = inside_rows(g, rows, given, axis, extent);
  gradient_give(g, node, DIFF_DST, rows);
}

NO_GRADIENT(OneHot, ZERO("labels are integers"))
NO_GRADIENT(GenIndex, ZERO("the result depends on the shape alone"))

// Each input gets its part of the gradient.
PASSES_ON(Concat) {
  const int axis = axis_of(node, diff->shape.rank);
  Formula place = {0}, own;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Value *input = node->inputs[i];
    const bool is_last = i + 1 == node->ninputs;
    if (gradient_is_wanted(g, input))
      gradient_give(g, node, i, node->ninputs > 1 ? part_of(g, node, diff, axis, place, &input->shape, is_last) : diff);
    if (is_last || g->failed) return;
    if (formula_of(input->shape.extent[axis], &own) && formula_add(&place, &own, 1)) continue;
    refuse_long(g, node);
    return;
  }
}

// The gradients of the parts, concatenated; zeros for parts without gradient.
PASSES_ON(Split) {
  const Value *src = node->inputs[0];
  const int axis = axis_of(node, src->shape.rank);
  const uint32_t nparts = split_nparts(node);
  (void)diff;
  Node *concat = gradient_variadic(g, OP_Concat, nparts);
  for (uint32_t i = 0; i < nparts && concat; i++) {
    Shape shape = src->shape;
    if (!split_extent(node, g->graph, i, &shape.extent[axis])) {
      gradient_out_of_memory(g);
      return;
    }
    if (extent_is_unknown(shape.extent[axis])) {
      gradient_refuse(g, node, "it cuts a named extent into parts: give the extent a number");
      return;
    }
    Value *part = gradient_of_output(g, node, i);
    if (!part) part = gradient_cast(g, gradient_filled(g, src->type, &shape, 0), src->type);
    if (!part) return;
    node_set_input(concat, i, part);
  }
  if (!concat) return;
  *node_attribute_slot(concat, "axis") = (AttributeValue){.is_set = true, .s64 = axis};
  gradient_give(g, node, 0, gradient_output(g, concat, 0, src->type, &src->shape));
}

// Sums over the copies: reshapes a repeated axis from [repeats * extent] to [repeats, extent], and reduces `repeats`.
PASSES_ON(Tile) {
  const Value *src = node->inputs[0];
  const int64_t *repeats = node_attribute(node, "repeats")->list.items;
  for (int i = 0; i < src->shape.rank && diff; i++) {
    Shape cut = diff->shape;
    if (repeats[i] == 1) continue;
    if (src->shape.rank == MAX_RANK) {
      gradient_refuse(g, node, "expected fewer than 8 axes");
      return;
    }
    for (int k = cut.rank++; k > i; k--) cut.extent[k] = cut.extent[k - 1];
    cut.extent[i] = EXTENT(repeats[i]);
    cut.extent[i + 1] = src->shape.extent[i];
    diff = gradient_reduced(g, OP_ReduceSum, gradient_reshaped(g, diff, &cut), 1U << i, false);
  }
  gradient_give(g, node, 0, diff);
}
