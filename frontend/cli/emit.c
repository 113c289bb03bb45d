// ngrad emit and ngrad show: what a graph becomes, as files and as text.
#include "frontend/cli/data.h"
#include "frontend/cli/verbs.h"

#include <stdlib.h>

// Writes DIR/STEM.c and DIR/STEM.h and adds their paths to `paths`.
static bool write_sources(const char *folder, const char *stem, char *const texts[2], char *paths[2]) {
  static const char *const endings[2] = {".c", ".h"};
  if (!folder_make(folder)) return false;
  for (int i = 0; i < 2; i++) {
    paths[i] = path_join(folder, stem, endings[i]);
    if (!file_write(paths[i], texts[i])) return false;
  }
  return true;
}

static void report_files(const ng_context *ctx, const ng_graph *g, const Settings *s, char *const paths[2]) {
  if (!s->is_json) {
    printf("wrote %s\nwrote %s\n", paths[0], paths[1]);
    return;
  }
  json_t *document = memory_or_exit(json_object()), *files = memory_or_exit(json_array());
  for (int i = 0; i < 2; i++) json_add(files, json_text(paths[i]));
  json_set(document, "graph", json_text(ng_graph_name(g)));
  json_set(document, "files", files);
  json_set(document, "messages", json_messages(ctx));
  json_print(document);
}

static ng_status emit_graph(ng_context *ctx, ng_graph *g, const Settings *s) {
  const ng_options options = options_of_settings(s);
  char *texts[2], *paths[2] = {NULL, NULL};
  ng_status status = ng_emit(g, &options, &texts[0], &texts[1]);
  if (status != NG_OK) return status;
  const char *stem = ng_graph_identifier(g);
  if (!stem) status = NG_OUT_OF_MEMORY;
  else if (write_sources(s->out, stem, texts, paths)) report_files(ctx, g, s, paths);
  else status = NG_WRONG;
  for (int i = 0; i < 2; i++) {
    free(paths[i]);
    ng_text_free(ctx, texts[i]);
  }
  return status;
}

int verb_emit(const Settings *s) {
  if (!s->out) return usage_error("emit: expected -o DIR, where the sources go");
  ng_context *ctx = session_open();
  ng_status status;
  ng_graph *g = graph_open(ctx, s->operands[0], s, &status);
  if (g) status = emit_graph(ctx, g, s);
  ng_graph_free(g);
  session_close(ctx);
  return exit_status(status);
}

int verb_show(const Settings *s) {
  const ng_options options = options_of_settings(s);
  ng_context *ctx = session_open();
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
