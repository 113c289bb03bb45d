// Compiled group, instance and RMS norms and their gradients against the other rungs of the ladder (ladder.h): both
// formats, groups of any width, all types, with and without fused neighbours.
#include "tests/unit/graph_cases.h"
#include "tests/unit/ladder.h"

// groups 0: an instance norm.
static Extents statistics_of(Extents s, const char *format, int groups) {
  return EXTENTS(s.extent[0], groups ? groups : channels_of(s, format).extent[0]);
}

static const char *group_attributes(GraphText *g, const char *format, int groups) {
  return groups ? arena_format(&g->arena, "data_format: %s, groups: %d", format, groups)
                : arena_format(&g->arena, "data_format: %s", format);
}

static void group_norm(GraphText *g, Extents s, const char *format, int groups, Types t, unsigned how) {
  const char *op = groups ? "GroupNorm" : "InstanceNorm";
  graph_text_case(g, "%zu: %s %s %s %d %s %s %u", g->nodes.nbytes, op, extents_text(g, s, "x"), format, groups, t.data,
                  t.statistics, how);
  const char *x = graph_text_input(g, how & FAR ? "x far" : "x", t.data, s), *dst = graph_text_result(g, "dst");
  const char *attributes = group_attributes(g, format, groups);
  Extents channels = channels_of(s, format);
  if (how & NO_GAMMA)
    graph_text_node(g, op, "inputs: [%s], outputs: [%s], attributes: {%s, use_affine: false, keep_stats: false}", x,
                    dst, attributes);
  else
    graph_text_node(g, op, "inputs: [%s, %s, %s], outputs: [%s, %s, %s], attributes: {%s}", x,
                    graph_text_input(g, "gamma", t.statistics, channels),
                    graph_text_input(g, "beta", t.statistics, channels), dst, graph_text_result(g, "mean"),
                    graph_text_result(g, "variance"), attributes);
}

static void group_norm_gradient(GraphText *g, Extents s, const char *format, int groups, Types t, unsigned how) {
  const char *op = groups ? "GroupNormBackward" : "InstanceNormBackward";
  graph_text_case(g, "%zu: %s %s %s %d %s %s %u", g->nodes.nbytes, op, extents_text(g, s, "x"), format, groups, t.data,
                  t.statistics, how);
  const char *x = graph_text_input(g, how & FAR ? "x far" : "x", t.data, s), *dy = graph_text_input(g, "dy", t.data, s);
  const char *mean =
      graph_text_input(g, how & FAR ? "mean far" : "mean", t.statistics, statistics_of(s, format, groups));
  const char *variance = graph_text_input(g, "variance", t.statistics, statistics_of(s, format, groups));
  const char *attributes = group_attributes(g, format, groups), *dx = graph_text_result(g, "dx");
  if (how & NO_GAMMA)
    graph_text_node(g, op, "inputs: [%s, %s, %s, %s], outputs: [%s], attributes: {%s, use_affine: false}", x, dy, mean,
                    variance, dx, attributes);
  else
    graph_text_node(g, op, "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s], attributes: {%s}", x, dy, mean,
                    variance, graph_text_input(g, "gamma", t.statistics, channels_of(s, format)), dx,
                    graph_text_result(g, "dgamma"), graph_text_result(g, "dbeta"), attributes);
}

static void both(GraphText *g, Extents s, const char *format, int groups, Types t, unsigned how) {
  group_norm(g, s, format, groups, t, how);
  group_norm_gradient(g, s, format, groups, t, how);
}

