// Layer normalisation and its gradient, on a matrix of as many rows as there are statistics.
#include "tests/bench/onednn/sequence.h"

#include "ir/operators/norm.h"
#include "tests/bench/norm_groups.h"

typedef struct LayerNorm {
  Desc data, statistics, parameters; // [rows, columns], [rows], [columns]
  const Value *gamma, *beta;
  unsigned flags;
  float epsilon;
} LayerNorm;

static bool is_absent_or_f32(const Value *v) {
  return !v || v->type == TYPE_F32;
}

static bool layer_norm_init(LayerNorm *l, const Node *node) {
  NormGroups n;
  const Value *mean = node->op->id == OP_LayerNorm ? node_output(node, "mean") : node_input(node, "mean");
  *l = (LayerNorm){.epsilon = (float)node_f32(node, "epsilon")};
  if (node_bool(node, "use_affine")) {
    l->gamma = node_input(node, "gamma");
    l->beta = node_input(node, "beta");
  }
  if (!is_absent_or_f32(mean) || !is_absent_or_f32(l->gamma) || !norm_groups(node, &n)) return false;
  const dnnl_dims_t rows_columns = {(int64_t)n.count, (int64_t)n.inner}, columns = {(int64_t)n.inner};
  const dnnl_data_type_t type = onednn_type(node->inputs[0]->type);
  return desc_by_tag(&l->data, 2, rows_columns, type, dnnl_ab) &&
         desc_by_tag(&l->statistics, 1, rows_columns, dnnl_f32, dnnl_a) &&
         desc_by_tag(&l->parameters, 1, columns, dnnl_f32, dnnl_a);
}

static NormDesc norm_desc(const LayerNorm *l, unsigned flags) {
  return (NormDesc){&l->data, &l->statistics, l->epsilon, flags};
}

bool add_layer_norm(Sequence *s, const Node *node) {
  LayerNorm l;
  const Value *mean = node_output(node, "mean"), *variance = node_output(node, "variance");
  if (!layer_norm_init(&l, node)) return false;
  const unsigned flags = (l.gamma ? dnnl_use_scale : 0) | (l.beta ? dnnl_use_shift : 0);
  const NormDesc norm = norm_desc(&l, flags);
  Step *step =
      sequence_add(s, describe_layer_norm(s->engine, mean ? dnnl_forward_training : dnnl_forward_inference, &norm));
  return step && sequence_set(s, step, DNNL_ARG_SRC, &l.data, s->places[node->inputs[0]->index]) &&
         sequence_set(s, step, DNNL_ARG_DST, &l.data, s->places[node->outputs[0]->index]) &&
         (!l.gamma || sequence_set_vector(s, step, DNNL_ARG_SCALE, l.gamma)) &&
         (!l.beta || sequence_set_vector(s, step, DNNL_ARG_SHIFT, l.beta)) &&
         (!mean || sequence_set_vector(s, step, DNNL_ARG_MEAN, mean)) &&
         (!variance || sequence_set_vector(s, step, DNNL_ARG_VARIANCE, variance));
}

static Step *add_backward_step(Sequence *s, const LayerNorm *l, bool wants_parameters) {
  const unsigned flags = (l->gamma ? dnnl_use_scale : 0) | (wants_parameters ? dnnl_use_shift : 0);
  const dnnl_prop_kind_t kind = wants_parameters ? dnnl_backward : dnnl_backward_data;
  const NormDesc norm = norm_desc(l, flags);
  dnnl_primitive_desc_t hint = describe_layer_norm(s->engine, dnnl_forward_training, &norm);
  return sequence_add_gradient(s, describe_layer_norm_gradient(s->engine, kind, &norm, hint), hint);
}

bool add_layer_norm_backward(Sequence *s, const Node *node) {
  LayerNorm l;
  const Value *diff_gamma = node_output(node, "diff_gamma"), *diff_beta = node_output(node, "diff_beta");
  if (!layer_norm_init(&l, node) || (diff_gamma && !l.gamma)) return false;
  Step *step = add_backward_step(s, &l, diff_gamma);
  return step && sequence_set(s, step, DNNL_ARG_SRC, &l.data, s->places[node->inputs[0]->index]) &&
         sequence_set(s, step, DNNL_ARG_DIFF_DST, &l.data, s->places[node->inputs[1]->index]) &&
         sequence_set(s, step, DNNL_ARG_DIFF_SRC, &l.data, s->places[node->outputs[0]->index]) &&
         sequence_set_vector(s, step, DNNL_ARG_MEAN, node_input(node, "mean")) &&
         sequence_set_vector(s, step, DNNL_ARG_VARIANCE, node_input(node, "variance")) &&
         (!l.gamma || sequence_set_vector(s, step, DNNL_ARG_SCALE, l.gamma)) &&
         (!diff_gamma || sequence_set_parameter_gradients(s, step, l.gamma, diff_gamma, diff_beta));
}
