// Inference and check functions of normalisations and their gradients.
#include "ir/operators/norm.h"

#include "ir/operators/rules.h"

// Statistics and parameters are f32 or the data's type. A signature with its own type rule is checked by infer_types.
static bool infer_statistics_type(Inference *inf, Node *node, const Value *src, const Value *statistic) {
  if (node->signature && node->signature->types) return true;
  if (!statistic || statistic->type == TYPE_NONE || src->type == TYPE_NONE || statistic->type == TYPE_F32 ||
      statistic->type == src->type)
    return true;
  const bool is_f32 = src->type == TYPE_F32;
  return infer_error(inf, "%s is %s while %s is %s: expected f32%s%s", statistic->name, type_name(statistic->type),
                     src->name, type_name(src->type), is_f32 ? "" : " or ", is_f32 ? "" : type_name(src->type));
}

static bool is_half(Type type) {
  return type == TYPE_BF16 || type == TYPE_F16;
}

// The type of a statistic without a declared one; TYPE_NONE: several types are possible. A result has the type that
// kernels compute it in, so that it is as precise as the data.
static Type statistic_type(const Value *parameter, Type data, bool is_result) {
  if (is_result) return data == TYPE_F64 || data == TYPE_NONE ? data : TYPE_F32;
  return parameter && !is_half(parameter->type) ? parameter->type : TYPE_NONE;
}

// The type of a parameter that follows from a statistic's type; TYPE_NONE: several types are possible. f16 parameters
// beside f32 statistics must be declared.
static Type parameter_type(const Value *statistic, Type data, bool is_result) {
  const bool may_be_bf16 = data == TYPE_BF16 || data == TYPE_NONE;
  if (!statistic || (statistic->type == TYPE_F32 && may_be_bf16 && !is_result)) return TYPE_NONE;
  return statistic->type;
}

// Infers the parameters' type if no parameter has a type, and the statistics' type if no statistic has one.
static bool infer_other_types(Inference *inf, Node *node, const Value *parameter, const Value *statistic) {
  const Type data = node->inputs[0]->type;
  bool has_parameters = false, has_statistics = false;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    has_parameters |= node->inputs[i] && node->op->inputs[i].type == 'S';
    has_statistics |= node->inputs[i] && node->op->inputs[i].type == 'M';
  }
  for (uint32_t i = 0; i < node->ninputs + node->noutputs; i++) {
    const Operand *row;
    Value *v = node_operand_at(node, i, &row);
    Type type = TYPE_NONE;
    if (row->type == 'M' && !statistic) type = statistic_type(parameter, data, !has_statistics);
    if (row->type == 'S' && !parameter) type = parameter_type(statistic, data, !has_parameters);
    if (!infer_type(inf, v, type)) return false;
  }
  return true;
}

// Parameters and statistics have one type, but statistics may be wider: f32 beside f16 or bf16 parameters, f64 beside
// f32.
static bool infer_norm_types(Inference *inf, Node *node) {
  if (node->signature && node->signature->types) return true;
  const Value *parameter = NULL, *statistic = NULL;
  for (uint32_t i = node->ninputs + node->noutputs; i-- > 0;) {
    const Operand *row;
    const Value *v = node_operand_at(node, i, &row);
    if (!v || v->type == TYPE_NONE) continue;
    if (row->type == 'S') parameter = v;
    if (row->type == 'M') statistic = v;
  }
  if (parameter && statistic && parameter->type != statistic->type && !type_widens(parameter->type, statistic->type))
    return infer_error(inf, "%s is %s and %s is %s: expected one type", parameter->name, type_name(parameter->type),
                       statistic->name, type_name(statistic->type));
  return infer_other_types(inf, node, parameter, statistic);
}

// Batch norm

int node_channel_axis(const Node *node, int rank) {
  return node_s64(node, "data_format") == FORMAT_NCX ? 1 : rank - 1;
}

int norm_channel_axis(const Node *node) {
  return node_channel_axis(node, node->inputs[0]->shape.rank);
}

