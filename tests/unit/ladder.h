// The ladder: interpreter, executor of loop trees, scalar C, each ISA that this machine has (bf16's where the graph has
// bf16), scalar C of little size, 1, 2 and 3 threads. The first rung that differs names the layer at fault: kernels and
// schedules, the printer, an ISA's vocabulary, threads.
//
// The executor is compared with the interpreter by relative L2, and every later rung with the executor bit by bit (any
// NaN equals any other). Inputs are random; if a value's name contains "far", its mean is about 1000. In further
// rounds, one element of every input of a role is a NaN or an infinity, which must reach the same results as in the
// interpreter.
//
// In ./dev test each graph compiles one rung, in turn for another ISA, without optimisation: bits depend on neither. It
// takes three rounds.
#ifndef NGRAD_TESTS_UNIT_LADDER_H
#define NGRAD_TESTS_UNIT_LADDER_H

#include "backends/interpreter/interpreter.h"
#include "frontend/api/build.h"
#include "frontend/api/tensor.h"
#include "passes/pipeline.h"
#include "tests/effort.h"
#include "tests/loops/execute.h"
#include "tests/unit/graph_text.h"
#include "tests/unit/quick_compiler.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RUNGS = 16, GUARD = 64, FILL = 0xA5, MOST_REPORTS = 12 };

typedef struct Climb {
  const char *name;   // the graph's
  bool unfused_too;   // also with one kernel for each operator
  bool unusual_too;   // also rounds with NaNs and infinities
  bool is_misaligned; // tensors at addresses that only their elements are aligned to
  bool is_optimised;  // scalar C is compiled with full optimisation, which takes long
} Climb;

typedef struct Round { // the value that one element of each input of a role gets
  const char *role;    // NULL: nothing
  double number;
} Round;

typedef struct Rung {
  ng_options options;
  bool is_executor; // of the loop trees that scalar C is printed from
  ng_context *ctx;  // its own, for its thread
  ng_graph *graph;
  ng_kernel *kernel;
  Build build; // is_executor: in place of the kernel
  pthread_t thread;
  const Text *text;
} Rung;

typedef struct Ladder {
  Climb how;
  Text text;
  ng_context *ctx;
  ng_graph *graph;
  size_t ninputs, noutputs;
  ng_tensor *inputs, *expected, *bits, *outputs; // bits: the executor's outputs
  void **blocks;                                 // memory of the inputs and outputs, perhaps misaligned
  Rung rungs[MOST_RUNGS];
  size_t nrungs;
  unsigned nreports;
} Ladder;

// Tensors

static ng_tensor ladder_tensor(Ladder *l, const ng_tensor_info *info, void **block) {
  ng_tensor t = {.type = info->type, .rank = info->rank};
  memcpy(t.extent, info->extent, sizeof t.extent);
  memcpy(t.order, info->order, sizeof t.order);
  size_t nbytes = ng_tensor_nbytes(&t), shift = l->how.is_misaligned ? ng_type_nbytes(t.type) : 0;
  *block = aligned_alloc(64, (nbytes + shift + GUARD + 63) / 64 * 64);
  assert_non_null(*block);
  t.data = (char *)*block + shift;
  memset((char *)t.data + nbytes, FILL, GUARD);
  return t;
}

static bool ladder_guard_is_whole(const ng_tensor *t) {
  const unsigned char *guard = (const unsigned char *)t->data + ng_tensor_nbytes(t);
  for (int i = 0; i < GUARD; i++)
    if (guard[i] != FILL) return false;
  return true;
}

static bool name_has_role(const char *name, const char *role) {
  const char *dot = strrchr(name, '.');
  return dot && strcmp(dot + 1, role) == 0;
}

// Random elements, changed as the value's name says. The mean of dy is not 0, so that sums do not cancel.
static void ladder_fill(ng_graph *graph, ng_context *ctx, size_t i, ng_tensor *t) {
  ng_tensor random;
  const char *name = ng_graph_input(graph, i).name;
  assert_int_equal(ng_tensor_random(graph, i, 7, &random), NG_OK);
  memcpy(t->data, random.data, ng_tensor_nbytes(t));
  ng_tensor_free(ctx, &random);
  bool is_far = strstr(name, "far") != NULL, is_mean = strstr(name, "mean") != NULL;
  if (!is_far && !name_has_role(name, "dy")) return;
  for (int64_t e = 0; e < ng_tensor_nelems(t); e++) {
    double near = ng_tensor_get(t, e);
    type_store((Type)t->type, t->data, (size_t)e, is_mean ? 1000 + near / 16 : is_far ? 1000 + near : 0.25 + near);
  }
}

