// Sums, and gradients of biases, which are sums. In oneDNN's results, reduced axes have extent 1.
#include "tests/bench/onednn/sequence.h"

#include "ir/operators/norm.h"
#include "ir/operators/reduce.h"

static bool add_sum_over(Sequence *s, const Node *node, uint32_t reduced) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  const Shape *shape = &src->shape;
  Desc from, to;
  dnnl_dims_t dims, strides;
  int64_t stride = 1;
  if (dst->type != src->type || !tensor_desc(&from, src)) return false;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    dims[axis] = reduced >> axis & 1 ? 1 : extent_value(shape->extent[axis]);
    strides[axis] = stride;
    stride *= dims[axis];
  }
  if (!desc_by_strides(&to, shape->rank, dims, onednn_type(dst->type), strides)) return false;
  Step *step = sequence_add(s, describe_reduction(s->engine, &from, &to));
  return step && sequence_set(s, step, DNNL_ARG_SRC, &from, s->places[src->index]) &&
         sequence_set(s, step, DNNL_ARG_DST, &to, s->places[dst->index]);
}

bool add_reduce_sum(Sequence *s, const Node *node) {
  return add_sum_over(s, node, reduce_axes(node));
}

bool add_bias_backward(Sequence *s, const Node *node) {
  const int rank = node->inputs[0]->shape.rank;
  return add_sum_over(s, node, ((1U << rank) - 1) & ~(1U << norm_channel_axis(node)));
}
