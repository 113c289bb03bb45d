// Lowers products and convolutions: sums of products over axes that the result lacks.
#include "ir/operators/contraction.h"

#include "passes/lower/formulas.h"
#include "passes/lower/windows.h"

// Products

// A product of one row is one of rows, so that a sample alone has the bits that it has among others: `a`, marked as
// varying over the axis, if this has a single index. One of its loads gets a stride along it.
static ExprId lower_unit_rows(Lowering *l, ExprId a, int on) {
  Kernel *k = l->kernel;
  const int axis = on < 0 || k->out_of_memory ? -1 : lower_axis(l, on);
  if (axis < 0 || !a || k->axes[axis].extent != 1) return a;
  ExprId leaf = a;
  while (k->exprs[leaf].args[0]) leaf = k->exprs[leaf].args[0];
  if (k->exprs[leaf].op != EXPR_LOAD) return a;
  Access along = k->accesses[k->exprs[leaf].access];
  access_take_unit_axis(&along, axis);
  k->exprs[leaf].access = kernel_add_access(k, &along);
  kernel_spread_axis(k, axis);
  return a;
}

static ExprId load_matrix(Lowering *l, const Product *p, const Value *v, int row, int on_row, int depth) {
  int axis[MAX_RANK];
  Bound bounds[MAX_RANK];
  for (int i = 0; i < p->nbatch; i++) {
    const int own = product_batch_axis(p, v->shape.rank, i);
    if (own >= 0) axis[own] = i;
  }
  if (row >= 0) axis[row] = l->places[on_row].begin ? STEPPED : on_row;
  if (row >= 0) bounds[row] = lower_index_bound(l, on_row, 0, 1);
  axis[depth] = lower_extra_axis(l, 0);
  return lower_bounded_load(l, v, axis, bounds, 0, 0);
}

void lower_MatMul(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const Product p = node_product(node);
  const ExprId a = lower_unit_rows(l, load_matrix(l, &p, node->inputs[0], p.src_m, p.dst_m, p.src_k), p.dst_m);
  const ExprId b = load_matrix(l, &p, node->inputs[1], p.weights_n, p.dst_n, p.weights_k);
  ExprId e = expr_sum(k, MUL(a, b), 1U << lower_extra_axis(l, 0));
  if (node->inputs[2]) e = ADD(e, lower_value(l, node->inputs[2]));
  lower_result(l, node, 0, e, NULL);
}

// Convolutions: of large side, small side and weights, one is the sum of products of the other two. The result's
// channels are split into groups.

typedef struct Convolving {
  Windows w;
  Convolution c;
  const Node *node;
  int of_group;
  int small, large;       // the kernel's axes of the channel in its group, on the two sides
  int batch;              // the kernel's axis
  int64_t nsmall, nlarge; // channels of a group
} Convolving;

static Convolving convolving_of(Lowering *l, const Node *node) {
  const Shape *weights = &node_side(node, SIDE_WEIGHTS)->shape;
  Convolving v = {.w = windows_of(l, node), .c = node_convolution(node), .node = node, .of_group = l->split_axis};
  v.nsmall = extent_value(weights->extent[v.c.weights_small]) / v.c.groups;
  v.nlarge = extent_value(weights->extent[v.c.weights_large]);
  return v;
}

// Sets the side's axis of channels: group * channels of a group + channel.
static void set_channels(const Convolving *v, SideAxes *axes, int axis, int64_t nchannels, int channel) {
  Bound *b = &axes->bounds[axis];
  axes->axis[axis] = STEPPED;
  *b = (Bound){.offset = 0};
  b->factor[channel] = 1;
  if (v->of_group >= 0) b->factor[v->of_group] = nchannels;
}

static ExprId load_large(const Convolving *v) {
  SideAxes axes = {.axis = {v->batch}};
  set_channels(v, &axes, v->c.channels, v->nlarge, v->large);
  return windows_load_large(&v->w, node_side(v->node, SIDE_LARGE), &axes, 0);
}

// Sets the weights' axis of taps, to the taps of the kernel's piece.
static void set_taps(const Convolving *v, SideAxes *axes, int spatial) {
  const PieceAxis *part = &v->w.part[spatial];
  const int axis = v->c.weights_kernel + spatial;
  axes->axis[axis] = v->w.tap[spatial];
  if (part->tap_step == 1 && !part->first_tap && !v->w.is_written) return;
  axes->axis[axis] = STEPPED;
  axes->bounds[axis] = (Bound){.offset = part->first_tap};
  if (v->w.is_written) axes->bounds[axis].offset += part->tap_step * v->w.number[spatial];
  else axes->bounds[axis].factor[v->w.tap[spatial]] = part->tap_step;
}

