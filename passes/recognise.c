// Norms by what they are. Where a value is 1 / sqrt(variance + epsilon), or stands where that would, the algebra says
// what the values around it are as polynomials of the data, and they are compared with the operator's own formula:
//
//   norm      y = gamma * c * r + beta                               c = x - mean, r = 1 / sqrt(variance + epsilon)
//   gradient  dx = r * (g - E[g] - c * r^2 * E[g * c])               g = gamma * dy
//             dgamma = sum(dy * c * r), dbeta = sum(dy)
//
// An RMS norm is one whose mean is 0 and whose gradient has no E[g]. One formula serves layer and batch norm, which
// differ in the axes that E goes over, and every spelling of them: a variance in one pass or two, means or sums,
// quotients or products with a reciprocal, terms in any order and grouping, as a framework writes them or as
// differentiation leaves them. Roundings change, for the better: the operators are in centred form. The gradient is
// looked for first, for its statistics are no longer polynomials once an operator makes them. Anything short of
// equality leaves the graph as it is.
#include "passes/recognise.h"

#include "ir/infer.h"
#include "ir/norm.h"
#include "ir/reduce.h"
#include "passes/algebra.h"
#include "passes/builder.h"
#include "passes/dead_code.h"
#include "passes/movement.h"
#include "passes/norm_form.h"
#include "passes/rewrite.h"

#include <string.h>

enum { MOST_ANCESTORS = 32, MOST_DESCENDANTS = 128, MOST_USES = 64 };

typedef struct Recogniser {
  Builder builder;
  PassContext *context;
  Arena scratch; // of one norm
  bool changed;
} Recogniser;

typedef struct Norm {
  Recogniser *r;
  Algebra algebra;
  Value *src;
  uint32_t reduced, kept; // axes of the algebra's frame
  double count;           // elements of a statistic
  double epsilon;
  Polynomial mean, variance; // variance with epsilon
  Polynomial rstd;           // one factor
  Value *rstd_value;         // where no variance is known: this, or its reciprocal when is_deviation
  bool is_deviation;
  bool is_rms;                     // mean is 0, and variance the mean square
  bool is_given;                   // the statistics are not src's own, as far as the graph tells
  Value *region[MOST_DESCENDANTS]; // values computed from the statistics, nearest first
  uint32_t nregion;
  Value *cone[MOST_EVALUATED]; // the root, and what it is computed from as far as is looked into
  uint32_t ncone;
} Norm;

// The graph around a value

static bool is_looked_into(const Value *v) {
  return v->producer && operator_has_meaning(v->producer->op->id);
}

static uint32_t add_once(Value **list, uint32_t count, uint32_t most, Value *v) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == v) return count;
  if (count < most) list[count++] = v;
  return count;
}

static uint32_t ancestors(Value *v, Value **list, uint32_t most) {
  uint32_t count = add_once(list, 0, most, v);
  for (uint32_t i = 0; i < count; i++) {
    const Node *node = is_looked_into(list[i]) ? list[i]->producer : NULL;
    for (uint32_t k = 0; node && k < node->ninputs; k++)
      if (node->inputs[k] && !node->inputs[k]->constant) count = add_once(list, count, most, node->inputs[k]);
  }
  return count;
}

// Adds what is computed from v, and v.
static void add_descendants(Norm *n, Value *v) {
  n->nregion = add_once(n->region, n->nregion, MOST_DESCENDANTS, v);
  for (uint32_t i = 0; i < n->nregion; i++) {
    uint32_t nuses = 0;
    for (const Use *use = n->region[i]->uses; use && nuses < MOST_USES; use = use->next, nuses++)
      if (operator_has_meaning(use->node->op->id) && use->node->outputs[0])
        n->nregion = add_once(n->region, n->nregion, MOST_DESCENDANTS, use->node->outputs[0]);
  }
}

// Statistics

static void norm_init(Norm *n, Recogniser *r, Value *src) {
  r->builder.out_of_memory |= n->algebra.out_of_memory;
  *n = (Norm){.r = r, .src = src};
  algebra_init(&n->algebra, &r->scratch, src);
}

static bool has_all_elements(const Norm *n, const Value *v) {
  return shape_nelems(&v->shape) == shape_nelems(&n->src->shape) &&
         shape_powers(&v->shape) == shape_powers(&n->src->shape);
}

// Splits the frame's axes as values around do that have all elements.
static void split_axes(Norm *n, Value *const *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (has_all_elements(n, list[i])) algebra_split_axes(&n->algebra, &list[i]->shape);
}

static void set_kept(Norm *n, uint32_t kept) {
  n->kept = kept;
  n->reduced = algebra_axes(&n->algebra) & ~kept;
  n->count = algebra_count(&n->algebra, n->reduced);
}

static Polynomial polynomial_of_src(Norm *n) {
  Labels labels = labels_of_frame(&n->algebra);
  return algebra_evaluate(&n->algebra, n->src, &labels);
}

static Polynomial average(Norm *n, Polynomial p) {
  Polynomial sum = polynomial_reduce(&n->algebra, p, n->reduced);
  return polynomial_sum(&n->algebra, (Polynomial){0}, sum, 1 / n->count);
}

