// Splits group norms, and their gradients, with channels last in memory into operators that vectorise over channels.
// Must run before reshape-layouts, because it adds reshapes. Must run after common-subexpressions, which would merge
// the casts of the two reads of the data: the cast data would then be stored between kernels.
//
// If channels are last in memory, a group is a few neighbouring elements, and a kernel with an axis of groups would
// have vectors as short as a group. Instead, sums over the spatial axes are computed for each channel, with vectors
// over all channels, and then reduced to groups, which is little work. Values of a group are broadcast to its channels
// before they are combined with the data:
//
//   S1 = sum(x), S2 = sum(x^2) over the spatial axes, for each channel, in f64
//   mean = sum(S1) / M, variance = sum(S2) / M - mean^2 over a group with M elements
//   near = mean rounded to f32
//   y = ((x - near) - (mean - near)) * (gamma / sqrt(variance + epsilon)) + beta
//
// The one-pass variance is accurate enough: squares of f32 are exact in f64, and the rounding error of their sum, about
// 1e-16 * mean^2, is smaller than the variance's error from the rounding of x to 24 bits. The gradient uses sums about
// the given mean:
//
//   S1 = sum(dy), S2 = sum(dy * (x - mean)) over the spatial axes, for each channel
//   t1 = sum(gamma * S1), t2 = sum(gamma * S2) over a group with M elements
//   dx = rstd * gamma * dy - rstd * t2 / (M * (variance + epsilon)) * (x - mean) - rstd * t1 / M
//   dgamma = sum(rstd * S2), dbeta = sum(S1) over the batch
#include "passes/rewrite/passes.h"

#include "ir/graph/builder.h"
#include "ir/operators/norm.h"
#include "passes/rewrite/dead_code.h"

// The least number of spatial elements of a channel for which splitting is faster: for gradients; for norms; for norms
// with groups of at least WIDE channels, which fill vectors and whose data stays in a cache for three reads.
enum { LEAST_SPACE = 2, LEAST_FORWARD_SPACE = 128, LEAST_WIDE_SPACE = 1024, WIDE = 64 };
enum { SRC, DIFF_DST, MEAN, VARIANCE, GAMMA };
enum { FORWARD_GAMMA = 1, FORWARD_BETA };

typedef struct Split {
  Builder *b;
  const Node *node;
  Type type;        // the type to compute in
  Shape group;      // [groups, channels / groups]
  Shape grouped;    // [N, groups, channels / groups]
  Shape by_channel; // src's shape with extent 1 on the spatial axes
  uint32_t space;   // mask of the spatial axes
} Split;

// The functions below return NULL if an operand is NULL, if inference rejects a node, or when out of memory.

#define SUB(one, other) build_binary(s->b, OP_Subtract, one, other)
#define MUL(one, other) build_binary(s->b, OP_Multiply, one, other)
#define DIV(one, other) build_binary(s->b, OP_Divide, one, other)
#define ADD(one, other) build_binary(s->b, OP_Add, one, other)

static Value *cast(const Split *s, Value *v, Type type) {
  return build_cast(s->b, v, type);
}

static Value *sum(const Split *s, Value *v, uint32_t axes, bool keep_dims) {
  return build_reduce_mask(s->b, OP_ReduceSum, v, axes, keep_dims);
}

static Value *in_shape(const Split *s, Value *v, const Shape *shape) {
  return build_in_shape(s->b, v, shape);
}

static Value *by_channel(const Split *s, Value *grouped) {
  return in_shape(s, grouped, &s->by_channel);
}

// Each read of the data has its own cast, so that the cast data is not stored between the kernels of the two reads.
static Value *data(const Split *s, int slot) {
  return cast(s, s->node->inputs[slot], s->type);
}

static Value *centered(const Split *s, Value *mean) {
  return SUB(data(s, SRC), mean);
}

// Replaces output `slot` of the split node by `result`.
static bool replace_output(const Split *s, uint32_t slot, Value *result) {
  Node *node = (Node *)s->node;
  Value *v = node->outputs[slot];
  if (!v) return true;
  result = cast(s, result, v->type);
  if (!result) return false;
  node_set_output(node, slot, NULL);
  node_set_output(result->producer, 0, v);
  return true;
}

