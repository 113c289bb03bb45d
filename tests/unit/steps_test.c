// Compiling takes a bounded number of steps: graphs of ten lines with enormous extents, strides, padding, kernels and
// dilations are compiled in few steps, and graphs that need too many are refused with a message.
#include "frontend/api/handles.h"
#include "ir/operators/window.h"
#include "tests/unit/api_case.h"

#include <stdio.h>

enum { FEW_STEPS = 1 << 20, SMALL = 1 << 20, TIMES = 10 };

// Counting

static void steps_that_are_used_up_stay_so(void **state) {
  (void)state;
  Steps steps = {3};
  assert_true(steps_take(NULL, INT64_MAX));
  assert_true(steps_take(&steps, 3));
  assert_false(steps_are_used_up(&steps));
  assert_false(steps_take(&steps, 1));
  assert_true(steps_are_used_up(&steps));
  assert_false(steps_take(&steps, 0));
}

static void an_arena_without_steps_is_out_of_memory(void **state) {
  (void)state;
  Steps steps = {100};
  Allocator a = system_allocator;
  a.steps = &steps;
  Arena arena;
  arena_init(&arena, &a);
  int n = 0;
  while (n < 1000 && arena_alloc(&arena, 8)) n++;
  assert_int_equal(n, 100);
  steps.left = 100;
  assert_null(arena_alloc(&arena, 1 << 20)); // which takes long to clear
  arena_deinit(&arena);
}

static void a_text_takes_a_step_each_16_bytes(void **state) {
  (void)state;
  Steps steps = {100};
  Allocator a = system_allocator;
  a.steps = &steps;
  Text t;
  text_init(&t, &a);
  for (int i = 0; i < 100; i++) text_format(&t, "%d, ", i % 10);
  assert_int_equal(steps.left, 100 - 300 / 16);
  text_add_string(&t, "0123456789abcdef");
  assert_int_equal(steps.left, 100 - 300 / 16 - 1);
  for (int i = 0; i < 1000; i++) text_format(&t, "%d", i % 10);
  assert_false(t.out_of_memory);
  for (int i = 0; i < 1000; i++) text_format(&t, "%d", i % 10);
  assert_true(t.out_of_memory && steps_are_used_up(&steps));
  text_deinit(&t);
}

static uint64_t count_steps(ng_graph *g) {
  ng_compilation all;
  assert_int_equal(ng_graph_compilation(g, NULL, &all), NG_OK);
  return all.nsteps;
}

