// The keys of `--schedule KEY=N`, which overrides a number of the schedule, and passes that are left out or shown.
#include "passes/schedule/overrides.h"

#include "passes/schedule/kernel_pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const ScheduleKeyInfo schedule_keys[SCHEDULE_KEYS] = {
    [SCHEDULE_ROWS] = {"rows", 1, 32, false, "outer iterations that a micro-kernel computes together"},
    [SCHEDULE_LANES] = {"lanes", 0, 1, true,
                        "1: rows of at most 64 elements in lanes, one row per lane, where possible; 0: never"},
    [SCHEDULE_MIDDLE] = {"middle", 0, 1, true,
                         "1: sums over other axes than the vectors' in registers, where possible; 0: never"},
    [SCHEDULE_BLOCK] = {"block", 1, LONGEST_CHAIN, true, "outer iterations in a block, which has its own partial sums"},
    [SCHEDULE_TILE] = {"tile", LANES, 1 << 24, true, "elements in a block, if the loop has a single axis"},
    [SCHEDULE_PREFETCH] = {"prefetch", 0, 64, false, "outer iterations to prefetch ahead; 0: none"},
    [SCHEDULE_AHEAD] = {"ahead", 0, 1 << 16, false, "elements to prefetch ahead within an outer iteration; 0: none"},
    [SCHEDULE_SEPARATE] = {"separate", 0, 1, false,
                           "1: a sweep for each store whose rows begin in the middle of cache lines; 0: one for all"},
    [SCHEDULE_STREAM] = {"stream", 0, 1, false, "1: stores bypass the caches where rows are aligned; 0: never"},
    [SCHEDULE_MASKS] = {"masks", 0, 1, false, "1: save masks if that spares later sweeps a tensor; 0: never"},
    [SCHEDULE_SLICES] = {"slices", 1, INT32_MAX, true,
                         "the fewest bytes for whose sake kernels go over slices of their tensors together"},
};

// Reports that the setting has no known key, and lists the keys, one on each line.
static bool refuse_key(Diagnostics *d, const char *setting) {
  Text keys;
  text_init(&keys, d->arena.allocator);
  for (int key = 0; key < SCHEDULE_KEYS; key++) {
    const ScheduleKeyInfo *info = &schedule_keys[key];
    char range[48];
    snprintf(range, sizeof range, "%lld to %lld", (long long)info->least, (long long)info->most);
    text_format(&keys, "%s  %-12s  %-15s  %s%s", key ? "\n" : "", info->name, range, info->doc,
                info->changes_sums ? " (changes bits)" : "");
  }
  if (keys.out_of_memory) error_out_of_memory(d);
  else error_with_output(d, text_string(&keys), "schedule %s: expected KEY=N, where KEY and N are", setting);
  text_deinit(&keys);
  return false;
}

bool schedule_override(ScheduleOverrides *overrides, const char *setting, Diagnostics *d) {
  const char *equals = strchr(setting, '=');
  size_t length = equals ? (size_t)(equals - setting) : 0;
  for (int key = 0; key < SCHEDULE_KEYS; key++) {
    const ScheduleKeyInfo *info = &schedule_keys[key];
    if (!length || strlen(info->name) != length || memcmp(info->name, setting, length) != 0) continue;
    char *end;
    long long value = strtoll(equals + 1, &end, 10);
    if (end == equals + 1 || *end || value < info->least || value > info->most)
      return error_at(d, (Position){0}, "schedule %s: expected %lld to %lld, found %s", info->name,
                      (long long)info->least, (long long)info->most, equals + 1);
    overrides->key[key].is_set = true;
    overrides->key[key].value = value;
    return true;
  }
  return refuse_key(d, setting);
}

bool schedule_disables(const ScheduleOverrides *overrides, const char *pass) {
  for (size_t i = 0; i < overrides->ndisabled; i++)
    if (strcmp(overrides->disabled[i], pass) == 0) return true;
  return false;
}

bool kernel_pass_runs(const KernelPass *pass, const ScheduleOverrides *overrides) {
  if (pass->use == FOR_SPEED && overrides->for_size) return false;
  return pass->use == NEEDED || !schedule_disables(overrides, pass->name);
}

bool schedule_keep_text(Schedule *s, const ScheduleOverrides *overrides, const char *pass) {
  if (!overrides->after || strcmp(overrides->after, pass) != 0) return true;
  Text text;
  text_init(&text, s->kernel->arena->allocator);
  schedule_print(s, &text);
  s->shown = text.out_of_memory ? NULL : arena_format(s->kernel->arena, "%s", text_string(&text));
  text_deinit(&text);
  s->kernel->out_of_memory |= !s->shown;
  return s->shown;
}

int64_t schedule_number(const ScheduleOverrides *overrides, ScheduleKey key, int64_t chosen) {
  return overrides->key[key].is_set ? overrides->key[key].value : chosen;
}
