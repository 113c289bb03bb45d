// The reader of nGraph's JSON: each operator in all its spellings, on numbers worked out by hand, interpreted and
// compiled; messages on wrong files; damaged files. tests/ngraph has nGraph's own files.
#include "frontend/api/ngrad.h"
#include "frontend/yaml/yaml.h"

#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Operands are parameters, or constants behind a =. Results are of one operator, in their order.
typedef struct Row {
  const char *op, *attributes, *inputs, *outputs;
} Row;

#define POOL "\"window_shape\": [2], \"window_movement_strides\": [2]"
#define PADS "\"padding_below\": [1], \"padding_above\": [1]"
#define NO_PADS "\"padding_below\": [0], \"padding_above\": [0]"

static const Row rows[] = {
    {"Abs", "", "float[2] -1 2", "[2] 1 2"},
    {"Abs", "", "int32_t[2] -1 2", "[2] 1 2"},
    {"Acos", "", "float[2] 1 -1", "[2] 0 3.14159265359"},
    {"Add", "", "float[2] 1 2; float[2] 10 20", "[2] 11 22"},
    {"Add", "\"op_version\": 1, \"auto_broadcast\": {\"type\": 1, \"axis\": 0}", "float[2,1] 1 2; float[2] 10 20",
     "[2,2] 11 21 12 22"},
    {"Add", "\"element_type\": {\"c_type_string\": \"int64_t\", \"is_real\": false}", "int64_t[1] 1; int64_t[1] 2",
     "[1] 3"},
    {"And", "", "char[2] 1 0; char[2] 1 1", "[2] 1 0"},
    {"Asin", "", "float[2] 0 0.5", "[2] 0 0.52359877560"},
    {"Atan", "", "float[2] 0 -1", "[2] 0 -0.78539816340"},
    {"Ceiling", "", "int32_t[2] 1 -1", "[2] 1 -1"},
    {"Ceiling", "", "float[2] 1.25 -1.25", "[2] 2 -1"},
    {"Convert", "\"target_type\": \"int32_t\"", "float[2] 1.75 -1.75", "[2] 1 -1"},
    {"Convert", "\"target_type\": {\"c_type_string\": \"double\"}", "char[2] 1 0", "[2] 1 0"},
    {"Cosh", "", "float[2] 0 0.69314718056", "[2] 1 1.25"},
    {"Divide", "", "float[2] 1 2; float[2] 2 4", "[2] 0.5 0.5"},
    {"Divide", "", "int32_t[2] -7 7; int32_t[2] 2 2", "[2] -4 3"},
    {"Divide", "\"op_version\": 1, \"pythondiv\": false", "int32_t[2] -7 7; int32_t[2] 2 2", "[2] -3 3"},
    {"Equal", "", "float[2] 1 2; float[2] 1 3", "[2] 1 0"},
    {"Exp", "", "float[1] 0", "[1] 1"},
    {"Floor", "", "float[2] 1.25 -1.25", "[2] 1 -2"},
    {"Greater", "", "float[2] 1 2; float[2] 1 1", "[2] 0 1"},
    {"Less", "", "int32_t[2] 1 2; int32_t[2] 2 2", "[2] 1 0"},
    {"Log", "", "float[1] 1", "[1] 0"},
    {"Maximum", "", "float[2] 1 2; float[2] 2 1", "[2] 2 2"},
    {"Multiply", "", "double[2] 1 2; double[2] 3 4", "[2] 3 8"},
    {"Negative", "", "float[2] 1 -2", "[2] -1 2"},
    {"Not", "", "char[2] 1 0", "[2] 0 1"},
    {"NotEqual", "", "int64_t[2] 1 2; =int64_t[2] 2", "[2] 1 0"},
    {"NotEqual", "", "char[2] 1 0; char[2] 1 1", "[2] 0 1"},
    {"Power", "\"op_version\": 1", "float[2] 2 3; float[2] 3 2", "[2] 8 9"},
    {"Relu", "", "float[2] -1 2", "[2] 0 2"},
    {"ReluBackprop", "", "float[2] -1 2; float[2] 3 4", "[2] 0 4"},
    {"Select", "", "char[2] 1 0; float[2] 1 2; float[2] 3 4", "[2] 1 4"},
    {"Sigmoid", "", "float[1] 0", "[1] 0.5"},
    {"SigmoidBackprop", "", "float[1] 0; float[1] 4", "[1] 1"},
    {"Sign", "", "float[3] -3 0 2", "[3] -1 0 1"},
    {"Sinh", "", "float[2] 0 0.69314718056", "[2] 0 0.75"},
    {"Sinh", "", "float[1] 0.00048828125", "[1] 0.00048828126940"},
    {"Sqrt", "", "float[1] 4", "[1] 2"},
    {"Subtract", "", "float[2] 1 2; float[2] 3 1", "[2] -2 1"},
    {"Tan", "", "float[2] 0 0.78539816340", "[2] 0 1"},
    {"Tanh", "", "float[1] 0", "[1] 0"},

    {"Broadcast", "\"axes\": [0], \"shape\": [2, 2]", "float[2] 1 2", "[2,2] 1 2 1 2"},
    {"Broadcast", "\"axes\": [1], \"shape\": [2, 2]", "char[2] 1 0", "[2,2] 1 1 0 0"},
    {"Broadcast", "\"axes\": [0, 1], \"shape\": [1, 2]", "double[] 3", "[1,2] 3 3"},
    {"Concat", "\"axis\": 1", "float[1,2] 1 2; float[1,1] 3", "[1,3] 1 2 3"},
    {"Concat", "\"axis\": 0", "float[1] 4", "[1] 4"},
    {"OneHot", "\"shape\": [2, 3], \"one_hot_axis\": 1", "int32_t[2] 1 2", "[2,3] 0 1 0 0 0 1"},
    {"OneHot", "\"shape\": [3, 2], \"one_hot_axis\": 0", "int64_t[2] 1 2", "[3,2] 0 0 1 0 0 1"},
    {"Pad", "\"padding_below\": [1], \"padding_above\": [0], \"padding_interior\": [1]", "float[2] 1 2; =float[] 9",
     "[4] 9 1 9 2"},
    {"Pad", "\"padding_below\": [-1], \"padding_above\": [1], \"pad_mode\": 0", "float[2] 1 2; =float[] 9", "[2] 2 9"},
    {"ReplaceSlice", "\"lower_bounds\": [1], \"upper_bounds\": [3], \"strides\": [1]", "float[4] 1 2 3 4; float[2] 8 9",
     "[4] 1 8 9 4"},
    {"ReplaceSlice", "\"lower_bounds\": [0], \"upper_bounds\": [4], \"strides\": [2]", "float[4] 1 2 3 4; float[2] 8 9",
     "[4] 8 2 9 4"},
    {"ReplaceSlice", "\"lower_bounds\": [1, 0], \"upper_bounds\": [2, 2]", "float[2,3] 1 2 3 4 5 6; float[1,2] 8 9",
     "[2,3] 1 2 3 8 9 6"},
    {"ReplaceSlice", "\"lower_bounds\": [1], \"upper_bounds\": [3]", "=float[4] 0; float[2] 8 9", "[4] 0 8 9 0"},
    {"Reshape", "\"input_order\": [1, 0], \"output_shape\": [6]", "float[2,3] 1 2 3 4 5 6", "[6] 1 4 2 5 3 6"},
    {"Reshape", "\"input_order\": [0, 1], \"output_shape\": [2]", "int64_t[2,1] 1 -2", "[2] 1 -2"},
    {"Reverse", "\"reversed_axes\": [1]", "float[2,2] 1 2 3 4", "[2,2] 2 1 4 3"},
    {"Slice", "\"lower_bounds\": [0, 1], \"upper_bounds\": [2, 4], \"strides\": [1, 2]", "float[2,4] 1 2 3 4 5 6 7 8",
     "[2,2] 2 4 6 8"},
    {"Slice", "\"lower_bounds\": [1], \"upper_bounds\": [1]", "float[2] 1 2", "[0]"},

    {"Max", "\"reduction_axes\": [1]", "float[2,2] 1 2 4 3", "[2] 2 4"},
    {"Min", "\"reduction_axes\": [0]", "float[2,2] 1 2 4 3", "[2] 1 2"},
    {"Product", "\"reduction_axes\": [0]", "=int32_t[2] 3 4", "[] 12"},
    {"Softmax", "\"softmax_axes\": [0]", "float[2,1] 0 0", "[2,1] 0.5 0.5"},
    {"Softmax", "\"softmax_axes\": [0, 2]", "float[2,1,2] 0 0 0 0", "[2,1,2] 0.25 0.25 0.25 0.25"},
    {"Sum", "\"reduction_axes\": [0, 1]", "float[2,2] 1 2 4 3", "[] 10"},
    {"Sum", "", "float[2,2] 1 2 4 3; =int64_t[1] 0", "[2] 5 5"},
    {"Sum", "\"reduction_axes\": []", "float[2] 1 2", "[2] 1 2"},
    {"BatchNormInference", "\"eps\": 0", "float[1] 2; float[1] 3; float[2,1] 1 5; float[1] 1; float[1] 4", "[2,1] 3 7"},
    {"BatchNormInference", "\"epsilon\": 0, \"training\": false",
     "float[2,1] 1 5; float[1] 2; float[1] 3; float[1] 1; float[1] 4", "[2,1] 3 7"},
    {"BatchNormTraining", "\"eps\": 0.0", "float[1] 2; float[1] 3; float[4,1] -1 -1 1 1",
     "[4,1] 1 1 5 5; [1] 0; [1] 1"},
    {"BatchNormTrainingBackprop", "\"eps\": 0",
     "float[1] 2; float[1] 9; float[4,1] -1 -1 1 1; float[1] 0; float[1] 1; float[4,1] 4 0 0 0",
     "[4,1] 4 -4 0 0; [1] -4; [1] 4"},
    {"BatchNormTrainingBackprop", "\"eps\": 0",
     "float[4,1] -1 -1 1 1; float[1] 2; float[1] 9; float[1] 0; float[1] 1; float[4,1] 4 0 0 0",
     "[4,1] 4 -4 0 0; [1] -4; [1] 4"},

    {"Dot", "", "float[2,3] 1 2 3 4 5 6; float[3] 1 0 1", "[2] 4 10"},
    {"Dot", "", "float[] 2; float[2] 3 4", "[2] 6 8"},
    {"Dot", "\"reduction_axes_count\": 2", "float[1,2,2] 1 2 3 4; float[2,2] 1 1 1 2", "[1] 14"},
    {"Dot", "\"reduction_axes_count\": 0", "float[2] 1 2; float[2] 3 4", "[2,2] 3 4 6 8"},
    {"Dot", "\"reduction_axes_count\": 1", "int32_t[1,2] 1 2; int32_t[2,1] 3 4", "[1,1] 11"},
    {"Convolution", NO_PADS, "float[1,1,4] 1 2 3 4; float[1,1,2] 1 10", "[1,1,3] 21 32 43"},
    {"Convolution", "\"padding_below\": [-1], \"padding_above\": [1], \"pad_type\": 0",
     "float[1,1,4] 1 2 3 4; float[1,1,2] 1 10", "[1,1,3] 32 43 4"},
    {"Convolution", NO_PADS ", \"image_dilation_strides\": [2]", "float[1,1,3] 1 2 3; float[1,1,2] 1 10",
     "[1,1,4] 1 20 2 30"},
    {"Convolution",
     NO_PADS ", \"window_movement_strides\": [2], \"window_dilation_strides\": [2], "
             "\"data_dilation_strides\": [1]",
     "float[1,1,5] 1 2 3 4 5; float[1,1,2] 1 10", "[1,1,2] 31 53"},
    {"ConvolutionBackpropData", "\"data_batch_shape\": [1, 1, 4], \"padding_below_forward\": [0]",
     "float[1,1,2] 1 10; float[1,1,3] 1 2 3", "[1,1,4] 1 12 23 30"},
    {"ConvolutionBackpropData", "\"image_batch_shape\": [1, 1, 2], \"image_dilation_strides_forward\": [2]",
     "float[1,1,2] 1 10; float[1,1,2] 1 2", "[1,1,2] 1 20"},
    {"ConvolutionBackpropData", "\"data_batch_shape\": [1, 1, 3], \"padding_below_forward\": [-1]",
     "float[1,1,2] 1 10; float[1,1,1] 5", "[1,1,3] 0 5 50"},
    {"ConvolutionBackpropFilters", "\"filters_shape\": [1, 1, 2]", "float[1,1,4] 1 2 3 4; float[1,1,3] 1 1 1",
     "[1,1,2] 6 9"},
    {"MaxPool", POOL, "float[1,1,4] 1 3 2 4", "[1,1,2] 3 4"},
    {"AvgPool", POOL ", " PADS ", \"include_padding_in_avg_computation\": false", "float[1,1,2] 2 4", "[1,1,2] 2 4"},
    {"AvgPool", POOL ", " PADS ", \"include_padding_in_avg_computation\": true", "float[1,1,2] 2 4", "[1,1,2] 1 2"},
    {"AvgPool", POOL ", " PADS, "float[1,1,2] 2 4", "[1,1,2] 2 4"},
    {"AvgPoolBackprop", POOL ", \"forward_arg_shape\": [1, 1, 4]", "float[1,1,2] 2 4", "[1,1,4] 1 1 2 2"},
    {"MaxPoolBackprop", POOL ", " NO_PADS, "float[1,1,4] 1 3 2 4; float[1,1,2] 5 6", "[1,1,4] 0 5 0 6"},
};
enum { NROWS = sizeof rows / sizeof *rows, MOST_OPERANDS = 6, MOST_NUMBERS = 8 };

