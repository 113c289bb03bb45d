// Schedules: how often data is read, where sums are taken, and that shapes alone decide the order of additions. Numbers
// that tuning changes (blocks, rows in a step) are tested by properties, not by value.
#include "frontend/api/handles.h"
#include "ir/kernel/verify.h"
#include "ir/loops/target.h"
#include "passes/pipeline.h"
#include "passes/schedule/order/order.h"
#include "passes/schedule/order/traffic.h"
#include "tests/unit/schedule_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Graphs of one norm

static const char *norm_text(const char *op, const char *shape, const char *statistics, const char *attributes) {
  static char texts[4][1024];
  static unsigned next;
  char *text = texts[next++ % 4];
  snprintf(
      text, sizeof texts[0],
      "format: ngrad/1\nname: test\ninputs:\n"
      "  - {name: x, type: f32, shape: [%s]}\n  - {name: dy, type: f32, shape: [%s]}\n"
      "  - {name: mean, type: f32, shape: [%s]}\n  - {name: variance, type: f32, shape: [%s]}\n"
      "  - {name: gamma, type: f32}\n"
      "nodes:\n  - {op: %s, inputs: [x, dy, mean, variance, gamma], outputs: [dx, dgamma, dbeta], attributes: {%s}}\n"
      "outputs: [dx, dgamma, dbeta]\n",
      shape, shape, statistics, statistics, op, attributes);
  return text;
}

#define LAYER_NORM(shape, rows) norm_text("LayerNormBackward", shape, rows, "")
#define BATCH_NORM(shape, channels, format)                                                                            \
  norm_text("BatchNormTrainingBackward", shape, channels, "epsilon: 1e-5, data_format: " format)
#define FROZEN(shape, channels, format)                                                                                \
  norm_text("BatchNormInferenceBackward", shape, channels, "epsilon: 1e-5, data_format: " format)

#define GROUP_NORM(shape, statistics, groups)                                                                          \
  norm_text("GroupNormBackward", shape, statistics, "data_format: NCX, groups: " groups)

static const char *forward_text(const char *op, const char *shape, const char *attributes) {
  static char text[512];
  snprintf(
      text, sizeof text,
      "format: ngrad/1\nname: test\ninputs: [{name: x, type: f32, shape: [%s]}]\n"
      "nodes: [{op: %s, inputs: [x], outputs: [y, mean, variance], attributes: {%s}}]\noutputs: [y, mean, variance]\n",
      shape, op, attributes);
  return text;
}

// Kinds of loops

static AxisSet loop_axes(const Loop *loop) {
  return loop_outer_axes(loop) | loop_inner_axes(loop);
}

// Loops over the whole domain: each is at least one look at the data.
static size_t main_loops(const Schedule *s, const Loop **loops) {
  const Kernel *k = s->kernel;
  size_t count = 0;
  for (size_t i = 0; i < s->nloops; i++)
    if (loop_axes(&s->loops[i]) == (1U << k->naxes) - 1) loops[count++] = &s->loops[i];
  return count;
}

static int count_roots(const Loop *loop, RootKind kind, int sweep) {
  int count = 0;
  for (size_t i = 0; i < loop->nroots; i++) count += loop->roots[i].kind == kind && loop->roots[i].sweep == sweep;
  return count;
}

// The loops of schedules

static void layer_norm_gradient_visits_rows_once(void **state) {
  (void)state;
  Lowered l = lower(LAYER_NORM("40, 50", "40"), &usual, false);
  const Schedule *s = only_schedule(&l);
  const Loop *loops[8] = {NULL};
  assert_int_equal(main_loops(s, loops), 1);
  assert_int_equal(loops[0]->nouter, 1);
  assert_int_equal(loops[0]->ninner, 1);
  assert_int_equal(loops[0]->nsweeps, 2);
  assert_int_equal(count_roots(loops[0], ROOT_REDUCE_INNER, 0), 2); // the row's sums
  assert_int_equal(count_roots(loops[0], ROOT_REDUCE_OUTER, 0), 2); // of diff_gamma and diff_beta
  assert_int_equal(count_roots(loops[0], ROOT_STORE, 1), 1);        // while the row is still in cache
  assert_int_equal(s->nloops, 2);                                   // and the columns' sums
  lowered_deinit(&l);
}

// Indices along an axis are exact in f32, so a causal mask is in the kernel of a softmax; indices that are data are
// compared in f64, in another kernel.
static void masks_made_of_indices_compute_in_f32(void **state) {
  (void)state;
  for (int is_data = 0; is_data < 2; is_data++) {
    char text[1024];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs: [{name: x, type: f32, shape: [40, 50]}%s]\n"
             "constants: [{name: never, type: f32, shape: [], value: -.inf}]\nnodes:\n%s"
             "  - {op: GenIndex, inputs: [x], outputs: [column], attributes: {axis: 1}}\n"
             "  - {op: GreaterEqual, inputs: [row, column], outputs: [is_before]}\n"
             "  - {op: Select, inputs: [is_before, x, never], outputs: [masked]}\n"
             "  - {op: SoftMax, inputs: [masked], outputs: [y], attributes: {axis: 1}}\noutputs: [y]\n",
             is_data ? ", {name: row, type: s32, shape: [40, 1]}" : "",
             is_data ? "" : "  - {op: GenIndex, inputs: [x], outputs: [row], attributes: {axis: 0}}\n");
    Lowered l = lower(text, &usual, false);
    const size_t last = l.program->nkernels - 1;
    assert_int_equal(last, is_data ? 2 : 0);
    if (is_data) assert_true(l.program->schedules[1]->kernel->is_f64);
    assert_false(l.program->schedules[last]->kernel->is_f64);
    lowered_deinit(&l);
  }
}