bool batch_norm_has_broadcast_statistics(const Node *node) {
  return (node->op->id == OP_BatchNormTrainingBackward || node->op->id == OP_BatchNormInferenceBackward) &&
         node_s64(node, "statistics") == STATISTICS_BROADCAST;
}

// A vector [channels].
static bool infer_channel_vector(Inference *inf, Node *node, Value *src, Value *vector) {
  int axis = node_channel_axis(node, src->shape.rank);
  if (!infer_rank_beside(inf, vector, 1, src) || !infer_same_extent(inf, vector, 0, src, axis)) return false;
  if (extent_value(vector->shape.extent[0]) == 0)
    return infer_error(inf, "%s: expected at least 1 channel, found 0", vector->name);
  return infer_statistics_type(inf, node, src, vector);
}

Extent norm_ngroups(const Node *node) {
  if (node->op->norm_scope != SCOPE_GROUP) return EXTENT_UNKNOWN;
  int64_t groups = node_s64(node, "groups");
  return groups ? EXTENT(groups) : node->inputs[0]->shape.extent[norm_channel_axis(node)];
}

uint32_t norm_reduced_axes(const Node *node) {
  const Shape *src = &node->inputs[0]->shape;
  uint32_t all = (1U << src->rank) - 1;
  if (node->op->norm_scope == SCOPE_ROW) return all & ~((1U << layer_norm_begin_axis(node)) - 1);
  if (node->op->norm_scope == SCOPE_GROUP) return all & ~1U;
  if (!batch_norm_has_broadcast_statistics(node)) return all & ~(1U << norm_channel_axis(node));
  uint32_t reduced = 0;
  for (int i = 0; i < src->rank; i++)
    if (extent_equals(node->inputs[2]->shape.extent[i], EXTENT(1))) reduced |= 1U << i;
  return reduced;
}

int64_t norm_reduced_nelems(const Node *node) {
  const Shape *src = &node->inputs[0]->shape;
  uint32_t reduced = norm_reduced_axes(node);
  int64_t groups = extent_value(norm_ngroups(node)), nelems = 1;
  for (int i = 0; i < src->rank; i++)
    if (reduced >> i & 1) nelems *= extent_value(src->extent[i]);
  return groups > 0 ? nelems / groups : nelems;
}

Monomial norm_reduced_monomial(const Node *node) {
  const Shape *src = &node->inputs[0]->shape;
  uint32_t reduced = norm_reduced_axes(node);
  Monomial monomial = 0;
  for (int i = 0; i < src->rank; i++)
    if (reduced >> i & 1) monomial += extent_monomial(src->extent[i]);
  return monomial - extent_monomial(norm_ngroups(node));
}

bool norm_cancels(const Node *node) {
  enum { FEW_ELEMENTS = 4 };
  return node->op->traits & TRAIT_CANCELS && !norm_reduced_monomial(node) && norm_reduced_nelems(node) <= FEW_ELEMENTS;
}

static bool both_or_neither(const Node *node, Diagnostics *d, const Value *a, const char *name_a, const Value *b,
                            const char *name_b) {
  if (!a == !b) return true;
  char title[NODE_TITLE_BYTES];
  return error_at(d, node->position, "%s: expected both %s and %s, or neither, found only %s", node_title(node, title),
                  name_a, name_b, a ? name_a : name_b);
}

bool check_batch_norm_forward_training(Node *node, Diagnostics *d) {
  return both_or_neither(node, d, node->inputs[3], "gamma", node->inputs[4], "beta");
}

bool check_batch_norm_backward(Node *node, Diagnostics *d) {
  OperatorName as = {node->op, node->signature};
  if (!both_or_neither(node, d, node->outputs[1], named_output(as, 1).name, node->outputs[2], named_output(as, 2).name))
    return false;
  // oneDNN Graph specifies this for this name only. Because the operand is removed here, all later stages can apply
  // gamma if it is present.
  if (node->op->id == OP_BatchNormTrainingBackward && !node->signature && !node->outputs[1] && node->inputs[4]) {
    warn_at(d, node->position, "%s without diff_gamma and diff_beta ignores gamma; BatchNormTrainingBackprop does not",
            node->op->name);
    node_set_input(node, 4, NULL);
  }
  return true;
}

