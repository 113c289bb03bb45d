// Operators of ONNX that the reader makes of several nodes, on tensors whose extents have names: the interpreter with
// the dims bound, the executor of the loop trees with the dims open, and the gradient. Results are worked out by hand.
#include "frontend/api/ngrad.h"
#include "ir/graph/open_dims.h"
#include "tests/unit/loops_case.h"
#include "tests/unit/onnx_message.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ELEMENTS = 24, MOST_INPUTS = 3 };

// An operand is an input of floats, x:N,3 or (x:N,3) if the node does not take it; an input of integers, i:#N,2; a
// constant of integers, k=1,2, or of floats, k=~1,2; the extents of some axes of x and then numbers, n!0,1+7, or minus
// these extents, n!-0,1, their product, n!*0,1, or floats, n!f0; or -, absent. The output of the graph is y.
typedef struct Row {
  const char *op, *operands, *attributes, *outputs;
  bool is_derived;
  double inputs[MOST_INPUTS][MOST_ELEMENTS], result[MOST_ELEMENTS];
} Row;

static const struct {
  const char *name;
  int64_t value;
} dims[] = {{"N", 2}, {"T", 3}, {"K", 2}, {"M", 1}};
enum { NDIMS = sizeof dims / sizeof *dims };

// clang-format off
// Lengths of ReverseSequence are not checked: random ones are beyond the axis.
static const Row rows[] = {
    {"TopK", "x:N,4 k=2", "", "y i", true, {{1, 4, 2, 3, 8, 5, 7, 6}}, {4, 3, 8, 7}},
    {"TopK", "x:N,3,T k=1", "axis=1 largest=0", "v y", false,
     {{3, 1, 2, 2, 3, 1, 1, 2, 3, 9, 9, 9, 8, 9, 9, 7, 9, 8}}, {2, 0, 1, 2, 0, 2}},
    {"GatherElements", "x:N,3 i:#M,3", "axis=0", "y", true, {{1, 2, 3, 4, 5, 6}, {1, 0, -1}}, {4, 2, 6}},
    {"GatherElements", "x:N,2,T i:#N,1,T", "axis=1", "y", true,
     {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 0, 1, 1, -1}}, {0, 4, 2, 9, 10, 11}},
    {"GatherElements", "x:N,T i:#N,1", "axis=1", "y", true, {{1, 2, 3, 4, 5, 6}, {-3, 2}}, {1, 6}},
    {"GatherND", "x:N,T,2 i:#K,2", "", "y", true,
     {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {1, 2, 0, -1}}, {10, 11, 4, 5}},
    {"GatherND", "x:N,T i:#N,1", "batch_dims=1", "y", true, {{1, 2, 3, 4, 5, 6}, {2, 0}}, {3, 4}},
    {"ScatterElements", "x:N,3 i:#N,2 u:N,2", "axis=1", "y", true,
     {{1, 2, 3, 4, 5, 6}, {2, 0, 1, -1}, {10, 20, 30, 40}}, {20, 2, 10, 4, 30, 40}},
    {"ScatterElements", "x:N,3 i:#M,3 u:M,3", "axis=0", "y", true,
     {{1, 2, 3, 4, 5, 6}, {1, 0, -2}, {10, 20, 30}}, {1, 20, 30, 10, 5, 6}},
    {"ScatterElements", "x:N,T i:#N,1 u:N,1", "axis=1 reduction=add", "y", true,
     {{1, 2, 3, 4, 5, 6}, {0, -1}, {10, 20}}, {11, 2, 3, 4, 5, 26}},
    {"ScatterND", "x:N,T,2 i:#K,2 u:K,2", "", "y", true,
     {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {1, 2, 0, 1}, {100, 101, 102, 103}},
     {0, 1, 102, 103, 4, 5, 6, 7, 8, 9, 100, 101}},
    {"CumSum", "x:N,3 a=1", "", "y", true, {{1, 2, 3, 4, 5, 6}}, {1, 3, 6, 4, 9, 15}},
    {"CumSum", "x:N,T a=-1", "reverse=1 exclusive=1", "y", true, {{1, 2, 3, 4, 5, 6}}, {5, 3, 0, 11, 6, 0}},
    {"CumSum", "x:N,3 a=0", "", "y", true, {{1, 2, 3, 4, 5, 6}}, {1, 2, 3, 5, 7, 9}},
    {"Trilu", "x:N,2,3", "", "y", true, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
     {1, 2, 3, 0, 5, 6, 7, 8, 9, 0, 11, 12}},
    {"Trilu", "x:N,T,T k=-1", "upper=0", "y", true, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}},
     {0, 0, 0, 4, 0, 0, 7, 8, 0, 0, 0, 0, 13, 0, 0, 16, 17, 0}},
    {"EyeLike", "x:N,T", "k=1", "y", false, {{0}}, {0, 1, 0, 0, 0, 1}},
    {"Compress", "x:N,3 c=1,0,1", "axis=1", "y", true, {{1, 2, 3, 4, 5, 6}}, {1, 3, 4, 6}},
    {"ReverseSequence", "x:N,T l:#N", "batch_axis=0 time_axis=1", "y", false, {{1, 2, 3, 4, 5, 6}, {2, 3}},
     {2, 1, 3, 6, 5, 4}},
    {"Resize", "x:N,1,2 - s=~1,1,2", "", "y", true, {{1, 2, 3, 4}}, {1, 1, 2, 2, 3, 3, 4, 4}},
    {"Resize", "x:1,1,N,T - s=~1,1,1,2", "nearest_mode=floor coordinate_transformation_mode=asymmetric", "y", true,
     {{1, 2, 3, 4, 5, 6}}, {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}},
    {"Resize", "x:N,1,T - s=~1,1,3", "", "y", true, {{1, 2, 3, 4, 5, 6}},
     {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6}},
    {"Resize", "x:N,T,2 - - n!0,1+4", "mode=linear", "y", true, {{0, 4, 4, 8, 0, 0, 1, 1, 2, 2, 0, 8}},
     {0, 1, 3, 4, 4, 5, 7, 8, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 2, 6, 8}},
    {"DepthToSpace", "x:N,4,1,T", "blocksize=2", "y", true,
     {{0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32}}, {0, 10, 1, 11, 2, 12, 20, 30, 21, 31, 22, 32}},
    {"GridSample", "x:N,1,2,2 g:N,1,1,2", "align_corners=1", "y", true, {{1, 2, 3, 4, 5, 6, 7, 8}, {0, 0, 1, -1}},
     {2.5, 6}},
    {"MaxPool", "x:N,1,1,4", "kernel_shape=1,2 strides=1,2", "p y", false, {{1, 2, 4, 3, 8, 7, 5, 6}}, {1, 2, 4, 7}},
    {"MaxUnpool", "x:N,1,1,2 i:#N,1,1,2", "kernel_shape=1,2", "y", true, {{5, 6, 7, 8}, {1, 2, 3, 5}},
     {0, 5, 6, 7, 0, 8}},
    {"Slice", "x:4,N b=0 n!1 a=0", "", "y", true, {{1, 2, 3, 4, 5, 6, 7, 8}}, {1, 2, 3, 4}},
    {"Slice", "x:T,N b=0 n!1 a=0", "", "y", true, {{1, 2, 3, 4, 5, 6}}, {1, 2, 3, 4}},
    {"Slice", "x:N,4 n!0 e=4 a=1", "", "y", true, {{1, 2, 3, 4, 5, 6, 7, 8}}, {3, 4, 7, 8}},
    {"Slice", "x:T,N b!-1 n=9223372036854775807 a=0", "", "y", true, {{1, 2, 3, 4, 5, 6}}, {3, 4, 5, 6}},
    {"Slice", "x:N,T b=0 n!-0 a=-1", "", "y", true, {{1, 2, 3, 4, 5, 6}}, {1, 4}},
    {"Slice", "x:N,T b!-0,0 n=9223372036854775807,9223372036854775807", "", "y", true, {{1, 2, 3, 4, 5, 6}}, {2, 3, 5, 6}},
    {"Cast", "(x:N,T) n!1", "to=1", "y", false, {{0}}, {3}},
    {"Cast", "(x:N,T) n!*0,1", "to=1", "y", false, {{0}}, {6}},
    {"Range", "(x:N,T) a=~1 n!f1 d=~1", "", "y", false, {{0}}, {1, 2}},
    {"Range", "(x:N,T) a=1 n!1 d=1", "", "y", false, {{0}}, {1, 2}},
    {"Range", "(x:N,T) a!0 n=5 d=1", "", "y", false, {{0}}, {2, 3, 4}},
};
// clang-format on

