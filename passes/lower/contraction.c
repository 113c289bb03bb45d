// Lowering of products and convolutions.
#include "passes/lower/lower.h"

#include <stdlib.h>

// Not written yet: the first use aborts.
#define PLACEHOLDER(name)                                                                                              \
  void lower_##name(Lowering *l, const Node *node);                                                                    \
  void lower_##name(Lowering *l, const Node *node) {                                                                   \
    (void)l;                                                                                                           \
    (void)node;                                                                                                        \
    abort();                                                                                                           \
  }

PLACEHOLDER(MatMul)
PLACEHOLDER(Convolution)
PLACEHOLDER(ConvolutionBackwardData)
PLACEHOLDER(ConvolutionBackwardWeights)
PLACEHOLDER(ConvTranspose)
PLACEHOLDER(ConvTransposeBackwardData)
PLACEHOLDER(ConvTransposeBackwardWeights)
