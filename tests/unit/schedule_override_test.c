// `--schedule`: a key gives the same bits as without it, or, if its row in the table says that it changes the order of
// additions, results that agree as closely as sums in f32 do.
#include "frontend/api/handles.h"
#include "passes/schedule/overrides.h"
#include "tests/unit/quick_compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Rows in one block and in many, of few and of many elements; channels first and last; with masks that two or three
// sweeps or two loops need; sums within sums, columns, and rows that begin anywhere in a cache line.
static const char text[] =
    "format: ngrad/1\n"
    "name: overrides\n"
    "inputs:\n"
    "  - {name: x, type: f32, shape: [1200, 48]}\n"
    "  - {name: dy, type: f32, shape: [1200, 48]}\n"
    "  - {name: mean, type: f32, shape: [1200]}\n"
    "  - {name: variance, type: f32, shape: [1200]}\n"
    "  - {name: gamma, type: f32, shape: [48]}\n"
    "  - {name: x_short, type: f32, shape: [1203, 21]}\n"
    "  - {name: dy_short, type: f32, shape: [1203, 21]}\n"
    "  - {name: mean_short, type: f32, shape: [1203]}\n"
    "  - {name: variance_short, type: f32, shape: [1203]}\n"
    "  - {name: gamma_short, type: f32, shape: [21]}\n"
    "  - {name: planes, type: f32, shape: [6, 40, 13, 15]}\n"
    "  - {name: dplanes, type: f32, shape: [6, 40, 13, 15]}\n"
    "  - {name: pixels, type: f32, shape: [9, 14, 11, 40]}\n"
    "  - {name: dpixels, type: f32, shape: [9, 14, 11, 40]}\n"
    "  - {name: mean_c, type: f32, shape: [40]}\n"
    "  - {name: variance_c, type: f32, shape: [40]}\n"
    "  - {name: mean_g, type: f32, shape: [6, 4]}\n"
    "  - {name: variance_g, type: f32, shape: [6, 4]}\n"
    "  - {name: x_long, type: f32, shape: [21, 5003]}\n"
    "  - {name: gate, type: f32, shape: [1200, 48]}\n"
    "  - {name: gate_short, type: bf16, shape: [1203, 21]}\n"
    "  - {name: gate_planes, type: f32, shape: [6, 40, 13, 15]}\n"
    "  - {name: gate_pixels, type: f32, shape: [9, 14, 11, 40]}\n"
    "nodes:\n"
    "  - {op: LayerNormBackward, inputs: [x, dy, mean, variance, gamma, ~], outputs: [dx, dgamma, dbeta]}\n"
    "  - {op: LayerNormBackward, inputs: [x_short, dy_short, mean_short, variance_short, gamma_short, ~],\n"
    "     outputs: [dx_short, dgamma_short, dbeta_short]}\n"
    "  - {op: LayerNorm, inputs: [x_short, gamma_short, gamma_short], outputs: [y_short, m, v]}\n"
    "  - {op: BatchNormTrainingBackward, inputs: [planes, dplanes, mean_c, variance_c, variance_c],\n"
    "     outputs: [dx_planes, dgamma_planes, dbeta_planes], attributes: {epsilon: 1.0e-5, data_format: NCX}}\n"
    "  - {op: BatchNormTrainingBackward, inputs: [pixels, dpixels, mean_c, variance_c, variance_c],\n"
    "     outputs: [dx_pixels, dgamma_pixels, dbeta_pixels], attributes: {epsilon: 1.0e-5, data_format: NXC}}\n"
    "  - {op: GroupNormBackward, inputs: [planes, dplanes, mean_g, variance_g, variance_c],\n"
    "     outputs: [dx_groups, dgamma_groups, dbeta_groups], attributes: {groups: 4, data_format: NCX}}\n"
    "  - {op: SoftMax, inputs: [x_long], outputs: [rows], attributes: {axis: 1}}\n"
    "  - {op: SoftMax, inputs: [x_long], outputs: [columns], attributes: {axis: 0}}\n"
    "  - {op: ReLUBackward, inputs: [gate, x], outputs: [gated]}\n"
    "  - {op: SoftMax, inputs: [gated], outputs: [share], attributes: {axis: 1}}\n"
    "  - {op: TypeCast, inputs: [gate_short], outputs: [{name: gate_cast, type: f32}]}\n"
    "  - {op: ReLUBackward, inputs: [gate_cast, x_short], outputs: [gated_short]}\n"
    "  - {op: SoftMax, inputs: [gated_short], outputs: [share_short], attributes: {axis: 1}}\n"
    "  - {op: ReLUBackward, inputs: [gate_planes, dplanes], outputs: [gated_planes]}\n"
    "  - {op: BatchNormTrainingBackward, inputs: [planes, gated_planes, mean_c, variance_c, variance_c],\n"
    "     outputs: [dx_gated_planes, ~, ~], attributes: {epsilon: 1.0e-5, data_format: NCX}}\n"
    "  - {op: ReLUBackward, inputs: [gate_pixels, dpixels], outputs: [gated_pixels]}\n"
    "  - {op: BatchNormTrainingBackward, inputs: [pixels, gated_pixels, mean_c, variance_c, variance_c],\n"
    "     outputs: [dx_gated_pixels, ~, ~], attributes: {epsilon: 1.0e-5, data_format: NXC}}\n"
    "outputs: [dx, dgamma, dbeta, dx_short, dgamma_short, dbeta_short, y_short, m, v, dx_planes, dgamma_planes, "
    "dbeta_planes,\n"
    "          dx_pixels, dgamma_pixels, dbeta_pixels, dx_groups, dgamma_groups, dbeta_groups, rows, columns,\n"
    "          share, share_short, dx_gated_planes, dx_gated_pixels]\n";

