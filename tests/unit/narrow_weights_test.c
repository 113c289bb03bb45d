// Values of states from checkpoints, and weights in narrow types: the numbers, their errors, and what stays as it is.
#include "tests/unit/api_case.h"
#include "tests/unit/file_in_folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// w is a weight; b has one axis, c is updated, r is random.
static const char graph[] = "format: ngrad/1\n"
                            "name: g\n"
                            "inputs: [{name: x, type: f32, shape: [1, 2]}]\n"
                            "state:\n"
                            "  - {name: w, type: f32, shape: [2, 16], init: zeros}\n"
                            "  - {name: b, type: f32, shape: [16], init: zeros}\n"
                            "  - {name: c, type: f32, shape: [2, 16], init: zeros}\n"
                            "  - {name: r, type: f32, shape: [2, 16], init: {fan_in: 4}}\n"
                            "nodes:\n"
                            "  - {op: MatMul, inputs: [x, w, b], outputs: [y]}\n"
                            "  - {op: Add, inputs: [c, r], outputs: [c_next]}\n"
                            "outputs: [y]\n"
                            "updates: {c: c_next}\n";

enum { W = 1, NSTATES = 4, ROWS = 2, COLUMNS = 16 };

static float w[ROWS][COLUMNS], b[COLUMNS], c[ROWS][COLUMNS];

static void save(ng_context *ctx, const char *name_of_w) {
  const char *names[] = {name_of_w, "b", "c", "other"};
  const ng_tensor tensors[] = {{.type = NG_F32, .rank = 2, .extent = {ROWS, COLUMNS}, .data = w},
                               {.type = NG_F32, .rank = 1, .extent = {COLUMNS}, .data = b},
                               {.type = NG_F32, .rank = 2, .extent = {ROWS, COLUMNS}, .data = c},
                               {.type = NG_F32, .rank = 1, .extent = {COLUMNS}, .data = b}};
  assert_int_equal(ng_checkpoint_write(ctx, path, names, tensors, 4), NG_OK);
}

// The graph with the values of the checkpoint, and narrow weights unless the type is 0.
static ng_graph *with_values(ng_context *ctx, ng_type type) {
  ng_graph *g = must_read(ctx, graph);
  save(ctx, "w");
  assert_int_equal(ng_graph_read_states(g, path, 1), NG_OK);
  if (type) assert_int_equal(ng_graph_narrow_weights(g, type), NG_OK);
  return g;
}

static ng_type type_of(const ng_graph *g, size_t input) {
  return ng_graph_input(g, input).type;
}

// The product by x = [1, 1]: the sums of columns of w as the graph has them.
static void run(ng_context *ctx, ng_graph *g, float y[COLUMNS], int is_compiled) {
  enum { NTENSORS = NSTATES + 1 };
  static float x[ROWS] = {1, 1}, c_next[ROWS][COLUMNS];
  ng_tensor in[NTENSORS] = {{0}}, out[2];
  assert_int_equal(ng_graph_bind(g), NG_OK);
  in[0] = ng_tensor_view(ng_graph_input(g, 0), x);
  for (size_t i = 0; i < NSTATES; i++) assert_int_equal(ng_tensor_init(g, i, 0, &in[1 + i]), NG_OK);
  out[0] = ng_tensor_view(ng_graph_output(g, 0), y);
  out[1] = ng_tensor_view(ng_graph_output(g, 1), c_next);
  if (is_compiled) {
    ng_kernel *k = must_compile(ctx, g);
    assert_int_equal(ng_kernel_run(k, in, out, 1), NG_OK);
    ng_kernel_free(k);
  } else {
    assert_int_equal(ng_interpret(g, in, out, 0), NG_OK);
  }
  for (size_t i = 1; i < NTENSORS; i++) ng_tensor_free(ctx, &in[i]);
}