// Layer norm

static int begin_axis(const Node *node, int rank) {
  int64_t k = node_s64(node, "begin_norm_axis");
  return (int)(k < 0 ? k + rank : k);
}

int layer_norm_begin_axis(const Node *node) {
  return begin_axis(node, node->inputs[0]->shape.rank);
}

static bool check_begin_axis(Inference *inf, const Node *node, int rank) {
  int64_t axis;
  return infer_axis(inf, "begin_norm_axis", node_s64(node, "begin_norm_axis"), rank, &axis);
}

// A statistic of shape src.shape[:k].
static bool infer_layer_statistic(Inference *inf, Node *node, Value *src, Value *statistic) {
  const int k = layer_norm_begin_axis(node);
  if (!infer_rank_beside(inf, statistic, k, src)) return false;
  for (int i = 0; i < k; i++)
    if (!infer_same_extent(inf, statistic, i, src, i)) return false;
  return infer_statistics_type(inf, node, src, statistic);
}

// A parameter of shape src.shape[k:], or flattened to one axis.
static bool infer_layer_parameter(Inference *inf, Node *node, Value *src, Value *parameter) {
  const int k = layer_norm_begin_axis(node);
  char text[160], src_text[160];
  int depth = src->shape.rank - k;
  if (!infer_statistics_type(inf, node, src, parameter)) return false;
  if (parameter->shape.rank == 1 && depth > 1) {
    Shape normalised = {.rank = depth};
    for (int i = 0; i < depth; i++) normalised.extent[i] = src->shape.extent[k + i];
    for (int i = 0; i < depth; i++)
      if (!extent_is_literal(normalised.extent[i])) return true;
    Extent flat = EXTENT(shape_nelems(&normalised)); // unknown if src has too many elements: reported later
    if (extent_is_unknown(flat)) return true;
    if (!extent_is_unknown(parameter->shape.extent[0]) && !extent_equals(parameter->shape.extent[0], flat))
      return infer_error(inf, "%s %s: expected extent %lld on axis 0 beside %s %s", parameter->name,
                         shape_string(&parameter->shape, text, sizeof text), (long long)flat.value, src->name,
                         shape_string(&src->shape, src_text, sizeof src_text));
    return infer_extent(inf, parameter, 0, flat);
  }
  if (!infer_rank_beside(inf, parameter, depth, src)) return false;
  for (int i = 0; i < depth; i++)
    if (!infer_same_extent(inf, parameter, i, src, k + i)) return false;
  return true;
}

// Parameters and their gradients have one shape: if one is flattened, all are.
static bool infer_layer_parameters(Inference *inf, Node *node, Value *src) {
  const uint32_t count = node->ninputs + node->noutputs;
  const Operand *row;
  Value *first = NULL;
  int rank = -1;
  for (uint32_t i = 0; i < count && rank < 0; i++) {
    const Value *v = node_operand_at(node, i, &row);
    if (v && row->type == 'S') rank = v->shape.rank;
  }
  for (uint32_t i = 0; i < count; i++) {
    Value *v = node_operand_at(node, i, &row);
    if (v && row->type == 'S' && v->shape.rank < 0 && rank >= 0 && !infer_rank(inf, v, rank)) return false;
  }
  for (uint32_t i = 0; i < count; i++) {
    Value *v = node_operand_at(node, i, &row);
    if (!v || row->type != 'S') continue;
    if (i < node->ninputs && !infer_layer_parameter(inf, node, src, v)) return false;
    if (!first) first = v;
    if (!infer_same_shape(inf, first, v)) return false;
  }
  return true;
}

// With use_affine parameters are required; without it they have no effect and are removed.
static bool check_affine(Node *node, Diagnostics *d, uint32_t gamma, uint32_t beta, bool needs_beta) {
  bool is_affine = node_bool(node, "use_affine");
  if (is_affine && !node->inputs[gamma])
    return error_at(d, node->position, "%s: use_affine is true, expected gamma; or set use_affine: false",
                    node->op->name);
  if (is_affine && needs_beta && !node->inputs[beta])
    return error_at(d, node->position, "%s: use_affine is true, expected beta beside gamma", node->op->name);
  if (is_affine || (!node->inputs[gamma] && !node->inputs[beta])) return true;
  warn_at(d, node->position, "%s: use_affine is false, gamma and beta are ignored", node->op->name);
  node_set_input(node, gamma, NULL);
  node_set_input(node, beta, NULL);
  return true;
}

