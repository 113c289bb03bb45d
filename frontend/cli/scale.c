// ngrad scale: estimates the cost of a training step on many ranks.
#include "frontend/cli/data.h"
#include "frontend/cli/progress.h"
#include "frontend/cli/table.h"
#include "frontend/cli/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 1000 };

typedef struct Rows {
  int64_t ranks[MOST_ROWS];
  ng_scale_row rows[MOST_ROWS];
  size_t count;
} Rows;

// Ranks

static bool add_ranks(Rows *r, int64_t ranks) {
  if (r->count == MOST_ROWS) return false;
  r->ranks[r->count++] = ranks;
  return true;
}

// Parses N, or FIRST..LAST: FIRST times powers of two below LAST, and LAST.
static bool parse_range(const char *text, size_t length, Rows *r) {
  char *end;
  errno = 0;
  const int64_t first = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : 0;
  if (errno || first < 1) return false;
  if (end == text + length) return add_ranks(r, first);
  if (end + 2 >= text + length || strncmp(end, "..", 2) != 0 || end[2] < '0' || end[2] > '9') return false;
  const int64_t last = strtoll(end + 2, &end, 10);
  if (errno || end != text + length || last < first) return false;
  for (int64_t ranks = first; ranks<last; ranks = ranks> last / 2 ? last : 2 * ranks)
    if (!add_ranks(r, ranks)) return false;
  return add_ranks(r, last);
}

static bool parse_ranks(const char *text, Rows *r) {
  for (const char *next = text;; next++) {
    const size_t length = strcspn(next, ",");
    if (!parse_range(next, length, r)) break;
    next += length;
    if (!*next) return true;
  }
  usage_error("--ranks: expected numbers of ranks from 1, at most %d of them, as in 1,2,4..1024, found %s", MOST_ROWS,
              text);
  return false;
}

// JSON

static json_t *row_json(const ng_scale_row *r) {
  json_t *row = memory_or_exit(json_object()), *parts = memory_or_exit(json_object());
  json_set_all(row, {"ranks", json_integer(r->ranks)}, {"idle_ranks", json_integer(r->idle_ranks)},
               {"most_leaves", json_integer(r->most_leaves)}, {"step_ms", json_number(r->step_ms)},
               {"efficiency", json_number(r->efficiency)}, {"bound", json_text(r->bound)});
  json_set_all(parts, {"compute", json_number(r->leaves_ms)}, {"leaves", json_number(r->imbalance_ms)},
               {"common", json_number(r->common_ms)}, {"additions", json_number(r->additions_ms)},
               {"latency", json_number(r->latency_ms)}, {"bandwidth", json_number(r->bandwidth_ms)});
  json_set_all(row, {"parts_ms", parts}, {"bytes", json_count(r->nbytes)}, {"ring_bytes", json_count(r->ring_nbytes)},
               {"messages", json_count(r->nmessages)}, {"all_bytes", json_count(r->all_nbytes)},
               {"all_messages", json_count(r->all_nmessages)}, {"ring_ms", json_number(r->ring_ms)});
  if (r->fewer_ranks) {
    json_set_all(row, {"fewer_ranks", json_integer(r->fewer_ranks)}, {"fewer_ms", json_number(r->fewer_ms)});
  }
  json_set_all(row, {"is_uneven", json_boolean(r->is_uneven)}, {"is_costly", json_boolean(r->is_costly)});
  if (!r->better_leaves) return row;
  json_set_all(row, {"better_leaves", json_integer(r->better_leaves)}, {"better_ms", json_number(r->better_ms)},
               {"better_bytes", json_count(r->better_nbytes)});
  return row;
}

