// The installed API: running graphs, failing allocations, threads.
#include "tests/unit/api_case.h"
#include "tests/unit/failing_allocator.h"
#include "tests/unit/quick_compiler.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

// Running

static void both_backends_agree(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  Data data;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  ng_kernel *k = must_compile(ctx, g);
  ng_kernel_info info = ng_kernel_get_info(k);
  assert_non_null(info.isa);
  assert_true(info.nkernels >= 1);
  ng_tensor expected[NOUTPUTS];
  for (size_t i = 0; i < NOUTPUTS; i++) {
    ng_tensor_info output = ng_graph_output(g, i);
    assert_int_equal(ng_tensor_new(ctx, &output, &expected[i]), NG_OK);
  }
  assert_int_equal(ng_interpret(g, data.in, expected, 1), NG_OK); // still a graph after compiling
  ng_graph_free(g);                                               // the kernel outlives it
  for (int threads = 0; threads <= 3; threads++) {
    assert_int_equal(ng_kernel_run(k, data.in, data.out, threads), NG_OK);
    for (size_t i = 0; i < NOUTPUTS; i++) {
      ng_difference d;
      assert_int_equal(ng_tensor_compare(ctx, &data.out[i], &expected[i], -1, &d), NG_OK);
    }
  }
  for (size_t i = 0; i < NOUTPUTS; i++) ng_tensor_free(ctx, &expected[i]);
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_context_free(ctx);
}

// Compiled code reads them where the graph has them, which the kernel keeps.
static void constants_outlive_their_graph(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\nname: g\ninputs: [{name: x, type: f32, shape: [3]}]\n"
                               "constants: [{name: c, type: f32, shape: [3], values: [1, 2, 3]},\n"
                               "            {name: d, type: s8, shape: [2], values: [4, 5]}]\n"
                               "nodes: [{op: Multiply, inputs: [x, c], outputs: [y]}]\noutputs: [d, y]\n");
  ng_kernel *k = must_compile(ctx, g);
  ng_graph_free(g);
  float x[] = {1, 10, 100}, y[3];
  int8_t d[2];
  const ng_tensor in = {.type = NG_F32, .rank = 1, .extent = {3}, .data = x};
  ng_tensor out[] = {{.type = NG_S8, .rank = 1, .extent = {2}, .data = d},
                     {.type = NG_F32, .rank = 1, .extent = {3}, .data = y}};
  assert_int_equal(ng_kernel_run(k, &in, out, 1), NG_OK);
  assert_true(y[0] == 1 && y[1] == 20 && y[2] == 300 && d[0] == 4 && d[1] == 5);
  ng_kernel_free(k);
  ng_context_free(ctx);
}

static void tensors_that_do_not_fit_are_refused(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  Data data;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  ng_kernel *k = must_compile(ctx, g);
  ng_tensor kept = data.in[0];
  data.in[0].extent[0] = 4;
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 1), NG_USAGE);
  assert_non_null(strstr(ng_kernel_refusal(k, data.in, data.out), "shapes"));
  assert_int_equal(ng_message_count(ctx), 0);
  assert_int_equal(ng_interpret(g, data.in, data.out, 0), NG_USAGE);
  data.in[0] = kept;
  data.in[0].type = NG_S32;
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 1), NG_USAGE);
  data.in[0] = kept;
  data.in[0].data = NULL;
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 1), NG_USAGE);
  data.in[0] = kept;
  assert_int_equal(ng_kernel_run(k, data.in, data.out, -1), NG_USAGE);
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 1), NG_OK);
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void must_refuse(ng_context *ctx, ng_graph *g, ng_kernel *k, Data *data, const char *why) {
  assert_int_equal(ng_kernel_run(k, data->in, data->out, 1), NG_USAGE);
  assert_int_equal(ng_message_count(ctx), 0);
  assert_string_equal(ng_kernel_refusal(k, data->in, data->out), why);
  assert_int_equal(ng_interpret(g, data->in, data->out, 0), NG_USAGE);
  must_have_said(ctx, why);
  const ng_bench_options options = {.threads = 1, .seconds = 0.001};
  ng_bench_result result;
  assert_int_equal(ng_bench(k, data->in, data->out, &options, &result), NG_USAGE);
  must_have_said(ctx, why);
}