typedef struct Literal {
  char type[16], shape[32];
  bool is_constant;
  double numbers[MOST_NUMBERS];
  size_t count;
} Literal;

// The operands of a row's text.
static size_t read_literals(const char *at, Literal *literals) {
  size_t n = 0;
  for (; *at; n++) {
    Literal *l = &literals[n];
    char *end;
    assert_true(n < MOST_OPERANDS);
    *l = (Literal){.is_constant = *at == '='};
    at += l->is_constant;
    snprintf(l->type, sizeof l->type, "%.*s", (int)strcspn(at, "["), at);
    at += strcspn(at, "[");
    snprintf(l->shape, sizeof l->shape, "%.*s", (int)strcspn(at, "]") + 1, at);
    for (at += strcspn(at, "]") + 1; *at == ' '; at = end) l->numbers[l->count++] = strtod(at, &end);
    at += *at ? 2 : 0;
  }
  return n;
}

// Each second one in the spelling of versions that had value_type.
static void add_operand(Text *ops, Text *parameters, const Literal *l, size_t i, size_t k) {
  text_format(ops, "{\"name\": \"p%zu_%zu\", \"op\": \"%s\", ", i, k, l->is_constant ? "Constant" : "Parameter");
  if (l->is_constant) {
    text_add_string(ops, "\"value\": [");
    for (size_t e = 0; e < l->count; e++) text_format(ops, "%s\"%g\"", e ? ", " : "", l->numbers[e]);
    text_add_string(ops, "], ");
  } else {
    text_format(parameters, "%s\"p%zu_%zu\"", parameters->nbytes ? ", " : "", i, k);
  }
  text_format(ops,
              k % 2 ? "\"value_type\": {\"element_type\": {\"c_type_string\": \"%s\"}, \"shape\": %s}},\n"
                    : "\"element_type\": \"%s\", \"shape\": %s, \"inputs\": []},\n",
              l->type, l->shape);
}

