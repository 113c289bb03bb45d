// How far two correct results of a graph may differ. Sums may cancel, and a value may lie on either side of a
// threshold, so no fixed tolerance fits. Instead, the graph is interpreted many times with noise of the size of
// roundings on every value that programs round; the changes of the results are the tolerance.
#ifndef NGRAD_TESTS_NOISE_H
#define NGRAD_TESTS_NOISE_H

#include "backends/interpreter/choices.h"
#include "backends/interpreter/interpreter.h"
#include "tests/random_graph.h"

#include <math.h>

typedef struct Noise {
  const Graph *graph;   // bound
  const Tensor *inputs; // of the graph
  Arena *arena;         // for the values
  uint64_t random;
  double strength;  // 1: as large as a rounding
  bool is_infinite; // set when some value had an infinity or a NaN
  bool keeps_f32;   // in half of the runs, a program keeps values of narrow types in f32, as within a kernel
  double *spread;   // by value->index: of sums, the error of an element, as their terms are rounded
  double **noisy;   // by value->index
  double *
      *sharp; // likewise: the value without noise, if no program rounds it (backends/interpreter/choices.h); or NULL
} Noise;

static inline double noise_rounding(Type type) {
  static const double table[TYPE_COUNT] = {
      [TYPE_F64] = 0x1p-52, [TYPE_F32] = 0x1p-23, [TYPE_F16] = 0x1p-10, [TYPE_BF16] = 0x1p-7};
  return table[type];
}

// The absolute error of small numbers of the type: functions, which compute in f32 at least, lose the digits of
// subnormal numbers.
static inline double noise_smallest(Type type) {
  static const double table[TYPE_COUNT] = {
      [TYPE_F64] = 0x1p-1022, [TYPE_F32] = 0x1p-126, [TYPE_F16] = 0x1p-24, [TYPE_BF16] = 0x1p-126};
  return table[type];
}

static inline Type noise_type(const Noise *n, Type type) {
  return n->keeps_f32 && (type == TYPE_F16 || type == TYPE_BF16) ? TYPE_F32 : type;
}

// Adds relative noise, and for operators whose sums may cancel, noise relative to the operands. Half of the noise is
// the same for all elements, like the roundings of equal numbers. Zeros stay zero, unless they are results of sums. In
// half of the calls, values are rounded to their type, because sums of rounded values may be zero, and rounded values
// equal where the exact ones are not; in others, what is no larger than `zero` is zero, as a sum that cancels or a
// subnormal number that a function flushes: what a program divides by it is infinite then. flushed: the error of small
// numbers.
static inline void noise_add(Noise *n, Type type, double relative, double absolute, double flushed, double zero,
                             double *x, size_t count) {
  if (!type_is_float(type)) return;
  double common = random_chance(&n->random, 50) ? 1 : -1;
  const bool is_rounded = n->strength > 0 && random_chance(&n->random, 50);
  const double cancelled = random_chance(&n->random, 50) ? n->strength * zero : 0;
  for (size_t i = 0; i < count; i++) {
    double own = (double)(random_next(&n->random) >> 11) * 0x1p-52 - 1;
    double size = fabs(x[i]) * relative + absolute + (x[i] != 0 ? flushed : 0);
    x[i] = fabs(x[i]) < cancelled ? 0 : x[i] + n->strength * (common + own) / 2 * size;
    if (is_rounded || isinf(type_round(type, x[i]))) x[i] = type_round(type, x[i]);
  }
}

static inline size_t noise_nelems(const Value *v) {
  return (size_t)shape_nelems(&v->shape);
}

static inline double noise_largest(const double *x, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; i++)
    if (isfinite(x[i]) && fabs(x[i]) > most) most = fabs(x[i]);
  return most;
}

// Sets a value that no program rounds. Operators that round may round it to f32 first, or compute with equally good
// numbers.
static inline bool noise_set_sharp(Noise *n, const Value *v, double *x) {
  const size_t count = noise_nelems(v);
  double *noisy = type_is_float(v->type) ? ARENA_ARRAY(n->arena, double, count + 1) : x;
  if (!x || !noisy) return false;
  if (noisy != x) memcpy(noisy, x, count * sizeof *x);
  const double rounding = noise_rounding(v->type == TYPE_F64 ? TYPE_F64 : TYPE_F32), smallest = noise_smallest(v->type);
  noise_add(n, v->type, rounding, 0, smallest, smallest, noisy, count);
  n->sharp[v->index] = x;
  n->noisy[v->index] = noisy;
  return true;
}

