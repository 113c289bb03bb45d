// Takes one graph through the whole compiler: read, print, show, gradient, interpreter, passes, compiled code.
//
// The oracle is the interpreter on the graph as it was read. Compiled code, and the interpreter on the graph after
// passes, may be as far from it as roundings move the result (tests/noise.h), element by element: roundings of the
// graph as it was read, and for compiled code those of the graph after passes, too. Of one graph and the same passes,
// loop trees (tests/loops) and compiled programs have the same bits: instruction set, threads, the machine's caches,
// the compiler's effort and fusion change none.
#include "tests/fuzz/program/trial.h"

#include "frontend/api/ngrad.h"
#include "frontend/yaml/yaml.h"
#include "ir/graph/verify.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Text

static Graph *read_text(const char *text, Diagnostics *d) {
  return yaml_read(&system_allocator, "fuzz.yaml", text, strlen(text), NULL, d);
}

static const char *first_message(const Diagnostics *d) {
  return d->out_of_memory ? "out of memory" : d->count ? d->items[0].message : "failed without a message";
}

// A print reads back as a graph with the same print.
static void check_print(Report *r, const Graph *g, const char *kind) {
  Text once, twice;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  text_init(&once, &system_allocator);
  text_init(&twice, &system_allocator);
  yaml_print(g, &once);
  Graph *again = read_text(text_string(&once), &d);
  if (!again) report_finding(r, kind, "what was printed is refused: %s", first_message(&d));
  if (again) yaml_print(again, &twice);
  if (again && strcmp(text_string(&once), text_string(&twice)) != 0)
    report_finding(r, kind, "printed again it is another text");
  graph_free(again);
  text_deinit(&once);
  text_deinit(&twice);
  diagnostics_deinit(&d);
}

// The last pass over graphs.
static const char *last_graph_pass(void) {
  size_t i = ng_pass_count() - 1;
  while (ng_pass_at(i).is_of_kernels) i--;
  return ng_pass_at(i).name;
}

static void check_shows(const FuzzOptions *options, Report *r) {
  static const char *const formats[] = {"dot", "kernels", "loops", "c"};
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "fuzz.yaml", r->text, r->nbytes, NULL);
  for (size_t i = 0; g && i < sizeof formats / sizeof *formats; i++) {
    bool is_after = i > 0 || options->data % 2;
    ng_options how = {.after = i == 0 && is_after ? last_graph_pass() : NULL};
    char *text = ng_graph_show(g, formats[i], &how);
    if (!text) report_finding(r, "show", "%s: %s", formats[i], ng_messages_text(ctx, 0));
    ng_text_free(ctx, text);
  }
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Emits the graph with its named extents open, without compiling it. Some cannot stay open: NG_WRONG.
static void check_emits(Report *r) {
  static const ng_options how = {.isa = "avx2"};
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "fuzz.yaml", r->text, r->nbytes, NULL);
  char *source = NULL, *header = NULL;
  const ng_status status = g ? ng_emit(g, &how, &source, &header) : NG_WRONG;
  if (status != NG_OK && status != NG_WRONG) report_finding(r, "emit", "%s", ng_messages_text(ctx, 0));
  ng_text_free(ctx, source);
  ng_text_free(ctx, header);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Graphs too large to run

// Whether the interpreter and executed loop trees would take long.
static bool is_too_large(const Graph *g) {
  const double most_nelems = 1 << 21, most_slice_groups = 1 << 25;
  double nelems = 0, nslice_groups = 0;
  for (size_t i = 0; i < g->nvalues; i++) nelems += (double)shape_nelems(&g->values[i]->shape);
  for (size_t i = 0; i < g->nnodes; i++) nslice_groups += random_nslice_groups(g->nodes[i]);
  return nelems > most_nelems || nslice_groups > most_slice_groups;
}

// Everything but running it: either it is done, or it is refused with a message that says what is too large.
static void check_large(Report *r) {
  static const char *const formats[] = {"kernels", "loops", "c"};
  ng_memory memory;
  ng_context *ctx = ng_context_new(NULL);
  limit_process(EXTREME_SECONDS, EXTREME_NBYTES);
  ng_context_set_max_memory(ctx, EXTREME_NBYTES / 2);
  report_stage(r, "check of a large graph");
  ng_graph *g = ng_graph_read(ctx, "fuzz.yaml", r->text, r->nbytes, NULL);
  if (g) ng_graph_memory(g, &memory);
  for (size_t i = 0; g && i < sizeof formats / sizeof *formats; i++) {
    report_stage(r, formats[i]);
    ng_text_free(ctx, ng_graph_show(g, formats[i], NULL));
  }
  report_stage(r, "gradient of a large graph");
  ng_graph_free(g ? ng_graph_gradient(g, NULL) : NULL);
  ng_graph_free(g);
  const char *said = ng_messages_text(ctx, 0);
  if (strstr(said, "out of memory")) report_finding(r, "memory", "%s", said);
  ng_context_free(ctx);
}

