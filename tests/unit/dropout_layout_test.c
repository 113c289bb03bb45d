// Dropout drops the same elements for all layouts of its result: with all passes and with none, interpreted, in
// scalar code and for the best ISA, forward and in its gradient.
#include "tests/unit/api_case.h"
#include "tests/unit/quick_compiler.h"

enum { MOST_TENSORS = 8 };
static const int64_t nelems = 570; // 6 * 5 * 19

// Every output drops the same elements of x. The first two Dropouts differ in layout alone; `turned` hands its layout
// to a Dropout by way of a rule of simplify.
static const char graph_text[] = "format: ngrad/1\n"
                                 "name: layouts\n"
                                 "inputs:\n"
                                 "  - {name: x, type: f32, shape: [6, 5, 19]}\n"
                                 "  - {name: seed, type: s64, shape: []}\n"
                                 "  - {name: offset, type: s64, shape: []}\n"
                                 "  - {name: p, type: f32, shape: []}\n"
                                 "constants:\n"
                                 "  - {name: one, type: f32, shape: [], value: 1}\n"
                                 "nodes:\n"
                                 "  - {op: Dropout, inputs: [x, seed, offset, p], outputs: [plain]}\n"
                                 "  - {op: Dropout, inputs: [x, seed, offset, p],\n"
                                 "     outputs: [{name: ordered, type: f32, shape: [6, 5, 19], order: [2, 0, 1]}]}\n"
                                 "  - {op: Dropout, inputs: [x, seed, offset, p],\n"
                                 "     outputs: [{name: inner, type: f32, shape: [6, 5, 19], order: [0, 2, 1]}]}\n"
                                 "  - {op: Dropout, inputs: [x, seed, offset, p], outputs: [dropped]}\n"
                                 "  - {op: Multiply, inputs: [dropped, one],\n"
                                 "     outputs: [{name: turned, type: f32, shape: [6, 5, 19], order: [2, 1, 0]}]}\n"
                                 "outputs: [plain, ordered, inner, turned]\n";

typedef struct Trial {
  ng_context *ctx;
  ng_graph *graph;
  ng_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
} Trial;

// Seed 1, a given offset, probability 1/2, and ones for everything else.
static void trial_init(Trial *t, ng_context *ctx, ng_graph *g, int64_t offset) {
  *t = (Trial){.ctx = ctx, .graph = g};
  for (size_t i = 0; i < ng_graph_input_count(g); i++) {
    ng_tensor_info info = ng_graph_input(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &t->inputs[i]), NG_OK);
    if (strcmp(info.name, "seed") == 0 || strcmp(info.name, "offset") == 0) {
      int64_t number = info.name[0] == 's' ? 1 : offset;
      memcpy(t->inputs[i].data, &number, sizeof number);
      continue;
    }
    float number = strcmp(info.name, "p") == 0 ? 0.5F : 1;
    for (size_t e = 0; e < ng_tensor_nbytes(&t->inputs[i]) / sizeof number; e++)
      memcpy((float *)t->inputs[i].data + e, &number, sizeof number);
  }
  for (size_t i = 0; i < ng_graph_output_count(g); i++) {
    ng_tensor_info info = ng_graph_output(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &t->outputs[i]), NG_OK);
  }
}

static void trial_deinit(Trial *t) {
  for (size_t i = 0; i < ng_graph_input_count(t->graph); i++) ng_tensor_free(t->ctx, &t->inputs[i]);
  for (size_t i = 0; i < ng_graph_output_count(t->graph); i++) ng_tensor_free(t->ctx, &t->outputs[i]);
}

// Output k is `factor` times the expected output, element by element.
static void must_be(const Trial *t, size_t k, const ng_tensor *expected, double factor, const char *how) {
  for (int64_t i = 0; i < nelems; i++) {
    double got = ng_tensor_get(&t->outputs[k], i), wanted = factor * ng_tensor_get(expected, i);
    if (got != wanted)
      fail_msg("%s: %s[%lld] is %g, expected %g", how, ng_graph_output(t->graph, k).name, (long long)i, got, wanted);
  }
}

static void all_must_be(Trial *t, const ng_tensor *expected, double factor) {
  static const char *const isas[] = {NULL, "scalar"};
  static const char *const passes[] = {"simplify", "movement", "common-subexpressions"};
  assert_int_equal(ng_interpret(t->graph, t->inputs, t->outputs, 0), NG_OK);
  for (size_t k = 0; k < ng_graph_output_count(t->graph); k++) must_be(t, k, expected, factor, "interpreter");
  for (size_t i = 0; i < 4; i++) {
    ng_options options = {.isa = isas[i % 2],
                          .disable = passes,
                          .ndisable = i < 2 ? 0 : sizeof passes / sizeof *passes,
                          .no_fuse = i == 3};
    ng_kernel *kernel = ng_compile(t->graph, &options);
    if (!kernel) fail_msg("%s", ng_messages_text(t->ctx, 0));
    assert_int_equal(ng_kernel_run(kernel, t->inputs, t->outputs, 0), NG_OK);
    for (size_t k = 0; k < ng_graph_output_count(t->graph); k++)
      must_be(t, k, expected, factor, isas[i % 2] ? isas[i % 2] : "compiled");
    ng_kernel_free(kernel);
  }
  ng_graph *rewritten = ng_graph_run_passes(t->graph, NULL);
  assert_non_null(rewritten);
  assert_int_equal(ng_interpret(rewritten, t->inputs, t->outputs, 0), NG_OK);
  for (size_t k = 0; k < ng_graph_output_count(t->graph); k++) must_be(t, k, expected, factor, "all passes");
  ng_graph_free(rewritten);
}

static void layouts_do_not_change_what_is_dropped(void **state) {
  (void)state;
  for (int64_t offset = 0; offset < 10; offset += 7) {
    Trial plain, forward, backward;
    ng_context *ctx = new_context();
    ng_graph *g = must_read(ctx, graph_text), *gradient = ng_graph_gradient(g, NULL);
    assert_non_null(gradient);
    trial_init(&plain, ctx, g, offset);
    trial_init(&forward, ctx, g, offset);
    trial_init(&backward, ctx, gradient, offset);
    assert_int_equal(ng_interpret(g, plain.inputs, plain.outputs, 0), NG_OK);
    all_must_be(&forward, &plain.outputs[0], 1);
    all_must_be(&backward, &plain.outputs[0], 4);
    trial_deinit(&plain);
    trial_deinit(&forward);
    trial_deinit(&backward);
    ng_graph_free(gradient);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layouts_do_not_change_what_is_dropped)};
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
