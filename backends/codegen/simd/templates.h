// clang-format off

// Templates of the functions that load and store the elements of a type. Where another header uses such a macro, emitted
// C has the functions (embed.cmake expands it, as the printer takes functions from the headers one by one).

// Integers of 16 to 64 bits, as vectors of f32 or f64. FROM: p, with a cast where the conversion may round.
#define EACH_INTEGER(NAME, TYPE, FROM, V, VEC, FLOAT, REAL) \
static inline VEC V##_gather_n_##NAME(const TYPE *p, ptrdiff_t stride, int n) { \
  FLOAT x[16] = {0}; \
  for (int i = 0; i < n; i++) x[i] = FROM[i * stride]; \
  return V##_load(x); \
} \
 \
static inline VEC V##_gather_##NAME(const TYPE *p, ptrdiff_t stride) { return V##_gather_n_##NAME(p, stride, 16); } \
 \
static inline VEC V##_load_n_##NAME(const TYPE *p, int n) { return V##_gather_n_##NAME(p, 1, n); } \
 \
static inline VEC V##_load_##NAME(const TYPE *p) { return V##_gather_n_##NAME(p, 1, 16); } \
 \
static inline void V##_scatter_n_##NAME(TYPE *p, ptrdiff_t stride, VEC a, int n) { \
  FLOAT x[16]; \
  V##_store(x, a); \
  for (int i = 0; i < n; i++) p[i * stride] = NAME##_from_##REAL(x[i]); \
} \
 \
static inline void V##_scatter_##NAME(TYPE *p, ptrdiff_t stride, VEC a) { V##_scatter_n_##NAME(p, stride, a, 16); } \
 \
static inline void V##_store_n_##NAME(TYPE *p, VEC a, int n) { V##_scatter_n_##NAME(p, 1, a, n); } \
 \
static inline void V##_store_##NAME(TYPE *p, VEC a) { V##_scatter_n_##NAME(p, 1, a, 16); } \
 \
static inline VEC V##_gather_at_n_##NAME(const TYPE *p, ptrdiff_t stride, places o, int n) { \
  FLOAT x[16] = {0}; \
  for (int i = 0; i < n; i++) x[i] = FROM[i * stride + o.at[i]]; \
  return V##_load(x); \
} \
 \
static inline VEC V##_gather_at_##NAME(const TYPE *p, ptrdiff_t stride, places o) { \
  return V##_gather_at_n_##NAME(p, stride, o, 16); \
}

// Integers of 8 bits.
#define EACH_BYTE(NAME, TYPE, KIND, LEAST, MOST, ADDRESS) \
static inline vec v_gather_n_##NAME(const TYPE *p, ptrdiff_t stride, int n) { \
  float x[16] = {0}; \
  for (int i = 0; i < n; i++) x[i] = (float)p[i * stride]; \
  return v_load(x); \
} \
 \
static inline vec v_gather_##NAME(const TYPE *p, ptrdiff_t stride) { return v_gather_n_##NAME(p, stride, 16); } \
 \
static inline vec v_load_n_##NAME(const TYPE *p, int n) { \
  vec a; \
  V_FOR_I { \
    TYPE bytes[V_LANES]; \
    V_LOAD_BYTES_N(bytes, p, i * V_LANES, n); \
    a.p[i] = V_FROM_##KIND(bytes); \
  } \
  return a; \
} \
 \
static inline vec v_load_##NAME(const TYPE *p) { vec a; V_FOR_I a.p[i] = V_FROM_##KIND(V_AT(p, i)); return a; } \
 \
static inline void v_scatter_n_##NAME(TYPE *p, ptrdiff_t stride, vec a, int n) { \
  float x[16]; \
  v_store(x, a); \
  for (int i = 0; i < n; i++) p[i * stride] = NAME##_from_f32(x[i]); \
} \
 \
static inline void v_scatter_##NAME(TYPE *p, ptrdiff_t stride, vec a) { v_scatter_n_##NAME(p, stride, a, 16); } \
 \
static inline void v_store_n_##NAME(TYPE *p, vec a, int n) { \
  V_FOR_I { \
    uint8_t bytes[V_LANES]; \
    V_PUT_BYTES(bytes, v_part_nearest(a.p[i], LEAST, MOST)); \
    V_STORE_BYTES_N((uint8_t *)p, bytes, i * V_LANES, n); \
  } \
} \
 \
static inline void v_store_##NAME(TYPE *p, vec a) { \
  V_FOR_I V_PUT_BYTES(ADDRESS(p, i), v_part_nearest(a.p[i], LEAST, MOST)); \
}

