// Graphs, kernels, loops and source code as texts.
#include "frontend/api/build.h"

#include "backends/codegen/codegen.h"
#include "frontend/api/text.h"
#include "frontend/dot/dot.h"
#include "frontend/yaml/yaml.h"
#include "ir/loops/print.h"

#include <string.h>

static bool show_yaml(const Build *b, const Graph *g, Text *out) {
  (void)b;
  yaml_print(g, out);
  return true;
}

static bool show_dot(const Build *b, const Graph *g, Text *out) {
  dot_print(g, b->passes.partition, out);
  return true;
}

static bool show_kernels(const Build *b, const Graph *g, Text *out) {
  (void)g;
  program_print(b->program, out);
  return true;
}

static bool show_loops(const Build *b, const Graph *g, Text *out) {
  (void)g;
  return program_print_loops(b->program, out);
}

static bool show_c(const Build *b, const Graph *g, Text *out) {
  (void)g;
  const char *identifier = ng_graph_identifier(b->owner);
  const Program *program = b->program;
  EmittedFile file = {.file_stem = identifier,
                      .prefix = identifier,
                      .hash = "shown",
                      .threads = EMIT_OPENMP,
                      .programs = &program,
                      .isas = &b->isa,
                      .nisas = 1};
  Text header;
  text_init(&header, out->allocator);
  bool ok = identifier && emit_file(&file, out->allocator, out, &header);
  text_deinit(&header);
  return ok;
}

typedef struct Format {
  const char *name;
  bool needs_kernels;
  bool (*print)(const Build *b, const Graph *g, Text *out); // false: out of memory
} Format;

static const Format formats[] = {
    {"yaml", false, show_yaml},  {"dot", false, show_dot}, {"kernels", true, show_kernels},
    {"loops", true, show_loops}, {"c", true, show_c},
};
enum { NFORMATS = sizeof formats / sizeof *formats };

static const Format *find_format(ng_context *ctx, const char *name) {
  const char *known[NFORMATS];
  for (size_t i = 0; i < NFORMATS; i++) {
    if (strcmp(formats[i].name, name) == 0) return &formats[i];
    known[i] = formats[i].name;
  }
  ctx->last_status = unknown_name(ctx, "format", name, known, NFORMATS);
  return NULL;
}

static ng_status show_format(ng_graph *g, const Format *format, const ng_options *options, Text *out) {
  Build b = {0};
  const char *after = options ? options->after : NULL;
  if (format->needs_kernels && after)
    return argument_error(g->ctx, "%s come after all passes, expected nothing to stop after, found %s", format->name,
                          after);
  bool is_as_read = !format->needs_kernels && !after;
  ng_status status = is_as_read ? NG_OK : build_graph(&b, g, options);
  if (status == NG_OK && format->needs_kernels) status = build_kernels(&b);
  if (status == NG_OK && !format->print(&b, is_as_read ? g->graph : b.graph, out)) status = NG_OUT_OF_MEMORY;
  if (status == NG_OUT_OF_MEMORY) out->out_of_memory = true;
  build_deinit(&b);
  return status;
}

char *ng_graph_show(ng_graph *g, const char *format, const ng_options *options) {
  ng_context *ctx = g->ctx;
  const Format *known = find_format(ctx, format);
  if (!known) return NULL;
  Text out;
  text_init(&out, &ctx->allocator);
  ng_status status = show_format(g, known, options, &out);
  char *text = status == NG_OK ? text_release(ctx, &out) : NULL;
  if (status == NG_OUT_OF_MEMORY) error_out_of_memory(&ctx->diagnostics);
  text_deinit(&out);
  ctx->last_status = text || status != NG_OK ? status : NG_OUT_OF_MEMORY;
  return text;
}

ng_status ng_graph_workspace(ng_graph *g, const ng_options *options, size_t *nbytes, size_t *unshared) {
  Build b;
  ng_status status = build_graph(&b, g, options);
  if (status == NG_OK) status = build_kernels(&b);
  *nbytes = status == NG_OK ? b.program->workspace_nbytes : 0;
  *unshared = status == NG_OK ? b.program->unshared_nbytes : 0;
  build_deinit(&b);
  return status;
}
