// Compiles a program to machine code in this process, and runs it.
#include "backends/codegen/codegen.h"

#include "backends/codegen/toolchain/compilers.h"
#include "backends/codegen/toolchain/toolchain.h"

#include <dlfcn.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

typedef void Task(const void *args, size_t block);
typedef void Entry(const void *const *inputs, const void *const *constants, void *const *outputs, void *workspace,
                   void (*parallel_for)(void *, size_t, Task *, const void *), void *context);
typedef void ProfiledEntry(const void *const *inputs, const void *const *constants, void *const *outputs,
                           void *workspace, void (*parallel_for)(void *, size_t, Task *, const void *), void *context,
                           void (*mark)(void *, size_t));

struct Compiled {
  const Allocator *allocator;
  void *library;
  Entry *entry;
  ProfiledEntry *profiled_entry; // exactly one of entry and profiled_entry is set
  size_t workspace_nbytes;
  const void **constants; // data of the graph's constants; splats have none
  _Atomic(void *) spare;  // a workspace that no call uses, or NULL; saves most calls an allocation
};

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
  if (find_constants(c, p->graph)) return c;
  allocator_free(allocator, c);
  return NULL;
}

Compiled *codegen_compile(const Program *p, const Isa *isa, bool is_profiled, double timeout_s,
                          const Allocator *allocator, CompileTimes *times, bool *compiler_failed, Diagnostics *d) {
  Text source, identifier;
  double start = milliseconds_now();
  *times = (CompileTimes){0};
  *compiler_failed = false;
  text_init(&source, allocator);
  text_init(&identifier, allocator);
  emit_identifier(p->graph->name, &identifier);
  Compiled *c = compiled_new(p, allocator);
  Loaded loaded = {0};
  if (!c || identifier.out_of_memory ||
      !emit_for_loading(p, isa, text_string(&identifier), true, is_profiled, &source)) {
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
    memcpy(is_profiled ? (void *)&c->profiled_entry : (void *)&c->entry, &loaded.symbol, sizeof loaded.symbol);
  } else {
    compiled_free(c);
    c = NULL;
  }
  text_deinit(&source);
  text_deinit(&identifier);
  return c;
}

typedef struct Running { // the state of one call of compiled_run
  int threads;
  double called_ms, marked_ms; // the times of the call and of the last mark_part
  Watch *watch;                // NULL: times and spans are not wanted
  atomic_size_t nspans;
  size_t nmarked; // the number of spans whose part is known
} Running;

static void add_span(Running *running, int thread, size_t nblocks, double begin_ms, double end_ms) {
  if (!nblocks) return;
  const size_t i = atomic_fetch_add(&running->nspans, 1);
  if (i < running->watch->most_spans)
    running->watch->spans[i] = (Span){.thread = thread,
                                      .nblocks = nblocks,
                                      .begin_ms = begin_ms - running->called_ms,
                                      .end_ms = end_ms - running->called_ms};
}

// Sets the part of the spans since the last mark. A loop that ran on one thread has no span yet and gets one.
static void mark_spans(Running *running, size_t part, double now) {
  Watch *watch = running->watch;
  if (running->nspans == running->nmarked) add_span(running, 0, 1, running->marked_ms, now);
  for (; running->nmarked < running->nspans; running->nmarked++)
    if (running->nmarked < watch->most_spans) watch->spans[running->nmarked].part = part;
  watch->nspans = running->nmarked < watch->most_spans ? running->nmarked : watch->most_spans;
}

static void mark_part(void *context, size_t part) {
  Running *running = context;
  if (!running->watch) return;
  if (running->watch->mark) running->watch->mark(running->watch->mark_context, part);
  if (!running->watch->spent_ms && !running->watch->spans) return;
  double now = milliseconds_now();
  if (running->watch->spent_ms) running->watch->spent_ms[part] += now - running->marked_ms;
  if (running->watch->spans) mark_spans(running, part, now);
  running->marked_ms = now;
}

typedef struct BlockRange {                 // consecutive blocks of a loop
  _Alignas(LINE_NBYTES) atomic_size_t next; // the next block to run; on a cache line of its own
  size_t end;
} BlockRange;

// Each thread begins with a range of consecutive blocks, the same in each call, whose data its core's caches may still
// hold. Then it takes blocks from the other threads' ranges. Blocks are taken one by one, so that a core that is busy
// with something else does not delay the call.
static void run_blocks(void *context, size_t nblocks, Task *task, const void *args) {
  Running *running = context;
  const bool is_traced = running->watch && running->watch->spans;
  int threads = running->threads;
  if ((size_t)threads > nblocks) threads = (int)nblocks;
  if (threads <= 1) {
    for (size_t b = 0; b < nblocks; b++) task(args, b);
    return;
  }
  enum { MOST_RANGES = 64 };
  BlockRange ranges[MOST_RANGES];
  const size_t nranges = threads < MOST_RANGES ? (size_t)threads : MOST_RANGES;
  for (size_t i = 0; i < nranges; i++) {
    atomic_init(&ranges[i].next, nblocks * i / nranges);
    ranges[i].end = nblocks * (i + 1) / nranges;
  }
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
    const double begin_ms = is_traced ? milliseconds_now() : 0;
    size_t ntaken = 0;
    for (size_t i = 0; i < nranges; i++) {
      BlockRange *range = &ranges[((size_t)thread + i) % nranges];
      for (size_t b; (b = atomic_fetch_add(&range->next, 1)) < range->end; ntaken++) task(args, b);
    }
    if (is_traced) add_span(running, thread, ntaken, begin_ms, milliseconds_now());
  }
}

bool compiled_run(const Compiled *c, void *const *inputs, void *const *outputs, int threads, Watch *watch) {
  Compiled *shared = (Compiled *)c; // only the spare workspace changes, atomically
  Running running = {.threads = threads > 0 ? threads : omp_get_num_procs()};
  running.watch = watch;
  if (watch) running.called_ms = running.marked_ms = milliseconds_now();
  void *block = atomic_exchange(&shared->spare, NULL);
  if (!block && c->workspace_nbytes) block = allocator_alloc(c->allocator, c->workspace_nbytes + LINE_NBYTES);
  if (!block && c->workspace_nbytes) return false;
  uintptr_t skip = (LINE_NBYTES - (uintptr_t)block % LINE_NBYTES) % LINE_NBYTES;
  void *workspace = block ? (char *)block + skip : NULL;
#ifdef NGRAD_CHECKED
  if (workspace) memset(workspace, 0xff, c->workspace_nbytes); // a read before any store gives NaN
#endif
  if (c->entry) c->entry((const void *const *)inputs, c->constants, outputs, workspace, run_blocks, &running);
  else
    c->profiled_entry((const void *const *)inputs, c->constants, outputs, workspace, run_blocks, &running, mark_part);
  void *other = atomic_exchange(&shared->spare, block);
  allocator_free(c->allocator, other);
  return true;
}

size_t compiled_workspace_nbytes(const Compiled *c) {
  return c->workspace_nbytes;
}

void compiled_free(Compiled *c) {
  if (!c) return;
  allocator_free(c->allocator, c->spare);
  allocator_free(c->allocator, c->constants);
  if (c->library) dlclose(c->library);
  allocator_free(c->allocator, c);
}
