// Reading and printing graph files: the printed text, that reading it prints it again, and that neither hostile bytes
// nor failing allocations break the reader. tests/errors tests messages.
#include "frontend/yaml/yaml.h"
#include "tests/effort.h"
#include "tests/unit/failing_allocator.h"

#include <fcntl.h>
#include <glob.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static Graph *read_text(const char *text, Diagnostics *d) {
  diagnostics_init(d, &system_allocator);
  return yaml_read(&system_allocator, "test.yaml", text, strlen(text), NULL, d);
}

// The graph of a text that is right, without a word.
static Graph *must_read(const char *text) {
  Diagnostics d;
  Graph *g = read_text(text, &d);
  if (d.nerrors + d.nwarnings) {
    Text out;
    text_init(&out, &system_allocator);
    diagnostics_print(&d, &out, false);
    print_error("%s", text_string(&out));
    text_deinit(&out);
  }
  assert_non_null(g);
  assert_false(d.out_of_memory);
  assert_int_equal(d.nwarnings, 0);
  diagnostics_deinit(&d);
  return g;
}

static void must_print(const Graph *g, const char *expected) {
  Text out;
  text_init(&out, &system_allocator);
  yaml_print(g, &out);
  assert_string_equal(text_string(&out), expected);
  text_deinit(&out);
}

static void must_become(const char *text, const char *expected) {
  Graph *g = must_read(text);
  must_print(g, expected);
  graph_free(g);
  g = must_read(expected);
  must_print(g, expected);
  graph_free(g);
}

// The first message of a text that is wrong, and how many there are.
static void must_fail(const char *text, const char *message, size_t count) {
  Diagnostics d;
  Graph *g = read_text(text, &d);
  assert_null(g);
  assert_true(d.count > 0);
  assert_string_equal(d.items[0].message, message);
  assert_int_equal(d.nerrors, count);
  diagnostics_deinit(&d);
}

// A graph with something of everything.
static const char example[] = "format: ngrad/1\n"
                              "name: example # a comment\n"
                              "dims: {N: 16, M: ~}\n"
                              "inputs:\n"
                              "  - {name: x, type: bf16, shape: [N, _, M]}\n"
                              "  - {name: dy, type: bf16, shape: [_, 8, _]}\n"
                              "  - {name: \"a b\", type: f32}\n"
                              "constants:\n"
                              "  - {name: mean, type: f32, shape: [8], value: 0.1}\n"
                              "  - {name: gamma, type: f32, shape: [8], values: [1, -2, .5, 1e-3, 5, 6, 7, 0x8]}\n"
                              "nodes:\n"
                              "  - op: Add\n"
                              "    inputs: [wide, 'a b']\n"
                              "    outputs: [sum]\n"
                              "  - op: BatchNormTrainingBackprop\n"
                              "    inputs: {input_forward: x, output_delta: dy, mean: mean, variance: 'a b', "
                              "gamma: gamma}\n"
                              "    outputs: [dx, dgamma, dbeta]\n"
                              "    attributes: {epsilon: 1, data_format: NCX}\n"
                              "  - op: onednn.TypeCast\n"
                              "    inputs: [dbeta]\n"
                              "    outputs: {dst: {name: wide, type: f16}}\n"
                              "outputs: [dx, sum, gamma]\n";

