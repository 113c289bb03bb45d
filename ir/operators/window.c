// Inference and check functions of windows: padding, the sides' extents, and the ranges of attributes.
#include "ir/operators/window.h"

#include "ir/graph/extents.h"
#include "ir/operators/interpolate.h"
#include "ir/operators/rules.h"

#include <stdio.h>
#include <string.h>

enum { LEAST_SPATIAL_AXES = 1, AXES_BESIDE = 2, SHAPE_TEXT = 160 };
enum { WEIGHTS_SPATIAL_FIRST = 0 }; // of weights_format: XIO, XOI

// Attributes' numbers are below this limit, so that sums of extents and products with small numbers do not overflow.
#define ATTRIBUTE_LIMIT ((int64_t)1 << 31)

Value *node_side(const Node *node, WindowSide side) {
  for (uint32_t i = 0; i < node->op->ninputs; i++)
    if (node->op->inputs[i].side == side) return node->inputs[i];
  for (uint32_t i = 0; i < node->op->noutputs; i++)
    if (node->op->outputs[i].side == side) return node->outputs[i];
  return NULL;
}

bool window_makes_large(const Node *node) {
  return node->op->outputs[0].side == SIDE_LARGE && operator_has_attribute(node->op, "output_padding") &&
         !operator_has_attribute(node->op, "dst_shape");
}

int weights_axis(const Node *node, int spatial) {
  return node_s64(node, "weights_format") == WEIGHTS_SPATIAL_FIRST ? spatial : AXES_BESIDE + spatial;
}

// Item `spatial` of a list attribute; `otherwise` if the operator has no such attribute or the list is empty.
static int64_t number_of(const Node *node, const char *name, int spatial, int64_t otherwise) {
  if (!operator_has_attribute(node->op, name)) return otherwise;
  const AttributeValue *value = node_attribute(node, name);
  return value->list.count ? value->list.items[spatial] : otherwise;
}

static Extent kernel_extent(const Node *node, int spatial) {
  const Value *weights = node_side(node, SIDE_WEIGHTS);
  return weights ? weights->shape.extent[weights_axis(node, spatial)] : EXTENT(number_of(node, "kernel", spatial, 1));
}

int64_t window_reach(const Window *w) {
  return w->dilation * (w->kernel - 1) + 1;
}

int64_t window_place(const Window *w, int64_t u, int64_t tap) {
  return u * w->stride + tap * w->dilation - w->pad_begin;
}

static int64_t divide_up(int64_t a, int64_t b) { // a >= 0
  return (a + b - 1) / b;
}

Taps window_taps(const Window *w, int64_t u) {
  const int64_t first = window_place(w, u, 0);
  Taps taps = {.begin = first < 0 ? divide_up(-first, w->dilation) : 0,
               .end = first < w->large ? divide_up(w->large - first, w->dilation) : 0};
  if (taps.end > w->kernel) taps.end = w->kernel;
  if (taps.begin > taps.end) taps.begin = taps.end;
  return taps;
}

int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// The inverse of a modulo b, by the extended Euclidean algorithm; a and b are coprime.
static int64_t inverse(int64_t a, int64_t b) {
  int64_t rest = b, next_rest = a % b, x = 0, next = 1;
  while (next_rest) {
    const int64_t quotient = rest / next_rest, new_rest = rest % next_rest, new_x = x - quotient * next;
    rest = next_rest, next_rest = new_rest;
    x = next, next = new_x;
  }
  return x < 0 ? x + b : x;
}

int64_t window_tap_step(const Window *w) {
  return w->stride / greatest_divisor(w->stride, w->dilation);
}

// A window reaches the place by tap k if k * dilation = place + pad_begin, modulo the stride.
int64_t window_tap_at(const Window *w, int64_t place, int64_t from) {
  const int64_t step = window_tap_step(w), divisor = w->stride / step;
  const int64_t distance = (place - window_place(w, 0, 0)) % w->stride;
  const int64_t residue = distance < 0 ? distance + w->stride : distance;
  if (residue % divisor) return INT64_MAX;
  const int64_t first = step == 1 ? 0 : residue / divisor * inverse(w->dilation / divisor, step) % step;
  return first < from ? first + (from - first + step - 1) / step * step : first;
}

