// ngrad bench: times compiled graphs on random data, in alternation with a plain streaming loop and a loop of
// multiply-adds. Two graphs, two sets of options or two builds of the program are also timed in alternation with each
// other, and compared.
#include "frontend/cli/bench_report.h"
#include "frontend/cli/bench_sweep.h"
#include "frontend/cli/clock.h"
#include "frontend/cli/data.h"
#include "frontend/cli/progress.h"
#include "frontend/cli/subprocess.h"
#include "frontend/cli/trace.h"
#include "frontend/cli/verbs.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 20, TURNS_OF_PROGRAMS = 10, MOST_TURNS = TURNS, MOST_THREAD_COUNTS = 16 };

typedef struct ThreadCounts {
  size_t n;
  int counts[MOST_THREAD_COUNTS]; // ascending; 0, alone: all processors
} ThreadCounts;

// Reads N,N,...: ascending numbers from 1, or one number. False after an error message.
static bool read_thread_counts(const char *text, ThreadCounts *threads) {
  *threads = (ThreadCounts){0};
  if (!text) text = "0";
  for (const char *at = text; threads->n < MOST_THREAD_COUNTS; at++) {
    char *end;
    const long count = strtol(at, &end, 10), last = threads->n ? threads->counts[threads->n - 1] : -1;
    if (end == at || *at < '0' || *at > '9' || count > INT_MAX || count <= last || last == 0) break;
    threads->counts[threads->n++] = (int)count;
    if (!*end) return true;
    if (*end != ',') break;
    at = end;
  }
  usage_error("--threads: expected a number of threads, or at most %d ascending ones from 1 as in 1,2,4,8, found %s",
              MOST_THREAD_COUNTS, text);
  return false;
}

// The subject of a timing: a compiled graph, or another program that times a graph.
typedef struct Subject {
  const Settings *settings;
  const char *path;
  const char *program; // NULL: this process
  const char *program_name;
  const char *options; // by which it differs from the other subject; NULL: by none
  ng_context *ctx;
  ng_graph *g;
  ng_kernel *k;
  Tensors inputs, outputs;
} Subject;

static ng_status subject_open(Subject *b, const Settings *s, const char *path) {
  *b = (Subject){.settings = s, .path = path, .ctx = session_open(s->max_memory, s->max_steps)};
  Settings data = *s;
  data.is_random = !s->in;
  ng_options options = options_of_settings(s);
  options.profile = s->has_profile || s->trace;
  ng_status status;
  b->g = graph_open(b->ctx, path, s, &status);
  if (b->g && options.profile && ng_graph_leaf_count(b->g))
    return (ng_status)usage_error(
        "--%s: %s has leaves, so its kernels cannot be timed one by one; without the option, bench times a step",
        s->trace ? "trace" : "profile", path);
  if (b->g && !s->in) status = memory_check(b->ctx, b->g, "timing", 1, false, false);
  if (status == NG_OK) status = inputs_make(&b->inputs, b->ctx, b->g, path, &data);
  if (status == NG_OK && s->in) status = memory_check(b->ctx, b->g, "timing", 1, false, true);
  if (status == NG_OK) status = outputs_make(&b->outputs, b->ctx, b->g);
  if (status != NG_OK) return status;
  progress_begin("compiling", ng_graph_name(b->g));
  b->k = ng_compile(b->g, &options);
  return b->k ? NG_OK : ng_last_status(b->ctx);
}

static void subject_close(Subject *b) {
  tensors_free(&b->inputs);
  tensors_free(&b->outputs);
  ng_kernel_free(b->k);
  ng_graph_free(b->g);
  session_close(b->ctx);
}

// The program prints an array of one object.
static ng_status time_program(const Subject *b, double seconds, json_t **times) {
  const Settings *s = b->settings;
  char text[32];
  snprintf(text, sizeof text, "--seconds=%.9g", seconds);
  const char **arguments = memory_or_exit(calloc(s->given.count + 7, sizeof *arguments));
  size_t n = 0;
  arguments[n++] = b->program;
  arguments[n++] = "bench";
  arguments[n++] = "--json";
  arguments[n++] = text;
  for (size_t i = 0; i < s->given.count; i++) arguments[n++] = s->given.items[i];
  arguments[n++] = "--";
  arguments[n++] = b->path;
  json_t *document = NULL;
  const int status = program_json(arguments, &document);
  free(arguments);
  *times = json_incref(json_array_get(document, 0));
  json_decref(document);
  if (*times) json_set(*times, "program", json_text(b->program_name));
  if (status == 0 && !*times) plain_error("%s: expected a program that can bench --json", b->program);
  return status ? (ng_status)status : *times ? NG_OK : NG_WRONG;
}

