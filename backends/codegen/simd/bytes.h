// clang-format off

// Loads and stores of types of 8 and 4 bits as vectors of f32, which represents all their numbers exactly. The same for
// every ISA; follows vector.h and arithmetic.h.

#include "backends/codegen/simd/templates.h"

// A part of f32 from as many bytes.
#ifndef V_FROM_U8
#define V_FROM_U8(p) __extension__({ const uint8_t *from_ = (p); const v_part r_ = {V_EACH(V_BYTE)}; r_; })
#endif

#ifndef V_FROM_S8
#define V_FROM_S8(p) __extension__({ const int8_t *from_ = (p); const v_part r_ = {V_EACH(V_BYTE)}; r_; })
#endif

#define V_BYTE(j) (float)from_[j]

// Copy the bytes of lanes i and following, below lane n, from or to p + i. Other bytes of `to` become 0.
#ifndef V_LOAD_BYTES_N
#define V_LOAD_BYTES_N(to, p, i, n) do { \
    for (int j_ = 0; j_ < V_LANES; j_++) (to)[j_] = (i) + j_ < (n) ? (p)[(i) + j_] : 0; } while (0)
#endif

#ifndef V_STORE_BYTES_N
#define V_STORE_BYTES_N(p, from, i, n) do { \
    for (int j_ = 0; (i) + j_ < (n) && j_ < V_LANES; j_++) (p)[(i) + j_] = (from)[j_]; } while (0)
#endif

// Stores the low byte of each lane.
#ifndef V_PUT_BYTES
#define V_PUT_BYTES(p, r) do { const v_bits r_ = (r); \
    for (int j_ = 0; j_ < V_LANES; j_++) (p)[j_] = (uint8_t)r_[j_]; } while (0)
#endif

#ifndef V_FROM_B8
#define V_FROM_B8(p) ((v_part)((v_bits)(V_FROM_U8(p) > 0) & 0x3f800000)) // the bits of 1
#endif

// Rounds to nearest even, within [least, most]; NaN becomes 0. Adding 1.5 * 2^23 leaves the integer in the low bits.
#ifndef v_part_nearest
static inline v_bits v_part_nearest(v_part x, float least, float most) {
  v_part low = {0}, high = {0};
  low += least;
  high += most;
  const v_part within = V_MAX(V_MIN(x, high), low);
  return (v_bits)((v_part)((v_bits)within & (v_bits)(x == x)) + 0x1.8p23f);
}
#endif

// Booleans, one byte each. A byte other than 0 reads as 1.
static inline vec v_gather_n_b8(const uint8_t *p, ptrdiff_t stride, int n) {
  float x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = p[i * stride] != 0;
  return v_load(x);
}

static inline vec v_gather_b8(const uint8_t *p, ptrdiff_t stride) { return v_gather_n_b8(p, stride, 16); }

static inline vec v_load_n_b8(const uint8_t *p, int n) { return v_gather_n_b8(p, 1, n); }

static inline vec v_load_b8(const uint8_t *p) { vec a; V_FOR_I a.p[i] = V_FROM_B8(V_AT(p, i)); return a; }

static inline void v_scatter_n_b8(uint8_t *p, ptrdiff_t stride, vec a, int n) {
  float x[16];
  v_store(x, a);
  for (int i = 0; i < n; i++) p[i * stride] = x[i] != 0;
}

static inline void v_scatter_b8(uint8_t *p, ptrdiff_t stride, vec a) { v_scatter_n_b8(p, stride, a, 16); }

static inline void v_store_n_b8(uint8_t *p, vec a, int n) { v_scatter_n_b8(p, 1, a, n); }

static inline void v_store_b8(uint8_t *p, vec a) { V_FOR_I V_PUT_BYTES(V_AT(p, i), (v_bits)(a.p[i] != 0) & 1); }

// Rounds to nearest even, within [least, most]; NaN becomes 0.
static inline int nearest_from_f32(float x, float least, float most) {
  const float nearest = nearbyintf(x >= most ? most : x >= least ? x : x < least ? least : 0);
  return (int)nearest;
}

