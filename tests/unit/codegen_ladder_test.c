// Compiled code against the interpreter, and against itself: every operator and every name it goes by, extents that
// straddle the lane count, all types, fused and not. See ladder.h for what is compared with what.
#include "ir/kernel.h"
#include "tests/unit/graph_cases.h"
#include "tests/unit/ladder.h"

// Around one, two and four vectors, and more than fits a chain of additions.
static const int64_t widths[] = {1, 15, 16, 17, 31, 33, 64, 65, 300, 5000};
static const int64_t heights[] = {1, 3, 4, 5, 37, 300};
enum { NWIDTHS = sizeof widths / sizeof *widths, NHEIGHTS = sizeof heights / sizeof *heights };

static const char frozen[] = "directml.BATCH_NORMALIZATION_GRAD";
static const char training[] = "directml.BATCH_NORMALIZATION_TRAINING_GRAD";

// Layer norm

static void layer_norm_gradient_of_any_width(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int w = 0; w < NWIDTHS; w++)
    for (int h = w % 2; h<NHEIGHTS; h += widths[w]> 64 ? 3 : 2)
      layer_norm_gradient(&g, EXTENTS(heights[h], widths[w]), -1, f32, 0);
  climb(&g, (Climb){.name = "layer norm widths", .unusual_too = true});
}

static void layer_norm_gradient_from_any_axis(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents shapes[] = {EXTENTS(7, 20), EXTENTS(3, 4, 20), EXTENTS(2, 3, 4, 17), EXTENTS(2, 3, 1, 2, 7)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int k = 0; k < shapes[i].rank; k++)
      layer_norm_gradient(&g, shapes[i], k % 2 ? k - shapes[i].rank : k, f32, k % 2 ? FLAT : 0);
  layer_norm_gradient(&g, EXTENTS(5, 24), -1, f32, NO_GAMMA);
  layer_norm_gradient(&g, EXTENTS(5, 24), -1, f32, ONLY_DIFF_SRC);
  layer_norm_gradient(&g, EXTENTS(5, 24), -1, f32, WITH_BETA);
  layer_norm_gradient(&g, EXTENTS(40, 200), -1, f32, FAR);
  layer_norm_gradient(&g, EXTENTS(17), 0, f32, 0);
  layer_norm_gradient(&g, EXTENTS(1, 1), -1, f32, 0);
  layer_norm_gradient(&g, EXTENTS(2, 200, 200), -2, f32, 0); // few rows, long ones
  layer_norm_gradient(&g, EXTENTS(70000), 0, f32, 0);
  climb(&g, (Climb){.name = "layer norm axes", .unusual_too = true, .is_misaligned = true});
}

static void layer_norm_of_any_shape(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int w = 0; w < NWIDTHS; w++)
    layer_norm(&g, EXTENTS(heights[w % NHEIGHTS], widths[w]), -1, f32, w % 3 ? 0 : NO_GAMMA);
  layer_norm(&g, EXTENTS(2, 3, 4, 17), 1, f32, FLAT);
  layer_norm(&g, EXTENTS(2, 3, 4, 17), -2, f32, 0);
  layer_norm(&g, EXTENTS(2, 3, 4, 17), 0, f32, 0);
  layer_norm(&g, EXTENTS(40, 200), -1, f32, FAR);
  for (int t = 0; t < NTYPES; t++) layer_norm(&g, EXTENTS(5, 40), -1, all_types[t], 0);
  climb(&g, (Climb){.name = "layer norm forward", .unusual_too = true});
}

// Batch norm

static void batch_norm_gradient_of_any_plane(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int w = 0; w < NWIDTHS; w++) {
    int64_t n = heights[w % 4], c = heights[(w + 1) % 4];
    batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(n, c, widths[w]), "NCX", f32, 0);
  }
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(300, 2, 7, 7), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(37, 300), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(3, 37, 6), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(2, 3, 4, 5, 6), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(4, 3, 9, 9), "NCX", f32, FAR);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(4, 3, 9, 9), "NCX", f32, NO_GAMMA);
  batch_norm_gradient(&g, "BatchNormTrainingBackprop", EXTENTS(4, 3, 9, 9), "NCX", f32, ONLY_DIFF_SRC);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(2, 2, 150, 150), "NCX", f32, 0); // few long rows
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(3, 1, 40), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(5, 1), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(1, 1), "NCX", f32, 0);
  batch_norm_gradient(&g, "ngraph.BatchNormTrainingBackprop", EXTENTS(2, 3, 33), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormInferenceBackward", EXTENTS(2, 3, 33), "NCX", f32, 0);
  climb(&g, (Climb){.name = "batch norm planes", .unusual_too = true});
}

static void batch_norm_gradient_of_any_channels(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int w = 0; w < NWIDTHS; w++)
    batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(heights[w % NHEIGHTS], widths[w]), "NXC", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(1500, 40), "NXC", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(70000, 1), "NXC", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(2, 3, 4, 5, 6), "NXC", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(4, 9, 9, 3), "NXC", f32, FAR);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(4, 9, 9, 3), "NXC", f32, NO_GAMMA);
  batch_norm_gradient(&g, "BatchNormTrainingBackprop", EXTENTS(4, 9, 9, 3), "NXC", f32, ONLY_DIFF_SRC);
  batch_norm_gradient(&g, "BatchNormInferenceBackward", EXTENTS(4, 9, 9, 18), "NXC", f32, 0);
  batch_norm_gradient(&g, "BatchNormInferenceBackward", EXTENTS(4, 9, 9, 18), "NXC", f32, ONLY_DIFF_SRC);
  climb(&g, (Climb){.name = "batch norm channels", .unusual_too = true, .is_misaligned = true});
}

static void batch_norm_forward_of_any_shape(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents shapes[] = {EXTENTS(5, 17), EXTENTS(3, 4, 33), EXTENTS(2, 3, 5, 16), EXTENTS(2, 3, 2, 3, 4),
                            EXTENTS(600, 3, 2)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    for (int is_last = 0; is_last < 2; is_last++) {
      const char *format = is_last ? "NXC" : "NCX";
      batch_norm_training(&g, shapes[i], format, f32, 0);
      batch_norm_inference(&g, shapes[i], format, f32);
    }
  }
  batch_norm_training(&g, EXTENTS(4, 3, 9, 9), "NCX", f32, FAR);
  batch_norm_training(&g, EXTENTS(4, 9, 9, 3), "NXC", f32, FAR);
  batch_norm_training(&g, EXTENTS(4, 3, 9, 9), "NCX", f32, NO_GAMMA);
  climb(&g, (Climb){.name = "batch norm forward", .unusual_too = true});
}

static void norms_of_any_types(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NTYPES; i++) {
    Types t = all_types[i];
    layer_norm_gradient(&g, EXTENTS(21, 50), -1, t, 0);
    batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(3, 4, 37), "NCX", t, 0);
    batch_norm_gradient(&g, "BatchNormTrainingBackprop", EXTENTS(19, 37), "NXC", t, 0);
    batch_norm_training(&g, EXTENTS(3, 4, 37), "NCX", t, 0);
    batch_norm_inference(&g, EXTENTS(19, 37), "NXC", t);
  }
  const char *const types[] = {"f32", "f64", "bf16", "f16"};
  for (int i = 0; i < 4; i++)
    batch_norm_gradient(&g, "ngraph.BatchNormTrainingBackprop", EXTENTS(3, 4, 37), "NCX", (Types){types[i], types[i]},
                        0);
  climb(&g, (Climb){.name = "types", .unusual_too = true, .is_misaligned = true});
}

