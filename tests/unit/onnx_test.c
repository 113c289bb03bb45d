// The reader of ONNX models, on models that the test writes byte by byte. tests/onnx has ONNX's own models.
#include "frontend/onnx/onnx.h"

#include "tests/unit/onnx_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void a_chain_is_a_graph(void **state) {
  (void)state;
  const Message model = chain("Relu", "Softmax");
  assert_true(reads_as(&model,
                       "format: ngrad/1\nname: test\ndims: {N: ~}\ninputs:\n"
                       "  - {name: x, type: f32, shape: [N, 3]}\nnodes:\n"
                       "  - op: ReLU\n    label: \"Relu h (opset 13)\"\n    inputs: {src: x}\n    outputs:\n"
                       "      dst: {name: h, type: f32, shape: [N, 3]}\n"
                       "  - op: SoftMax\n    label: \"Softmax y (opset 13)\"\n    inputs: {src: h}\n    outputs:\n"
                       "      dst: {name: y, type: f32, shape: [N, 3]}\n    attributes: {axis: 1, mode: none}\n"
                       "outputs: [y]\n"));
}

static void all_that_is_not_supported_is_told(void **state) {
  (void)state;
  const Message model = chain("Bernoulli", "Multinomial");
  assert_true(reads_as(&model, "test.onnx: error: Bernoulli h (opset 13): the operator is not supported\n"
                               "test.onnx: error: Multinomial y (opset 13): the operator is not supported\n"));
}

static void an_absent_input_is_told_once(void **state) {
  (void)state;
  Message graph = {.count = 0};
  add_node(&graph, "Flatten", "", "y");
  add_node(&graph, "Flatten", "", "z");
  add_value(&graph, 12, "y");
  const Message model = model_of(&graph);
  assert_true(reads_as(&model, "test.onnx: error: Flatten y (opset 13): a required input is absent\n"));
}

static void a_cycle_is_refused(void **state) {
  (void)state;
  Message graph = {.count = 0};
  add_node(&graph, "Relu", "y", "x");
  add_node(&graph, "Relu", "x", "y");
  add_value(&graph, 12, "y");
  const Message model = model_of(&graph);
  assert_true(reads_as(&model, "test.onnx: error: Relu x (opset 13): input 0, y: nothing before the node makes it\n"));
}

static void nodes_may_stand_behind_their_readers(void **state) {
  (void)state;
  Message graph = {.count = 0};
  add_node(&graph, "Neg", "b", "y");
  add_node(&graph, "Abs", "a", "b");
  add_node(&graph, "Relu", "x", "a");
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "y");
  const Message model = model_of(&graph);
  assert_true(reads_as(&model, "format: ngrad/1\nname: test\ndims: {N: ~}\ninputs:\n"
                               "  - {name: x, type: f32, shape: [N, 3]}\nnodes:\n"
                               "  - op: ReLU\n    label: \"Relu a (opset 13)\"\n    inputs: {src: x}\n    outputs:\n"
                               "      dst: {name: a, type: f32, shape: [N, 3]}\n"
                               "  - op: Abs\n    label: \"Abs b (opset 13)\"\n    inputs: {src: a}\n    outputs:\n"
                               "      dst: {name: b, type: f32, shape: [N, 3]}\n"
                               "  - op: Neg\n    label: \"Neg y (opset 13)\"\n    inputs: {src: b}\n    outputs:\n"
                               "      dst: {name: y, type: f32, shape: [N, 3]}\n"
                               "outputs: [y]\n"));
}

static void an_output_may_be_there_twice(void **state) {
  (void)state;
  Message graph = lone_node("Relu");
  add_value(&graph, 12, "y");
  const Message model = model_of(&graph);
  assert_true(reads_as(&model, "format: ngrad/1\nname: test\ndims: {N: ~}\ninputs:\n"
                               "  - {name: x, type: f32, shape: [N, 3]}\nnodes:\n"
                               "  - op: ReLU\n    label: \"Relu y (opset 13)\"\n    inputs: {src: x}\n    outputs:\n"
                               "      dst: {name: y, type: f32, shape: [N, 3]}\n"
                               "  - op: StaticReshape\n    inputs: {src: y}\n    outputs:\n"
                               "      dst: {name: onnx_3, type: f32, shape: [N, 3]}\n"
                               "    attributes: {shape: [0, 0], special_zero: true}\noutputs: [y, onnx_3]\n"));
}

// Nodes with attributes

// f(a) = op(a) with alpha f's attribute slope, in the domain "my".
static Message function_of(const char *domain, const char *op) {
  Message function = {.count = 0};
  const Message alpha = float_attribute("alpha", 0, "slope");
  add_text(&function, 1, "f");
  add_text(&function, 4, "a");
  add_text(&function, 5, "b");
  add_node_with(&function, 7, domain, op, "a", "b", &alpha, 1);
  add_text(&function, 10, "my");
  return function;
}

static Message model_with_function(const Message *function) {
  Message graph = {.count = 0};
  const Message slope = float_attribute("slope", 0.25F, NULL);
  add_node_with(&graph, 1, "my", "f", "x", "h", &slope, 1);
  add_node_with(&graph, 1, "my", "f", "h", "y", &slope, 1);
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "y");
  Message model = model_of(&graph);
  add_message(&model, 25, function);
  return model;
}

static void operators_of_ours_need_their_outputs(void **state) {
  (void)state;
  Message graph = {.count = 0};
  add_node_with(&graph, 1, "ngrad", "Square", "x", "", NULL, 0);
  add_node(&graph, "Relu", "x", "y");
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "y");
  const Message model = model_of(&graph);
  assert_true(reads_as(&model, "test.onnx: error: Square ? (opset 13): missing output dst\n"));
}

