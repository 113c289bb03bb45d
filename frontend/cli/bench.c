// ngrad bench: times compiled graphs on random data, in turns with a plain streaming loop and a loop of multiply-adds.
#include "frontend/cli/data.h"
#include "frontend/cli/table.h"
#include "frontend/cli/verbs.h"

#include <stdlib.h>

typedef struct Bench {
  const Settings *settings;
  Table table, profiles;
  json_t *document; // NULL: a table is wanted
} Bench;

static void add_header(Table *table) {
  static const char *const header[] = {"graph",      "isa",   "threads",        "runs", "min ms", "median",
                                       "ceiling ms", "ratio", "GB/s at median", "GF/s", "of peak"};
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(table, "%s", header[i]);
}

static double gflops_of(double operations, double ms) {
  return ms > 0 ? operations / ms * 1e-6 : 0;
}

static void add_row(Table *table, const ng_graph *g, const ng_kernel_info *info, int threads,
                    const ng_bench_result *r) {
  double nbytes = (double)(r->bytes_read + r->bytes_written);
  table_add(table, "%s", ng_graph_name(g));
  table_add(table, "%s", info->isa);
  table_add(table, "%d", threads);
  table_add(table, "%zu", r->runs);
  table_add(table, "%.4g", r->min_ms);
  table_add(table, "%.4g", r->median_ms);
  table_add(table, "%.4g", r->ceiling_ms);
  table_add(table, "%.2f", r->ceiling_ratio);
  table_add(table, "%.1f", r->median_ms > 0 ? nbytes / r->median_ms * 1e-6 : 0);
  const double gflops = gflops_of(r->operations, r->median_ms);
  table_add(table, r->computes_longer ? "%.1f" : "-", gflops);
  table_add(table, r->computes_longer ? "%.2f" : "-", gflops / r->peak_gflops);
}

static void add_time(Table *table, double ms, double whole) {
  table_add(table, "%.4g", ms);
  table_add(table, "%.1f %%", whole > 0 ? 100 * ms / whole : 0);
}

static void add_part(Table *table, double ms, double whole, uint64_t nbytes) {
  add_time(table, ms, whole);
  table_add(table, "%llu", (unsigned long long)nbytes);
  table_add(table, "%.1f", ms > 0 ? (double)nbytes / ms * 1e-6 : 0);
}

static void add_profile(Table *table, const ng_graph *g, const ng_profile *p, uint64_t nbytes) {
  const char *const header[] = {ng_graph_name(g), "ms", "share", "bytes", "GB/s", "GF/s", "near", ""};
  for (size_t i = 0; table->count && i < sizeof header / sizeof *header; i++) table_add(table, "%s", ""); // a line
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(table, "%s", header[i]);
  for (size_t i = 0; i < p->nkernels; i++) {
    const ng_profile_kernel *k = &p->kernels[i];
    table_add(table, "kernel %zu", i);
    if (k->with != i) {
      for (int column = 0; column < 5; column++) table_add(table, "%s", "");
      table_add(table, "with %zu", k->with);
      table_add(table, "%s", k->text);
      continue;
    }
    add_part(table, k->ms, p->ms, k->bytes_read + k->bytes_written);
    table_add(table, "%.1f", gflops_of(k->operations, k->ms));
    table_add(table, "%s", k->bound);
    table_add(table, "%s", k->text);
    for (size_t l = 0; k->nloops > 1 && l < k->nloops; l++) {
      table_add(table, "  loop %zu", l);
      add_part(table, k->loops[l].ms, p->ms, k->loops[l].bytes_read + k->loops[l].bytes_written);
      table_add(table, "%s", "");
      table_add(table, "%s", "");
      table_add(table, "  %s", k->loops[l].text);
    }
  }
  table_add(table, "other");
  add_time(table, p->other_ms, p->ms);
  for (int i = 0; i < 5; i++) table_add(table, "%s", "");
  table_add(table, "whole");
  add_part(table, p->ms, p->ms, nbytes);
  for (int i = 0; i < 3; i++) table_add(table, "%s", "");
}

static json_t *part_json(double ms, uint64_t bytes_read, uint64_t bytes_written) {
  json_t *part = memory_or_exit(json_object());
  json_set(part, "ms", json_number(ms));
  json_set(part, "bytes_read", json_integer((json_int_t)bytes_read));
  json_set(part, "bytes_written", json_integer((json_int_t)bytes_written));
  return part;
}

static json_t *kernel_json(const ng_profile_kernel *k) {
  json_t *kernel = part_json(k->ms, k->bytes_read, k->bytes_written);
  json_t *operators = memory_or_exit(json_array()), *loops = memory_or_exit(json_array());
  for (size_t i = 0; i < k->nnodes; i++) {
    json_t *node = memory_or_exit(json_object()), *lines = memory_or_exit(json_array());
    for (size_t l = 0; l < k->nodes[i].nlines; l++) json_add(lines, json_integer(k->nodes[i].lines[l]));
    json_set(node, "name", json_text(k->nodes[i].name));
    json_set(node, "lines", lines);
    json_add(operators, node);
  }
  for (size_t i = 0; i < k->nloops; i++) {
    json_t *loop = part_json(k->loops[i].ms, k->loops[i].bytes_read, k->loops[i].bytes_written);
    json_set(loop, "text", json_text(k->loops[i].text));
    json_add(loops, loop);
  }
  json_set(kernel, "operations", json_number(k->operations));
  json_set(kernel, "gflops", json_number(gflops_of(k->operations, k->ms)));
  json_set(kernel, "bound", json_text(k->bound));
  json_set(kernel, "with", json_integer((json_int_t)k->with));
  json_set(kernel, "operators", operators);
  json_set(kernel, "loops", loops);
  return kernel;
}

