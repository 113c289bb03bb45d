// Numbers of a schedule that `--schedule KEY=N` overrides, for experiments.
#ifndef NGRAD_PASSES_SCHEDULE_OVERRIDES_H
#define NGRAD_PASSES_SCHEDULE_OVERRIDES_H

#include "ir/support/diagnostics.h"

#include <stdbool.h>
#include <stdint.h>

// overrides.c describes each key.
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
  SCHEDULE_SEPARATE,
  SCHEDULE_STREAM,
  SCHEDULE_MASKS,
  SCHEDULE_SLICES,
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

#endif
