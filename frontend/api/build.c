// Checks options, runs the passes and lowers graphs to programs.
#include "frontend/api/build.h"

#include "backends/interpreter/interpreter.h"
#include "frontend/api/budget.h"
#include "frontend/yaml/yaml.h"
#include "passes/rewrite/rewrite.h"
#include "passes/schedule/kernel_pass.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MOST_NAMES = 256 };

static ng_status find_pass(ng_context *ctx, const char *name) {
  const char *known[MOST_NAMES];
  size_t nknown = 0;
  for (size_t i = 0; i < ng_pass_count() && nknown < MOST_NAMES; i++) known[nknown++] = ng_pass_at(i).name;
  for (size_t i = 0; i < nknown; i++)
    if (strcmp(known[i], name) == 0) return NG_OK;
  return unknown_name(ctx, "pass", name, known, nknown);
}

static ng_status refuse_needed_pass(ng_context *ctx, const char *name) {
  Text others;
  text_init(&others, &ctx->allocator);
  for (size_t i = 0; i < ng_pass_count(); i++)
    if (!ng_pass_at(i).is_needed) text_format(&others, "%s%s", others.nbytes ? ", " : "", ng_pass_at(i).name);
  ng_status status =
      argument_error(ctx, "pass %s cannot be disabled, because compiling requires it; expected %s or a rule", name,
                     text_string(&others));
  text_deinit(&others);
  return status;
}

// Marks a pass that can be disabled, or a rule, as disabled.
static ng_status find_disabled(ng_context *ctx, const char *name) {
  const char *known[MOST_NAMES];
  size_t nknown = 0;
  for (size_t i = 0; i < ng_pass_count() && nknown < MOST_NAMES; i++) {
    const ng_pass_info pass = ng_pass_at(i);
    if (!pass.is_needed) known[nknown++] = pass.name;
    else if (strcmp(pass.name, name) == 0) return refuse_needed_pass(ctx, name);
  }
  for (size_t i = 0; i < npasses; i++)
    for (size_t k = 0; passes[i].rules && k < passes[i].rules->count && nknown < MOST_NAMES; k++)
      known[nknown++] = passes[i].rules->items[k].name;
  for (size_t i = 0; i < nknown; i++)
    if (strcmp(known[i], name) == 0) return NG_OK;
  return unknown_name(ctx, "pass or rule", name, known, nknown);
}

// Constants from files are printed with their values, because the reader of the text may be in another folder.
static bool print_graph(const Graph *g, Text *out) {
  Graph *copy = graph_clone(g);
  for (size_t i = 0; copy && i < copy->nvalues; i++)
    if (copy->values[i]->constant) copy->values[i]->constant->file = NULL;
  if (copy) yaml_print(copy, out);
  graph_free(copy);
  return copy && !out->out_of_memory;
}

static void report_pass(void *watcher, const Graph *g, const char *pass, bool changed, double milliseconds) {
  Build *b = watcher;
  Text text;
  text_init(&text, b->passes.allocator);
  bool has_text = changed && b->options->report_graphs;
  if (has_text && !print_graph(g, &text)) {
    b->passes.failed = true;
    error_out_of_memory(b->passes.diagnostics);
  } else {
    const ng_pass_report report = {.name = pass,
                                   .number = ++b->npassed,
                                   .changed = changed,
                                   .ms = milliseconds,
                                   .node_count = g->nnodes,
                                   .graph = has_text ? text_string(&text) : NULL};
    b->options->report(b->options->report_user, &report);
  }
  text_deinit(&text);
}

bool options_want_size(const ng_options *options) {
  return options->optimize && strcmp(options->optimize, "size") == 0;
}

static ng_status check_optimize(ng_context *ctx, const ng_options *options) {
  static const char *const known[] = {"speed", "size"};
  const bool is_size = options_want_size(options);
  if (is_size && options->isa && strcmp(options->isa, "scalar") != 0)
    return argument_error(ctx, "code of little size is scalar C: expected isa scalar, found %s", options->isa);
  if (is_size || !options->optimize || strcmp(options->optimize, "speed") == 0) return NG_OK;
  return unknown_name(ctx, "goal of optimize", options->optimize, known, sizeof known / sizeof *known);
}

static ng_status choose_isa(ng_context *ctx, const ng_options *options, const Isa **isa) {
  const char *name = options_want_size(options) ? "scalar" : options->isa;
  *isa = name ? isa_find(name) : isa_best();
  if (*isa) return NG_OK;
  const char *known[MOST_NAMES];
  size_t nknown = 0;
  for (size_t i = 0; i < nisas && nknown < MOST_NAMES; i++) known[nknown++] = isas[i].name;
  return unknown_name(ctx, "instruction set", name ? name : "?", known, nknown);
}

