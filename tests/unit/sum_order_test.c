// The orders of sums, as levels: what is compared, and levels worked out by hand.
#include "tests/unit/schedule_case.h"

#include <stdio.h>

static const char batch_norm[] =
    "format: ngrad/1\nname: test\ninputs:\n"
    "  - {name: x, type: f32, shape: [40, 60, 70]}\n  - {name: dy, type: f32, shape: [40, 60, 70]}\n"
    "  - {name: mean, type: f32, shape: [70]}\n  - {name: variance, type: f32, shape: [70]}\n"
    "  - {name: gamma, type: f32}\nnodes:\n  - op: BatchNormTrainingBackward\n"
    "    inputs: [x, dy, mean, variance, gamma]\n    outputs: [dx, dgamma, dbeta]\n"
    "    attributes: {epsilon: 1e-5, data_format: NXC}\noutputs: [dx, dgamma, dbeta]\n";

// Whether the loops take all sums in their orders.
static bool are_orders_implied(const Schedule *s) {
  bool are_implied = true;
  for (size_t l = 0; l < s->nloops; l++)
    for (size_t i = 0; i < s->loops[l].nroots; i++) {
      const Root *root = &s->loops[l].roots[i];
      if (!root->order) continue;
      SumOrder implied = loop_sum_order(s, &s->loops[l], root, root->order->levels[0].cut.length == 1);
      implied.is_fused = root->order->is_fused;
      are_implied &= sum_order_equal(root->order, &implied);
    }
  return are_implied;
}

// Whatever of a loop fixes the order of additions is compared; what a target chooses is not.
static void orders_of_additions_are_compared(void **state) {
  (void)state;
  Lowered l = lower(batch_norm, &usual, false);
  Schedule *s = l.program->schedules[0];
  size_t sum = 0;
  while (sum < s->nloops && !loop_has_roots(&s->loops[sum], ROOT_REDUCE_OUTER)) sum++;
  assert_true(sum + 1 < s->nloops);
  Loop *summing = &s->loops[sum], *storing = &s->loops[s->nloops - 1];
  Access *partial = NULL;
  for (size_t i = 0; i < summing->nroots; i++)
    if (summing->roots[i].kind == ROOT_REDUCE_OUTER) partial = &s->kernel->accesses[summing->roots[i].access];
  const Loop before = *summing;
  summing->rows++, summing->prefetch++, summing->is_serial ^= true, summing->vectors++, summing->is_backwards ^= true;
  storing->cut.length++;
  assert_true(are_orders_implied(s));
  Loop other[6];
  for (size_t i = 0; i < 6; i++) other[i] = before;
  other[0].axes[before.nbatch]++, other[1].nouter--, other[1].ninner++, other[2].nbatch++, other[3].cut.length++,
      other[4].cut.most++;
  other[5].cut.longest++;
  for (size_t i = 0; i < 6; i++) {
    *summing = other[i];
    if (are_orders_implied(s)) fail_msg("change %zu of the loop is not seen", i);
  }
  *summing = before;
  partial->type = partial->type == TYPE_F32 ? TYPE_F64 : TYPE_F32;
  assert_false(are_orders_implied(s));
  lowered_deinit(&l);
}

// Graphs, and the orders of their sums in the words of sum_order_print, each once.
typedef struct Case {
  const char *inputs, *nodes, *outputs, *orders;
} Case;

static const Case cases[] = {
    // Rows of 2000 elements have 125 additions in each lane, so they are cut into runs of 64. A block has a 64th of
    // the rows.
    {"  - {name: x, type: f32, shape: [4096, 2000]}\n  - {name: dy, type: f32, shape: [4096, 2000]}\n"
     "  - {name: m, type: f32, shape: [4096]}\n  - {name: v, type: f32, shape: [4096]}\n"
     "  - {name: g, type: f32, shape: [2000]}\n",
     "  - {op: LayerNormBackward, inputs: [x, dy, m, v, g, ~], outputs: [dx, dg, db]}\n", "dx, dg, db",
     "over d0 into 1 accumulator of f32, each for 64 operands; then into 1 of f64\n"
     "over d1 into 16 accumulators of f32, each for 64 operands; then into 1 of f32; then into 1 of f64\n"},
    // A product of 2047 terms is one chain.
    {"  - {name: x, type: f32, shape: [60, 2047]}\n  - {name: w, type: f32, shape: [2047, 80]}\n",
     "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n", "y", "over d2 into 1 accumulator of f32\n"},
    // Of 5000 terms: five chains, which are added in f64.
    {"  - {name: x, type: f32, shape: [700, 5000]}\n  - {name: w, type: f32, shape: [5000, 800]}\n",
     "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n", "y",
     "over d2 into 1 accumulator of f32, each for 1000 operands; then into 1 of f64\n"},
    // The same for fewer results, where each chain is a product of its own.
    {"  - {name: x, type: f32, shape: [60, 5000]}\n  - {name: w, type: f32, shape: [5000, 80]}\n",
     "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n", "y",
     "over d2 into 1 accumulator of f32\n"
     "over d2_block into 1 accumulator of f32, each for 1 operands; then into 1 of f64\n"},
    // A short row has its lanes combined in f32; a block that adds rows to a number has a 64th of them, rounded up to a
    // multiple of 16.
    {"  - {name: x, type: f32, shape: [30000, 9]}\n  - {name: l, type: s32, shape: [30000]}\n",
     "  - {op: SoftmaxCrossEntropy, inputs: [x, l], outputs: [y], attributes: {reduction: sum}}\n", "y",
     "over d1 into 16 accumulators of f32; then into 1 of f32\n"
     "over d0 into 1 accumulator of f64, each for 480 operands; then into 1 of f64\n"},
};

