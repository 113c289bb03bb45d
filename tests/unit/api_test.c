// The installed API: what its header promises, and that running out of memory anywhere is an error like any other.
#include "frontend/api/ngrad.h"
#include "tests/unit/failing_allocator.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static const char layer_norm[] = "format: ngrad/1\n"
                                 "name: layer norm\n"
                                 "dims: {N: 5}\n"
                                 "inputs:\n"
                                 "  - {name: x, type: f32, shape: [N, 24]}\n"
                                 "  - {name: dy, type: f32, shape: [N, 24]}\n"
                                 "  - {name: mean, type: f32, shape: [N]}\n"
                                 "  - {name: var, type: f32, shape: [N]}\n"
                                 "  - {name: gamma, type: f32, shape: [24]}\n"
                                 "nodes:\n"
                                 "  - op: LayerNormBackward\n"
                                 "    inputs: [x, dy, mean, var, gamma]\n"
                                 "    outputs: [dx, dgamma, dbeta]\n"
                                 "outputs: [dx, dgamma, dbeta]\n";

enum { NINPUTS = 5, NOUTPUTS = 3 };

static ng_graph *read_text(ng_context *ctx, const char *text) {
  return ng_graph_read(ctx, "test.yaml", text, strlen(text), NULL);
}

static ng_context *new_context(void) {
  ng_context *ctx = ng_context_new(NULL);
  assert_non_null(ctx);
  return ctx;
}

static ng_graph *must_read(ng_context *ctx, const char *text) {
  ng_graph *g = read_text(ctx, text);
  if (!g) print_error("%s", ng_messages_text(ctx, 0));
  assert_non_null(g);
  assert_int_equal(ng_last_status(ctx), NG_OK);
  return g;
}

static ng_kernel *must_compile(ng_context *ctx, ng_graph *g) {
  ng_kernel *k = ng_compile(g, NULL);
  if (!k) print_error("%s", ng_messages_text(ctx, 0));
  assert_non_null(k);
  assert_int_equal(ng_last_status(ctx), NG_OK);
  return k;
}

// The only message is an error, and this.
static void must_have_said(ng_context *ctx, const char *expected) {
  assert_int_equal(ng_message_count(ctx), 1);
  ng_message m = ng_message_at(ctx, 0);
  assert_string_equal(m.text, expected);
  assert_true(m.is_error);
  ng_messages_clear(ctx);
  assert_int_equal(ng_message_count(ctx), 0);
  assert_string_equal(ng_messages_text(ctx, 0), "");
}

// Tensors for a graph of at most 8 inputs and outputs; zeroed where nothing was made.
typedef struct Data {
  ng_tensor in[8], out[8];
} Data;

static ng_status data_make(Data *data, ng_context *ctx, ng_graph *g) {
  *data = (Data){0};
  ng_status status = ng_graph_bind(g);
  for (size_t i = 0; status == NG_OK && i < ng_graph_input_count(g); i++)
    status = ng_tensor_random(g, i, 7, &data->in[i]);
  for (size_t i = 0; status == NG_OK && i < ng_graph_output_count(g); i++) {
    ng_tensor_info info = ng_graph_output(g, i);
    status = ng_tensor_new(ctx, &info, &data->out[i]);
  }
  return status;
}

static void data_free(Data *data, ng_context *ctx) {
  for (size_t i = 0; i < 8; i++) {
    ng_tensor_free(ctx, &data->in[i]);
    ng_tensor_free(ctx, &data->out[i]);
  }
}

// Graphs

