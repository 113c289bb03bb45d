// The seeds of a test's random graphs. If the test fails at one of them, its seed and its graph are printed, and the
// command that takes it again:
//
//   for (RandomSeeds s = random_seeds(100); random_next_seed(&s);) { ... random_graph(..., s.seed, ...) ... }
//   random_unit_test(name_of_the_test)
#ifndef NGRAD_TESTS_RANDOM_SEEDS_H
#define NGRAD_TESTS_RANDOM_SEEDS_H

#include "frontend/yaml/yaml.h"
#include "tests/random_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct RandomSeeds {
  uint64_t seed, end;
  bool has_begun;
} RandomSeeds;

// `count` seeds from 0 on. NGRAD_RANDOM_SEED sets the first one, NGRAD_RANDOM_GRAPHS their number.
static inline RandomSeeds random_seeds(uint64_t count) {
  const uint64_t first = number_from("NGRAD_RANDOM_SEED", 0);
  return (RandomSeeds){first, first + number_from("NGRAD_RANDOM_GRAPHS", count), false};
}

// Whether the seeds are those that the test usually takes, so that it may expect of all graphs what one need not have.
static inline bool random_seeds_are_usual(void) {
  return !getenv("NGRAD_RANDOM_SEED") && !getenv("NGRAD_RANDOM_GRAPHS");
}

static inline bool random_next_seed(RandomSeeds *s) {
  s->seed += s->has_begun;
  s->has_begun = true;
  random_at_work()->has_graph = false;
  return s->seed < s->end;
}

// Prints the graph at work, if there is one.
static inline void random_tell(void) {
  extern char *program_invocation_name;
  const RandomAtWork w = *random_at_work();
  if (!w.has_graph) return;
  Diagnostics d;
  Text text;
  diagnostics_init(&d, &system_allocator);
  text_init(&text, &system_allocator);
  Graph *g = random_graph(&system_allocator, w.seed, &w.options, &d);
  random_at_work()->has_graph = false;
  if (g) yaml_print(g, &text);
  print_error("seed %llu:\n%sagain: NGRAD_RANDOM_SEED=%llu NGRAD_RANDOM_GRAPHS=1 %s\n", (unsigned long long)w.seed,
              text_string(&text), (unsigned long long)w.seed, program_invocation_name);
  text_deinit(&text);
  diagnostics_deinit(&d);
  graph_free(g);
}

// With a graph at work, the test has failed.
static inline int random_teardown(void **state) {
  (void)state;
  random_tell();
  return 0;
}

#define random_unit_test(f) cmocka_unit_test_teardown(f, random_teardown)

#endif
