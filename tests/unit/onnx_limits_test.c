// ONNX models of some kilobytes that would need minutes or gigabytes if the reader had no limits. Each is read in less
// than a second of processor time.
#include "frontend/onnx/onnx.h"
#include "ir/operators/operator.h"
#include "ir/support/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

// Messages of the wire format, as long as memory lasts.
typedef struct Message {
  uint8_t *bytes;
  size_t count, capacity;
} Message;

static void add(Message *m, const void *bytes, size_t count) {
  if (m->count + count > m->capacity) {
    m->capacity = 2 * (m->count + count);
    uint8_t *larger = realloc(m->bytes, m->capacity);
    if (!larger) abort();
    m->bytes = larger;
  }
  if (count) memcpy(m->bytes + m->count, bytes, count);
  m->count += count;
}

static void add_varint(Message *m, uint64_t number) {
  for (; number >= 128; number >>= 7) add(m, &(uint8_t){(uint8_t)(number | 128)}, 1);
  add(m, &(uint8_t){(uint8_t)number}, 1);
}

static void add_number(Message *m, uint64_t field, uint64_t number) {
  add_varint(m, field << 3);
  add_varint(m, number);
}

static void add_bytes(Message *m, uint64_t field, const void *bytes, size_t count) {
  add_varint(m, field << 3 | 2);
  add_varint(m, count);
  add(m, bytes, count);
}

static void add_text(Message *m, uint64_t field, const char *text) {
  add_bytes(m, field, text, strlen(text));
}

// Frees the contents.
static void add_message(Message *m, uint64_t field, Message *inside) {
  add_bytes(m, field, inside->bytes, inside->count);
  free(inside->bytes);
  *inside = (Message){.count = 0};
}

static Message node_of(const char *domain, const char *op, const char *input, const char *output) {
  Message node = {.count = 0};
  if (*input) add_text(&node, 1, input);
  add_text(&node, 2, output);
  add_text(&node, 4, op);
  if (*domain) add_text(&node, 7, domain);
  return node;
}

static void add_node(Message *m, uint64_t field, const char *domain, const char *op, const char *input,
                     const char *output) {
  Message node = node_of(domain, op, input, output);
  add_message(m, field, &node);
}

// A tensor of floats [1, 1, 2] as an input or output.
static void add_value(Message *graph, uint64_t field, const char *name) {
  Message dim = {.count = 0}, shape = {.count = 0}, tensor = {.count = 0}, type = {.count = 0}, info = {.count = 0};
  for (int i = 0; i < 3; i++) {
    add_number(&dim, 1, i == 2 ? 2 : 1);
    add_message(&shape, 1, &dim);
  }
  add_number(&tensor, 1, 1);
  add_message(&tensor, 2, &shape);
  add_message(&type, 1, &tensor);
  add_text(&info, 1, name);
  add_message(&info, 2, &type);
  add_message(graph, field, &info);
}

static Message tensor_of(uint64_t type, uint64_t nelems, const void *bytes, size_t count, const char *name) {
  Message tensor = {.count = 0};
  add_number(&tensor, 1, nelems);
  add_number(&tensor, 2, type);
  if (*name) add_text(&tensor, 8, name);
  add_bytes(&tensor, 9, bytes, count);
  return tensor;
}

static void add_tensor_attribute(Message *node, const char *name, Message *tensor) {
  Message attribute = {.count = 0};
  add_text(&attribute, 1, name);
  add_message(&attribute, 5, tensor);
  add_message(node, 5, &attribute);
}

static Message model_of(Message *graph, Message *function) {
  Message model = {.count = 0}, opset = {.count = 0};
  add_number(&model, 1, 8);
  add_number(&opset, 2, 15);
  add_message(&model, 8, &opset);
  add_message(&model, 7, graph);
  if (function) add_message(&model, 25, function);
  return model;
}