// Sets the kernel's extent and the attributes' numbers; the sides' extents are left unknown.
static Window window_begin(const Node *node, int spatial) {
  const Extent kernel = kernel_extent(node, spatial);
  return (Window){.stride = number_of(node, "strides", spatial, 1),
                  .dilation = number_of(node, "dilations", spatial, 1),
                  .pad_begin = number_of(node, "pads_begin", spatial, 0),
                  .pad_end = number_of(node, "pads_end", spatial, 0),
                  .kernel = extent_value(kernel),
                  .kernel_monomial = extent_monomial(kernel),
                  .large = -1,
                  .small = -1};
}

// Whether auto_pad depends on the large side's extent.
static bool pads_by_large(const Node *node, const Window *w) {
  const int64_t auto_pad = node_s64(node, "auto_pad");
  return (auto_pad == AUTO_PAD_SAME_UPPER || auto_pad == AUTO_PAD_SAME_LOWER) && !window_makes_large(node) &&
         w->stride != 1;
}

// Resolves auto_pad. The kernel must be known, and the large side if pads_by_large.
static void resolve_padding(const Node *node, Window *w) {
  const int64_t auto_pad = node_s64(node, "auto_pad");
  if (auto_pad == AUTO_PAD_NONE) return;
  w->pad_begin = w->pad_end = 0;
  if (auto_pad == AUTO_PAD_VALID) return;
  const int64_t rest = pads_by_large(node, w) ? w->large % w->stride : 0;
  const int64_t covered = rest ? rest : w->stride, reach = window_reach(w);
  const int64_t total = reach > covered ? reach - covered : 0;
  w->pad_begin = auto_pad == AUTO_PAD_SAME_LOWER ? divide_up(total, 2) : total / 2;
  w->pad_end = total - w->pad_begin;
  w->pad_monomial = w->kernel_monomial | (pads_by_large(node, w) ? w->large_monomial : 0);
}

Window node_window(const Node *node, int spatial) {
  Window w = window_begin(node, spatial);
  const int axis = spatial_axis(node) + spatial;
  const Extent large = node_side(node, SIDE_LARGE)->shape.extent[axis];
  const Extent small = node_side(node, SIDE_SMALL)->shape.extent[axis];
  w.large = extent_value(large);
  w.small = extent_value(small);
  w.large_monomial = extent_monomial(large);
  w.small_monomial = extent_monomial(small);
  resolve_padding(node, &w);
  return w;
}

void window_domain(const Node *node, Domain *d) {
  *d = (Domain){.shape = node->outputs[0]->shape};
  for (int i = 0; i < d->shape.rank - AXES_BESIDE; i++) d->extra[d->nextra++] = kernel_extent(node, i);
}

bool node_has_few_taps(const Node *node) {
  enum { FEW = 9 };
  int64_t ntaps = 1;
  for (int i = 0; i < node->outputs[0]->shape.rank - AXES_BESIDE && ntaps <= FEW; i++)
    ntaps *= extent_value(kernel_extent(node, i));
  return ntaps <= FEW;
}

void winners_domain(const Node *node, Domain *d) {
  window_domain(node, d);
  if (node_has_few_taps(node)) d->nextra = 0;
}

// Inference

static bool infer_list_counts(Inference *inf, const Node *node) {
  static const char *const lists[] = {"strides", "pads_begin", "pads_end", "dilations", "kernel", "output_padding"};
  const size_t count = node_attribute(node, "strides")->list.count;
  if (count < LEAST_SPATIAL_AXES || count > MOST_SPATIAL_AXES)
    return infer_error(inf, "strides: expected a number for each spatial axis, %d to %d, found %zu", LEAST_SPATIAL_AXES,
                       MOST_SPATIAL_AXES, count);
  for (size_t i = 1; i < sizeof lists / sizeof *lists; i++) {
    if (!operator_has_attribute(node->op, lists[i])) continue;
    const AttributeValue *value = node_attribute(node, lists[i]);
    const bool may_be_empty = strcmp(lists[i], "kernel") != 0;
    if (value->list.count != count && (value->list.count || !may_be_empty))
      return infer_error(inf, "%s: expected a number for each spatial axis, %zu, found %zu", lists[i], count,
                         value->list.count);
  }
  return true;
}

