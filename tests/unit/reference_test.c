// Compiled code and the interpreter where correct results differ: values of narrow types between kernels, intermediate
// overflow, and quotients whose divisors are near 0.
#include "ir/graph/type.h"
#include "tests/unit/api_case.h"
#include "tests/unit/quick_compiler.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define BEGIN "format: ngrad/1\nname: reference\n"

typedef struct Case {
  ng_context *ctx;
  ng_graph *graph;
  ng_kernel *kernel;
  Data data;
  ng_tensor expected[4];
  ng_difference differences[4];
} Case;

static void case_init(Case *c, const char *text) {
  const ng_options options = {.isa = "scalar"};
  assert_true(use_quick_compiler(true));
  *c = (Case){.ctx = new_context()};
  c->graph = must_read(c->ctx, text);
  c->kernel = ng_compile(c->graph, &options);
  if (!c->kernel) fail_msg("%s", ng_messages_text(c->ctx, 0));
  assert_int_equal(data_make(&c->data, c->ctx, c->graph), NG_OK);
  for (size_t i = 0; i < ng_graph_output_count(c->graph); i++) {
    ng_tensor_info info = ng_graph_output(c->graph, i);
    assert_int_equal(ng_tensor_new(c->ctx, &info, &c->expected[i]), NG_OK);
  }
}

static void case_deinit(Case *c) {
  data_free(&c->data, c->ctx);
  for (size_t i = 0; i < 4; i++) ng_tensor_free(c->ctx, &c->expected[i]);
  ng_kernel_free(c->kernel);
  ng_graph_free(c->graph);
  ng_context_free(c->ctx);
}

static void store(const ng_tensor *t, int64_t i, double number) {
  type_store((Type)t->type, t->data, (size_t)i, number);
}

static void run(Case *c) {
  assert_int_equal(ng_kernel_run(c->kernel, c->data.in, c->data.out, 1), NG_OK);
  assert_int_equal(ng_interpret(c->graph, c->data.in, c->expected, 0), NG_OK);
}

static ng_status compare(Case *c) {
  return ng_compare_outputs(c->graph, c->kernel, c->data.in, c->data.out, c->expected, -1, c->differences);
}

// Whether the last element of output 0 may be off by this.
static ng_status off_by(Case *c, double error) {
  ng_tensor *y = &c->data.out[0];
  const int64_t last = ng_tensor_nelems(y) - 1;
  const double before = ng_tensor_get(y, last);
  store(y, last, before + error);
  const ng_status status = compare(c);
  store(y, last, before);
  return status;
}

// Scores of about 30 in bf16 are off by up to 1/8, and so their exponentials are off by as much. Compiled code rounds
// them as the reference does, whether they are in memory or not.
static void roundings_between_nodes_are_right(void **state) {
  (void)state;
  static const char *const texts[] = {BEGIN "inputs:\n"
                                            "  - {name: q, type: bf16, shape: [8, 64]}\n"
                                            "  - {name: k, type: bf16, shape: [64, 16]}\n"
                                            "  - {name: v, type: bf16, shape: [16, 8]}\n"
                                            "nodes:\n"
                                            "  - {op: MatMul, inputs: [q, k], outputs: [s]}\n"
                                            "  - {op: SoftMax, inputs: [s], outputs: [p], attributes: {axis: -1}}\n"
                                            "  - {op: MatMul, inputs: [p, v], outputs: [y]}\n"
                                            "outputs: [y]\n",
                                      BEGIN "inputs:\n"
                                            "  - {name: q, type: bf16, shape: [64, 1024]}\n"
                                            "  - {name: k, type: bf16, shape: [1024, 64]}\n"
                                            "  - {name: m, type: bf16, shape: [64, 64]}\n"
                                            "constants:\n"
                                            "  - {name: scale, type: bf16, shape: [], value: 1.0}\n"
                                            "nodes:\n"
                                            "  - {op: MatMul, inputs: [q, k], outputs: [s]}\n"
                                            "  - {op: Multiply, inputs: [s, scale], outputs: [t]}\n"
                                            "  - {op: Add, inputs: [t, m], outputs: [u]}\n"
                                            "  - {op: SoftMax, inputs: [u], outputs: [y], attributes: {axis: -1}}\n"
                                            "outputs: [y]\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    Case c;
    case_init(&c, texts[i]);
    run(&c);
    assert_int_equal(compare(&c), NG_OK);
    assert_int_equal(c.differences[0].nleft_out, 0);
    assert_int_equal(off_by(&c, 1), NG_DIFFERENT);
    assert_int_equal(ng_compare_outputs(c.graph, NULL, c.data.in, c.data.out, c.expected, -1, c.differences), NG_OK);
    case_deinit(&c);
  }
}

