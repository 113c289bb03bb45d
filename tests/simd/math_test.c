// The elementary functions of the vocabulary: how far they are from libm's of the next wider type, in units in the
// last place, and what C says of special values. Prints a line `name hash` for each, as simd_test.c does.
//
// With --exhaustive: those of f32 of one operand over all 2^32 inputs, each with its largest error. With --bits: where
// the lines are those of another ISA, the errors are, too, and are not computed, which takes an emulator long.
#include "tests/effort.h"
#include "tests/simd/lanes.h"

enum { SAMPLES = 1 << 12 }; // of f64
static bool is_bits_only;
// Between two inputs of f32; prime to every power of 2. With all, 2^20 inputs of a function.
enum { STEP = 65537, STEP_OF_ALL = 4099 };

typedef struct Function {
  const char *name;
  void (*f32)(float *lanes);
  void (*f64)(double *lanes);
  double (*definition)(double);
  long double (*wide_definition)(long double);
  double f32_bound, f64_bound; // the largest error, in ulp, which docs/errors.md tells
  bool is_absolute;            // in ulp of 1
} Function;

#define FUNCTION(name)                                                                                                 \
  static void name##_f32(float *lanes) {                                                                               \
    v_store(lanes, v_##name(v_load(lanes)));                                                                           \
  }                                                                                                                    \
  static void name##_f64(double *lanes) {                                                                              \
    d_store(lanes, d_##name(d_load(lanes)));                                                                           \
  }

FUNCTION(exp)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log1p)
FUNCTION(tanh)
FUNCTION(erf)
FUNCTION(sin)
FUNCTION(cos)
FUNCTION(gelu)
FUNCTION(gelu_slope)
FUNCTION(floor)
FUNCTION(round)

static double gelu(double x) {
  return x < -100 ? -0.0 : x * erfc(-x * M_SQRT1_2) / 2;
}
static long double gelul(long double x) {
  return x < -200 ? -0.0L : x * erfcl(-x * 0.70710678118654752440L) / 2;
}
static double gelu_slope(double x) {
  x = x < -100 ? -100 : x > 100 ? 100 : x;
  return erfc(-x * M_SQRT1_2) / 2 + x * exp(-x * x / 2) * (M_2_SQRTPI * M_SQRT1_2 / 2);
}
static long double gelu_slopel(long double x) {
  const long double root = 0.70710678118654752440L, two_over_root_pi = 1.12837916709551257390L;
  x = x < -200 ? -200 : x > 200 ? 200 : x;
  return erfcl(-x * root) / 2 + x * expl(-x * x / 2) * (two_over_root_pi * root / 2);
}

enum { EXP, EXPM1, LOG, LOG1P, TANH, ERF, SIN, COS, GELU, GELU_SLOPE, FLOOR, ROUND, FUNCTION_COUNT };
static const Function functions[FUNCTION_COUNT] = {
    [EXP] = {"exp", exp_f32, exp_f64, exp, expl, 1, 1},
    [EXPM1] = {"expm1", expm1_f32, expm1_f64, expm1, expm1l, 1.5, 2},
    [LOG] = {"log", log_f32, log_f64, log, logl, 1, 1},
    [LOG1P] = {"log1p", log1p_f32, log1p_f64, log1p, log1pl, 1.75, 1.5},
    [TANH] = {"tanh", tanh_f32, tanh_f64, tanh, tanhl, 1.5, 1.5},
    [ERF] = {"erf", erf_f32, erf_f64, erf, erfl, 1.75, 2},
    [SIN] = {"sin", sin_f32, sin_f64, sin, sinl, 0.51, 0.8},
    [COS] = {"cos", cos_f32, cos_f64, cos, cosl, 0.51, 0.8},
    [GELU] = {"gelu", gelu_f32, gelu_f64, gelu, gelul, 5.5, 8},
    [GELU_SLOPE] = {"gelu_slope", gelu_slope_f32, gelu_slope_f64, gelu_slope, gelu_slopel, 2.2, 2, true},
    [FLOOR] = {"floor", floor_f32, floor_f64, floor, floorl, 0, 0},
    [ROUND] = {"round", round_f32, round_f64, nearbyint, nearbyintl, 0, 0},
};

// ---- Errors