static Value *to_channels(const Split *s, Value *grouped) {
  return by_channel(s, cast(s, grouped, s->type));
}

static bool split_forward(const Split *s) {
  const Node *node = s->node;
  const Shape row = {.rank = 2, .extent = {s->grouped.extent[0], s->grouped.extent[1]}};
  Value *count = build_number(s->b, TYPE_F64, NULL, (double)norm_reduced_nelems(node));
  Value *ones = build_number(s->b, TYPE_F64, &s->group, 1);

  Value *x = cast(s, data(s, SRC), TYPE_F64);
  Value *sums = sum(s, x, s->space, true), *squares = sum(s, MUL(x, x), s->space, true); // neighbours: one kernel
  Value *s1 = in_shape(s, sums, &s->grouped), *s2 = in_shape(s, squares, &s->grouped);
  Value *mean = DIV(sum(s, s1, 1U << 2, true), count), *square = DIV(sum(s, s2, 1U << 2, true), count);
  Value *variance = SUB(square, MUL(mean, mean));
  // With this order of operands, NaN is propagated.
  variance = build_binary(s->b, OP_Maximum, build_number(s->b, TYPE_F64, NULL, 0), variance);
  Value *v = ADD(variance, build_number(s->b, TYPE_F64, NULL, node_f32(node, "epsilon")));
  Value *root = build_unary(s->b, OP_Sqrt, v);
  Value *gamma = node->inputs[FORWARD_GAMMA];
  Value *factor = DIV(gamma ? cast(s, in_shape(s, gamma, &s->group), TYPE_F64) : ones, root);
  Value *near = cast(s, cast(s, mean, s->type), TYPE_F64);

  Value *center = SUB(data(s, SRC), to_channels(s, MUL(near, ones)));
  Value *y = MUL(SUB(center, to_channels(s, MUL(SUB(mean, near), ones))), to_channels(s, factor));
  Shape beta = s->by_channel;
  beta.extent[0] = EXTENT(1);
  if (node->inputs[FORWARD_BETA]) y = ADD(y, in_shape(s, node->inputs[FORWARD_BETA], &beta));
  Value *out_mean = in_shape(s, mean, &row), *out_variance = in_shape(s, variance, &row);
  if (!y || !out_mean || !out_variance) return false;
  return replace_output(s, 0, y) && replace_output(s, 1, out_mean) && replace_output(s, 2, out_variance);
}

// False: out of memory, or a node did not fit.
static bool split_backward(const Split *s) {
  const Shape channels = {.rank = 1, .extent = {s->by_channel.extent[norm_channel_axis(s->node)]}};
  Shape row = s->grouped;
  row.extent[2] = EXTENT(1);
  Value *count = build_number(s->b, s->type, NULL, (double)norm_reduced_nelems(s->node));
  Value *ones = build_number(s->b, s->type, &s->group, 1);
  Value *gamma = s->node->inputs[GAMMA] ? in_shape(s, s->node->inputs[GAMMA], &s->group) : ones;
  Value *mean = by_channel(s, MUL(in_shape(s, s->node->inputs[MEAN], &row), ones));
  Value *v = ADD(in_shape(s, s->node->inputs[VARIANCE], &row),
                 build_number(s->b, s->type, NULL, node_f32(s->node, "epsilon")));
  Value *root = build_unary(s->b, OP_Sqrt, v);
  Value *rstd = build_unary(s->b, OP_Reciprocal, root), *less = build_number(s->b, s->type, NULL, -1);

  Value *sums = sum(s, data(s, DIFF_DST), s->space, true); // neighbours of those of products: one kernel
  Value *products = sum(s, MUL(data(s, DIFF_DST), centered(s, mean)), s->space, true);
  Value *s1 = in_shape(s, sums, &s->grouped), *s2 = in_shape(s, products, &s->grouped);
  Value *t1 = sum(s, MUL(gamma, s1), 1U << 2, true), *t2 = sum(s, MUL(gamma, s2), 1U << 2, true);
  Value *offset = MUL(MUL(DIV(t1, count), rstd), less);
  Value *slope = MUL(MUL(DIV(DIV(t2, count), v), rstd), less);

  Value *direct = MUL(by_channel(s, MUL(rstd, gamma)), data(s, DIFF_DST));
  Value *along = MUL(by_channel(s, MUL(slope, ones)), centered(s, mean));
  Value *rest = ADD(along, by_channel(s, MUL(offset, ones)));
  Value *dx = ADD(direct, rest);
  Value *dgamma = in_shape(s, sum(s, MUL(s2, rstd), 1U << 0, false), &channels);
  Value *dbeta = in_shape(s, sum(s, s1, 1U << 0, false), &channels);
  if (!dx || !dgamma || !dbeta) return false;
  return replace_output(s, 0, dx) && replace_output(s, 1, dgamma) && replace_output(s, 2, dbeta);
}

