// Batch norms with the statistics of the whole batch: a step over leaves equals the step of the whole batch.
#include "frontend/api/handles.h"
#include "passes/leaves/stages.h"
#include "tests/unit/api_case.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TENSORS = 48, MOST_TEXT = 4096, MOST_RANK = 5 };

// Two batch norms, each after a product with a parameter, so that gradients flow through the statistics of both.
typedef struct Network {
  int rank;
  int64_t extent[MOST_RANK]; // of a leaf's src
  bool is_ncx, has_affine;
  const char *type, *statistics;
  double mean; // of x; its deviation is about 1
} Network;

static uint32_t draw(uint32_t *seed, uint32_t below) {
  *seed = *seed * 1664525U + 1013904223U;
  return (*seed >> 16) % below;
}

static Network draw_network(uint32_t *seed) {
  static const char *const types[][2] = {
      {"f64", "f64"}, {"f64", "f64"}, {"f32", "f32"}, {"bf16", "f32"}, {"f16", "f32"}};
  Network n = {.rank = 2 + (int)draw(seed, 4), .is_ncx = draw(seed, 2), .has_affine = draw(seed, 4) != 0};
  for (int i = 0; i < n.rank; i++) n.extent[i] = 1 + draw(seed, 4);
  if (n.extent[0] == 1 && draw(seed, 2)) n.extent[0] = 3;
  const uint32_t type = draw(seed, sizeof types / sizeof *types);
  n.type = types[type][0];
  n.statistics = types[type][1];
  return n;
}

static void add(char *text, const char *format, const char *a, const char *b) {
  const size_t used = strlen(text);
  snprintf(text + used, MOST_TEXT - used, format, a, b);
}

static const char *shape_of(const Network *n, int from, int64_t nleaves, char text[80]) {
  size_t used = 1;
  text[0] = '[';
  text[1] = 0;
  for (int i = from; i < n->rank; i++)
    used += (size_t)snprintf(text + used, 80 - used, "%s%lld", i > from ? ", " : "",
                             (long long)n->extent[i] * (i ? 1 : nleaves));
  snprintf(text + used, 80 - used, "]");
  return text;
}

// The network for a batch of so many leaves.
static void write_network(const Network *n, int64_t nleaves, char text[MOST_TEXT]) {
  char whole[80], sample[80], channels[32];
  shape_of(n, 0, nleaves, whole);
  shape_of(n, 1, 1, sample);
  snprintf(channels, sizeof channels, "[%lld]", (long long)n->extent[n->is_ncx ? 1 : n->rank - 1]);
  text[0] = 0;
  add(text, "format: ngrad/1\nname: network\ninputs: [{name: x, type: %s, shape: %s}, ", n->type, whole);
  add(text, "{name: t, type: %s, shape: %s}]\nstate:\n", n->type, whole);
  for (int i = 0; i < 2; i++) {
    const char *number = i ? "2" : "1";
    add(text, "  - {name: w%s, type: ", number, "");
    add(text, "%s, shape: %s, init: {normal: 1}}\n", n->type, sample);
    for (int k = 0; k < 4; k++) {
      static const char *const names[] = {"mean", "var", "gamma", "beta"};
      if (k >= 2 && !n->has_affine) continue;
      add(text, "  - {name: %s%s, ", names[k], number);
      add(text, "type: %s, shape: %s, init: ones}\n", n->statistics, channels);
    }
  }
  add(text, "nodes:\n", "", "");
  for (int i = 0; i < 2; i++) {
    const char *number = i ? "2" : "1";
    add(text, "  - {op: Multiply, inputs: [%s, w%s], ", i ? "a1" : "x", number);
    add(text, "outputs: [h%s]}\n  - {op: BatchNormForwardTraining, inputs: [h%s, ", number, number);
    add(text, n->has_affine ? "mean%s, var%s, " : "mean%s, var%s], ", number, number);
    if (n->has_affine) add(text, "gamma%s, beta%s], ", number, number);
    add(text, "outputs: [n%s, m%s, ", number, number);
    add(text, "v%s, bm%s, ", number, number);
    add(text, "bv%s], attributes: {epsilon: 1.0e-2, momentum: 0.75, data_format: %s}}\n", number,
        n->is_ncx ? "NCX" : "NXC");
    add(text, "  - {op: Tanh, inputs: [n%s], outputs: [a%s]}\n", number, number);
  }
  add(text, "  - {op: MeanSquaredError, inputs: [a2, t], outputs: [loss]}\n", "", "");
  for (int i = 0; i < 4; i++) {
    static const char *const of[] = {"bm1", "bv1", "bm2", "bv2"};
    add(text, "  - {op: ReduceL2, inputs: [%s], outputs: [norm_%s], attributes: {axes: [0]}}\n", of[i], of[i]);
  }
  add(text, "outputs: [loss, norm_bm1, norm_bv1, norm_bm2, norm_bv2]\n", "", "");
  add(text, "updates: {mean1: m1, var1: v1, mean2: m2, var2: v2}\n", "", "");
}

