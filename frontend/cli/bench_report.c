// Prints times as JSON, tables, sentences and files.
#include "frontend/cli/bench_report.h"

#include "frontend/cli/bench_sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double gflops_of(double operations, double ms) {
  return ms > 0 ? operations / ms * 1e-6 : 0;
}

// Profiles

static void add_time(Table *table, double ms, double whole) {
  table_add(table, "%.4g", ms);
  table_add(table, "%.1f %%", whole > 0 ? 100 * ms / whole : 0);
}

// nblocks: 0: of several loops.
static void add_part(Table *table, double ms, double whole, uint64_t nblocks, uint64_t nbytes) {
  add_time(table, ms, whole);
  if (nblocks) table_add(table, "%llu", (unsigned long long)nblocks);
  else table_add(table, "%s", "");
  table_add(table, "%llu", (unsigned long long)nbytes);
  table_add(table, "%.1f", ms > 0 ? (double)nbytes / ms * 1e-6 : 0);
}

void add_profile(Table *table, const ng_graph *g, const ng_profile *p, uint64_t nbytes) {
  const char *const header[] = {ng_graph_name(g), "ms", "share", "blocks", "bytes", "GB/s", "GF/s", "near", ""};
  for (size_t i = 0; table->count && i < sizeof header / sizeof *header; i++) table_add(table, "%s", ""); // a line
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(table, "%s", header[i]);
  for (size_t i = 0; i < p->nkernels; i++) {
    const ng_profile_kernel *k = &p->kernels[i];
    table_add(table, "kernel %zu", i);
    if (k->with != i) {
      for (int column = 0; column < 6; column++) table_add(table, "%s", "");
      table_add(table, "with %zu", k->with);
      table_add(table, "%s", k->text);
      continue;
    }
    add_part(table, k->ms, p->ms, k->nblocks, k->bytes_read + k->bytes_written);
    table_add(table, "%.1f", gflops_of(k->operations, k->ms));
    table_add(table, "%s", k->bound);
    table_add(table, "%s", k->text);
    for (size_t l = 0; k->nloops > 1 && l < k->nloops; l++) {
      table_add(table, "  loop %zu", l);
      add_part(table, k->loops[l].ms, p->ms, k->loops[l].nblocks, k->loops[l].bytes_read + k->loops[l].bytes_written);
      table_add(table, "%s", "");
      table_add(table, "%s", "");
      table_add(table, "  %s", k->loops[l].text);
    }
  }
  table_add(table, "other");
  add_time(table, p->other_ms, p->ms);
  for (int i = 0; i < 6; i++) table_add(table, "%s", "");
  table_add(table, "whole");
  add_part(table, p->ms, p->ms, 0, nbytes);
  for (int i = 0; i < 3; i++) table_add(table, "%s", "");
}

static json_t *part_json(double ms, uint64_t bytes_read, uint64_t bytes_written) {
  return json_object_of({"ms", json_number(ms)}, {"bytes_read", json_count(bytes_read)},
                        {"bytes_written", json_count(bytes_written)});
}

static json_t *kernel_json(const ng_profile_kernel *k) {
  json_t *kernel = part_json(k->ms, k->bytes_read, k->bytes_written);
  json_t *operators = memory_or_exit(json_array()), *loops = memory_or_exit(json_array());
  for (size_t i = 0; i < k->nnodes; i++) {
    json_t *node = memory_or_exit(json_object()), *lines = memory_or_exit(json_array());
    for (size_t l = 0; l < k->nodes[i].nlines; l++) json_add(lines, json_integer(k->nodes[i].lines[l]));
    json_set_all(node, {"name", json_text(k->nodes[i].name)}, {"lines", lines});
    json_add(operators, node);
  }
  for (size_t i = 0; i < k->nloops; i++) {
    json_t *loop = part_json(k->loops[i].ms, k->loops[i].bytes_read, k->loops[i].bytes_written);
    json_set(loop, "text", json_text(k->loops[i].text));
    json_set(loop, "blocks", json_integer((json_int_t)k->loops[i].nblocks));
    json_add(loops, loop);
  }
  json_set_all(kernel, {"operations", json_number(k->operations)},
               {"gflops", json_number(gflops_of(k->operations, k->ms))}, {"bound", json_text(k->bound)},
               {"with", json_count(k->with)}, {"operators", operators}, {"loops", loops});
  return kernel;
}

// Blocks: a loop of b blocks takes at least ceil(b / T) times as long as a block on T threads.

static double least_share(double nblocks, double threads) {
  return nblocks > 0 ? ceil(nblocks / threads) / nblocks : 1;
}

static void add_work(double ms, uint64_t nblocks, double own_threads, double threads, double *work, double *least) {
  const double alone = ms / least_share((double)nblocks, own_threads); // on one thread
  *work += alone;
  *least += alone * least_share((double)nblocks, threads);
}