static bool infer_side_rank(Inference *inf, Value *v) {
  const int rank = (int)node_attribute(inf->node, "strides")->list.count + AXES_BESIDE;
  char text[SHAPE_TEXT];
  if (!v || v->shape.rank < 0 || v->shape.rank == rank) return infer_rank(inf, v, rank);
  const char *shape = shape_string(&v->shape, text, sizeof text);
  if (v->shape.rank < LEAST_SPATIAL_AXES + AXES_BESIDE || v->shape.rank > MOST_SPATIAL_AXES + AXES_BESIDE)
    return infer_error(inf, "%s: expected rank %d to %d, found rank %d, %s", v->name, LEAST_SPATIAL_AXES + AXES_BESIDE,
                       MOST_SPATIAL_AXES + AXES_BESIDE, v->shape.rank, shape);
  return infer_error(inf, "strides: expected a number for each spatial axis of %s %s, %d, found %d", v->name, shape,
                     v->shape.rank - AXES_BESIDE, rank - AXES_BESIDE);
}

// Replaces an empty list of strides by ones, as soon as the number of spatial axes is known: it is that of the strides.
static bool complete_strides(Inference *inf, Node *node) {
  AttributeValue *strides = &node->attributes[0]; // of every operator with windows (operators.c)
  static const WindowSide sides[] = {SIDE_LARGE, SIDE_SMALL, SIDE_WEIGHTS};
  static const int64_t ones[MOST_SPATIAL_AXES] = {1, 1, 1};
  int count = -1;
  if (strides->list.count) return true;
  if (operator_has_attribute(node->op, "kernel")) count = (int)node_attribute(node, "kernel")->list.count;
  for (size_t i = 0; i < sizeof sides / sizeof *sides && count < 0; i++) {
    const Value *v = node_side(node, sides[i]);
    if (!v || v->shape.rank < 0) continue;
    count = v->shape.rank - AXES_BESIDE;
    if (count < LEAST_SPATIAL_AXES || count > MOST_SPATIAL_AXES)
      return infer_error(inf, "%s: expected rank %d to %d, found rank %d", v->name, LEAST_SPATIAL_AXES + AXES_BESIDE,
                         MOST_SPATIAL_AXES + AXES_BESIDE, v->shape.rank);
  }
  if (count < LEAST_SPATIAL_AXES || count > MOST_SPATIAL_AXES) return true;
  strides->list.items = ones;
  strides->list.count = (size_t)count;
  return true;
}

bool infer_window_ranks(Inference *inf, const Node *node) {
  if (!complete_strides(inf, inf->node)) return false;
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (node->op->inputs[i].side != SIDE_NONE && !infer_side_rank(inf, node->inputs[i])) return false;
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (node->op->outputs[i].side != SIDE_NONE && !infer_side_rank(inf, node->outputs[i])) return false;
  return infer_list_counts(inf, node);
}

static bool too_short_error(Inference *inf, const Window *w, int axis) {
  const Value *large = node_side(inf->node, SIDE_LARGE), *weights = node_side(inf->node, SIDE_WEIGHTS);
  char shape[SHAPE_TEXT], kernel[SHAPE_TEXT];
  return infer_error(
      inf, "axis %d of %s %s with padding %lld and %lld: expected at least the %lld elements of a window%s%s%s%s", axis,
      large->name, shape_string(&large->shape, shape, sizeof shape), (long long)w->pad_begin, (long long)w->pad_end,
      (long long)window_reach(w), weights ? " of " : "", weights ? weights->name : "", weights ? " " : "",
      weights ? shape_string(&weights->shape, kernel, sizeof kernel) : "");
}

static bool infer_kernel(Inference *inf, const Window *w, int spatial) {
  const Value *weights = node_side(inf->node, SIDE_WEIGHTS);
  int64_t reach;
  char shape[SHAPE_TEXT];
  if (weights && w->kernel == 0)
    return infer_error(inf, "%s %s: expected at least 1 element on axis %d of the kernel", weights->name,
                       shape_string(&weights->shape, shape, sizeof shape), weights_axis(inf->node, spatial));
  if (!__builtin_mul_overflow(w->dilation, w->kernel, &reach) && reach < MAX_ELEMENTS) return true;
  return infer_error(inf,
                     "dilations: expected windows of fewer than 2^47 elements, found a dilation of %lld for a "
                     "kernel of %lld elements",
                     (long long)w->dilation, (long long)w->kernel);
}

