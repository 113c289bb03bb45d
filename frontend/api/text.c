// Texts for the caller, and names escaped for the place where they are shown.
#include "frontend/api/text.h"

#include "ir/support/escape.h"

char *text_release(ng_context *ctx, Text *t) {
  if (!t->bytes) text_add_string(t, "");
  if (t->out_of_memory) {
    text_deinit(t);
    error_out_of_memory(&ctx->diagnostics);
    return NULL;
  }
  char *bytes = t->bytes;
  text_init(t, t->allocator);
  return bytes;
}

void ng_text_free(ng_context *ctx, char *text) {
  allocator_free(&ctx->allocator, text);
}

char *ng_escape(ng_sink sink, const char *text) {
  static const Sink sinks[] = {[NG_C_IDENTIFIER] = SINK_IDENTIFIER,
                               [NG_C_COMMENT] = SINK_COMMENT,
                               [NG_C_STRING] = SINK_STRING,
                               [NG_DOT] = SINK_DOT,
                               [NG_YAML] = SINK_YAML,
                               [NG_HTML] = SINK_HTML,
                               [NG_TERMINAL] = SINK_TERMINAL,
                               [NG_MAKEFILE] = SINK_MAKEFILE,
                               [NG_JSON] = SINK_JSON};
  if (sink == NG_MAKEFILE && !text_is_for_makefile(text)) return NULL;
  Text out;
  text_init(&out, &system_allocator);
  text_add_user_string(&out, sinks[sink], text);
  text_add_string(&out, "");
  if (out.out_of_memory) text_deinit(&out);
  return out.bytes;
}