static inline bool noise_given(Noise *n, const Value *v, const Tensor *given) {
  size_t count = noise_nelems(v);
  double *x = ARENA_ARRAY(n->arena, double, count + 1);
  for (size_t i = 0; x && i < count; i++) {
    if (v->constant) type_load_wide(v->type, v->constant->data, v->constant->is_splat ? 0 : i, &x[i]);
    else type_load_wide(v->type, given->data, (size_t)tensor_offset(given, (int64_t)i), &x[i]);
  }
  return noise_set_sharp(n, v, x);
}

// The terms of the sum that an element of an output is.
typedef struct NoiseSum {
  double largest, nterms; // the largest term; the approximate number of terms
  double bound;           // of the sums that lead to it
  double of_operands;     // the error of a term, as operands are rounded and are sums themselves
  bool is_f64;
  bool of_factors; // a product: an infinite one makes NaN of 0
} NoiseSum;

static inline NoiseSum noise_sum_of(const Noise *n, const Node *node, const Value *out, const double *const *inputs) {
  const bool is_product = strcmp(node->op->family, operators[OP_MatMul].family) == 0;
  const bool is_norm = strcmp(node->op->family, operators[OP_LayerNorm].family) == 0;
  NoiseSum s = {.is_f64 = true};
  double most = 0, factors = 1, rounding = 0;
  for (uint32_t k = 0; k < node->ninputs; k++) {
    const Value *v = node->inputs[k];
    if (!v || !type_is_float(v->type)) continue;
    s.is_f64 = s.is_f64 && v->type == TYPE_F64;
    const double own = noise_largest(inputs[k], noise_nelems(v));
    rounding = fmax(rounding, noise_rounding(noise_type(n, v->type)));
    s.of_operands = fmax(s.of_operands, n->spread[v->index]);
    s.largest = fmax(s.largest, own);
    factors *= fmax(1, own);
    most = fmax(most, (double)noise_nelems(v));
  }
  const double nelems = fmax(1, (double)noise_nelems(out));
  s.nterms = fmax(1, most / nelems);
  s.of_factors = node->op->id == OP_ReduceProd;
  s.bound = s.of_factors ? pow(fmax(1, s.largest), s.nterms)
            : is_norm    ? factors * s.largest * most // sums of squares, of products
                         : s.largest * s.nterms;
  s.of_operands += rounding * s.largest;
  if (!is_product) return s;
  const size_t of_x = noise_nelems(node->inputs[0]), of_y = noise_nelems(node->inputs[1]);
  s.largest = fmax(s.largest, noise_largest(inputs[0], of_x) * noise_largest(inputs[1], of_y));
  s.nterms = fmax(1, sqrt((double)of_x * (double)of_y / nelems));
  s.bound = s.largest * s.nterms;
  s.of_operands += rounding * s.largest;
  return s;
}

// If terms overflow, their order, and whether products are rounded, decide if a result is infinite, NaN or finite: half
// of the calls say NaN, half 0.
static inline void noise_overflow(Noise *n, const NoiseSum *sum, double *x, size_t count) {
  const double greatest = type_greatest(sum->is_f64 ? TYPE_F64 : TYPE_F32);
  if (n->strength == 0 || sum->bound <= greatest) return;
  const double overflown = random_chance(&n->random, 50) ? (double)NAN : 0;
  for (size_t i = 0; i < count; i++)
    if (x[i] != 0 || sum->of_factors) x[i] = overflown;
}

// The position of the operand's element that numpy broadcasts to element i of the result.
static inline size_t noise_place(const Shape *operand, const Shape *result, size_t i) {
  size_t place = 0, stride = 1;
  for (int axis = 1; axis <= operand->rank; axis++) {
    const size_t extent = (size_t)extent_value(result->extent[result->rank - axis]);
    const size_t own = (size_t)extent_value(operand->extent[operand->rank - axis]);
    place += own == 1 ? 0 : i % extent * stride;
    i /= extent;
    stride *= own;
  }
  return place;
}

