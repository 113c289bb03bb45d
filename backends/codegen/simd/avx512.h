// clang-format off

// AVX-512 (F, BW, DQ, VL): a part is a zmm register.

#define V_FULL __attribute__((vector_size(64)))

#define V_HALF __attribute__((vector_size(32)))

#define V_QUARTER __attribute__((vector_size(16)))

#define V_PARTS 1

#define D_PARTS 2

#define V_EACH(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)

#define D_EACH(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)

// The last arguments of builtins: all lanes, and the rounding mode of MXCSR. gcc and clang differ in the type.
#ifdef __clang__
#define V_ALL (uint16_t)-1, 4
#else
#define V_ALL -1, 4
#endif

#define D_ALL (uint8_t)-1, 4

#if !defined __clang__ || __clang_major__ < 18
#define V_FMA(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, V_ALL)
#endif

#if !defined __clang__ || __clang_major__ < 18
#define D_FMA(a, b, c) __builtin_ia32_vfmaddpd512_mask(a, b, c, D_ALL)
#endif

// In assembler, because the builtin differs between gcc, clang and their versions.
#define V_HOLD(part) __asm__("" : "+v"(part))

#define V_SQRT(a) __extension__({ v_part r_; __asm__("vsqrtps %1, %0" : "=v"(r_) : "v"(a)); r_; })

#define D_SQRT(a) __extension__({ d_part r_; __asm__("vsqrtpd %1, %0" : "=v"(r_) : "v"(a)); r_; })

#define V_SCALE(y, n) __builtin_ia32_scalefps512_mask(y, (n) - V_INTEGER, y, V_ALL)

#define D_SCALE(y, n) __builtin_ia32_scalefpd512_mask(y, (n) - D_INTEGER, y, D_ALL)

#ifndef __clang__
#define V_MAX(a, b) __builtin_ia32_maxps512_mask(a, b, a, V_ALL)
#endif

// The greater value; lanes in which a or b is NaN become a NaN with all bits set.
#define V_PART_MAXIMUM(a, b) __extension__({ \
  v_part r_; \
  uint16_t m_; \
  __asm__("vcmpunordps %3, %2, %1\n\tvrangeps $5, %3, %2, %0\n\tvpternlogd $255, %0, %0, %0%{%1%}" \
          : "=&v"(r_), "=&Yk"(m_) : "v"(a), "v"(b)); \
  r_; })

#ifndef __clang__
#define V_MIN(a, b) __builtin_ia32_minps512_mask(a, b, a, V_ALL)
#endif

#ifndef __clang__
#define D_MAX(a, b) __builtin_ia32_maxpd512_mask(a, b, a, D_ALL)
#endif

#ifndef __clang__
#define D_MIN(a, b) __builtin_ia32_minpd512_mask(a, b, a, D_ALL)
#endif

// A bit for each lane from lane i on: the lane's number is below n.
#define V_MASK(i, n) (uint16_t)(((1U << (n)) - 1) >> (i))

// Hides the mask of a load from gcc. If gcc knows the mask, and the other lanes are not used, it loads the whole vector,
// and so reads after the last element.
#ifdef __clang__
#define V_LOADED(mask) (mask)
#else
#define V_LOADED(mask) __extension__({ __typeof__(mask) loaded_ = (mask); __asm__("" : "+Yk"(loaded_)); loaded_; })
#endif

#define V_LOAD_N(p, i, n) __builtin_ia32_loadups512_mask((p) + (ptrdiff_t)(i), (v_part){0}, V_LOADED(V_MASK(i, n)))

// The second register overlaps the first by one element, so that nothing after the last element is read.
#define V_SECOND(p) __extension__({ \
  const float *p_ = (p); v_part low_, high_; \
  memcpy(&low_, p_, 64); \
  memcpy(&high_, p_ + 15, 64); \
  __builtin_shufflevector(low_, high_, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31); })

#define V_SECOND_N(p, i, n) __extension__({ \
  const int n_ = 2 * (n) - ((n) > 0); \
  const v_part low_ = V_LOAD_N(p, i, n_), high_ = V_LOAD_N(p, (i) + 15, n_); \
  __builtin_shufflevector(low_, high_, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31); })

// Every second element. Lane s.first is element i of p; lanes outside of s are `outside`.
#define V_SECOND_WITHIN(p, i, s, outside) __extension__({ \
  const int first_ = 2 * (int)(s).first, end_ = first_ + 2 * (s).count - 1; v_part else_ = {0}; \
  const uint32_t in_ = ((1U << end_) - 1) >> first_ << first_; \
  const uintptr_t at_ = (uintptr_t)(p) + ((uintptr_t)(i) - 2 * (s).first) * sizeof(float); \
  else_ = (outside) - else_; \
  const float *low_at_ = (const float *)at_; \
  const v_part low_ = __builtin_ia32_loadups512_mask(low_at_, else_, V_LOADED((uint16_t)in_)); \
  const v_part high_ = __builtin_ia32_loadups512_mask(low_at_ + 15, else_, V_LOADED((uint16_t)(in_ >> 15))); \
  __builtin_shufflevector(low_, high_, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31); })

