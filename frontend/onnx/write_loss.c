// Writers of losses and their gradients.
#include "frontend/onnx/expansion.h"
#include "frontend/onnx/write_standard.h"
#include "ir/operators/loss.h"

// The mean or sum of a value over all axes, as `reduction` says.
static void put_reduced(OnnxWriter *w, int64_t reduction, const char *each, int rank, const char *to) {
  const char *op = reduction == LOSS_MEAN ? "ReduceMean" : "ReduceSum";
  int64_t axes[MAX_RANK];
  for (int i = 0; i < rank; i++) axes[i] = i;
  onnx_begin(w, reduction == LOSS_NONE || rank == 0 ? "Identity" : op, each);
  if (reduction != LOSS_NONE && rank) onnx_add_axes(w, op, axes, (size_t)rank, false);
  onnx_end(w, to);
}

// `text` computes `each`, the loss of each element.
bool onnx_write_loss(OnnxWriter *w, const Node *node, const char *text) {
  Expansion f;
  expansion_init(&f, w);
  expansion_write(&f, text);
  put_reduced(w, node_s64(node, "reduction"), expansion_find(&f, "each"), node->inputs[0]->shape.rank, w->out[0]);
  return true;
}

// Cross entropy

static bool has_input(const Node *node, uint32_t i) {
  return i < node->ninputs && node->inputs[i];
}

// src with the classes on axis 1.
static const char *classes_second(OnnxWriter *w, const char *src, int rank, int axis) {
  int64_t order[MAX_RANK] = {0, axis};
  int count = 2;
  if (axis == 1) return src;
  for (int i = 1; i < rank; i++)
    if (i != axis) order[count++] = i;
  return onnx_put_transpose(w, src, order, rank, NULL);
}

static bool write_plain(OnnxWriter *w, const Node *node, const char *name) {
  static const char *const reductions[] = {[LOSS_MEAN] = "mean", [LOSS_SUM] = "sum", [LOSS_NONE] = "none"};
  const AttributeValue *ignored = node_attribute(node, "ignore_index");
  const Shape *shape = &node->inputs[0]->shape;
  const char *src = classes_second(w, w->in[0], shape->rank, loss_class_axis(node));
  onnx_begin(w, name, src, w->in[1], has_input(node, 2) ? w->in[2] : NULL);
  onnx_add_text(w, "reduction", reductions[node_s64(node, "reduction")]);
  if (ignored->is_set) onnx_add_int(w, "ignore_index", ignored->s64);
  return onnx_end(w, w->out[0]);
}

// Binds what the formulas of a loss and its gradient have in common: along the class axis `is_label` and `weights`, and
// with extent 1 on it `is_class`, `is_ignored` and `all_weights`.
static bool bind_labels(OnnxWriter *w, const Node *node, Expansion *f, uint32_t labels, uint32_t weights) {
  const Shape *shape = &node->inputs[0]->shape;
  const int axis = loss_class_axis(node), behind = shape->rank - 1 - axis;
  const AttributeValue *ignored = node_attribute(node, "ignore_index");
  const Extent classes = shape->extent[axis];
  const int64_t at = axis;
  int64_t axes[MAX_RANK];
  int nmoved = 0, count = 0;
  if (!extent_is_literal(classes) || shape_nelems(shape) == 0) return false;
  for (int i = axis + 1; i < shape->rank; i++) nmoved += !extent_is_literal(shape->extent[i]);
  if (nmoved > 1) return false;
  const char *y = onnx_put_cast(w, w->in[labels], TYPE_S64, NULL);
  y = onnx_put_axes(w, "Unsqueeze", y, &at, 1, NULL);
  const char *all = onnx_put_range(w, TYPE_S64, classes.value, behind);
  const int64_t number = ignored->is_set ? ignored->s64 : -1;
  for (int i = 0; i < shape->rank; i++)
    if (i != axis) axes[count++] = i;
  f->axis = axis;
  f->axes = (RecipeAxes){.items = {axis}, .count = 1};
  expansion_bind(f, "y", y, TYPE_S64);
  expansion_bind(f, "is_label", onnx_put(w, "Equal", NULL, y, all), TYPE_BOOLEAN);
  expansion_bind(f, "is_ignored", onnx_put(w, "Equal", NULL, y, onnx_put_initializer(w, TYPE_S64, NULL, 0, &number)),
                 TYPE_BOOLEAN);
  expansion_bind_number(f, "classes", (double)classes.value);
  if (has_input(node, weights)) {
    expansion_bind(f, "weights", onnx_put_axes(w, "Unsqueeze", w->in[weights], axes, (size_t)count, NULL), w->type);
    expansion_write(f, "all_weights = sum(weights)");
  } else {
    expansion_bind_number(f, "weights", 1);
    expansion_bind_number(f, "all_weights", (double)classes.value);
  }
  expansion_write(f, "is_class = And(y >= 0, y < classes); own = sum(Where(is_label, weights, 0))");
  return true;
}

