// Norms by what they are. Where a value is 1 / sqrt(variance + epsilon), or stands where that would, the algebra says
// what the values around it are as polynomials of the data, and they are compared with the operator's own formula:
//
//   norm      y = gamma * c * r + beta                               c = x - mean, r = 1 / sqrt(variance + epsilon)
//   gradient  dx = r * (g - E[g] - c * r^2 * E[g * c])               g = gamma * dy
//             dgamma = sum(dy * c * r), dbeta = sum(dy)
//
// One formula serves layer and batch norm, which differ in the axes that E goes over, and every spelling of them: a
// variance in one pass or two, means or sums, quotients or products with a reciprocal, terms in any order and grouping,
// as a framework writes them or as differentiation leaves them. Roundings change, for the better: the operators are in
// centred form. The gradient is looked for first, for its statistics are no longer polynomials once an operator makes
// them. Anything short of equality leaves the graph as it is.
#include "passes/recognise.h"

#include "ir/infer.h"
#include "ir/movement.h"
#include "ir/norm.h"
#include "ir/reduce.h"
#include "passes/algebra.h"
#include "passes/dead_code.h"
#include "passes/movement.h"
#include "passes/rewrite.h"

#include <string.h>

enum { MOST_ANCESTORS = 24, MOST_DESCENDANTS = 128, MOST_USES = 64 };

typedef struct Recogniser {
  Graph *graph;
  PassContext *context;
  Arena scratch; // of one norm
  Diagnostics refusals;
  bool changed, out_of_memory;
} Recogniser;

