// Whether a kernel may write a result where an operand lies.
#ifndef NGRAD_IR_KERNEL_OVERWRITE_H
#define NGRAD_IR_KERNEL_OVERWRITE_H

#include "ir/kernel/kernel.h"

// Whether a scheduled kernel may store `target` in the place of `source`, a value of the same shape with elements of
// as many bytes. It may where each element of `source` is read for the last time at the indices and in the sweep that
// store the element of `target` in its place, or before, and by accesses with the strides of `target`.
// *is_stored: whether an earlier kernel has stored `target`; set where this one does. is_needed: room for a bool for
// each expression.
bool kernel_may_overwrite(const Kernel *k, const Value *source, const Value *target, bool *is_stored, bool *is_needed);

#endif
