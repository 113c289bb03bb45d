// Properties of products and convolutions: the roles of their operands' axes.
#ifndef NGRAD_IR_OPERATORS_CONTRACTION_H
#define NGRAD_IR_OPERATORS_CONTRACTION_H

#include "ir/operators/operator.h"

// The axes of a MatMul: dst[batch, m, n] = sum over k of src[batch, m, k] * weights[batch, k, n]. Batch axes of src and
// weights are broadcast against each other.
typedef struct Product {
  int src_m, src_k, weights_k, weights_n; // -1: the operand has rank 1 and no such axis
  int dst_m, dst_n;                       // -1: dst has no such axis
  int nbatch;                             // dst's axes 0 to nbatch - 1 are batch axes
} Product;

Product product_of_ranks(int src_rank, int weights_rank, bool transpose_a, bool transpose_b);
Product node_product(const Node *node); // the ranks of src and weights must be known

// The axis of an operand of this rank that corresponds to dst's batch axis; negative: the operand has none, as if of
// extent 1.
int product_batch_axis(const Product *p, int rank, int batch_axis);

// The axes of a convolution's operands; ir/operators/window.h describes sides and windows. The channels of a side are
// split into `groups` groups of consecutive channels. The weights have an axis for the small side's channels and one
// for the large side's: O and I for Convolution and its gradients, I and O for ConvTranspose and its gradients.
typedef struct Convolution {
  int64_t groups;
  int nspatial;
  int first_spatial;  // of both sides: its first spatial axis
  int channels;       // of both sides: the axis of channels
  int weights_small;  // of the weights: the axis with the small side's channels of all groups
  int weights_large;  // of the weights: the axis with the large side's channels of one group
  int weights_kernel; // of the weights: its first spatial axis
} Convolution;

Convolution node_convolution(const Node *node); // the rank of the large side must be known
Value *convolution_bias(const Node *node);      // [channels of the output]; NULL: none

// Which operand of a product or convolution the value is: 1 for input 0, 2 for input 1. 0: the node has another
// operator, or the value is not one of these inputs, or is both.
int contraction_operand(const Node *node, const Value *v);

#endif
