// The gradient of a group norm whose channels lie last in memory: a group is a few neighbours then, and a kernel that
// has groups as an axis works on vectors as short as that. So sums over space are taken of each channel, and go
// together by groups when they are small; what varies by group is spread over its channels before it meets the data
// again.
//
//   S1 = sum(dy), S2 = sum(dy * (x - mean)) over space, of each channel
//   t1 = sum(gamma * S1), t2 = sum(gamma * S2) over a group, of M elements
//   dx = rstd * gamma * dy - rstd * t2 / (M * (variance + epsilon)) * (x - mean) - rstd * t1 / M
//   dgamma = sum(rstd * S2), dbeta = sum(S1) over the batch
#include "passes/split_groups.h"

#include "ir/norm.h"
#include "passes/builder.h"
#include "passes/dead_code.h"

#include <string.h>

enum { LEAST_SPACE = 2 }; // elements of a channel from which on this pays
enum { SRC, DIFF_DST, MEAN, VARIANCE, GAMMA };

typedef struct Split {
  Builder *b;
  const Node *node;
  const Value *stands_for;
  Type type;                 // computed with
  Shape grouped, by_channel; // [N, groups, channels of one]; the data's with 1 for space
} Split;

// Any operand NULL: so is what is made of it.

static Value *binary(const Split *s, OperatorId id, Value *a, Value *b) {
  Node *node = a && b ? builder_add_node(s->b, id, s->stands_for) : NULL;
  Value *v = node ? builder_add_output(s->b, node, 0, TYPE_NONE) : NULL;
  if (!v) return NULL;
  node_set_input(node, 0, a);
  node_set_input(node, 1, b);
  return builder_finish_node(s->b, node) ? v : NULL;
}

#define MUL(a, b) binary(s, OP_Multiply, a, b)
#define DIV(a, b) binary(s, OP_Divide, a, b)

static Value *number(const Split *s, double x) {
  return builder_add_constant(s->b, &(Shape){.rank = 0}, s->type, x);
}

static Value *cast(const Split *s, Value *v, Type type) {
  Node *node = v && v->type != type ? builder_add_node(s->b, OP_TypeCast, s->stands_for) : NULL;
  if (!node) return v && v->type == type ? v : NULL;
  node_set_input(node, 0, v);
  return builder_add_output(s->b, node, 0, type) && builder_finish_node(s->b, node) ? node->outputs[0] : NULL;
}

static Value *sum(const Split *s, Value *v, uint32_t axes, bool keep_dims) {
  int64_t items[MAX_RANK];
  int count = 0;
  Node *node = v ? builder_add_node(s->b, OP_ReduceSum, s->stands_for) : NULL;
  if (!node || !builder_add_output(s->b, node, 0, TYPE_NONE)) return NULL;
  for (int i = 0; i < v->shape.rank; i++)
    if (axes >> i & 1) items[count++] = i;
  node_set_input(node, 0, v);
  if (!builder_set_list(s->b, node, "axes", items, count)) return NULL;
  node_attribute_to_set(node, "keep_dims")->boolean = keep_dims;
  return builder_finish_node(s->b, node) ? node->outputs[0] : NULL;
}

static Value *in_shape(const Split *s, Value *v, const Shape *shape) {
  return v ? builder_in_shape(s->b, v, shape, s->stands_for) : NULL;
}

static Value *by_channel(const Split *s, Value *grouped) {
  return in_shape(s, grouped, &s->by_channel);
}

// Each look at the data has its own nodes, so that neither hands tensors to the other.
static Value *data(const Split *s, int slot) {
  return cast(s, s->node->inputs[slot], s->type);
}

static Value *centered(const Split *s, Value *mean) {
  return binary(s, OP_Subtract, data(s, SRC), mean);
}

static bool hand_over(const Split *s, uint32_t slot, Value *made) {
  Node *node = (Node *)s->node;
  Value *v = node->outputs[slot];
  if (!v) return true;
  made = cast(s, made, v->type);
  if (!made) return false;
  node_set_output(node, slot, NULL);
  node_set_output(made->producer, 0, v);
  return true;
}

