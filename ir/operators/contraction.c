// Inference and check functions of products and convolutions.
#include "ir/operators/contraction.h"

#include "ir/operators/interpolate.h"
#include "ir/operators/norm.h"
#include "ir/operators/rules.h"
#include "ir/operators/window.h"

#include <string.h>

enum { MATRIX_AXES = 2, BATCH_AXIS = 0, SHAPE_TEXT = 160 };

// Products

Product product_of_ranks(int src_rank, int weights_rank, bool transpose_a, bool transpose_b) {
  Product p = {-1, 0, 0, -1, -1, -1, 0};
  if (src_rank >= MATRIX_AXES) {
    p.src_m = src_rank - (transpose_a ? 1 : 2);
    p.src_k = src_rank - (transpose_a ? 2 : 1);
    p.nbatch = src_rank - MATRIX_AXES;
  }
  if (weights_rank >= MATRIX_AXES) {
    p.weights_k = weights_rank - (transpose_b ? 1 : 2);
    p.weights_n = weights_rank - (transpose_b ? 2 : 1);
    if (weights_rank - MATRIX_AXES > p.nbatch) p.nbatch = weights_rank - MATRIX_AXES;
  }
  if (p.src_m >= 0) p.dst_m = p.nbatch;
  if (p.weights_n >= 0) p.dst_n = p.nbatch + (p.src_m >= 0);
  return p;
}

Product node_product(const Node *node) {
  return product_of_ranks(node->inputs[0]->shape.rank, node->inputs[1]->shape.rank, node_bool(node, "transpose_a"),
                          node_bool(node, "transpose_b"));
}

void matmul_domain(const Node *node, Domain *d) {
  *d = (Domain){.shape = node->outputs[0]->shape, .nextra = 1};
  d->extra[0] = node->inputs[0]->shape.extent[node_product(node).src_k];
}

int product_batch_axis(const Product *p, int rank, int batch_axis) {
  return rank - MATRIX_AXES - p->nbatch + batch_axis;
}

static bool batch_error(Inference *inf, const Value *a, int axis_a, const Value *b, int axis_b) {
  char shape_a[SHAPE_TEXT], shape_b[SHAPE_TEXT];
  return infer_error(inf, "axis %d of %s %s and axis %d of %s %s: expected the same extent, or 1", axis_a, a->name,
                     shape_string(&a->shape, shape_a, sizeof shape_a), axis_b, b->name,
                     shape_string(&b->shape, shape_b, sizeof shape_b));
}

static bool infer_batch_axis(Inference *inf, const Product *p, int axis) {
  Value *a = inf->node->inputs[0], *b = inf->node->inputs[1], *dst = inf->node->outputs[0];
  const int axis_a = product_batch_axis(p, a->shape.rank, axis), axis_b = product_batch_axis(p, b->shape.rank, axis);
  if (axis_a < 0) return infer_same_extent(inf, b, axis_b, dst, axis);
  if (axis_b < 0) return infer_same_extent(inf, a, axis_a, dst, axis);
  const Extent ea = a->shape.extent[axis_a], eb = b->shape.extent[axis_b];
  if (extent_equals(ea, EXTENT(1))) return infer_same_extent(inf, b, axis_b, dst, axis);
  if (extent_equals(eb, EXTENT(1))) return infer_same_extent(inf, a, axis_a, dst, axis);
  const bool knows_a = !extent_is_unknown(ea), knows_b = !extent_is_unknown(eb);
  if (knows_a && knows_b && !extent_equals(ea, eb)) return batch_error(inf, a, axis_a, b, axis_b);
  if (knows_a) return infer_same_extent(inf, a, axis_a, dst, axis);
  if (knows_b) return infer_same_extent(inf, b, axis_b, dst, axis);
  return !extent_equals(dst->shape.extent[axis], EXTENT(1)) ||
         (infer_extent(inf, a, axis_a, EXTENT(1)) && infer_extent(inf, b, axis_b, EXTENT(1)));
}

bool infer_matmul(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *weights = node->inputs[1], *bias = node->inputs[2], *dst = node->outputs[0];
  if (!infer_result_type(inf, src, dst, false)) return false;
  if (src->shape.rank == 0 || weights->shape.rank == 0)
    return infer_rank_at_least(inf, src->shape.rank == 0 ? src : weights, 1);
  if (src->shape.rank < 0 || weights->shape.rank < 0) return true;
  const Product p = node_product(node);
  const int rank = p.nbatch + (p.dst_m >= 0) + (p.dst_n >= 0);
  if (!infer_rank_beside(inf, dst, rank, src->shape.rank > weights->shape.rank ? src : weights)) return false;
  if (!infer_same_extent(inf, src, p.src_k, weights, p.weights_k)) return false;
  if (p.dst_m >= 0 && !infer_same_extent(inf, src, p.src_m, dst, p.dst_m)) return false;
  if (p.dst_n >= 0 && !infer_same_extent(inf, weights, p.weights_n, dst, p.dst_n)) return false;
  for (int axis = 0; axis < p.nbatch; axis++)
    if (!infer_batch_axis(inf, &p, axis)) return false;
  return !bias || infer_broadcast_to(inf, bias, dst);
}

// Convolutions