static void describes_what_it_read(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  assert_string_equal(ng_graph_name(g), "layer norm");
  assert_int_equal(ng_graph_input_count(g), NINPUTS);
  assert_int_equal(ng_graph_output_count(g), NOUTPUTS);
  assert_int_equal(ng_graph_node_count(g), 1);
  ng_tensor_info dx = ng_graph_output(g, 0);
  assert_string_equal(dx.name, "dx");
  assert_int_equal(dx.type, NG_F32);
  assert_int_equal(dx.rank, 2);
  assert_int_equal(dx.extent[0], 5);
  assert_string_equal(dx.dim[0], "N");
  assert_int_equal(dx.extent[1], 24);
  assert_null(dx.dim[1]);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void tells_where_a_graph_is_wrong(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  assert_null(read_text(ctx, "format: ngrad/1\ninputs:\n  - {name: x, type: f33, shape: []}\noutputs: [x]\n"));
  assert_int_equal(ng_last_status(ctx), NG_WRONG);
  assert_int_equal(ng_message_count(ctx), 1);
  ng_message m = ng_message_at(ctx, 0);
  assert_true(m.is_error);
  assert_string_equal(m.file, "test.yaml");
  assert_int_equal(m.line, 3);
  const char *text = ng_messages_text(ctx, 0);
  assert_non_null(strstr(text, "test.yaml:3:"));
  assert_null(strchr(text, '\033'));
  assert_non_null(strchr(ng_messages_text(ctx, 1), '\033'));
  ng_context_free(ctx);
}

static void tells_of_a_file_that_is_not_there(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  assert_null(ng_graph_read_file(ctx, "/no/such/graph.yaml"));
  assert_int_equal(ng_last_status(ctx), NG_WRONG);
  assert_true(ng_message_count(ctx) > 0);
  ng_context_free(ctx);
}

static void messages_add_up_until_they_are_cleared(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  assert_null(read_text(ctx, "format: ngrad/1\n"));
  size_t first = ng_message_count(ctx);
  assert_null(read_text(ctx, "format: ngrad/1\n"));
  assert_int_equal(ng_message_count(ctx), 2 * first);
  ng_messages_clear(ctx);
  ng_graph *g = must_read(ctx, layer_norm);
  assert_int_equal(ng_message_count(ctx), 0);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Extents

// What stays open is an argument; what was given a number, or is bound, is in the text.
static void emitting_leaves_dims_open_and_binds_none(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  char *source = NULL, *header = NULL;
  for (int way = 0; way < 3; way++) {
    ng_graph *g = must_read(ctx, layer_norm);
    if (way == 1) assert_int_equal(ng_graph_set_dim(g, "N", 7), NG_OK);
    if (way == 2) assert_int_equal(ng_graph_bind(g), NG_OK);
    assert_int_equal(ng_emit(g, NULL, &source, &header), NG_OK);
    assert_int_equal(strstr(header, "int64_t N,") != NULL, way == 0);
    assert_int_equal(strstr(header, "_WORKSPACE_NBYTES ((size_t)") != NULL, way != 0);
    assert_int_equal(ng_graph_dim_count(g), way != 2);
    assert_int_equal(ng_graph_bind(g), NG_OK); // as before
    ng_text_free(ctx, source);
    ng_text_free(ctx, header);
    ng_graph_free(g);
  }
  ng_context_free(ctx);
}

static void what_keeps_a_dim_from_staying_open_is_named(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\ndims: {C: 4}\n"
                               "inputs: [{name: x, type: f32, shape: [2, C, 6]}]\nnodes:\n"
                               "  - {op: Tanh, inputs: [x], outputs: [t]}\n" // in one kernel with it
                               "  - {op: GroupNorm, inputs: [t], outputs: [y], attributes:\n"
                               "      {groups: 1, data_format: NCX, use_affine: false, keep_stats: false}}\n"
                               "outputs: [y]\n");
  char *source = NULL, *header = NULL;
  assert_int_equal(ng_emit(g, NULL, &source, &header), NG_WRONG);
  assert_int_equal(ng_message_at(ctx, 0).line, 6);
  must_have_said(ctx, "GroupNorm (line 6): C cannot stay open here; --dim C=4 bakes it in");
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void dims_take_other_values_until_bound(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  assert_int_equal(ng_graph_set_dim(g, "M", 3), NG_USAGE);
  must_have_said(ctx, "unknown dim M, expected N");
  assert_int_equal(ng_graph_set_dim(g, "N", -1), NG_USAGE);
  must_have_said(ctx, "N: expected 0 or more and fewer than 2^47, found -1");
  assert_int_equal(ng_graph_set_dim(g, "N", 3), NG_OK);
  assert_int_equal(ng_graph_output(g, 0).extent[0], 3);
  assert_int_equal(ng_graph_bind(g), NG_OK);
  assert_null(ng_graph_output(g, 0).dim[0]);
  assert_int_equal(ng_graph_output(g, 0).extent[0], 3);
  assert_int_equal(ng_graph_set_dim(g, "N", 4), NG_USAGE);
  must_have_said(ctx, "N: the graph is bound already");
  assert_int_equal(ng_graph_bind(g), NG_OK);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static const char open_shapes[] = "format: ngrad/1\n"
                                  "dims: {N: ~}\n"
                                  "inputs:\n"
                                  "  - {name: a, type: f32, shape: [N, _]}\n"
                                  "  - {name: b, type: f32, shape: [_, 3]}\n"
                                  "nodes:\n"
                                  "  - {op: Add, inputs: [a, b], outputs: [c]}\n"
                                  "outputs: [c]\n";

static void input_shapes_bind_open_extents(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, open_shapes);
  assert_int_equal(ng_graph_input(g, 0).extent[0], -1);
  assert_int_equal(ng_graph_set_input_shape(g, 0, 2, (int64_t[]){4, 3}), NG_OK);
  assert_int_equal(ng_graph_input(g, 0).extent[0], 4);
  assert_int_equal(ng_graph_set_input_shape(g, 1, 2, (int64_t[]){1, 3}), NG_OK);
  assert_int_equal(ng_graph_bind(g), NG_OK);
  assert_int_equal(ng_graph_output(g, 0).extent[0], 4);
  assert_int_equal(ng_graph_output(g, 0).extent[1], 3);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void a_contradicting_input_shape_is_told(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  assert_int_equal(ng_graph_set_input_shape(g, 0, 2, (int64_t[]){6, 24}), NG_WRONG);
  must_have_said(ctx, "x: expected shape [N, 24], N = 5 (--dim gives another), found [6, 24]");
  assert_int_equal(ng_graph_set_input_shape(g, 4, 2, (int64_t[]){6, 24}), NG_WRONG);
  must_have_said(ctx, "gamma: expected shape [24], found [6, 24]");
  assert_int_equal(ng_graph_set_input_shape(g, 4, 1, (int64_t[]){-1}), NG_USAGE);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void extents_that_stay_open_cannot_be_bound(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, open_shapes);
  assert_int_equal(ng_graph_bind(g), NG_WRONG);
  must_have_said(ctx, "N has no value, expected one in dims or by --dim N=NUMBER");
  assert_int_equal(ng_graph_set_dim(g, "N", 2), NG_OK);
  assert_int_equal(ng_graph_bind(g), NG_WRONG);
  assert_true(ng_message_count(ctx) > 0);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Tensors

static void random_data_is_the_same_everywhere(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  assert_int_equal(ng_graph_set_dim(g, "N", 2000), NG_OK);
  ng_tensor x, again, other, variance;
  assert_int_equal(ng_tensor_random(g, 0, 1, &x), NG_OK);
  assert_int_equal(ng_tensor_random(g, 0, 1, &again), NG_OK);
  assert_int_equal(ng_tensor_random(g, 0, 2, &other), NG_OK);
  assert_int_equal(ng_tensor_random(g, 3, 1, &variance), NG_OK);
  assert_memory_equal(x.data, again.data, ng_tensor_nbytes(&x));
  assert_memory_not_equal(x.data, other.data, ng_tensor_nbytes(&x));
  // From another program by the header's description.
  assert_true(ng_tensor_get(&x, 0) == -0x1.2e06cp-1);
  assert_true(ng_tensor_get(&x, 47999) == -0x1.051b4ep-3);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < ng_tensor_nelems(&x); i++) {
    double value = ng_tensor_get(&x, i);
    sum += value;
    squares += value * value;
  }
  assert_true(fabs(sum / 48000) < 0.02);
  assert_true(fabs(squares / 48000 - 1) < 0.02);
  for (int64_t i = 0; i < ng_tensor_nelems(&variance); i++)
    assert_true(ng_tensor_get(&variance, i) >= 0.5 && ng_tensor_get(&variance, i) < 2);
  ng_tensor_free(ctx, &x);
  ng_tensor_free(ctx, &again);
  ng_tensor_free(ctx, &other);
  ng_tensor_free(ctx, &variance);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void npy_files_come_back_as_they_went(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  char path[] = "/tmp/ngrad_api_test_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  const ng_tensor_info info = {.name = "t", .type = NG_F32, .rank = 2, .extent = {2, 3}};
  ng_tensor t, back;
  assert_int_equal(ng_tensor_new(ctx, &info, &t), NG_OK);
  assert_int_equal((uintptr_t)t.data % 64, 0);
  for (int i = 0; i < 6; i++) {
    assert_true(((float *)t.data)[i] == 0);
    ((float *)t.data)[i] = (float)i / 3;
  }
  assert_int_equal(ng_tensor_write_npy(ctx, path, &t), NG_OK);
  const ng_tensor_info any = {.type = NG_F32, .rank = -1}, wrong = {.type = NG_F32, .rank = 2, .extent = {3, 2}};
  const ng_tensor_info f64 = {.type = NG_F64, .rank = 2, .extent = {-1, 3}};
  assert_int_equal(ng_tensor_read_npy(ctx, path, &any, 0, &back), NG_OK);
  assert_int_equal(back.rank, 2);
  assert_int_equal(back.extent[1], 3);
  assert_memory_equal(back.data, t.data, 24);
  ng_tensor_free(ctx, &back);
  ng_tensor_free(ctx, &back);
  assert_int_equal(ng_tensor_read_npy(ctx, path, &wrong, 0, &back), NG_WRONG);
  assert_int_equal(ng_tensor_read_npy(ctx, path, &f64, 0, &back), NG_WRONG);
  assert_int_equal(ng_tensor_read_npy(ctx, path, &f64, 1, &back), NG_OK);
  assert_int_equal(back.type, NG_F32);
  ng_tensor_free(ctx, &back);
  ng_tensor_free(ctx, &t);
  unlink(path);
  ng_context_free(ctx);
}

// x, [2, 3], lies column by column, and so does y = x + x.
static const char by_columns[] = "format: ngrad/1\n"
                                 "inputs:\n"
                                 "  - {name: x, type: f32, shape: [2, 3], order: [1, 0]}\n"
                                 "nodes:\n"
                                 "  - op: Add\n"
                                 "    inputs: [x, x]\n"
                                 "    outputs: [{name: y, type: f32, shape: [2, 3], order: [1, 0]}]\n"
                                 "  - {op: Subtract, inputs: [y, x], outputs: [z]}\n"
                                 "outputs: [y, z]\n";

static void tensors_lie_in_the_orders_that_the_graph_says(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, by_columns);
  ng_kernel *k = must_compile(ctx, g);
  assert_memory_equal(ng_graph_output(g, 0).order, ((const unsigned char[]){1, 0}), 2);
  float x[] = {1, 4, 2, 5, 3, 6}, y[6], z[6];
  const ng_tensor in = {NG_F32, 2, {2, 3}, x, {1, 0}};
  ng_tensor out[] = {{NG_F32, 2, {2, 3}, y, {1, 0}}, {NG_F32, 2, {2, 3}, z, {0}}};
  for (int backend = 0; backend < 2; backend++) {
    memset(y, 0, sizeof y);
    memset(z, 0, sizeof z);
    assert_int_equal(backend ? ng_kernel_run(k, &in, out, 1) : ng_interpret(g, &in, out, 0), NG_OK);
    assert_memory_equal(y, ((const float[]){2, 8, 4, 10, 6, 12}), sizeof y);
    assert_memory_equal(z, ((const float[]){1, 2, 3, 4, 5, 6}), sizeof z);
  }
  assert_true(ng_tensor_get(&out[0], 1) == 4); // [0, 1]
  const ng_tensor by_rows = {NG_F32, 2, {2, 3}, x, {0}};
  assert_int_equal(ng_kernel_run(k, &by_rows, out, 1), NG_USAGE);
  const ng_tensor spelt_out[] = {out[0], {NG_F32, 2, {2, 3}, z, {0, 1}}};
  assert_int_equal(ng_kernel_run(k, &in, (ng_tensor *)spelt_out, 1), NG_OK);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// 1 to 6 by rows is the same in [2, 3] and [3, 2], wherever it lies; y is x transposed, z a constant.
static void reshapes_and_transposes_mind_orders(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\n"
                               "inputs: [{name: x, type: f32, shape: [2, 3], order: [1, 0]}]\n"
                               "constants: [{name: c, type: f32, shape: [2, 3], values: [1, 2, 3, 4, 5, 6]}]\n"
                               "nodes:\n"
                               "  - op: StaticReshape\n"
                               "    inputs: [x]\n"
                               "    outputs: [{name: r, shape: [3, 2], order: [1, 0]}]\n"
                               "    attributes: {shape: [3, 2], special_zero: false}\n"
                               "  - {op: StaticTranspose, inputs: [x], outputs: [y], attributes: {order: [1, 0]}}\n"
                               "  - {op: ReLU, inputs: [c], outputs: [{name: z, shape: [2, 3], order: [1, 0]}]}\n"
                               "outputs: [r, y, z]\n");
  ng_kernel *k = must_compile(ctx, g);
  float x[] = {1, 4, 2, 5, 3, 6}, r[6], y[6], z[6];
  const ng_tensor in = {NG_F32, 2, {2, 3}, x, {1, 0}};
  ng_tensor out[] = {{NG_F32, 2, {3, 2}, r, {1, 0}}, {NG_F32, 2, {3, 2}, y, {0}}, {NG_F32, 2, {2, 3}, z, {1, 0}}};
  for (int backend = 0; backend < 2; backend++) {
    assert_int_equal(backend ? ng_kernel_run(k, &in, out, 1) : ng_interpret(g, &in, out, 0), NG_OK);
    assert_memory_equal(r, ((const float[]){1, 3, 5, 2, 4, 6}), sizeof r);
    assert_memory_equal(y, ((const float[]){1, 4, 2, 5, 3, 6}), sizeof y);
    assert_memory_equal(z, ((const float[]){1, 4, 2, 5, 3, 6}), sizeof z);
  }
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void npy_files_hold_elements_whatever_their_order(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  char path[] = "/tmp/ngrad_api_test_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  float columns[] = {1, 4, 2, 5, 3, 6}, rows[] = {1, 2, 3, 4, 5, 6};
  const ng_tensor t = {NG_F32, 2, {2, 3}, columns, {1, 0}}, plain = {NG_F32, 2, {2, 3}, rows, {0}};
  const ng_tensor_info by_rows = {.type = NG_F32, .rank = 2, .extent = {2, 3}},
                       as_it_was = {.type = NG_F32, .rank = 2, .extent = {2, 3}, .order = {1, 0}},
                       wrong = {.type = NG_F32, .rank = 2, .extent = {2, 3}, .order = {1, 1}};
  ng_tensor back;
  ng_difference d;
  assert_int_equal(ng_tensor_write_npy(ctx, path, &t), NG_OK);
  assert_int_equal(ng_tensor_read_npy(ctx, path, &by_rows, 0, &back), NG_OK);
  assert_memory_equal(back.data, rows, sizeof rows);
  ng_tensor_free(ctx, &back);
  assert_int_equal(ng_tensor_read_npy(ctx, path, &as_it_was, 0, &back), NG_OK);
  assert_memory_equal(back.data, columns, sizeof columns);
  assert_int_equal(ng_tensor_compare(ctx, &back, &plain, 0, &d), NG_OK);
  back.order[0] = 0, back.order[1] = 7;
  assert_int_equal(ng_tensor_compare(ctx, &back, &plain, 0, &d), NG_USAGE);
  assert_int_equal(ng_tensor_write_npy(ctx, path, &back), NG_USAGE);
  ng_tensor_free(ctx, &back);
  assert_int_equal(ng_tensor_read_npy(ctx, path, &wrong, 0, &back), NG_USAGE);
  assert_int_equal(ng_tensor_new(ctx, &wrong, &back), NG_USAGE);
  unlink(path);
  ng_context_free(ctx);
}

static ng_difference compare(ng_context *ctx, ng_type type, const void *actual, const double *expected, int64_t count,
                             ng_status status) {
  union {
    const void *read;
    void *data;
  } a = {actual}, e = {expected};
  const ng_tensor actual_tensor = {type, 1, {count}, a.data}, expected_tensor = {NG_F64, 1, {count}, e.data};
  ng_difference d;
  assert_int_equal(ng_tensor_compare(ctx, &actual_tensor, &expected_tensor, -1, &d), status);
  return d;
}

static void distances_are_in_units_of_the_actual_type(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  const float next[] = {1, 0x1.000002p0F, -2};
  ng_difference d = compare(ctx, NG_F32, next, (double[]){1, 1, -2}, 3, NG_OK);
  assert_true(d.largest_ulp == 1);
  assert_int_equal(d.worst_element, 1);
  assert_true(d.tolerance == 1e-5);
  assert_true(fabs(d.relative_l2 / (0x1p-23 / sqrt(6)) - 1) < 1e-9);
  const uint16_t bf16_one[] = {0x3F81}, f16_one[] = {0x3C01}, f16_least[] = {0x0001};
  assert_true(compare(ctx, NG_BF16, bf16_one, (double[]){1}, 1, NG_OK).largest_ulp == 1);
  assert_true(compare(ctx, NG_F16, f16_one, (double[]){1}, 1, NG_OK).largest_ulp == 1);
  assert_true(compare(ctx, NG_F16, f16_least, (double[]){0x1p-25}, 1, NG_DIFFERENT).largest_ulp == 0.5);
  const float zero[] = {0};
  d = compare(ctx, NG_F32, zero, (double[]){0}, 1, NG_OK);
  assert_true(d.relative_l2 == 0 && d.largest_ulp == 0 && d.worst_element == -1);
  const float tiny[] = {0x1p-149F};
  d = compare(ctx, NG_F32, tiny, (double[]){0}, 1, NG_DIFFERENT);
  assert_true(isinf(d.relative_l2) && d.largest_ulp == 1);
  const double huge[] = {1e300, 1e300};
  d = compare(ctx, NG_F64, huge, (double[]){1e300, -1e300}, 2, NG_DIFFERENT);
  assert_true(fabs(d.relative_l2 - sqrt(2)) < 1e-12);
  compare(ctx, NG_F32, zero, (double[]){0}, 0, NG_OK);
  ng_context_free(ctx);
}

static void what_is_quantised_may_be_a_step_off(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  const int8_t s8[] = {100, -3};
  const uint8_t e4m3[] = {0x7E, 0x01, 0x40}, e5m2[] = {0x7B, 0x01}, u4[] = {0xF0}; // 448, 2^-9, 2; 57344, 2^-16; 0, 15
  ng_difference d = compare(ctx, NG_S8, s8, (double[]){101, -3}, 2, NG_OK);
  assert_true(d.largest_ulp == 1 && d.most_ulp == 1 && isinf(d.tolerance));
  assert_true(compare(ctx, NG_S8, s8, (double[]){102, -3}, 2, NG_DIFFERENT).largest_ulp == 2);
  assert_true(compare(ctx, NG_F8_E4M3, e4m3, (double[]){416, 0x1p-8, 2}, 3, NG_OK).largest_ulp == 1);
  assert_true(compare(ctx, NG_F8_E4M3, e4m3, (double[]){448, 0x3p-9, 2}, 3, NG_DIFFERENT).largest_ulp == 2);
  assert_true(compare(ctx, NG_F8_E4M3, e4m3, (double[]){448, 0x1p-9, 1.75}, 3, NG_DIFFERENT).largest_ulp == 2);
  assert_true(compare(ctx, NG_F8_E5M2, e5m2, (double[]){49152, 0}, 2, NG_OK).largest_ulp == 1);
  assert_true(compare(ctx, NG_U4, u4, (double[]){1, 14}, 2, NG_OK).largest_ulp == 1);
  assert_true(compare(ctx, NG_U4, u4, (double[]){2, 15}, 2, NG_DIFFERENT).largest_ulp == 2);
  assert_true(isinf(compare(ctx, NG_F32, (float[]){1}, (double[]){1}, 1, NG_OK).most_ulp));
  const ng_tensor a = {NG_S8, 1, {2}, (int8_t[]){100, 1}}, b = {NG_S8, 1, {2}, (int8_t[]){100, 2}};
  assert_int_equal(ng_tensor_compare(ctx, &a, &b, 0, &d), NG_DIFFERENT); // no tolerance is none
  ng_context_free(ctx);
}

static void what_is_not_finite_must_be_alike(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  const float nan[] = {1, NAN}, infinite[] = {1, INFINITY};
  assert_true(compare(ctx, NG_F32, nan, (double[]){1, NAN}, 2, NG_OK).largest_ulp == 0);
  assert_true(compare(ctx, NG_F32, infinite, (double[]){1, INFINITY}, 2, NG_OK).largest_ulp == 0);
  assert_true(compare(ctx, NG_F32, infinite, (double[]){1, 1e39}, 2, NG_OK).largest_ulp == 0);
  assert_true(isinf(compare(ctx, NG_F32, nan, (double[]){1, 2}, 2, NG_DIFFERENT).relative_l2));
  assert_true(isinf(compare(ctx, NG_F32, infinite, (double[]){1, -INFINITY}, 2, NG_DIFFERENT).largest_ulp));
  assert_int_equal(compare(ctx, NG_F32, infinite, (double[]){1, NAN}, 2, NG_DIFFERENT).worst_element, 1);
  float values[2] = {0};
  const ng_tensor two = {NG_F32, 1, {2}, values}, one = {NG_F32, 1, {1}, values};
  ng_difference d;
  assert_int_equal(ng_tensor_compare(ctx, &two, &one, -1, &d), NG_WRONG);
  assert_int_equal(ng_message_count(ctx), 1);
  ng_context_free(ctx);
}

// Running

static void both_backends_agree(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  Data data;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  ng_kernel *k = must_compile(ctx, g);
  ng_kernel_info info = ng_kernel_get_info(k);
  assert_non_null(info.isa);
  assert_true(info.nkernels >= 1);
  ng_tensor expected[NOUTPUTS];
  for (size_t i = 0; i < NOUTPUTS; i++) {
    ng_tensor_info output = ng_graph_output(g, i);
    assert_int_equal(ng_tensor_new(ctx, &output, &expected[i]), NG_OK);
  }
  assert_int_equal(ng_interpret(g, data.in, expected, 1), NG_OK); // still a graph after compiling
  ng_graph_free(g);                                               // the kernel outlives it
  for (int threads = 0; threads <= 3; threads++) {
    assert_int_equal(ng_kernel_run(k, data.in, data.out, threads), NG_OK);
    for (size_t i = 0; i < NOUTPUTS; i++) {
      ng_difference d;
      assert_int_equal(ng_tensor_compare(ctx, &data.out[i], &expected[i], -1, &d), NG_OK);
    }
  }
  for (size_t i = 0; i < NOUTPUTS; i++) ng_tensor_free(ctx, &expected[i]);
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_context_free(ctx);
}

static void tensors_that_do_not_fit_are_refused(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  Data data;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  ng_kernel *k = must_compile(ctx, g);
  ng_tensor kept = data.in[0];
  data.in[0].extent[0] = 4;
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 1), NG_USAGE);
  assert_int_equal(ng_message_count(ctx), 0);
  assert_int_equal(ng_interpret(g, data.in, data.out, 0), NG_USAGE);
  data.in[0] = kept;
  data.in[0].type = NG_S32;
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 1), NG_USAGE);
  data.in[0] = kept;
  data.in[0].data = NULL;
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 1), NG_USAGE);
  data.in[0] = kept;
  assert_int_equal(ng_kernel_run(k, data.in, data.out, -1), NG_USAGE);
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 1), NG_OK);
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void options_are_checked(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  const char *const disable[] = {"dead-cod"};
  assert_null(ng_compile(g, &(ng_options){.isa = "avx1"}));
  assert_int_equal(ng_last_status(ctx), NG_USAGE);
  must_have_said(ctx, "unknown instruction set avx1, did you mean avx2");
  assert_null(ng_compile(g, &(ng_options){.disable = disable, .ndisable = 1}));
  assert_int_equal(ng_last_status(ctx), NG_USAGE);
  must_have_said(ctx, "unknown pass or rule dead-cod, did you mean dead-code");
  assert_null(ng_compile(g, &(ng_options){.after = "dead-code"}));
  assert_int_equal(ng_last_status(ctx), NG_USAGE);
  ng_messages_clear(ctx);
  for (size_t i = 0; i < ng_isa_count(); i++) {
    ng_kernel *k = ng_compile(g, &(ng_options){.isa = ng_isa_at(i).name});
    assert_int_equal(ng_last_status(ctx), ng_isa_at(i).is_available ? NG_OK : NG_USAGE);
    assert_true((k != NULL) == ng_isa_at(i).is_available);
    ng_kernel_free(k);
  }
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void a_graph_without_work_runs(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [3]}]\n"
                               "constants: [{name: c, type: f32, shape: [2], value: 0.5}]\noutputs: [x, c]\n");
  Data data;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  assert_int_equal(ng_interpret(g, data.in, data.out, 0), NG_OK);
  assert_memory_equal(data.in[0].data, data.out[0].data, 12);
  assert_true(ng_tensor_get(&data.out[1], 1) == 0.5);
  memset(data.out[0].data, 0, 12);
  memset(data.out[1].data, 0, 8);
  ng_kernel *k = must_compile(ctx, g);
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 2), NG_OK);
  assert_memory_equal(data.in[0].data, data.out[0].data, 12);
  assert_true(ng_tensor_get(&data.out[1], 1) == 0.5);
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void nan_check_names_the_node(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [1]}]\n"
                               "nodes: [{op: Subtract, inputs: [x, x], outputs: [y]}]\noutputs: [y]\n");
  float x = INFINITY, y = 0;
  const ng_tensor in = {NG_F32, 1, {1}, &x};
  ng_tensor out = {NG_F32, 1, {1}, &y};
  assert_int_equal(ng_interpret(g, &in, &out, 0), NG_OK);
  assert_true(isnan(y));
  assert_int_equal(ng_interpret(g, &in, &out, 1), NG_WRONG);
  assert_non_null(strstr(ng_messages_text(ctx, 0), "Subtract"));
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Texts

