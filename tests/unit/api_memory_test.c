// If any allocation in an API call fails, the call says so, leaks nothing, and the next call succeeds.
#include "tests/unit/api_case.h"
#include "tests/unit/failing_allocator.h"

#include <stdio.h>
#include <unistd.h>

static const char small[] = "format: ngrad/1\n"
                            "name: small\n"
                            "inputs: [{name: x, type: f32, shape: [2, 3]}, {name: w, type: f32, shape: [3]}]\n"
                            "nodes:\n"
                            "  - {op: Multiply, inputs: [x, w], outputs: [xw]}\n"
                            "  - {op: SoftMax, inputs: [xw], outputs: [y], attributes: {axis: 1}}\n"
                            "outputs: [y]\n";

// The objects that calls work on; all are made before any allocation fails.
typedef struct Case {
  ng_context *ctx;
  ng_graph *graph;
  ng_graph *small; // which is interpreted twice for each element of its inputs
  ng_kernel *kernel;
  Data data;
  ng_tensor expected[NOUTPUTS]; // so far off that magnitudes are asked for
  uint64_t self_test;           // hash of the file
} Case;

static ng_status do_interpret(Case *c) {
  return ng_interpret(c->graph, c->data.in, c->data.out, 1);
}

static ng_status do_compare(Case *c) {
  ng_difference differences[NOUTPUTS];
  ng_status status = ng_compare_outputs(c->graph, NULL, c->data.in, c->data.out, c->expected, -1, differences);
  return status == NG_DIFFERENT ? NG_OK : status;
}

static ng_status do_gradcheck(Case *c) {
  ng_gradcheck_result results[2];
  return ng_gradcheck(c->small, NULL, results);
}

static ng_status do_bench(Case *c) {
  ng_bench_result result;
  return ng_bench(c->kernel, c->data.in, c->data.out, &(ng_bench_options){.threads = 2, .seconds = 1e-4}, &result);
}

static ng_status do_random(Case *c) {
  ng_tensor t;
  ng_status status = ng_tensor_random(c->graph, 0, 7, &t);
  ng_tensor_free(c->ctx, &t);
  return status;
}

static ng_status do_read(Case *c) {
  ng_graph *g = read_text(c->ctx, layer_norm);
  ng_graph_free(g);
  return g ? NG_OK : ng_last_status(c->ctx);
}

static ng_status do_show(Case *c) {
  char *text = ng_graph_show(c->graph, "c", NULL);
  ng_text_free(c->ctx, text);
  return text ? NG_OK : ng_last_status(c->ctx);
}

static ng_status do_emit(Case *c) {
  char *source = NULL, *header = NULL;
  ng_status status = ng_emit(c->graph, NULL, &source, &header);
  ng_text_free(c->ctx, source);
  ng_text_free(c->ctx, header);
  return status;
}

static uint64_t hash_of_file(const char *path) {
  uint64_t hash = 0;
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  for (int c = fgetc(file); c != EOF; c = fgetc(file)) hash = (hash ^ (uint64_t)c) * 0x100000001B3U;
  fclose(file);
  return hash;
}

// Its cases have extents of their own, and none may be left out. It takes a graph of its own, as c's is bound.
static ng_status do_emit_self_test(Case *c) {
  static const char *const names[] = {"layer_20norm.c", "layer_20norm.h", "layer_20norm_test.c"};
  ng_graph *g = read_text(c->ctx, layer_norm);
  if (!g) return ng_last_status(c->ctx);
  char folder[] = "/tmp/ngrad-memory-XXXXXX";
  assert_non_null(mkdtemp(folder));
  ng_status status = ng_emit_files(g, &(ng_options){.self_test = 1}, folder);
  for (size_t i = 0; i < 3; i++) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    if (status == NG_OK && i == 2 && !c->self_test) c->self_test = hash_of_file(path);
    if (status == NG_OK && i == 2) assert_true(hash_of_file(path) == c->self_test);
    unlink(path);
  }
  assert_int_equal(rmdir(folder), 0);
  ng_graph_free(g);
  return status;
}

