// Compiled optimizers against the other rungs of the ladder (ladder.h): extents around the lane count, all types, fused
// with the product that computes the gradient, and with a step that the graph counts.
#include "tests/unit/graph_cases.h"
#include "tests/unit/ladder.h"

typedef struct Update {
  const char *op, *attributes;
  int nstates;
  bool has_step;
} Update;

static const Update updates[] = {
    {"SGD", "", 0, false},
    {"SGD", "weight_decay: 0.01", 0, false},
    {"Momentum", "momentum: 0.9", 1, false},
    {"Momentum", "momentum: 0.9, dampening: 0.5, nesterov: true, weight_decay: 0.1", 1, false},
    {"Adam", "", 2, true},
    {"Adam", "beta1: 0.5, beta2: 0.75, epsilon: 1.0e-3, weight_decay: 0.1", 2, true},
    {"AdamW", "", 2, true},
    {"AdamW", "beta1: 0, weight_decay: 0", 2, true},
    {"Adagrad", "", 1, true},
    {"Adagrad", "lr_decay: 0.25, weight_decay: 0.1", 1, true},
};
enum { NUPDATES = sizeof updates / sizeof *updates };

// A node that updates the weights x by the gradient `diff`.
static void add_update(GraphText *g, const Update *u, const char *type, Extents s, const char *diff, const char *step) {
  const char *state = strcmp(type, "f64") == 0 ? "f64" : "f32";
  const char *inputs = arena_format(&g->arena, "%s, %s", graph_text_input(g, "x", type, s), diff);
  const char *outputs = graph_text_result(g, "w");
  for (int i = 0; i < u->nstates; i++) {
    const char *role = arena_format(&g->arena, "s%d", i);
    inputs = arena_format(&g->arena, "%s, %s", inputs, graph_text_input(g, role, state, s));
    outputs = arena_format(&g->arena, "%s, %s", outputs, graph_text_result(g, arena_format(&g->arena, "n%d", i)));
  }
  inputs = arena_format(&g->arena, "%s, %s", inputs, graph_text_input(g, "rate", "f32", NO_EXTENTS));
  if (u->has_step) inputs = arena_format(&g->arena, "%s, %s", inputs, step);
  graph_text_node(g, u->op, "inputs: [%s], outputs: [%s], attributes: {%s}", inputs, outputs, u->attributes);
}

static void update(GraphText *g, const Update *u, const char *type, Extents s, const char *type_of_step) {
  graph_text_case(g, "%s %s %s %s %s", u->op, u->attributes, type, extents_text(g, s, "x"), type_of_step);
  const char *diff = graph_text_input(g, "dy", type, s);
  add_update(g, u, type, s, diff, u->has_step ? graph_text_input(g, "step", type_of_step, NO_EXTENTS) : "");
}

static void weights_of_any_shape(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NUPDATES; i++) {
    const char *type_of_step = i % 2 ? "s32" : "s64";
    update(&g, &updates[i], "f32", EXTENTS(all_widths[i % NWIDTHS]), type_of_step);
    update(&g, &updates[i], "f32", EXTENTS(all_heights[i % NHEIGHTS], 3, all_widths[(i + 3) % 7]), type_of_step);
  }
  update(&g, &updates[4], "f32", NO_EXTENTS, "s64");
  update(&g, &updates[4], "f32", EXTENTS(3, 0), "s32");
  climb(&g, (Climb){.name = "weights", .is_misaligned = true});
}

static void weights_of_any_type(void **state) {
  (void)state;
  static const char *const types[] = {"bf16", "f16", "f64"};
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NUPDATES; i++) update(&g, &updates[i], types[i % 3], EXTENTS(3, 21), i % 2 ? "s64" : "s32");
  climb(&g, (Climb){.name = "types of weights"});
}

// The step is the graph's own, and the gradient comes from a product, which the update may join.
static void weights_of_a_product(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  text_add_string(&g.inputs, "  - {name: step, type: s32, shape: []}\n");
  text_add_string(&g.constants, "  - {name: one, type: s32, shape: [], value: 1}\n");
  graph_text_node(&g, "Add", "inputs: [step, one], outputs: [next]");
  graph_text_output(&g, "next");
  for (int i = 0; i < NUPDATES; i++) {
    graph_text_case(&g, "%s %s of a product", updates[i].op, updates[i].attributes);
    const char *x = graph_text_input(&g, "a", "f32", EXTENTS(37, 5)), *diff = graph_text_name(&g, "diff");
    graph_text_node(&g, "MatMul", "inputs: [%s, %s], outputs: [%s], attributes: {transpose_a: true}", x,
                    graph_text_input(&g, "b", "f32", EXTENTS(37, 33)), diff);
    add_update(&g, &updates[i], "f32", EXTENTS(5, 33), diff, "next");
  }
  climb(&g, (Climb){.name = "products of weights", .unfused_too = true});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_of_any_shape),
      cmocka_unit_test(weights_of_any_type),
      cmocka_unit_test(weights_of_a_product),
  };
  return cmocka_run_group_tests_name("codegen_optimizer", tests, NULL, NULL);
}
