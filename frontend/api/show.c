// Prints graphs, kernels, loops and source code as text.
#include "frontend/api/build.h"

#include "backends/codegen/codegen.h"
#include "frontend/api/kernel.h"
#include "frontend/api/leaf_kernel.h"
#include "frontend/api/show_json.h"
#include "frontend/api/text.h"
#include "frontend/dot/dot.h"
#include "frontend/onnx/onnx.h"
#include "frontend/yaml/yaml.h"
#include "ir/loops/print.h"
#include "passes/memory/map.h"
#include "passes/schedule/kernel_pass.h"

#include <string.h>

static bool show_yaml(const Build *b, Text *out) {
  yaml_print(b->graph, out);
  return true;
}

static bool show_summary(const Build *b, Text *out) {
  enum { MOST_VALUES = 256 };
  yaml_print_most(b->graph, MOST_VALUES, out);
  return true;
}

static bool show_dot(const Build *b, Text *out) {
  dot_print(b->graph, b->passes.partition, out);
  return true;
}

static bool show_json(const Build *b, Text *out) {
  return json_print_graph(b->graph, out);
}

static bool show_kernels(const Build *b, Text *out) {
  program_print(b->program, out);
  return true;
}

static bool show_kernels_json(const Build *b, Text *out) {
  return json_print_program(b->program, out);
}

static bool show_loops(const Build *b, Text *out) {
  const bool ok = pipeline_build_trees(b->program, false);
  if (ok) program_print_loops(b->program, out);
  return ok;
}

static bool show_memory(const Build *b, Text *out) {
  return memory_print_table(b->program, out);
}

static bool show_memory_picture(const Build *b, Text *out) {
  return memory_print_picture(b->program, out);
}

static bool show_c(const Build *b, Text *out) {
  const char *identifier = ng_graph_identifier(b->owner);
  const Program *program = b->program;
  EmittedFunction function = {.name = identifier, .hash = "shown", .programs = &program};
  EmittedFile file = {.file_stem = identifier,
                      .prefix = identifier,
                      .threads = EMIT_OPENMP,
                      .functions = &function,
                      .nfunctions = 1,
                      .isas = &b->isa,
                      .nisas = 1};
  Text header;
  text_init(&header, out->allocator);
  bool ok = identifier && pipeline_build_trees(b->program, true) && emit_file(&file, out->allocator, out, &header);
  text_deinit(&header);
  return ok;
}

typedef struct Format {
  const char *name;
  bool needs_kernels;
  bool (*print)(const Build *b, Text *out); // false: out of memory
  const char *of_part; // heading of a function of a graph with leaves; NULL: such graphs lack this text
} Format;