static ng_status do_find_workspace(Case *c) {
  size_t nbytes, unshared;
  return ng_graph_workspace(c->graph, NULL, &nbytes, &unshared);
}

static ng_status do_train(Case *c) {
  ng_graph *net = read_text(c->ctx, "format: ngrad/1\n"
                                    "name: net\n"
                                    "inputs: [{name: x, type: f32, shape: [2, 3]}]\n"
                                    "state: [{name: w, type: f32, shape: [3], init: ones}]\n"
                                    "nodes:\n"
                                    "  - {op: Multiply, inputs: [x, w], outputs: [y]}\n"
                                    "  - {op: ReduceMean, inputs: [y], outputs: [loss], attributes: {axes: [0, 1]}}\n"
                                    "outputs: [loss, y]\n");
  ng_graph *step = net ? ng_graph_train(net, NULL) : NULL;
  ng_graph *infer = step ? ng_graph_inference(net, NG_INFER, NULL) : NULL;
  const ng_status status = infer ? NG_OK : ng_last_status(c->ctx);
  ng_graph_free(infer);
  ng_graph_free(step);
  ng_graph_free(net);
  return status;
}

static const struct {
  const char *name;
  ng_status (*call)(Case *c);
} calls[] = {{"interpret", do_interpret},
             {"compare", do_compare},
             {"gradcheck", do_gradcheck},
             {"bench", do_bench},
             {"random", do_random},
             {"read", do_read},
             {"show", do_show},
             {"emit", do_emit},
             {"emit --self-test", do_emit_self_test},
             {"workspace", do_find_workspace},
             {"train", do_train}};

static void every_failing_allocation_is_told(void **state) {
  (void)state;
  FailingAllocator memory;
  failing_allocator_init(&memory, NEVER_FAIL);
  ng_allocator allocator = {failing_resize, &memory};
  Case c = {.ctx = ng_context_new(&allocator)};
  c.graph = must_read(c.ctx, layer_norm);
  assert_int_equal(data_make(&c.data, c.ctx, c.graph), NG_OK);
  for (size_t i = 0; i < NOUTPUTS; i++) {
    ng_tensor_info info = ng_graph_output(c.graph, i);
    assert_int_equal(ng_tensor_new(c.ctx, &info, &c.expected[i]), NG_OK);
    ((float *)c.expected[i].data)[0] = 1;
  }
  c.small = must_read(c.ctx, small);
  c.kernel = ng_compile(c.graph, &(ng_options){.profile = 1});
  assert_non_null(c.kernel);
  assert_int_equal(do_emit_self_test(&c), NG_OK); // with all cases
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    size_t most = 0;
    bool has_failed = true;
    for (size_t failing = 0; has_failed; failing++) {
      ng_messages_clear(c.ctx);
      const size_t nlive = memory.nlive;
      memory.ncalls = 0;
      memory.failing = failing;
      ng_status status = calls[i].call(&c);
      memory.failing = NEVER_FAIL;
      has_failed = memory.ncalls > failing;
      if (status == NG_OUT_OF_MEMORY && !strstr(ng_messages_text(c.ctx, 0), "out of memory"))
        fail_msg("%s: when allocation %zu fails, no message says so", calls[i].name, failing);
      ng_messages_clear(c.ctx);
      if (status != NG_OK && (status != NG_OUT_OF_MEMORY || !has_failed))
        fail_msg("%s: when allocation %zu fails, the status is %d, expected NG_OK or NG_OUT_OF_MEMORY", calls[i].name,
                 failing, status);
      if (memory.nlive > nlive) most += memory.nlive - nlive; // memory that a graph keeps for the next call
      if (most > 8)
        fail_msg("%s: when allocation %zu fails, %zu more blocks stay allocated", calls[i].name, failing, most);
    }
  }
  for (size_t i = 0; i < NOUTPUTS; i++) ng_tensor_free(c.ctx, &c.expected[i]);
  data_free(&c.data, c.ctx);
  ng_kernel_free(c.kernel);
  ng_graph_free(c.small);
  ng_graph_free(c.graph);
  ng_context_free(c.ctx);
  assert_int_equal(memory.nlive, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_failing_allocation_is_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