static void group_norms_of_any_groups(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  both(&g, EXTENTS(3, 6, 17), "NCX", 1, f32, 0);
  both(&g, EXTENTS(3, 6, 17), "NCX", 2, f32, 0);
  both(&g, EXTENTS(3, 6, 17), "NCX", 6, f32, NO_GAMMA);
  both(&g, EXTENTS(2, 8, 5, 13), "NCX", 4, f32, 0);
  both(&g, EXTENTS(2, 5, 5, 40), "NXC", 2, f32, 0);
  both(&g, EXTENTS(2, 5, 40), "NXC", 40, f32, 0);
  both(&g, EXTENTS(2, 33, 34), "NXC", 2, f32, NO_GAMMA);
  both(&g, EXTENTS(5, 12), "NCX", 3, f32, 0); // no space
  both(&g, EXTENTS(5, 1, 20), "NCX", 1, f32, 0);
  both(&g, EXTENTS(1, 4, 3000), "NCX", 2, f32, FAR);
  both(&g, EXTENTS(2, 64, 100), "NCX", 32, f32, 0);
  both(&g, EXTENTS(2, 2, 2, 1, 2, 3, 4, 6), "NXC", 3, f32, 0); // rank 8, 9 axes
  both(&g, EXTENTS(2, 6, 2, 1, 2, 3, 4, 2), "NCX", 3, f32, 0);
  both(&g, EXTENTS(1, 2, 40000), "NCX", 1, f32, 0);
  climb(&g, (Climb){.name = "group norms", .unusual_too = true, .is_misaligned = true});
}

// Forwards that split-groups takes by channel, and gradients beside them.
static void group_norms_with_channels_last(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NTYPES; i++) both(&g, EXTENTS(2, 9, 15, 12), "NXC", 4, all_types[i], 0);
  both(&g, EXTENTS(2, 9, 15, 12), "NXC", 4, f32, FAR);
  both(&g, EXTENTS(3, 130, 40), "NXC", 4, f32, NO_GAMMA);
  both(&g, EXTENTS(1, 1030, 132), "NXC", 2, f32, 0); // wide groups
  both(&g, EXTENTS(0, 130, 12), "NXC", 4, f32, 0);
  const Extents s = EXTENTS(2, 144, 20), channels = EXTENTS(20);
  graph_text_case(&g, "behind a sum and before a ReLU");
  const char *x = graph_text_input(&g, "x", "f32", s), *sum = graph_text_result(&g, "sum"),
             *y = graph_text_name(&g, "y");
  graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", x, graph_text_input(&g, "skip", "f32", s), sum);
  graph_text_node(&g, "GroupNorm",
                  "inputs: [%s, %s, %s], outputs: [%s], attributes: {data_format: NXC, groups: 4, keep_stats: false}",
                  sum, graph_text_input(&g, "gamma", "f32", channels), graph_text_input(&g, "beta", "f32", channels),
                  y);
  graph_text_node(&g, "ReLU", "inputs: [%s], outputs: [%s]", y, graph_text_result(&g, "z"));
  climb(&g, (Climb){.name = "group norms with channels last", .unusual_too = true, .unfused_too = true});
}

static void instance_norms_of_any_plane(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  both(&g, EXTENTS(3, 6, 17), "NCX", 0, f32, 0);
  both(&g, EXTENTS(40, 3, 300), "NCX", 0, f32, FAR);
  both(&g, EXTENTS(3, 5, 1, 33), "NXC", 0, f32, 0);
  both(&g, EXTENTS(16, 8), "NXC", 0, f32, 0); // nothing to sum: all cancels but epsilon
  both(&g, EXTENTS(1, 1, 5000), "NCX", 0, f32, 0);
  both(&g, EXTENTS(2, 4, 9, 9), "NCX", 0, f32, NO_GAMMA);
  climb(&g, (Climb){.name = "instance norms", .unusual_too = true});
}

