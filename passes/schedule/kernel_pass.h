// Passes over kernels: the steps of scheduling, as rows of two tables. order_passes decide the order of additions and
// make the loops (order/order.h); tune_passes choose what a target does with the loops (tune/tune.h).
#ifndef NGRAD_PASSES_SCHEDULE_KERNEL_PASS_H
#define NGRAD_PASSES_SCHEDULE_KERNEL_PASS_H

#include "ir/kernel/schedule.h"
#include "passes/schedule/overrides.h"

struct Scheduling; // passes/schedule/order/scheduling.h
struct Target;     // ir/loops/target.h

typedef enum PassUse {
  FOR_SPEED, // takes memory or code for speed, and decides no bits: left out for little code
  USUAL,
  NEEDED // later passes rely on the pass: it runs even if disabled
} PassUse;

typedef struct KernelPass {
  const char *name;
  // One of both. False: out of memory, or no schedule suits the kernel.
  bool (*order)(struct Scheduling *s);
  bool (*tune)(Schedule *s, const struct Target *target, const ScheduleOverrides *overrides);
  const char *doc; // one line
  PassUse use;
} KernelPass;

// Whether the pass runs.
bool kernel_pass_runs(const KernelPass *pass, const ScheduleOverrides *overrides);

extern const KernelPass order_passes[], tune_passes[];
extern const size_t norder_passes, ntune_passes;

const KernelPass *kernel_pass_at(size_t i);           // in the order in which the passes run; NULL: there are no more
const KernelPass *kernel_pass_find(const char *name); // NULL: there is none

#endif
