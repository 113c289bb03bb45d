// Writers of reductions, softmax, norms and their gradients. Formulas of norms are in terms of statistics with extent 1
// on the axes that they reduce; operands of other shapes get or lose such axes around them.
#include "frontend/onnx/expansion.h"
#include "frontend/onnx/write_standard.h"
#include "ir/operators/norm.h"
#include "ir/operators/softmax.h"

#include <string.h>

// Reductions

// Without axes each element is reduced alone.
bool onnx_write_reduce(OnnxWriter *w, const Node *node, const char *name) {
  const AttributeValue *axes = node_attribute(node, "axes");
  const bool is_norm = node->op->id == OP_ReduceL1 || node->op->id == OP_ReduceL2;
  onnx_begin(w, axes->list.count ? name : is_norm ? "Abs" : "Identity", w->in[0]);
  if (axes->list.count) onnx_add_axes(w, name, axes->list.items, axes->list.count, node_bool(node, "keep_dims"));
  return onnx_end(w, w->out[0]);
}

bool onnx_write_arg(OnnxWriter *w, const Node *node, const char *name) {
  const Type type = node->outputs[0]->type;
  onnx_begin(w, name, w->in[0]);
  onnx_add_int(w, "axis", node_s64(node, "axis"));
  onnx_add_int(w, "keepdims", node_bool(node, "keep_dims"));
  const char *to = onnx_end(w, type == TYPE_S64 ? w->out[0] : NULL);
  if (type != TYPE_S64) onnx_put_cast(w, to, type, w->out[0]);
  return true;
}

// Softmax

bool onnx_write_along_formula(OnnxWriter *w, const Node *node, const char *text) {
  Expansion f;
  expansion_init(&f, w);
  f.axis = softmax_axis(node);
  f.axes = (RecipeAxes){.items = {f.axis}, .count = 1};
  expansion_write(&f, text);
  return true;
}

// A row of -inf alone has the maximum -inf, in place of which inf_as_zero takes 0, and the sum 0, in place of which 1.
bool onnx_write_softmax(OnnxWriter *w, const Node *node, const char *name) {
  if (node->op->id == OP_SoftMax) {
    if (!onnx_choice_is(node, "mode", "none"))
      return onnx_write_along_formula(w, node,
                                      "g = most(src); m = Where(Abs(g) < 1 / 0, g, 0); e = Exp(src - m); s = sum(e); "
                                      "dst = e / Where(s == 0, 1, s); stats = m + Log(s)");
    if (node->noutputs > 1 && node->outputs[1])
      return onnx_write_along_formula(w, node,
                                      "m = most(src); e = Exp(src - m); s = sum(e); dst = e / s; stats = m + Log(s)");
  }
  return onnx_write_along_axis(w, node, name);
}

// Norms

// How operands meet src: `around` are the axes of extent 1 that vectors and statistics lack.
typedef struct NormShape {
  RecipeAxes statistic, parameter; // the axes that each lacks in front of, between and behind its own
  int64_t grouped[MAX_RANK];       // src's shape with groups as an axis
  size_t ngrouped;                 // its rank; 0: src's own
  int64_t split[2];                // a parameter's shape with groups
} NormShape;

static void add(RecipeAxes *axes, int64_t axis) {
  axes->items[axes->count++] = axis;
}

static void take_row(const Node *node, int rank, Expansion *f, NormShape *s) {
  const int begin = layer_norm_begin_axis(node);
  const Value *parameter = node->op->id == OP_RMSNormBackward ? node->outputs[1] : NULL;
  for (int i = 0; i < rank; i++) {
    add(i < begin ? &f->others : &f->axes, i);
    if (i >= begin) add(&s->statistic, i);
    else add(&s->parameter, i);
  }
  if (!parameter) return;
  // gamma may have src's rank, or extents of 1
  const int missing = rank - parameter->shape.rank;
  f->others.count = s->parameter.count = 0;
  for (int i = 0; i < rank; i++) {
    if (i < missing) add(&s->parameter, i);
    if (i < missing || extent_equals(parameter->shape.extent[i - missing], EXTENT(1))) add(&f->others, i);
  }
}

