// Shared by the tests of the installed API: make contexts, graphs, kernels and tensors, or fail.
#ifndef NGRAD_TESTS_UNIT_API_CASE_H
#define NGRAD_TESTS_UNIT_API_CASE_H

#include "frontend/api/ngrad.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

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

static inline ng_graph *read_text(ng_context *ctx, const char *text) {
  return ng_graph_read(ctx, "test.yaml", text, strlen(text), NULL);
}

static inline ng_context *new_context(void) {
  ng_context *ctx = ng_context_new(NULL);
  assert_non_null(ctx);
  return ctx;
}

static inline ng_graph *must_read(ng_context *ctx, const char *text) {
  ng_graph *g = read_text(ctx, text);
  if (!g) print_error("%s", ng_messages_text(ctx, 0));
  assert_non_null(g);
  assert_int_equal(ng_last_status(ctx), NG_OK);
  return g;
}

static inline ng_kernel *must_compile(ng_context *ctx, ng_graph *g) {
  ng_kernel *k = ng_compile(g, NULL);
  if (!k) print_error("%s", ng_messages_text(ctx, 0));
  assert_non_null(k);
  assert_int_equal(ng_last_status(ctx), NG_OK);
  return k;
}

// Fails unless there is one message, this error.
static inline void must_have_said(ng_context *ctx, const char *expected) {
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

static inline ng_status data_make(Data *data, ng_context *ctx, ng_graph *g) {
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

static inline void data_free(Data *data, ng_context *ctx) {
  for (size_t i = 0; i < 8; i++) {
    ng_tensor_free(ctx, &data->in[i]);
    ng_tensor_free(ctx, &data->out[i]);
  }
}

#endif
