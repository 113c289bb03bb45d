// Quantisation and dequantisation. The formulas do not round: quantised types are not float types, so the interpreter
// rounds their values after each node.
#include "ir/operators/quantize.h"

#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/walk.h"

typedef struct Scaling { // of one element
  double scale, zp;
} Scaling;

// The offset of the current element's scale or zero point in an array of this shape. *is_beyond: the array is too
// short.
static int64_t scaling_offset(const Node *node, const Shape *shape, const Walk *w, bool *is_beyond) {
  int64_t period = scaling_period(node, shape);
  int64_t at[MAX_RANK] = {0}, place = 0;
  for (int axis = 0; axis < w->rank; axis++) {
    int64_t step;
    int of = scaling_axis(node, shape_nelems(shape), axis, &step);
    if (of >= 0) at[of] = w->index[axis] / step;
  }
  *is_beyond = period && at[0] >= period;
  if (period) at[0] %= period;
  for (int i = 0; i < shape->rank; i++) place = place * extent_value(shape->extent[i]) + at[i];
  return place;
}

static Scaling static_scaling(const Evaluation *e, const Walk *w) {
  const AttributeValue *scales = node_attribute(e->node, "scales"), *zps = node_attribute(e->node, "zps");
  const Shape list = {.rank = 1, .extent = {EXTENT((int64_t)scales->numbers.count)}};
  bool is_beyond;
  int64_t at = scaling_offset(e->node, &list, w, &is_beyond);
  double zp = zps->list.count && !is_beyond ? (double)zps->list.items[at] : 0;
  return (Scaling){(float)scales->numbers.items[at], zp};
}

static Scaling dynamic_scaling(const Evaluation *e, const Walk *w) {
  const Value *scales = e->node->inputs[1], *zps = e->node->inputs[2];
  bool is_beyond;
  double scale = e->inputs[1][scaling_offset(e->node, &scales->shape, w, &is_beyond)];
  double zp = zps ? e->inputs[2][scaling_offset(e->node, &zps->shape, w, &is_beyond)] : 0;
  return (Scaling){scale, zps && is_beyond ? 0 : zp};
}

static bool quantize(const Evaluation *e, Scaling (*scaling)(const Evaluation *, const Walk *)) {
  for (Walk w = walk_over(&e->node->outputs[0]->shape); w.i < w.nelems; walk_step(&w)) {
    Scaling s = scaling(e, &w);
    double number = e->inputs[0][w.i] / s.scale;
    e->outputs[0][w.i] = s.zp != 0 ? number + s.zp : number; // keeps the sign of -0, which 8-bit floats have
  }
  return true;
}

static bool dequantize(const Evaluation *e, Scaling (*scaling)(const Evaluation *, const Walk *)) {
  for (Walk w = walk_over(&e->node->outputs[0]->shape); w.i < w.nelems; walk_step(&w)) {
    Scaling s = scaling(e, &w);
    e->outputs[0][w.i] = (e->inputs[0][w.i] - s.zp) * s.scale;
  }
  return true;
}

INTERPRET(Quantize, quantize(e, static_scaling))
INTERPRET(Dequantize, dequantize(e, static_scaling))
INTERPRET(DynamicQuantize, quantize(e, dynamic_scaling))
INTERPRET(DynamicDequantize, dequantize(e, dynamic_scaling))
