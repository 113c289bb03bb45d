// Reductions and normalisations.
#include "frontend/ngraph/translation.h"

#include <float.h>

// Reads the axes: an attribute or, in later versions, a constant.
static bool take_axes(Ngraph *x, const char *name, int rank, int64_t *axes, size_t *count) {
  bool is_axis[MAX_RANK];
  const NgraphArgument *a = ngraph_argument(x, name);
  *count = 0;
  if (!ngraph_axes(x, name, rank, is_axis)) return false;
  if (!a->count && x->ninputs == 2) {
    const Value *v = x->inputs[1]->value;
    const int64_t nelems = shape_nelems(&v->shape);
    if (!v->constant || nelems > MAX_RANK) return ngraph_tell(x, x->at, "axes that are no constant are not supported");
    for (int64_t i = 0; i < nelems; i++) {
      double axis = type_load(v->type, v->constant->data, v->constant->is_splat ? 0 : (size_t)i);
      if (axis < 0) axis += rank;
      if (!(axis >= 0 && axis < rank)) return ngraph_tell(x, x->at, "expected axes below %d", rank);
      is_axis[(int)axis] = true;
    }
  }
  for (int i = 0; i < rank; i++)
    if (is_axis[i]) axes[(*count)++] = i;
  return true;
}

bool ngraph_reduce(Ngraph *x) {
  Value *v = ngraph_in(x, 0);
  int64_t axes[MAX_RANK];
  size_t count;
  if (!v || !take_axes(x, "reduction_axes", v->shape.rank, axes, &count)) return false;
  if (!count) return ngraph_identity(x);
  const Type type = v->type;
  v = ngraph_carry(x, x->row->op, v);
  return ngraph_out(x, 0, build_cast(&x->build, build_reduce(&x->build, x->row->op, v, axes, count, false), type));
}

// Several axes are merged into one, the last, and the other axes are moved before it.
bool ngraph_softmax(Ngraph *x) {
  Value *v = ngraph_in(x, 0);
  int64_t axes[MAX_RANK], order[MAX_RANK], back[MAX_RANK], moved[MAX_RANK], flat[2] = {1, 1};
  size_t count, next = 0;
  if (!v || !take_axes(x, "softmax_axes", v->shape.rank, axes, &count)) return false;
  if (!count) return ngraph_tell(x, x->at, "expected at least one axis");
  if (count == 1) return ngraph_out(x, 0, build_along(&x->build, OP_SoftMax, v, axes[0]));
  const size_t rank = (size_t)v->shape.rank;
  bool is_axis[MAX_RANK] = {false};
  for (size_t i = 0; i < count; i++) is_axis[axes[i]] = true;
  for (size_t pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < rank; i++) {
      if (is_axis[i] != (pass == 1)) continue;
      order[next] = (int64_t)i;
      back[i] = (int64_t)next;
      moved[next] = v->shape.extent[i].value;
      flat[pass] *= moved[next++];
    }
  v = build_along(&x->build, OP_SoftMax, ngraph_reshape(x, ngraph_transpose(x, v, order), flat, 2), 1);
  return ngraph_out(x, 0, ngraph_transpose(x, ngraph_reshape(x, v, moved, rank), back));
}

// Batch norms have gamma and beta before the data. In other versions the data is first; it is recognised by its rank,
// which is not 1.
enum { DATA, GAMMA, BETA, MEAN, VARIANCE, DELTA, NOPERANDS };

static bool take_operands(Ngraph *x, Value **in) {
  static const int orders[2][NOPERANDS] = {{GAMMA, BETA, DATA, MEAN, VARIANCE, DELTA},
                                           {DATA, GAMMA, BETA, MEAN, VARIANCE, DELTA}};
  const int *order = orders[ngraph_shape(x, 0)->rank != 1];
  for (size_t i = 0; i < x->ninputs; i++)
    if (!(in[order[i]] = ngraph_in(x, i))) return false;
  return true;
}

// Our operators need an epsilon above 0. FLT_MIN changes no variance other than 0.
static bool set_form(Ngraph *x, Node *node) {
  const double epsilon = ngraph_argument(x, "eps")->number;
  if (!build_set_choice(node, "data_format", "NCX")) return false;
  build_set(node, "epsilon")->f32 = epsilon == 0 ? (double)FLT_MIN : epsilon;
  return true;
}

bool ngraph_batch_norm(Ngraph *x) {
  Value *in[NOPERANDS];
  if (!take_operands(x, in)) return false;
  Value *const own[] = {in[DATA], in[GAMMA], in[BETA], in[MEAN], in[VARIANCE]};
  Node *node = build_node(&x->build, OP_BatchNormInference, 5, own);
  return set_form(x, node) && ngraph_out(x, 0, build_one(&x->build, node));
}

// nGraph has no running statistics. With momentum 0, they become the batch's statistics.
bool ngraph_batch_norm_training(Ngraph *x) {
  Value *in[NOPERANDS], *outputs[5];
  if (!take_operands(x, in)) return false;
  Value *zeros = build_number(&x->build, in[GAMMA]->type, &in[GAMMA]->shape, 0);
  Value *const own[] = {in[DATA], zeros, zeros, in[GAMMA], in[BETA]};
  Node *node = build_node(&x->build, OP_BatchNormForwardTraining, 5, own);
  if (!set_form(x, node)) return false;
  build_set(node, "momentum")->f32 = 0;
  for (uint32_t i = 0; i < 5; i++) outputs[i] = build_result(&x->build, node, i, TYPE_NONE);
  return build_finish(&x->build, node) && ngraph_out(x, 0, outputs[0]) && ngraph_out(x, 1, outputs[3]) &&
         ngraph_out(x, 2, outputs[4]);
}

bool ngraph_batch_norm_backprop(Ngraph *x) {
  Value *in[NOPERANDS], *outputs[3];
  if (!take_operands(x, in)) return false;
  Value *const own[] = {in[DATA], in[DELTA], in[MEAN], in[VARIANCE], in[GAMMA]};
  Node *node = build_node(&x->build, OP_BatchNormTrainingBackward, 5, own);
  if (!set_form(x, node)) return false;
  for (uint32_t i = 0; i < 3; i++) outputs[i] = build_result(&x->build, node, i, TYPE_NONE);
  bool ok = build_finish(&x->build, node);
  for (uint32_t i = 0; ok && i < 3; i++) ok = ngraph_out(x, i, outputs[i]);
  return ok;
}