static void misaligned_and_overlapping_tensors_are_refused(void **state) {
  (void)state;
  static const char misaligned[] = "expected data that is aligned to its elements",
                    overlapping[] = "expected outputs that overlap no other tensor";
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  Data data;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  ng_kernel *k = must_compile(ctx, g);
  const Data own = data;
  for (size_t offset = 1; offset < sizeof(float); offset++) {
    data.in[1].data = (char *)own.in[1].data + offset;
    must_refuse(ctx, g, k, &data, misaligned);
    data = own;
    data.out[2].data = (char *)own.out[2].data + offset;
    must_refuse(ctx, g, k, &data, misaligned);
    data = own;
  }
  data.out[0].data = own.in[0].data; // the whole of an input
  must_refuse(ctx, g, k, &data, overlapping);
  data = own;
  data.out[2].data = (float *)own.in[0].data + (size_t)24 * 5 - 1; // its last element
  must_refuse(ctx, g, k, &data, overlapping);
  data = own;
  data.out[1].data = (float *)own.out[0].data + 3; // an output in another
  must_refuse(ctx, g, k, &data, overlapping);
  data = own;
  data.out[2].data = own.out[1].data; // one for another
  must_refuse(ctx, g, k, &data, overlapping);
  data = own;
  data.in[1].data = own.in[0].data; // inputs may be one
  assert_null(ng_kernel_refusal(k, data.in, data.out));
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 1), NG_OK);
  assert_int_equal(ng_interpret(g, data.in, data.out, 0), NG_OK);
  data = own;
  float memory[2 * 24]; // side by side
  data.out[1].data = memory;
  data.out[2].data = memory + 24;
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 1), NG_OK);
  data = own;
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void options_are_checked(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  const char *const disable[] = {"dead-cod"};
  assert_null(ng_compile(g, &(ng_options){.isa = "avx1"}));
  assert_int_equal(ng_last_status(ctx), NG_USAGE);
  must_have_said(ctx, "unknown instruction set avx1, did you mean avx2");
  assert_null(ng_compile(g, &(ng_options){.disable = disable, .ndisable = 1}));
  assert_int_equal(ng_last_status(ctx), NG_USAGE);
  must_have_said(ctx, "unknown pass or rule dead-cod, did you mean dead-code");
  const char *const needed[] = {"quantize-scales"};
  assert_null(ng_compile(g, &(ng_options){.disable = needed, .ndisable = 1}));
  assert_int_equal(ng_last_status(ctx), NG_USAGE);
  must_have_said(
      ctx, "pass quantize-scales cannot be disabled, because compiling requires it; expected dead-code, "
           "casts, fold-constants, simplify, movement, common-subexpressions, recognise, split-groups, split-casts, "
           "transpose-weights, aliases, slice-regions, column-blocks, copy-windows, vector-panels, row-panels, "
           "channel-parts, long-sums, "
           "store-sums, save-masks, spill-vectors, prefetch or a rule");
  assert_null(ng_compile(g, &(ng_options){.after = "dead-code"}));
  assert_int_equal(ng_last_status(ctx), NG_USAGE);
  ng_messages_clear(ctx);
  for (size_t i = 0; i < ng_isa_count(); i++) {
    ng_kernel *k = ng_compile(g, &(ng_options){.isa = ng_isa_at(i).name});
    assert_int_equal(ng_last_status(ctx), ng_isa_at(i).is_available ? NG_OK : NG_USAGE);
    assert_true((k != NULL) == ng_isa_at(i).is_available);
    ng_kernel_free(k);
  }
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void a_graph_without_work_runs(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [3]}]\n"
                               "constants: [{name: c, type: f32, shape: [2], value: 0.5}]\noutputs: [x, c]\n");
  Data data;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  assert_int_equal(ng_interpret(g, data.in, data.out, 0), NG_OK);
  assert_memory_equal(data.in[0].data, data.out[0].data, 12);
  assert_true(ng_tensor_get(&data.out[1], 1) == 0.5);
  memset(data.out[0].data, 0, 12);
  memset(data.out[1].data, 0, 8);
  ng_kernel *k = must_compile(ctx, g);
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 2), NG_OK);
  assert_memory_equal(data.in[0].data, data.out[0].data, 12);
  assert_true(ng_tensor_get(&data.out[1], 1) == 0.5);
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void nan_check_names_the_node(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [1]}]\n"
                               "nodes: [{op: Subtract, inputs: [x, x], outputs: [y]}]\noutputs: [y]\n");
  float x = INFINITY, y = 0;
  const ng_tensor in = {NG_F32, 1, {1}, &x};
  ng_tensor out = {NG_F32, 1, {1}, &y};
  assert_int_equal(ng_interpret(g, &in, &out, 0), NG_OK);
  assert_true(isnan(y));
  assert_int_equal(ng_interpret(g, &in, &out, 1), NG_WRONG);
  assert_non_null(strstr(ng_messages_text(ctx, 0), "Subtract"));
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Memory

