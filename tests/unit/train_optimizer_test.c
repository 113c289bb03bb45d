// Optimizers, clipping of gradients and groups without weight decay, worked out by hand.
#include "tests/unit/quick_compiler.h"
#include "tests/unit/train_case.h"

#include <math.h>
#include <stdio.h>

// The optimizers: the loss is the mean of (w x - 2 x)^2 over x = 1, 2, whose gradient is 5 (w - 2).

static const char line[] = "format: ngrad/1\n"
                           "name: line\n"
                           "inputs: [{name: x, type: f64, shape: [2, 1]}, {name: t, type: f64, shape: [2, 1]}]\n"
                           "state: [{name: w, type: f64, shape: [1, 1], init: zeros}]\n"
                           "nodes:\n"
                           "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n"
                           "  - {op: MeanSquaredError, inputs: [y, t], outputs: [loss]}\n"
                           "outputs: [loss, y]\n";

typedef struct OptimizerCase {
  const char *optimizer;
  ng_setting settings[4];
  const char *schedule;
  double w[3];          // from 3, after each of three steps
  const char *names[2]; // of the optimizer's states
  double states[2][3];  // after each step
} OptimizerCase;

// clang-format off
static const OptimizerCase optimizers[] = {
    {"sgd", {{"learning_rate", 0.1}}, NULL, {2.5, 2.25, 2.125}, {NULL}, {{0}}},
    {"sgd", {{"learning_rate", 0.1}, {"weight_decay", 0.5}}, NULL, {2.35, 2.0575, 1.925875}, {NULL}, {{0}}},
    {"sgd", {{"learning_rate", 0.25}, {"clip_norm", 2}}, NULL, {2.50000009999998, 2.00000029999986, 1.999999925000035},
     {NULL}, {{0}}},
    {"sgd", {{"learning_rate", 0.1}, {"warmup", 2}}, NULL, {2.75, 2.375, 2.1875}, {NULL}, {{0}}},
    {"sgd", {{"learning_rate", 0.1}, {"step_size", 2}, {"gamma", 0.5}}, "step", {2.5, 2.25, 2.1875}, {NULL}, {{0}}},
    {"sgd", {{"learning_rate", 0.1}, {"step_size", 1}, {"warmup", 1}, {"gamma", 0.5}}, "step", {2.5, 2.25, 2.1875}, {NULL}, {{0}}},
    {"sgd", {{"learning_rate", 0.1}, {"steps", 4}}, "cosine", {2.5, 2.2866116523516817, 2.2149587392637615}, {NULL}, {{0}}},
    {"sgd", {{"learning_rate", 0.1}, {"steps", 2}}, "cosine", {2.5, 2.375, 2.375}, {NULL}, {{0}}},
    {"sgd", {{"learning_rate", 0.1}, {"steps", 3}, {"warmup", 2}}, "cosine", {2.75, 2.375, 2.1875}, {NULL}, {{0}}},
    {"momentum", {{"learning_rate", 0.1}, {"momentum", 0.5}}, NULL, {2.5, 2, 1.75}, {"w.momentum"}, {{5, 5, 2.5}}},
    {"momentum", {{"learning_rate", 0.1}, {"momentum", 0.5}, {"nesterov", 1}}, NULL, {2.25, 1.9375, 1.890625},
     {"w.momentum"}, {{5, 3.75, 1.5625}}},
    {"adam", {{"learning_rate", 0.1}, {"beta1", 0.5}, {"beta2", 0.75}}, NULL,
     {2.9000000002, 2.8011461700707816, 2.7042366464085723}, {"w.m", "w.v"},
     {{2.5, 3.5000000005, 3.752865425426954}, {6.25, 9.750000002250001, 11.32396991305676}}},
    {"adam", {{"learning_rate", 0.1}, {"beta1", 0.5}, {"beta2", 0.75}, {"weight_decay", 0.5}}, NULL,
     {2.900000000153846, 2.800942652315417, 2.7034542790568863}, {"w.m", "w.v"},
     {{3.25, 4.600000000423077, 5.002592294078935}, {10.5625, 16.77250000251731, 19.883380108759418}}},
    {"adamw", {{"learning_rate", 0.1}, {"beta1", 0.5}, {"beta2", 0.75}, {"weight_decay", 0.5}}, NULL,
     {2.7500000001999996, 2.516274955542885, 2.3017906914410413}, {"w.m", "w.v"},
     {{2.5, 3.125000000499999, 2.853187389107212}, {6.25, 8.203125001874996, 7.8182176871612965}}},
    {"adagrad", {{"learning_rate", 0.5}}, NULL, {2.50000000001, 2.276393202260443, 2.156398736032906}, {"w.sum"},
     {{25, 31.25000000025, 33.15983005664456}}},
};
// clang-format on

