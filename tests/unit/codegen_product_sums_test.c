// Compiled products and convolutions with sums over the rows of their results, against the interpreter (ladder.h).
#include "tests/unit/graph_cases.h"
#include "tests/unit/ladder.h"

// Batch norm's mean is the first sum over the results; the moments about it are over results that are loaded again,
// from a result of the graph where one has them.
static void statistics_of_convolutions(void **state) {
  (void)state;
  static const char *const places[] = {
      "strides: [1, 1], pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1]",
      "strides: [2, 1], pads_begin: [0, 2], pads_end: [1, 0], dilations: [1, 2]",
      "strides: [1, 1], pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1], groups: 2",
  };
  GraphText g;
  graph_text_init(&g);
  for (int p = 0; p < 3; p++)
    for (int is_result = 0; is_result < 2; is_result++)
      for (int is_ncx = 0; is_ncx < 2; is_ncx++) {
        const char *format = is_ncx ? "NCX" : "NXC";
        const Extents s = is_ncx ? EXTENTS(2, 6, 17, 23) : EXTENTS(2, 17, 23, 6);
        graph_text_case(&g, "batch norm of a convolution, %s, %s, %d", places[p], format, is_result);
        const char *y = is_result ? graph_text_result(&g, "y") : graph_text_name(&g, "y");
        graph_text_node(&g, "Convolution", "inputs: [%s, %s], outputs: [%s], attributes: {%s, data_format: %s}",
                        graph_text_input(&g, "x", "f32", s),
                        graph_text_input(&g, "w", "f32", EXTENTS(3, 3, p == 2 ? 3 : 6, 36)), y, places[p], format);
        const Channel c = channel_inputs(&g, EXTENTS(36), f32, WITH_BETA);
        graph_text_node(&g, "BatchNormForwardTraining",
                        "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s, %s, %s], attributes: {epsilon: 1e-5, "
                        "momentum: 0.1, data_format: %s}",
                        y, c.mean, c.variance, c.gamma, c.beta, graph_text_name(&g, "n"), graph_text_result(&g, "rm"),
                        graph_text_result(&g, "rv"), graph_text_result(&g, "m"), graph_text_result(&g, "v"), format);
        graph_text_node(&g, "ReLU", "inputs: [%s], outputs: [%s]", graph_text_name(&g, "n"),
                        graph_text_result(&g, "z"));
      }
  climb(&g, (Climb){.name = "statistics", .unfused_too = true, .unusual_too = true});
}

// Rows of results that are adjacent in memory up to the end of an image (13 * 3 and 3 * 7 rows), with vectors along
// channels, whose stride is a plane. The tensors that are added have the same layout.
static void results_in_planes(void **state) {
  (void)state;
  static const int places[][2] = {{13, 3}, {3, 7}, {4, 4}, {1, 29}, {31, 1}};
  GraphText g;
  graph_text_init(&g);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    for (int channels = 32; channels <= 45; channels += 13) {
      const Extents s = EXTENTS(5, channels, places[i][0], places[i][1]);
      graph_text_case(&g, "%d planes of %d x %d", channels, places[i][0], places[i][1]);
      graph_text_node(&g, "Convolution",
                      "inputs: [%s, %s], outputs: [%s], attributes: {strides: [1, 1], pads_begin: [1, 1], pads_end: "
                      "[1, 1], dilations: [1, 1], data_format: NCX, weights_format: OIX}",
                      graph_text_input(&g, "x", "f32", EXTENTS(5, 4, places[i][0], places[i][1])),
                      graph_text_input(&g, "w", "f32", EXTENTS(channels, 4, 3, 3)), graph_text_name(&g, "c"));
      graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_name(&g, "c"),
                      graph_text_input(&g, "r", "f32", s), graph_text_name(&g, "a"));
      graph_text_node(&g, "ReLU", "inputs: [%s], outputs: [%s]", graph_text_name(&g, "a"), graph_text_result(&g, "z"));
    }
  climb(&g, (Climb){.name = "planes", .unfused_too = true, .unusual_too = true});
}

// The gradient of a batch norm, whose incoming gradient a convolution's gradient computes.
static void gradients_of_norms_behind_convolutions(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int step = 1; step <= 2; step++) { // with 2, the gradient has a kernel for each residue
    const Extents s = EXTENTS(3, 12, 10, 40), small = EXTENTS(3, 12 / step, 10 / step, 20);
    graph_text_case(&g, "gradients, strides of %d", step);
    graph_text_node(&g, "ConvolutionBackwardData",
                    "inputs: [%s, %s], outputs: [%s], attributes: {strides: [%d, %d], pads_begin: [1, 1], pads_end: "
                    "[1, 1], dilations: [1, 1], dst_shape: [3, 12, 10, 40]}",
                    graph_text_input(&g, "dy", "f32", small), graph_text_input(&g, "w", "f32", EXTENTS(3, 3, 40, 20)),
                    graph_text_name(&g, "dr"), step, step);
    graph_text_node(&g, "ReLUBackward", "inputs: [%s, %s], outputs: [%s], attributes: {use_dst: false}",
                    graph_text_input(&g, "r", "f32", s), graph_text_name(&g, "dr"), graph_text_name(&g, "dn"));
    const Channel c = channel_inputs(&g, EXTENTS(40), f32, 0);
    graph_text_node(&g, "BatchNormTrainingBackward",
                    "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s], attributes: {epsilon: 1e-5, data_format: "
                    "NXC}",
                    graph_text_input(&g, "x", "f32", s), graph_text_name(&g, "dn"), c.mean, c.variance, c.gamma,
                    graph_text_result(&g, "dx"), graph_text_result(&g, "dgamma"), graph_text_result(&g, "dbeta"));
  }
  climb(&g, (Climb){.name = "gradients", .unfused_too = true});
}

