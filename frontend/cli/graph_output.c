// Prints answers as lines or as a JSON document.
#include "frontend/cli/graph_output.h"

#include "frontend/cli/data.h"
#include "frontend/cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Answer answer_begin(const Settings *s) {
  Answer a = {0};
  if (!s->is_json) return a;
  a.document = memory_or_exit(json_object());
  a.files = memory_or_exit(json_array());
  json_set(a.document, "files", a.files);
  return a;
}

void answer_wrote(Answer *a, const char *path) {
  if (a->document) json_add(a->files, json_text(path));
  else say("wrote %s\n", path);
}

void answer_wrote_any(void *answer, const char *path) {
  answer_wrote(answer, path);
}

bool answer_text(Answer *a, const char *text, const char *path) {
  if (path && !file_write(path, text)) return false;
  if (path) answer_wrote(a, path);
  else if (a->document) json_set(a->document, "text", json_text(text));
  else {
    progress_end();
    fputs(text, stdout);
  }
  return true;
}

ng_status answer_graph(Answer *a, ng_context *ctx, ng_graph *g, const char *path) {
  enum {
    LEAST = 256,           // constants of fewer elements are in the text
    MOST_NBYTES = 64 << 20 // of a file that is read again
  };
  if (path) {
    char *folder = folder_of(path);
    const ng_status status = ng_graph_write_weights(g, folder, LEAST);
    free(folder);
    if (status != NG_OK) return status;
  }
  char *text = ng_graph_show(g, "yaml", NULL);
  ng_status status = text ? NG_OK : ng_last_status(ctx);
  if (text && strlen(text) > MOST_NBYTES) {
    plain_error("%s: as text it has %zu bytes, of which ngrad reads %d: %s", ng_graph_name(g), strlen(text),
                (int)MOST_NBYTES,
                path ? "divide it into smaller graphs" : "with --out FILE, its constants are in files");
    status = NG_WRONG;
  } else if (text && !answer_text(a, text, path)) {
    status = NG_WRONG;
  }
  ng_text_free(ctx, text);
  return status;
}

void answer_end(Answer *a, const ng_context *ctx, const ng_graph *g, ng_status status) {
  if (!a->document) return;
  json_set_all(a->document, {"graph", json_text(g ? ng_graph_name(g) : NULL)}, {"ok", json_boolean(status == NG_OK)},
               {"messages", json_messages(ctx)});
  json_print(a->document);
}

int answer_with(const Settings *s, ng_status (*work)(ng_context *ctx, ng_graph *g, const Settings *s, Answer *answer)) {
  ng_context *ctx = session_open(s->max_memory, s->max_steps);
  ng_status status;
  ng_graph *g = graph_open(ctx, s->operands[0], s, &status);
  Answer answer = answer_begin(s);
  if (g) status = work(ctx, g, s, &answer);
  answer_end(&answer, ctx, g, status);
  ng_graph_free(g);
  session_close(ctx);
  return exit_status(status);
}
