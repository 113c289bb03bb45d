// Which constants of an ONNX model training takes as parameters, and what it says about the others.
#include "tests/unit/api_case.h"
#include "tests/unit/onnx_message.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

// A tensor of f32: of no axes, or of three elements along one axis.
static Message tensor_of(const char *name, int rank, float number) {
  const float numbers[] = {number, number, number};
  Message tensor = {.count = 0};
  if (rank) add_number(&tensor, 1, 3);
  add_number(&tensor, 2, 1);
  if (name) add_text(&tensor, 8, name);
  add_bytes(&tensor, 9, numbers, rank ? sizeof numbers : sizeof *numbers);
  return tensor;
}

static void add_initializer(Message *graph, const char *name, int rank, float number) {
  const Message tensor = tensor_of(name, rank, number);
  add_message(graph, 5, &tensor);
}

static void add_op(Message *graph, uint64_t field, const char *op, const char *const *inputs, const char *output,
                   const Message *attribute) {
  Message node = {.count = 0};
  for (; *inputs; inputs++) add_text(&node, 1, *inputs);
  add_text(&node, 2, output);
  add_text(&node, 4, op);
  if (attribute) add_message(&node, 5, attribute);
  add_message(graph, field, &node);
}

static void add_constant_node(Message *graph, uint64_t field, const char *output, int rank, float number) {
  Message attribute = {.count = 0};
  const Message tensor = tensor_of(NULL, rank, number);
  add_text(&attribute, 1, "value");
  add_message(&attribute, 5, &tensor);
  add_number(&attribute, 20, 4);
  add_op(graph, field, "Constant", (const char *[]){NULL}, output, &attribute);
}

static void add_end(Message *graph, uint64_t field, const char *name) {
  Message info = {.count = 0}, type = {.count = 0}, tensor = {.count = 0}, shape = {.count = 0}, extent = {.count = 0};
  add_number(&extent, 1, 3);
  add_message(&shape, 1, &extent);
  add_message(&shape, 1, &extent);
  add_number(&tensor, 1, 1);
  add_message(&tensor, 2, &shape);
  add_message(&type, 1, &tensor);
  add_text(&info, 1, name);
  add_message(&info, 2, &type);
  add_message(graph, field, &info);
}

static Message model_of(const Message *graph, const Message *function) {
  Message model = {.count = 0}, opset = {.count = 0};
  add_number(&model, 1, 8);
  add_number(&opset, 2, 17);
  add_message(&model, 8, &opset);
  add_message(&model, 7, graph);
  if (function) add_message(&model, 25, function);
  return model;
}

