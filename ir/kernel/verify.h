// The verifier of kernels: what scheduling and printing may rely on. graph_verify's counterpart.
#ifndef NGRAD_IR_KERNEL_VERIFY_H
#define NGRAD_IR_KERNEL_VERIFY_H

#include "ir/kernel/kernel.h"

// Whether the kernel is sound, at the hints of open extents. False after saying in `why` what is wrong, for people who
// work on ngrad: an unsound kernel is a mistake in a pass. Out of memory: false, with why->out_of_memory. Of any
// kernel:
// - the arguments of each expression stand before it, and it varies over the axes that follow from them;
// - masks are used as masks, and nothing else is;
// - each access stays inside its tensor or temporary, but for loads at computed places;
// - no two indices store the same element.
// Of a scheduled one, besides:
// - each result is stored by one root;
// - every combined partial sum and temporary that a sweep uses is finished by an earlier sweep or loop;
// - chains of additions in f32 are short.
// What a loop does is verified as a tree (ir/loops/verify.h).
bool kernel_verify(const Kernel *k, Text *why);

#endif
