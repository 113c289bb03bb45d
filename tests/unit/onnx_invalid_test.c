// Invalid ONNX models, and what the reader says about them. Each row is a model in the notation of `add_fields`.
#include "frontend/yaml/yaml.h"
#include "tests/unit/onnx_message.h"

#include <stdio.h>
#include <stdlib.h>

#define MODEL(graph) "1=8 8{2=13} 7{" graph "}"
#define NEW_MODEL(graph) "1=8 8{2=28} 7{" graph "}"
#define DIM(n) "1{1=" #n "} "
#define INFO(field, name, type, dims) #field "{1'" name "' 2{1{1=" #type " 2{" dims "}}}} "
#define INPUT(name, dims) INFO(11, name, 1, dims)
#define OUTPUT(name, dims) INFO(12, name, 1, dims)
#define NODE(op, input, output) "1{1'" input "' 2'" output "' 4'" op "'} "
#define PAIR(name) "5{1=2 2=1 8'" name "' 9*8} " // an initializer: two zeros
#define X INPUT("x", DIM(2))
#define Y "12{1'y'} "

static const struct {
  const char *model, *message; // without the file's name; a line each
  bool is_warning;
} rows[] = {
    // Names
    {MODEL(PAIR("w") PAIR("w") NODE("Relu", "w", "y") Y),
     "initializer 1 (\"w\") at byte 29: another initializer has this name"},
    {MODEL(X X NODE("Relu", "x", "y") Y), "input 1 (\"x\") at byte 27: another input has this name"},
    {MODEL(X NODE("Relu", "x", "h") NODE("Tanh", "x", "h") NODE("Relu", "h", "y") Y),
     "Tanh h (opset 13): duplicate value h"},
    {MODEL(X NODE("Relu", "x", "x") NODE("Relu", "x", "y") Y), "Relu x (opset 13): duplicate value x"},
    {MODEL(PAIR("w") X NODE("Relu", "x", "w") NODE("Relu", "w", "y") Y), "Relu w (opset 13): duplicate value w"},
    {MODEL(X "1{1'x' 2'y' 2'y' 4'Dropout'} " Y), "Dropout y (opset 13): duplicate value y"},
    {"25{1'f' 4'a' 5'b' 10'my'} 25{1'f' 4'a' 5'b' 10'my'} " MODEL(X NODE("Relu", "x", "y") Y),
     "function 1, my f: another function has this name"},
    // Types and shapes
    {MODEL(INPUT("x", DIM(2) DIM(18446744073709551614)) NODE("Relu", "x", "y") Y),
     "input 0 (\"x\") at byte 27: axis 1: expected an extent of 0 to 2^47 - 1, found -2"},
    {MODEL(INPUT("x", DIM(140737488355328)) NODE("Relu", "x", "y") Y),
     "input 0 (\"x\") at byte 23: axis 0: expected an extent of 0 to 2^47 - 1, found 140737488355328"},
    {MODEL(X NODE("Relu", "x", "y") OUTPUT("y", DIM(18446744073709551614))),
     "output 0 (\"y\") at byte 54: axis 0: expected an extent of 0 to 2^47 - 1, found -2"},
    {MODEL("5{1=18446744073709551615 2=1 8'w'} " NODE("Relu", "w", "y") Y),
     "initializer 0 (\"w\") at byte 10: axis 0: expected an extent of 0 to 2^47 - 1, found -1"},
    {MODEL(X NODE("Relu", "x", "y") OUTPUT("y", DIM(3))),
     "output 0 (\"y\") at byte 41: declared as float [3], but its elements are float [2]", true},
    {MODEL(X NODE("Relu", "x", "y") OUTPUT("y", DIM(2) DIM(1))),
     "output 0 (\"y\") at byte 41: declared as float [2, 1], but its elements are float [2]", true},
    {MODEL(X NODE("Relu", "x", "y") INFO(12, "y", 7, "1{2'N'} ")),
     "output 0 (\"y\") at byte 41: declared as int64 [_], but its elements are float [2]"},
    {MODEL(PAIR("w") INPUT("w", DIM(3)) NODE("Relu", "w", "y") Y),
     "input 0 (\"w\") at byte 29: declared as float [3], but its elements are float [2]"},
    {MODEL(PAIR("w") INFO(11, "w", 11, DIM(2)) NODE("Relu", "w", "y") Y),
     "input 0 (\"w\") at byte 29: declared as double [2], but its elements are float [2]"},
    {MODEL(X "1{1'x' 2'y' 4'LpNormalization' 5{1'p' 3=3}} " Y), "LpNormalization y (opset 13): p: expected 1 or 2"},
    // Formulas
    {NEW_MODEL(X "1{1'x' 1'x' 1'x' 2'y' 4'Attention'} " Y),
     "Attention y (opset 28): expected Q of 4 axes, or of 3 with the numbers of heads"},
    {NEW_MODEL(X "1{1'x' 1'x' 2'y' 4'RMSNormalization' 5{1'axis' 4'a' 20=3}} " Y),
     "RMSNormalization y (opset 28): axis: expected an integer, found a string"},
    {NEW_MODEL(X "1{1'x' 1'x' 2'y' 4'RMSNormalization' 5{1'axis' 3=9223372036854775807 20=2}} " Y),
     "RMSNormalization y (opset 28): expected integers, found 9.22337e+18"},
    {NEW_MODEL(X NODE("RMSNormalization", "x", "y") Y), "RMSNormalization y (opset 28): the input scale is absent"},
    {NEW_MODEL(X "1{1'x' 1'x' 1'x' 2'y' 4'RMSNormalization'} " Y),
     "RMSNormalization y (opset 28): expected at most 2 inputs"},
    {NEW_MODEL(X "1{1'x' 1'x' 1'x' 2'y' 4'GroupNormalization'} " Y),
     "GroupNormalization y (opset 28): num_groups: expected a number above 0"},
    {NEW_MODEL(INPUT("x", DIM(2) DIM(3))
                   INFO(11, "c", 9, "") "1{1'c' 2'y' 4'If' 5{1'then_branch' 6{1{1'x' 2'a' 4'Identity'} 12{1'a'}}} "
                                        "5{1'else_branch' 6{1{1'x' 2'b' 4'Det'} 12{1'b'}}}} " Y),
     "Det b (opset 28): expected square matrices of 1 to 16 rows\n"
     "If y (opset 28): the input c must be known when the model is read: --constant c=FILE, of .npy or .pb"},
    {NEW_MODEL(INPUT("x", DIM(2) DIM(3)) NODE("Det", "x", "y") Y),
     "Det y (opset 28): expected square matrices of 1 to 16 rows"},
    {NEW_MODEL(X INFO(11, "s", 7, DIM(1)) "1{1'x' 1's' 2'y' 4'CenterCropPad'} " Y),
     "CenterCropPad y (opset 28): the input s must be known when the model is read: --constant s=FILE, of .npy or .pb"},
    {NEW_MODEL(X "1{1'x' 2'y' 4'FlexAttention' 7'ai.onnx.preview'} " Y),
     "FlexAttention y (opset 28): the input K is absent"},
    {NEW_MODEL(X "1{1'x' 2'y' 4'Nothing' 7'com.microsoft'} " Y),
     "Nothing y (opset 28): an operator of com.microsoft that is not supported"},
    {NEW_MODEL(X "1{1'x' 2'y' 4'Scan' 5{1'num_scan_inputs' 3=1 20=2}} " Y), "Scan y (opset 28): expected a body"},
    {NEW_MODEL(X "1{1'x' 2'y' 4'Scan' 5{1'num_scan_inputs' 3=2 20=2} 5{1'body' 6{11{1'e'} 12{1'e'}}}} " Y),
     "Scan y (opset 28): num_scan_inputs: expected 1 to 1, and a body of as many inputs"},
    {NEW_MODEL(X "1{1'x' 2'y' 4'Scan' 5{1'num_scan_inputs' 3=1} 5{1'body' 6{11{1'e'} 12{1'f'}}}} " Y),
     "Scan y (opset 28): output 0 of the graph inside: no node makes it"},
    {NEW_MODEL(X "1{1'x' 2'y' 4'Pad' 5{1'mode' 4'mirror'}} " Y),
     "Pad y (opset 28): mode: expected constant, reflect, edge or wrap"},
    {NEW_MODEL(X INFO(11, "i", 7, DIM(2)) "1{1'x' 1'i' 1'x' 2'y' 4'ScatterElements' 5{1'reduction' 4'xor'}} " Y),
     "ScatterElements y (opset 28): reduction: expected none, add, max, min or mul"},
    {NEW_MODEL(INFO(11, "x", 11, DIM(2)) "1{1'x' 2'y' 4'Cast' 5{1'to' 3=17}} " Y),
     "Cast y (opset 28): casts of double to float8e4m3fn are not supported"},
    {NEW_MODEL(X NODE("Unique", "x", "y") Y),
     "Unique y (opset 28): the input x must be known when the model is read: --constant x=FILE, of .npy or .pb"},
    {NEW_MODEL(PAIR("w") "1{1'w' 1'w' 2'y' 4'NonMaxSuppression'} " Y),
     "NonMaxSuppression y (opset 28): expected boxes [images, boxes, 4] and scores [images, classes, boxes]"},
    {NEW_MODEL(X "1{1'x' 2'y' 4'Cast' 5{1'to' 3=18}} " Y),
     "Cast y (opset 28): casts to float8e4m3fnuz are not supported"},
    // Sequences
    {MODEL(X "1{1'x' 2's' 4'SequenceConstruct'} " NODE("Relu", "s", "y") Y),
     "Relu y (opset 13): expected a tensor as input 0, found a sequence"},
    {MODEL(X NODE("SequenceLength", "x", "y") Y), "SequenceLength y (opset 13): expected a sequence as input 0"},
    {MODEL(X "1{1'x' 2'y' 4'SequenceConstruct'} " Y), "output y: a sequence is not supported"},
    {MODEL(X "5{2=7 8'p' 9*8} 1{2's' 4'SequenceEmpty'} 1{1's' 1'p' 2'y' 4'SequenceAt'} " Y),
     "SequenceAt y (opset 13): position: expected 0 to -1, found 0"},
    {MODEL(X "1{1'x' 2's' 4'SequenceConstruct'} 1{1's' 1's' 2't' 4'SequenceInsert'} " NODE("ConcatFromSequence", "t",
                                                                                           "y") Y),
     "SequenceInsert t (opset 13): expected a tensor as input 1, found a sequence"},
    {MODEL(X "5{1=0 2=7 8'p'} 1{1'x' 1'p' 2's' 4'SplitToSequence'} " NODE("SequenceLength", "s", "y") Y),
     "SplitToSequence s (opset 13): split: expected lengths that add up to 2"},
    {MODEL(X "5{2=7 7=9223372036854775807 8'p'} 5{2=7 7=1 8'q'} 1{1'x' 1'p' 2's' 4'SplitToSequence'} "
             "1{1's' 1'q' 2'y' 4'SequenceAt'} " Y),
     "SequenceAt y (opset 13): position: expected -1 to 0, found 1"},
    // Damaged messages
    {MODEL(X "1{1'x' 2'y' 3'conv1' 4'Conv' 5{1'alpha'} 5{1'pads' 8'\x80'}} " Y),
     "node 0 (Conv \"conv1\"), attribute 1 (\"pads\") at byte 65: damaged: expected a list of numbers"},
    {MODEL(X "1{1'x' 2'y' 3'r' 4'Relu' 7} " Y), "node 0 (Relu \"r\") at byte 42: damaged: expected a field of a node"},
    {MODEL(X "1{1'x' 2'y' 4'Relu' 5{1'a' 3}} " Y),
     "node 0 (Relu), attribute 0 (\"a\") at byte 44: damaged: expected a field of an attribute"},
    {MODEL("5{1=2 2=1 8'w' 9} " NODE("Relu", "w", "y") Y),
     "initializer 0 (\"w\") at byte 17: damaged: expected a field of a tensor"},
    {MODEL("5{1=1 1=1 1=1 1=1 1=1 1=1 1=1 1=1 1=1 8'w'} " NODE("Relu", "w", "y") Y),
     "initializer 0 (\"w\") at byte 10: more than 8 axes"},
    {"1=8 25{1'f' 7{4'Relu' 1}} 7{}",
     "function 0 (\"f\"), node 0 (Relu) at byte 16: damaged: expected a field of a node"},
    {"1=8 8{2=13}", "the ONNX model has no graph"},
};

