// Batch normalisation and its gradients. oneDNN's dims are [N, C, pixels...] whatever the layout, which is in the
// strides.
#include "tests/bench/onednn/sequence.h"

#include "ir/operators/norm.h"
#include "tests/bench/norm_groups.h"

typedef struct BatchNorm {
  Desc given, used; // data's layout in the graph, and the primitive's layout
  const Value *src, *gamma;
  unsigned flags;
  float epsilon;
} BatchNorm;

// Descriptions

// The graph's own axes, the channel's moved to the second place.
static bool desc_as_is(Desc *desc, const Shape *shape, int channel_axis, dnnl_data_type_t type) {
  dnnl_dims_t dims, strides;
  int64_t stride = 1;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    int to = axis == channel_axis ? 1 : axis == 0 ? 0 : axis < channel_axis ? axis + 1 : axis;
    dims[to] = extent_value(shape->extent[axis]);
    strides[to] = stride;
    stride *= dims[to];
  }
  return desc_by_strides(desc, shape->rank, dims, type, strides);
}

// [N, C, pixels, 1]. A matrix of rank 2 is taken as one with the channels last.
static bool desc_as_image(Desc *desc, const Shape *shape, int channel_axis, dnnl_data_type_t type) {
  const int64_t batch = extent_value(shape->extent[0]), channels = extent_value(shape->extent[channel_axis]);
  int64_t pixels = 1;
  for (int axis = 1; axis < shape->rank; axis++)
    if (axis != channel_axis) pixels *= extent_value(shape->extent[axis]);
  const bool is_channels_last = channel_axis == shape->rank - 1;
  const dnnl_dims_t dims = {batch, channels, pixels, 1};
  const dnnl_dims_t last = {pixels * channels, 1, channels, channels}, first = {channels * pixels, pixels, 1, 1};
  return desc_by_strides(desc, 4, dims, type, is_channels_last ? last : first);
}

static bool batch_norm_init(const Sequence *s, BatchNorm *b, const Node *node) {
  NormGroups n;
  *b = (BatchNorm){.src = node->inputs[0], .gamma = node_input(node, "gamma")};
  b->epsilon = (float)node_f32(node, "epsilon");
  if (!norm_groups(node, &n) || node_input(node, "mean")->type != TYPE_F32) return false;
  const Shape *shape = &b->src->shape;
  const int channel_axis = norm_channel_axis(node);
  const dnnl_data_type_t type = onednn_type(b->src->type);
  bool is_image = s->form & (FORM_AS_IMAGES | FORM_BLOCKED);
  if (!(is_image ? desc_as_image : desc_as_is)(&b->given, shape, channel_axis, type)) return false;
  b->used = b->given;
  return !(s->form & FORM_BLOCKED) || desc_by_tag(&b->used, 4, b->given.dims, type, dnnl_nChw16c);
}

// Data in the layout that is used

static bool is_reordered(const BatchNorm *b) {
  return !desc_equal(&b->given, &b->used);
}

// The memory in which the primitive finds v, after a reorder if one is needed. NULL: impossible.
static void *place_to_read(Sequence *s, const BatchNorm *b, const Value *v) {
  void *place = s->places[v->index];
  if (!is_reordered(b)) return place;
  void *buffer = sequence_buffer(s, desc_nbytes(&b->used));
  return buffer && sequence_reorder(s, &b->given, place, &b->used, buffer) ? buffer : NULL;
}

// The memory in which the primitive stores v; finish_writing converts it to the graph's layout.
static void *place_to_write(Sequence *s, const BatchNorm *b, const Value *v) {
  return is_reordered(b) ? sequence_buffer(s, desc_nbytes(&b->used)) : s->places[v->index];
}

static bool finish_writing(Sequence *s, const BatchNorm *b, void *place, const Value *v) {
  return !is_reordered(b) || sequence_reorder(s, &b->used, place, &b->given, s->places[v->index]);
}