// |got - wanted| in units of the last place that wanted has in a type; NAN where one is a NaN or of another sign.
// Beyond the type's largest number, infinity stands for the power of 2 there.
static double error_f32(float got, double wanted) {
  if (isnan(got) && isnan(wanted)) return 0;
  if (isnan(got) || isnan(wanted) || !signbit(got) != !signbit(wanted)) return (double)NAN;
  double a = isinf(got) ? 0x1p128 : fabs((double)got), b = fabs(wanted) < 0x1p128 ? fabs(wanted) : 0x1p128;
  uint64_t exponent = f64_bits(b) >> 52, per_ulp = (2 * 1023 + 23 - exponent) << 52; // 2^(23 - exponent)
  double scale;
  memcpy(&scale, &per_ulp, sizeof scale);
  return fabs(a - b) * (b < 0x1p-126 ? 0x1p149 : scale);
}

static double error_f64(double got, long double wanted) {
  int exponent;
  if (isnan(got) && isnan(wanted)) return 0;
  if (isnan(got) || isnan(wanted) || !signbit(got) != !signbit(wanted)) return (double)NAN;
  long double a = isinf(got) ? 0x1p1024L : fabsl((long double)got), b = fminl(fabsl(wanted), 0x1p1024L);
  (void)frexpl(b, &exponent);
  return a == b ? 0 : (double)(fabsl(a - b) * (exponent < -1021 ? 0x1p1074L : ldexpl(1, 53 - exponent)));
}

static double error_of_1(long double got, long double wanted, double per_unit) {
  if (isnan(got) && isnan(wanted)) return 0;
  return (double)fabsl(got - wanted) * per_unit;
}

typedef struct Worst {
  double error, at, got;
} Worst;

static void worst_add(Worst *worst, double error, double at, double got) {
  if (!(error <= worst->error) && !isnan(worst->error)) *worst = (Worst){error, at, got};
}

static void worst_expect(const Worst *worst, double bound) {
  if (worst->error <= bound) return;
  failures++;
  fprintf(stderr, "%s(%a) gave %a, which is off by %g ulp, more than %g\n", test, worst->at, worst->got, worst->error,
          bound);
}

// Every step-th f32.
static Worst f32_worst(const Function *f, uint64_t step) {
  Worst worst = {0};
  for (uint64_t first = 0; first < 1ULL << 32; first += LANES * step) {
    float x[LANES], y[LANES];
    for (uint64_t j = 0; j < LANES; j++) x[j] = f32_from_bits((uint32_t)(first + j * step));
    memcpy(y, x, sizeof y);
    f->f32(y);
    for (int j = 0; j < LANES; j++) {
      if (step > 1) hash_bits(f64_bits((double)y[j]));
      if (is_bits_only) continue;
      double wanted = f->definition((double)x[j]);
      double error =
          f->is_absolute ? error_of_1((long double)y[j], (long double)wanted, 0x1p23) : error_f32(y[j], wanted);
      worst_add(&worst, error, (double)x[j], (double)y[j]);
    }
  }
  return worst;
}

// In [-1, 1)
static double next_fraction(void) {
  return ldexp((double)((int64_t)next() >> 11), -52);
}

// In turn: anything; where most functions bend; where e^x has a value; near 0 and 1, in all magnitudes.
static double next_argument(int turn) {
  switch (turn % 5) {
  case 0: return next_f64();
  case 1: return 4 * next_fraction();
  case 2: return 750 * next_fraction();
  case 3: {
    int exponent = (int)(next() % 64);
    return ldexp(next_fraction(), -exponent);
  }
  default: {
    int exponent = (int)(next() % 64);
    return 1 + ldexp(next_fraction(), -exponent);
  }
  }
}

static Worst f64_worst(const Function *f) {
  Worst worst = {0};
  for (int i = 0; i < SAMPLES; i++) {
    double x[LANES], y[LANES];
    for (int j = 0; j < LANES; j++) x[j] = next_argument(i + j);
    memcpy(y, x, sizeof y);
    f->f64(y);
    for (int j = 0; j < LANES; j++) {
      hash_bits(f64_bits(y[j]));
      if (is_bits_only) continue;
      long double wanted = f->wide_definition((long double)x[j]);
      worst_add(&worst, f->is_absolute ? error_of_1((long double)y[j], wanted, 0x1p52) : error_f64(y[j], wanted), x[j],
                y[j]);
    }
  }
  return worst;
}

static void test_errors(void) {
  for (int i = 0; i < FUNCTION_COUNT; i++) {
    const Function *f = &functions[i];
    begin(f->name);
    Worst worst = f32_worst(f, takes_all() ? STEP_OF_ALL : STEP);
    worst_expect(&worst, f->f32_bound);
    worst = f64_worst(f);
    worst_expect(&worst, f->f64_bound);
    end();
  }
}

