// oneDNN 3: layouts are objects of the library, and a primitive is described in one call.
#include "tests/bench/onednn/library.h"

#include <stdlib.h>
#include <string.h>

// Layouts

typedef struct Known {
  Desc desc;
  struct Known *next;
} Known;

// The kept layout that equals md, which is destroyed if another is kept.
static const Desc *keep(dnnl_memory_desc_t md) {
  static Known *known;
  for (const Known *k = known; k; k = k->next)
    if (dnnl_memory_desc_equal(k->desc.md, md)) {
      dnnl_memory_desc_destroy(md);
      return &k->desc;
    }
  Known *k = calloc(1, sizeof *k);
  const dnnl_dims_t *dims = NULL;
  if (!k) return NULL;
  k->desc.md = md;
  if (dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &k->desc.ndims) == dnnl_success &&
      dnnl_memory_desc_query(md, dnnl_query_dims, (void *)&dims) == dnnl_success &&
      dnnl_memory_desc_query(md, dnnl_query_data_type, &k->desc.data_type) == dnnl_success && dims)
    memcpy(k->desc.dims, dims, sizeof k->desc.dims);
  k->next = known;
  known = k;
  return &k->desc;
}

static bool keep_as(Desc *desc, dnnl_status_t status, dnnl_memory_desc_t md) {
  const Desc *kept = status == dnnl_success ? keep(md) : NULL;
  if (kept) *desc = *kept;
  return kept;
}

bool desc_by_strides(Desc *desc, int rank, const dnnl_dims_t dims, dnnl_data_type_t type, const dnnl_dims_t strides) {
  dnnl_memory_desc_t md = NULL;
  const dnnl_status_t status = dnnl_memory_desc_create_with_strides(&md, rank, dims, type, strides);
  return keep_as(desc, status, md);
}

bool desc_by_tag(Desc *desc, int rank, const dnnl_dims_t dims, dnnl_data_type_t type, dnnl_format_tag_t tag) {
  dnnl_memory_desc_t md = NULL;
  const dnnl_status_t status = dnnl_memory_desc_create_with_tag(&md, rank, dims, type, tag);
  return keep_as(desc, status, md);
}

bool desc_equal(const Desc *a, const Desc *b) {
  return dnnl_memory_desc_equal(a->md, b->md);
}

size_t desc_nbytes(const Desc *desc) {
  return dnnl_memory_desc_get_size(desc->md);
}

const Desc *desc_wanted(const_dnnl_primitive_desc_t description, dnnl_query_t operand) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(description, operand, 0);
  dnnl_memory_desc_t copy;
  return md && dnnl_memory_desc_clone(&copy, md) == dnnl_success ? keep(copy) : NULL;
}

bool memory_create(dnnl_memory_t *memory, const Desc *desc, dnnl_engine_t engine, void *data) {
  return dnnl_memory_create(memory, desc->md, engine, data) == dnnl_success;
}

bool post_ops_append(dnnl_post_ops_t operations, dnnl_alg_kind_t kind, float alpha) {
  return dnnl_post_ops_append_eltwise(operations, kind, alpha, 0) == dnnl_success;
}

// Primitives

static dnnl_primitive_desc_t described(dnnl_status_t status, dnnl_primitive_desc_t description) {
  return status == dnnl_success ? description : NULL;
}
#define DESCRIBED(call, ...)                                                                                           \
  dnnl_primitive_desc_t out = NULL;                                                                                    \
  const dnnl_status_t status = call(&out, __VA_ARGS__);                                                                \
  return described(status, out)

dnnl_primitive_desc_t describe_reorder(dnnl_engine_t engine, const Desc *from, const Desc *to) {
  DESCRIBED(dnnl_reorder_primitive_desc_create, from->md, engine, to->md, engine, NULL);
}

dnnl_primitive_desc_t describe_sum(dnnl_engine_t engine, const Desc *desc, const float scales[2]) {
  const const_dnnl_memory_desc_t sources[] = {desc->md, desc->md};
  DESCRIBED(dnnl_sum_primitive_desc_create, engine, desc->md, 2, scales, sources, NULL);
}

dnnl_primitive_desc_t describe_add(dnnl_engine_t engine, const Desc *a, const Desc *b, const Desc *dst) {
  DESCRIBED(dnnl_binary_primitive_desc_create, engine, dnnl_binary_add, a->md, b->md, dst->md, NULL);
}

dnnl_primitive_desc_t describe_reduction(dnnl_engine_t engine, const Desc *src, const Desc *dst) {
  DESCRIBED(dnnl_reduction_primitive_desc_create, engine, dnnl_reduction_sum, src->md, dst->md, 0, 0, NULL);
}

dnnl_primitive_desc_t describe_product(dnnl_engine_t engine, const Desc *src, const Desc *weights, const Desc *bias,
                                       const Desc *dst, const_dnnl_primitive_attr_t attributes) {
  DESCRIBED(dnnl_matmul_primitive_desc_create, engine, src->md, weights->md, bias ? bias->md : NULL, dst->md,
            attributes);
}

dnnl_primitive_desc_t describe_eltwise(dnnl_engine_t engine, dnnl_prop_kind_t direction, dnnl_alg_kind_t kind,
                                       const Desc *data, float alpha) {
  DESCRIBED(dnnl_eltwise_forward_primitive_desc_create, engine, direction, kind, data->md, data->md, alpha, 0, NULL);
}

