// Mixed precision: where steps and gradients get casts, as lists of their nodes.
#include "frontend/api/handles.h"
#include "ir/operators/operator.h"
#include "tests/unit/train_case.h"

// The nodes in their order, as "MatMul a:bf16 b:bf16 -> c:f32"; up to the first that counts calls.
static const char *list_nodes(const ng_graph *g, Text *out) {
  text_init(out, &system_allocator);
  for (size_t n = 0; g && n < g->graph->nnodes; n++) {
    const Node *node = g->graph->nodes[n];
    if (node->outputs[0] && strcmp(node->outputs[0]->name, "step.next") == 0) break;
    text_format(out, "%s", node->op->name);
    for (uint32_t i = 0; i < node->ninputs; i++)
      if (node->inputs[i]) text_format(out, " %s:%s", node->inputs[i]->name, type_name(node->inputs[i]->type));
    text_add_string(out, " ->");
    for (uint32_t i = 0; i < node->noutputs; i++)
      if (node->outputs[i]) text_format(out, " %s:%s", node->outputs[i]->name, type_name(node->outputs[i]->type));
    text_add_string(out, "\n");
  }
  return text_string(out);
}

static void must_list(ng_context *ctx, ng_graph *g, const char *expected) {
  Text text;
  if (!g) fail_msg("%s", ng_messages_text(ctx, 0));
  assert_string_equal(list_nodes(g, &text), expected);
  text_deinit(&text);
  ng_graph_free(g);
}

static ng_graph *step_of(ng_graph *g, const char *const *keep_f32) {
  const ng_train_options options = {.precision = "bf16", .keep_f32 = keep_f32, .nkeep_f32 = keep_f32 ? 1 : 0};
  return ng_graph_train(g, &options);
}

static const char mlp[] = "format: ngrad/1\nname: mlp\n"
                          "inputs: [{name: x, type: f32, shape: [4, 3]}, {name: labels, type: s32, shape: [4]}]\n"
                          "state:\n"
                          "  - {name: w, type: f32, shape: [3, 5], init: {fan_in: 3}}\n"
                          "  - {name: v, type: f32, shape: [5, 2], init: {fan_in: 5}}\n"
                          "nodes:\n"
                          "  - {op: MatMul, inputs: [x, w], outputs: [h]}\n"
                          "  - {op: GELU, inputs: [h], outputs: [a], attributes: {mode: gelu_erf}}\n"
                          "  - {op: MatMul, inputs: [a, v], outputs: [y]}\n"
                          "  - {op: SoftmaxCrossEntropy, inputs: [y, labels], outputs: [loss]}\n"
                          "outputs: [loss]\n";