// Gradients

static bool is_small(const Graph *g) {
  int64_t nelems = 0;
  enum { MOST = 3000 }; // elements of all values together that differences are taken of
  for (size_t i = 0; i < g->nvalues; i++) nelems += shape_nelems(&g->values[i]->shape);
  return nelems < MOST && g->nnodes < 16;
}

// Whether the data that gradcheck makes leads to an infinity, or a NaN, whose gradient may be NaN where differences are
// not.
static bool meets_infinity(ng_context *ctx, ng_graph *g, const Graph *graph, uint64_t seed) {
  Arena arena;
  arena_init(&arena, &system_allocator);
  Tensor *inputs = ARENA_ARRAY(&arena, Tensor, graph->ninputs + 1);
  const double **outputs = ARENA_ARRAY(&arena, const double *, graph->noutputs + 1);
  Noise n = {.graph = graph, .inputs = inputs, .arena = &arena};
  bool ok = inputs && outputs;
  for (size_t i = 0; ok && i < graph->ninputs; i++) {
    ng_tensor t;
    ok = ng_tensor_random(g, i, seed, &t) == NG_OK;
    inputs[i] = tensor_like(graph->inputs[i]);
    inputs[i].data = arena_alloc(&arena, tensor_nbytes(&inputs[i]) + 1);
    if (ok && inputs[i].data) memcpy(inputs[i].data, t.data, tensor_nbytes(&inputs[i]));
    ok &= inputs[i].data != NULL;
    ng_tensor_free(ctx, &t);
  }
  const bool is_infinite = !ok || !noise_run(&n, outputs) || n.is_infinite;
  arena_deinit(&arena);
  return is_infinite;
}

static void check_gradient(const FuzzOptions *options, Report *r, const Graph *graph, bool is_checked) {
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "fuzz.yaml", r->text, r->nbytes, NULL);
  ng_graph *gradient = g ? ng_graph_gradient(g, NULL) : NULL;
  char *text = gradient ? ng_graph_show(gradient, "yaml", NULL) : NULL;
  if (text) {
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    Graph *read = read_text(text, &d);
    if (!read) report_finding(r, "gradient-text", "the gradient is refused: %s", first_message(&d));
    else check_print(r, read, "gradient-text");
    graph_free(read);
    diagnostics_deinit(&d);
    r->ngradients++;
  }
  ng_text_free(ctx, text);
  ng_graph_free(gradient);
  ng_gradcheck_result *results = calloc(g ? ng_graph_input_count(g) + 1 : 1, sizeof *results);
  if (text && is_checked && results && !meets_infinity(ctx, g, graph, options->data)) {
    report_stage(r, "gradcheck");
    ng_gradcheck_options how = {.seed = options->data};
    if (ng_gradcheck(g, &how, results) == NG_DIFFERENT)
      for (size_t i = 0; i < ng_graph_input_count(g); i++)
        if (results[i].nchecked && !results[i].is_within && results[i].largest_error > 0 &&
            isfinite(results[i].expected))
          report_finding(r, "gradcheck", "%s[%lld]: gradient %g, from differences %g", ng_graph_input(g, i).name,
                         (long long)results[i].worst_element, results[i].gradient, results[i].expected);
  }
  free(results);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Data

// Memory between pages that cannot be touched; the data ends where a page does, or begins there.
static void *guarded_alloc(size_t nbytes, size_t alignment, bool at_end) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (nbytes + page - 1) / page * page;
  char *base = mmap(NULL, body + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) abort();
  if (body && mprotect(base + page, body, PROT_READ | PROT_WRITE) != 0) abort();
  return base + page + (at_end ? (body - nbytes) / alignment * alignment : 0);
}

static Tensor guarded_tensor(const Value *v, bool at_end) {
  Tensor t = tensor_like(v);
  t.data = guarded_alloc(tensor_nbytes(&t), type_nbytes(t.type), at_end);
  return t;
}

static void protect_input(const Tensor *t) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), nbytes = tensor_nbytes(t);
  char *from = (char *)t->data - (uintptr_t)t->data % page;
  if (nbytes) mprotect(from, (size_t)((char *)t->data + nbytes - from), PROT_READ);
}

