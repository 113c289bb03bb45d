// Functions that loops call because they have many of them: the same bits as where they are inlined, and little C.
#include "frontend/api/ngrad.h"
#include "ir/support/text.h"
#include "tests/unit/quick_compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NUSES = 9, WIDTH = 37 };

// One kernel with NUSES results of an operator, of x times different numbers; and of its square where `of_square`.
static void write_graph(Text *t, const char *operator, const char * attributes, const char *type, bool of_square) {
  text_format(t, "format: ngrad/1\nname: g\ninputs: [{name: x, type: %s, shape: [3, %d]}]\nconstants:\n", type, WIDTH);
  for (int i = 0; i < NUSES; i++) text_format(t, "  - {name: c%d, type: %s, shape: [], value: %d.25}\n", i, type, i);
  text_add_string(t, "nodes:\n");
  for (int i = 0; i < NUSES; i++) {
    text_format(t, "  - {op: Multiply, inputs: [x, c%d], outputs: [%s%d]}\n", i, of_square ? "p" : "m", i);
    if (of_square) text_format(t, "  - {op: Square, inputs: [p%d], outputs: [m%d]}\n", i, i);
    text_format(t, "  - {op: %s, inputs: [m%d], outputs: [y%d], attributes: {%s}}\n", operator, i, i, attributes);
  }
  text_add_string(t, "outputs: [");
  for (int i = 0; i < NUSES; i++) text_format(t, "%sy%d", i ? ", " : "", i);
  text_add_string(t, "]\n");
}

static void run(ng_context *ctx, ng_graph *g, const char *isa, int no_fuse, const ng_tensor *x, ng_tensor *outputs) {
  ng_options options = {.isa = isa, .no_fuse = no_fuse};
  ng_kernel *k = ng_compile(g, &options);
  if (!k) fail_msg("%s", ng_messages_text(ctx, 0));
  if (!no_fuse) assert_int_equal(ng_kernel_get_info(k).nkernels, 1);
  for (size_t i = 0; i < NUSES; i++) {
    ng_tensor_info info = ng_graph_output(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &outputs[i]), NG_OK);
  }
  assert_int_equal(ng_kernel_run(k, x, outputs, 1), NG_OK);
  ng_kernel_free(k);
}

static void must_agree(const char *operator, const char * attributes, const char *type, bool of_square) {
  const bool is_short = strcmp(operator, "Tanh") == 0; // to compile
  Text text;
  text_init(&text, &system_allocator);
  write_graph(&text, operator, attributes, type, of_square);
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "test.yaml", text_string(&text), text.nbytes, NULL);
  if (!g) fail_msg("%s", ng_messages_text(ctx, 0));
  char *source = ng_graph_show(g, "c", NULL);
  assert_non_null(strstr(source, "V_FAR void"));
  ng_text_free(ctx, source);
  ng_tensor x = {0}, called[NUSES] = {0}, inlined[NUSES] = {0};
  assert_int_equal(ng_tensor_random(g, 0, 5, &x), NG_OK);
  const char *const isas[] = {NULL, "scalar"}; // the best
  for (size_t isa = 0; isa < (is_short ? 2 : 1); isa++) {
    run(ctx, g, isas[isa], 0, &x, called);
    run(ctx, g, isas[isa], 1, &x, inlined);
    const size_t nbytes = (size_t)3 * WIDTH * (strcmp(type, "f64") == 0 ? sizeof(double) : sizeof(float));
    for (size_t i = 0; i < NUSES; i++) {
      if (memcmp(called[i].data, inlined[i].data, nbytes) != 0)
        fail_msg("%s of %s: called and inlined functions give different bits", operator, type);
      ng_tensor_free(ctx, &called[i]);
      ng_tensor_free(ctx, &inlined[i]);
    }
  }
  ng_tensor_free(ctx, &x);
  ng_graph_free(g);
  ng_context_free(ctx);
  text_deinit(&text);
}

static void functions_that_are_called_have_the_same_bits(void **state) {
  (void)state;
  must_agree("Tanh", "", "f32", false);
  must_agree("Exp", "", "f32", false);
  must_agree("Log", "", "f32", true);
  must_agree("GELU", "mode: gelu_erf", "f32", false);
  must_agree("SoftPlus", "beta: 1", "f32", false);
  must_agree("Elu", "alpha: 1", "f32", false);
  must_agree("Pow", "beta: 1.7", "f32", true);
}

static void functions_in_f64_that_are_called_have_the_same_bits(void **state) {
  (void)state;
  must_agree("Tanh", "", "f64", false);
  must_agree("Pow", "beta: 1.7", "f64", true);
}

static void each_is_there_once_however_often_it_is_called(void **state) {
  (void)state;
  enum { N = 1000 };
  Text text;
  text_init(&text, &system_allocator);
  text_format(&text, "format: ngrad/1\nname: g\ninputs: [{name: y0, type: f32, shape: [%d]}]\nconstants:\n", WIDTH);
  for (int i = 0; i < N; i++) text_format(&text, "  - {name: c%d, type: f32, shape: [], value: %d.25}\n", i, i);
  text_add_string(&text, "nodes:\n");
  for (int i = 0; i < N; i++) // the factors differ, so that no two kernels have the same functions
    text_format(&text,
                "  - {op: Multiply, inputs: [y%d, c%d], outputs: [m%d]}\n"
                "  - {op: Tanh, inputs: [m%d], outputs: [y%d]}\n",
                i, i, i, i, i + 1);
  text_format(&text, "outputs: [y%d]\n", N);
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "test.yaml", text_string(&text), text.nbytes, NULL);
  char *source = ng_graph_show(g, "c", NULL);
  int ndefinitions = 0, ninlined = 0, ncalls = 0;
  for (const char *at = source; (at = strstr(at, "tanh(")); at++) {
    ndefinitions +=
        strncmp(at - strlen("_far_v_"), "_far_v_", strlen("_far_v_")) == 0 && strncmp(at, "tanh(vec", 8) == 0;
    ncalls += strncmp(at - strlen("_call_v_"), "_call_v_", strlen("_call_v_")) == 0;
    ninlined += strncmp(at - strlen("= v_"), "= v_", strlen("= v_")) == 0;
  }
  assert_int_equal(ndefinitions, 1);
  assert_int_equal(ninlined, 1);
  assert_true(ncalls >= N);
  ng_text_free(ctx, source);
  ng_graph_free(g);
  ng_context_free(ctx);
  text_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_that_are_called_have_the_same_bits),
      cmocka_unit_test(functions_in_f64_that_are_called_have_the_same_bits),
      cmocka_unit_test(each_is_there_once_however_often_it_is_called),
  };
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