// Two bits for each of the n lanes from i on: whether the even and the odd element of a pair may be stored.
#define V_EVEN(i, n) ((uint32_t)((1ULL << 2 * (n)) - 1) >> 2 * (i) & 0x55555555)

// Stores every second element of two registers; each lane is in both elements of its pair.
#define V_PUT_SECOND(p, x, i, n) do { \
    const uint32_t even_ = V_EVEN(i, n); const v_part x_ = (x); float *second_ = (p) + 2 * (ptrdiff_t)(i); \
    __builtin_ia32_storeups512_mask( \
        second_, __builtin_shufflevector(x_, x_, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7), (uint16_t)even_); \
    __builtin_ia32_storeups512_mask( \
        second_ + 16, __builtin_shufflevector(x_, x_, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15), \
        (uint16_t)(even_ >> 16)); } while (0)

#define V_PLACE(a, s, outside) __extension__({ \
  const int first_ = (int)(s).first; vec r_; v_part else_ = {0}; \
  else_ = (outside) - else_; \
  r_.p[0] = __builtin_ia32_expandsf512_mask((a).p[0], else_, \
                                            (uint16_t)(V_MASK(0, first_ + (s).count) & ~V_MASK(0, first_))); \
  r_; })

// Lane 0 may be outside of the tensor, where pointers are undefined: its address is an integer.
#define V_LOAD_WITHIN(p, i, s, outside) __extension__({ \
  const int first_ = (int)(s).first; v_part else_ = {0}; \
  const uintptr_t at_ = (uintptr_t)(p) + ((uintptr_t)(i) - (s).first) * sizeof(float); \
  else_ = (outside) - else_; \
  __builtin_ia32_loadups512_mask((const float *)at_, else_, \
                                 V_LOADED((uint16_t)(V_MASK(i, first_ + (s).count) & ~V_MASK(i, first_)))); })

#define D_LOAD_N(p, i, n) __builtin_ia32_loadupd512_mask((p) + (ptrdiff_t)(i), (d_part){0}, V_LOADED((uint8_t)V_MASK(i, n)))

// The type to which the two builtins below take a pointer.
#ifdef __clang__
#define H_MEMORY short V_HALF
#else
#define H_MEMORY short
#endif

#define H_LOAD_N(p, i, n) \
  ((h_part)__builtin_ia32_loaddquhi256_mask((const H_MEMORY *)(const void *)((p) + (ptrdiff_t)(i)), (short V_HALF){0}, \
                                            V_LOADED(V_MASK(i, n))))

// The same for a full register of words.
#ifdef __clang__
#define H_PAIRS_MEMORY short V_FULL
#else
#define H_PAIRS_MEMORY short
#endif

// Pairs of words as lanes of 32 bits. The last lane has no odd word.
#define H_PAIRS_N(p, i, n) ((v_bits)__builtin_ia32_loaddquhi512_mask( \
  (const H_PAIRS_MEMORY *)(const void *)((p) + 2 * (ptrdiff_t)(i)), (short V_FULL){0}, \
  V_LOADED((uint32_t)((1ULL << 2 * (n)) - 1) >> 1 >> 2 * (i))))

#define H_SECOND_N(p, i, n) H_NARROW(H_PAIRS_N(p, i, n))

#define V_SECOND_N_BF16(p, i, n) ((v_part)(H_PAIRS_N(p, i, n) << 16))

// A masked load of words is slower than two plain loads. The second register overlaps the first by one word.
#define V_SECOND_BF16(p) __extension__({ \
  const uint16_t *p_ = (p); h_lanes low_, high_; \
  memcpy(&low_, p_, 32); \
  memcpy(&high_, p_ + 15, 32); \
  low_ = (h_lanes)((h_words)low_ << 16); \
  high_ &= -0x10000; \
  (v_part)__builtin_shufflevector(low_, high_, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); })

// The words of an h_part, two by two.
typedef int32_t V_HALF h_lanes;

typedef uint32_t V_HALF h_words;

#define H_PUT_SECOND(p, x, i, n) \
  __builtin_ia32_storedquhi512_mask((H_PAIRS_MEMORY *)(void *)((p) + 2 * (ptrdiff_t)(i)), (short V_FULL)H_WIDEN(x), \
                                    V_EVEN(i, n))

#define V_STORE_N(p, x, i, n) __builtin_ia32_storeups512_mask((p) + (ptrdiff_t)(i), x, V_MASK(i, n))

#define D_STORE_N(p, x, i, n) __builtin_ia32_storeupd512_mask((p) + (ptrdiff_t)(i), x, (uint8_t)V_MASK(i, n))

