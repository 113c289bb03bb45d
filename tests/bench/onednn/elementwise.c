// Activations and their gradients, additions and scaling, on all elements in a row; and activations as post-ops.
#include "tests/bench/onednn/sequence.h"

#include "ir/operators/norm.h"

#include <string.h>

typedef struct Eltwise {
  dnnl_alg_kind_t kind;
  float alpha;
} Eltwise;

static bool is_constant_number(const Value *v) {
  return v->constant && shape_nelems(&v->shape) == 1;
}

// The operation that the node applies to each element of its first input; false: not supported here.
static bool eltwise_of(const Node *node, Eltwise *out) {
  enum { GELU_ERF = 0 };
  *out = (Eltwise){0};
  switch (node->op->id) {
  case OP_ReLU: out->kind = dnnl_eltwise_relu; return true;
  case OP_GELU:
  case OP_GELUBackward:
    out->kind = node_s64(node, "mode") == GELU_ERF ? dnnl_eltwise_gelu_erf : dnnl_eltwise_gelu_tanh;
    return true;
  case OP_Multiply:
    if (!is_constant_number(node->inputs[1])) return false;
    out->kind = dnnl_eltwise_linear;
    out->alpha = (float)type_load(node->inputs[1]->type, node->inputs[1]->constant->data, 0);
    return true;
  default: return false;
  }
}

bool can_be_post_op(const Node *node) {
  Eltwise e;
  const Node *producer = node->inputs[0]->producer;
  return producer && strcmp(producer->op->family, "contraction") == 0 && node->op->id != OP_GELUBackward &&
         value_count_uses(node->inputs[0]) == 1 && !node->inputs[0]->is_output && eltwise_of(node, &e);
}

bool sequence_take_post_op(Sequence *s, const Value **dst, dnnl_primitive_attr_t *attributes) {
  Eltwise e;
  dnnl_post_ops_t operations;
  const Node *node = (*dst)->uses ? (*dst)->uses->node : NULL;
  if (!(s->form & FORM_POST_OPS) || !node || !can_be_post_op(node) || !eltwise_of(node, &e)) return true;
  if (dnnl_primitive_attr_create(attributes) != dnnl_success) return false;
  bool ok = dnnl_post_ops_create(&operations) == dnnl_success;
  if (ok) {
    ok = post_ops_append(operations, e.kind, e.alpha) &&
         dnnl_primitive_attr_set_post_ops(*attributes, operations) == dnnl_success;
    dnnl_post_ops_destroy(operations);
  }
  s->is_taken[node->index] = true;
  *dst = node->outputs[0];
  return ok;
}

bool add_eltwise(Sequence *s, const Node *node) {
  Eltwise e;
  Desc desc;
  if (!eltwise_of(node, &e) || node->inputs[0]->type != node->outputs[0]->type || !vector_desc(&desc, node->inputs[0]))
    return false;
  Step *step = sequence_add(s, describe_eltwise(s->engine, dnnl_forward_inference, e.kind, &desc, e.alpha));
  return step && sequence_set_vector(s, step, DNNL_ARG_SRC, node->inputs[0]) &&
         sequence_set_vector(s, step, DNNL_ARG_DST, node->outputs[0]);
}

// The primitive of an activation's gradient; x: the number of the argument for the node's first input.
static bool add_eltwise_backward(Sequence *s, const Node *node, dnnl_alg_kind_t kind, int x) {
  Desc desc;
  if (!vector_desc(&desc, node->inputs[0])) return false;
  dnnl_primitive_desc_t hint = describe_eltwise(s->engine, dnnl_forward_training, kind, &desc, 0);
  Step *step = sequence_add_gradient(s, describe_eltwise_gradient(s->engine, kind, &desc, hint), hint);
  return step && sequence_set_vector(s, step, x, node->inputs[0]) &&
         sequence_set_vector(s, step, DNNL_ARG_DIFF_DST, node->inputs[1]) &&
         sequence_set_vector(s, step, DNNL_ARG_DIFF_SRC, node->outputs[0]);
}

bool add_gelu_backward(Sequence *s, const Node *node) {
  Eltwise e;
  return eltwise_of(node, &e) && add_eltwise_backward(s, node, e.kind, DNNL_ARG_SRC);
}

bool add_relu_backward(Sequence *s, const Node *node) {
  return node_bool(node, "use_dst") ? add_eltwise_backward(s, node, dnnl_eltwise_relu_use_dst_for_bwd, DNNL_ARG_DST)
                                    : add_eltwise_backward(s, node, dnnl_eltwise_relu, DNNL_ARG_SRC);
}

bool sequence_add_weighted(Sequence *s, const Value *a, float weight_a, const Value *b, float weight_b,
                           const Value *to) {
  Desc desc;
  if (!vector_desc(&desc, to)) return false;
  Step *step = sequence_add(s, describe_sum(s->engine, &desc, (const float[]){weight_a, weight_b}));
  return step && sequence_set_vector(s, step, DNNL_ARG_MULTIPLE_SRC, a) &&
         sequence_set_vector(s, step, DNNL_ARG_MULTIPLE_SRC + 1, b) && sequence_set_vector(s, step, DNNL_ARG_DST, to);
}

bool add_add(Sequence *s, const Node *node) {
  const Value *a = node->inputs[0], *b = node->inputs[1], *to = node->outputs[0];
  if (a->type != to->type || b->type != to->type || shape_nelems(&a->shape) != shape_nelems(&to->shape) ||
      shape_nelems(&b->shape) != shape_nelems(&to->shape))
    return false;
  if (s->form & FORM_SUM) return sequence_add_weighted(s, a, 1, b, 1, to);
  Desc desc;
  if (!vector_desc(&desc, to)) return false;
  Step *step = sequence_add(s, describe_add(s->engine, &desc, &desc, &desc));
  return step && sequence_set_vector(s, step, DNNL_ARG_SRC_0, a) && sequence_set_vector(s, step, DNNL_ARG_SRC_1, b) &&
         sequence_set_vector(s, step, DNNL_ARG_DST, to);
}