// The updates of the step that trains the model, read with these options, with a loss, as "updates: {...}"; then the
// warnings.
static void must_train_read(const Message *model, const ng_read_options *reading, const char *const *losses,
                            size_t nlosses, const char *updates, const char *warning) {
  ng_context *ctx = new_context();
  ng_graph *g = ng_graph_read_with(ctx, "test.onnx", (const char *)model->bytes, model->count, NULL, reading);
  if (!g) fail_msg("%s", ng_messages_text(ctx, 0));
  const ng_train_options options = {.losses = losses, .nlosses = nlosses};
  ng_graph *step = ng_graph_train(g, &options);
  if (!step) fail_msg("%s", ng_messages_text(ctx, 0));
  char *text = ng_graph_show(step, "yaml", NULL), expected[512];
  snprintf(expected, sizeof expected, "updates: {%sstep: step.next}", updates);
  if (!strstr(text, expected)) fail_msg("expected %s in\n%s", expected, text);
  assert_int_equal(ng_message_count(ctx), warning != NULL);
  if (warning) assert_string_equal(ng_message_at(ctx, 0).text, warning);
  ng_text_free(ctx, text);
  ng_graph_free(step);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void must_train_for(const Message *model, const char *const *losses, size_t nlosses, const char *updates,
                           const char *warning) {
  must_train_read(model, &(ng_read_options){0}, losses, nlosses, updates, warning);
}

static void must_train(const Message *model, const char *updates, const char *warning) {
  must_train_for(model, (const char *const[]){"mse"}, 1, updates, warning);
}

// y = (x + w) * s
static Message model_with_number(const char *name, float number, int rank, bool is_node) {
  Message graph = {.count = 0};
  add_initializer(&graph, "w", 1, 1);
  if (is_node) add_constant_node(&graph, 1, name, rank, number);
  else add_initializer(&graph, name, rank, number);
  add_op(&graph, 1, "Add", (const char *[]){"x", "w", NULL}, "h", NULL);
  add_op(&graph, 1, "Mul", (const char *[]){"h", name, NULL}, "y", NULL);
  add_end(&graph, 11, "x");
  add_end(&graph, 12, "y");
  return model_of(&graph, NULL);
}

static void initializers_without_axes_are_parameters_by_their_names(void **state) {
  (void)state;
  static const struct {
    const char *name;
    float number;
    bool is_trained;
  } rows[] = {
      {"s", 1.5F, true},
      {"logit_scale", 0.7F, true},
      {"blocks.0.gamma", 0, true},
      {"model/scale/ReadVariableOp:0", 1, true},
      {"model/scale/ReadVariableOp", 1, true},
      {"onnx::Mul_12", 2, false},
      {"12", 2, false},
      {"val_3", 2, false},
      {"scalar_tensor_default_1", 2, false},
      {"lifted_tensor_0", 2, false},
      {"_constant_7", 2, false},
      {"/attn/Constant_output_0", 0.125F, false},
      {"mul/y:0", 2, false},
      {"const_fold_opt__39", 2, false},
      {"p2o.helper.constant.3", 2, false},
      {"Mu_Mulcst1", 2, false},
      {"ln.eps", 1e-5F, false},
      {"reconstruction", 2, true},
      {"ninf", -1e9F, false}, // a step would not change it
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char updates[128];
    const Message model = model_with_number(rows[i].name, rows[i].number, 0, false);
    snprintf(updates, sizeof updates, rows[i].is_trained ? "w: w.next, %s: %s.next, " : "w: w.next, ", rows[i].name,
             rows[i].name);
    if (rows[i].is_trained && strchr(rows[i].name, ':')) // a name in quotes
      snprintf(updates, sizeof updates, "w: w.next, \"%s\": \"%s.next\", ", rows[i].name, rows[i].name);
    must_train(&model, updates, NULL);
  }
}

// Where other weights are initializers.
static void numbers_of_nodes_are_no_parameters(void **state) {
  (void)state;
  for (int rank = 0; rank <= 1; rank++) {
    const Message model = model_with_number("s", 1.5F, rank, true);
    must_train(&model, "w: w.next, ", NULL);
  }
}

static void tensors_of_nodes_are_parameters_under_the_names_of_their_outputs(void **state) {
  (void)state;
  Message graph = {.count = 0};
  add_constant_node(&graph, 1, "conv2d_0.w_0", 1, 2);
  add_op(&graph, 1, "Mul", (const char *[]){"x", "conv2d_0.w_0", NULL}, "y", NULL);
  add_end(&graph, 11, "x");
  add_end(&graph, 12, "y");
  const Message model = model_of(&graph, NULL);
  must_train(&model, "conv2d_0.w_0: conv2d_0.w_0.next, ", NULL);
}

// f(a) = a * w, called twice.
static void a_weight_in_a_function_is_one_parameter(void **state) {
  (void)state;
  Message function = {.count = 0}, graph = {.count = 0}, node = {.count = 0};
  add_text(&function, 1, "f");
  add_text(&function, 4, "a");
  add_text(&function, 5, "b");
  add_constant_node(&function, 7, "w", 1, 2);
  add_op(&function, 7, "Mul", (const char *[]){"a", "w", NULL}, "b", NULL);
  add_text(&function, 10, "my");
  for (int i = 0; i < 2; i++) {
    node.count = 0;
    add_text(&node, 1, i ? "h" : "x");
    add_text(&node, 2, i ? "y" : "h");
    add_text(&node, 4, "f");
    add_text(&node, 7, "my");
    add_message(&graph, 1, &node);
  }
  add_end(&graph, 11, "x");
  add_end(&graph, 12, "y");
  const Message model = model_of(&graph, &function);
  must_train(&model, "w: w.next, ", NULL);
}

// Weights are not folded, but known where a shape is computed from them: y = Expand(x, Cast(w + w)).
static void shapes_are_computed_from_weights(void **state) {
  (void)state;
  Message graph = {.count = 0}, to = {.count = 0};
  add_text(&to, 1, "to");
  add_number(&to, 3, 7);
  add_number(&to, 20, 2);
  add_initializer(&graph, "half", 1, 1.5F);
  add_initializer(&graph, "w", 1, 1);
  add_op(&graph, 1, "Add", (const char *[]){"half", "half", NULL}, "sum", NULL);
  add_op(&graph, 1, "Cast", (const char *[]){"sum", NULL}, "shape", &to);
  add_op(&graph, 1, "Mul", (const char *[]){"x", "w", NULL}, "h", NULL);
  add_op(&graph, 1, "Expand", (const char *[]){"h", "shape", NULL}, "y", NULL);
  add_end(&graph, 11, "x");
  Message info = {.count = 0};
  add_text(&info, 1, "y");
  add_message(&graph, 12, &info);
  const Message model = model_of(&graph, NULL);
  must_train(&model, "w: w.next, ", NULL);
}

// y = Where(mask == 0, far, x * w) and a constant that is not used for y.
static void constants_without_gradient_are_told_in_one_line(void **state) {
  (void)state;
  Message graph = {.count = 0};
  add_initializer(&graph, "mask", 1, 0);
  add_initializer(&graph, "zero", 1, 0);
  add_initializer(&graph, "unused", 1, 0);
  add_initializer(&graph, "w", 1, 2);
  add_op(&graph, 1, "Equal", (const char *[]){"mask", "zero", NULL}, "is_masked", NULL);
  add_op(&graph, 1, "Mul", (const char *[]){"x", "w", NULL}, "h", NULL);
  add_op(&graph, 1, "Where", (const char *[]){"is_masked", "x", "h", NULL}, "y", NULL);
  add_op(&graph, 1, "Mul", (const char *[]){"x", "unused", NULL}, "z", NULL);
  add_end(&graph, 11, "x");
  add_end(&graph, 12, "y");
  add_end(&graph, 12, "z");
  const Message model = model_of(&graph, NULL);
  must_train_for(
      &model, (const char *const[]){"mse:y"}, 1, "w: w.next, ",
      "test: constants that are not trained, as no gradient reaches them: mask (only Equal reads it), zero (only "
      "Equal reads it), unused (loss does not depend on it)");
}

// y = (x + w) * s, where s has these numbers and is, unless all are small, no parameter.
static void must_train_numbers(const float *numbers, bool is_frozen, const char *warning) {
  static const char *const frozen[] = {"s"};
  Message graph = {.count = 0}, tensor = {.count = 0};
  add_initializer(&graph, "w", 1, 1);
  add_number(&tensor, 1, 1);
  add_number(&tensor, 1, 3);
  add_number(&tensor, 2, 1);
  add_text(&tensor, 8, "s");
  add_bytes(&tensor, 9, numbers, 3 * sizeof *numbers);
  add_message(&graph, 5, &tensor);
  add_op(&graph, 1, "Add", (const char *[]){"x", "w", NULL}, "h", NULL);
  add_op(&graph, 1, "Mul", (const char *[]){"h", "s", NULL}, "y", NULL);
  add_end(&graph, 11, "x");
  add_end(&graph, 12, "y");
  const Message model = model_of(&graph, NULL);
  ng_context *ctx = new_context();
  ng_graph *g = ng_graph_read(ctx, "test.onnx", (const char *)model.bytes, model.count, NULL);
  if (!g) fail_msg("%s", ng_messages_text(ctx, 0));
  const ng_train_options options = {
      .losses = (const char *[]){"mse"}, .nlosses = 1, .freeze = frozen, .nfreeze = is_frozen ? 1 : 0};
  ng_graph *step = ng_graph_train(g, &options);
  if (!step) fail_msg("%s", ng_messages_text(ctx, 0));
  assert_string_equal(ng_graph_parameter(step, 1).name, "s");
  assert_false(ng_graph_parameter(step, 1).is_trained);
  assert_int_equal(ng_message_count(ctx), warning != NULL);
  if (warning) assert_string_equal(ng_message_at(ctx, 0).text, warning);
  ng_graph_free(step);
  ng_graph_free(g);
  ng_context_free(ctx);
}

#define TAKEN_FOR_MASK                                                                                                 \
  ", and constants with a number of 2^24 or more are taken for masks; if it is none, correct this number, otherwise "  \
  "--freeze s leaves it without a warning"

static void a_weight_with_a_huge_number_is_told(void **state) {
  (void)state;
  must_train_numbers((const float[]){0.5F, -0.25F, 3e7F}, false,
                     "s: not trained, because s[0, 2] is 3e+07" TAKEN_FOR_MASK);
  must_train_numbers((const float[]){0.5F, -INFINITY, 3e7F}, false,
                     "s: not trained, because s[0, 1] is -inf" TAKEN_FOR_MASK);
  must_train_numbers((const float[]){0.5F, NAN, 1}, false, "s: not trained, because s[0, 1] is nan" TAKEN_FOR_MASK);
  must_train_numbers((const float[]){0.5F, -0.25F, 3e7F}, true, NULL);
  must_train_numbers((const float[]){0, -INFINITY, 0}, false, NULL); // a mask
  must_train_numbers((const float[]){0, -1e9F, -1e9F}, false, NULL);
}

// Each floating-point constant is listed, with the reason why it is not trained.
static void parameters_are_listed(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int is_trained, has_decay;
    const char *why_not;
  } rows[] = {{"w", 1, 1, NULL},
              {"bias", 1, 0, NULL},
              {"frozen", 0, 0, "frozen"},
              {"mask", 0, 0, "no gradient reaches it"},
              {"far", 0, 0, "a number of it is 2^24 or more, as in a mask"},
              {"onnx::Mul_3", 0, 0, "a number of a formula"}};
  Message graph = {.count = 0};
  for (size_t i = 0; i < 4; i++) add_initializer(&graph, rows[i].name, 1, 1);
  add_initializer(&graph, rows[4].name, 1, -INFINITY);
  add_initializer(&graph, rows[5].name, 0, 2);
  add_op(&graph, 1, "Mul", (const char *[]){"x", "w", NULL}, "product", NULL);
  add_op(&graph, 1, "Add", (const char *[]){"product", "bias", NULL}, "biased", NULL);
  add_op(&graph, 1, "Max", (const char *[]){"biased", "far", NULL}, "sum", NULL);
  add_op(&graph, 1, "Add", (const char *[]){"sum", "frozen", NULL}, "all", NULL);
  add_op(&graph, 1, "Less", (const char *[]){"all", "mask", NULL}, "is_less", NULL);
  add_op(&graph, 1, "Where", (const char *[]){"is_less", "x", "all", NULL}, "chosen", NULL);
  add_op(&graph, 1, "Mul", (const char *[]){"chosen", "onnx::Mul_3", NULL}, "y", NULL);
  add_end(&graph, 11, "x");
  add_end(&graph, 12, "y");
  const Message model = model_of(&graph, NULL);
  ng_context *ctx = new_context();
  ng_graph *g = ng_graph_read(ctx, "test.onnx", (const char *)model.bytes, model.count, NULL);
  const ng_train_options options = {.losses = (const char *[]){"mse"},
                                    .nlosses = 1,
                                    .optimizer = "adamw",
                                    .freeze = (const char *[]){"fro*", "mask"},
                                    .nfreeze = 2,
                                    .no_decay = (const char *[]){"*bias"},
                                    .nno_decay = 1};
  ng_graph *step = ng_graph_train(g, &options);
  if (!step) fail_msg("%s", ng_messages_text(ctx, 0));
  assert_int_equal(ng_graph_parameter_count(g), 0);
  assert_int_equal(ng_graph_parameter_count(step), sizeof rows / sizeof *rows);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const ng_parameter p = ng_graph_parameter(step, i);
    assert_string_equal(p.name, rows[i].name);
    if (p.is_trained != rows[i].is_trained || p.has_decay != rows[i].has_decay || !p.is_constant)
      fail_msg("%s: trained %d, decay %d", p.name, p.is_trained, p.has_decay);
    assert_string_equal(p.why_not ? p.why_not : "", rows[i].why_not ? rows[i].why_not : "");
  }
  ng_graph_free(step);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// y = x * ((q - 0) * s), with q of three integers of the type; the reader folds those of 8 bits, training those of 4.
