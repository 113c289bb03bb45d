// Steps: a budget of compile work, so that a graph whose compilation would take too long is refused.
//
// An allocator points to the counter. Arenas take a step for each allocation; loops over large structures take steps,
// too. Once the steps are used up, every allocation of an arena fails, so that compilation ends as if out of memory;
// steps_are_used_up tells the two apart. The number of steps depends on the graph only, not on the machine.
#ifndef NGRAD_IR_SUPPORT_STEPS_H
#define NGRAD_IR_SUPPORT_STEPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Steps {
  _Atomic int64_t left; // below 0: used up. Threads that allocate at the same time may lose a step
} Steps;

static inline bool steps_are_used_up(const Steps *steps) {
  return atomic_load_explicit(&steps->left, memory_order_relaxed) < 0;
}

// False: the steps are used up. NULL: no limit.
static inline bool steps_take(Steps *steps, int64_t count) {
  if (!steps) return true;
  const int64_t left = atomic_load_explicit(&steps->left, memory_order_relaxed);
  if (left < 0) return false;
  atomic_store_explicit(&steps->left, left - count, memory_order_relaxed);
  return left >= count;
}

#endif
