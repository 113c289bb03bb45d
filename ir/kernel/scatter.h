// Kernels that add rows to rows at given indices: the gradient of Gather.
//
// to[a, r, c] = sum over i of (place of indices[i] = r ? from[a, i, c] : 0). Summed by the definition, each row r would
// look at all indices for each of its elements. A block of rows goes over the indices once instead, and adds row i of
// `from` to the row that it is of: each sum is a chain in the order of the indices.
#ifndef NGRAD_IR_KERNEL_SCATTER_H
#define NGRAD_IR_KERNEL_SCATTER_H

#include "ir/kernel/kernel.h"

typedef struct Scatter {
  ExprId sum;
  AccessId to, from, indices;
  int rows, summed, columns; // axes r, i and c
  int free;                  // axis a; -1: there is none
} Scatter;

// Whether that is all that the kernel computes, of tensors that are dense and of the kernel's type.
bool kernel_find_scatter(const Kernel *k, Scatter *s);

#endif