dnnl_primitive_desc_t describe_eltwise_gradient(dnnl_engine_t engine, dnnl_alg_kind_t kind, const Desc *data,
                                                const_dnnl_primitive_desc_t hint) {
  if (!hint) return NULL;
  DESCRIBED(dnnl_eltwise_backward_primitive_desc_create, engine, kind, data->md, data->md, data->md, 0, 0, hint, NULL);
}

dnnl_primitive_desc_t describe_softmax(dnnl_engine_t engine, dnnl_alg_kind_t kind, const Desc *data, int axis) {
  DESCRIBED(dnnl_softmax_forward_primitive_desc_create, engine, dnnl_forward_training, kind, data->md, data->md, axis,
            NULL);
}

dnnl_primitive_desc_t describe_softmax_gradient(dnnl_engine_t engine, dnnl_alg_kind_t kind, const Desc *data, int axis,
                                                const_dnnl_primitive_desc_t hint) {
  if (!hint) return NULL;
  DESCRIBED(dnnl_softmax_backward_primitive_desc_create, engine, kind, data->md, data->md, data->md, axis, hint, NULL);
}

dnnl_primitive_desc_t describe_pool(dnnl_engine_t engine, dnnl_prop_kind_t direction, dnnl_alg_kind_t kind,
                                    const Desc *src, const Desc *dst, const Windows *w) {
  DESCRIBED(dnnl_pooling_forward_primitive_desc_create, engine, direction, kind, src->md, dst->md, w->strides,
            w->kernel, w->dilations, w->pads_begin, w->pads_end, NULL);
}

dnnl_primitive_desc_t describe_pool_gradient(dnnl_engine_t engine, dnnl_alg_kind_t kind, const Desc *src,
                                             const Desc *dst, const Windows *w, const_dnnl_primitive_desc_t hint) {
  if (!hint) return NULL;
  DESCRIBED(dnnl_pooling_backward_primitive_desc_create, engine, kind, src->md, dst->md, w->strides, w->kernel,
            w->dilations, w->pads_begin, w->pads_end, hint, NULL);
}

dnnl_primitive_desc_t describe_layer_norm(dnnl_engine_t engine, dnnl_prop_kind_t direction, const NormDesc *n) {
  DESCRIBED(dnnl_layer_normalization_forward_primitive_desc_create, engine, direction, n->data->md, n->data->md,
            n->statistics->md, n->epsilon, n->flags, NULL);
}

dnnl_primitive_desc_t describe_layer_norm_gradient(dnnl_engine_t engine, dnnl_prop_kind_t direction, const NormDesc *n,
                                                   const_dnnl_primitive_desc_t hint) {
  if (!hint) return NULL;
  DESCRIBED(dnnl_layer_normalization_backward_primitive_desc_create, engine, direction, n->data->md, n->data->md,
            n->data->md, n->statistics->md, n->epsilon, n->flags, hint, NULL);
}

dnnl_primitive_desc_t describe_batch_norm(dnnl_engine_t engine, dnnl_prop_kind_t direction, const NormDesc *n) {
  DESCRIBED(dnnl_batch_normalization_forward_primitive_desc_create, engine, direction, n->data->md, n->data->md,
            n->epsilon, n->flags, NULL);
}

dnnl_primitive_desc_t describe_batch_norm_gradient(dnnl_engine_t engine, dnnl_prop_kind_t direction, const NormDesc *n,
                                                   const_dnnl_primitive_desc_t hint) {
  if (!hint) return NULL;
  DESCRIBED(dnnl_batch_normalization_backward_primitive_desc_create, engine, direction, n->data->md, n->data->md,
            n->data->md, n->epsilon, n->flags, hint, NULL);
}

dnnl_primitive_desc_t describe_convolution(dnnl_engine_t engine, const ConvolutionDesc *c,
                                           const_dnnl_primitive_attr_t attributes) {
  const Windows *w = c->windows;
  DESCRIBED(dnnl_convolution_forward_primitive_desc_create, engine, dnnl_forward_training, dnnl_convolution_direct,
            c->src->md, c->weights->md, c->bias ? c->bias->md : NULL, c->dst->md, w->strides, w->dilations,
            w->pads_begin, w->pads_end, attributes);
}

dnnl_primitive_desc_t describe_convolution_by_data(dnnl_engine_t engine, const ConvolutionDesc *c,
                                                   const_dnnl_primitive_desc_t hint) {
  const Windows *w = c->windows;
  if (!hint) return NULL;
  DESCRIBED(dnnl_convolution_backward_data_primitive_desc_create, engine, dnnl_convolution_direct, c->src->md,
            c->weights->md, c->dst->md, w->strides, w->dilations, w->pads_begin, w->pads_end, hint, NULL);
}

dnnl_primitive_desc_t describe_convolution_by_weights(dnnl_engine_t engine, const ConvolutionDesc *c,
                                                      const_dnnl_primitive_desc_t hint) {
  const Windows *w = c->windows;
  if (!hint) return NULL;
  DESCRIBED(dnnl_convolution_backward_weights_primitive_desc_create, engine, dnnl_convolution_direct, c->src->md,
            c->weights->md, NULL, c->dst->md, w->strides, w->dilations, w->pads_begin, w->pads_end, hint, NULL);
}