static void ladder_fill_round(Ladder *l, const Round *round) {
  for (size_t i = 0; i < l->ninputs; i++) {
    ng_tensor *t = &l->inputs[i];
    int64_t nelems = ng_tensor_nelems(t);
    ladder_fill(l->graph, l->ctx, i, t);
    if (round->role && nelems && name_has_role(ng_graph_input(l->graph, i).name, round->role) &&
        type_is_float((Type)t->type))
      type_store((Type)t->type, t->data, (size_t)(nelems / 2), round->number);
  }
}

// Kernels

static void *ladder_compile_one(void *context) {
  Rung *r = context;
  r->ctx = ng_context_new(NULL);
  r->graph = ng_graph_read(r->ctx, "ladder.yaml", text_string(r->text), r->text->nbytes, NULL);
  if (r->graph && r->is_executor) {
    if (build_graph(&r->build, r->graph, &r->options) == NG_OK) build_kernels(&r->build);
  } else if (r->graph) {
    r->kernel = ng_compile(r->graph, &r->options);
  }
  return NULL;
}

static bool is_scalar(const Rung *r) {
  return strcmp(r->options.isa, "scalar") == 0;
}

static void ladder_compile(Ladder *l) {
  for (int scalars = 1; scalars >= 0; scalars--) {
    assert_true(use_quick_compiler(!l->how.is_optimised && (scalars || !takes_all())));
    for (size_t i = 0; i < l->nrungs; i++)
      if (is_scalar(&l->rungs[i]) == scalars)
        assert_int_equal(pthread_create(&l->rungs[i].thread, NULL, ladder_compile_one, &l->rungs[i]), 0);
    for (size_t i = 0; i < l->nrungs; i++)
      if (is_scalar(&l->rungs[i]) == scalars) pthread_join(l->rungs[i].thread, NULL);
  }
  for (size_t i = 0; i < l->nrungs; i++) {
    Rung *r = &l->rungs[i];
    if (r->kernel || r->build.program) continue;
    print_error("%s does not compile for %s%s\n%s\n", l->how.name, r->options.isa,
                r->options.no_fuse ? ", unfused" : "", ng_messages_text(r->ctx, 0));
    fail();
  }
}

// For graphs without bf16, an ISA that only adds bf16 instructions to another has the same text as the other.
static bool isa_is_wanted(const Ladder *l, const char *isa) {
  return !strstr(isa, "bf16") || strstr(text_string(&l->text), "bf16");
}

static void ladder_add_rungs(Ladder *l, int no_fuse) {
  ng_options here[MOST_RUNGS];
  size_t nhere = 0;
  l->rungs[l->nrungs++] =
      (Rung){.options = {.isa = "scalar", .no_fuse = no_fuse}, .is_executor = true, .text = &l->text};
  for (size_t i = 0; i < ng_isa_count(); i++) { // scalar is the first
    const char *isa = ng_isa_at(i).name;
    if (ng_isa_at(i).is_available && isa_is_wanted(l, isa)) here[nhere++] = (ng_options){.isa = isa};
  }
  here[nhere++] = (ng_options){.isa = "scalar", .optimize = "size"};
  const size_t turn = l->how.is_optimised ? 0 : turn_of(l->how.name, nhere);
  for (size_t i = 0; i < nhere; i++)
    if (takes_all() || (i == turn && !no_fuse)) {
      here[i].no_fuse = no_fuse;
      l->rungs[l->nrungs++] = (Rung){.options = here[i], .text = &l->text};
    }
}

// The inputs, and then these outputs.
static Tensor *ladder_tensors(const Ladder *l, const ng_tensor *outputs) {
  Tensor *tensors = calloc(l->ninputs + l->noutputs + 1, sizeof *tensors);
  assert_non_null(tensors);
  for (size_t i = 0; i < l->ninputs; i++) tensors[i] = tensor_of_api(&l->inputs[i]);
  for (size_t i = 0; i < l->noutputs; i++) tensors[l->ninputs + i] = tensor_of_api(&outputs[i]);
  return tensors;
}

// Values between nodes are rounded to their types, as in programs.
static void ladder_interpret(Ladder *l) {
  Tensor *tensors = ladder_tensors(l, l->expected);
  const InterpreterOptions options = {.allocator = &system_allocator, .rounds_values = true};
  assert_true(interpret(l->graph->graph, tensors, tensors + l->ninputs, &options, &l->ctx->diagnostics));
  free(tensors);
}