static const char example_printed[] =
    "format: ngrad/1\n"
    "name: example\n"
    "dims: {N: 16, M: ~}\n"
    "inputs:\n"
    "  - {name: x, type: bf16, shape: [N, 8, M]}\n"
    "  - {name: dy, type: bf16, shape: [N, 8, M]}\n"
    "  - {name: \"a b\", type: f32, shape: [8]}\n"
    "constants:\n"
    "  - {name: mean, type: f32, shape: [8], value: 0.1}\n"
    "  - {name: gamma, type: f32, shape: [8], values: [1.0, -2.0, 0.5, 0.001, 5.0, 6.0, 7.0, 8.0]}\n"
    "nodes:\n"
    "  - op: BatchNormTrainingBackprop\n"
    "    inputs: {input_forward: x, output_delta: dy, mean: mean, variance: \"a b\", gamma: gamma}\n"
    "    outputs:\n"
    "      input_delta: {name: dx, type: bf16, shape: [N, 8, M]}\n"
    "      gamma_delta: {name: dgamma, type: f32, shape: [8]}\n"
    "      beta_delta: {name: dbeta, type: f32, shape: [8]}\n"
    "    attributes: {epsilon: 1.0, data_format: NCX}\n"
    "  - op: TypeCast\n"
    "    inputs: {src: dbeta}\n"
    "    outputs:\n"
    "      dst: {name: wide, type: f16, shape: [8]}\n"
    "  - op: Add\n"
    "    inputs: {src_0: wide, src_1: \"a b\"}\n"
    "    outputs:\n"
    "      dst: {name: sum, type: f32, shape: [8]}\n"
    "    attributes: {auto_broadcast: numpy}\n"
    "outputs: [dx, sum, gamma]\n";

static const char step[] = "format: ngrad/1\n"
                           "name: step\n"
                           "inputs:\n"
                           "  - {name: x, type: f32, shape: [2]}\n"
                           "state:\n"
                           "  - {name: w, type: f32, shape: [2], init: {uniform: [-0.5, 0.25]}}\n"
                           "  - {name: v, type: f32, shape: [2], init: {normal: 0.02}}\n"
                           "  - {name: u, type: bf16, shape: [3, 2], order: [1, 0], init: {fan_in: 3.0}}\n"
                           "  - {name: n, type: s64, shape: [], init: ones}\n"
                           "nodes:\n"
                           "  - op: Add\n"
                           "    inputs: {src_0: w, src_1: x}\n"
                           "    outputs:\n"
                           "      dst: {name: w_next, type: f32, shape: [2]}\n"
                           "    attributes: {auto_broadcast: numpy}\n"
                           "outputs: [w_next]\n"
                           "updates: {w: w_next, v: x, u: u}\n";

// oneDNN Graph's JSON with something of everything: operators in any order, an unknown shape of a wrong rank, permuted
// strides, End, attributes of each type.
// clang-format off
#define TENSOR(id, shape, stride)                                                                                      \
  "{\"id\":" id ",\"dtype\":\"f32\",\"shape\":" shape ",\"stride\":" stride                                            \
  ",\"layout_type\":\"strided\",\"property_type\":\"undef\"}"
#define UNKNOWN(id) TENSOR(id, "[-9223372036854775808]", "[-9223372036854775808]")
#define PERMUTED(id) TENSOR(id, "[2,3,4,5]", "[60,1,15,3]")
#define CHANNELS(id) TENSOR(id, "[3]", "[1]")
static const char onednn[] =
    "{\"version\":\"3.0.0\",\"engine_kind\":\"cpu\",\"fpmath_mode\":\"strict\",\"input_ports\":[9],\"graph\":[\n"
    "{\"id\":4,\"name\":\"b\",\"kind\":\"ReLUBackward\",\"attrs\":{\"use_dst\":{\"type\":\"bool\",\"value\":1}},\n"
    "\"inputs\":[" UNKNOWN("8") "," PERMUTED("2") "],\"outputs\":[" PERMUTED("10") "]},\n"
    "{\"id\":5,\"name\":\"\",\"kind\":\"End\",\"attrs\":{},\"inputs\":[" UNKNOWN("8") "],\"outputs\":[]},\n"
    "{\"id\":70000000000,\"name\":\"a\",\"kind\":\"BatchNormInference\",\"attrs\":{\n"
    "\"epsilon\":{\"type\":\"f32\",\"value\":0.0625},\"data_format\":{\"type\":\"string\",\"value\":\"NCX\"}},\n"
    "\"inputs\":[" PERMUTED("1") "," CHANNELS("3") "," CHANNELS("3") "," CHANNELS("4") "," CHANNELS("5") "],\n"
    "\"outputs\":[" UNKNOWN("8") "]}]}\n";
// clang-format on