static void take_channel(const Node *node, int rank, Expansion *f, NormShape *s) {
  const uint32_t axes = norm_reduced_axes(node);
  const bool are_whole = batch_norm_has_broadcast_statistics(node);
  for (int i = 0; i < rank; i++) {
    if (!(axes >> i & 1)) continue;
    add(&f->axes, i);
    add(&f->others, i);
    if (are_whole) continue;
    add(&s->statistic, i);
    add(&s->parameter, i);
  }
}

// With a group a channel, no axis is split.
static void take_instances(int rank, int channel, Expansion *f, NormShape *s) {
  for (int i = 0; i < rank; i++) {
    if (i != channel && i != 0) add(&f->axes, i);
    if (i != channel) add(&f->others, i);
  }
  s->statistic = f->axes;
  s->parameter = f->others;
}

static bool take_groups(const Node *node, const Shape *shape, Expansion *f, NormShape *s) {
  const int rank = shape->rank, channel = norm_channel_axis(node);
  const Extent groups = norm_ngroups(node), channels = shape->extent[channel];
  if (extent_equals(groups, channels)) return take_instances(rank, channel, f, s), true;
  for (int i = 1; i < rank; i++)
    if (!extent_is_literal(shape->extent[i])) return false;
  if (!extent_is_literal(groups) || !extent_is_literal(channels) || groups.value < 1 || shape_nelems(shape) == 0)
    return false;
  const bool is_last = rank > 2 && channel == rank - 1;
  const int64_t of_group = channels.value / groups.value, first[] = {0, groups.value, of_group, -1},
                last[] = {0, -1, groups.value, of_group};
  s->ngrouped = rank > 2 ? 4 : 3;
  memcpy(s->grouped, is_last ? last : first, sizeof first);
  s->split[0] = groups.value;
  s->split[1] = of_group;
  add(&f->others, 0);
  if (is_last) add(&f->others, 1);
  else if (rank > 2) add(&f->others, 3);
  for (int i = 1; i < (int)s->ngrouped; i++)
    if (i != (is_last ? 2 : 1)) add(&f->axes, i);
  s->statistic = f->axes;
  s->parameter = f->others;
  return true;
}

static const char *as_data(OnnxWriter *w, const NormShape *s, const char *v) {
  return s->ngrouped ? onnx_put_reshape(w, v, s->grouped, s->ngrouped, NULL) : v;
}

// A parameter or statistic with all axes of data; leading ones come by broadcasting.
static const char *as_operand(OnnxWriter *w, const NormShape *s, const char *v, bool is_statistic) {
  const RecipeAxes *axes = is_statistic ? &s->statistic : &s->parameter;
  if (s->ngrouped && !is_statistic) v = onnx_put_reshape(w, v, s->split, 2, NULL);
  return onnx_put_axes(w, "Unsqueeze", v, axes->items, axes->count, NULL);
}

// Whether a layer norm's parameter over several axes is given with one.
static bool is_flat(const Node *node, const Value *parameter) {
  const bool is_layer_norm = node->op->id == OP_LayerNorm || node->op->id == OP_LayerNormBackward;
  return is_layer_norm && parameter->shape.rank == 1 && node->inputs[0]->shape.rank - layer_norm_begin_axis(node) > 1;
}

// A layer norm's parameter, with the extents of src's last axes. False: they are no numbers.
static const char *as_row(OnnxWriter *w, const Node *node, uint32_t i) {
  const Shape *src = &node->inputs[0]->shape;
  const int begin = layer_norm_begin_axis(node);
  Shape row = {.rank = src->rank - begin};
  if (!is_flat(node, node->inputs[i])) return w->in[i];
  memcpy(row.extent, src->extent + begin, (size_t)row.rank * sizeof *row.extent);
  return onnx_shape_is_literal(&row) ? onnx_put_shape(w, w->in[i], &row, false, NULL) : NULL;
}

