// The search starts from a node that may compute 1 / sqrt(variance + epsilon), or from a difference x - mean. The
// values around it are evaluated as polynomials of the data (algebra.h) and compared with the operators' formulas:
//
//   norm      y = gamma * c * r + beta                               c = x - mean, r = 1 / sqrt(variance + epsilon)
//   gradient  dx = r * (g - E[g] - c * r^2 * E[g * c])               g = gamma * dy
//             dgamma = sum(dy * c * r), dbeta = sum(dy)
//
// In an RMS norm the mean is 0 and the gradient has no E[g]. The formulas apply to layer, batch and group norms, which
// differ in the axes of E. As polynomials are a normal form, every form of a formula matches: a variance in one pass or
// two, means or sums, quotients or products with a reciprocal, terms in any order. Gradients are searched first,
// because statistics cannot be expanded into polynomials after a norm operator produces them. If the polynomials are
// not equal, the graph does not change.
//
// Guarantee: for a row with an infinity or a NaN, results that are not finite in the original graph are not finite
// after the replacement. For other rows only rounding differs (mostly for the better, as the operators subtract the
// mean first), and the operator may avoid an overflow of the original graph. Therefore, a value that the graph adds and
// subtracts again, or multiplies and divides by, must also be in the operator's formula, where it has the same effect
// (see algebra.h). One exception: if the graph multiplies and divides by a polynomial of x, such as the x - mean that
// the gradient of a quotient leaves, the graph gives NaN where the polynomial is 0, and the operator gives the limit.
// Sums over x may cancel: if x is not finite, r is NaN, and so are the results.
#include "passes/rewrite/passes.h"

#include "ir/operators/reduce.h"
#include "passes/rewrite/dead_code.h"
#include "passes/rewrite/recognise/norm_replace.h"

#include <string.h>

// Statistics

static void norm_init(Norm *n, Recogniser *r, Value *src) {
  r->refusals.out_of_memory |= n->algebra.out_of_memory;
  *n = (Norm){.r = r, .src = src};
  algebra_init(&n->algebra, &r->scratch, src);
}

static bool has_all_elements(const Norm *n, const Value *v) {
  return shape_nelems(&v->shape) == shape_nelems(&n->src->shape) &&
         shape_monomial(&v->shape) == shape_monomial(&n->src->shape);
}

// Splits the frame's axes by the shapes of all listed values that have as many elements as src.
static void split_axes(Norm *n, Value *const *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (has_all_elements(n, list[i])) algebra_split_axes(&n->algebra, &list[i]->shape);
}

static void set_unreduced(Norm *n, uint32_t unreduced) {
  n->unreduced = unreduced;
  n->reduced = algebra_axes(&n->algebra) & ~unreduced;
  n->count = algebra_count(&n->algebra, n->reduced);
}

// Sets n->epsilon to the constant term of the polynomial variance + epsilon. False: there is no positive constant term.
static bool take_epsilon(Norm *n, Polynomial p) {
  for (uint32_t i = 0; i < p.nterms; i++)
    if (!p.terms[i].nfactors) n->epsilon = p.terms[i].coefficient;
  return n->epsilon > 0;
}

// Whether `shifted` is src's variance or mean square, plus a positive constant; sets the statistics.
static bool is_variance_of(Norm *n, Value *shifted) {
  Algebra *a = &n->algebra;
  Labels labels;
  if (!n->reduced || n->count == 0 || !labels_of_axes(a, n->unreduced, shifted, &labels)) return false;
  Polynomial p = algebra_evaluate(a, shifted, &labels), x = norm_src(n);
  if (a->failed || !take_epsilon(n, p)) return false;
  Polynomial mean = norm_average(n, x), square = norm_average(n, polynomial_product(a, x, x));
  Polynomial shifted_square = polynomial_sum(a, square, polynomial_number(a, n->epsilon), 1);
  n->is_rms = polynomial_equals(a, p, shifted_square);
  n->mean = n->is_rms ? (Polynomial){0} : mean;
  n->variance = polynomial_sum(a, shifted_square, polynomial_product(a, n->mean, n->mean), -1);
  n->rstd = polynomial_power(a, n->variance, -1);
  return !a->failed && polynomial_equals(a, p, n->variance);
}

