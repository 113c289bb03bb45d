// A memory budget: an allocator that lends from another one up to a limit. What it refuses counts as out of memory, so
// that a process which would be killed for lack of memory ends with a message.
#ifndef NGRAD_IR_SUPPORT_BUDGET_H
#define NGRAD_IR_SUPPORT_BUDGET_H

#include "ir/support/memory.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct Budget {
  Allocator lender;
  size_t limit;        // bytes that may be in use at a time
  atomic_size_t used;  // bytes in use
  atomic_bool refused; // a request exceeded the limit
} Budget;

// The lender's context must outlive the budget.
void budget_init(Budget *budget, Allocator lender, size_t limit);

// The allocator itself. The budget must stay where it is while blocks are in use. Safe from several threads as far as
// the lender is.
Allocator budget_allocator(Budget *budget);

size_t budget_left(const Budget *budget);

// Sums and products of bytes that stay at the largest number where they would exceed it.
uint64_t nbytes_add(uint64_t a, uint64_t b);
uint64_t nbytes_multiply(uint64_t a, uint64_t b);

// "16.0 GB", in units of powers of 1000; the result is in buffer.
enum { NBYTES_TEXT = 32 };
const char *nbytes_string(uint64_t nbytes, char buffer[NBYTES_TEXT]);

#endif