static bool trial_init(Trial *t, const FuzzOptions *options, Report *r, Graph *g) {
  *t = (Trial){.options = options, .report = r, .graph = g, .random = options->data, .choices = ~options->data};
  arena_init(&t->arena, &system_allocator);
  size_t n = g->ninputs + 1, m = g->noutputs + 1;
  for (int side = 0; side < 2; side++) {
    t->inputs[side] = ARENA_ARRAY(&t->arena, Tensor, n);
    t->got[side] = ARENA_ARRAY(&t->arena, Tensor, m);
  }
  t->expected = ARENA_ARRAY(&t->arena, Tensor, m);
  t->noise = ARENA_ARRAY(&t->arena, ElementNoise *, m);
  for (size_t i = 0; i < g->ninputs; i++) {
    for (int side = 0; side < 2; side++) t->inputs[side][i] = guarded_tensor(g->inputs[i], side);
    random_data(&t->random, g->inputs[i], t->inputs[0][i].data);
    memcpy(t->inputs[1][i].data, t->inputs[0][i].data, tensor_nbytes(&t->inputs[0][i]));
    for (int side = 0; side < 2; side++) protect_input(&t->inputs[side][i]);
  }
  for (size_t i = 0; i < g->noutputs; i++) {
    for (int side = 0; side < 2; side++) t->got[side][i] = guarded_tensor(g->outputs[i], side);
    t->expected[i] = tensor_like(g->outputs[i]);
    if (!tensor_alloc(&t->expected[i], &system_allocator)) return false;
    t->noise[i] = ARENA_ARRAY(&t->arena, ElementNoise, (size_t)tensor_nelems(&t->expected[i]) + 1);
    if (!t->noise[i]) return false;
  }
  return true;
}

// Comparing with the oracle

// Measures the effect of noise of this strength on each element, and updates the largest known effect. g: the trial's
// graph, as it was read or after passes.
static bool add_noise_run(Trial *t, const Graph *g, double strength) {
  Arena arena;
  arena_init(&arena, &system_allocator);
  const double **outputs = ARENA_ARRAY(&arena, const double *, t->graph->noutputs + 1);
  Noise n = {
      .graph = g, .inputs = t->inputs[0], .arena = &arena, .random = random_next(&t->random), .strength = strength};
  bool ok = outputs && noise_run(&n, outputs);
  for (size_t k = 0; ok && k < t->graph->noutputs; k++) {
    const Tensor *e = &t->expected[k];
    for (int64_t i = 0; i < tensor_nelems(e); i++) {
      double expected = type_load(e->type, e->data, (size_t)tensor_offset(e, i)), noisy = outputs[k][i];
      ElementNoise *at = &t->noise[k][i];
      if (isfinite(expected) && isfinite(noisy)) at->most = fmax(at->most, fabs(noisy - expected));
      else if (!(isnan(expected) && isnan(noisy)) && noisy != expected) at->is_unstable = true;
    }
  }
  t->is_infinite |= n.is_infinite;
  arena_deinit(&arena);
  return ok;
}

// The distance between neighbours of the type about a number, roughly.
static double spacing(Type type, double x) {
  switch (type) {
  case TYPE_F8_E4M3: return fmax(fabs(x) / 8, 0x1p-9);
  case TYPE_F8_E5M2: return fmax(fabs(x) / 4, 0x1p-16);
  default: return type_is_float(type) ? fabs(x) * noise_rounding(type) + noise_smallest(type) : 0;
  }
}

// Whether rounding errors explain the difference of an element from its expected value.
static bool is_explained(const Trial *t, size_t k, int64_t i, double actual, double expected) {
  const double slack = 12; // rounding errors can combine in other ways than in the samples
  const ElementNoise *noise = &t->noise[k][i];
  if (noise->is_unstable || actual == expected || (isnan(actual) && isnan(expected))) return true;
  Type type = t->graph->outputs[k]->type;
  if (isinf(actual) && isfinite(expected) && type_round(type, expected * 1.01) == actual) return true;
  if (!isfinite(actual) && fabs(expected) > type_greatest(type) / 256) return true; // a factor of it was too large
  if (!isfinite(actual) || !isfinite(expected)) return false;
  double steps = type_is_float(type) || noise->most == 0 ? 0 : 1;
  return fabs(actual - expected) <= slack * noise->most + 4 * spacing(type, expected) + steps;
}

// The first element that nothing explains; -1: none.
static int64_t first_unexplained(Trial *t, size_t k, const Tensor *got) {
  const Tensor *e = &t->expected[k];
  for (int64_t i = 0; i < tensor_nelems(e); i++) {
    size_t at = (size_t)tensor_offset(e, i);
    if (!is_explained(t, k, i, type_load(got->type, got->data, at), type_load(e->type, e->data, at))) return i;
  }
  return -1;
}