static void quantised_weights_are_parameters(void **state) {
  static const uint8_t types[] = {3, 21}, bytes[] = {0x12, 0x03, 0};
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    Message graph = {.count = 0}, q = {.count = 0};
    add_number(&q, 1, 3);
    add_number(&q, 2, types[i]);
    add_text(&q, 8, "q");
    add_bytes(&q, 9, bytes, i ? 2 : 3);
    add_message(&graph, 5, &q);
    add_initializer(&graph, "s", 0, 0.5F);
    add_op(&graph, 1, "DequantizeLinear", (const char *[]){"q", "s", NULL}, "w", NULL);
    add_op(&graph, 1, "Mul", (const char *[]){"x", "w", NULL}, "y", NULL);
    add_end(&graph, 11, "x");
    add_end(&graph, 12, "y");
    const Message model = model_of(&graph, NULL);
    must_train(&model, "w: w.next, ", NULL);
  }
}

// y = dequantised(quantised(x * w)) * v: gradients go straight through the quantisation.
static void quantised_activations_pass_gradients_on(void **state) {
  Message graph = {.count = 0};
  (void)state;
  add_initializer(&graph, "w", 1, 1);
  add_initializer(&graph, "v", 1, 2);
  add_initializer(&graph, "s", 0, 0.5F);
  add_op(&graph, 1, "Mul", (const char *[]){"x", "w", NULL}, "a", NULL);
  add_op(&graph, 1, "QuantizeLinear", (const char *[]){"a", "s", NULL}, "q", NULL);
  add_op(&graph, 1, "DequantizeLinear", (const char *[]){"q", "s", NULL}, "d", NULL);
  add_op(&graph, 1, "Mul", (const char *[]){"d", "v", NULL}, "y", NULL);
  add_end(&graph, 11, "x");
  add_end(&graph, 12, "y");
  const Message model = model_of(&graph, NULL);
  must_train(
      &model, "w: w.next, v: v.next, ",
      "RoundThrough (QuantizeLinear q (opset 17)): its gradient is that of the identity: the results change in steps");
}

