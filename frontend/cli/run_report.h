// The results of a run, as text and as JSON.
#ifndef NGRAD_FRONTEND_CLI_RUN_REPORT_H
#define NGRAD_FRONTEND_CLI_RUN_REPORT_H

#include "frontend/cli/data.h"

typedef struct Run {
  const Settings *settings;
  ng_context *ctx;
  const char *path;
  ng_graph *graph;
  ng_kernel *kernel; // NULL: only interpreted
  Tensors inputs, outputs;
  Tensors expected;                 // count 0: no comparison
  ng_difference *differences;       // parallel to expected
  double kernel_ms, interpreter_ms; // negative: did not run
  int ncalls;                       // of the kernel; kernel_ms is the shortest
  ng_pass_report *passes;           // the passes' reports, if requested
  size_t npasses;
  bool dump_failed; // a graph could not be written; the error has been reported
} Run;

bool outputs_are_ok(const Run *run); // within their tolerances

void report_print(const Run *run);
json_t *report_json(const Run *run);

#endif
