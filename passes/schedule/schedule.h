// Scheduling: a kernel's expressions become loops.
#ifndef NGRAD_PASSES_SCHEDULE_SCHEDULE_H
#define NGRAD_PASSES_SCHEDULE_SCHEDULE_H

#include "ir/kernel/kernel.h"
#include "ir/loops/target.h"

// Numbers of a schedule that can be set from outside, for experiments.
typedef enum ScheduleKey {
  SCHEDULE_ROWS,
  SCHEDULE_ACROSS,
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

// Fills k->loops and k->temporaries. What decides the order of additions (inner axes, blocks of outer reductions,
// accumulators) depends on the shapes alone, so results are the same bits for every target and thread count.
// Vectors lie along vector_axis; BEST_AXIS: along the axis along which most elements lie next to each other.
// False: out of memory (k->out_of_memory), or no schedule carries these reductions together; k is then spoilt.
enum { BEST_AXIS = -1 };
bool kernel_schedule(Kernel *k, int vector_axis, const Target *target,
                     const ScheduleOverrides *overrides); // overrides NULL: none

#endif