static void sums_have_levels(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[1024];
    snprintf(text, sizeof text, "format: ngrad/1\nname: test\ninputs:\n%snodes:\n%soutputs: [%s]\n", cases[i].inputs,
             cases[i].nodes, cases[i].outputs);
    Lowered l = lower(text, &usual, false);
    const Schedule *s = only_schedule(&l);
    Text all, one;
    text_init(&all, &system_allocator);
    for (size_t o = 0; o < s->nloops; o++)
      for (size_t r = 0; r < s->loops[o].nroots; r++) {
        if (!s->loops[o].roots[r].order) continue;
        text_init(&one, &system_allocator);
        sum_order_print(s->kernel, s->loops[o].roots[r].order, &one);
        if (!strstr(text_string(&all), text_string(&one))) text_format(&all, "%s\n", text_string(&one));
        text_deinit(&one);
      }
    assert_string_equal(text_string(&all), cases[i].orders);
    text_deinit(&all);
    lowered_deinit(&l);
  }
}

// All sums of the graph with a batch of n, as the numbers of accumulators and types of their levels.
static void print_levels(const char *graph, int n, Text *out) {
  char text[1024];
  snprintf(text, sizeof text, "format: ngrad/1\nname: test\ndims: {N: %d}\ninputs:\n%s", n, graph);
  Lowered l = lower(text, &usual, false);
  for (size_t i = 0; i < l.program->nkernels; i++)
    for (size_t o = 0; o < l.program->schedules[i]->nloops; o++)
      for (size_t r = 0; r < l.program->schedules[i]->loops[o].nroots; r++) {
        const SumOrder *order = l.program->schedules[i]->loops[o].roots[r].order;
        for (int level = 0; order && level < order->nlevels; level++)
          text_format(out, "%d %s, ", order->levels[level].accumulators, type_name(order->levels[level].type));
      }
  lowered_deinit(&l);
}

static void must_have_levels_of(const char *graph, int n, int other) {
  Text levels, expected;
  text_init(&levels, &system_allocator);
  text_init(&expected, &system_allocator);
  print_levels(graph, n, &levels);
  print_levels(graph, other, &expected);
  assert_string_equal(text_string(&levels), text_string(&expected));
  text_deinit(&levels);
  text_deinit(&expected);
}

// Vectors along a long batch suit products with few columns, but sums must not become others by that.
static void no_batch_decides_an_order(void **state) {
  static const char *const graphs[] = {
      "  - {name: x, type: f32, shape: [N, 5, 5, 8]}\n  - {name: w, type: f32, shape: [8, 2, 3, 3]}\nnodes:\n"
      "  - {op: Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [1, 1], pads_begin: [1, 1], "
      "pads_end: [1, 1], dilations: [1, 1], groups: 4, weights_format: OIX}}\noutputs: [y]\n",
      "  - {name: x, type: f32, shape: [N, 20]}\n  - {name: w, type: f32, shape: [20, 10]}\nnodes:\n"
      "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n"
      "  - {op: ReduceSum, inputs: [y], outputs: [z], attributes: {axes: [1]}}\noutputs: [z]\n",
      "  - {name: x, type: f32, shape: [N, 20]}\n  - {name: w, type: f32, shape: [20, 10]}\nnodes:\n"
      "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n"
      "  - {op: ReduceSum, inputs: [y], outputs: [z], attributes: {axes: [0]}}\noutputs: [z]\n",
      "  - {name: x, type: f32, shape: [6, N]}\n  - {name: w, type: f32, shape: [40, 6]}\nnodes:\n"
      "  - {op: MatMul, inputs: [w, x], outputs: [y]}\n"
      "  - {op: ReduceSum, inputs: [y], outputs: [z], attributes: {axes: [1]}}\noutputs: [z]\n",
  };
  static const int batches[] = {5, 17, 33, 64};
  (void)state;
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
    for (size_t n = 0; n < sizeof batches / sizeof *batches; n++) must_have_levels_of(graphs[i], batches[n], 2);
}

// A transposed convolution to one channel of one image: loops have no axis outside of the vectors of results.
static void one_image_is_added_up_as_many_are(void **state) {
  (void)state;
  must_have_levels_of(
      "  - {name: x, type: f32, shape: [N, 4, 25]}\n  - {name: w, type: f32, shape: [4, 1, 9]}\nnodes:\n"
      "  - {op: ConvTranspose, inputs: [x, w], outputs: [y], attributes: {strides: [2], pads_begin: [4], "
      "pads_end: [4], dilations: [1], data_format: NCX, weights_format: IOX}}\noutputs: [y]\n",
      1, 2);
}

// A sum of all elements is one row, however they are made: rows that a softmax adds up would be added one by one.
static void sums_have_the_orders_that_they_have_alone(void **state) {
  (void)state;
  Lowered l = lower("format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [300, 9]}\nnodes:\n"
                    "  - {op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}\n"
                    "  - {op: Multiply, inputs: [y, x], outputs: [p]}\n"
                    "  - {op: ReduceSum, inputs: [p], outputs: [s], attributes: {axes: [0, 1]}}\noutputs: [y, s]\n",
                    &usual, false);
  assert_int_equal(l.program->nkernels, 2);
  assert_int_equal(l.program->schedules[1]->kernel->naxes, 1);
  lowered_deinit(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(orders_of_additions_are_compared), cmocka_unit_test(sums_have_levels),
      cmocka_unit_test(sums_have_the_orders_that_they_have_alone), cmocka_unit_test(no_batch_decides_an_order),
      cmocka_unit_test(one_image_is_added_up_as_many_are)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
