// Indices out of range: reported before anything is computed, with the input's name, the position and the valid range.
#include "tests/unit/api_case.h"

#include <stdio.h>
#include <string.h>

static const char graph_of_rows[] =
    "format: ngrad/1\nname: g\ninputs:\n  - {name: table, type: f32, shape: [4, 3]}\n"
    "  - {name: ids, type: s64, shape: [2, 2]}\n  - {name: labels, type: s32, shape: [4]}\n"
    "nodes:\n  - {op: Gather, inputs: [table, ids], outputs: [rows]}\n"
    "  - {op: StaticReshape, inputs: [rows], outputs: [flat], attributes: {shape: [4, 3], special_zero: false}}\n"
    "  - {op: SoftmaxCrossEntropy, inputs: [flat, labels], outputs: [loss], attributes: {ignore_index: -100}}\n"
    "outputs: [rows, loss]\n";

typedef struct Rows {
  float table[12], rows[12], loss;
  int64_t ids[4];
  int32_t labels[4];
} Rows;

// Runs on both backends. The message's end; NULL: all is well.
static void must_tell(const Rows *data, const char *message) {
  Rows d = *data;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, graph_of_rows);
  ng_kernel *k = must_compile(ctx, g);
  const ng_tensor in[] = {{.type = NG_F32, .rank = 2, .extent = {4, 3}, .order = {0, 1}, .data = d.table},
                          {.type = NG_S64, .rank = 2, .extent = {2, 2}, .order = {0, 1}, .data = d.ids},
                          {.type = NG_S32, .rank = 1, .extent = {4}, .data = d.labels}};
  ng_tensor out[] = {{.type = NG_F32, .rank = 3, .extent = {2, 2, 3}, .order = {0, 1, 2}, .data = d.rows},
                     {.type = NG_F32, .rank = 0, .data = &d.loss}};
  const ng_status wanted = message ? NG_WRONG : NG_OK;
  assert_int_equal(ng_graph_check_indices(g, in), wanted);
  if (message) assert_non_null(strstr(ng_messages_text(ctx, 0), message));
  ng_messages_clear(ctx);
  assert_int_equal(ng_kernel_run(k, in, out, 1), wanted);
  assert_int_equal(ng_message_count(ctx), 0);
  if (message) assert_memory_equal(&d, data, sizeof d); // nothing is written
  assert_int_equal(ng_interpret(g, in, out, 0), wanted);
  if (message) assert_non_null(strstr(ng_messages_text(ctx, 0), message));
  if (message) assert_memory_equal(&d, data, sizeof d);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void wrong_indices_are_told_and_nothing_is_written(void **state) {
  (void)state;
  Rows d = {.ids = {0, -4, 3, 1}, .labels = {2, -100, 0, 1}};
  for (int i = 0; i < 12; i++) d.table[i] = (float)i;
  must_tell(&d, NULL);
  d.ids[2] = 4;
  must_tell(&d, "Gather: ids[1, 0]: expected an index from -4 to 3, found 4\n");
  d.ids[2] = -5;
  must_tell(&d, "Gather: ids[1, 0]: expected an index from -4 to 3, found -5\n");
  d.ids[2] = INT64_MAX;
  must_tell(&d, "found 9223372036854775807\n");
  d.ids[2] = 3;
  d.labels[1] = -1;
  must_tell(&d, "SoftmaxCrossEntropy: labels[1]: expected an index from 0 to 2, or -100, which is ignored, found -1\n");
}