// Whether both sides have the same extent for every extent.
static bool sides_are_equal(const Window *w, int64_t output_padding) {
  return w->stride == 1 && !output_padding && window_reach(w) - 1 == w->pad_begin + w->pad_end;
}

// Infers an extent of one side from the other side and the weights.
static bool infer_side(Inference *inf, Value *side, const Value *other, int axis, Extent e) {
  const Value *weights = node_side(inf->node, SIDE_WEIGHTS);
  const Extent found = side->shape.extent[axis];
  char shape[SHAPE_TEXT], beside[SHAPE_TEXT], kernel[SHAPE_TEXT], number[24];
  const bool is_formula = e.dim && e.dim->terms;
  if (!weights || extent_is_unknown(found) || (is_formula ? !extents_are_apart(found, e) : extent_equals(found, e)))
    return infer_computed_extent(inf, side, axis, e, other);
  snprintf(number, sizeof number, "%lld", (long long)e.value);
  return infer_error(inf, "%s %s: expected extent %s on axis %d beside %s %s and %s %s", side->name,
                     shape_string(&side->shape, shape, sizeof shape), e.dim ? e.dim->name : number, axis, other->name,
                     shape_string(&other->shape, beside, sizeof beside), weights->name,
                     shape_string(&weights->shape, kernel, sizeof kernel));
}

// Infers the small side from the large side. Gradients of pooling accept both roundings, floor and ceil.
static bool infer_small(Inference *inf, const Window *w, int axis) {
  const Node *node = inf->node;
  Value *small = node_side(node, SIDE_SMALL), *large = node_side(node, SIDE_LARGE);
  const int64_t free = w->large + w->pad_begin + w->pad_end - window_reach(w);
  if (free < 0) return too_short_error(inf, w, axis);
  const int64_t floor = free / w->stride + 1, ceil = divide_up(free, w->stride) + 1;
  const bool has_rounding = operator_has_attribute(node->op, "rounding_type");
  const bool is_either = !has_rounding && operator_has_attribute(node->op, "kernel");
  const Extent found = small->shape.extent[axis];
  if (is_either && (extent_is_unknown(found) ? floor != ceil : extent_equals(found, EXTENT(ceil)))) return true;
  const bool is_ceil = has_rounding && node_s64(node, "rounding_type") == ROUNDING_CEIL;
  return infer_side(inf, small, large, axis, EXTENT(is_ceil ? ceil : floor));
}

// Infers the large side from the small side: the reach of the first window, and a stride for each further window.
static bool infer_large(Inference *inf, const Window *w, int axis, int64_t output_padding) {
  Value *small = node_side(inf->node, SIDE_SMALL), *large = node_side(inf->node, SIDE_LARGE);
  int64_t steps;
  char shape[SHAPE_TEXT];
  if (__builtin_mul_overflow(w->stride, w->small - 1, &steps) || steps >= MAX_ELEMENTS)
    return infer_error(inf, "strides: expected extents below 2^47, found stride %lld for %lld elements of %s",
                       (long long)w->stride, (long long)w->small, small->name);
  const int64_t windows = steps + window_reach(w) + output_padding;
  const int64_t extent = windows - w->pad_begin - w->pad_end;
  if (extent < 1 && !shape_is_known(&small->shape)) return true; // the small side may be empty
  if (extent < 1 && !window_makes_large(inf->node)) return true; // likewise
  if (extent < 1 && !shape_nelems(&small->shape)) return infer_side(inf, large, small, axis, EXTENT(0));
  if (extent < 1)
    return infer_error(inf,
                       "axis %d: expected padding of less than %lld, the elements in all windows of %s %s, found "
                       "%lld and %lld",
                       axis, (long long)windows, small->name, shape_string(&small->shape, shape, sizeof shape),
                       (long long)w->pad_begin, (long long)w->pad_end);
  return infer_side(inf, large, small, axis, EXTENT(extent));
}

