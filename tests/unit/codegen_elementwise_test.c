// Compiled elementwise operators, constants and dropout against the other rungs of the ladder (ladder.h): extents
// around the lane count, all types, operands that broadcast, special values.
#include "ir/kernel/kernel.h"
#include "tests/unit/graph_cases.h"
#include "tests/unit/ladder.h"

// Elementwise operators

static const char *const binaries[] = {"Add",     "Subtract",          "Multiply",     "Divide",   "Maximum",
                                       "Minimum", "SquaredDifference", "GreaterEqual", "Less",     "Equal",
                                       "Power",   "LessEqual",         "Greater",      "NotEqual", "Mod"};
enum { NBINARIES = sizeof binaries / sizeof *binaries };

static const char *const comparisons[] = {"Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"};

static void elementwise_operators_of_any_length(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int w = 0; w < NWIDTHS; w++) {
    for (int op = w % 2; op < NBINARIES; op += 2)
      binary(&g, binaries[op], "f32", EXTENTS(all_widths[w]), "f32", EXTENTS(all_widths[w]));
    choice(&g, "f32", EXTENTS(3, all_widths[w]), EXTENTS(3, all_widths[w]), EXTENTS(3, all_widths[w]));
    unary(&g, w % 2 ? "ReLU" : "ReLUBackward", "f32", EXTENTS(all_heights[w % NHEIGHTS], all_widths[w]), "");
    unary(&g, "TypeCast", w % 2 ? "f32" : "bf16", EXTENTS(all_widths[w]), w % 2 ? "bf16" : "f32");
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
  for (int i = 0; i < NACTIVATIONS; i++) activation(&g, &activations[i], "f32", EXTENTS(3, all_widths[1 + i % 6]));
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
    if (i == 4)
      for (size_t c = 0; c < sizeof comparisons / sizeof *comparisons; c++)
        binary(&g, comparisons[c], types[i], EXTENTS(3, 21), types[i], EXTENTS(21));
    if (i == 4) unary(&g, "Neg", types[i], EXTENTS(3, 21), "");
    if (i == 4) binary(&g, "Mod", "s32", EXTENTS(3, 21), "s32", EXTENTS(21));
    if (i == 4) binary(&g, "Mod", "s64", EXTENTS(3, 21), "s64", EXTENTS(3, 1));
    if (i == 2 || i == 3) unary(&g, "TypeCast", "f64", EXTENTS(3, 21), types[i]);
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
      fail_msg("%s of %g with %s: %.9g, expected %.9g", ng_graph_output(l->graph, k).name, specials[i], rung_name(r),
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
    ladder_call(&l, &l.rungs[i], 1);
    for (size_t k = 0; k < l.noutputs; k++) must_be_near(&l, &l.rungs[i], k);
  }
  ladder_deinit(&l);
  graph_text_deinit(&g);
}

// A node selects by the result of a node that compares, in one kernel and through memory.
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

// Booleans as the results of comparisons in the same kernel, and from memory.
static void logic_of_booleans(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents shapes[][2] = {{EXTENTS(3, 37), EXTENTS(37)},
                               {EXTENTS(17), EXTENTS(5, 1)},
                               {NO_EXTENTS, EXTENTS(33)},
                               {EXTENTS(0, 3), EXTENTS(3)}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    graph_text_case(&g, "logic %zu", i);
    const char *x = graph_text_input(&g, "x", "f32", shapes[i][0]),
               *y = graph_text_input(&g, "dy", "f32", shapes[i][1]);
    const char *given = graph_text_input(&g, "cond", "boolean", shapes[i][1]);
    const char *less = graph_text_result(&g, "less"), *differs = graph_text_name(&g, "differs");
    const char *both = graph_text_name(&g, "both"), *some = graph_text_name(&g, "some");
    const char *none = graph_text_result(&g, "none");
    graph_text_node(&g, "Less", "inputs: [%s, %s], outputs: [%s]", x, y, less);
    graph_text_node(&g, "NotEqual", "inputs: [%s, %s], outputs: [%s]", x, y, differs);
    graph_text_node(&g, "LogicalAnd", "inputs: [%s, %s], outputs: [%s]", less, given, both);
    graph_text_node(&g, "LogicalOr", "inputs: [%s, %s], outputs: [%s]", both, differs, some);
    graph_text_node(&g, "LogicalNot", "inputs: [%s], outputs: [%s]", some, none);
    graph_text_node(&g, "Select", "inputs: [%s, %s, %s], outputs: [%s]", none, x, y, graph_text_result(&g, "z"));
    graph_text_node(&g, "Select", "inputs: [%s, %s, %s], outputs: [%s]", differs, x, y, graph_text_result(&g, "w"));
  }
  choice(&g, "f32", EXTENTS(2, 3, 17), EXTENTS(17), EXTENTS(3, 1)); // the condition makes the result larger
  choice(&g, "bf16", EXTENTS(5, 1), EXTENTS(33), NO_EXTENTS);
  climb(&g, (Climb){.name = "logic", .unfused_too = true, .unusual_too = true});
}

// Constants, and outputs of graphs

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

// With keys that are inputs and constants, in kernels of f32 and f64, alone, between neighbours, and as the narrower
// node of a kernel.
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
    dropout(&g, EXTENTS(all_heights[w % NHEIGHTS], all_widths[w]), "f32",
            w % 3 ? "seed, offset, p" : "seed, zero, half", w % 2);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elementwise_operators_of_any_length),
      cmocka_unit_test(activations_of_any_length),
      cmocka_unit_test(activations_of_any_types),
      cmocka_unit_test(activations_of_special_values),
      cmocka_unit_test(elementwise_operators_of_any_types),
      cmocka_unit_test(operands_broadcast_both_ways),
      cmocka_unit_test(operands_along_channels),
      cmocka_unit_test(choices_by_comparisons),
      cmocka_unit_test(logic_of_booleans),
      cmocka_unit_test(operands_that_are_one_number),
      cmocka_unit_test(operands_that_are_constant),
      cmocka_unit_test(constants_of_any_type),
      cmocka_unit_test(outputs_that_no_node_makes),
      cmocka_unit_test(elements_are_dropped_by_place),
  };
  return cmocka_run_group_tests_name("codegen_elementwise", tests, NULL, NULL);
}