static const Format formats[] = {
    {"yaml", false, show_yaml, NULL},
    {"summary", false, show_summary, NULL},
    {"dot", false, show_dot, NULL},
    {"kernels", true, show_kernels, "Function %s\n\n"},
    {"loops", true, show_loops, "Function %s\n\n"},
    {"c", true, show_c, NULL},
    {"memory", true, show_memory, "Function %s\n\n"},
    {"memory-svg", true, show_memory_picture, NULL},
    {"json", false, show_json, NULL},
    {"kernels-json", true, show_kernels_json, NULL},
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

// `stages`: of a graph with leaves, which has several functions; NULL: the graph is one function.
typedef ng_status Visitor(void *context, const Stages *stages, const Build *function);

static ng_status visit_function(ng_graph *g, const Stages *stages, const Graph *function, const ng_options *options,
                                Visitor *visit, void *context) {
  Build b;
  ng_status status = build_graph_of(&b, g, function, options);
  if (status == NG_OK) status = build_kernels(&b);
  if (status == NG_OK) status = visit(context, stages, &b);
  build_deinit(&b);
  return status;
}

// Builds the functions of a graph, one after the other, and visits each.
static ng_status visit_functions(ng_graph *g, const ng_options *options, Visitor *visit, void *context) {
  ng_context *ctx = g->ctx;
  Stages stages;
  if (!g->graph->nleaves) return visit_function(g, NULL, g->graph, options, visit, context);
  ng_status status = ng_graph_bind(g);
  if (status != NG_OK) return status;
  Call call = call_begin(ctx);
  if (!stages_cut(&stages, g->graph, BUCKET_NBYTES, &ctx->diagnostics)) status = call_end(ctx, call);
  for (size_t i = 0; i < stages.nfunctions && status == NG_OK; i++)
    status = visit_function(g, &stages, stages.functions[i], options, visit, context);
  stages_free(&stages);
  return status;
}

typedef struct Showing {
  const Format *format;
  Text *out;
} Showing;

static ng_status show_function(void *context, const Stages *stages, const Build *b) {
  const Showing *s = context;
  if (stages) text_format(s->out, s->format->of_part, b->graph->name);
  const bool ok = s->format->print(b, s->out) && !s->out->out_of_memory;
  return ok ? NG_OK : build_failed_status(b->owner->ctx, b->program);
}

static ng_status show_format(ng_graph *g, const Format *format, const ng_options *options, Text *out) {
  Build b = {0};
  const char *after = options ? options->after : NULL;
  const bool is_of_kernels = after && kernel_pass_find(after), shows_kernels = format->print == show_kernels;
  Showing showing = {format, out};
  if (is_of_kernels && !shows_kernels)
    return argument_error(g->ctx, "format %s: pass %s is one over kernels, expected format kernels", format->name,
                          after);
  if (format->needs_kernels && after && !is_of_kernels)
    return argument_error(g->ctx, "format %s comes after all passes, expected nothing to stop after, found %s",
                          format->name, after);
  if (format->needs_kernels && g->graph->nleaves && !format->of_part)
    return argument_error(g->ctx, "format %s: %s has leaves, and several functions: expected kernels, loops or memory",
                          format->name, g->graph->name);
  if (format->needs_kernels) return visit_functions(g, options, show_function, &showing);
  if (!after) return show_function(&showing, NULL, &(Build){.owner = g, .graph = g->graph}); // as read
  ng_status status = build_graph(&b, g, options);
  if (status == NG_OK) status = show_function(&showing, NULL, &b);
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

// Prints into a text of its own; the caller frees it.
static ng_status show_one(ng_context *ctx, const char *format, const Build *b, char **text) {
  const Format *known = find_format(ctx, format);
  Text out;
  if (!known) return ctx->last_status;
  text_init(&out, &ctx->allocator);
  ng_status status = show_function(&(Showing){known, &out}, NULL, b);
  if (status == NG_OK && !(*text = text_release(ctx, &out))) status = out_of_memory_status(ctx);
  text_deinit(&out);
  return status;
}

static ng_status show_each(ng_graph *g, const char *const *names, size_t count, const ng_options *options, char **texts,
                           ng_kernel **kernel) {
  Build b;
  ng_status status = kernel ? build_to_run(&b, g, g->graph, options) : build_graph(&b, g, options);
  if (status == NG_OK && !kernel) status = build_kernels(&b);
  for (size_t i = 0; i < count && status == NG_OK; i++) status = show_one(g->ctx, names[i], &b, &texts[i]);
  if (status == NG_OK && kernel) status = kernel_of_build(&b, kernel);
  build_deinit(&b);
  return status;
}

ng_status ng_graph_show_all(ng_graph *g, const char *const *names, size_t count, const ng_options *options,
                            char **texts, ng_kernel **kernel) {
  ng_context *ctx = g->ctx;
  for (size_t i = 0; i < count; i++) texts[i] = NULL;
  if (kernel) *kernel = NULL;
  ng_status status = show_each(g, names, count, options, texts, kernel);
  for (size_t i = 0; i < count && status != NG_OK; i++) {
    ng_text_free(ctx, texts[i]);
    texts[i] = NULL;
  }
  if (status != NG_OK && kernel) {
    ng_kernel_free(*kernel);
    *kernel = NULL;
  }
  return ctx->last_status = status;
}

char *ng_graph_onnx(const ng_graph *g, size_t *nbytes) {
  ng_context *ctx = g->ctx;
  Text out;
  text_init(&out, &ctx->allocator);
  const bool ok =
      onnx_write(g->graph, &out, &ctx->diagnostics) &&
      onnx_fits(&ctx->allocator, (Bytes){(const uint8_t *)text_string(&out), out.nbytes}, &ctx->diagnostics);
  *nbytes = ok ? out.nbytes : 0;
  char *model = ok ? text_release(ctx, &out) : NULL;
  ctx->last_status = model ? NG_OK : ctx->diagnostics.out_of_memory ? NG_OUT_OF_MEMORY : NG_WRONG;
  text_deinit(&out);
  return model;
}

typedef struct Workspace {
  size_t nbytes, unshared; // of the function with the largest workspace
  size_t between;          // of the values passed between functions
  size_t nvisited;         // functions
  size_t emitted;          // the largest, with memory for outputs that a call of emitted C may leave out
} Workspace;

// Bytes for outputs that a call may leave out although kernels read them.
static size_t kept_nbytes(const Program *p) {
  size_t nbytes = 0;
  for (size_t i = 0; i < p->graph->noutputs; i++)
    if (program_keeps_output(p, i)) nbytes += whole_lines(value_nbytes(p->graph->outputs[i]));
  return nbytes;
}

static ng_status add_workspace(void *context, const Stages *stages, const Build *b) {
  Workspace *w = context;
  if (stages) w->between = step_nbytes(&stages->step, NULL);
  if (b->program->workspace_nbytes > w->nbytes) w->nbytes = b->program->workspace_nbytes;
  if (b->program->unshared_nbytes > w->unshared) w->unshared = b->program->unshared_nbytes;
  const bool is_last = !stages || ++w->nvisited == stages->nfunctions; // whose outputs are the caller's
  const size_t emitted = b->program->workspace_nbytes + (is_last ? kept_nbytes(b->program) : 0);
  if (emitted > w->emitted) w->emitted = emitted;
  return NG_OK;
}

ng_status ng_graph_workspace(ng_graph *g, const ng_options *options, size_t *nbytes, size_t *unshared) {
  Workspace w = {0};
  const ng_status status = visit_functions(g, options, add_workspace, &w);
  *nbytes = status == NG_OK ? w.nbytes + w.between : 0;
  *unshared = status == NG_OK ? w.unshared + w.between : 0;
  return status;
}

typedef struct Compilation {
  Workspace workspace;
  uint64_t code_nbytes;
} Compilation;

static ng_status add_code(void *context, const Stages *stages, const Build *b) {
  ng_context *ctx = b->owner->ctx;
  Compilation *all = context;
  Text source, identifier;
  text_init(&source, &ctx->allocator);
  text_init(&identifier, &ctx->allocator);
  emit_identifier(b->graph->name, &identifier);
  const bool ok = !identifier.out_of_memory && pipeline_build_trees(b->program, false) &&
                  emit_for_loading(b->program, b->isa, text_string(&identifier), true, &source);
  all->code_nbytes += source.nbytes;
  text_deinit(&source);
  text_deinit(&identifier);
  return ok ? add_workspace(&all->workspace, stages, b) : build_failed_status(ctx, b->program);
}

ng_status ng_graph_compilation(ng_graph *g, const ng_options *options, ng_compilation *out) {
  ng_context *ctx = g->ctx;
  Compilation all = {.code_nbytes = 0};
  *out = (ng_compilation){0};
  compiling_begin(ctx, g->graph->name);
  ng_status status = ng_graph_bind(g);
  const int64_t before = ctx->steps.left;
  if (status == NG_OK) status = visit_functions(g, options, add_code, &all);
  if (status == NG_OK)
    *out = (ng_compilation){.nsteps = (uint64_t)(before - ctx->steps.left),
                            .code_nbytes = all.code_nbytes,
                            .workspace_nbytes = all.workspace.nbytes + all.workspace.between,
                            .unshared_nbytes = all.workspace.unshared + all.workspace.between,
                            .c_workspace_nbytes = all.workspace.emitted + all.workspace.between};
  compiling_end(ctx);
  return status;
}