static void layer_norm_gradient_without_parameters_is_one_loop(void **state) {
  (void)state;
  Lowered l = lower("format: ngrad/1\nname: test\n"
                    "inputs: [{name: x, type: f32, shape: [40, 5, 10]}, {name: dy, type: f32}, {name: m, type: f32}, "
                    "{name: v, type: f32}]\n"
                    "nodes: [{op: LayerNormBackward, inputs: [x, dy, m, v], outputs: [dx], attributes: {use_affine: "
                    "false, begin_norm_axis: 1}}]\n"
                    "outputs: [dx]\n",
                    &usual, false);
  const Schedule *s = only_schedule(&l);
  const Kernel *k = s->kernel;
  assert_int_equal(s->nloops, 1);
  assert_int_equal(k->naxes, 2);
  assert_int_equal(s->ntemporaries, 0);
  lowered_deinit(&l);
}

static void layer_norm_of_one_row_is_cut_into_tiles(void **state) {
  (void)state;
  Lowered l = lower(norm_text("LayerNormBackward", "100000", "", "begin_norm_axis: 0"), &usual, false);
  const Loop *loops[8] = {NULL};
  size_t count = main_loops(only_schedule(&l), loops);
  assert_int_equal(count, 2); // sums, then diff_src
  for (size_t i = 0; i < count; i++)
    assert_true(loop_tile(loops[i]) && loop_nblocks(only_schedule(&l)->kernel, loops[i]) > 1);
  lowered_deinit(&l);
}

static void batch_norm_gradient_ncx_finishes_a_channel_at_a_time(void **state) {
  (void)state;
  Lowered l = lower(BATCH_NORM("4, 16, 9, 9", "16", "NCX"), &usual, false);
  const Schedule *s = only_schedule(&l);
  const Kernel *k = s->kernel;
  assert_int_equal(s->nloops, 1);
  const Loop *loop = &s->loops[0];
  assert_int_equal(loop->nouter, 1);
  assert_int_equal(k->axes[loop->axes[0]].extent, 16);
  assert_int_equal(loop->ninner, 2);
  assert_int_equal(loop->nsweeps, 2);
  assert_int_equal(s->ntemporaries, 0);
  lowered_deinit(&l);
}

// Few large channels have tiles, which many threads share; the order of additions stays that of a channel's planes.
static void batch_norm_gradient_of_few_channels_has_tiles(void **state) {
  (void)state;
  Lowered l = lower(BATCH_NORM("64, 2, 100, 100", "2", "NCX"), &usual, false);
  const Schedule *s = only_schedule(&l);
  const Loop *loops[8] = {NULL};
  assert_int_equal(main_loops(s, loops), 2);
  assert_int_equal(loop_nblocks(s->kernel, loops[0]), 2 * 64 * 10);
  assert_int_equal(loop_tile(loops[0]), LONGEST_SEGMENT * LANES);
  assert_int_equal(loop_tile(loops[1]), 0);
  lowered_deinit(&l);
}

static void batch_norm_gradient_nxc_takes_two_loops(void **state) {
  (void)state;
  Lowered l = lower(BATCH_NORM("4, 9, 9, 16", "16", "NXC"), &usual, false);
  const Schedule *s = only_schedule(&l);
  const Loop *loops[8] = {NULL};
  assert_int_equal(main_loops(s, loops), 2);
  assert_int_equal(count_roots(loops[0], ROOT_REDUCE_OUTER, 0), 2);
  assert_int_equal(count_roots(loops[0], ROOT_STORE, 0), 0);
  assert_int_equal(count_roots(loops[1], ROOT_STORE, 0), 1);
  assert_int_equal(loops[1]->nroots, 1);
  lowered_deinit(&l);
}

// Nothing waits for the sums: they are made on the way.
static void gradient_with_frozen_statistics_is_one_look_at_the_data(void **state) {
  (void)state;
  const char *const texts[] = {FROZEN("4, 9, 9, 16", "16", "NXC"), FROZEN("4, 16, 9, 9", "16", "NCX")};
  for (int i = 0; i < 2; i++) {
    Lowered l = lower(texts[i], &usual, false);
    const Loop *loops[8] = {NULL};
    assert_int_equal(main_loops(only_schedule(&l), loops), 1);
    for (size_t r = 0; r < loops[0]->nroots; r++) {
      const Root *root = &loops[0]->roots[r];
      if (root_axes(only_schedule(&l)->kernel, root) & loop_inner_axes(loops[0])) assert_int_equal(root->sweep, 0);
    }
    lowered_deinit(&l);
  }
}

static void layer_norm_sweeps_a_row_three_times(void **state) {
  (void)state;
  Lowered l = lower(forward_text("LayerNorm", "40, 50", "use_affine: false"), &usual, false);
  const Loop *loops[8] = {NULL};
  assert_int_equal(main_loops(only_schedule(&l), loops), 1);
  assert_int_equal(only_schedule(&l)->nloops, 1);
  assert_int_equal(only_schedule(&l)->loops[0].nsweeps, 3); // the mean, moments about it, the result
  lowered_deinit(&l);
}

// Along an axis that is not the last: vectors of columns, which are looked at in the caches.
static void softmax_of_columns_is_one_loop(void **state) {
  (void)state;
  static const struct {
    const char *shape;
    bool rows_in_lanes;
  } cases[] = {{"3, 21, 4, 25", true}, {"21, 100", true}, {"3, 257, 100", false}, {"3, 21, 15", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs: [{name: x, type: f32, shape: [%s]}]\n"
             "nodes: [{op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: %d}}]\noutputs: [y]\n",
             cases[i].shape, cases[i].shape[0] == '3');
    Lowered l = lower(text, &usual, false);
    const Schedule *s = only_schedule(&l);
    const Kernel *k = s->kernel;
    const Loop *loop = &s->loops[0];
    assert_int_equal(loop_has(loop, LOOP_ROW_LANES), cases[i].rows_in_lanes);
    if (cases[i].rows_in_lanes) {
      assert_int_equal(s->nloops, 1);
      assert_int_equal(loop->nsweeps, 3);
      assert_int_equal(loop->nbatch, loop->nouter - 1); // a vector is of one image
      assert_int_equal(k->axes[loop_lane_axis(loop)].extent, 100);
      assert_int_equal(loop->cut.length % LANES, 0);
    }
    lowered_deinit(&l);
  }
}