static void check_optimizer_case(const OptimizerCase *c) {
  ng_context *ctx = new_context();
  ng_graph *forward = must_read(ctx, line);
  size_t nsettings = 0;
  while (nsettings < 4 && c->settings[nsettings].name) nsettings++;
  const ng_train_options options = {
      .optimizer = c->optimizer, .settings = c->settings, .nsettings = nsettings, .schedule = c->schedule};
  Run r = run_open(ctx, ng_graph_train(forward, &options));
  double *x = find_tensor(&r, "x")->data, *t = find_tensor(&r, "t")->data;
  x[0] = 1, x[1] = 2, t[0] = 2, t[1] = 4;
  *(double *)find_tensor(&r, "w")->data = 3;
  for (int step = 0; step < 3; step++) {
    const double w = number(&r, "w");
    call(&r);
    keep_states(&r);
    must_be_near(number(&r, "loss"), 2.5 * (w - 2) * (w - 2), "loss");
    must_be_near(number(&r, "w"), c->w[step], c->optimizer);
    for (int i = 0; i < 2 && c->names[i]; i++) must_be_near(number(&r, c->names[i]), c->states[i][step], c->names[i]);
    assert_true(number(&r, "step") == step + 1);
  }
  run_close(&r);
  ng_graph_free(forward);
  ng_context_free(ctx);
}

static void optimizers_step_as_worked_out_by_hand(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) check_optimizer_case(&optimizers[i]);
}

// Clipping: the gradients by u and v are a and b. With a learning rate of 1, a step subtracts a clipped gradient from
// 0.

static const char clipped[] = "format: ngrad/1\n"
                              "name: clipped\n"
                              "inputs: [{name: a, type: %s, shape: [2]}, {name: b, type: %s, shape: [2]}]\n"
                              "state:\n"
                              "  - {name: u, type: %s, shape: [2], init: zeros}\n"
                              "  - {name: v, type: %s, shape: [2], init: zeros}\n"
                              "nodes:\n"
                              "  - {op: Multiply, inputs: [u, a], outputs: [p]}\n"
                              "  - {op: Multiply, inputs: [v, b], outputs: [q]}\n"
                              "  - {op: Add, inputs: [p, q], outputs: [sum]}\n"
                              "  - {op: ReduceSum, inputs: [sum], outputs: [loss], attributes: {axes: [0]}}\n"
                              "outputs: [loss]\n";

// Squares of the norms of the gradients, the norm of all of them, and its quotient may be out of the type's range.
static const struct ClipCase {
  const char *type;
  double gradients[4], clipped[4];
  double most; // clip_norm; 0: 1
} clip_cases[] = {
    {"f32", {3e20, 0, 0, 4e20}, {0.6, 0, 0, 0.8}},
    {"f32", {3e38, 3e38, -3e38, 3e38}, {0.5, 0.5, -0.5, 0.5}},
    {"f32", {3e38, 0, 0, 1e-30}, {1, 0, 0, 0}},
    {"f32", {3e-30, 0, 0, 4e-30}, {3e-30, 0, 0, 4e-30}},
    {"f32", {0, 0, 0, 0}, {0, 0, 0, 0}},
    {"f32", {NAN, 0, 0, 1}, {NAN, NAN, NAN, NAN}}, // as PyTorch's clip_grad_norm_
    // clip_norm / norm is less than 2^-126, where f32 has fewer digits.
    {"f32", {3e38, 2e38, 0, 0}, {9.984603532054123e-31, 6.6564023547027494e-31, 0, 0}, 1.2e-30},
    {"f32", {3e38, 4, -1e38, 0}, {1.1384199576606165e-20, 0, -3.7947331922020546e-21, 0}, 1.2e-20},
    {"bf16", {0x1p127, 0, 0, 0x1.8p126}, {0.96e-30, 0, 0, 0.72e-30}, 1.2e-30},
    {"bf16", {3e20, 0, 0, 4e20}, {0.6, 0, 0, 0.8}},
    {"f16", {60000, 60000, 60000, 60000}, {0.5, 0.5, 0.5, 0.5}},
    {"f64", {3e200, 0, 0, 4e200}, {0.6, 0, 0, 0.8}},
    {"f64", {3e-200, 0, 0, 4e-200}, {3e-200, 0, 0, 4e-200}},
};