static ng_status time_subject(const Subject *b, double seconds, json_t **times) {
  *times = NULL;
  if (b->program) return time_program(b, seconds, times);
  const Settings *s = b->settings;
  const ng_bench_options options = {.threads = s->threads, .cold = s->is_cold, .seconds = seconds};
  ng_bench_result result;
  const ng_status status = ng_bench(b->k, b->inputs.items, b->outputs.items, &options, &result);
  if (status != NG_OK) return status;
  const ng_kernel_info info = ng_kernel_get_info(b->k);
  *times = times_json(b->g, &info, s->threads ? s->threads : ng_thread_count(), &result);
  json_set(*times, "file", json_text(b->path));
  if (b->options) json_set(*times, "options", json_text(b->options));
  return NG_OK;
}

static double seconds_of(const Settings *s) {
  return s->seconds > 0 ? s->seconds : 1;
}

// Times the subjects in alternation; each is first in some turns. Adds an object for each to the document; of two that
// are `compared`, the second has the ratio to the first.
static ng_status time_in_turns(Subject *subjects, size_t count, size_t most_turns, bool is_compared, json_t *document) {
  const double seconds = seconds_of(subjects[0].settings), patience = 4; // for runs that take long
  json_t *turns[MOST_THREAD_COUNTS][MOST_TURNS] = {{0}};
  ng_status status = NG_OK;
  size_t n = 0;
  const double started = now_ms(), most_ms = (double)count * patience * seconds * 1e3;
  progress_tell(NULL, "timing in turns", 0);
  for (size_t i = 0; i < count; i++)
    if (subjects[i].ctx) ng_context_set_progress(subjects[i].ctx, NULL, NULL);
  while (status == NG_OK && n < most_turns && (n < LEAST_TURNS || now_ms() - started < most_ms)) {
    for (size_t i = 0; i < count && status == NG_OK; i++) {
      const size_t subject = (n + i) % count;
      status = time_subject(&subjects[subject], seconds / (double)most_turns, &turns[subject][n]);
    }
    if (status == NG_OK) n++;
    progress_tell(NULL, "timing in turns", (double)n / (double)most_turns);
  }
  progress_end();
  for (size_t i = 0; i < count && status == NG_OK; i++) json_add(document, times_join(turns[i], n));
  if (status == NG_OK && is_compared)
    times_compare(json_array_get(document, json_array_size(document) - 1), turns[0], turns[1], n,
                  subjects[0].program ? subjects[0].program_name : subjects[0].path);
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k <= n && k < MOST_TURNS; k++) json_decref(turns[i][k]);
  return status;
}

static ng_status time_alone(const Subject *b, json_t *document, Table *profiles) {
  json_t *times;
  const ng_status status = time_subject(b, seconds_of(b->settings), &times);
  if (status != NG_OK) return status;
  const ng_profile *profile = b->settings->has_profile ? ng_kernel_profile(b->k) : NULL;
  const json_int_t nbytes = json_integer_value(json_object_get(times, "bytes_read")) +
                            json_integer_value(json_object_get(times, "bytes_written"));
  if (profile) {
    json_set(times, "profile", profile_json(profile, (int)json_integer_value(json_object_get(times, "threads"))));
    if (!b->settings->is_json) add_profile(profiles, b->g, profile, (uint64_t)nbytes);
  }
  json_add(document, times);
  return NG_OK;
}

// events: of the trace; NULL: no trace.
static int time_graph(const Settings *s, const char *path, json_t *document, Table *profiles, json_t *events) {
  Subject b;
  ng_status status = subject_open(&b, s, path);
  if (status == NG_OK) status = time_alone(&b, document, profiles);
  if (status == NG_OK && events)
    status = trace_add(events, b.k, ng_graph_name(b.g), b.inputs.items, b.outputs.items, s->threads);
  subject_close(&b);
  return exit_status(status);
}