// Monomial are taken once, where a row of them fits the caches.
static void softmax_keeps_the_powers_of_short_rows(void **state) {
  (void)state;
  static const struct {
    const char *shape;
    int nspills;
  } cases[] = {{"300, 100", 1}, {"300, 100000", 0}, {"40, 9, 100", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs: [{name: x, type: f32, shape: [%s]}]\n"
             "nodes: [{op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}]\noutputs: [y]\n",
             cases[i].shape);
    Lowered l = lower(text, &usual, false);
    const Schedule *s = only_schedule(&l);
    const Kernel *k = s->kernel;
    const Loop *loop = &s->loops[0];
    assert_int_equal(loop->nsweeps, 3);
    assert_int_equal(loop->nspills, cases[i].nspills);
    if (loop->nspills) {
      assert_int_equal(k->exprs[loop->spills[0].expr].op, EXPR_EXP);
      assert_int_equal(loop->spills[0].sweep, 1); // the sweep that adds them up
    }
    lowered_deinit(&l);
  }
}

// Long rows that begin anywhere in a cache line are stored past the caches all the same, where nothing else is done.
static void long_rows_are_peeled_to_cache_lines(void **state) {
  (void)state;
  static const struct {
    const char *shape, *type;
    bool is_peeled, is_streamed;
  } cases[] = {{"100, 50257", "f32", true, true},   {"100, 50256", "f32", false, true},
               {"10, 5003", "f32", true, false},                                        // stays in the caches
               {"10000, 501", "f32", true, true},   {"80000, 61", "f32", false, false}, // short rows
               {"100, 50257", "bf16", false, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(
        text, sizeof text,
        "format: ngrad/1\nname: test\ninputs: [{name: y, type: %s, shape: [%s]}, {name: dy, type: %s, shape: [%s]}]\n"
        "nodes: [{op: SoftMaxBackward, inputs: [dy, y], outputs: [dx], attributes: {axis: 1}}]\noutputs: [dx]\n",
        cases[i].type, cases[i].shape, cases[i].type, cases[i].shape);
    Lowered l = lower(text, &usual, false);
    const Loop *loop = &only_schedule(&l)->loops[0];
    assert_int_equal(loop->is_peeled, cases[i].is_peeled);
    for (size_t r = 0; r < loop->nroots; r++)
      if (loop->roots[r].kind == ROOT_STORE) assert_int_equal(loop->roots[r].is_streamed, cases[i].is_streamed);
    lowered_deinit(&l);
  }
}

// Rows of a step reach their cache lines at different elements, but their partial sums are loaded and stored once.
// Planes are peeled although sums of their channels are stored in the same sweep.
static void rows_beside_sums_are_peeled(void **state) {
  (void)state;
  static const struct {
    const char *op, *shape, *statistics, *channels, *format;
    bool has_several_rows;
  } cases[] = {{"LayerNormBackward", "4000, 741", "4000", "741", "", true},
               {"BatchNormTrainingBackward", "8, 64, 71, 71", "64", "64", ", data_format: NCX", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *x = cases[i].shape, *m = cases[i].statistics;
    char text[1024];
    snprintf(
        text, sizeof text,
        "format: ngrad/1\nname: test\ninputs: [{name: x, type: f32, shape: [%s]}, {name: dy, type: f32, shape: [%s]},\n"
        "  {name: m, type: f32, shape: [%s]}, {name: v, type: f32, shape: [%s]}, {name: g, type: f32, shape: [%s]}]\n"
        "nodes: [{op: %s, inputs: {src: x, diff_dst: dy, mean: m, variance: v, gamma: g},\n"
        "  outputs: {diff_src: dx, diff_gamma: dg, diff_beta: db}, attributes: {epsilon: 1.0e-5%s}}]\n"
        "outputs: [dx, dg, db]\n",
        x, x, m, m, cases[i].channels, cases[i].op, cases[i].format);
    Lowered l = lower(text, &usual, false);
    const Loop *loop = &only_schedule(&l)->loops[0];
    size_t nstreamed = 0;
    for (size_t r = 0; r < loop->nroots; r++) nstreamed += loop->roots[r].is_streamed;
    assert_true(loop->is_peeled);
    assert_int_equal(loop->rows > 1, cases[i].has_several_rows);
    assert_int_equal(nstreamed, 1);
    lowered_deinit(&l);
  }
}

// Planes of 7 x 7 elements of 2 bytes are shorter than two cache lines, which neighbouring channels share.
static void short_planes_of_neighbours_are_in_one_step(void **state) {
  static const char *const types[] = {"bf16", "f32"};
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs: [{name: x, type: %s, shape: [32, 2048, 7, 7]},\n"
             "  {name: dy, type: %s, shape: [32, 2048, 7, 7]}, {name: m, type: f32, shape: [2048]},\n"
             "  {name: v, type: f32, shape: [2048]}]\n"
             "nodes: [{op: BatchNormTrainingBackward, inputs: {src: x, diff_dst: dy, mean: m, variance: v},\n"
             "  outputs: {diff_src: {name: dx, type: %s}}, attributes: {epsilon: 1e-5, data_format: NCX}}]\n"
             "outputs: [dx]\n",
             types[i], types[i], types[i]);
    Lowered l = lower(text, &usual, false);
    assert_int_equal(last_loop(only_schedule(&l))->rows > 1, i == 0);
    lowered_deinit(&l);
  }
}

static size_t count_exprs(const Kernel *k, ExprOp op) {
  size_t count = 0;
  for (ExprId i = 1; i < k->nexprs; i++) count += k->exprs[i].op == op;
  return count;
}

// The factor of an image and a channel has the axis of channels alone if there is a single image, as in batch norms,
// but is rounded as among others.
static void one_image_is_normalised_as_many_are(void **state) {
  size_t nproducts[2];
  (void)state;
  for (int n = 1; n <= 2; n++) {
    char text[512];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs: [{name: x, type: f32, shape: [%d, 6, 5, 5]},\n"
             "  {name: gamma, type: f32, shape: [6]}, {name: beta, type: f32, shape: [6]}]\n"
             "nodes: [{op: InstanceNorm, inputs: [x, gamma, beta], outputs: [y], attributes: {data_format: NCX, "
             "keep_stats: false}}]\n"
             "outputs: [y]\n",
             n);
    Lowered l = lower(text, &usual, false);
    nproducts[n - 1] = count_exprs(only_schedule(&l)->kernel, EXPR_MUL);
    lowered_deinit(&l);
  }
  assert_int_equal(nproducts[0], nproducts[1]);
}

static void elementwise_operators_are_one_loop_of_tiles(void **state) {
  (void)state;
  Lowered l =
      lower("format: ngrad/1\nname: test\ninputs: [{name: x, type: f32, shape: [4, 5, 6]}]\n"
            "nodes: [{op: ReLU, inputs: [x], outputs: [y]}, {op: Add, inputs: [x, y], outputs: [z]}]\noutputs: [z]\n",
            &usual, false);
  const Schedule *s = only_schedule(&l);
  const Kernel *k = s->kernel;
  assert_int_equal(k->naxes, 1);
  assert_int_equal(k->axes[0].extent, 120);
  assert_int_equal(s->nloops, 1);
  assert_true(loop_tile(&s->loops[0]));
  lowered_deinit(&l);
}

// A channel's plane is summed once, for its group and for gamma and beta, whose sums over the batch go by groups.
static void group_norm_gradient_nests_sums_over_planes(void **state) {
  (void)state;
  Lowered l = lower(GROUP_NORM("4, 6, 70", "4, 3", "3"), &usual, false);
  const Schedule *s = only_schedule(&l);
  const Kernel *k = s->kernel;
  const Loop *loops[8] = {NULL};
  assert_int_equal(main_loops(s, loops), 1);
  const Loop *loop = &s->loops[0];
  assert_ptr_equal(loop, loops[0]);
  assert_true(loop_has_nested_sums(k, loop));
  assert_int_equal(loop->nbatch, 1);
  assert_int_equal(k->axes[loop->axes[0]].extent, 3); // groups, which are not reduced
  assert_int_equal(k->axes[loop->axes[1]].extent, 4);
  assert_int_equal(k->axes[loop->axes[2]].extent, 2); // a group's channels
  assert_int_equal(k->axes[loop->axes[3]].extent, 70);
  assert_int_equal(loop->nsweeps, 2);
  assert_int_equal(count_roots(loop, ROOT_REDUCE_INNER, 0), 4); // a plane's two and a group's two
  assert_int_equal(count_roots(loop, ROOT_REDUCE_OUTER, 0), 2);
  assert_int_equal(count_roots(loop, ROOT_STORE, 1), 1);
  for (size_t r = 0; r < loop->nroots; r++) // a block's partial sum is one number for each channel of the group
    if (loop->roots[r].kind == ROOT_REDUCE_OUTER)
      assert_int_equal(axes_nelems(k, access_axes(k, &k->accesses[loop->roots[r].access])), 2);
  lowered_deinit(&l);
}

// Without a batch to sum over, a plane's sums are the parameters' gradients.
static void group_norm_gradient_of_one_image_stores_sums_of_planes(void **state) {
  (void)state;
  Lowered l = lower(GROUP_NORM("1, 8, 70", "1, 4", "4"), &usual, false);
  const Schedule *s = only_schedule(&l);
  assert_int_equal(s->nloops, 1);
  assert_true(loop_has_nested_sums(s->kernel, &s->loops[0]));
  assert_int_equal(count_roots(&s->loops[0], ROOT_STORE, 0), 2);
  assert_int_equal(count_roots(&s->loops[0], ROOT_STORE, 1), 1);
  lowered_deinit(&l);
}

static const char group_norm_neighbours[] =
    "format: ngrad/1\nname: test\n"
    "inputs: [{name: h, type: f32, shape: [4, 6, 70]}, {name: d, type: f32, shape: [4, 6, 70]},\n"
    "         {name: x, type: f32, shape: [4, 6, 70]}, {name: skip, type: f32, shape: [4, 6, 70]},\n"
    "         {name: m, type: f32, shape: [4, 3]}, {name: v, type: f32, shape: [4, 3]}, {name: g, type: f32}]\n"
    "nodes: [{op: HardSwishBackward, inputs: [h, d], outputs: [dy]},\n"
    "        {op: GroupNormBackward, inputs: [x, dy, m, v, g], outputs: [dx, dg, db], attributes: {data_format: NCX, "
    "groups: 3}},\n"
    "        {op: Add, inputs: [dx, skip], outputs: [sum]}]\n"
    "outputs: [sum, dg, db]\n";

static void neighbours_join_their_group_norms_kernel(void **state) {
  (void)state;
  Lowered l = lower(group_norm_neighbours, &usual, false);
  assert_int_equal(only_schedule(&l)->kernel->nnodes, 3);
  assert_true(loop_has_nested_sums(only_schedule(&l)->kernel, &only_schedule(&l)->loops[0]));
  lowered_deinit(&l);
}

static const char neighbours[] = "format: ngrad/1\nname: test\n"
                                 "inputs: [{name: y, type: f32, shape: [4, 16, 9]}, {name: d, type: f32, shape: [4, "
                                 "16, 9]}, {name: x, type: f32, shape: [4, 16, 9]},\n"
                                 "         {name: m, type: f32, shape: [16]}, {name: v, type: f32, shape: [16]}, "
                                 "{name: g, type: f32, shape: [16]}]\n"
                                 "nodes: [{op: ReLUBackward, inputs: [y, d], outputs: [dy]},\n"
                                 "        {op: BatchNormTrainingBackward, inputs: [x, dy, m, v, g], outputs: [dx, dg, "
                                 "db], attributes: {epsilon: 1e-5, data_format: NCX}},\n"
                                 "        {op: Add, inputs: [dx, x], outputs: [sum]}]\n"
                                 "outputs: [sum, dg, db]\n";

static void neighbours_join_their_norms_kernel(void **state) {
  (void)state;
  Lowered l = lower(neighbours, &usual, false);
  assert_int_equal(only_schedule(&l)->nloops, 1);
  assert_int_equal(only_schedule(&l)->kernel->nnodes, 3);
  assert_int_equal(l.program->workspace_nbytes, 0);
  lowered_deinit(&l);
  l = lower(neighbours, &usual, true);
  assert_int_equal(l.program->nkernels, 3);
  assert_true(l.program->unshared_nbytes >= 2 * sizeof(float[4][16][9]));                                 // dy and dx
  assert_in_range(l.program->workspace_nbytes, sizeof(float[4][16][9]), 2 * sizeof(float[4][16][9]) - 1); // in place
  lowered_deinit(&l);
}

static const char *gated_text(const char *shape, const char *channels, const char *format) {
  static char text[1024];
  snprintf(text, sizeof text,
           "format: ngrad/1\nname: test\ninputs:\n"
           "  - {name: gate, type: f32, shape: [%s]}\n  - {name: d, type: f32, shape: [%s]}\n"
           "  - {name: x, type: f32, shape: [%s]}\n  - {name: m, type: f32, shape: [%s]}\n"
           "  - {name: v, type: f32, shape: [%s]}\n  - {name: g, type: f32, shape: [%s]}\n"
           "nodes:\n  - {op: ReLUBackward, inputs: [gate, d], outputs: [dy]}\n"
           "  - {op: BatchNormTrainingBackward, inputs: [x, dy, m, v, g], outputs: [dx, dg, db],\n"
           "     attributes: {epsilon: 1e-5, data_format: %s}}\noutputs: [dx, dg, db]\n",
           shape, shape, shape, channels, channels, channels, format);
  return text;
}

// Sweeps that read the gate, which only its sign matters of.
static int count_looks_at_gate(const Schedule *s) {
  const Kernel *k = s->kernel;
  bool *is_seen = calloc(k->nexprs, sizeof *is_seen), *is_loaded = calloc(k->naccesses, sizeof *is_loaded);
  int count = 0;
  for (size_t i = 0; i < s->nloops; i++)
    for (int sweep = 0; sweep < s->loops[i].nsweeps; sweep++) {
      mark_sweep_loads(k, &s->loops[i], sweep, 0, is_seen, is_loaded);
      for (AccessId id = 0; id < k->naccesses; id++)
        count += is_loaded[id] && k->accesses[id].value && strcmp(k->accesses[id].value->name, "gate") == 0;
    }
  free(is_seen);
  free(is_loaded);
  return count;
}

// A mask is saved as bits if the second sweep would read its tensor from memory again, and not if it is in a cache.
static void gate_is_read_once_where_the_caches_do_not_hold_it(void **state) {
  (void)state;
  static const struct {
    const char *shape, *format;
    int looks;
    size_t own_nbytes, shared_nbytes; // of the mask: a step's, or in the workspace; a row of 100 or 112 takes 14 bytes
  } rows[] = {
      {"40, 16, 20, 100", "NCX", 1, (size_t)40 * 2000 / 8, 0},
      {"66, 16, 20, 100", "NCX", 1, 0, (size_t)16 * 66 * 2000 / 8}, // 16,500 bytes a channel
      {"4, 16, 10, 100", "NCX", 2, 0, 0},
      {"40, 20, 100, 112", "NXC", 1, 0, (size_t)40 * 20 * 100 * 14}, // two loops
      {"4, 10, 10, 112", "NXC", 2, 0, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bool is_ncx = strcmp(rows[i].format, "NCX") == 0;
    Lowered l = lower(gated_text(rows[i].shape, is_ncx ? "16" : "112", rows[i].format), &usual, false);
    const Schedule *s = only_schedule(&l);
    assert_int_equal(count_looks_at_gate(s), rows[i].looks);
    size_t own_nbytes = 0, shared_nbytes = 0;
    for (size_t t = 0; t < s->ntemporaries; t++) {
      if (s->temporaries[t].type != TYPE_BOOLEAN) continue;
      if (s->temporaries[t].is_own) own_nbytes += (size_t)s->temporaries[t].nelems;
      else shared_nbytes += (size_t)s->temporaries[t].nelems;
    }
    assert_int_equal(own_nbytes, rows[i].own_nbytes);
    assert_int_equal(shared_nbytes, rows[i].shared_nbytes);
    assert_true(is_ncx ? l.program->workspace_nbytes == shared_nbytes : l.program->workspace_nbytes >= shared_nbytes);
    lowered_deinit(&l);
  }
}

// Half of the L2 cache holds two outer iterations of two tensors; of three tensors, as much as two iterations of four
// tensors. Longer iterations are prefetched along their planes, if these are long enough.
static void sweeps_fetch_what_the_caches_have_room_for(void **state) {
  (void)state;
  static const struct {
    const char *shape;
    bool is_gated; // three tensors in place of two
    int prefetch, ahead;
  } rows[] = {
      {"16, 8, 2000", false, 1, 0},    // 4 * 128,000 bytes of 524,288
      {"17, 8, 2000", false, 0, 1024}, // 4 * 136,000
      {"8, 9, 2000", true, 1, 0},      // 2 * 4 * 64,000
      {"9, 9, 2000", true, 0, 1024},   // 2 * 4 * 72,000
      {"17, 9, 1025", true, 0, 1024},  {"40, 8, 1024", false, 0, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *text = rows[i].is_gated ? gated_text(rows[i].shape, "9", "NCX") : BATCH_NORM(rows[i].shape, "8", "NCX");
    Lowered l = lower(text, &usual, false);
    const Schedule *s = only_schedule(&l);
    assert_int_equal(s->loops[0].prefetch, rows[i].prefetch);
    assert_int_equal(s->loops[0].ahead, rows[i].ahead);
    lowered_deinit(&l);
  }
}

// Lines that several stores fill by parts at the same time are slow to write; whole ones are not.
static void stores_within_cache_lines_have_sweeps_of_their_own(void **state) {
  (void)state;
  static const struct {
    const char *shape;
    int nsweeps;
  } rows[] = {
      {"32, 256, 14, 14", 3},  // rows of 784 bytes
      {"32, 256, 16, 16", 2},  // of 1024
      {"400, 256, 14, 14", 2}, // 627,200 bytes a channel, which would be read from memory again
      {"32, 256, 2, 2", 2},    // rows go together
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n"
             "  - {name: x, type: f32, shape: [%s]}\n  - {name: dy, type: f32, shape: [%s]}\n"
             "  - {name: c, type: f32, shape: [256]}\n"
             "nodes:\n  - {op: BatchNormTrainingBackward, inputs: [x, dy, c, c, c], outputs: [dx, dg, db],\n"
             "     attributes: {epsilon: 1e-5, data_format: NCX}}\n"
             "  - {op: Add, inputs: [dx, x], outputs: [sum]}\noutputs: [dx, sum, dg, db]\n",
             rows[i].shape, rows[i].shape);
    Lowered l = lower(text, &usual, false);
    const Schedule *s = only_schedule(&l);
    assert_int_equal(s->loops[0].nsweeps, rows[i].nsweeps);
    lowered_deinit(&l);
  }
}

// Sums that no single loop can compute: over one of two outer axes each.
static void region_that_no_schedule_carries_is_not_begun(void **state) {
  (void)state;
  Lowered l = lower("format: ngrad/1\nname: test\ninputs: [{name: x, type: f32, shape: [20, 30, 40]}]\n"
                    "nodes: [{op: Exp, inputs: [x], outputs: [e]},\n"
                    "        {op: ReduceSum, inputs: [e], outputs: [a], attributes: {axes: [0]}},\n"
                    "        {op: ReduceSum, inputs: [e], outputs: [b], attributes: {axes: [1]}}]\noutputs: [a, b]\n",
                    &usual, false);
  assert_int_equal(l.program->nkernels, 2);
  lowered_deinit(&l);
}

// A maximum over some of the axes that a sum reduces splits them, and so the sum's runs.
static void maximum_beside_a_sum_leaves_its_order(void **state) {
  (void)state;
  Lowered l = lower("format: ngrad/1\nname: test\ninputs: [{name: x, type: f32, shape: [3, 37, 64]}]\n"
                    "nodes: [{op: Exp, inputs: [x], outputs: [y]},\n"
                    "        {op: ReduceSum, inputs: [y], outputs: [all], attributes: {axes: [0, 1, 2]}},\n"
                    "        {op: ReduceMax, inputs: [y], outputs: [m], attributes: {axes: [1, 2], keep_dims: true}},\n"
                    "        {op: Multiply, inputs: [y, m], outputs: [z]}]\noutputs: [all, m, z]\n",
                    &usual, false);
  int64_t most = 0; // operands of a first level of a sum
  for (size_t i = 0; i < l.program->nkernels; i++) {
    const Schedule *s = l.program->schedules[i];
    for (size_t n = 0; n < s->nloops; n++)
      for (size_t r = 0; r < s->loops[n].nroots; r++) {
        const SumOrder *o = s->loops[n].roots[r].order;
        if (!o || o->reduction != EXPR_REDUCE_SUM) continue;
        const int64_t nelems = axes_nelems(s->kernel, o->levels[0].axes);
        if (nelems > most) most = nelems;
      }
  }
  assert_int_equal(most, 3 * 37 * 64);
  lowered_deinit(&l);
}

// One number everywhere varies over no axis, and the store over all.
static void gradient_of_a_number_everywhere_has_a_schedule(void **state) {
  (void)state;
  Lowered l = lower("format: ngrad/1\nname: test\ninputs: [{name: x, type: f32, shape: [3, 5, 2]}]\n"
                    "constants: [{name: dy, type: f32, shape: [3, 10, 2], value: 0.5}]\n"
                    "nodes: [{op: InterpolateBackward, inputs: [x, dy], outputs: [dx],\n"
                    "         attributes: {mode: linear, sizes: [10], data_format: NXC}}]\noutputs: [dx]\n",
                    &usual, false);
  assert_int_equal(l.program->nkernels, 1);
  lowered_deinit(&l);
}

// Properties of every schedule

static const char *const shapes_of_all_kinds[][4] = {
    // operator, shape, statistics, attributes
    {"LayerNormBackward", "40, 50", "40", ""},
    {"LayerNormBackward", "3, 5000", "3", ""},
    {"LayerNormBackward", "5000, 3", "5000", ""},
    {"LayerNormBackward", "700, 4096", "700", ""},
    {"LayerNormBackward", "1, 7", "1", ""},
    {"LayerNormBackward", "0, 7", "0", ""},
    {"LayerNormBackward", "7, 0", "7", ""},
    {"LayerNormBackward", "300000", "", "begin_norm_axis: 0"},
    {"LayerNormBackward", "2, 3, 4, 100", "2, 3", "begin_norm_axis: 2"},
    {"BatchNormTrainingBackward", "32, 64, 28, 28", "64", "epsilon: 1e-5, data_format: NCX"},
    {"BatchNormTrainingBackward", "300, 17, 7, 7", "17", "epsilon: 1e-5, data_format: NCX"},
    {"BatchNormTrainingBackward", "2, 2, 300, 300", "2", "epsilon: 1e-5, data_format: NCX"},
    {"BatchNormTrainingBackward", "32, 28, 28, 64", "64", "epsilon: 1e-5"},
    {"BatchNormTrainingBackward", "100000, 1", "1", "epsilon: 1e-5"},
    {"BatchNormTrainingBackward", "100000, 3", "3", "epsilon: 1e-5"},
    {"BatchNormTrainingBackward", "0, 3", "3", "epsilon: 1e-5"},
    {"BatchNormInferenceBackward", "32, 28, 28, 64", "64", "epsilon: 1e-5"},
    {"BatchNormInferenceBackward", "32, 64, 28, 28", "64", "epsilon: 1e-5, data_format: NCX"},
    {"GroupNormBackward", "32, 256, 56, 56", "32, 32", "data_format: NCX, groups: 32"},
    {"GroupNormBackward", "1, 6, 300", "1, 3", "data_format: NCX, groups: 3"},
    {"InstanceNormBackward", "8, 16, 64, 64", "8, 16", "data_format: NCX"},
    {"directml.BATCH_NORMALIZATION_TRAINING_GRAD", "4, 300, 5, 17", "4, 1, 1, 17", "Epsilon: 1e-5"},
    {"directml.BATCH_NORMALIZATION_TRAINING_GRAD", "4, 300, 5, 17", "1, 300, 5, 1", "Epsilon: 1e-5"},
    {"directml.BATCH_NORMALIZATION_TRAINING_GRAD", "4, 300, 5, 17", "4, 300, 5, 17", "Epsilon: 1e-5"},
};
enum { NSHAPES = sizeof shapes_of_all_kinds / sizeof *shapes_of_all_kinds };

static Lowered lower_shape(int i, const Target *target) {
  const char *const *s = shapes_of_all_kinds[i];
  return lower(norm_text(s[0], s[1], s[2], s[3]), target, false);
}

// All that decides in which order numbers are added up.
static void must_add_up_alike(const Schedule *a, const Schedule *b) {
  assert_int_equal(a->nloops, b->nloops);
  assert_int_equal(a->kernel->nexprs, b->kernel->nexprs);
  for (size_t i = 0; i < a->nloops; i++) {
    const Loop *x = &a->loops[i], *y = &b->loops[i];
    assert_memory_equal(x->axes, y->axes, sizeof x->axes);
    assert_int_equal(x->nouter, y->nouter);
    assert_int_equal(x->ninner, y->ninner);
    assert_int_equal(x->nbatch, y->nbatch);
    assert_int_equal(x->nsweeps, y->nsweeps);
    assert_int_equal(x->nroots, y->nroots);
    for (size_t r = 0; r < x->nroots; r++) {
      assert_int_equal(x->roots[r].kind, y->roots[r].kind);
      assert_int_equal(x->roots[r].sweep, y->roots[r].sweep);
      assert_int_equal(x->roots[r].expr, y->roots[r].expr);
      if (x->roots[r].order) assert_true(sum_order_equal(x->roots[r].order, y->roots[r].order));
    }
  }
}

static void target_does_not_decide_the_order_of_additions(void **state) {
  (void)state;
  const Target others[] = {
      {.isa = "scalar",
       .vector_registers = 4,
       .l1_nbytes = 16 << 10,
       .l2_nbytes = 64 << 10,
       .llc_nbytes = 64 << 10,
       .threads = 1},
      {.isa = "avx512",
       .vector_registers = 32,
       .l1_nbytes = 64 << 10,
       .l2_nbytes = 8 << 20,
       .llc_nbytes = 1 << 30,
       .threads = 128},
  };
  for (int i = 0; i < NSHAPES; i++) {
    Lowered l = lower_shape(i, &usual);
    for (int t = 0; t < 2; t++) {
      Lowered other = lower_shape(i, &others[t]);
      must_add_up_alike(only_schedule(&l), only_schedule(&other));
      lowered_deinit(&other);
    }
    lowered_deinit(&l);
  }
}

// Each lane adds up to a block's iterations into an array of partial sums.
static void blocks_keep_chains_of_additions_short(void **state) {
  (void)state;
  for (int i = 0; i < NSHAPES; i++) {
    Lowered l = lower_shape(i, &usual);
    const Schedule *s = only_schedule(&l);
    const Kernel *k = s->kernel;
    for (size_t n = 0; n < s->nloops; n++) {
      const Loop *loop = &s->loops[n];
      for (size_t r = 0; r < loop->nroots; r++)
        if (loop->roots[r].kind == ROOT_REDUCE_OUTER && access_axes(k, &k->accesses[loop->roots[r].access]))
          assert_in_range(loop->cut.length, 1, LONGEST_CHAIN);
    }
    lowered_deinit(&l);
  }
}

static void every_block_has_room_for_its_partial_sums(void **state) {
  (void)state;
  for (int i = 0; i < NSHAPES; i++) {
    Lowered l = lower_shape(i, &usual);
    const Schedule *s = only_schedule(&l);
    const Kernel *k = s->kernel;
    for (size_t n = 0; n < s->nloops; n++) {
      for (size_t r = 0; r < s->loops[n].nroots; r++) {
        const Root *root = &s->loops[n].roots[r];
        const Access *a = &k->accesses[root->access];
        if (root->kind == ROOT_REDUCE_INNER || a->value) continue;
        int64_t wanted =
            axes_nelems(k, access_axes(k, a)) * (root->kind == ROOT_STORE ? 1 : loop_nblocks(k, &s->loops[n]));
        assert_int_equal(s->temporaries[a->temporary].nelems, wanted);
      }
    }
    size_t end = 0;
    for (size_t t = 0; t < s->ntemporaries; t++) {
      assert_true(s->temporaries[t].offset >= end && s->temporaries[t].offset % 64 == 0);
      end = s->temporaries[t].offset + (size_t)s->temporaries[t].nelems * type_nbytes(s->temporaries[t].type);
    }
    assert_true(l.program->workspace_nbytes >= end);
    lowered_deinit(&l);
  }
}

// An expression that a root of a sweep needs has been computed: row sums of the same loop in an earlier sweep; nested
// sums over the vector axis in the same sweep; partial sums in an earlier loop.
static void must_be_known(const Schedule *s, size_t loop_index, ExprId id, int sweep) {
  const Kernel *k = s->kernel;
  const Expr *e = &k->exprs[id];
  if (e->op == EXPR_COMBINE) assert_true(e->loop < loop_index);
  if (expr_is_reduction(e)) {
    const Loop *loop = &s->loops[loop_index];
    bool is_found = false;
    const int vector_axis = loop->axes[loop->nouter + loop->ninner - 1];
    const bool is_early = loop->ninner > 1 && e->reduced == 1U << vector_axis;
    for (size_t r = 0; r < loop->nroots; r++)
      is_found |= loop->roots[r].kind == ROOT_REDUCE_INNER && loop->roots[r].expr == id &&
                  (is_early ? loop->roots[r].sweep == sweep : loop->roots[r].sweep < sweep);
    assert_true(is_found);
    return;
  }
  for (int a = 0; a < 3; a++)
    if (e->args[a]) must_be_known(s, loop_index, e->args[a], sweep);
}

static void sums_are_known_before_they_are_used(void **state) {
  (void)state;
  for (int i = 0; i < NSHAPES; i++) {
    Lowered l = lower_shape(i, &usual);
    const Schedule *s = only_schedule(&l);
    const Kernel *k = s->kernel;
    for (size_t n = 0; n < s->nloops; n++) {
      for (size_t r = 0; r < s->loops[n].nroots; r++) {
        const Root *root = &s->loops[n].roots[r];
        // An expression that varies over outer axes only is computed after its sweep.
        bool follows = root->kind != ROOT_REDUCE_INNER && !(root_axes(k, root) & loop_inner_axes(&s->loops[n]));
        ExprId id = root->kind == ROOT_REDUCE_INNER ? k->exprs[root->expr].args[0] : root->expr;
        must_be_known(s, n, id, root->sweep + follows);
      }
    }
    lowered_deinit(&l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layer_norm_gradient_visits_rows_once),
      cmocka_unit_test(layer_norm_gradient_without_parameters_is_one_loop),
      cmocka_unit_test(masks_made_of_indices_compute_in_f32),
      cmocka_unit_test(layer_norm_of_one_row_is_cut_into_tiles),
      cmocka_unit_test(batch_norm_gradient_ncx_finishes_a_channel_at_a_time),
      cmocka_unit_test(batch_norm_gradient_of_few_channels_has_tiles),
      cmocka_unit_test(batch_norm_gradient_nxc_takes_two_loops),
      cmocka_unit_test(gradient_with_frozen_statistics_is_one_look_at_the_data),
      cmocka_unit_test(layer_norm_sweeps_a_row_three_times),
      cmocka_unit_test(softmax_of_columns_is_one_loop),
      cmocka_unit_test(softmax_keeps_the_powers_of_short_rows),
      cmocka_unit_test(long_rows_are_peeled_to_cache_lines),
      cmocka_unit_test(rows_beside_sums_are_peeled),
      cmocka_unit_test(short_planes_of_neighbours_are_in_one_step),
      cmocka_unit_test(one_image_is_normalised_as_many_are),
      cmocka_unit_test(elementwise_operators_are_one_loop_of_tiles),
      cmocka_unit_test(group_norm_gradient_nests_sums_over_planes),
      cmocka_unit_test(group_norm_gradient_of_one_image_stores_sums_of_planes),
      cmocka_unit_test(neighbours_join_their_norms_kernel),
      cmocka_unit_test(neighbours_join_their_group_norms_kernel),
      cmocka_unit_test(sweeps_fetch_what_the_caches_have_room_for),
      cmocka_unit_test(stores_within_cache_lines_have_sweeps_of_their_own),
      cmocka_unit_test(region_that_no_schedule_carries_is_not_begun),
      cmocka_unit_test(maximum_beside_a_sum_leaves_its_order),
      cmocka_unit_test(gradient_of_a_number_everywhere_has_a_schedule),
      cmocka_unit_test(gate_is_read_once_where_the_caches_do_not_hold_it),
      cmocka_unit_test(target_does_not_decide_the_order_of_additions),
      cmocka_unit_test(blocks_keep_chains_of_additions_short),
      cmocka_unit_test(every_block_has_room_for_its_partial_sums),
      cmocka_unit_test(sums_are_known_before_they_are_used),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
