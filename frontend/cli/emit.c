// ngrad emit and ngrad show: prints the stages of a graph's compilation to files and as text.
#include "frontend/cli/data.h"
#include "frontend/cli/graph_output.h"
#include "frontend/cli/states.h"
#include "frontend/cli/verbs.h"
#include "frontend/cli/weights.h"

#include <stdlib.h>
#include <string.h>

// Prints a name in a makefile rule. False after an error message: no rule can contain the name.
static bool print_prerequisite(FILE *out, const char *name) {
  char *text = ng_escape(NG_MAKEFILE, name);
  if (text) fputs(text, out);
  else plain_error("--depfile: %s: expected a name without any of ; = | \\ %% and control characters", name);
  const bool is_there = text != NULL;
  free(text);
  return is_there;
}

// Writes a makefile rule with the files that the source depends on.
static bool write_depfile(const ng_graph *g, const Settings *s, const char *source) {
  char *folder = folder_of(s->operands[0]);
  TextStream rule;
  FILE *out = text_open(&rule);
  bool ok = print_prerequisite(out, source);
  fputs(": ", out);
  ok = print_prerequisite(out, s->operands[0]) && ok;
  for (size_t i = 0; i < ng_graph_file_count(g); i++) {
    char *path = path_join(folder, ng_graph_file(g, i), "");
    fputs(" \\\n  ", out);
    ok = print_prerequisite(out, path) && ok;
    free(path);
  }
  if (s->state) fputs(" \\\n  ", out);
  if (s->state) ok = print_prerequisite(out, s->state) && ok;
  fputc('\n', out);
  char *text = text_close(&rule);
  ok = ok && file_write(s->depfile, text);
  free(text);
  free(folder);
  return ok;
}

typedef struct Written {
  char **paths; // the source first
  size_t count;
} Written;

static void wrote(void *user, const char *path) {
  Written *w = user;
  w->paths = memory_or_exit(reallocarray(w->paths, w->count + 1, sizeof *w->paths));
  w->paths[w->count++] = memory_or_exit(strdup(path));
}

static ng_status emit_graph(ng_context *ctx, ng_graph *g, const Settings *s, Answer *answer) {
  Written written = {0};
  ng_options options = options_of_settings(s);
  options.wrote = wrote;
  options.wrote_user = &written;
  ng_status status = states_read(ctx, g, s, answer);
  if (status == NG_OK) status = weights_narrow(g, s, answer);
  if (status == NG_OK && !folder_make(s->out)) status = NG_WRONG;
  if (status == NG_OK) status = ng_emit_files(g, &options, s->out);
  if (status == NG_OK && s->depfile && !write_depfile(g, s, written.paths[0])) status = NG_WRONG;
  for (size_t i = 0; i < written.count; i++) {
    if (status == NG_OK) answer_wrote(answer, written.paths[i]);
    free(written.paths[i]);
  }
  free(written.paths);
  return status;
}

int verb_emit(const Settings *s) {
  if (!s->out) return usage_error("emit: expected -o DIR, where the sources go");
  if (!settings_keep_graphs(s, s->depfile)) return NG_USAGE;
  const int wrong = weights_check(s, WEIGHTS_PLACES | WEIGHTS_NARROW);
  if (wrong) return wrong;
  return answer_with(s, emit_graph);
}

int verb_show(const Settings *s) {
  const ng_options options = options_of_settings(s);
  ng_context *ctx = session_open(s->max_memory, s->max_steps);
  ng_status status;
  ng_graph *g = graph_open(ctx, s->operands[0], s, &status);
  const char *format = s->format ? s->format : "yaml";
  Answer answer = answer_begin(s);
  char *text = g ? ng_graph_show(g, format, &options) : NULL;
  if (g) status = ng_last_status(ctx);
  if (text) answer_text(&answer, text, NULL);
  if (answer.document) json_set(answer.document, "format", json_text(format));
  answer_end(&answer, ctx, g, status);
  ng_text_free(ctx, text);
  ng_graph_free(g);
  session_close(ctx);
  return exit_status(status);
}
