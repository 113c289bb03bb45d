// A header in front of each block stores the block's length, so that freeing the block returns its bytes to the budget.
#include "ir/support/budget.h"

#include <stdio.h>

typedef union Head {
  size_t nbytes; // of the block, without this header
  max_align_t alignment;
} Head;

// False: fewer than nbytes are left.
static bool budget_take(Budget *budget, size_t nbytes) {
  size_t used = atomic_load(&budget->used);
  do {
    if (nbytes > budget->limit || used > budget->limit - nbytes) {
      atomic_store(&budget->refused, true);
      return false;
    }
  } while (!atomic_compare_exchange_weak(&budget->used, &used, used + nbytes));
  return true;
}

static void *budget_resize(void *context, void *p, size_t nbytes) {
  Budget *budget = context;
  const Allocator *lender = &budget->lender;
  Head *head = p ? (Head *)p - 1 : NULL;
  const size_t old = head ? head->nbytes : 0;
  if (!nbytes) {
    allocator_free(lender, head);
    atomic_fetch_sub(&budget->used, old);
    return NULL;
  }
  if (nbytes > SIZE_MAX - sizeof *head || (nbytes > old && !budget_take(budget, nbytes - old))) return NULL;
  Head *grown = lender->resize(lender->context, head, sizeof *head + nbytes);
  if (!grown) {
    if (nbytes > old) atomic_fetch_sub(&budget->used, nbytes - old);
    return NULL;
  }
  if (nbytes < old) atomic_fetch_sub(&budget->used, old - nbytes);
  grown->nbytes = nbytes;
  return grown + 1;
}

void budget_init(Budget *budget, Allocator lender, size_t limit) {
  budget->lender = lender;
  budget->limit = limit;
  atomic_init(&budget->used, 0);
  atomic_init(&budget->refused, false);
}

Allocator budget_allocator(Budget *budget) {
  return (Allocator){.resize = budget_resize, .context = budget};
}

size_t budget_left(const Budget *budget) {
  const size_t used = atomic_load(&budget->used);
  return used < budget->limit ? budget->limit - used : 0;
}

uint64_t nbytes_add(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t nbytes_multiply(uint64_t a, uint64_t b) {
  return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

const char *nbytes_string(uint64_t nbytes, char buffer[NBYTES_TEXT]) {
  static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  const double nearly_next = 999.95; // this and more would print as 1000.0
  double number = (double)nbytes;
  size_t unit = 0;
  for (; number >= nearly_next; unit++) number /= 1000;
  snprintf(buffer, NBYTES_TEXT, unit ? "%.1f %s" : "%.0f %s", number, units[unit]);
  return buffer;
}
