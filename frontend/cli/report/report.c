// ngrad report: shows how graphs become kernels in one self-contained page of HTML. C collects the data; the page draws
// it.
#include "frontend/cli/bench_report.h"
#include "frontend/cli/data.h"
#include "frontend/cli/progress.h"
#include "frontend/cli/report/layout.h"
#include "frontend/cli/report/lines.h"
#include "frontend/cli/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// The page's parts, which the build turns into arrays.
extern const char report_page_html[], report_page_css[], report_page_js[];

#define FORMAT "ngrad-report/1"
#define DATA_BEGIN "<script type=\"application/json\" id=\"data\">"
#define DATA_END "</script>"
enum { MOST_FILE_NBYTES = 64 << 20, MOST_SOURCE_NBYTES = 1 << 20 };

typedef struct Report {
  const Settings *settings;
  json_t *graphs, *messages;
} Report;

typedef struct Subject { // a graph of the report
  const Settings *settings;
  ng_context *ctx;
  const char *path;
  ng_graph *graph;
  ng_options options;
  Lines lines;
  json_t *object; // the page's data of the graph
  json_t *passes;
  char *texts[4];    // parallel to `formats`
  ng_kernel *kernel; // NULL: no times are wanted
} Subject;

// Files

// A file's text, cut at `most` bytes; the caller frees it. NULL after an error message: the file cannot be read.
static char *file_text(const char *path, size_t most) {
  FILE *in = fopen(path, "rb");
  if (!in) {
    plain_error("%s: cannot read: %s", path, strerror(errno));
    return NULL;
  }
  TextStream read;
  FILE *out = text_open(&read);
  char buffer[1 << 14];
  for (size_t n; read.nbytes < most && (n = fread(buffer, 1, sizeof buffer, in)) > 0; fflush(out))
    fwrite(buffer, 1, n, out);
  const bool ok = !ferror(in);
  fclose(in);
  char *text = text_close(&read);
  if (read.nbytes > most) text[most] = 0;
  if (ok) return text;
  plain_error("%s: cannot read", path);
  free(text);
  return NULL;
}

static bool is_graph(const json_t *graph) {
  return json_is_object(json_object_get(graph, "program")) && json_is_array(json_object_get(graph, "lines"));
}

// The data that a page was made from; NULL: the text is no page.
static json_t *page_data(const char *text) {
  const char *begin = strncmp(text, "<!doctype html>", 15) == 0 ? strstr(text, DATA_BEGIN) : NULL;
  const char *end = begin ? strstr(begin, DATA_END) : NULL;
  if (!end) return NULL;
  begin += strlen(DATA_BEGIN);
  json_t *data = json_loadb(begin, (size_t)(end - begin), 0, NULL);
  const char *format = json_string_value(json_object_get(data, "format"));
  const json_t *graphs = json_object_get(data, "graphs");
  bool ok = format && strcmp(format, FORMAT) == 0 && json_array_size(graphs) > 0;
  for (size_t i = 0; ok && i < json_array_size(graphs); i++) ok = is_graph(json_array_get(graphs, i));
  if (ok) return data;
  json_decref(data);
  return NULL;
}

// Parts of the page's data

// Standard input and other paths that are no files cannot be read again.
static ng_status add_source(Subject *s) {
  struct stat info;
  if (strcmp(s->path, "-") == 0 || stat(s->path, &info) != 0 || !S_ISREG(info.st_mode)) return NG_OK;
  char *text = file_text(s->path, MOST_SOURCE_NBYTES);
  if (text) json_set(s->object, "source", lines_add(&s->lines, text));
  free(text);
  return text ? NG_OK : NG_WRONG;
}

static const char *pass_doc(const char *name) {
  size_t i = 0;
  while (i < ng_pass_count() && strcmp(ng_pass_at(i).name, name) != 0) i++;
  return i < ng_pass_count() ? ng_pass_at(i).doc : NULL;
}

static void keep_pass(void *user, const ng_pass_report *report) {
  Subject *s = user;
  json_t *pass = json_object_of({"name", json_text(report->name)}, {"doc", json_text(pass_doc(report->name))});
  if (!s->settings->has_no_times) json_set(pass, "ms", json_number(report->ms));
  json_set(pass, "nodes", json_count(report->node_count));
  if (report->graph) json_set(pass, "graph", lines_add(&s->lines, report->graph));
  json_add(s->passes, pass);
}

// jansson's parser silently drops a character when it is out of memory. It is run twice, because it does not drop the
// same character twice.
static json_t *parse_or_exit(const char *text) {
  json_t *json = memory_or_exit(json_loads(text, 0, NULL)), *again = memory_or_exit(json_loads(text, 0, NULL));
  if (!json_equal(json, again)) memory_or_exit(NULL);
  json_decref(again);
  return json;
}