enum { MOST_OPERANDS = 24 };

typedef struct Run {
  ng_tensor output[MOST_OPERANDS];
  size_t noutputs;
} Run;

static Run run_with(ng_context *ctx, ng_graph *g, const ng_tensor *inputs, const char *setting) {
  Run run = {.noutputs = ng_graph_output_count(g)};
  ng_kernel *k = ng_compile(g, &(ng_options){.schedule = &setting, .nschedule = setting ? 1 : 0});
  if (!k) {
    fail_msg("%s: %s", setting ? setting : "", ng_messages_text(ctx, 0));
    abort(); // not reached
  }
  for (size_t i = 0; i < run.noutputs; i++) {
    ng_tensor_info info = ng_graph_output(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &run.output[i]), NG_OK);
  }
  assert_int_equal(ng_kernel_run(k, inputs, run.output, 2), NG_OK);
  ng_kernel_free(k);
  return run;
}

static void run_deinit(ng_context *ctx, Run *run) {
  for (size_t i = 0; i < run->noutputs; i++) ng_tensor_free(ctx, &run->output[i]);
}

static double relative_difference(const ng_tensor *a, const ng_tensor *b) {
  double difference = 0, size = 0;
  for (int64_t i = 0; i < ng_tensor_nelems(a); i++) {
    double x = ng_tensor_get(a, i), y = ng_tensor_get(b, i);
    difference += (x - y) * (x - y);
    size += x * x;
  }
  return difference / size;
}

static void must_agree(const Run *chosen, const Run *set, bool changes_sums, const char *setting) {
  for (size_t i = 0; i < chosen->noutputs; i++) {
    const ng_tensor *a = &chosen->output[i], *b = &set->output[i];
    bool same_bits = memcmp(a->data, b->data, ng_tensor_nbytes(a)) == 0;
    if (!same_bits && !changes_sums) fail_msg("--schedule %s changes bits of output %zu, expected not to", setting, i);
    double bound = 1e-6;
    if (!same_bits && !(relative_difference(a, b) < bound * bound))
      fail_msg("--schedule %s changes output %zu by more than rounding errors", setting, i);
  }
}

static void every_key_computes_the_same(void **state) {
  (void)state;
  static const int values[] = {0, 1, 2, 3, 4, 8, 20, 64, 256, 4096};
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "overrides.yaml", text, sizeof text - 1, NULL);
  if (!g) fail_msg("%s", ng_messages_text(ctx, 0));
  ng_tensor inputs[MOST_OPERANDS];
  for (size_t i = 0; i < ng_graph_input_count(g); i++) assert_int_equal(ng_tensor_random(g, i, 1, &inputs[i]), NG_OK);
  Run chosen = run_with(ctx, g, inputs, NULL);
  for (int key = 0; key < SCHEDULE_KEYS; key++) {
    for (size_t v = takes_all() ? 0 : (size_t)key % 2; v < sizeof values / sizeof *values; v += takes_all() ? 1 : 2) {
      const ScheduleKeyInfo *info = &schedule_keys[key];
      if (values[v] < info->least || values[v] > info->most) continue;
      char setting[64];
      snprintf(setting, sizeof setting, "%s=%d", info->name, values[v]);
      Run set = run_with(ctx, g, inputs, setting);
      must_agree(&chosen, &set, info->changes_sums, setting);
      run_deinit(ctx, &set);
    }
  }
  run_deinit(ctx, &chosen);
  for (size_t i = 0; i < ng_graph_input_count(g); i++) ng_tensor_free(ctx, &inputs[i]);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Streams of vectors to addresses within cache lines end the program.
static void streams_begin_at_cache_lines_whatever_tiles_are(void **state) {
  (void)state;
  static const char relu[] = "format: ngrad/1\nname: test\ninputs: [{name: x, type: f32, shape: [100000]}]\n"
                             "nodes: [{op: ReLU, inputs: [x], outputs: [y]}]\noutputs: [y]\n";
  static const char *const settings[] = {"stream=1", "tile=100"};
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "relu.yaml", relu, sizeof relu - 1, NULL);
  if (!g) fail_msg("%s", ng_messages_text(ctx, 0));
  ng_kernel *k = ng_compile(g, &(ng_options){.schedule = settings, .nschedule = 2});
  if (!k) fail_msg("%s", ng_messages_text(ctx, 0));
  ng_tensor x, y;
  ng_tensor_info info = ng_graph_output(g, 0);
  assert_int_equal(ng_tensor_random(g, 0, 1, &x), NG_OK);
  assert_int_equal(ng_tensor_new(ctx, &info, &y), NG_OK);
  assert_int_equal(ng_kernel_run(k, &x, &y, 2), NG_OK);
  for (int64_t i = 0; i < ng_tensor_nelems(&x); i++)
    assert_true(ng_tensor_get(&y, i) == (ng_tensor_get(&x, i) > 0 ? ng_tensor_get(&x, i) : 0));
  ng_tensor_free(ctx, &x);
  ng_tensor_free(ctx, &y);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// There are many settings, and unoptimised code gives the same bits.
static int compile_quickly(void **state) {
  (void)state;
  return use_quick_compiler(true) ? 0 : -1;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_key_computes_the_same),
                                     cmocka_unit_test(streams_begin_at_cache_lines_whatever_tiles_are)};
  return cmocka_run_group_tests(tests, compile_quickly, NULL);
}