static void ladder_execute(Ladder *l, const Rung *r) {
  Text why;
  Tensor *tensors = ladder_tensors(l, l->outputs);
  text_init(&why, &system_allocator);
  if (!pipeline_build_trees(r->build.program, false) ||
      !execute_program(r->build.program, tensors, tensors + l->ninputs, NULL, &why))
    fail_msg("%s%s: %s", l->how.name, r->options.no_fuse ? ", unfused" : "", text_string(&why));
  text_deinit(&why);
  free(tensors);
}

static void ladder_call(Ladder *l, const Rung *r, int threads) {
  if (r->is_executor) ladder_execute(l, r);
  else assert_int_equal(ng_kernel_run(r->kernel, l->inputs, l->outputs, threads), NG_OK);
}

// Comparing

static const char *rung_name(const Rung *r) {
  return r->is_executor ? "executor" : r->options.optimize ? "scalar, for size" : r->options.isa;
}

static void ladder_report(Ladder *l, const Rung *r, int threads, size_t output, const Round *round, const char *what) {
  char unusual[64] = "";
  if (round->role) snprintf(unusual, sizeof unusual, ", with %g in %s", round->number, round->role);
  if (l->nreports++ < MOST_REPORTS)
    print_error("%s: %s%s, %d thread%s%s: %s %s\n", l->how.name, rung_name(r), r->options.no_fuse ? " unfused" : "",
                threads, threads > 1 ? "s" : "", unusual, ng_graph_output(l->graph, output).name, what);
}

static double ladder_tolerance(ng_type type) {
  return type == NG_BF16 ? 8e-3 : type == NG_F16 ? 1e-3 : type == NG_F64 ? 1e-13 : type == NG_F32 ? 2e-6 : 0;
}

static bool is_alike(double actual, double expected, bool of_infinity) {
  if (isfinite(expected) || isfinite(actual)) return isfinite(expected) && isfinite(actual);
  return of_infinity ||
         (isnan(expected) ? isnan(actual) : actual == expected); // infinities may be added in another order
}

// Relative L2 over finite elements; if zeros are expected, the root mean square, since inputs are about 1.
static void ladder_compare_values(Ladder *l, const Rung *r, size_t k, const Round *round) {
  const ng_tensor *got = &l->outputs[k], *expected = &l->expected[k];
  double difference = 0, norm = 0;
  int64_t nelems = ng_tensor_nelems(got), worst = -1;
  char what[160];
  for (int64_t i = 0; i < nelems; i++) {
    double a = ng_tensor_get(got, i), e = ng_tensor_get(expected, i);
    if (!is_alike(a, e, round->role && isinf(round->number))) {
      snprintf(what, sizeof what, "differs from the interpreter in element %lld: %g, expected %g", (long long)i, a, e);
      ladder_report(l, r, 1, k, round, what);
      return;
    }
    if (!isfinite(e)) continue;
    norm += e * e;
    difference += (a - e) * (a - e);
    if (a != e && (worst < 0 || fabs(a - e) > fabs(ng_tensor_get(got, worst) - ng_tensor_get(expected, worst))))
      worst = i;
  }
  double relative = sqrt(difference / (norm > 0 ? norm : (double)(nelems ? nelems : 1)));
  if (relative <= ladder_tolerance(got->type)) return;
  snprintf(what, sizeof what, "differs from the interpreter: relative L2 %.2g; element %lld is %.9g, expected %.9g",
           relative, (long long)worst, ng_tensor_get(got, worst), ng_tensor_get(expected, worst));
  ladder_report(l, r, 1, k, round, what);
}

static void ladder_compare_bits(Ladder *l, const Rung *r, int threads, size_t k, const Round *round) {
  const ng_tensor *got = &l->outputs[k], *expected = &l->bits[k];
  size_t width = ng_type_nbytes(got->type);
  if (memcmp(got->data, expected->data, ng_tensor_nbytes(got)) == 0) return;
  for (int64_t i = 0; i < ng_tensor_nelems(got); i++) {
    double a = ng_tensor_get(got, i), e = ng_tensor_get(expected, i);
    char what[160];
    if (memcmp((char *)got->data + (size_t)i * width, (char *)expected->data + (size_t)i * width, width) == 0 ||
        (isnan(a) && isnan(e)))
      continue;
    snprintf(what, sizeof what, "has other bits than the fused executor's: element %lld is %.17g, expected %.17g",
             (long long)i, a, e);
    ladder_report(l, r, threads, k, round, what);
    return;
  }
}