// All rows as one function.
static char *function_text(void) {
  Text ops, parameters, results;
  Literal literals[MOST_OPERANDS];
  text_init(&ops, &system_allocator);
  text_init(&parameters, &system_allocator);
  text_init(&results, &system_allocator);
  for (size_t i = 0; i < NROWS; i++) {
    const size_t ninputs = read_literals(rows[i].inputs, literals);
    for (size_t k = 0; k < ninputs; k++) add_operand(&ops, &parameters, &literals[k], i, k);
    text_format(&ops, "{\"name\": \"n%zu\", \"op\": \"%s\", %s%s\"inputs\": [", i, rows[i].op, rows[i].attributes,
                *rows[i].attributes ? ", " : "");
    for (size_t k = 0; k < ninputs; k++) text_format(&ops, "%s\"p%zu_%zu\"", k ? ", " : "", i, k);
    text_add_string(&ops, "]},\n");
    const size_t noutputs = read_literals(rows[i].outputs, literals);
    for (size_t k = 0; k < noutputs; k++) {
      text_format(&ops, "{\"name\": \"e%zu_%zu\", \"op\": \"GetOutputElement\", \"n\": %zu, \"inputs\": [\"n%zu\"]},\n",
                  i, k, k, i);
      text_format(
          &ops,
          "{\"name\": \"r%zu_%zu\", \"op\": \"Result\", \"inputs\": [{\"node\": \"e%zu_%zu\", \"index\": %zu}]}%s\n", i,
          k, i, k, k, i + 1 < NROWS || k + 1 < noutputs ? "," : "");
      text_format(&results, "%s\"r%zu_%zu\"", results.nbytes ? ", " : "", i, k);
    }
  }
  const size_t nbytes = ops.nbytes + parameters.nbytes + results.nbytes + 100;
  char *text = malloc(nbytes);
  assert_non_null(text);
  snprintf(text, nbytes, "[{\"name\": \"Function_0\", \"ops\": [\n%s], \"parameters\": [%s], \"result\": [%s]}]",
           text_string(&ops), text_string(&parameters), text_string(&results));
  text_deinit(&ops);
  text_deinit(&parameters);
  text_deinit(&results);
  return text;
}

