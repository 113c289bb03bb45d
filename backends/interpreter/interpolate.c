// Resampling: an output element is a weighted sum of input elements; its weights are products of one weight for each
// spatial axis. The gradient adds each element of diff_dst, times the same weights, to the elements of diff_src.
#include "ir/operators/interpolate.h"

#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/sum.h"
#include "backends/interpreter/walk.h"

// The source of an output index on one axis: (1 - weight) * input[place[0]] + weight * input[place[1]].
typedef struct Origin {
  int64_t place[2];
  double weight;
} Origin;

static Origin origin_of(const Resampling *r, int64_t o) {
  int64_t at = r->factor * o + r->offset, last = (r->input - 1) * r->divisor;
  if (r->is_nearest) at = (2 * at + r->divisor) / (2 * r->divisor) * r->divisor; // not negative: at > -divisor / 2
  at = at < 0 ? 0 : at > last ? last : at;
  int64_t place = at / r->divisor, rest = at % r->divisor;
  return (Origin){{place, rest ? place + 1 : place}, (double)rest / (double)r->divisor};
}

enum { MOST_SPATIAL = 3 };

typedef struct Corners { // the input elements with a weight in one output element
  int count;
  int64_t at[1 << MOST_SPATIAL]; // offsets in the input
  double weight[1 << MOST_SPATIAL];
} Corners;

// `index`: of the output element. Input elements of weight 0 are left out: they could be infinite or NaN.
static Corners corners_of(const Node *node, const Shape *input, const int64_t *index) {
  Corners c = {.count = 1, .weight = {1}};
  int first = spatial_axis(node);
  int64_t stride = 1;
  for (int axis = input->rank - 1; axis >= 0; axis--) {
    bool is_spatial = axis >= first && axis < first + input->rank - 2;
    Origin s = {{index[axis], index[axis]}, 0};
    if (is_spatial) {
      Resampling r = node_resampling(node, axis - first);
      s = origin_of(&r, index[axis]);
    }
    const int count = c.count;
    for (int i = 0; i < count; i++) {
      if (s.weight > 0) {
        c.at[c.count] = c.at[i] + s.place[1] * stride;
        c.weight[c.count++] = c.weight[i] * s.weight;
      }
      c.at[i] += s.place[0] * stride;
      c.weight[i] *= 1 - s.weight;
    }
    stride *= extent_value(input->extent[axis]);
  }
  return c;
}

bool interpret_Interpolate(const Evaluation *e) {
  const Node *node = e->node;
  for (Walk w = walk_over(&node->outputs[0]->shape); w.i < w.nelems; walk_step(&w)) {
    Corners c = corners_of(node, &node->inputs[0]->shape, w.index);
    double sum = c.weight[0] * e->inputs[0][c.at[0]];
    for (int i = 1; i < c.count; i++) sum += c.weight[i] * e->inputs[0][c.at[i]];
    e->outputs[0][w.i] = sum;
  }
  return true;
}

bool interpret_InterpolateBackward(const Evaluation *e) {
  const Node *node = e->node;
  const Shape *diff_src = &node->outputs[0]->shape;
  Sum *sums = sums_of_output(e, 0);
  if (!sums) return false;
  for (Walk w = walk_over(&node->inputs[1]->shape); w.i < w.nelems; walk_step(&w)) {
    Corners c = corners_of(node, diff_src, w.index);
    for (int i = 0; i < c.count; i++) sum_add(&sums[c.at[i]], c.weight[i] * e->inputs[1][w.i]);
  }
  return sums_store(e, 0, sums);
}
