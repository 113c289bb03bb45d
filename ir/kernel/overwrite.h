// Whether a kernel may store a result in the memory of an operand.
#ifndef NGRAD_IR_KERNEL_OVERWRITE_H
#define NGRAD_IR_KERNEL_OVERWRITE_H

#include "ir/kernel/schedule.h"

// Whether a kernel may store `target` in the memory of `source`. Both have the same shape and bytes per element. The
// kernel may if it reads each element of `source` before it stores the element of `target` at the same place: the last
// read is in an earlier sweep, or at the same indices in the same sweep through an access with the strides of `target`.
// *is_stored: on entry, an earlier kernel has stored elements of `target`; the function sets it if this kernel stores
// some. is_needed: scratch memory, a bool for each expression.
bool schedule_may_overwrite(const Schedule *s, const Value *source, const Value *target, bool *is_stored,
                            bool *is_needed);

#endif
