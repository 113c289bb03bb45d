// ngrad convert: writes any graph that can be read as a file in format ngrad/1 or as an ONNX model.
#include "frontend/cli/graph_output.h"
#include "frontend/cli/states.h"
#include "frontend/cli/verbs.h"
#include "frontend/cli/weights.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_model(const Settings *s) {
  return s->to ? strcmp(s->to, "onnx") == 0 : s->out && ends_in(s->out, ".onnx");
}

static ng_status write_model(ng_context *ctx, ng_graph *g, const Settings *s, Answer *answer) {
  size_t nbytes;
  char *model = ng_graph_onnx(g, &nbytes);
  if (!model) return ng_last_status(ctx);
  const bool ok = s->out ? file_write_bytes(s->out, model, nbytes) : fwrite(model, 1, nbytes, stdout) == nbytes;
  if (ok && s->out) answer_wrote(answer, s->out);
  ng_text_free(ctx, model);
  return ok ? NG_OK : NG_WRONG;
}

static ng_status write_text(ng_context *ctx, ng_graph *g, const Settings *s, Answer *answer) {
  return answer_graph(answer, ctx, g, s->out);
}

static ng_status write_converted(ng_context *ctx, ng_graph *g, const Settings *s, Answer *answer) {
  ng_status status = states_read(ctx, g, s, answer);
  if (status == NG_OK) status = weights_narrow(g, s, answer);
  if (status != NG_OK) return status;
  return is_model(s) ? write_model(ctx, g, s, answer) : write_text(ctx, g, s, answer);
}

int verb_convert(const Settings *s) {
  const int wrong = weights_check(s, WEIGHTS_NARROW);
  if (wrong) return wrong;
  if ((s->state || s->weights) && !s->out)
    return usage_error("--%s: expected --out FILE, beside which the values go", s->state ? "state" : "weights");
  if (s->to && !is_model(s) && strcmp(s->to, "yaml") != 0)
    return usage_error("--to: expected yaml or onnx, found %s", s->to);
  if (is_model(s) && !s->out && (s->is_json || isatty(STDOUT_FILENO)))
    return usage_error("a model is no text: expected --out FILE%s", s->is_json ? "" : ", or a pipe");
  return answer_with(s, write_converted);
}