// Reads the model, which must be refused with the message, or read where that is NULL, and frees it.
static void reads_soon_from(Message *model, const char *folder, const char *message) {
  enum { MOST_BYTES = 700 << 20 };
  Diagnostics d;
  Text text;
  Budget budget;
  const clock_t start = clock();
  budget_init(&budget, system_allocator, MOST_BYTES);
  const Allocator allocator = budget_allocator(&budget);
  diagnostics_init(&d, &system_allocator);
  text_init(&text, &system_allocator);
  Graph *g =
      onnx_read(&allocator, "test.onnx", (Bytes){model->bytes, model->count}, &(ReadSettings){.folder = folder}, &d);
  diagnostics_print(&d, &text, false);
  if (message ? strstr(text_string(&text), message) == NULL : g == NULL) print_error("%s\n", text_string(&text));
  assert_true(message ? g == NULL && strstr(text_string(&text), message) != NULL : g != NULL);
  assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 20); // sanitizers are slow
  graph_free(g);
  text_deinit(&text);
  diagnostics_deinit(&d);
  free(model->bytes);
}

static void reads_soon(Message *model, const char *message) {
  reads_soon_from(model, NULL, message);
}

static void functions_called_often_are_counted_by_their_bytes(void **state) {
  enum { NCALLS = 5000, NELEMS = 1 << 18 };
  (void)state;
  Message function = {.count = 0}, graph = {.count = 0}, node = node_of("", "Constant", "", "c");
  float *numbers = calloc(NELEMS, sizeof *numbers);
  if (!numbers) abort();
  Message tensor = tensor_of(1, NELEMS, numbers, NELEMS * sizeof *numbers, "");
  free(numbers);
  add_tensor_attribute(&node, "value", &tensor);
  add_text(&function, 1, "f");
  add_text(&function, 4, "a");
  add_text(&function, 5, "b");
  add_message(&function, 7, &node);
  add_node(&function, 7, "", "Identity", "a", "b");
  add_text(&function, 10, "my");
  for (int i = 0; i < NCALLS; i++) add_node(&graph, 1, "my", "f", "x", "");
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "x");
  Message model = model_of(&graph, &function);
  reads_soon(&model, "f ? (opset 15): the functions, branches and loops that the model repeats are more than 128 MiB, "
                     "counted each time");
}

static void attributes_of_calls_are_found_at_once(void **state) {
  enum { NNODES = 20000 };
  (void)state;
  Message function = {.count = 0}, graph = {.count = 0};
  add_text(&function, 1, "f");
  add_text(&function, 4, "a");
  add_text(&function, 5, "b");
  for (int i = 0; i < NNODES; i++) {
    Message node = node_of("", "Elu", "a", i ? "" : "b"), attribute = {.count = 0};
    add_text(&attribute, 1, "alpha");
    add_text(&attribute, 21, "slope");
    add_message(&node, 5, &attribute);
    add_message(&function, 7, &node);
  }
  add_text(&function, 10, "my");
  add_node(&graph, 1, "my", "f", "x", "y");
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "y");
  Message model = model_of(&graph, &function);
  reads_soon(&model, NULL);
}

static void a_node_has_not_too_many_attributes(void **state) {
  (void)state;
  Message graph = {.count = 0}, node = node_of("", "Relu", "x", "y");
  for (int i = 0; i < 257; i++) {
    Message attribute = {.count = 0};
    add_text(&attribute, 1, "a");
    add_message(&node, 5, &attribute);
  }
  add_message(&graph, 1, &node);
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "y");
  Message model = model_of(&graph, NULL);
  reads_soon(&model, "node 0 (Relu) at byte 12: more than 256 attributes");
}

static void types_of_values_are_looked_for_once(void **state) {
  enum { NNODES = 20000 };
  (void)state;
  Message graph = {.count = 0};
  for (int i = 0; i < NNODES; i++) add_node(&graph, 1, "ngrad", "ReLU", "x", "");
  add_value(&graph, 11, "x");
  Message model = model_of(&graph, NULL);
  reads_soon(&model, "ReLU ? (opset 15): missing output dst");
}

static void what_a_constant_is_made_of_is_counted(void **state) {
  static const int64_t extents[] = {1, 1, 1 << 22}, many[] = {1 << 24};
  (void)state;
  for (int i = 0; i < 2; i++) {
    Message graph = {.count = 0};
    Message tensor = i ? tensor_of(7, 1, many, sizeof many, "s") : tensor_of(7, 3, extents, sizeof extents, "s");
    add_message(&graph, 5, &tensor);
    if (i) add_node(&graph, 1, "", "ConstantOfShape", "s", "c");
    for (int k = 0; k < 1000; k++) {
      Message node = node_of("", i ? "NonZero" : "Resize", i ? "c" : "x", "");
      if (!i)
        for (int input = 1; input < 4; input++) add_text(&node, 1, input < 3 ? "" : "s");
      add_message(&graph, 1, &node);
    }
    add_value(&graph, 11, "x");
    add_value(&graph, 12, "x");
    Message model = model_of(&graph, NULL);
    reads_soon(&model, "the constants that it computes take more than 256 MiB");
  }
}

