// Losses and their gradients. A row is the elements along the axis of classes. In a walk over src, track 0 is the row's
// index, track 1 the class.
#include "ir/operators/loss.h"

#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/sum.h"
#include "backends/interpreter/walk.h"
#include "ir/support/budget.h"

#include <math.h>

typedef struct Row {
  double max;
  Sum exponentials; // of e^(x - max)
  Sum costs;        // of w * (max - x), over all classes
  Sum weights;
  double label, own_cost, own_weight; // of the label's class
  bool is_ignored, is_class;
} Row;

typedef struct Rows {
  const Evaluation *e;
  const double *x, *weights;
  Walk walk;
  int64_t count;
  double smoothing, nclasses;
  Row *row;
  Sum total; // of the weights of the labels that are not ignored
} Rows;

static double weight_of(const Rows *r, const Walk *w) {
  return r->weights ? r->weights[w->at[1]] : 1;
}

static uint32_t slot_of_labels(const Node *node) {
  return node->op->id == OP_SoftmaxCrossEntropy ? 1 : 2;
}

// Labels outside of the classes may be any integer, so they are compared as integers.
static void read_label(const Rows *r, int64_t i, Row *row) {
  const uint32_t slot = slot_of_labels(r->e->node);
  const AttributeValue *ignored = node_attribute(r->e->node, "ignore_index");
  const int64_t label = evaluation_integer(r->e, slot, i);
  row->is_ignored = ignored->is_set && label == ignored->s64;
  row->is_class = label >= 0 && (double)label < r->nclasses;
  row->label = row->is_class ? (double)label : -1;
}

uint64_t scratch_of_rows(const Evaluation *e) {
  const Value *labels = e->node->inputs[slot_of_labels(e->node)];
  return nbytes_multiply((uint64_t)shape_nelems(&labels->shape), sizeof(Row));
}

static bool rows_begin(Rows *r, const Evaluation *e) {
  const int axis = loss_class_axis(e->node);
  *r = (Rows){.e = e, .x = e->inputs[0], .weights = evaluation_input(e, "weights")};
  r->walk = walk_over(&e->node->inputs[0]->shape);
  r->count = walk_axes(&r->walk, 0, ~(1U << axis));
  (void)walk_axes(&r->walk, 1, 1U << axis);
  r->smoothing = node_f32(e->node, "label_smoothing");
  r->nclasses = (double)extent_value(e->node->inputs[0]->shape.extent[axis]);
  r->row = ARENA_ARRAY(e->scratch, Row, (size_t)r->count);
  if (!r->row) return false;
  for (int64_t i = 0; i < r->count; i++) {
    r->row[i].max = -INFINITY;
    read_label(r, i, &r->row[i]);
  }
  for (Walk w = r->walk; w.i < w.nelems; walk_step(&w)) {
    double *max = &r->row[w.at[0]].max;
    if (r->x[w.i] > *max || isnan(r->x[w.i])) *max = r->x[w.i];
  }
  for (Walk w = r->walk; w.i < w.nelems; walk_step(&w)) {
    Row *row = &r->row[w.at[0]];
    const double shifted = r->x[w.i] - row->max, weight = weight_of(r, &w);
    sum_add(&row->exponentials, exp(shifted));
    sum_add(&row->costs, -weight * shifted);
    sum_add(&row->weights, weight);
    if ((double)w.at[1] != row->label) continue;
    row->own_weight = weight;
    row->own_cost = -shifted;
  }
  for (int64_t i = 0; i < r->count; i++)
    if (!r->row[i].is_ignored) sum_add(&r->total, r->row[i].is_class ? r->row[i].own_weight : (double)NAN);
  return true;
}

static double row_loss(const Rows *r, const Row *row) {
  if (row->is_ignored) return 0;
  if (!row->is_class) return (double)NAN;
  const double log_sum = sum_log(&row->exponentials, r->e->noise);
  const double own = row->own_weight * (row->own_cost + log_sum);
  if (r->smoothing == 0) return own;
  const double all = sum_value(&row->costs, r->e->noise) + sum_value(&row->weights, r->e->noise) * log_sum;
  return (1 - r->smoothing) * own + r->smoothing / r->nclasses * all;
}

bool interpret_SoftmaxCrossEntropy(const Evaluation *e) {
  Rows r;
  Sum sum = {0};
  if (!rows_begin(&r, e)) return false;
  const int64_t reduction = node_s64(e->node, "reduction");
  for (int64_t i = 0; i < r.count; i++) {
    const double loss = row_loss(&r, &r.row[i]);
    if (reduction == LOSS_NONE) e->outputs[0][i] = loss;
    sum_add(&sum, loss);
  }
  if (reduction != LOSS_NONE) e->outputs[0][0] = sum_value(&sum, e->noise);
  if (reduction == LOSS_MEAN) e->outputs[0][0] /= sum_value(&r.total, e->noise);
  if (e->outputs[1]) e->outputs[1][0] = sum_value(&r.total, e->noise);
  return true;
}

bool interpret_SoftmaxCrossEntropyBackward(const Evaluation *e) {
  Rows r;
  if (!rows_begin(&r, e)) return false;
  const int64_t reduction = node_s64(e->node, "reduction");
  const double divisor = reduction != LOSS_MEAN ? 1 : e->inputs[3] ? e->inputs[3][0] : (double)r.count;
  for (Walk w = r.walk; w.i < w.nelems; walk_step(&w)) {
    const Row *row = &r.row[w.at[0]];
    const double dy = e->inputs[1][reduction == LOSS_NONE ? w.at[0] : 0] / divisor;
    const double weight = weight_of(&r, &w), spread = r.smoothing / r.nclasses;
    const double p = exp(r.x[w.i] - row->max) / sum_value(&row->exponentials, e->noise);
    const double own = (double)w.at[1] == row->label ? (1 - r.smoothing) * weight : 0;
    const double all = (1 - r.smoothing) * row->own_weight + spread * sum_value(&row->weights, e->noise);
    e->outputs[0][w.i] = row->is_ignored ? 0 : !row->is_class ? (double)NAN : dy * (p * all - (own + spread * weight));
  }
  return true;
}

static bool reduce_losses(const Evaluation *e, double (*loss)(double x, double target)) {
  const int64_t n = shape_nelems(&e->node->inputs[0]->shape), reduction = node_s64(e->node, "reduction");
  Sum sum = {0};
  for (int64_t i = 0; i < n; i++) {
    const double own = loss(e->inputs[0][i], e->inputs[1][i]);
    if (reduction == LOSS_NONE) e->outputs[0][i] = own;
    sum_add(&sum, own);
  }
  if (reduction != LOSS_NONE) e->outputs[0][0] = sum_value(&sum, e->noise) / (reduction == LOSS_MEAN ? (double)n : 1);
  return true;
}

static double squared_error(double x, double target) {
  return (x - target) * (x - target);
}

static double binary_cross_entropy(double x, double target) {
  return (x > 0 ? x : x != x ? x : 0) - x * target + log1p(exp(-fabs(x)));
}

INTERPRET(MeanSquaredError, reduce_losses(e, squared_error))
INTERPRET(BinaryCrossEntropy, reduce_losses(e, binary_cross_entropy))
