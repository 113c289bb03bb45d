// Gradients of products and convolutions. Both are linear in each operand, so their gradients are products and
// convolutions.
#include "ir/operators/contraction.h"

#include "ir/graph/extents.h"
#include "ir/operators/norm.h"
#include "ir/operators/window.h"
#include "passes/gradient/gradient_state.h"

enum { MATRIX_AXES = 2 };

// Products

// The operands of a product as matrices: an operand of rank 1 becomes [1, K], and diff gets the corresponding axis of
// extent 1.
typedef struct Matrices {
  Value *src, *weights, *diff;
  bool transpose_a, transpose_b; // src is [K, M], weights are [N, K]
} Matrices;

// Adds the product to the gradient of an input. A product that will be summed over broadcast axes is not rounded
// to 16 bits before the sum.
static void give_product(Gradient *g, const Node *of, uint32_t slot, Value *a, bool transpose_a, Value *b,
                         bool transpose_b) {
  Node *node = a && b ? gradient_node(g, OP_MatMul, NULL) : NULL;
  if (!node) return;
  const Product p = product_of_ranks(a->shape.rank, b->shape.rank, transpose_a, transpose_b);
  Shape shape = {.rank = p.nbatch + MATRIX_AXES};
  for (int i = 0; i < p.nbatch; i++) {
    const int axis_a = product_batch_axis(&p, a->shape.rank, i), axis_b = product_batch_axis(&p, b->shape.rank, i);
    const bool is_of_a = axis_b < 0 || (axis_a >= 0 && !extent_equals(a->shape.extent[axis_a], EXTENT(1)));
    shape.extent[i] = is_of_a ? a->shape.extent[axis_a] : b->shape.extent[axis_b];
  }
  shape.extent[p.dst_m] = a->shape.extent[p.src_m];
  shape.extent[p.dst_n] = b->shape.extent[p.weights_n];
  node_set_input(node, 0, a);
  node_set_input(node, 1, b);
  node_attribute_slot(node, "transpose_a")->boolean = transpose_a;
  node_attribute_slot(node, "transpose_b")->boolean = transpose_b;
  const bool is_whole = shape_equals(&shape, &of->inputs[slot]->shape) || a->type == TYPE_F64;
  gradient_give(g, of, slot, gradient_output(g, node, 0, is_whole ? a->type : TYPE_F32, &shape));
}

// Inserts an axis of extent 1.
static Value *with_axis(Gradient *g, Value *v, int axis) {
  if (!v) return NULL;
  Shape shape = {.rank = v->shape.rank + 1};
  for (int i = 0; i < shape.rank; i++) shape.extent[i] = i == axis ? EXTENT(1) : v->shape.extent[i < axis ? i : i - 1];
  return gradient_reshaped(g, v, &shape);
}

// An operand. For masks it is one row of ones, as all rows would give the same.
static Value *operand(Gradient *g, const Node *node, uint32_t slot, Type type) {
  const Product p = node_product(node);
  const int rows = slot ? p.weights_n : p.src_m;
  Shape thin = node->inputs[slot]->shape;
  for (int i = 0; i < thin.rank; i++)
    if (i != rows) thin.extent[i] = EXTENT(1);
  Value *v = g->given_masks ? gradient_filled(g, type, &thin, 1) : gradient_guarded(g, node, slot);
  v = gradient_cast(g, v, type);
  return v && v->shape.rank < MATRIX_AXES ? with_axis(g, v, 0) : v;
}

static Matrices matrices_of(Gradient *g, const Node *node, Value *diff) {
  const Product p = node_product(node);
  // The operands of a product must have one type: the wider of src's and diff's.
  const Type type = node->inputs[0]->type == TYPE_F64 ? TYPE_F64 : diff->type;
  Matrices m = {.src = operand(g, node, 0, type),
                .weights = operand(g, node, 1, type),
                .diff = gradient_cast(g, diff, type),
                .transpose_a = p.src_m >= 0 && node_bool(node, "transpose_a"),
                .transpose_b = p.weights_n < 0 || node_bool(node, "transpose_b")};
  if (p.dst_n < 0) m.diff = with_axis(g, m.diff, m.diff->shape.rank);
  if (p.dst_m < 0) m.diff = with_axis(g, m.diff, p.nbatch);
  return m;
}