// Models

static size_t parse_numbers(const char **at, int64_t *numbers) {
  size_t count = 0;
  while (**at && **at != ' ' && **at != '+') {
    char *end = NULL;
    numbers[count++] = strtoll(*at, &end, 10);
    assert_true(end != *at);
    *at = *end == ',' ? end + 1 : end;
  }
  return count;
}

static void add_input(Message *graph, const char *name, const char **at) {
  const bool is_integer = **at == '#';
  Message shape = {.count = 0}, tensor = {.count = 0}, type = {.count = 0}, info = {.count = 0};
  *at += is_integer;
  while (**at && **at != ' ' && **at != ')') {
    Message extent = {.count = 0};
    const char dim[] = {**at, 0};
    if (**at <= '9') add_number(&extent, 1, (uint64_t)(**at - '0'));
    else add_text(&extent, 2, dim);
    add_message(&shape, 1, &extent);
    *at += (*at)[1] == ',' ? 2 : 1;
  }
  *at += **at == ')';
  add_number(&tensor, 1, is_integer ? 7 : 1);
  add_message(&tensor, 2, &shape);
  add_message(&type, 1, &tensor);
  add_text(&info, 1, name);
  add_message(&info, 2, &type);
  add_message(graph, 11, &info);
}

static void add_constant(Message *graph, const char *name, const char **at) {
  const bool is_float = **at == '~';
  Message tensor = {.count = 0};
  int64_t numbers[MOST_ELEMENTS];
  float floats[MOST_ELEMENTS];
  *at += is_float;
  const size_t count = parse_numbers(at, numbers);
  for (size_t i = 0; i < count; i++) floats[i] = (float)numbers[i];
  add_number(&tensor, 1, count);
  add_number(&tensor, 2, is_float ? 1 : 7);
  add_text(&tensor, 8, name);
  if (is_float) add_bytes(&tensor, 9, floats, count * sizeof *floats);
  else add_bytes(&tensor, 9, numbers, count * sizeof *numbers);
  add_message(graph, 5, &tensor);
}