typedef struct Step {
  ng_graph *g;
  ng_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
  size_t ninputs, noutputs;
} Step;

static Step open_step(ng_context *ctx, const Network *n, int64_t nleaves, bool is_whole) {
  char text[MOST_TEXT];
  const ng_setting settings[] = {{"learning_rate", 1}, {"accumulate", (double)nleaves}, {"sync_batch_norm", 1}};
  const ng_train_options options = {
      .losses = (const char *const[]){"loss"}, .nlosses = 1, .settings = settings, .nsettings = is_whole ? 1 : 3};
  write_network(n, is_whole ? nleaves : 1, text);
  ng_graph *forward = must_read(ctx, text);
  Step s = {.g = ng_graph_train(forward, &options)};
  if (!s.g) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
  ng_graph_free(forward);
  s.ninputs = ng_graph_input_count(s.g);
  s.noutputs = ng_graph_output_count(s.g);
  assert_true(s.ninputs <= MOST_TENSORS && s.noutputs <= MOST_TENSORS);
  for (size_t i = 0; i < s.ninputs; i++) assert_int_equal(ng_tensor_random(s.g, i, 3, &s.inputs[i]), NG_OK);
  for (size_t i = 0; i < s.noutputs; i++) {
    const ng_tensor_info info = ng_graph_output(s.g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &s.outputs[i]), NG_OK);
  }
  return s;
}

static void close_step(ng_context *ctx, Step *s) {
  for (size_t i = 0; i < s->ninputs; i++) ng_tensor_free(ctx, &s->inputs[i]);
  for (size_t i = 0; i < s->noutputs; i++) ng_tensor_free(ctx, &s->outputs[i]);
  ng_graph_free(s->g);
}

static double bound_of(const Network *n) {
  return n->mean != 0                  ? 1e-5
         : strcmp(n->type, "f64") == 0 ? 1e-11
         : strcmp(n->type, "f32") == 0 ? 1e-4
         : strcmp(n->type, "f16") == 0 ? 2e-2
                                       : 0.15;
}

static void must_agree(const Network *n, Step *leaves, Step *whole) {
  assert_int_equal(leaves->noutputs, whole->noutputs);
  for (size_t i = 0; i < leaves->noutputs; i++) {
    const char *name = ng_graph_output(whole->g, i).name;
    double distance = 0, norm = 0;
    assert_string_equal(ng_graph_output(leaves->g, i).name, name);
    for (int64_t k = 0; k < ng_tensor_nelems(&whole->outputs[i]); k++) {
      const double a = ng_tensor_get(&leaves->outputs[i], k), b = ng_tensor_get(&whole->outputs[i], k);
      distance += (a - b) * (a - b);
      norm += b * b;
    }
    if (!(sqrt(distance) <= bound_of(n) * fmax(1, sqrt(norm))))
      fail_msg("%s of %s, rank %d, is off by %g of %g", name, n->type, n->rank, sqrt(distance), sqrt(norm));
  }
}