static const char onednn_printed[] =
    "format: ngrad/1\n"
    "name: test\n"
    "inputs:\n"
    "  - {name: t2, type: f32, shape: [2, 3, 4, 5], order: [0, 2, 3, 1]}\n"
    "  - {name: t1, type: f32, shape: [2, 3, 4, 5], order: [0, 2, 3, 1]}\n"
    "  - {name: t3, type: f32, shape: [3]}\n"
    "  - {name: t4, type: f32, shape: [3]}\n"
    "  - {name: t5, type: f32, shape: [3]}\n"
    "nodes:\n"
    "  - op: BatchNormInference\n"
    "    label: \"id 70000000000\"\n"
    "    inputs: {src: t1, gamma: t3, beta: t3, mean: t4, variance: t5}\n"
    "    outputs:\n"
    "      dst: {name: t8, type: f32, shape: [2, 3, 4, 5]}\n"
    "    attributes: {epsilon: 0.0625, data_format: NCX}\n"
    "  - op: ReLUBackward\n"
    "    label: \"id 4\"\n"
    "    inputs: {dst: t8, diff_dst: t2}\n"
    "    outputs:\n"
    "      diff_src: {name: t10, type: f32, shape: [2, 3, 4, 5], order: [0, 2, 3, 1]}\n"
    "    attributes: {use_dst: true}\n"
    "outputs: [t8, t10]\n";

static void onednn_json_becomes_a_graph_like_others(void **state) {
  (void)state;
  must_become(onednn, onednn_printed);
}

// Nodes and values have the positions of their entries in the JSON file, not positions in the tree that the reader
// makes.
static void places_in_json_are_kept(void **state) {
  (void)state;
  Graph *g = must_read(onednn);
  assert_int_equal(g->nodes[0]->position.line, 5);
  assert_int_equal(g->nodes[0]->position.column, 37);
  assert_int_equal(g->inputs[0]->position.line, 3);
  assert_string_equal(g->nodes[1]->label, "id 4");
  graph_free(g);
}

static void print_is_typed_sorted_and_a_fixed_point(void **state) {
  (void)state;
  must_become(example, example_printed);
  must_become(step, step);
}

static void print_of_every_model_is_a_fixed_point(void **state) {
  (void)state;
  glob_t found;
  if (glob("models/*.yaml", 0, NULL, &found) != 0) skip();
  for (size_t i = 0; i < found.gl_pathc; i++) {
    Diagnostics d;
    Text out;
    diagnostics_init(&d, &system_allocator);
    text_init(&out, &system_allocator);
    Graph *g = yaml_read_file(&system_allocator, found.gl_pathv[i], NULL, &d);
    if (!g) print_error("%s: %s\n", found.gl_pathv[i], d.items[0].message);
    assert_non_null(g);
    yaml_print(g, &out);
    Graph *again = must_read(text_string(&out));
    must_print(again, text_string(&out));
    graph_free(again);
    graph_free(g);
    text_deinit(&out);
    diagnostics_deinit(&d);
  }
  globfree(&found);
}

static void graph_of_inputs_alone_is_valid(void **state) {
  (void)state;
  must_become("format: ngrad/1\ninputs: [{name: x, type: s8, shape: []}]\nnodes:\noutputs: [x]\n",
              "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: s8, shape: []}\noutputs: [x]\n");
}

static void printer_leaves_out_unused_constants(void **state) {
  (void)state;
  must_become("{format: ngrad/1, name: g, constants: [{name: c, type: f32, shape: [], value: 1}, "
              "{name: d, type: f32, shape: [], value: 2}], outputs: [d]}",
              "format: ngrad/1\nname: g\nconstants:\n  - {name: d, type: f32, shape: [], value: 2.0}\noutputs: [d]\n");
}

static void positions_count_characters_from_1(void **state) {
  (void)state;
  Graph *g =
      must_read("format: ngrad/1\ninputs: [{name: \"é\", type: f32, shape: []}, {name: x, type: f32, shape: []}]\n"
                "outputs: [x]\n");
  assert_int_equal(g->inputs[1]->position.line, 2);
  assert_int_equal(g->inputs[1]->position.column, 52);
  assert_ptr_equal(g->inputs[1]->position.source, g->source);
  graph_free(g);
}