// Vectors along the places of a window, behind which a smaller group remains: of all places, of a residue, of dilated
// taps, of channels in groups, of fewer places than a vector has lanes; and the sum of no channels.
static void gradients_of_few_channels(void **state) {
  (void)state;
  static const struct {
    const char *places;
    int64_t channels, height, width, small, small_height, small_width, groups;
  } cases[] = {
      {"strides: [1, 1], pads_begin: [1, 2], pads_end: [1, 0], dilations: [1, 1]", 3, 5, 115, 20, 5, 115, 1},
      {"strides: [2, 2], pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1]", 2, 8, 101, 9, 4, 51, 1},
      {"strides: [1, 1], pads_begin: [2, 2], pads_end: [2, 2], dilations: [2, 2]", 3, 5, 33, 7, 5, 33, 1},
      {"strides: [1, 1], pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1]", 4, 5, 49, 6, 5, 49, 2},
      {"strides: [1, 1], pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1]", 3, 5, 7, 20, 5, 7, 1},
      {"strides: [1, 1], pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1]", 3, 5, 40, 0, 5, 40, 1},
  };
  GraphText g;
  graph_text_init(&g);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int is_f64 = 0; is_f64 < 2; is_f64++) {
      const char *type = is_f64 ? "f64" : "f32";
      const int64_t channels = cases[i].channels, groups = cases[i].groups;
      graph_text_case(&g, "gradient %d of %d channels, %s", (int)i, (int)channels, type);
      graph_text_node(
          &g, "ConvolutionBackwardData",
          "inputs: [%s, %s], outputs: [%s], attributes: {%s, data_format: NCX, weights_format: OIX, groups: %d, "
          "dst_shape: [2, %d, %d, %d]}",
          graph_text_input(&g, "dy", type, EXTENTS(2, cases[i].small, cases[i].small_height, cases[i].small_width)),
          graph_text_input(&g, "w", type, EXTENTS(cases[i].small, channels / groups, 3, 3)),
          graph_text_result(&g, "dx"), cases[i].places, (int)groups, (int)channels, (int)cases[i].height,
          (int)cases[i].width);
    }
  climb(&g, (Climb){.name = "few_channels"});
}

static void sum_over(GraphText *g, const char *op, const char *x, const char *axes) {
  graph_text_node(g, op, "inputs: [%s], outputs: [%s], attributes: {axes: %s, keep_dims: false}", x,
                  graph_text_result(g, op), axes);
}

// Rows around the length of a block and of a step; columns around a vector.
static void sums_of_products(void **state) {
  (void)state;
  static const int64_t rows[] = {8, 49, 383}, columns[] = {5, 33};
  GraphText g;
  graph_text_init(&g);
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
      for (int batch = 0; batch < 3; batch++) {
        static const char *const axes[] = {"[0]", "[1]", "[0, 1]"};
        const char *type = r == 1 && c ? "f64" : "f32";
        const int64_t m = rows[r], n = columns[c], k = r % 2 ? 600 : 37;
        const char *y = graph_text_name(&g, "y"), *square = graph_text_name(&g, "square");
        graph_text_case(&g, "product of %d, %d, %d, batch %d", (int)m, (int)n, (int)k, batch);
        graph_text_node(&g, "MatMul", "inputs: [%s, %s], outputs: [%s]",
                        graph_text_input(&g, "a", type, batch ? EXTENTS(3, m, k) : EXTENTS(m, k)),
                        graph_text_input(&g, "b", type, batch == 1 ? EXTENTS(3, k, n) : EXTENTS(k, n)),
                        graph_text_name(&g, "p"));
        graph_text_node(&g, "ReLU", "inputs: [%s], outputs: [%s]", graph_text_name(&g, "p"), y);
        graph_text_node(&g, "Multiply", "inputs: [%s, %s], outputs: [%s]", y, y, square);
        sum_over(&g, "ReduceSum", y, axes[batch]);
        sum_over(&g, "ReduceMean", square, axes[batch]);
        sum_over(&g, "ReduceMax", y, axes[batch]);
        if (r % 2) graph_text_node(&g, "Abs", "inputs: [%s], outputs: [%s]", y, graph_text_result(&g, "z"));
      }
  climb(&g, (Climb){.name = "sums of products", .unfused_too = true});
}

// A value that depends on all results of a column, and on each of them.
static void columns_of_products_are_normalised(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int is_result = 0; is_result < 2; is_result++) {
    graph_text_case(&g, "softmax, %d", is_result);
    const char *y = is_result ? graph_text_result(&g, "y") : graph_text_name(&g, "y");
    graph_text_node(
        &g, "MatMul", "inputs: [%s, %s, %s], outputs: [%s]", graph_text_input(&g, "a", "f32", EXTENTS(203, 45)),
        graph_text_input(&g, "b", "f32", EXTENTS(45, 40)), graph_text_input(&g, "bias", "f32", EXTENTS(40)), y);
    graph_text_node(&g, "SoftMax", "inputs: [%s], outputs: [%s], attributes: {axis: 0}", y, graph_text_result(&g, "z"));
  }
  climb(&g, (Climb){.name = "columns", .unusual_too = true});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(statistics_of_convolutions),         cmocka_unit_test(gradients_of_norms_behind_convolutions),
      cmocka_unit_test(gradients_of_few_channels),          cmocka_unit_test(sums_of_products),
      cmocka_unit_test(columns_of_products_are_normalised), cmocka_unit_test(results_in_planes),
  };
  return cmocka_run_group_tests_name("codegen_product_sums", tests, NULL, NULL);
}
