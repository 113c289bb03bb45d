// The streaming loop. On x86-64 it can write with streaming stores. Whether these are faster depends on the machine and
// on whether the data fits into its caches, so the caller tries both.
#include "frontend/api/ceiling.h"

#include "ir/support/threads.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LINE = 64, BLOCK_LINES = 64, MOST_STREAMS = 4 };

typedef struct Part {             // the part of one thread
  const char *from[MOST_STREAMS]; // arrays of nlines that are read in parallel
  int nstreams;
  char *to;
  size_t nlines;
  const char *rest; // nrest further lines to read, some after each block
  size_t nrest;
  bool bypasses_cache;
} Part;

#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef float Quad __attribute__((vector_size(16), may_alias));

// The sums must be used, or the compiler would remove the loads.
static void keep(float value) {
  volatile float sink = value;
  (void)sink;
}

// The loop for vectors of type V; STORE writes a line.
#define DEFINE_SWEEP(name, V, STORE)                                                                                   \
  ALWAYS_INLINE void name##_block(const Part *s, size_t line, size_t nlines, const int nstreams) {                     \
    const V *x[MOST_STREAMS];                                                                                          \
    V *z = (V *)(void *)(s->to + line * LINE);                                                                         \
    for (int k = 0; k < nstreams; k++) x[k] = (const V *)(const void *)(s->from[k] + line * LINE);                     \
    for (size_t i = 0; i < nlines * LINE / sizeof(V); i++) {                                                           \
      V sum = {0};                                                                                                     \
      for (int k = 0; k < nstreams; k++) sum += x[k][i];                                                               \
      STORE(&z[i], sum);                                                                                               \
    }                                                                                                                  \
  }                                                                                                                    \
  ALWAYS_INLINE void name##_rest(const Part *s, size_t line, size_t nlines) {                                          \
    const V *x = (const V *)(const void *)(s->rest + line * LINE);                                                     \
    V sum = {0};                                                                                                       \
    for (size_t i = 0; i < nlines * LINE / sizeof(V); i++) sum += x[i];                                                \
    keep(sum[0]);                                                                                                      \
  }                                                                                                                    \
  ALWAYS_INLINE void name##_all(const Part *s, const int nstreams) {                                                   \
    size_t read = 0;                                                                                                   \
    for (size_t line = 0; line < s->nlines; line += BLOCK_LINES) {                                                     \
      size_t left = s->nlines - line;                                                                                  \
      name##_block(s, line, left < BLOCK_LINES ? left : BLOCK_LINES, nstreams);                                        \
      size_t due = s->nrest / (s->nlines / BLOCK_LINES + 1);                                                           \
      name##_rest(s, read, due);                                                                                       \
      read += due;                                                                                                     \
    }                                                                                                                  \
    name##_rest(s, read, s->nrest - read);                                                                             \
  }                                                                                                                    \
  ALWAYS_INLINE void name(const Part *s) {                                                                             \
    switch (s->nstreams) {                                                                                             \
    case 0: name##_all(s, 0); break;                                                                                   \
    case 1: name##_all(s, 1); break;                                                                                   \
    case 2: name##_all(s, 2); break;                                                                                   \
    case 3: name##_all(s, 3); break;                                                                                   \
    default: name##_all(s, MOST_STREAMS); break;                                                                       \
    }                                                                                                                  \
  }

#define STORE_PLAIN(to, value) (*(to) = (value))
DEFINE_SWEEP(sweep_quads, Quad, STORE_PLAIN)

#if defined(__x86_64__)
#define STORE_QUAD(to, value) _mm_stream_ps((float *)(to), (value))
DEFINE_SWEEP(stream_quads, Quad, STORE_QUAD)

#define AVX512 __attribute__((target("avx512f")))
#undef ALWAYS_INLINE
#define ALWAYS_INLINE AVX512 static inline
typedef float Vector __attribute__((vector_size(64), may_alias));
#define STORE_VECTOR(to, value) _mm512_stream_ps((float *)(to), (value))
DEFINE_SWEEP(sweep_vectors, Vector, STORE_PLAIN)
DEFINE_SWEEP(stream_vectors, Vector, STORE_VECTOR)