// Adds fields up to the text's end, or to a brace: N=1 is a number, N'text' a text, N*8 zero bytes, N{...} a message,
// and N alone a key without a value.
static const char *add_fields(Message *m, const char *text) {
  static const uint8_t zeros[64];
  while (*text && *text != '}') {
    char *at;
    const uint64_t field = strtoull(text, &at, 10);
    Message inside = {.count = 0};
    const char kind = *at++, *end = at;
    if (kind == '=') {
      add_varint(m, field << 3);
      add_varint(m, strtoull(at, (char **)&end, 10));
    } else if (kind == '*') add_bytes(m, field, zeros, strtoul(at, (char **)&end, 10));
    else if (kind == '\'') {
      end = strchr(at, '\'') + 1;
      add_bytes(m, field, at, (size_t)(end - at) - 1);
    } else if (kind == '{') {
      end = add_fields(&inside, at) + 1;
      add_bytes(m, field, inside.bytes, inside.count);
    } else {
      add_varint(m, field << 3 | 2);
      end = at - 1;
    }
    text = end + strspn(end, " ");
  }
  return text;
}

static bool says(const uint8_t *bytes, size_t count, const char *message, bool is_warning) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "test.onnx", (const char *)bytes, count, NULL, &d);
  char found[1024] = "";
  for (size_t i = 0, n = 0; i < d.count && n < sizeof found; i++)
    n += (size_t)snprintf(found + n, sizeof found - n, "%s%s", i ? "\n" : "", d.items[i].message);
  const bool ok = is_warning == (g != NULL) && !d.nerrors == is_warning && strcmp(found, message) == 0;
  if (!ok) print_error("expected: %s\nfound:    %s\n", message, found);
  graph_free(g);
  diagnostics_deinit(&d);
  return ok;
}

