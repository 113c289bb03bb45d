// Inference and check functions of resampling.
#include "ir/operators/interpolate.h"

#include "ir/operators/rules.h"

#include <math.h>

enum { LEAST_RANK = 3, MOST_RANK = 5, NXC = 0 };

// Integers up to here are exact in f64.
#define GREATEST_EXACT ((int64_t)1 << 53)

int spatial_axis(const Node *node) {
  return node_s64(node, "data_format") == NXC ? 1 : 2;
}

// The values with the extents of Interpolate's input (read side) and output (written side); for the gradient, diff_src
// and diff_dst.
static const Value *read_side(const Node *node) {
  return node->op->traits & TRAIT_ADJOINT ? node->outputs[0] : node->inputs[0];
}

static const Value *written_side(const Node *node) {
  return node->op->traits & TRAIT_ADJOINT ? node->inputs[1] : node->outputs[0];
}

Resampling node_resampling(const Node *node, int spatial) {
  int axis = spatial_axis(node) + spatial;
  Extent input = read_side(node)->shape.extent[axis], output = written_side(node)->shape.extent[axis];
  Resampling r = {
      .input = extent_value(input),
      .output = extent_value(output),
      .monomial = extent_equals(input, output) ? 0 : extent_monomial(input) | extent_monomial(output),
      .is_nearest = node_s64(node, "mode") == INTERPOLATE_NEAREST,
  };
  if (node_s64(node, "coordinate_transformation_mode") == COORDINATES_ALIGN_CORNERS) {
    r.factor = r.input - 1;
    r.divisor = r.output > 1 ? r.output - 1 : 1;
  } else { // (o + 1/2) * input / output - 1/2
    r.factor = 2 * r.input;
    r.offset = r.input - r.output;
    r.divisor = 2 * r.output;
  }
  return r;
}

// An upper bound on the integers that occur in computing source coordinates along one axis.
static int64_t resampling_greatest(const Resampling *r) {
  int64_t input = r->input + 1, output = r->output + 1;
  return input >= GREATEST_EXACT / 8 / output ? GREATEST_EXACT : 8 * input * output;
}

int64_t node_greatest_place(const Node *node) {
  const Value *v = node->op->traits & TRAIT_ADJOINT ? written_side(node) : read_side(node); // the loaded value
  int64_t extent[MAX_RANK] = {0}, stride[MAX_RANK] = {0}, offset = 0, greatest = 0;
  for (int i = 0; i < v->shape.rank; i++) extent[i] = extent_value(v->shape.extent[i]);
  layout_strides(&v->layout, v->shape.rank, extent, stride);
  for (int i = 0; i < v->shape.rank - 2; i++) {
    Resampling r = node_resampling(node, i);
    int axis = spatial_axis(node) + i;
    int64_t own = resampling_greatest(&r);
    if (own > greatest) greatest = own;
    offset += extent[axis] * stride[axis];
  }
  return greatest > offset ? greatest : offset;
}

// The greatest number of outputs to which one input contributes; these outputs are consecutive.
static int64_t resampling_taps(const Resampling *r) {
  if (r->input == r->output) return 1;
  if (r->factor <= 0) return r->output; // all outputs have the same source
  int64_t reach = r->is_nearest ? r->divisor : 2 * r->divisor, taps = (reach + r->factor - 1) / r->factor;
  return taps < r->output ? taps : r->output;
}

// Each spatial axis adds an extra axis over the taps: the elements of diff_dst that contribute to one output element.
void interpolate_backward_domain(const Node *node, Domain *d) {
  *d = (Domain){.shape = node->outputs[0]->shape};
  for (int i = 0; i < d->shape.rank - 2; i++) {
    Resampling r = node_resampling(node, i);
    d->extra[d->nextra++] = EXTENT(resampling_taps(&r));
  }
}

static bool infer_ranks(Inference *inf, Value *const *values, int count) {
  for (int i = 0; i < count; i++) {
    const Value *v = values[i];
    if (v->shape.rank < 0) continue;
    if (v->shape.rank < LEAST_RANK || v->shape.rank > MOST_RANK)
      return infer_error(inf, "%s: expected rank %d to %d, found rank %d", v->name, LEAST_RANK, MOST_RANK,
                         v->shape.rank);
    for (int k = 0; k < count; k++)
      if (!infer_rank_beside(inf, values[k], v->shape.rank, v)) return false;
    return true;
  }
  return true;
}

