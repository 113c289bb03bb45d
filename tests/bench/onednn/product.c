// Matrix products, with the elementwise operator that follows as a post-op if the form says so.
#include "tests/bench/onednn/sequence.h"

#include "ir/operators/contraction.h"

#include <string.h>

typedef struct ProductDescs {
  Desc src, weights, bias, dst; // bias.ndims 0: none
} ProductDescs;

static int64_t extent_at(const Value *v, int axis) {
  return axis < 0 ? 1 : extent_value(v->shape.extent[axis]);
}

// [batch..., rows, columns]; row, column: v's axes for rows and columns, negative for none. A missing axis has the
// extent 1.
static bool matrix_desc(Desc *desc, const Value *v, const Product *p, int row, int column) {
  dnnl_dims_t dims, strides;
  int64_t stride[MAX_RANK] = {0}, next = 1;
  int axes[MAX_RANK];
  const int rank = p->nbatch + 2;
  for (int axis = v->shape.rank - 1; axis >= 0; axis--) {
    stride[axis] = next;
    next *= extent_at(v, axis);
  }
  for (int i = 0; i < p->nbatch; i++) axes[i] = product_batch_axis(p, v->shape.rank, i);
  axes[rank - 2] = row;
  axes[rank - 1] = column;
  for (int i = 0; i < rank; i++) {
    dims[i] = extent_at(v, axes[i]);
    strides[i] = axes[i] < 0 ? next : stride[axes[i]];
  }
  return desc_by_strides(desc, rank, dims, onednn_type(v->type), strides);
}

// [batch..., rows, columns], each dst's extent or 1: a bias is broadcast to dst, axes aligned at the end.
static bool bias_desc(Desc *desc, const Value *bias, const Value *dst, const Product *p) {
  const int missing = dst->shape.rank - bias->shape.rank, rank = p->nbatch + 2;
  int64_t stride = 1;
  dnnl_dims_t dims, strides;
  for (int i = rank - 1; i >= 0; i--) {
    const int axis = i == rank - 1 ? p->dst_n : i == rank - 2 ? p->dst_m : i;
    dims[i] = axis < 0 ? 1 : extent_at(bias, axis - missing);
    strides[i] = stride;
    stride *= dims[i];
  }
  return desc_by_strides(desc, rank, dims, onednn_type(bias->type), strides);
}

static bool descs_init(ProductDescs *d, const Node *node) {
  const Value *src = node->inputs[0], *weights = node->inputs[1], *bias = node->inputs[2];
  const Product p = node_product(node);
  memset(d, 0, sizeof *d);
  return matrix_desc(&d->src, src, &p, p.src_m, p.src_k) &&
         matrix_desc(&d->weights, weights, &p, p.weights_k, p.weights_n) &&
         matrix_desc(&d->dst, node->outputs[0], &p, p.dst_m, p.dst_n) &&
         (!bias || bias_desc(&d->bias, bias, node->outputs[0], &p));
}

static dnnl_primitive_desc_t describe(const Sequence *s, const ProductDescs *d,
                                      const_dnnl_primitive_attr_t attributes) {
  ProductDescs wanted = *d;
  if (s->form & FORM_ANY_WEIGHTS) desc_of_any(&wanted.weights);
  if (s->form & FORM_ANY_DATA) desc_of_any(&wanted.src);
  return describe_product(s->engine, &wanted.src, &wanted.weights, d->bias.ndims ? &d->bias : NULL, &d->dst,
                          attributes);
}

static bool add_described(Sequence *s, const Node *node, const ProductDescs *d, const_dnnl_primitive_desc_t description,
                          const Value *dst) {
  Chosen src, weights;
  const Value *bias = node->inputs[2];
  if (!chosen_read(s, &src, desc_wanted(description, dnnl_query_src_md), &d->src, node->inputs[0]) ||
      !chosen_read(s, &weights, desc_wanted(description, dnnl_query_weights_md), &d->weights, node->inputs[1]))
    return false;
  Step *step = sequence_add_primitive(s, description);
  return step && sequence_set(s, step, DNNL_ARG_SRC, &src.used, src.place) &&
         sequence_set(s, step, DNNL_ARG_WEIGHTS, &weights.used, weights.place) &&
         (!bias || sequence_set(s, step, DNNL_ARG_BIAS, &d->bias, s->places[bias->index])) &&
         sequence_set(s, step, DNNL_ARG_DST, &d->dst, s->places[dst->index]);
}

bool add_matmul(Sequence *s, const Node *node) {
  ProductDescs d;
  dnnl_primitive_attr_t attributes = NULL;
  const Value *dst = node->outputs[0];
  if (!descs_init(&d, node) || !sequence_take_post_op(s, &dst, &attributes)) return false;
  dnnl_primitive_desc_t description = describe(s, &d, attributes);
  const bool ok = description && add_described(s, node, &d, description, dst);
  if (description) dnnl_primitive_desc_destroy(description);
  dnnl_primitive_attr_destroy(attributes);
  return ok;
}
