// clang-format off

// Rows across lanes: 16 rows of `width` elements, `stride` apart, as `width` vectors of a lane a row, and back. The same
// for every ISA; vector.h and arithmetic.h stand before this file.

// Lanes j and j ^ s of two registers, whose numbers differ in bit s, change places.
#define V_SWAP(s, low, high) _Pragma("GCC unroll 16") for (int i = 0; i < V_LANES; i++) \
  if (!(i & (s))) { \
    const v_part a = r[i], b = r[i | (s)]; \
    r[i] = __builtin_shufflevector(a, b, V_EACH(low)); \
    r[i | (s)] = __builtin_shufflevector(a, b, V_EACH(high)); \
  }

#define V_LOW(j, s) (((j) & (s) ? V_LANES + ((j) ^ (s)) : (j)) % (2 * V_LANES))

#define V_HIGH(j, s) (((j) & (s) ? V_LANES + (j) : (j) ^ (s)) % (2 * V_LANES))

#define V_LOW_1(j) V_LOW(j, 1)

#define V_HIGH_1(j) V_HIGH(j, 1)

#define V_LOW_2(j) V_LOW(j, 2)

#define V_HIGH_2(j) V_HIGH(j, 2)

#define V_LOW_4(j) V_LOW(j, 4)

#define V_HIGH_4(j) V_HIGH(j, 4)

#define V_LOW_8(j) V_LOW(j, 8)

#define V_HIGH_8(j) V_HIGH(j, 8)

// As many registers as one has lanes: element j of the i-th becomes element i of the j-th.
#ifndef v_part_transpose
static inline V_INLINE void v_part_transpose(v_part *r) {
  V_SWAP(1, V_LOW_1, V_HIGH_1)
  V_SWAP(2, V_LOW_2, V_HIGH_2)
  if (V_LANES > 4) V_SWAP(4 % V_LANES, V_LOW_4, V_HIGH_4)
  if (V_LANES > 8) V_SWAP(8 % V_LANES, V_LOW_8, V_HIGH_8)
}
#endif

static inline V_INLINE void v_transpose(vec *r) {
  vec t[16];
  _Pragma("GCC unroll 16") for (int i = 0; i < V_PARTS; i++) _Pragma("GCC unroll 16") for (int j = 0; j < V_PARTS; j++) {
    v_part tile[V_LANES];
    _Pragma("GCC unroll 16") for (int k = 0; k < V_LANES; k++) tile[k] = r[i * V_LANES + k].p[j];
    v_part_transpose(tile);
    _Pragma("GCC unroll 16") for (int k = 0; k < V_LANES; k++) t[j * V_LANES + k].p[i] = tile[k];
  }
  _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++) r[i] = t[i];
}

// t has room for `width` vectors.
#define V_LOAD_ROWS(row) \
  for (int c = 0; c < width; c += 16) { \
    vec r[16]; \
    const int w = width - c < 16 ? width - c : 16; \
    _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++) r[i] = (row); \
    v_transpose(r); \
    _Pragma("GCC unroll 16") for (ptrdiff_t i = 0; i < 16; i++) if (i < w) v_store(t + (c + i) * 16, r[i]); \
  }

static inline V_INLINE void v_load_rows(float *t, const float *p, ptrdiff_t stride, int width) {
  V_LOAD_ROWS(v_load_n(p + i * stride + c, w))
}

static inline V_INLINE void v_load_rows_bf16(float *t, const uint16_t *p, ptrdiff_t stride, int width) {
  V_LOAD_ROWS(v_load_n_bf16(p + i * stride + c, w))
}

static inline V_INLINE void v_load_rows_f16(float *t, const uint16_t *p, ptrdiff_t stride, int width) {
  V_LOAD_ROWS(v_load_n_f16(p + i * stride + c, w))
}

#define V_STORE_ROWS(store_row) \
  for (int c = 0; c < width; c += 16) { \
    vec r[16]; \
    const int w = width - c < 16 ? width - c : 16; \
    _Pragma("GCC unroll 16") for (ptrdiff_t i = 0; i < 16; i++) r[i] = i < w ? v_load(t + (c + i) * 16) : v_set(0); \
    v_transpose(r); \
    _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++) (store_row); \
  }

static inline V_INLINE void v_store_rows(float *p, ptrdiff_t stride, const float *t, int width) {
  V_STORE_ROWS(v_store_n(p + i * stride + c, r[i], w))
}

static inline V_INLINE void v_store_rows_bf16(uint16_t *p, ptrdiff_t stride, const float *t, int width) {
  V_STORE_ROWS(v_store_n_bf16(p + i * stride + c, r[i], w))
}

static inline V_INLINE void v_store_rows_f16(uint16_t *p, ptrdiff_t stride, const float *t, int width) {
  V_STORE_ROWS(v_store_n_f16(p + i * stride + c, r[i], w))
}

// All 16, one behind the other from p, aligned to 64 bytes, on; past the caches. Up to 64 wide.
static inline V_INLINE void v_stream_rows(float *p, const float *t, int width) {
  float rows_[16 * 64];
  v_store_rows(rows_, width, t, width);
  for (ptrdiff_t i = 0; i < width; i++) v_stream(p + i * 16, v_load(rows_ + i * 16));
}

static inline V_INLINE void v_stream_rows_bf16(uint16_t *p, const float *t, int width) {
  uint16_t rows_[16 * 64];
  v_store_rows_bf16(rows_, width, t, width);
  for (ptrdiff_t i = 0; i < width; i++) h_stream(p + i * 16, h_load(rows_ + i * 16));
}

static inline V_INLINE void v_stream_rows_f16(uint16_t *p, const float *t, int width) {
  uint16_t rows_[16 * 64];
  v_store_rows_f16(rows_, width, t, width);
  for (ptrdiff_t i = 0; i < width; i++) h_stream(p + i * 16, h_load(rows_ + i * 16));
}