// variance + epsilon as a polynomial: takes epsilon, its constant term, out.
static bool take_epsilon(Norm *n, Polynomial p) {
  for (uint32_t i = 0; i < p.nterms; i++)
    if (!p.terms[i].nfactors) n->epsilon = p.terms[i].coefficient;
  return n->epsilon > 0;
}

// Whether `shifted` is src's variance, in one pass or two, or its mean square, plus a constant.
static bool is_variance_of(Norm *n, Value *shifted) {
  Algebra *a = &n->algebra;
  Labels labels;
  if (!n->reduced || n->count == 0 || !labels_of_axes(a, n->kept, shifted, &labels)) return false;
  Polynomial p = algebra_evaluate(a, shifted, &labels), x = polynomial_of_src(n);
  if (a->failed || !take_epsilon(n, p)) return false;
  Polynomial mean = average(n, x), square = average(n, polynomial_product(a, x, x));
  Polynomial shifted_square = polynomial_sum(a, square, polynomial_number(a, n->epsilon), 1);
  n->is_rms = polynomial_equals(a, p, shifted_square);
  n->mean = n->is_rms ? (Polynomial){0} : mean;
  n->variance = polynomial_sum(a, shifted_square, polynomial_product(a, n->mean, n->mean), -1);
  n->rstd = polynomial_power(a, n->variance, -1);
  return !a->failed && polynomial_equals(a, p, n->variance);
}

// The one factor of a monomial that may be 1 / sqrt(variance + epsilon): a power of a sum, or a value by itself.
static bool take_rstd(Norm *n, Polynomial p, bool is_divisor) {
  Algebra *a = &n->algebra;
  if (p.nterms != 1) return false;
  for (uint32_t i = 0; i < p.terms[0].nfactors; i++) {
    Factor f = p.terms[0].factors[i];
    const Symbol *s = &a->symbols[f.symbol];
    if (s->axes & ~n->kept) continue;
    if (!s->value && !s->reduced && f.halves == (is_divisor ? 1 : -1) && take_epsilon(n, s->base)) {
      n->variance = s->base;
      n->rstd = polynomial_power(a, s->base, -1);
      return !a->failed;
    }
    // A deviation is never negative, but a graph that is given its reciprocal does not say so.
    if (!n->r->context->fast_math || !s->value || p.terms[0].nfactors != 1 || f.halves != 2 || s->axes != n->kept)
      continue;
    n->rstd_value = (Value *)s->value;
    n->is_deviation = is_divisor;
    n->epsilon = n->src->type == TYPE_F64 ? 1e-300 : 1e-30; // vanishes beside any variance
    n->rstd = polynomial_power(a, p, is_divisor ? -2 : 2);
    return !a->failed;
  }
  return false;
}

// Whether an operand beside one that has all elements varies over the statistics' axes.
static bool is_statistic(const Norm *n, const Value *all, const Value *v, Labels *labels) {
  Labels result;
  if (!labels_of_axes(&n->algebra, algebra_axes(&n->algebra), all, &result) || v->shape.rank > result.rank)
    return false;
  *labels = labels_of_operand(v, &result);
  return labels_axes(labels) == n->kept;
}

// A norm whose statistics are given, around src - mean: one of those that multiply or divide it is the deviation.
static bool norm_from_difference(Norm *n, Recogniser *r, Value *src, Value *center) {
  enum { NEAR = 12 };
  const Node *node = center->producer;
  Labels labels;
  norm_init(n, r, src);
  add_descendants(n, center);
  split_axes(n, n->region, n->nregion);
  if (!labels_of_axes(&n->algebra, algebra_axes(&n->algebra), center, &labels)) return false;
  Polynomial difference = algebra_evaluate(&n->algebra, center, &labels);
  labels = labels_of_operand(node->inputs[1], &labels);
  set_kept(n, labels_axes(&labels));
  if (!n->reduced || !n->kept || n->count == 0) return false;
  n->mean = polynomial_sum(&n->algebra, polynomial_of_src(n), difference, -1);
  n->is_given = true;
  if (n->algebra.failed || n->mean.nterms != 1) return false;
  for (uint32_t i = 0; i < n->nregion && i < NEAR; i++) {
    const Node *user = n->region[i]->producer;
    bool divides = user->op->id == OP_Divide;
    if (user->op->id != OP_Multiply && !divides) continue;
    for (uint32_t slot = divides; slot < 2; slot++) {
      Value *other = user->inputs[slot];
      if (!is_statistic(n, n->region[i], other, &labels)) continue;
      if (take_rstd(n, algebra_evaluate(&n->algebra, other, &labels), divides)) return true;
    }
  }
  return false;
}

// Values for the operator

static bool is_in_cone(const Norm *n, const Value *v) {
  for (uint32_t i = 0; i < n->ncone; i++)
    if (n->cone[i] == v) return true;
  return false;
}

// A value that the root is computed from, is p, and has the axes in the mask as they stand in src, the widest of those;
// NULL: none.
static Value *find_value(Norm *n, Polynomial p, uint32_t axes) {
  Algebra *a = &n->algebra;
  Value *found = NULL;
  for (uint32_t i = 0; i < a->nevaluated; i++) {
    Labels labels;
    const Evaluated *e = &a->evaluated[i];
    if (e->value->constant || !is_in_cone(n, e->value) || !labels_of_axes(a, axes, e->value, &labels)) continue;
    if (labels_equal(&labels, &e->labels) && polynomial_equals(a, e->p, p) &&
        (!found || type_widens(found->type, e->value->type)))
      found = (Value *)e->value;
  }
  return found;
}