// Beyond the limits, nodes are not folded and stay in the graph.
static void folding_comes_to_an_end(void **state) {
  static const int64_t extents[] = {1 << 16};
  (void)state;
  Message graph = {.count = 0}, tensor = tensor_of(7, 1, extents, sizeof extents, "s");
  add_message(&graph, 5, &tensor);
  add_node(&graph, 1, "", "ConstantOfShape", "s", "c");
  for (int i = 0; i < 20000; i++) add_node(&graph, 1, "", "ReduceMax", "c", "");
  add_node(&graph, 1, "", "Relu", "x", "y");
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "y");
  Message model = model_of(&graph, NULL);
  reads_soon(&model, NULL);
}

// Of two bytes each, which would become hundreds.
static void inputs_outputs_and_initializers_are_counted_first(void **state) {
  static const struct {
    uint64_t field;
    const char *message;
  } lists[] = {{1, "more than 262144 nodes"},
               {5, "more than 262144 initializers"},
               {11, "more than 262144 inputs"},
               {12, "more than 262144 outputs"}};
  (void)state;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    Message graph = {.count = 0};
    for (int k = 0; k <= 1 << 18; k++) add_bytes(&graph, lists[i].field, "", 0);
    Message model = model_of(&graph, NULL);
    reads_soon(&model, lists[i].message);
  }
}

static void functions_are_counted_first(void **state) {
  (void)state;
  Message graph = {.count = 0};
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "x");
  Message model = model_of(&graph, NULL);
  for (int k = 0; k <= 1 << 18; k++) add_bytes(&model, 25, "", 0);
  reads_soon(&model, "more than 262144 functions");
}

static void add_graph_attribute(Message *node, const char *name, Message *graph) {
  Message attribute = {.count = 0};
  add_text(&attribute, 1, name);
  add_message(&attribute, 6, graph);
  add_message(node, 5, &attribute);
}

static Message branch_of(int ninputs) {
  Message branch = {.count = 0};
  for (int k = 0; k < ninputs; k++) add_bytes(&branch, 11, "", 0);
  add_value(&branch, 12, "x");
  return branch;
}

static void what_all_graphs_of_a_file_have_is_counted(void **state) {
  (void)state;
  Message graph = {.count = 0}, condition = tensor_of(9, 1, "\1", 1, "c");
  add_message(&graph, 5, &condition);
  for (int i = 0; i < 17; i++) {
    Message node = node_of("", "If", "c", ""), branch = branch_of(1 << 18);
    add_graph_attribute(&node, "then_branch", &branch);
    add_message(&graph, 1, &node);
  }
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "x");
  Message model = model_of(&graph, NULL);
  reads_soon(&model, "the model's nodes, operands, attributes and tensors take more than 512 MiB");
}

static void branches_in_loops_are_counted_and_parsed_once(void **state) {
  static const int64_t times[] = {4096};
  (void)state;
  Message graph = {.count = 0}, body = {.count = 0}, branch = branch_of(100000), loop = node_of("", "Loop", "n", "y"),
          node = node_of("", "If", "cin", ""), condition = tensor_of(9, 1, "\1", 1, "c"),
          count = tensor_of(7, 1, times, sizeof times, "n");
  add_text(&node, 2, "more"); // than the branch has, so that its nodes are not counted
  add_graph_attribute(&node, "then_branch", &branch);
  add_message(&body, 1, &node);
  add_value(&body, 11, "i");
  add_value(&body, 11, "cin");
  add_value(&body, 12, "cin");
  add_value(&body, 12, "i");
  add_text(&loop, 1, "c");
  add_graph_attribute(&loop, "body", &body);
  add_message(&graph, 5, &condition);
  add_message(&graph, 5, &count);
  add_message(&graph, 1, &loop);
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "x");
  Message model = model_of(&graph, NULL);
  reads_soon(&model, "the functions, branches and loops that the model repeats are more than 128 MiB");
}

