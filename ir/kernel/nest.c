// Adds factors and segments to the levels of a Loop.
#include "ir/kernel/nest.h"

static void add_level(Nest *nest, NestLevel level) {
  nest->levels[nest->nlevels++] = level;
}

static void add_middle_levels(const Loop *loop, const Segments *segments, Nest *nest) {
  for (int at = loop->nouter; at < loop->nouter + loop->ninner - 1; at++) {
    const bool are_cut = (segments->iterations || segments->is_open) && loop->axes[at] == segments->axis;
    if (are_cut && segments->iterations != 1) add_level(nest, (NestLevel){ROLE_SEGMENTS, at, 1, segments->iterations});
    add_level(nest, (NestLevel){ROLE_SERIAL, at, 1, 1});
    if (are_cut && segments->iterations == 1) add_level(nest, (NestLevel){ROLE_SEGMENTS, at, 1, 1});
  }
}

static void add_levels(const Kernel *k, const Loop *loop, LoopLevel level, const Segments *segments, Nest *nest) {
  const int tile = loop_tile(loop) != 0, last = loop->nouter + loop->ninner - 1;
  const AxisSet taps = level == LOOP_TAPS ? loop_row_axes(k, loop) : 0; // 0: rows are indices on all axes that are cut
  int first = loop->nbatch;
  while (taps && !(taps >> loop->axes[first] & 1)) first++;
  const int naxes = loop->nouter - first;
  switch (level) {
  case LOOP_END: return;
  case LOOP_BATCH:
    for (int i = 0; i < loop->nbatch; i++) add_level(nest, (NestLevel){ROLE_BATCH, i, 1, 1});
    return;
  case LOOP_CUT:
    if (naxes + tile) add_level(nest, (NestLevel){ROLE_CUT, first, naxes + tile, loop_block_length(k, loop)});
    return;
  case LOOP_COLUMNS:
    if (loop->columns) add_level(nest, (NestLevel){ROLE_CUT, last, 1, loop->columns});
    return;
  case LOOP_ROWS:
  case LOOP_TAPS:
    if (!tile) add_level(nest, (NestLevel){loop->rows > 1 ? ROLE_ROWS : ROLE_SERIAL, first, naxes, loop->rows});
    return;
  case LOOP_ROW_LANES: add_level(nest, (NestLevel){ROLE_LANES, first, naxes, 1}); return;
  case LOOP_MIDDLE: add_middle_levels(loop, segments, nest); return;
  case LOOP_LANES:
    if (segments->elements && !segments->is_open)
      add_level(nest, (NestLevel){ROLE_SEGMENTS, last, 1, segments->elements});
    if (loop->ninner) add_level(nest, (NestLevel){ROLE_LANES, last, 1, loop->vectors ? loop->vectors : 1});
    return;
  case LOOP_ROW_ELEMENTS:
  case LOOP_ROW_COPY: add_level(nest, (NestLevel){ROLE_SERIAL, last, 1, 1}); return;
  }
}

Nest loop_nest(const Kernel *k, const Loop *loop, const Segments *segments) {
  Nest nest = {0};
  for (const LoopLevel *level = loop->levels; *level; level++) {
    add_levels(k, loop, *level, segments, &nest);
    if (*level < LOOP_MIDDLE) nest.inside = nest.nlevels;
  }
  return nest;
}

AxisSet nest_level_axes(const Loop *loop, const NestLevel *level) {
  AxisSet axes = 0;
  for (int i = 0; i < level->naxes; i++) axes |= 1U << loop->axes[level->first + i];
  return axes;
}

static void print_factor(const NestLevel *level, Text *out) {
  const long long factor = level->factor;
  if (level->role == ROLE_LANES) text_format(out, factor > 1 ? " by %d x %lld" : " by %d", LANES, factor);
  else text_format(out, factor ? " by %lld" : " by an open length", factor);
}

void nest_print(const Kernel *k, const Loop *loop, const Nest *nest, Text *out) {
  static const char *const names[] = {"batch", "cut", "rows", "lanes", "segments", "serial"};
  const char *before = "";
  for (int i = 0; i < nest->nlevels; i++) {
    const NestLevel *level = &nest->levels[i];
    const bool has_factor = level->role != ROLE_BATCH && level->role != ROLE_SERIAL;
    if (!level->naxes) continue;
    const bool is_same = i > 0 && i != nest->inside && !has_factor && level[-1].role == level->role;
    if (!is_same) text_format(out, "%s%s%s", before, i == nest->inside ? "micro-kernel: " : "", names[level->role]);
    for (int a = 0; a < level->naxes; a++) text_format(out, " %s", k->axes[loop->axes[level->first + a]].name);
    if (has_factor) print_factor(level, out);
    before = "; ";
  }
}
