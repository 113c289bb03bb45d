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

// In assembler, as gcc, clang and their versions differ in the builtin.
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

// As the builtins' types have it.
#define D_FIRST(i, n) ((long long V_FULL)d_first(i, n))

#define V_LOAD_N(p, i, n) __builtin_ia32_maskloadps256((const v_part *)(const void *)((p) + (ptrdiff_t)(i)), v_first(i, n))

#define D_LOAD_N(p, i, n) __builtin_ia32_maskloadpd256((const d_part *)(const void *)((p) + (ptrdiff_t)(i)), D_FIRST(i, n))

#define V_STORE_N(p, x, i, n) __builtin_ia32_maskstoreps256((v_part *)(void *)((p) + (ptrdiff_t)(i)), v_first(i, n), x)

#define D_STORE_N(p, x, i, n) __builtin_ia32_maskstorepd256((d_part *)(void *)((p) + (ptrdiff_t)(i)), D_FIRST(i, n), x)

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

#ifndef __clang__
#define H_WIDEN(h) __builtin_ia32_pmovzxwd256((short V_HALF)(h))
#endif

// It saturates, but lanes are below 2^16.
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