static Message external_tensor(uint64_t nelems, const char *file, uint64_t offset, const char *name) {
  Message tensor = {.count = 0}, entry = {.count = 0};
  char number[24];
  snprintf(number, sizeof number, "%llu", (unsigned long long)offset);
  add_number(&tensor, 1, nelems);
  add_number(&tensor, 2, 1);
  add_text(&tensor, 8, name);
  add_text(&entry, 1, "location");
  add_text(&entry, 2, file);
  add_message(&tensor, 13, &entry);
  add_text(&entry, 1, "offset");
  add_text(&entry, 2, number);
  add_message(&tensor, 13, &entry);
  add_number(&tensor, 14, 1);
  return tensor;
}

// By whatever path; tensors that overlap are other data each.
static void a_file_of_external_data_is_read_once(void **state) {
  enum { NTENSORS = 4000, NELEMS = 100000 };
  char folder[] = "/tmp/ngrad-onnx-XXXXXX", path[64], name[16], file[8 + 2 * NTENSORS];
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/data", folder);
  FILE *data = fopen(path, "wb");
  assert_true(data && ftruncate(fileno(data), 4L * NELEMS + NTENSORS) == 0 && fclose(data) == 0);
  for (int overlaps = 0; overlaps < 2; overlaps++) {
    Message graph = {.count = 0};
    for (int i = 0; i < NTENSORS; i++) {
      snprintf(file, sizeof file, "%.*sdata", 2 * (i % 50),
               "././././././././././././././././././././././././././././././"
               "./././././././././././././././././././././");
      snprintf(name, sizeof name, "t%d", i);
      Message tensor = external_tensor(NELEMS, file, overlaps ? (uint64_t)i : 0, name);
      add_message(&graph, 5, &tensor);
    }
    add_value(&graph, 11, "x");
    add_value(&graph, 12, "x");
    Message model = model_of(&graph, NULL);
    reads_soon_from(&model, folder,
                    overlaps ? "external data: data: the model's tensors overlap: they take more than 2 times the "
                               "file's 404000 bytes"
                             : NULL);
  }
  assert_int_equal(unlink(path) + rmdir(folder), 0);
}

// What is written can be read again, or is refused.
static void models_that_would_not_be_read_are_not_written(void **state) {
  enum { MOST_NODES = 1 << 18 };
  (void)state;
  for (int nnodes = MOST_NODES; nnodes <= MOST_NODES + 1; nnodes++) {
    Diagnostics d;
    Text out;
    diagnostics_init(&d, &system_allocator);
    text_init(&out, &system_allocator);
    Graph *g = graph_new(&system_allocator, "chain");
    Value *v = graph_add_value(g, "x", TYPE_F32, &(Shape){.rank = 1, .extent = {EXTENT(2)}});
    v->is_input = true;
    for (int i = 0; i < nnodes; i++) {
      Node *node = graph_add_node(g, &operators[OP_ReLU], NULL, 1, 1);
      node_set_input(node, 0, v);
      v = graph_add_value(g, arena_format(&g->arena, "v%d", i), TYPE_F32, &v->shape);
      node_set_output(node, 0, v);
    }
    assert_true(graph_add_output(g, v));
    assert_true(onnx_write(g, &out, &d));
    assert_int_equal(onnx_fits(&system_allocator, (Bytes){(const uint8_t *)out.bytes, out.nbytes}, &d),
                     nnodes == MOST_NODES);
    graph_free(g);
    text_deinit(&out);
    diagnostics_deinit(&d);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_called_often_are_counted_by_their_bytes),
      cmocka_unit_test(attributes_of_calls_are_found_at_once),
      cmocka_unit_test(a_node_has_not_too_many_attributes),
      cmocka_unit_test(types_of_values_are_looked_for_once),
      cmocka_unit_test(what_a_constant_is_made_of_is_counted),
      cmocka_unit_test(folding_comes_to_an_end),
      cmocka_unit_test(inputs_outputs_and_initializers_are_counted_first),
      cmocka_unit_test(functions_are_counted_first),
      cmocka_unit_test(what_all_graphs_of_a_file_have_is_counted),
      cmocka_unit_test(branches_in_loops_are_counted_and_parsed_once),
      cmocka_unit_test(a_file_of_external_data_is_read_once),
      cmocka_unit_test(models_that_would_not_be_read_are_not_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
