// oneDNN 2: layouts are structs, and a primitive is described by a struct of its operation.
#include "tests/bench/onednn/library.h"

// Layouts

bool desc_by_strides(Desc *desc, int rank, const dnnl_dims_t dims, dnnl_data_type_t type, const dnnl_dims_t strides) {
  return dnnl_memory_desc_init_by_strides(desc, rank, dims, type, strides) == dnnl_success;
}

bool desc_by_tag(Desc *desc, int rank, const dnnl_dims_t dims, dnnl_data_type_t type, dnnl_format_tag_t tag) {
  Desc made; // dims may be those of desc
  const bool ok = dnnl_memory_desc_init_by_tag(&made, rank, dims, type, tag) == dnnl_success;
  if (ok) *desc = made;
  return ok;
}

bool desc_equal(const Desc *a, const Desc *b) {
  return dnnl_memory_desc_equal(a, b);
}

size_t desc_nbytes(const Desc *desc) {
  return dnnl_memory_desc_get_size(desc);
}

const Desc *desc_wanted(const_dnnl_primitive_desc_t description, dnnl_query_t operand) {
  return dnnl_primitive_desc_query_md(description, operand, 0);
}

bool memory_create(dnnl_memory_t *memory, const Desc *desc, dnnl_engine_t engine, void *data) {
  return dnnl_memory_create(memory, desc, engine, data) == dnnl_success;
}

bool post_ops_append(dnnl_post_ops_t operations, dnnl_alg_kind_t kind, float alpha) {
  return dnnl_post_ops_append_eltwise(operations, 1, kind, alpha, 0) == dnnl_success;
}

// Primitives

// Of an operation that was described with `status`; hint: the forward primitive of a gradient.
static dnnl_primitive_desc_t described(dnnl_engine_t engine, dnnl_status_t status, const void *operation,
                                       const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attributes) {
  dnnl_primitive_desc_t out = NULL;
  if (status != dnnl_success) return NULL;
  return dnnl_primitive_desc_create(&out, operation, attributes, engine, hint) == dnnl_success ? out : NULL;
}

dnnl_primitive_desc_t describe_reorder(dnnl_engine_t engine, const Desc *from, const Desc *to) {
  dnnl_primitive_desc_t out = NULL;
  return dnnl_reorder_primitive_desc_create(&out, from, engine, to, engine, NULL) == dnnl_success ? out : NULL;
}

dnnl_primitive_desc_t describe_sum(dnnl_engine_t engine, const Desc *desc, const float scales[2]) {
  const Desc sources[2] = {*desc, *desc};
  dnnl_primitive_desc_t out = NULL;
  return dnnl_sum_primitive_desc_create(&out, desc, 2, scales, sources, NULL, engine) == dnnl_success ? out : NULL;
}

dnnl_primitive_desc_t describe_add(dnnl_engine_t engine, const Desc *a, const Desc *b, const Desc *dst) {
  dnnl_binary_desc_t add;
  return described(engine, dnnl_binary_desc_init(&add, dnnl_binary_add, a, b, dst), &add, NULL, NULL);
}

dnnl_primitive_desc_t describe_reduction(dnnl_engine_t engine, const Desc *src, const Desc *dst) {
  dnnl_reduction_desc_t sum;
  return described(engine, dnnl_reduction_desc_init(&sum, dnnl_reduction_sum, src, dst, 0, 0), &sum, NULL, NULL);
}

dnnl_primitive_desc_t describe_product(dnnl_engine_t engine, const Desc *src, const Desc *weights, const Desc *bias,
                                       const Desc *dst, const_dnnl_primitive_attr_t attributes) {
  dnnl_matmul_desc_t product;
  return described(engine, dnnl_matmul_desc_init(&product, src, weights, bias, dst), &product, NULL, attributes);
}

dnnl_primitive_desc_t describe_eltwise(dnnl_engine_t engine, dnnl_prop_kind_t direction, dnnl_alg_kind_t kind,
                                       const Desc *data, float alpha) {
  dnnl_eltwise_desc_t forward;
  return described(engine, dnnl_eltwise_forward_desc_init(&forward, direction, kind, data, alpha, 0), &forward, NULL,
                   NULL);
}

dnnl_primitive_desc_t describe_eltwise_gradient(dnnl_engine_t engine, dnnl_alg_kind_t kind, const Desc *data,
                                                const_dnnl_primitive_desc_t hint) {
  dnnl_eltwise_desc_t backward;
  if (!hint) return NULL;
  return described(engine, dnnl_eltwise_backward_desc_init(&backward, kind, data, data, 0, 0), &backward, hint, NULL);
}

dnnl_primitive_desc_t describe_softmax(dnnl_engine_t engine, dnnl_alg_kind_t kind, const Desc *data, int axis) {
  dnnl_softmax_v2_desc_t forward;
  return described(engine, dnnl_softmax_v2_forward_desc_init(&forward, dnnl_forward_training, kind, data, data, axis),
                   &forward, NULL, NULL);
}

