// Compiled regions of several operators against the other rungs of the ladder (ladder.h); and large tensors, with all
// kinds of blocks, chains of additions and stores.
#include "ir/kernel/kernel.h"
#include "tests/unit/graph_cases.h"
#include "tests/unit/ladder.h"

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

// The axes over which an operand of a fused operator does not vary.
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

static void integers_wrap_around_at_every_step(void **state) {
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
  graph_text_node(&g, "Multiply", "inputs: [edge, edge], outputs: [square]");
  graph_text_node(&g, "Multiply", "inputs: [square, up], outputs: [%s]", graph_text_result(&g, "cube"));
  graph_text_node(&g, "Neg", "inputs: [edge], outputs: [%s]", graph_text_result(&g, "negative"));
  climb(&g, (Climb){.name = "s32", .unfused_too = true});
}

// Numbers of s64 meet with floats in casts and in booleans only, so that they are in kernels of their own.
static void integers_of_64_bits_are_exact(void **state) {
  (void)state;
  static const char *const extents[][2] = {
      {"[3, 37]", "[37]"}, {"[2, 1, 16]", "[5, 1]"}, {"[0, 3]", "[1]"}, {"[]", "[]"}};
  GraphText g;
  graph_text_init(&g);
  text_add_string(&g.constants, "  - {name: odd, type: s64, shape: [], value: 9007199254740993}\n"
                                "  - {name: least, type: s64, shape: [], value: -9223372036854775808}\n");
  for (int i = 0; i < 4; i++) {
    graph_text_case(&g, "s64 %d", i);
    text_format(&g.inputs, "  - {name: a%d, type: s64, shape: %s}\n", i, extents[i][0]);
    text_format(&g.inputs, "  - {name: b%d, type: s64, shape: %s}\n", i, extents[i][1]);
    text_format(&g.inputs, "  - {name: f%d, type: f32, shape: %s}\n", i, extents[i][1]);
    graph_text_node(&g, "Multiply", "inputs: [a%d, odd], outputs: [large%d]", i, i);
    graph_text_node(&g, "Multiply", "inputs: [large%d, large%d], outputs: [%s]", i, i, graph_text_result(&g, "square"));
    graph_text_node(&g, "Subtract", "inputs: [large%d, b%d], outputs: [less%d]", i, i, i);
    graph_text_node(&g, "Neg", "inputs: [less%d], outputs: [negative%d]", i, i);
    graph_text_node(&g, "Maximum", "inputs: [negative%d, least], outputs: [greater%d]", i, i);
    graph_text_node(&g, "Minimum", "inputs: [greater%d, odd], outputs: [%s]", i, graph_text_result(&g, "within"));
    graph_text_node(&g, "Greater", "inputs: [less%d, large%d], outputs: [is%d]", i, i, i);
    graph_text_node(&g, "Select", "inputs: [is%d, less%d, b%d], outputs: [%s]", i, i, i,
                    graph_text_result(&g, "chosen"));
    graph_text_node(&g, "TypeCast", "inputs: [less%d], outputs: [{name: real%d, type: f32}]", i, i);
    graph_text_node(&g, "Select", "inputs: [is%d, real%d, f%d], outputs: [%s]", i, i, i,
                    graph_text_result(&g, "mixed"));
  }
  climb(&g, (Climb){.name = "s64", .unfused_too = true});
}

// Sizes

// Beyond the caches: several blocks, several tiles, stores that go past the caches.
static void tensors_of_many_blocks(void **state) {
  (void)state;
  if (!takes_all()) skip(); // the executor takes them as loops_execute_test.c does
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
  ladder_call(l, r, 1);
  for (size_t k = 0; k < l->noutputs; k++) {
    const char *name = ng_graph_output(l->graph, k).name;
    size_t prefix = (size_t)(strrchr(name, '.') - name), i = 0;
    if (!name_has_role(name, "dbeta")) continue;
    while (strncmp(ng_graph_input(l->graph, i).name, name, prefix + 1) != 0 ||
           !name_has_role(ng_graph_input(l->graph, i).name, "dy"))
      i++;
    int64_t count = ng_tensor_nelems(&l->inputs[i]) / ng_tensor_nelems(&l->outputs[k]);
    double lost = 0x1p24 + (double)(count - 1) - ng_tensor_get(&l->outputs[k], 0);
    if (lost > LONGEST_CHAIN) fail_msg("%s: a chain of at least %g f32 additions with %s", name, lost, rung_name(r));
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chains_around_norms),
      cmocka_unit_test(forward_and_backward_in_one_graph),
      cmocka_unit_test(neighbours_that_do_not_fill_the_domain),
      cmocka_unit_test(regions_that_fall_apart),
      cmocka_unit_test(casts_round_inside_a_kernel),
      cmocka_unit_test(integers_wrap_around_at_every_step),
      cmocka_unit_test(integers_of_64_bits_are_exact),
      cmocka_unit_test(tensors_of_many_blocks),
      cmocka_unit_test(chains_of_additions_are_short),
      cmocka_unit_test(optimisation_does_not_change_results),
  };
  return cmocka_run_group_tests_name("codegen_fusion", tests, NULL, NULL);
}
