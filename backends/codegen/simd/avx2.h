// clang-format off

// AVX2 with FMA and F16C: a part is a ymm register.

#define V_FULL __attribute__((vector_size(32)))

#define V_HALF __attribute__((vector_size(16)))

#define V_PARTS 2

#define D_PARTS 4

#define V_EACH(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)

#define D_EACH(f) f(0), f(1), f(2), f(3)

#if !defined __clang__ || __clang_major__ < 18
#define V_FMA(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#endif

#if !defined __clang__ || __clang_major__ < 18
#define D_FMA(a, b, c) __builtin_ia32_vfmaddpd256(a, b, c)
#endif

// In assembler, because the builtin differs between gcc, clang and their versions.
#define V_HOLD(part) __asm__("" : "+x"(part))

#define V_SQRT(a) __extension__({ v_part r_; __asm__("vsqrtps %1, %0" : "=x"(r_) : "x"(a)); r_; })

#define D_SQRT(a) __extension__({ d_part r_; __asm__("vsqrtpd %1, %0" : "=x"(r_) : "x"(a)); r_; })

#ifndef __clang__
#define V_MAX(a, b) __builtin_ia32_maxps256(a, b)
#endif

#ifndef __clang__
#define V_MIN(a, b) __builtin_ia32_minps256(a, b)
#endif

#ifndef __clang__
#define D_MAX(a, b) __builtin_ia32_maxpd256(a, b)
#endif

#ifndef __clang__
#define D_MIN(a, b) __builtin_ia32_minpd256(a, b)
#endif

// d_first in the type that the builtins take.
#define D_FIRST(i, n) ((long long V_FULL)d_first(i, n))

// A masked load of a whole register is slower than a plain load.
#define V_LOAD_N(p, i, n) __extension__({ \
  const float *p_ = (p) + (ptrdiff_t)(i); v_part r_; \
  if ((n) - (int)(i) >= 8) memcpy(&r_, p_, 32); \
  else r_ = __builtin_ia32_maskloadps256((const v_part *)(const void *)p_, v_first(i, n)); \
  r_; })

// The second register overlaps the first by one element, so that nothing after the last element is read.
#define V_SECOND(p) __extension__({ \
  const float *p_ = (p); v_part low_, high_; \
  memcpy(&low_, p_, 32); \
  memcpy(&high_, p_ + 7, 32); \
  __builtin_shufflevector(low_, high_, 0, 2, 4, 6, 9, 11, 13, 15); })

#define V_SECOND_N(p, i, n) __extension__({ \
  const int n_ = 2 * (n) - 1; \
  const v_part low_ = V_LOAD_N(p, 2 * (i), n_), high_ = V_LOAD_N(p, 2 * (i) + 7, n_); \
  __builtin_shufflevector(low_, high_, 0, 2, 4, 6, 9, 11, 13, 15); })

// A register from element j on, with the elements from `first` to below `end`, and +0 elsewhere. `at`, the address of
// element 0, is an integer, as it may be outside of the tensor, where pointers are undefined.
#define V_LOAD_BETWEEN(at, j, first, end) __extension__({ \
  const uintptr_t at_j_ = (at) + (uintptr_t)(ptrdiff_t)(j) * sizeof(float); v_part between_; \
  if ((j) >= (first) && (end) - (j) >= 8) memcpy(&between_, (const void *)at_j_, 32); \
  else between_ = __builtin_ia32_maskloadps256((const v_part *)at_j_, v_first(j, end) & ~v_first(j, first)); \
  between_; })

#define V_SECOND_WITHIN(p, i, s, outside) __extension__({ \
  const int first_ = (int)(s).first, end_ = first_ + (s).count; v_part else_ = {0}; \
  const v_bits in_ = v_first(i, end_) & ~v_first(i, first_); \
  const uintptr_t at_ = (uintptr_t)(p) - 2 * (s).first * sizeof(float); \
  else_ = (outside) - else_; \
  const v_part low_ = V_LOAD_BETWEEN(at_, 2 * (i), 2 * first_, 2 * end_ - 1); \
  const v_part high_ = V_LOAD_BETWEEN(at_, 2 * (i) + 7, 2 * first_, 2 * end_ - 1); \
  const v_part r_ = __builtin_shufflevector(low_, high_, 0, 2, 4, 6, 9, 11, 13, 15); \
  (v_part)((v_bits)r_ | (~in_ & (v_bits)else_)); })

