// clang-format off

// AVX-512 with BF16 and VBMI: conversions that are faster than those of avx512.h, which follows. They are written in
// assembler, because gcc and clang differ in the builtins.

// Moves each 16-bit word to the upper half of its lane: bytes 2i and 2i + 1 to bytes 4i + 2 and 4i + 3.
#define V_FROM_BF16(h) __extension__({ v_part r_; __asm__("vpermb %g1, %2, %0%{%3%}%{z%}" : "=v"(r_) \
  : "v"(H_AS_FULL(h)), "v"(V_BF16_BYTES), "Yk"(0xccccccccccccccccULL)); r_; })

// A half register as the lower half of a full one. In assembler both have the same name, except that clang 19 prints
// wrong names for half registers 16 to 31.
#ifdef __clang__
#define H_AS_FULL(h) __builtin_shufflevector(h, h, V_EACH(V_INDEX), V_EACH(H_NONE))
#else
#define H_AS_FULL(h) h
#endif

#define H_NONE(j) (-1)

#define V_BF16_BYTES ((v_bits){0x01000000, 0x03020000, 0x05040000, 0x07060000, 0x09080000, 0x0b0a0000, 0x0d0c0000, \
  0x0f0e0000, 0x11100000, 0x13120000, 0x15140000, 0x17160000, 0x19180000, 0x1b1a0000, 0x1d1c0000, 0x1f1e0000})

// The instruction flushes subnormals to zero. Vectors with subnormals are rare and are converted as on other ISAs. The
// empty assembler statement keeps the compiler from always computing both.
#define V_TO_BF16(x) __extension__({ v_part x_ = (x); h_part h_; uint16_t is_subnormal_; \
  __asm__("vcvtneps2bf16 %1, %0" : "=v"(h_) : "v"(x_)); \
  __asm__("vfpclassps $0x20, %1, %0" : "=Yk"(is_subnormal_) : "v"(x_)); \
  if (__builtin_expect(is_subnormal_, 0)) { __asm__ volatile("" : "+v"(x_)); h_ = v_part_to_bf16_by_bits(x_); } \
  h_; })

#define v_part_round_bf16(x) V_FROM_BF16(V_TO_BF16(x))