// The texts after all passes, from one compilation.
enum { PROGRAM, KERNELS, C, LOOPS, NFORMATS };
static const char *const formats[NFORMATS] = {"kernels-json", "kernels", "c", "loops"};

// The graph before all passes, each pass, the texts after them and the kernel.
static ng_status compile(Subject *s) {
  ng_options options = s->options;
  options.report = keep_pass;
  options.report_user = s;
  options.report_graphs = 1;
  options.profile = 1;
  char *text = ng_graph_show(s->graph, "yaml", NULL);
  if (!text) return ng_last_status(s->ctx);
  json_set(s->object, "before", lines_add(&s->lines, text));
  ng_text_free(s->ctx, text);
  s->passes = memory_or_exit(json_array());
  json_set(s->object, "passes", s->passes);
  const bool is_timed = !s->settings->has_no_times;
  const ng_status status = is_timed ? memory_check(s->ctx, s->graph, "timing", 1, false, false) : NG_OK;
  if (status != NG_OK) return status;
  if (is_timed) progress_begin("compiling", ng_graph_name(s->graph));
  return ng_graph_show_all(s->graph, formats, NFORMATS, &options, s->texts, is_timed ? &s->kernel : NULL);
}

static ng_status add_program(Subject *s) {
  json_t *program = parse_or_exit(s->texts[PROGRAM]);
  json_set(s->object, "program", program);
  const char *why = NULL;
  json_t *drawing = layout_program(program, &why);
  if (!drawing) fprintf(stderr, "warning: %s, so the report has no drawing of the graph\n", why);
  json_set(s->object, "drawing", drawing ? drawing : json_text(why));
  return NG_OK;
}

// The drawing of the graph after a pass (NULL: before the first), unless it is too large.
static ng_status add_picture(Subject *s, json_t *object, const char *pass) {
  ng_options options = s->options;
  options.after = pass;
  char *text = ng_graph_show(s->graph, "json", pass ? &options : NULL);
  if (!text) return ng_last_status(s->ctx);
  json_t *graph = parse_or_exit(text), *layout = layout_graph(graph);
  ng_text_free(s->ctx, text);
  if (layout) {
    json_set(graph, "layout", layout);
    json_set(object, "picture", json_incref(graph));
  }
  json_decref(graph);
  return NG_OK;
}

// The texts of the graph before all passes, and after each pass that changed its lines.
static ng_status add_pictures(Subject *s) {
  const json_t *before = json_object_get(s->object, "before");
  ng_status status = NG_OK;
  json_t *first = memory_or_exit(json_object());
  json_set(s->object, "first", first);
  if (json_is_string(json_object_get(s->object, "drawing"))) return NG_OK; // there is no dot
  status = add_picture(s, first, NULL);
  for (size_t i = 0; i < json_array_size(s->passes) && status == NG_OK; i++) {
    json_t *pass = json_array_get(s->passes, i);
    const json_t *graph = json_object_get(pass, "graph");
    if (!graph || json_equal(graph, before)) continue;
    before = graph;
    status = add_picture(s, pass, json_string_value(json_object_get(pass, "name")));
  }
  return status;
}

static ng_status add_texts(Subject *s) {
  static const char *const headings[NFORMATS] = {NULL, "kernel ", "// Kernel ", "kernel "}, *const ends[NFORMATS] = {
                                                                                                NULL, "workspace: ",
                                                                                                "static V_FAR void ",
                                                                                                NULL};
  const json_t *kernels = json_object_get(json_object_get(s->object, "program"), "kernels");
  for (size_t i = KERNELS; i < NFORMATS; i++)
    json_set(s->object, formats[i],
             lines_add_kernels(&s->lines, s->texts[i], json_array_size(kernels), headings[i], ends[i]));
  return NG_OK;
}

static void set_times(Subject *s, const ng_bench_result *result) {
  const ng_kernel_info info = ng_kernel_get_info(s->kernel);
  const int threads = s->settings->threads ? s->settings->threads : ng_thread_count();
  json_t *times = times_json(s->graph, &info, threads, result);
  json_set(times, "profile", profile_json(ng_kernel_profile(s->kernel), threads));
  json_set(s->object, "timing", times);
}

static ng_status add_times(Subject *s) {
  if (!s->kernel) return NG_OK;
  Settings random = *s->settings;
  random.is_random = true;
  Tensors inputs = {0}, outputs = {0};
  ng_status status = inputs_make(&inputs, s->ctx, s->graph, s->path, &random);
  if (status == NG_OK) status = outputs_make(&outputs, s->ctx, s->graph);
  if (status == NG_OK) {
    const ng_bench_options how = {.threads = random.threads, .seconds = random.seconds > 0 ? random.seconds : 0};
    ng_bench_result result;
    status = ng_bench(s->kernel, inputs.items, outputs.items, &how, &result);
    if (status == NG_OK) set_times(s, &result);
  }
  tensors_free(&inputs);
  tensors_free(&outputs);
  return status;
}