static bool put_result(OnnxWriter *w, const NormShape *s, char type, const char *from, const Value *v, const char *to) {
  const RecipeAxes *axes = type == 'M' ? &s->statistic : &s->parameter;
  int nopen = 0;
  for (int i = 0; i < v->shape.rank; i++) nopen += !extent_is_literal(v->shape.extent[i]);
  if (type == 'S' && nopen > 1) return false; // the reader cannot move them
  const bool is_whole = type == 'T' || (type == 'S' && (s->ngrouped || is_flat(w->source, v)));
  return is_whole ? onnx_put_shape(w, from, &v->shape, type == 'T', to)
                  : onnx_put_axes(w, "Squeeze", from, axes->items, axes->count, to);
}

bool onnx_write_norm(OnnxWriter *w, const Node *node, const char *text) {
  const Shape *shape = &node->inputs[0]->shape;
  const char *targets[MAX_OPERANDS] = {NULL};
  Expansion f;
  NormShape s = {.ngrouped = 0};
  expansion_init(&f, w);
  switch (node->op->norm_scope) {
  case SCOPE_ROW: take_row(node, shape->rank, &f, &s); break;
  case SCOPE_CHANNEL: take_channel(node, shape->rank, &f, &s); break;
  default:
    if (!take_groups(node, shape, &f, &s)) return false;
  }
  for (uint32_t i = 0; i < node->op->ninputs; i++) {
    const Operand *row = &node->op->inputs[i];
    if (i >= node->ninputs || !node->inputs[i]) continue;
    const bool is_row = row->type == 'S' && node->op->norm_scope == SCOPE_ROW; // broadcast from behind
    const char *v = row->type == 'T' ? as_data(w, &s, w->in[i])
                    : is_row         ? as_row(w, node, i)
                                     : as_operand(w, &s, w->in[i], row->type == 'M');
    if (!v) return false;
    expansion_bind(&f, row->name, v, w->type);
  }
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const char type = node->op->outputs[i].type;
    if (type == 'M' && node->outputs[i] && shape_nelems(shape) == 0) return false; // 0, and not the mean of nothing
    targets[i] = f.targets[i];
    if (f.targets[i] && (type != 'T' || s.ngrouped)) f.targets[i] = onnx_fresh(w);
  }
  expansion_write(&f, text);
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (node->outputs[i] && targets[i] != f.targets[i] &&
        !put_result(w, &s, node->op->outputs[i].type, f.targets[i], node->outputs[i], targets[i]))
      return false;
  return true;
}

// With gamma and without statistics it is ONNX's own operator.
bool onnx_write_layer_norm(OnnxWriter *w, const Node *node, const char *text) {
  const bool is_exact = w->type != TYPE_F64 || onnx_is_float(node_f32(node, "epsilon"));
  if (!node->inputs[1] || node->outputs[1] || node->outputs[2] || !is_exact) return onnx_write_norm(w, node, text);
  const char *gamma = as_row(w, node, 1), *beta = node->inputs[2] ? as_row(w, node, 2) : NULL;
  if (!gamma || (node->inputs[2] && !beta)) return false;
  onnx_begin(w, "LayerNormalization", w->in[0], gamma, beta);
  onnx_add_int(w, "axis", node_s64(node, "begin_norm_axis"));
  onnx_add_float(w, "epsilon", node_f32(node, "epsilon"));
  return onnx_end(w, w->out[0]);
}

// ONNX's operators have the channels on axis 1.
static bool write_channels(OnnxWriter *w, const Node *node, const char *name) {
  const char *from = onnx_put_data(w, node, w->in[0]), *to = onnx_begin_data(w, node);
  onnx_begin(w, name, from);
  for (uint32_t i = 1; i < node->ninputs; i++) onnx_add_input(w, w->in[i]);
  onnx_add_float(w, "epsilon", node_f32(node, "epsilon"));
  return onnx_end_data(w, node, onnx_end(w, to));
}