static bool has_channels_last(const Value *v, int channel) {
  return layout_axis(&v->layout, v->shape.rank - 1) == channel;
}

// Finds the type to compute in. False: an operand other than the data has another type.
static bool find_type(const Node *node, Type *type) {
  const uint32_t first = node->op->id == OP_GroupNorm ? FORWARD_GAMMA : MEAN;
  *type = node->inputs[SRC]->type == TYPE_F64 ? TYPE_F64 : TYPE_F32;
  for (uint32_t i = first; i < node->ninputs; i++)
    if (node->inputs[i] && node->inputs[i]->type != *type) return false;
  for (uint32_t i = 1; i < node->noutputs; i++)
    if (node->outputs[i] && node->outputs[i]->type != *type) return false;
  return true;
}

// Fills the shapes. False: the channel or spatial extents are not literals, or splitting would not be faster.
static bool find_shapes(const Node *node, Split *s) {
  const Shape *data = &node->inputs[SRC]->shape;
  const int channel = norm_channel_axis(node);
  int64_t space = 1, groups = extent_value(norm_ngroups(node)), channels = extent_value(data->extent[channel]);
  s->by_channel = *data;
  for (int i = 1; i < data->rank; i++) {
    if (!extent_is_literal(data->extent[i])) return false;
    if (i == channel) continue;
    space *= extent_value(data->extent[i]);
    s->by_channel.extent[i] = EXTENT(1);
  }
  if (groups == 1 || groups == channels || channels == 0) return false;
  const int64_t least_forward = channels / groups < WIDE ? LEAST_FORWARD_SPACE : LEAST_WIDE_SPACE;
  if (space < (node->op->id == OP_GroupNorm ? least_forward : LEAST_SPACE)) return false;
  s->space = norm_reduced_axes(node) & ~(1U << channel);
  s->group = (Shape){.rank = 2, .extent = {EXTENT(groups), EXTENT(channels / groups)}};
  s->grouped = (Shape){.rank = 3, .extent = {data->extent[0], EXTENT(groups), EXTENT(channels / groups)}};
  return true;
}

static bool is_splittable(const Node *node, Split *s) {
  const bool is_forward = node->op->id == OP_GroupNorm;
  if ((!is_forward && node->op->id != OP_GroupNormBackward) || !node->outputs[0]) return false;
  if (!find_type(node, &s->type) || !find_shapes(node, s)) return false;
  const int channel = norm_channel_axis(node);
  if (!has_channels_last(node->inputs[SRC], channel) || !has_channels_last(node->outputs[0], channel)) return false;
  if (is_forward) return s->type == TYPE_F32;
  return has_channels_last(node->inputs[DIFF_DST], channel) && !norm_cancels(node);
}

bool pass_split_groups(Graph *g, PassContext *c) {
  Diagnostics refusals;
  Builder b = {.graph = g, .d = &refusals};
  const size_t nnodes = g->nnodes;
  bool changed = false;
  diagnostics_init(&refusals, c->allocator);
  for (size_t i = 0; i < nnodes && !refusals.out_of_memory; i++) {
    Split s = {.b = &b, .node = b.origin = g->nodes[i]};
    if (is_splittable(s.node, &s)) changed |= (s.node->op->id == OP_GroupNorm ? split_forward : split_backward)(&s);
  }
  pass_end(g, c, refusals.out_of_memory, g->nnodes != nnodes);
  diagnostics_deinit(&refusals);
  return changed;
}