static ng_status set_options(Build *b, ng_context *ctx, const ng_options *options) {
  ng_status status = check_optimize(ctx, options);
  if (status == NG_OK && !b->is_portable) status = choose_isa(ctx, options, &b->isa);
  for (size_t i = 0; status == NG_OK && i < options->ndisable; i++) status = find_disabled(ctx, options->disable[i]);
  for (size_t i = 0; status == NG_OK && i < options->nschedule; i++)
    if (!schedule_override(&b->overrides, options->schedule[i], &ctx->diagnostics)) status = NG_USAGE;
  b->costs = usual_costs;
  for (size_t i = 0; status == NG_OK && i < options->ncosts; i++)
    if (!cost_override(&b->costs, options->costs[i], &ctx->diagnostics)) status = NG_USAGE;
  if (status == NG_OK && options->after) status = find_pass(ctx, options->after);
  if (status != NG_OK) return status;
  const bool is_of_kernels = options->after && kernel_pass_find(options->after);
  b->overrides.for_size = options_want_size(options);
  b->overrides.disabled = options->disable;
  b->overrides.ndisabled = options->ndisable;
  b->overrides.after = is_of_kernels ? options->after : NULL;
  b->passes = (PassContext){
      .diagnostics = &ctx->diagnostics,
      .allocator = &ctx->allocator,
      .overrides = &b->overrides,
      .costs = &b->costs,
      .disabled = options->disable,
      .ndisabled = options->ndisable,
      .after = is_of_kernels ? NULL : options->after,
      .evaluate = interpret_node,
      .watch = options->report ? report_pass : NULL,
      .watcher = b,
      .memory_nbytes = options->memory_nbytes,
      .no_fuse = options->no_fuse != 0,
      .fast_math = options->fast_math != 0,
  };
  return NG_OK;
}

// The status of a step that failed without a message.
static ng_status failure(ng_context *ctx, Call call) {
  ng_status status = call_end(ctx, call);
  return status != NG_OK ? status : out_of_memory_status(ctx);
}

static ng_status build_for(Build *b, ng_graph *g, const Graph *graph, const ng_options *options, bool is_portable) {
  static const ng_options defaults = {0};
  *b = (Build){.owner = g, .options = options ? options : &defaults, .is_portable = is_portable};
  compiling_begin(g->ctx, g->graph->name);
  ng_status status = set_options(b, g->ctx, b->options);
  if (status == NG_OK && graph == g->graph) status = ng_graph_bind(g);
  if (status != NG_OK) return status;
  Call call = call_begin(g->ctx);
  b->graph = graph_clone(graph);
  if (!b->graph || !pipeline_run(b->graph, &b->passes)) return failure(g->ctx, call);
  call_end(g->ctx, call);
  return NG_OK;
}

ng_status build_graph(Build *b, ng_graph *g, const ng_options *options) {
  return build_for(b, g, g->graph, options, false);
}

ng_status build_graph_of(Build *b, ng_graph *g, const Graph *part, const ng_options *options) {
  return build_for(b, g, part, options, false);
}

ng_status build_portable_graph(Build *b, ng_graph *g, const Graph *open, const ng_options *options) {
  return build_for(b, g, open, options, true);
}

// Offsets in the workspace are sums of tensors' bytes, which must not overflow.
static bool is_addressable(const Graph *g) {
  const uint64_t most = SIZE_MAX / 16;
  uint64_t nbytes = 0;
  for (size_t i = 0; i < g->nvalues; i++) {
    const int64_t nelems = shape_nelems(&g->values[i]->shape);
    if (nelems > 0) nbytes = nbytes_add(nbytes, type_array_nbytes(g->values[i]->type, (size_t)nelems));
  }
  return nbytes <= most;
}

// The properties of the machine that a program for the instruction set is scheduled for. Emitted C, which runs on any
// number of threads, has blocks for some: products would have four blocks for one, whatever their size.
static Target target_for(const Build *b, const Isa *isa) {
  enum { PORTABLE_THREADS = 4 };
  if (options_want_size(b->options)) return target_of_small_machine();
  Target t = b->is_portable ? target_of_any_machine() : target_of_machine();
  if (b->is_portable) {
    t.l2_nbytes = isa->l2_nbytes;
    t.threads = PORTABLE_THREADS;
  }
  t.isa = isa->name;
  t.vector_registers = isa->vector_registers;
  if (b->options && b->options->isa && strcmp(b->options->isa, isas[0].name) == 0) t.code = CODE_SCALAR;
  return t;
}

