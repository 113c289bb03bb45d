// Convolutions and their gradients, by the direct algorithm, which computes the graph's sums. A transposed convolution
// is the gradient of a convolution with respect to its data; its own gradients are a convolution, and the gradient of
// this convolution with respect to the weights. The sides of the windows say which tensor is computed from which.
#include "tests/bench/onednn/sequence.h"

#include "ir/operators/contraction.h"
#include "ir/operators/window.h"

#include <string.h>

// A convolution's tensors, or their gradients.
typedef struct Tensors {
  const Value *src, *weights, *bias, *dst;
  Desc src_desc, weights_desc, bias_desc, dst_desc; // the graph's
  Desc src_wanted, weights_wanted, dst_wanted;      // by the form
  Windows windows;
} Tensors;

// [groups, O, I, kernel...], without the first if there is one group.
static bool weights_desc_init(Desc *desc, const Node *node, const Value *v) {
  const Convolution c = node_convolution(node);
  int64_t stride[MAX_RANK], next = 1;
  dnnl_dims_t dims, strides;
  int rank = 0;
  for (int axis = v->shape.rank - 1; axis >= 0; axis--) {
    stride[axis] = next;
    next *= extent_value(v->shape.extent[axis]);
  }
  const int64_t channels = extent_value(v->shape.extent[c.weights_small]) / c.groups;
  if (c.groups > 1) {
    dims[rank] = c.groups;
    strides[rank++] = channels * stride[c.weights_small];
  }
  dims[rank] = channels;
  strides[rank++] = stride[c.weights_small];
  dims[rank] = extent_value(v->shape.extent[c.weights_large]);
  strides[rank++] = stride[c.weights_large];
  for (int i = 0; i < c.nspatial; i++) {
    dims[rank] = extent_value(v->shape.extent[c.weights_kernel + i]);
    strides[rank++] = stride[c.weights_kernel + i];
  }
  return desc_by_strides(desc, rank, dims, onednn_type(v->type), strides);
}

static bool tensors_init(const Sequence *s, Tensors *t, const Node *node) {
  memset(t, 0, sizeof *t);
  t->src = node_side(node, SIDE_LARGE);
  t->weights = node_side(node, SIDE_WEIGHTS);
  t->dst = node_side(node, SIDE_SMALL);
  t->bias = convolution_bias(node);
  t->windows = node_windows(node);
  if (!side_desc(&t->src_desc, node, t->src) || !side_desc(&t->dst_desc, node, t->dst) ||
      !weights_desc_init(&t->weights_desc, node, t->weights) || (t->bias && !vector_desc(&t->bias_desc, t->bias)))
    return false;
  t->src_wanted = t->src_desc;
  t->weights_wanted = t->weights_desc;
  t->dst_wanted = t->dst_desc;
  if (s->form & FORM_ANY_WEIGHTS) desc_of_any(&t->weights_wanted);
  if (s->form & FORM_ANY_DATA) {
    desc_of_any(&t->src_wanted);
    desc_of_any(&t->dst_wanted);
  }
  return true;
}

static ConvolutionDesc wanted(const Tensors *t) {
  return (ConvolutionDesc){&t->src_wanted, &t->weights_wanted, t->bias ? &t->bias_desc : NULL, &t->dst_wanted,
                           &t->windows};
}

static bool add_forward(Sequence *s, const Tensors *t, const_dnnl_primitive_desc_t description, const Value *result) {
  Chosen src, weights, dst;
  if (!chosen_read(s, &src, desc_wanted(description, dnnl_query_src_md), &t->src_desc, t->src) ||
      !chosen_read(s, &weights, desc_wanted(description, dnnl_query_weights_md), &t->weights_desc, t->weights) ||
      !chosen_write(s, &dst, desc_wanted(description, dnnl_query_dst_md), &t->dst_desc, result))
    return false;
  Step *step = sequence_add_primitive(s, description);
  return step && sequence_set(s, step, DNNL_ARG_SRC, &src.used, src.place) &&
         sequence_set(s, step, DNNL_ARG_WEIGHTS, &weights.used, weights.place) &&
         sequence_set(s, step, DNNL_ARG_DST, &dst.used, dst.place) &&
         (!t->bias || sequence_set_vector(s, step, DNNL_ARG_BIAS, t->bias)) && chosen_finish(s, &dst);
}

// Adds the steps of a primitive that was described, by add, and destroys the description.
static bool add_described(Sequence *s, const Tensors *t, dnnl_primitive_desc_t description,
                          bool (*add)(Sequence *, const Tensors *, const_dnnl_primitive_desc_t, const Value *),
                          const Value *result) {
  if (!description) return false;
  const bool ok = !is_needless_reference(s, description) && add(s, t, description, result);
  dnnl_primitive_desc_destroy(description);
  return ok;
}