static void states_begin_with_the_values_of_a_checkpoint(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  float y[COLUMNS];
  memset(w, 0, sizeof w);
  w[0][3] = 2, w[1][3] = 5, b[3] = 0.5F;
  ng_graph *g = with_values(ctx, 0);
  run(ctx, g, y, 0);
  assert_true(y[3] == 7.5F && y[2] == 0);
  char *names = ng_checkpoint_names(ctx, path);
  assert_string_equal(names, "w\nb\nc\nother\n");
  ng_text_free(ctx, names);
  ng_graph_free(g);
  b[3] = 0;

  g = must_read(ctx, graph);
  save(ctx, "weights");
  assert_int_equal(ng_graph_read_states(g, path, 0), NG_WRONG); // r is missing, too
  assert_int_equal(ng_message_count(ctx), 2);
  assert_string_equal(ng_message_at(ctx, 0).text,
                      "no w.npy in it, expected f32 [2, 16]; it has weights.npy, other.npy");
  ng_messages_clear(ctx);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Row 0 has scale 1, row 1 scale 2: halves go to even.
static void s8_has_a_scale_for_each_row(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  float y[COLUMNS];
  memset(w, 0, sizeof w);
  w[0][0] = 127, w[0][1] = 0.5F, w[0][2] = 1.5F, w[0][3] = -126.25F;
  w[1][4] = 254, w[1][5] = 3, w[1][6] = -5;
  ng_graph *g = with_values(ctx, NG_S8);
  assert_int_equal(ng_graph_narrow_count(g), 1);
  const ng_narrow_weight narrow = ng_graph_narrow(g, 0);
  assert_string_equal(narrow.name, "w");
  assert_int_equal(narrow.nbytes_before, 128);
  assert_int_equal(narrow.nbytes, 32 + 2 * 4);
  assert_true(narrow.max_error == 1);
  assert_true(fabs(narrow.rms_error - sqrt((0.25 + 0.25 + 0.0625 + 1 + 1) / 32)) < 1e-12);
  assert_true(fabs(narrow.rms - sqrt((127 * 127 + 0.25 + 2.25 + 126.25 * 126.25 + 254 * 254 + 9 + 25) / 32)) < 1e-9);
  assert_int_equal(type_of(g, W), NG_S8);
  for (size_t i = W + 1; i < W + NSTATES; i++) assert_int_equal(type_of(g, i), NG_F32);
  static const float expected[COLUMNS] = {127, 0, 2, -126, 254, 4, -4};
  for (int is_compiled = 0; is_compiled < 2; is_compiled++) {
    run(ctx, g, y, is_compiled);
    for (int i = 0; i < COLUMNS; i++) assert_true(y[i] == expected[i]);
  }
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void s8_of_zeros_is_zeros_and_refuses_infinities(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  float y[COLUMNS];
  memset(w, 0, sizeof w);
  ng_graph *g = with_values(ctx, NG_S8);
  assert_true(ng_graph_narrow(g, 0).max_error == 0);
  run(ctx, g, y, 0);
  for (int i = 0; i < COLUMNS; i++) assert_true(y[i] == 0);
  ng_graph_free(g);
  w[1][2] = INFINITY;
  g = with_values(ctx, 0);
  assert_int_equal(ng_graph_narrow_weights(g, NG_S8), NG_WRONG);
  must_have_said(ctx, "state w: has a number that is not finite, which s8 cannot hold");
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void bf16_is_the_nearest_number(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  float y[COLUMNS];
  memset(w, 0, sizeof w);
  w[0][0] = 1 + 1.0F / 256, w[0][1] = 1 + 3.0F / 256, w[1][2] = 0.375F; // both halfway, to even
  ng_graph *g = with_values(ctx, NG_BF16);
  assert_true(ng_graph_narrow(g, 0).max_error == 1.0 / 256);
  assert_int_equal(ng_graph_narrow(g, 0).nbytes, 64);
  run(ctx, g, y, 1);
  assert_true(y[0] == 1 && y[1] == 1 + 4.0F / 256 && y[2] == 0.375F);
  assert_int_equal(ng_graph_narrow_weights(g, NG_S8), NG_OK);
  assert_int_equal(ng_graph_narrow_count(g), 0); // it is narrow
  assert_int_equal(ng_graph_narrow_weights(g, NG_F16), NG_USAGE);
  ng_graph_free(g);
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(states_begin_with_the_values_of_a_checkpoint),
      cmocka_unit_test(s8_has_a_scale_for_each_row),
      cmocka_unit_test(s8_of_zeros_is_zeros_and_refuses_infinities),
      cmocka_unit_test(bf16_is_the_nearest_number),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
