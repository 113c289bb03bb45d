// clang-format off

// Vectors of 16 lanes of s64 (`lvec`), for kernels that compute in s64. Their arithmetic is that of unsigned integers,
// which wraps around. The same for every ISA; follows math.h.

typedef struct { d_words p[D_PARTS]; } lvec;

static inline lvec l_set(int64_t x) { const d_words zero = {0}; lvec a; D_FOR_I a.p[i] = zero + (uint64_t)x; return a; }

static inline lvec l_index(size_t first) {
  int64_t x[16];
  lvec a;
  for (int i = 0; i < 16; i++) x[i] = (int64_t)first + i;
  memcpy(&a, x, sizeof a);
  return a;
}

static inline lvec l_add(lvec a, lvec b) { D_FOR_I a.p[i] += b.p[i]; return a; }

static inline lvec l_sub(lvec a, lvec b) { D_FOR_I a.p[i] -= b.p[i]; return a; }

static inline lvec l_mul(lvec a, lvec b) { D_FOR_I a.p[i] *= b.p[i]; return a; }

static inline lvec l_fma(lvec a, lvec b, lvec c) { D_FOR_I a.p[i] = a.p[i] * b.p[i] + c.p[i]; return a; }

static inline lvec l_neg(lvec a) { D_FOR_I a.p[i] = -a.p[i]; return a; }

static inline dmask l_gt(lvec a, lvec b) { dmask m; D_FOR_I m.p[i] = (d_bits)a.p[i] > (d_bits)b.p[i]; return m; }

static inline dmask l_ge(lvec a, lvec b) { dmask m; D_FOR_I m.p[i] = (d_bits)a.p[i] >= (d_bits)b.p[i]; return m; }

static inline dmask l_eq(lvec a, lvec b) { dmask m; D_FOR_I m.p[i] = a.p[i] == b.p[i]; return m; }

static inline lvec l_select(dmask m, lvec a, lvec b) { D_FOR_I a.p[i] = V_SELECT(m.p[i], a.p[i], b.p[i]); return a; }

static inline lvec l_max(lvec a, lvec b) { return l_select(l_gt(a, b), a, b); }

static inline lvec l_min(lvec a, lvec b) { return l_select(l_gt(b, a), a, b); }

static inline lvec l_load_s64(const int64_t *p) { lvec a; D_FOR_I memcpy(&a.p[i], D_AT(p, i), sizeof a.p[i]); return a; }

static inline lvec l_gather_n_s64(const int64_t *p, ptrdiff_t stride, int n) {
  int64_t x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = p[i * stride];
  return l_load_s64(x);
}

static inline lvec l_gather_s64(const int64_t *p, ptrdiff_t stride) { return l_gather_n_s64(p, stride, 16); }

static inline lvec l_load_n_s64(const int64_t *p, int n) { return l_gather_n_s64(p, 1, n); }

static inline void l_store_s64(int64_t *p, lvec a) { D_FOR_I memcpy(D_AT(p, i), &a.p[i], sizeof a.p[i]); }

static inline void l_scatter_n_s64(int64_t *p, ptrdiff_t stride, lvec a, int n) {
  int64_t x[16];
  l_store_s64(x, a);
  for (int i = 0; i < n; i++) p[i * stride] = x[i];
}

static inline void l_scatter_s64(int64_t *p, ptrdiff_t stride, lvec a) { l_scatter_n_s64(p, stride, a, 16); }

static inline void l_store_n_s64(int64_t *p, lvec a, int n) { l_scatter_n_s64(p, 1, a, n); }

static inline lvec l_place(lvec a, v_span s, int64_t outside) {
  int64_t x[16];
  l_store_s64(x, l_set(outside));
  l_store_n_s64(x + s.first, a, s.count);
  return l_load_s64(x);
}

static inline places l_places(lvec a) {
  int64_t x[16];
  places o;
  l_store_s64(x, a);
  for (int i = 0; i < 16; i++) o.at[i] = (ptrdiff_t)x[i];
  return o;
}

static inline lvec l_gather_at_n_s64(const int64_t *p, ptrdiff_t stride, places o, int n) {
  int64_t x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = p[i * stride + o.at[i]];
  return l_load_s64(x);
}

static inline lvec l_gather_at_s64(const int64_t *p, ptrdiff_t stride, places o) {
  return l_gather_at_n_s64(p, stride, o, 16);
}

// u64 is computed as the s64 with its bits.
#define l_load_u64(p) l_load_s64((const int64_t *)(p))

#define l_load_n_u64(p, n) l_load_n_s64((const int64_t *)(p), n)

#define l_gather_u64(p, stride) l_gather_s64((const int64_t *)(p), stride)

#define l_gather_n_u64(p, stride, n) l_gather_n_s64((const int64_t *)(p), stride, n)

#define l_gather_at_u64(p, stride, o) l_gather_at_s64((const int64_t *)(p), stride, o)

#define l_gather_at_n_u64(p, stride, o, n) l_gather_at_n_s64((const int64_t *)(p), stride, o, n)

#define l_store_u64(p, a) l_store_s64((int64_t *)(p), a)

#define l_store_n_u64(p, a, n) l_store_n_s64((int64_t *)(p), a, n)

#define l_scatter_u64(p, stride, a) l_scatter_s64((int64_t *)(p), stride, a)

#define l_scatter_n_u64(p, stride, a, n) l_scatter_n_s64((int64_t *)(p), stride, a, n)

// For vectors of booleans and of integers of 8 and 16 bits.
static inline lvec l_from_v(vec a) {
  float x[16];
  int64_t y[16];
  v_store(x, a);
  for (int i = 0; i < 16; i++) y[i] = (int64_t)x[i];
  return l_load_s64(y);
}

// For vectors of s32 and u32, which are loaded as f64.
static inline lvec l_from_d(dvec a) {
  double x[16];
  int64_t y[16];
  d_store(x, a);
  for (int i = 0; i < 16; i++) y[i] = (int64_t)x[i];
  return l_load_s64(y);
}

// For stores of booleans and of integers of 8 and 16 bits.
static inline vec v_from_l(lvec a) {
  float x[16];
  int64_t y[16];
  l_store_s64(y, a);
  for (int i = 0; i < 16; i++) x[i] = (float)y[i];
  return v_load(x);
}

// For stores of s32 and u32.
static inline dvec d_from_l(lvec a) {
  double x[16];
  int64_t y[16];
  l_store_s64(y, a);
  for (int i = 0; i < 16; i++) x[i] = (double)y[i];
  return d_load(x);
}

// 0 for the divisors -1 and 0, for which C's operator may trap.
static inline lvec l_fmod(lvec a, lvec b) {
  int64_t x[16], y[16];
  l_store_s64(x, a);
  l_store_s64(y, b);
  for (int i = 0; i < 16; i++) x[i] = (uint64_t)y[i] + 1 < 2 ? 0 : x[i] % y[i];
  return l_load_s64(x);
}
