// Independent chains of multiply-adds, one loop for each vector width. There are more chains than a processor can have
// multiply-adds in flight (4 cycles of latency times 2 units), and few enough for 16 registers.
#include "frontend/api/peak.h"

#include "ir/support/threads.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// Each thread has several loops, so that none waits long for another.
enum { CHAINS = 12, ROUNDS = 1 << 13, LOOPS_EACH = 4 };

// The compiler would merge chains with equal first values, and remove sums that are not used. Values approach 1, so
// they neither overflow nor become denormal.
static volatile float seed = 1;
static _Thread_local volatile float sink;

#define DEFINE_LOOP(name, V, SPLAT, FMA, FIRST)                                                                        \
  static void name(void) {                                                                                             \
    const float s = seed;                                                                                              \
    const V half = SPLAT(s * 0.5F);                                                                                    \
    V a = SPLAT(s), b = SPLAT(s + 1), c = SPLAT(s + 2), d = SPLAT(s + 3), e = SPLAT(s + 4), f = SPLAT(s + 5),          \
      g = SPLAT(s + 6), h = SPLAT(s + 7), i = SPLAT(s + 8), j = SPLAT(s + 9), k = SPLAT(s + 10), l = SPLAT(s + 11);    \
    for (int round = 0; round < ROUNDS; round++) {                                                                     \
      a = FMA(a, half, half);                                                                                          \
      b = FMA(b, half, half);                                                                                          \
      c = FMA(c, half, half);                                                                                          \
      d = FMA(d, half, half);                                                                                          \
      e = FMA(e, half, half);                                                                                          \
      f = FMA(f, half, half);                                                                                          \
      g = FMA(g, half, half);                                                                                          \
      h = FMA(h, half, half);                                                                                          \
      i = FMA(i, half, half);                                                                                          \
      j = FMA(j, half, half);                                                                                          \
      k = FMA(k, half, half);                                                                                          \
      l = FMA(l, half, half);                                                                                          \
    }                                                                                                                  \
    sink = FIRST(((a + b) + (c + d)) + ((e + f) + (g + h)) + ((i + j) + (k + l)));                                     \
  }

typedef float Quad __attribute__((vector_size(16)));
#define SPLAT_QUAD(x) ((Quad){(x), (x), (x), (x)})
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#define FIRST_OF(v) ((v)[0])
DEFINE_LOOP(loop_quads, Quad, SPLAT_QUAD, MULTIPLY_ADD, FIRST_OF)

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) DEFINE_LOOP(loop_avx2, __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_cvtss_f32)
    __attribute__((target("avx512f")))
    DEFINE_LOOP(loop_avx512, __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_cvtss_f32)
#elif defined(__aarch64__)
#define FMA_NEON(a, b, c) vfmaq_f32((c), (a), (b))
DEFINE_LOOP(loop_neon, float32x4_t, vdupq_n_f32, FMA_NEON, FIRST_OF)
#endif

        typedef struct Peak {
  const char *isa;
  void (*loop)(void);
  int lanes;
} Peak;

static const Peak peaks[] = {
#if defined(__x86_64__)
    {"avx2", loop_avx2, 8},
    {"avx512", loop_avx512, 16},
    {"avx512_bf16", loop_avx512, 16},
#elif defined(__aarch64__)
    {"neon", loop_neon, 4},
#endif
    {"scalar", loop_quads, 4},
};
enum { NPEAKS = sizeof peaks / sizeof *peaks };

static const Peak *peak_of(const char *isa) {
  size_t i = 0;
  while (i < NPEAKS - 1 && strcmp(peaks[i].isa, isa) != 0) i++;
  return &peaks[i];
}

static void run_loop(const void *peak, size_t number) {
  (void)number;
  ((const Peak *)peak)->loop();
}

void peak_run(const char *isa, int threads) {
  threads_for(threads, (size_t)threads * LOOPS_EACH, run_loop, peak_of(isa));
}

double peak_operations(const char *isa, int threads) {
  return 2.0 * CHAINS * ROUNDS * peak_of(isa)->lanes * threads * LOOPS_EACH;
}