static void rms_norm(GraphText *g, Extents s, int begin, Types t, Extents gamma, unsigned how) {
  graph_text_case(g, "%zu: RMSNorm %s at %d %s by %s %s %u", g->nodes.nbytes, extents_text(g, s, "x"), begin, t.data,
                  extents_text(g, gamma, "x"), t.statistics, how);
  const char *x = graph_text_input(g, "x", t.data, s), *dy = graph_text_input(g, "dy", t.data, s);
  const char *weight = how & NO_GAMMA ? "~" : graph_text_input(g, "gamma", t.statistics, gamma);
  graph_text_node(g, "RMSNorm", "inputs: [%s, %s], outputs: [%s], attributes: {begin_norm_axis: %d}", x, weight,
                  graph_text_result(g, "dst"), begin);
  const char *dx = graph_text_result(g, "dx");
  const char *dgamma =
      how & (NO_GAMMA | ONLY_DIFF_SRC) ? "" : arena_format(&g->arena, ", %s", graph_text_result(g, "dgamma"));
  graph_text_node(g, "RMSNormBackward", "inputs: [%s, %s, %s], outputs: [%s%s], attributes: {begin_norm_axis: %d}", x,
                  dy, weight, dx, dgamma, begin);
}

static void rms_norms_with_any_gamma(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  static const int64_t widths[] = {1, 15, 16, 17, 33, 300, 5000};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    rms_norm(&g, EXTENTS(i % 2 ? 37 : 4, widths[i]), -1, f32, EXTENTS(widths[i]), 0);
  rms_norm(&g, EXTENTS(5, 40), -1, f32, NO_EXTENTS, 0);
  rms_norm(&g, EXTENTS(5, 40), -1, f32, EXTENTS(5, 1), 0);
  rms_norm(&g, EXTENTS(5, 40), -1, f32, EXTENTS(5, 40), 0);
  rms_norm(&g, EXTENTS(5, 40), 0, f32, EXTENTS(40), ONLY_DIFF_SRC);
  rms_norm(&g, EXTENTS(3, 4, 20), -2, f32, EXTENTS(20), ONLY_DIFF_SRC);
  rms_norm(&g, EXTENTS(3, 4, 20), -2, f32, EXTENTS(3, 1, 1), 0);
  rms_norm(&g, EXTENTS(3, 4, 20), -1, f32, EXTENTS(4, 20), 0);
  rms_norm(&g, EXTENTS(3, 4, 20), -1, f32, NO_EXTENTS, NO_GAMMA);
  rms_norm(&g, EXTENTS(3, 4, 20), -2, f32, EXTENTS(4, 20), ONLY_DIFF_SRC);
  rms_norm(&g, EXTENTS(70000), 0, f32, EXTENTS(70000), 0);
  climb(&g, (Climb){.name = "rms norms", .unusual_too = true, .is_misaligned = true});
}

static void norms_of_any_types_and_of_nothing(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NTYPES; i++) {
    both(&g, EXTENTS(3, 4, 37), "NCX", 2, all_types[i], 0);
    both(&g, EXTENTS(3, 5, 20), "NXC", 0, all_types[i], 0);
    rms_norm(&g, EXTENTS(21, 50), -1, all_types[i], EXTENTS(50), 0);
  }
  rms_norm(&g, EXTENTS(21, 50), -1, (Types){"f16", "f16"}, EXTENTS(50), 0);
  both(&g, EXTENTS(0, 4, 37), "NCX", 2, f32, 0);
  both(&g, EXTENTS(3, 4, 0), "NCX", 2, f32, 0);
  both(&g, EXTENTS(3, 0, 4), "NXC", 0, f32, 0);
  rms_norm(&g, EXTENTS(0, 5), -1, f32, EXTENTS(5), 0);
  rms_norm(&g, EXTENTS(5, 0), -1, f32, EXTENTS(5, 1), 0);
  climb(&g, (Climb){.name = "group norm types", .unusual_too = true});
}

