// Compares tensors: relative L2 in f64, the largest error of an element, and the largest error in units in the last
// place.
#include "frontend/api/compare.h"

#include "frontend/api/tensor.h"

#include <float.h>
#include <math.h>

// Quantised elements may differ by one step, because values rounded differently before may quantise to neighbours.
static double default_most_ulp(Type type) {
  return (TYPES_QUANTIZED | TYPES_16_BITS) & TYPE_BIT(type) ? 1 : INFINITY;
}

// The distance between neighbours of `type` at a finite value: in its binade, or between subnormals.
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

// A sum of squares that neither overflows nor underflows: scale² · total.
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

static double load(const Tensor *t, int64_t i) {
  return type_load(t->type, t->data, (size_t)tensor_offset(t, i));
}

// The distance of two elements; infinite if one is not finite and they are not equal.
static double distance(Type type, double actual, double expected) {
  if (actual == expected || (isnan(actual) && isnan(expected))) return 0;
  if (isinf(actual) && type_round(type, expected) == actual) return 0; // expected overflows the type
  if (!isfinite(actual) || !isfinite(expected)) return INFINITY;
  return fabs(actual - expected);
}

// The norm 0 of expected zeros makes relative_l2 infinite.
static void set_difference(ng_difference *d, double distance, double norm) {
  d->distance = distance;
  d->norm = norm;
  d->relative_l2 = distance > 0 ? distance / norm : 0;
  d->is_within = d->relative_l2 <= d->tolerance && d->largest_ulp <= d->most_ulp;
}

// The result of some choices that is nearest to the element.
static double nearest_result(const Movement *m, Type type, int64_t i, double element) {
  double nearest = 0, least = INFINITY;
  for (size_t r = 0; r < m->nresults; r++) {
    const double result = load(&m->results[r], i), apart = distance(type, element, result);
    if (r == 0 || apart < least) {
      nearest = result;
      least = apart;
    }
  }
  return nearest;
}

bool movement_add(Movement *m, const Tensor *flipped, const Tensor *actual, const Tensor *expected) {
  const Tensor *sides[] = {actual, expected};
  bool any = false;
  for (size_t k = 0; k < 2; k++) {
    Tensor *kept = &m->results[m->nresults - 2 + k];
    for (int64_t i = 0; i < tensor_nelems(flipped); i++) {
      const double element = load(sides[k], i), result = load(flipped, i);
      const double known = nearest_result(m, flipped->type, i, element);
      if (!(distance(flipped->type, element, result) < distance(flipped->type, element, known))) continue;
      type_store(kept->type, kept->data, (size_t)tensor_offset(kept, i), result);
      any = true;
    }
  }
  return any;
}

// What to expect of the element: if rounding errors may flip choices, what they make of the expected element there.
static double expected_of(const Tensor *actual, const Tensor *expected, const Movement *m, int64_t i) {
  const double a = load(actual, i), e = load(expected, i);
  if (!m || m->nresults < 2) return e;
  const double ours = nearest_result(m, actual->type, i, a), theirs = nearest_result(m, actual->type, i, e);
  if (distance(actual->type, ours, theirs) == 0) return e;
  return distance(actual->type, e, theirs) == 0 ? ours : e + (ours - theirs);
}

// Whether the difference exceeds the usual effect of rounding errors, but not their effect on this element.
static bool is_left_out(const Movement *m, int64_t i, double absolute) {
  return m && absolute > m->usual && absolute <= m->moved[i];
}

// Sets the largest error of an element, relative to max(|expected|, the root mean square that belongs to d->norm).
static void set_largest_error(const Tensor *actual, const Tensor *expected, const Movement *m, ng_difference *d) {
  const int64_t nelems = tensor_nelems(actual);
  const double root_mean_square = d->norm / sqrt((double)nelems);
  d->largest_error = 0;
  for (int64_t i = 0; i < nelems; i++) {
    const double a = load(actual, i), e = expected_of(actual, expected, m, i);
    const double absolute = distance(actual->type, a, e);
    if (absolute == 0 || is_left_out(m, i, absolute)) continue;
    const double error = isinf(absolute) ? absolute : absolute / fmax(fabs(e), root_mean_square);
    if (error > d->largest_error) d->largest_error = error;
  }
}

static void compare_elements(const Tensor *actual, const Tensor *expected, const Movement *m, ng_difference *out) {
  Squares difference = {0}, norm = {0};
  bool is_far = false;
  const int64_t nelems = tensor_nelems(actual);
  for (int64_t i = 0; i < nelems; i++) {
    const double a = load(actual, i), e = expected_of(actual, expected, m, i);
    const double absolute = distance(actual->type, a, e);
    if (distance(actual->type, e, load(expected, i)) > 0) out->nflipped++;
    if (absolute == 0 && isinf(a) && isfinite(e) && !out->noverflown++) out->worst_element = i;
    if (is_left_out(m, i, absolute)) {
      out->nleft_out++;
      continue;
    }
    if (isfinite(e)) squares_add(&norm, e);
    if (absolute == 0) continue;
    double ulp = isinf(absolute) ? absolute : absolute / spacing(actual->type, e);
    if (ulp > out->largest_ulp) {
      out->largest_ulp = ulp;
      out->worst_element = i;
    }
    if (isinf(absolute)) is_far = true;
    else squares_add(&difference, absolute);
  }
  set_difference(out, is_far ? INFINITY : squares_root(&difference), squares_root(&norm));
  if (out->distance > 0) set_largest_error(actual, expected, m, out);
}