static void a_function_takes_the_attributes_of_its_calls(void **state) {
  (void)state;
  const Message function = function_of("", "LeakyRelu"), model = model_with_function(&function);
  assert_true(reads_as(&model,
                       "format: ngrad/1\nname: test\ndims: {N: ~}\ninputs:\n"
                       "  - {name: x, type: f32, shape: [N, 3]}\nnodes:\n"
                       "  - op: LeakyReLU\n    label: \"LeakyRelu b (opset 13)\"\n    inputs: {src: x}\n    outputs:\n"
                       "      dst: {name: b, type: f32, shape: [N, 3]}\n    attributes: {alpha: 0.25}\n"
                       "  - op: LeakyReLU\n    label: \"LeakyRelu b (opset 13)\"\n    inputs: {src: b}\n    outputs:\n"
                       "      dst: {name: y, type: f32, shape: [N, 3]}\n    attributes: {alpha: 0.25}\n"
                       "outputs: [y]\n"));
}

static void a_function_has_defaults_of_its_attributes(void **state) {
  (void)state;
  const Message slope = float_attribute("slope", 0.5F, NULL);
  Message function = function_of("", "LeakyRelu"), graph = {.count = 0};
  add_message(&function, 11, &slope);
  add_node_with(&graph, 1, "my", "f", "x", "y", NULL, 0);
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "y");
  Message model = model_of(&graph);
  add_message(&model, 25, &function);
  assert_true(reads_as(&model,
                       "format: ngrad/1\nname: test\ndims: {N: ~}\ninputs:\n"
                       "  - {name: x, type: f32, shape: [N, 3]}\nnodes:\n"
                       "  - op: LeakyReLU\n    label: \"LeakyRelu b (opset 13)\"\n    inputs: {src: x}\n    outputs:\n"
                       "      dst: {name: y, type: f32, shape: [N, 3]}\n    attributes: {alpha: 0.5}\noutputs: [y]\n"));
}

// Each call of the function makes a value of the output's name.
static void an_output_has_the_models_name(void **state) {
  (void)state;
  Message function = {.count = 0};
  add_text(&function, 1, "f");
  add_text(&function, 4, "x");
  add_text(&function, 5, "y");
  add_node_with(&function, 7, "", "Relu", "x", "y", NULL, 0);
  add_text(&function, 10, "my");
  const Message model = model_with_function(&function);
  assert_true(reads_as(&model, "format: ngrad/1\nname: test\ndims: {N: ~}\ninputs:\n"
                               "  - {name: x, type: f32, shape: [N, 3]}\nnodes:\n"
                               "  - op: ReLU\n    label: \"Relu y (opset 13)\"\n    inputs: {src: x}\n    outputs:\n"
                               "      dst: {name: y_4, type: f32, shape: [N, 3]}\n"
                               "  - op: ReLU\n    label: \"Relu y (opset 13)\"\n    inputs: {src: y_4}\n    outputs:\n"
                               "      dst: {name: y, type: f32, shape: [N, 3]}\noutputs: [y]\n"));
}

static void a_function_that_calls_itself_is_refused(void **state) {
  (void)state;
  const Message function = function_of("my", "f"), model = model_with_function(&function);
  assert_true(
      reads_as(&model, "test.onnx: error: f b (opset 13): functions, branches and loops are nested deeper than 32\n"));
}

static void a_type_was_a_name_before_opset_6(void **state) {
  static const float numbers[] = {1.5F, -2.5F};
  Message graph = {.count = 0}, output = {.count = 0}, to = {.count = 0};
  (void)state;
  add_text(&to, 1, "to");
  add_text(&to, 4, "INT64");
  add_floats(&graph, "c", numbers, 2);
  add_node_with(&graph, 1, "", "Cast", "c", "y", &to, 1);
  add_text(&output, 1, "y");
  add_message(&graph, 12, &output);
  const Message model = model_of_opset(&graph, 5);
  assert_true(computes(&model, (const double[]){1, -2}, 2));
}

// Before opset 13 the axes from `axis` on, which is 1 unless said, are one axis; the axes before it stay, and may have
// names.
static void softmax_keeps_named_extents(void **state) {
  static const uint8_t last[] = {2, 3};
  static const char *const flat[] = {"[N, 3]", "[N, 3, 1]"}, *const as[] = {"[0, 3]", "[0, 3, 1]"};
  const Message axes = list_attribute("axes", last, 2);
  (void)state;
  for (int axis = 1; axis <= 2; axis++) {
    char expected[2000];
    const Message said = int_attribute("axis", (uint8_t)axis);
    Message graph = {.count = 0};
    add_node_with(&graph, 1, "", "Unsqueeze", "x", "h", &axes, 1);
    add_node_with(&graph, 1, "", "Softmax", "h", "y", &said, axis == 1 ? 0 : 1);
    add_value(&graph, 11, "x");
    add_output(&graph, "y");
    const Message model = model_of_opset(&graph, 12);
    snprintf(expected, sizeof expected,
             "format: ngrad/1\nname: test\ndims: {N: ~}\ninputs:\n  - {name: x, type: f32, shape: [N, 3]}\nnodes:\n"
             "  - op: StaticReshape\n    label: \"Unsqueeze h (opset 12)\"\n    inputs: {src: x}\n    outputs:\n"
             "      dst: {name: h, type: f32, shape: [N, 3, 1, 1]}\n"
             "    attributes: {shape: [0, 3, 1, 1], special_zero: true}\n"
             "  - op: StaticReshape\n    label: \"Softmax y (opset 12)\"\n    inputs: {src: h}\n    outputs:\n"
             "      dst: {name: onnx_3, type: f32, shape: %s}\n    attributes: {shape: %s, special_zero: true}\n"
             "  - op: SoftMax\n    label: \"Softmax y (opset 12)\"\n    inputs: {src: onnx_3}\n    outputs:\n"
             "      dst: {name: onnx_4, type: f32, shape: %s}\n    attributes: {axis: %d, mode: none}\n"
             "  - op: StaticReshape\n    label: \"Softmax y (opset 12)\"\n    inputs: {src: onnx_4}\n    outputs:\n"
             "      dst: {name: y, type: f32, shape: [N, 3, 1, 1]}\n"
             "    attributes: {shape: [0, 3, 1, 1], special_zero: true}\noutputs: [y]\n",
             flat[axis - 1], as[axis - 1], flat[axis - 1], axis);
    assert_true(reads_as(&model, expected));
  }
}