// Nodes before and after the norm have an axis of all channels.
static void neighbours_of_group_norms(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents s = EXTENTS(3, 6, 17);
  graph_text_case(&g, "residual");
  const char *x = graph_text_input(&g, "x", "f32", s), *sum = graph_text_name(&g, "sum"), *y = graph_text_name(&g, "y");
  graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", x, graph_text_input(&g, "dy", "f32", EXTENTS(6, 1)),
                  sum);
  graph_text_node(&g, "GroupNorm",
                  "inputs: [%s, %s, %s], outputs: [%s], attributes: {data_format: NCX, groups: 3, keep_stats: false}",
                  sum, graph_text_input(&g, "gamma", "f32", EXTENTS(6)),
                  graph_text_input(&g, "beta", "f32", EXTENTS(6)), y);
  graph_text_node(&g, "ReLU", "inputs: [%s], outputs: [%s]", y, graph_text_result(&g, "z"));
  graph_text_case(&g, "behind a ReLU");
  const char *dy = graph_text_input(&g, "dy", "f32", s), *masked = graph_text_name(&g, "masked");
  x = graph_text_input(&g, "x", "f32", s);
  graph_text_node(&g, "ReLUBackward", "inputs: [%s, %s], outputs: [%s]", graph_text_input(&g, "mask", "f32", s), dy,
                  masked);
  graph_text_node(&g, "GroupNormBackward",
                  "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s], attributes: {data_format: NCX, groups: 3}", x,
                  masked, graph_text_input(&g, "mean", "f32", EXTENTS(3, 3)),
                  graph_text_input(&g, "variance", "f32", EXTENTS(3, 3)),
                  graph_text_input(&g, "gamma", "f32", EXTENTS(6)), graph_text_result(&g, "dx"),
                  graph_text_result(&g, "dgamma"), graph_text_result(&g, "dbeta"));
  graph_text_case(&g, "between a ReLU and a sum");
  dy = graph_text_input(&g, "dy", "f32", EXTENTS(4, 6, 70));
  x = graph_text_input(&g, "x", "f32", EXTENTS(4, 6, 70));
  masked = graph_text_name(&g, "masked");
  const char *dx = graph_text_name(&g, "dx"), *dsum = graph_text_result(&g, "dsum");
  graph_text_node(&g, "ReLUBackward", "inputs: [%s, %s], outputs: [%s]",
                  graph_text_input(&g, "mask", "f32", EXTENTS(4, 6, 70)), dy, masked);
  graph_text_node(&g, "GroupNormBackward",
                  "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s], attributes: {data_format: NCX, groups: 2}", x,
                  masked, graph_text_input(&g, "mean", "f32", EXTENTS(4, 2)),
                  graph_text_input(&g, "variance", "f32", EXTENTS(4, 2)),
                  graph_text_input(&g, "gamma", "f32", EXTENTS(6)), dx, graph_text_result(&g, "dgamma"),
                  graph_text_result(&g, "dbeta"));
  graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", dx,
                  graph_text_input(&g, "skip", "f32", EXTENTS(4, 6, 70)), dsum);
  graph_text_node(&g, "BiasAddBackward", "inputs: [%s], outputs: [%s], attributes: {data_format: NCX}", dsum,
                  graph_text_result(&g, "dbias")); // sums over planes in the second sweep, too
  climb(&g, (Climb){.name = "group norm neighbours", .unusual_too = true, .unfused_too = true});
}