AVX512 static void sweep_avx512(const Part *s) {
  if (s->bypasses_cache) stream_vectors(s);
  else sweep_vectors(s);
}

static void sweep(const Part *s) {
  if (__builtin_cpu_supports("avx512f")) sweep_avx512(s);
  else if (s->bypasses_cache) stream_quads(s);
  else sweep_quads(s);
  _mm_sfence();
}
#else
static void sweep(const Part *s) {
  sweep_quads(s);
}
#endif

// Where thread i's part of `total` begins; n threads divide it evenly.
static size_t share_begin(size_t total, int i, int n) {
  return total / (size_t)n * (size_t)i + (total % (size_t)n < (size_t)i ? total % (size_t)n : (size_t)i);
}

static Part part_of(const Ceiling *c, int i, int n) {
  size_t begin = share_begin(c->nwritten, i, n);
  Part s = {.to = c->to + begin * LINE,
            .nlines = share_begin(c->nwritten, i + 1, n) - begin,
            .bypasses_cache = c->bypasses_cache};
  size_t streams = c->nwritten ? c->nread / c->nwritten : 0;
  s.nstreams = streams < MOST_STREAMS ? (int)streams : MOST_STREAMS;
  for (int k = 0; k < s.nstreams; k++) s.from[k] = c->from + ((size_t)k * c->nwritten + begin) * LINE;
  size_t rest = (size_t)s.nstreams * c->nwritten, rest_begin = share_begin(c->nread - rest, i, n);
  s.rest = c->from + (rest + rest_begin) * LINE;
  s.nrest = share_begin(c->nread - rest, i + 1, n) - rest_begin;
  return s;
}

// Ordinary numbers. Zeros in a shared page, or denormals, would have other costs than real data.
static void fill(char *bytes, size_t nlines) {
  float *values = (float *)(void *)bytes;
  for (size_t i = 0; i < nlines * LINE / sizeof *values; i++) values[i] = 1;
}

// Each thread has several parts, so that none waits long for another.
static int count_parts(const Ceiling *c) {
  enum { PARTS_EACH = 4 };
  return c->threads > 1 ? PARTS_EACH * c->threads : 1;
}

static void touch_part(const void *args, size_t part) {
  const Ceiling *c = args;
  const Part s = part_of(c, (int)part, count_parts(c));
  for (int k = 0; k < s.nstreams; k++) fill(c->from + (s.from[k] - c->from), s.nlines);
  fill(c->from + (s.rest - c->from), s.nrest);
  fill(s.to, s.nlines);
}

bool ceiling_init(Ceiling *c, const Allocator *allocator, uint64_t nread, uint64_t nwritten, int threads) {
  *c = (Ceiling){.allocator = allocator, .threads = threads};
  c->nread = (size_t)(nread + LINE - 1) / LINE;
  c->nwritten = (size_t)(nwritten + LINE - 1) / LINE;
  c->block = allocator_alloc(allocator, (c->nread + c->nwritten + 1) * LINE);
  if (!c->block) return false;
  c->from = (char *)c->block + (LINE - (uintptr_t)c->block % LINE) % LINE;
  c->to = c->from + c->nread * LINE;
  threads_for(threads, (size_t)count_parts(c), touch_part, c);
  return true;
}

void ceiling_deinit(Ceiling *c) {
  allocator_free(c->allocator, c->block);
  c->block = NULL;
}

static void sweep_part(const void *args, size_t part) {
  const Part s = part_of(args, (int)part, count_parts(args));
  sweep(&s);
}

void ceiling_run(const Ceiling *c) {
  threads_for(c->threads, (size_t)count_parts(c), sweep_part, c);
}

bool cache_flush(const void *bytes, size_t nbytes) {
#if defined(__x86_64__) || defined(__aarch64__)
  const char *end = (const char *)bytes + nbytes;
  for (const char *line = (const char *)bytes - (uintptr_t)bytes % LINE; line < end; line += LINE) {
#if defined(__x86_64__)
    _mm_clflush(line);
#else
    __asm__ volatile("dc civac, %0" : : "r"(line) : "memory");
#endif
  }
  __sync_synchronize();
  return true;
#else
  (void)bytes;
  (void)nbytes;
  return false;
#endif
}
