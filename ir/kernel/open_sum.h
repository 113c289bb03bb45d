// Sums of numbers that depend on open dims, and whether they are positive.
#ifndef NGRAD_IR_KERNEL_OPEN_SUM_H
#define NGRAD_IR_KERNEL_OPEN_SUM_H

#include "ir/kernel/kernel.h"

// A sum of numbers that depend on open dims, or on sums of them: each summand may become several.
enum { MOST_SUMMANDS = 4 * (3 * MAX_AXES + 4) };
typedef struct OpenSum {
  int count;
  int64_t number[MOST_SUMMANDS]; // at the hints
  Monomial monomial[MOST_SUMMANDS];
  bool is_too_long;
} OpenSum;

void open_sum_add(OpenSum *s, int64_t number, Monomial monomial);
// Whether the sum is at most 0 for all values of the open dims; false also where that is not known.
bool open_sum_is_never_positive(const Kernel *k, const OpenSum *given);

#endif