// If the quotient is so near a whole number that rounding errors may make it one, the remainder may be 0: half of the
// calls say so.
static inline void noise_remainder(Noise *n, const Node *node, const double *const *inputs, double *x) {
  const Value *a = node->inputs[0], *b = node->inputs[1];
  if (node->op->id != OP_Mod || n->strength == 0 || !type_is_float(a->type) || random_chance(&n->random, 50)) return;
  const Shape *shape = &node->outputs[0]->shape;
  const double rounding = noise_rounding(noise_type(n, a->type));
  for (size_t i = 0; i < noise_nelems(node->outputs[0]); i++) {
    const double of = inputs[0][noise_place(&a->shape, shape, i)], by = inputs[1][noise_place(&b->shape, shape, i)];
    const double most = 4 * fabs(of) * rounding + n->spread[a->index] + fabs(of / by) * n->spread[b->index];
    if (isfinite(of) && (fabs(x[i]) <= most || fabs(by) - fabs(x[i]) <= most)) x[i] *= 0;
  }
}

// Numbers that differ by roundings only may become equal when they are rounded: noise inverts half of their
// comparisons.
static inline void noise_equality(Noise *n, const Node *node, const double *const *inputs, double *equal) {
  const Value *a = node->inputs[0], *b = node->inputs[1];
  const bool is_equality = node->op->id == OP_Equal || node->op->id == OP_NotEqual;
  if (!is_equality || n->strength == 0 || !type_is_float(a->type)) return;
  const Shape *shape = &node->outputs[0]->shape;
  for (size_t i = 0; i < noise_nelems(node->outputs[0]); i++) {
    const double x = inputs[0][noise_place(&a->shape, shape, i)], y = inputs[1][noise_place(&b->shape, shape, i)];
    const double most = 4 * n->strength * noise_rounding(a->type) * fmax(fabs(x), fabs(y)) + noise_smallest(a->type) +
                        n->spread[a->index] + n->spread[b->index];
    if (x != y && fabs(x - y) <= most && random_chance(&n->random, 50)) equal[i] = equal[i] == 0;
  }
}

// Computes a node that rounds nothing; *done: it does not.
static inline bool noise_exact_node(Noise *n, const Node *node, bool *done) {
  const double *inputs[MAX_OPERANDS + MAX_VARIADIC] = {NULL};
  double *outputs[MAX_OPERANDS] = {NULL};
  size_t nelems[MAX_OPERANDS + MAX_VARIADIC] = {0};
  *done = node_may_be_exact(node);
  for (uint32_t k = 0; k < node->ninputs && *done; k++) {
    if (!node->inputs[k]) continue;
    inputs[k] = n->sharp[node->inputs[k]->index];
    nelems[k] = noise_nelems(node->inputs[k]);
    *done = inputs[k] != NULL;
  }
  if (!*done) return true;
  for (uint32_t k = 0; k < node->noutputs; k++)
    if (node->outputs[k] && !(outputs[k] = ARENA_ARRAY(n->arena, double, noise_nelems(node->outputs[k]) + 1)))
      return false;
  if (!interpret_node(node, inputs, outputs, n->arena->allocator)) return false;
  for (uint32_t k = 0; k < node->noutputs; k++) {
    if (!node->outputs[k]) continue;
    const Results results = {inputs, nelems, outputs[k], k, noise_nelems(node->outputs[k])};
    *done &= results_are_exact(node, &results);
  }
  for (uint32_t k = 0; k < node->noutputs && *done; k++)
    if (node->outputs[k] && !noise_set_sharp(n, node->outputs[k], outputs[k])) return false;
  return true;
}

static inline void noise_find_infinite(Noise *n, const Value *v) {
  const double *x = n->noisy[v->index];
  for (size_t i = 0; i < noise_nelems(v) && type_is_float(v->type); i++) n->is_infinite |= !isfinite(x[i]);
}

