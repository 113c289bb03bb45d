// Scheduling, first part: chooses the order of additions. The order depends only on the graph, never on the target;
// tune.h declares the second part, which depends on the target.
#ifndef NGRAD_PASSES_SCHEDULE_SCHEDULE_H
#define NGRAD_PASSES_SCHEDULE_SCHEDULE_H

#include "ir/kernel/schedule.h"

// Numbers of a schedule that `--schedule KEY=N` overrides, for experiments. keys.c describes them.
typedef enum ScheduleKey {
  SCHEDULE_ROWS,
  SCHEDULE_LANES,
  SCHEDULE_MIDDLE,
  SCHEDULE_SPLIT,
  SCHEDULE_ACCUMULATORS,
  SCHEDULE_BLOCK,
  SCHEDULE_TILE,
  SCHEDULE_PREFETCH,
  SCHEDULE_AHEAD,
  SCHEDULE_APART,
  SCHEDULE_STREAM,
  SCHEDULE_MASKS,
  SCHEDULE_VISIT,
  SCHEDULE_KEYS
} ScheduleKey;

typedef struct ScheduleKeyInfo { // a row of the table of keys
  const char *name;
  int64_t least, most;
  bool changes_sums; // changes the order of additions, and so the last bits of results
  const char *doc;
} ScheduleKeyInfo;
extern const ScheduleKeyInfo schedule_keys[SCHEDULE_KEYS];

typedef struct ScheduleOverrides {
  struct {
    bool is_set;
    int64_t value;
  } key[SCHEDULE_KEYS];
} ScheduleOverrides;

// Parses "key=number". False: the diagnostics say what is wrong.
bool schedule_override(ScheduleOverrides *overrides, const char *setting, Diagnostics *d);

// The key's override, or `chosen` if the key is not overridden.
int64_t schedule_number(const ScheduleOverrides *overrides, ScheduleKey key, int64_t chosen);

// Makes a schedule, in the kernel's arena, with everything that affects the bits of results: which sums are in one
// sweep, the vector axis, the number of accumulators, the lengths of chains, blocks and tiles, and which products are
// fused into sums. All of these follow from shapes and types, not from the target. Vectors lie along vector_axis;
// BEST_AXIS: along the axis that has the most elements with stride 1. NULL: out of memory (k->out_of_memory), or no
// schedule suits all reductions of the kernel; the kernel must not be used any more. Overrides may be NULL.
enum { BEST_AXIS = -1 };
Schedule *kernel_order(Kernel *k, int vector_axis, const ScheduleOverrides *overrides);

#endif