dnnl_primitive_desc_t describe_softmax_gradient(dnnl_engine_t engine, dnnl_alg_kind_t kind, const Desc *data, int axis,
                                                const_dnnl_primitive_desc_t hint) {
  dnnl_softmax_v2_desc_t backward;
  if (!hint) return NULL;
  return described(engine, dnnl_softmax_v2_backward_desc_init(&backward, kind, data, data, data, axis), &backward, hint,
                   NULL);
}

dnnl_primitive_desc_t describe_pool(dnnl_engine_t engine, dnnl_prop_kind_t direction, dnnl_alg_kind_t kind,
                                    const Desc *src, const Desc *dst, const Windows *w) {
  dnnl_pooling_v2_desc_t forward;
  return described(engine,
                   dnnl_pooling_v2_forward_desc_init(&forward, direction, kind, src, dst, w->strides, w->kernel,
                                                     w->dilations, w->pads_begin, w->pads_end),
                   &forward, NULL, NULL);
}

dnnl_primitive_desc_t describe_pool_gradient(dnnl_engine_t engine, dnnl_alg_kind_t kind, const Desc *src,
                                             const Desc *dst, const Windows *w, const_dnnl_primitive_desc_t hint) {
  dnnl_pooling_v2_desc_t backward;
  if (!hint) return NULL;
  return described(engine,
                   dnnl_pooling_v2_backward_desc_init(&backward, kind, src, dst, w->strides, w->kernel, w->dilations,
                                                      w->pads_begin, w->pads_end),
                   &backward, hint, NULL);
}

dnnl_primitive_desc_t describe_layer_norm(dnnl_engine_t engine, dnnl_prop_kind_t direction, const NormDesc *n) {
  dnnl_layer_normalization_desc_t forward;
  return described(
      engine,
      dnnl_layer_normalization_forward_desc_init(&forward, direction, n->data, n->statistics, n->epsilon, n->flags),
      &forward, NULL, NULL);
}

dnnl_primitive_desc_t describe_layer_norm_gradient(dnnl_engine_t engine, dnnl_prop_kind_t direction, const NormDesc *n,
                                                   const_dnnl_primitive_desc_t hint) {
  dnnl_layer_normalization_desc_t backward;
  if (!hint) return NULL;
  return described(engine,
                   dnnl_layer_normalization_backward_desc_init(&backward, direction, n->data, n->data, n->statistics,
                                                               n->epsilon, n->flags),
                   &backward, hint, NULL);
}

dnnl_primitive_desc_t describe_batch_norm(dnnl_engine_t engine, dnnl_prop_kind_t direction, const NormDesc *n) {
  dnnl_batch_normalization_desc_t forward;
  return described(engine,
                   dnnl_batch_normalization_forward_desc_init(&forward, direction, n->data, n->epsilon, n->flags),
                   &forward, NULL, NULL);
}

dnnl_primitive_desc_t describe_batch_norm_gradient(dnnl_engine_t engine, dnnl_prop_kind_t direction, const NormDesc *n,
                                                   const_dnnl_primitive_desc_t hint) {
  dnnl_batch_normalization_desc_t backward;
  if (!hint) return NULL;
  return described(
      engine, dnnl_batch_normalization_backward_desc_init(&backward, direction, n->data, n->data, n->epsilon, n->flags),
      &backward, hint, NULL);
}

dnnl_primitive_desc_t describe_convolution(dnnl_engine_t engine, const ConvolutionDesc *c,
                                           const_dnnl_primitive_attr_t attributes) {
  const Windows *w = c->windows;
  dnnl_convolution_desc_t forward;
  return described(engine,
                   dnnl_dilated_convolution_forward_desc_init(&forward, dnnl_forward_training, dnnl_convolution_direct,
                                                              c->src, c->weights, c->bias, c->dst, w->strides,
                                                              w->dilations, w->pads_begin, w->pads_end),
                   &forward, NULL, attributes);
}

dnnl_primitive_desc_t describe_convolution_by_data(dnnl_engine_t engine, const ConvolutionDesc *c,
                                                   const_dnnl_primitive_desc_t hint) {
  const Windows *w = c->windows;
  dnnl_convolution_desc_t backward;
  if (!hint) return NULL;
  return described(engine,
                   dnnl_dilated_convolution_backward_data_desc_init(&backward, dnnl_convolution_direct, c->src,
                                                                    c->weights, c->dst, w->strides, w->dilations,
                                                                    w->pads_begin, w->pads_end),
                   &backward, hint, NULL);
}

dnnl_primitive_desc_t describe_convolution_by_weights(dnnl_engine_t engine, const ConvolutionDesc *c,
                                                      const_dnnl_primitive_desc_t hint) {
  const Windows *w = c->windows;
  dnnl_convolution_desc_t backward;
  if (!hint) return NULL;
  return described(engine,
                   dnnl_dilated_convolution_backward_weights_desc_init(&backward, dnnl_convolution_direct, c->src,
                                                                       c->weights, NULL, c->dst, w->strides,
                                                                       w->dilations, w->pads_begin, w->pads_end),
                   &backward, hint, NULL);
}