static void *api_resize(void *user, void *p, size_t nbytes) {
  return failing_resize(user, p, nbytes);
}

static const char not_tried[] = "not tried";

// Runs everything that a program does, until a call fails. Only memory may have failed.
static const char *use_everything(ng_context *ctx) {
  const char *failed = NULL;
  Data data = {0};
  ng_kernel *k = NULL, *profiled = NULL;
  ng_graph *rewritten = NULL;
  char *text = NULL, *model = NULL, *source = NULL, *header = NULL;
  size_t nbytes;
  ng_graph *g = read_text(ctx, layer_norm);
#define STEP(name, condition, status)                                                                                  \
  if (!failed && !(condition)) {                                                                                       \
    failed = name;                                                                                                     \
    assert_int_equal(status, NG_OUT_OF_MEMORY);                                                                        \
  }
  STEP("read", g, ng_last_status(ctx))
  ng_status status = NG_OK;
  STEP("data", (status = data_make(&data, ctx, g)) == NG_OK, status)
  STEP("interpret", (status = ng_interpret(g, data.in, data.out, 1)) == NG_OK, status)
  STEP("compile", (k = ng_compile(g, NULL)), ng_last_status(ctx))
  STEP("run", (status = ng_kernel_run(k, data.in, data.out, 2)) == NG_OK, status)
  STEP("show", (text = ng_graph_show(g, "kernels", NULL)), ng_last_status(ctx))
  STEP("onnx", (model = ng_graph_onnx(g, &nbytes)), ng_last_status(ctx))
  STEP("emit", (status = ng_emit(g, NULL, &source, &header)) == NG_OK, status)
  STEP("identifier", ng_graph_identifier(g), NG_OUT_OF_MEMORY)
  STEP("passes", (rewritten = ng_graph_run_passes(g, NULL)), ng_last_status(ctx))
  STEP("files", (status = ng_emit_files(g, NULL, "/no/such/folder")) == NG_WRONG, status)
  STEP("bench",
       (status = ng_bench(k, data.in, data.out, &(ng_bench_options){.seconds = 1e-4, .threads = 1},
                          &(ng_bench_result){0})) == NG_OK,
       status)
  STEP("profile", (profiled = ng_compile(g, &(ng_options){.profile = 1})), ng_last_status(ctx))
  STEP("bench profiled",
       (status = ng_bench(profiled, data.in, data.out, &(ng_bench_options){.seconds = 1e-4, .threads = 1},
                          &(ng_bench_result){0})) == NG_OK,
       status)
#undef STEP
  ng_text_free(ctx, model);
  ng_text_free(ctx, text);
  ng_text_free(ctx, source);
  ng_text_free(ctx, header);
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_kernel_free(profiled);
  ng_graph_free(rewritten);
  ng_graph_free(g);
  return failed;
}