#define H_STORE_N(p, x, i, n) \
  __builtin_ia32_storedquhi256_mask((H_MEMORY *)(void *)((p) + (ptrdiff_t)(i)), (short V_HALF)(x), V_MASK(i, n))

#ifndef __clang__
#define V_STREAM(p, x) __builtin_ia32_movntps512(p, x)
#endif

#ifndef __clang__
#define D_STREAM(p, x) __builtin_ia32_movntpd512(p, x)
#endif

#ifndef __clang__
#define H_STREAM(p, x) __builtin_ia32_movntdq256((long long V_HALF *)(void *)(p), (long long V_HALF)(x))
#endif

#define V_FENCE() __builtin_ia32_sfence()

#define V_FROM_U8(p) __extension__({ v_bits r_; \
  __asm__("vpmovzxbd %1, %0" : "=v"(r_) : "m"(*(const char (*)[16])(const void *)(p))); \
  __builtin_convertvector(r_, v_part); })

#define V_FROM_S8(p) __extension__({ v_bits r_; \
  __asm__("vpmovsxbd %1, %0" : "=v"(r_) : "m"(*(const char (*)[16])(const void *)(p))); \
  __builtin_convertvector(r_, v_part); })

#define V_PUT_BYTES(p, r) do { const v_bits r_ = (r); \
    __asm__("vpmovdb %1, %0" : "=m"(*(char (*)[16])(void *)(p)) : "v"(r_)); } while (0)

#ifdef __clang__
#define BYTES_MEMORY v_bytes
#else
#define BYTES_MEMORY char
#endif

// As many bytes as a part has lanes.
typedef char V_QUARTER v_bytes;

#define V_LOAD_BYTES_N(to, p, i, n) do { \
    const v_bytes r_ = __builtin_ia32_loaddquqi128_mask((const BYTES_MEMORY *)(const void *)((p) + (ptrdiff_t)(i)), \
                                                        (v_bytes){0}, V_LOADED(V_MASK(i, n))); \
    memcpy(to, &r_, 16); } while (0)

#define V_STORE_BYTES_N(p, from, i, n) do { \
    v_bytes r_; \
    memcpy(&r_, from, 16); \
    __builtin_ia32_storedquqi128_mask((BYTES_MEMORY *)(void *)((p) + (ptrdiff_t)(i)), r_, V_MASK(i, n)); } while (0)

#ifndef __clang__
#define H_WIDEN(h) __builtin_ia32_pmovzxwd512_mask((short V_HALF)(h), (v_bits){0}, (uint16_t)-1)
#endif

#ifndef __clang__
#define H_NARROW(u) ((h_part)__builtin_ia32_pmovdw512_mask((v_bits)(u), (short V_HALF){0}, (uint16_t)-1))
#endif

#ifndef __clang__
#define V_FROM_F16(h) __builtin_ia32_vcvtph2ps512_mask((short V_HALF)(h), (v_part){0}, V_ALL)
#endif

#ifndef __clang__
#define V_TO_F16(x) ((h_part)__builtin_ia32_vcvtps2ph512_mask(x, 0, (short V_HALF){0}, (uint16_t)-1))
#endif

#ifndef __clang__
#define D_FROM_HALF(h) __builtin_ia32_cvtps2pd512_mask(h, (d_part){0}, -1, 4)
#endif

#ifndef __clang__
#define V_HALF_FROM_D(d) __builtin_ia32_cvtpd2ps512_mask(d, (v_half){0}, -1, 4)
#endif

#ifndef __clang__
#define D_LOW_PRODUCT(a, b) ((d_words)__builtin_ia32_pmuludq512_mask((v_bits)(a), (v_bits)(b), (long long V_FULL){0}, (uint8_t)-1))
#endif

#define V_TRUTHS(m) ((uint32_t)(uint16_t)__builtin_ia32_cvtd2mask512(m))

#define D_TRUTHS(m) ((uint32_t)(uint8_t)__builtin_ia32_cvtq2mask512((long long V_FULL)(m)))

// MXCSR: subnormal operands and results are zero, all exceptions are masked, rounding is to nearest.
#define FLUSH_BEGIN() __extension__({ uint32_t old_; const uint32_t new_ = 0x9fc0; \
  __asm__ volatile("stmxcsr %0\n\tldmxcsr %1" : "=&m"(old_) : "m"(new_) : "memory"); old_; })

#define FLUSH_END(mode) do { const uint32_t old_ = (mode); __asm__ volatile("ldmxcsr %0" : : "m"(old_) : "memory"); } while (0)

#define V_PIN(part) __asm__ volatile("" : "+v"(part))

#define V_FLUSH(x) (x)

#define V_FMA_FLUSHED(a, b, c) V_FMA(a, b, c)

#define V_ADD_FLUSHED(a, b) ((a) + (b))