static void print_json(const ng_graph *g, const ng_scale_basis *b, const Rows *r) {
  json_t *document = memory_or_exit(json_object()), *rows = memory_or_exit(json_array());
  json_set_all(document, {"graph", json_text(ng_graph_name(g))}, {"leaves", json_integer(b->leaves)},
               {"leaf_ms", json_number(b->leaf_ms)}, {"common_ms", json_number(b->common_ms)},
               {"is_measured", json_boolean(b->is_measured)}, {"exchanges", json_count(b->exchanges)},
               {"buckets", json_count(b->buckets)}, {"shared_bytes", json_count(b->shared_nbytes)},
               {"latency_ms", json_number(b->latency_ms)}, {"overhead_ms", json_number(b->overhead_ms)},
               {"bandwidth", json_number(b->bandwidth)}, {"add_bandwidth", json_number(b->add_bandwidth)});
  for (size_t i = 0; i < r->count; i++) json_add(rows, row_json(&r->rows[i]));
  json_set(document, "rows", rows);
  json_print(document);
}

// Text

// A number with a unit, each unit 1000 times the one before. The number is printed in the largest unit in which it is
// at least 1.
typedef struct Amount {
  char text[32];
} Amount;

static Amount amount_of(double value, const char *const *units) {
  Amount a;
  for (; units[1] && value >= 1000; units++) value /= 1000;
  snprintf(a.text, sizeof a.text, "%.4g %s", value, *units);
  return a;
}

static Amount time_of(double ms) {
  static const char *const units[] = {"us", "ms", "s", NULL};
  return amount_of(ms * 1e3, units);
}

static Amount nbytes_of(double nbytes) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB", NULL};
  return amount_of(nbytes, units);
}

static const char *percent_of(double fraction, Amount *a) {
  snprintf(a->text, sizeof a->text, "%.1f %%", 100 * fraction);
  return a->text;
}

static double part_of(const ng_scale_row *r) {
  const struct {
    const char *name;
    double ms;
  } parts[] = {{"compute", r->leaves_ms},      {"leaves", r->imbalance_ms}, {"common", r->common_ms},
               {"additions", r->additions_ms}, {"latency", r->latency_ms},  {"bandwidth", r->bandwidth_ms}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strcmp(parts[i].name, r->bound) == 0) return r->step_ms > 0 ? parts[i].ms / r->step_ms : 0;
  return 0;
}

static void add_row(Table *t, const ng_scale_row *r) {
  Amount a;
  table_add(t, "%" PRId64, r->ranks);
  table_add(t, "%" PRId64, r->most_leaves);
  table_add(t, "%s", time_of(r->step_ms).text);
  table_add(t, "%s", percent_of(r->efficiency, &a));
  table_add(t, "%s %.0f %%", r->bound, 100 * part_of(r));
  table_add(t, "%s", nbytes_of((double)r->nbytes).text);
  table_add(t, "%s", nbytes_of((double)r->ring_nbytes).text);
  table_add(t, "%" PRIu64, r->nmessages);
  table_add(t, "%s", time_of(r->ring_ms).text);
}

static void tell_basis(const ng_graph *g, const ng_scale_basis *b) {
  say("%s: %" PRId64 " leaves, each %s; common to all %s (%s)\n", ng_graph_name(g), b->leaves, time_of(b->leaf_ms).text,
      time_of(b->common_ms).text, b->is_measured ? "measured" : "given");
  say("shared by leaves: %s in %zu bucket%s of %zu exchange%s; added at %s/s\n",
      nbytes_of((double)b->shared_nbytes).text, b->buckets, b->buckets == 1 ? "" : "s", b->exchanges,
      b->exchanges == 1 ? "" : "s", nbytes_of(b->add_bandwidth).text);
  say("a message: %s, the next one %s more, and %s/s each way\n", time_of(b->latency_ms).text,
      time_of(b->overhead_ms).text, nbytes_of(b->bandwidth).text);
  putchar('\n');
}

static void tell_assumptions(const Settings *s) {
  putchar('\n');
  say("efficiency: speed-up divided by the number of ranks\n");
  say("bound by: the largest part of a step: compute (the leaves, if divided evenly), leaves (additional ones of "
      "the\n");
  say("  busiest rank), common (what each rank computes), additions; latency and bandwidth that no computing hides\n");
  say("sent: by the busiest rank; ring's: sent by it with ring all-reduces of the buckets; ring: the time with "
      "these\n");
  say("messages: of the busiest rank; few where ranks and leaves are powers of two\n");
  say("assumed: a bucket is sent when the last leaf has computed it, the network has no bottleneck, and no rank is "
      "late\n");
  if (s->scale.cores > 0) say("all ranks share %d processors\n", s->scale.cores);
}