Convolution node_convolution(const Node *node) {
  const int rank = node_side(node, SIDE_LARGE)->shape.rank;
  const bool has_kernel_first = weights_axis(node, 0) == 0; // XIO and XOI, else OIX and IOX
  return (Convolution){.groups = node_s64(node, "groups"),
                       .nspatial = rank - 2,
                       .first_spatial = spatial_axis(node),
                       .channels = node_channel_axis(node, rank),
                       .weights_small = has_kernel_first ? rank - 1 : 0,
                       .weights_large = has_kernel_first ? rank - 2 : 1,
                       .weights_kernel = weights_axis(node, 0)};
}

void convolution_domain(const Node *node, Domain *d) {
  const Convolution c = node_convolution(node);
  const WindowSide made = node->op->outputs[0].side;
  const Shape *small = &node_side(node, SIDE_SMALL)->shape, *weights = &node_side(node, SIDE_WEIGHTS)->shape;
  *d = (Domain){.shape = node->outputs[0]->shape, .ngroups = c.groups, .split_axis = c.channels};
  if (made == SIDE_WEIGHTS) {
    d->split_axis = c.weights_small;
    d->extra[d->nextra++] = small->extent[BATCH_AXIS];
  }
  for (int i = 0; i < c.nspatial; i++)
    d->extra[d->nextra++] =
        made == SIDE_WEIGHTS ? small->extent[c.first_spatial + i] : weights->extent[c.weights_kernel + i];
  if (made == SIDE_SMALL) d->extra[d->nextra++] = weights->extent[c.weights_large];
  const Extent all = weights->extent[c.weights_small];
  if (made == SIDE_LARGE) d->extra[d->nextra++] = c.groups == 1 ? all : EXTENT(extent_value(all) / c.groups);
}

static bool divisor_error(Inference *inf, const Value *v, int axis, int64_t groups) {
  char shape[SHAPE_TEXT];
  return infer_error(inf, "groups: expected a divisor of the %lld channels of %s %s, found %lld",
                     (long long)v->shape.extent[axis].value, v->name, shape_string(&v->shape, shape, sizeof shape),
                     (long long)groups);
}

// The number of the large side's channels is the weights' times the number of groups.
static bool infer_channels(Inference *inf, const Convolution *c, Value *large, Value *small, Value *weights) {
  char shape[SHAPE_TEXT], beside[SHAPE_TEXT];
  if (!infer_same_extent(inf, weights, c->weights_small, small, c->channels)) return false;
  if (c->groups == 1) return infer_same_extent(inf, weights, c->weights_large, large, c->channels);
  const Extent of_small = small->shape.extent[c->channels], of_large = large->shape.extent[c->channels];
  const Extent of_group = weights->shape.extent[c->weights_large];
  if (extent_is_literal(of_small) && of_small.value % c->groups)
    return divisor_error(inf, small, c->channels, c->groups);
  if (extent_is_literal(of_group)) {
    int64_t channels;
    if (__builtin_mul_overflow(of_group.value, c->groups, &channels) || channels >= MAX_ELEMENTS)
      return infer_error(inf, "groups: expected fewer than 2^47 channels, found %lld groups of those of %s %s",
                         (long long)c->groups, weights->name, shape_string(&weights->shape, beside, sizeof beside));
    if (!extent_is_unknown(of_large) && !extent_equals(of_large, EXTENT(channels)))
      return infer_error(inf, "%s %s: expected extent %lld on axis %d, for %lld groups of the channels of %s %s",
                         large->name, shape_string(&large->shape, shape, sizeof shape), (long long)channels,
                         c->channels, (long long)c->groups, weights->name,
                         shape_string(&weights->shape, beside, sizeof beside));
    return infer_extent(inf, large, c->channels, EXTENT(channels));
  }
  if (!extent_is_literal(of_large)) return true;
  if (of_large.value % c->groups) return divisor_error(inf, large, c->channels, c->groups);
  return infer_extent(inf, weights, c->weights_large, EXTENT(of_large.value / c->groups));
}

Value *convolution_bias(const Node *node) {
  for (uint32_t i = 0; i < node->op->ninputs; i++)
    if (strcmp(node->op->inputs[i].name, "bias") == 0) return node->inputs[i];
  return NULL;
}

bool infer_convolution(Inference *inf, Node *node) {
  if (!infer_window_ranks(inf, node) || !infer_given_shape(inf, node)) return false;
  Value *large = node_side(node, SIDE_LARGE), *small = node_side(node, SIDE_SMALL);
  Value *weights = node_side(node, SIDE_WEIGHTS);
  const Convolution c = node_convolution(node);
  if (!infer_same_extent(inf, large, BATCH_AXIS, small, BATCH_AXIS)) return false;
  if (!infer_channels(inf, &c, large, small, weights) || !infer_windows(inf, node)) return false;
  Value *bias = convolution_bias(node);
  return !bias || (infer_rank(inf, bias, 1) && infer_same_extent(inf, bias, 0, node->outputs[0], c.channels));
}

bool check_convolution(Node *node, Diagnostics *d) {
  return check_window(node, d) && check_given_shape(node, d);
}

int contraction_operand(const Node *node, const Value *v) {
  int operand = 0;
  if (!(node->op->traits & TRAIT_MULTIPLIES)) return 0;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    if (node->inputs[i] != v) continue;
    if (operand || i > 1) return 0;
    operand = (int)i + 1;
  }
  return operand;
}