// An empty difference with the limits of the type.
static ng_difference difference_of(Type type, double tolerance) {
  ng_difference d = {.tolerance = tolerance, .most_ulp = INFINITY, .worst_element = -1};
  if (tolerance >= 0) return d;
  d.most_ulp = default_most_ulp(type);
  d.tolerance = isinf(d.most_ulp) ? type_tolerance(type) : INFINITY;
  return d;
}

// A size of elements that few large ones do not raise: the geometric mean, without zeros.
static double typical_size(const Tensor *t) {
  double sum = 0, count = 0;
  for (int64_t i = 0; i < tensor_nelems(t); i++) {
    const double element = fabs(load(t, i));
    if (!isfinite(element) || element == 0) continue;
    sum += log(element);
    count++;
  }
  return count > 0 ? exp(sum / count) : 0;
}

bool has_far_element(const Tensor *actual, const Tensor *expected) {
  const double typical = typical_size(expected), tolerance = type_tolerance(actual->type);
  for (int64_t i = 0; i < tensor_nelems(actual); i++) {
    const double e = load(expected, i), absolute = distance(actual->type, load(actual, i), e);
    if (absolute > 0 && absolute > tolerance * fmax(fabs(e), typical)) return true;
  }
  return false;
}

// Noise is many times larger than rounding errors of f32 and f64, so that elements are wrong if they differ by more
// than it moves them, and typical ones, and by more than the tolerance of the output's type.
static void check_limits(const Tensor *actual, const Tensor *expected, const Movement *m, const Movement *limits,
                         ng_difference *d) {
  enum { TIMES_NOISE = 4 };
  const double typical = typical_size(expected), tolerance = type_tolerance(actual->type);
  for (int64_t i = 0; i < tensor_nelems(actual) && d->is_within; i++) {
    const double e = expected_of(actual, expected, m, i), absolute = distance(actual->type, load(actual, i), e);
    const double size = fmax(fabs(e), typical);
    if (absolute == 0 || is_left_out(m, i, absolute)) continue;
    d->is_within = absolute <= TIMES_NOISE * fmax(limits->moved[i], limits->typical) + tolerance * size;
    if (d->is_within) continue;
    d->worst_element = i;
    d->largest_error = absolute / size;
  }
}

enum { MANY = 50 }; // at most one element in MANY, plus one, is excluded

void difference_find(const Tensor *actual, const Tensor *expected, const Movement *m, const Movement *limits,
                     double magnitude, double tolerance, ng_difference *d) {
  const int64_t most_left_out = tensor_nelems(actual) / MANY + 1;
  *d = difference_of(actual->type, tolerance);
  compare_elements(actual, expected, m, d);
  if (d->nleft_out > most_left_out) { // too many are excluded: compare all elements
    m = NULL;
    *d = difference_of(actual->type, tolerance);
    compare_elements(actual, expected, m, d);
  }
  if (!d->is_within && isfinite(d->most_ulp) && d->distance <= magnitude) {
    d->most_ulp = INFINITY;
    d->tolerance = 1;
    set_difference(d, d->distance, magnitude);
  } else if (!d->is_within && isinf(d->most_ulp) && magnitude > d->norm) {
    set_difference(d, d->distance, magnitude);
  }
  set_largest_error(actual, expected, m, d);
  if (d->is_within && limits) check_limits(actual, expected, m, limits, d);
}

ng_status ng_tensor_compare(ng_context *ctx, const ng_tensor *actual, const ng_tensor *expected, double tolerance,
                            ng_difference *out) {
  Tensor a = tensor_of_api(actual), e = tensor_of_api(expected);
  bool is_same = a.rank == e.rank;
  for (int i = 0; is_same && i < a.rank; i++) is_same = a.extent[i] == e.extent[i];
  *out = difference_of(a.type, tolerance);
  if (!layout_is_valid(&a.layout, a.rank) || !layout_is_valid(&e.layout, e.rank))
    return argument_error(ctx, "expected valid layouts of the tensors");
  if (!is_same) {
    Call call = call_begin(ctx);
    error_at(&ctx->diagnostics, (Position){0}, "tensors of different shapes cannot be compared");
    return call_end(ctx, call);
  }
  compare_elements(&a, &e, NULL, out);
  return out->is_within ? NG_OK : NG_DIFFERENT;
}
