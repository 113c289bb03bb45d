// The table of costs: settings are read or refused, a value changes the decision that its row names, and schedules are
// valid with every cost at its least and at its most.
#include "passes/costs/costs.h"
#include "tests/unit/loops_case.h"

static const char relu[] = "format: ngrad/1\nname: relu\ninputs: [{name: x, type: f32, shape: [100000]}]\n"
                           "nodes: [{op: ReLU, inputs: [x], outputs: [y]}]\noutputs: [y]\n";
static const char softmax[] = "format: ngrad/1\nname: softmax\ninputs: [{name: x, type: f32, shape: [64, 40]}]\n"
                              "nodes: [{op: SoftMax, inputs: [x], outputs: [p]}, {op: SoftMax, inputs: [p], outputs: "
                              "[q]}]\noutputs: [q]\n";

static const Target target = {"scalar", 16, 32 << 10, 1 << 20, 8 << 20, 4};

static void a_setting_is_read_or_refused(void **state) {
  (void)state;
  static const struct {
    const char *setting, *message; // NULL: it is read
  } cases[] = {
      {"tile=64", NULL},
      {"tile=16777216", NULL},
      {"tile=15", "cost tile: expected tile=N with N from 16 to 16777216 (elements), found tile=15"},
      {"tile=64x", "cost tile: expected tile=N with N from 16 to 16777216 (elements), found tile=64x"},
      {"tile=", "cost tile: expected tile=N with N from 16 to 16777216 (elements), found tile="},
      {"tile", "cost tile: expected tile=N with N from 16 to 16777216 (elements), found tile"},
      {"tiles=64", "unknown cost tiles, did you mean tile"},
      {"=64", "unknown cost : ngrad passes --costs lists them"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Costs costs = usual_costs;
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    assert_int_equal(cost_override(&costs, cases[i].setting, &d), !cases[i].message);
    if (cases[i].message) assert_string_equal(d.items[0].message, cases[i].message);
    else assert_int_equal(costs.tile, strtoll(cases[i].setting + strlen("tile="), NULL, 10));
    diagnostics_deinit(&d);
  }
}

static int64_t *cost_at(Costs *costs, size_t i) {
  return (int64_t *)((char *)costs + cost_table[i].offset);
}

static void rows_are_whole(void **state) {
  (void)state;
  for (size_t i = 0; i < ncosts; i++) {
    const CostInfo *c = &cost_table[i];
    Costs usual = usual_costs;
    assert_int_equal(*cost_at(&usual, i), c->value);
    assert_true(c->least <= c->value && c->value <= c->most && c->least < c->most);
    assert_true(*c->what && *c->unit && (!c->measured || *c->measured));
  }
}

static LoopsCase read_case(const char *text) {
  LoopsCase c;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "test.yaml", text, strlen(text), NULL, &d);
  if (!g) {
    fail_msg("%s", d.items[0].message);
    abort(); // not reached, as no reader of the code can tell
  }
  loops_bind("test.yaml", g);
  diagnostics_deinit(&d);
  loops_case_init(&c, "test", g, 1);
  return c;
}

static void a_cost_decides_what_its_row_says(void **state) {
  (void)state;
  Costs costs = usual_costs;
  LoopsCase c = read_case(relu);
  c.costs = &costs;
  costs.tile = 64;
  Lowered l = loops_lower(&c, &target, false, NULL);
  assert_int_equal(l.program->schedules[0]->loops[0].cut.length, 64);
  lowered_free(&l);
  loops_case_deinit(&c);

  c = read_case(softmax);
  c.costs = &costs;
  for (costs.fusion_sums = 1; costs.fusion_sums <= 2; costs.fusion_sums++) {
    l = loops_lower(&c, &target, false, NULL);
    assert_int_equal(l.program->nkernels, 3 - costs.fusion_sums);
    lowered_free(&l);
  }
  loops_case_deinit(&c);
}

static void schedules_are_valid_with_any_cost(void **state) {
  (void)state;
  enum { GRAPHS = 4 }; // for each cost
  for (RandomSeeds s = random_seeds(ncosts * GRAPHS); random_next_seed(&s) && s.seed < ncosts * GRAPHS;) {
    const uint64_t i = s.seed;
    const RandomGraphOptions options = {.most_nodes = 10, .most_nelems = 20000, .is_focused = i % 4 != 1};
    Costs costs = usual_costs;
    LoopsCase c;
    loops_case_init_random(&c, i, &options);
    c.costs = &costs;
    *cost_at(&costs, i / GRAPHS) = i % 2 ? cost_table[i / GRAPHS].most : cost_table[i / GRAPHS].least;
    Lowered l = loops_lower(&c, &target, false, NULL);
    assert_true(pipeline_build_trees(l.program, false)); // aborts if a tree is invalid
    lowered_free(&l);
    loops_case_deinit(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_setting_is_read_or_refused),
      cmocka_unit_test(rows_are_whole),
      cmocka_unit_test(a_cost_decides_what_its_row_says),
      random_unit_test(schedules_are_valid_with_any_cost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
