// Converts operands to the operator's types and shapes, builds the operator, and replaces values of the graph by its
// results.
#include "passes/rewrite/recognise/norm_replace.h"

#include "ir/operators/infer.h"
#include "passes/rewrite/dead_code.h"

#include <string.h>

// v widened to another type, by an existing or a new cast; NULL: the cast would round, or out of memory.
static Value *in_type(Norm *n, Value *v, Type type) {
  uint32_t nuses = 0;
  if (!v || v->type == type) return v;
  for (const Use *use = v->uses; use && nuses < MOST_USES; use = use->next, nuses++)
    if (use->node->op->id == OP_TypeCast && use->node->outputs[0]->type == type &&
        norm_has_in_cone(n, use->node->outputs[0]))
      return use->node->outputs[0];
  return type_widens(v->type, type) ? build_cast(&n->r->builder, v, type) : NULL;
}

// The widest type of these statistics and parameters, which the operator requires to have one type. NULL values are
// skipped.
static Type widest_type(Value *const *values, uint32_t count) {
  Type type = TYPE_NONE;
  for (uint32_t i = 0; i < count; i++)
    if (values[i] && (type == TYPE_NONE || type_widens(type, values[i]->type))) type = values[i]->type;
  return type;
}

// Widens all values to this type. False: a value would be rounded, or out of memory.
static bool all_in_type(Norm *n, Value **values, uint32_t count, Type type) {
  for (uint32_t i = 0; i < count; i++) {
    if (!values[i]) continue;
    values[i] = in_type(n, values[i], type);
    if (!values[i]) return false;
  }
  return true;
}

// Adds a node for the mean of src. NULL: the mean is over a part of an axis, or out of memory.
static Value *add_mean(Norm *n, const NormForm *f) {
  Builder *b = &n->r->builder;
  Labels src = labels_of_frame(&n->algebra);
  int64_t axes[MAX_RANK] = {0};
  size_t count = 0;
  for (int i = 0; i < src.rank; i++) {
    if (src.axes[i] & f->statistics && src.axes[i] & n->reduced) return NULL; // only a part of this axis is reduced
    if (!(src.axes[i] & f->statistics) && (f->kind != LAYER_NORM || i >= f->begin)) axes[count++] = i;
  }
  Node *node = build_node(b, OP_ReduceMean, 1, &n->src);
  if (!build_set_list(b, node, "axes", axes, count)) return NULL;
  if (type_widens(n->src->type, TYPE_F32)) node_set_input(node, 0, in_type(n, n->src, TYPE_F32));
  return build_one(b, node);
}

static bool statistic_operands(Norm *n, const NormForm *f, Value *statistics[2]) {
  Algebra *a = &n->algebra;
  Builder *b = &n->r->builder;
  Value *mean = n->is_given ? norm_plain_value(n, n->mean, n->unreduced) : norm_find_value(n, n->mean, n->unreduced),
        *variance = NULL;
  if (!mean && !n->is_given) mean = add_mean(n, f);
  if (n->rstd_value) {
    variance = build_unary(b, OP_Square, n->rstd_value);
    if (!n->is_deviation) variance = build_unary(b, OP_Reciprocal, variance);
  } else {
    Polynomial p = polynomial_sum(a, n->variance, polynomial_number(a, n->epsilon), -1);
    variance = norm_find_value(n, p, n->unreduced);
    if (!variance) variance = norm_plain_value(n, p, n->unreduced);
  }
  statistics[0] = build_in_shape(b, mean, &f->statistics_shape);
  statistics[1] = build_in_shape(b, variance, &f->statistics_shape);
  return statistics[0] && statistics[1];
}

// Makes the node's output `slot` the producer of `old`, through a reshape if `old` has further axes of extent 1.
static bool replace_value(Norm *n, Node *node, uint32_t slot, Value *old) {
  Builder *b = &n->r->builder;
  Node *before = old->producer;
  if (shape_equals(&old->shape, &node->outputs[slot]->shape)) {
    node_set_output(before, old->output_slot, NULL);
    node_set_output(node, slot, old);
  } else {
    b->origin = before;
    Value *v = build_in_shape(b, node->outputs[slot], &old->shape);
    if (!v) return false;
    node_set_output(before, old->output_slot, NULL);
    node_set_output(v->producer, 0, old);
  }
  nodes_remove_dead(before);
  return true;
}

// Adds the positions of the nodes that the operator replaces.
static void add_origins(const Norm *n, Node *node, const Value *root) {
  Value *above[MOST_ANCESTORS];
  uint32_t count = value_ancestors((Value *)root, above, MOST_ANCESTORS);
  for (uint32_t i = 0; i < count; i++)
    if (above[i] != n->src && value_is_algebraic(above[i]) &&
        !node_add_origin(n->r->builder.graph, node, above[i]->producer))
      n->r->refusals.out_of_memory = true;
}