// 8 bits. Conversions to 8-bit floats round to f16 first.
static inline int8_t s8_from_f32(float x) { return (int8_t)nearest_from_f32(x, -128, 127); }

static inline uint8_t u8_from_f32(float x) { return (uint8_t)nearest_from_f32(x, 0, 255); }

static inline float f32_from_e5m2(uint8_t b) { return f32_from_f16((uint16_t)(b << 8)); }

static inline uint8_t e5m2_from_f32(float x) {
  uint16_t h = f16_from_f32(x);
  return (uint8_t)(x != x ? h >> 8 : (h + 0x7f + (h >> 8 & 1)) >> 8);
}

static inline float f32_from_e4m3(uint8_t b) {
  uint32_t m = b & 0x7fU;
  float x = m < 8 ? (float)m * 0x1p-9f : f32_from_bits(m == 0x7f ? 0x7fc00000 : (m << 20) + (120U << 23));
  return b & 0x80 ? -x : x;
}

// Adding 2^14 rounds to a multiple of 2^-9, the unit of the subnormals.
static inline uint8_t e4m3_from_f32(float x) {
  float y = f32_from_f16(f16_from_f32(x));
  uint32_t sign = f32_bits(y) >> 24 & 0x80;
  uint32_t u = f32_bits(y) & 0x7fffffff;
  uint32_t subnormal = f32_bits(f32_from_bits(u) + 0x1p14f) - f32_bits(0x1p14f);
  uint32_t normal = (u - (120U << 23) + 0x7ffff + (u >> 20 & 1)) >> 20;
  return (uint8_t)(sign | (u < 121U << 23 ? subnormal : u <= f32_bits(464) ? normal : 0x7f));
}

EACH_BYTE(s8, int8_t, S8, -128, 127, (uint8_t *)V_AT)
EACH_BYTE(u8, uint8_t, U8, 0, 255, V_AT)
EACH_FLOAT8(e4m3)
EACH_FLOAT8(e5m2)
EACH_ROUND(e4m3)
EACH_ROUND(e5m2)
EACH_GATHER_AT(s8, int8_t, (float)p[i * stride + o.at[i]])
EACH_GATHER_AT(b8, uint8_t, p[i * stride + o.at[i]] != 0)
EACH_GATHER_AT(e4m3, uint8_t, f32_from_e4m3(p[i * stride + o.at[i]]))
EACH_GATHER_AT(e5m2, uint8_t, f32_from_e5m2(p[i * stride + o.at[i]]))
EACH_GATHER_AT(u8, uint8_t, (float)p[i * stride + o.at[i]])

// 4 bits: two elements per byte, the first in the low half. They have no addresses: an access begins with element
// number `first` of the array p.
static inline unsigned half_of_byte(const uint8_t *p, size_t i) { return (unsigned)p[i / 2] >> i % 2 * 4 & 15; }

// Does not change the other half of the byte.
static inline void put_half(uint8_t *p, size_t i, int x) {
  const unsigned shift = i % 2 * 4;
  p[i / 2] = (uint8_t)((p[i / 2] & 0xF0U >> shift) | ((unsigned)x & 15) << shift);
}

static inline float f32_from_u4(const uint8_t *p, size_t i) {
  const unsigned half = half_of_byte(p, i);
  return (float)half;
}

static inline float f32_from_s4(const uint8_t *p, size_t i) { return (float)((int)(half_of_byte(p, i) ^ 8) - 8); }

static inline void put_u4(uint8_t *p, size_t i, float x) { put_half(p, i, nearest_from_f32(x, 0, 15)); }

static inline void put_s4(uint8_t *p, size_t i, float x) { put_half(p, i, nearest_from_f32(x, -8, 7)); }

EACH_HALF(s4)
EACH_HALF(u4)

// Integers of 16 bits.
static inline int16_t s16_from_f32(float x) { return (int16_t)nearest_from_f32(x, -32768, 32767); }

EACH_INTEGER(s16, int16_t, (float)p, v, vec, float, f32)

static inline uint16_t u16_from_f32(float x) { return (uint16_t)nearest_from_f32(x, 0, 65535); }

EACH_INTEGER(u16, uint16_t, (float)p, v, vec, float, f32)
