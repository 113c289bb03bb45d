// ngrad run: executes a graph on one or both backends, and prints, writes or compares the outputs.
#include "frontend/cli/clock.h"
#include "frontend/cli/progress.h"
#include "frontend/cli/run_report.h"
#include "frontend/cli/verbs.h"

#include <stdlib.h>
#include <string.h>

static bool is_interpreted(const Settings *s) {
  return s->backend && strcmp(s->backend, "interpreter") == 0;
}

// Returns 0, or the exit status after an error message about options that exclude each other.
static int check_settings(const Settings *s) {
  static const char *const backends[] = {"interpreter", "codegen"};
  bool has_expected = s->expect || s->compares;
  if (s->backend && strcmp(s->backend, "codegen") != 0 && !is_interpreted(s)) {
    const char *nearest = ng_nearest(s->backend, backends, 2);
    return usage_error("unknown backend %s, %s%s", s->backend, nearest ? "did you mean " : "expected ",
                       nearest ? nearest : "interpreter or codegen");
  }
  if (s->in && s->is_random) return usage_error("--in and --random: expected one of them");
  if (s->compares && s->expect) return usage_error("--compare and --expect: expected one of them");
  if (s->compares && s->backend) return usage_error("--compare runs both backends, expected no --backend with it");
  if (s->tolerance >= 0 && !has_expected) return usage_error("--tolerance: expected --expect or --compare with it");
  if (s->max_ulp >= 0 && !has_expected) return usage_error("--max-ulp: expected --expect or --compare with it");
  if ((s->times_passes || s->dump) && is_interpreted(s))
    return usage_error("%s: the interpreter runs no passes, expected no --backend interpreter with it",
                       s->dump ? "--dump-dir" : "--time-passes");
  if (s->checks_nan && !is_interpreted(s) && !s->compares)
    return usage_error("--nan-check is the interpreter's, expected --backend interpreter with it");
  return 0;
}

// Stores a pass's report, and writes the graph after the pass.
static void watch_pass(void *user, const ng_pass_report *report) {
  Run *run = user;
  run->passes = memory_or_exit(realloc(run->passes, (run->npasses + 1) * sizeof *run->passes));
  run->passes[run->npasses] = *report;
  run->passes[run->npasses++].graph = NULL; // the text is freed before the report is printed
  if (!report->graph) return;
  char name[128];
  snprintf(name, sizeof name, "%02zu-%s", report->number, report->name);
  char *path = path_join(run->settings->dump, name, ".yaml");
  run->dump_failed |= !file_write(path, report->graph);
  free(path);
}

static ng_status run_kernel(Run *run) {
  const Settings *s = run->settings;
  ng_options options = options_of_settings(s);
  if (s->times_passes || s->dump) {
    options.report = watch_pass;
    options.report_user = run;
    options.report_graphs = s->dump != NULL;
  }
  if (s->dump && !folder_make(s->dump)) return NG_WRONG;
  progress_begin("compiling", ng_graph_name(run->graph));
  run->kernel = ng_compile(run->graph, &options);
  if (!run->kernel) return ng_last_status(run->ctx);
  if (run->dump_failed) return NG_WRONG;
  progress_begin("running", ng_graph_name(run->graph));
  // A comparison prints both times. The first run of a kernel also touches its memory for the first time.
  ng_status status = NG_OK;
  const int ncalls = s->compares ? 3 : 1;
  while (run->ncalls < ncalls && status == NG_OK) {
    double start = now_ms();
    status = ng_kernel_run(run->kernel, run->inputs.items, run->outputs.items, s->threads);
    double ms = now_ms() - start;
    if (run->ncalls++ == 0 || ms < run->kernel_ms) run->kernel_ms = ms;
  }
  if (status == NG_OUT_OF_MEMORY) plain_error("out of memory"); // the interpreter adds no message for it
  return status;
}

static ng_status run_interpreter(Run *run, Tensors *outputs) {
  double start = now_ms();
  progress_tell(NULL, "interpreting", 0);
  ng_status status = ng_interpret(run->graph, run->inputs.items, outputs->items, run->settings->checks_nan);
  run->interpreter_ms = now_ms() - start;
  return status;
}

static ng_status read_expected(Run *run) {
  run->expected =
      (Tensors){run->ctx, memory_or_exit(calloc(run->outputs.count + 1, sizeof(ng_tensor))), run->outputs.count};
  ng_status status = NG_OK;
  for (size_t i = 0; i < run->expected.count && status == NG_OK; i++) {
    ng_tensor_info info = ng_graph_output(run->graph, i);
    char *path = tensor_path(run->settings->expect, info.name);
    status = ng_tensor_read_npy(run->ctx, path, &info, 1, &run->expected.items[i]);
    free(path);
  }
  return status;
}