static ExprId load_weights(const Convolving *v) {
  SideAxes axes = {.axis = {0}};
  set_channels(v, &axes, v->c.weights_small, v->nsmall, v->small);
  axes.axis[v->c.weights_large] = v->large;
  for (int i = 0; i < v->c.nspatial; i++) set_taps(v, &axes, i);
  return lower_bounded_load(v->w.l, node_side(v->node, SIDE_WEIGHTS), axes.axis, axes.bounds, 0, 0);
}

static void store_sum(const Convolving *v, ExprId e) {
  Kernel *k = v->w.k;
  Lowering *l = v->w.l;
  const Value *bias = convolution_bias(v->node);
  if (bias) e = ADD(e, lower_value_on(l, bias, &v->c.channels));
  lower_result(l, v->node, 0, e, NULL);
}

// Sums the products of a side and the weights, or of two sides, over all extra axes: taps, channels or places. A single
// place of a single image is a row.
static void finish_convolution(const Convolving *v, ExprId side, ExprId other, bool is_selected) {
  Lowering *l = v->w.l;
  Kernel *k = v->w.k;
  AxisSet reduced = 0;
  for (int axis = lower_extra_axis(l, 0); axis < k->naxes; axis++) reduced |= 1U << axis;
  if (side && !(k->exprs[side].axes & ~reduced) && !(reduced >> v->batch & 1)) side = lower_unit_rows(l, side, 0);
  const ExprId product = MUL(side, other);
  store_sum(v, expr_sum(k, is_selected ? windows_select(&v->w, product) : product, reduced));
}

// The same if the taps are written out: the sum over the taps is the whole sum.
static void finish_written(Convolving *v, ExprId (*load_side)(const Convolving *)) {
  Kernel *k = v->w.k;
  ExprId e = NUMBER(0);
  do e = FMA(load_side(v), load_weights(v), e);
  while (windows_next_tap(&v->w));
  store_sum(v, e);
}

// For a result that is a side. The extra axes are the taps, then the other side's channels.
static Convolving make_side(Lowering *l, const Node *node, bool makes_large) {
  Convolving v = convolving_of(l, node);
  for (int i = 0; i < v.c.nspatial; i++) {
    v.w.place[i] = lower_axis(l, v.w.first + i);
    v.w.tap[i] = lower_extra_axis(l, i);
  }
  const int own = lower_axis(l, v.c.channels), other = lower_extra_axis(l, v.c.nspatial);
  v.batch = 0;
  v.large = makes_large ? own : other;
  v.small = makes_large ? other : own;
  v.w.is_written = node_writes_taps(l->kernel->costs, node, l->part.piece);
  return v;
}

static void make_small(Lowering *l, const Node *node) {
  Convolving v = make_side(l, node, false);
  if (v.w.is_written) finish_written(&v, load_large);
  else finish_convolution(&v, load_large(&v), load_weights(&v), false);
}

static ExprId load_small(const Convolving *v) {
  SideAxes axes = {.axis = {v->batch}};
  ExprId index[MOST_SPATIAL_AXES];
  set_channels(v, &axes, v->c.channels, v->nsmall, v->small);
  return windows_load_small(&v->w, node_side(v->node, SIDE_SMALL), &axes, index);
}

static void make_large(Lowering *l, const Node *node) {
  Convolving v = make_side(l, node, true);
  Kernel *k = l->kernel;
  if (windows_have_no_taps(&v.w)) store_sum(&v, NUMBER(0));
  else if (v.w.is_written) finish_written(&v, load_small);
  else finish_convolution(&v, load_small(&v), load_weights(&v), true);
}

// For a result that is the weights. The extra axes are the batch and the small side's places.
static void make_weights(Lowering *l, const Node *node) {
  Convolving v = convolving_of(l, node);
  SideAxes axes = {.axis = {0}};
  v.batch = lower_extra_axis(l, 0);
  v.large = lower_axis(l, v.c.weights_large);
  v.small = lower_axis(l, v.c.weights_small);
  axes.axis[0] = v.batch;
  for (int i = 0; i < v.c.nspatial; i++) {
    v.w.place[i] = lower_extra_axis(l, i + 1);
    v.w.tap[i] = lower_axis(l, v.c.weights_kernel + i);
    axes.axis[v.w.first + i] = v.w.place[i];
  }
  set_channels(&v, &axes, v.c.channels, v.nsmall, v.small);
  const ExprId small = lower_bounded_load(l, node_side(node, SIDE_SMALL), axes.axis, axes.bounds, 0, 0);
  finish_convolution(&v, load_large(&v), small, false);
}

LOWER(Convolution, make_small(l, node))
LOWER(ConvolutionBackwardData, make_large(l, node))
LOWER(ConvolutionBackwardWeights, make_weights(l, node))
LOWER(ConvTranspose, make_large(l, node))
LOWER(ConvTransposeBackwardData, make_small(l, node))
LOWER(ConvTransposeBackwardWeights, make_weights(l, node))