static void a_graph_takes_the_same_steps_each_time(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  const uint64_t steps = count_steps(g);
  assert_in_range(steps, 1000, FEW_STEPS);
  assert_int_equal(count_steps(g), steps);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void more_steps_than_the_most_are_an_error(void **state) {
  (void)state;
  static const char *const formats[] = {"kernels", "loops", "c", "memory"};
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  ng_compilation all;
  const uint64_t needed = count_steps(g);
  for (uint64_t most = 1; most < needed; most += most / 4 + 1) {
    ng_context_set_max_steps(ctx, most);
    assert_int_equal(ng_graph_compilation(g, NULL, &all), NG_WRONG);
    assert_int_equal(ng_message_count(ctx), 1);
    assert_non_null(strstr(ng_message_at(ctx, 0).text, "layer norm takes more than "));
    ng_messages_clear(ctx);
  }
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) { // wherever the steps end, memory has not
    char *text = NULL;
    for (uint64_t most = 200; !text; most += most / 16) {
      ng_context_set_max_steps(ctx, most);
      text = ng_graph_show(g, formats[i], NULL);
      assert_int_equal(ng_last_status(ctx), text ? NG_OK : NG_WRONG);
      if (most > 200) ng_messages_clear(ctx);
      else
        must_have_said(ctx, "layer norm takes more than 200 steps to compile; divide it into smaller graphs, or raise "
                            "the limit with --max-steps");
    }
    ng_text_free(ctx, text);
  }
  ng_context_set_max_steps(ctx, 200);
  assert_null(ng_compile(g, NULL));
  assert_int_equal(ng_last_status(ctx), NG_WRONG);
  ng_messages_clear(ctx);
  ng_context_set_max_steps(ctx, 0);
  assert_int_equal(count_steps(g), needed);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void a_file_that_is_read_in_too_many_steps_is_refused(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_context_set_max_steps(ctx, 20);
  assert_null(read_text(ctx, layer_norm));
  assert_int_equal(ng_last_status(ctx), NG_WRONG);
  assert_non_null(strstr(ng_message_at(ctx, 0).text, "test.yaml takes more than 20 steps to compile"));
  ng_context_free(ctx);
}

// Closed forms, beside the loops that they stand for

static void first_taps_are_those_that_a_search_finds(void **state) {
  (void)state;
  enum { MOST = 9, TAPS = 30 };
  for (int64_t stride = 1; stride <= MOST; stride++)
    for (int64_t dilation = 1; dilation <= MOST; dilation++)
      for (int64_t place = 0; place < INT64_C(2) * MOST; place++)
        for (int64_t from = 0; from < MOST; from++) {
          const Window w = {.stride = stride, .dilation = dilation, .pad_begin = dilation % 4, .kernel = TAPS};
          int64_t tap = from;
          while (tap < TAPS && (place - window_place(&w, 0, tap)) % stride) tap++;
          assert_int_equal(window_tap_at(&w, place, from), tap < TAPS ? tap : INT64_MAX);
        }
}

static void first_taps_of_enormous_windows_are_exact(void **state) {
  (void)state;
  const Window w = {.stride = INT32_MAX, .dilation = 1 << 30}; // 2 * 2^30 is 1 modulo 2^31 - 1
  assert_int_equal(window_tap_at(&w, 1, 0), 2);
  assert_int_equal(window_tap_at(&w, 1, 3), (int64_t)INT32_MAX + 2);
  assert_int_equal(window_tap_at(&w, INT32_MAX - 1, 0), INT32_MAX - 2);
  assert_int_equal(window_tap_step(&w), INT32_MAX);
}

// Graphs of enormous numbers. Each is compiled at once, and its workspace is not much larger than its tensors.

typedef struct Enormous {
  const char *inputs, *node; // the text between the list's and the node's brackets; its result is y
} Enormous;

#define IN(name, shape) "{name: " #name ", type: f32, shape: " shape "}"

static const Enormous enormous[] = {
    // windows that are very far apart
    {IN(dy, "[1, 2, 2]"),
     "op: AvgPoolBackward, inputs: [dy], outputs: [y], attributes: {strides: [1073741824], "
     "pads_begin: [536870912], pads_end: [536870912], kernel: [1073741824], exclude_pad: false, data_format: NCX, "
     "src_shape: [1, 2, 1073741824]}"},
    {IN(dy, "[1, 1, 1, 40]"),
     "op: AvgPoolBackward, inputs: [dy], outputs: [y], attributes: {strides: [1073741824, 5], "
     "pads_begin: [0, 0], pads_end: [0, 0], kernel: [3, 3], exclude_pad: false, data_format: NCX, "
     "src_shape: [1, 1, 1073741824, 198]}"},
    {IN(dy, "[1, 4, 2, 9]") ", " IN(w, "[4, 4, 3, 3]"),
     "op: ConvolutionBackwardData, inputs: [dy, w], outputs: [y], attributes: {strides: [1000003, 7], "
     "pads_begin: [0, 0], pads_end: [0, 0], dilations: [1000033, 100], dst_shape: [1, 4, 3000070, 257], data_format: "
     "NCX, weights_format: OIX}"},
    // no window on one axis, and very many residues on the other
    {IN(dy, "[2, 1, 1, 1]") ", " IN(w, "[34359738368, 17, 1, 1]"),
     "op: ConvolutionBackwardData, inputs: [dy, w], outputs: [y], attributes: {strides: [2, 736342202], "
     "pads_begin: [0, 0], pads_end: [0, 0], auto_pad: SAME_LOWER, dilations: [2, 1309487], dst_shape: [2, 1, 316, 1], "
     "data_format: NXC, weights_format: XIO}"},
    // very many columns, which have few divisors
    {IN(x, "[4, 8]") ", " IN(w, "[8, 1099511627776]"), "op: MatMul, inputs: [x, w], outputs: [y]"},
    {IN(x, "[1, 1]") ", " IN(w, "[1, 140737488355213]"), "op: MatMul, inputs: [x, w], outputs: [y]"},
    // slices of very many rows
    {IN(x, "[1099511627776, 4, 2]") ", " IN(dy, "[1099511627776, 4, 1]"),
     "op: MaxPoolBackward, inputs: [x, dy], outputs: [y], attributes: {strides: [2], pads_begin: [0], pads_end: [0], "
     "kernel: [2], data_format: NCX}"},
    // interiors and borders
    {IN(x, "[2, 64, 50000]"),
     "op: AvgPool, inputs: [x], outputs: [y], attributes: {strides: [1], "
     "pads_begin: [1073741824], pads_end: [1073741824], kernel: [1073741825], exclude_pad: true, "
     "data_format: NXC}"},
    // loops over nothing
    {IN(x, "[274877906944, 0]"), "op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [0, 1]}"},
    {IN(x, "[274877906944, 0, 4]"), "op: ReduceMean, inputs: [x], outputs: [y], attributes: {axes: [0, 1]}"},
    {IN(x, "[0, 274877906944]"), "op: ReduceMax, inputs: [x], outputs: [y], attributes: {axes: [0, 1]}"},
    // padding and gaps that are far larger than the tensors
    {IN(x, "[1, 16, 32]") ", " IN(w, "[16, 16, 3]"),
     "op: Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [1], pads_begin: [67108864], "
     "pads_end: [67108864], dilations: [67108864], data_format: NCX, weights_format: OIX}"},
    {IN(dy, "[1, 16, 32]") ", " IN(w, "[16, 16, 3]"),
     "op: ConvolutionBackwardData, inputs: [dy, w], outputs: [y], attributes: {strides: [1], pads_begin: [67108864], "
     "pads_end: [67108864], dilations: [67108864], dst_shape: [1, 16, 32], data_format: NCX, weights_format: OIX}"},
    // more indices than 64 bits count
    {IN(dy, "[16, 8192, 65536, 8192]") ", " IN(w, "[28, 8388549, 8192, 28]"),
     "op: ConvTransposeBackwardData, inputs: [dy, w], outputs: [y], attributes: {strides: [1, 1], "
     "pads_begin: [0, 0], pads_end: [0, 0], auto_pad: SAME_LOWER, dilations: [3, 1491690], data_format: NXC, "
     "weights_format: XOI}"},
    {IN(x, "[1, 25769803776, 1]") ", " IN(w, "[2, 25769803776, 1]"),
     "op: Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [1], pads_begin: [0], "
     "pads_end: [2147483646], dilations: [1], data_format: NCX, weights_format: OIX}"},
};

static void write_graph(const Enormous *e, char *text, size_t nbytes) {
  snprintf(text, nbytes, "format: ngrad/1\nname: enormous\ninputs: [%s]\nnodes: [{%s}]\noutputs: [y]\n", e->inputs,
           e->node);
}

static void enormous_numbers_take_few_steps(void **state) {
  (void)state;
  char text[2048];
  for (size_t i = 0; i < sizeof enormous / sizeof *enormous; i++) {
    write_graph(&enormous[i], text, sizeof text);
    ng_context *ctx = new_context();
    ng_graph *g = must_read(ctx, text);
    size_t nbytes, unshared;
    ng_memory memory;
    if (ng_graph_workspace(g, NULL, &nbytes, &unshared) != NG_OK) fail_msg("%s%s", text, ng_messages_text(ctx, 0));
    assert_int_equal(ng_graph_memory(g, &memory), NG_OK);
    if (nbytes > SMALL + TIMES * (memory.inputs_nbytes + memory.outputs_nbytes))
      fail_msg("%s: the workspace has %zu bytes, which is too much", text, nbytes);
    if (count_steps(g) > FEW_STEPS)
      fail_msg("%s: compiling takes %llu steps, expected few", text, (unsigned long long)count_steps(g));
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Three images of 2^40 rows, each of 2^24 x 1024 taps, whose sums are not kept in registers.
static void more_iterations_than_numbers_are_an_error(void **state) {
  (void)state;
  static const char text[] =
      "format: ngrad/1\nname: taps\ninputs: [{name: dy, type: f32, shape: [3, 2, 2, 1]}, "
      "{name: w, type: f32, shape: [16777216, 1024, 6, 1]}]\n"
      "nodes:\n"
      "  - {op: ConvolutionBackwardData, inputs: [dy, w], outputs: [dx], attributes: {strides: [1073741824, 1024], "
      "pads_begin: [0, 0], pads_end: [1073741823, 2047], dilations: [65536, 1], dst_shape: [3, 1099511627776, 1, 6]}}\n"
      "outputs: [dx]\n";
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text);
  ng_compilation all;
  const char *const schedule = "middle=0";
  const ng_options options = {.schedule = &schedule, .nschedule = 1};
  assert_int_equal(ng_graph_compilation(g, &options, &all), NG_WRONG);
  must_have_said(ctx, "ConvolutionBackwardData (line 5): a loop has 2^56 iterations or more, expected fewer");
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Constants

// Of n convolutions of constants that are small, but have many products.
static void constants_are_not_folded_at_any_cost(void **state) {
  (void)state;
  static const char text[] =
      "format: ngrad/1\nname: folded\ninputs: [{name: x, type: f32, shape: [1, 1, 8192]}]\n"
      "constants: [{name: a, type: f32, shape: [1, 1, 16000], value: 1}, {name: w, type: f32, shape: [1, 1, 8000], "
      "value: 1}]\n"
      "nodes:\n"
      "  - {op: Convolution, inputs: [a, w], outputs: [b], attributes: {strides: [1], pads_begin: [0], pads_end: "
      "[191], "
      "dilations: [1], data_format: NCX, weights_format: OIX}}\n"
      "  - {op: Add, inputs: [x, b], outputs: [y]}\noutputs: [y]\n";
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text);
  ng_graph *after = ng_graph_run_passes(g, NULL);
  assert_non_null(after);
  assert_int_equal(ng_graph_node_count(after), 2);
  ng_graph_free(after);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// A batch of very many has no elements where there are no channels.
static void convolutions_of_nothing_are_interpreted_at_once(void **state) {
  (void)state;
  static const char text[] =
      "format: ngrad/1\nname: nothing\ninputs: [{name: x, type: f32, shape: [4398046511104, 0, 8]}]\n"
      "constants: [{name: w, type: f32, shape: [4, 0, 3], value: 1}, {name: c, type: f32, shape: [4398046511104, 0, "
      "8], "
      "value: 1}, {name: d, type: f32, shape: [4398046511104, 0, 6], value: 1}, {name: v, type: f32, shape: [0, 0, 3], "
      "value: 1}]\n"
      "nodes:\n"
      "  - {op: Convolution, inputs: [c, v], outputs: [e], attributes: {strides: [1], pads_begin: [0], pads_end: [0], "
      "dilations: [1], data_format: NCX, weights_format: OIX}}\n"
      "  - {op: ConvolutionBackwardWeights, inputs: [x, d], outputs: [f], attributes: {strides: [1], pads_begin: [0], "
      "pads_end: [0], dilations: [1], data_format: NCX, weights_format: OIX, weights_shape: [0, 0, 3]}}\n"
      "outputs: [e, f]\n";
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text);
  Data data;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  assert_int_equal(ng_interpret(g, data.in, data.out, 0), NG_OK);
  data_free(&data, ctx);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// A node without elements is not evaluated, as this would take memory for the elements of a row.
static void what_is_empty_is_folded_at_once(void **state) {
  (void)state;
  static const char text[] =
      "format: ngrad/1\nname: nothing\n"
      "constants: [{name: a, type: f32, shape: [0, 1099511627776], value: 1}, {name: b, type: f32, shape: "
      "[1099511627776, 0], value: 1}, {name: x, type: f32, shape: [0, 1, 1099511627776], value: 1}]\n"
      "nodes:\n"
      "  - {op: MatMul, inputs: [a, b], outputs: [c]}\n"
      "  - {op: MaxPool, inputs: [x], outputs: [y], attributes: {kernel: [1073741824], strides: [1], pads_begin: [0], "
      "pads_end: [0], data_format: NCX}}\n"
      "outputs: [c, y]\n";
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text);
  assert_in_range(count_steps(g), 0, FEW_STEPS);
  ng_graph_free(g);
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_that_are_used_up_stay_so),
      cmocka_unit_test(an_arena_without_steps_is_out_of_memory),
      cmocka_unit_test(a_text_takes_a_step_each_16_bytes),
      cmocka_unit_test(a_graph_takes_the_same_steps_each_time),
      cmocka_unit_test(more_steps_than_the_most_are_an_error),
      cmocka_unit_test(a_file_that_is_read_in_too_many_steps_is_refused),
      cmocka_unit_test(first_taps_are_those_that_a_search_finds),
      cmocka_unit_test(first_taps_of_enormous_windows_are_exact),
      cmocka_unit_test(enormous_numbers_take_few_steps),
      cmocka_unit_test(more_iterations_than_numbers_are_an_error),
      cmocka_unit_test(constants_are_not_folded_at_any_cost),
      cmocka_unit_test(convolutions_of_nothing_are_interpreted_at_once),
      cmocka_unit_test(what_is_empty_is_folded_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