#define V_LOAD_WITHIN(p, i, s, outside) __extension__({ \
  const int first_ = (int)(s).first, end_ = first_ + (s).count; v_part else_ = {0}; \
  const v_bits in_ = v_first(i, end_) & ~v_first(i, first_); \
  const uintptr_t at_ = (uintptr_t)(p) - (s).first * sizeof(float); \
  else_ = (outside) - else_; \
  (v_part)((v_bits)V_LOAD_BETWEEN(at_, i, first_, end_) | (~in_ & (v_bits)else_)); })

#define D_LOAD_N(p, i, n) __extension__({ \
  const double *p_ = (p) + (ptrdiff_t)(i); d_part r_; \
  if ((n) - (int)(i) >= 4) memcpy(&r_, p_, 32); \
  else r_ = __builtin_ia32_maskloadpd256((const d_part *)(const void *)p_, D_FIRST(i, n)); \
  r_; })

// In pieces, as a masked store is slower on AMD's processors than four plain stores. p_ is lane i's address, n_ the
// number of lanes from lane i on.
#define V_STORE_N(p, x, i, n) __extension__({ \
  float *p_ = (p) + (ptrdiff_t)(i); const v_part x_ = (x); const int n_ = (n) - (int)(i); \
  v_half half_ = __builtin_shufflevector(x_, x_, 0, 1, 2, 3); \
  if (n_ >= 8) memcpy(p_, &x_, 32); \
  else if (n_ > 0) { \
    if (n_ & 4) { memcpy(p_, &half_, 16); half_ = __builtin_shufflevector(x_, x_, 4, 5, 6, 7); } \
    if (n_ & 2) { memcpy(p_ + (n_ & 4), &half_, 8); half_ = __builtin_shufflevector(half_, half_, 2, 3, 2, 3); } \
    if (n_ & 1) p_[n_ & 6] = half_[0]; \
  } })

#define D_STORE_N(p, x, i, n) __extension__({ \
  double *p_ = (p) + (ptrdiff_t)(i); const d_part x_ = (x); const int n_ = (n) - (int)(i); \
  if (n_ >= 4) memcpy(p_, &x_, 32); \
  else if (n_ > 0) { if (n_ & 2) memcpy(p_, &x_, 16); if (n_ & 1) p_[n_ & 2] = n_ & 2 ? x_[2] : x_[0]; } })

// The words of an h_part, four by four.
typedef uint64_t V_HALF h_fours;

#define H_LOAD_N(p, i, n) __extension__({ \
  const uint16_t *p_ = (p) + (ptrdiff_t)(i); const int n_ = (n) - (int)(i); \
  h_fours fours_ = {0}; \
  if (n_ >= 8) memcpy(&fours_, p_, 16); \
  else if (n_ > 0) { \
    uint64_t four_ = 0, rest_ = 0; uint32_t two_ = 0; \
    if (n_ & 4) memcpy(&four_, p_, 8); \
    if (n_ & 2) memcpy(&two_, p_ + (n_ & 4), 4); \
    if (n_ & 1) rest_ = (uint64_t)p_[n_ & 6] << (n_ & 2) * 16; \
    rest_ |= two_; \
    fours_ = n_ & 4 ? (h_fours){four_, rest_} : (h_fours){rest_, 0}; \
  } \
  (h_part)fours_; })

// The second register overlaps the first by one word, so that nothing after the last word is read; its odd words follow
// the even words of the first. The instruction's saturation has no effect, because lanes are below 2^16.
#define H_SECOND_N(p, i, n) __extension__({ \
  const int words_ = 2 * (n) - 1; \
  const h_part low_ = H_LOAD_N(p, 2 * (i), words_), high_ = H_LOAD_N(p, 2 * (i) + 7, words_); \
  (h_part)__builtin_ia32_packusdw128((h_lanes)low_ & 0xffff, (h_lanes)((h_words)high_ >> 16)); })

// The words of an h_part, two by two.
typedef int32_t V_HALF h_lanes;

typedef uint32_t V_HALF h_words;

#define H_STORE_N(p, x, i, n) __extension__({ \
  uint16_t *p_ = (p) + (ptrdiff_t)(i); const h_fours x_ = (h_fours)(x); const int n_ = (n) - (int)(i); \
  if (n_ >= 8) memcpy(p_, &x_, 16); \
  else if (n_ > 0) { \
    const uint64_t four_ = x_[0], rest_ = n_ & 4 ? x_[1] : four_; const uint32_t two_ = (uint32_t)rest_; \
    if (n_ & 4) memcpy(p_, &four_, 8); \
    if (n_ & 2) memcpy(p_ + (n_ & 4), &two_, 4); \
    if (n_ & 1) p_[n_ & 6] = (uint16_t)(rest_ >> (n_ & 2) * 16); \
  } })