static ng_status compare_outputs(Run *run) {
  progress_begin("comparing", ng_graph_name(run->graph));
  run->differences = memory_or_exit(calloc(run->expected.count + 1, sizeof *run->differences));
  ng_status status = ng_compare_outputs(run->graph, run->kernel, run->inputs.items, run->outputs.items,
                                        run->expected.items, run->settings->tolerance, run->differences);
  if (status != NG_OK && status != NG_DIFFERENT) return status;
  return outputs_are_ok(run) ? NG_OK : NG_DIFFERENT;
}

static ng_status write_outputs(const Run *run) {
  const char *folder = run->settings->out;
  if (!folder_make(folder)) return NG_WRONG;
  ng_status status = NG_OK;
  for (size_t i = 0; i < run->outputs.count && status == NG_OK; i++) {
    char *path = tensor_path(folder, ng_graph_output(run->graph, i).name);
    status = ng_tensor_write_npy(run->ctx, path, &run->outputs.items[i]);
    free(path);
  }
  return status;
}

// Writes the states after the call.
static ng_status save_states(const Run *run) {
  const size_t count = ng_graph_state_count(run->graph);
  const char **names = memory_or_exit(calloc(count + 1, sizeof *names));
  ng_tensor *states = memory_or_exit(calloc(count + 1, sizeof *states));
  for (size_t i = 0; i < count; i++) {
    const ng_state state = ng_graph_state(run->graph, i);
    names[i] = ng_graph_input(run->graph, state.input).name;
    states[i] = state.is_updated ? run->outputs.items[state.output] : run->inputs.items[state.input];
  }
  ng_status status = ng_checkpoint_write(run->ctx, run->settings->save, names, states, count);
  free(names);
  free(states);
  return status;
}

static ng_status check_run(const Run *run, bool has_inputs) {
  const Settings *s = run->settings;
  return memory_check(run->ctx, run->graph, "running", s->compares || s->expect ? 2 : 1,
                      s->compares || is_interpreted(s), has_inputs);
}

// Does all the work. NG_OK and NG_DIFFERENT leave everything that a report needs.
static ng_status run_graph(Run *run) {
  const Settings *s = run->settings;
  ng_status status;
  run->graph = graph_open(run->ctx, run->path, s, &status);
  if (!run->graph) return status;
  if (s->has_seed && !s->is_random && !ng_graph_state_count(run->graph)) {
    usage_error("--seed: expected --random with it, or a graph with state");
    return NG_USAGE;
  }
  if ((s->state || s->save) && !ng_graph_state_count(run->graph)) {
    usage_error("--%s: expected a graph with state", s->state ? "state" : "save");
    return NG_USAGE;
  }
  if (!s->is_json) session_tell(run->ctx); // warnings come before long work
  progress_begin("preparing", ng_graph_name(run->graph));
  status = s->is_random ? check_run(run, false) : NG_OK; // with files, their shapes give the extents
  if (status == NG_OK) status = inputs_make(&run->inputs, run->ctx, run->graph, run->path, s);
  if (status == NG_OK && !s->is_random) status = check_run(run, true);
  if (status == NG_OK) status = outputs_make(&run->outputs, run->ctx, run->graph);
  // Finds errors of files before long work, too.
  if (status == NG_OK && s->expect) status = read_expected(run);
  if (status == NG_OK) status = ng_graph_check_indices(run->graph, run->inputs.items);
  if (status == NG_OK) status = is_interpreted(s) ? run_interpreter(run, &run->outputs) : run_kernel(run);
  if (status == NG_OK && s->out) status = write_outputs(run);
  if (status == NG_OK && s->save) status = save_states(run);
  if (status == NG_OK && s->compares) status = outputs_make(&run->expected, run->ctx, run->graph);
  if (status == NG_OK && s->compares) status = run_interpreter(run, &run->expected);
  if (status == NG_OK && run->expected.count) status = compare_outputs(run);
  return status;
}

// The document of a run that failed.
static json_t *failure_json(const Run *run) {
  return json_object_of({"graph", json_text(run->graph ? ng_graph_name(run->graph) : NULL)},
                        {"file", json_text(run->path)}, {"messages", json_messages(run->ctx)});
}

int verb_run(const Settings *s) {
  int wrong = check_settings(s);
  if (wrong) return wrong;
  Run run = {.settings = s,
             .ctx = session_open(s->max_memory, s->max_steps),
             .path = s->operands[0],
             .kernel_ms = -1,
             .interpreter_ms = -1};
  ng_status status = run_graph(&run);
  bool is_complete = status == NG_OK || status == NG_DIFFERENT;
  json_t *document = !s->is_json ? NULL : is_complete ? report_json(&run) : failure_json(&run);
  session_tell(run.ctx);
  if (document) json_print(document);
  else if (is_complete) report_print(&run);
  free(run.differences);
  free(run.passes);
  tensors_free(&run.inputs);
  tensors_free(&run.outputs);
  tensors_free(&run.expected);
  ng_kernel_free(run.kernel);
  ng_graph_free(run.graph);
  session_close(run.ctx);
  return exit_status(status);
}