static void a_split_covers_the_axis(void **state) {
  (void)state;
  const float numbers[] = {1, 2, 3};
  const uint8_t two[] = {2}, axis = 2;
  const Message attributes[] = {list_attribute("split", two, 1), int_attribute("axis", axis)};
  Message model = model_of_floats("Split", numbers, 3, attributes, 2);
  model.bytes[5] = 11;
  assert_true(reads_as(&model, "test.onnx: error: Split y (opset 11): split: expected 1 numbers that add up to 3\n"));
}

static void add_branch(Message *node, const char *name, const char *op) {
  Message branch = {.count = 0}, output = {.count = 0}, attribute = {.count = 0};
  add_node_with(&branch, 1, "", op, "x", "z", NULL, 0);
  add_text(&output, 1, "z");
  add_message(&branch, 12, &output);
  add_text(&attribute, 1, name);
  add_message(&attribute, 6, &branch);
  add_message(node, 5, &attribute);
}

static void a_known_condition_chooses_a_branch(void **state) {
  (void)state;
  for (int64_t condition = 0; condition < 2; condition++) {
    Message graph = {.count = 0}, node = {.count = 0};
    add_ints(&graph, "c", condition);
    add_text(&node, 1, "c");
    add_text(&node, 2, "y");
    add_text(&node, 4, "If");
    add_branch(&node, "then_branch", "Relu");
    add_branch(&node, "else_branch", "Tanh");
    add_message(&graph, 1, &node);
    add_value(&graph, 11, "x");
    add_value(&graph, 12, "y");
    const Message model = model_of(&graph);
    char expected[512];
    snprintf(expected, sizeof expected,
             "format: ngrad/1\nname: test\ndims: {N: ~}\ninputs:\n  - {name: x, type: f32, shape: [N, 3]}\nnodes:\n"
             "  - op: %s\n    label: \"%s z (opset 13)\"\n    inputs: {src: x}\n    outputs:\n"
             "      dst: {name: y, type: f32, shape: [N, 3]}\noutputs: [y]\n",
             condition ? "ReLU" : "Tanh", condition ? "Relu" : "Tanh");
    assert_true(reads_as(&model, expected));
  }
}

// x [N, 3]; the condition is whether s is NaN.
static Message model_of_computed_condition(const char *otherwise) {
  Message graph = {.count = 0}, node = {.count = 0}, one = {.count = 0};
  add_number(&one, 1, 1);
  add_node(&graph, "IsNaN", "s", "c");
  add_text(&node, 1, "c");
  add_text(&node, 2, "y");
  add_text(&node, 4, "If");
  add_branch(&node, "then_branch", "Relu");
  add_branch(&node, "else_branch", otherwise);
  add_message(&graph, 1, &node);
  add_value_of(&graph, 11, "s", &one, &one);
  add_value(&graph, 11, "x");
  add_output(&graph, "y");
  return model_of(&graph);
}

static void a_computed_condition_chooses_between_results(void **state) {
  (void)state;
  const Message model = model_of_computed_condition("Tanh"), others = model_of_computed_condition("Transpose");
  assert_true(reads_as(&model, "format: ngrad/1\nname: test\ndims: {N: ~}\n"
                               "inputs:\n"
                               "  - {name: s, type: f32, shape: [1, 1]}\n"
                               "  - {name: x, type: f32, shape: [N, 3]}\n"
                               "nodes:\n"
                               "  - op: NotEqual\n    label: \"IsNaN c (opset 13)\"\n"
                               "    inputs: {src_0: s, src_1: s}\n    outputs:\n"
                               "      dst: {name: c, type: boolean, shape: [1, 1]}\n"
                               "    attributes: {auto_broadcast: numpy}\n"
                               "  - op: ReLU\n    label: \"Relu z (opset 13)\"\n    inputs: {src: x}\n    outputs:\n"
                               "      dst: {name: z, type: f32, shape: [N, 3]}\n"
                               "  - op: Tanh\n    label: \"Tanh z (opset 13)\"\n    inputs: {src: x}\n    outputs:\n"
                               "      dst: {name: z_8, type: f32, shape: [N, 3]}\n"
                               "  - op: StaticReshape\n    label: \"If y (opset 13)\"\n    inputs: {src: c}\n"
                               "    outputs:\n      dst: {name: onnx_6, type: boolean, shape: []}\n"
                               "    attributes: {shape: [], special_zero: false}\n"
                               "  - op: Select\n    label: \"If y (opset 13)\"\n"
                               "    inputs: {cond: onnx_6, src_0: z, src_1: z_8}\n    outputs:\n"
                               "      dst: {name: y, type: f32, shape: [N, 3]}\n"
                               "    attributes: {auto_broadcast: numpy}\noutputs: [y]\n"));
  assert_true(reads_as(&others, "test.onnx: error: If y (opset 13): the input s must be known when the model is read: "
                                "--constant s=FILE, of .npy or .pb\n"));
}