// v in another type, as the graph has it or through a new cast; NULL: that would round it, or out of memory.
static Value *in_type(Norm *n, Value *v, Type type, const Value *stands_for) {
  uint32_t nuses = 0;
  if (!v || v->type == type) return v;
  for (const Use *use = v->uses; use && nuses < MOST_USES; use = use->next, nuses++)
    if (use->node->op->id == OP_TypeCast && use->node->outputs[0]->type == type && is_in_cone(n, use->node->outputs[0]))
      return use->node->outputs[0];
  if (!type_widens(v->type, type)) return NULL;
  Node *node = builder_add_node(&n->r->builder, OP_TypeCast, stands_for);
  if (!node || !builder_add_output(&n->r->builder, node, 0, type)) return NULL;
  node_set_input(node, 0, v);
  return builder_finish_node(&n->r->builder, node) ? node->outputs[0] : NULL;
}

// The widest type of statistics and parameters, which operators want to be alike; NULL ones are left out.
static Type widest_type(Value *const *values, uint32_t count) {
  Type type = TYPE_NONE;
  for (uint32_t i = 0; i < count; i++)
    if (values[i] && (type == TYPE_NONE || type_widens(type, values[i]->type))) type = values[i]->type;
  return type;
}

// Puts all into this type; false: one would be rounded, or out of memory.
static bool all_in_type(Norm *n, Value **values, uint32_t count, Type type, const Value *stands_for) {
  for (uint32_t i = 0; i < count; i++) {
    if (!values[i]) continue;
    values[i] = in_type(n, values[i], type, stands_for);
    if (!values[i]) return false;
  }
  return true;
}

static bool is_value_over(const Norm *n, const Factor *f, uint32_t axes) {
  const Symbol *s = &n->algebra.symbols[f->symbol];
  return s->value && f->halves == 2 && s->axes == axes && s->value != n->src;
}

// p without one power of a symbol, where every term has it.
static Polynomial divided(Norm *n, Polynomial p, uint16_t symbol) {
  Polynomial one = polynomial_number(&n->algebra, 1);
  if (n->algebra.failed) return one;
  one.terms[0].nfactors = 1;
  one.terms[0].factors[0] = (Factor){symbol, -2};
  return polynomial_product(&n->algebra, p, one);
}

// A value over these axes as the operator's operand, with the axes in their order.
static Value *plain_value(const Norm *n, Polynomial p, uint32_t axes) {
  if (p.nterms != 1 || p.terms[0].nfactors != 1 || p.terms[0].coefficient != 1) return NULL;
  const Symbol *s = &n->algebra.symbols[p.terms[0].factors[0].symbol];
  Labels labels;
  bool fits = is_value_over(n, &p.terms[0].factors[0], axes) && labels_of_axes(&n->algebra, axes, s->value, &labels) &&
              labels_equal(&labels, &s->labels);
  return fits ? (Value *)s->value : NULL;
}

static Polynomial centered(Norm *n) {
  return polynomial_sum(&n->algebra, polynomial_of_src(n), n->mean, -1);
}

// The terms of p that have rstd to the power of 1, without it; of those, the ones that have src or not.
static Polynomial beside_rstd(Norm *n, Polynomial p, bool with_src) {
  Algebra *a = &n->algebra;
  Factor rstd = n->rstd.terms[0].factors[0];
  Polynomial found = {0, ARENA_ARRAY(a->scratch, Monomial, MOST_TERMS)};
  if (!found.terms) a->failed = a->out_of_memory = true;
  for (uint32_t i = 0; i < p.nterms && !a->failed; i++) {
    const Monomial *m = &p.terms[i];
    bool has_rstd = false, has_src = false, has_sum = false;
    for (uint32_t k = 0; k < m->nfactors; k++) {
      const Symbol *s = &a->symbols[m->factors[k].symbol];
      has_rstd |= m->factors[k].symbol == rstd.symbol && m->factors[k].halves == rstd.halves;
      has_src |= s->value == n->src;
      has_sum |= !s->value && s->reduced;
    }
    if (has_rstd && has_src == with_src && !has_sum && monomial_axes(a, m) == (n->reduced | n->kept))
      found.terms[found.nterms++] = *m;
  }
  return polynomial_product(a, found, polynomial_power(a, n->rstd, -2));
}

// Statistics as operands: mean, and variance without epsilon.

// The mean of src, where the graph does not have it.
static Value *add_mean(Norm *n, const NormForm *f, const Value *root) {
  Builder *b = &n->r->builder;
  Labels src = labels_of_frame(&n->algebra);
  int64_t axes[MAX_RANK] = {0};
  int count = 0;
  for (int i = 0; i < src.rank; i++) {
    if (src.axes[i] & f->statistics && src.axes[i] & n->reduced) return NULL; // a part of it
    if (!(src.axes[i] & f->statistics) && (f->kind != LAYER_NORM || i >= f->begin)) axes[count++] = i;
  }
  Node *node = builder_add_node(b, OP_ReduceMean, root);
  if (!node || !builder_set_list(b, node, "axes", axes, count)) return NULL;
  node_set_input(node, 0, type_widens(n->src->type, TYPE_F32) ? in_type(n, n->src, TYPE_F32, root) : n->src);
  return builder_add_output(b, node, 0, TYPE_NONE) && builder_finish_node(b, node) ? node->outputs[0] : NULL;
}