static void check_network(const Network *n, int64_t nleaves) {
  ng_context *ctx = new_context();
  Network of_whole = *n;
  if (n->mean != 0) of_whole.type = of_whole.statistics = "f64";
  Step leaves = open_step(ctx, n, nleaves, false), whole = open_step(ctx, &of_whole, nleaves, true);
  assert_int_equal(leaves.ninputs, whole.ninputs);
  for (int64_t i = 0; n->mean != 0 && i < ng_tensor_nelems(&leaves.inputs[0]); i++)
    ((float *)leaves.inputs[0].data)[i] += (float)n->mean;
  for (size_t i = 0; i < whole.ninputs; i++) {
    assert_int_equal(ng_tensor_nelems(&leaves.inputs[i]), ng_tensor_nelems(&whole.inputs[i]));
    if (leaves.inputs[i].type == whole.inputs[i].type)
      memcpy(whole.inputs[i].data, leaves.inputs[i].data, ng_tensor_nbytes(&leaves.inputs[i]));
    else
      for (int64_t k = 0; k < ng_tensor_nelems(&whole.inputs[i]); k++)
        ((double *)whole.inputs[i].data)[k] = ng_tensor_get(&leaves.inputs[i], k);
  }
  if (ng_interpret(leaves.g, leaves.inputs, leaves.outputs, 0) != NG_OK) fail_msg("%s", ng_messages_text(ctx, 0));
  if (ng_interpret(whole.g, whole.inputs, whole.outputs, 0) != NG_OK) fail_msg("%s", ng_messages_text(ctx, 0));
  must_agree(n, &leaves, &whole);
  close_step(ctx, &leaves);
  close_step(ctx, &whole);
  ng_context_free(ctx);
}

static void leaves_are_as_the_whole_batch(void **state) {
  (void)state;
  enum { TRIED = 120, MOST = 7 };
  uint32_t seed = 1;
  for (int i = 0; i < TRIED; i++) {
    const Network n = draw_network(&seed);
    check_network(&n, 2 + i % (MOST - 1));
  }
}

// Beside the whole batch in f64.
static void means_far_from_0_leave_the_variance(void **state) {
  (void)state;
  const Network n = {.rank = 2, .extent = {4, 3}, .has_affine = true, .type = "f32", .statistics = "f32", .mean = 3000};
  check_network(&n, 5);
}

// Between stages a leaf has five tensors of src's size, and all leaves have none in common.
static void stages_have_few_tensors_between_them(void **state) {
  (void)state;
  enum { LEAVES = 3, NELEMS = 8 * 3 * 8 * 8, NBYTES = 8 * NELEMS, BUCKET_NBYTES = 1 << 20 };
  const Network n = {4, {8, 3, 8, 8}, true, true, "f64", "f64"};
  ng_context *ctx = new_context();
  Step step = open_step(ctx, &n, LEAVES, false);
  Stages stages;
  assert_true(stages_cut(&stages, step.g->graph, BUCKET_NBYTES, &ctx->diagnostics));
  assert_true(stages.step.own_nbytes / 6 < NBYTES && stages.step.common_nbytes < NBYTES);
  stages_free(&stages);
  close_step(ctx, &step);
  ng_context_free(ctx);
}

// A norm's mean, then its variance; both AllReduces of its gradient are in one stage.
static void norms_take_two_exchanges_and_their_gradients_one(void **state) {
  (void)state;
  enum { NORMS = 2, LEAVES = 3, BUCKET_NBYTES = 1 << 20 };
  uint32_t seed = 2;
  for (int i = 0; i < 5; i++) {
    const Network n = draw_network(&seed);
    ng_context *ctx = new_context();
    Step step = open_step(ctx, &n, LEAVES, false);
    Stages stages;
    assert_true(stages_cut(&stages, step.g->graph, BUCKET_NBYTES, &ctx->diagnostics));
    assert_int_equal(stages.step.nstages, 3 * NORMS + 2); // then the gradients, and the update
    stages_free(&stages);
    close_step(ctx, &step);
    ng_context_free(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(leaves_are_as_the_whole_batch),
      cmocka_unit_test(means_far_from_0_leave_the_variance),
      cmocka_unit_test(norms_take_two_exchanges_and_their_gradients_one),
      cmocka_unit_test(stages_have_few_tensors_between_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
