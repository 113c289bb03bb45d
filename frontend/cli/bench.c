// ngrad bench: times compiled graphs on random data, in turns with a plain streaming loop.
#include "frontend/cli/data.h"
#include "frontend/cli/table.h"
#include "frontend/cli/verbs.h"

#include <stdlib.h>

typedef struct Bench {
  const Settings *settings;
  Table table;
  json_t *document; // NULL: a table is wanted
} Bench;

static void add_header(Table *table) {
  static const char *const header[] = {"graph",  "isa",        "threads", "runs",          "min ms",
                                       "median", "ceiling ms", "ratio",   "GB/s at median"};
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(table, "%s", header[i]);
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
  if (b->document) json_add(b->document, result_json(g, &info, threads, &result));
  else add_row(&b->table, g, &info, threads, &result);
  return NG_OK;
}

static ng_status bench_graph(Bench *b, ng_context *ctx, const char *path) {
  const Settings *s = b->settings;
  Settings random = *s;
  random.is_random = true;
  const ng_options options = options_of_settings(s);
  Tensors inputs = {0}, outputs = {0};
  ng_kernel *k = NULL;
  ng_status status;
  ng_graph *g = graph_open(ctx, path, s, &status);
  if (g) status = inputs_make(&inputs, ctx, g, path, &random);
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
  Bench b = {.settings = s, .table = table_new("llrrrrrrr")};
  if (s->is_json) b.document = memory_or_exit(json_array());
  else add_header(&b.table);
  int status = 0;
  for (size_t i = 0; i < s->noperands; i++) {
    ng_context *ctx = session_open();
    ng_status ended = bench_graph(&b, ctx, s->operands[i]);
    if (!status) status = exit_status(ended);
    session_close(ctx);
  }
  if (b.document) json_print(b.document);
  else table_print(&b.table);
  return status;
}