static inline bool noise_rounding_node(Noise *n, const Node *node) {
  const double *inputs[MAX_OPERANDS + MAX_VARIADIC] = {NULL};
  double *outputs[MAX_OPERANDS] = {NULL};
  for (uint32_t k = 0; k < node->ninputs; k++)
    if (node->inputs[k]) inputs[k] = n->noisy[node->inputs[k]->index];
  for (uint32_t k = 0; k < node->noutputs; k++) {
    const Value *v = node->outputs[k];
    if (!v) continue;
    outputs[k] = n->noisy[v->index] = ARENA_ARRAY(n->arena, double, noise_nelems(v) + 1);
    if (!outputs[k]) return false;
    if (!type_is_float(v->type)) n->sharp[v->index] = outputs[k];
  }
  if (!interpret_node(node, inputs, outputs, n->arena->allocator)) return false;
  noise_equality(n, node, inputs, outputs[0]);
  noise_remainder(n, node, inputs, outputs[0]);
  bool may_sum = !(node->op->traits & (TRAIT_ELEMENTWISE | TRAIT_PIECES));
  for (uint32_t k = 0; k < node->noutputs; k++) {
    const Value *v = node->outputs[k];
    if (!v) continue;
    const NoiseSum sum = noise_sum_of(n, node, v, inputs);
    double absolute = may_sum ? sum.largest * sum.nterms * noise_rounding(sum.is_f64 ? TYPE_F64 : TYPE_F32) : 0;
    if (may_sum && type_is_float(v->type)) noise_overflow(n, &sum, outputs[k], noise_nelems(v));
    const Type type = noise_type(n, v->type);
    const double spread = may_sum ? absolute + sqrt(sum.nterms) * sum.of_operands : 0;
    const double flushed = noise_smallest(type) * fmax(1, sum.largest); // of a factor that is flushed
    n->spread[v->index] = n->strength * spread;
    noise_add(n, type, noise_rounding(type), absolute, flushed, spread + flushed, outputs[k], noise_nelems(v));
  }
  return true;
}

static inline bool noise_node(Noise *n, const Node *node) {
  bool is_done;
  if (!noise_exact_node(n, node, &is_done) || (!is_done && !noise_rounding_node(n, node))) return false;
  for (uint32_t k = 0; k < node->noutputs; k++)
    if (node->outputs[k]) noise_find_infinite(n, node->outputs[k]);
  return true;
}

// The value's elements as numbers: the interpreter has s64 elements as integers.
static inline const double *noise_numbers(Noise *n, const Value *v, const double *x) {
  const size_t count = noise_nelems(v);
  double *numbers = v->type == TYPE_S64 ? ARENA_ARRAY(n->arena, double, count + 1) : NULL;
  if (v->type != TYPE_S64) return x;
  for (size_t i = 0; numbers && i < count; i++) numbers[i] = (double)((const int64_t *)(const void *)x)[i];
  return numbers;
}

// Runs the graph with noise; `outputs`, parallel to the graph's, are row-major arrays in the arena. False: out of
// memory.
static inline bool noise_run(Noise *n, const double **outputs) {
  const Graph *g = n->graph;
  n->keeps_f32 = n->strength > 0 && random_chance(&n->random, 50);
  n->spread = ARENA_ARRAY(n->arena, double, g->nvalues + 1);
  n->noisy = ARENA_ARRAY(n->arena, double *, g->nvalues + 1);
  n->sharp = ARENA_ARRAY(n->arena, double *, g->nvalues + 1);
  if (!n->spread || !n->noisy || !n->sharp) return false;
  for (size_t i = 0; i < g->ninputs; i++)
    if (!noise_given(n, g->inputs[i], &n->inputs[i])) return false;
  for (size_t i = 0; i < g->nvalues; i++)
    if (g->values[i]->constant && !noise_given(n, g->values[i], NULL)) return false;
  for (size_t i = 0; i < g->nnodes; i++)
    if (!noise_node(n, g->nodes[i])) return false;
  bool ok = true;
  for (size_t i = 0; i < g->noutputs; i++) {
    const size_t k = g->outputs[i]->index;
    outputs[i] = noise_numbers(n, g->outputs[i], n->sharp[k] ? n->sharp[k] : n->noisy[k]);
    ok &= outputs[i] != NULL;
  }
  return ok;
}

#endif