// The square of 2e19 is beyond f32, and a thousandth of it is not: who keeps the square in f32 has an infinite
// variance, and does not change the weights.
static void squares_of_optimizers_may_overflow(void **state) {
  (void)state;
  static const char text[] = BEGIN "inputs:\n"
                                   "  - {name: w, type: f32, shape: [20]}\n"
                                   "  - {name: g, type: f32, shape: [20]}\n"
                                   "  - {name: m, type: f32, shape: [20]}\n"
                                   "  - {name: s, type: f32, shape: [20]}\n"
                                   "  - {name: rate, type: f32, shape: []}\n"
                                   "  - {name: step, type: s64, shape: []}\n"
                                   "nodes:\n"
                                   "  - {op: AdamW, inputs: [w, g, m, s, rate, step], outputs: [w1, m1, s1],\n"
                                   "     attributes: {beta1: 0.9, beta2: 0.999, epsilon: 1.0e-8, weight_decay: 0.01}}\n"
                                   "outputs: [w1, m1, s1]\n";
  Case c;
  case_init(&c, text);
  store(&c.data.in[1], 3, 2e19);
  store(&c.data.in[1], 4, 1e25); // even a thousandth of the square is beyond f32
  store(&c.data.in[5], 0, 3);
  run(&c);
  assert_int_equal(compare(&c), NG_OK);
  assert_int_equal(off_by(&c, 1), NG_DIFFERENT);
  if (isinf(ng_tensor_get(&c.data.out[2], 3))) {
    assert_int_equal(compare(&c), NG_OK);
    assert_int_equal(c.differences[2].noverflown, 1);
    assert_int_equal(c.differences[2].worst_element, 3);
  }
  case_deinit(&c);
}

// The divisor's terms cancel but for their last bits. In f32 they are equal, or not.
static void quotients_by_what_cancels_may_be_far_off(void **state) {
  (void)state;
  static const char text[] = BEGIN "inputs:\n"
                                   "  - {name: a, type: f32, shape: [50]}\n"
                                   "  - {name: b, type: f32, shape: [50]}\n"
                                   "  - {name: c, type: f32, shape: [50]}\n"
                                   "nodes:\n"
                                   "  - {op: Multiply, inputs: [a, b], outputs: [p]}\n"
                                   "  - {op: Exp, inputs: [c], outputs: [e]}\n"
                                   "  - {op: Subtract, inputs: [p, e], outputs: [d]}\n"
                                   "  - {op: Divide, inputs: [a, d], outputs: [y]}\n"
                                   "outputs: [y]\n";
  for (int ulps = 0; ulps < 3; ulps++) { // that d is from 0, about
    Case c;
    case_init(&c, text);
    store(&c.data.in[0], 7, (float)0.9);
    store(&c.data.in[1], 7, (float)(exp((double)(float)0.3) / (float)0.9) * (1 + ulps * 0x1p-23));
    store(&c.data.in[2], 7, (float)0.3);
    run(&c);
    const double exact = ng_tensor_get(&c.expected[0], 7);
    assert_true(fabs(ng_tensor_get(&c.data.out[0], 7) - exact) > 1e-3 * fabs(exact));
    assert_int_equal(compare(&c), NG_OK);
    assert_in_range(c.differences[0].nleft_out, 1, 50 / 10);
    assert_int_equal(off_by(&c, 0.01), NG_DIFFERENT);
    assert_int_equal(off_by(&c, INFINITY), NG_DIFFERENT);
    case_deinit(&c);
  }
}

// Kernels hold integers as floats, between their nodes.
static void no_integer_is_minus_zero(void **state) {
  (void)state;
  static const char *const nodes[] = {
      "{op: TypeCast, inputs: [x], outputs: [{name: q, type: s8}]}",
      "{op: Quantize, inputs: [x], outputs: [{name: q, type: s8}], attributes: {scales: [1.0], zps: [0]}}",
      "{op: TypeCast, inputs: [x], outputs: [{name: n, type: s32}]}\n  - {op: Neg, inputs: [n], outputs: [q]}"};
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    char text[512];
    snprintf(text, sizeof text,
             BEGIN "inputs: [{name: x, type: f32, shape: [4]}]\nnodes:\n  - %s\n"
                   "  - {op: TypeCast, inputs: [q], outputs: [{name: y, type: f32}]}\noutputs: [y]\n",
             nodes[i]);
    Case c;
    case_init(&c, text);
    store(&c.data.in[0], 0, (float)-0.3);
    store(&c.data.in[0], 1, (float)0.3);
    run(&c);
    for (int k = 0; k < 2; k++) {
      const double y = ng_tensor_get(&c.data.out[0], k);
      assert_true(y == 0 && !signbit(y));
    }
    case_deinit(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_integer_is_minus_zero),
      cmocka_unit_test(roundings_between_nodes_are_right),
      cmocka_unit_test(squares_of_optimizers_may_overflow),
      cmocka_unit_test(quotients_by_what_cancels_may_be_far_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
