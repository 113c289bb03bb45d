// Gradients of norms of random shapes, alone and with their neighbours.
#ifndef NGRAD_TESTS_BENCH_RANDOM_NORM_H
#define NGRAD_TESTS_BENCH_RANDOM_NORM_H

#include <stdbool.h>
#include <stdint.h>

typedef enum NormLayout { LAYOUT_ROWS, LAYOUT_NCX, LAYOUT_NXC } NormLayout;

typedef struct NormForm {
  const char *name;  // of graphs, up to their type
  NormLayout layout; // LAYOUT_ROWS: a layer norm's gradient; else a batch norm's
  bool has_relu;     // before it: ReLU's gradient, from its result
  bool has_add;      // behind it: adds the gradient of the skip connection
} NormForm;

typedef struct RandomNorm {
  const NormForm *form;
  bool is_bf16; // the data; else f32. Statistics and parameters are f32
  int rank;
  int64_t extent[4];
  char name[128];
} RandomNorm;

// Case i of a seed, the same on every machine. Forms come in turn, each in f32 and then in bf16. Two numbers are
// log-uniform: the bytes of a tensor, from 10 kB to 1 GB, and the length of its rows (columns, pixels of a plane, or
// channels that are last), from 3 to 20,000 elements and at most a third of the tensor.
RandomNorm random_norm_draw(uint64_t seed, uint64_t i);

// The graph's text, which the caller frees; NULL: out of memory.
char *random_norm_graph(const RandomNorm *n);

uint64_t random_norm_nbytes(const RandomNorm *n); // of one tensor of data

// Bytes that any kernel must read twice, because its first result needs sums over more data than a cache of this size
// holds: over a channel of a batch norm, or over all channels if channels are last.
uint64_t random_norm_nread_twice(const RandomNorm *n, uint64_t cache_nbytes);

#endif