static ng_status add_parts(Subject *s) {
  static ng_status (*const parts[])(Subject *) = {add_source, compile, add_program, add_pictures, add_texts, add_times};
  json_set_all(s->object, {"name", json_text(ng_graph_name(s->graph))}, {"file", json_text(s->path)},
               {"version", json_text(ng_version())});
  ng_status status = NG_OK;
  for (size_t i = 0; i < sizeof parts / sizeof *parts && status == NG_OK; i++) status = parts[i](s);
  return status;
}

static ng_status add_graph(Report *r, const char *path) {
  Subject s = {.settings = r->settings, .path = path, .options = options_of_settings(r->settings)};
  ng_status status;
  s.ctx = session_open(r->settings->max_memory, r->settings->max_steps);
  ng_steps_begin(s.ctx, path);
  s.graph = graph_open(s.ctx, path, r->settings, &status);
  if (s.graph && ng_graph_leaf_count(s.graph)) {
    status = (ng_status)usage_error(
        "%s: has leaves, and report cannot show such graphs; ngrad show --format kernels shows its kernels", path);
  } else if (s.graph) {
    s.object = memory_or_exit(json_object());
    lines_init(&s.lines);
    status = add_parts(&s);
    json_set_all(s.object, {"lines", s.lines.list}, {"is_cut", json_boolean(s.lines.is_full)});
    json_add(r->graphs, s.object);
    lines_deinit(&s.lines);
    for (size_t i = 0; i < NFORMATS; i++) ng_text_free(s.ctx, s.texts[i]);
    ng_kernel_free(s.kernel);
  }
  ng_steps_end(s.ctx);
  json_t *messages = json_messages(s.ctx);
  if (json_array_extend(r->messages, messages) != 0) memory_or_exit(NULL);
  json_decref(messages);
  ng_graph_free(s.graph);
  session_close(s.ctx);
  return status;
}

// Whether writing the page would overwrite a graph.
static bool is_over_graph(const Settings *s) {
  for (size_t i = 0; s->out && i < s->noperands; i++)
    if (!ends_in(s->operands[i], ".html") && is_same_file(s->operands[i], s->out)) return true;
  return false;
}

// Adds a graph, or the graphs of a page from an earlier report.
static ng_status add_operand(Report *r, const char *path) {
  if (!ends_in(path, ".html")) return add_graph(r, path);
  char *text = file_text(path, MOST_FILE_NBYTES);
  const bool is_read = text;
  json_t *data = is_read ? page_data(text) : NULL;
  free(text);
  if (data && json_array_extend(r->graphs, json_object_get(data, "graphs")) != 0) memory_or_exit(NULL);
  if (!data && is_read) plain_error("%s: expected a page that ngrad report wrote", path);
  json_decref(data);
  return data ? NG_OK : NG_WRONG;
}

// The page

// No tag can begin or end in a script's JSON: '<' occurs only in strings, where it is escaped.
static int write_data(const char *text, size_t nbytes, void *file) {
  for (size_t i = 0; i < nbytes; i++)
    if (text[i] == '<') fputs("\\u003c", file);
    else fputc(text[i], file);
  return 0;
}

// Prints the page with each mark replaced by its part.
static char *page_text(const json_t *data) {
  static const struct {
    const char *mark, *text;
  } parts[] = {{"/* STYLE */", report_page_css}, {"{}", NULL}, {"/* SCRIPT */", report_page_js}};
  enum { DIGITS = 6 };
  TextStream page;
  FILE *out = text_open(&page);
  const char *rest = report_page_html;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    const char *mark = strstr(rest, parts[i].mark);
    fwrite(rest, 1, (size_t)(mark - rest), out);
    rest = mark + strlen(parts[i].mark);
    if (parts[i].text) fputs(parts[i].text, out);
    else if (json_dump_callback(data, write_data, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(DIGITS)))
      memory_or_exit(NULL);
  }
  fputs(rest, out);
  return text_close(&page);
}

int verb_report(const Settings *s) {
  if (is_over_graph(s)) return usage_error("%s: expected another file for the page than the graph's", s->out);
  Report r = {.settings = s, .graphs = memory_or_exit(json_array()), .messages = memory_or_exit(json_array())};
  int status = 0;
  for (size_t i = 0; i < s->noperands && !status; i++) status = exit_status(add_operand(&r, s->operands[i]));
  json_t *data = json_object_of({"format", json_text(FORMAT)}, {"graphs", r.graphs});
  progress_end();
  if (!status && (s->out || !s->is_json)) {
    char *page = page_text(data);
    if (!s->out) fputs(page, stdout);
    else if (!file_write(s->out, page)) status = NG_WRONG;
    free(page);
  }
  json_set_all(data, {"ok", json_boolean(!status)}, {"messages", r.messages});
  if (s->is_json) json_print(json_incref(data));
  json_decref(data);
  return status;
}