// Takes rstd from a factor of p, a single term that multiplies data (with is_divisor: divides): a root of variance +
// epsilon, or with fast math a given value.
static bool take_rstd(Norm *n, Polynomial p, bool is_divisor) {
  Algebra *a = &n->algebra;
  if (p.nterms != 1) return false;
  for (uint32_t i = 0; i < p.terms[0].nfactors; i++) {
    Factor f = p.terms[0].factors[i];
    const Symbol *s = &a->symbols[f.symbol];
    if (s->axes & ~n->unreduced) continue;
    if (!s->value && !s->reduced && f.halves == (is_divisor ? 1 : -1) && take_epsilon(n, s->base)) {
      n->variance = s->base;
      n->rstd = polynomial_power(a, s->base, -1);
      return !a->failed;
    }
    // The operator takes a variance, the square of the deviation. This is correct only if the given value is not
    // negative, which the graph does not guarantee.
    if (!n->r->context->fast_math || !s->value || p.terms[0].nfactors != 1 || f.halves != 2 || s->axes != n->unreduced)
      continue;
    n->rstd_value = (Value *)s->value;
    n->is_deviation = is_divisor;
    n->epsilon = n->src->type == TYPE_F64 ? 1e-300 : 1e-30; // negligible beside any variance
    n->rstd = polynomial_power(a, p, is_divisor ? -2 : 2);
    return !a->failed;
  }
  return false;
}

// Whether v varies over exactly the statistics' axes. v is an operand that is broadcast to `whole`, a value over all
// axes.
static bool is_statistic(const Norm *n, const Value *whole, const Value *v, Labels *labels) {
  Labels result;
  if (!labels_of_axes(&n->algebra, algebra_axes(&n->algebra), whole, &result) || v->shape.rank > result.rank)
    return false;
  *labels = labels_of_operand(v, &result);
  return labels_axes(labels) == n->unreduced;
}

