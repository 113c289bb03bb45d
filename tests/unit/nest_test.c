// Nests of loops, in the words of nest_print.
#include "ir/kernel/nest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N, H, W, C, K };

typedef struct Case {
  Loop loop;
  const char *nest;
} Case;

static const Case cases[] = {
    // A row norm: lanes are innermost, and 4 accumulators make runs of 24 * 16 * 4 elements.
    {{.axes = {N, C}, .nouter = 1, .ninner = 1, .block = 8, .rows = 1, .accumulators = 4, .totals = TYPE_F64},
     "cut n by 8; serial n; step: runs c by 1536; lanes c by 16 x 4"},
    // Sums over two axes: 3 vectors of w are an iteration's chain, so that 8 iterations of h make a run.
    {{.axes = {N, C, H, W},
      .nouter = 2,
      .nfree = 1,
      .ninner = 2,
      .block = 8,
      .rows = 2,
      .accumulators = 1,
      .totals = TYPE_F64},
     "free n; cut c by 8; rows c by 2; step: runs h by 8; serial h; lanes w by 16"},
    // The same, nested: sums over w end in each iteration of h.
    {{.axes = {N, H, W},
      .nouter = 1,
      .ninner = 2,
      .block = 8,
      .rows = 1,
      .accumulators = 1,
      .totals = TYPE_F64,
      .is_nested = true},
     "cut n by 8; serial n; step: serial h; lanes w by 16"},
    // A chain of 19 vectors in each iteration of h: each is a run.
    {{.axes = {N, H, K}, .nouter = 1, .ninner = 2, .block = 8, .rows = 1, .accumulators = 1, .totals = TYPE_F64},
     "cut n by 8; serial n; step: serial h; runs h by 1; lanes k by 16"},
    // A product: lanes are outside of the serial levels, so that each lane has a sum of its own.
    {{.axes = {N, H, W, K, C},
      .nouter = 3,
      .nfree = 1,
      .ninner = 2,
      .block = 24,
      .rows = 6,
      .vectors = 2,
      .columns = 512,
      .accumulators = 1,
      .sums_middle = true,
      .is_product = true,
      .totals = TYPE_F32},
     "free n; cut h w by 24; cut c by 512; rows h w by 6; step: lanes c by 16 x 2; runs k by 256; serial k"},
    // Rows in lanes.
    {{.axes = {N, W}, .nouter = 1, .ninner = 1, .block = 64, .rows = 1, .accumulators = 1, .rows_in_lanes = true},
     "cut n by 64; lanes n by 16; step: serial w"},
    // Tiles: a step takes a part of the only axis.
    {{.axes = {C}, .ninner = 1, .tile = 512, .block = 1, .rows = 1, .accumulators = 1},
     "cut c by 512; step: lanes c by 16"},
    // A scalar.
    {{.block = 1, .rows = 1, .accumulators = 1}, ""},
};

static void nests_follow_from_loops(void **state) {
  (void)state;
  Arena arena;
  arena_init(&arena, &system_allocator);
  Kernel k;
  kernel_init(&k, &arena, "test");
  kernel_add_axis(&k, "n", 100, 0);
  kernel_add_axis(&k, "h", 20, 0);
  kernel_add_axis(&k, "w", 48, 0);
  kernel_add_axis(&k, "c", 2000, 0);
  kernel_add_axis(&k, "k", 300, 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const Runs runs = loop_runs(&k, &cases[i].loop);
    const Nest nest = loop_nest(&k, &cases[i].loop, &runs);
    Text text;
    text_init(&text, &system_allocator);
    nest_print(&k, &cases[i].loop, &nest, &text);
    assert_string_equal(text_string(&text), cases[i].nest);
    text_deinit(&text);
  }
  arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nests_follow_from_loops)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