static json_t *profile_json(const ng_profile *p) {
  json_t *profile = memory_or_exit(json_object()), *kernels = memory_or_exit(json_array());
  for (size_t i = 0; i < p->nkernels; i++) json_add(kernels, kernel_json(&p->kernels[i]));
  json_set(profile, "ms", json_number(p->ms));
  json_set(profile, "other_ms", json_number(p->other_ms));
  json_set(profile, "kernels", kernels);
  return profile;
}

static json_t *result_json(const ng_graph *g, const ng_kernel_info *info, int threads, const ng_bench_result *r) {
  json_t *object = memory_or_exit(json_object());
  json_set(object, "graph", json_text(ng_graph_name(g)));
  json_set(object, "backend", json_text("codegen"));
  json_set(object, "isa", json_text(info->isa));
  json_set(object, "threads", json_integer(threads));
  json_set(object, "runs", json_integer((json_int_t)r->runs));
  json_set(object, "min_ms", json_number(r->min_ms));
  json_set(object, "median_ms", json_number(r->median_ms));
  json_set(object, "bytes_read", json_integer((json_int_t)r->bytes_read));
  json_set(object, "bytes_written", json_integer((json_int_t)r->bytes_written));
  json_set(object, "ceiling_ms", json_number(r->ceiling_ms));
  json_set(object, "ceiling_ratio", json_number(r->ceiling_ratio));
  json_set(object, "operations", json_number(r->operations));
  json_set(object, "gflops", json_number(gflops_of(r->operations, r->median_ms)));
  json_set(object, "peak_gflops", json_number(r->peak_gflops));
  json_set(object, "peak_ratio", json_number(gflops_of(r->operations, r->median_ms) / r->peak_gflops));
  return object;
}

static ng_status bench_kernel(Bench *b, ng_graph *g, ng_kernel *k, const Tensors *inputs, Tensors *outputs) {
  const Settings *s = b->settings;
  const ng_bench_options options = {
      .threads = s->threads, .cold = s->is_cold, .seconds = s->seconds > 0 ? s->seconds : 0};
  ng_bench_result result;
  ng_status status = ng_bench(k, inputs->items, outputs->items, &options, &result);
  if (status != NG_OK) return status;
  ng_kernel_info info = ng_kernel_get_info(k);
  int threads = s->threads ? s->threads : ng_thread_count();
  const ng_profile *profile = ng_kernel_profile(k);
  if (b->document) {
    json_t *object = result_json(g, &info, threads, &result);
    if (profile) json_set(object, "profile", profile_json(profile));
    json_add(b->document, object);
    return NG_OK;
  }
  add_row(&b->table, g, &info, threads, &result);
  if (profile) add_profile(&b->profiles, g, profile, result.bytes_read + result.bytes_written);
  return NG_OK;
}

static ng_status bench_graph(Bench *b, ng_context *ctx, const char *path) {
  const Settings *s = b->settings;
  Settings random = *s;
  random.is_random = true;
  ng_options options = options_of_settings(s);
  options.profile = s->has_profile;
  Tensors inputs = {0}, outputs = {0};
  ng_kernel *k = NULL;
  ng_status status;
  ng_graph *g = graph_open(ctx, path, s, &status);
  if (g) status = memory_check(ctx, g, "timing", 1, false, false);
  if (status == NG_OK) status = inputs_make(&inputs, ctx, g, path, &random);
  if (status == NG_OK) status = outputs_make(&outputs, ctx, g);
  if (status == NG_OK) {
    k = ng_compile(g, &options);
    status = k ? bench_kernel(b, g, k, &inputs, &outputs) : ng_last_status(ctx);
  }
  tensors_free(&inputs);
  tensors_free(&outputs);
  ng_kernel_free(k);
  ng_graph_free(g);
  return status;
}

int verb_bench(const Settings *s) {
  Bench b = {.settings = s, .table = table_new("llrrrrrrrrr"), .profiles = table_new("lrrrrrll")};
  if (s->is_json) b.document = memory_or_exit(json_array());
  else add_header(&b.table);
  int status = 0;
  for (size_t i = 0; i < s->noperands; i++) {
    ng_context *ctx = session_open(s->max_memory);
    ng_status ended = bench_graph(&b, ctx, s->operands[i]);
    if (!status) status = exit_status(ended);
    session_close(ctx);
  }
  if (b.document) json_print(b.document);
  else table_print(&b.table);
  if (b.profiles.count) putchar('\n');
  table_print(&b.profiles);
  return status;
}