// All texts of JSON are in quotes. There a dim's name comes first, so that a name with an operator can be given.
static void formulas_may_be_quoted(void **state) {
  (void)state;
  Graph *g = must_read("{\"format\": \"ngrad/1\", \"dims\": {\"N\": 4, \"N + 1\": 9},\n"
                       " \"inputs\": [{\"name\": \"x\", \"type\": \"f32\", \"shape\": [\"2 * N\", \"N + 1\"]}],\n"
                       " \"nodes\": [{\"op\": \"Pad\", \"inputs\": [\"x\"], \"outputs\": [\"y\"],\n"
                       "  \"attributes\": {\"pads_begin\": [\"3 * N\", 0], \"pads_end\": [0, 0]}}],\n"
                       " \"outputs\": [\"y\"]}\n");
  assert_int_equal(extent_value(g->inputs[0]->shape.extent[0]), 8);
  assert_int_equal(extent_value(g->inputs[0]->shape.extent[1]), 9);
  assert_int_equal(extent_value(g->outputs[0]->shape.extent[0]), 20);
  graph_free(g);
}

// The extent of [dim, one] joined along their first axis, as it is printed: a formula in quotes unless its names are
// words. What is printed is read back, in a graph that reads the extent as that of an input.
static void formulas_of_any_names_are_read_back(void **state) {
  (void)state;
  static const struct {
    const char *dim, *other, *extent; // other: declared beside dim
  } cases[] = {
      {"T", "N", "T + 1"},
      {"w 2", "N", "\"w 2 + 1\""},
      {" s ", "N", "\" s  + 1\""},
      {"null", "N", "\"null + 1\""},
      {"h:#", "N", "\"h:# + 1\""},
      {"\xC3\xA9", "N", "\"\xC3\xA9 + 1\""},
      {"[x]", "N", "\"[x] + 1\""},
      {"-", "N", "\"- + 1\""},
      {"w +", "N", "\"w + + 1\""},
      {"a + b", "N", "\"a + b + 1\""},
      {"7", "N", "\"7 + 1\""},
      {"T", "T + 1", "T + 1"}, // plain, a formula comes first
      {"w 2", "w 2 + 1", "\"\\\"w 2\\\" + 1\""},
      {"N * T", "N", "\"\\\"N * T\\\" + 1\""},
      {"N + 1", "N", "\"\\\"N + 1\\\" + 1\""},
      {"w 2", "1", "_"},
      {"T", "1", "_"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[1024], extent[64];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: joined\ndims: {\"%s\": 5, \"%s\": 9}\ninputs:\n"
             "  - {name: x, type: f32, shape: [\"%s\", 2]}\n  - {name: one, type: f32, shape: [1, 2]}\n"
             "nodes: [{op: Concat, inputs: [x, one], outputs: [y], attributes: {axis: 0}}]\noutputs: [y]\n",
             cases[i].dim, cases[i].other, cases[i].dim);
    snprintf(extent, sizeof extent, "y, type: f32, shape: [%s, 2]", cases[i].extent);
    Graph *g = must_read(text);
    Text printed;
    text_init(&printed, &system_allocator);
    yaml_print(g, &printed);
    if (!strstr(text_string(&printed), extent)) fail_msg("expected %s, found\n%s", extent, text_string(&printed));
    Graph *again = must_read(text_string(&printed));
    must_print(again, text_string(&printed));
    assert_int_equal(extent_value(again->outputs[0]->shape.extent[0]), 6);
    assert_non_null(again->outputs[0]->shape.extent[0].dim);
    text_deinit(&printed);
    graph_free(again);
    graph_free(g);
  }
}

static void names_are_quoted_where_yaml_needs_it(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"x", "x"},
      {"a.b-c/d+1", "a.b-c/d+1"},
      {"_", "_"},
      {"null", "\"null\""},
      {"No", "\"No\""},
      {"1", "\"1\""},
      {"", "\"\""},
      {"~", "\"~\""},
      {"a b", "\"a b\""},
      {"-", "\"-\""},
      {"a:b", "\"a:b\""},
      {"\xC3\xA9", "\"\xC3\xA9\""},
      {"\"\\", "\"\\\"\\\\\""},
      {"\n\x1B", "\"\\u000A\\u001B\""},
      {"\xE2\x80\xA8", "\"\\u2028\""},
      {"\xEF\xBB\xBF", "\"\\uFEFF\""},
      {"\xC2\x85", "\"\\u0085\""},
      {"\xF0\x9F\x99\x82", "\"\xF0\x9F\x99\x82\""},
      {"\xFF", "\"\\u00FF\""},
      {"\xE2\x80", "\"\\u00E2\\u0080\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Text out;
    text_init(&out, &system_allocator);
    yaml_print_name(cases[i][0], &out);
    assert_string_equal(text_string(&out), cases[i][1]);
    text_deinit(&out);
  }
}