static void invalid_models_are_refused(void **state) {
  (void)state;
  size_t nwrong = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Message model = {.count = 0};
    add_fields(&model, rows[i].model);
    nwrong += !says(model.bytes, model.count, rows[i].message, rows[i].is_warning);
  }
  assert_int_equal(nwrong, 0);
}

// A file that begins as a model does is recognised, wherever it is cut.
static void a_truncated_model_is_recognised(void **state) {
  static const struct {
    size_t count;
    const char *message;
  } cuts[] = {{2, "the ONNX model has no graph"},
              {3, "at byte 2: truncated ONNX model: the file ends within its last field"},
              {5, "at byte 2: truncated ONNX model: expected 2 bytes of its last field, found 1"},
              {6, "the ONNX model has no graph"},
              {7, "at byte 6: truncated ONNX model: the file ends within the graph"},
              {8, "at byte 6: truncated ONNX model: expected 36 bytes of the graph, found 0"},
              {30, "at byte 6: truncated ONNX model: expected 36 bytes of the graph, found 22"},
              {43, "at byte 6: truncated ONNX model: expected 36 bytes of the graph, found 35"}};
  Message model = {.count = 0};
  (void)state;
  add_fields(&model, MODEL(X NODE("Relu", "x", "y") Y));
  size_t nwrong = 0;
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
    nwrong += !says(model.bytes, cuts[i].count, cuts[i].message, false);
  assert_int_equal(nwrong, 0);
}