// Sums so far, from 10 on, of 1, 2, 3, forwards and backwards.
static Message model_of_scan(const char *result, bool is_backwards) {
  static const float ten = 10, numbers[] = {1, 2, 3};
  static const char *const names[] = {"s", "e", "t", "u"};
  Message body = {.count = 0}, add = {.count = 0}, graph = {.count = 0}, node = {.count = 0}, attribute = {.count = 0};
  const uint8_t axis = 2, backwards = is_backwards;
  const Message attributes[] = {int_attribute("num_scan_inputs", 1), list_attribute("scan_input_axes", &axis, 1),
                                list_attribute("scan_output_directions", &backwards, 1),
                                list_attribute("scan_output_axes", &axis, 1)};
  add_text(&add, 1, "s");
  add_text(&add, 1, "e");
  add_text(&add, 2, "t");
  add_text(&add, 4, "Add");
  add_message(&body, 1, &add);
  add_node(&body, "Identity", "t", "u");
  for (int i = 0; i < 2; i++) {
    Message info = {.count = 0};
    add_text(&info, 1, names[i]);
    add_message(&body, 11, &info);
    add_output(&body, names[i + 2]);
  }
  add_floats(&graph, "x", &ten, 1);
  add_floats(&graph, "all", numbers, 3);
  add_text(&node, 1, "x");
  add_text(&node, 1, "all");
  add_text(&node, 2, "last");
  add_text(&node, 2, "sums");
  add_text(&node, 4, "Scan");
  add_text(&attribute, 1, "body");
  add_message(&attribute, 6, &body);
  add_message(&node, 5, &attribute);
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) add_message(&node, 5, &attributes[i]);
  add_message(&graph, 1, &node);
  add_output(&graph, result);
  return model_of(&graph);
}

static void scans_become_their_steps(void **state) {
  (void)state;
  const Message last = model_of_scan("last", false), sums = model_of_scan("sums", false),
                backwards = model_of_scan("sums", true);
  assert_true(computes(&last, (const double[]){16}, 1));
  assert_true(computes(&sums, (const double[]){11, 13, 16}, 3));
  assert_true(computes(&backwards, (const double[]){16, 13, 11}, 3));
}

// Reshape(x, [Shape(x)[0], -1]), as torch.onnx.export writes it, and [Shape(x)[0] * 3], which is the remaining extent.
static void named_extents_flow_into_reshape(void **state) {
  (void)state;
  for (int is_product = 0; is_product < 2; is_product++) {
    Message graph = {.count = 0}, take = {.count = 0}, join = {.count = 0}, shape = {.count = 0};
    add_ints(&graph, "first", 0);
    add_ints(&graph, "more", is_product ? 3 : -1);
    add_node(&graph, "Shape", "x", "s");
    add_text(&take, 1, "s");
    add_text(&take, 1, "first");
    add_text(&take, 2, "n");
    add_text(&take, 4, "Gather");
    add_message(&graph, 1, &take);
    add_text(&join, 1, "n");
    add_text(&join, 1, "more");
    add_text(&join, 2, "to");
    add_text(&join, 4, is_product ? "Mul" : "Concat");
    Message axis = {.count = 0};
    add_text(&axis, 1, "axis");
    add_number(&axis, 3, 0);
    add_message(&join, 5, &axis);
    add_message(&graph, 1, &join);
    add_text(&shape, 1, "x");
    add_text(&shape, 1, "to");
    add_text(&shape, 2, "y");
    add_text(&shape, 4, "Reshape");
    add_message(&graph, 1, &shape);
    add_value(&graph, 11, "x");
    add_output(&graph, "y");
    const Message model = model_of(&graph);
    char expected[640];
    snprintf(
        expected, sizeof expected,
        "format: ngrad/1\nname: test\ndims: {N: ~}\ninputs:\n  - {name: x, type: f32, shape: [N, 3]}\nnodes:\n"
        "  - op: StaticReshape\n    label: \"Reshape y (opset 13)\"\n    inputs: {src: x}\n    outputs:\n"
        "      dst: {name: y, type: f32, shape: %s}\n    attributes: {shape: %s, special_zero: %s}\noutputs: [y]\n",
        is_product ? "[3 * N]" : "[N, 3]", is_product ? "[-1]" : "[0, -1]", is_product ? "false" : "true");
    assert_true(reads_as(&model, expected));
  }
}

// The body doubles a, and goes on while the iteration is below 2 or, if it only counts, always.
static Message body_of_loop(bool only_counts) {
  static const char *const inputs[] = {"i", "go", "a"}, *const outputs[] = {"on", "b", "a"};
  Message body = {.count = 0}, add = {.count = 0}, condition = {.count = 0};
  for (int i = 0; i < 2; i++) add_text(&add, 1, "a");
  add_text(&add, 2, "b");
  add_text(&add, 4, "Add");
  add_message(&body, 1, &add);
  add_text(&condition, 1, only_counts ? "go" : "i");
  if (!only_counts) add_text(&condition, 1, "two");
  add_text(&condition, 2, "on");
  add_text(&condition, 4, only_counts ? "Identity" : "Less");
  add_message(&body, 1, &condition);
  for (int i = 0; i < 3; i++) {
    Message info = {.count = 0};
    add_text(&info, 1, inputs[i]);
    add_message(&body, 11, &info);
    add_output(&body, outputs[i]);
  }
  return body;
}

