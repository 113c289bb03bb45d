// Prints summaries of outputs and tables of differences.
#include "frontend/cli/run_report.h"

#include "frontend/cli/table.h"

#include <math.h>
#include <stdlib.h>

typedef struct Summary { // of a tensor's elements; NaNs are counted separately
  double least, greatest, mean;
  int64_t nelems, nnan;
} Summary;

static Summary summarize(const ng_tensor *t) {
  Summary s = {.least = INFINITY, .greatest = -INFINITY, .nelems = ng_tensor_nelems(t)};
  double sum = 0;
  for (int64_t i = 0; i < s.nelems; i++) {
    double value = ng_tensor_get(t, i);
    s.nnan += isnan(value);
    if (isnan(value)) continue;
    sum += value;
    if (value < s.least) s.least = value;
    if (value > s.greatest) s.greatest = value;
  }
  s.mean = sum / (double)(s.nelems - s.nnan);
  return s;
}

static bool output_is_ok(const Run *run, size_t i) {
  const ng_difference *d = &run->differences[i];
  double max_ulp = run->settings->max_ulp;
  return d->is_within && (max_ulp < 0 || d->largest_ulp <= max_ulp);
}

bool outputs_are_ok(const Run *run) {
  bool ok = true;
  for (size_t i = 0; i < run->expected.count; i++) ok &= output_is_ok(run, i);
  return ok;
}

static int thread_count(const Run *run) {
  return run->settings->threads ? run->settings->threads : ng_thread_count();
}

static void print_summary(const Run *run) {
  static const char *const header[] = {"output", "type", "shape", "min", "max", "mean", "NaN"};
  Table table = table_headed("lllrrrr", header);
  for (size_t i = 0; i < run->outputs.count; i++) {
    ng_tensor_info info = ng_graph_output(run->graph, i);
    Summary s = summarize(&run->outputs.items[i]);
    char *shape = shape_text(&info);
    table_add(&table, "%s", info.name);
    table_add(&table, "%s", ng_type_name(info.type));
    table_add(&table, "%s", shape);
    free(shape);
    if (s.nelems == s.nnan) { // no elements, or only NaNs
      for (int column = 0; column < 3; column++) table_add(&table, "-");
    } else {
      table_add(&table, "%.6g", s.least);
      table_add(&table, "%.6g", s.greatest);
      table_add(&table, "%.6g", s.mean);
    }
    table_add(&table, "%lld", (long long)s.nnan);
  }
  table_print(&table);
}

static const char *plural(size_t count) {
  return count == 1 ? "" : "s";
}

static void print_worst(const Run *run, size_t i) {
  const ng_difference *d = &run->differences[i];
  ng_tensor_info info = ng_graph_output(run->graph, i);
  if (d->worst_element < 0) return;
  char *indices = indices_text(&info, d->worst_element);
  say("%s%s is %.9g, expected %.9g\n", info.name, indices, ng_tensor_get(&run->outputs.items[i], d->worst_element),
      ng_tensor_get(&run->expected.items[i], d->worst_element));
  free(indices);
}

// Reports elements that differ from the f64 result and yet pass.
static void print_tolerated(const Run *run, size_t i) {
  const ng_difference *d = &run->differences[i];
  const char *name = ng_graph_output(run->graph, i).name;
  if (d->noverflown) {
    say("%s: %lld element%s overflow%s correctly, because an intermediate value does: ", name, (long long)d->noverflown,
        plural((size_t)d->noverflown), d->noverflown == 1 ? "s" : "");
    print_worst(run, i);
  }
  if (d->nleft_out)
    say("%s: %lld element%s excluded, because rounding errors change %s too much\n", name, (long long)d->nleft_out,
        d->nleft_out == 1 ? " is" : "s are", d->nleft_out == 1 ? "it" : "them");
  if (d->nflipped)
    say("%s: %lld element%s what rounding errors that flip a choice make of %s\n", name, (long long)d->nflipped,
        d->nflipped == 1 ? " is" : "s are", d->nflipped == 1 ? "it" : "them");
}

// Whether the error counts in units in the last place.
static bool is_judged_by_ulp(const Run *run, const ng_difference *d) {
  return isfinite(d->most_ulp) || run->settings->max_ulp >= 0;
}

static void print_differences(const Run *run) {
  static const char *const header[] = {"output", "type", "relative L2", "tolerance", "largest error", ""};
  Table table = table_headed("llrrrl", header);
  for (size_t i = 0; i < run->expected.count; i++) {
    ng_tensor_info info = ng_graph_output(run->graph, i);
    const ng_difference *d = &run->differences[i];
    table_add(&table, "%s", info.name);
    table_add(&table, "%s", ng_type_name(info.type));
    table_add(&table, "%.2e", d->relative_l2);
    if (isfinite(d->most_ulp)) table_add(&table, "%g ulp", d->most_ulp);
    else table_add(&table, "%.1e", d->tolerance);
    if (is_judged_by_ulp(run, d)) table_add(&table, "%.4g ulp", d->largest_ulp);
    else table_add(&table, "%.2e", d->largest_error);
    table_add_verdict(&table, output_is_ok(run, i));
  }
  table_print(&table);
  for (size_t i = 0; i < run->expected.count; i++)
    if (!output_is_ok(run, i)) print_worst(run, i);
    else print_tolerated(run, i);
}