// Input and output have the same extents on all axes that are not spatial.
static bool infer_sides(Inference *inf, const Node *node, Value *in, Value *out) {
  int rank = in->shape.rank, first = spatial_axis(node);
  for (int axis = 0; axis < rank; axis++)
    if ((axis < first || axis >= first + rank - 2) && !infer_same_extent(inf, in, axis, out, axis)) return false;
  for (int axis = first; axis < first + rank - 2; axis++) {
    int64_t input = extent_value(in->shape.extent[axis]), output = extent_value(out->shape.extent[axis]);
    if (input < 0 || output < 0) continue;
    if (input == 0 && output > 0)
      return infer_error(inf, "%s: expected at least 1 element on axis %d, as %s is not empty", in->name, axis,
                         out->name);
    if (resampling_greatest(&(Resampling){.input = input, .output = output}) >= GREATEST_EXACT)
      return infer_error(inf, "axis %d of %s and %s: expected extents whose product is below 2^50", axis, in->name,
                         out->name);
  }
  return true;
}

static bool infer_sizes_operand(Inference *inf, Value *sizes, int rank) {
  return !sizes || (infer_rank(inf, sizes, 1) && infer_extent(inf, sizes, 0, EXTENT(rank - 2)));
}

static bool is_extent(int64_t number) {
  return number >= 0 && number < MAX_ELEMENTS;
}

// The output's extent on a spatial axis: from `sizes`, or the input's extent times `scales`, in f32 and rounded down.
// Of a named extent only a multiple has a formula.
static bool infer_resized(Inference *inf, const Node *node, int spatial) {
  const AttributeValue *sizes = node_attribute(node, "sizes"), *scales = node_attribute(node, "scales");
  int axis = spatial_axis(node) + spatial;
  Extent in = node->inputs[0]->shape.extent[axis];
  if (sizes->list.count && !is_extent(sizes->list.items[spatial])) return true; // check_interpolate reports it
  if (sizes->list.count)
    return infer_extent_beside(inf, node->outputs[0], axis, EXTENT(sizes->list.items[spatial]), node->inputs[0]);
  const double scale = scales->numbers.items[spatial];
  Extent multiple;
  if (in.dim && scale >= 1 && scale < (double)MAX_ELEMENTS && floor(scale) == scale)
    return infer_product(inf, in, EXTENT((int64_t)scale), &multiple) &&
           infer_computed_extent(inf, node->outputs[0], axis, multiple, node->inputs[0]);
  if (!extent_is_literal(in)) return true;
  float extent = (float)in.value * (float)scale;
  if (!(extent >= 0 && extent < (float)MAX_ELEMENTS))
    return infer_error(inf, "scales: expected numbers that give extents from 0 to below 2^47, found %g on axis %d",
                       scale, axis);
  return infer_extent_beside(inf, node->outputs[0], axis, EXTENT((int64_t)extent), node->inputs[0]);
}

bool infer_interpolate(Inference *inf, Node *node) {
  Value *both[] = {node->inputs[0], node->outputs[0]};
  const AttributeValue *sizes = node_attribute(node, "sizes"), *scales = node_attribute(node, "scales");
  size_t count = sizes->list.count ? sizes->list.count : scales->numbers.count;
  if (both[0]->shape.rank < 0 && both[1]->shape.rank < 0 && count <= MOST_RANK - 2 &&
      !infer_rank(inf, both[0], (int)count + 2))
    return false;
  if (!infer_ranks(inf, both, 2)) return false;
  int rank = both[0]->shape.rank;
  if (rank < 0) return infer_error(inf, "sizes: expected at most %d numbers", MOST_RANK - 2);
  if (count != (size_t)rank - 2)
    return infer_error(inf, "%s: expected a number for each spatial axis, %d, found %zu",
                       sizes->list.count ? "sizes" : "scales", rank - 2, count);
  if (!infer_sizes_operand(inf, node->inputs[1], rank)) return false;
  for (int i = 0; i < rank - 2; i++)
    if (!infer_resized(inf, node, i)) return false;
  return infer_sides(inf, node, both[0], both[1]);
}

bool infer_interpolate_backward(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *diff_dst = node->inputs[1], *diff_src = node->outputs[0];
  Value *all[] = {src, diff_dst, diff_src};
  if (!infer_ranks(inf, all, 3) || !infer_same_shape(inf, src, diff_src)) return false;
  if (diff_src->shape.rank < 0) return true;
  return infer_sizes_operand(inf, node->inputs[2], diff_src->shape.rank) && infer_sides(inf, node, diff_src, diff_dst);
}

bool check_interpolate(Node *node, Diagnostics *d) {
  const AttributeValue *sizes = node_attribute(node, "sizes"), *scales = node_attribute(node, "scales");
  char title[NODE_TITLE_BYTES];
  for (size_t i = 0; i < sizes->list.count; i++)
    if (!is_extent(sizes->list.items[i]))
      return error_at(d, node->position, "sizes of %s: expected extents from 0 to below 2^47, found %lld",
                      node_title(node, title), (long long)sizes->list.items[i]);
  if (!sizes->list.count != !scales->numbers.count) return true;
  return error_at(d, node->position, "%s: expected either sizes or scales", node_title(node, title));
}
