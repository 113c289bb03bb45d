// Compensated sums of products (sum.h), LANES of them side by side. Each lane has the bits of a Sum to which the same
// products were added by sum_add in the same order: every operation rounds to f64, and none is fused or reordered.
#ifndef NGRAD_BACKENDS_INTERPRETER_LANES_H
#define NGRAD_BACKENDS_INTERPRETER_LANES_H

#include "backends/interpreter/sum.h"

#include <stdbool.h>
#include <stdint.h>

enum { LANES_WIDTH = 8, LANES_VECTORS = 2, LANES = LANES_WIDTH * LANES_VECTORS };

// A vector within an array of doubles: not aligned, and may alias.
typedef double Vector __attribute__((vector_size(LANES_WIDTH * sizeof(double)), aligned(sizeof(double)), may_alias));

typedef struct Lanes { // all members 0: empty sums
  Vector total[LANES_VECTORS], error[LANES_VECTORS], squares[LANES_VECTORS];
} Lanes;

// Offsets of the two factors of a product: x[x] is the same for all lanes, lane j has y[y + j].
typedef struct Term {
  int64_t x, y;
} Term;

// A list of products that is repeated for each channel.
typedef struct Products {
  const double *x, *y;
  const Term *terms;
  int64_t nterms;
  int64_t nchannels, x_channel, y_channel; // strides of the channels in x and y
} Products;

// Adds the products of each channel in turn. Without has_squares, the sums of squares are not computed.
void lanes_add(Lanes *sums, const Products *p, bool has_squares);

// The number of threads among which `nsums` sums of at most `nterms` terms, in LANES lanes each, are divided. As each
// thread needs memory, it is at most MOST_THREADS on every machine.
enum { MOST_THREADS = 4 };
int lanes_threads(int64_t nsums, int64_t nterms);

// A loop over sums, of which each thread runs a part: those from `begin` to below `end`.
typedef struct LanesLoop {
  int64_t nsums;
  int nthreads; // lanes_threads
  void (*run)(const struct LanesLoop *loop, int64_t begin, int64_t end, int thread);
  const void *args;
} LanesLoop;
void lanes_for(const LanesLoop *loop);

static inline Sum lanes_sum(const Lanes *sums, int64_t lane) {
  const int64_t i = lane / LANES_WIDTH, j = lane % LANES_WIDTH;
  return (Sum){sums->total[i][j], sums->error[i][j], sums->squares[i][j]};
}

#endif