// Infers the small side from the large side, for an operator with window_makes_large.
static bool infer_small_from_made(Inference *inf, const Window *w, int axis, int64_t output_padding) {
  const int64_t free = w->large + w->pad_begin + w->pad_end - output_padding - window_reach(w);
  if (w->large == 0) return true;                // an empty large side implies nothing
  if (free < 0 || free % w->stride) return true; // no extent fits; inference of the large side reports it
  return infer_extent(inf, node_side(inf->node, SIDE_SMALL), axis, EXTENT(free / w->stride + 1));
}

// One side from the other, if that has a named extent: the large side has `stride` elements for each window and
// `excess` further ones. Rounding is a formula only where the stride divides the factors of names.
static bool infer_named_side(Inference *inf, const Window *w, int axis, int64_t output_padding) {
  const Node *node = inf->node;
  Value *small = node_side(node, SIDE_SMALL), *large = node_side(node, SIDE_LARGE);
  const bool makes_large = window_makes_large(node), is_large = large->shape.extent[axis].dim && !makes_large;
  const bool has_rounding = operator_has_attribute(node->op, "rounding_type");
  const bool is_ceil = has_rounding && node_s64(node, "rounding_type") == ROUNDING_CEIL;
  const bool is_either = !has_rounding && operator_has_attribute(node->op, "kernel");
  const int64_t excess = window_reach(w) - w->stride + output_padding - w->pad_begin - w->pad_end;
  const Extent from = (is_large ? large : small)->shape.extent[axis];
  Formula f;
  Extent e;
  if (!from.dim || (is_either && w->stride != 1) || excess <= -MAX_ELEMENTS || excess >= MAX_ELEMENTS) return true;
  const Formula one = {.nterms = 1, .terms = {{.factor = 1}}}, stride = {.nterms = 1, .terms = {{.factor = w->stride}}};
  const bool is_formula =
      formula_of(from, &f) &&
      (is_large ? formula_add(&f, &one, is_ceil ? w->stride - 1 - excess : -excess) && formula_floor(&f, w->stride)
                : (makes_large || w->stride == 1) && formula_multiply(&f, &stride) && formula_add(&f, &one, excess));
  if (!is_formula) return true;
  if (!graph_extent(inf->graph, &f, &e)) return error_out_of_memory(inf->diagnostics);
  return infer_side(inf, is_large ? small : large, is_large ? large : small, axis, e);
}

static bool infer_window(Inference *inf, const Node *node, int spatial) {
  Window w = window_begin(node, spatial);
  const int axis = spatial_axis(node) + spatial;
  Value *large = node_side(node, SIDE_LARGE), *small = node_side(node, SIDE_SMALL);
  const Extent kernel = kernel_extent(node, spatial);
  if (!extent_is_literal(kernel)) return true;
  if (!infer_kernel(inf, &w, spatial)) return false;
  const int64_t output_padding = window_makes_large(node) ? number_of(node, "output_padding", spatial, 0) : 0;
  if (extent_is_literal(large->shape.extent[axis])) w.large = large->shape.extent[axis].value;
  if (w.large < 0 && pads_by_large(node, &w)) return true;
  resolve_padding(node, &w);
  if (sides_are_equal(&w, output_padding) && !infer_same_extent(inf, large, axis, small, axis)) return false;
  if (extent_is_literal(large->shape.extent[axis])) w.large = large->shape.extent[axis].value;
  if (extent_is_literal(small->shape.extent[axis])) w.small = small->shape.extent[axis].value;
  if (window_makes_large(node)) {
    if (w.small >= 0) return infer_large(inf, &w, axis, output_padding);
    return w.large < 0 ? infer_named_side(inf, &w, axis, output_padding)
                       : infer_small_from_made(inf, &w, axis, output_padding);
  }
  if (w.large >= 0) return infer_small(inf, &w, axis);
  if (w.small < 0) return infer_named_side(inf, &w, axis, output_padding);
  return w.small < 1 || w.stride != 1 || infer_large(inf, &w, axis, 0);
}