// The loss as ONNX has it or, with label smoothing or with the total, by formula. Elements of other classes are
// selected to 0, as they may be infinite.
bool onnx_write_cross_entropy(OnnxWriter *w, const Node *node, const char *name) {
  const char *total = node->noutputs > 1 ? w->out[1] : NULL;
  const int64_t axis = loss_class_axis(node), reduction = node_s64(node, "reduction");
  const int rank = node->inputs[0]->shape.rank;
  Expansion f;
  if (!total && node_f32(node, "label_smoothing") == 0 && axis > 0 && rank > 1) return write_plain(w, node, name);
  expansion_init(&f, w);
  if (!bind_labels(w, node, &f, 1, 2)) return false;
  expansion_write(&f, "l = -logsoftmax(src); picked = sum(Where(is_label, weights * l, 0)); "
                      "cost = (1 - label_smoothing) * picked + label_smoothing / classes * sum(weights * l); "
                      "each = Where(is_class, cost, 0 / 0); counts = Where(is_class, own, 0 / 0)");
  if (node_attribute(node, "ignore_index")->is_set)
    expansion_write(&f, "each = Where(is_ignored, 0, each); counts = Where(is_ignored, 0, counts)");
  if (reduction == LOSS_MEAN && !total) total = onnx_fresh(w);
  if (total) put_reduced(w, LOSS_SUM, expansion_find(&f, "counts"), rank, total);
  if (reduction == LOSS_NONE) return onnx_put_axes(w, "Squeeze", expansion_find(&f, "each"), &axis, 1, w->out[0]);
  const char *sum = reduction == LOSS_SUM ? w->out[0] : onnx_fresh(w);
  put_reduced(w, LOSS_SUM, expansion_find(&f, "each"), rank, sum);
  if (reduction == LOSS_MEAN) onnx_put(w, "Div", w->out[0], sum, total);
  return true;
}

bool onnx_write_cross_entropy_backward(OnnxWriter *w, const Node *node, const char *text) {
  const int64_t axis = loss_class_axis(node), reduction = node_s64(node, "reduction"),
                count = shape_nelems(&node->inputs[2]->shape);
  Expansion f;
  expansion_init(&f, w);
  if (!bind_labels(w, node, &f, 2, 4)) return false;
  if (reduction == LOSS_NONE)
    expansion_bind(&f, "diff_loss", onnx_put_axes(w, "Unsqueeze", w->in[1], &axis, 1, NULL), w->type);
  if (reduction != LOSS_MEAN) expansion_bind_number(&f, "total", 1);
  else if (!has_input(node, 3) && onnx_shape_is_literal(&node->inputs[2]->shape))
    expansion_bind_number(&f, "total", (double)count);
  else if (!has_input(node, 3)) {
    const char *total = onnx_fresh(w);
    expansion_write(&f, "ones = Where(y == y, 1, 0)");
    put_reduced(w, LOSS_SUM, expansion_find(&f, "ones"), node->inputs[0]->shape.rank, total);
    expansion_bind(&f, "total", total, w->type);
  }
  expansion_write(&f, text);
  expansion_write(&f,
                  node_attribute(node, "ignore_index")->is_set ? "diff_src = Where(is_ignored, 0, d)" : "diff_src = d");
  return true;
}
