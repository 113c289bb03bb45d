// clang-format off

// Multiply-adds of the order of bf16 products, which is that of AMX's tdpbf16ps: operands that are subnormal are taken
// as zero, and a result below 2^-126 is a zero of its sign. The same for every ISA; follows vector.h and arithmetic.h.
//
// A result is compared with 2^-126 as x86 does: after rounding to 24 bits, as if exponents had no end. Rounded to f32's
// subnormals instead, all from 2^-126 - 2^-150 on would be 2^-126; but only those from 2^-126 - 2^-151 on are.
//
// x86 has a mode for that. Where other ISAs compute more, they need no mode, and flush_begin does nothing. Functions
// whose names contain `flush` are used between flush_begin and flush_end alone, and nothing else is. The compiler knows
// nothing of the mode: vectors that flushed sums begin with go through v_pin before, and the sums after.

static inline float f32_flush(float x) {
  const uint32_t u = f32_bits(x);
  return u & 0x7f800000 ? x : f32_from_bits(u & 0x80000000);
}

// The multiply-add `sum`, rounded to f32's subnormals, is not 0 and at most 2^-126. With a factor of 2^64 nothing here
// is subnormal, and nothing overflows: a product with digits that f32 has not is below 2^-102.
static V_FAR float f32_flush_small(float a, float b, float c, float sum) {
  const float scaled = f32_fma(a * 0x1p32F, b * 0x1p32F, c * 0x1p64F);
  return fabsf(scaled) < 0x1p-62F ? f32_from_bits(f32_bits(sum) & 0x80000000) : sum;
}

// Whether x is not 0, and at most 2^-126.
static inline int f32_is_small(float x) { return (f32_bits(x) << 1) - 1 < 0x01000000; }

static inline float f32_fma_flushed(float a, float b, float c) {
  a = f32_flush(a);
  b = f32_flush(b);
  c = f32_flush(c);
  const float sum = f32_fma(a, b, c);
  return f32_is_small(sum) ? f32_flush_small(a, b, c, sum) : sum;
}

// A sum of two f32 below 2^-126 is exact.
static inline float f32_add_flushed(float a, float b) { return f32_flush(f32_flush(a) + f32_flush(b)); }

// A part without its subnormals; where there is a mode, the part.
#ifndef V_FLUSH
#define V_FLUSH(x) ((v_part)((v_bits)(x) & ((((v_bits)(x) & 0x7f800000) != 0) | INT32_MIN)))
#endif

// Whether any lane of a comparison is true.
#ifndef V_ANY
#define V_ANY(m) (V_TRUTHS((v_bits)(m)) != 0)
#endif

#ifndef V_FMA_FLUSHED
static inline v_part v_part_fma_flushed(v_part a, v_part b, v_part c) {
  a = V_FLUSH(a);
  b = V_FLUSH(b);
  c = V_FLUSH(c);
  typedef uint32_t V_FULL words;
  v_part sum = V_FMA(a, b, c);
  if (__builtin_expect(V_ANY(((words)sum << 1) - 1 < 0x01000000), 0))
    for (int j = 0; j < V_LANES; j++) sum[j] = f32_fma_flushed(a[j], b[j], c[j]);
  return sum;
}
#endif

#ifndef V_FMA_FLUSHED
#define V_FMA_FLUSHED(a, b, c) v_part_fma_flushed(a, b, c)
#endif

#ifndef V_ADD_FLUSHED
#define V_ADD_FLUSHED(a, b) V_FLUSH(V_FLUSH(a) + V_FLUSH(b))
#endif

// a * b + c
static inline vec v_fma_flushed(vec a, vec b, vec c) {
  V_FOR_I a.p[i] = V_FMA_FLUSHED(a.p[i], b.p[i], c.p[i]);
  return a;
}

static inline vec v_add_flushed(vec a, vec b) { V_FOR_I a.p[i] = V_ADD_FLUSHED(a.p[i], b.p[i]); return a; }

// Keeps what computes the vector before it, and what uses the vector after it, as a change of the mode does.
#ifndef V_PIN
#define V_PIN(part) (void)(part)
#endif

static inline vec v_pin(vec a) { V_FOR_I V_PIN(a.p[i]); return a; }

#ifndef FLUSH_BEGIN
#define FLUSH_BEGIN() 0
#endif

#ifndef FLUSH_END
#define FLUSH_END(mode) (void)(mode)
#endif

// Returns the caller's mode, for flush_end to restore: between the two nothing is called that is not of this file.
static inline uint32_t flush_begin(void) { return FLUSH_BEGIN(); }

static inline void flush_end(uint32_t mode) { FLUSH_END(mode); }