static void locale_does_not_matter(void **state) {
  (void)state;
  static const char *const with_commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8", "pt_BR.UTF-8"};
  bool is_set = false;
  for (size_t i = 0; i < sizeof with_commas / sizeof *with_commas && !is_set; i++)
    is_set = setlocale(LC_NUMERIC, with_commas[i]) != NULL;
  if (!is_set) skip();
  must_become(example, example_printed);
  setlocale(LC_NUMERIC, "C");
}

static void bad_nodes_hide_nothing_and_cause_nothing(void **state) {
  (void)state;
  must_fail("format: ngrad/1\n"
            "inputs: [{name: x, type: f32, shape: [4]}]\n"
            "nodes:\n"
            "  - {op: Nonsense, inputs: [x], outputs: [a, {name: b}]}\n"
            "  - {op: ReLU, inputs: [a], outputs: [c]}\n"
            "  - {op: Add, inputs: {src_0: b, src_1: c}, outputs: {dst: e}, attributes: {auto_broadcast: no}}\n"
            "  - {op: ReLU, inputs: [e], outputs: [f]}\n"
            "  - {op: LayerNormBackward, inputs: [x, f], outputs: [g]}\n"
            "outputs: [a, b, c, e, f, g]\n",
            "unknown operator Nonsense, see ngrad ops for the list", 3);
}

static void second_use_of_an_unknown_value_is_not_told(void **state) {
  (void)state;
  must_fail("format: ngrad/1\nnodes:\n  - {op: ReLU, inputs: [q], outputs: [a]}\n  - {op: ReLU, inputs: [q], "
            "outputs: [b]}\noutputs: [a, b]\n",
            "ReLU: unknown value q, expected an input, a constant or a node's output", 1);
}

static void files_of_constants_need_a_folder(void **state) {
  (void)state;
  must_fail("format: ngrad/1\nconstants: [{name: c, type: f32, shape: [1], file: c.npy}]\noutputs: [c]\n",
            "c.npy: a graph that is not read from a file cannot name files", 1);
}

// Files

static void must_refuse_path(const char *path, const char *message) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  assert_null(yaml_read_file(&system_allocator, path, NULL, &d));
  assert_int_equal(d.count, 1);
  assert_string_equal(d.items[0].message, message);
  assert_string_equal(d.items[0].file, path);
  diagnostics_deinit(&d);
}

static void only_regular_files_are_read(void **state) {
  (void)state;
  char folder[] = "/tmp/ngrad-yaml-XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  must_refuse_path(folder, "expected a regular file, found a folder");
  must_refuse_path("/dev/zero", "expected a regular file, found a device or pipe");
  snprintf(path, sizeof path, "%s/none", folder);
  must_refuse_path(path, "no such file or directory");
  snprintf(path, sizeof path, "%s/fifo", folder);
  assert_int_equal(mkfifo(path, 0600), 0);
  must_refuse_path(path, "expected a regular file, found a device or pipe");
  unlink(path);
  snprintf(path, sizeof path, "%s/long", folder);
  int fd = open(path, O_WRONLY | O_CREAT, 0600);
  assert_int_equal(ftruncate(fd, YAML_MAX_BYTES + 1), 0);
  close(fd);
  must_refuse_path(path, "too long, expected at most 64 MiB");
  unlink(path);
  rmdir(folder);
}

