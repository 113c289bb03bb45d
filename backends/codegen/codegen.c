// Compiles a program to machine code in this process, and runs it.
#include "backends/codegen/codegen.h"

#include "backends/codegen/toolchain/compilers.h"
#include "backends/codegen/toolchain/toolchain.h"
#include "ir/loops/target.h"
#include "ir/support/threads.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

typedef struct Pool { // the emitted struct (loading.in)
  void (*add)(void *context, size_t loop, size_t nblocks, ThreadsTask *task, const void *args, size_t nbytes);
  void (*run)(void *context);
  void *context;
  const void *const *constants;
} Pool;
typedef void Entry(const void *const *inputs, void *const *outputs, void *workspace, const Pool *pool);

typedef struct CompiledLoop {
  uint32_t needs;
  uint64_t ns; // as in ThreadsLoop
} CompiledLoop;

struct Compiled {
  const Allocator *allocator;
  void *library;
  Entry *entry;
  size_t workspace_nbytes;
  CompiledLoop *loops;
  size_t nloops, args_nbytes; // args_nbytes: the most bytes of loops' own arguments
  const void **constants;     // data of the graph's constants; splats have none
  _Atomic(void *) spare;      // a call's memory that no call uses, or NULL; saves most calls an allocation
};

// Roughly the time on one thread. Products of a multiplication and an addition take much less than other elements.
static uint64_t estimate_ns(const Schedule *s, const Loop *loop) {
  enum { ELEMENTS_IN_NS = 8, PRODUCTS_IN_NS = 64 };
  const int64_t nelems = axes_nelems(s->kernel, loop_outer_axes(loop) | loop_inner_axes(loop));
  const uint64_t ns = (uint64_t)nelems / (loop_shares_factors(loop) ? PRODUCTS_IN_NS : ELEMENTS_IN_NS);
  return ns ? ns : 1;
}

// What running the loops of a kernel needs to know. The first loop of a slice group stands for all.
static void describe_kernel(Compiled *c, const Program *p, size_t kernel) {
  const Schedule *s = p->schedules[kernel];
  const ProgramSliceGroup *group = program_slice_group(p, kernel);
  for (size_t l = 0; l < s->nloops; l++) {
    const Loop *loop = &s->loops[l];
    CompiledLoop *own = &c->loops[p->liveness->first_loop[group ? group->first : kernel] + (group ? 0 : l)];
    if (group) own->ns += estimate_ns(s, loop) * (uint64_t)group->slices->nslices;
    else own->ns = loop->is_serial && !loop->serial_work ? 0 : estimate_ns(s, loop);
    c->args_nbytes += (s->kernel->naccesses + s->ntemporaries) * sizeof(void *);
  }
}

static bool describe_loops(Compiled *c, const Program *p) {
  c->nloops = p->liveness->nloops;
  c->loops = allocator_alloc(c->allocator, (c->nloops + 1) * sizeof *c->loops);
  if (!c->loops) return false;
  for (size_t i = 0; i < c->nloops; i++) c->loops[i] = (CompiledLoop){.needs = p->liveness->needs[i]};
  for (size_t i = 0; i < p->nkernels; i++) describe_kernel(c, p, i);
  return true;
}

// Lists the constants in the order in which emit_for_loading numbers them.
static bool find_constants(Compiled *c, const Graph *g) {
  size_t count = 0;
  c->constants = allocator_alloc(c->allocator, (g->nvalues + 1) * sizeof *c->constants);
  for (size_t i = 0; c->constants && i < g->nvalues; i++)
    if (g->values[i]->constant && !g->values[i]->constant->is_splat)
      c->constants[count++] = g->values[i]->constant->data;
  return c->constants != NULL;
}

// NULL: out of memory.
static Compiled *compiled_new(const Program *p, const Allocator *allocator) {
  Compiled *c = allocator_alloc(allocator, sizeof *c);
  if (!c) return NULL;
  *c = (Compiled){.allocator = allocator, .workspace_nbytes = p->workspace_nbytes};
  if (find_constants(c, p->graph) && describe_loops(c, p)) return c;
  compiled_free(c);
  return NULL;
}

Compiled *codegen_compile(const Program *p, const Isa *isa, double timeout_s, const Allocator *allocator,
                          CompileTimes *times, bool *compiler_failed, Diagnostics *d) {
  Text source, identifier;
  double start = milliseconds_now();
  *times = (CompileTimes){0};
  *compiler_failed = false;
  text_init(&source, allocator);
  text_init(&identifier, allocator);
  emit_identifier(p->graph->name, &identifier);
  Compiled *c = compiled_new(p, allocator);
  Loaded loaded = {0};
  if (!c || identifier.out_of_memory || !emit_for_loading(p, isa, text_string(&identifier), true, &source)) {
    error_out_of_memory(d);
  } else {
    ToolchainTimes spent;
    times->emit_ms = milliseconds_now() - start;
    toolchain_load(&source, "ngrad_entry", &c_compiler, timeout_s, &loaded, &spent, compiler_failed, d);
    times->compile_ms = spent.compile_ms;
    times->load_ms = spent.load_ms;
    times->was_cached = spent.was_cached;
  }
  if (loaded.library) {
    c->library = loaded.library;
    // ISO C forbids a cast from an object pointer to a function pointer.
    memcpy((void *)&c->entry, &loaded.symbol, sizeof loaded.symbol);
  } else {
    compiled_free(c);
    c = NULL;
  }
  text_deinit(&source);
  text_deinit(&identifier);
  return c;
}

