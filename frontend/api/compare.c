// Comparing tensors: relative L2 in f64, the largest error of an element, and that in units in the last place.
#include "backends/interpreter/magnitude.h"
#include "frontend/api/handles.h"
#include "frontend/api/tensor.h"

#include <float.h>
#include <math.h>
#include <string.h>

// What is quantised may be a step off where roundings before it differ.
static double default_most_ulp(Type type) {
  return TYPES_QUANTIZED & TYPE_BIT(type) ? 1 : INFINITY;
}

// The distance between neighbours of `type` around a finite value: of its binade, or of the subnormals.
static double spacing(Type type, double value) {
  static const struct {
    int digits, least_exponent; // as in <float.h>: DBL_MANT_DIG, DBL_MIN_EXP
  } formats[TYPE_COUNT] = {
      [TYPE_F64] = {DBL_MANT_DIG, DBL_MIN_EXP},
      [TYPE_F32] = {FLT_MANT_DIG, FLT_MIN_EXP},
      [TYPE_F16] = {11, -13},
      [TYPE_BF16] = {8, FLT_MIN_EXP},
      [TYPE_F8_E4M3] = {4, -5},
      [TYPE_F8_E5M2] = {3, -13},
  };
  if (!formats[type].digits) return 1;
  int exponent;
  frexp(value, &exponent);
  if (value == 0 || exponent < formats[type].least_exponent) exponent = formats[type].least_exponent;
  return ldexp(1, exponent - formats[type].digits);
}

// Sum of squares that neither overflows nor underflows: scale² · total.
typedef struct Squares {
  double scale, total;
} Squares;

static void squares_add(Squares *s, double value) {
  double magnitude = fabs(value);
  if (magnitude == 0) return;
  if (magnitude > s->scale * 0x1p400 || s->scale == 0) { // a power of two, so scaling is exact
    double larger = ldexp(1, ilogb(magnitude));
    double ratio = s->scale / larger;
    s->total *= ratio * ratio;
    s->scale = larger;
  }
  double scaled = magnitude / s->scale;
  s->total += scaled * scaled;
}

static double squares_root(const Squares *s) {
  return s->scale * sqrt(s->total);
}

// The distance of one pair; infinite when one of them is not finite and they are not alike.
static double distance(Type type, double actual, double expected) {
  if (actual == expected || (isnan(actual) && isnan(expected))) return 0;
  if (isinf(actual) && type_round(type, expected) == actual) return 0; // beyond the type's range
  if (!isfinite(actual) || !isfinite(expected)) return INFINITY;
  return fabs(actual - expected);
}

// A relative distance that is larger the smaller the norm is; infinite where zeros are expected.
static void set_relative(ng_difference *d, double distance, double norm) {
  d->distance = distance;
  d->norm = norm;
  d->relative_l2 = distance > 0 ? distance / norm : 0;
  d->is_within = d->relative_l2 <= d->tolerance && d->largest_ulp <= d->most_ulp;
}

// The largest error of an element, relative to it or to the root mean square that belongs to d->norm.
static void set_largest_error(const Tensor *actual, const Tensor *expected, ng_difference *d) {
  const int64_t nelems = tensor_nelems(actual);
  const double root_mean_square = d->norm / sqrt((double)nelems);
  d->largest_error = 0;
  for (int64_t i = 0; i < nelems; i++) {
    const double a = type_load(actual->type, actual->data, (size_t)tensor_offset(actual, i));
    const double e = type_load(expected->type, expected->data, (size_t)tensor_offset(expected, i));
    const double apart = distance(actual->type, a, e);
    if (apart == 0) continue;
    const double error = isinf(apart) ? apart : apart / fmax(fabs(e), root_mean_square);
    if (error > d->largest_error) d->largest_error = error;
  }
}