static void must_be_clipped(Run *r, const struct ClipCase *c, const char *how) {
  const double tolerance = strcmp(c->type, "f64") == 0                 ? 1e-15
                           : strlen(c->type) == 3 && c->type[1] == '3' ? 1e-6
                                                                       : 4e-3;
  for (int i = 0; i < 4; i++) {
    const double next = ng_tensor_get(find_tensor(r, i < 2 ? "u.next" : "v.next"), i % 2), expected = -c->clipped[i];
    if (isnan(expected) ? !isnan(next) : !(fabs(next - expected) <= tolerance * fabs(expected)))
      fail_msg("%s, %s, gradient %g: the step is %g, expected %g", c->type, how, c->gradients[i], next, expected);
  }
}

static double most_of(const struct ClipCase *c) {
  return c->most > 0 ? c->most : 1;
}

static void check_clipping(const struct ClipCase *cases, size_t ncases) {
  const ng_setting settings[] = {{"clip_norm", most_of(cases)}, {"learning_rate", 1}};
  const char *type = cases->type;
  char text[sizeof clipped + 64];
  snprintf(text, sizeof text, clipped, type, type, type, type);
  ng_context *ctx = new_context();
  ng_graph *forward = must_read(ctx, text);
  const ng_train_options options = {.optimizer = "sgd", .settings = settings, .nsettings = 2};
  Run r = run_open(ctx, ng_graph_train(forward, &options));
  static const char *const isas[] = {NULL, "scalar"};
  for (size_t k = 0; k < 3; k++) {
    ng_kernel *kernel = k ? ng_compile(r.g, &(ng_options){.isa = isas[k - 1]}) : NULL;
    assert_true(!k || kernel);
    for (size_t n = 0; n < ncases; n++) {
      for (size_t i = 0; i < 4; i++) set(&r, i < 2 ? "a" : "b", i % 2, cases[n].gradients[i]);
      if (!k) call(&r);
      else assert_int_equal(ng_kernel_run(kernel, r.inputs, r.outputs, 1), NG_OK);
      must_be_clipped(&r, &cases[n], k == 0 ? "interpreted" : k == 1 ? "compiled" : "compiled as scalar C");
    }
    ng_kernel_free(kernel);
  }
  run_close(&r);
  ng_graph_free(forward);
  ng_context_free(ctx);
}

static void clipping_neither_overflows_nor_underflows(void **state) {
  (void)state;
  const size_t ncases = sizeof clip_cases / sizeof *clip_cases;
  for (size_t i = 0, n; i < ncases; i += n) {
    const struct ClipCase *c = &clip_cases[i];
    for (n = 1; i + n < ncases && strcmp(c->type, c[n].type) == 0 && most_of(c) == most_of(&c[n]);) n++;
    check_clipping(c, n);
  }
}

// Clipping needs as many operands as there are parameters, more than Concat takes.
static void many_gradients_are_clipped_together(void **state) {
  (void)state;
  enum { NPARAMETERS = 70 };
  char text[16384], *at = text, *end = text + sizeof text;
  at += snprintf(at, (size_t)(end - at), "format: ngrad/1\ninputs: [{name: x, type: f32, shape: []}]\nstate:\n");
  for (int i = 0; i < NPARAMETERS; i++)
    at += snprintf(at, (size_t)(end - at), "  - {name: w%d, type: f32, shape: [], init: zeros}\n", i);
  at += snprintf(at, (size_t)(end - at), "nodes:\n  - {op: Add, inputs: [w0, w1], outputs: [s1]}\n");
  for (int i = 2; i < NPARAMETERS; i++)
    at += snprintf(at, (size_t)(end - at), "  - {op: Add, inputs: [s%d, w%d], outputs: [s%d]}\n", i - 1, i, i);
  snprintf(at, (size_t)(end - at), "  - {op: Multiply, inputs: [s%d, x], outputs: [loss]}\noutputs: [loss]\n",
           NPARAMETERS - 1);
  ng_context *ctx = new_context();
  ng_graph *forward = must_read(ctx, text);
  const ng_setting settings[] = {{"clip_norm", 1}, {"learning_rate", 1}};
  const ng_train_options options = {.optimizer = "sgd", .settings = settings, .nsettings = 2};
  Run r = run_open(ctx, ng_graph_train(forward, &options));
  set(&r, "x", 0, 1e30);
  call(&r);
  const double next = number(&r, "w69.next");
  if (!(fabs(next + 1 / sqrt(NPARAMETERS)) < 1e-7)) fail_msg("the last step is %g", next);
  run_close(&r);
  ng_graph_free(forward);
  ng_context_free(ctx);
}