typedef struct Norm {
  Recogniser *r;
  Algebra algebra;
  Value *src;
  uint32_t reduced, kept; // axes of src; those of extent 1 are in neither
  double count;           // elements of a statistic
  double epsilon;
  Polynomial mean, variance; // variance with epsilon
  Polynomial rstd;           // one factor
  Value *rstd_value;         // where no variance is known: this, or its reciprocal when is_deviation
  bool is_deviation;
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

static bool is_one(Extent e) {
  return extent_equals(e, EXTENT(1));
}

// Statistics

static void norm_init(Norm *n, Recogniser *r, Value *src, uint32_t reduced) {
  *n = (Norm){.r = r, .src = src, .count = 1};
  algebra_init(&n->algebra, &r->scratch, src);
  for (int i = 0; i < src->shape.rank; i++) {
    if (is_one(src->shape.extent[i])) continue;
    if (reduced >> i & 1) n->reduced |= 1U << i, n->count *= algebra_extent(&n->algebra, i);
    else n->kept |= 1U << i;
  }
}

static Polynomial polynomial_of_src(Norm *n) {
  Labels labels = labels_identity(n->src);
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

// Whether `shifted` is src's variance, in one pass or two, plus a constant.
static bool is_variance_of(Norm *n, Value *shifted) {
  Algebra *a = &n->algebra;
  Labels labels;
  if (!n->reduced || n->count == 0 || !labels_of_axes(n->src, n->kept, shifted, &labels)) return false;
  Polynomial p = algebra_evaluate(a, shifted, &labels), x = polynomial_of_src(n);
  if (a->failed || !take_epsilon(n, p)) return false;
  n->mean = average(n, x);
  Polynomial variance =
      polynomial_sum(a, average(n, polynomial_product(a, x, x)), polynomial_product(a, n->mean, n->mean), -1);
  n->variance = polynomial_sum(a, variance, polynomial_number(a, n->epsilon), 1);
  n->rstd = polynomial_power(a, n->variance, -1);
  return !a->failed && polynomial_equals(a, p, n->variance);
}

// A norm around a value that is src's variance plus epsilon: src and the axes are found among what it is computed from.
static bool norm_from_variance(Norm *n, Recogniser *r, Value *shifted) {
  Value *above[MOST_ANCESTORS];
  uint32_t count = ancestors(shifted, above, MOST_ANCESTORS);
  for (uint32_t i = count; i-- > 0;) {
    const Node *node = above[i]->producer;
    if (!node || (node->op->id != OP_ReduceSum && node->op->id != OP_ReduceMean)) continue;
    for (uint32_t k = count; k-- > 0;) {
      if (!shape_equals(&above[k]->shape, &node->inputs[0]->shape)) continue;
      norm_init(n, r, above[k], reduce_axes(node));
      if (!is_variance_of(n, shifted)) continue;
      add_descendants(n, shifted);
      return true;
    }
  }
  return false;
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

// A value over the statistics' axes that stands where broadcasting to src's shape puts them.
static bool is_broadcast_over(const Norm *n, const Value *v, Labels *labels) {
  int missing = n->src->shape.rank - v->shape.rank;
  if (missing < 0 || !labels_of_axes(n->src, n->kept, v, labels)) return false;
  for (int i = 0; i < labels->rank; i++)
    if (labels->axis[i] >= 0 && labels->axis[i] != i + missing) return false;
  return true;
}

// A norm whose statistics are given, around src - mean: one of those that multiply or divide it is the deviation.
static bool norm_from_difference(Norm *n, Recogniser *r, Value *center) {
  enum { NEAR = 12 };
  const Node *node = center->producer;
  Value *src = node->inputs[0];
  if (!shape_equals(&src->shape, &center->shape)) return false;
  uint32_t kept = 0, reduced = 0;
  for (int i = 0; i < src->shape.rank; i++) {
    int on = i - src->shape.rank + node->inputs[1]->shape.rank;
    bool varies = on >= 0 && !is_one(node->inputs[1]->shape.extent[on]);
    if (varies) kept |= 1U << i;
    else if (!is_one(src->shape.extent[i])) reduced |= 1U << i;
  }
  if (!reduced || !kept) return false;
  norm_init(n, r, src, reduced);
  if (n->count == 0) return false;
  add_descendants(n, center);
  Labels labels = labels_identity(src);
  Polynomial difference = algebra_evaluate(&n->algebra, center, &labels);
  n->mean = polynomial_sum(&n->algebra, polynomial_of_src(n), difference, -1);
  n->is_given = true;
  if (n->algebra.failed || n->mean.nterms != 1) return false;
  for (uint32_t i = 0; i < n->nregion && i < NEAR; i++) {
    const Node *user = n->region[i]->producer;
    bool divides = user->op->id == OP_Divide;
    if (user->op->id != OP_Multiply && !divides) continue;
    for (uint32_t slot = divides; slot < 2; slot++) {
      Value *other = user->inputs[slot];
      if (!is_broadcast_over(n, other, &labels)) continue;
      if (take_rstd(n, algebra_evaluate(&n->algebra, other, &labels), divides)) return true;
    }
  }
  return false;
}

// Values for the operator

static Node *add_node(Recogniser *r, OperatorId id, const Value *stands_for) {
  const Operator *op = &operators[id];
  Node *node = graph_add_node(r->graph, op, NULL, op->ninputs, op->noutputs);
  if (!node || !node_add_origin(r->graph, node, stands_for->producer)) r->out_of_memory = true;
  else node->position = stands_for->producer->position;
  return r->out_of_memory ? NULL : node;
}

static AttributeValue *attribute(Node *node, const char *name) {
  uint32_t i = 0;
  while (strcmp(node->op->attributes[i].name, name) != 0) i++;
  node->attributes[i].is_set = true;
  return &node->attributes[i];
}

// Gives the node a new value in the slot.
static Value *add_output(Recogniser *r, Node *node, uint32_t slot, Type type) {
  const char *name = graph_fresh_name(r->graph, node->op->outputs[slot].name);
  Value *v = name ? graph_add_value(r->graph, name, type, NULL) : NULL;
  if (!v) r->out_of_memory = true;
  else node_set_output(node, slot, v);
  return v;
}

// Infers what the node makes; false: it does not fit, or out of memory.
static bool finish_node(Recogniser *r, Node *node) {
  if (r->out_of_memory) return false;
  node_set_defaults(node);
  return graph_infer_node(r->graph, node, &r->refusals);
}

static Value *add_unary(Recogniser *r, OperatorId id, Value *src, const Value *stands_for) {
  Node *node = add_node(r, id, stands_for);
  Value *v = node ? add_output(r, node, 0, TYPE_NONE) : NULL;
  if (!v) return NULL;
  node_set_input(node, 0, src);
  return finish_node(r, node) ? v : NULL;
}

static int64_t *add_list(Recogniser *r, Node *node, const char *name) {
  AttributeValue *list = attribute(node, name);
  int64_t *items = ARENA_ARRAY(&r->graph->arena, int64_t, MAX_RANK);
  r->out_of_memory |= !items;
  list->list.items = items;
  list->list.count = 0;
  return items;
}

static bool set_axes(Recogniser *r, Node *node, const char *name, const Value *src, uint32_t axes) {
  int64_t *items = add_list(r, node, name);
  for (int i = 0; items && i < src->shape.rank; i++)
    if (axes >> i & 1) items[attribute(node, name)->list.count++] = i;
  return items;
}

static uint32_t axes_of(const Shape *shape) {
  return (1U << shape->rank) - 1;
}

// v in another's shape over these axes, of as many elements.
static Node *add_reshape(Recogniser *r, Value *v, const Value *like, uint32_t axes, const Value *stands_for) {
  Shape shape = {.rank = 0};
  for (int i = 0; i < like->shape.rank; i++)
    if (axes >> i & 1) shape.extent[shape.rank++] = like->shape.extent[i];
  Node *node = add_node(r, OP_StaticReshape, stands_for);
  int64_t *items = node ? add_list(r, node, "shape") : NULL;
  if (!items || !reshape_list(&v->shape, &shape, items, &attribute(node, "special_zero")->boolean)) return NULL;
  attribute(node, "shape")->list.count = (size_t)shape.rank;
  node_set_input(node, 0, v);
  return node;
}

// v with src's axes in the mask as its shape.
static Value *in_axes(Norm *n, Value *v, uint32_t axes, const Value *stands_for) {
  bool fits = v && v->shape.rank == __builtin_popcount(axes);
  if (!v || fits) return v;
  Node *node = add_reshape(n->r, v, n->src, axes, stands_for);
  return node && add_output(n->r, node, 0, TYPE_NONE) && finish_node(n->r, node) ? node->outputs[0] : NULL;
}

// A constant of src's axes in the mask, like the parameters.
static Value *add_constant(Norm *n, uint32_t axes, Type type, double number) {
  Graph *g = n->r->graph;
  Shape shape = {.rank = 0};
  for (int i = 0; i < n->src->shape.rank; i++)
    if (axes >> i & 1) shape.extent[shape.rank++] = n->src->shape.extent[i];
  const char *name = graph_fresh_name(g, "constant");
  Value *v = name ? graph_add_value(g, name, type, &shape) : NULL;
  Constant *constant = v ? ARENA_NEW(&g->arena, Constant) : NULL;
  if (constant) constant->data = arena_alloc(&g->arena, type_nbytes(type));
  if (!constant || !constant->data) {
    n->r->out_of_memory = true;
    return NULL;
  }
  constant->is_splat = true;
  type_store(type, constant->data, 0, number);
  v->constant = constant;
  return v;
}

static bool is_in_cone(const Norm *n, const Value *v) {
  for (uint32_t i = 0; i < n->ncone; i++)
    if (n->cone[i] == v) return true;
  return false;
}

// A value that the root is computed from, is p, and has the axes in the mask as they stand in src; NULL: none.
static Value *find_value(Norm *n, Polynomial p, uint32_t axes) {
  Algebra *a = &n->algebra;
  for (uint32_t i = 0; i < a->nevaluated; i++) {
    Labels labels;
    const Evaluated *e = &a->evaluated[i];
    if (e->value->constant || !is_in_cone(n, e->value) || !labels_of_axes(n->src, axes, e->value, &labels)) continue;
    if (labels.rank == e->labels.rank && memcmp(labels.axis, e->labels.axis, (size_t)labels.rank) == 0 &&
        polynomial_equals(a, e->p, p))
      return (Value *)e->value;
  }
  return NULL;
}

// Which operator: its axes

typedef struct Form {
  bool is_layer;
  uint32_t statistics, parameters; // src's axes that they have, those of extent 1 included where they belong
  int begin, channel;
} Form;

// A layer norm reduces the axes from `begin` on; a batch norm all but one, the second or the last.
static bool find_form(const Norm *n, bool is_layer, Form *f) {
  int rank = n->src->shape.rank;
  *f = (Form){.is_layer = is_layer};
  if (is_layer) {
    while (n->kept >> f->begin) f->begin++;
    f->statistics = (1U << f->begin) - 1;
    f->parameters = axes_of(&n->src->shape) & ~f->statistics;
    return f->begin < rank && !(n->reduced & f->statistics);
  }
  if (__builtin_popcount(n->kept) != 1 || rank < 2) return false;
  f->channel = __builtin_ctz(n->kept);
  f->statistics = f->parameters = n->kept;
  return f->channel == 1 || f->channel == rank - 1;
}

static void set_form(Node *node, const Norm *n, const Form *f) {
  attribute(node, "epsilon")->f32 = n->epsilon;
  if (f->is_layer) attribute(node, "begin_norm_axis")->s64 = f->begin;
  else attribute(node, "data_format")->s64 = f->channel == n->src->shape.rank - 1 ? FORMAT_NXC : FORMAT_NCX;
}

static bool is_value_over(const Norm *n, const Factor *f, uint32_t axes) {
  const Symbol *s = &n->algebra.symbols[f->symbol];
  uint32_t wide = n->reduced | n->kept;
  return s->value && f->halves == 2 && s->axes == (axes & wide) && s->value != n->src;
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
  bool fits = is_value_over(n, &p.terms[0].factors[0], axes) && labels_of_axes(n->src, axes, s->value, &labels) &&
              labels.rank == s->labels.rank && memcmp(labels.axis, s->labels.axis, (size_t)labels.rank) == 0;
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

static bool statistic_operands(Norm *n, const Form *f, const Value *root, Value *statistics[2]) {
  Algebra *a = &n->algebra;
  Recogniser *r = n->r;
  Value *mean = n->is_given ? plain_value(n, n->mean, n->kept) : find_value(n, n->mean, n->kept), *variance = NULL;
  if (!mean && !n->is_given) {
    Node *node = add_node(r, OP_ReduceMean, root);
    if (!node || !set_axes(r, node, "axes", n->src, axes_of(&n->src->shape) & ~f->statistics)) return false;
    node_set_input(node, 0, n->src);
    mean = add_output(r, node, 0, TYPE_NONE);
    if (!mean || !finish_node(r, node)) return false;
  }
  if (n->rstd_value) {
    variance = add_unary(r, OP_Square, n->rstd_value, root);
    if (variance && !n->is_deviation) variance = add_unary(r, OP_Reciprocal, variance, root);
  } else {
    Polynomial p = polynomial_sum(a, n->variance, polynomial_number(a, n->epsilon), -1);
    variance = find_value(n, p, n->kept);
    if (!variance) variance = plain_value(n, p, n->kept);
  }
  statistics[0] = in_axes(n, mean, f->statistics, root);
  statistics[1] = in_axes(n, variance, f->statistics, root);
  return statistics[0] && statistics[1];
}

// Lets the node make `old`, through a reshape where it has axes of extent 1 beside the operator's.
static bool provide(Norm *n, Node *node, uint32_t slot, Value *old, uint32_t axes) {
  Recogniser *r = n->r;
  Node *before = old->producer;
  if (old->shape.rank == __builtin_popcount(axes)) {
    node_set_output(before, old->output_slot, NULL);
    node_set_output(node, slot, old);
  } else {
    Node *reshape = add_reshape(r, node->outputs[slot], old, axes_of(&old->shape), old);
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
    if (above[i] != n->src && is_looked_into(above[i]) && !node_add_origin(n->r->graph, node, above[i]->producer))
      n->r->out_of_memory = true;
}

// Gradients

typedef struct Gradient {
  Form form;
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
    if (d->dy && shape_equals(&d->dy->shape, &n->src->shape)) return true;
  }
  return false;
}

// The first value of the region over the parameters' axes that is p.
static Value *find_parameter_gradient(Norm *n, const Gradient *d, Polynomial p) {
  for (uint32_t i = 0; i < n->nregion && !n->algebra.failed; i++) {
    Value *v = n->region[i];
    Labels labels;
    if (!v->producer || v->type != d->root->type || !labels_of_axes(n->src, d->form.parameters, v, &labels)) continue;
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
  Labels labels = labels_identity(n->src);
  Polynomial p = algebra_evaluate(a, root, &labels), g = beside_rstd(n, p, false), c = centered(n);
  if (a->failed || !g.nterms) return false;
  Polynomial along = polynomial_product(a, polynomial_product(a, c, polynomial_power(a, n->rstd, 4)),
                                        average(n, polynomial_product(a, g, c)));
  Polynomial rest = polynomial_sum(a, polynomial_sum(a, g, average(n, g), -1), along, -1);
  if (!polynomial_equals(a, p, polynomial_product(a, n->rstd, rest)) || a->failed) return false;
  d->root = root;
  n->ncone = ancestors(root, n->cone, MOST_EVALUATED);
  for (int is_layer = 1; is_layer >= 0; is_layer--) {
    Polynomial dy;
    if (!find_form(n, is_layer, &d->form) || !split_g(n, d, g, &dy)) continue;
    add_descendants(n, d->dy);
    uint32_t over = (n->reduced | n->kept) & ~d->form.parameters;
    d->diff_beta = find_parameter_gradient(n, d, polynomial_reduce(a, dy, over));
    Polynomial scaled = polynomial_product(a, polynomial_product(a, dy, c), n->rstd);
    d->diff_gamma = find_parameter_gradient(n, d, polynomial_reduce(a, scaled, over));
    if (d->gamma || d->diff_gamma || is_layer || !find_form(n, false, &d->form)) return !a->failed;
  }
  return false;
}

static bool apply_gradient(Norm *n, Gradient *d) {
  Recogniser *r = n->r;
  Value *statistics[2];
  if (!statistic_operands(n, &d->form, d->root, statistics)) return false;
  Value *operands[] = {n->src, d->dy, statistics[0], statistics[1], d->gamma};
  uint32_t count = d->gamma ? 5 : 4;
  if (d->diff_gamma && leads_to(d->diff_gamma, operands, count)) d->diff_gamma = NULL;
  if (d->diff_beta && leads_to(d->diff_beta, operands, count)) d->diff_beta = NULL;
  bool has_parameters = d->diff_gamma || d->diff_beta || (d->gamma && !d->form.is_layer);
  if (d->form.is_layer && has_parameters && !d->gamma)
    operands[4] = add_constant(n, d->form.parameters, statistics[0]->type, 1);
  else operands[4] = in_axes(n, d->gamma, d->form.parameters, d->root);
  if ((d->gamma && !operands[4]) || r->out_of_memory) return false;
  Node *node = add_node(r, d->form.is_layer ? OP_LayerNormBackward : OP_BatchNormTrainingBackward, d->root);
  if (!node) return false;
  for (uint32_t i = 0; i < 5; i++) node_set_input(node, i, operands[i]);
  set_form(node, n, &d->form);
  if (d->form.is_layer) attribute(node, "use_affine")->boolean = operands[4] != NULL;
  for (uint32_t i = 0; i < (has_parameters ? 3 : 1); i++)
    if (!add_output(r, node, i, TYPE_NONE)) return false;
  if (!finish_node(r, node) || node->outputs[0]->type != d->root->type) return false;
  add_origins(n, node, d->root);
  if (d->diff_gamma && !provide(n, node, 1, d->diff_gamma, d->form.parameters)) return false;
  if (d->diff_beta && !provide(n, node, 2, d->diff_beta, d->form.parameters)) return false;
  return provide(n, node, 0, d->root, axes_of(&n->src->shape));
}

// Norms

typedef struct Forward {
  Form form;
  Value *root, *gamma, *beta;
} Forward;

// gamma and beta as values; false: y is something else.
static bool find_forward(Norm *n, Forward *y, Value *root, bool is_layer) {
  Algebra *a = &n->algebra;
  Labels labels = labels_identity(n->src);
  *y = (Forward){.root = root};
  Polynomial p = algebra_evaluate(a, root, &labels);
  Polynomial with_src = beside_rstd(n, p, true);
  if (a->failed || with_src.nterms != 1 || !find_form(n, is_layer, &y->form)) return false;
  Polynomial x = polynomial_of_src(n);
  if (a->failed || x.nterms != 1) return false;
  Polynomial gamma = divided(n, with_src, x.terms[0].factors[0].symbol);
  Polynomial scaled = polynomial_product(a, polynomial_product(a, gamma, centered(n)), n->rstd);
  Polynomial beta = polynomial_sum(a, p, scaled, -1);
  if (a->failed || gamma.nterms != 1) return false;
  bool has_gamma = gamma.terms[0].nfactors > 0;
  if (!has_gamma && gamma.terms[0].coefficient != 1) return false;
  if (has_gamma) y->gamma = plain_value(n, gamma, y->form.parameters);
  if (beta.nterms) y->beta = plain_value(n, beta, y->form.parameters);
  return !has_gamma == !y->gamma && !beta.nterms == !y->beta;
}

// Whether a statistic may be the operator's output: nothing that the operator takes could depend on it.
static bool is_independent(const Value *parameter) {
  return !parameter || !parameter->producer;
}

// The operator's own mean and variance in the place of those that the graph still needs.
static bool provide_statistics(Norm *n, const Forward *y, Node *node, Value *const own[2]) {
  Recogniser *r = n->r;
  bool is_wanted = false;
  for (uint32_t i = 0; i < 2; i++) is_wanted |= own[i] && own[i]->producer && (own[i]->uses || own[i]->is_output);
  if (!is_wanted || !is_independent(y->gamma) || !is_independent(y->beta)) return true;
  uint32_t slot = y->form.is_layer ? 1 : 3;
  if (y->form.is_layer) {
    bool fits = true;
    for (uint32_t i = 0; i < 2 && fits; i++) fits = add_output(r, node, slot + i, own[!own[0]]->type) != NULL;
    attribute(node, "keep_stats")->boolean = fits = fits && finish_node(r, node);
    for (uint32_t i = 0; i < 2 && !fits; i++) node_set_output(node, slot + i, NULL);
    if (!fits) return !r->out_of_memory; // of a type that the operator does not have: the graph computes them
  }
  for (uint32_t i = 0; i < 2; i++) {
    Value *v = own[i];
    bool is_needed = v && v->producer && v->producer != node && (v->uses || v->is_output);
    if (is_needed && v->type == node->outputs[slot + i]->type && !provide(n, node, slot + i, v, y->form.statistics))
      return false;
  }
  return true;
}

// Parameters in the operator's shape; where it takes both or neither, one that the graph lacks is made up.
static bool forward_parameters(Norm *n, const Forward *y, Value **gamma, Value **beta) {
  uint32_t axes = y->form.parameters;
  Type type = y->gamma ? y->gamma->type : y->beta ? y->beta->type : n->src->type;
  *gamma = *beta = NULL;
  if (!y->gamma && !y->beta && !n->is_given) return true;
  *gamma = y->gamma ? in_axes(n, y->gamma, axes, y->root) : add_constant(n, axes, type, 1);
  *beta = y->beta ? in_axes(n, y->beta, axes, y->root) : add_constant(n, axes, type, 0);
  return *gamma && *beta;
}

// The operator with its inputs and attributes; NULL: it does not fit, or out of memory.
static Node *add_forward(Norm *n, const Forward *y) {
  Recogniser *r = n->r;
  Value *statistics[2] = {NULL}, *gamma, *beta, *running = NULL;
  OperatorId id = y->form.is_layer ? OP_LayerNorm : n->is_given ? OP_BatchNormInference : OP_BatchNormForwardTraining;
  if (n->is_given && !statistic_operands(n, &y->form, y->root, statistics)) return NULL;
  if (!forward_parameters(n, y, &gamma, &beta)) return NULL;
  if (id == OP_BatchNormForwardTraining)
    running = add_constant(n, y->form.parameters, gamma ? gamma->type : n->src->type, 0);
  Node *node = add_node(r, id, y->root);
  if (!node) return NULL;
  Value *const layer[] = {n->src, gamma, beta},
               *const inference[] = {n->src, gamma, beta, statistics[0], statistics[1]},
               *const training[] = {n->src, running, running, gamma, beta};
  Value *const *inputs = y->form.is_layer ? layer : n->is_given ? inference : training;
  for (uint32_t i = 0; i < node->ninputs; i++) node_set_input(node, i, inputs[i]);
  set_form(node, n, &y->form);
  if (y->form.is_layer) {
    attribute(node, "use_affine")->boolean = gamma != NULL;
    attribute(node, "keep_stats")->boolean = false;
  }
  for (uint32_t i = 0; i < (y->form.is_layer ? 1 : node->noutputs); i++)
    if (!add_output(r, node, i, TYPE_NONE)) return NULL;
  return finish_node(r, node) && node->outputs[0]->type == y->root->type ? node : NULL;
}

static bool apply_forward(Norm *n, const Forward *y) {
  Algebra *a = &n->algebra;
  n->ncone = ancestors(y->root, n->cone, MOST_EVALUATED);
  Polynomial variance = polynomial_sum(a, n->variance, polynomial_number(a, n->epsilon), -1);
  Value *const own[] = {find_value(n, n->mean, n->kept), find_value(n, variance, n->kept)};
  Node *node = add_forward(n, y);
  if (!node) return false;
  add_origins(n, node, y->root);
  return provide(n, node, 0, y->root, axes_of(&n->src->shape)) && (n->is_given || provide_statistics(n, y, node, own));
}

// The pass

// What lies farthest from the statistics comes first: y before gamma's product alone.
static bool recognise_around(Norm *n) {
  for (uint32_t i = n->nregion; i-- > 0;) {
    Gradient d = {0};
    n->algebra.failed = false;
    if (n->region[i]->producer && shape_equals(&n->region[i]->shape, &n->src->shape) &&
        find_gradient(n, &d, n->region[i]))
      return apply_gradient(n, &d);
  }
  for (uint32_t i = n->nregion; i-- > 0;) {
    Forward y;
    Value *v = n->region[i];
    n->algebra.failed = false;
    if (!v->producer || !shape_equals(&v->shape, &n->src->shape) || v->producer->op->id == OP_StaticReshape) continue;
    if ((!n->is_given && find_forward(n, &y, v, true)) ||
        ((!n->is_given || !n->rstd_value) && find_forward(n, &y, v, false)))
      return apply_forward(n, &y);
  }
  return false;
}

// The value whose root or power of a half is taken; NULL: the node is no such thing.
static Value *under_root(const Node *node) {
  if (node->op->id == OP_Sqrt) return node->inputs[0];
  bool is_half = node->op->id == OP_Pow && (node_f32(node, "beta") == -0.5 || node_f32(node, "beta") == 0.5);
  return is_half ? node->inputs[0] : NULL;
}

static bool recognise_at(Recogniser *r, Node *node) {
  Value *shifted = under_root(node);
  bool is_difference = node->op->id == OP_Subtract;
  if (!shifted && !is_difference) return false;
  arena_init(&r->scratch, r->context->allocator);
  Norm n;
  bool is_norm = shifted ? norm_from_variance(&n, r, shifted) : norm_from_difference(&n, r, node->outputs[0]);
  bool done = is_norm && recognise_around(&n);
  r->out_of_memory |= is_norm && n.algebra.out_of_memory;
  arena_deinit(&r->scratch);
  r->changed |= done;
  return done;
}

// From the last to the first: a gradient's dy comes from the norm behind it, whose gradient is an operator by then.
bool pass_recognise(Graph *g, PassContext *c) {
  enum { MOST_AT_ONE = 4 };
  Recogniser r = {.graph = g, .context = c};
  size_t nnodes = g->nnodes;
  diagnostics_init(&r.refusals, c->allocator);
  for (size_t i = g->nnodes; i-- > 0 && !r.out_of_memory;)
    for (int k = 0; k < MOST_AT_ONE && g->nodes[i]->noutputs && g->nodes[i]->outputs[0]; k++)
      if (!recognise_at(&r, g->nodes[i])) break;
  r.out_of_memory |= r.refusals.out_of_memory;
  diagnostics_deinit(&r.refusals);
  if (r.out_of_memory) {
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
