// Compiled products and convolutions with operands that are computed in their kernels, against the interpreter
// (ladder.h).
#include "tests/unit/graph_cases.h"
#include "tests/unit/ladder.h"

// An operand with a formula of its own: the name of the result.
typedef const char *ProductOf(GraphText *g, Extents s, const char *format);

// The formula of 0 is negative, and so differs from 0, the value outside of the tensor.
static const char *add_bias_and_gelu(GraphText *g, Extents s, const char *format) {
  graph_text_node(g, "BiasAdd", "inputs: [%s, %s], outputs: [%s], attributes: {data_format: %s}",
                  graph_text_input(g, "x", "f32", s), graph_text_input(g, "b", "f32", channels_of(s, format)),
                  graph_text_name(g, "biased"), format);
  graph_text_node(g, "GELU", "inputs: [%s], outputs: [%s]", graph_text_name(g, "biased"), graph_text_name(g, "a"));
  return graph_text_name(g, "a");
}

static const char *normalise(GraphText *g, Extents s, const char *format) {
  Channel c = channel_inputs(g, channels_of(s, format), f32, WITH_BETA);
  graph_text_node(g, "BatchNormInference",
                  "inputs: [%s, %s, %s, %s, %s], outputs: [%s], attributes: {epsilon: 1e-5, data_format: %s}",
                  graph_text_input(g, "x", "f32", s), c.gamma, c.beta, c.mean, c.variance, graph_text_name(g, "n"),
                  format);
  graph_text_node(g, "ReLU", "inputs: [%s], outputs: [%s]", graph_text_name(g, "n"), graph_text_name(g, "a"));
  return graph_text_name(g, "a");
}

static const char *mask_gradient(GraphText *g, Extents s, const char *format) {
  (void)format;
  graph_text_node(g, "ReLUBackward", "inputs: [%s, %s], outputs: [%s]", graph_text_input(g, "x", "f32", s),
                  graph_text_input(g, "dy", "f32", s), graph_text_name(g, "a"));
  return graph_text_name(g, "a");
}

static const char *dequantize(GraphText *g, Extents s, const char *format) {
  (void)format;
  graph_text_node(g, "Dequantize",
                  "inputs: [%s], outputs: [%s], attributes: {scales: [0.125], zps: [5], qtype: per_tensor}",
                  graph_text_input(g, "q", "u8", s), graph_text_name(g, "a"));
  return graph_text_name(g, "a");
}

static const char *cast(GraphText *g, Extents s, const char *format) {
  (void)format;
  graph_text_node(g, "TypeCast", "inputs: [%s], outputs: [{name: %s, type: f32}]", graph_text_input(g, "x", "bf16", s),
                  graph_text_name(g, "a"));
  return graph_text_name(g, "a");
}

static ProductOf *const formulas[] = {add_bias_and_gelu, normalise, mask_gradient, dequantize, cast};
enum { NFORMULAS = sizeof formulas / sizeof *formulas };

static void convolutions_compute_their_data(void **state) {
  (void)state;
  static const char *const places[] = {
      "strides: [1, 1], pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1]",
      "strides: [2, 1], pads_begin: [0, 2], pads_end: [1, 0], dilations: [1, 2]",
      "strides: [1, 1], pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1], groups: 2",
  };
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NFORMULAS; i++)
    for (int p = 0; p < 3; p++)
      for (int is_ncx = 0; is_ncx < 2; is_ncx++) {
        const char *format = is_ncx ? "NCX" : "NXC";
        const Extents s = is_ncx ? EXTENTS(2, 6, 7, 9) : EXTENTS(2, 7, 9, 6);
        const Extents weights = EXTENTS(3, 3, p == 2 ? 3 : 6, 36);
        graph_text_case(&g, "convolution, operand %d, %s, %s", i, places[p], format);
        const char *a = formulas[i](&g, s, format);
        graph_text_node(&g, "Convolution", "inputs: [%s, %s], outputs: [%s], attributes: {%s, data_format: %s}", a,
                        graph_text_input(&g, "w", "f32", weights), graph_text_result(&g, "z"), places[p], format);
      }
  graph_text_case(&g, "convolution of one image");
  graph_text_node(&g, "Convolution", "inputs: [%s, %s], outputs: [%s], attributes: {%s}",
                  add_bias_and_gelu(&g, EXTENTS(1, 7, 9, 6), "NXC"),
                  graph_text_input(&g, "w", "f32", EXTENTS(3, 3, 6, 36)), graph_text_result(&g, "z"), places[0]);
  climb(&g, (Climb){.name = "data of convolutions", .unfused_too = true, .unusual_too = true});
}