static void running_out_of_memory_anywhere_is_an_error(void **state) {
  (void)state;
  enum { MOST_ALLOCATIONS = 20000 };
  const char *failed = not_tried;
  for (size_t failing = 0; failed; failing += takes_all() ? 1 : 7) {
    assert_true(failing < MOST_ALLOCATIONS);
    FailingAllocator memory;
    failing_allocator_init(&memory, failing);
    ng_context *ctx = ng_context_new(&(ng_allocator){api_resize, &memory});
    if (!ctx) continue;
    failed = use_everything(ctx);
    if (failed && strcmp(failed, "run") != 0 && strcmp(failed, "identifier") != 0)
      assert_non_null(strstr(ng_messages_text(ctx, 0), "out of memory"));
    if (memory.ncalls <= failing) assert_null(failed);
    ng_context_free(ctx);
    assert_int_equal(memory.nlive, 0);
  }
}

// Threads

typedef struct Work {
  pthread_t thread;
  ng_kernel *shared;
  const Data *data;
  float dx[5 * 24];
  bool ok;
} Work;

static void *run_shared_kernel(void *argument) {
  Work *work = argument;
  Data own = *work->data;
  own.out[0].data = work->dx;
  float dgamma[24], dbeta[24];
  own.out[1].data = dgamma;
  own.out[2].data = dbeta;
  work->ok = true;
  for (int i = 0; i < 50; i++) work->ok &= ng_kernel_run(work->shared, own.in, own.out, 1 + i % 3) == NG_OK;
  return NULL;
}

static void *use_own_context(void *argument) {
  Work *work = argument;
  ng_context *ctx = ng_context_new(NULL);
  work->ok = ctx && !use_everything(ctx);
  ng_context_free(ctx);
  return NULL;
}

enum { NTHREADS = 4 };

static void run_threads(Work *work, void *(*run)(void *)) {
  for (int i = 0; i < NTHREADS; i++) assert_int_equal(pthread_create(&work[i].thread, NULL, run, &work[i]), 0);
  for (int i = 0; i < NTHREADS; i++) assert_int_equal(pthread_join(work[i].thread, NULL), 0);
  for (int i = 0; i < NTHREADS; i++) assert_true(work[i].ok);
}

static void threads_may_share_a_kernel(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  Data data;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  ng_kernel *k = must_compile(ctx, g);
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 1), NG_OK);
  Work work[NTHREADS];
  for (int i = 0; i < NTHREADS; i++) work[i] = (Work){.shared = k, .data = &data};
  run_threads(work, run_shared_kernel);
  for (int i = 0; i < NTHREADS; i++) assert_memory_equal(work[i].dx, data.out[0].data, sizeof work[i].dx);
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void contexts_are_independent(void **state) {
  (void)state;
  Work work[NTHREADS] = {0};
  run_threads(work, use_own_context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_backends_agree),
      cmocka_unit_test(constants_outlive_their_graph),
      cmocka_unit_test(tensors_that_do_not_fit_are_refused),
      cmocka_unit_test(misaligned_and_overlapping_tensors_are_refused),
      cmocka_unit_test(options_are_checked),
      cmocka_unit_test(a_graph_without_work_runs),
      cmocka_unit_test(nan_check_names_the_node),
      cmocka_unit_test(running_out_of_memory_anywhere_is_an_error),
      cmocka_unit_test(threads_may_share_a_kernel),
      cmocka_unit_test(contexts_are_independent),
  };
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