// Whether one of the operands may depend on v; also true if v has too many descendants to search.
static bool may_lead_to(const Value *v, Value *const *operands, uint32_t count) {
  enum { MOST = 256 };
  const Value *seen[MOST];
  uint32_t nseen = 0;
  seen[nseen++] = v;
  for (uint32_t i = 0; i < nseen; i++) {
    for (uint32_t k = 0; k < count; k++)
      if (seen[i] == operands[k]) return true;
    for (const Use *use = seen[i]->uses; use; use = use->next)
      for (uint32_t k = 0; k < use->node->noutputs; k++) {
        if (!use->node->outputs[k]) continue;
        uint32_t at = 0;
        while (at < nseen && seen[at] != use->node->outputs[k]) at++;
        if (at == MOST) return true;
        if (at == nseen) seen[nseen++] = use->node->outputs[k];
      }
  }
  return false;
}

// Drops parameters' gradients that the operator cannot compute: gradients of another type, and gradients that an
// operand depends on, which would make a cycle.
static void drop_parameter_gradients(NormGradient *d, Value *const *operands, uint32_t count, Type type) {
  Value **made[] = {&d->diff_gamma, &d->diff_beta};
  for (int i = 0; i < 2; i++)
    if (*made[i] && ((*made[i])->type != type || may_lead_to(*made[i], operands, count))) *made[i] = NULL;
}

// Converts the gradient's operands: src, dy, mean, variance, gamma. False: types do not fit, or out of memory.
static bool gradient_operands(Norm *n, NormGradient *d, Value *operands[5]) {
  Value **parameters = &operands[2]; // statistics and gamma, which must have one type
  memset(operands, 0, 5 * sizeof *operands);
  operands[0] = n->src;
  if (!n->is_rms) form_allow_flat(&d->form, d->gamma, NULL);
  operands[1] = build_in_shape(&n->r->builder, in_type(n, d->dy, n->src->type), &n->src->shape);
  if (!n->is_rms && !statistic_operands(n, &d->form, parameters)) return false;
  parameters[2] = build_in_shape(&n->r->builder, d->gamma, &d->form.parameters_shape);
  Type type = widest_type(parameters, 3);
  if (type == TYPE_NONE) type = d->diff_gamma ? d->diff_gamma->type : n->src->type;
  if (!operands[1] || !all_in_type(n, parameters, 3, type)) return false;
  drop_parameter_gradients(d, operands, 5, type);
  bool needs_gamma = d->form.kind != BATCH_NORM && (d->diff_gamma || d->diff_beta) && !d->gamma;
  if (needs_gamma) parameters[2] = build_number(&n->r->builder, type, &d->form.parameters_shape, 1);
  return !n->r->refusals.out_of_memory;
}

// Builds the operator with its inputs, attributes and outputs. NULL: inference rejects the operator, or out of memory.
static Node *add_gradient(Norm *n, NormGradient *d) {
  Builder *b = &n->r->builder;
  Value *operands[5];
  if (!gradient_operands(n, d, operands)) return NULL;
  bool is_batch = d->form.kind == BATCH_NORM;
  bool has_parameters = d->diff_gamma || d->diff_beta || (d->gamma && is_batch);
  OperatorId id = n->is_rms ? OP_RMSNormBackward : norm_kinds[d->form.kind].backward;
  if (n->is_rms) operands[2] = operands[4];
  Node *node = build_node(b, id, n->is_rms ? 3 : 5, operands);
  if (!node) return NULL;
  form_set(&d->form, node, n->src, n->epsilon);
  if (!n->is_rms && !is_batch) build_set(node, "use_affine")->boolean = operands[4] != NULL;
  for (uint32_t i = 0; i < (has_parameters ? node->noutputs : 1); i++)
    if (!build_result(b, node, i, TYPE_NONE)) return NULL;
  return build_finish(b, node) && node->outputs[0]->type == d->root->type ? node : NULL;
}

bool norm_replace_gradient(Norm *n, NormGradient *d) {
  n->r->builder.origin = d->root->producer;
  Node *node = add_gradient(n, d);
  if (!node) return false;
  add_origins(n, node, d->root);
  if (d->diff_gamma && !replace_value(n, node, 1, d->diff_gamma)) return false;
  if (d->diff_beta && !replace_value(n, node, 2, d->diff_beta)) return false;
  return replace_value(n, node, 0, d->root);
}

// A parameter without producer cannot depend on the operator's statistics, so replacing the statistics makes no cycle.
static bool is_independent(const Value *parameter) {
  return !parameter || !parameter->producer;
}

// Whether statistics may be over no elements, depending on open dims. The graph's mean is then NaN, but the operator's
// mean is not.
static bool may_be_empty(const Norm *n) {
  Labels src = labels_of_frame(&n->algebra);
  for (int i = 0; i < src.rank; i++)
    if (src.axes[i] & n->reduced && extent_monomial(n->src->shape.extent[i])) return true;
  return false;
}