static void norms_without_elements(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents shapes[] = {EXTENTS(0, 5), EXTENTS(0, 5, 7), EXTENTS(3, 5, 0, 5)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    layer_norm_gradient(&g, shapes[i], -1, f32, 0);
    layer_norm_gradient(&g, shapes[i], 1, f32, 0);
    layer_norm(&g, shapes[i], -1, f32, 0);
    layer_norm(&g, shapes[i], 0, f32, 0);
    for (int is_last = 0; is_last < 2; is_last++) {
      const char *format = is_last ? "NXC" : "NCX";
      batch_norm_gradient(&g, "BatchNormTrainingBackward", shapes[i], format, f32, 0);
      batch_norm_gradient(&g, "BatchNormInferenceBackward", shapes[i], format, f32, 0);
      batch_norm_training(&g, shapes[i], format, f32, 0);
      batch_norm_inference(&g, shapes[i], format, f32);
    }
    for (unsigned reduced = 0; reduced < 1U << shapes[i].rank; reduced += 3)
      directml_gradient(&g, training, shapes[i], reduced, "f32", 0);
  }
  layer_norm_gradient(&g, EXTENTS(4, 0), -1, f32, 0);
  layer_norm(&g, EXTENTS(4, 0), -1, f32, 0);
  climb(&g, (Climb){.name = "nothing"});
}

// DirectML

static void directml_gradients_of_any_statistics(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents shapes[] = {EXTENTS(40), EXTENTS(6, 5), EXTENTS(5, 3, 18), EXTENTS(4, 3, 5, 17)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (unsigned reduced = 0; reduced < 1U << shapes[i].rank; reduced++)
      directml_gradient(&g, (reduced + i) % 2 ? training : frozen, shapes[i], reduced, "f32", 0);
  directml_gradient(&g, training, EXTENTS(2, 3, 1, 2, 3, 1, 2, 5), 0xA5, "f32", 0);
  directml_gradient(&g, training, EXTENTS(4, 3, 5, 17), 13, "f16", 0);
  directml_gradient(&g, frozen, EXTENTS(4, 3, 5, 17), 6, "f16", 0);
  directml_gradient(&g, training, EXTENTS(4, 3, 9, 9), 13, "f32", FAR);
  directml_gradient(&g, training, EXTENTS(300, 2, 50), 1, "f32", 0);
  directml_gradient(&g, training, EXTENTS(3, 300, 20), 2, "f32", 0); // each of the first axis keeps its sums
  climb(&g, (Climb){.name = "directml", .unusual_too = true});
}

// Elementwise operators

static const char *const binaries[] = {"Add",     "Subtract", "Multiply",          "Divide",
                                       "Maximum", "Minimum",  "SquaredDifference", "GreaterEqual"};
enum { NBINARIES = sizeof binaries / sizeof *binaries };

static void elementwise_operators_of_any_length(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int w = 0; w < NWIDTHS; w++) {
    for (int op = w % 2; op < NBINARIES; op += 2)
      binary(&g, binaries[op], "f32", EXTENTS(widths[w]), "f32", EXTENTS(widths[w]));
    choice(&g, "f32", EXTENTS(3, widths[w]), EXTENTS(3, widths[w]), EXTENTS(3, widths[w]));
    unary(&g, w % 2 ? "ReLU" : "ReLUBackward", "f32", EXTENTS(heights[w % NHEIGHTS], widths[w]), "");
    unary(&g, "TypeCast", w % 2 ? "f32" : "bf16", EXTENTS(widths[w]), w % 2 ? "bf16" : "f32");
  }
  unary(&g, "ReLU", "f32", EXTENTS(100000), "");
  unary(&g, "ReLU", "f32", NO_EXTENTS, "");
  unary(&g, "ReLU", "f32", EXTENTS(3, 0, 2), "");
  binary(&g, "Add", "f32", NO_EXTENTS, "f32", NO_EXTENTS);
  climb(&g, (Climb){.name = "elementwise lengths", .unusual_too = true, .is_misaligned = true});
}

static void activations_of_any_length(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NACTIVATIONS; i++) activation(&g, &activations[i], "f32", EXTENTS(3, widths[1 + i % 6]));
  climb(&g, (Climb){.name = "activations", .unusual_too = true, .is_misaligned = true});
}

static void activations_of_any_types(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const char *const types[] = {"f64", "f16", "bf16"};
  for (int i = 0; i < NACTIVATIONS; i++)
    for (int t = 0; t < 3; t++)
      if (t == i % 3 || t == 0) activation(&g, &activations[i], types[t], EXTENTS(3, 21));
  climb(&g, (Climb){.name = "types of activations", .unusual_too = true});
}

static void elementwise_operators_of_any_types(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const char *const types[] = {"f64", "f32", "f16", "bf16", "s32"};
  for (int i = 0; i < 5; i++) {
    for (int op = 0; op < (i < 4 ? NBINARIES : 2); op++)
      binary(&g, binaries[op], types[i], EXTENTS(3, 21), types[i], EXTENTS(21));
    if (i == 4) binary(&g, "GreaterEqual", types[i], EXTENTS(3, 21), types[i], EXTENTS(21));
    if (i < 4) choice(&g, types[i], EXTENTS(21), EXTENTS(3, 21), EXTENTS(3, 1));
    if (i < 4) unary(&g, "ReLU", types[i], EXTENTS(3, 21), "");
    if (i < 4) unary(&g, "ReLUBackward", types[i], EXTENTS(3, 21), "");
    if (i < 4 && i != 1) unary(&g, "TypeCast", types[i], EXTENTS(3, 21), "f32");
    if (i < 4 && i != 1) unary(&g, "TypeCast", "f32", EXTENTS(3, 21), types[i]);
    if (i == 2 || i == 3) binary(&g, "Add", types[i], EXTENTS(21), "f32", EXTENTS(3, 21));
    if (i == 2 || i == 3) binary(&g, "Multiply", "f32", EXTENTS(3, 21), types[i], EXTENTS(21));
  }
  climb(&g, (Climb){.name = "elementwise types", .unusual_too = true, .is_misaligned = true});
}

static void operands_broadcast_both_ways(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents pairs[][2] = {
      {EXTENTS(3, 17), EXTENTS(17)},
      {EXTENTS(17), EXTENTS(3, 17)},
      {EXTENTS(3, 1), EXTENTS(1, 17)},
      {EXTENTS(3, 17), NO_EXTENTS},
      {EXTENTS(3, 17), EXTENTS(1)},
      {EXTENTS(3, 17), EXTENTS(3, 1)},
      {EXTENTS(4, 1, 5), EXTENTS(3, 1)},
      {EXTENTS(2, 3, 4, 5), EXTENTS(3, 1, 1)},
      {EXTENTS(2, 1, 4, 1), EXTENTS(3, 1, 5)},
      {EXTENTS(1, 1), EXTENTS(1, 1, 1)},
      {EXTENTS(0, 3), EXTENTS(1, 3)},
      {EXTENTS(2, 3, 0), EXTENTS(3, 1)},
      {EXTENTS(1, 40, 1), EXTENTS(2, 1, 33)},
      {EXTENTS(64), EXTENTS(5, 1)},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    for (size_t op = i % 3; op < NBINARIES; op += 3) binary(&g, binaries[op], "f32", pairs[i][0], "f32", pairs[i][1]);
    choice(&g, "f32", NO_EXTENTS, pairs[i][0], pairs[i][1]);
  }
  choice(&g, "f32", EXTENTS(3, 1), EXTENTS(1), EXTENTS(2, 3, 40));
  choice(&g, "f32", EXTENTS(2, 3, 40), EXTENTS(2, 1, 40), EXTENTS(3, 40));
  choice(&g, "f64", EXTENTS(40), EXTENTS(3, 1), EXTENTS(3, 40));
  choice(&g, "f32", EXTENTS(1, 40), EXTENTS(0, 1), EXTENTS(40));
  binary(&g, "Add", "s32", EXTENTS(3, 17), "s32", EXTENTS(3, 1));
  binary(&g, "Add", "bf16", EXTENTS(3, 1), "bf16", EXTENTS(1, 17));
  climb(&g, (Climb){.name = "broadcasting", .unusual_too = true});
}

