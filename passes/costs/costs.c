// The table of costs.
#include "passes/costs/costs.h"

#include "ir/kernel/kernel.h"

#include <stddef.h>

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
