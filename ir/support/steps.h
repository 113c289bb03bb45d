// Steps: what compiling takes, counted so that a graph whose compilation would not end is refused.
//
// A counter is reached through the allocator of a context. Arenas take a step for each allocation, and so do functions
// that loops over large things call. Once the steps are used up, every allocation of an arena fails, so that whoever is
// compiling ends as if out of memory; steps_are_used_up tells the two apart. A count follows from the graph alone.
#ifndef NGRAD_IR_SUPPORT_STEPS_H
#define NGRAD_IR_SUPPORT_STEPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Steps {
  _Atomic int64_t left; // below 0: they are used up; another thread that allocates may lose a step
} Steps;

static inline bool steps_are_used_up(const Steps *steps) {
  return atomic_load_explicit(&steps->left, memory_order_relaxed) < 0;
}

// False: they are used up. NULL has no limit.
static inline bool steps_take(Steps *steps, int64_t count) {
  if (!steps) return true;
  const int64_t left = atomic_load_explicit(&steps->left, memory_order_relaxed);
  if (left < 0) return false;
  atomic_store_explicit(&steps->left, left - count, memory_order_relaxed);
  return left >= count;
}

#endif