static void operands_along_channels(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents shapes[] = {EXTENTS(5, 17), EXTENTS(3, 4, 33), EXTENTS(2, 3, 5, 16), EXTENTS(600, 3, 2),
                            EXTENTS(2, 70, 300)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    for (int is_last = 0; is_last < 2; is_last++) {
      const char *format = is_last ? "NXC" : "NCX";
      bias(&g, shapes[i], format, "f32");
      prelu(&g, shapes[i], channels_of(shapes[i], format), format, "f32");
    }
    prelu(&g, shapes[i], EXTENTS(1), "NCX", "f32");
  }
  const Extents s = EXTENTS(4, 16, 3, 20);
  const Extents slopes[] = {s, EXTENTS(4, 1, 1, 20), EXTENTS(1, 1, 1, 1), EXTENTS(16, 1, 20), EXTENTS(4, 16, 1, 1)};
  for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++) prelu(&g, s, slopes[i], "NCX", "f32");
  const char *const types[] = {"f64", "f16", "bf16"};
  for (int t = 0; t < 3; t++) bias(&g, EXTENTS(3, 4, 33), "NCX", types[t]);
  for (int t = 0; t < 3; t++) prelu(&g, EXTENTS(3, 4, 33), EXTENTS(4), "NCX", types[t]);
  bias(&g, EXTENTS(0, 4, 3), "NCX", "f32");
  prelu(&g, EXTENTS(2, 4, 0), EXTENTS(4), "NCX", "f32");
  prelu(&g, EXTENTS(40), EXTENTS(40), "NCX", "f32");
  climb(&g, (Climb){.name = "channels", .unusual_too = true});
}

// Each operator at its joints, where it saturates, and where its parts would overflow.
static const double specials[] = {NAN,  INFINITY, -INFINITY, -0.0,  0,     1e-40, -1e-40, 1e-20,  -1e-20,
                                  0.5,  -0.5,     1,         -1,    1.5,   -1.5,  2.5,    3,      -3,
                                  5,    -5,       16.5,      -16.5, 87.5,  -87.5, 88.75,  -88.75, 103,
                                  -103, 1e10,     -1e10,     1e20,  -1e20, 3e38,  -3e38};
enum { NSPECIALS = sizeof specials / sizeof *specials };

static void must_be_near(Ladder *l, const Rung *r, size_t k) {
  for (int64_t i = 0; i < NSPECIALS; i++) {
    double got = ng_tensor_get(&l->outputs[k], i), expected = ng_tensor_get(&l->expected[k], i);
    bool is_near = is_alike(got, expected, false) &&
                   (!isfinite(expected) || fabs(got - expected) <= 2e-6 * fmax(1, fabs(expected)));
    if (!is_near)
      fail_msg("%s of %g with %s: %.9g, expected %.9g", ng_graph_output(l->graph, k).name, specials[i], r->options.isa,
               got, expected);
  }
}

static void activations_of_special_values(void **state) {
  (void)state;
  GraphText g;
  Ladder l;
  graph_text_init(&g);
  for (int i = 0; i < NACTIVATIONS; i++) activation(&g, &activations[i], "f32", EXTENTS(NSPECIALS));
  ladder_init(&l, &g, &(Climb){.name = "special values"});
  ladder_add_rungs(&l, 0);
  ladder_compile(&l);
  ladder_fill_round(&l, &(Round){NULL, 0});
  for (size_t i = 0; i < l.ninputs; i++)
    if (name_has_role(ng_graph_input(l.graph, i).name, "x"))
      for (size_t e = 0; e < NSPECIALS; e++) ((float *)l.inputs[i].data)[e] = (float)specials[e];
  assert_int_equal(ng_interpret(l.graph, l.inputs, l.expected, 0), NG_OK);
  for (size_t i = 0; i < l.nrungs; i++) {
    assert_int_equal(ng_kernel_run(l.rungs[i].kernel, l.inputs, l.outputs, 1), NG_OK);
    for (size_t k = 0; k < l.noutputs; k++) must_be_near(&l, &l.rungs[i], k);
  }
  ladder_deinit(&l);
  graph_text_deinit(&g);
}

// What one node compares another chooses by, in one kernel and through memory.
static void choices_by_comparisons(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const char *const types[] = {"f32", "bf16", "f64"};
  for (int t = 0; t < 3; t++) {
    const Extents s = EXTENTS(3, 37);
    graph_text_case(&g, "choice %s", types[t]);
    const char *x = graph_text_input(&g, "x", types[t], s), *y = graph_text_input(&g, "dy", types[t], s);
    graph_text_node(&g, "GreaterEqual", "inputs: [%s, %s], outputs: [%s]", x, y, graph_text_name(&g, "mask"));
    graph_text_node(&g, "Select", "inputs: [%s, %s, %s], outputs: [%s]", graph_text_name(&g, "mask"), y, x,
                    graph_text_result(&g, "least"));
    graph_text_output(&g, graph_text_name(&g, "mask"));
  }
  climb(&g, (Climb){.name = "choices", .unfused_too = true, .unusual_too = true});
}

// Constants, and what a graph hands out

// Number as they are: folded into the code, or stored in it.
typedef const char *Constant_text(GraphText *g, const char *role, const char *type, Extents s);

static const char *splat(GraphText *g, const char *role, const char *type, Extents s) {
  return graph_text_splat(g, role, type, s, "1.5");
}

static void nodes_of_constants(GraphText *g, const char *kind, Constant_text *constant, const char *type) {
  const Extents s = EXTENTS(37, 21), column = EXTENTS(37), row = EXTENTS(21);
  graph_text_case(g, "Add of %s %s", kind, type);
  graph_text_node(g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_input(g, "x", type, s),
                  constant(g, "c", type, row), graph_text_result(g, "z"));
  graph_text_case(g, "Add of two %s %s", kind, type);
  graph_text_node(g, "Add", "inputs: [%s, %s], outputs: [%s]", constant(g, "c", type, EXTENTS(3, 1)),
                  constant(g, "d", type, EXTENTS(17)), graph_text_result(g, "z"));
  graph_text_case(g, "Multiply by a wider %s %s", kind, type);
  graph_text_node(g, "Multiply", "inputs: [%s, %s], outputs: [%s]", graph_text_input(g, "x", type, EXTENTS(37, 1)),
                  constant(g, "c", type, s), graph_text_result(g, "z"));
  graph_text_case(g, "ReLUBackward by %s %s", kind, type);
  graph_text_node(g, "ReLUBackward", "inputs: [%s, %s], outputs: [%s]", constant(g, "c", type, row),
                  graph_text_input(g, "dy", type, row), graph_text_result(g, "z"));
  graph_text_case(g, "ReLU of %s %s", kind, type);
  graph_text_node(g, "ReLU", "inputs: [%s], outputs: [%s]", constant(g, "c", type, s), graph_text_result(g, "z"));
  graph_text_case(g, "LayerNorm of %s %s", kind, type);
  graph_text_node(g, "LayerNorm", "inputs: [%s, %s, %s], outputs: [%s], attributes: {keep_stats: false}",
                  graph_text_input(g, "x", type, s), constant(g, "gamma", "f32", row), constant(g, "beta", "f32", row),
                  graph_text_result(g, "z"));
  // Each operand of a gradient in turn, and all of them.
  for (int which = 0; which < 6; which++) {
    for (int is_batch = 0; is_batch < 3; is_batch++) {
      const char *op = is_batch == 0   ? "LayerNormBackward"
                       : is_batch == 1 ? "BatchNormTrainingBackward"
                                       : "BatchNormInferenceBackward";
      Extents statistics = is_batch ? row : column;
      graph_text_case(g, "%s with operand %d a %s %s", op, which, kind, type);
      const char *x = which == 0 || which == 5 ? constant(g, "x", type, s) : graph_text_input(g, "x", type, s);
      const char *dy = which == 1 || which == 5 ? constant(g, "dy", type, s) : graph_text_input(g, "dy", type, s);
      const char *mean = which == 2 || which == 5 ? constant(g, "mean", "f32", statistics)
                                                  : graph_text_input(g, "mean", "f32", statistics);
      const char *variance = which == 3 || which == 5 ? graph_text_splat(g, "variance", "f32", statistics, "0.7")
                                                      : graph_text_input(g, "variance", "f32", statistics);
      const char *gamma =
          which == 4 || which == 5 ? constant(g, "gamma", "f32", row) : graph_text_input(g, "gamma", "f32", row);
      graph_text_node(g, op, "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s], attributes: {epsilon: 1e-5}", x, dy,
                      mean, variance, gamma, graph_text_result(g, "dx"), graph_text_result(g, "dgamma"),
                      graph_text_result(g, "dbeta"));
    }
  }
}