// A step's count is a state to which a call adds 1: it must not be one of which the sum is no count.
static void counts_of_states_do_not_wrap(void **state) {
  (void)state;
  static const char text[] =
      "format: ngrad/1\nname: g\nstate:\n  - {name: w, type: f32, shape: [], init: ones}\n"
      "  - {name: m, type: f32, shape: [], init: zeros}\n  - {name: v, type: f32, shape: [], init: zeros}\n"
      "  - {name: step, type: %s, shape: [], init: zeros}\n"
      "constants:\n  - {name: rate, type: f32, shape: [], value: 0.5}\n  - {name: one, type: %s, shape: [], value: 1}\n"
      "nodes:\n  - {op: Add, inputs: [one, step], outputs: [next]}\n"
      "  - {op: Adam, inputs: [w, w, m, v, rate, next], outputs: [w2, m2, v2]}\n"
      "updates: {w: w2, m: m2, v: v2, step: next}\n";
  static const struct {
    const char *type;
    int64_t step;
    const char *told;
  } cases[] = {
      {"s64", 0, NULL},
      {"s64", INT64_MAX - 2, NULL},
      {"s64", INT64_MAX, "to 9223372036854775805, because 1 is added to it, found 9223372036854775807"},
      {"s64", -1, "Adam: step: expected a number of steps from 0 to 9223372036854775805, because 1 is added"},
      {"s32", INT32_MAX - 1, NULL},
      {"s32", INT32_MAX, "from 0 to 2147483646, because 1 is added to it, found 2147483647"},
      {"s32", -5, "from 0 to 2147483646, because 1 is added to it, found -5"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char graph[1024];
    float w = 1, m = 0, v = 0;
    int32_t narrow = (int32_t)cases[i].step;
    int64_t wide = cases[i].step;
    const int is_wide = strcmp(cases[i].type, "s64") == 0;
    snprintf(graph, sizeof graph, text, cases[i].type, cases[i].type);
    ng_context *ctx = new_context();
    ng_graph *g = must_read(ctx, graph);
    ng_tensor states[] = {{.type = NG_F32, .data = &w},
                          {.type = NG_F32, .data = &m},
                          {.type = NG_F32, .data = &v},
                          {.type = is_wide ? NG_S64 : NG_S32, .data = is_wide ? (void *)&wide : &narrow}};
    float next[3];
    int64_t counted;
    ng_tensor out[] = {{.type = NG_F32, .data = &next[0]},
                       {.type = NG_F32, .data = &next[1]},
                       {.type = NG_F32, .data = &next[2]},
                       {.type = states[3].type, .data = &counted}};
    assert_int_equal(ng_interpret(g, states, out, 0), cases[i].told ? NG_WRONG : NG_OK);
    if (cases[i].told && !strstr(ng_messages_text(ctx, 0), cases[i].told))
      fail_msg("expected %s, found %s", cases[i].told, ng_messages_text(ctx, 0));
    const ng_state counter = ng_graph_state(g, 3), weight = ng_graph_state(g, 0);
    assert_true(counter.least == (is_wide ? 0 : INT64_MIN) && counter.most == (is_wide ? INT64_MAX / 2 : INT64_MAX));
    assert_true(weight.least == INT64_MIN && weight.most == INT64_MAX);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

static const char graph_of_moved_rows[] =
    "format: ngrad/1\nname: g\ndims: {N: 3}\ninputs:\n  - {name: table, type: f32, shape: [N]}\n"
    "  - {name: ids, type: s32, shape: [2, 2]}\n"
    "nodes:\n  - {op: StaticReshape, inputs: [ids], outputs: [flat], attributes: {shape: [4], special_zero: false}}\n"
    "  - {op: Gather, inputs: [table, flat], outputs: [rows]}\noutputs: [rows]\n";

// Random indices are in range; indices that a node moves before their use are checked, too.
static void steps_count_from_1(void **state) {
  (void)state;
  static const char text[] = "format: ngrad/1\nname: g\ninputs:\n  - {name: w, type: f32, shape: [2]}\n"
                             "  - {name: rate, type: f32, shape: []}\n  - {name: step, type: s64, shape: []}\n"
                             "nodes:\n  - {op: Adam, inputs: [w, w, w, w, rate, step], outputs: [next, m, v]}\n"
                             "outputs: [next]\n";
  float w[2] = {1, 2}, rate = 0.5F, next[2] = {7, 7};
  int64_t step = 0;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text);
  ng_kernel *k = must_compile(ctx, g);
  const ng_tensor in[] = {{.type = NG_F32, .rank = 1, .extent = {2}, .data = w},
                          {.type = NG_F32, .rank = 0, .data = &rate},
                          {.type = NG_S64, .rank = 0, .data = &step}};
  ng_tensor out[] = {{.type = NG_F32, .rank = 1, .extent = {2}, .data = next}};
  assert_int_equal(ng_kernel_run(k, in, out, 1), NG_WRONG);
  assert_int_equal(ng_interpret(g, in, out, 0), NG_WRONG);
  assert_non_null(strstr(ng_messages_text(ctx, 0),
                         "Adam: step: expected a step of at least 1, because steps count from 1, found 0"));
  assert_true(next[0] == 7 && next[1] == 7); // nothing is written
  step = 1;
  assert_int_equal(ng_kernel_run(k, in, out, 1), NG_OK);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void indices_are_followed_through_reshapes(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, graph_of_moved_rows);
  ng_tensor in[2];
  for (size_t i = 0; i < 2; i++) assert_int_equal(ng_tensor_random(g, i, 5, &in[i]), NG_OK);
  for (int64_t i = 0; i < 4; i++) assert_in_range((uintmax_t)ng_tensor_get(&in[1], i), 0, 2);
  assert_int_equal(ng_graph_check_indices(g, in), NG_OK);
  ((int32_t *)in[1].data)[3] = 3;
  assert_int_equal(ng_graph_check_indices(g, in), NG_WRONG);
  assert_non_null(strstr(ng_messages_text(ctx, 0), "Gather: ids[1, 1]: expected an index from -3 to 2, found 3\n"));
  for (size_t i = 0; i < 2; i++) ng_tensor_free(ctx, &in[i]);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static const char graph_of_parts[] =
    "format: ngrad/1\nname: g\ndims: {N: 2}\ninputs:\n  - {name: table, type: f32, shape: [4, 3]}\n"
    "  - {name: tokens, type: s64, shape: [N, 5], order: [1, 0]}\n"
    "nodes:\n  - {op: Split, inputs: [tokens], outputs: [first, rest], attributes: {axis: 1, splits: [2, 3]}}\n"
    "  - {op: Slice, inputs: [rest], outputs: [here], attributes: {axes: [1], starts: [-1], ends: [-4], steps: [-2]}}\n"
    "  - {op: Gather, inputs: [table, here], outputs: [rows]}\noutputs: [rows, first]\n";

// Of tokens [N, 5], elements 4 and 2 of each row are indices. Others may be any number.
static void parts_that_are_indices_are_checked_alone(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, graph_of_parts);
  ng_tensor in[2];
  for (size_t i = 0; i < 2; i++) assert_int_equal(ng_tensor_random(g, i, 5, &in[i]), NG_OK);
  assert_int_equal(ng_graph_check_indices(g, in), NG_OK);
  for (int64_t i = 0; i < 10; i++) {
    char element[40];
    int64_t *place = (int64_t *)in[1].data + i % 5 * 2 + i / 5; // columns lie together
    const int64_t right = *place;
    const int is_index = i % 5 == 4 || i % 5 == 2;
    *place = 4;
    assert_int_equal(ng_graph_check_indices(g, in), is_index ? NG_WRONG : NG_OK);
    (void)snprintf(element, sizeof element, "tokens[%d, %d]: expected an index", (int)(i / 5), (int)(i % 5));
    if (is_index) assert_non_null(strstr(ng_messages_text(ctx, 0), element));
    ng_messages_clear(ctx);
    *place = right;
  }
  for (size_t i = 0; i < 2; i++) ng_tensor_free(ctx, &in[i]);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Tables of models have the narrowest type that holds the numbers of rows; the model casts these.
static void indices_have_any_integer_type(void **state) {
  (void)state;
  static const struct {
    const char *type;
    size_t nbytes;
    uint64_t wrong; // its low bytes
    const char *found;
  } rows[] = {{"s8", 1, 0xFC, "-4"},
              {"u8", 1, 3, "3"},
              {"s16", 2, 0xFFFC, "-4"},
              {"u16", 2, 65535, "65535"},
              {"s32", 4, UINT64_C(0xFFFFFFFC), "-4"},
              {"u32", 4, UINT32_MAX, "4294967295"},
              {"s64", 8, UINT64_MAX - 3, "-4"},
              {"u64", 8, UINT64_MAX, "18446744073709551615"}};
  ng_context *ctx = new_context();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[512], found[80];
    (void)snprintf(text, sizeof text,
                   "format: ngrad/1\nname: g\ninputs:\n  - {name: table, type: f32, shape: [3, 2]}\n"
                   "  - {name: ids, type: %s, shape: [2, 2]}\nnodes:\n"
                   "  - {op: Slice, inputs: [ids], outputs: [part], attributes: {axes: [0], starts: [%d], ends: [2]}}\n"
                   "  - {op: TypeCast, inputs: [part], outputs: [{name: wide, type: %s}]}\n"
                   "  - {op: Gather, inputs: [table, wide], outputs: [y]}\noutputs: [y]\n",
                   rows[i].type, (int)(i % 2), strcmp(rows[i].type, "s64") ? "s64" : "s32"); // all elements, or a part
    ng_graph *g = must_read(ctx, text);
    ng_tensor in[2];
    for (size_t k = 0; k < 2; k++) assert_int_equal(ng_tensor_random(g, k, 5, &in[k]), NG_OK);
    memset(in[1].data, 0, ng_tensor_nbytes(&in[1]));
    assert_int_equal(ng_graph_check_indices(g, in), NG_OK);
    memcpy((char *)in[1].data + 3 * rows[i].nbytes, &rows[i].wrong, rows[i].nbytes);
    assert_int_equal(ng_graph_check_indices(g, in), NG_WRONG);
    (void)snprintf(found, sizeof found, "Gather: ids[1, 1]: expected an index from -3 to 2, found %s\n", rows[i].found);
    assert_non_null(strstr(ng_messages_text(ctx, 0), found));
    ng_messages_clear(ctx);
    for (size_t k = 0; k < 2; k++) ng_tensor_free(ctx, &in[k]);
    ng_graph_free(g);
  }
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(indices_have_any_integer_type),
                                     cmocka_unit_test(wrong_indices_are_told_and_nothing_is_written),
                                     cmocka_unit_test(steps_count_from_1),
                                     cmocka_unit_test(counts_of_states_do_not_wrap),
                                     cmocka_unit_test(indices_are_followed_through_reshapes),
                                     cmocka_unit_test(parts_that_are_indices_are_checked_alone)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
