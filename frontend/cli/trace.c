// Makes the events of a trace: one for each span, and names of graphs and threads.
#include "frontend/cli/trace.h"

#include <stdlib.h>

static json_t *event_new(const char *phase, const char *name, size_t process, int thread) {
  return json_object_of({"ph", json_text(phase)}, {"name", json_text(name)}, {"pid", json_count(process)},
                        {"tid", json_integer(thread)});
}

// Adds the name of a process or a thread.
static void add_name(json_t *events, const char *kind, const char *name, size_t process, int thread) {
  json_t *event = event_new("M", kind, process, thread), *args = memory_or_exit(json_object());
  json_set(args, "name", json_text(name));
  json_set(event, "args", args);
  json_add(events, event);
}

static json_t *span_event(const ng_profile *profile, const ng_span *span, size_t process) {
  const ng_profile_kernel *kernel = &profile->kernels[span->kernel];
  char name[512];
  snprintf(name, sizeof name, "kernel %zu: %s", span->kernel, kernel->text);
  json_t *event = event_new("X", name, process, span->thread), *args = memory_or_exit(json_object());
  json_set_all(event, {"cat", json_text("kernel")}, {"ts", json_number(span->begin_ms * 1e3)},
               {"dur", json_number((span->end_ms - span->begin_ms) * 1e3)});
  json_set_all(args, {"kernel", json_count(span->kernel)}, {"loop", json_count(span->loop)});
  if (span->loop < kernel->nloops) json_set(args, "does", json_text(kernel->loops[span->loop].text));
  json_set(args, "blocks", json_count(span->nblocks));
  json_set(event, "args", args);
  return event;
}

// Processes are numbered from 1; the last number is read from the events.
static size_t next_process(const json_t *events) {
  const json_t *last = json_array_get(events, json_array_size(events) - 1);
  return last ? (size_t)json_integer_value(json_object_get(last, "pid")) + 1 : 1;
}

ng_status trace_add(json_t *events, ng_kernel *k, const char *graph, const ng_tensor *inputs, ng_tensor *outputs,
                    int threads) {
  const ng_span *spans;
  size_t count;
  ng_status status = ng_kernel_run(k, inputs, outputs, threads); // starts the threads before the traced call
  if (status == NG_OK) status = ng_kernel_trace(k, inputs, outputs, threads, &spans, &count);
  if (status == NG_OUT_OF_MEMORY) plain_error("out of memory"); // the call adds no message for it
  if (status != NG_OK) return status;
  const size_t process = next_process(events);
  add_name(events, "process_name", graph, process, 0);
  for (int i = 0; i < (threads ? threads : ng_thread_count()); i++) {
    char name[32];
    snprintf(name, sizeof name, "thread %d", i);
    add_name(events, "thread_name", name, process, i);
  }
  for (size_t i = 0; i < count; i++) json_add(events, span_event(ng_kernel_profile(k), &spans[i], process));
  return NG_OK;
}

bool trace_write(const char *path, json_t *events) {
  json_t *document = json_object_of({"traceEvents", events}, {"displayTimeUnit", json_text("ms")});
  char *text = json_to_text(document, JSON_INDENT(1));
  json_decref(document);
  const bool ok = file_write(path, text);
  free(text);
  return ok;
}