static void operands_that_are_one_number(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  nodes_of_constants(&g, "splat", splat, "f32");
  climb(&g, (Climb){.name = "splats", .unusual_too = true});
}

static void operands_that_are_constant(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  nodes_of_constants(&g, "constant", graph_text_values, "f32");
  climb(&g, (Climb){.name = "constants", .unusual_too = true});
}

static void constants_of_any_type(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const char *const types[] = {"f64", "f32", "f16", "bf16", "s32"};
  for (int i = 0; i < 5; i++) {
    graph_text_case(&g, "%s", types[i]);
    graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_input(&g, "x", types[i], EXTENTS(3, 21)),
                    graph_text_values(&g, "c", types[i], EXTENTS(21)), graph_text_result(&g, "y"));
    graph_text_node(&g, "Subtract", "inputs: [%s, %s], outputs: [%s]", graph_text_name(&g, "y"),
                    graph_text_splat(&g, "d", types[i], NO_EXTENTS, "3"), graph_text_result(&g, "z"));
    if (i == 4) break;
    const char *numbers[] = {".nan", ".inf", "-.inf", "-0.0"};
    graph_text_node(&g, "Multiply", "inputs: [%s, %s], outputs: [%s]", graph_text_name(&g, "y"),
                    graph_text_splat(&g, "special", types[i], EXTENTS(21), numbers[i]), graph_text_result(&g, "w"));
  }
  text_add_string(&g.constants,
                  "  - {name: unusual, type: f32, shape: [5], values: [.nan, .inf, -.inf, -0.0, 1e-45]}\n");
  graph_text_case(&g, "unusual");
  graph_text_node(&g, "Add", "inputs: [%s, unusual], outputs: [%s]", graph_text_input(&g, "x", "f32", EXTENTS(2, 5)),
                  graph_text_result(&g, "z"));
  climb(&g, (Climb){.name = "types of constants"});
}

static void outputs_that_no_node_makes(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const char *const types[] = {"f64", "f32", "f16", "bf16", "s64", "s32", "s8", "u8", "boolean"};
  for (int i = 0; i < 9; i++) {
    graph_text_case(&g, "%s", types[i]);
    graph_text_output(&g, graph_text_input(&g, "x", types[i], EXTENTS(3, 5)));
    graph_text_output(&g, graph_text_splat(&g, "splat", types[i], EXTENTS(17), "1"));
    graph_text_output(&g, graph_text_splat(&g, "scalar", types[i], NO_EXTENTS, i == 8 ? "true" : "7"));
    if (i < 4) graph_text_output(&g, graph_text_splat(&g, "nan", types[i], EXTENTS(3), ".nan"));
    if (i < 4) graph_text_output(&g, graph_text_splat(&g, "infinity", types[i], EXTENTS(3), "-.inf"));
    if (i < 4) graph_text_output(&g, graph_text_splat(&g, "zero", types[i], EXTENTS(3), "-0.0"));
  }
  text_add_string(&g.constants,
                  "  - {name: longs, type: s64, shape: [3], values: [9007199254740993, -9223372036854775808, 3]}\n"
                  "  - {name: long, type: s64, shape: [2], value: -9007199254740993}\n"
                  "  - {name: bytes, type: s8, shape: [3], values: [-128, 127, 0]}\n"
                  "  - {name: none, type: f32, shape: [0, 3], values: []}\n");
  graph_text_output(&g, "longs");
  graph_text_output(&g, "long");
  graph_text_output(&g, "bytes");
  graph_text_output(&g, "none");
  climb(&g, (Climb){.name = "copies"});
}

// Dropout

static void dropout(GraphText *g, Extents s, const char *type, const char *key, bool has_mask) {
  graph_text_case(g, "dropout of %s %s by %s%s", extents_text(g, s, "x"), type, key, has_mask ? " with mask" : "");
  graph_text_node(g, "Dropout", has_mask ? "inputs: [%s, %s], outputs: [%s, %s]" : "inputs: [%s, %s], outputs: [%s]",
                  graph_text_input(g, "x", type, s), key, graph_text_result(g, "y"),
                  has_mask ? graph_text_result(g, "mask") : "");
}

// By given keys and constant ones, in kernels of f32 and f64, alone, between neighbours, and where it is the narrower.
static void elements_are_dropped_by_place(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  text_add_string(&g.inputs, "  - {name: seed, type: s64, shape: []}\n  - {name: offset, type: s64, shape: []}\n"
                             "  - {name: p, type: f32, shape: []}\n");
  text_add_string(&g.constants, "  - {name: zero, type: s64, shape: [], value: 0}\n"
                                "  - {name: least, type: s64, shape: [], value: -9223372036854775808}\n"
                                "  - {name: greatest, type: s64, shape: [], value: 9223372036854775807}\n"
                                "  - {name: half, type: f32, shape: [], value: 0.5}\n");
  for (int w = 0; w < NWIDTHS; w++)
    dropout(&g, EXTENTS(heights[w % NHEIGHTS], widths[w]), "f32", w % 3 ? "seed, offset, p" : "seed, zero, half",
            w % 2);
  const char *const types[] = {"f64", "f16", "bf16"};
  for (int i = 0; i < 3; i++) dropout(&g, EXTENTS(7, 33), types[i], "least, greatest, p", true);
  dropout(&g, NO_EXTENTS, "f32", "seed, offset, half", true);
  dropout(&g, EXTENTS(0, 3), "f32", "seed, offset, half", true);
  const Extents s = EXTENTS(6, 40, 17), narrow[] = {EXTENTS(17), EXTENTS(40, 1), EXTENTS(6, 1, 1), NO_EXTENTS};
  for (int i = 0; i < 4; i++) {
    dropout(&g, narrow[i], "f32", "seed, offset, p", false);
    graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_name(&g, "y"),
                    graph_text_input(&g, "wide", "f32", s), graph_text_result(&g, "sum"));
  }
  graph_text_case(&g, "into another order");
  graph_text_node(&g, "Exp", "inputs: [%s], outputs: [%s]", graph_text_input(&g, "x", "f32", s),
                  graph_text_name(&g, "power"));
  graph_text_node(&g, "Dropout",
                  "inputs: [%s, seed, offset, p], outputs: [{name: %s, shape: [6, 40, 17], order: [0, 2, 1]}]",
                  graph_text_name(&g, "power"), graph_text_name(&g, "y"));
  graph_text_node(&g, "Square", "inputs: [%s], outputs: [%s]", graph_text_name(&g, "y"), graph_text_result(&g, "z"));
  graph_text_case(&g, "before a norm");
  graph_text_node(&g, "Dropout", "inputs: [%s, seed, offset, p], outputs: [%s, %s]",
                  graph_text_input(&g, "x", "f32", EXTENTS(300, 20)), graph_text_name(&g, "y"),
                  graph_text_result(&g, "mask"));
  graph_text_node(&g, "LayerNorm", "inputs: [%s], outputs: [%s, %s, %s], attributes: {use_affine: false}",
                  graph_text_name(&g, "y"), graph_text_result(&g, "z"), graph_text_result(&g, "m"),
                  graph_text_result(&g, "v"));
  climb(&g, (Climb){.name = "dropout", .unfused_too = true, .unusual_too = true});
}

