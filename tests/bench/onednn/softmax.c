// Softmax, log-softmax and their gradients, on the graph's own axes.
#include "tests/bench/onednn/sequence.h"

#include "ir/operators/softmax.h"

static bool is_logarithm(const Node *node) {
  return node->op->id == OP_LogSoftmax || node->op->id == OP_LogSoftmaxBackward;
}

static bool forward_desc_init(dnnl_softmax_v2_desc_t *desc, const Node *node, const dnnl_memory_desc_t *data) {
  const dnnl_alg_kind_t kind = is_logarithm(node) ? dnnl_softmax_log : dnnl_softmax_accurate;
  return dnnl_softmax_v2_forward_desc_init(desc, dnnl_forward_training, kind, data, data, softmax_axis(node)) ==
         dnnl_success;
}

bool add_softmax(Sequence *s, const Node *node) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  dnnl_memory_desc_t data;
  dnnl_softmax_v2_desc_t forward;
  const bool wants_stats = node->noutputs > 1 && node->outputs[1];
  if (wants_stats || dst->type != src->type || !tensor_desc(&data, src) || !forward_desc_init(&forward, node, &data))
    return false;
  Step *step = sequence_add(s, &forward, NULL);
  return step && sequence_set(s, step, DNNL_ARG_SRC, &data, s->places[src->index]) &&
         sequence_set(s, step, DNNL_ARG_DST, &data, s->places[dst->index]);
}

bool add_softmax_backward(Sequence *s, const Node *node) {
  const Value *diff_dst = node->inputs[0], *dst = node->inputs[1], *diff_src = node->outputs[0];
  dnnl_memory_desc_t data;
  dnnl_softmax_v2_desc_t forward, backward;
  dnnl_primitive_desc_t hint;
  const dnnl_alg_kind_t kind = is_logarithm(node) ? dnnl_softmax_log : dnnl_softmax_accurate;
  if (diff_src->type != dst->type || !tensor_desc(&data, dst) || !forward_desc_init(&forward, node, &data) ||
      dnnl_softmax_v2_backward_desc_init(&backward, kind, &data, &data, &data, softmax_axis(node)) != dnnl_success ||
      dnnl_primitive_desc_create(&hint, &forward, NULL, s->engine, NULL) != dnnl_success)
    return false;
  Step *step = sequence_add(s, &backward, hint);
  dnnl_primitive_desc_destroy(hint);
  return step && sequence_set(s, step, DNNL_ARG_DST, &data, s->places[dst->index]) &&
         sequence_set(s, step, DNNL_ARG_DIFF_DST, &data, s->places[diff_dst->index]) &&
         sequence_set(s, step, DNNL_ARG_DIFF_SRC, &data, s->places[diff_src->index]);
}
