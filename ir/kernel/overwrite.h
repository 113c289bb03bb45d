// Whether a kernel may store a result in the memory of an operand.
#ifndef NGRAD_IR_KERNEL_OVERWRITE_H
#define NGRAD_IR_KERNEL_OVERWRITE_H

#include "ir/kernel/schedule.h"

// Whether a kernel may store `target` in the memory of `source`, a value of the same shape whose elements have as many
// bytes. It may if no element of `source` is read after the element of `target` in its place is stored: the last read
// is in an earlier sweep, or at the same indices in the same sweep, through accesses with the strides of `target`.
// *is_stored: an earlier kernel has stored `target`, or other elements of it if this kernel stores some; set if this
// kernel stores it. is_needed: scratch memory, a bool for each expression.
bool schedule_may_overwrite(const Schedule *s, const Value *source, const Value *target, bool *is_stored,
                            bool *is_needed);

#endif