// Sums over any axes of a gradient whose channels its own kernel sees in two axes.
static void sums_behind_group_norms(void **state) {
  (void)state;
  static const struct {
    const char *op, *attributes;
  } sums[] = {{"ReduceSum", "axes: [0]"},       {"ReduceSum", "axes: [1]"},    {"ReduceSum", "axes: [3]"},
              {"ReduceSum", "axes: [1, 2, 3]"}, {"ReduceSum", "axes: [2, 3]"}, {"ReduceSum", "axes: [0, 2, 3]"},
              {"ReduceMax", "axes: [2]"},       {"SoftMax", "axis: 1"},        {"SoftMax", "axis: 3"}};
  const Extents shapes[] = {EXTENTS(2, 8, 5, 13), EXTENTS(2, 8, 1, 13), EXTENTS(1, 8, 5, 13)};
  GraphText g;
  graph_text_init(&g);
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++)
      for (int groups = 1; groups <= 4; groups += 3) {
        const Extents s = shapes[n], rows = EXTENTS(s.extent[0], groups);
        graph_text_case(&g, "%s %s %zu %d", sums[i].op, sums[i].attributes, n, groups);
        const char *dx = graph_text_result(&g, "dx");
        graph_text_node(&g, "GroupNormBackward",
                        "inputs: [%s, %s, %s, %s], outputs: [%s], attributes: {data_format: NCX, groups: %d, "
                        "use_affine: false}",
                        graph_text_input(&g, "x", "f32", s), graph_text_input(&g, "dy", "f32", s),
                        graph_text_input(&g, "mean", "f32", rows), graph_text_input(&g, "variance", "f32", rows), dx,
                        groups);
        graph_text_node(&g, sums[i].op, "inputs: [%s], outputs: [%s], attributes: {%s}", dx,
                        graph_text_result(&g, "sum"), sums[i].attributes);
      }
  climb(&g, (Climb){.name = "sums behind group norms"});
}

// Every operand in turn as one number, which varies over no axis.
static void operands_that_are_one_number(void **state) {
  (void)state;
  enum { OPERANDS = 5 };
  GraphText g;
  graph_text_init(&g);
  for (int is_last = 0; is_last < 2; is_last++) {
    const Extents s = is_last ? EXTENTS(5, 7, 6) : EXTENTS(5, 6, 7), rows = EXTENTS(5, 2), channels = EXTENTS(6);
    for (unsigned which = 1 + (unsigned)is_last; which < 1U << OPERANDS; which += 2) { // each format takes half of them
      static const char *const roles[OPERANDS] = {"x", "dy", "mean", "variance", "gamma"};
      const char *names[OPERANDS];
      graph_text_case(&g, "%d %u", is_last, which);
      for (int i = 0; i < OPERANDS; i++) {
        Extents own = i < 2 ? s : i < 4 ? rows : channels;
        names[i] = which >> i & 1 ? graph_text_splat(&g, roles[i], "f32", own, "0.75")
                                  : graph_text_input(&g, roles[i], "f32", own);
      }
      graph_text_node(&g, "GroupNormBackward",
                      "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s], attributes: {groups: 2, data_format: %s}",
                      names[0], names[1], names[2], names[3], names[4], graph_text_result(&g, "dx"),
                      graph_text_result(&g, "dgamma"), graph_text_result(&g, "dbeta"), is_last ? "NXC" : "NCX");
      if (which & 12 || (which & 19) == 19) continue; // it has no statistics; of equal numbers only epsilon is left
      graph_text_node(&g, "RMSNormBackward",
                      "inputs: [%s, %s, %s], outputs: [%s, %s], attributes: {begin_norm_axis: %d}", names[0], names[1],
                      which >> 4 & 1 ? graph_text_splat(&g, "weight", "f32", EXTENTS(s.extent[2]), "0.75")
                                     : graph_text_input(&g, "weight", "f32", EXTENTS(s.extent[2])),
                      graph_text_result(&g, "dx_rms"), graph_text_result(&g, "dweight"), -1);
    }
  }
  climb(&g, (Climb){.name = "group norm splats", .unusual_too = true});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(group_norms_of_any_groups),         cmocka_unit_test(group_norms_with_channels_last),
      cmocka_unit_test(instance_norms_of_any_plane),       cmocka_unit_test(rms_norms_with_any_gamma),
      cmocka_unit_test(norms_of_any_types_and_of_nothing), cmocka_unit_test(neighbours_of_group_norms),
      cmocka_unit_test(operands_that_are_one_number),      cmocka_unit_test(sums_behind_group_norms),
  };
  return cmocka_run_group_tests_name("codegen_group_norm", tests, NULL, NULL);
}
