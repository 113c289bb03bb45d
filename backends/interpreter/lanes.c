// Sums of products in vectors of GNU C.
#include "backends/interpreter/lanes.h"

#include "ir/support/threads.h"

// Clones for the processor's widest vectors, where gcc and the C library can choose a function at run time. No product
// is fused with an addition (-ffp-contract=off), so all clones compute the same bits.
#if defined __x86_64__ && defined __GLIBC__ && !defined __clang__ && !defined __SANITIZE_ADDRESS__ &&                  \
    !defined __SANITIZE_THREAD__
#define WIDEST_VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST_VECTORS
#endif

WIDEST_VECTORS
static void add_products(Lanes *sums, const Products *p, bool has_squares) {
  Lanes s = *sums; // in registers, because the loop over vectors is unrolled
  for (int64_t c = 0; c < p->nchannels; c++) {
    const double *x = &p->x[c * p->x_channel], *y = &p->y[c * p->y_channel];
    for (int64_t i = 0; i < p->nterms; i++) {
      const Vector *row = (const Vector *)&y[p->terms[i].y];
      const double factor = x[p->terms[i].x];
#pragma GCC unroll 2
      for (int v = 0; v < LANES_VECTORS; v++) { // sum_add
        const Vector term = factor * row[v], total = s.total[v] + term, part = total - s.total[v];
        s.error[v] += (s.total[v] - (total - part)) + (term - part);
        s.total[v] = total;
        if (has_squares) s.squares[v] += term * term;
      }
    }
  }
  *sums = s;
}

// The clones are static, because a function with clones is otherwise exported from the shared library whatever its
// visibility.
void lanes_add(Lanes *sums, const Products *p, bool has_squares) {
  add_products(sums, p, has_squares);
}

int lanes_threads(int64_t nsums, int64_t nterms) {
  enum { MANY = 1 << 20 }; // waking threads must take less time than they save
  if (nterms == 0 || nsums < MANY / nterms) return 1;
  const int most = threads_processors();
  return most < MOST_THREADS ? most : MOST_THREADS;
}

static void run_part(const void *args, size_t thread) {
  const LanesLoop *loop = args;
  const int64_t n = loop->nsums, count = loop->nthreads, i = (int64_t)thread;
  loop->run(loop, n / count * i + n % count * i / count, n / count * (i + 1) + n % count * (i + 1) / count,
            (int)thread);
}

void lanes_for(const LanesLoop *loop) {
  if (loop->nthreads > 1) threads_for(loop->nthreads, (size_t)loop->nthreads, run_part, loop);
  else loop->run(loop, 0, loop->nsums, 0);
}