// Finds a number of a list attribute that is out of range.
static bool find_wrong_number(const Node *node, const char **name, int64_t *least, int64_t *found) {
  static const struct {
    const char *name;
    int64_t least;
  } lists[] = {{"strides", 1},    {"dilations", 1}, {"kernel", 1},
               {"pads_begin", 0}, {"pads_end", 0},  {"output_padding", 0}};
  for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
    if (!operator_has_attribute(node->op, lists[k].name)) continue;
    const AttributeValue *value = node_attribute(node, lists[k].name);
    for (size_t i = 0; i < value->list.count; i++) {
      *name = lists[k].name;
      *least = lists[k].least;
      *found = value->list.items[i];
      if (*found < *least || *found >= ATTRIBUTE_LIMIT) return true;
    }
  }
  return false;
}

bool window_is_valid(const Node *node) {
  const char *name;
  int64_t least, found;
  return !find_wrong_number(node, &name, &least, &found);
}

bool infer_windows(Inference *inf, const Node *node) {
  const int nspatial = (int)node_attribute(node, "strides")->list.count;
  if (!window_is_valid(node)) return true; // check_window reports it
  for (int i = 0; i < nspatial; i++)
    if (!infer_window(inf, node, i)) return false;
  return true;
}

bool check_window(Node *node, Diagnostics *d) {
  char title[NODE_TITLE_BYTES];
  const char *name;
  int64_t least, found;
  return !find_wrong_number(node, &name, &least, &found) ||
         error_at(d, node->position, "%s of %s: expected numbers from %lld to below 2^31, found %lld", name,
                  node_title(node, title), (long long)least, (long long)found);
}

// The shape of an output that does not follow from the inputs

// The name of the attribute that gives the shape; NULL: the operator has none.
static const char *given_shape(const Operator *op) {
  for (uint32_t i = 0; i < op->nattributes; i++)
    if (op->attributes[i].list == LIST_SHAPE) return op->attributes[i].name;
  return NULL;
}

static Value *given_shape_operand(const Node *node) {
  for (uint32_t i = 0; i < node->op->ninputs; i++)
    if (strcmp(node->op->inputs[i].name, given_shape(node->op)) == 0) return node->inputs[i];
  return NULL;
}

static bool infer_given_extent(Inference *inf, const char *name, int axis, int64_t number) {
  Value *v = inf->node->outputs[0];
  const Extent found = v->shape.extent[axis];
  char shape[SHAPE_TEXT];
  if (number < 0 || number >= MAX_ELEMENTS)
    return infer_error(inf, "%s: expected extents from 0 to below 2^47, found %lld", name, (long long)number);
  if (extent_is_unknown(found) || extent_equals(found, EXTENT(number)))
    return infer_extent(inf, v, axis, EXTENT(number));
  return infer_error(inf, "%s %s: expected extent %lld on axis %d, as %s[%d] says", v->name,
                     shape_string(&v->shape, shape, sizeof shape), (long long)number, axis, name, axis);
}

// The operand's numbers are known only if the operand is a constant.
bool infer_given_shape(Inference *inf, const Node *node) {
  const char *name = given_shape(node->op);
  Value *v = node->outputs[0], *operand = name ? given_shape_operand(node) : NULL;
  const int rank = v->shape.rank;
  if (!name) return true;
  if (operand && (!infer_rank(inf, operand, 1) || !infer_extent_beside(inf, operand, 0, EXTENT(rank), v))) return false;
  const Constant *constant = operand ? operand->constant : NULL;
  const AttributeValue *given = node_attribute(node, name);
  if (!constant && given->list.count && given->list.count != (size_t)rank)
    return infer_error(inf, "%s: expected a number for each axis, %d, found %zu", name, rank, given->list.count);
  for (int axis = 0; axis < rank && (constant || given->list.count); axis++) {
    const int64_t number =
        !constant ? given->list.items[axis]
                  : (int64_t)type_load(operand->type, constant->data, constant->is_splat ? 0 : (size_t)axis);
    if (!infer_given_extent(inf, name, axis, number)) return false;
  }
  return true;
}

bool check_given_shape(const Node *node, Diagnostics *d) {
  const char *name = given_shape(node->op);
  const Value *v = node->outputs[0];
  char title[NODE_TITLE_BYTES];
  if (!name || given_shape_operand(node) || node_attribute(node, name)->list.count || v->shape.rank >= 0) return true;
  return error_at(d, node->position, "%s: expected %s, or a shape declared for %s", node_title(node, title), name,
                  v->name);
}