// Forwards

static Step *add_forward_step(Sequence *s, const BatchNorm *b, dnnl_prop_kind_t kind) {
  const NormDesc norm = {.data = &b->used, .epsilon = b->epsilon, .flags = b->flags};
  return sequence_add(s, describe_batch_norm(s->engine, kind, &norm));
}

static bool add_forward(Sequence *s, BatchNorm *b, const Node *node, dnnl_prop_kind_t kind, const Value *mean,
                        const Value *variance) {
  const Value *beta = node_input(node, "beta"), *dst = node->outputs[0];
  if (b->gamma) b->flags |= dnnl_use_scale;
  if (beta) b->flags |= dnnl_use_shift;
  void *from = place_to_read(s, b, b->src), *to = place_to_write(s, b, dst);
  Step *step = from && to ? add_forward_step(s, b, kind) : NULL;
  return step && sequence_set(s, step, DNNL_ARG_SRC, &b->used, from) &&
         sequence_set(s, step, DNNL_ARG_DST, &b->used, to) && sequence_set_vector(s, step, DNNL_ARG_MEAN, mean) &&
         sequence_set_vector(s, step, DNNL_ARG_VARIANCE, variance) &&
         (!b->gamma || sequence_set_vector(s, step, DNNL_ARG_SCALE, b->gamma)) &&
         (!beta || sequence_set_vector(s, step, DNNL_ARG_SHIFT, beta)) && finish_writing(s, b, to, dst);
}

bool add_batch_norm_inference(Sequence *s, const Node *node) {
  BatchNorm b;
  if (!batch_norm_init(s, &b, node)) return false;
  b.flags = dnnl_use_global_stats;
  return add_forward(s, &b, node, dnnl_forward_inference, node_input(node, "mean"), node_input(node, "variance"));
}

bool add_batch_norm_training(Sequence *s, const Node *node) {
  BatchNorm b;
  const Value *mean = node_output(node, "batch_mean"), *variance = node_output(node, "batch_variance");
  const Value *new_mean = node_output(node, "running_mean"), *new_variance = node_output(node, "running_variance");
  const float momentum = (float)node_f32(node, "momentum");
  if (!batch_norm_init(s, &b, node) || !mean || !variance) return false;
  if (!add_forward(s, &b, node, dnnl_forward_training, mean, variance)) return false;
  return (!new_mean || sequence_add_weighted(s, node_input(node, "mean"), momentum, mean, 1 - momentum, new_mean)) &&
         (!new_variance ||
          sequence_add_weighted(s, node_input(node, "variance"), momentum, variance, 1 - momentum, new_variance));
}

// Backwards

typedef struct Mask { // of a fused ReLU
  Desc desc;
  void *data; // NULL: nothing is fused
} Mask;

bool workspace_desc(const Step *step, Desc *desc) {
  const_dnnl_primitive_desc_t description;
  if (dnnl_primitive_get_primitive_desc(step->primitive, &description) != dnnl_success) return false;
  const Desc *wanted = desc_wanted(description, dnnl_query_workspace_md);
  if (wanted) *desc = *wanted;
  return wanted;
}