// Limits

static void many_nodes_are_read_in_time(void **state) {
  (void)state;
  enum { COUNT = 100000 };
  Text text;
  text_init(&text, &system_allocator);
  text_add_string(&text, "format: ngrad/1\ninputs: [{name: x0, type: f32, shape: [4]}]\nnodes:\n");
  for (int i = COUNT; i > 0; i--) text_format(&text, "- {op: ReLU, inputs: [x%d], outputs: [x%d]}\n", i - 1, i);
  text_format(&text, "outputs: [x%d]\n", COUNT);
  Graph *g = must_read(text_string(&text)); // or the runner's time limit
  assert_int_equal(g->nnodes, COUNT);
  assert_string_equal(g->nodes[0]->outputs[0]->name, "x1");
  graph_free(g);
  text_deinit(&text);
}

// A chain of many operators.
static void many_json_tensors_are_read_in_time(void **state) {
  (void)state;
  enum { COUNT = 20000 };
  Text text;
  text_init(&text, &system_allocator);
  text_add_string(&text, "{\"graph\": [");
  for (int i = 0; i < COUNT; i++)
    text_format(&text,
                "%s{\"id\": %d, \"name\": \"\", \"kind\": \"ReLU\", \"attrs\": {}, \"inputs\": [" TENSOR(
                    "%d", "[2]", "[1]") "], \"outputs\": [" TENSOR("%d", "[2]", "[1]") "]}\n",
                i ? "," : "", i, i, i + 1);
  text_add_string(&text, "]}");
  Graph *g = must_read(text_string(&text));
  assert_int_equal(g->nnodes, COUNT);
  graph_free(g);
  text_deinit(&text);
}

static void many_mistakes_are_told_in_time(void **state) {
  (void)state;
  Text text;
  text_init(&text, &system_allocator);
  text_add_string(&text, "format: ngrad/1\nnodes:\n");
  for (int i = 0; i < 50000; i++) text_format(&text, "- {op: ReLu, inputs: [u%d], outputs: [x%d]}\n", i, i);
  text_add_string(&text, "outputs: [x1]\n");
  Diagnostics d;
  assert_null(read_text(text_string(&text), &d));
  assert_int_equal(d.nerrors, 100000);
  diagnostics_deinit(&d);
  text_deinit(&text);
}

// `before`, then `middle` `count` times, then `after`, is refused.
static void must_refuse(const char *before, const char *middle, int count, const char *after, const char *message) {
  Text text;
  text_init(&text, &system_allocator);
  text_add_string(&text, before);
  for (int i = 0; i < count; i++) text_add_string(&text, middle);
  text_add_string(&text, after);
  must_fail(text_string(&text), message, 1);
  text_deinit(&text);
}

static void hostile_structures_are_refused_in_time(void **state) {
  (void)state;
  static const char deep[] = "nested too deep, expected at most 64 levels";
  static const char many[] = "aliases stand for too many YAML nodes, expected at most 4000000";
  must_refuse("", "[", 1000000, "", deep);
  must_refuse("", "{a: ", 1000000, "", deep);
  must_refuse("", "- ", 1000000, "", deep);
  must_refuse("? ", "[a]", 1, "\n: b", "expected a word as key, found a list");
  if (takes_all()) must_refuse("[", "x,", (1 << 24) + 1, "]", "too many YAML nodes, expected at most 16777216");
  must_refuse("[&a [x, x, x, x], ", "*a,", 1000000, "]", many);
  must_refuse("", "%TAG !a! tag:a,2000:\n", 1000000, "--- a\n", "more than 100 %TAG directives");
}

