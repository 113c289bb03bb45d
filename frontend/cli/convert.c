// ngrad convert: any graph that can be read, as a file in format ngrad/1.
#include "frontend/cli/data.h"
#include "frontend/cli/verbs.h"

int verb_convert(const Settings *s) {
  ng_context *ctx = session_open(s->max_memory);
  ng_status status;
  ng_graph *g = graph_open(ctx, s->operands[0], s, &status);
  char *text = g ? ng_graph_show(g, "yaml", NULL) : NULL;
  if (g) status = ng_last_status(ctx);
  if (text && !s->out) fputs(text, stdout);
  else if (text && !file_write(s->out, text)) status = NG_WRONG;
  ng_text_free(ctx, text);
  ng_graph_free(g);
  session_close(ctx);
  return exit_status(status);
}
