// The table of costs, and `--cost NAME=VALUE`.
#include "passes/costs/costs.h"

#include "ir/kernel/schedule.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COST(name, value, ...) .name = (int64_t)(value),
const Costs usual_costs = {
#include "passes/costs/costs.def"
};
#undef COST

enum { MANY = INT32_MAX }; // no limit but that sums and products of a few values do not overflow
#define NOT_MEASURED NULL
#define FUSION "fusion"
#define ORDER "order"
#define SCHEDULE "schedule"
#define COST(name, value, least, most, unit, decides, graph, what, measured)                                           \
  {#name,   offsetof(Costs, name), (int64_t)(value), (int64_t)(least), (int64_t)(most), unit, decides, graph, what,    \
   measured},
const CostInfo cost_table[] = {
#include "passes/costs/costs.def"
};
#undef COST
const size_t ncosts = sizeof cost_table / sizeof *cost_table;

static bool refuse_name(Diagnostics *d, const char *name) {
  const char *known[sizeof cost_table / sizeof *cost_table];
  for (size_t i = 0; i < ncosts; i++) known[i] = cost_table[i].name;
  const char *nearest = nearest_word(name, known, ncosts);
  if (nearest) return error_at(d, (Position){0}, "unknown cost %s, did you mean %s", name, nearest);
  return error_at(d, (Position){0}, "unknown cost %s: ngrad passes --costs lists them", name);
}

bool cost_override(Costs *costs, const char *setting, Diagnostics *d) {
  enum { MOST_BYTES = 64 };
  char name[MOST_BYTES], *end = NULL;
  const size_t length = strcspn(setting, "=");
  snprintf(name, sizeof name, "%.*s", length < MOST_BYTES ? (int)length : MOST_BYTES, setting);
  size_t i = 0;
  while (i < ncosts && strcmp(cost_table[i].name, name) != 0) i++;
  if (i == ncosts) return refuse_name(d, name);
  const CostInfo *info = &cost_table[i];
  const char *number = setting[length] ? setting + length + 1 : "";
  const long long value = strtoll(number, &end, 10);
  if (end == number || *end || value < info->least || value > info->most)
    return error_at(d, (Position){0}, "cost %s: expected %s=N with N from %lld to %lld (%s), found %s", name, name,
                    (long long)info->least, (long long)info->most, info->unit, setting);
  *(int64_t *)((char *)costs + info->offset) = value;
  return true;
}