static void gradients_of_convolutions_compute_their_operands(void **state) {
  (void)state;
  const char *places = "strides: [1, 1], pads_begin: [1, 0], pads_end: [1, 2], dilations: [1, 1]";
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NFORMULAS; i++)
    for (int is_ncx = 0; is_ncx < 2; is_ncx++) {
      const char *format = is_ncx ? "NCX" : "NXC";
      const Extents src = is_ncx ? EXTENTS(2, 5, 7, 9) : EXTENTS(2, 7, 9, 5);
      const Extents dst = is_ncx ? EXTENTS(2, 34, 7, 9) : EXTENTS(2, 7, 9, 34);
      graph_text_case(&g, "gradient by data, operand %d, %s", i, format);
      const char *dy = formulas[i](&g, dst, format);
      graph_text_node(&g, "ConvolutionBackwardData",
                      "inputs: [%s, %s], outputs: [%s], attributes: {%s, dst_shape: %s, data_format: %s}", dy,
                      graph_text_input(&g, "w", "f32", EXTENTS(3, 3, 5, 34)), graph_text_result(&g, "dx"), places,
                      is_ncx ? "[2, 5, 7, 9]" : "[2, 7, 9, 5]", format);
      for (int of_dst = 0; of_dst < 2; of_dst++) {
        graph_text_case(&g, "gradient by weights, operand %d of %s, %s", i, of_dst ? "dy" : "x", format);
        const char *a = formulas[i](&g, of_dst ? dst : src, format);
        const char *other = graph_text_input(&g, "other", "f32", of_dst ? src : dst);
        graph_text_node(&g, "ConvolutionBackwardWeights",
                        "inputs: [%s, %s], outputs: [%s], attributes: {%s, weights_shape: [3, 3, 5, 34], data_format: "
                        "%s}",
                        of_dst ? other : a, of_dst ? a : other, graph_text_result(&g, "dw"), places, format);
      }
    }
  climb(&g, (Climb){.name = "gradients of convolutions", .unfused_too = true});
}

static void products_compute_their_operands(void **state) {
  (void)state;
  const Extents src[] = {EXTENTS(37, 50), EXTENTS(3, 9, 50), EXTENTS(1, 50), EXTENTS(50)};
  const Extents weights[] = {EXTENTS(50, 70), EXTENTS(3, 50, 18), EXTENTS(50, 130), EXTENTS(50, 40)};
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NFORMULAS; i++)
    for (int shape = 0; shape < 4; shape++)
      for (int of_weights = 0; of_weights < 2; of_weights++) {
        const Extents own = of_weights ? weights[shape] : src[shape];
        if (own.rank < 2 && i < 2) continue; // no channels
        graph_text_case(&g, "product %d, operand %d of %s", shape, i, of_weights ? "weights" : "src");
        const char *a = formulas[i](&g, own, "NXC");
        const char *other = graph_text_input(&g, "other", "f32", of_weights ? src[shape] : weights[shape]);
        graph_text_node(&g, "MatMul", "inputs: [%s, %s], outputs: [%s]", of_weights ? other : a, of_weights ? a : other,
                        graph_text_result(&g, "z"));
      }
  climb(&g, (Climb){.name = "operands of products", .unfused_too = true, .unusual_too = true});
}

// Scales and zero points of groups of rows, and of columns; and random numbers that depend on the element's place.
static void products_compute_what_depends_on_places(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int is_transposed = 0; is_transposed < 2; is_transposed++) {
    const Extents own = is_transposed ? EXTENTS(36, 64) : EXTENTS(64, 36);
    const Extents scales = is_transposed ? EXTENTS(36, 4) : EXTENTS(4, 36);
    for (int is_small = 0; is_small < 2; is_small++) {
      graph_text_case(&g, "weights of %s in groups of 16, transposed %d", is_small ? "s4" : "s8", is_transposed);
      graph_text_node(&g, "DynamicDequantize",
                      "inputs: [%s, %s, %s], outputs: [%s], attributes: {qtype: per_group, group_shape: %s}",
                      graph_text_input(&g, "q", is_small ? "s4" : "s8", own),
                      graph_text_input(&g, "scale", "f32", scales), graph_text_input(&g, "zp", "s8", scales),
                      graph_text_name(&g, "w"), is_transposed ? "[1, 16]" : "[16, 1]");
      graph_text_node(&g, "MatMul", "inputs: [%s, %s], outputs: [%s], attributes: {transpose_b: %s}",
                      graph_text_input(&g, "x", "f32", EXTENTS(21, 64)), graph_text_name(&g, "w"),
                      graph_text_result(&g, "z"), is_transposed ? "true" : "false");
    }
    graph_text_case(&g, "dropout, transposed %d", is_transposed);
    graph_text_node(&g, "Dropout", "inputs: [%s, %s, %s, %s], outputs: [%s]", graph_text_input(&g, "x", "f32", own),
                    graph_text_splat(&g, "seed", "s64", NO_EXTENTS, "5"),
                    graph_text_splat(&g, "offset", "s64", NO_EXTENTS, "7"),
                    graph_text_splat(&g, "p", "f32", NO_EXTENTS, "0.25"), graph_text_name(&g, "d"));
    graph_text_node(&g, "MatMul", "inputs: [%s, %s], outputs: [%s], attributes: {transpose_b: %s}",
                    graph_text_input(&g, "y", "f32", EXTENTS(21, 64)), graph_text_name(&g, "d"),
                    graph_text_result(&g, "z"), is_transposed ? "true" : "false");
  }
  climb(&g, (Climb){.name = "places", .unfused_too = true});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions_compute_their_data),
      cmocka_unit_test(gradients_of_convolutions_compute_their_operands),
      cmocka_unit_test(products_compute_their_operands),
      cmocka_unit_test(products_compute_what_depends_on_places),
  };
  return cmocka_run_group_tests_name("codegen_prologue", tests, NULL, NULL);
}