#ifndef __clang__
#define V_STREAM(p, x) __builtin_ia32_movntps256(p, x)
#endif

#ifndef __clang__
#define D_STREAM(p, x) __builtin_ia32_movntpd256(p, x)
#endif

#ifndef __clang__
#define H_STREAM(p, x) __builtin_ia32_movntdq((long long V_HALF *)(void *)(p), (long long V_HALF)(x))
#endif

#define V_FENCE() __builtin_ia32_sfence()

// In assembler, because clang has no builtin for it and gcc's convertvector converts byte by byte.
#define V_FROM_U8(p) __extension__({ v_bits r_; \
  __asm__("vpmovzxbd %1, %0" : "=x"(r_) : "m"(*(const char (*)[8])(const void *)(p))); \
  __builtin_convertvector(r_, v_part); })

#define V_FROM_S8(p) __extension__({ v_bits r_; \
  __asm__("vpmovsxbd %1, %0" : "=x"(r_) : "m"(*(const char (*)[8])(const void *)(p))); \
  __builtin_convertvector(r_, v_part); })

#define V_PUT_BYTES(p, r) do { const v_bytes r_ = (v_bytes)(r); \
    const v_bytes low_ = __builtin_shufflevector(r_, r_, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, \
      16, 20, 24, 28, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1); \
    memcpy((p), &low_, 4); \
    memcpy((p) + 4, (const char *)&low_ + 16, 4); } while (0)

#ifndef __clang__
#define H_WIDEN(h) __builtin_ia32_pmovzxwd256((short V_HALF)(h))
#endif

typedef char V_FULL v_bytes;

// Each word to the upper half of its lane: all eight in both halves of a register, from memory without a shuffle.
#ifdef __clang__
#define H_TWICE(h) __builtin_shufflevector(h, h, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7)
#else
#define H_TWICE(h) __builtin_ia32_vbroadcastsi256((long long V_HALF)(h))
#endif

#define V_FROM_BF16(h) ((v_part)__builtin_ia32_pshufb256((v_bytes)H_TWICE(h), (v_bytes){V_EACH(V_UPPER)}))

// The bytes of lane j.
#define V_UPPER(j) -1, -1, 2 * (j), 2 * (j) + 1

// The instruction's saturation has no effect, because lanes are below 2^16.
#ifndef __clang__
#define H_NARROW(u) ((h_part)__builtin_ia32_packusdw128(__builtin_ia32_vextractf128_si256((v_bits)(u), 0), \
                                                        __builtin_ia32_vextractf128_si256((v_bits)(u), 1)))
#endif

#ifndef __clang__
#define V_FROM_F16(h) __builtin_ia32_vcvtph2ps256((short V_HALF)(h))
#endif

#ifndef __clang__
#define V_TO_F16(x) ((h_part)__builtin_ia32_vcvtps2ph256(x, 0))
#endif

#ifndef __clang__
#define D_FROM_HALF(h) __builtin_ia32_cvtps2pd256(h)
#endif

#ifndef __clang__
#define D_LOW_PRODUCT(a, b) ((d_words)__builtin_ia32_pmuludq256((v_bits)(a), (v_bits)(b)))
#endif

#define V_TRUTHS(m) ((uint32_t)__builtin_ia32_movmskps256((v_part)(m)))

#define D_TRUTHS(m) ((uint32_t)__builtin_ia32_movmskpd256((d_part)(m)))

// MXCSR: subnormal operands and results are zero, all exceptions are masked, rounding is to nearest.
#define FLUSH_BEGIN() __extension__({ uint32_t old_; const uint32_t new_ = 0x9fc0; \
  __asm__ volatile("stmxcsr %0\n\tldmxcsr %1" : "=&m"(old_) : "m"(new_) : "memory"); old_; })

#define FLUSH_END(mode) do { const uint32_t old_ = (mode); __asm__ volatile("ldmxcsr %0" : : "m"(old_) : "memory"); } while (0)

#define V_PIN(part) __asm__ volatile("" : "+x"(part))

#define V_FLUSH(x) (x)

#define V_FMA_FLUSHED(a, b, c) V_FMA(a, b, c)

#define V_ADD_FLUSHED(a, b) ((a) + (b))
