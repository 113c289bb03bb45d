// Which thread computed what when, in the format of chrome://tracing and Perfetto: an array of events with times in
// microseconds. A graph is a process in it.
#ifndef NGRAD_FRONTEND_CLI_TRACE_H
#define NGRAD_FRONTEND_CLI_TRACE_H

#include "frontend/cli/session.h"

// Adds the events of one call of a kernel that was compiled with a profile.
ng_status trace_add(json_t *events, ng_kernel *k, const char *graph, const ng_tensor *inputs, ng_tensor *outputs,
                    int threads);
// Writes the file, and frees the events. False after an error message.
bool trace_write(const char *path, json_t *events);

#endif