bool onnx_write_instance_norm(OnnxWriter *w, const Node *node, const char *text) {
  const bool is_exact = w->type != TYPE_F64 || onnx_is_float(node_f32(node, "epsilon")),
             is_plain = is_exact && node->inputs[1] && node->inputs[2] && !node->outputs[1] && !node->outputs[2];
  return is_plain && node->inputs[0]->shape.rank > 2 ? write_channels(w, node, "InstanceNormalization")
                                                     : onnx_write_norm(w, node, text);
}

bool onnx_write_batch_norm(OnnxWriter *w, const Node *node, const char *name) {
  if (w->type != TYPE_F64 || onnx_is_float(node_f32(node, "epsilon"))) return write_channels(w, node, name);
  return onnx_write_norm(w, node, "dst = (src - mean) / Sqrt(variance + epsilon) * gamma + beta");
}

// An empty batch has the mean and the variance 0.
bool onnx_write_batch_norm_training(OnnxWriter *w, const Node *node, const char *text) {
  return shape_nelems(&node->inputs[0]->shape) != 0 && onnx_write_norm(w, node, text);
}

bool onnx_write_batch_norm_backward(OnnxWriter *w, const Node *node, const char *text) {
  if (node_s64(node, "center") == CENTER_MEAN) return onnx_write_norm(w, node, text);
  return onnx_write_norm(w, node,
                         "r = 1 / Sqrt(variance + epsilon); x = (src - mean(src)) * r; g = gamma * diff_dst; "
                         "diff_src = r * (g - mean(g) - x * mean(g * x)); "
                         "diff_gamma = r * total(diff_dst * (src - mean)); diff_beta = total(diff_dst)");
}

// Vectors along the channels

// The axes of the data from which a bias or slope of this shape differs, as broadcast by numpy; a vector is along the
// channels. *behind: how many axes of extent 1 it needs behind its own.
static void take_vector(const Node *node, int rank, const Shape *shape, Expansion *f, int *behind) {
  const bool is_by_channel =
      !operator_has_attribute(node->op, "per_channel_broadcast") || node_bool(node, "per_channel_broadcast");
  const bool is_vector = shape->rank == 1 && is_by_channel && !extent_equals(shape->extent[0], EXTENT(1));
  const int channel = is_vector ? node_channel_axis(node, rank) : rank - 1, last = channel < rank ? channel : rank - 1;
  *behind = rank - 1 - last;
  f->others.count = 0;
  for (int i = 0; i < rank; i++) {
    const int own = i - (last + 1 - shape->rank);
    if (own < 0 || own >= shape->rank || extent_equals(shape->extent[own], EXTENT(1))) add(&f->others, i);
  }
}

bool onnx_write_bias(OnnxWriter *w, const Node *node, const char *text) {
  const int rank = node->inputs[0]->shape.rank;
  const uint32_t out = node->noutputs > 1 ? 1 : 0; // of the vector, in a gradient
  const bool has_vector = node->ninputs > 1;
  const Value *v = has_vector ? node->inputs[1] : node->outputs[0];
  RecipeAxes axes = {.count = 0};
  Expansion f;
  int behind;
  expansion_init(&f, w);
  take_vector(node, rank, &v->shape, &f, &behind);
  for (int i = 0; i < behind; i++) add(&axes, v->shape.rank + i);
  if (has_vector)
    expansion_bind(&f, node->op->inputs[1].name, onnx_put_axes(w, "Unsqueeze", w->in[1], axes.items, axes.count, NULL),
                   w->type);
  const bool has_result = !has_vector || out;
  const char *target = f.targets[out];
  if (has_result && target) f.targets[out] = onnx_fresh(w);
  expansion_write(&f, text);
  return !has_result || !target || onnx_put_shape(w, f.targets[out], &v->shape, false, target);
}