// Fusion

static void chains_around_norms(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NTYPES + 2; i++) {
    Types t = i < NTYPES ? all_types[i] : f32;
    const char *format = i % 2 ? "NXC" : "NCX";
    Extents s = i == NTYPES ? EXTENTS(300, 5, 33) : i > NTYPES ? EXTENTS(2, 3, 17000) : EXTENTS(3, 5, 33);
    graph_text_case(&g, "residual tail %s %s %s %s", extents_text(&g, s, "x"), format, t.data, t.statistics);
    graph_text_node(&g, "ReLUBackward", "inputs: [%s, %s], outputs: [%s]", graph_text_input(&g, "y", t.data, s),
                    graph_text_input(&g, "dy", t.data, s), graph_text_name(&g, "d"));
    Channel c = channel_inputs(&g, channels_of(s, format), t, 0);
    graph_text_node(&g, "BatchNormTrainingBackward",
                    "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s], attributes: {epsilon: 1e-5, data_format: %s}",
                    graph_text_input(&g, "x", t.data, s), graph_text_name(&g, "d"), c.mean, c.variance, c.gamma,
                    graph_text_name(&g, "n"), graph_text_result(&g, "dgamma"), graph_text_result(&g, "dbeta"), format);
    graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_name(&g, "n"),
                    graph_text_input(&g, "skip", t.data, s), graph_text_result(&g, "dx"));
  }
  for (int i = 0; i < NTYPES; i++) {
    Types t = all_types[i];
    const Extents s = EXTENTS(21, 50);
    graph_text_case(&g, "layer norm between neighbours %s %s", t.data, t.statistics);
    graph_text_node(&g, "Multiply", "inputs: [%s, %s], outputs: [%s]", graph_text_input(&g, "dy", t.data, s),
                    graph_text_input(&g, "scale", t.data, EXTENTS(50)), graph_text_result(&g, "d"));
    graph_text_node(&g, "LayerNormBackward", "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s]",
                    graph_text_input(&g, "x", t.data, s), graph_text_name(&g, "d"),
                    graph_text_input(&g, "mean", t.statistics, EXTENTS(21)),
                    graph_text_input(&g, "variance", t.statistics, EXTENTS(21)),
                    graph_text_input(&g, "gamma", t.statistics, EXTENTS(50)), graph_text_result(&g, "n"),
                    graph_text_result(&g, "dgamma"), graph_text_result(&g, "dbeta"));
    graph_text_node(&g, "Subtract", "inputs: [%s, %s], outputs: [%s]", graph_text_name(&g, "n"),
                    graph_text_input(&g, "column", t.data, EXTENTS(21, 1)), graph_text_name(&g, "m"));
    graph_text_node(&g, "ReLU", "inputs: [%s], outputs: [%s]", graph_text_name(&g, "m"), graph_text_result(&g, "dx"));
  }
  climb(&g, (Climb){.name = "chains", .unfused_too = true, .unusual_too = true});
}

static void forward_and_backward_in_one_graph(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents s = EXTENTS(21, 50);
  graph_text_case(&g, "layer norm");
  graph_text_node(&g, "LayerNorm", "inputs: [%s, %s, %s], outputs: [%s, %s, %s]", graph_text_input(&g, "x", "f32", s),
                  graph_text_input(&g, "gamma", "f32", EXTENTS(50)), graph_text_input(&g, "beta", "f32", EXTENTS(50)),
                  graph_text_name(&g, "y"), graph_text_name(&g, "m"), graph_text_result(&g, "v"));
  graph_text_node(&g, "ReLU", "inputs: [%s], outputs: [%s]", graph_text_name(&g, "y"), graph_text_result(&g, "z"));
  graph_text_node(&g, "ReLUBackward", "inputs: [%s, %s], outputs: [%s]", graph_text_name(&g, "z"),
                  graph_text_input(&g, "dy", "f32", s), graph_text_name(&g, "d"));
  graph_text_node(&g, "LayerNormBackward", "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s]",
                  graph_text_name(&g, "x"), graph_text_name(&g, "d"), graph_text_name(&g, "m"),
                  graph_text_name(&g, "v"), graph_text_name(&g, "gamma"), graph_text_result(&g, "dx"),
                  graph_text_result(&g, "dgamma"), graph_text_result(&g, "dbeta"));
  climb(&g, (Climb){.name = "both ways", .unfused_too = true, .unusual_too = true});
}

// What one operand of a fused operator does not vary over.
static void neighbours_that_do_not_fill_the_domain(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents s = EXTENTS(3, 40, 50), narrow[] = {EXTENTS(50), EXTENTS(40, 1), EXTENTS(3, 1, 1), NO_EXTENTS};
  for (int i = 0; i < 4; i++) {
    for (int which = 0; which < 2; which++) { // of src and diff_dst
      graph_text_case(&g, "layer norm of %s operand %d", extents_text(&g, narrow[i], "x"), which);
      graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_input(&g, "y", "f32", narrow[i]),
                      graph_text_splat(&g, "wide", "f32", s, "0.5"), graph_text_name(&g, "sum"));
      const char *other = graph_text_input(&g, "x", "f32", s), *sum = graph_text_name(&g, "sum");
      graph_text_node(&g, "LayerNormBackward",
                      "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s], attributes: {begin_norm_axis: 1}",
                      which ? other : sum, which ? sum : other, graph_text_input(&g, "mean", "f32", EXTENTS(3)),
                      graph_text_input(&g, "variance", "f32", EXTENTS(3)),
                      graph_text_input(&g, "gamma", "f32", EXTENTS(40, 50)), graph_text_result(&g, "dx"),
                      graph_text_result(&g, "dgamma"), graph_text_result(&g, "dbeta"));
      graph_text_case(&g, "batch norm of %s operand %d", extents_text(&g, narrow[i], "x"), which);
      graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_input(&g, "y", "f32", narrow[i]),
                      graph_text_splat(&g, "wide", "f32", s, "0.5"), graph_text_name(&g, "sum"));
      other = graph_text_input(&g, "x", "f32", s), sum = graph_text_name(&g, "sum");
      Channel c = channel_inputs(&g, EXTENTS(40), f32, 0);
      graph_text_node(
          &g, "BatchNormTrainingBackward",
          "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s], attributes: {epsilon: 1e-5, data_format: NCX}",
          which ? other : sum, which ? sum : other, c.mean, c.variance, c.gamma, graph_text_result(&g, "dx"),
          graph_text_result(&g, "dgamma"), graph_text_result(&g, "dbeta"));
    }
    graph_text_case(&g, "forward of %s", extents_text(&g, narrow[i], "x"));
    graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_input(&g, "y", "f32", narrow[i]),
                    graph_text_splat(&g, "wide", "f32", s, "0.5"), graph_text_name(&g, "sum"));
    graph_text_node(&g, "LayerNorm", "inputs: [%s], outputs: [%s, %s, %s], attributes: {use_affine: false}",
                    graph_text_name(&g, "sum"), graph_text_result(&g, "y2"), graph_text_result(&g, "m"),
                    graph_text_result(&g, "v"));
    graph_text_case(&g, "mask of %s", extents_text(&g, narrow[i], "x"));
    graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_input(&g, "y", "f32", narrow[i]),
                    graph_text_splat(&g, "wide", "f32", s, "0"), graph_text_name(&g, "sum"));
    graph_text_node(&g, "ReLUBackward", "inputs: [%s, %s], outputs: [%s]", graph_text_name(&g, "sum"),
                    graph_text_input(&g, "dy", "f32", s), graph_text_result(&g, "dx"));
  }
  climb(&g, (Climb){.name = "narrow neighbours", .unfused_too = true});
}

