// ngrad emit and ngrad show: what a graph becomes, as files and as text.
#include "frontend/cli/data.h"
#include "frontend/cli/verbs.h"

#include <stdlib.h>

// A name in a makefile's rule. False after telling that there it cannot be.
static bool print_prerequisite(FILE *out, const char *name) {
  char *text = ng_escape(NG_MAKEFILE, name);
  if (text) fputs(text, out);
  else plain_error("--depfile: %s: expected a name without any of ; = | \\ %% and control characters", name);
  const bool is_there = text != NULL;
  free(text);
  return is_there;
}

// What the source is made of, as a makefile's rule.
static bool write_depfile(const ng_graph *g, const Settings *s, const char *source) {
  char *text = NULL, *folder = folder_of(s->operands[0]);
  size_t nbytes = 0;
  FILE *out = memory_or_exit(open_memstream(&text, &nbytes));
  bool ok = print_prerequisite(out, source);
  fputs(": ", out);
  ok = print_prerequisite(out, s->operands[0]) && ok;
  for (size_t i = 0; i < ng_graph_file_count(g); i++) {
    char *path = path_join(folder, ng_graph_file(g, i), "");
    fputs(" \\\n  ", out);
    ok = print_prerequisite(out, path) && ok;
    free(path);
  }
  fputc('\n', out);
  fclose(out);
  ok = ok && file_write(s->depfile, memory_or_exit(text));
  free(text);
  free(folder);
  return ok;
}

static void report_files(const ng_context *ctx, const ng_graph *g, const Settings *s, char *const *paths, int count) {
  for (int i = 0; i < count && !s->is_json; i++) say("wrote %s\n", paths[i]);
  if (!s->is_json) return;
  json_t *document = memory_or_exit(json_object()), *files = memory_or_exit(json_array());
  for (int i = 0; i < count; i++) json_add(files, json_text(paths[i]));
  json_set(document, "graph", json_text(ng_graph_name(g)));
  json_set(document, "files", files);
  json_set(document, "messages", json_messages(ctx));
  json_print(document);
}

static ng_status emit_graph(ng_context *ctx, ng_graph *g, const Settings *s) {
  const ng_options options = options_of_settings(s);
  if (!folder_make(s->out)) return NG_WRONG;
  ng_status status = ng_emit_files(g, &options, s->out);
  if (status != NG_OK) return status;
  const char *stem = memory_or_exit((void *)ng_graph_identifier(g));
  char *paths[] = {path_join(s->out, stem, ".c"), path_join(s->out, stem, ".h"), path_join(s->out, stem, "_test.c")};
  if (s->depfile && !write_depfile(g, s, paths[0])) status = NG_WRONG;
  else report_files(ctx, g, s, paths, s->has_self_test ? 3 : 2);
  for (int i = 0; i < 3; i++) free(paths[i]);
  return status;
}

int verb_emit(const Settings *s) {
  if (!s->out) return usage_error("emit: expected -o DIR, where the sources go");
  ng_context *ctx = session_open(s->max_memory);
  ng_status status;
  ng_graph *g = graph_open(ctx, s->operands[0], s, &status);
  if (g) status = emit_graph(ctx, g, s);
  ng_graph_free(g);
  session_close(ctx);
  return exit_status(status);
}

int verb_show(const Settings *s) {
  const ng_options options = options_of_settings(s);
  ng_context *ctx = session_open(s->max_memory);
  ng_status status;
  ng_graph *g = graph_open(ctx, s->operands[0], s, &status);
  char *text = g ? ng_graph_show(g, s->format ? s->format : "yaml", &options) : NULL;
  if (g) status = ng_last_status(ctx);
  if (text) fputs(text, stdout);
  ng_text_free(ctx, text);
  ng_graph_free(g);
  session_close(ctx);
  return exit_status(status);
}