// One cast of each operand, forward and backward; GELU's operand is kept as bf16, the loss's as f32.
static void products_take_narrow_operands(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, mlp);
  must_list(ctx, step_of(g, NULL),
            "TypeCast x:f32 -> x_bf16:bf16\n"
            "TypeCast w:f32 -> w_bf16:bf16\n"
            "MatMul x_bf16:bf16 w_bf16:bf16 -> h:f32\n"
            "TypeCast h:f32 -> h_bf16:bf16\n"
            "GELU h:f32 -> a:f32\n"
            "TypeCast a:f32 -> a_bf16:bf16\n"
            "TypeCast v:f32 -> v_bf16:bf16\n"
            "MatMul a_bf16:bf16 v_bf16:bf16 -> y:f32\n"
            "SoftmaxCrossEntropy y:f32 labels:s32 -> loss:f32\n"
            "SoftmaxCrossEntropyBackward y:f32 diff_loss:f32 labels:s32 -> diff_y:f32\n"
            "TypeCast diff_y:f32 -> diff_y_bf16:bf16\n"
            "MatMul diff_y_bf16:bf16 v_bf16:bf16 -> diff_a:f32\n"
            "MatMul a_bf16:bf16 diff_y_bf16:bf16 -> diff_v:f32\n"
            "TypeCast h_bf16:bf16 -> h_kept:f32\n"
            "GELUBackward h_kept:f32 diff_a:f32 -> diff_h:f32\n"
            "TypeCast diff_h:f32 -> diff_h_bf16:bf16\n"
            "MatMul x_bf16:bf16 diff_h_bf16:bf16 -> diff_w:f32\n");
  must_list(ctx, step_of(g, (const char *[]){"GELU"}),
            "TypeCast x:f32 -> x_bf16:bf16\n"
            "TypeCast w:f32 -> w_bf16:bf16\n"
            "MatMul x_bf16:bf16 w_bf16:bf16 -> h:f32\n"
            "GELU h:f32 -> a:f32\n"
            "TypeCast a:f32 -> a_bf16:bf16\n"
            "TypeCast v:f32 -> v_bf16:bf16\n"
            "MatMul a_bf16:bf16 v_bf16:bf16 -> y:f32\n"
            "SoftmaxCrossEntropy y:f32 labels:s32 -> loss:f32\n"
            "SoftmaxCrossEntropyBackward y:f32 diff_loss:f32 labels:s32 -> diff_y:f32\n"
            "TypeCast diff_y:f32 -> diff_y_bf16:bf16\n"
            "MatMul diff_y_bf16:bf16 v_bf16:bf16 -> diff_a:f32\n"
            "MatMul a_bf16:bf16 diff_y_bf16:bf16 -> diff_v:f32\n"
            "GELUBackward h:f32 diff_a:f32 -> diff_h:f32\n"
            "TypeCast diff_h:f32 -> diff_h_bf16:bf16\n"
            "MatMul x_bf16:bf16 diff_h_bf16:bf16 -> diff_w:f32\n");
  ng_graph_free(g);
  ng_context_free(ctx);
}

// With keep_f32 MatMul, nothing is rounded but what GELU keeps.
static void operators_can_stay_f32(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, mlp);
  ng_graph *step = step_of(g, (const char *[]){"MatMul"});
  Text text;
  assert_null(strstr(list_nodes(step, &text), "bf16"));
  text_deinit(&text);
  ng_graph_free(step);
  assert_null(step_of(g, (const char *[]){"MatMull"}));
  must_have_said(ctx, "unknown operator MatMull, did you mean MatMul");
  assert_null(step_of(g, (const char *[]){"Gradient"})); // no graph that is trained has one any more
  must_have_said(ctx,
                 "unknown operator Gradient, expected Abs, Clamp, Cos, Elu, Erf, Exp, GELU, HardSigmoid and so on");
  assert_null(ng_graph_train(g, &(ng_train_options){.precision = "f8"}));
  must_have_said(ctx, "unknown precision f8, expected f32, bf16 or f16");
  assert_null(ng_graph_train(g, &(ng_train_options){.keep_f32 = (const char *[]){"GELU"}, .nkeep_f32 = 1}));
  must_have_said(ctx, "keep_f32: expected precision bf16 or f16 with it; without, every operator stays f32");
  ng_graph_free(g);
  ng_context_free(ctx);
}