static const char *const operators_of_onnx[] = {
#define PLAIN(name, ...) #name,
#define OPERATOR PLAIN
#define SEQUENCES PLAIN
#include "frontend/onnx/operators.def"
#undef PLAIN
#undef OPERATOR
#undef SEQUENCES
};

// Whatever an operator needs, a model in which it has no inputs, one or one behind an absent one is read or refused.
static void inputs_may_be_absent(void **state) {
  static const char *const inputs[][2] = {{NULL, NULL}, {"", NULL}, {"x", NULL}, {"", "x"}, {"x", "x"}};
  static const uint8_t opsets[] = {1, 7, 12, 28};
  (void)state;
  for (size_t i = 0; i < sizeof operators_of_onnx / sizeof *operators_of_onnx; i++) {
    const char *op = strrchr(operators_of_onnx[i], '.') ? strrchr(operators_of_onnx[i], '.') + 1 : operators_of_onnx[i];
    const int domain = (int)(op - operators_of_onnx[i]) - 1;
    for (size_t k = 0; k < 4 * sizeof inputs / sizeof *inputs; k++) {
      char text[512], operands[64] = "", in[64] = "";
      if (domain > 0) snprintf(in, sizeof in, " 7'%.*s'", domain, operators_of_onnx[i]);
      for (size_t n = 0; n < 2 && inputs[k / 4][n]; n++)
        snprintf(operands + strlen(operands), sizeof operands - strlen(operands), "1'%s' ", inputs[k / 4][n]);
      snprintf(text, sizeof text, "1=8 8{2=%d} 8{1'%.*s' 2=1} 7{1{%s2'y' 4'%s'%s} " X Y "}", opsets[k % 4],
               domain > 0 ? domain : 4, domain > 0 ? operators_of_onnx[i] : "none", operands, op, in);
      Message model = {.count = 0};
      Diagnostics d;
      add_fields(&model, text);
      diagnostics_init(&d, &system_allocator);
      Graph *g = yaml_read(&system_allocator, "test.onnx", (const char *)model.bytes, model.count, NULL, &d);
      assert_true(g ? !d.nerrors : d.nerrors > 0);
      graph_free(g);
      diagnostics_deinit(&d);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(invalid_models_are_refused),
                                     cmocka_unit_test(a_truncated_model_is_recognised),
                                     cmocka_unit_test(inputs_may_be_absent)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