static bool statistic_operands(Norm *n, const NormForm *f, const Value *root, Value *statistics[2]) {
  Algebra *a = &n->algebra;
  Builder *b = &n->r->builder;
  Value *mean = n->is_given ? plain_value(n, n->mean, n->kept) : find_value(n, n->mean, n->kept), *variance = NULL;
  if (!mean && !n->is_given) mean = add_mean(n, f, root);
  if (n->rstd_value) {
    variance = builder_add_unary(b, OP_Square, n->rstd_value, root);
    if (variance && !n->is_deviation) variance = builder_add_unary(b, OP_Reciprocal, variance, root);
  } else {
    Polynomial p = polynomial_sum(a, n->variance, polynomial_number(a, n->epsilon), -1);
    variance = find_value(n, p, n->kept);
    if (!variance) variance = plain_value(n, p, n->kept);
  }
  statistics[0] = builder_in_shape(&n->r->builder, mean, &f->statistics_shape, root);
  statistics[1] = builder_in_shape(&n->r->builder, variance, &f->statistics_shape, root);
  return statistics[0] && statistics[1];
}

// Lets the node make `old`, through a reshape where it has axes of extent 1 beside the operator's.
static bool provide(Norm *n, Node *node, uint32_t slot, Value *old) {
  Builder *b = &n->r->builder;
  Node *before = old->producer;
  if (shape_equals(&old->shape, &node->outputs[slot]->shape)) {
    node_set_output(before, old->output_slot, NULL);
    node_set_output(node, slot, old);
  } else {
    Node *reshape = builder_add_reshape(b, node->outputs[slot], &old->shape, old);
    if (!reshape) return false;
    node_set_defaults(reshape);
    node_set_output(before, old->output_slot, NULL);
    node_set_output(reshape, 0, old);
  }
  nodes_remove_dead(before);
  return true;
}

// The lines of all that the node stands for.
static void add_origins(const Norm *n, Node *node, const Value *root) {
  Value *above[MOST_ANCESTORS];
  uint32_t count = ancestors((Value *)root, above, MOST_ANCESTORS);
  for (uint32_t i = 0; i < count; i++)
    if (above[i] != n->src && is_looked_into(above[i]) &&
        !node_add_origin(n->r->builder.graph, node, above[i]->producer))
      n->r->builder.out_of_memory = true;
}

// Gradients

typedef struct Gradient {
  NormForm form;
  Value *root, *dy, *gamma;
  Value *diff_gamma, *diff_beta; // NULL: the graph does not have it
} Gradient;

// g as gamma and dy: dy is a value over all axes, gamma one over the parameters' or absent.
static bool split_g(Norm *n, Gradient *d, Polynomial g, Polynomial *dy) {
  uint32_t all = n->reduced | n->kept;
  for (uint32_t i = 0; i <= g.terms[0].nfactors; i++) {
    bool has_gamma = i < g.terms[0].nfactors;
    const Factor *f = &g.terms[0].factors[i];
    if (has_gamma && !is_value_over(n, f, d->form.parameters)) continue;
    Polynomial gamma = {1, &(Monomial){1, 1, {has_gamma ? *f : (Factor){0, 0}}}};
    d->gamma = has_gamma ? plain_value(n, gamma, d->form.parameters) : NULL;
    if (has_gamma && !d->gamma) continue;
    *dy = has_gamma ? divided(n, g, f->symbol) : g;
    if (n->algebra.failed) return false;
    d->dy = plain_value(n, *dy, all);
    if (!d->dy) d->dy = find_value(n, *dy, all);
    if (d->dy) return true;
  }
  return false;
}

// The first value of the region over the parameters' axes that is p.
static Value *find_parameter_gradient(Norm *n, const Gradient *d, Polynomial p) {
  for (uint32_t i = 0; i < n->nregion && !n->algebra.failed; i++) {
    Value *v = n->region[i];
    Labels labels;
    if (!v->producer || !labels_of_axes(&n->algebra, d->form.parameters, v, &labels)) continue;
    if (polynomial_equals(&n->algebra, algebra_evaluate(&n->algebra, v, &labels), p)) return v;
  }
  return NULL;
}