// Floats of 8 bits.
#define EACH_FLOAT8(NAME) \
static inline vec v_gather_n_##NAME(const uint8_t *p, ptrdiff_t stride, int n) { \
  float x[16] = {0}; \
  for (int i = 0; i < n; i++) x[i] = f32_from_##NAME(p[i * stride]); \
  return v_load(x); \
} \
 \
static inline vec v_gather_##NAME(const uint8_t *p, ptrdiff_t stride) { return v_gather_n_##NAME(p, stride, 16); } \
 \
static inline vec v_load_n_##NAME(const uint8_t *p, int n) { return v_gather_n_##NAME(p, 1, n); } \
 \
static inline vec v_load_##NAME(const uint8_t *p) { \
  float x[16]; \
  for (int i = 0; i < 16; i++) x[i] = f32_from_##NAME(p[i]); \
  return v_load(x); \
} \
 \
static inline void v_scatter_n_##NAME(uint8_t *p, ptrdiff_t stride, vec a, int n) { \
  float x[16]; \
  v_store(x, a); \
  for (int i = 0; i < n; i++) p[i * stride] = NAME##_from_f32(x[i]); \
} \
 \
static inline void v_scatter_##NAME(uint8_t *p, ptrdiff_t stride, vec a) { v_scatter_n_##NAME(p, stride, a, 16); } \
 \
static inline void v_store_n_##NAME(uint8_t *p, vec a, int n) { v_scatter_n_##NAME(p, 1, a, n); } \
 \
static inline void v_store_##NAME(uint8_t *p, vec a) { \
  float x[16]; \
  v_store(x, a); \
  for (int i = 0; i < 16; i++) p[i] = NAME##_from_f32(x[i]); \
}

// Rounds to floats of 8 bits.
#define EACH_ROUND(NAME) \
static inline vec v_round_##NAME(vec a) { \
  uint8_t b[16]; \
  v_store_##NAME(b, a); \
  return v_load_##NAME(b); \
} \
 \
static inline dvec d_round_##NAME(dvec a) { return d_from_v(v_round_##NAME(v_from_d(a))); }

// Types of 8 bits at computed offsets.
#define EACH_GATHER_AT(NAME, TYPE, ELEMENT) \
static inline vec v_gather_at_n_##NAME(const TYPE *p, ptrdiff_t stride, places o, int n) { \
  float x[16] = {0}; \
  for (int i = 0; i < n; i++) x[i] = ELEMENT; \
  return v_load(x); \
} \
 \
static inline vec v_gather_at_##NAME(const TYPE *p, ptrdiff_t stride, places o) { return v_gather_at_n_##NAME(p, stride, o, 16); }

// Integers of 4 bits.
#define EACH_HALF(NAME) \
static inline vec v_gather_at_n_##NAME(const uint8_t *p, size_t first, ptrdiff_t stride, places o, int n) { \
  float x[16] = {0}; \
  for (int i = 0; i < n; i++) x[i] = f32_from_##NAME(p, first + (size_t)(i * stride + o.at[i])); \
  return v_load(x); \
} \
 \
static inline vec v_gather_at_##NAME(const uint8_t *p, size_t first, ptrdiff_t stride, places o) { \
  return v_gather_at_n_##NAME(p, first, stride, o, 16); \
} \
 \
static inline vec v_gather_n_##NAME(const uint8_t *p, size_t first, ptrdiff_t stride, int n) { \
  float x[16] = {0}; \
  for (int i = 0; i < n; i++) x[i] = f32_from_##NAME(p, first + (size_t)(i * stride)); \
  return v_load(x); \
} \
 \
static inline vec v_gather_##NAME(const uint8_t *p, size_t first, ptrdiff_t stride) { return v_gather_n_##NAME(p, first, stride, 16); } \
 \
static inline vec v_load_n_##NAME(const uint8_t *p, size_t first, int n) { return v_gather_n_##NAME(p, first, 1, n); } \
 \
static inline vec v_load_##NAME(const uint8_t *p, size_t first) { return v_gather_n_##NAME(p, first, 1, 16); } \
 \
static inline void v_scatter_n_##NAME(uint8_t *p, size_t first, ptrdiff_t stride, vec a, int n) { \
  float x[16]; \
  v_store(x, a); \
  for (int i = 0; i < n; i++) put_##NAME(p, first + (size_t)(i * stride), x[i]); \
} \
 \
static inline void v_scatter_##NAME(uint8_t *p, size_t first, ptrdiff_t stride, vec a) { v_scatter_n_##NAME(p, first, stride, a, 16); } \
 \
static inline void v_store_n_##NAME(uint8_t *p, size_t first, vec a, int n) { v_scatter_n_##NAME(p, first, 1, a, n); } \
 \
static inline void v_store_##NAME(uint8_t *p, size_t first, vec a) { v_scatter_n_##NAME(p, first, 1, a, 16); }