// Sums that no schedule makes in one kernel: found by random graphs.
static void regions_that_fall_apart(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  // A row's sum that another phase needs: one sum of this region is inner, the other is not.
  Extents s = EXTENTS(16, 16, 2);
  graph_text_case(&g, "layer norm");
  graph_text_node(&g, "Subtract", "inputs: [%s, %s], outputs: [%s]", graph_text_splat(&g, "wide", "f32", s, "0"),
                  graph_text_input(&g, "y", "f32", EXTENTS(16, 1, 2)), graph_text_name(&g, "d"));
  const char *number = graph_text_input(&g, "mean", "f32", NO_EXTENTS), *d = graph_text_name(&g, "d");
  graph_text_node(
      &g, "LayerNormBackward", "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s], attributes: {begin_norm_axis: 0}",
      graph_text_input(&g, "x", "f32", s), d, number, graph_text_splat(&g, "variance", "f32", NO_EXTENTS, "1"),
      graph_text_splat(&g, "gamma", "f32", s, "-1.5"), graph_text_name(&g, "n"), graph_text_name(&g, "dgamma"),
      graph_text_name(&g, "dbeta"));
  graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_name(&g, "n"),
                  graph_text_input(&g, "column", "f32", EXTENTS(16, 16, 1)), graph_text_result(&g, "dx"));
  // A sum that is the same for all of the kept axes.
  s = EXTENTS(3, 20, 5, 33);
  graph_text_case(&g, "batch norm");
  graph_text_node(&g, "Subtract", "inputs: [%s, %s], outputs: [%s]",
                  graph_text_input(&g, "y", "f32", EXTENTS(20, 1, 1)), graph_text_splat(&g, "wide", "f32", s, "0.5"),
                  graph_text_name(&g, "x"));
  Channel c = channel_inputs(&g, EXTENTS(33), f32, WITH_BETA);
  graph_text_node(&g, "BatchNormForwardTraining",
                  "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s, %s, %s], attributes: {epsilon: 1e-3}",
                  graph_text_name(&g, "x"), c.mean, c.variance, c.gamma, c.beta, graph_text_result(&g, "dst"),
                  graph_text_result(&g, "running_mean"), graph_text_name(&g, "running_variance"),
                  graph_text_name(&g, "batch_mean"), graph_text_name(&g, "batch_variance"));
  climb(&g, (Climb){.name = "falling apart"});
}

// Between operators of one kernel values are as exact as their types say.
static void casts_round_inside_a_kernel(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const char *const chains[][3] = {{"f64", "f32", "f64"}, {"f32", "f16", "f32"},  {"f32", "bf16", "f32"},
                                   {"f64", "f32", "f16"}, {"f64", "f32", "bf16"}, {"f16", "f32", "bf16"}};
  for (int i = 0; i < 6; i++) {
    graph_text_case(&g, "%s to %s to %s", chains[i][0], chains[i][1], chains[i][2]);
    graph_text_node(&g, "TypeCast", "inputs: [%s], outputs: [{name: %s, type: %s}]",
                    graph_text_input(&g, "x", chains[i][0], EXTENTS(3, 70)), graph_text_name(&g, "y"), chains[i][1]);
    graph_text_node(&g, "TypeCast", "inputs: [%s], outputs: [{name: %s, type: %s}]", graph_text_name(&g, "y"),
                    graph_text_result(&g, "z"), chains[i][2]);
  }
  climb(&g, (Climb){.name = "casts", .unfused_too = true, .unusual_too = true});
}

static void integers_saturate_at_every_step(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  text_add_string(&g.constants,
                  "  - {name: edge, type: s32, shape: [5], values: [2147483647, -2147483648, 2147483646, -1, 0]}\n"
                  "  - {name: two, type: s32, shape: [], value: 2}\n");
  graph_text_case(&g, "s32");
  graph_text_node(&g, "Add", "inputs: [edge, two], outputs: [up]");
  graph_text_node(&g, "Subtract", "inputs: [up, two], outputs: [%s]", graph_text_result(&g, "back"));
  graph_text_node(&g, "Subtract", "inputs: [edge, two], outputs: [down]");
  graph_text_node(&g, "Add", "inputs: [down, two], outputs: [%s]", graph_text_result(&g, "forth"));
  graph_text_output(&g, "down");
  climb(&g, (Climb){.name = "s32", .unfused_too = true});
}

// Sizes

// Beyond the caches: several blocks, several tiles, stores that go past the caches.
static void tensors_of_many_blocks(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  layer_norm_gradient(&g, EXTENTS(700, 4096), -1, f32, 0);
  layer_norm_gradient(&g, EXTENTS(30000, 11), -1, f32, 0);
  layer_norm_gradient(&g, EXTENTS(700, 4096), -1, (Types){"bf16", "f32"}, ONLY_DIFF_SRC);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(8, 40, 64, 64), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(30, 32, 32, 48), "NXC", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(2, 3, 500, 333), "NCX", f32, 0);
  binary(&g, "Add", "f32", EXTENTS(3, 700000), "f32", EXTENTS(700000));
  unary(&g, "TypeCast", "f32", EXTENTS(1500, 2048), "bf16");
  binary(&g, "GreaterEqual", "f32", EXTENTS(3, 1 << 21), "f32", EXTENTS(1 << 21)); // booleans do not go past the caches
  climb(&g, (Climb){.name = "large"});
}

// The compiler's effort does not show in the bits: the same graph as shipped, and as the tests above compile it.
static void optimisation_does_not_change_results(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  layer_norm_gradient(&g, EXTENTS(21, 50), -1, f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(3, 5, 70), "NCX", (Types){"bf16", "f32"}, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(30, 70), "NXC", (Types){"f16", "f32"}, 0);
  batch_norm_training(&g, EXTENTS(3, 5, 70), "NCX", (Types){"f64", "f64"}, 0);
  climb(&g, (Climb){.name = "optimised", .unusual_too = true, .is_optimised = true});
}

// The sum of ones that begins with 2^24 in every dbeta of the graph: 2^24 + 1 is 2^24 in f32, so what is lost is the
// length of the first chain of additions.
static void must_keep_chains_short(Ladder *l, const Rung *r) {
  assert_int_equal(ng_kernel_run(r->kernel, l->inputs, l->outputs, 1), NG_OK);
  for (size_t k = 0; k < l->noutputs; k++) {
    const char *name = ng_graph_output(l->graph, k).name;
    size_t prefix = (size_t)(strrchr(name, '.') - name), i = 0;
    if (!name_has_role(name, "dbeta")) continue;
    while (strncmp(ng_graph_input(l->graph, i).name, name, prefix + 1) != 0 ||
           !name_has_role(ng_graph_input(l->graph, i).name, "dy"))
      i++;
    int64_t count = ng_tensor_nelems(&l->inputs[i]) / ng_tensor_nelems(&l->outputs[k]);
    double lost = 0x1p24 + (double)(count - 1) - ng_tensor_get(&l->outputs[k], 0);
    if (lost > LONGEST_CHAIN) fail_msg("%s: %g additions in a chain with %s", name, lost, r->options.isa);
  }
}