static void test_exhaustively(void) {
  for (int i = 0; i < FUNCTION_COUNT; i++) {
    test = functions[i].name;
    Worst worst = f32_worst(&functions[i], 1);
    printf("%-10s off by up to %.4f ulp, at %a; bound %g\n", test, worst.error, worst.at, functions[i].f32_bound);
    fflush(stdout);
    worst_expect(&worst, functions[i].f32_bound);
  }
}

// ---- Special values

static void expect_lanes(const Function *f, double x, double wanted) {
  float narrow[LANES];
  double wide[LANES];
  for (int j = 0; j < LANES; j++) narrow[j] = (float)x, wide[j] = x;
  f->f32(narrow);
  f->f64(wide);
  for (int j = 0; j < LANES; j++) {
    expect_number((double)narrow[j], wanted);
    expect_number(wide[j], wanted);
  }
}

// Both widths.
static void test_special_values(void) {
  static const double inf = (double)INFINITY, nan = (double)NAN, least = 0x1p-149, tiny = 0x1p-130;
  const struct {
    int function;
    double x, wanted;
  } rows[] = {
      {EXP, 0, 1},           {EXP, -0.0, 1},
      {EXP, inf, inf},       {EXP, -inf, 0},
      {EXP, 1e4, inf},       {EXP, -1e4, 0},
      {EXP, least, 1},       {EXPM1, 0, 0},
      {EXPM1, -0.0, -0.0},   {EXPM1, inf, inf},
      {EXPM1, -inf, -1},     {EXPM1, 1e4, inf},
      {EXPM1, -1e4, -1},     {EXPM1, least, least},
      {EXPM1, -tiny, -tiny}, {LOG, 1, 0},
      {LOG, 0, -inf},        {LOG, -0.0, -inf},
      {LOG, inf, inf},       {LOG, -1, nan},
      {LOG, -least, nan},    {LOG, -inf, nan},
      {LOG1P, 0, 0},         {LOG1P, -0.0, -0.0},
      {LOG1P, -1, -inf},     {LOG1P, inf, inf},
      {LOG1P, -1.5, nan},    {LOG1P, -inf, nan},
      {LOG1P, least, least}, {LOG1P, -tiny, -tiny},
      {TANH, 0, 0},          {TANH, -0.0, -0.0},
      {TANH, inf, 1},        {TANH, -inf, -1},
      {TANH, 100, 1},        {TANH, -100, -1},
      {TANH, least, least},  {TANH, -tiny, -tiny},
      {ERF, 0, 0},           {ERF, -0.0, -0.0},
      {ERF, inf, 1},         {ERF, -inf, -1},
      {ERF, 100, 1},         {ERF, -100, -1},
      {SIN, 0, 0},           {SIN, -0.0, -0.0},
      {SIN, inf, nan},       {SIN, -inf, nan},
      {SIN, least, least},   {SIN, -tiny, -tiny},
      {COS, 0, 1},           {COS, -0.0, 1},
      {COS, inf, nan},       {COS, -inf, nan},
      {COS, least, 1},       {COS, -tiny, 1},
      {GELU, 0, 0},          {GELU, -0.0, -0.0},
      {GELU, inf, inf},      {GELU, -inf, -0.0},
      {GELU, 50, 50},        {GELU, -50, -0.0},
      {GELU_SLOPE, inf, 1},  {GELU_SLOPE, -inf, -0.0},
      {GELU_SLOPE, 0, 0.5},  {GELU_SLOPE, -0.0, 0.5},
      {GELU_SLOPE, 50, 1},   {GELU_SLOPE, -50, -0.0},
      {FLOOR, -0.0, -0.0},   {FLOOR, 0.5, 0},
      {FLOOR, -0.5, -1},     {FLOOR, 2.5, 2},
      {FLOOR, -3, -3},       {FLOOR, -tiny, -1},
      {FLOOR, inf, inf},     {FLOOR, 0x1.fffffep22, 0x1.fffffcp22},
      {ROUND, -0.0, -0.0},   {ROUND, 0.5, 0},
      {ROUND, -0.5, -0.0},   {ROUND, 1.5, 2},
      {ROUND, 2.5, 2},       {ROUND, -2.5, -2},
      {ROUND, -inf, -inf},   {ROUND, 0x1.fffffep22, 0x1p23},
      {ROUND, 0.75, 1},      {ROUND, 0x1p100, 0x1p100},
  };
  begin("special values");
  for (int i = 0; i < FUNCTION_COUNT; i++) expect_lanes(&functions[i], nan, nan);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    expect_lanes(&functions[rows[i].function], rows[i].x, rows[i].wanted);
  end();
}

