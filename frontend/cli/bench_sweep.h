// A sweep: a bench for several values of a named extent, and the plot of its times.
#ifndef NGRAD_FRONTEND_CLI_BENCH_SWEEP_H
#define NGRAD_FRONTEND_CLI_BENCH_SWEEP_H

#include "frontend/cli/session.h"

enum { MOST_EXTENTS = 64 };

typedef struct Sweep {
  char *name;                    // of the extent
  int64_t extents[MOST_EXTENTS]; // ascending, from 1
  size_t count;
} Sweep;

// Reads NAME=N,N,... or NAME=FIRST..LAST: extents that double. False after an error message; sweep_deinit must follow
// in any case.
bool sweep_init(Sweep *sweep, const char *text);
void sweep_deinit(Sweep *sweep);

// What was timed: the graph's name, with the program or the options by which it differs. The caller frees it.
char *times_label(const json_t *times);

// A picture (SVG) of median times by extent, from the objects that have `dim` and `extent`. The caller frees it.
char *sweep_plot(json_t *document);

#endif