// A directive begins a line.
static void percent_signs_in_names_are_no_directives(void **state) {
  (void)state;
  Text text;
  text_init(&text, &system_allocator);
  text_add_string(&text, "format: ngrad/1\ninputs: [{name: \"%TAG\", type: f32, shape: []}]\nnodes:\n");
  for (int i = 0; i < 200; i++) text_format(&text, "- {op: ReLU, inputs: [\"%%TAG\"], outputs: [x%d]}\n", i);
  text_add_string(&text, "outputs: [x1]\n");
  graph_free(must_read(text_string(&text)));
  text_deinit(&text);
}

// Failing allocations and random bytes

// Reads the text with each allocation failing in turn; it is right or wrong when none does.
static void must_survive_failing_allocations(const char *text, bool is_right) {
  bool is_done = false;
  for (size_t n = 0; n < 100000 && !is_done; n++) {
    FailingAllocator failing;
    failing_allocator_init(&failing, n);
    Diagnostics d;
    diagnostics_init(&d, &failing.allocator);
    Graph *g = yaml_read(&failing.allocator, "test.yaml", text, strlen(text), "tests/errors", &d);
    is_done = failing.ncalls <= n;
    assert_true(is_done ? is_right == (g != NULL) && !d.out_of_memory : !g);
    assert_true(g || d.out_of_memory || d.nerrors > 0);
    graph_free(g);
    diagnostics_deinit(&d);
    assert_int_equal(failing.nlive, 0);
  }
  assert_true(is_done);
}

static void every_failing_allocation_is_an_error(void **state) {
  (void)state;
  must_survive_failing_allocations(example, true);
  must_survive_failing_allocations(onednn, true);
  must_survive_failing_allocations("format: ngrad/1\nconstants: [{name: c, type: f32, file: data/f32.npy}, {name: d, "
                                   "type: f32, shape: [4], file: data/f32.npy}]\noutputs: [c, d]\n",
                                   true);
}

static void every_failing_allocation_in_a_wrong_graph_is_an_error(void **state) {
  (void)state;
  must_survive_failing_allocations("format: ngrad/1\ninputs: [{name: x, typ: f31, shape: [A]}]\n"
                                   "constants: [{name: c, type: u8, shape: [2], values: [1, 256]}]\n"
                                   "nodes: [{op: Relu6}, {op: ReLU, inputs: [y], outputs: [c]}, {op: Add, inputs: "
                                   "[c, c, c]}]\noutputs: [z]\n",
                                   false);
  must_survive_failing_allocations(
      "{\"graph\": [{\"id\": 0, \"kind\": \"ReLU\", \"attrs\": [], \"name\": \"\", \"inputs\": [" TENSOR(
          "1", "[2]", "[2]") ", " TENSOR("1", "[3]", "[1]") "], \"outputs\": [3]}]}",
      false);
}

static void constants_share_a_files_data(void **state) {
  (void)state;
  static const char text[] = "format: ngrad/1\nconstants:\n  - {name: a, type: f32, file: data/f32.npy}\n"
                             "  - {name: b, type: f32, shape: [_], file: data/f32.npy}\n"
                             "  - {name: c, type: bf16, shape: [4], file: data/f32.npy}\noutputs: [a, b, c]\n";
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "test.yaml", text, strlen(text), "tests/errors", &d);
  assert_non_null(g);
  assert_ptr_equal(g->values[0]->constant->data, g->values[1]->constant->data);
  assert_ptr_not_equal(g->values[0]->constant->data, g->values[2]->constant->data);
  for (size_t i = 0; i < 4; i++) {
    assert_true(type_load(TYPE_F32, g->values[1]->constant->data, i) == (double)(i + 1));
    assert_true(type_load(TYPE_BF16, g->values[2]->constant->data, i) == (double)(i + 1));
  }
  graph_free(g);
  diagnostics_deinit(&d);
}

