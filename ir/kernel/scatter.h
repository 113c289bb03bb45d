// Scatter kernels, which add rows to rows at given indices: the gradient of Gather.
//
// to[a, r, c] = sum over i of (indices[i], counted from the end if negative, = r ? from[a, i, c] : 0). Computed by this
// definition, each element of row r would read all indices. Instead, a block of rows r goes over the indices once, and
// adds row i of `from` to row indices[i] of `to`. Each sum adds in the order of the indices.
#ifndef NGRAD_IR_KERNEL_SCATTER_H
#define NGRAD_IR_KERNEL_SCATTER_H

#include "ir/kernel/kernel.h"

typedef struct Scatter {
  ExprId sum;
  AccessId to, from, indices;
  int rows, summed, columns; // axes r, i and c
  int batch;                 // axis a; -1: there is none
} Scatter;

// Whether the kernel computes such a sum and nothing else, on dense tensors of the kernel's type.
bool kernel_find_scatter(const Kernel *k, Scatter *s);
bool kernel_is_scatter(const Kernel *k);
// Gives a kernel that lacks nothing else for a scatter, as its rows are single elements, an axis of one column.
void kernel_add_scatter_columns(Kernel *k);

#endif