// The most that these numbers of threads could gain over one, if threads cost nothing.
static double most_speedup(const ng_profile *p, int own_threads, int threads) {
  double work = 0, least = 0;
  for (size_t i = 0; i < p->nkernels; i++) {
    const ng_profile_kernel *k = &p->kernels[i];
    if (!k->nloops) add_work(k->ms, k->nblocks, own_threads, threads, &work, &least);
    for (size_t l = 0; l < k->nloops; l++)
      add_work(k->loops[l].ms, k->loops[l].nblocks, own_threads, threads, &work, &least);
  }
  return least > 0 ? work / least : 1;
}

static json_t *speedups_json(const ng_profile *p, int own_threads) {
  json_t *speedups = memory_or_exit(json_object());
  for (int threads = 2; threads <= 64; threads *= 2) {
    char key[16];
    snprintf(key, sizeof key, "%d", threads);
    json_set(speedups, key, json_number(most_speedup(p, own_threads, threads)));
  }
  return speedups;
}

json_t *profile_json(const ng_profile *p, int threads) {
  json_t *profile = memory_or_exit(json_object()), *kernels = memory_or_exit(json_array());
  for (size_t i = 0; i < p->nkernels; i++) json_add(kernels, kernel_json(&p->kernels[i]));
  json_set_all(profile, {"ms", json_number(p->ms)}, {"other_ms", json_number(p->other_ms)}, {"kernels", kernels},
               {"most_speedup", speedups_json(p, threads)});
  return profile;
}

static void tell_speedups(json_t *times) {
  const char *threads, *before = " to";
  json_t *speedup, *speedups = json_object_get(json_object_get(times, "profile"), "most_speedup");
  if (!speedups) return;
  say("%s: its blocks, each of which one thread computes, limit what threads gain", json_text_at(times, "graph"));
  json_object_foreach(speedups, threads, speedup) {
    say("%s %.1f on %s", before, json_number_value(speedup), threads);
    before = ",";
  }
  say("\n");
}

// Times

json_t *times_json(const ng_graph *g, const ng_kernel_info *info, int threads, const ng_bench_result *r) {
  return json_object_of(
      {"graph", json_text(ng_graph_name(g))}, {"backend", json_text("codegen")}, {"isa", json_text(info->isa)},
      {"threads", json_integer(threads)}, {"runs", json_count(r->runs)}, {"samples", json_count(r->samples)},
      {"min_ms", json_number(r->min_ms)}, {"median_ms", json_number(r->median_ms)}, {"max_ms", json_number(r->max_ms)},
      {"mad_ms", json_number(r->mad_ms)}, {"outliers", json_count(r->outliers)},
      {"bytes_read", json_count(r->bytes_read)}, {"bytes_written", json_count(r->bytes_written)},
      {"ceiling_ms", json_number(r->ceiling_ms)}, {"ceiling_ratio", json_number(r->ceiling_ratio)},
      {"operations", json_number(r->operations)}, {"gflops", json_number(gflops_of(r->operations, r->median_ms))},
      {"peak_gflops", json_number(r->peak_gflops)},
      {"peak_ratio", json_number(gflops_of(r->operations, r->median_ms) / r->peak_gflops)});
}