// A convolution's result has its operands' type. ReLU and MaxPool follow, as the next convolution is all that reads
// MaxPool's result.
static void convolutions_give_narrow_results(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(
      ctx,
      "format: ngrad/1\nname: cnn\ninputs: [{name: x, type: f32, shape: [2, 1, 6, 6]}]\n"
      "state:\n  - {name: w, type: f32, shape: [3, 1, 3, 3], init: {fan_in: 9}}\n"
      "  - {name: v, type: f32, shape: [2, 3, 1, 1], init: {fan_in: 3}}\nnodes:\n"
      "  - {op: Convolution, inputs: [x, w], outputs: [c], attributes: &window {strides: [1, 1], pads_begin: [0, 0],"
      " pads_end: [0, 0], dilations: [1, 1], data_format: NCX, weights_format: OIX}}\n"
      "  - {op: ReLU, inputs: [c], outputs: [a]}\n"
      "  - {op: MaxPool, inputs: [a], outputs: [p], attributes: {kernel: [2, 2], strides: [2, 2], pads_begin: [0, 0],"
      " pads_end: [0, 0], data_format: NCX}}\n"
      "  - {op: Convolution, inputs: [p, v], outputs: [d], attributes: *window}\n"
      "  - {op: ReduceMean, inputs: [d], outputs: [loss], attributes: {axes: [0, 1, 2, 3]}}\noutputs: [loss]\n");
  Text text;
  ng_graph *step = step_of(g, NULL);
  const char *nodes = list_nodes(step, &text);
  const char *const parts[] = {"Convolution x_bf16:bf16 w_bf16:bf16 -> c:bf16\n",
                               "ReLU c:bf16 -> a:bf16\n",
                               "MaxPool a:bf16 -> p:bf16\n",
                               "Convolution p:bf16 v_bf16:bf16 -> d_bf16:bf16\n",
                               "TypeCast d_bf16:bf16 -> d:f32\n",
                               "ReduceMean d:f32 -> loss:f32\n",
                               "TypeCast a:bf16 -> a_kept:f32\n",
                               "MaxPoolBackward a_kept:f32 ",
                               " -> diff_v_bf16:bf16\nTypeCast diff_v_bf16:bf16 -> diff_v:f32\n"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(nodes, parts[i])) fail_msg("expected %s in:\n%s", parts[i], nodes);
  text_deinit(&text);
  ng_graph_free(step);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static const char attention[] = "format: ngrad/1\nname: attention\ninputs:\n"
                                "  - {name: q, type: f32, shape: [4, 3]}\n  - {name: k, type: f32, shape: [4, 3]}\n"
                                "  - {name: v, type: f32, shape: [4, 3]}\nnodes:\n"
                                "  - {op: MatMul, inputs: [q, k], outputs: [s], attributes: {transpose_b: true}}\n"
                                "  - {op: SoftMax, inputs: [s], outputs: [p], attributes: {axis: 1}}\n"
                                "  - {op: MatMul, inputs: [p, v], outputs: [o]}\noutputs: [o]\n";

// Softmax is computed in f32; its result is kept as bf16, which is also the product's operand.
static void gradients_take_narrow_values(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, attention);
  const ng_gradient_options options = {.precision = "bf16"};
  must_list(ctx, ng_graph_gradient_forward(g, &options),
            "TypeCast q:f32 -> q_bf16:bf16\n"
            "TypeCast k:f32 -> k_bf16:bf16\n"
            "MatMul q_bf16:bf16 k_bf16:bf16 -> s:f32\n"
            "SoftMax s:f32 -> p_f32:f32\n"
            "TypeCast p_f32:f32 -> p:bf16\n"
            "TypeCast v:f32 -> v_bf16:bf16\n"
            "MatMul p:bf16 v_bf16:bf16 -> o:f32\n");
  ng_graph *gradient = ng_graph_gradient(g, &options);
  Text text;
  const char *nodes = list_nodes(gradient, &text);
  const char *const parts[] = {"MatMul diff_o_bf16:bf16 v_bf16:bf16 -> diff_p:f32\n",
                               "MatMul p:bf16 diff_o_bf16:bf16 -> diff_v:f32\n", "TypeCast p:bf16 -> p_kept:f32\n",
                               "SoftMaxBackward diff_p:f32 p_kept:f32 -> diff_s:f32\n"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(nodes, parts[i])) fail_msg("expected %s in:\n%s", parts[i], nodes);
  text_deinit(&text);
  ng_graph_free(gradient);
  assert_null(ng_graph_gradient(g, &(ng_gradient_options){.precision = "bf16", .derivative = NG_HVP}));
  must_have_said(ctx, "precision: expected the gradient with it, not another derivative");
  ng_graph_free(g);
  ng_context_free(ctx);
}