bool check_layer_norm(Node *node, Diagnostics *d) {
  bool has_statistics = node_bool(node, "keep_stats");
  if (has_statistics && !(node->outputs[1] && node->outputs[2]))
    return error_at(d, node->position,
                    "%s: keep_stats is true, expected outputs mean and variance; or set keep_stats: false",
                    node->op->name);
  if (!has_statistics && (node->outputs[1] || node->outputs[2]))
    return error_at(d, node->position, "%s: keep_stats is false, expected dst as the only output", node->op->name);
  return check_affine(node, d, 1, 2, true);
}

bool check_layer_norm_backward(Node *node, Diagnostics *d) {
  if (!both_or_neither(node, d, node->outputs[1], "diff_gamma", node->outputs[2], "diff_beta")) return false;
  if (node->outputs[1] && !node_bool(node, "use_affine"))
    return error_at(d, node->position, "%s: use_affine is false, expected diff_src as the only output", node->op->name);
  return check_affine(node, d, 4, 5, false);
}

// Group norm

// A statistic [N, groups].
static bool infer_group_statistic(Inference *inf, Node *node, Value *src, Value *statistic) {
  int channels = norm_channel_axis(node);
  int64_t groups = node_s64(node, "groups");
  if (!infer_rank_beside(inf, statistic, 2, src) || !infer_same_extent(inf, src, 0, statistic, 0)) return false;
  if (!groups)
    return infer_same_extent(inf, src, channels, statistic, 1) && infer_statistics_type(inf, node, src, statistic);
  Extent e = statistic->shape.extent[1];
  char text[160], src_text[160];
  if (!extent_is_unknown(e) && !extent_equals(e, EXTENT(groups)))
    return infer_error(inf, "%s %s: expected extent %lld on axis 1, the groups of %s %s", statistic->name,
                       shape_string(&statistic->shape, text, sizeof text), (long long)groups, src->name,
                       shape_string(&src->shape, src_text, sizeof src_text));
  return infer_extent(inf, statistic, 1, EXTENT(groups)) && infer_statistics_type(inf, node, src, statistic);
}

// The number of channels must be a multiple of groups. Named extents are checked once they have numbers.
static bool check_groups(Inference *inf, const Node *node, const Value *src) {
  Extent e = src->shape.extent[norm_channel_axis(node)];
  int64_t channels = extent_value(e), groups = node_s64(node, "groups");
  if (!extent_is_literal(e)) return true;
  if (channels == 0) return infer_error(inf, "%s: expected at least 1 channel, found 0", src->name);
  if (!groups || channels % groups == 0) return true;
  return infer_error(inf, "groups: expected a divisor of %lld, the channels of %s, found %lld", (long long)channels,
                     src->name, (long long)groups);
}

// All norms with statistics

// Whether src's rank and axes suit the node's attributes.
static bool check_axes(Inference *inf, const Node *node, const Value *src) {
  const bool may_be_vector = node->op->norm_scope == SCOPE_ROW || batch_norm_has_broadcast_statistics(node);
  if (!infer_rank_at_least(inf, src, may_be_vector ? 1 : 2)) return false;
  if (node->op->norm_scope == SCOPE_ROW) return check_begin_axis(inf, node, src->shape.rank);
  return node->op->norm_scope != SCOPE_GROUP || check_groups(inf, node, src);
}

// The shape and type of a statistic, or of a parameter or its gradient, that follow from src's.
static bool infer_beside(Inference *inf, Node *node, Value *src, Value *v, bool is_parameter) {
  if (node->op->norm_scope == SCOPE_GROUP && !is_parameter) return infer_group_statistic(inf, node, src, v);
  if (node->op->norm_scope == SCOPE_ROW) return is_parameter || infer_layer_statistic(inf, node, src, v);
  if (!batch_norm_has_broadcast_statistics(node)) return infer_channel_vector(inf, node, src, v);
  return infer_same_shape(inf, node->inputs[2], v) && infer_rank_beside(inf, v, src->shape.rank, src) &&
         infer_broadcast_to(inf, v, src);
}