// A number of an object; NaN if it is missing, as in the output of older builds.
static double number_of(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

static int compare_numbers(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The median; sorts the numbers.
static double median_of(double *numbers, size_t count) {
  qsort(numbers, count, sizeof *numbers, compare_numbers);
  return count % 2 ? numbers[count / 2] : (numbers[count / 2 - 1] + numbers[count / 2]) / 2;
}

typedef enum Joining { SUM, LEAST, GREATEST, MEDIAN } Joining;

static double join(json_t *const *turns, size_t count, const char *key, Joining how) {
  double *numbers = memory_or_exit(calloc(count, sizeof *numbers)), sum = 0;
  for (size_t i = 0; i < count; i++) sum += numbers[i] = number_of(turns[i], key);
  const double median = median_of(numbers, count), least = numbers[0], greatest = numbers[count - 1];
  free(numbers);
  return how == SUM ? sum : how == LEAST ? least : how == GREATEST ? greatest : median;
}

json_t *times_join(json_t *const *turns, size_t count) {
  static const struct {
    const char *key;
    Joining how;
  } keys[] = {{"runs", SUM},        {"samples", SUM},        {"outliers", SUM},      {"min_ms", LEAST},
              {"max_ms", GREATEST}, {"median_ms", MEDIAN},   {"mad_ms", MEDIAN},     {"ceiling_ms", MEDIAN},
              {"gflops", MEDIAN},   {"peak_gflops", MEDIAN}, {"peak_ratio", MEDIAN}, {"ceiling_ratio", MEDIAN}};
  json_t *joined = memory_or_exit(json_copy(turns[0]));
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
    const double value = join(turns, count, keys[k].key, keys[k].how);
    if (isnan(value)) continue;
    json_set(joined, keys[k].key, keys[k].how == SUM ? json_integer((json_int_t)value) : json_number(value));
  }
  return joined;
}

// The largest k, from 0, such that with a probability of 95 %, a distribution's median lies between the k-th least and
// the k-th greatest of `count` independent samples. Each sample is below the median with probability 1/2.
static size_t rank_of_interval(size_t count) {
  const double most_outside = 0.05;
  double part = 1, below = 0; // the probabilities of exactly k samples below the median, and of fewer
  size_t k = 0;
  for (size_t i = 0; i < count; i++) part /= 2;
  while (2 * (below + part) <= most_outside) {
    below += part;
    part *= (double)(count - k) / (double)(k + 1);
    k++;
  }
  return k ? k - 1 : 0;
}

void times_compare(json_t *b, json_t *const *a_turns, json_t *const *b_turns, size_t count, const char *a_name) {
  double *ratios = memory_or_exit(calloc(count, sizeof *ratios));
  for (size_t i = 0; i < count; i++)
    ratios[i] = number_of(b_turns[i], "median_ms") / number_of(a_turns[i], "median_ms");
  const double median = median_of(ratios, count);
  const size_t rank = rank_of_interval(count);
  json_t *ratio =
      json_object_of({"beside", json_text(a_name)}, {"median", json_number(median)}, {"low", json_number(ratios[rank])},
                     {"high", json_number(ratios[count - 1 - rank])}, {"turns", json_count(count)});
  json_set(b, "ratio", ratio);
  free(ratios);
}

// The label, with the extent of a sweep. The caller frees it.
static char *row_label(const json_t *times) {
  const json_t *extent = json_object_get(times, "extent");
  char *label = times_label(times);
  if (!extent) return label;
  char *row = text_of_format("%s, %s=%.0f", label, json_text_at(times, "dim"), json_number_value(extent));
  free(label);
  return row;
}

// The times of a graph follow each other, with ascending numbers of threads. Other graphs may have its name.
void times_compare_threads(json_t *document) {
  const json_t *first = NULL;
  double before = 0;
  for (size_t i = 0; i < json_array_size(document); i++) {
    json_t *t = json_array_get(document, i);
    const double nthreads = number_of(t, "threads");
    if (!first || nthreads <= before) first = t;
    before = nthreads;
    const double speedup = number_of(first, "median_ms") / number_of(t, "median_ms");
    json_set(t, "speedup", json_number(speedup));
    json_set(t, "efficiency", json_number(speedup * number_of(first, "threads") / nthreads));
  }
}

static void add_number(Table *table, const char *format, double value) {
  if (isnan(value)) table_add(table, "-");
  else table_add(table, format, value);
}

Table times_table(json_t *document) {
  static const char *const header[] = {"graph", "isa",     "threads",  "runs",       "min ms", "median",
                                       "±",     "max",     "outliers", "ceiling ms", "ratio",  "GB/s at median",
                                       "GF/s",  "of peak", "speed-up", "efficiency", NULL};
  const bool has_speedups = json_object_get(json_array_get(document, 0), "speedup");
  Table table = has_speedups ? table_headed("llrrrrrrrrrrrrrr", header) : table_headed("llrrrrrrrrrrrr", header);
  for (size_t i = 0; i < json_array_size(document); i++) {
    const json_t *t = json_array_get(document, i);
    const double median = number_of(t, "median_ms"),
                 nbytes = number_of(t, "bytes_read") + number_of(t, "bytes_written");
    const bool computes_longer =
        number_of(t, "operations") > number_of(t, "peak_gflops") * 1e6 * number_of(t, "ceiling_ms");
    char *label = row_label(t);
    table_add(&table, "%s", label);
    free(label);
    table_add(&table, "%s", json_text_at(t, "isa"));
    add_number(&table, "%.0f", number_of(t, "threads"));
    add_number(&table, "%.0f", number_of(t, "runs"));
    add_number(&table, "%.4g", number_of(t, "min_ms"));
    add_number(&table, "%.4g", median);
    add_number(&table, "%.2g", number_of(t, "mad_ms"));
    add_number(&table, "%.4g", number_of(t, "max_ms"));
    add_number(&table, "%.0f", number_of(t, "outliers"));
    add_number(&table, "%.4g", number_of(t, "ceiling_ms"));
    add_number(&table, "%.2f", number_of(t, "ceiling_ratio"));
    add_number(&table, "%.1f", median > 0 ? nbytes / median * 1e-6 : 0);
    add_number(&table, "%.1f", computes_longer ? number_of(t, "gflops") : NAN);
    add_number(&table, "%.2f", computes_longer ? number_of(t, "peak_ratio") : NAN);
    if (has_speedups) add_number(&table, "%.2f", number_of(t, "speedup"));
    if (has_speedups) add_number(&table, "%.2f", number_of(t, "efficiency"));
  }
  return table;
}

static const char *name_in_sentence(const json_t *times) {
  const char *program = json_text_at(times, "program");
  return *program ? program : json_text_at(times, "file");
}

void times_tell(json_t *document) {
  const double many = 0.05;
  for (size_t i = 0; i < json_array_size(document); i++) {
    const json_t *t = json_array_get(document, i), *ratio = json_object_get(t, "ratio");
    tell_speedups(json_array_get(document, i));
    const double outliers = number_of(t, "outliers"), samples = number_of(t, "samples");
    if (outliers > many * samples) {
      char *label = row_label(t);
      say("%s: %.0f of %.0f samples are outliers, more than 5 deviations from the median: other work may have "
          "disturbed "
          "them\n",
          label, outliers, samples);
      free(label);
    }
    if (!ratio) continue;
    const double low = number_of(ratio, "low"), high = number_of(ratio, "high");
    const json_t *extent = json_object_get(t, "extent");
    const char *options = json_text_at(t, "options");
    if (extent) say("%s=%.0f: ", json_text_at(t, "dim"), json_number_value(extent));
    say("%s%s%s takes %.3f times as long as %s; 95 %% interval %.3f to %.3f, of %.0f turns%s\n", name_in_sentence(t),
        *options ? " with " : "", options, number_of(ratio, "median"), json_text_at(ratio, "beside"), low, high,
        number_of(ratio, "turns"), low <= 1 && high >= 1 ? ", which contains 1: no significant difference" : "");
  }
}

// Files

bool export_is_known(const char *path, bool is_sweep) {
  if (ends_in(path, ".csv") || ends_in(path, ".md") || ends_in(path, ".json")) return true;
  if (ends_in(path, ".svg") && is_sweep) return true;
  usage_error("--export: expected a file whose name ends in .csv, .md, .json or, with --sweep, .svg, found %s", path);
  return false;
}

static void print_csv_text(FILE *out, const char *text) {
  const bool is_plain = !text[strcspn(text, ",\"\r\n")];
  if (!is_plain) fputc('"', out);
  for (; *text; text++) fprintf(out, *text == '"' ? "%c\"" : "%c", *text);
  if (!is_plain) fputc('"', out);
}

static void print_csv_value(FILE *out, const json_t *value) {
  enum { DIGITS = 9 };
  if (json_is_string(value)) print_csv_text(out, json_string_value(value));
  else if (json_is_integer(value)) fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  else if (json_is_real(value)) fprintf(out, "%.*g", DIGITS, json_real_value(value));
}

static char *times_csv(json_t *document) {
  static const char *const keys[] = {
      "file",       "graph",  "program",     "isa",        "threads",    "runs",          "samples",    "min_ms",
      "median_ms",  "max_ms", "mad_ms",      "outliers",   "bytes_read", "bytes_written", "ceiling_ms", "ceiling_ratio",
      "operations", "gflops", "peak_gflops", "peak_ratio", "options",    "dim",           "extent"};
  static const char *const ratio_keys[] = {"beside", "median", "low", "high", "turns"};
  enum { NKEYS = sizeof keys / sizeof *keys, NRATIO = sizeof ratio_keys / sizeof *ratio_keys };
  TextStream csv;
  FILE *out = text_open(&csv);
  for (size_t k = 0; k < NKEYS; k++) fprintf(out, "%s,", keys[k]);
  for (size_t k = 0; k < NRATIO; k++) fprintf(out, "ratio_%s%c", ratio_keys[k], k + 1 < NRATIO ? ',' : '\n');
  for (size_t i = 0; i < json_array_size(document); i++) {
    const json_t *t = json_array_get(document, i), *ratio = json_object_get(t, "ratio");
    for (size_t k = 0; k < NKEYS; k++) {
      print_csv_value(out, json_object_get(t, keys[k]));
      fputc(',', out);
    }
    for (size_t k = 0; k < NRATIO; k++) {
      print_csv_value(out, json_object_get(ratio, ratio_keys[k]));
      fputc(k + 1 < NRATIO ? ',' : '\n', out);
    }
  }
  return text_close(&csv);
}

bool times_export(json_t *document, const char *path) {
  char *text;
  if (ends_in(path, ".csv")) {
    text = times_csv(document);
  } else if (ends_in(path, ".md")) {
    Table table = times_table(document);
    text = table_markdown(&table);
    table_free(&table);
  } else if (ends_in(path, ".svg")) {
    text = sweep_plot(document);
  } else {
    text = json_to_text(document, JSON_INDENT(2));
  }
  const bool ok = file_write(path, text);
  free(text);
  return ok;
}