// If one of the two cannot be timed, the other is timed alone.
static int time_two_graphs(const Settings *s, json_t *document, Table *profiles) {
  Subject pair[2];
  ng_status status[2];
  for (int i = 0; i < 2; i++) status[i] = subject_open(&pair[i], s, s->operands[i]);
  if (status[0] == NG_OK && status[1] == NG_OK) status[0] = time_in_turns(pair, 2, TURNS, true, document);
  else if (status[0] == NG_OK) status[0] = time_alone(&pair[0], document, profiles);
  else if (status[1] == NG_OK) status[1] = time_alone(&pair[1], document, profiles);
  for (int i = 0; i < 2; i++) subject_close(&pair[i]);
  return exit_status(status[0] != NG_OK ? status[0] : status[1]);
}

// Parses the options of --against after those that were given. *texts: their strings, which parsing cuts; texts_free
// must follow.
static bool parse_against(const Settings *s, Settings *other, TextList *texts) {
  texts->items = memory_or_exit(calloc(s->given.count + s->against.count, sizeof *texts->items));
  for (size_t i = 0; i < s->given.count; i++) texts->items[texts->count++] = memory_or_exit(strdup(s->given.items[i]));
  for (size_t i = 0; i < s->against.count; i++)
    texts->items[texts->count++] = memory_or_exit(strdup(s->against.items[i]));
  Verb verb = *s->verb;
  verb.least_operands = verb.most_operands = 0;
  ThreadCounts threads = {0};
  const bool ok = settings_parse(other, &verb, (int)texts->count, (char **)texts->items) &&
                  read_thread_counts(other->thread_counts, &threads);
  other->threads = threads.counts[0];
  other->seconds = s->seconds;
  other->max_memory = s->max_memory;
  return ok;
}

static void texts_free(TextList *texts) {
  for (size_t i = 0; i < texts->count; i++) free((char *)texts->items[i]);
  free(texts->items);
}

// False after an error message: --against has no option of bench.
static bool against_is_known(const Settings *s) {
  Settings other;
  TextList texts = {0};
  const bool ok = parse_against(s, &other, &texts);
  settings_free(&other);
  texts_free(&texts);
  return ok;
}

static char *join_options(const TextList *options) {
  TextStream text;
  FILE *out = text_open(&text);
  for (size_t i = 0; i < options->count; i++) fprintf(out, i ? " %s" : "%s", options->items[i]);
  return text_close(&text);
}

static int time_two_options(const Settings *s, const char *path, json_t *document) {
  Settings other;
  TextList texts = {0};
  int status = NG_USAGE;
  if (parse_against(s, &other, &texts)) {
    char *options = join_options(&s->against);
    Subject pair[2];
    ng_status opened[2] = {subject_open(&pair[0], s, path), subject_open(&pair[1], &other, path)};
    pair[1].options = options;
    if (opened[0] == NG_OK && opened[1] == NG_OK) opened[0] = time_in_turns(pair, 2, TURNS, true, document);
    for (int i = 0; i < 2; i++) subject_close(&pair[i]);
    free(options);
    status = exit_status(opened[0] != NG_OK ? opened[0] : opened[1]);
  }
  settings_free(&other);
  texts_free(&texts);
  return status;
}

static int time_two_programs(const Settings *s, const char *path, json_t *document) {
  const Subject here = {.settings = s, .path = path, .program = "/proc/self/exe", .program_name = "this program"};
  Subject pair[2] = {here, here};
  pair[1].program = pair[1].program_name = s->other_program;
  return exit_status(time_in_turns(pair, 2, TURNS_OF_PROGRAMS, true, document));
}

// Each number of threads has a kernel of its own, which is tuned for it.
static int time_counts_in_turns(const Settings *s, const char *path, const ThreadCounts *threads, json_t *document) {
  Subject subjects[MOST_THREAD_COUNTS];
  Settings settings[MOST_THREAD_COUNTS];
  ng_status status = NG_OK;
  size_t n = 0;
  for (; n < threads->n && status == NG_OK; n++) {
    settings[n] = *s;
    settings[n].threads = threads->counts[n];
    status = subject_open(&subjects[n], &settings[n], path);
  }
  if (status == NG_OK) status = time_in_turns(subjects, n, TURNS, false, document);
  while (n) subject_close(&subjects[--n]);
  return exit_status(status);
}

static int print_times(const Settings *s, json_t *document, Table *profiles) {
  int status = 0;
  for (size_t i = 0; i < s->exports.count; i++)
    if (!times_export(document, s->exports.items[i])) status = NG_WRONG;
  if (s->is_json) {
    json_print(json_incref(document));
    return status;
  }
  Table table = times_table(document);
  table_print(&table);
  times_tell(document);
  if (profiles->count) putchar('\n');
  table_print(profiles);
  return status;
}

