// Lowers resampling: loads whose offsets are computed from the output's indices, in integers that are exact in the
// kernel's float type. Scheduling computes an expression that varies along one axis only once a call, in a table
// between loops.
#include "ir/operators/interpolate.h"

#include "passes/lower/formulas.h"
#include "passes/lower/lower.h"

// An output element along one axis: (1 - weight) * input[place] + weight * input[place + 1], or input[place] if there
// is no expression for weight (0).
typedef struct Origin {
  ExprId place, weight;
} Origin;

static Origin origin_of(Kernel *k, const Resampling *r, ExprId o) {
  ExprId at = FMA(NUMBER(r->factor), o, NUMBER(r->offset)), last = NUMBER(r->input - 1);
  if (r->is_nearest) {
    ExprId place = FLOOR(DIV(FMA(NUMBER(2), at, NUMBER(r->divisor)), NUMBER(2 * r->divisor)));
    return (Origin){MAX(NUMBER(0), MIN(place, last)), 0};
  }
  at = MAX(NUMBER(0), MIN(at, NUMBER((r->input - 1) * r->divisor)));
  ExprId place = FLOOR(DIV(at, NUMBER(r->divisor)));
  return (Origin){place, DIV(FMA(NUMBER(-r->divisor), place, at), NUMBER(r->divisor))};
}

// The tensor on the loaded side: src of Interpolate, diff_dst of its gradient.
typedef struct Side {
  const Value *value;
  int first, nspatial; // the first spatial axis, and the number of spatial axes
  Strides own;         // the value's strides
  Strides as_domain;   // the same, but 0 along resampled axes
} Side;

static Side side_of(Kernel *k, const Node *node, const Value *v) {
  Side s = {.value = v, .first = spatial_axis(node), .nspatial = v->shape.rank - 2};
  s.own = strides_of(&v->shape, &v->layout);
  for (int i = 0; i < v->shape.rank; i++) {
    bool is_spatial = i >= s.first && i < s.first + s.nspatial;
    Resampling r = is_spatial ? node_resampling(node, i - s.first) : (Resampling){0};
    kernel_close(k, r.monomial);
    if (r.input != r.output || extent_value(v->shape.extent[i]) == 1) continue;
    s.as_domain.stride[i] = s.own.stride[i];
    s.as_domain.monomial[i] = s.own.monomial[i];
  }
  return s;
}

static ExprId load_side(Lowering *l, const Side *side, ExprId offset) {
  Kernel *k = l->kernel;
  const Value *v = side->value;
  uint32_t axes = 0;
  for (int i = 0; i < v->shape.rank; i++)
    if (side->as_domain.stride[i]) axes |= 1U << i;
  if (v->constant && v->constant->is_splat) {
    const AxisSet own = lower_axes(l, axes) | (offset ? k->exprs[offset].axes : 0);
    return expr_constant_over(k, type_load(v->type, v->constant->data, 0), l->part.broadcasts_constants ? own : 0);
  }
  return lower_strided_load(l, v, &side->as_domain, l->domain.rank, offset);
}

// offset + stride * place along the axis. These integers are exact in the kernel's float type for known extents, but
// not for every value of an open dim, so the kernel needs the dim's value.
static ExprId offset_by_place(Kernel *k, ExprId offset, ExprId place, const Side *side, int axis) {
  int64_t stride = side->own.stride[axis];
  kernel_close(k, side->own.monomial[axis]);
  return offset ? FMA(NUMBER(stride), place, offset) : MUL(NUMBER(stride), place);
}

// The interpolated value at an output's indices on the spatial axes from `spatial` on. `offset`: the offset in elements
// along the earlier spatial axes.
static ExprId sample(Lowering *l, const Node *node, const Side *side, int spatial, ExprId offset) {
  Kernel *k = l->kernel;
  if (spatial == side->nspatial) return load_side(l, side, offset);
  Resampling r = node_resampling(node, spatial);
  if (r.input == r.output || r.input == 1) return sample(l, node, side, spatial + 1, offset);
  const int axis = side->first + spatial;
  Origin s = origin_of(k, &r, lower_index(l, axis));
  ExprId a = sample(l, node, side, spatial + 1, offset_by_place(k, offset, s.place, side, axis));
  if (r.is_nearest) return a;
  ExprId next = MIN(ADD(s.place, NUMBER(1)), NUMBER(r.input - 1));
  ExprId b = sample(l, node, side, spatial + 1, offset_by_place(k, offset, next, side, axis));
  return SELECT(GT(s.weight, NUMBER(0)), FMA(s.weight, b, MUL(SUB(NUMBER(1), s.weight), a)), a);
}

void lower_Interpolate(Lowering *l, const Node *node) {
  Side src = side_of(l->kernel, node, node->inputs[0]);
  lower_result(l, node, 0, sample(l, node, &src, 0, 0), NULL);
}

// The first output along an axis that input i may contribute to: the first with source coordinate above i - 1 (linear),
// or at least i - 1/2 (nearest).
static ExprId first_tap(Kernel *k, const Resampling *r, ExprId i) {
  if (r->factor <= 0) return NUMBER(0);
  int64_t scale = r->is_nearest ? 2 : 1;
  ExprId from = FMA(NUMBER(-scale * r->divisor), i, NUMBER(r->divisor + scale * r->offset));
  return MAX(NUMBER(0), NEG(FLOOR(DIV(from, NUMBER(scale * r->factor)))));
}

// The weight of input i in output o, along one axis.
static ExprId weight_of(Kernel *k, const Resampling *r, ExprId i, ExprId o) {
  Origin s = origin_of(k, r, o);
  if (r->is_nearest) return SELECT(EQ(s.place, i), NUMBER(1), NUMBER(0));
  ExprId of_next = SELECT(EQ(ADD(s.place, NUMBER(1)), i), s.weight, NUMBER(0));
  return SELECT(EQ(s.place, i), SUB(NUMBER(1), s.weight), of_next);
}

void lower_InterpolateBackward(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const Value *diff_src = node->outputs[0];
  Side diff_dst = side_of(l->kernel, node, node->inputs[1]);
  ExprId offset = 0, weight = 0;
  uint32_t taps = 0;
  int axes[MAX_RANK];
  for (int i = 0; i < diff_src->shape.rank; i++) axes[i] = i;
  for (int spatial = 0; spatial < diff_dst.nspatial; spatial++) {
    Resampling r = node_resampling(node, spatial);
    if (r.input == r.output) continue;
    int axis = diff_dst.first + spatial, tap = lower_extra_axis(l, spatial);
    ExprId i = lower_index(l, axis), o = ADD(first_tap(k, &r, i), expr_index(k, tap)), last = NUMBER(r.output - 1);
    ExprId within = MIN(o, last), own = SELECT(GE(last, o), weight_of(k, &r, i, within), NUMBER(0));
    weight = weight ? MUL(weight, own) : own;
    offset = offset_by_place(k, offset, within, &diff_dst, axis);
    taps |= 1U << tap;
  }
  ExprId e = load_side(l, &diff_dst, offset);
  if (weight) e = SELECT(GT(weight, NUMBER(0)), MUL(weight, e), NUMBER(0));
  lower_result(l, node, 0, expr_sum(k, e, taps), axes);
}
