// What `--schedule KEY=N`, `--disable PASS` and `--after PASS` change in scheduling, for experiments.
#ifndef NGRAD_PASSES_SCHEDULE_OVERRIDES_H
#define NGRAD_PASSES_SCHEDULE_OVERRIDES_H

#include "ir/kernel/schedule.h"
#include "ir/support/diagnostics.h"

#include <stdbool.h>
#include <stdint.h>

// overrides.c describes each key.
typedef enum ScheduleKey {
  SCHEDULE_ROWS,
  SCHEDULE_LANES,
  SCHEDULE_MIDDLE,
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
  // Passes over kernels (kernel_pass.h): the names of those to leave out, and the one after which Schedule.shown is
  // printed; NULL: none.
  const char *const *disabled;
  size_t ndisabled;
  const char *after;
  bool for_size; // leave out the passes that take memory or code for speed
} ScheduleOverrides;

bool schedule_disables(const ScheduleOverrides *overrides, const char *pass);

// Parses "key=number". False: the diagnostics say what is wrong.
bool schedule_override(ScheduleOverrides *overrides, const char *setting, Diagnostics *d);

// Keeps the schedule as text if the pass is the one whose result is shown. False: out of memory.
bool schedule_keep_text(Schedule *s, const ScheduleOverrides *overrides, const char *pass);

// The key's override, or `chosen` if the key is not overridden.
int64_t schedule_number(const ScheduleOverrides *overrides, ScheduleKey key, int64_t chosen);

#endif