// Joins all axes but the last.
static Value *flattened(Gradient *g, Value *v) {
  if (!v) return NULL;
  Shape shape = {.rank = MATRIX_AXES, .extent = {EXTENT(1), v->shape.extent[v->shape.rank - 1]}};
  for (int i = 0; i < v->shape.rank - 1; i++)
    if (!extent_multiply(g->graph, shape.extent[0], v->shape.extent[i], &shape.extent[0]))
      return gradient_out_of_memory(g);
  return gradient_reshaped(g, v, &shape);
}

// Whether the rows of all batches can be joined, so that one product gives the gradient of weights instead of a sum
// over batches.
static bool joins_batches(const Matrices *m) {
  const Shape *src = &m->src->shape, *diff = &m->diff->shape;
  return src->rank > MATRIX_AXES && m->weights->shape.rank == MATRIX_AXES && !m->transpose_a &&
         extent_is_literal(src->extent[src->rank - 1]) && extent_is_literal(diff->extent[diff->rank - 1]);
}

PASSES_ON(MatMul) {
  gradient_give(g, node, 2, diff);
  Matrices m = matrices_of(g, node, diff);
  if (!m.src || !m.weights || !m.diff) return;
  if (gradient_is_wanted(g, node->inputs[0])) {
    if (m.transpose_a) give_product(g, node, 0, m.weights, m.transpose_b, m.diff, true);
    else give_product(g, node, 0, m.diff, false, m.weights, !m.transpose_b);
  }
  if (!gradient_is_wanted(g, node->inputs[1])) return;
  if (!g->given_masks && joins_batches(&m)) {
    m.src = flattened(g, m.src);
    m.diff = flattened(g, m.diff);
  }
  if (m.transpose_b) give_product(g, node, 1, m.diff, true, m.src, m.transpose_a);
  else give_product(g, node, 1, m.src, !m.transpose_a, m.diff, false);
}

// Convolutions

// A convolution relates a large side, a small side and weights, and is linear in each. The gradient of one is computed
// from the other two, or from their gradients.
typedef struct Sides {
  Value *large, *small, *weights; // of the backward graph
} Sides;

// The operators that compute one of the three from the other two. For the large side, ConvolutionBackwardData is used
// instead of ConvTranspose: both compute the same, but ConvTranspose would need output_padding to give the extents.
typedef struct Makers {
  OperatorId large, small, weights;
} Makers;

static const Makers of_convolution = {OP_ConvolutionBackwardData, OP_Convolution, OP_ConvolutionBackwardWeights};
static const Makers of_transposed = {OP_ConvolutionBackwardData, OP_ConvTransposeBackwardData,
                                     OP_ConvTransposeBackwardWeights};

// Padding that replaces the forward node's.
typedef struct Padding {
  int count; // of spatial axes; 0: the forward node's padding
  int64_t begin[MOST_SPATIAL_AXES], end[MOST_SPATIAL_AXES];
} Padding;

static void set_padding(Gradient *g, Node *node, const Padding *p) {
  if (!p->count) return;
  node_attribute_slot(node, "auto_pad")->s64 = AUTO_PAD_NONE;
  gradient_set_list(g, node, "pads_begin", p->begin, (size_t)p->count);
  gradient_set_list(g, node, "pads_end", p->end, (size_t)p->count);
}