// By hand: x = 1 + 2^-8 is halfway between two numbers of bf16, and becomes 1; w = 3 stays. h = 3 in f32, the loss is
// h^2, whose gradient by w is 2 h x = 6 with x rounded, and w - rate * 6 stays f32.
static void steps_compute_with_rounded_operands(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\nname: one\ninputs: [{name: x, type: f32, shape: [1, 1]}]\n"
                               "state: [{name: w, type: f32, shape: [1, 1], init: ones}]\nnodes:\n"
                               "  - {op: MatMul, inputs: [x, w], outputs: [h]}\n"
                               "  - {op: Square, inputs: [h], outputs: [s]}\n"
                               "  - {op: ReduceSum, inputs: [s], outputs: [loss], attributes: {axes: [0, 1]}}\n"
                               "outputs: [loss]\n");
  const ng_setting rate = {"learning_rate", 0.0009765625}; // 2^-10
  Run r = run_open(ctx, ng_graph_train(g, &(ng_train_options){.settings = &rate, .nsettings = 1, .precision = "bf16"}));
  set(&r, "x", 0, 1.00390625);
  set(&r, "w", 0, 3);
  call(&r);
  assert_true(number(&r, "loss") == 9);
  assert_true(number(&r, "w.next") == 3 - 6 * 0.0009765625);
  run_close(&r);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// By hand: the gradient of k x w is k x = [1, 2] for k = 1. Scaled by 65536, it is infinite in f16.
static const char scaled[] = "format: ngrad/1\nname: scaled\n"
                             "inputs: [{name: x, type: f32, shape: [1, 2]}, {name: k, type: f32, shape: []}]\nstate:\n"
                             "  - {name: w, type: f32, shape: [2, 1], init: ones}\n"
                             "  - {name: mean, type: f32, shape: [], init: zeros}\n"
                             "  - {name: calls, type: s64, shape: [], init: zeros}\n"
                             "constants: [{name: one, type: s64, shape: [], value: 1}]\nnodes:\n"
                             "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n"
                             "  - {op: Multiply, inputs: [y, k], outputs: [z]}\n"
                             "  - {op: ReduceSum, inputs: [z], outputs: [loss], attributes: {axes: [0, 1]}}\n"
                             "  - {op: ReduceMean, inputs: [x], outputs: [x_mean], attributes: {axes: [0, 1]}}\n"
                             "  - {op: Add, inputs: [calls, one], outputs: [calls_after]}\n"
                             "outputs: [loss]\nupdates: {mean: x_mean, calls: calls_after}\n";

static Run open_scaled(ng_context *ctx, ng_graph *g, const char *precision, const char *optimizer) {
  const ng_setting rate = {"learning_rate", 0.5};
  Run r = run_open(
      ctx, ng_graph_train(g, &(ng_train_options){
                                 .settings = &rate, .nsettings = 1, .precision = precision, .optimizer = optimizer}));
  for (size_t i = 0; i < 2; i++) set(&r, "x", i, 1 + (double)i), set(&r, "w", i, 3 + (double)i);
  set(&r, "k", 0, 1);
  return r;
}

static void must_hold(Run *r, double w0, double w1, double scale, double calls, double updates) {
  const double expected[] = {w0, w1, scale, calls, updates};
  const double found[] = {ng_tensor_get(find_tensor(r, "w.next"), 0), ng_tensor_get(find_tensor(r, "w.next"), 1),
                          number(r, "loss_scale.next"), number(r, "loss_scale.calls.next"), number(r, "updates.next")};
  for (size_t i = 0; i < 5; i++)
    if (!(found[i] == expected[i])) fail_msg("number %zu is %g, expected %g", i, found[i], expected[i]);
}