// y = (quantised(x * w) . k, as floats) * v: sums of few products of integers pass gradients on, too.
static void sums_of_integers_pass_gradients_on(void **state) {
  Message graph = {.count = 0}, k = {.count = 0}, to_float = {.count = 0};
  (void)state;
  add_text(&to_float, 1, "to");
  add_number(&to_float, 3, 1);
  add_number(&to_float, 20, 2);
  add_number(&k, 1, 3);
  add_number(&k, 1, 3);
  add_number(&k, 2, 2); // u8
  add_text(&k, 8, "k");
  add_bytes(&k, 9, "\1\2\3\4\5\6\7\1\2", 9);
  add_message(&graph, 5, &k);
  add_initializer(&graph, "w", 1, 1);
  add_initializer(&graph, "v", 1, 2);
  add_initializer(&graph, "s", 0, 0.5F);
  add_op(&graph, 1, "Mul", (const char *[]){"x", "w", NULL}, "a", NULL);
  add_op(&graph, 1, "QuantizeLinear", (const char *[]){"a", "s", NULL}, "q", NULL);
  add_op(&graph, 1, "MatMulInteger", (const char *[]){"q", "k", NULL}, "m", NULL);
  add_op(&graph, 1, "Cast", (const char *[]){"m", NULL}, "f", &to_float);
  add_op(&graph, 1, "Mul", (const char *[]){"f", "v", NULL}, "y", NULL);
  add_end(&graph, 11, "x");
  add_end(&graph, 12, "y");
  const Message model = model_of(&graph, NULL);
  must_train(&model, "w: w.next, v: v.next, ",
             "RoundThrough (QuantizeLinear q (opset 17)): its gradient is that of the identity, and so is that of 1 "
             "other node: the results change in steps");
}