// Whether what is computed from v leads to one of the operands; or may, as it is too much to tell.
static bool leads_to(const Value *v, Value *const *operands, uint32_t count) {
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

static bool find_gradient(Norm *n, Gradient *d, Value *root) {
  Algebra *a = &n->algebra;
  Labels labels = labels_of_frame(a);
  Polynomial p = algebra_evaluate(a, root, &labels), g = beside_rstd(n, p, false), c = centered(n);
  if (a->failed || !g.nterms) return false;
  Polynomial along = polynomial_product(a, polynomial_product(a, c, polynomial_power(a, n->rstd, 4)),
                                        average(n, polynomial_product(a, g, c)));
  Polynomial rest = polynomial_sum(a, g, along, -1);
  if (!n->is_rms) rest = polynomial_sum(a, rest, average(n, g), -1);
  if (!polynomial_equals(a, p, polynomial_product(a, n->rstd, rest)) || a->failed) return false;
  n->ncone = ancestors(root, n->cone, MOST_EVALUATED);
  bool is_found = false;
  for (NormKind kind = 0; kind < (n->is_rms ? LAYER_NORM + 1 : NORM_KINDS) && !a->failed; kind++) {
    Gradient other = {.root = root};
    Polynomial dy;
    if (!form_find(&n->algebra, n->kept, kind, &other.form) || !split_g(n, &other, g, &dy)) continue;
    add_descendants(n, other.dy);
    uint32_t over = (n->reduced | n->kept) & ~other.form.parameters;
    if (!n->is_rms) other.diff_beta = find_parameter_gradient(n, &other, polynomial_reduce(a, dy, over));
    Polynomial scaled = polynomial_product(a, polynomial_product(a, dy, c), n->rstd);
    other.diff_gamma = find_parameter_gradient(n, &other, polynomial_reduce(a, scaled, over));
    bool has_parameters = other.gamma || other.diff_gamma;
    if (has_parameters || (kind != BATCH_NORM && !is_found)) *d = other;
    is_found |= has_parameters || kind != BATCH_NORM;
    if (has_parameters) break;
  }
  return is_found && !a->failed;
}

// The parameters' gradients as the operator makes them: of its type, and not leading to what it takes.
static void drop_parameter_gradients(Gradient *d, Value *const *operands, uint32_t count, Type type) {
  Value **made[] = {&d->diff_gamma, &d->diff_beta};
  for (int i = 0; i < 2; i++)
    if (*made[i] && ((*made[i])->type != type || leads_to(*made[i], operands, count))) *made[i] = NULL;
}

// What the operator takes: src, dy, mean, variance, gamma. False: they do not fit, or out of memory.
static bool gradient_operands(Norm *n, Gradient *d, Value *operands[5]) {
  Value **parameters = &operands[2]; // and statistics, which are of their type
  memset(operands, 0, 5 * sizeof *operands);
  operands[0] = n->src;
  if (!n->is_rms) form_allow_flat(&d->form, d->gamma, NULL);
  operands[1] = builder_in_shape(&n->r->builder, in_type(n, d->dy, n->src->type, d->root), &n->src->shape, d->root);
  if (!n->is_rms && !statistic_operands(n, &d->form, d->root, parameters)) return false;
  parameters[2] = builder_in_shape(&n->r->builder, d->gamma, &d->form.parameters_shape, d->root);
  Type type = widest_type(parameters, 3);
  if (type == TYPE_NONE) type = d->diff_gamma ? d->diff_gamma->type : n->src->type;
  if (!operands[1] || !all_in_type(n, parameters, 3, type, d->root)) return false;
  drop_parameter_gradients(d, operands, 5, type);
  bool needs_gamma = d->form.kind != BATCH_NORM && (d->diff_gamma || d->diff_beta) && !d->gamma;
  if (needs_gamma) parameters[2] = builder_add_constant(&n->r->builder, &d->form.parameters_shape, type, 1);
  return !n->r->builder.out_of_memory;
}

// The operator with its inputs, attributes and results; NULL: it does not fit, or out of memory.
static Node *add_gradient(Norm *n, Gradient *d) {
  Builder *b = &n->r->builder;
  Value *operands[5];
  if (!gradient_operands(n, d, operands)) return NULL;
  bool is_batch = d->form.kind == BATCH_NORM;
  bool has_parameters = d->diff_gamma || d->diff_beta || (d->gamma && is_batch);
  OperatorId id = n->is_rms ? OP_RMSNormBackward : norm_kinds[d->form.kind].backward;
  Node *node = builder_add_node(b, id, d->root);
  if (!node) return NULL;
  uint32_t slot = 0;
  for (uint32_t i = 0; i < 5; i++)
    if (i < 2 || i == 4 || !n->is_rms) node_set_input(node, slot++, operands[i]);
  form_set(&d->form, node, n->src, n->epsilon);
  if (!n->is_rms && !is_batch) node_attribute_to_set(node, "use_affine")->boolean = operands[4] != NULL;
  for (uint32_t i = 0; i < (has_parameters ? node->noutputs : 1); i++)
    if (!builder_add_output(b, node, i, TYPE_NONE)) return NULL;
  return builder_finish_node(b, node) && node->outputs[0]->type == d->root->type ? node : NULL;
}

static bool apply_gradient(Norm *n, Gradient *d) {
  Node *node = add_gradient(n, d);
  if (!node) return false;
  add_origins(n, node, d->root);
  if (d->diff_gamma && !provide(n, node, 1, d->diff_gamma)) return false;
  if (d->diff_beta && !provide(n, node, 2, d->diff_beta)) return false;
  return provide(n, node, 0, d->root);
}

// Norms

typedef struct Forward {
  NormForm form;
  Value *root, *gamma, *beta;
} Forward;

// gamma and beta as values; false: y is something else.
static bool find_forward(Norm *n, Forward *y, Value *root, NormKind kind) {
  Algebra *a = &n->algebra;
  Labels labels = labels_of_frame(a);
  *y = (Forward){.root = root};
  Polynomial p = algebra_evaluate(a, root, &labels);
  Polynomial with_src = beside_rstd(n, p, true);
  if (a->failed || with_src.nterms != 1 || !form_find(&n->algebra, n->kept, kind, &y->form)) return false;
  Polynomial x = polynomial_of_src(n);
  if (a->failed || x.nterms != 1) return false;
  Polynomial gamma = divided(n, with_src, x.terms[0].factors[0].symbol);
  Polynomial scaled = polynomial_product(a, polynomial_product(a, gamma, centered(n)), n->rstd);
  Polynomial beta = polynomial_sum(a, p, scaled, -1);
  if (a->failed || gamma.nterms != 1) return false;
  bool has_gamma = gamma.terms[0].nfactors > 0;
  if (!has_gamma && gamma.terms[0].coefficient != 1) return false;
  if (has_gamma) y->gamma = plain_value(n, gamma, y->form.parameters);
  if (beta.nterms && !n->is_rms) y->beta = plain_value(n, beta, y->form.parameters);
  return !has_gamma == !y->gamma && !beta.nterms == !y->beta;
}

// Whether a statistic may be the operator's output: nothing that the operator takes could depend on it.
static bool is_independent(const Value *parameter) {
  return !parameter || !parameter->producer;
}

// The operator's own mean and variance in the place of those that the graph still needs.
static bool provide_statistics(Norm *n, const Forward *y, Node *node, Value *const own[2]) {
  Builder *b = &n->r->builder;
  bool is_wanted = false;
  for (uint32_t i = 0; i < 2; i++) is_wanted |= own[i] && own[i]->producer && (own[i]->uses || own[i]->is_output);
  if (!is_wanted || !is_independent(y->gamma) || !is_independent(y->beta)) return true;
  uint32_t slot = y->form.kind == BATCH_NORM ? 3 : 1;
  if (norm_kinds[y->form.kind].has_own_statistics) {
    bool fits = true;
    for (uint32_t i = 0; i < 2 && fits; i++) fits = builder_add_output(b, node, slot + i, own[!own[0]]->type) != NULL;
    node_attribute_to_set(node, "keep_stats")->boolean = fits = fits && builder_finish_node(b, node);
    for (uint32_t i = 0; i < 2 && !fits; i++) node_set_output(node, slot + i, NULL);
    if (!fits) return !b->out_of_memory; // of a type that the operator does not have: the graph computes them
  }
  for (uint32_t i = 0; i < 2; i++) {
    Value *v = own[i];
    bool is_needed = v && v->producer && v->producer != node && (v->uses || v->is_output);
    if (is_needed && v->type == node->outputs[slot + i]->type && !provide(n, node, slot + i, v)) return false;
  }
  return true;
}

// gamma, beta, mean and variance in the operator's shape and of one type; where it takes both parameters or neither,
// one that the graph lacks is made up. False: they do not fit, or out of memory.
static bool forward_parameters(Norm *n, const Forward *y, Value *parameters[4]) {
  NormForm form = y->form;
  const Shape *shape = &form.parameters_shape;
  if (!n->is_rms) form_allow_flat(&form, y->gamma, y->beta);
  memset(parameters, 0, 4 * sizeof *parameters);
  if (n->is_given && !statistic_operands(n, &y->form, y->root, &parameters[2])) return false;
  parameters[0] = builder_in_shape(&n->r->builder, y->gamma, shape, y->root);
  parameters[1] = builder_in_shape(&n->r->builder, y->beta, shape, y->root);
  Type type = widest_type(parameters, 4);
  if (!all_in_type(n, parameters, 4, type, y->root)) return false;
  if (n->is_rms || (!n->is_given && !y->gamma && !y->beta)) return !n->r->builder.out_of_memory;
  for (uint32_t i = 0; i < 2; i++)
    if (!parameters[i]) parameters[i] = builder_add_constant(&n->r->builder, shape, type, i == 0);
  return !n->r->builder.out_of_memory;
}

// The operator with its inputs and attributes; NULL: it does not fit, or out of memory.
static Node *add_forward(Norm *n, const Forward *y) {
  Builder *b = &n->r->builder;
  Value *parameters[4], *running = NULL;
  NormKind kind = y->form.kind;
  OperatorId id = n->is_rms ? OP_RMSNorm : n->is_given ? norm_kinds[kind].with_statistics : norm_kinds[kind].forward;
  if (!forward_parameters(n, y, parameters)) return NULL;
  Value *gamma = parameters[0], *beta = parameters[1];
  if (id == OP_BatchNormForwardTraining)
    running = builder_add_constant(&n->r->builder, &y->form.parameters_shape, gamma ? gamma->type : n->src->type, 0);
  Node *node = builder_add_node(b, id, y->root);
  if (!node) return NULL;
  Value *const own[5] = {n->src, gamma, beta},
               *const inference[5] = {n->src, gamma, beta, parameters[2], parameters[3]},
               *const training[5] = {n->src, running, running, gamma, beta};
  Value *const *inputs = kind != BATCH_NORM ? own : n->is_given ? inference : training;
  for (uint32_t i = 0; i < node->ninputs; i++) node_set_input(node, i, inputs[i]);
  form_set(&y->form, node, n->src, n->epsilon);
  if (!n->is_rms && norm_kinds[kind].has_own_statistics) {
    node_attribute_to_set(node, "use_affine")->boolean = gamma != NULL;
    node_attribute_to_set(node, "keep_stats")->boolean = false;
  }
  for (uint32_t i = 0; i < (kind != BATCH_NORM ? 1 : node->noutputs); i++)
    if (!builder_add_output(b, node, i, TYPE_NONE)) return NULL;
  return builder_finish_node(b, node) && node->outputs[0]->type == y->root->type ? node : NULL;
}

static bool apply_forward(Norm *n, const Forward *y) {
  Algebra *a = &n->algebra;
  n->ncone = ancestors(y->root, n->cone, MOST_EVALUATED);
  Polynomial variance = polynomial_sum(a, n->variance, polynomial_number(a, n->epsilon), -1);
  bool has_results = !n->is_given && !n->is_rms; // beside y
  Value *const own[] = {has_results ? find_value(n, n->mean, n->kept) : NULL,
                        has_results ? find_value(n, variance, n->kept) : NULL};
  Node *node = add_forward(n, y);
  if (!node) return false;
  add_origins(n, node, y->root);
  return provide(n, node, 0, y->root) && (!has_results || provide_statistics(n, y, node, own));
}

// The pass

static bool may_be_result(const Norm *n, const Value *v) {
  return v->producer && v->type == n->src->type && shape_equals(&v->shape, &n->src->shape);
}

// Of src's own shape: what it takes is the result itself.
static bool is_mere_reshape(const Norm *n, const Node *node) {
  return node->op->id == OP_StaticReshape && shape_equals(&node->inputs[0]->shape, &n->src->shape);
}

// What lies farthest from the statistics comes first: y before gamma's product alone.
static bool recognise_around(Norm *n) {
  for (uint32_t i = n->nregion; i-- > 0;) {
    Gradient d = {0};
    n->algebra.failed = false;
    if (may_be_result(n, n->region[i]) && find_gradient(n, &d, n->region[i])) return apply_gradient(n, &d);
  }
  for (uint32_t i = n->nregion; i-- > 0;) {
    Forward y;
    Value *v = n->region[i];
    n->algebra.failed = false;
    if (!may_be_result(n, v) || is_mere_reshape(n, v->producer)) continue;
    for (NormKind kind = 0; kind < (n->is_rms ? LAYER_NORM + 1 : NORM_KINDS); kind++) {
      bool has_operator = !n->is_given || (norm_kinds[kind].with_statistics != OP_COUNT && !n->rstd_value);
      if (has_operator && find_forward(n, &y, v, kind)) return apply_forward(n, &y);
    }
  }
  return false;
}

// The value whose root or power of a half is taken; NULL: the node is no such thing.
static Value *under_root(const Node *node) {
  if (node->op->id == OP_Sqrt) return node->inputs[0];
  bool is_half = node->op->id == OP_Pow && (node_f32(node, "beta") == -0.5 || node_f32(node, "beta") == 0.5);
  return is_half ? node->inputs[0] : NULL;
}

// Norms around a value that is a variance plus epsilon: src and the axes are found among what it is computed from.
static bool recognise_variance(Norm *n, Recogniser *r, Value *shifted) {
  Value *above[MOST_ANCESTORS];
  uint32_t count = ancestors(shifted, above, MOST_ANCESTORS);
  for (uint32_t i = count; i-- > 0;) {
    const Node *node = above[i]->producer;
    if (!node || (node->op->id != OP_ReduceSum && node->op->id != OP_ReduceMean)) continue;
    for (uint32_t k = count; k-- > 0 && !r->builder.out_of_memory;) {
      Labels labels;
      norm_init(n, r, above[k]);
      if (!has_all_elements(n, node->inputs[0])) continue;
      add_descendants(n, shifted);
      split_axes(n, above, count);
      split_axes(n, n->region, n->nregion);
      if (!labels_of_axes(&n->algebra, algebra_axes(&n->algebra), node->inputs[0], &labels)) continue;
      uint32_t axes = reduce_axes(node);
      for (int axis = 0; axis < labels.rank; axis++)
        if (axes >> axis & 1) labels.axes[axis] = 0;
      set_kept(n, labels_axes(&labels));
      if (is_variance_of(n, shifted) && recognise_around(n)) return true;
    }
  }
  return false;
}

// What v is a reshape or a cast of, farthest first; returns how many.
static int list_origins(Value *v, Value **list, int most) {
  int count = 0;
  for (; count < most; v = v->producer->inputs[0]) {
    list[count++] = v;
    if (!v->producer || (v->producer->op->id != OP_StaticReshape && v->producer->op->id != OP_TypeCast)) break;
  }
  for (int i = 0; i < count / 2; i++) {
    Value *other = list[i];
    list[i] = list[count - 1 - i];
    list[count - 1 - i] = other;
  }
  return count;
}

// Norms around the difference of src and a given mean: of the data before reshapes first.
static bool recognise_difference(Norm *n, Recogniser *r, Value *center) {
  enum { DEEPEST = 4 };
  Value *src[DEEPEST];
  if (!shape_equals(&center->producer->inputs[0]->shape, &center->shape)) return false;
  int count = list_origins(center->producer->inputs[0], src, DEEPEST);
  for (int i = 0; i < count && !r->builder.out_of_memory; i++)
    if (norm_from_difference(n, r, src[i], center) && recognise_around(n)) return true;
  return false;
}

// Whether src times this factor tells which axes the statistics have; then `shifted` is the variance plus epsilon.
static bool norm_beside_factor(Norm *n, Recogniser *r, Value *src, const Node *product, uint32_t slot, Value *shifted) {
  Algebra *a = &n->algebra;
  Labels labels;
  norm_init(n, r, src);
  add_descendants(n, shifted);
  split_axes(n, n->region, n->nregion);
  if (!labels_of_axes(a, algebra_axes(a), product->outputs[0], &labels)) return false;
  labels = labels_of_operand(product->inputs[1 - slot], &labels);
  set_kept(n, labels_axes(&labels));
  if (!n->reduced || !n->kept || n->count == 0 || !labels_of_axes(a, n->kept, shifted, &labels)) return false;
  n->variance = algebra_evaluate(a, shifted, &labels);
  n->is_given = true;
  if (a->failed || n->variance.nterms != 2 || !take_epsilon(n, n->variance)) return false;
  n->rstd = polynomial_power(a, n->variance, -1);
  return !a->failed;
}

// A gradient whose statistics are given and in which src never stands less its mean: it is a sum of products, one of
// them src times a factor a statistic. Any value over the statistics' axes may be the mean; the formula tells.
static bool recognise_products(Norm *n, Recogniser *r, const Node *product, uint32_t slot, Value *shifted) {
  enum { DEEPEST = 4 };
  Value *src[DEEPEST];
  int count = list_origins(product->inputs[slot], src, DEEPEST);
  for (int i = 0; i < count && !r->builder.out_of_memory; i++) {
    if (!norm_beside_factor(n, r, src[i], product, slot, shifted)) continue;
    Labels labels = labels_of_frame(&n->algebra);
    for (uint32_t k = 0; k < n->nregion; k++)
      if (may_be_result(n, n->region[k])) algebra_evaluate(&n->algebra, n->region[k], &labels); // finds symbols
    for (uint32_t k = 0; k < n->algebra.nsymbols && !r->builder.out_of_memory; k++) {
      const Symbol *s = &n->algebra.symbols[k];
      if (!s->value || s->axes != n->kept) continue;
      n->algebra.failed = false;
      n->mean = algebra_evaluate(&n->algebra, s->value, &s->labels);
      if (!n->algebra.failed && recognise_around(n)) return true;
    }
  }
  return false;
}

static bool recognise_given_variance(Norm *n, Recogniser *r, Value *shifted) {
  norm_init(n, r, shifted);
  add_descendants(n, shifted);
  Value *region[MOST_DESCENDANTS];
  uint32_t count = n->nregion;
  memcpy(region, n->region, count * sizeof *region);
  for (uint32_t i = 0; i < count && !r->builder.out_of_memory; i++) {
    const Node *node = region[i]->producer;
    if (!node || node->op->id != OP_Multiply) continue;
    for (uint32_t slot = 0; slot < 2; slot++) {
      bool is_whole = shape_equals(&node->inputs[slot]->shape, &region[i]->shape);
      bool is_factor = shape_nelems(&node->inputs[1 - slot]->shape) < shape_nelems(&region[i]->shape);
      if (is_whole && is_factor && recognise_products(n, r, node, slot, shifted)) return true;
    }
  }
  return false;
}

static bool recognise_at(Recogniser *r, Node *node) {
  Value *shifted = under_root(node);
  bool is_difference = node->op->id == OP_Subtract;
  if (!shifted && !is_difference) return false;
  arena_init(&r->scratch, r->context->allocator);
  Norm n = {.r = r};
  bool done = is_difference ? recognise_difference(&n, r, node->outputs[0])
                            : recognise_variance(&n, r, shifted) || recognise_given_variance(&n, r, shifted);
  r->builder.out_of_memory |= n.algebra.out_of_memory;
  arena_deinit(&r->scratch);
  r->changed |= done;
  return done;
}

// From the last to the first: a gradient's dy comes from the norm behind it, whose gradient is an operator by then.
bool pass_recognise(Graph *g, PassContext *c) {
  enum { MOST_AT_ONE = 4 };
  Recogniser r = {.builder = {.graph = g}, .context = c};
  size_t nnodes = g->nnodes;
  diagnostics_init(&r.builder.refusals, c->allocator);
  for (size_t i = g->nnodes; i-- > 0 && !r.builder.out_of_memory;)
    for (int k = 0; k < MOST_AT_ONE && g->nodes[i]->noutputs && g->nodes[i]->outputs[0]; k++)
      if (!recognise_at(&r, g->nodes[i])) break;
  r.builder.out_of_memory |= r.builder.refusals.out_of_memory;
  diagnostics_deinit(&r.builder.refusals);
  if (r.builder.out_of_memory) {
    c->failed = true;
    error_out_of_memory(c->diagnostics);
  } else if (!graph_sort(g, c->diagnostics)) {
    c->failed = true;
  } else if (g->nnodes != nnodes) { // of an operator that did not fit after all there are pieces left, too
    pass_dead_code(g, c);
    if (r.changed && !pass_is_disabled(c, "movement")) pass_movement(g, c);
  }
  return r.changed;
}