// Adds noise until it explains the results of output k. Strengths are powers of two from 8 down: a quotient moves
// farthest if noise leaves next to nothing of its divisor. Returns the first element that is not explained; -1: none.
static int64_t explain(Trial *t, size_t k, const Tensor *got, const Graph *g) {
  enum { LEAST_RUNS = 64, MOST_RUNS = 1024, STRENGTHS = 8, WORK = 1 << 24 };
  int64_t nelems = 1;
  for (size_t i = 0; i < g->nvalues; i++) nelems += shape_nelems(&g->values[i]->shape);
  const int64_t nruns = WORK / nelems < LEAST_RUNS ? LEAST_RUNS : WORK / nelems < MOST_RUNS ? WORK / nelems : MOST_RUNS;
  for (int run = 0; run < nruns; run++) add_noise_run(t, g, ldexp(8, -(run % STRENGTHS)));
  return first_unexplained(t, k, got);
}

void trial_compare(Trial *t, const Graph *computed, const Tensor *got, const char *kind, const char *how) {
  for (size_t k = 0; k < t->graph->noutputs && !t->report->kind[0]; k++) {
    int64_t i = first_unexplained(t, k, &got[k]);
    if (i >= 0 && !t->is_sure) {
      i = explain(t, k, &got[k], t->graph);
      t->is_sure = true;
    }
    if (i >= 0 && computed != t->graph) i = explain(t, k, &got[k], computed);
    for (int64_t n = 0; n < tensor_nelems(&t->expected[k]); n++) {
      t->report->nunstable += t->noise[k][n].is_unstable;
      t->report->ncompared += !t->noise[k][n].is_unstable;
    }
    if (i < 0) continue;
    const Tensor *e = &t->expected[k];
    size_t at = (size_t)tensor_offset(e, i);
    report_finding(t->report, kind, "%s: %s[%lld] is %.9g, expected %.9g, noise %.2g", how, t->graph->outputs[k]->name,
                   (long long)i, type_load(e->type, got[k].data, at), type_load(e->type, e->data, at),
                   t->noise[k][i].most);
  }
}

bool trial_interpret(Trial *t, const Graph *g, Tensor *outputs) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  bool ok = interpret(g, t->inputs[0], outputs, &(InterpreterOptions){.allocator = &system_allocator}, &d);
  if (!ok) report_finding(t->report, "interpreter", "%s", first_message(&d));
  diagnostics_deinit(&d);
  return ok;
}

static bool bind(Report *r, Graph *g) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  bool ok = graph_bind_dims(g, &d) && graph_infer(g, &d) && graph_verify(g, &d);
  for (size_t i = 0; ok && i < g->nvalues; i++) ok = shape_is_known(&g->values[i]->shape);
  if (!ok) r->is_refused = true; // an extent that nothing gives, or values of dims that contradict each other
  diagnostics_deinit(&d);
  return ok;
}

static bool is_wanted(const FuzzOptions *options, const char *kind) {
  return !options->only || strncmp(options->only, kind, strlen(kind)) == 0 ||
         strncmp(options->only, "signal", 6) == 0 || strncmp(options->only, "exit", 4) == 0 ||
         strcmp(options->only, "hang") == 0;
}

static void check_results(const FuzzOptions *options, Report *r, Graph *g) {
  enum { RUNS = 8 };
  Trial t;
  report_stage(r, "data");
  if (!trial_init(&t, options, r, g)) return;
  report_stage(r, "interpret");
  if (!trial_interpret(&t, g, t.expected)) return;
  report_stage(r, "noise");
  for (int run = 0; run < RUNS; run++) add_noise_run(&t, g, 1);
  if (is_wanted(options, "grad")) {
    report_stage(r, "gradient");
    check_gradient(options, r, g, !options->no_gradcheck && is_small(g) && !t.is_infinite);
  }
  trial_run_ways(&t);
  if (options->is_emitted && is_wanted(options, "emit")) trial_check_emitted(&t);
}

void check_program(const FuzzOptions *options, Report *r) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  report_stage(r, "read");
  Graph *g = read_text(r->text, &d);
  r->is_refused = g == NULL;
  diagnostics_deinit(&d);
  if (!g) return;
  report_stage(r, "print");
  if (is_wanted(options, "print")) check_print(r, g, "print");
  report_stage(r, "bind");
  if (!bind(r, g)) return;
  if (is_too_large(g)) {
    check_large(r);
    report_stage(r, "emit of a large graph");
    check_emits(r);
    return;
  }
  report_stage(r, "show");
  if (is_wanted(options, "show")) check_shows(options, r);
  report_stage(r, "emit");
  if (is_wanted(options, "emit")) check_emits(r);
  if (options->is_extreme) limit_process(CPU_SECONDS, EXTREME_NBYTES); // noise and executed loop trees are slow
  check_results(options, r, g);
}