static void add_plain_node(Message *graph, const char *op, const char *first, const char *second, const char *output) {
  Message node = {.count = 0}, axis = {.count = 0};
  add_text(&node, 1, first);
  if (second) add_text(&node, 1, second);
  add_text(&node, 2, output);
  add_text(&node, 4, op);
  const bool is_cast = strcmp(op, "Cast") == 0;
  add_text(&axis, 1, is_cast ? "to" : "axis");
  add_number(&axis, 3, is_cast);
  if (second || is_cast) add_message(&node, 5, &axis);
  add_message(graph, 1, &node);
}

// name = Concat(Gather(Shape(x), axes), numbers), or Neg, ReduceProd or Cast of Gather(Shape(x), axes)
static void add_extents(Message *graph, const char *name, const char **at) {
  const char *op = **at == '-' ? "Neg" : **at == '*' ? "ReduceProd" : **at == 'f' ? "Cast" : NULL;
  *at += op != NULL;
  add_constant(graph, "axes", at);
  add_plain_node(graph, "Shape", "x", NULL, "shape");
  add_plain_node(graph, "Gather", "shape", "axes", **at == '+' || op ? "some" : name);
  if (op) add_plain_node(graph, op, "some", NULL, name);
  if (**at != '+') return;
  ++*at;
  add_constant(graph, "more", at);
  add_plain_node(graph, "Concat", "some", "more", name);
}

static void add_operands(Message *graph, Message *node, const char *at) {
  for (; *at; at += *at == ' ') {
    const bool is_left_out = *at == '(';
    at += is_left_out;
    const char name[] = {*at == '-' ? 0 : *at, 0};
    if (!is_left_out) add_text(node, 1, name);
    at++;
    if (!*name) continue;
    const char kind = *at++;
    (kind == ':' ? add_input : kind == '=' ? add_constant : add_extents)(graph, name, &at);
  }
}

