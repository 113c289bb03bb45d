/* Adds tensors that leaves share, in the order that the run decides. */

static void ngrad_reduce_f32(float *a, const float *b, size_t n, int is_max) {
  if (is_max) {
    for (size_t i = 0; i < n; i++) a[i] = a[i] != a[i] || a[i] > b[i] ? a[i] : b[i];
  } else {
    for (size_t i = 0; i < n; i++) a[i] = a[i] + b[i];
  }
}

static void ngrad_reduce_f64(double *a, const double *b, size_t n, int is_max) {
  if (is_max) {
    for (size_t i = 0; i < n; i++) a[i] = a[i] != a[i] || a[i] > b[i] ? a[i] : b[i];
  } else {
    for (size_t i = 0; i < n; i++) a[i] = a[i] + b[i];
  }
}

static void ngrad_reduce_s32(int32_t *a, const int32_t *b, size_t n, int is_max) {
  if (is_max) {
    for (size_t i = 0; i < n; i++) a[i] = a[i] > b[i] ? a[i] : b[i];
  } else {
    for (size_t i = 0; i < n; i++) a[i] = (int32_t)((uint32_t)a[i] + (uint32_t)b[i]);
  }
}

static void ngrad_reduce_s64(int64_t *a, const int64_t *b, size_t n, int is_max) {
  if (is_max) {
    for (size_t i = 0; i < n; i++) a[i] = a[i] > b[i] ? a[i] : b[i];
  } else {
    for (size_t i = 0; i < n; i++) a[i] = (int64_t)((uint64_t)a[i] + (uint64_t)b[i]);
  }
}

static size_t ngrad_element_nbytes(int element) {
  return element == ngrad_LEAF_F64 || element == ngrad_LEAF_S64 ? 8 : 4;
}

static void ngrad_reduce_shared(const struct ngrad_shared *t, void *a, const void *b, size_t n) {
  const int is_max = t->reduction == ngrad_LEAF_MAX;
  if (t->element == ngrad_LEAF_F32) ngrad_reduce_f32((float *)a, (const float *)b, n, is_max);
  else if (t->element == ngrad_LEAF_F64) ngrad_reduce_f64((double *)a, (const double *)b, n, is_max);
  else if (t->element == ngrad_LEAF_S32) ngrad_reduce_s32((int32_t *)a, (const int32_t *)b, n, is_max);
  else ngrad_reduce_s64((int64_t *)a, (const int64_t *)b, n, is_max);
}

static void ngrad_divide_shared(const struct ngrad_shared *t, void *a, size_t n, int64_t by) {
  if (t->reduction != ngrad_LEAF_MEAN) return;
  if (t->element == ngrad_LEAF_F32)
    for (size_t i = 0; i < n; i++) ((float *)a)[i] /= (float)by;
  if (t->element == ngrad_LEAF_F64)
    for (size_t i = 0; i < n; i++) ((double *)a)[i] /= (double)by;
}

/* a = a + b, or a = a / by if b is NULL, for the stage's shared tensors in the bytes from `begin` to below `end`. a and
   b point to byte `begin`. */
static void ngrad_reduce_bytes(const struct ngrad_stage *s, const struct ngrad_bucket *bucket, size_t begin, size_t end,
                               unsigned char *a, const unsigned char *b, int64_t by) {
  for (uint32_t i = bucket->first; i < bucket->end; i++) {
    const struct ngrad_shared *t = &s->shared[i];
    const size_t size = ngrad_element_nbytes(t->element), last = t->offset + t->nelems * size;
    const size_t from = t->offset > begin ? t->offset : begin, to = last < end ? last : end;
    if (from >= to) continue;
    if (b) ngrad_reduce_shared(t, a + (from - begin), b + (from - begin), (to - from) / size);
    else ngrad_divide_shared(t, a + (from - begin), (to - from) / size, by);
  }
}
