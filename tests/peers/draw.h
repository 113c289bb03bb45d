// Single operators of random shapes: products, convolutions and pooling, with extents around multiples of vectors and
// tiles.
#ifndef NGRAD_TESTS_PEERS_DRAW_H
#define NGRAD_TESTS_PEERS_DRAW_H

#include "ir/operators/window.h"

#include <stdbool.h>
#include <stdint.h>

// One spatial axis.
typedef struct DrawnWindow {
  int64_t large, small, kernel, stride, dilation, pad_begin, pad_end, output_padding;
} DrawnWindow;

enum { MOST_DRAWN_AXES = 4 };
typedef struct DrawnShape {
  int rank;
  int64_t extent[MOST_DRAWN_AXES];
} DrawnShape;

typedef struct Drawn {
  const char *op;   // a name in ir/operators/operators.def
  const char *type; // of the operands: f32, bf16, f16
  bool has_bias;
  int64_t nterms; // the most products or elements that one sum of the result has, bias included

  // MatMul; dst_type differs from `type` where the result stays f32.
  const char *dst_type;
  bool transpose_a, transpose_b;
  DrawnShape src, weights, bias;

  // Convolutions and pooling; of a convolution that is transposed, the large side's channels are the output's.
  int nspatial;
  DrawnWindow window[MOST_SPATIAL_AXES];
  int64_t batch, groups, large_channels, small_channels;
  int auto_pad;
  bool is_nxc, is_last_format; // weights_format XIO or XOI; else OIX or IOX
  bool rounds_up, excludes_pad;
} Drawn;

// Number i of a seed, the same on every machine.
Drawn drawn_operator(uint64_t seed, uint64_t i);

// The text of a graph with the operator alone. `type`, if not NULL, replaces the type of the operands and the result.
// The caller frees the text; NULL: out of memory.
char *drawn_graph(const Drawn *d, const char *type);

#endif