// c = x > w, a = x * w, b = a * v
static void losses_are_of_named_outputs(void **state) {
  Message graph = {.count = 0}, comparison = {.count = 0};
  (void)state;
  add_initializer(&graph, "w", 1, 1);
  add_initializer(&graph, "v", 1, 2);
  add_op(&graph, 1, "Greater", (const char *[]){"x", "w", NULL}, "c", NULL);
  add_op(&graph, 1, "Mul", (const char *[]){"x", "w", NULL}, "a", NULL);
  add_op(&graph, 1, "Mul", (const char *[]){"a", "v", NULL}, "b", NULL);
  add_end(&graph, 11, "x");
  add_text(&comparison, 1, "c");
  add_message(&graph, 12, &comparison);
  add_end(&graph, 12, "a");
  add_end(&graph, 12, "b");
  const Message model = model_of(&graph, NULL);
  must_train_for(&model, (const char *const[]){"mse:b"}, 1, "w: w.next, v: v.next, ", NULL);
  must_train_for(&model, (const char *const[]){"mse:a", "bce:b"}, 2, "w: w.next, v: v.next, ", NULL);
  must_train_for(&model, (const char *const[]){"mse:a"}, 1, "w: w.next, ",
                 "test: constants that are not trained, as no gradient reaches them: v (loss does not depend on it)");
}

