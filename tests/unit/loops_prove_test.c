// The verifier accepts the loop trees of many graphs, with literal and open extents, and they compute what their
// kernels' references do (ir/loops/prove.h).
#include "ir/loops/prove.h"
#include "tests/unit/loop_trees.h"

enum { STEPS = 1 << 22 };
static int64_t most_steps; // of a program's proof

// For calls that want all outputs, and for those that may leave out any. Building verifies.
static void prove(Lowered *l, const char *what) {
  for (int is_optional = 0; is_optional < 2 && l->p; is_optional++) {
    Text why;
    int64_t nsteps = most_steps;
    text_init(&why, &system_allocator);
    if (!pipeline_build_trees(l->p, is_optional)) fail_msg("%s: %s", what, l->p->unsound);
    if (!program_prove(l->p, &nsteps, &why)) fail_msg("%s: %s", what, text_string(&why));
    text_deinit(&why);
  }
}

static void trees_of_files_are_proved(void **state) {
  static const char *const patterns[] = {"tests/golden/*/*.yaml", "models/*.yaml", "models/bench/*.yaml",
                                         "tests/fuzz/corpus/*.yaml"};
  (void)state;
  most_steps = STEPS;
  for (int code = 0; code < 2; code++) {
    code_of_trees = code ? CODE_SMALL : CODE_OF_ISAS;
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) assert_true(with_trees_of(patterns[p], prove) > 1);
  }
}

// A few of the random trees are proved at other values of open dims, too.
static void random_trees_are_proved(void **state) {
  (void)state;
  const uint64_t count = number_of_graphs(1500);
  size_t nopen = 0;
  for (RandomSeeds s = random_seeds(count); random_next_seed(&s);) {
    code_of_trees = (CodeForm)(s.seed % 3); // each form
    most_steps = s.seed % 7 ? 0 : STEPS;
    nopen += with_random_trees(s.seed, prove);
  }
  assert_true(nopen >= count / 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(trees_of_files_are_proved),
      random_unit_test(random_trees_are_proved),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
