// Steps and the memory they work on. Intermediate values share the memory of what is computed from them in place, as
// oneDNN allows: that is less traffic than a buffer for each.
#include "tests/bench/onednn/sequence.h"

#include "ir/operators/norm.h"
#include "tests/bench/norm_groups.h"

#include <stdlib.h>
#include <string.h>

dnnl_data_type_t onednn_type(Type type) {
  switch (type) {
  case TYPE_F32: return dnnl_f32;
  case TYPE_BF16: return dnnl_bf16;
  case TYPE_F16: return dnnl_f16;
  default: return dnnl_data_type_undef;
  }
}

bool vector_desc(Desc *desc, const Value *v) {
  const dnnl_dims_t dims = {shape_nelems(&v->shape)};
  return desc_by_tag(desc, 1, dims, onednn_type(v->type), dnnl_a);
}

bool tensor_desc(Desc *desc, const Value *v) {
  dnnl_dims_t dims, strides;
  int64_t stride = 1;
  for (int axis = v->shape.rank - 1; axis >= 0; axis--) {
    dims[axis] = extent_value(v->shape.extent[axis]);
    strides[axis] = stride;
    stride *= dims[axis];
  }
  return desc_by_strides(desc, v->shape.rank, dims, onednn_type(v->type), strides);
}

// Memory

void *sequence_buffer(Sequence *s, size_t nbytes) {
  const size_t line = 64;
  if (s->nbuffers == MAX_BUFFERS) return NULL;
  size_t rounded = (nbytes / line + 1) * line;
  void *buffer = aligned_alloc(line, rounded);
  if (buffer) s->buffers[s->nbuffers++] = memset(buffer, 0, rounded);
  return buffer;
}

// Whether node may write its first output where its input `slot` is.
static bool runs_in_place(const Node *node, uint32_t slot) {
  const Value *in = node->inputs[slot], *out = node->outputs[0];
  if (in->type != out->type || shape_nelems(&in->shape) != shape_nelems(&out->shape)) return false;
  return strcmp(node->op->family, "elementwise") == 0 || in == node_input(node, "diff_dst");
}

// The memory of the only result computed from v, if v may be stored there; else NULL. Later values have memory
// already.
static void *place_in_place(const Sequence *s, const Value *v) {
  if (value_count_uses(v) != 1) return NULL;
  const Node *user = v->uses->node;
  void *place = s->places[user->outputs[0]->index];
  if (!runs_in_place(user, v->uses->slot)) return NULL;
  for (uint32_t i = 0; i < user->ninputs; i++)
    if (user->inputs[i] && user->inputs[i] != v && s->places[user->inputs[i]->index] == place) return NULL;
  return place;
}

static bool place_values(Sequence *s) {
  const Graph *g = s->task->graph;
  for (size_t i = 0; i < g->ninputs; i++) s->places[g->inputs[i]->index] = s->task->inputs[i].data;
  for (size_t i = 0; i < g->noutputs; i++) s->places[g->outputs[i]->index] = s->task->outputs[i].data;
  for (size_t i = g->nnodes; i-- > 0;)
    for (uint32_t k = 0; k < g->nodes[i]->noutputs; k++) {
      const Value *v = g->nodes[i]->outputs[k];
      if (!v || s->places[v->index]) continue;
      void **place = &s->places[v->index];
      *place = place_in_place(s, v);
      if (!*place) *place = sequence_buffer(s, (size_t)shape_nelems(&v->shape) * type_nbytes(v->type));
      if (!*place) return false;
    }
  return true;
}

// Steps

bool sequence_set(Sequence *s, Step *step, int argument, const Desc *desc, void *data) {
  if (s->nmemories == MAX_MEMORIES || step->narguments == MAX_ARGUMENTS) return false;
  dnnl_memory_t *memory = &s->memories[s->nmemories];
  if (!memory_create(memory, desc, s->engine, data)) return false;
  s->nmemories++;
  step->arguments[step->narguments++] = (dnnl_exec_arg_t){argument, *memory};
  return true;
}

bool sequence_set_vector(Sequence *s, Step *step, int argument, const Value *v) {
  Desc desc;
  return vector_desc(&desc, v) && sequence_set(s, step, argument, &desc, s->places[v->index]);
}

// A gradient with a shift also takes the shift as an argument, but does not use its values, so gamma is passed.
bool sequence_set_parameter_gradients(Sequence *s, Step *step, const Value *gamma, const Value *diff_gamma,
                                      const Value *diff_beta) {
  return sequence_set_vector(s, step, DNNL_ARG_SHIFT, gamma) &&
         sequence_set_vector(s, step, DNNL_ARG_DIFF_SCALE, diff_gamma) &&
         sequence_set_vector(s, step, DNNL_ARG_DIFF_SHIFT, diff_beta);
}

Step *sequence_add_primitive(Sequence *s, const_dnnl_primitive_desc_t description) {
  if (!description || s->nsteps == MAX_STEPS) return NULL;
  Step *step = &s->steps[s->nsteps];
  *step = (Step){0};
  if (dnnl_primitive_create(&step->primitive, description) != dnnl_success) return NULL;
  s->nsteps++;
  return step;
}

Step *sequence_add(Sequence *s, dnnl_primitive_desc_t description) {
  Step *step = sequence_add_primitive(s, description);
  if (description) dnnl_primitive_desc_destroy(description);
  return step;
}

Step *sequence_add_gradient(Sequence *s, dnnl_primitive_desc_t description, dnnl_primitive_desc_t hint) {
  Step *step = sequence_add(s, description);
  if (hint) dnnl_primitive_desc_destroy(hint);
  return step;
}