// Replaces the graph's mean and variance, if still used, by the operator's outputs.
static bool replace_statistics(Norm *n, const NormForward *y, Node *node, Value *const own[2]) {
  Builder *b = &n->r->builder;
  bool is_wanted = false;
  for (uint32_t i = 0; i < 2; i++) is_wanted |= own[i] && own[i]->producer && (own[i]->uses || own[i]->is_output);
  if (!is_wanted || !is_independent(y->gamma) || !is_independent(y->beta) || may_be_empty(n)) return true;
  uint32_t slot = y->form.kind == BATCH_NORM ? 3 : 1;
  if (norm_kinds[y->form.kind].has_own_statistics) {
    bool fits = true;
    for (uint32_t i = 0; i < 2 && fits; i++) fits = build_result(b, node, slot + i, own[!own[0]]->type) != NULL;
    build_set(node, "keep_stats")->boolean = fits = fits && build_finish(b, node);
    for (uint32_t i = 0; i < 2 && !fits; i++) node_set_output(node, slot + i, NULL);
    if (!fits)
      return !b->d->out_of_memory; // the operator rejects the type: the graph computes the statistics as before
  }
  for (uint32_t i = 0; i < 2; i++) {
    Value *v = own[i];
    bool is_needed = v && v->producer && v->producer != node && (v->uses || v->is_output);
    if (is_needed && v->type == node->outputs[slot + i]->type && !replace_value(n, node, slot + i, v)) return false;
  }
  return true;
}

// Converts gamma, beta, mean and variance to the operator's shapes and one type. If the operator needs both parameters,
// a missing gamma is 1 and a missing beta 0. False: types do not fit, or out of memory.
static bool forward_parameters(Norm *n, const NormForward *y, Value *parameters[4]) {
  NormForm form = y->form;
  const Shape *shape = &form.parameters_shape;
  if (!n->is_rms) form_allow_flat(&form, y->gamma, y->beta);
  memset(parameters, 0, 4 * sizeof *parameters);
  if (n->is_given && !statistic_operands(n, &y->form, &parameters[2])) return false;
  parameters[0] = build_in_shape(&n->r->builder, y->gamma, shape);
  parameters[1] = build_in_shape(&n->r->builder, y->beta, shape);
  Type type = widest_type(parameters, 4);
  if (!all_in_type(n, parameters, 4, type)) return false;
  if (n->is_rms || (!n->is_given && !y->gamma && !y->beta)) return !n->r->refusals.out_of_memory;
  for (uint32_t i = 0; i < 2; i++)
    if (!parameters[i]) parameters[i] = build_number(&n->r->builder, type, shape, i == 0);
  return !n->r->refusals.out_of_memory;
}

// Builds the operator with its inputs, attributes and result. NULL: inference rejects the operator, or out of memory.
static Node *add_forward(Norm *n, const NormForward *y) {
  Builder *b = &n->r->builder;
  Value *parameters[4], *running = NULL;
  NormKind kind = y->form.kind;
  OperatorId id = n->is_rms ? OP_RMSNorm : n->is_given ? norm_kinds[kind].with_statistics : norm_kinds[kind].forward;
  if (!forward_parameters(n, y, parameters)) return NULL;
  Value *gamma = parameters[0], *beta = parameters[1];
  if (id == OP_BatchNormForwardTraining)
    running = build_number(b, gamma ? gamma->type : n->src->type, &y->form.parameters_shape, 0);
  Value *const own[5] = {n->src, gamma, beta},
               *const inference[5] = {n->src, gamma, beta, parameters[2], parameters[3]},
               *const training[5] = {n->src, running, running, gamma, beta};
  Value *const *inputs = kind != BATCH_NORM ? own : n->is_given ? inference : training;
  Node *node = build_node(b, id, operators[id].ninputs, inputs);
  if (!node) return NULL;
  form_set(&y->form, node, n->src, n->epsilon);
  if (!n->is_rms && norm_kinds[kind].has_own_statistics) {
    build_set(node, "use_affine")->boolean = gamma != NULL;
    build_set(node, "keep_stats")->boolean = false;
  }
  for (uint32_t i = 0; i < (kind != BATCH_NORM ? 1 : node->noutputs); i++)
    if (!build_result(b, node, i, TYPE_NONE)) return NULL;
  return build_finish(b, node) && node->outputs[0]->type == y->root->type ? node : NULL;
}

bool norm_replace_forward(Norm *n, const NormForward *y) {
  Algebra *a = &n->algebra;
  n->ncone = value_ancestors(y->root, n->cone, MOST_EVALUATED);
  Polynomial variance = polynomial_sum(a, n->variance, polynomial_number(a, n->epsilon), -1);
  bool has_statistics = !n->is_given && !n->is_rms; // as outputs
  Value *const own[] = {has_statistics ? norm_find_value(n, n->mean, n->unreduced) : NULL,
                        has_statistics ? norm_find_value(n, variance, n->unreduced) : NULL};
  n->r->builder.origin = y->root->producer;
  Node *node = add_forward(n, y);
  if (!node) return false;
  add_origins(n, node, y->root);
  return replace_value(n, node, 0, y->root) && (!has_statistics || replace_statistics(n, y, node, own));
}