// Finds a norm with given statistics around `center` = src - mean: a value that multiplies or divides the difference is
// the reciprocal deviation or the deviation.
static bool norm_from_difference(Norm *n, Recogniser *r, Value *src, Value *center) {
  enum { NEAR = 12 };
  const Node *node = center->producer;
  Labels labels;
  norm_init(n, r, src);
  norm_add_descendants(n, center);
  split_axes(n, n->region, n->nregion);
  if (!labels_of_axes(&n->algebra, algebra_axes(&n->algebra), center, &labels)) return false;
  Polynomial difference = algebra_evaluate(&n->algebra, center, &labels);
  labels = labels_of_operand(node->inputs[1], &labels);
  set_unreduced(n, labels_axes(&labels));
  if (!n->reduced || !n->unreduced || n->count == 0) return false;
  n->mean = polynomial_sum(&n->algebra, norm_src(n), difference, -1);
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

// The pass

static bool may_be_result(const Norm *n, const Value *v) {
  return v->producer && v->type == n->src->type && shape_equals(&v->shape, &n->src->shape);
}

// Whether the node is a reshape whose operand has src's shape: the operand, not the reshape, is then the norm's result.
static bool is_mere_reshape(const Norm *n, const Node *node) {
  return node->op->id == OP_StaticReshape && shape_equals(&node->inputs[0]->shape, &n->src->shape);
}

// Tries values farthest from the statistics first, so that y is found before the product with gamma inside it.
static bool recognise_around(Norm *n) {
  for (uint32_t i = n->nregion; i-- > 0;) {
    NormGradient d = {0};
    n->algebra.failed = false;
    if (may_be_result(n, n->region[i]) && norm_find_gradient(n, &d, n->region[i])) return norm_replace_gradient(n, &d);
  }
  for (uint32_t i = n->nregion; i-- > 0;) {
    NormForward y;
    Value *v = n->region[i];
    n->algebra.failed = false;
    if (!may_be_result(n, v) || is_mere_reshape(n, v->producer)) continue;
    for (NormKind kind = 0; kind < (n->is_rms ? LAYER_NORM + 1 : NORM_KINDS); kind++) {
      bool has_operator = !n->is_given || (norm_kinds[kind].with_statistics != OP_COUNT && !n->rstd_value);
      if (has_operator && norm_find_forward(n, &y, v, kind)) return norm_replace_forward(n, &y);
    }
  }
  return false;
}

// The operand of a square root, or of a power of 0.5 or -0.5; NULL: the node is neither.
static Value *under_root(const Node *node) {
  if (node->op->id == OP_Sqrt) return node->inputs[0];
  bool is_half = node->op->id == OP_Pow && (node_f32(node, "beta") == -0.5 || node_f32(node, "beta") == 0.5);
  return is_half ? node->inputs[0] : NULL;
}

// Finds norms around a value that is a variance plus epsilon; searches src and the axes among the value's ancestors.
static bool recognise_variance(Norm *n, Recogniser *r, Value *shifted) {
  Value *above[MOST_ANCESTORS];
  uint32_t count = value_ancestors(shifted, above, MOST_ANCESTORS);
  for (uint32_t i = count; i-- > 0;) {
    const Node *node = above[i]->producer;
    if (!node || (node->op->id != OP_ReduceSum && node->op->id != OP_ReduceMean)) continue;
    for (uint32_t k = count; k-- > 0 && !r->refusals.out_of_memory;) {
      Labels labels;
      norm_init(n, r, above[k]);
      if (!has_all_elements(n, node->inputs[0])) continue;
      norm_add_descendants(n, shifted);
      split_axes(n, above, count);
      split_axes(n, n->region, n->nregion);
      if (!labels_of_axes(&n->algebra, algebra_axes(&n->algebra), node->inputs[0], &labels)) continue;
      uint32_t axes = reduce_axes(node);
      for (int axis = 0; axis < labels.rank; axis++)
        if (axes >> axis & 1) labels.axes[axis] = 0;
      set_unreduced(n, labels_axes(&labels));
      if (is_variance_of(n, shifted) && recognise_around(n)) return true;
    }
  }
  return false;
}

// Lists v and its ancestors through reshapes and casts, farthest first; returns their number.
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

// Finds norms around the difference of src and a given mean. src may be an ancestor through reshapes and casts; the
// farthest is tried first.
static bool recognise_difference(Norm *n, Recogniser *r, Value *center) {
  enum { DEEPEST = 4 };
  Value *src[DEEPEST];
  if (!shape_equals(&center->producer->inputs[0]->shape, &center->shape)) return false;
  int count = list_origins(center->producer->inputs[0], src, DEEPEST);
  for (int i = 0; i < count && !r->refusals.out_of_memory; i++)
    if (norm_from_difference(n, r, src[i], center) && recognise_around(n)) return true;
  return false;
}

// Finds the statistics' axes from a product of src (operand `slot`) and a factor, and sets variance and rstd; `shifted`
// is the variance plus epsilon. False: the axes or `shifted` do not fit.
static bool norm_beside_factor(Norm *n, Recogniser *r, Value *src, const Node *product, uint32_t slot, Value *shifted) {
  Algebra *a = &n->algebra;
  Labels labels;
  norm_init(n, r, src);
  norm_add_descendants(n, shifted);
  split_axes(n, n->region, n->nregion);
  if (!labels_of_axes(a, algebra_axes(a), product->outputs[0], &labels)) return false;
  labels = labels_of_operand(product->inputs[1 - slot], &labels);
  set_unreduced(n, labels_axes(&labels));
  if (!n->reduced || !n->unreduced || n->count == 0 || !labels_of_axes(a, n->unreduced, shifted, &labels)) return false;
  n->variance = algebra_evaluate(a, shifted, &labels);
  n->is_given = true;
  if (a->failed || n->variance.nterms != 2 || !take_epsilon(n, n->variance)) return false;
  n->rstd = polynomial_power(a, n->variance, -1);
  return !a->failed;
}

// Finds a gradient with given statistics in which src - mean has been multiplied out: a sum of products, one of which
// is src times a factor with the statistics' axes. Tries each value over the statistics' axes as the mean.
static bool recognise_products(Norm *n, Recogniser *r, const Node *product, uint32_t slot, Value *shifted) {
  enum { DEEPEST = 4 };
  Value *src[DEEPEST];
  int count = list_origins(product->inputs[slot], src, DEEPEST);
  for (int i = 0; i < count && !r->refusals.out_of_memory; i++) {
    if (!norm_beside_factor(n, r, src[i], product, slot, shifted)) continue;
    Labels labels = labels_of_frame(&n->algebra);
    for (uint32_t k = 0; k < n->nregion; k++)
      if (may_be_result(n, n->region[k])) algebra_evaluate(&n->algebra, n->region[k], &labels); // adds symbols
    for (uint32_t k = 0; k < n->algebra.nsymbols && !r->refusals.out_of_memory; k++) {
      const Symbol *s = &n->algebra.symbols[k];
      if (!s->value || s->axes != n->unreduced) continue;
      n->algebra.failed = false;
      n->mean = algebra_evaluate(&n->algebra, s->value, &s->labels);
      if (!n->algebra.failed && recognise_around(n)) return true;
    }
  }
  return false;
}

static bool recognise_given_variance(Norm *n, Recogniser *r, Value *shifted) {
  norm_init(n, r, shifted);
  norm_add_descendants(n, shifted);
  Value *region[MOST_DESCENDANTS];
  uint32_t count = n->nregion;
  memcpy(region, n->region, count * sizeof *region);
  for (uint32_t i = 0; i < count && !r->refusals.out_of_memory; i++) {
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
  Norm *n = ARENA_NEW(&r->scratch, Norm); // too large for small stacks
  bool done = false;
  if (n) {
    n->r = r;
    done = is_difference ? recognise_difference(n, r, node->outputs[0])
                         : recognise_variance(n, r, shifted) || recognise_given_variance(n, r, shifted);
  }
  r->refusals.out_of_memory |= !n || n->algebra.out_of_memory;
  arena_deinit(&r->scratch);
  r->changed |= done;
  return done;
}

// From the last node to the first: dy of a norm's gradient depends on the gradient of the following norm. That gradient
// is then an operator already, and is not expanded.
bool pass_recognise(Graph *g, PassContext *c) {
  enum { MOST_AT_ONE = 4 };
  Recogniser r = {.builder = {.graph = g}, .context = c};
  size_t nnodes = g->nnodes;
  diagnostics_init(&r.refusals, c->allocator);
  r.builder.d = &r.refusals;
  for (size_t i = g->nnodes; i-- > 0 && !r.refusals.out_of_memory;)
    for (int k = 0; k < MOST_AT_ONE && g->nodes[i]->noutputs && g->nodes[i]->outputs[0]; k++)
      if (!recognise_at(&r, g->nodes[i])) break;
  const bool is_out_of_memory = r.refusals.out_of_memory;
  diagnostics_deinit(&r.refusals);
  if (is_out_of_memory) {
    pass_out_of_memory(c);
  } else if (!graph_sort(g, c->diagnostics)) {
    c->failed = true;
  } else if (g->nnodes != nnodes) { // even if an operator did not fit: new nodes for its operands are left over
    pass_dead_code(g, c);
    if (r.changed && !pass_is_disabled(c, "movement")) pass_movement(g, c);
  }
  return r.changed;
}