static uint32_t next_random(uint32_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

// Overwrites, removes, doubles or copies a few stretches of the text.
static void mutate(char *text, size_t *nbytes, size_t capacity, uint32_t *random) {
  static const char telling[] = "{}[]:,-#&*!|>'\"%@`~ \n\t\\?_01.exN\xC3\xA9\xFF";
  for (uint32_t changes = next_random(random) % 4; changes < 4; changes += 1 + next_random(random) % 4) {
    size_t at = next_random(random) % *nbytes, n = 1 + next_random(random) % 12;
    if (n > *nbytes - at) n = *nbytes - at;
    switch (next_random(random) % 5) {
    case 0: text[at] = telling[next_random(random) % (sizeof telling - 1)]; break;
    case 1: text[at] = (char)next_random(random); break;
    case 2:
      if (n >= *nbytes) break;
      memmove(text + at, text + at + n, *nbytes - at - n);
      *nbytes -= n;
      break;
    case 3: memmove(text + at, text + next_random(random) % (*nbytes - n + 1), n); break;
    default:
      if (*nbytes + n > capacity) break;
      memmove(text + at + n, text + at, *nbytes - at);
      *nbytes += n;
    }
  }
}

static void mutated_files_do_no_harm(void **state) {
  (void)state;
  enum { COUNT = 20000, CAPACITY = sizeof onednn + sizeof example + 256 };
  static const char *const texts[] = {example, example_printed, step, onednn};
  uint32_t random = 20240607;
  size_t nvalid = 0;
  for (int i = 0; i < COUNT; i++) {
    char *text = malloc(CAPACITY), *exact;
    const char *from = texts[i % 3];
    size_t nbytes = strnlen(from, CAPACITY);
    memcpy(text, from, nbytes);
    mutate(text, &nbytes, CAPACITY, &random);
    exact = realloc(text, nbytes); // so that reading behind it shows
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    Graph *g = yaml_read(&system_allocator, "test.yaml", exact, nbytes, NULL, &d);
    Text once, twice;
    text_init(&once, &system_allocator);
    text_init(&twice, &system_allocator);
    diagnostics_print(&d, &once, true);
    assert_true(g ? d.nerrors == 0 : d.nerrors > 0);
    if (g) { // then its print must be a fixed point
      nvalid++;
      text_deinit(&once);
      yaml_print(g, &once);
      Graph *again = must_read(text_string(&once));
      yaml_print(again, &twice);
      assert_string_equal(text_string(&once), text_string(&twice));
      graph_free(again);
    }
    text_deinit(&once);
    text_deinit(&twice);
    graph_free(g);
    diagnostics_deinit(&d);
    free(exact);
  }
  assert_true(nvalid > 0); // else this tests too little
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(print_is_typed_sorted_and_a_fixed_point),
      cmocka_unit_test(onednn_json_becomes_a_graph_like_others),
      cmocka_unit_test(places_in_json_are_kept),
      cmocka_unit_test(print_of_every_model_is_a_fixed_point),
      cmocka_unit_test(graph_of_inputs_alone_is_valid),
      cmocka_unit_test(printer_leaves_out_unused_constants),
      cmocka_unit_test(positions_count_characters_from_1),
      cmocka_unit_test(formulas_may_be_quoted),
      cmocka_unit_test(formulas_of_any_names_are_read_back),
      cmocka_unit_test(names_are_quoted_where_yaml_needs_it),
      cmocka_unit_test(locale_does_not_matter),
      cmocka_unit_test(bad_nodes_hide_nothing_and_cause_nothing),
      cmocka_unit_test(second_use_of_an_unknown_value_is_not_told),
      cmocka_unit_test(files_of_constants_need_a_folder),
      cmocka_unit_test(only_regular_files_are_read),
      cmocka_unit_test(many_nodes_are_read_in_time),
      cmocka_unit_test(many_json_tensors_are_read_in_time),
      cmocka_unit_test(many_mistakes_are_told_in_time),
      cmocka_unit_test(hostile_structures_are_refused_in_time),
      cmocka_unit_test(percent_signs_in_names_are_no_directives),
      cmocka_unit_test(every_failing_allocation_is_an_error),
      cmocka_unit_test(every_failing_allocation_in_a_wrong_graph_is_an_error),
      cmocka_unit_test(constants_share_a_files_data),
      cmocka_unit_test(mutated_files_do_no_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
