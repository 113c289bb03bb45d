// Slices of kernels: what a kernel computes at one index of its first axes, and at a block of indices of the next.
#ifndef NGRAD_IR_KERNEL_SLICE_H
#define NGRAD_IR_KERNEL_SLICE_H

#include "ir/kernel/kernel.h"

// The number of leading axes, at most `most`, along which the kernel can be cut into slices: no sum goes over the axis,
// each result has different elements at each index, and no value depends on the index itself.
int kernel_count_cuts(const Kernel *k, int most);

// Makes the kernel compute one slice of the slice group.
void kernel_slice(Kernel *k, const SliceGroup *slice_group);

#endif
