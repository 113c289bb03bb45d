// clang-format off

// Rows in lanes: converts 16 rows of `width` elements, `stride` apart in memory, to `width` vectors with one row per
// lane, and back. The same for every ISA; follows vector.h and arithmetic.h.

// For every two registers whose numbers differ only in bit s, swaps lane j ^ s of the lower register with lane j of the
// higher, for all j with bit s clear.
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

// Transposes as many registers as one has lanes: element j of register i becomes element i of register j.
#ifndef v_part_transpose
static inline V_INLINE void v_part_transpose(v_part *r) {
  V_SWAP(1, V_LOW_1, V_HIGH_1)
  V_SWAP(2, V_LOW_2, V_HIGH_2)
  if (V_LANES > 4) V_SWAP(4 % V_LANES, V_LOW_4, V_HIGH_4)
  if (V_LANES > 8) V_SWAP(8 % V_LANES, V_LOW_8, V_HIGH_8)
}
#endif

// t holds `width` vectors of 16 floats. A tile is as wide as a part; the last tile is narrower. If `width` is a literal,
// both widths of tiles are. The narrower width is unsigned, so that compilers know that it is less than a part's.
#define V_EACH_TILE(tile) \
  int c = 0; \
  for (; c + V_LANES <= width; c += V_LANES) tile(V_LANES) \
  if (c < width) tile((int)((unsigned)width % V_LANES))

#define V_EACH_ROW _Pragma("GCC unroll 16") for (int k = 0; k < V_LANES; k++)

// The addresses of row k of part i, and of vector k of a tile.
#define V_ROW (p + (i * V_LANES + k) * stride + c)

#define V_COLUMN (t + (ptrdiff_t)(c + k) * 16 + i * V_LANES)

#define V_LOAD_TILE(w, part) \
  for (ptrdiff_t i = 0; i < V_PARTS; i++) { \
    v_part r[V_LANES]; \
    V_EACH_ROW r[k] = part; \
    v_part_transpose(r); \
    V_EACH_ROW if (k < (w)) memcpy(V_COLUMN, &r[k], sizeof r[k]); \
  }

#define V_STORE_TILE(w, store_part) \
  for (ptrdiff_t i = 0; i < V_PARTS; i++) { \
    v_part r[V_LANES] = {0}; \
    V_EACH_ROW if (k < (w)) memcpy(&r[k], V_COLUMN, sizeof r[k]); \
    v_part_transpose(r); \
    V_EACH_ROW store_part; \
  }

#define V_LOAD_TILE_F32(w) V_LOAD_TILE(w, V_LOAD_N(V_ROW, 0, w))

static inline V_INLINE void v_load_rows(float *t, const float *p, ptrdiff_t stride, int width) {
  V_EACH_TILE(V_LOAD_TILE_F32)
}

#define V_LOAD_TILE_BF16(w) V_LOAD_TILE(w, V_FROM_BF16(H_LOAD_N(V_ROW, 0, w)))

static inline V_INLINE void v_load_rows_bf16(float *t, const uint16_t *p, ptrdiff_t stride, int width) {
  V_EACH_TILE(V_LOAD_TILE_BF16)
}

#define V_LOAD_TILE_F16(w) V_LOAD_TILE(w, V_FROM_F16(H_LOAD_N(V_ROW, 0, w)))

static inline V_INLINE void v_load_rows_f16(float *t, const uint16_t *p, ptrdiff_t stride, int width) {
  V_EACH_TILE(V_LOAD_TILE_F16)
}

#define V_STORE_TILE_F32(w) V_STORE_TILE(w, V_STORE_N(V_ROW, r[k], 0, w))

static inline V_INLINE void v_store_rows(float *p, ptrdiff_t stride, const float *t, int width) {
  V_EACH_TILE(V_STORE_TILE_F32)
}

#define V_STORE_TILE_BF16(w) V_STORE_TILE(w, H_STORE_N(V_ROW, V_TO_BF16(r[k]), 0, w))

static inline V_INLINE void v_store_rows_bf16(uint16_t *p, ptrdiff_t stride, const float *t, int width) {
  V_EACH_TILE(V_STORE_TILE_BF16)
}

#define V_STORE_TILE_F16(w) V_STORE_TILE(w, H_STORE_N(V_ROW, V_TO_F16(r[k]), 0, w))

static inline V_INLINE void v_store_rows_f16(uint16_t *p, ptrdiff_t stride, const float *t, int width) {
  V_EACH_TILE(V_STORE_TILE_F16)
}

// Whether n rows begin at adjacent elements, and are worth transposing.
static inline V_INLINE int v_are_near(const float *const *p, int n) {
  int near = n >= 8;
  for (ptrdiff_t k = 1; k < n; k++) near &= p[k] == p[0] + k;
  return near;
}

// Lane l of vector k of t is the element `at` + l * stride of row k, for n rows.
static inline V_INLINE void v_gather_rows(float *t, const float *const *p, size_t at, ptrdiff_t stride, int n) {
  if (v_are_near(p, n)) {
    v_load_rows(t, p[0] + at, stride, n);
    return;
  }
  for (ptrdiff_t k = 0; k < n; k++) v_store(t + k * 16, v_gather(p[k] + at, stride));
}

// Stores what v_gather_rows loads.
static inline V_INLINE void v_scatter_rows(float *const *p, size_t at, ptrdiff_t stride, const float *t, int n) {
  if (v_are_near((const float *const *)p, n)) {
    v_store_rows(p[0] + at, stride, t, n);
    return;
  }
  for (ptrdiff_t k = 0; k < n; k++) v_scatter(p[k] + at, stride, v_load(t + k * 16));
}

// Stores 16 contiguous rows to p, aligned to 64 bytes, bypassing the caches; width <= 64.
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

// to[i] += from[i] for n elements, in the order of i.
static inline void v_add_row(float *to, const float *from, size_t n) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) v_store(to + i, v_add(v_load(to + i), v_load(from + i)));
  const int left = (int)(n - i);
  if (left) v_store_n(to + i, v_add(v_load_n(to + i, left), v_load_n(from + i, left)), left);
}

static inline void d_add_row(double *to, const double *from, size_t n) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) d_store(to + i, d_add(d_load(to + i), d_load(from + i)));
  const int left = (int)(n - i);
  if (left) d_store_n(to + i, d_add(d_load_n(to + i, left), d_load_n(from + i, left)), left);
}