static void compare_elements(const Tensor *actual, const Tensor *expected, ng_difference *out) {
  Squares difference = {0}, norm = {0};
  bool is_far = false;
  const int64_t nelems = tensor_nelems(actual);
  for (int64_t i = 0; i < nelems; i++) {
    double a = type_load(actual->type, actual->data, (size_t)tensor_offset(actual, i));
    double e = type_load(expected->type, expected->data, (size_t)tensor_offset(expected, i));
    double apart = distance(actual->type, a, e);
    if (isfinite(e)) squares_add(&norm, e);
    if (apart == 0) continue;
    double ulp = isinf(apart) ? apart : apart / spacing(actual->type, e);
    if (ulp > out->largest_ulp) {
      out->largest_ulp = ulp;
      out->worst_element = i;
    }
    if (isinf(apart)) is_far = true;
    else squares_add(&difference, apart);
  }
  set_relative(out, is_far ? INFINITY : squares_root(&difference), squares_root(&norm));
  if (out->distance > 0) set_largest_error(actual, expected, out);
}

ng_status ng_tensor_compare(ng_context *ctx, const ng_tensor *actual, const ng_tensor *expected, double tolerance,
                            ng_difference *out) {
  Tensor a = tensor_of_api(actual), e = tensor_of_api(expected);
  bool is_same = a.rank == e.rank;
  for (int i = 0; is_same && i < a.rank; i++) is_same = a.extent[i] == e.extent[i];
  *out = (ng_difference){.tolerance = tolerance, .most_ulp = INFINITY, .worst_element = -1};
  if (tolerance < 0) {
    out->most_ulp = default_most_ulp(a.type);
    out->tolerance = isinf(out->most_ulp) ? type_tolerance(a.type) : INFINITY;
  }
  if (!order_is_valid(&a.order, a.rank) || !order_is_valid(&e.order, e.rank))
    return argument_error(ctx, "expected orders of the tensors' axes");
  if (!is_same) {
    Call call = call_begin(ctx);
    error_at(&ctx->diagnostics, (Position){0}, "tensors of different shapes cannot be compared");
    return call_end(ctx, call);
  }
  compare_elements(&a, &e, out);
  return out->is_within ? NG_OK : NG_DIFFERENT;
}

// Of a graph's outputs, what takes more than one interpretation; tensors are parallel to the graph's.
typedef struct Doubts {
  ng_graph *g;
  Tensor *inputs, *exact; // exact: the interpreter's results
  double *magnitudes;
  Arena arena;
} Doubts;

static Tensor *outputs_make(Doubts *d) {
  const Graph *g = d->g->graph;
  Tensor *outputs = ARENA_ARRAY(&d->arena, Tensor, g->noutputs + 1);
  bool ok = outputs;
  for (size_t i = 0; ok && i < g->noutputs; i++) {
    outputs[i] = tensor_like(g->outputs[i]);
    outputs[i].data = arena_alloc(&d->arena, tensor_nbytes(&outputs[i]) + 1);
    ok = outputs[i].data;
  }
  if (!ok) error_out_of_memory(&d->g->ctx->diagnostics);
  return ok ? outputs : NULL;
}

static bool doubts_init(Doubts *d, ng_graph *g, const ng_tensor *inputs) {
  *d = (Doubts){.g = g};
  arena_init(&d->arena, &g->ctx->allocator);
  d->inputs = ARENA_ARRAY(&d->arena, Tensor, g->graph->ninputs + 1);
  d->magnitudes = ARENA_ARRAY(&d->arena, double, g->graph->noutputs + 1);
  if (!d->inputs || !d->magnitudes) return error_out_of_memory(&g->ctx->diagnostics);
  for (size_t i = 0; i < g->graph->ninputs; i++) d->inputs[i] = tensor_of_api(&inputs[i]);
  const InterpreterOptions options = {.allocator = &g->ctx->allocator};
  d->exact = outputs_make(d);
  return d->exact && interpret(g->graph, d->inputs, d->exact, &options, &g->ctx->diagnostics) &&
         interpret_magnitudes(g->graph, d->inputs, d->exact, d->magnitudes, &options, &g->ctx->diagnostics);
}