// Runs the forward pass, which stores y and the mask as in a training step: once, not timed.
static bool keep_mask(Sequence *s, const BatchNorm *b, const Value *y, Mask *mask) {
  Desc vector;
  if (!vector_desc(&vector, b->gamma)) return false;
  const size_t nbytes = desc_nbytes(&vector);
  void *mean = sequence_buffer(s, nbytes), *variance = sequence_buffer(s, nbytes), *zeros = sequence_buffer(s, nbytes);
  void *from = place_to_read(s, b, b->src), *to = place_to_write(s, b, y);
  Step *step = mean && variance && zeros && from && to ? add_forward_step(s, b, dnnl_forward_training) : NULL;
  if (!step || !workspace_desc(step, &mask->desc)) return false;
  mask->data = sequence_buffer(s, desc_nbytes(&mask->desc));
  return mask->data && sequence_set(s, step, DNNL_ARG_SRC, &b->used, from) &&
         sequence_set(s, step, DNNL_ARG_DST, &b->used, to) && sequence_set(s, step, DNNL_ARG_MEAN, &vector, mean) &&
         sequence_set(s, step, DNNL_ARG_VARIANCE, &vector, variance) &&
         sequence_set_vector(s, step, DNNL_ARG_SCALE, b->gamma) &&
         sequence_set(s, step, DNNL_ARG_SHIFT, &vector, zeros) &&
         sequence_set(s, step, DNNL_ARG_WORKSPACE, &mask->desc, mask->data) && finish_writing(s, b, to, y) &&
         sequence_settle(s);
}

static Step *add_backward_step(Sequence *s, const BatchNorm *b, bool wants_parameters) {
  const dnnl_prop_kind_t kind = wants_parameters ? dnnl_backward : dnnl_backward_data;
  const NormDesc norm = {.data = &b->used, .epsilon = b->epsilon, .flags = b->flags};
  dnnl_primitive_desc_t hint = describe_batch_norm(s->engine, dnnl_forward_training, &norm);
  return sequence_add_gradient(s, describe_batch_norm_gradient(s->engine, kind, &norm, hint), hint);
}

static bool set_backward(Sequence *s, Step *step, const BatchNorm *b, const Node *node, const Mask *mask) {
  const Value *diff_gamma = node_output(node, "diff_gamma"), *diff_beta = node_output(node, "diff_beta");
  return sequence_set_vector(s, step, DNNL_ARG_MEAN, node_input(node, "mean")) &&
         sequence_set_vector(s, step, DNNL_ARG_VARIANCE, node_input(node, "variance")) &&
         (!b->gamma || sequence_set_vector(s, step, DNNL_ARG_SCALE, b->gamma)) &&
         (!diff_gamma || sequence_set_parameter_gradients(s, step, b->gamma, diff_gamma, diff_beta)) &&
         (!mask->data || sequence_set(s, step, DNNL_ARG_WORKSPACE, &mask->desc, mask->data));
}

bool add_batch_norm_backward(Sequence *s, const Node *node) {
  BatchNorm b;
  Mask mask = {.data = NULL};
  const bool wants_parameters = node_output(node, "diff_gamma");
  const bool is_frozen = node->op->id == OP_BatchNormInferenceBackward;
  const Node *relu = fused_relu(s, node);
  if (!batch_norm_init(s, &b, node) || (wants_parameters && !b.gamma)) return false;
  if (!is_frozen && node_s64(node, "center") != CENTER_MEAN) return false;
  b.flags = (b.gamma ? dnnl_use_scale : 0) | (wants_parameters ? dnnl_use_shift : 0) |
            (is_frozen ? dnnl_use_global_stats : 0) | (relu ? dnnl_fuse_norm_relu : 0);
  if (relu && (!wants_parameters || !keep_mask(s, &b, relu->inputs[0], &mask))) return false;
  const Value *diff_dst = relu ? relu->inputs[1] : node_input(node, "diff_dst"), *diff_src = node->outputs[0];
  void *src = place_to_read(s, &b, b.src), *from = place_to_read(s, &b, diff_dst);
  void *to = place_to_write(s, &b, diff_src);
  Step *step = src && from && to ? add_backward_step(s, &b, wants_parameters) : NULL;
  return step && sequence_set(s, step, DNNL_ARG_SRC, &b.used, src) &&
         sequence_set(s, step, DNNL_ARG_DIFF_DST, &b.used, from) &&
         sequence_set(s, step, DNNL_ARG_DIFF_SRC, &b.used, to) && set_backward(s, step, &b, node, &mask) &&
         finish_writing(s, &b, to, diff_src);
}