static void ladder_run(Ladder *l, const Rung *r, int threads, const Round *round) {
  for (size_t k = 0; k < l->noutputs; k++) memset(l->outputs[k].data, FILL, ng_tensor_nbytes(&l->outputs[k]));
  ladder_call(l, r, threads);
  for (size_t k = 0; k < l->noutputs; k++) {
    if (!ladder_guard_is_whole(&l->outputs[k])) ladder_report(l, r, threads, k, round, "is written beyond its end");
    if (r->is_executor && !r->options.no_fuse) {
      memcpy(l->bits[k].data, l->outputs[k].data, ng_tensor_nbytes(&l->outputs[k]));
      ladder_compare_values(l, r, k, round);
    } else {
      ladder_compare_bits(l, r, threads, k, round);
    }
  }
}

static void ladder_round(Ladder *l, const Round *round) {
  ladder_fill_round(l, round);
  ladder_interpret(l);
  for (size_t i = 0; i < l->nrungs; i++) {
    const Rung *r = &l->rungs[i];
    for (int threads = 1; threads <= (r->is_executor ? 1 : 3); threads++) ladder_run(l, r, threads, round);
    if (l->nreports) fail_msg("%s: the first implementation whose results differ is %s", l->how.name, rung_name(r));
  }
}

static void ladder_init(Ladder *l, const GraphText *g, const Climb *how) {
  *l = (Ladder){.how = *how, .text = graph_text_finish(g, how->name), .ctx = ng_context_new(NULL)};
  l->graph = ng_graph_read(l->ctx, "ladder.yaml", text_string(&l->text), l->text.nbytes, NULL);
  if (!l->graph) fail_msg("%s", ng_messages_text(l->ctx, 0));
  l->ninputs = ng_graph_input_count(l->graph);
  l->noutputs = ng_graph_output_count(l->graph);
  l->inputs = calloc(l->ninputs + 3 * l->noutputs + 1, sizeof *l->inputs);
  l->blocks = calloc(l->ninputs + 3 * l->noutputs + 1, sizeof *l->blocks);
  assert_true(l->inputs && l->blocks);
  l->expected = l->inputs + l->ninputs;
  l->bits = l->expected + l->noutputs;
  l->outputs = l->bits + l->noutputs;
  for (size_t i = 0; i < l->ninputs + 3 * l->noutputs; i++) {
    ng_tensor_info info =
        i < l->ninputs ? ng_graph_input(l->graph, i) : ng_graph_output(l->graph, (i - l->ninputs) % l->noutputs);
    l->inputs[i] = ladder_tensor(l, &info, &l->blocks[i]);
  }
}

static void ladder_deinit(Ladder *l) {
  for (size_t i = 0; i < l->ninputs + 3 * l->noutputs; i++) free(l->blocks[i]);
  free(l->inputs);
  free(l->blocks);
  for (size_t i = 0; i < l->nrungs; i++) {
    ng_kernel_free(l->rungs[i].kernel);
    if (l->rungs[i].is_executor) build_deinit(&l->rungs[i].build);
    ng_graph_free(l->rungs[i].graph);
    ng_context_free(l->rungs[i].ctx);
  }
  ng_graph_free(l->graph);
  ng_context_free(l->ctx);
  text_deinit(&l->text);
}

// Takes the graph up the ladder, and frees it.
static void climb(GraphText *g, Climb how) {
  static const Round rounds[] = {{NULL, 0},         {"x", NAN},    {"x", INFINITY}, {"dy", NAN},
                                 {"dy", -INFINITY}, {"mean", NAN}, {"gamma", NAN},  {"gamma", INFINITY}};
  const char *limit = getenv("NGRAD_LADDER_ROUNDS"); // the most; the first has random inputs alone
  size_t nrounds = !how.unusual_too ? 1 : takes_all() ? sizeof rounds / sizeof *rounds : 3;
  if (limit && strtoul(limit, NULL, 10) < nrounds) nrounds = strtoul(limit, NULL, 10);
  Ladder l;
  ladder_init(&l, g, &how);
  ladder_add_rungs(&l, 0);
  if (how.unfused_too) ladder_add_rungs(&l, 1);
  ladder_compile(&l);
  for (size_t i = 0; i < nrounds; i++) ladder_round(&l, &rounds[i]);
  ladder_deinit(&l);
  graph_text_deinit(g);
}

#endif