bool infer_norm(Inference *inf, Node *node) {
  Value *src = node->inputs[0];
  const Operand *row;
  if (!infer_norm_types(inf, node)) return false;
  for (uint32_t i = 1; i < node->ninputs + node->noutputs; i++) {
    Value *v = node_operand_at(node, i, &row);
    if (row->type == 'T' && !infer_same_shape(inf, src, v)) return false;
  }
  if (src->shape.rank < 0) return true;
  if (!check_axes(inf, node, src)) return false;
  for (uint32_t i = 1; i < node->ninputs + node->noutputs; i++) {
    Value *v = node_operand_at(node, i, &row);
    if (v && row->type != 'T' && !infer_beside(inf, node, src, v, row->type == 'S')) return false;
  }
  return node->op->norm_scope != SCOPE_ROW || infer_layer_parameters(inf, node, src);
}

// RMSNorm

// gamma// RMSNorm

// gamma broadcasts to src's shape.
static bool infer_rms_gamma(Inference *inf, Node *node, Value *src, Value *gamma) {
  return !gamma || (infer_statistics_type(inf, node, src, gamma) && infer_broadcast_to(inf, gamma, src));
}

static bool infer_rms(Inference *inf, Node *node, Value *gamma) {
  Value *src = node->inputs[0];
  if (!infer_same_shape(inf, src, node->outputs[0])) return false;
  if (src->shape.rank < 0) return true;
  return infer_rank_at_least(inf, src, 1) && check_begin_axis(inf, node, src->shape.rank) &&
         infer_rms_gamma(inf, node, src, gamma);
}

bool infer_rms_norm(Inference *inf, Node *node) {
  return infer_rms(inf, node, node->inputs[1]);
}

// A term of diff_gamma needs its row's statistic, which is a sum over the whole row. A kernel can compute both only if
// gamma varies along all axes of a row (its gradient is a sum over rows) or along none (a sum over everything).
static bool check_rms_gamma_of_rows(Inference *inf, const Node *node, const Value *src, const Value *gamma) {
  char text[160], src_text[160];
  int missing = src->shape.rank - gamma->shape.rank;
  bool is_broadcast = false, is_whole = false;
  for (int i = layer_norm_begin_axis(node); i < src->shape.rank; i++) {
    Extent e = src->shape.extent[i], own = i < missing ? EXTENT(1) : gamma->shape.extent[i - missing];
    if (extent_is_unknown(e) || extent_is_unknown(own)) return true;
    if (extent_equals(e, EXTENT(1))) continue;
    if (extent_equals(own, EXTENT(1))) is_broadcast = true;
    else is_whole = true;
  }
  if (!is_broadcast || !is_whole) return true;
  return infer_error(inf, "%s %s: expected to vary along all or none of the axes from %d on of %s %s, for diff_gamma",
                     gamma->name, shape_string(&gamma->shape, text, sizeof text), layer_norm_begin_axis(node),
                     src->name, shape_string(&src->shape, src_text, sizeof src_text));
}

bool infer_rms_norm_backward(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *gamma = node->inputs[2], *diff_gamma = node->outputs[1];
  if (!infer_same_shape(inf, src, node->inputs[1]) || !infer_same_shape(inf, gamma, diff_gamma)) return false;
  if (!infer_rms(inf, node, gamma)) return false;
  if (!diff_gamma || !gamma || src->shape.rank < 0 || gamma->shape.rank < 0) return true;
  return check_rms_gamma_of_rows(inf, node, src, gamma);
}

bool check_rms_norm_backward(Node *node, Diagnostics *d) {
  if (node->inputs[2] || !node->outputs[1]) return true;
  return error_at(d, node->position, "%s: expected gamma beside diff_gamma, found none", node->op->name);
}