bool sequence_reorder(Sequence *s, const Desc *from_desc, void *from, const Desc *to_desc, void *to) {
  Step *step = sequence_add(s, describe_reorder(s->engine, from_desc, to_desc));
  return step && sequence_set(s, step, DNNL_ARG_FROM, from_desc, from) &&
         sequence_set(s, step, DNNL_ARG_TO, to_desc, to);
}

static bool run_steps(Sequence *s, size_t first) {
  bool ok = true;
  for (size_t i = first; i < s->nsteps; i++) {
    const Step *step = &s->steps[i];
    ok &= dnnl_primitive_execute(step->primitive, s->stream, step->narguments, step->arguments) == dnnl_success;
  }
  return dnnl_stream_wait(s->stream) == dnnl_success && ok;
}

bool sequence_settle(Sequence *s) {
  bool ok = run_steps(s, s->nsettled);
  s->nsettled = s->nsteps;
  return ok;
}

bool sequence_run(Sequence *s) {
  return run_steps(s, s->nsettled);
}

// Graphs

// oneDNN's forward with a fused ReLU keeps a mask that only its own backward can read, and it is the mask of
// y = ReLU(batch norm of x). So only this ReLU may use y, and x must be an input.
const Node *fused_relu(const Sequence *s, const Node *batch_norm) {
  if (!(s->form & FORM_FUSED_RELU) || batch_norm->op->id != OP_BatchNormTrainingBackward) return NULL;
  const Value *dz = node_input(batch_norm, "diff_dst");
  const Node *relu = dz->producer;
  if (!relu || relu->op->id != OP_ReLUBackward || !node_bool(relu, "use_dst")) return NULL;
  const Value *y = relu->inputs[0];
  bool is_private = value_count_uses(dz) == 1 && !dz->is_output && value_count_uses(y) == 1;
  return is_private && y->is_input && batch_norm->inputs[0]->is_input ? relu : NULL;
}

static bool is_fused_away(const Sequence *s, const Node *node) {
  return node->op->id == OP_ReLUBackward && value_count_uses(node->outputs[0]) == 1 &&
         fused_relu(s, node->outputs[0]->uses->node) == node;
}

static bool add_node(Sequence *s, const Node *node) {
  static bool (*const add[OP_COUNT])(Sequence *, const Node *) = {
      [OP_MatMul] = add_matmul,
      [OP_Convolution] = add_convolution,
      [OP_ConvolutionBackwardData] = add_convolution_backward_data,
      [OP_ConvolutionBackwardWeights] = add_convolution_backward_weights,
      [OP_ConvTranspose] = add_convolution_backward_data,
      [OP_ConvTransposeBackwardData] = add_convolution,
      [OP_ConvTransposeBackwardWeights] = add_convolution_backward_weights,
      [OP_MaxPool] = add_pool,
      [OP_AvgPool] = add_pool,
      [OP_MaxPoolBackward] = add_pool_backward,
      [OP_AvgPoolBackward] = add_pool_backward,
      [OP_ReLU] = add_eltwise,
      [OP_GELU] = add_eltwise,
      [OP_GELUBackward] = add_gelu_backward,
      [OP_Multiply] = add_eltwise,
      [OP_ReLUBackward] = add_relu_backward,
      [OP_Add] = add_add,
      [OP_LayerNorm] = add_layer_norm,
      [OP_LayerNormBackward] = add_layer_norm_backward,
      [OP_BatchNormInference] = add_batch_norm_inference,
      [OP_BatchNormForwardTraining] = add_batch_norm_training,
      [OP_BatchNormTrainingBackward] = add_batch_norm_backward,
      [OP_BatchNormInferenceBackward] = add_batch_norm_backward,
      [OP_SoftMax] = add_softmax,
      [OP_LogSoftmax] = add_softmax,
      [OP_SoftMaxBackward] = add_softmax_backward,
      [OP_LogSoftmaxBackward] = add_softmax_backward,
      [OP_ReduceSum] = add_reduce_sum,
      [OP_BiasAddBackward] = add_bias_backward,
  };
  if (s->is_taken[node->index] || is_fused_away(s, node)) return true;
  return add[node->op->id] && add[node->op->id](s, node);
}

Sequence *sequence_new(const PeerTask *task, unsigned form, dnnl_engine_t engine) {
  Sequence *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  *s = (Sequence){.task = task, .form = form, .engine = engine};
  s->places = calloc(task->graph->nvalues + 1, sizeof *s->places);
  s->is_taken = calloc(task->graph->nnodes + 1, sizeof *s->is_taken);
  bool ok =
      s->places && s->is_taken && dnnl_stream_create(&s->stream, engine, dnnl_stream_default_flags) == dnnl_success;
  ok = ok && place_values(s);
  for (size_t i = 0; ok && i < task->graph->nnodes; i++) ok = add_node(s, task->graph->nodes[i]);
  if (ok) return s;
  sequence_free(s);
  return NULL;
}

void sequence_free(Sequence *s) {
  if (!s) return;
  for (size_t i = 0; i < s->nsteps; i++) dnnl_primitive_destroy(s->steps[i].primitive);
  for (size_t i = 0; i < s->nmemories; i++) dnnl_memory_destroy(s->memories[i]);
  for (size_t i = 0; i < s->nbuffers; i++) free(s->buffers[i]);
  if (s->stream) dnnl_stream_destroy(s->stream);
  free(s->places);
  free(s->is_taken);
  free(s);
}