bool add_convolution(Sequence *s, const Node *node) {
  Tensors t;
  dnnl_primitive_attr_t attributes = NULL;
  const Value *result = node->outputs[0];
  if (!tensors_init(s, &t, node) || !sequence_take_post_op(s, &result, &attributes)) return false;
  const ConvolutionDesc c = wanted(&t);
  const bool ok = add_described(s, &t, describe_convolution(s->engine, &c, attributes), add_forward, result);
  dnnl_primitive_attr_destroy(attributes);
  return ok;
}

// A gradient's primitive, with the forward primitive as a hint.
static dnnl_primitive_desc_t describe_gradient(const Sequence *s, const Tensors *t,
                                               dnnl_primitive_desc_t (*describe)(dnnl_engine_t, const ConvolutionDesc *,
                                                                                 const_dnnl_primitive_desc_t)) {
  ConvolutionDesc c = wanted(t);
  c.bias = NULL;
  dnnl_primitive_desc_t hint = describe_convolution(s->engine, &c, NULL);
  dnnl_primitive_desc_t out = describe(s->engine, &c, hint);
  if (hint) dnnl_primitive_desc_destroy(hint);
  return out;
}

static bool add_by_data(Sequence *s, const Tensors *t, const_dnnl_primitive_desc_t description, const Value *result) {
  Chosen diff_src, weights, diff_dst;
  if (!chosen_read(s, &diff_dst, desc_wanted(description, dnnl_query_diff_dst_md), &t->dst_desc, t->dst) ||
      !chosen_read(s, &weights, desc_wanted(description, dnnl_query_weights_md), &t->weights_desc, t->weights) ||
      !chosen_write(s, &diff_src, desc_wanted(description, dnnl_query_diff_src_md), &t->src_desc, result))
    return false;
  Step *step = sequence_add_primitive(s, description);
  return step && sequence_set(s, step, DNNL_ARG_DIFF_DST, &diff_dst.used, diff_dst.place) &&
         sequence_set(s, step, DNNL_ARG_WEIGHTS, &weights.used, weights.place) &&
         sequence_set(s, step, DNNL_ARG_DIFF_SRC, &diff_src.used, diff_src.place) && chosen_finish(s, &diff_src);
}

// Adds a transposed convolution's bias, [C], to its result, [N, C, pixels...], in place.
static bool add_channel_bias(Sequence *s, const Tensors *t) {
  dnnl_dims_t dims = {0}, strides;
  Desc bias;
  const int rank = t->src_desc.ndims;
  for (int axis = 0; axis < rank; axis++) {
    dims[axis] = axis == 1 ? t->src_desc.dims[1] : 1;
    strides[axis] = axis == 0 ? t->src_desc.dims[1] : 1;
  }
  if (!desc_by_strides(&bias, rank, dims, t->bias_desc.data_type, strides)) return false;
  Step *step = sequence_add(s, describe_add(s->engine, &t->src_desc, &bias, &t->src_desc));
  void *data = s->places[t->src->index];
  return step && sequence_set(s, step, DNNL_ARG_SRC_0, &t->src_desc, data) &&
         sequence_set(s, step, DNNL_ARG_SRC_1, &bias, s->places[t->bias->index]) &&
         sequence_set(s, step, DNNL_ARG_DST, &t->src_desc, data);
}

bool add_convolution_backward_data(Sequence *s, const Node *node) {
  Tensors t;
  return tensors_init(s, &t, node) &&
         add_described(s, &t, describe_gradient(s, &t, describe_convolution_by_data), add_by_data, t.src) &&
         (!t.bias || add_channel_bias(s, &t));
}

static bool add_by_weights(Sequence *s, const Tensors *t, const_dnnl_primitive_desc_t description,
                           const Value *result) {
  Chosen src, diff_weights, diff_dst;
  if (!chosen_read(s, &src, desc_wanted(description, dnnl_query_src_md), &t->src_desc, t->src) ||
      !chosen_read(s, &diff_dst, desc_wanted(description, dnnl_query_diff_dst_md), &t->dst_desc, t->dst) ||
      !chosen_write(s, &diff_weights, desc_wanted(description, dnnl_query_diff_weights_md), &t->weights_desc, result))
    return false;
  Step *step = sequence_add_primitive(s, description);
  return step && sequence_set(s, step, DNNL_ARG_SRC, &src.used, src.place) &&
         sequence_set(s, step, DNNL_ARG_DIFF_DST, &diff_dst.used, diff_dst.place) &&
         sequence_set(s, step, DNNL_ARG_DIFF_WEIGHTS, &diff_weights.used, diff_weights.place) &&
         chosen_finish(s, &diff_weights);
}

bool add_convolution_backward_weights(Sequence *s, const Node *node) {
  Tensors t;
  return tensors_init(s, &t, node) &&
         add_described(s, &t, describe_gradient(s, &t, describe_convolution_by_weights), add_by_weights, t.weights);
}
