// The calls of oneDNN whose form differs between its versions 2 and 3: library2.c and library3.c, of which a build has
// one. Functions return false or NULL if oneDNN refuses.
#ifndef NGRAD_TESTS_BENCH_ONEDNN_LIBRARY_H
#define NGRAD_TESTS_BENCH_ONEDNN_LIBRARY_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>

// The layout of a tensor. In version 3 the library keeps layouts, as long as the program runs: equal ones once.
#if DNNL_VERSION_MAJOR == 2
typedef dnnl_memory_desc_t Desc;
#else
typedef struct Desc {
  const_dnnl_memory_desc_t md;
  int ndims;
  dnnl_dims_t dims;
  dnnl_data_type_t data_type;
} Desc;
#endif

bool desc_by_strides(Desc *desc, int rank, const dnnl_dims_t dims, dnnl_data_type_t type, const dnnl_dims_t strides);
bool desc_by_tag(Desc *desc, int rank, const dnnl_dims_t dims, dnnl_data_type_t type, dnnl_format_tag_t tag);
bool desc_equal(const Desc *a, const Desc *b);
size_t desc_nbytes(const Desc *desc);
// The layout that a primitive has for an operand, such as dnnl_query_src_md.
const Desc *desc_wanted(const_dnnl_primitive_desc_t description, dnnl_query_t operand);
bool memory_create(dnnl_memory_t *memory, const Desc *desc, dnnl_engine_t engine, void *data);
bool post_ops_append(dnnl_post_ops_t operations, dnnl_alg_kind_t kind, float alpha);

// The spatial axes of a convolution or a pooling node, as oneDNN counts: neighbours have dilation 0.
typedef struct Windows {
  dnnl_dims_t kernel, strides, dilations, pads_begin, pads_end;
} Windows;

// Primitives, which the caller destroys. A gradient has its forward primitive as a hint; without one it is NULL.

dnnl_primitive_desc_t describe_reorder(dnnl_engine_t engine, const Desc *from, const Desc *to);
dnnl_primitive_desc_t describe_sum(dnnl_engine_t engine, const Desc *desc, const float scales[2]);
dnnl_primitive_desc_t describe_add(dnnl_engine_t engine, const Desc *a, const Desc *b, const Desc *dst);
dnnl_primitive_desc_t describe_reduction(dnnl_engine_t engine, const Desc *src, const Desc *dst);
// bias: may be NULL.
dnnl_primitive_desc_t describe_product(dnnl_engine_t engine, const Desc *src, const Desc *weights, const Desc *bias,
                                       const Desc *dst, const_dnnl_primitive_attr_t attributes);
dnnl_primitive_desc_t describe_eltwise(dnnl_engine_t engine, dnnl_prop_kind_t direction, dnnl_alg_kind_t kind,
                                       const Desc *data, float alpha);
dnnl_primitive_desc_t describe_eltwise_gradient(dnnl_engine_t engine, dnnl_alg_kind_t kind, const Desc *data,
                                                const_dnnl_primitive_desc_t hint);
dnnl_primitive_desc_t describe_softmax(dnnl_engine_t engine, dnnl_alg_kind_t kind, const Desc *data, int axis);
dnnl_primitive_desc_t describe_softmax_gradient(dnnl_engine_t engine, dnnl_alg_kind_t kind, const Desc *data, int axis,
                                                const_dnnl_primitive_desc_t hint);
dnnl_primitive_desc_t describe_pool(dnnl_engine_t engine, dnnl_prop_kind_t direction, dnnl_alg_kind_t kind,
                                    const Desc *src, const Desc *dst, const Windows *windows);
dnnl_primitive_desc_t describe_pool_gradient(dnnl_engine_t engine, dnnl_alg_kind_t kind, const Desc *src,
                                             const Desc *dst, const Windows *windows, const_dnnl_primitive_desc_t hint);

// A norm's data, and the statistics of a layer norm.
typedef struct NormDesc {
  const Desc *data, *statistics;
  float epsilon;
  unsigned flags;
} NormDesc;
dnnl_primitive_desc_t describe_layer_norm(dnnl_engine_t engine, dnnl_prop_kind_t direction, const NormDesc *norm);
dnnl_primitive_desc_t describe_layer_norm_gradient(dnnl_engine_t engine, dnnl_prop_kind_t direction,
                                                   const NormDesc *norm, const_dnnl_primitive_desc_t hint);
dnnl_primitive_desc_t describe_batch_norm(dnnl_engine_t engine, dnnl_prop_kind_t direction, const NormDesc *norm);
dnnl_primitive_desc_t describe_batch_norm_gradient(dnnl_engine_t engine, dnnl_prop_kind_t direction,
                                                   const NormDesc *norm, const_dnnl_primitive_desc_t hint);

// A convolution's operands, or their gradients. bias: may be NULL.
typedef struct ConvolutionDesc {
  const Desc *src, *weights, *bias, *dst;
  const Windows *windows;
} ConvolutionDesc;
dnnl_primitive_desc_t describe_convolution(dnnl_engine_t engine, const ConvolutionDesc *c,
                                           const_dnnl_primitive_attr_t attributes);
dnnl_primitive_desc_t describe_convolution_by_data(dnnl_engine_t engine, const ConvolutionDesc *c,
                                                   const_dnnl_primitive_desc_t hint);
dnnl_primitive_desc_t describe_convolution_by_weights(dnnl_engine_t engine, const ConvolutionDesc *c,
                                                      const_dnnl_primitive_desc_t hint);

#endif