static Message model_of_loop(const char *count, bool only_counts, const char *result) {
  static const float one = 1;
  const Message body = body_of_loop(only_counts);
  Message graph = {.count = 0}, node = {.count = 0}, attribute = {.count = 0};
  add_floats(&graph, "x", &one, 1);
  add_ints(&graph, "zero", 0);
  add_ints(&graph, "two", 2);
  add_ints(&graph, "three", 3);
  add_text(&node, 1, count);
  add_text(&node, 1, "");
  add_text(&node, 1, "x");
  add_text(&node, 2, "y");
  add_text(&node, 2, "all");
  add_text(&node, 4, "Loop");
  add_text(&attribute, 1, "body");
  add_message(&attribute, 6, &body);
  add_message(&node, 5, &attribute);
  add_message(&graph, 1, &node);
  add_output(&graph, result);
  return model_of(&graph);
}

static void loops_become_their_iterations(void **state) {
  (void)state;
  for (int only_counts = 0; only_counts < 2; only_counts++) {
    const char *count = only_counts ? "three" : "";
    const Message last = model_of_loop(count, only_counts, "y"), all = model_of_loop(count, only_counts, "all");
    assert_true(computes(&last, (const double[]){8}, 1));
    assert_true(computes(&all, (const double[]){1, 2, 4}, 3));
  }
  const Message initial = model_of_loop("zero", true, "y"), nothing = model_of_loop("zero", true, "all");
  assert_true(computes(&initial, (const double[]){1}, 1));
  assert_true(reads_as(&nothing, "format: ngrad/1\n"
                                 "name: test\n"
                                 "constants:\n"
                                 "  - {name: onnx_9, type: f32, shape: [0, 1, 1, 1], value: 0.0}\n"
                                 "nodes:\n"
                                 "  - op: StaticReshape\n"
                                 "    inputs: {src: onnx_9}\n"
                                 "    outputs:\n"
                                 "      dst: {name: all, type: f32, shape: [0, 1, 1, 1]}\n"
                                 "    attributes: {shape: [0, 0, 0, 0], special_zero: true}\n"
                                 "outputs: [all]\n"));
  const Message endless = model_of_loop("", true, "y");
  assert_true(reads_as(&endless, "test.onnx: error: Loop y (opset 13): loops of more than 4096 iterations are not "
                                 "supported\n"));
}

static void add_sequence_node(Message *graph, const char *op, const char *const *inputs, const char *output) {
  const Message axis = int_attribute("axis", 2);
  Message node = {.count = 0};
  for (; *inputs; inputs++) add_text(&node, 1, *inputs);
  add_text(&node, 2, output);
  add_text(&node, 4, op);
  if (strstr(op, "To") || strstr(op, "From")) add_message(&node, 5, &axis);
  add_message(graph, 1, &node);
}

// In front of 1, 2, 3, 4 stands the last of them; then the last but one goes.
static void sequences_are_lists(void **state) {
  static const float numbers[] = {1, 2, 3, 4};
  Message graph = {.count = 0};
  (void)state;
  add_floats(&graph, "c", numbers, 4);
  add_ints(&graph, "first", 0);
  add_ints(&graph, "last", -1);
  add_ints(&graph, "before", -2);
  add_sequence_node(&graph, "SplitToSequence", (const char *[]){"c", NULL}, "s");
  add_sequence_node(&graph, "SequenceAt", (const char *[]){"s", "last", NULL}, "v");
  add_sequence_node(&graph, "SequenceInsert", (const char *[]){"s", "v", "first", NULL}, "t");
  add_sequence_node(&graph, "SequenceErase", (const char *[]){"t", "before", NULL}, "u");
  add_sequence_node(&graph, "SequenceInsert", (const char *[]){"u", "v", "last", NULL}, "w");
  add_sequence_node(&graph, "ConcatFromSequence", (const char *[]){"w", NULL}, "y");
  add_output(&graph, "y");
  const Message model = model_of(&graph);
  assert_true(computes(&model, (const double[]){4, 1, 2, 4, 4}, 5));
}

// External data

static Message model_with_file(const char *location, const char *offset, const char *length) {
  Message graph = {.count = 0}, tensor = {.count = 0}, node = {.count = 0};
  const char *const entries[][2] = {{"location", location}, {"offset", offset}, {"length", length}};
  add_number(&tensor, 1, 3);
  add_number(&tensor, 2, 1);
  add_text(&tensor, 8, "w");
  for (size_t i = 0; i < 3; i++) {
    Message entry = {.count = 0};
    add_text(&entry, 1, entries[i][0]);
    add_text(&entry, 2, entries[i][1]);
    add_message(&tensor, 13, &entry);
  }
  add_number(&tensor, 14, 1);
  add_message(&graph, 5, &tensor);
  add_text(&node, 1, "x");
  add_text(&node, 1, "w");
  add_text(&node, 2, "y");
  add_text(&node, 4, "Add");
  add_message(&graph, 1, &node);
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "y");
  return model_of(&graph);
}

static void check_external(const char *folder, const char *location, const char *offset, const char *length,
                           const char *wanted) {
  Diagnostics d;
  Text text;
  const Message model = model_with_file(location, offset, length);
  diagnostics_init(&d, &system_allocator);
  text_init(&text, &system_allocator);
  Graph *g = onnx_read(&system_allocator, "test.onnx", (Bytes){model.bytes, model.count},
                       &(ReadSettings){.folder = folder}, &d);
  if (g) yaml_print(g, &text);
  else diagnostics_print(&d, &text, false);
  if (!strstr(text_string(&text), wanted))
    fail_msg("expected the text\n%s\nin the graph\n%s", wanted, text_string(&text));
  graph_free(g);
  text_deinit(&text);
  diagnostics_deinit(&d);
}