static void fill(ng_graph *g, ng_tensor *inputs) {
  Literal literals[MOST_OPERANDS];
  size_t at = 0;
  for (size_t i = 0; i < NROWS; i++) {
    const size_t n = read_literals(rows[i].inputs, literals);
    for (size_t k = 0; k < n; k++) {
      if (literals[k].is_constant) continue;
      const ng_tensor_info info = ng_graph_input(g, at);
      for (size_t e = 0; e < literals[k].count; e++)
        type_store(type_from_name(ng_type_name(info.type)), inputs[at].data, e, literals[k].numbers[e]);
      at++;
    }
  }
  assert_int_equal(at, ng_graph_input_count(g));
}

static void check(ng_graph *g, const ng_tensor *outputs, const char *backend) {
  Literal literals[MOST_OPERANDS];
  bool ok = true;
  size_t at = 0;
  for (size_t i = 0; i < NROWS; i++) {
    const size_t n = read_literals(rows[i].outputs, literals);
    for (size_t k = 0; k < n; k++, at++) {
      char shape[64] = "[";
      const ng_tensor_info info = ng_graph_output(g, at);
      for (int axis = 0; axis < info.rank; axis++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%d", axis ? "," : "", (int)info.extent[axis]);
      snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "]");
      bool is_right =
          strcmp(shape, literals[k].shape) == 0 && (size_t)ng_tensor_nelems(&outputs[at]) == literals[k].count;
      for (size_t e = 0; is_right && e < literals[k].count; e++)
        is_right = fabs(ng_tensor_get(&outputs[at], (int64_t)e) - literals[k].numbers[e]) < 1e-5;
      if (is_right) continue;
      ok = false;
      print_error("%s: row %zu, %s, output %zu: %s", backend, i, rows[i].op, k, shape);
      for (int64_t e = 0; e < ng_tensor_nelems(&outputs[at]); e++) print_error(" %g", ng_tensor_get(&outputs[at], e));
      print_error("\n");
    }
  }
  assert_int_equal(at, ng_graph_output_count(g));
  assert_true(ok);
}

