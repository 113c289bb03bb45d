// Graphs of training steps with tensors for all their ends, for tests that call them.
#ifndef NGRAD_TESTS_UNIT_TRAIN_CASE_H
#define NGRAD_TESTS_UNIT_TRAIN_CASE_H

#include "ir/graph/type.h"
#include "tests/unit/api_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 160 };

// A graph with tensors for all its ends.
typedef struct Run {
  ng_context *ctx;
  ng_graph *g;
  ng_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
  size_t ninputs, noutputs;
} Run;

static inline Run run_open(ng_context *ctx, ng_graph *g) {
  Run r = {.ctx = ctx, .g = g};
  if (!g) print_error("%s", ng_messages_text(ctx, 0));
  assert_non_null(g);
  assert_int_equal(ng_graph_bind(g), NG_OK);
  r.ninputs = ng_graph_input_count(g);
  r.noutputs = ng_graph_output_count(g);
  assert_true(r.ninputs <= MOST_TENSORS && r.noutputs <= MOST_TENSORS);
  for (size_t i = 0; i < r.ninputs; i++) {
    const ng_tensor_info info = ng_graph_input(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &r.inputs[i]), NG_OK);
  }
  for (size_t i = 0; i < r.noutputs; i++) {
    const ng_tensor_info info = ng_graph_output(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &r.outputs[i]), NG_OK);
  }
  return r;
}

static inline void run_close(Run *r) {
  for (size_t i = 0; i < r->ninputs; i++) ng_tensor_free(r->ctx, &r->inputs[i]);
  for (size_t i = 0; i < r->noutputs; i++) ng_tensor_free(r->ctx, &r->outputs[i]);
  ng_graph_free(r->g);
}

static inline ng_tensor *find_tensor(Run *r, const char *name) {
  for (size_t i = 0; i < r->ninputs; i++)
    if (strcmp(ng_graph_input(r->g, i).name, name) == 0) return &r->inputs[i];
  for (size_t i = 0; i < r->noutputs; i++)
    if (strcmp(ng_graph_output(r->g, i).name, name) == 0) return &r->outputs[i];
  fail_msg("there is no tensor %s", name);
  return NULL;
}

static inline double number(Run *r, const char *name) {
  return ng_tensor_get(find_tensor(r, name), 0);
}

static inline void set(Run *r, const char *name, size_t i, double number) {
  const ng_tensor *t = find_tensor(r, name);
  type_store((Type)t->type, t->data, i, number);
}

static inline void call(Run *r) {
  if (ng_interpret(r->g, r->inputs, r->outputs, 0) != NG_OK) fail_msg("%s", ng_messages_text(r->ctx, 0));
}

// The states after a call are the states before the next call.
static inline void keep_states(Run *r) {
  for (size_t i = 0; i < ng_graph_state_count(r->g); i++) {
    const ng_state s = ng_graph_state(r->g, i);
    if (s.is_updated) memcpy(r->inputs[s.input].data, r->outputs[s.output].data, ng_tensor_nbytes(&r->inputs[s.input]));
  }
}

static inline void must_be_near(double actual, double expected, const char *what) {
  if (!(fabs(actual - expected) <= 1e-12 * fmax(1, fabs(expected))))
    fail_msg("%s is %.17g, expected %.17g", what, actual, expected);
}

#endif
