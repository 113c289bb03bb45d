// Scheduling: a kernel's expressions become loops, whose order of additions the graph alone decides.
#ifndef NGRAD_PASSES_SCHEDULE_SCHEDULE_H
#define NGRAD_PASSES_SCHEDULE_SCHEDULE_H

#include "ir/kernel/kernel.h"
#include "ir/loops/target.h"

// Numbers of a schedule that can be set from outside, for experiments.
typedef enum ScheduleKey {
  SCHEDULE_ROWS,
  SCHEDULE_LANES,
  SCHEDULE_MIDDLE,
  SCHEDULE_ACCUMULATORS,
  SCHEDULE_BLOCK,
  SCHEDULE_TILE,
  SCHEDULE_PREFETCH,
  SCHEDULE_AHEAD,
  SCHEDULE_APART,
  SCHEDULE_STREAM,
  SCHEDULE_MASKS,
  SCHEDULE_KEYS
} ScheduleKey;

typedef struct ScheduleKeyInfo { // a row of the table of keys
  const char *name;
  int64_t least, most;
  bool changes_sums; // the order of additions, and so the last bits of results
  const char *doc;
} ScheduleKeyInfo;
extern const ScheduleKeyInfo schedule_keys[SCHEDULE_KEYS];

typedef struct ScheduleOverrides {
  struct {
    bool is_set;
    int64_t value;
  } key[SCHEDULE_KEYS];
} ScheduleOverrides;

// Takes in "key=number"; false after telling what is wrong with it.
bool schedule_override(ScheduleOverrides *overrides, const char *setting, Diagnostics *d);

int64_t schedule_number(const ScheduleOverrides *overrides, ScheduleKey key,
                        int64_t chosen); // what is set from outside, if it is

// Scheduling has two parts. Neither takes overrides of NULL for anything but none. False: out of memory
// (k->out_of_memory), or, of the first, no schedule carries these reductions together; k is then spoilt.

// Fills k->loops and k->temporaries: everything that decides bits. Which sums share a sweep, along which axis lanes
// lie, how many accumulators there are, how long chains, blocks and tiles are, which products enter sums unrounded: all
// of it follows from shapes and types, and no target is known here. Vectors lie along vector_axis; BEST_AXIS: along the
// axis along which most elements lie next to each other.
enum { BEST_AXIS = -1 };
bool kernel_order(Kernel *k, int vector_axis, const ScheduleOverrides *overrides);

// Fills in what is faster on this target and changes no bit: rows together, stores past the caches, prefetching, masks
// and vectors that are kept, places in the workspace.
bool kernel_tune(Kernel *k, const Target *target, const ScheduleOverrides *overrides);

#endif
