// clang-format off

// AArch64: a part is a q register.

#define V_FULL __attribute__((vector_size(16)))

#define V_HALF __attribute__((vector_size(8)))

#define V_PARTS 4

#define D_PARTS 8

#define V_EACH(f) f(0), f(1), f(2), f(3)

#define D_EACH(f) f(0), f(1)

// Before version 18, clang has no builtin for a vector fma, but combines the lanes' fmas into one instruction.
#define V_FMA_LANE(j) __builtin_fmaf(a_[j], b_[j], c_[j])

#define D_FMA_LANE(j) __builtin_fma(a_[j], b_[j], c_[j])

#if defined __clang__ && __clang_major__ < 18
#define V_FMA(a, b, c) __extension__({ v_part a_ = a, b_ = b, c_ = c; (v_part){V_EACH(V_FMA_LANE)}; })
#endif

#if defined __clang__ && __clang_major__ < 18
#define D_FMA(a, b, c) __extension__({ d_part a_ = a, b_ = b, c_ = c; (d_part){D_EACH(D_FMA_LANE)}; })
#endif

#ifndef __clang__
#define V_FMA(a, b, c) __builtin_aarch64_fmav4sf(a, b, c)
#endif

#ifndef __clang__
#define D_FMA(a, b, c) __builtin_aarch64_fmav2df(a, b, c)
#endif

// In assembler, because the builtin differs between gcc, clang and their versions.
#define V_HOLD(part) __asm__("" : "+w"(part))

#define V_SQRT(a) __extension__({ v_part r_; __asm__("fsqrt %0.4s, %1.4s" : "=w"(r_) : "w"(a)); r_; })

#define D_SQRT(a) __extension__({ d_part r_; __asm__("fsqrt %0.2d, %1.2d" : "=w"(r_) : "w"(a)); r_; })

#define V_ANY(m) ((((d_bits)(m))[0] | ((d_bits)(m))[1]) != 0)

// In assembler, because gcc converts 64-bit vectors lane by lane, and the names of its builtins differ by version.
#ifndef __clang__
#define V_FROM_BF16(h) __extension__({ v_part r_; __asm__("shll %0.4s, %1.4h, #16" : "=w"(r_) : "w"(h)); r_; })
#endif

#ifndef __clang__
#define V_FROM_F16(h) __extension__({ v_part r_; __asm__("fcvtl %0.4s, %1.4h" : "=w"(r_) : "w"(h)); r_; })
#endif

#ifndef __clang__
#define V_TO_F16(x) __extension__({ h_part r_; __asm__("fcvtn %0.4h, %1.4s" : "=w"(r_) : "w"(x)); r_; })
#endif

#ifndef __clang__
#define D_FROM_HALF(h) __extension__({ d_part r_; __asm__("fcvtl %0.2d, %1.2s" : "=w"(r_) : "w"(h)); r_; })
#endif

#ifndef __clang__
#define V_FROM_D(d, i) __extension__({ v_part r_; __asm__("fcvtn %0.2s, %1.2d\n\tfcvtn2 %0.4s, %2.2d" \
  : "=&w"(r_) : "w"((d).p[2 * (ptrdiff_t)(i)]), "w"((d).p[2 * (ptrdiff_t)(i) + 1])); r_; })
#endif

#ifndef __clang__
#define V_STREAM(p, x) memcpy(p, &(x), sizeof(x))
#endif

#ifndef __clang__
#define D_STREAM(p, x) memcpy(p, &(x), sizeof(x))
#endif

#ifndef __clang__
#define H_STREAM(p, x) memcpy(p, &(x), sizeof(x))
#endif
