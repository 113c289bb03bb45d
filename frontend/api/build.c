// Options, passes, lowering.
#include "frontend/api/build.h"

#include <string.h>

enum { MOST_NAMES = 64 };

static ng_status find_pass(ng_context *ctx, const char *name) {
  const char *known[MOST_NAMES];
  size_t nknown = 0;
  for (size_t i = 0; i < npasses; i++) {
    if (strcmp(passes[i].name, name) == 0) return NG_OK;
    if (nknown < MOST_NAMES) known[nknown++] = passes[i].name;
  }
  return unknown_name(ctx, "pass", name, known, nknown);
}

static ng_status choose_isa(ng_context *ctx, const char *name, const Isa **isa) {
  *isa = name ? isa_find(name) : isa_best();
  if (*isa) return NG_OK;
  const char *known[MOST_NAMES];
  size_t nknown = 0;
  for (size_t i = 0; i < nisas && nknown < MOST_NAMES; i++) known[nknown++] = isas[i].name;
  return unknown_name(ctx, "instruction set", name ? name : "?", known, nknown);
}

static ng_status set_options(Build *b, ng_context *ctx, const ng_options *options, const Target *target) {
  ng_status status = choose_isa(ctx, options->isa, &b->isa);
  for (size_t i = 0; status == NG_OK && i < options->ndisable; i++) status = find_pass(ctx, options->disable[i]);
  for (size_t i = 0; status == NG_OK && i < options->nschedule; i++)
    if (!schedule_override(&b->overrides, options->schedule[i], &ctx->diagnostics)) status = NG_USAGE;
  if (status == NG_OK && options->after) status = find_pass(ctx, options->after);
  if (status != NG_OK) return status;
  b->target = *target;
  b->target.isa = b->isa->name;
  b->target.vector_registers = b->isa->vector_registers;
  b->passes = (PassContext){
      .diagnostics = &ctx->diagnostics,
      .allocator = &ctx->allocator,
      .target = &b->target,
      .overrides = &b->overrides,
      .disabled = options->disable,
      .ndisabled = options->ndisable,
      .after = options->after,
      .no_fuse = options->no_fuse != 0,
  };
  return NG_OK;
}

// What a step that failed without telling anything must have met.
static ng_status failure(ng_context *ctx, Call call) {
  ng_status status = call_end(ctx, call);
  if (status != NG_OK) return status;
  error_out_of_memory(&ctx->diagnostics);
  return NG_OUT_OF_MEMORY;
}

static ng_status build_for(Build *b, ng_graph *g, const ng_options *options, const Target *target) {
  static const ng_options defaults = {0};
  *b = (Build){.owner = g};
  ng_status status = set_options(b, g->ctx, options ? options : &defaults, target);
  if (status == NG_OK) status = ng_graph_bind(g);
  if (status != NG_OK) return status;
  Call call = call_begin(g->ctx);
  b->graph = graph_clone(g->graph);
  if (!b->graph || !pipeline_run(b->graph, &b->passes)) return failure(g->ctx, call);
  call_end(g->ctx, call);
  return NG_OK;
}

ng_status build_graph(Build *b, ng_graph *g, const ng_options *options) {
  const Target target = target_of_machine();
  return build_for(b, g, options, &target);
}

ng_status build_portable_graph(Build *b, ng_graph *g, const ng_options *options) {
  const Target target = target_of_any_machine();
  return build_for(b, g, options, &target);
}

ng_status build_kernels(Build *b) {
  ng_context *ctx = b->owner->ctx;
  Call call = call_begin(ctx);
  b->program = pipeline_lower(b->graph, &b->passes);
  if (!b->program) return failure(ctx, call);
  call_end(ctx, call);
  return NG_OK;
}

void build_deinit(Build *b) {
  program_free(b->program);
  graph_free(b->graph);
  *b = (Build){0};
}

ng_graph *ng_graph_run_passes(ng_graph *g, const ng_options *options) {
  ng_context *ctx = g->ctx;
  Build b;
  ng_status status = build_graph(&b, g, options);
  ng_graph *result = NULL;
  if (status == NG_OK) {
    Call call = call_begin(ctx);
    result = graph_wrap(ctx, call, b.graph);
    b.graph = NULL;
    status = ctx->last_status;
  }
  build_deinit(&b);
  ctx->last_status = status;
  if (result) result->is_bound = true;
  return result;
}