static void external_data_are_below_the_folder(void **state) {
  (void)state;
  char folder[] = "/tmp/ngrad-onnx-XXXXXX", path[128], link[128];
  const float numbers[] = {9, 1, 2, 3};
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/w.bin", folder);
  snprintf(link, sizeof link, "%s/link", folder);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(numbers, sizeof *numbers, 4, file), 4);
  fclose(file);
  assert_int_equal(symlink("/etc/passwd", link), 0);
  check_external(folder, "w.bin", "4", "12", "values: [1.0, 2.0, 3.0]");
  check_external(folder, "w.bin", "8", "12",
                 "w: external data: w.bin: expected 12 bytes from 8 on, found a file of 16");
  check_external(folder, "w.bin", "0", "16", "expected 3 elements of 4 bytes, found 16 bytes");
  check_external(folder, "w.bin", "18446744073709551615", "12", "expected offset and length to be decimal numbers");
  check_external(folder, "w.bin", "9223372036854775807", "12", "found a file of 16");
  check_external(folder, "../w.bin", "0", "12", "expected a path below the graph's folder, without ..");
  check_external(folder, path, "0", "12", "expected a path below the graph's folder, without ..");
  check_external(folder, "link", "0", "12", "a link that leaves the graph's folder");
  check_external(folder, "none", "0", "12", "w: external data: none: no such file");
  check_external(folder, ".", "0", "12", "expected a regular file, found a folder");
  check_external(NULL, "w.bin", "0", "12", "a graph that is not read from a file cannot name files");
  unlink(path);
  unlink(link);
  rmdir(folder);
}

// A constant whose shape has a named extent has no number of elements; operators that need its elements report it.
static void a_constant_without_a_length_is_refused(void **state) {
  static const struct {
    const char *op;
    int input; // where the constant stands
  } rows[] = {{"Resize", 2}, {"Upsample", 1}, {"NonZero", 0}, {"Compress", 1}, {"Reshape", 1}, {"Expand", 1}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Message graph = {.count = 0}, node = {.count = 0};
    char expected[200];
    add_value(&graph, 11, "x");
    Message start = int_attribute("start", 0), end = int_attribute("end", 1), ends[] = {start, end};
    add_node_with(&graph, 1, "", "Shape", "x", "n", ends, 2);
    add_node(&graph, "ConstantOfShape", "n", "c");
    for (int k = 0; k < rows[i].input; k++) add_text(&node, 1, k == 0 ? "x" : "");
    add_text(&node, 1, "c");
    add_text(&node, 2, "y");
    add_text(&node, 4, rows[i].op);
    add_message(&graph, 1, &node);
    add_value(&graph, 12, "y");
    snprintf(
        expected, sizeof expected,
        "test.onnx: error: %s y (opset 15): expected a number as the input's extent 0, found N: give it one, as in "
        "--dim N=1\n",
        rows[i].op);
    const Message model = model_of_opset(&graph, 15);
    assert_true(reads_as(&model, expected));
  }
}

// A tensor of a type of ONNX's with up to 3 extents, 0 behind the last.
static void add_input(Message *graph, const char *name, uint8_t element_type, const uint8_t extents[3]) {
  Message shape = {.count = 0}, tensor = {.count = 0}, type = {.count = 0}, info = {.count = 0};
  for (int i = 0; i < 3 && extents[i]; i++) {
    Message extent = {.count = 0};
    add_number(&extent, 1, extents[i]);
    add_message(&shape, 1, &extent);
  }
  add_number(&tensor, 1, element_type);
  add_message(&tensor, 2, &shape);
  add_message(&type, 1, &tensor);
  add_text(&info, 1, name);
  add_message(&info, 2, &type);
  add_message(graph, 11, &info);
}

static void extents_have_names_in(const char *const *names, const char *const *expected, size_t count, size_t ndims) {
  Message graph = {.count = 0}, shape = {.count = 0}, tensor = {.count = 0}, type = {.count = 0}, info = {.count = 0};
  for (size_t i = 0; i < count; i++) {
    Message extent = {.count = 0};
    add_text(&extent, 2, names[i]);
    add_message(&shape, 1, &extent);
  }
  add_number(&tensor, 1, 1);
  add_message(&tensor, 2, &shape);
  add_message(&type, 1, &tensor);
  add_text(&info, 1, "x");
  add_message(&info, 2, &type);
  add_message(&graph, 11, &info);
  add_node(&graph, "Abs", "x", "y");
  Message output = {.count = 0};
  add_text(&output, 1, "y");
  add_message(&graph, 12, &output);
  const Message model = model_of_opset(&graph, 14);
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g =
      onnx_read(&system_allocator, "test.onnx", (Bytes){model.bytes, model.count}, &(ReadSettings){.folder = NULL}, &d);
  if (!g) fail_msg("%s", d.count ? d.items[0].message : "out of memory");
  for (size_t i = 0; g && i < count; i++) assert_string_equal(g->inputs[0]->shape.extent[i].dim->name, expected[i]);
  if (g) assert_int_equal(g->ndims, ndims);
  graph_free(g);
  diagnostics_deinit(&d);
}

// Names of extents that are not ASCII stay distinct, and take no name from others.
static void extents_have_names(void **state) {
  static const char *const names[] = {"\xCE\xB1", "dim_1", "_", "%CE%B1", "\xCE\xB1"};
  static const char *const expected[] = {"%CE%B1", "dim_1", "%5F", "%CE%B1%", "%CE%B1"};
  (void)state;
  extents_have_names_in(names, expected, 5, 4);
}

// Formulas of names, also as PyTorch writes products.
static void extents_are_formulas(void **state) {
  static const char *const names[] = {"N", "T", "2*N + 1", "N*T", "2 * T", "N*b", "N**2"};
  static const char *const expected[] = {"N", "T", "2 * N + 1", "N * T", "2 * T", "N*b", "N**2"};
  (void)state;
  extents_have_names_in(names, expected, 7, 4);
}