static void operators_give_the_numbers_of_their_rows(void **state) {
  (void)state;
  char *text = function_text();
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "rows.json", text, strlen(text), NULL);
  if (!g) fail_msg("%s", ng_messages_text(ctx, 0));
  assert_int_equal(ng_graph_bind(g), NG_OK);
  const size_t ninputs = ng_graph_input_count(g), noutputs = ng_graph_output_count(g);
  ng_tensor *inputs = calloc(ninputs, sizeof *inputs), *outputs = calloc(noutputs, sizeof *outputs);
  assert_true(inputs && outputs);
  for (size_t i = 0; i < ninputs + noutputs; i++) {
    const ng_tensor_info info = i < ninputs ? ng_graph_input(g, i) : ng_graph_output(g, i - ninputs);
    assert_int_equal(ng_tensor_new(ctx, &info, i < ninputs ? &inputs[i] : &outputs[i - ninputs]), NG_OK);
  }
  fill(g, inputs);
  assert_int_equal(ng_interpret(g, inputs, outputs, 0), NG_OK);
  check(g, outputs, "interpreter");
  ng_kernel *k = ng_compile(g, NULL);
  if (!k) fail_msg("%s", ng_messages_text(ctx, 0));
  assert_int_equal(ng_kernel_run(k, inputs, outputs, 0), NG_OK);
  check(g, outputs, "codegen");
  ng_kernel_free(k);
  for (size_t i = 0; i < ninputs; i++) ng_tensor_free(ctx, &inputs[i]);
  for (size_t i = 0; i < noutputs; i++) ng_tensor_free(ctx, &outputs[i]);
  free(inputs);
  free(outputs);
  ng_graph_free(g);
  ng_context_free(ctx);
  free(text);
}

