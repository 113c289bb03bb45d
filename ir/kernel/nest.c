// Derives the levels of a nest from a Loop.
#include "ir/kernel/nest.h"

static void add_level(Nest *nest, NestLevel level) {
  nest->levels[nest->nlevels++] = level;
}

// The levels outside of a step. Without outer axes, a step is called once.
static void add_outer_levels(const Kernel *k, const Loop *loop, Nest *nest) {
  const int ncut = loop_tile(loop) ? 1 : loop->nouter - loop->nfree;
  const NestRole role = loop->rows_in_lanes ? ROLE_LANES : loop->rows > 1 ? ROLE_ROWS : ROLE_SERIAL;
  const AxisSet rows = loop_row_axes(k, loop); // 0: rows are indices on all axes that are cut
  int first = loop->nfree;
  while (rows && !(rows >> loop->axes[first] & 1)) first++;
  for (int i = 0; i < loop->nfree; i++) add_level(nest, (NestLevel){ROLE_FREE, i, 1, 1});
  if (ncut) add_level(nest, (NestLevel){ROLE_CUT, loop->nfree, ncut, loop_block_length(k, loop)});
  if (loop->columns) add_level(nest, (NestLevel){ROLE_CUT, loop->nouter + loop->ninner - 1, 1, loop->columns});
  if (!loop_tile(loop)) add_level(nest, (NestLevel){role, first, loop->nouter - first, loop->rows});
  nest->step = nest->nlevels;
}

static void add_middle_levels(const Loop *loop, const Runs *runs, Nest *nest) {
  for (int i = 0; i < loop->ninner - 1; i++) {
    const int at = loop->nouter + i;
    const bool has_runs = (runs->middle_run || runs->is_open) && i == runs->depth;
    if (has_runs && runs->middle_run != 1) add_level(nest, (NestLevel){ROLE_RUNS, at, 1, runs->middle_run});
    add_level(nest, (NestLevel){ROLE_SERIAL, at, 1, 1});
    if (has_runs && runs->middle_run == 1) add_level(nest, (NestLevel){ROLE_RUNS, at, 1, 1});
  }
}

static void add_lanes(const Loop *loop, Nest *nest) {
  if (loop->ninner)
    add_level(nest, (NestLevel){ROLE_LANES, loop->nouter + loop->ninner - 1, 1,
                                loop->sums_middle ? loop->vectors : loop_accumulators(loop)});
}

Nest loop_nest(const Kernel *k, const Loop *loop, const Runs *runs) {
  Nest nest = {0};
  const int last = loop->nouter + loop->ninner - 1;
  add_outer_levels(k, loop, &nest);
  if (loop->sums_middle) add_lanes(loop, &nest);
  add_middle_levels(loop, runs, &nest);
  if (runs->vector_run && !runs->is_open) add_level(&nest, (NestLevel){ROLE_RUNS, last, 1, runs->vector_run});
  if (loop->rows_in_lanes) add_level(&nest, (NestLevel){ROLE_SERIAL, last, 1, 1});
  else if (!loop->sums_middle) add_lanes(loop, &nest);
  return nest;
}

AxisSet nest_level_axes(const Loop *loop, const NestLevel *level) {
  AxisSet axes = 0;
  for (int i = 0; i < level->naxes; i++) axes |= 1U << loop->axes[level->first + i];
  return axes;
}

static void print_factor(const NestLevel *level, Text *out) {
  const long long factor = level->factor;
  switch (level->role) {
  case ROLE_CUT:
  case ROLE_ROWS: text_format(out, " by %lld", factor); return;
  case ROLE_LANES: text_format(out, factor > 1 ? " by %d x %lld" : " by %d", LANES, factor); return;
  case ROLE_RUNS: text_format(out, factor ? " by %lld" : " by an open length", factor); return;
  case ROLE_FREE:
  case ROLE_SERIAL: return;
  }
}

void nest_print(const Kernel *k, const Loop *loop, const Nest *nest, Text *out) {
  static const char *const names[] = {"free", "cut", "rows", "lanes", "runs", "serial"};
  const char *before = "";
  for (int i = 0; i < nest->nlevels; i++) {
    const NestLevel *level = &nest->levels[i];
    const bool has_factor = level->role != ROLE_FREE && level->role != ROLE_SERIAL;
    if (!level->naxes) continue;
    const bool is_same = i > 0 && i != nest->step && !has_factor && level[-1].role == level->role;
    if (!is_same) text_format(out, "%s%s%s", before, i == nest->step ? "step: " : "", names[level->role]);
    for (int a = 0; a < level->naxes; a++) text_format(out, " %s", k->axes[loop->axes[level->first + a]].name);
    print_factor(level, out);
    before = "; ";
  }
}