// Adds the gradient by an input of `like` that the operator `id` computes from the sides that are its inputs.
static void give_padded(Gradient *g, const Node *like, uint32_t slot, OperatorId id, const Sides *sides,
                        const Padding *padding) {
  const Value *forward = like->inputs[slot];
  Node *node = gradient_is_wanted(g, forward) ? gradient_node(g, id, like) : NULL;
  if (!node) return;
  set_padding(g, node, padding);
  for (uint32_t i = 0; i < node->op->ninputs; i++) {
    const WindowSide side = node->op->inputs[i].side;
    if (side == SIDE_LARGE) node_set_input(node, i, sides->large);
    if (side == SIDE_SMALL) node_set_input(node, i, sides->small);
    if (side == SIDE_WEIGHTS) node_set_input(node, i, sides->weights);
  }
  gradient_set_given_shape(g, node, &forward->shape);
  gradient_give(g, like, slot, gradient_output(g, node, 0, forward->type, &forward->shape));
}

static void give_made(Gradient *g, const Node *like, uint32_t slot, OperatorId id, const Sides *sides) {
  give_padded(g, like, slot, id, sides, &(Padding){0});
}

// Sums diff over all axes but the channel axis.
static void give_bias(Gradient *g, const Node *node, Value *diff) {
  enum { BIAS = 2 };
  const int rank = diff->shape.rank;
  const uint32_t others = ((1U << rank) - 1) & ~(1U << node_channel_axis(node, rank));
  if (gradient_is_wanted(g, node->inputs[BIAS]))
    gradient_give(g, node, BIAS, gradient_reduced(g, OP_ReduceSum, diff, others, false));
}

PASSES_ON(Convolution) {
  const Sides sides = {gradient_guarded(g, node, 0), diff, gradient_guarded(g, node, 1)};
  give_made(g, node, 0, of_convolution.large, &sides);
  give_made(g, node, 1, of_convolution.weights, &sides);
  give_bias(g, node, diff);
}

static void make_of_data(Gradient *g, const Node *node, Value *diff, const Makers *makers) {
  const bool makes_large = node->op->outputs[0].side == SIDE_LARGE;
  Value *saved = gradient_guarded(g, node, 0);
  const Sides sides = {makes_large ? diff : saved, makes_large ? saved : diff, gradient_guarded(g, node, 1)};
  give_made(g, node, 0, makes_large ? makers->small : makers->large, &sides);
  give_made(g, node, 1, makers->weights, &sides);
}

PASSING_RULE(ConvolutionBackwardData, make_of_data(g, node, diff, &of_convolution))
PASSING_RULE(ConvTransposeBackwardData, make_of_data(g, node, diff, &of_transposed))

static void make_of_weights(Gradient *g, const Node *node, Value *diff, const Makers *makers) {
  const uint32_t large = node->op->inputs[0].side == SIDE_LARGE ? 0 : 1, small = 1 - large;
  const Sides sides = {gradient_guarded(g, node, large), gradient_guarded(g, node, small), diff};
  give_made(g, node, large, makers->large, &sides);
  give_made(g, node, small, makers->small, &sides);
}

PASSING_RULE(ConvolutionBackwardWeights, make_of_weights(g, node, diff, &of_convolution))
PASSING_RULE(ConvTransposeBackwardWeights, make_of_weights(g, node, diff, &of_transposed))

// ConvTranspose's output_padding adds elements to dst that are in no window. If these are a stride or more, the formula
// that derives diff_src's extents from diff_dst's would count another window. So pads_end is reduced by the excess, and
// elements beyond pads_end are cut off diff_dst.
typedef struct Excess {
  Padding padding;
  bool is_cut;
  int64_t cut[MOST_SPATIAL_AXES]; // elements at the end of diff_dst
} Excess;

static Excess excess_of(const Node *node) {
  const AttributeValue *added = node_attribute(node, "output_padding");
  Excess e = {.padding.count = (int)added->list.count};
  for (int i = 0; i < e.padding.count; i++) {
    const Window w = node_window(node, i);
    int64_t left = added->list.items[i];
    e.padding.begin[i] = w.pad_begin;
    e.padding.end[i] = w.pad_end;
    if (left < w.stride) continue;
    e.padding.end[i] -= left < w.pad_end ? left : w.pad_end;
    left -= left < w.pad_end ? left : w.pad_end;
    e.cut[i] = left < w.stride ? 0 : left;
    e.is_cut |= e.cut[i] > 0;
  }
  return e;
}