static void add_attributes(Message *node, const char *at) {
  for (; *at; at += *at == ' ') {
    Message attribute = {.count = 0};
    char name[32], text[32];
    int length = 0;
    int64_t numbers[MOST_ELEMENTS];
    assert_int_equal(sscanf(at, "%31[^=]=%31[^ ]%n", name, text, &length), 2);
    const char *value = text;
    const bool is_text = *text > '9';
    const size_t count = is_text ? 0 : parse_numbers(&value, numbers);
    add_text(&attribute, 1, name);
    if (is_text) add_text(&attribute, 4, text);
    for (size_t i = 0; i < count; i++) add_number(&attribute, count > 1 ? 8 : 3, (uint64_t)numbers[i]);
    add_message(node, 5, &attribute);
    at += length;
  }
}

static Message model_of_row(const Row *row) {
  Message graph = {.count = 0}, node = {.count = 0}, y = {.count = 0}, opset = {.count = 0}, model = {.count = 0};
  add_operands(&graph, &node, row->operands);
  for (const char *name = row->outputs; *name; name++)
    if (*name != ' ') add_text(&node, 2, (const char[]){*name, 0});
  add_text(&node, 4, row->op);
  add_attributes(&node, row->attributes);
  add_message(&graph, 1, &node);
  add_text(&y, 1, "y");
  add_message(&graph, 12, &y);
  add_number(&model, 1, 8);
  add_number(&opset, 2, 17);
  add_message(&model, 8, &opset);
  add_message(&model, 7, &graph);
  return model;
}

// Results

static int64_t dim_value(const char *name) {
  for (size_t i = 0; i < NDIMS; i++)
    if (strcmp(dims[i].name, name) == 0) return dims[i].value;
  fail_msg("no dim %s", name);
  return 0;
}

static bool has_result(const LoopsCase *c, const Row *row, const Tensor *y, const char *how) {
  const int64_t nelems = tensor_nelems(y);
  for (int64_t i = 0; i < nelems && i < MOST_ELEMENTS; i++) {
    const double found = type_load(y->type, y->data, (size_t)i);
    if (found == row->result[i]) continue;
    print_error("%s, %s: element %lld is %g, expected %g\n", c->name, how, (long long)i, found, row->result[i]);
    return false;
  }
  return true;
}

// Binds the dims, and makes a case of the row's inputs.
static void bind_row(LoopsCase *c, const Row *row, const char *name, Graph *g) {
  for (size_t i = 0; i < g->ndims; i++) g->dims[i]->value = dim_value(g->dims[i]->name);
  loops_bind(name, g);
  loops_case_init(c, name, g, 1);
  for (size_t i = 0; i < g->ninputs; i++)
    for (int64_t k = 0; k < tensor_nelems(&c->inputs[i]); k++)
      type_store(c->inputs[i].type, c->inputs[i].data, (size_t)k, row->inputs[i][k]);
}

// With the dims bound, and with the dims open.
static bool computes_result(const Row *row, const Message *model) {
  Diagnostics d;
  LoopsCase c;
  char name[128];
  int64_t values[MAX_OPEN_DIMS];
  diagnostics_init(&d, &system_allocator);
  snprintf(name, sizeof name, "%s %s", row->op, row->operands);
  Graph *g = yaml_read(&system_allocator, "test.onnx", (const char *)model->bytes, model->count, NULL, &d);
  Graph *open = g ? graph_with_open_dims(g, &d) : NULL;
  if (!g || !open) {
    fail_msg("%s: %s", name, d.count ? d.items[0].message : "?");
    return false;
  }
  const size_t ndims = graph_narguments(open);
  for (size_t i = 0; i < ndims; i++) values[i] = dim_value(open->dims[i]->name);
  bind_row(&c, row, name, g);
  Tensor y;
  loops_new_outputs(g, &y);
  bool ok = interpret(g, c.inputs, &y, &(InterpreterOptions){.allocator = &system_allocator}, &d) &&
            has_result(&c, row, &y, "interpreted");
  Target target = target_of_any_machine();
  PassContext context = {
      .diagnostics = &d, .allocator = &system_allocator, .target = &target, .evaluate = interpret_node};
  Program *program = pipeline_run(open, &context) ? pipeline_lower(open, &context) : NULL;
  if (!program) fail_msg("%s: %s", name, d.count ? d.items[0].message : "?");
  memset(y.data, 0, tensor_nbytes(&y));
  ok &= loops_execute(&c, program, &y, &(ExecuteOptions){.dims = values}, "open") && has_result(&c, row, &y, "open");
  loops_free_outputs(g, &y);
  program_free(program);
  graph_free(open);
  loops_case_deinit(&c);
  diagnostics_deinit(&d);
  return ok;
}

