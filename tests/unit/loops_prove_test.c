// Loop trees of many graphs compute what their kernels' references do (ir/loops/prove.h), with literal and open
// extents.
#include "ir/loops/prove.h"
#include "tests/random_seeds.h"
#include "tests/unit/loop_trees.h"

#include <glob.h>

enum { STEPS = 1 << 22 };

// For calls that want all outputs, and for those that may leave out any.
static void prove(Lowered *l, const char *what) {
  for (int is_optional = 0; is_optional < 2 && l->p; is_optional++) {
    Text why;
    int64_t nsteps = STEPS;
    text_init(&why, &system_allocator);
    if (!pipeline_build_trees(l->p, is_optional)) fail_msg("%s: %s", what, l->p->unsound);
    if (!program_prove(l->p, &nsteps, &why)) fail_msg("%s: %s", what, text_string(&why));
    text_deinit(&why);
  }
}

static void trees_of_files_are_proved(void **state) {
  static const char *const patterns[] = {"tests/golden/*/*.yaml", "models/*.yaml", "tests/fuzz/corpus/*.yaml"};
  (void)state;
  for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
    glob_t files = {0};
    assert_int_equal(glob(patterns[p], 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++)
      for (int way = 0; way < 4; way++) {
        Lowered l;
        begin(&l);
        l.code = way / 2 ? CODE_SMALL : CODE_OF_ISAS;
        lower_graph(&l, yaml_read_file(&system_allocator, files.gl_pathv[i], NULL, &l.d), way % 2, false);
        prove(&l, files.gl_pathv[i]);
        deinit(&l);
      }
    globfree(&files);
  }
}

static void random_trees_are_proved(void **state) {
  (void)state;
  for (RandomSeeds s = random_seeds(number_of_graphs(200)); random_next_seed(&s);) {
    const RandomGraphOptions options = {
        .most_nodes = 16, .most_nelems = s.seed % 3 ? 2000 : 20000, .is_focused = s.seed % 5 == 0};
    Lowered l;
    char what[32];
    begin(&l);
    l.code = (CodeForm)(s.seed % 3); // each form
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)s.seed);
    lower_graph(&l, random_graph(&system_allocator, s.seed, &options, &l.d), s.seed % 2, s.seed % 8 == 7);
    prove(&l, what);
    deinit(&l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(trees_of_files_are_proved),
      random_unit_test(random_trees_are_proved),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