// Arguments next to multiples of pi/2, of which much cancels, and at both sides of where the way to reduce changes.
static void test_far_angles(void) {
  static const double angles[] = {0x1.6ac5b262ca1ffp849, // the f64 that is nearest to one
                                  0x1.f37c8ap95,         // the f32
                                  0x1.921fb54442d18p0,   0x1.921fb54442d19p0,
                                  0x1.2d97c7f3321d2p2,   0x1.921fb54442d18p25,
                                  0x1.fffffffffffffp25,  0x1p26,
                                  0x1.fffffep127,        DBL_MAX};
  begin("far angles");
  for (int i = SIN; i <= COS; i++) {
    const Function *f = &functions[i];
    Worst narrow = {0}, wide = {0};
    for (size_t k = 0; k < sizeof angles / sizeof *angles; k++) {
      double x[LANES] = {angles[k], -angles[k]};
      float y[LANES] = {(float)angles[k], -(float)angles[k]};
      const double rounded = (double)y[0];
      f->f64(x);
      f->f32(y);
      for (int j = 0; j < 2; j++) {
        hash_bits(f64_bits(x[j]));
        worst_add(&wide, error_f64(x[j], f->wide_definition(j ? -angles[k] : angles[k])), angles[k], x[j]);
        worst_add(&narrow, error_f32(y[j], f->definition(j ? -rounded : rounded)), rounded, (double)y[j]);
      }
    }
    worst_expect(&narrow, f->f32_bound);
    worst_expect(&wide, f->f64_bound);
  }
  end();
}

// Of the f32 around the points where a result first is 0, 1 or infinity, none gives less than the one below it.
static void test_range_ends(void) {
  static const struct {
    int function;
    float x;
  } rows[] = {
      {EXP, 0x1.62e43p6F},   {EXP, -0x1.9fe368p6F}, {EXP, -0x1.5d58ap6F}, {EXPM1, 0x1.62e43p6F}, {EXPM1, -17.3F},
      {LOG, 0x1p-126F},      {LOG, 0x1p-140F},      {LOG, 0x1.fffp127F},  {LOG1P, -0.9999F},     {TANH, 9.01F},
      {LOG1P, 0x1.fffp127F}, {TANH, 0x1p-126F},     {GELU, 5.5F},         {ERF, 0.85F},          {ERF, 3.8F},
  };
  begin("range ends");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const Function *f = &functions[rows[i].function];
    float x = rows[i].x, below = -INFINITY;
    for (int k = 0; k < 500; k++) x = nextafterf(x, -INFINITY);
    for (int k = 0; k < 1000; k += LANES) {
      float lanes[LANES];
      for (int j = 0; j < LANES; j++) lanes[j] = x, x = nextafterf(x, INFINITY);
      f->f32(lanes);
      for (int j = 0; j < LANES; j++) {
        hash_bits(f64_bits((double)lanes[j]));
        expect(lanes[j] >= below, (double)lanes[j], (double)below);
        below = lanes[j];
      }
    }
  }
  end();
}

// Left of its zero gelu_slope is as good as gelu, relative to its own size, down to where it underflows.
static void test_gelu_tails(void) {
  static const int tails[] = {GELU, GELU_SLOPE};
  begin("gelu tails");
  for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
    const Function *f = &functions[tails[i]];
    Worst worst = {0};
    const int nsteps = (int)(14 / (LANES * 0x1p-12)); // from -2 to -16
    for (int step = 0; step < nsteps; step++) {
      const float x = -2 - (float)step * (LANES * 0x1p-12F);
      float lanes[LANES];
      for (int j = 0; j < LANES; j++) lanes[j] = x - (float)j * 0x1.01p-12F;
      f->f32(lanes);
      for (int j = 0; j < LANES; j++) {
        double at = (double)(x - (float)j * 0x1.01p-12F);
        worst_add(&worst, error_f32(lanes[j], f->definition(at)), at, (double)lanes[j]);
      }
    }
    worst_expect(&worst, functions[GELU].f32_bound);
  }
  end();
}

// ---- pow

// An exponent that makes about e^goal of x, by no function of libm's: the inputs are the same everywhere.
static double exponent_for(double x, double goal) {
  int exponent;
  (void)frexp(x, &exponent);
  return goal / (exponent ? exponent : 0.3);
}

static void next_pair(int turn, double range, double *x, double *y) {
  *x = next_argument(turn);
  *y = turn % 3 ? next_argument(turn / 3) : (double)((int)(next() % 41) - 20);
  if (turn % 2) *x = fabs(*x), *y = exponent_for(*x, range * next_fraction());
}