static bool has_gradient(const Row *row, const Message *model) {
  ng_context *ctx = ng_context_new(NULL);
  ng_gradcheck_result results[MOST_INPUTS];
  char *source = NULL, *header = NULL;
  ng_graph *g = ng_graph_read(ctx, "test.onnx", (const char *)model->bytes, model->count, NULL);
  ng_graph *gradient = g ? ng_graph_gradient(g, NULL) : NULL;
  bool ok = gradient && ng_emit(gradient, NULL, &source, &header) == NG_OK;
  for (size_t i = 0; ok && i < NDIMS; i++)
    if (strchr(row->operands, *dims[i].name)) ok = ng_graph_set_dim(g, dims[i].name, dims[i].value) == NG_OK;
  ok = ok && ng_gradcheck(g, NULL, results) == NG_OK;
  if (!ok) print_error("%s %s: %s\n", row->op, row->operands, ng_messages_text(ctx, 0));
  ng_text_free(ctx, source);
  ng_text_free(ctx, header);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
  return ok;
}

static void operators_of_named_extents_compute_and_have_gradients(void **state) {
  (void)state;
  size_t nfailures = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const Message model = model_of_row(&rows[i]);
    nfailures += !computes_result(&rows[i], &model);
    nfailures += rows[i].is_derived && !has_gradient(&rows[i], &model);
  }
  assert_int_equal(nfailures, 0);
}

// As PyTorch exports its interpolations. Along a linear axis, calls need its number, but reading does not.
static void linear_resizes_of_named_axes_are_read(void **state) {
  (void)state;
  static const Row row = {"Resize",
                          "x:N,1,T - s=~1,1,2",
                          "mode=linear coordinate_transformation_mode=pytorch_half_pixel",
                          "y",
                          false,
                          {{0, 4, 8, 4, 4, 0}},
                          {0, 1, 3, 5, 7, 8, 4, 4, 4, 3, 1, 0}};
  const Message model = model_of_row(&row);
  Diagnostics d;
  LoopsCase c;
  Tensor y;
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "test.onnx", (const char *)model.bytes, model.count, NULL, &d);
  if (!g) {
    fail_msg("%s", d.items[0].message);
    return;
  }
  bind_row(&c, &row, "Resize", g);
  loops_new_outputs(g, &y);
  assert_true(interpret(g, c.inputs, &y, &(InterpreterOptions){.allocator = &system_allocator}, &d));
  assert_int_equal(tensor_nelems(&y), 12);
  assert_true(has_result(&c, &row, &y, "interpreted"));
  loops_free_outputs(g, &y);
  loops_case_deinit(&c);
  diagnostics_deinit(&d);
}

static void an_axis_that_needs_a_number_is_told(void **state) {
  (void)state;
  static const struct {
    Row row;
    const char *message;
  } refused[] = {
      {{"TopK", "x:N,3 k=2", "axis=0", "y i", false, {{0}}, {0}}, "expected a number as the input's extent 0, found N"},
      {{"Resize", "x:N,2,T - s=~1,2,2", "mode=cubic", "y", false, {{0}}, {0}},
       "expected a number as the input's extent 2, found T"},
      {{"Resize", "x:N,1,2 - - n!1,1+4", "", "y", false, {{0}}, {0}},
       "expected a number as the input's extent 0, found N"},
      {{"Compress", "x:N,3 c=1,0", "axis=0", "y", false, {{0}}, {0}},
       "expected a number as the input's extent 0, found N"},
      {{"Range", "(x:N,T) a=0 n!1 d=2", "", "y", false, {{0}}, {0}}, "give it a number, as in --dim T=1"},
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    const Message model = model_of_row(&refused[i].row);
    ng_context *ctx = ng_context_new(NULL);
    assert_null(ng_graph_read(ctx, "test.onnx", (const char *)model.bytes, model.count, NULL));
    if (!strstr(ng_messages_text(ctx, 0), refused[i].message)) fail_msg("found %s", ng_messages_text(ctx, 0));
    ng_context_free(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operators_of_named_extents_compute_and_have_gradients),
      cmocka_unit_test(linear_resizes_of_named_axes_are_read),
      cmocka_unit_test(an_axis_that_needs_a_number_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