static double times_ring(uint64_t nbytes, const ng_scale_row *r) {
  return r->ring_nbytes ? (double)nbytes / (double)r->ring_nbytes : 1;
}

static void tell_better(const ng_scale_basis *b, const ng_scale_row *r) {
  if (r->fewer_ranks)
    say("%" PRId64 " ranks: %s; %" PRId64 " of them: %s\n", r->ranks, time_of(r->step_ms).text, r->fewer_ranks,
        time_of(r->fewer_ms).text);
  if (!r->is_uneven && !r->is_costly) return;
  Amount idle = {""};
  if (r->idle_ranks) snprintf(idle.text, sizeof idle.text, ", %" PRId64 " idle", r->idle_ranks);
  say("%" PRId64 " ranks%s: %.2f times a ring's bytes, %s", r->ranks, idle.text, times_ring(r->nbytes, r),
      time_of(r->step_ms).text);
  if (r->better_leaves)
    say("; with %" PRId64 " leaves instead of %" PRId64 " for the same batch %.2f times, %s", r->better_leaves,
        b->leaves, times_ring(r->better_nbytes, r), time_of(r->better_ms).text);
  putchar('\n');
}

static void print_text(const ng_graph *g, const Settings *s, const ng_scale_basis *b, const Rows *r) {
  static const char *const head[] = {"ranks", "leaves", "step",     "efficiency", "bound by",
                                     "sent",  "ring's", "messages", "ring"};
  Table table = table_headed("rrrrlrrrr", head);
  tell_basis(g, b);
  for (size_t i = 0; i < r->count; i++) add_row(&table, &r->rows[i]);
  table_print(&table);
  for (size_t i = 0; i < r->count; i++) tell_better(b, &r->rows[i]);
  tell_assumptions(s);
}

// For the library, 0 means the default and a negative number none.
static double or_none(double said) {
  return said > 0 ? said : said == 0 ? -1 : 0;
}

int verb_scale(const Settings *s) {
  if (s->scale.leaf_time == 0) return usage_error("--leaf-time: expected more than 0");
  if (s->scale.common_time > 0 && s->scale.leaf_time < 0)
    return usage_error("--common-time: expected --leaf-time, too");
  const ng_scale_options wanted = {.leaves = s->scale.leaves,
                                   .latency_ms = or_none(s->scale.latency),
                                   .overhead_ms = or_none(s->scale.overhead),
                                   .bandwidth = s->scale.bandwidth,
                                   .add_bandwidth = s->scale.add_bandwidth,
                                   .leaf_ms = s->scale.leaf_time,
                                   .common_ms = s->scale.common_time,
                                   .threads = s->threads,
                                   .cores = s->scale.cores,
                                   .seconds = s->seconds > 0 ? s->seconds : 0};
  const ng_options options = options_of_settings(s);
  ng_scale_basis basis;
  Rows *r = memory_or_exit(calloc(1, sizeof *r));
  ng_status status = parse_ranks(s->scale.ranks ? s->scale.ranks : "1..1024", r) ? NG_OK : NG_USAGE;
  ng_context *ctx = session_open(s->max_memory, s->max_steps);
  ng_graph *g = status == NG_OK ? graph_open(ctx, s->operands[0], s, &status) : NULL;
  if (g) {
    progress_begin(wanted.leaf_ms > 0 ? "scheduling" : "compiling", ng_graph_name(g));
    status = ng_scale(g, &options, &wanted, r->ranks, r->count, &basis, r->rows);
    progress_end();
  }
  if (g && status == NG_OK) {
    if (s->is_json) print_json(g, &basis, r);
    else print_text(g, s, &basis, r);
  }
  ng_graph_free(g);
  session_close(ctx);
  free(r);
  return exit_status(status);
}