static void test_pow(void) {
  Worst narrow = {0}, wide = {0};
  begin("pow");
  for (int i = 0; i < 4 * SAMPLES; i++) {
    float x[LANES], y[LANES], z[LANES];
    for (int j = 0; j < LANES; j++) {
      double a, b;
      next_pair(i + j, 105, &a, &b);
      x[j] = (float)a, y[j] = (float)b;
    }
    v_store(z, v_pow(v_load(x), v_load(y)));
    for (int j = 0; j < LANES; j++) {
      hash_bits(f64_bits((double)z[j]));
      if (is_bits_only) continue;
      worst_add(&narrow, error_f32(z[j], pow((double)x[j], (double)y[j])), (double)x[j], (double)z[j]);
    }
  }
  worst_expect(&narrow, 0.51);
  for (int i = 0; i < SAMPLES; i++) {
    double x[LANES], y[LANES], z[LANES];
    for (int j = 0; j < LANES; j++) next_pair(i + j, 750, &x[j], &y[j]);
    d_store(z, d_pow(d_load(x), d_load(y)));
    for (int j = 0; j < LANES; j++) {
      hash_bits(f64_bits(z[j]));
      if (is_bits_only) continue;
      worst_add(&wide, error_f64(z[j], powl((long double)x[j], (long double)y[j])), x[j], z[j]);
    }
  }
  worst_expect(&wide, 1.25);
  end();
}

// Annex F of C17, F.10.4.4, and powers that are exact.
static void test_special_powers(void) {
  static const double inf = (double)INFINITY, nan = (double)NAN;
  const double rows[][3] = {
      {0, -3, inf},        {-0.0, -3, -inf},
      {0, -2, inf},        {-0.0, -2, inf},
      {0, -0.5, inf},      {-0.0, -0.5, inf},
      {0, -inf, inf},      {-0.0, -inf, inf},
      {0, 3, 0},           {-0.0, 3, -0.0},
      {0, 2, 0},           {-0.0, 2, 0},
      {-0.0, 0.5, 0},      {-1, inf, 1},
      {-1, -inf, 1},       {1, nan, 1},
      {1, inf, 1},         {nan, 0, 1},
      {nan, -0.0, 1},      {inf, 0, 1},
      {0, 0, 1},           {-2, 0, 1},
      {-2, 0.5, nan},      {-2, -1.5, nan},
      {0.5, -inf, inf},    {-0.5, -inf, inf},
      {2, -inf, 0},        {-2, -inf, 0},
      {0.5, inf, 0},       {-0.5, inf, 0},
      {2, inf, inf},       {-2, inf, inf},
      {-inf, -3, -0.0},    {-inf, -2, 0},
      {-inf, -0.5, 0},     {-inf, 3, -inf},
      {-inf, 2, inf},      {-inf, 0.5, inf},
      {inf, -1, 0},        {inf, 0.5, inf},
      {nan, 1, nan},       {-1, nan, nan},
      {2, nan, nan},       {nan, nan, nan},
      {3, 2, 9},           {-3, 3, -27},
      {-3, 2, 9},          {16, 0.25, 2},
      {2, -140, 0x1p-140}, {2, 127, 0x1p127},
      {4, 0.5, 2},         {9, 1.5, 27},
      {8, -2, 0x1p-6},     {-1, 0x1p23, 1},
      {-1, 8388607, -1},   {-2, 9, -512},
      {7, 1, 7},           {0x1.99999ap-4, 1, 0x1.99999ap-4},
      {10, 10, 1e10},      {-2, 1e4, inf},
      {-2, 10001, -inf},   {-2, -10001, -0.0},
      {-1, 0x1p100, 1},    {0x1p-120, -1, 0x1p120},
  };
  begin("special powers");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const double *row = rows[i];
    expect_number((double)v_lane_0(v_pow(v_set((float)row[0]), v_set((float)row[1]))), (double)(float)row[2]);
    expect_number(d_lane_0(d_pow(d_set(row[0]), d_set(row[1]))), row[2]);
  }
  end();
}

int main(int argc, char **argv) {
  is_bits_only = argc > 1 && strcmp(argv[1], "--bits") == 0;
  if (argc > 1 && !is_bits_only) {
    test_exhaustively();
  } else {
    test_errors();
    test_special_values();
    test_far_angles();
    test_range_ends();
    test_gelu_tails();
    test_pow();
    test_special_powers();
  }
  if (failures) fprintf(stderr, "math_test: %d failures\n", failures);
  return failures != 0;
}