// The memory behind the only step cannot be chosen from the one before it, which is of another type.
static void a_memory_of_another_type_is_refused(void **state) {
  enum { F32 = 1, S32 = 6, BF16 = 16 };
  static const char *const names[] = {"x", "w", "r", "", "lengths", "", "c"};
  (void)state;
  Message graph = {.count = 0}, node = {.count = 0};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) add_text(&node, 1, names[i]);
  add_text(&node, 2, "y");
  add_text(&node, 4, "LSTM");
  add_message(&graph, 1, &node);
  add_input(&graph, "x", F32, (const uint8_t[]){1, 2, 4});
  add_input(&graph, "w", F32, (const uint8_t[]){1, 12, 4});
  add_input(&graph, "r", F32, (const uint8_t[]){1, 12, 3});
  add_input(&graph, "lengths", S32, (const uint8_t[]){2, 0, 0});
  add_input(&graph, "c", BF16, (const uint8_t[]){1, 2, 3});
  add_value(&graph, 12, "y");
  const Message model = model_of_opset(&graph, 14);
  assert_true(reads_as(
      &model, "test.onnx: error: Select (LSTM y (opset 14)): onnx_29 is f32 and onnx_16 is bf16: expected one type\n"));
}

// Attributes near the ends of integers.
static void lengths_out_of_all_range_are_refused(void **state) {
  static const struct {
    const char *op, *attribute;
    size_t bits;
    const char *message;
  } rows[] = {
      {"LRN", "size", (size_t)1 << 63, "test.onnx: error: LRN y (opset 13): size: expected 1 to 256\n"},
      {"DepthToSpace", "blocksize", SIZE_MAX >> 1,
       "test.onnx: error: DepthToSpace y (opset 13): expected an image of 4 axes, and a blocksize of 1 to 32768\n"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Message graph = {.count = 0}, attribute = {.count = 0};
    add_text(&attribute, 1, rows[i].attribute);
    add_varint(&attribute, 3 << 3);
    add_varint(&attribute, rows[i].bits);
    add_value(&graph, 11, "x");
    add_node_with(&graph, 1, "", rows[i].op, "x", "y", &attribute, 1);
    add_value(&graph, 12, "y");
    const Message model = model_of(&graph);
    assert_true(reads_as(&model, rows[i].message));
  }
}

// Nothing is made of rows that have no columns, however many they are.
static void a_matrix_without_columns_takes_no_time(void **state) {
  (void)state;
  Message graph = {.count = 0}, rows = {.count = 0}, columns = {.count = 0};
  add_varint(&rows, 1 << 3);
  add_varint(&rows, (size_t)1 << 39);
  add_number(&columns, 1, 0);
  add_value_of(&graph, 11, "x", &rows, &columns);
  add_node(&graph, "Trilu", "x", "y");
  add_value_of(&graph, 12, "y", &rows, &columns);
  const Message model = model_of_opset(&graph, 14);
  assert_true(reads_as(
      &model, "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [549755813888, 0]}\nnodes:\n"
              "  - op: StaticReshape\n    inputs: {src: x}\n    outputs:\n"
              "      dst: {name: y, type: f32, shape: [549755813888, 0]}\n"
              "    attributes: {shape: [0, 0], special_zero: true}\noutputs: [y]\n"));
}

// Its number would otherwise count as 0.
static void an_attribute_of_another_kind_is_refused(void **state) {
  (void)state;
  Message graph = {.count = 0}, alpha = int_attribute("alpha", 2);
  add_number(&alpha, 20, 2); // the kind
  add_node_with(&graph, 1, "", "LeakyRelu", "x", "y", &alpha, 1);
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "y");
  const Message model = model_of(&graph);
  assert_true(
      reads_as(&model, "test.onnx: error: LeakyRelu y (opset 13): alpha: expected a float, found an integer\n"));
}

// Of 300 bytes, which no file's name could have: both ends.
static void a_long_name_is_shortened(void **state) {
  char x[301], y[301];
  Message graph = {.count = 0};
  (void)state;
  memset(x, 'x', 300);
  memset(y, 'y', 300);
  x[300] = y[300] = 0;
  add_node(&graph, "Relu", x, y);
  add_value(&graph, 11, x);
  add_value(&graph, 12, y);
  const Message model = model_of(&graph);
#define ENDS(c)                                                                                                        \
  c c c c "."                                                                                                          \
          "." c c c c
#define X "xxxxxxxx"
#define Y "yyyyyyyy"
  assert_true(reads_as(
      &model, "format: ngrad/1\nname: test\ndims: {N: ~}\n"
              "inputs:\n  - {name: " ENDS(
                  X) ", type: f32, shape: [N, 3]}\n"
                     "nodes:\n  - op: ReLU\n    label: \"Relu yyyyyyyyyyyyyyyyyy..yyyyyyyyyyyyyyyyyy (opset 13)\"\n"
                     "    inputs: {src: " ENDS(X) "}\n    outputs:\n"
                                                  "      dst: {name: " ENDS(Y) ", type: f32, shape: [N, 3]}\n"
                                                                               "outputs: [" ENDS(Y) "]\n"));
#undef ENDS
#undef X
#undef Y
}

static void an_extent_of_minus_1_is_unknown(void **state) {
  Message graph = {.count = 0}, one = {.count = 0}, minus = {.count = 0};
  (void)state;
  add_number(&one, 1, 1);
  add_number(&minus, 1, UINT64_MAX);
  add_node(&graph, "Relu", "x", "y");
  add_value_of(&graph, 11, "x", &minus, &one);
  add_output(&graph, "y");
  const Message model = model_of(&graph);
  assert_true(reads_as(&model, "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [_, 1]}\n"
                               "nodes:\n  - op: ReLU\n    label: \"Relu y (opset 13)\"\n    inputs: {src: x}\n"
                               "    outputs:\n      dst: {name: y, type: f32, shape: [_, 1]}\noutputs: [y]\n"));
}