static void print_times(const Run *run) {
  if (run->kernel) {
    ng_kernel_info info = ng_kernel_get_info(run->kernel);
    int threads = thread_count(run);
    printf("codegen: %.4g ms (", run->kernel_ms);
    if (run->ncalls > 1) printf("best of %d calls", run->ncalls);
    else printf("one cold call");
    printf(") with %s, %d thread%s, %zu kernel%s; ", info.isa, threads, plural((size_t)threads), info.nkernels,
           plural(info.nkernels));
    if (info.was_cached) printf("compiled before, loaded in %.3g ms\n", info.load_ms);
    else printf("compiled in %.3g ms\n", info.emit_ms + info.compile_ms + info.load_ms);
  }
  if (run->interpreter_ms >= 0) printf("interpreter: %.4g ms\n", run->interpreter_ms);
}

static void print_passes(const Run *run) {
  static const char *const header[] = {"pass", "ms", "nodes", ""};
  Table table = table_headed("lrrl", header);
  for (size_t i = 0; i < run->npasses; i++) {
    table_add(&table, "%s", run->passes[i].name);
    table_add(&table, "%.3f", run->passes[i].ms);
    table_add(&table, "%zu", run->passes[i].node_count);
    table_add(&table, "%s", run->passes[i].changed ? "changed" : "");
  }
  table_print(&table);
}

static json_t *passes_json(const Run *run) {
  json_t *passes = memory_or_exit(json_array());
  for (size_t i = 0; i < run->npasses; i++) {
    json_add(passes, json_object_of({"name", json_text(run->passes[i].name)}, {"ms", json_number(run->passes[i].ms)},
                                    {"nodes", json_count(run->passes[i].node_count)},
                                    {"changed", json_boolean(run->passes[i].changed)}));
  }
  return passes;
}

void report_print(const Run *run) {
  if (run->expected.count) print_differences(run);
  else if (run->settings->out)
    say("wrote %zu output%s to %s\n", run->outputs.count, plural(run->outputs.count), run->settings->out);
  else print_summary(run);
  print_times(run);
  if (run->settings->times_passes) print_passes(run);
}

static json_t *output_json(const Run *run, size_t i) {
  ng_tensor_info info = ng_graph_output(run->graph, i);
  Summary s = summarize(&run->outputs.items[i]);
  json_t *output =
      json_object_of({"name", json_text(info.name)}, {"type", json_text(ng_type_name(info.type))},
                     {"shape", json_shape(&info)}, {"min", json_number(s.least)}, {"max", json_number(s.greatest)},
                     {"mean", json_number(s.mean)}, {"nan_count", json_integer(s.nnan)});
  if (!run->expected.count) return output;
  const ng_difference *d = &run->differences[i];
  json_set_all(output, {"relative_l2", json_number(d->relative_l2)}, {"tolerance", json_number(d->tolerance)},
               {"largest_error", json_number(d->largest_error)}, {"largest_ulp", json_number(d->largest_ulp)},
               {"most_ulp", json_number(d->most_ulp)}, {"overflown", json_integer(d->noverflown)},
               {"left_out", json_integer(d->nleft_out)}, {"flipped", json_integer(d->nflipped)},
               {"ok", json_boolean(output_is_ok(run, i))});
  return output;
}

json_t *report_json(const Run *run) {
  json_t *report = json_object_of({"graph", json_text(ng_graph_name(run->graph))},
                                  {"backend", json_text(run->kernel ? "codegen" : "interpreter")});
  if (run->kernel) {
    ng_kernel_info info = ng_kernel_get_info(run->kernel);
    json_set_all(report, {"isa", json_text(info.isa)}, {"threads", json_integer(thread_count(run))},
                 {"kernels", json_count(info.nkernels)}, {"workspace_bytes", json_count(info.workspace_nbytes)},
                 {"was_cached", json_boolean(info.was_cached)}, {"emit_ms", json_number(info.emit_ms)},
                 {"compile_ms", json_number(info.compile_ms)}, {"load_ms", json_number(info.load_ms)},
                 {"codegen_ms", json_number(run->kernel_ms)}, {"codegen_calls", json_integer(run->ncalls)});
  }
  if (run->interpreter_ms >= 0) json_set(report, "interpreter_ms", json_number(run->interpreter_ms));
  json_t *outputs = memory_or_exit(json_array());
  for (size_t i = 0; i < run->outputs.count; i++) json_add(outputs, output_json(run, i));
  json_set(report, "outputs", outputs);
  if (run->expected.count) json_set(report, "ok", json_boolean(outputs_are_ok(run)));
  if (run->settings->times_passes) json_set(report, "passes", passes_json(run));
  json_set(report, "messages", json_messages(run->ctx));
  return report;
}