typedef struct Running { // a call of compiled_run
  const Compiled *compiled;
  ThreadsLoop *loops;
  unsigned char *args; // loops' own arguments
  size_t args_nbytes;
  int threads;
  Watch *watch;                // NULL: nothing is wanted
  double called_ms, marked_ms; // the times of the call and of the last end of a loop
  atomic_size_t nspans;
} Running;

// The caller's arguments are kept, unless they are 0 bytes: then they stay as they are until all loops have run.
static void add_loop(void *context, size_t loop, size_t nblocks, ThreadsTask *task, const void *args, size_t nbytes) {
  Running *r = context;
  const CompiledLoop *own = &r->compiled->loops[loop];
  assert(r->args_nbytes + nbytes <= r->compiled->args_nbytes);
  if (nbytes) args = memcpy(r->args + r->args_nbytes, args, nbytes);
  r->args_nbytes += nbytes;
  r->loops[loop] = (ThreadsLoop){task, args, nblocks, own->ns, own->needs};
}

static void add_span(void *context, size_t loop, int thread, size_t nblocks, double begin_ms, double end_ms) {
  Running *r = context;
  const size_t i = atomic_fetch_add(&r->nspans, 1);
  if (i < r->watch->most_spans)
    r->watch->spans[i] = (Span){.thread = thread,
                                .part = 1 + loop,
                                .nblocks = r->loops[loop].ns ? nblocks : 1,
                                .begin_ms = begin_ms - r->called_ms,
                                .end_ms = end_ms - r->called_ms};
}

static void end_part(Running *r, size_t part) {
  const double now = milliseconds_now();
  if (r->watch->mark) r->watch->mark(r->watch->mark_context, part);
  if (r->watch->spent_ms) r->watch->spent_ms[part] += now - r->marked_ms;
  r->marked_ms = now;
}

static void end_loop(void *context, size_t loop) {
  end_part(context, 1 + loop);
}

static void run_loops(void *context) {
  Running *r = context;
  const Watch *w = r->watch;
  const ThreadsWatch watch = {.context = r,
                              .is_in_turn = w && w->spent_ms,
                              .ran = w && w->spans ? add_span : NULL,
                              .ended = w && (w->spent_ms || w->mark) ? end_loop : NULL};
  if (watch.ended) end_part(r, 0);
  threads_run(r->loops, r->compiled->nloops, r->threads, w ? &watch : NULL);
}

// A call's memory: its loops, their arguments, and the workspace.
static size_t call_nbytes(const Compiled *c) {
  return whole_lines(c->nloops * sizeof(ThreadsLoop)) + whole_lines(c->args_nbytes) + c->workspace_nbytes;
}

bool compiled_run(const Compiled *c, void *const *inputs, void *const *outputs, int threads, Watch *watch) {
  Compiled *shared = (Compiled *)c; // only the spare memory changes, atomically
  void *block = atomic_exchange(&shared->spare, NULL);
  if (!block) block = allocator_alloc(c->allocator, call_nbytes(c) + LINE_NBYTES);
  if (!block) return false;
  unsigned char *memory = (unsigned char *)block + (LINE_NBYTES - (uintptr_t)block % LINE_NBYTES) % LINE_NBYTES;
  if (threads <= 0) threads = target_of_machine().threads;
  Running running = {.compiled = c, .loops = (ThreadsLoop *)(void *)memory, .threads = threads, .watch = watch};
  if (watch) running.called_ms = running.marked_ms = milliseconds_now();
  memset(running.loops, 0, c->nloops * sizeof *running.loops);
  running.args = memory + whole_lines(c->nloops * sizeof *running.loops);
  unsigned char *workspace = running.args + whole_lines(c->args_nbytes);
#ifdef NGRAD_CHECKED
  memset(workspace, 0xff, c->workspace_nbytes); // a read before any store gives NaN
#endif
  const Pool pool = {add_loop, run_loops, &running, c->constants};
  c->entry((const void *const *)inputs, outputs, workspace, &pool);
  if (watch) watch->nspans = running.nspans < watch->most_spans ? running.nspans : watch->most_spans;
  allocator_free(c->allocator, atomic_exchange(&shared->spare, block));
  return true;
}

size_t compiled_workspace_nbytes(const Compiled *c) {
  return c->workspace_nbytes;
}

void compiled_free(Compiled *c) {
  if (!c) return;
  allocator_free(c->allocator, c->spare);
  allocator_free(c->allocator, c->constants);
  allocator_free(c->allocator, c->loops);
  if (c->library) dlclose(c->library);
  allocator_free(c->allocator, c);
}