// Cuts elements off the end of each spatial axis, by pads_end of a depthwise ConvTranspose whose kernel is a single 1.
static Value *cut_end(Gradient *g, const Node *like, Value *v, const int64_t cut[MOST_SPATIAL_AXES]) {
  enum { IOX = 1 };
  static const int64_t ones[MOST_SPATIAL_AXES] = {1, 1, 1}, zeros[MOST_SPATIAL_AXES] = {0};
  const Convolution c = node_convolution(like);
  Value *wide = gradient_widened(g, v);
  Node *node = wide ? gradient_node(g, OP_ConvTranspose, like) : NULL;
  if (!node) return NULL;
  const Extent channels = v->shape.extent[c.channels];
  Shape kernel = {.rank = v->shape.rank, .extent = {channels, EXTENT(1)}}, shape = v->shape;
  for (int i = 0; i < c.nspatial; i++) {
    Extent *e = &shape.extent[c.first_spatial + i];
    kernel.extent[2 + i] = EXTENT(1);
    if (!extent_add(g->graph, *e, -cut[i], EXTENT(1), e)) return gradient_out_of_memory(g);
  }
  node_set_input(node, 0, wide);
  node_set_input(node, 1, gradient_filled(g, wide->type, &kernel, 1));
  node_attribute_slot(node, "auto_pad")->s64 = AUTO_PAD_NONE;
  node_attribute_slot(node, "weights_format")->s64 = IOX;
  node_attribute_slot(node, "groups")->s64 = channels.value;
  gradient_set_list(g, node, "strides", ones, (size_t)c.nspatial);
  gradient_set_list(g, node, "dilations", ones, (size_t)c.nspatial);
  gradient_set_list(g, node, "pads_begin", zeros, (size_t)c.nspatial);
  gradient_set_list(g, node, "pads_end", cut, (size_t)c.nspatial);
  gradient_set_list(g, node, "output_padding", zeros, (size_t)c.nspatial);
  return gradient_cast(g, gradient_output(g, node, 0, wide->type, &shape), v->type);
}

static bool has_no_elements(const Shape *shape) {
  bool has_none = false;
  for (int i = 0; i < shape->rank; i++) has_none |= extent_equals(shape->extent[i], EXTENT(0));
  return has_none;
}

PASSES_ON(ConvTranspose) {
  const Value *src = node->inputs[0], *weights = node->inputs[1], *dst = node->outputs[0];
  const Convolution c = node_convolution(node);
  give_bias(g, node, diff);
  if (has_no_elements(&src->shape) || has_no_elements(&dst->shape)) { // diff_dst may then have no window
    gradient_give(g, node, 0, gradient_filled(g, src->type, &src->shape, 0));
    gradient_give(g, node, 1, gradient_filled(g, weights->type, &weights->shape, 0));
    return;
  }
  for (int i = 0; i < c.nspatial && node_attribute(node, "output_padding")->list.count; i++)
    if (!extent_is_literal(weights->shape.extent[c.weights_kernel + i])) {
      gradient_refuse(g, node, "output_padding needs a kernel whose extents are numbers");
      return;
    }
  const Excess excess = excess_of(node);
  if (excess.is_cut && !extent_is_literal(dst->shape.extent[c.channels])) {
    gradient_refuse(g, node, "output_padding of a stride or more needs a known number of channels");
    return;
  }
  if (excess.is_cut) diff = cut_end(g, node, diff, excess.cut);
  const Sides sides = {diff, gradient_guarded(g, node, 0), gradient_guarded(g, node, 1)};
  give_padded(g, node, 0, of_transposed.small, &sides, &excess.padding);
  give_padded(g, node, 1, of_transposed.weights, &sides, &excess.padding);
}