// The graph as text, or the messages.
static Text read_text(const char *text, size_t nbytes) {
  Diagnostics d;
  Text out;
  diagnostics_init(&d, &system_allocator);
  text_init(&out, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "test.json", text, nbytes, NULL, &d);
  if (g) yaml_print(g, &out);
  else diagnostics_print(&d, &out, false);
  assert_true(g ? d.nerrors == 0 : d.nerrors > 0);
  graph_free(g);
  diagnostics_deinit(&d);
  return out;
}

static void reads_as(const char *json, const char *expected) {
  Text text = read_text(json, strlen(json));
  assert_string_equal(text_string(&text), expected);
  text_deinit(&text);
}

#define PARAMETER(name, shape)                                                                                         \
  "{\"name\": \"" name "\", \"op\": \"Parameter\", \"element_type\": \"float\", \"shape\": " shape "},\n"
#define FUNCTION(parameters, ops, result)                                                                              \
  "[{\"name\": \"f\", \"parameters\": [" parameters "], \"result\": [" result "],\n\"ops\": [\n" ops "]}]"

static const char bias[] = FUNCTION(
    "\"b\", \"x\"",
    PARAMETER("x", "[4, 3]") PARAMETER(
        "b",
        "[3]") "{\"name\": \"all\", \"op\": \"Broadcast\", \"axes\": [0], \"shape\": [4, 3], \"inputs\": [\"b\"]},\n"
               "{\"name\": \"twice\", \"op\": \"Add\", \"inputs\": [\"all\", \"all\"]},\n"
               "{\"name\": \"y\", \"op\": \"Add\", \"inputs\": [\"x\", \"twice\"]}",
    "\"y\"");

static void what_is_broadcast_stays_small(void **state) {
  (void)state;
  reads_as(bias,
           "format: ngrad/1\nname: test\ninputs:\n  - {name: b, type: f32, shape: [3]}\n"
           "  - {name: x, type: f32, shape: [4, 3]}\nnodes:\n"
           "  - op: StaticReshape\n    label: \"Broadcast all\"\n    inputs: {src: b}\n    outputs:\n"
           "      dst: {name: all, type: f32, shape: [1, 3]}\n    attributes: {shape: [1, 3], special_zero: false}\n"
           "  - op: Add\n    label: \"Add twice\"\n    inputs: {src_0: all, src_1: all}\n    outputs:\n"
           "      dst: {name: twice, type: f32, shape: [1, 3]}\n    attributes: {auto_broadcast: numpy}\n"
           "  - op: Add\n    label: \"Add y\"\n    inputs: {src_0: x, src_1: twice}\n    outputs:\n"
           "      dst: {name: y, type: f32, shape: [4, 3]}\n    attributes: {auto_broadcast: numpy}\n"
           "outputs: [y]\n");
}

