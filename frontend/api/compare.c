// Comparing tensors: relative L2 in f64, and the largest distance in units in the last place.
#include "backends/interpreter/magnitude.h"
#include "frontend/api/handles.h"
#include "frontend/api/tensor.h"

#include <float.h>
#include <math.h>

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

// Norms become at least the magnitude of what was added up, where that may make a difference.
static ng_status compare_beside_magnitudes(ng_graph *g, const ng_tensor *inputs, ng_difference *differences) {
  const Graph *graph = g->graph;
  Arena scratch;
  arena_init(&scratch, &g->ctx->allocator);
  Tensor *in = ARENA_ARRAY(&scratch, Tensor, graph->ninputs + 1);
  double *magnitudes = ARENA_ARRAY(&scratch, double, graph->noutputs + 1);
  Call call = call_begin(g->ctx);
  bool ok = (in && magnitudes) || error_out_of_memory(&g->ctx->diagnostics);
  for (size_t i = 0; ok && i < graph->ninputs; i++) in[i] = tensor_of_api(&inputs[i]);
  const InterpreterOptions options = {.allocator = &g->ctx->allocator};
  ok = ok && interpret_magnitudes(graph, in, NULL, magnitudes, &options, &g->ctx->diagnostics);
  ng_status status = call_end(g->ctx, call);
  for (size_t i = 0; ok && i < graph->noutputs; i++)
    if (magnitudes[i] > differences[i].norm) set_relative(&differences[i], differences[i].distance, magnitudes[i]);
  arena_deinit(&scratch);
  return ok ? NG_OK : status;
}

ng_status ng_compare_outputs(ng_graph *g, const ng_tensor *inputs, const ng_tensor *actual, const ng_tensor *expected,
                             double tolerance, ng_difference *differences) {
  bool is_all_within = true, may_be_rounding = false;
  for (size_t i = 0; i < g->graph->noutputs; i++) {
    double own = tolerance < 0 && ng_graph_output_is_exact(g, i) ? 0 : tolerance;
    ng_difference *d = &differences[i];
    ng_status status = ng_tensor_compare(g->ctx, &actual[i], &expected[i], own, d);
    if (status != NG_OK && status != NG_DIFFERENT) return status;
    is_all_within &= d->is_within != 0;
    may_be_rounding |=
        !d->is_within && isfinite(d->distance) && d->tolerance > 0 && type_is_float((Type)actual[i].type);
  }
  if (!may_be_rounding) return is_all_within ? NG_OK : NG_DIFFERENT;
  ng_status status = compare_beside_magnitudes(g, inputs, differences);
  if (status != NG_OK) return status;
  for (size_t i = 0; i < g->graph->noutputs; i++)
    if (!differences[i].is_within) return NG_DIFFERENT;
  return NG_OK;
}