static void chains_of_additions_are_short(void **state) {
  (void)state;
  const Extents planes[] = {EXTENTS(300, 1, 49),  EXTENTS(256, 20, 63), EXTENTS(2000, 17, 7), EXTENTS(1, 1, 70000),
                            EXTENTS(40, 1, 1000), EXTENTS(1, 20, 9000), EXTENTS(9, 20, 300),  EXTENTS(2, 1, 40000)};
  const Extents rows[] = {EXTENTS(4000, 3), EXTENTS(70000, 1), EXTENTS(600, 40)};
  GraphText g;
  Ladder l;
  graph_text_init(&g);
  for (size_t i = 0; i < sizeof planes / sizeof *planes; i++)
    batch_norm_gradient(&g, "BatchNormTrainingBackward", planes[i], "NCX", f32, 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    batch_norm_gradient(&g, "BatchNormTrainingBackward", rows[i], "NXC", f32, 0);
  ladder_init(&l, &g, &(Climb){.name = "chains of additions"});
  ladder_add_rungs(&l, 0);
  ladder_compile(&l);
  ladder_fill_round(&l, &(Round){NULL, 0});
  for (size_t i = 0; i < l.ninputs; i++) {
    if (!name_has_role(ng_graph_input(l.graph, i).name, "dy")) continue;
    float *dy = l.inputs[i].data;
    for (int64_t e = 0; e < ng_tensor_nelems(&l.inputs[i]); e++) dy[e] = e ? 1 : 0x1p24F;
  }
  for (size_t i = 0; i < l.nrungs; i++) must_keep_chains_short(&l, &l.rungs[i]);
  ladder_deinit(&l);
  graph_text_deinit(&g);
}

static void move(GraphText *g, const char *op, const char *type, Extents s, const char *attributes) {
  graph_text_case(g, "%s %s %s %s", op, type, extents_text(g, s, "x"), attributes);
  const char *x = graph_text_input(g, "x", type, s), *moved = graph_text_name(g, "moved");
  graph_text_node(g, "ReLU", "inputs: [%s], outputs: [%s]", x, graph_text_name(g, "before"));
  graph_text_node(g, op, "inputs: [%s], outputs: [%s], attributes: {%s}", graph_text_name(g, "before"), moved,
                  attributes);
  graph_text_node(g, "Add", "inputs: [%s, %s], outputs: [%s]", moved, moved, graph_text_result(g, "z"));
  graph_text_node(g, op, "inputs: [%s], outputs: [%s], attributes: {%s}", x, graph_text_result(g, "alone"), attributes);
}

static void elements_move_anywhere(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  move(&g, "StaticTranspose", "f32", EXTENTS(33, 17), "order: [1, 0]");
  move(&g, "StaticTranspose", "f32", EXTENTS(16, 16), "order: [1, 0]");
  move(&g, "StaticTranspose", "bf16", EXTENTS(3, 1, 5, 31), "order: [2, 3, 1, 0]");
  move(&g, "StaticTranspose", "f64", EXTENTS(2, 3, 4, 5), "order: [0, 2, 1, 3]");
  move(&g, "StaticTranspose", "f16", EXTENTS(1, 7), "order: []");
  move(&g, "StaticTranspose", "f32", EXTENTS(0, 7), "order: []");
  move(&g, "StaticReshape", "f32", EXTENTS(3, 34), "shape: [-1, 2, 17], special_zero: false");
  move(&g, "StaticReshape", "f16", EXTENTS(4, 4), "shape: [2, 8], special_zero: false");
  move(&g, "StaticReshape", "f64", EXTENTS(1, 1), "shape: [], special_zero: false");
  move(&g, "StaticReshape", "bf16", EXTENTS(5, 0), "shape: [0, 7], special_zero: false");
  climb(&g, (Climb){.name = "movement", .unfused_too = true});
}

static void resample(GraphText *g, const char *type, Extents extents, const char *attributes) {
  graph_text_case(g, "resampling %s %s %s", type, extents_text(g, extents, "x"), attributes);
  const char *x = graph_text_input(g, "x", type, extents), *made = graph_text_result(g, "made");
  graph_text_node(g, "Interpolate", "inputs: [%s], outputs: [%s], attributes: {%s}", x, graph_text_name(g, "between"),
                  attributes);
  graph_text_node(g, "Sigmoid", "inputs: [%s], outputs: [%s]", graph_text_name(g, "between"), made);
  graph_text_node(g, "InterpolateBackward", "inputs: [%s, %s], outputs: [%s], attributes: {%s}", x, made,
                  graph_text_result(g, "back"), attributes);
}

static void tensors_are_resampled(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  resample(&g, "f32", EXTENTS(2, 3, 17), "mode: linear, sizes: [40], data_format: NCX");
  resample(&g, "f32", EXTENTS(2, 33, 7, 1), "mode: nearest, sizes: [16, 20], data_format: NCX");
  resample(&g, "bf16", EXTENTS(2, 5, 7, 17), "mode: bilinear, scales: [0.5, 3]");
  resample(&g, "f16", EXTENTS(1, 2, 3, 5, 19), "mode: trilinear, sizes: [5, 3, 19], data_format: NCX");
  resample(&g, "f64", EXTENTS(1, 2, 9),
           "mode: nearest, sizes: [4], data_format: NCX, "
           "coordinate_transformation_mode: align_corners");
  resample(&g, "f32", EXTENTS(2, 2, 4), "mode: linear, sizes: [0], data_format: NCX");
  resample(&g, "f32", EXTENTS(1, 1, 5000), "mode: linear, sizes: [4999], data_format: NCX");
  graph_text_case(&g, "gradient of one number"); // sums of the taps' shares alone do not vary along the first axis
  graph_text_node(&g, "InterpolateBackward", "inputs: [%s, %s], outputs: [%s], attributes: {mode: nearest, sizes: [9]}",
                  graph_text_input(&g, "x", "f32", EXTENTS(9, 5, 1)),
                  graph_text_splat(&g, "diff", "f32", EXTENTS(9, 16, 1), "1.5"), graph_text_result(&g, "back"));
  climb(&g, (Climb){.name = "resampling", .unfused_too = true});
}

static void parts_are_joined(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  graph_text_case(&g, "parts");
  const char *x = graph_text_input(&g, "x", "f32", EXTENTS(3, 17, 2));
  const char *y = graph_text_input(&g, "y", "f32", EXTENTS(3, 16, 2));
  const char *nothing = graph_text_input(&g, "n", "f32", EXTENTS(3, 0, 2));
  const char *row = graph_text_input(&g, "r", "bf16", EXTENTS(1));
  const char *joined = graph_text_name(&g, "joined");
  graph_text_node(&g, "Exp", "inputs: [%s], outputs: [%s]", y, graph_text_name(&g, "between"));
  graph_text_node(&g, "Concat", "inputs: [%s, %s, %s, %s], outputs: [%s], attributes: {axis: 1}", x,
                  graph_text_name(&g, "between"), nothing, x, joined);
  graph_text_node(&g, "Square", "inputs: [%s], outputs: [%s]", joined, graph_text_result(&g, "after"));
  graph_text_node(&g, "Concat", "inputs: [%s, %s], outputs: [%s], attributes: {axis: -1}", x, x,
                  graph_text_result(&g, "last"));
  graph_text_node(&g, "Concat", "inputs: [%s, %s], outputs: [%s], attributes: {axis: 0}", row, row,
                  graph_text_result(&g, "ones"));
  graph_text_node(&g, "GenIndex", "inputs: [%s], outputs: [%s], attributes: {axis: 1}", joined,
                  graph_text_result(&g, "index"));
  graph_text_node(&g, "Reorder", "inputs: [%s], outputs: [{name: %s, shape: [3, 17, 2], order: [2, 0, 1]}]", x,
                  graph_text_name(&g, "reordered"));
  graph_text_node(&g, "Reorder", "inputs: [%s], outputs: [%s]", graph_text_name(&g, "reordered"),
                  graph_text_result(&g, "again"));
  climb(&g, (Climb){.name = "parts", .unfused_too = true});
}

static void quantize(GraphText *g, const char *type, Extents extents, const char *attributes, const char *back) {
  graph_text_case(g, "quantize %s %s %s", type, extents_text(g, extents, "x"), attributes);
  const char *x = graph_text_input(g, "x", "f32", extents), *few = graph_text_result(g, "few");
  graph_text_node(g, "Quantize", "inputs: [%s], outputs: [{name: %s, type: %s}], attributes: {%s}", x, few, type,
                  attributes);
  graph_text_node(g, "Dequantize", "inputs: [%s], outputs: [%s], attributes: {%s}", few, graph_text_result(g, "back"),
                  back);
}

static void few_bits_are_enough(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  quantize(&g, "s8", EXTENTS(3, 37), "scales: [0.5], zps: [3]", "scales: [0.25]");
  quantize(&g, "u8", EXTENTS(3, 16, 2), "scales: [0.5, 0.25, 2], zps: [3, 4, 100], qtype: per_channel, axis: 0",
           "scales: [1, 2], qtype: per_channel, axis: -1");
  quantize(&g, "f8_e4m3", EXTENTS(5, 33), "scales: [0.125]", "scales: [0.125]");
  quantize(&g, "f8_e5m2", EXTENTS(1), "scales: [3]", "scales: [1]");
  quantize(&g, "s8", EXTENTS(0, 2), "scales: [1, 2], qtype: per_channel", "scales: [1]");
  graph_text_case(&g, "groups");
  const char *x = graph_text_input(&g, "x", "s8", EXTENTS(4, 34)), *z = graph_text_input(&g, "z", "u8", EXTENTS(2, 17));
  const char *s = graph_text_splat(&g, "s", "f32", EXTENTS(2, 17), "0.25");
  graph_text_node(&g, "DynamicDequantize",
                  "inputs: [%s, %s, %s], outputs: [%s], attributes: {qtype: per_group, group_shape: [2, 2]}", x, s, z,
                  graph_text_result(&g, "y"));
  climb(&g, (Climb){.name = "quantised", .unfused_too = true});
}

// Two elements a byte: rows that begin in the middle of one, blocks that would share one, columns, rests. What is
// written is random elsewhere, and all that is beyond the last element stays as it was.
static void halves_of_bytes_are_read_and_written(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int w = 0; w < NWIDTHS; w++) {
    const Extents s = EXTENTS(heights[w % NHEIGHTS], widths[w]);
    quantize(&g, w % 2 ? "s4" : "u4", s, "scales: [0.25], zps: [1]", "scales: [0.25]");
  }
  const char *const shapes[] = {"[301, 333]", "[301, 333], order: [1, 0]", "[2, 300, 167]",
                                "[2, 300, 167], order: [1, 0, 2]"};
  for (int i = 0; i < 4; i++) {
    const Extents s = i < 2 ? EXTENTS(301, 333) : EXTENTS(2, 300, 167);
    graph_text_case(&g, "channels %s", shapes[i]);
    const char *x = graph_text_input(&g, "x", "f32", s), *few = graph_text_result(&g, "few");
    const char *scales = graph_text_input(&g, "s", "f32", EXTENTS(s.extent[i % 2]));
    const char *zps = graph_text_input(&g, "z", i % 2 ? "s4" : "u4", EXTENTS(s.extent[i % 2]));
    graph_text_node(
        &g, "DynamicQuantize",
        "inputs: [%s, %s, %s], outputs: [{name: %s, type: %s, shape: %s}], attributes: {qtype: per_channel, "
        "axis: %d}",
        x, scales, zps, few, i % 2 ? "u4" : "s4", shapes[i], i % 2);
    graph_text_node(&g, "DynamicDequantize",
                    "inputs: [%s, %s, %s], outputs: [%s], attributes: {qtype: per_channel, axis: %d}", few, scales, zps,
                    graph_text_result(&g, "back"), i % 2);
  }
  graph_text_case(&g, "groups");
  const char *x = graph_text_input(&g, "x", "s4", EXTENTS(5, 33)), *z = graph_text_input(&g, "z", "s4", EXTENTS(5, 3));
  graph_text_node(&g, "DynamicDequantize",
                  "inputs: [%s, %s, %s], outputs: [%s], attributes: {qtype: per_group, group_shape: [1, 11]}", x,
                  graph_text_input(&g, "s", "f32", EXTENTS(5, 3)), z, graph_text_result(&g, "y"));
  graph_text_case(&g, "copies");
  graph_text_output(&g, graph_text_input(&g, "x", "u4", EXTENTS(7)));
  graph_text_output(&g, graph_text_splat(&g, "number", "s4", EXTENTS(3, 5), "-3"));
  graph_text_output(&g, graph_text_values(&g, "numbers", "s4", EXTENTS(3, 5)));
  graph_text_node(&g, "Dequantize", "inputs: [%s], outputs: [%s], attributes: {scales: [3]}",
                  graph_text_name(&g, "numbers"), graph_text_result(&g, "three times"));
  climb(&g, (Climb){.name = "four bits", .unfused_too = true});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layer_norm_gradient_of_any_width),
      cmocka_unit_test(layer_norm_gradient_from_any_axis),
      cmocka_unit_test(layer_norm_of_any_shape),
      cmocka_unit_test(batch_norm_gradient_of_any_plane),
      cmocka_unit_test(batch_norm_gradient_of_any_channels),
      cmocka_unit_test(batch_norm_forward_of_any_shape),
      cmocka_unit_test(norms_of_any_types),
      cmocka_unit_test(norms_without_elements),
      cmocka_unit_test(directml_gradients_of_any_statistics),
      cmocka_unit_test(elementwise_operators_of_any_length),
      cmocka_unit_test(activations_of_any_length),
      cmocka_unit_test(activations_of_any_types),
      cmocka_unit_test(activations_of_special_values),
      cmocka_unit_test(elementwise_operators_of_any_types),
      cmocka_unit_test(operands_broadcast_both_ways),
      cmocka_unit_test(operands_along_channels),
      cmocka_unit_test(choices_by_comparisons),
      cmocka_unit_test(operands_that_are_one_number),
      cmocka_unit_test(operands_that_are_constant),
      cmocka_unit_test(constants_of_any_type),
      cmocka_unit_test(outputs_that_no_node_makes),
      cmocka_unit_test(elements_are_dropped_by_place),
      cmocka_unit_test(chains_around_norms),
      cmocka_unit_test(forward_and_backward_in_one_graph),
      cmocka_unit_test(neighbours_that_do_not_fill_the_domain),
      cmocka_unit_test(regions_that_fall_apart),
      cmocka_unit_test(casts_round_inside_a_kernel),
      cmocka_unit_test(integers_saturate_at_every_step),
      cmocka_unit_test(tensors_of_many_blocks),
      cmocka_unit_test(chains_of_additions_are_short),
      cmocka_unit_test(elements_move_anywhere),
      cmocka_unit_test(tensors_are_resampled),
      cmocka_unit_test(parts_are_joined),
      cmocka_unit_test(few_bits_are_enough),
      cmocka_unit_test(halves_of_bytes_are_read_and_written),
      cmocka_unit_test(optimisation_does_not_change_results),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
