#include "frontend/api/leaf_kernel.h"

#include <stdatomic.h>
#include <stdint.h>

// Compiling

static const struct ngrad_stage *stage_of_leaf(const Staged *s, size_t function) {
  for (size_t i = 0; i < s->stages.step.nstages; i++)
    if (s->stages.stages[i].leaf && s->stages.stages[i].leaf->number == function) return &s->stages.stages[i];
  return NULL;
}

static void set_parts(Staged *s, const struct ngrad_stage *stage, const Program *p) {
  struct ngrad_bucket *buckets = (struct ngrad_bucket *)stage->buckets; // in the stages' arena
  step_find_parts(stage, p, s->parts);
  for (size_t i = 0; i < stage->nbuckets; i++) buckets[i].part = s->parts[i];
}

static ng_status compile_function(Staged *s, ng_graph *g, size_t i, const ng_options *options) {
  Build b;
  CompileTimes times;
  const struct ngrad_stage *stage = stage_of_leaf(s, i);
  ng_status status = build_to_run(&b, g, s->stages.functions[i], options);
  if (status == NG_OK) status = build_compile(&b, &s->functions[i], &times);
  if (status == NG_OK) {
    if (stage) set_parts(s, stage, b.program);
    s->graphs[i] = graph_keep(b.graph);
    s->info.isa = b.isa->name;
    s->info.nkernels += b.program->nkernels;
    if (b.program->workspace_nbytes > s->info.workspace_nbytes) s->info.workspace_nbytes = b.program->workspace_nbytes;
    s->info.was_cached &= times.was_cached;
    s->info.emit_ms += times.emit_ms;
    s->info.compile_ms += times.compile_ms;
    s->info.load_ms += times.load_ms;
  }
  build_deinit(&b);
  return status;
}

static ng_status cut(Staged *s, ng_graph *g) {
  ng_context *ctx = g->ctx;
  Call call = call_begin(ctx);
  bool ok = stages_cut(&s->stages, s->graph, BUCKET_NBYTES, &ctx->diagnostics);
  const size_t n = s->stages.nfunctions + 1;
  const void **numbers = ARENA_ARRAY(&s->stages.arena, const void *, s->graph->nnodes + 1);
  s->graphs = ARENA_ARRAY(&s->stages.arena, Graph *, n);
  s->functions = ARENA_ARRAY(&s->stages.arena, Compiled *, n);
  s->parts = ARENA_ARRAY(&s->stages.arena, size_t, s->graph->nnodes + 1);
  if (ok && (!numbers || !s->graphs || !s->functions || !s->parts)) ok = error_out_of_memory(&ctx->diagnostics);
  for (size_t i = 0; ok && i < s->graph->nnodes && s->stages.numbers[i]; i++)
    numbers[i] = s->stages.numbers[i]->constant->data;
  s->stages.step.numbers = numbers;
  return ok ? NG_OK : call_end(ctx, call);
}

ng_status staged_compile(Staged *s, ng_graph *g, const ng_options *options) {
  *s = (Staged){.graph = graph_keep(g->graph), .info = {.was_cached = 1}};
  ng_status status = cut(s, g);
  for (size_t i = 0; i < s->stages.nfunctions && status == NG_OK; i++) status = compile_function(s, g, i, options);
  if (status == NG_OK) s->info.workspace_nbytes += step_nbytes(&s->stages.step, NULL);
  return status;
}

void staged_free(Staged *s, ng_context *ctx) {
  for (size_t i = 0; s->functions && i < s->stages.nfunctions; i++) {
    if (s->functions[i]) compiled_free(s->functions[i]);
    graph_free(s->graphs[i]);
  }
  stages_free(&s->stages);
  graph_free(s->graph);
  allocator_free(&ctx->allocator, s->spare);
}

// Running

// The API's ranks as the step's: the structs of their messages have the same layout.
_Static_assert(sizeof(ng_transfer) == sizeof(struct ngrad_message) &&
                   offsetof(ng_transfer, peer) == offsetof(struct ngrad_message, peer) &&
                   offsetof(ng_transfer, data) == offsetof(struct ngrad_message, data) &&
                   offsetof(ng_transfer, nbytes) == offsetof(struct ngrad_message, nbytes),
               "messages of the API and of the step are alike");

static int start(void *context, int slot, const struct ngrad_message *sends, size_t nsends,
                 const struct ngrad_message *receives, size_t nreceives) {
  const ng_ranks *ranks = context;
  return ranks->start(ranks->context, slot, (const ng_transfer *)(const void *)sends, nsends,
                      (const ng_transfer *)(const void *)receives, nreceives);
}

static int test(void *context, int slot, int *is_done) {
  const ng_ranks *ranks = context;
  return ranks->test(ranks->context, slot, is_done);
}

static int await(void *context, int slot) {
  const ng_ranks *ranks = context;
  return ranks->wait(ranks->context, slot);
}

void staged_own_extents(const Graph *g, const ng_ranks *ranks, Tensor *tensors) {
  for (size_t i = 0; i < g->ninputs; i++) {
    const Use *use = g->inputs[i]->uses;
    if (!use || use->node->op->id != OP_Leaf) continue;
    tensors[i].extent[0] = step_first_leaf(g->nleaves, ranks->rank + 1, ranks->count) -
                           step_first_leaf(g->nleaves, ranks->rank, ranks->count);
  }
}

enum { ALIGNMENT = 64 };

ng_status staged_run(Staged *s, ng_context *ctx, void *const *inputs, void *const *outputs, int threads,
                     const ng_ranks *ranks) {
  const struct ngrad_ranks own =
      ranks ? (struct ngrad_ranks){ranks->rank, ranks->count, (void *)ranks, start, test, await}
            : (struct ngrad_ranks){.count = 1};
  void *block = ranks ? NULL : atomic_exchange(&s->spare, NULL);
  if (!block) block = allocator_alloc(&ctx->allocator, step_nbytes(&s->stages.step, &own) + ALIGNMENT);
  if (!block) return NG_OUT_OF_MEMORY;
  void *memory = (char *)block + (ALIGNMENT - (uintptr_t)block % ALIGNMENT) % ALIGNMENT;
  const StepStatus status =
      step_run(&s->stages.step, &own, s->functions, (const void *const *)inputs, outputs, threads, memory);
  if (ranks) allocator_free(&ctx->allocator, block);
  else allocator_free(&ctx->allocator, atomic_exchange(&s->spare, block));
  return status == STEP_DONE ? NG_OK : status == STEP_OUT_OF_MEMORY ? NG_OUT_OF_MEMORY : NG_RANKS_FAILED;
}
