// The functions of flush.h against a model of tdpbf16ps, lane by lane; that they leave the caller's modes as they were;
// and, on processors that have it, vdpbf16ps against the same model. As simd_test.c otherwise.
#include "tests/simd/flush.h"

static void expect_f32(float got, float wanted) {
  expect_number((double)got, (double)wanted);
}

// One function as compilers meet it in a kernel: what comes before and after the mode is computed without it.
static void multiply_add(float *to, const float *a, const float *b, const float *c) {
  const vec before = v_mul(v_load(c), v_set(0x1p-10F)); // subnormal where c is near the least normal number
  const uint32_t mode = flush_begin();
  const vec sum = v_pin(v_fma_flushed(v_load(a), v_load(b), v_pin(v_load(c))));
  flush_end(mode);
  v_store(to, sum);
  v_store(to + LANES, v_sub(v_mul(v_load(c), v_set(0x1p-10F)), before)); // 0, or NaN
}

static void add(float *to, const float *a, const float *b) {
  const uint32_t mode = flush_begin();
  const vec sum = v_pin(v_add_flushed(v_pin(v_load(a)), v_load(b)));
  flush_end(mode);
  v_store(to, sum);
}

static void test_multiply_add(int count) {
  begin("v_fma_flushed");
  int nhard = 0, nbelow = 0;
  for (int i = 0; i < count; i += LANES) {
    float a[LANES], b[LANES], c[LANES], lanes[2 * LANES];
    for (int j = 0; j < LANES; j++) {
      uint16_t x, y;
      next_bf16_multiply_add(&x, &y, &c[j]);
      a[j] = of_bf16(x);
      b[j] = of_bf16(y);
    }
    multiply_add(lanes, a, b, c);
    for (int j = 0; j < LANES; j++) {
      const float wanted = model_fma(a[j], b[j], c[j]);
      expect_f32(lanes[j], wanted);
      expect_f32(f32_fma_flushed(a[j], b[j], c[j]), wanted);
      expect(!(lanes[LANES + j] < 0 || lanes[LANES + j] > 0), (double)lanes[LANES + j], 0);
      // Two ways that are wrong: to flush what was rounded to f32's subnormals; to flush before rounding.
      const double exact = fabs((double)a[j] * (double)b[j] + (double)c[j]);
      nhard += wanted == 0 && fabsf(fmaf(a[j], b[j], c[j])) == LEAST;
      nbelow += fabsf(wanted) == LEAST && exact < (double)LEAST;
    }
  }
  expect(nhard > count / 100, nhard, count / 100.0);
  expect(nbelow > count / 100, nbelow, count / 100.0);
  end();
}

// By hand, with s for 2^-151: 2^-126 less 2 s, 3/2 s and 1.0078125 s are 0; less s, half of it or nothing, 2^-126.
static void test_cases(void) {
  // clang-format off
  static const struct { float a, b, c, sum; } cases[] = {
      {0x1p-75F, -0x1p-75F, 0x1p-126F, 0},
      {0x1p-75F, -0x1.8p-76F, 0x1p-126F, 0},
      {0x1p-75F, -0x1.02p-76F, 0x1p-126F, 0},
      {0x1p-75F, -0x1p-76F, 0x1p-126F, 0x1p-126F},
      {0x1p-75F, -0x1p-77F, 0x1p-126F, 0x1p-126F},
      {0x1p-75F, 0x1.02p-76F, -0x1p-126F, -0.0F},
      {0x1p-75F, 0x1p-76F, -0x1p-126F, -0x1p-126F},
      {0, 1, 0x1p-126F, 0x1p-126F},
      {1, 0x1p-127F, 0, 0},                       // a subnormal operand
      {(float)INFINITY, 0x1p-127F, 1, NAN},       // which is 0
      {1, 1, 0x1p-127F, 1},
      {0, 1, -0x1p-127F, 0},                      // -0 and 0
      {-0x1p-64F, 0x1p-63F, 0, -0.0F},            // a subnormal result
      {0x1p-63F, 0x1p-63F, 0, 0x1p-126F},
  };
  // clang-format on
  begin("cases");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    float a[LANES], b[LANES], c[LANES], lanes[2 * LANES];
    for (int j = 0; j < LANES; j++) a[j] = cases[i].a, b[j] = cases[i].b, c[j] = cases[i].c;
    multiply_add(lanes, a, b, c);
    for (int j = 0; j < LANES; j++) expect_f32(lanes[j], cases[i].sum);
    expect_f32(model_fma(a[0], b[0], c[0]), cases[i].sum);
  }
  end();
}

static void test_add(int count) {
  begin("v_add_flushed");
  for (int i = 0; i < count; i += LANES) {
    float a[LANES], b[LANES], lanes[LANES];
    for (int j = 0; j < LANES; j++) {
      const uint64_t bits = next();
      a[j] = f32_from_bits((uint32_t)bits & (bits & 1 ? UINT32_MAX : 0x81ffffff));
      b[j] = f32_from_bits((uint32_t)(bits >> 32) & (bits & 1 ? UINT32_MAX : 0x81ffffff));
    }
    add(lanes, a, b);
    for (int j = 0; j < LANES; j++) {
      const float wanted = model_add(a[j], b[j]);
      expect_f32(lanes[j], wanted);
      expect_f32(f32_add_flushed(a[j], b[j]), wanted);
    }
  }
  end();
}

