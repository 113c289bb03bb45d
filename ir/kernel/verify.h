// The verifiers of kernels and schedules, as graph_verify for graphs. Later passes and printers rely on these checks.
//
// They return false after describing the first defect in `why`, for developers of ngrad: an unsound kernel or schedule
// is a bug in a pass. Out of memory: false, with why->out_of_memory set.
#ifndef NGRAD_IR_KERNEL_VERIFY_H
#define NGRAD_IR_KERNEL_VERIFY_H

#include "ir/kernel/schedule.h"

// Whether a kernel that is not scheduled yet is sound:
// - the arguments of each expression are earlier expressions, and determine the axes over which it varies;
// - masks are used as masks, and other expressions are not;
// - each access stays within its tensor for all values of open dims, except loads with a computed offset;
// - no two indices store the same element;
// - no expression reads temporaries or partial results.
bool kernel_verify(const Kernel *k, Text *why);

// Whether a schedule is sound: its kernel is, with temporaries within their bounds, and
// - each result is stored by exactly one root, with the value that the kernel's store specifies after the passes that
//   rewrite the kernel (split axes, nested and long sums), which tests check with numbers;
// - each temporary and partial result that a sweep reads is finished by an earlier sweep or loop;
// - chains of additions in f32 are short.
// The loops themselves are verified as trees (ir/loops/verify.h).
bool schedule_verify(const Schedule *s, Text *why);

#endif