static void shows_every_form(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  char *text = ng_graph_show(g, "yaml", NULL);
  assert_non_null(strstr(text, "[N, 24]"));
  ng_graph *again = must_read(ctx, text);
  char *same = ng_graph_show(again, "yaml", NULL);
  assert_string_equal(text, same);
  ng_text_free(ctx, same);
  ng_text_free(ctx, text);
  ng_graph_free(again);
  text = ng_graph_show(g, "dot", NULL);
  assert_int_equal(strncmp(text, "digraph", 7), 0);
  ng_text_free(ctx, text);
  assert_null(ng_graph_show(g, "yml", NULL));
  assert_int_equal(ng_last_status(ctx), NG_USAGE);
  must_have_said(ctx, "unknown format yml, did you mean yaml");
  assert_null(ng_graph_show(g, "kernels", &(ng_options){.after = ng_pass_at(0).name}));
  assert_int_equal(ng_last_status(ctx), NG_USAGE);
  ng_messages_clear(ctx);
  for (size_t i = 0; i < ng_pass_count(); i++) {
    text = ng_graph_show(g, "yaml", &(ng_options){.after = ng_pass_at(i).name});
    assert_non_null(text);
    ng_graph_free(must_read(ctx, text));
    ng_text_free(ctx, text);
  }
  text = ng_graph_show(g, "kernels", NULL);
  assert_non_null(text);
  assert_true(*text);
  ng_text_free(ctx, text);
  ng_text_free(ctx, NULL);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void emits_for_any_processor(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  const char *stem = ng_graph_identifier(g);
  for (const char *c = stem; *c; c++) assert_true((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_');
  for (size_t i = 0; i < ng_isa_count(); i++) {
    char *source, *header;
    assert_int_equal(ng_emit(g, &(ng_options){.isa = ng_isa_at(i).name}, &source, &header), NG_OK);
    assert_non_null(strstr(source, stem));
    assert_non_null(strstr(header, stem));
    ng_text_free(ctx, source);
    ng_text_free(ctx, header);
  }
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Catalogue

static void operators_are_found_by_all_their_names(void **state) {
  (void)state;
  for (size_t i = 0; i < ng_operator_count(); i++) {
    ng_operator_info op = ng_operator_at(i);
    assert_int_equal(ng_operator_find(op.name), i);
    assert_true(ng_operator_find(op.canonical) < ng_operator_count());
    assert_true(op.ninputs > 0 && op.noutputs > 0);
    for (size_t k = 0; k < op.ninputs; k++) assert_true(ng_operator_input(i, k).types != 0);
    for (size_t k = 0; k < op.noutputs; k++) assert_true(ng_operator_output(i, k).types != 0);
    for (size_t k = 0; k < op.nattributes; k++) assert_non_null(ng_operator_attribute(i, k).name);
  }
  assert_int_equal(ng_operator_find("LayerNormBackwards"), ng_operator_count());
  assert_string_equal(ng_operator_nearest("LayerNormBackwards"), "LayerNormBackward");
  assert_string_equal(ng_operator_nearest("ngraph.BatchNormTrainingBackpro"), "ngraph.BatchNormTrainingBackprop");
}

// Timing

static void counts_bytes_and_restores_threads(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  Data data;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  ng_kernel *k = must_compile(ctx, g);
  int processors = ng_thread_count();
  ng_bench_result result;
  for (int cold = 0; cold < 2; cold++) {
    const ng_bench_options options = {.threads = 2, .cold = cold, .seconds = 0.01};
    assert_int_equal(ng_bench(k, data.in, data.out, &options, &result), NG_OK);
    assert_int_equal(result.bytes_read, 4 * (2 * 5 * 24 + 2 * 5 + 24));
    assert_int_equal(result.bytes_written, 4 * (5 * 24 + 2 * 24));
    assert_true(result.runs >= 5 && result.min_ms > 0 && result.min_ms <= result.median_ms);
    assert_true(result.ceiling_ms > 0 && fabs(result.ceiling_ratio - result.ceiling_ms / result.median_ms) < 1e-9);
  }
  assert_int_equal(ng_thread_count(), processors);
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static const char two_kernels[] = "format: ngrad/1\n"
                                  "inputs:\n"
                                  "  - {name: a, type: f32, shape: [500, 24]}\n"
                                  "  - {name: b, type: f32, shape: [500, 24]}\n"
                                  "  - {name: z, type: f32, shape: [7]}\n"
                                  "constants:\n"
                                  "  - {name: minus_one, type: f32, shape: [], value: -1}\n"
                                  "nodes:\n"
                                  "  - {op: Multiply, inputs: [b, minus_one], outputs: [n]}\n"
                                  "  - {op: Exp, inputs: [a], outputs: [e]}\n"
                                  "  - {op: Subtract, inputs: [e, n], outputs: [r]}\n" // a pass makes e + b
                                  "  - {op: ReduceSum, inputs: [r], outputs: [s], attributes: {axes: [0]}}\n"
                                  "  - {op: Tanh, inputs: [z], outputs: [t]}\n"
                                  "outputs: [s, t, z]\n";

static void must_add_up(const ng_profile *p) {
  double kernels = 0;
  for (size_t i = 0; i < p->nkernels; i++) {
    double loops = 0;
    assert_true(p->kernels[i].nloops > 0);
    for (size_t l = 0; l < p->kernels[i].nloops; l++) {
      assert_true(p->kernels[i].loops[l].ms >= 0);
      loops += p->kernels[i].loops[l].ms;
    }
    assert_true(fabs(p->kernels[i].ms - loops) <= 1e-9);
    kernels += loops;
  }
  assert_true(kernels > 0 && kernels <= p->ms);
  assert_true(fabs(p->ms - kernels - p->other_ms) <= 1e-9);
}

static void a_profile_tells_times_bytes_and_lines(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, two_kernels);
  Data data;
  ng_bench_result result;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  ng_kernel *k = ng_compile(g, &(ng_options){.profile = 1});
  assert_non_null(k);
  const ng_profile *p = ng_kernel_profile(k);
  assert_true(p->nkernels == 2 && ng_kernel_get_info(k).nkernels == 2);
  const ng_profile_kernel *sum = &p->kernels[0], *tanh = &p->kernels[1];
  assert_string_equal(sum->text, "Exp (line 10), Add (lines 9, 11), ReduceSum (line 12)");
  assert_int_equal(sum->nnodes, 3);
  assert_string_equal(sum->nodes[1].name, "Add");
  assert_int_equal(sum->nodes[1].nlines, 2);
  assert_int_equal(sum->nodes[1].lines[0], 9);
  assert_int_equal(sum->nodes[1].lines[1], 11);
  assert_int_equal(sum->bytes_read, 2 * 500 * 24 * 4);
  assert_int_equal(sum->bytes_written, 24 * 4);
  assert_int_equal(sum->nloops, 2); // what blocks add up, and the sum of that
  assert_int_equal(sum->loops[0].bytes_read, 2 * 500 * 24 * 4);
  assert_int_equal(sum->loops[1].bytes_read, sum->loops[0].bytes_written);
  assert_int_equal(sum->loops[1].bytes_written, 24 * 4);
  assert_string_equal(tanh->text, "Tanh (line 13)");
  assert_int_equal(tanh->bytes_read, 7 * 4);
  assert_int_equal(tanh->bytes_written, 7 * 4);
  assert_int_equal(tanh->nloops, 1);
  assert_string_equal(tanh->loops[0].text, "store t");
  assert_true(p->ms == 0 && p->other_ms == 0 && sum->ms == 0 && tanh->loops[0].ms == 0);
  for (int threads = 1; threads <= 2; threads++) {
    const ng_bench_options options = {.threads = threads, .seconds = 0.01};
    assert_int_equal(ng_bench(k, data.in, data.out, &options, &result), NG_OK);
    must_add_up(p);
  }
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void a_profiled_kernel_computes_the_same(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, two_kernels);
  Data plain, profiled;
  assert_int_equal(data_make(&plain, ctx, g), NG_OK);
  assert_int_equal(data_make(&profiled, ctx, g), NG_OK);
  ng_kernel *k = must_compile(ctx, g), *p = ng_compile(g, &(ng_options){.profile = 1});
  assert_null(ng_kernel_profile(k));
  assert_int_equal(ng_kernel_run(k, plain.in, plain.out, 2), NG_OK);
  assert_int_equal(ng_kernel_run(p, profiled.in, profiled.out, 2), NG_OK);
  for (size_t i = 0; i < ng_graph_output_count(g); i++)
    assert_memory_equal(plain.out[i].data, profiled.out[i].data, ng_tensor_nbytes(&plain.out[i]));
  data_free(&plain, ctx);
  data_free(&profiled, ctx);
  ng_kernel_free(k);
  ng_kernel_free(p);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Memory

static void *api_resize(void *user, void *p, size_t nbytes) {
  return failing_resize(user, p, nbytes);
}

static const char not_tried[] = "not tried";

// Everything a program does, until something fails. What failed must have been memory.
static const char *use_everything(ng_context *ctx) {
  const char *failed = NULL;
  Data data = {0};
  ng_kernel *k = NULL, *profiled = NULL;
  ng_graph *rewritten = NULL;
  char *text = NULL, *source = NULL, *header = NULL;
  ng_graph *g = read_text(ctx, layer_norm);
#define STEP(name, condition, status)                                                                                  \
  if (!failed && !(condition)) {                                                                                       \
    failed = name;                                                                                                     \
    assert_int_equal(status, NG_OUT_OF_MEMORY);                                                                        \
  }
  STEP("read", g, ng_last_status(ctx))
  ng_status status = NG_OK;
  STEP("data", (status = data_make(&data, ctx, g)) == NG_OK, status)
  STEP("interpret", (status = ng_interpret(g, data.in, data.out, 1)) == NG_OK, status)
  STEP("compile", (k = ng_compile(g, NULL)), ng_last_status(ctx))
  STEP("run", (status = ng_kernel_run(k, data.in, data.out, 2)) == NG_OK, status)
  STEP("show", (text = ng_graph_show(g, "kernels", NULL)), ng_last_status(ctx))
  STEP("emit", (status = ng_emit(g, NULL, &source, &header)) == NG_OK, status)
  STEP("identifier", ng_graph_identifier(g), NG_OUT_OF_MEMORY)
  STEP("passes", (rewritten = ng_graph_run_passes(g, NULL)), ng_last_status(ctx))
  STEP("files", (status = ng_emit_files(g, NULL, "/no/such/folder")) == NG_WRONG, status)
  STEP("bench",
       (status = ng_bench(k, data.in, data.out, &(ng_bench_options){.seconds = 1e-4, .threads = 1},
                          &(ng_bench_result){0})) == NG_OK,
       status)
  STEP("profile", (profiled = ng_compile(g, &(ng_options){.profile = 1})), ng_last_status(ctx))
  STEP("bench profiled",
       (status = ng_bench(profiled, data.in, data.out, &(ng_bench_options){.seconds = 1e-4, .threads = 1},
                          &(ng_bench_result){0})) == NG_OK,
       status)
#undef STEP
  ng_text_free(ctx, text);
  ng_text_free(ctx, source);
  ng_text_free(ctx, header);
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_kernel_free(profiled);
  ng_graph_free(rewritten);
  ng_graph_free(g);
  return failed;
}

static void running_out_of_memory_anywhere_is_an_error(void **state) {
  (void)state;
  enum { MOST_ALLOCATIONS = 20000 };
  const char *failed = not_tried;
  for (size_t failing = 0; failed; failing++) {
    assert_true(failing < MOST_ALLOCATIONS);
    FailingAllocator memory;
    failing_allocator_init(&memory, failing);
    ng_context *ctx = ng_context_new(&(ng_allocator){api_resize, &memory});
    if (!ctx) continue;
    failed = use_everything(ctx);
    if (failed && strcmp(failed, "run") != 0 && strcmp(failed, "identifier") != 0)
      assert_non_null(strstr(ng_messages_text(ctx, 0), "out of memory"));
    if (memory.ncalls <= failing) assert_null(failed);
    ng_context_free(ctx);
    assert_int_equal(memory.nlive, 0);
  }
}

// Threads

typedef struct Work {
  pthread_t thread;
  ng_kernel *shared;
  const Data *data;
  float dx[5 * 24];
  bool ok;
} Work;

static void *run_shared_kernel(void *argument) {
  Work *work = argument;
  Data own = *work->data;
  own.out[0].data = work->dx;
  float dgamma[24], dbeta[24];
  own.out[1].data = dgamma;
  own.out[2].data = dbeta;
  work->ok = true;
  for (int i = 0; i < 50; i++) work->ok &= ng_kernel_run(work->shared, own.in, own.out, 1 + i % 3) == NG_OK;
  return NULL;
}

static void *use_own_context(void *argument) {
  Work *work = argument;
  ng_context *ctx = ng_context_new(NULL);
  work->ok = ctx && !use_everything(ctx);
  ng_context_free(ctx);
  return NULL;
}

enum { NTHREADS = 4 };

static void run_threads(Work *work, void *(*run)(void *)) {
  for (int i = 0; i < NTHREADS; i++) assert_int_equal(pthread_create(&work[i].thread, NULL, run, &work[i]), 0);
  for (int i = 0; i < NTHREADS; i++) assert_int_equal(pthread_join(work[i].thread, NULL), 0);
  for (int i = 0; i < NTHREADS; i++) assert_true(work[i].ok);
}

static void threads_may_share_a_kernel(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  Data data;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  ng_kernel *k = must_compile(ctx, g);
  assert_int_equal(ng_kernel_run(k, data.in, data.out, 1), NG_OK);
  Work work[NTHREADS];
  for (int i = 0; i < NTHREADS; i++) work[i] = (Work){.shared = k, .data = &data};
  run_threads(work, run_shared_kernel);
  for (int i = 0; i < NTHREADS; i++) assert_memory_equal(work[i].dx, data.out[0].data, sizeof work[i].dx);
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void contexts_are_independent(void **state) {
  (void)state;
  Work work[NTHREADS] = {0};
  run_threads(work, use_own_context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(describes_what_it_read),
      cmocka_unit_test(tells_where_a_graph_is_wrong),
      cmocka_unit_test(tells_of_a_file_that_is_not_there),
      cmocka_unit_test(messages_add_up_until_they_are_cleared),
      cmocka_unit_test(dims_take_other_values_until_bound),
      cmocka_unit_test(emitting_leaves_dims_open_and_binds_none),
      cmocka_unit_test(what_keeps_a_dim_from_staying_open_is_named),
      cmocka_unit_test(input_shapes_bind_open_extents),
      cmocka_unit_test(a_contradicting_input_shape_is_told),
      cmocka_unit_test(extents_that_stay_open_cannot_be_bound),
      cmocka_unit_test(random_data_is_the_same_everywhere),
      cmocka_unit_test(npy_files_come_back_as_they_went),
      cmocka_unit_test(tensors_lie_in_the_orders_that_the_graph_says),
      cmocka_unit_test(reshapes_and_transposes_mind_orders),
      cmocka_unit_test(npy_files_hold_elements_whatever_their_order),
      cmocka_unit_test(distances_are_in_units_of_the_actual_type),
      cmocka_unit_test(what_is_quantised_may_be_a_step_off),
      cmocka_unit_test(what_is_not_finite_must_be_alike),
      cmocka_unit_test(both_backends_agree),
      cmocka_unit_test(tensors_that_do_not_fit_are_refused),
      cmocka_unit_test(options_are_checked),
      cmocka_unit_test(a_graph_without_work_runs),
      cmocka_unit_test(nan_check_names_the_node),
      cmocka_unit_test(shows_every_form),
      cmocka_unit_test(emits_for_any_processor),
      cmocka_unit_test(operators_are_found_by_all_their_names),
      cmocka_unit_test(counts_bytes_and_restores_threads),
      cmocka_unit_test(a_profile_tells_times_bytes_and_lines),
      cmocka_unit_test(a_profiled_kernel_computes_the_same),
      cmocka_unit_test(running_out_of_memory_anywhere_is_an_error),
      cmocka_unit_test(threads_may_share_a_kernel),
      cmocka_unit_test(contexts_are_independent),
  };
  return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