static void steps_in_f16_skip_overflow(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, scaled);
  Run r = open_scaled(ctx, g, "f16", "sgd");
  set(&r, "loss_scale", 0, 65536);
  call(&r);
  must_hold(&r, 3, 4, 32768, 0, 0); // nothing changes but the scale, and counters
  assert_true(number(&r, "x_mean") == 0 && number(&r, "calls_after") == 1 && number(&r, "step.next") == 1);
  assert_true(number(&r, "loss") == 11);
  keep_states(&r);
  call(&r);
  must_hold(&r, 2.5, 3, 32768, 1, 1);
  assert_true(number(&r, "x_mean") == 1.5 && number(&r, "calls_after") == 2 && number(&r, "step.next") == 2);
  for (int i = 0; i < 3; i++) { // a fixed scale never updates
    set(&r, "loss_scale", 0, 65536);
    call(&r);
    must_hold(&r, 3, 4, 32768, 0, 0);
  }
  set(&r, "loss_scale", 0, 1024);
  set(&r, "loss_scale.calls", 0, 1999);
  call(&r);
  must_hold(&r, 2.5, 3, 2048, 0, 1);
  set(&r, "loss_scale.calls", 0, 1998);
  call(&r);
  must_hold(&r, 2.5, 3, 1024, 1999, 1);
  set(&r, "x", 1, NAN);
  call(&r);
  must_hold(&r, 3, 4, 512, 0, 0);
  set(&r, "loss_scale", 0, 0x1p-100);
  call(&r);
  must_hold(&r, 3, 4, 0x1p-100, 0, 0);
  run_close(&r);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// The gradient 2^-30 is 0 in f16 unless it is scaled. f32 shows it beside a weight of 0.
static void steps_in_f16_keep_small_gradients(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, scaled);
  Run r = open_scaled(ctx, g, "f16", "sgd");
  set(&r, "k", 0, 0x1p-30);
  set(&r, "w", 0, 0);
  set(&r, "loss_scale", 0, 65536);
  call(&r);
  must_hold(&r, -0x1p-31, 4, 65536, 1, 1);
  set(&r, "loss_scale", 0, 1);
  call(&r);
  must_hold(&r, 0, 4, 1, 1, 1);
  run_close(&r);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// The optimizer counts the steps that it makes.
static void optimizers_skip_overflow(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, scaled);
  Run r = open_scaled(ctx, g, "f16", "adam");
  set(&r, "loss_scale", 0, 65536);
  call(&r); // overflows
  must_hold(&r, 3, 4, 32768, 0, 0);
  assert_true(number(&r, "w.m.next") == 0 && number(&r, "w.v.next") == 0);
  keep_states(&r);
  call(&r);
  assert_true(fabs(ng_tensor_get(find_tensor(&r, "w.next"), 0) - 2.5) < 1e-6); // a first step is as long as the rate
  assert_true(number(&r, "updates.next") == 1 && number(&r, "step.next") == 2);
  run_close(&r);
  Text text;
  ng_graph *step = ng_graph_train(g, &(ng_train_options){.precision = "f16"});
  const char *nodes = list_nodes(step, &text);
  const char *const parts[] = {"MatMul x_f16:f16 w_f16:f16 -> y:f32\n",
                               "MatMul x_f16:f16 diff_y_f16:f16 -> diff_w:f32\n",
                               "Multiply diff_w:f32 unscaling:f32 -> diff_w.unscaled:f32\n"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(nodes, parts[i])) fail_msg("expected %s in:\n%s", parts[i], nodes);
  text_deinit(&text);
  ng_graph_free(step);
  ng_graph_free(g);
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_take_narrow_operands),       cmocka_unit_test(operators_can_stay_f32),
      cmocka_unit_test(convolutions_give_narrow_results),    cmocka_unit_test(gradients_take_narrow_values),
      cmocka_unit_test(steps_compute_with_rounded_operands), cmocka_unit_test(steps_in_f16_skip_overflow),
      cmocka_unit_test(steps_in_f16_keep_small_gradients),   cmocka_unit_test(optimizers_skip_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