static void a_newer_opset_is_warned_of(void **state) {
  (void)state;
  const Message graph = lone_node("Relu");
  for (uint8_t opset = 28; opset <= 29; opset++) {
    const Message model = model_of_opset(&graph, opset);
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    Graph *g = onnx_read(&system_allocator, "test.onnx", (Bytes){model.bytes, model.count},
                         &(ReadSettings){.folder = NULL}, &d);
    assert_non_null(g);
    assert_int_equal(d.nwarnings, opset > 28);
    graph_free(g);
    diagnostics_deinit(&d);
  }
}

// Once for each operator; a text about the node is none of its attributes, nor is a hint of opset 1.
static void attributes_that_an_operator_lacks_are_told(void **state) {
  (void)state;
  Message graph = {.count = 0};
  const Message attributes[] = {float_attribute("alpha", 0.5F, NULL), float_attribute("slope", 0.5F, NULL),
                                float_attribute("doc_string", 0, NULL), float_attribute("consumed_inputs", 0, NULL)};
  add_value(&graph, 11, "x");
  add_node_with(&graph, 1, "", "LeakyRelu", "x", "a", attributes, 4);
  add_node_with(&graph, 1, "", "LeakyRelu", "a", "b", attributes, 2);
  add_node_with(&graph, 1, "", "Softsign", "b", "c", attributes, 1);
  add_node_with(&graph, 1, "", "RMSNormalization", "c", "d", attributes + 1, 1);
  add_value(&graph, 12, "c");
  const Message model = model_of_opset(&graph, 23);
  static const char *const told[] = {"LeakyRelu a (opset 23): the attribute slope is not known, and is ignored",
                                     "Softsign c (opset 23): the attribute alpha is not known, and is ignored",
                                     "RMSNormalization d (opset 23): the attribute slope is not known, and is ignored"};
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g =
      onnx_read(&system_allocator, "test.onnx", (Bytes){model.bytes, model.count}, &(ReadSettings){.folder = NULL}, &d);
  assert_int_equal(d.nwarnings, 3);
  for (size_t i = 0; i < 3; i++) assert_string_equal(d.items[i].message, told[i]);
  graph_free(g);
  diagnostics_deinit(&d);
}

// Cut anywhere, or with any byte changed: a graph or an error, and no byte outside of the model is read.
static void damaged_models_are_refused(void **state) {
  (void)state;
  const Message function = function_of("", "LeakyRelu"), model = model_with_function(&function);
  for (size_t i = 0; i < 2 * model.count; i++) {
    const size_t count = i < model.count ? i : model.count;
    uint8_t *bytes = malloc(count + 1); // the sanitizer knows its end
    Diagnostics d;
    assert_non_null(bytes);
    if (!bytes) return;
    memcpy(bytes, model.bytes, count);
    if (i >= model.count) bytes[i - model.count] ^= 0x55;
    diagnostics_init(&d, &system_allocator);
    Graph *g = onnx_read(&system_allocator, "test.onnx", (Bytes){bytes, count}, &(ReadSettings){.folder = NULL}, &d);
    assert_true(g ? d.nerrors == 0 : d.nerrors > 0);
    graph_free(g);
    diagnostics_deinit(&d);
    free(bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_chain_is_a_graph),
      cmocka_unit_test(all_that_is_not_supported_is_told),
      cmocka_unit_test(an_absent_input_is_told_once),
      cmocka_unit_test(a_cycle_is_refused),
      cmocka_unit_test(nodes_may_stand_behind_their_readers),
      cmocka_unit_test(lengths_out_of_all_range_are_refused),
      cmocka_unit_test(a_matrix_without_columns_takes_no_time),
      cmocka_unit_test(a_constant_without_a_length_is_refused),
      cmocka_unit_test(extents_have_names),
      cmocka_unit_test(extents_are_formulas),
      cmocka_unit_test(a_memory_of_another_type_is_refused),
      cmocka_unit_test(an_attribute_of_another_kind_is_refused),
      cmocka_unit_test(a_newer_opset_is_warned_of),
      cmocka_unit_test(attributes_that_an_operator_lacks_are_told),
      cmocka_unit_test(a_long_name_is_shortened),
      cmocka_unit_test(an_extent_of_minus_1_is_unknown),
      cmocka_unit_test(damaged_models_are_refused),
      cmocka_unit_test(an_output_may_be_there_twice),
      cmocka_unit_test(operators_of_ours_need_their_outputs),
      cmocka_unit_test(a_function_takes_the_attributes_of_its_calls),
      cmocka_unit_test(a_function_has_defaults_of_its_attributes),
      cmocka_unit_test(an_output_has_the_models_name),
      cmocka_unit_test(a_function_that_calls_itself_is_refused),
      cmocka_unit_test(a_type_was_a_name_before_opset_6),
      cmocka_unit_test(softmax_keeps_named_extents),
      cmocka_unit_test(a_split_covers_the_axis),
      cmocka_unit_test(a_known_condition_chooses_a_branch),
      cmocka_unit_test(a_computed_condition_chooses_between_results),
      cmocka_unit_test(scans_become_their_steps),
      cmocka_unit_test(named_extents_flow_into_reshape),
      cmocka_unit_test(sequences_are_lists),
      cmocka_unit_test(loops_become_their_iterations),
      cmocka_unit_test(external_data_are_below_the_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