// Two parameters whose losses are that of `line`: u has weight decay, b has none.

typedef struct DecayCase {
  const char *optimizer;
  ng_setting settings[4];
  double u[3], b[3]; // from 3, after each of three steps
} DecayCase;

static const char two_lines[] = "format: ngrad/1\n"
                                "inputs: [{name: x, type: f64, shape: [2, 1]}, {name: t, type: f64, shape: [2, 1]}]\n"
                                "state:\n"
                                "  - {name: u, type: f64, shape: [1, 1], init: zeros}\n"
                                "  - {name: b, type: f64, shape: [1], init: zeros}\n"
                                "nodes:\n"
                                "  - {op: MatMul, inputs: [x, u], outputs: [y]}\n"
                                "  - {op: Multiply, inputs: [x, b], outputs: [z]}\n"
                                "  - {op: MeanSquaredError, inputs: [y, t], outputs: [first]}\n"
                                "  - {op: MeanSquaredError, inputs: [z, t], outputs: [second]}\n"
                                "  - {op: Add, inputs: [first, second], outputs: [loss]}\n"
                                "outputs: [loss]\n";

static const DecayCase decays[] = {
    {"sgd", {{"learning_rate", 0.1}, {"weight_decay", 0.5}}, {2.35, 2.0575, 1.925875}, {2.5, 2.25, 2.125}},
    {"momentum",
     {{"learning_rate", 0.1}, {"weight_decay", 0.5}, {"momentum", 0.5}},
     {2.35, 1.7325, 1.470875},
     {2.5, 2, 1.75}},
    {"adam",
     {{"learning_rate", 0.1}, {"weight_decay", 0.5}, {"beta1", 0.5}, {"beta2", 0.75}},
     {2.900000000153846, 2.800942652315417, 2.7034542790568863},
     {2.9000000002, 2.8011461700707816, 2.7042366464085723}},
    {"adamw",
     {{"learning_rate", 0.1}, {"weight_decay", 0.5}, {"beta1", 0.5}, {"beta2", 0.75}},
     {2.7500000001999996, 2.516274955542885, 2.3017906914410413},
     {2.9000000002, 2.8011461700707816, 2.7042366464085723}},
    {"adagrad",
     {{"learning_rate", 0.5}, {"weight_decay", 0.5}},
     {2.5000000000076925, 2.2501387732641183, 2.0992250106588703},
     {2.50000000001, 2.276393202260443, 2.156398736032906}},
};

static void check_decay_case(const DecayCase *c, const char *pattern, double accumulate) {
  ng_context *ctx = new_context();
  ng_graph *forward = must_read(ctx, two_lines);
  ng_setting settings[5];
  size_t nsettings = 0;
  for (; nsettings < 4 && c->settings[nsettings].name; nsettings++) settings[nsettings] = c->settings[nsettings];
  settings[nsettings++] = (ng_setting){"accumulate", accumulate};
  const ng_train_options options = {
      .optimizer = c->optimizer, .settings = settings, .nsettings = nsettings, .no_decay = &pattern, .nno_decay = 1};
  Run r = run_open(ctx, ng_graph_train(forward, &options));
  double *x = find_tensor(&r, "x")->data, *t = find_tensor(&r, "t")->data;
  for (int i = 0; i < 2 * (int)accumulate; i++) x[i] = i % 2 + 1, t[i] = 2 * x[i];
  *(double *)find_tensor(&r, "u")->data = *(double *)find_tensor(&r, "b")->data = 3;
  for (int step = 0; step < 3; step++) {
    call(&r);
    keep_states(&r);
    must_be_near(number(&r, "u"), c->u[step], c->optimizer);
    must_be_near(number(&r, "b"), c->b[step], c->optimizer);
  }
  run_close(&r);
  ng_graph_free(forward);
  ng_context_free(ctx);
}

static void groups_without_weight_decay_step_as_worked_out_by_hand(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof decays / sizeof *decays; i++) {
    check_decay_case(&decays[i], "b*", 1);
    check_decay_case(&decays[i], "norms-and-biases", 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(optimizers_step_as_worked_out_by_hand),
      cmocka_unit_test(clipping_neither_overflows_nor_underflows),
      cmocka_unit_test(many_gradients_are_clipped_together),
      cmocka_unit_test(groups_without_weight_decay_step_as_worked_out_by_hand),
  };
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
