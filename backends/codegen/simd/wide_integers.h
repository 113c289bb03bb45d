// clang-format off

// Loads and stores of s32, u32, s64 and u64 as f64. The same for every ISA; follows arithmetic.h.

// Rounds to nearest even and saturates; NaN becomes 0.
static inline int32_t s32_from_f64(double x) {
  const double whole = nearbyint(x);
  return x >= INT32_MAX ? INT32_MAX : x <= INT32_MIN ? INT32_MIN : x == x ? (int32_t)whole : 0;
}

static inline dvec d_gather_n_s32(const int32_t *p, ptrdiff_t stride, int n) {
  double x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = p[i * stride];
  return d_load(x);
}

static inline dvec d_gather_s32(const int32_t *p, ptrdiff_t stride) { return d_gather_n_s32(p, stride, 16); }

static inline dvec d_load_n_s32(const int32_t *p, int n) { return d_gather_n_s32(p, 1, n); }

static inline dvec d_load_s32(const int32_t *p) { return d_gather_n_s32(p, 1, 16); }

static inline void d_scatter_n_s32(int32_t *p, ptrdiff_t stride, dvec a, int n) {
  double x[16];
  d_store(x, a);
  for (int i = 0; i < n; i++) p[i * stride] = s32_from_f64(x[i]);
}

static inline void d_scatter_s32(int32_t *p, ptrdiff_t stride, dvec a) { d_scatter_n_s32(p, stride, a, 16); }

static inline void d_store_n_s32(int32_t *p, dvec a, int n) { d_scatter_n_s32(p, 1, a, n); }

static inline void d_store_s32(int32_t *p, dvec a) { d_scatter_n_s32(p, 1, a, 16); }

static inline dvec d_gather_at_n_s32(const int32_t *p, ptrdiff_t stride, places o, int n) {
  double x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = p[i * stride + o.at[i]];
  return d_load(x);
}

static inline dvec d_gather_at_s32(const int32_t *p, ptrdiff_t stride, places o) {
  return d_gather_at_n_s32(p, stride, o, 16);
}

// Rounds to nearest even and saturates; NaN becomes 0.
static inline int64_t s64_from_f64(double x) {
  const double whole = nearbyint(x);
  return x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : x == x ? (int64_t)whole : 0;
}

static inline dvec d_gather_n_s64(const int64_t *p, ptrdiff_t stride, int n) {
  double x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = (double)p[i * stride];
  return d_load(x);
}

static inline dvec d_gather_s64(const int64_t *p, ptrdiff_t stride) { return d_gather_n_s64(p, stride, 16); }

static inline dvec d_load_n_s64(const int64_t *p, int n) { return d_gather_n_s64(p, 1, n); }

static inline dvec d_load_s64(const int64_t *p) { return d_gather_n_s64(p, 1, 16); }

static inline void d_scatter_n_s64(int64_t *p, ptrdiff_t stride, dvec a, int n) {
  double x[16];
  d_store(x, a);
  for (int i = 0; i < n; i++) p[i * stride] = s64_from_f64(x[i]);
}

static inline void d_scatter_s64(int64_t *p, ptrdiff_t stride, dvec a) { d_scatter_n_s64(p, stride, a, 16); }

static inline void d_store_n_s64(int64_t *p, dvec a, int n) { d_scatter_n_s64(p, 1, a, n); }

static inline void d_store_s64(int64_t *p, dvec a) { d_scatter_n_s64(p, 1, a, 16); }

static inline dvec d_gather_at_n_s64(const int64_t *p, ptrdiff_t stride, places o, int n) {
  double x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = (double)p[i * stride + o.at[i]];
  return d_load(x);
}

static inline dvec d_gather_at_s64(const int64_t *p, ptrdiff_t stride, places o) {
  return d_gather_at_n_s64(p, stride, o, 16);
}

// Rounds to nearest even and saturates; NaN becomes 0.
static inline uint32_t u32_from_f64(double x) {
  const double whole = nearbyint(x);
  return x >= UINT32_MAX ? UINT32_MAX : x >= 0 ? (uint32_t)whole : 0;
}

static inline dvec d_gather_n_u32(const uint32_t *p, ptrdiff_t stride, int n) {
  double x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = (double)p[i * stride];
  return d_load(x);
}

static inline dvec d_gather_u32(const uint32_t *p, ptrdiff_t stride) { return d_gather_n_u32(p, stride, 16); }

static inline dvec d_load_n_u32(const uint32_t *p, int n) { return d_gather_n_u32(p, 1, n); }

static inline dvec d_load_u32(const uint32_t *p) { return d_gather_n_u32(p, 1, 16); }

static inline void d_scatter_n_u32(uint32_t *p, ptrdiff_t stride, dvec a, int n) {
  double x[16];
  d_store(x, a);
  for (int i = 0; i < n; i++) p[i * stride] = u32_from_f64(x[i]);
}

static inline void d_scatter_u32(uint32_t *p, ptrdiff_t stride, dvec a) { d_scatter_n_u32(p, stride, a, 16); }

static inline void d_store_n_u32(uint32_t *p, dvec a, int n) { d_scatter_n_u32(p, 1, a, n); }

static inline void d_store_u32(uint32_t *p, dvec a) { d_scatter_n_u32(p, 1, a, 16); }

static inline dvec d_gather_at_n_u32(const uint32_t *p, ptrdiff_t stride, places o, int n) {
  double x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = (double)p[i * stride + o.at[i]];
  return d_load(x);
}

static inline dvec d_gather_at_u32(const uint32_t *p, ptrdiff_t stride, places o) {
  return d_gather_at_n_u32(p, stride, o, 16);
}

// Rounds to nearest even and saturates; NaN becomes 0.
static inline uint64_t u64_from_f64(double x) {
  const double whole = nearbyint(x);
  return x >= 0x1p64 ? UINT64_MAX : x >= 0 ? (uint64_t)whole : 0;
}

static inline dvec d_gather_n_u64(const uint64_t *p, ptrdiff_t stride, int n) {
  double x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = (double)p[i * stride];
  return d_load(x);
}

static inline dvec d_gather_u64(const uint64_t *p, ptrdiff_t stride) { return d_gather_n_u64(p, stride, 16); }

static inline dvec d_load_n_u64(const uint64_t *p, int n) { return d_gather_n_u64(p, 1, n); }

static inline dvec d_load_u64(const uint64_t *p) { return d_gather_n_u64(p, 1, 16); }

static inline void d_scatter_n_u64(uint64_t *p, ptrdiff_t stride, dvec a, int n) {
  double x[16];
  d_store(x, a);
  for (int i = 0; i < n; i++) p[i * stride] = u64_from_f64(x[i]);
}

static inline void d_scatter_u64(uint64_t *p, ptrdiff_t stride, dvec a) { d_scatter_n_u64(p, stride, a, 16); }

static inline void d_store_n_u64(uint64_t *p, dvec a, int n) { d_scatter_n_u64(p, 1, a, n); }

static inline void d_store_u64(uint64_t *p, dvec a) { d_scatter_n_u64(p, 1, a, 16); }

static inline dvec d_gather_at_n_u64(const uint64_t *p, ptrdiff_t stride, places o, int n) {
  double x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = (double)p[i * stride + o.at[i]];
  return d_load(x);
}

static inline dvec d_gather_at_u64(const uint64_t *p, ptrdiff_t stride, places o) {
  return d_gather_at_n_u64(p, stride, o, 16);
}