// The norm becomes at least the magnitude of what was added up. A quantised output may be off by more than a step where
// rounding errors of its tensors' types change it by more.
static void set_beside_magnitude(const Doubts *doubts, size_t i, const ng_tensor *actual, const ng_tensor *expected,
                                 ng_difference *d) {
  const double magnitude = doubts->magnitudes[i];
  if (isfinite(d->most_ulp) && d->distance <= magnitude) {
    d->most_ulp = INFINITY;
    d->tolerance = 1;
    set_relative(d, d->distance, magnitude);
  } else if (isinf(d->most_ulp) && magnitude > d->norm) {
    set_relative(d, d->distance, magnitude);
  }
  const Tensor a = tensor_of_api(actual), e = tensor_of_api(expected);
  set_largest_error(&a, &e, d);
}

static bool is_same(const Tensor *a, const ng_tensor *b) {
  return (ng_type)a->type == b->type && memcmp(a->data, b->data, tensor_nbytes(a)) == 0;
}

// Compares outputs that are still not within their tolerances of the exact ones with those of a reference that rounds
// every value to its declared type: an intermediate value or a sum within a node may overflow its type, or be far from
// the exact one in its last place. Other expected results than the interpreter's stay what is expected.
static bool compare_with_rounded(Doubts *doubts, const ng_tensor *actual, const ng_tensor *expected, double tolerance,
                                 ng_difference *differences) {
  ng_context *ctx = doubts->g->ctx;
  const Graph *g = doubts->g->graph;
  const InterpreterOptions options = {.allocator = &ctx->allocator, .rounds_values = true};
  Tensor *rounded = outputs_make(doubts);
  if (!rounded || !interpret(g, doubts->inputs, rounded, &options, &ctx->diagnostics)) return false;
  for (size_t i = 0; i < g->noutputs; i++) {
    ng_difference d;
    if (differences[i].is_within || !is_same(&doubts->exact[i], &expected[i])) continue;
    const ng_tensor reference = tensor_to_api(&rounded[i]);
    ng_tensor_compare(ctx, &actual[i], &reference, tolerance, &d);
    if (!d.is_within) set_beside_magnitude(doubts, i, &actual[i], &reference, &d);
    if (d.is_within) differences[i] = d;
  }
  return true;
}

static bool are_within(const ng_graph *g, const ng_difference *differences) {
  for (size_t i = 0; i < g->graph->noutputs; i++)
    if (!differences[i].is_within) return false;
  return true;
}

static ng_status resolve_doubts(ng_graph *g, const ng_tensor *inputs, const ng_tensor *actual,
                                const ng_tensor *expected, double tolerance, ng_difference *differences) {
  Doubts doubts;
  Call call = call_begin(g->ctx);
  bool ok = doubts_init(&doubts, g, inputs);
  for (size_t i = 0; ok && i < g->graph->noutputs; i++)
    if (!differences[i].is_within && differences[i].tolerance > 0)
      set_beside_magnitude(&doubts, i, &actual[i], &expected[i], &differences[i]);
  if (ok && !are_within(g, differences)) ok = compare_with_rounded(&doubts, actual, expected, tolerance, differences);
  arena_deinit(&doubts.arena);
  ng_status status = call_end(g->ctx, call);
  if (!ok) return status;
  return are_within(g, differences) ? NG_OK : NG_DIFFERENT;
}

ng_status ng_compare_outputs(ng_graph *g, const ng_tensor *inputs, const ng_tensor *actual, const ng_tensor *expected,
                             double tolerance, ng_difference *differences) {
  bool may_be_rounding = false;
  for (size_t i = 0; i < g->graph->noutputs; i++) {
    const bool is_exact = ng_graph_output_is_exact(g, i);
    ng_difference *d = &differences[i];
    ng_status status =
        ng_tensor_compare(g->ctx, &actual[i], &expected[i], tolerance < 0 && is_exact ? 0 : tolerance, d);
    if (status != NG_OK && status != NG_DIFFERENT) return status;
    may_be_rounding |= !d->is_within && d->tolerance > 0 && !is_exact;
  }
  if (may_be_rounding) return resolve_doubts(g, inputs, actual, expected, tolerance, differences);
  return are_within(g, differences) ? NG_OK : NG_DIFFERENT;
}