// False: out of memory, or a node did not fit.
static bool split(const Split *s) {
  const Shape group = {.rank = 2, .extent = {s->grouped.extent[1], s->grouped.extent[2]}};
  const Shape channels = {.rank = 1, .extent = {s->by_channel.extent[norm_channel_axis(s->node)]}};
  Shape row = s->grouped;
  row.extent[2] = EXTENT(1);
  uint32_t space = norm_reduced_axes(s->node) & ~(1U << norm_channel_axis(s->node));
  Value *count = number(s, (double)norm_reduced_nelems(s->node));
  Value *ones = builder_add_constant(s->b, &group, s->type, 1);
  Value *gamma = s->node->inputs[GAMMA] ? in_shape(s, s->node->inputs[GAMMA], &group) : ones;
  Value *mean = by_channel(s, MUL(in_shape(s, s->node->inputs[MEAN], &row), ones));
  Value *v = binary(s, OP_Add, in_shape(s, s->node->inputs[VARIANCE], &row), number(s, node_f32(s->node, "epsilon")));
  Value *root = v ? builder_add_unary(s->b, OP_Sqrt, v, s->stands_for) : NULL;
  Value *rstd = root ? builder_add_unary(s->b, OP_Reciprocal, root, s->stands_for) : NULL, *less = number(s, -1);

  Value *s1 = in_shape(s, sum(s, data(s, DIFF_DST), space, true), &s->grouped);
  Value *s2 = in_shape(s, sum(s, MUL(data(s, DIFF_DST), centered(s, mean)), space, true), &s->grouped);
  Value *t1 = sum(s, MUL(gamma, s1), 1U << 2, true), *t2 = sum(s, MUL(gamma, s2), 1U << 2, true);
  Value *offset = MUL(MUL(DIV(t1, count), rstd), less);
  Value *slope = MUL(MUL(DIV(DIV(t2, count), v), rstd), less);

  Value *direct = MUL(by_channel(s, MUL(rstd, gamma)), data(s, DIFF_DST));
  Value *along = MUL(by_channel(s, MUL(slope, ones)), centered(s, mean));
  Value *rest = binary(s, OP_Add, along, by_channel(s, MUL(offset, ones)));
  Value *dx = binary(s, OP_Add, direct, rest);
  Value *dgamma = in_shape(s, sum(s, MUL(s2, rstd), 1U << 0, false), &channels);
  Value *dbeta = in_shape(s, sum(s, s1, 1U << 0, false), &channels);
  if (!dx || !dgamma || !dbeta) return false;
  return hand_over(s, 0, dx) && hand_over(s, 1, dgamma) && hand_over(s, 2, dbeta);
}

static bool has_channels_last(const Value *v, int channel) {
  return order_axis(&v->order, v->shape.rank - 1) == channel;
}

// Whether all types are the one that is computed with, but for data that is narrower.
static bool find_type(const Node *node, Type *type) {
  *type = node->inputs[SRC]->type == TYPE_F64 ? TYPE_F64 : TYPE_F32;
  for (uint32_t i = MEAN; i <= GAMMA; i++)
    if (node->inputs[i] && node->inputs[i]->type != *type) return false;
  for (uint32_t i = 1; i < node->noutputs; i++)
    if (node->outputs[i] && node->outputs[i]->type != *type) return false;
  return true;
}

// Fills the shapes. False: the channels or space are not known, or there is nothing to gain.
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
  if (space < LEAST_SPACE || groups == 1 || groups == channels || channels == 0) return false;
  s->grouped = (Shape){.rank = 3, .extent = {data->extent[0], EXTENT(groups), EXTENT(channels / groups)}};
  return true;
}

static bool is_splittable(const Node *node, Split *s) {
  if (node->op->id != OP_GroupNormBackward || !node->outputs[0] || !find_type(node, &s->type)) return false;
  const int channel = norm_channel_axis(node);
  return has_channels_last(node->inputs[SRC], channel) && has_channels_last(node->inputs[DIFF_DST], channel) &&
         has_channels_last(node->outputs[0], channel) && !norm_cancels(node) && find_shapes(node, s);
}

bool pass_split_groups(Graph *g, PassContext *c) {
  Builder b = {.graph = g};
  const size_t nnodes = g->nnodes;
  bool changed = false;
  diagnostics_init(&b.refusals, c->allocator);
  for (size_t i = 0; i < nnodes && !b.out_of_memory; i++) {
    Split s = {.b = &b, .node = g->nodes[i], .stands_for = g->nodes[i]->outputs[0]};
    if (is_splittable(s.node, &s)) changed |= split(&s);
  }
  b.out_of_memory |= b.refusals.out_of_memory;
  diagnostics_deinit(&b.refusals);
  if (b.out_of_memory) {
    c->failed = true;
    error_out_of_memory(c->diagnostics);
  } else if (g->nnodes != nnodes) {
    if (!graph_sort(g, c->diagnostics)) c->failed = true;
    else pass_dead_code(g, c);
  }
  return changed;
}
