// A memory budget: an allocator that forwards requests to another allocator (the lender) as long as the bytes in use
// stay within a limit. Beyond the limit it returns NULL, so that the program reports out of memory before the system
// kills it.
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

// The allocator that counts against the budget. It points to the budget, which must not move while blocks are in use.
// It is thread-safe if the lender is.
Allocator budget_allocator(Budget *budget);

size_t budget_left(const Budget *budget);

// Sums and products that saturate at UINT64_MAX.
uint64_t nbytes_add(uint64_t a, uint64_t b);
uint64_t nbytes_multiply(uint64_t a, uint64_t b);

// "16.0 GB", in units of powers of 1000, written to buffer; returns buffer.
enum { NBYTES_TEXT = 32 };
const char *nbytes_string(uint64_t nbytes, char buffer[NBYTES_TEXT]);

#endif
