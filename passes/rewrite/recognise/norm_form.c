// Derives attributes and operand shapes of norm operators from the reduced axes.
#include "passes/rewrite/recognise/norm_form.h"

#include "ir/graph/builder.h"
#include "ir/operators/norm.h"

const NormKindInfo norm_kinds[NORM_KINDS] = {
    [LAYER_NORM] = {OP_LayerNorm, OP_COUNT, OP_LayerNormBackward, true},
    [BATCH_NORM] = {OP_BatchNormForwardTraining, OP_BatchNormInference, OP_BatchNormTrainingBackward, false},
    [GROUP_NORM] = {OP_GroupNorm, OP_COUNT, OP_GroupNormBackward, true},
};

static void add_extent(Shape *shape, Extent e) {
  shape->extent[shape->rank++] = e;
}

// Layer norms reduce the axes from `begin` on.
static bool find_layer_form(const Algebra *a, uint32_t unreduced, const Labels *src, NormForm *f) {
  while (f->begin < src->rank && (unreduced & ~f->statistics)) {
    add_extent(&f->statistics_shape, a->frame->shape.extent[f->begin]);
    f->statistics |= src->axes[f->begin++];
  }
  for (int i = f->begin; i < src->rank; i++) add_extent(&f->parameters_shape, a->frame->shape.extent[i]);
  f->parameters = algebra_axes(a) & ~f->statistics;
  return f->begin < src->rank && !(algebra_axes(a) & ~unreduced & f->statistics);
}

// Finds the channel axis: the second or last axis, if it has frame axes in `among`.
static bool find_channel(const Algebra *a, const Labels *src, NormForm *f, uint32_t among) {
  for (int i = 1; i < src->rank && !f->parameters; i++) {
    if ((i != 1 && i != src->rank - 1) || !(src->axes[i] & among)) continue;
    f->channel = i;
    f->parameters = src->axes[i];
    add_extent(&f->parameters_shape, a->frame->shape.extent[i]);
  }
  return f->parameters;
}

// Batch norms reduce all axes except the channel axis.
static bool find_batch_form(const Algebra *a, uint32_t unreduced, const Labels *src, NormForm *f) {
  if (!find_channel(a, src, f, unreduced) || unreduced != f->parameters) return false;
  f->statistics = f->parameters;
  f->statistics_shape = f->parameters_shape;
  return true;
}

// Group norms reduce all axes except the first axis and the leading part of the channel axis, the index of the group.
static bool find_group_form(const Algebra *a, uint32_t unreduced, const Labels *src, NormForm *f) {
  if (src->rank < 3 || !find_channel(a, src, f, unreduced & ~src->axes[0])) return false;
  uint32_t groups = unreduced & f->parameters, rest = f->parameters & ~groups;
  for (int i = 0; i < a->rank; i++)
    if (groups >> i & 1 && !extent_is_literal(a->extent[i])) return false;
  f->groups = (int64_t)algebra_count(a, groups);
  f->statistics = unreduced;
  add_extent(&f->statistics_shape, a->frame->shape.extent[0]);
  add_extent(&f->statistics_shape, EXTENT(f->groups));
  return unreduced == (src->axes[0] | groups) && (!rest || rest > groups);
}

void form_allow_flat(NormForm *f, const Value *gamma, const Value *beta) {
  const Value *one = gamma ? gamma : beta;
  if (f->kind != LAYER_NORM || !one || one->shape.rank != 1 || (beta && beta->shape.rank != 1)) return;
  f->parameters_shape = one->shape;
}

bool form_find(const Algebra *a, uint32_t unreduced, NormKind kind, NormForm *f) {
  static bool (*const find[NORM_KINDS])(const Algebra *, uint32_t, const Labels *,
                                        NormForm *) = {find_layer_form, find_batch_form, find_group_form};
  Labels src = labels_of_frame(a);
  *f = (NormForm){.kind = kind};
  return find[kind](a, unreduced, &src, f);
}

void form_set(const NormForm *f, Node *node, const Value *src, double epsilon) {
  build_set(node, "epsilon")->f32 = epsilon;
  if (f->kind == LAYER_NORM) build_set(node, "begin_norm_axis")->s64 = f->begin;
  else build_set(node, "data_format")->s64 = f->channel == src->shape.rank - 1 ? FORMAT_NXC : FORMAT_NCX;
  if (f->kind == GROUP_NORM) build_set(node, "groups")->s64 = f->groups;
}
