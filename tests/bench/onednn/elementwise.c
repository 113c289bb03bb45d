// ReLU's gradient and addition, on all elements in a row.
#include "tests/bench/onednn/sequence.h"

#include "ir/operators/norm.h"

bool add_relu_backward(Sequence *s, const Node *node) {
  const bool uses_dst = node_bool(node, "use_dst");
  const dnnl_alg_kind_t kind = uses_dst ? dnnl_eltwise_relu_use_dst_for_bwd : dnnl_eltwise_relu;
  dnnl_memory_desc_t desc;
  dnnl_eltwise_desc_t forward, backward;
  dnnl_primitive_desc_t hint;
  if (!vector_desc(&desc, node->inputs[0]) ||
      dnnl_eltwise_forward_desc_init(&forward, dnnl_forward_training, kind, &desc, 0, 0) != dnnl_success ||
      dnnl_eltwise_backward_desc_init(&backward, kind, &desc, &desc, 0, 0) != dnnl_success ||
      dnnl_primitive_desc_create(&hint, &forward, NULL, s->engine, NULL) != dnnl_success)
    return false;
  Step *step = sequence_add(s, &backward, hint);
  dnnl_primitive_desc_destroy(hint);
  return step && sequence_set_vector(s, step, uses_dst ? DNNL_ARG_DST : DNNL_ARG_SRC, node->inputs[0]) &&
         sequence_set_vector(s, step, DNNL_ARG_DIFF_DST, node->inputs[1]) &&
         sequence_set_vector(s, step, DNNL_ARG_DIFF_SRC, node->outputs[0]);
}

static Step *add_sum(Sequence *s, const dnnl_memory_desc_t *desc, const float scales[2]) {
  const dnnl_memory_desc_t sources[2] = {*desc, *desc};
  dnnl_primitive_desc_t description;
  if (dnnl_sum_primitive_desc_create(&description, desc, 2, scales, sources, NULL, s->engine) != dnnl_success)
    return NULL;
  Step *step = sequence_add_primitive(s, description);
  dnnl_primitive_desc_destroy(description);
  return step;
}

bool sequence_add_weighted(Sequence *s, const Value *a, float weight_a, const Value *b, float weight_b,
                           const Value *to) {
  dnnl_memory_desc_t desc;
  if (!vector_desc(&desc, to)) return false;
  Step *step = add_sum(s, &desc, (const float[]){weight_a, weight_b});
  return step && sequence_set_vector(s, step, DNNL_ARG_MULTIPLE_SRC, a) &&
         sequence_set_vector(s, step, DNNL_ARG_MULTIPLE_SRC + 1, b) && sequence_set_vector(s, step, DNNL_ARG_DST, to);
}

bool add_add(Sequence *s, const Node *node) {
  const Value *a = node->inputs[0], *b = node->inputs[1], *to = node->outputs[0];
  if (a->type != to->type || b->type != to->type || shape_nelems(&a->shape) != shape_nelems(&to->shape) ||
      shape_nelems(&b->shape) != shape_nelems(&to->shape))
    return false;
  if (s->form & FORM_SUM) return sequence_add_weighted(s, a, 1, b, 1, to);
  dnnl_memory_desc_t desc;
  dnnl_binary_desc_t descriptor;
  if (!vector_desc(&desc, to) ||
      dnnl_binary_desc_init(&descriptor, dnnl_binary_add, &desc, &desc, &desc) != dnnl_success)
    return false;
  Step *step = sequence_add(s, &descriptor, NULL);
  return step && sequence_set_vector(s, step, DNNL_ARG_SRC_0, a) && sequence_set_vector(s, step, DNNL_ARG_SRC_1, b) &&
         sequence_set_vector(s, step, DNNL_ARG_DST, to);
}