// The first output that a gradient reaches has the loss.
static void outputs_without_a_loss_are_told(void **state) {
  Message graph = {.count = 0}, comparison = {.count = 0};
  (void)state;
  add_initializer(&graph, "w", 1, 1);
  add_op(&graph, 1, "Greater", (const char *[]){"x", "w", NULL}, "c", NULL);
  add_op(&graph, 1, "Mul", (const char *[]){"x", "w", NULL}, "a", NULL);
  add_op(&graph, 1, "Add", (const char *[]){"x", "w", NULL}, "b", NULL);
  add_op(&graph, 1, "Sub", (const char *[]){"x", "w", NULL}, "d", NULL);
  add_op(&graph, 1, "Identity", (const char *[]){"x", NULL}, "passed", NULL);
  add_end(&graph, 11, "x");
  add_end(&graph, 12, "passed");
  add_text(&comparison, 1, "c");
  add_message(&graph, 12, &comparison);
  add_end(&graph, 12, "a");
  add_end(&graph, 12, "b");
  add_end(&graph, 12, "d");
  const Message model = model_of(&graph, NULL);
  must_train(&model, "w: w.next, ",
             "test: outputs without a loss: b, d; several are named as in --loss mse:a --loss mse:d");
}

// PyTorch's exporter writes batch norms without training_mode, even of a network in training.
static void batch_norms_are_trained_if_asked(void **state) {
  static const char *const losses[] = {"mse"};
  Message graph = {.count = 0};
  (void)state;
  add_initializer(&graph, "gamma", 1, 1);
  add_initializer(&graph, "beta", 1, 0);
  add_initializer(&graph, "mean", 1, 0);
  add_initializer(&graph, "var", 1, 1);
  add_op(&graph, 1, "BatchNormalization", (const char *[]){"x", "gamma", "beta", "mean", "var", NULL}, "y", NULL);
  add_end(&graph, 11, "x");
  add_end(&graph, 12, "y");
  const Message model = model_of(&graph, NULL);
  must_train(&model, "gamma: gamma.next, beta: beta.next, ",
             "batch norms were exported for inference (1 of them): they keep their statistics; --train-batch-norms "
             "(Python: load(..., train_batch_norms=True)) takes those of each batch");
  must_train_read(&model, &(ng_read_options){.trains_batch_norms = 1}, losses, 1,
                  "gamma: gamma.next, beta: beta.next, mean: mean.next, var: var.next, ", NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(initializers_without_axes_are_parameters_by_their_names),
      cmocka_unit_test(numbers_of_nodes_are_no_parameters),
      cmocka_unit_test(tensors_of_nodes_are_parameters_under_the_names_of_their_outputs),
      cmocka_unit_test(a_weight_in_a_function_is_one_parameter),
      cmocka_unit_test(shapes_are_computed_from_weights),
      cmocka_unit_test(constants_without_gradient_are_told_in_one_line),
      cmocka_unit_test(a_weight_with_a_huge_number_is_told),
      cmocka_unit_test(parameters_are_listed),
      cmocka_unit_test(quantised_weights_are_parameters),
      cmocka_unit_test(quantised_activations_pass_gradients_on),
      cmocka_unit_test(sums_of_integers_pass_gradients_on),
      cmocka_unit_test(losses_are_of_named_outputs),
      cmocka_unit_test(outputs_without_a_loss_are_told),
      cmocka_unit_test(batch_norms_are_trained_if_asked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
