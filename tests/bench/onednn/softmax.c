// Softmax, log-softmax and their gradients, on the graph's own axes.
#include "tests/bench/onednn/sequence.h"

#include "ir/operators/softmax.h"

static dnnl_alg_kind_t kind_of(const Node *node) {
  const bool is_logarithm = node->op->id == OP_LogSoftmax || node->op->id == OP_LogSoftmaxBackward;
  return is_logarithm ? dnnl_softmax_log : dnnl_softmax_accurate;
}

bool add_softmax(Sequence *s, const Node *node) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  Desc data;
  const bool wants_stats = node->noutputs > 1 && node->outputs[1];
  if (wants_stats || dst->type != src->type || !tensor_desc(&data, src)) return false;
  Step *step = sequence_add(s, describe_softmax(s->engine, kind_of(node), &data, softmax_axis(node)));
  return step && sequence_set(s, step, DNNL_ARG_SRC, &data, s->places[src->index]) &&
         sequence_set(s, step, DNNL_ARG_DST, &data, s->places[dst->index]);
}

bool add_softmax_backward(Sequence *s, const Node *node) {
  const Value *diff_dst = node->inputs[0], *dst = node->inputs[1], *diff_src = node->outputs[0];
  Desc data;
  const int axis = softmax_axis(node);
  if (diff_src->type != dst->type || !tensor_desc(&data, dst)) return false;
  dnnl_primitive_desc_t hint = describe_softmax(s->engine, kind_of(node), &data, axis);
  Step *step = sequence_add_gradient(s, describe_softmax_gradient(s->engine, kind_of(node), &data, axis, hint), hint);
  return step && sequence_set(s, step, DNNL_ARG_DST, &data, s->places[dst->index]) &&
         sequence_set(s, step, DNNL_ARG_DIFF_DST, &data, s->places[diff_dst->index]) &&
         sequence_set(s, step, DNNL_ARG_DIFF_SRC, &data, s->places[diff_src->index]);
}