// ---- Runs

enum { RUN = 32 };

// 16 sums of a run: of a's elements and b's rows.
static vec run_of(const uint16_t *a, const uint16_t (*b)[LANES]) {
  const uint32_t mode = flush_begin();
  vec sums[2];
  for (int odd = 0; odd < 2; odd++) {
    vec sum = v_pin(v_set(0));
    for (int k = odd; k < RUN; k += 2) sum = v_fma_flushed(v_set(f32_from_bf16(a[k])), v_load_bf16(b[k]), sum);
    sums[odd] = sum;
  }
  const vec sum = v_pin(v_add_flushed(sums[0], sums[1]));
  flush_end(mode);
  return sum;
}

#if defined __x86_64__
static uint32_t mode_now(void) {
  uint32_t mode;
  __asm__ volatile("stmxcsr %0" : "=m"(mode));
  return mode;
}

static void set_mode(uint32_t mode) {
  __asm__ volatile("ldmxcsr %0" : : "m"(mode));
}
#else
static uint32_t mode_now(void) {
  return 0;
}

static void set_mode(uint32_t mode) {
  (void)mode;
}
#endif

// A caller's function between two runs: its arithmetic has subnormals, in its own mode, of which `kept` bits are as
// they were before.
static void between(uint32_t mode, uint32_t kept) {
  static volatile float least = 0x1p-126F, half = 0.5F;
  expect((mode_now() & kept) == (mode & kept), mode_now(), mode);
  const float x = least * half;
  expect((x > 0) == !(mode & 0x8000), (double)x, 0x1p-127); // FTZ
  set_mode(mode);
}

static void test_runs(void) {
  // The usual mode; flags that are set; rounding up; that of -ffast-math; exceptions that are not masked. Where
  // flushing needs no mode, the caller's rounding counts, too.
  static const uint32_t modes[] = {0x1f80, 0x1fbf, 0x5f80, 0x9fc0, 0x0f80};
  const uint32_t own = flush_begin();
  flush_end(own);
  begin("runs");
  for (size_t i = 0; i < 4000; i++) {
    const uint32_t usual = mode_now(), mode = usual ? modes[i % (own ? sizeof modes / sizeof *modes : 2)] : 0;
    uint16_t a[2][RUN], b[2][RUN][LANES];
    float sums[2][LANES], unused;
    for (int r = 0; r < 2; r++)
      for (int k = 0; k < RUN; k++)
        for (int j = 0; j < LANES; j++) next_bf16_multiply_add(&a[r][k], &b[r][k][j], &unused);
    set_mode(mode);
    for (int r = 0; r < 2; r++) {
      const vec sum = run_of(a[r], (const uint16_t(*)[LANES])b[r]);
      between(mode, own ? UINT32_MAX : ~0x3fU); // flags of exceptions
      v_store(sums[r], sum);
    }
    set_mode(usual);
    for (int r = 0; r < 2; r++)
      for (int j = 0; j < LANES; j++) {
        float even = 0, odd = 0;
        for (int k = 0; k < RUN; k += 2) {
          even = model_fma(of_bf16(a[r][k]), of_bf16(b[r][k][j]), even);
          odd = model_fma(of_bf16(a[r][k + 1]), of_bf16(b[r][k + 1][j]), odd);
        }
        expect_f32(sums[r][j], model_add(even, odd));
      }
  }
  end();
}

// ---- The processor's own products

// c and the products of two pairs, that of the upper elements first.
static void multiply_pairs(float *to, const uint16_t *a, const uint16_t *b, const float *c) {
#ifdef H_AS_FULL // avx512_bf16.h
  v_part sum, x, y;
  memcpy(&sum, c, sizeof sum);
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
  memcpy(to, &sum, sizeof sum);
#else
  for (ptrdiff_t j = 0; j < LANES; j++) {
    const float first = f32_fma_flushed(f32_from_bf16(a[2 * j + 1]), f32_from_bf16(b[2 * j + 1]), c[j]);
    to[j] = f32_fma_flushed(f32_from_bf16(a[2 * j]), f32_from_bf16(b[2 * j]), first);
  }
#endif
}

static void test_pairs(int count) {
  begin("pairs");
  for (int i = 0; i < count; i += LANES) {
    uint16_t a[2 * LANES], b[2 * LANES];
    float c[LANES], unused, lanes[LANES];
    for (ptrdiff_t j = 0; j < LANES; j++) {
      next_bf16_multiply_add(&a[2 * j], &b[2 * j], &unused);
      next_bf16_multiply_add(&a[2 * j + 1], &b[2 * j + 1], &c[j]);
    }
    multiply_pairs(lanes, a, b, c);
    for (ptrdiff_t j = 0; j < LANES; j++) {
      const float first = model_fma(of_bf16(a[2 * j + 1]), of_bf16(b[2 * j + 1]), c[j]);
      expect_f32(lanes[j], model_fma(of_bf16(a[2 * j]), of_bf16(b[2 * j]), first));
    }
  }
  end();
}

int main(int argc, char **argv) {
  const int count = argc > 1 && strcmp(argv[1], "--exhaustive") == 0 ? 1 << 26 : 1 << 18;
  test_cases();
  test_multiply_add(count);
  test_add(count);
  test_runs();
  test_pairs(count);
  if (failures) fprintf(stderr, "flush_test: %d failures\n", failures);
  return failures != 0;
}
