// clang-format off

// Any processor, in standard C: a part is one number, and compilers may vectorise the loops.

#define V_FULL

#define V_HALF

#define V_PARTS 16

#define D_PARTS 16

// gcc -O2 makes vectors of unrolled statements, but not of short loops that others contain. Where nothing can become a
// vector, parts that are not unrolled are all on the stack, with a copy for each operand of a call.
#if defined __GNUC__ && !defined __OPTIMIZE_SIZE__
#define V_UNROLL_PARTS _Pragma("GCC unroll 16")
#else
#define V_UNROLL_PARTS
#endif

#define V_FOR_I V_UNROLL_PARTS for (int i = 0; i < V_PARTS; i++)

#define D_FOR_I V_UNROLL_PARTS for (int i = 0; i < D_PARTS; i++)

// Not unrolled: a row has more sums than there are registers.
#define UNROLL

#define V_EACH(f) f(0)

#define D_EACH(f) f(0)

#define V_LANE(x, j) (x)

#define V_SELECT(m, a, b) ((m) ? (a) : (b))

#define V_ABS(a) fabsf(a)

#define D_ABS(a) fabs(a)

#define V_FMA(a, b, c) f32_fma(a, b, c)

#define D_FMA(a, b, c) fma(a, b, c)

#define V_FLUSH(x) f32_flush(x)

#define V_FMA_FLUSHED(a, b, c) f32_fma_flushed(a, b, c)

#define V_SQRT(a) sqrtf(a)

#define D_SQRT(a) sqrt(a)

#define V_STREAM(p, x) (void)(*(p) = (x))

#define D_STREAM(p, x) (void)(*(p) = (x))

#define H_STREAM(p, x) (void)(*(p) = (x))

#define V_FROM_BITS(x) (float)(x)

#define V_FROM_F16(h) f32_from_f16(h)

#define V_TO_F16(x) f16_from_f32(x)

#define V_FROM_BF16(h) f32_from_bf16(h)

#define v_part_transpose(r) (void)(r)

#define V_FROM_U8(p) __extension__({ const uint8_t *from_ = (p); (float)*from_; })

#define V_FROM_S8(p) __extension__({ const int8_t *from_ = (p); (float)*from_; })

#define V_FROM_B8(p) ((float)(*(p) != 0))

#define V_PUT_BYTES(p, r) (void)(*(p) = (uint8_t)(r))

#define v_part_nearest(x, least, most) nearest_from_f32(x, least, most)

#define v_part_to_bf16_by_bits(x) bf16_from_f32(x)
#define v_part_round_bf16(x) f32_from_bf16(bf16_from_f32(x))

#define D_FROM_HALF(h) (double)(h)

#define V_FROM_D(d, i) (float)(d).p[i]

#define d_part_sum(x) (x)

#define D_FOLD_LANES(op, x) return x

#define V_FOLD_LANES(op, x) return x

#define random_16(u, seed, offset, place, stride) \
  for (uint64_t group = 0; group < 4; group++) \
    random_4((u) + 4 * group, seed, offset, ((place) + group * (stride)) & ~UINT64_C(3))

#define V_MAXIMUM(a, b) ((a) > (b) || (a) != (a) ? (a) : (a) == 0 && (b) == 0 ? (a) + (b) : (b))

#ifndef __GNUC__
#define V_PREFETCH(p, level) (void)(p)
#endif