static bool has_same_numbers(const Target *a, const Target *b) {
  return a->vector_registers == b->vector_registers && a->l1_nbytes == b->l1_nbytes && a->l2_nbytes == b->l2_nbytes &&
         a->llc_nbytes == b->llc_nbytes && a->threads == b->threads;
}

static ng_status lower_for(Build *b, const Target *target, Program **program) {
  ng_context *ctx = b->owner->ctx;
  if (!b->passes.partition)
    return argument_error(ctx, "kernels come after all passes, expected nothing to stop after, found %s",
                          b->passes.after);
  if (b->graph->nleaves)
    return argument_error(ctx, "%s has leaves: its parts are compiled, and not the whole", b->graph->name);
  Call call = call_begin(ctx);
  if (!is_addressable(b->graph)) {
    error_at(&ctx->diagnostics, (Position){0}, "%s: its tensors exceed the address space", b->graph->name);
    return failure(ctx, call);
  }
  PassContext lowering = b->passes;
  lowering.target = target;
  *program = pipeline_lower(b->graph, &lowering);
  if (!*program) return failure(ctx, call);
  call_end(ctx, call);
  return NG_OK;
}

ng_status build_program(Build *b, const Isa *isa, Program **program) {
  const Target target = target_for(b, isa);
  size_t i = 0;
  while (i < b->nprograms && !has_same_numbers(&b->targets[i], &target)) i++;
  assert(i < MOST_TARGETS);
  if (i == b->nprograms) {
    b->targets[i] = target;
    ng_status status = lower_for(b, &target, &b->programs[i]);
    if (status != NG_OK) return status;
    b->nprograms++;
  }
  *program = b->programs[i];
  return NG_OK;
}

ng_status build_kernels(Build *b) {
  return build_program(b, b->isa, &b->program);
}

ng_status build_to_run(Build *b, ng_graph *g, const Graph *part, const ng_options *options) {
  ng_context *ctx = g->ctx;
  ng_status status = build_graph_of(b, g, part, options);
  if (status != NG_OK) return status;
  if (b->options->after) return argument_error(ctx, "expected nothing to stop after, found %s", b->options->after);
  if (!b->isa->is_available())
    return argument_error(ctx, "%s: this processor does not have that instruction set", b->isa->name);
  status = build_kernels(b);
  return status == NG_OK ? graph_check_memory(g, "running", "workspace", b->program->workspace_nbytes) : status;
}

// A name that is cut off is cut off in the progress, too.
static void tell_compiling(const Build *b) {
  char what[128];
  const size_t count = b->program->nkernels;
  snprintf(what, sizeof what, "compiling %zu kernel%s of %s", count, count == 1 ? "" : "s", b->owner->graph->name);
  report_progress(b->owner->ctx, what, -1);
}

ng_status build_failed_status(ng_context *ctx, const Program *p) {
  if (!p || !p->unsound) return out_of_memory_status(ctx);
  Call call = call_begin(ctx);
  error_at(&ctx->diagnostics, (Position){0}, "internal error: %s", p->unsound);
  return call_end(ctx, call);
}

ng_status build_compile(const Build *b, Compiled **compiled, CompileTimes *times) {
  enum { DEFAULT_TIMEOUT_S = 300 };
  const double timeout_s = b->options->compile_timeout;
  ng_context *ctx = b->owner->ctx;
  bool compiler_failed = false;
  *compiled = NULL;
  if (!pipeline_build_trees(b->program, false)) return build_failed_status(ctx, b->program);
  tell_compiling(b);
  Call call = call_begin(ctx);
  *compiled = codegen_compile(b->program, b->isa,
                              timeout_s < 0   ? 0
                              : timeout_s > 0 ? timeout_s
                                              : DEFAULT_TIMEOUT_S,
                              &ctx->allocator, times, &compiler_failed, &ctx->diagnostics);
  ng_status status = call_end(ctx, call);
  return *compiled || status == NG_OUT_OF_MEMORY || !compiler_failed ? status : NG_COMPILER_FAILED;
}

void build_deinit(Build *b) {
  for (size_t i = 0; i < b->nprograms; i++) program_free(b->programs[i]);
  graph_free(b->graph);
  if (b->owner) compiling_end(b->owner->ctx);
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