// With each number of threads: in turns, unless loops are timed, too.
static int time_operand(const Settings *s, const char *path, const ThreadCounts *threads, json_t *document,
                        Table *profiles, json_t *events) {
  if (s->other_program) return time_two_programs(s, path, document);
  if (s->against.count) return time_two_options(s, path, document);
  if (threads->n > 1 && !s->has_profile && !events) return time_counts_in_turns(s, path, threads, document);
  Settings one = *s;
  int status = 0;
  for (size_t i = 0; i < threads->n && !status; i++) {
    one.threads = threads->counts[i];
    status = time_graph(&one, path, document, profiles, events);
  }
  return status;
}

static int time_operands(const Settings *s, const ThreadCounts *threads, json_t *document, Table *profiles,
                         json_t *events) {
  const bool is_pair = s->noperands == 2 && threads->n == 1 && !s->other_program && !s->against.count;
  int status = 0;
  if (is_pair && !s->has_profile && !events) return time_two_graphs(s, document, profiles);
  for (size_t i = 0; i < s->noperands; i++) {
    const int ended = time_operand(s, s->operands[i], threads, document, profiles, events);
    if (!status) status = ended;
  }
  return status;
}

// Times the operands for each extent, which the objects then have.
static int time_sweep(const Settings *s, const Sweep *sweep, const ThreadCounts *threads, json_t *document,
                      Table *profiles, json_t *events) {
  Settings one = *s;
  int status = 0;
  one.dims = memory_or_exit(calloc(s->ndims + 1, sizeof *one.dims));
  one.given.items = memory_or_exit(calloc(s->given.count + 1, sizeof *one.given.items));
  for (size_t i = 0; i < s->ndims; i++) one.dims[i] = s->dims[i];
  for (size_t i = 0; i < s->given.count; i++) one.given.items[i] = s->given.items[i];
  one.ndims++;
  one.given.count++;
  for (size_t i = 0; i < sweep->count && !status; i++) {
    const size_t before = json_array_size(document);
    char *text = text_of_format("--dim=%s=%lld", sweep->name, (long long)sweep->extents[i]);
    one.given.items[s->given.count] = text;
    one.dims[s->ndims] = (DimSetting){sweep->name, sweep->extents[i]};
    status = time_operands(&one, threads, document, profiles, events);
    for (size_t k = before; k < json_array_size(document); k++) {
      json_set_all(json_array_get(document, k), {"dim", json_text(sweep->name)},
                   {"extent", json_integer(sweep->extents[i])});
    }
    free(text);
  }
  free(one.dims);
  free(one.given.items);
  return status;
}

// False after an error message.
static bool is_usable(const Settings *s, size_t ncounts) {
  for (size_t i = 0; i < s->exports.count; i++)
    if (!export_is_known(s->exports.items[i], s->sweep) || !settings_keep_graphs(s, s->exports.items[i])) return false;
  if (!settings_keep_graphs(s, s->trace) || (s->against.count && !against_is_known(s))) return false;
  const char *wants = s->other_program ? "with" : s->against.count ? "against" : NULL;
  const char *other = s->other_program && s->against.count ? "against"
                      : ncounts > 1                        ? "threads N,N"
                      : s->trace                           ? "trace"
                      : s->has_profile                     ? "profile"
                                                           : NULL;
  if (!wants || !other) return true;
  usage_error("--%s and --%s: expected one of them", wants, other);
  return false;
}

int verb_bench(const Settings *s) {
  Sweep sweep = {0};
  ThreadCounts threads;
  if (!read_thread_counts(s->thread_counts, &threads) || !is_usable(s, threads.n) ||
      (s->sweep && !sweep_init(&sweep, s->sweep)))
    return NG_USAGE;
  json_t *document = memory_or_exit(json_array()), *events = s->trace ? memory_or_exit(json_array()) : NULL;
  Table profiles = table_new("lrrrrrrll");
  Settings own = *s;
  own.threads = threads.counts[0];
  int status = s->sweep ? time_sweep(&own, &sweep, &threads, document, &profiles, events)
                        : time_operands(&own, &threads, document, &profiles, events);
  if (threads.n > 1) times_compare_threads(document);
  if (events && status) json_decref(events);
  else if (events && !trace_write(s->trace, events)) status = NG_WRONG;
  const int printed = print_times(s, document, &profiles);
  json_decref(document);
  sweep_deinit(&sweep);
  return status ? status : printed;
}