static void all_that_is_not_supported_is_told(void **state) {
  (void)state;
  reads_as(
      FUNCTION(
          "\"x\"",
          PARAMETER(
              "x",
              "[4, 3]") "{\"name\": \"a\", \"op\": \"LRN\", \"inputs\": [\"x\"]},\n"
                        "{\"name\": \"b\", \"op\": \"LRN\", \"inputs\": [\"a\"]},\n"
                        "{\"name\": \"c\", \"op\": \"TopK\", \"inputs\": [\"x\"]},\n"
                        "{\"name\": \"y\", \"op\": \"Add\", \"inputs\": [\"b\", {\"node\": \"c\", \"index\": 1}]},\n"
                        "{\"name\": \"z\", \"op\": \"Abs\", \"op_version\": 7, \"inputs\": [\"x\"]}",
          "\"y\""),
      "test.json:4:21: error: LRN a: the operator is not supported\n"
      "  {\"name\": \"a\", \"op\": \"LRN\", \"inputs\": [\"x\"]},\n"
      "                      ^\n"
      "test.json:6:21: error: TopK c: the operator is not supported\n"
      "  {\"name\": \"c\", \"op\": \"TopK\", \"inputs\": [\"x\"]},\n"
      "                      ^\n"
      "test.json:8:42: error: Abs z: version 7 of the operator is not supported\n"
      "  {\"name\": \"z\", \"op\": \"Abs\", \"op_version\": 7, \"inputs\": [\"x\"]}]}]\n"
      "                                           ^\n");
}

static void what_several_operators_lack_is_told_once(void **state) {
  (void)state;
  reads_as(FUNCTION("\"x\"",
                    PARAMETER("x", "[4, 3]") "{\"name\": \"a\", \"op\": \"Abs\", \"inputs\": []},\n"
                                             "{\"name\": \"b\", \"op\": \"Abs\", \"inputs\": []},\n"
                                             "{\"name\": \"c\", \"op\": \"Exp\", \"inputs\": []}",
                    "\"b\""),
           "test.json:4:38: error: Abs a: expected 1 inputs, found 0\n"
           "  {\"name\": \"a\", \"op\": \"Abs\", \"inputs\": []},\n"
           "                                       ^\n"
           "test.json:6:38: error: Exp c: expected 1 inputs, found 0\n"
           "  {\"name\": \"c\", \"op\": \"Exp\", \"inputs\": []}]}]\n"
           "                                       ^\n");
}

static void an_operator_is_no_operand_of_its_own(void **state) {
  (void)state;
  const char *graph =
      FUNCTION("\"x\"", PARAMETER("x", "[4, 3]") "{\"name\": \"y\", \"op\": \"Abs\", \"inputs\": [\"y\"]}", "\"y\"");
  Text text = read_text(graph, strlen(graph));
  assert_non_null(strstr(text_string(&text), "error: Abs y: no operator before it has the name y"));
  text_deinit(&text);
}

// Cut anywhere, or with any byte changed: a graph or an error.
static void damaged_files_are_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < 2 * strlen(bias); i++) {
    const size_t nbytes = i < strlen(bias) ? i : strlen(bias);
    char *bytes = malloc(nbytes + 1); // the sanitizer knows its end
    assert_non_null(bytes);
    memcpy(bytes, bias, nbytes);
    if (i >= nbytes && nbytes == strlen(bias)) bytes[i - nbytes] ^= 0x11;
    bytes[nbytes] = 0;
    Text text = read_text(bytes, nbytes);
    text_deinit(&text);
    free(bytes);
  }
}

// A file of a hundred thousand operators is read at once.
static void long_chains_are_read(void **state) {
  (void)state;
  enum { LENGTH = 100000 };
  Text text;
  text_init(&text, &system_allocator);
  text_add_string(&text, "[{\"parameters\": [\"n0\"], \"result\": [\"n99999\"], \"ops\": [" PARAMETER("n0", "[2]"));
  for (int i = 1; i < LENGTH; i++)
    text_format(&text, "{\"name\": \"n%d\", \"op\": \"Negative\", \"inputs\": [\"n%d\"]}%s\n", i, i - 1,
                i + 1 < LENGTH ? "," : "");
  text_add_string(&text, "]}]");
  Text out = read_text(text_string(&text), text.nbytes);
  assert_true(strncmp(text_string(&out), "format: ngrad/1\n", 16) == 0);
  text_deinit(&out);
  text_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operators_give_the_numbers_of_their_rows),
      cmocka_unit_test(what_is_broadcast_stays_small),
      cmocka_unit_test(all_that_is_not_supported_is_told),
      cmocka_unit_test(what_several_operators_lack_is_told_once),
      cmocka_unit_test(an_operator_is_no_operand_of_its_own),
      cmocka_unit_test(damaged_files_are_refused),
      cmocka_unit_test(long_chains_are_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
