// Nests of loops, in the words of nest_print, and runs of sums with open extents.
#include "ir/kernel/nest.h"
#include "tests/loops/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N, H, W, C, K };

static const LoopLevel rows[] = {LOOP_FREE, LOOP_CUT, LOOP_ROWS, LOOP_MIDDLE, LOOP_LANES, LOOP_END};
static const LoopLevel tiles[] = {LOOP_FREE, LOOP_CUT, LOOP_COLUMNS, LOOP_ROWS, LOOP_LANES, LOOP_MIDDLE, LOOP_END};
static const LoopLevel rows_in_lanes[] = {LOOP_FREE, LOOP_CUT, LOOP_ROW_LANES, LOOP_ROW_ELEMENTS, LOOP_END};

typedef struct Case {
  Loop loop;
  const char *nest;
  AxisSet reduced;    // by the sums of a row; 0: the loop has no sums
  SumNumbers numbers; // of these sums
} Case;

static const Case cases[] = {
    // A row norm: lanes are innermost, and 4 accumulators make runs of 24 * 16 * 4 elements.
    {{.axes = {N, C}, .nouter = 1, .ninner = 1, .cut = {.length = 8}, .rows = 1, .levels = rows},
     "cut n by 8; serial n; step: runs c by 1536; lanes c by 16 x 4",
     1U << C,
     {4, TYPE_F64, false}},
    // Sums over two axes: 3 vectors of w are an iteration's chain, so that 8 iterations of h make a run.
    {{.axes = {N, C, H, W}, .nouter = 2, .nfree = 1, .ninner = 2, .cut = {.length = 8}, .rows = 2, .levels = rows},
     "free n; cut c by 8; rows c by 2; step: runs h by 8; serial h; lanes w by 16",
     1U << H | 1U << W,
     {1, TYPE_F64, false}},
    // The same, nested: sums over w end in each iteration of h.
    {{.axes = {N, H, W}, .nouter = 1, .ninner = 2, .cut = {.length = 8}, .rows = 1, .levels = rows},
     "cut n by 8; serial n; step: serial h; lanes w by 16",
     1U << W,
     {1, TYPE_F64, false}},
    // A chain of 19 vectors in each iteration of h: each is a run.
    {{.axes = {N, H, K}, .nouter = 1, .ninner = 2, .cut = {.length = 8}, .rows = 1, .levels = rows},
     "cut n by 8; serial n; step: serial h; runs h by 1; lanes k by 16",
     1U << H | 1U << K,
     {1, TYPE_F64, false}},
    // A product: lanes are outside of the serial levels, so that each lane has a sum of its own.
    {{.axes = {N, H, W, K, C},
      .nouter = 3,
      .nfree = 1,
      .ninner = 2,
      .cut = {.length = 24},
      .rows = 6,
      .vectors = 2,
      .columns = 512,
      .levels = tiles},
     "free n; cut h w by 24; cut c by 512; rows h w by 6; step: lanes c by 16 x 2; runs k by 256; serial k",
     1U << K,
     {1, TYPE_F32, false}},
    // Rows in lanes.
    {{.axes = {N, W}, .nouter = 1, .ninner = 1, .cut = {.length = 64}, .rows = 1, .levels = rows_in_lanes},
     "cut n by 64; lanes n by 16; step: serial w"},
    // Tiles: a step takes a part of the only axis.
    {{.axes = {C}, .ninner = 1, .cut = {.length = 512}, .rows = 1, .levels = rows},
     "cut c by 512; step: lanes c by 16"},
    // A scalar.
    {{.cut = {.length = 1}, .rows = 1, .levels = rows}, ""},
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
    Loop loop = cases[i].loop;
    Expr sum = {.op = EXPR_REDUCE_SUM, .axes = (1U << k.naxes) - 1 - cases[i].reduced, .reduced = cases[i].reduced};
    SumOrder order;
    Root root = {.kind = ROOT_REDUCE_INNER, .order = &order};
    k.exprs = &sum;
    loop.roots = &root;
    loop.nroots = cases[i].reduced != 0;
    if (loop.nroots) order = loop_sum_order(&(Schedule){.kernel = &k}, &loop, &root, cases[i].numbers);
    const Runs runs = loop_runs(&k, &loop);
    const Nest nest = loop_nest(&k, &loop, &runs);
    Text text;
    text_init(&text, &system_allocator);
    nest_print(&k, &loop, &nest, &text);
    assert_string_equal(text_string(&text), cases[i].nest);
    text_deinit(&text);
  }
  arena_deinit(&arena);
}

// The runs of sums over h, an open extent, and w.
static Runs runs_of_row(Kernel *k, int accumulators) {
  Expr sum = {.op = EXPR_REDUCE_SUM, .reduced = 1U << H | 1U << W};
  Root root = {.kind = ROOT_REDUCE_INNER};
  const Loop loop = {.axes = {N, H, W}, .nouter = 1, .ninner = 2, .levels = rows, .roots = &root, .nroots = 1};
  k->exprs = &sum;
  const SumOrder order =
      loop_sum_order(&(Schedule){.kernel = k}, &loop, &root, (SumNumbers){accumulators, TYPE_F64, 0});
  root.order = &order;
  return loop_runs(k, &loop);
}

// What emitted code computes of an open width is what follows from the same literal width.
static void open_runs_are_those_of_literal_widths(void **state) {
  (void)state;
  Arena arena;
  arena_init(&arena, &system_allocator);
  TreeBuilder b = {.arena = &arena};
  Kernel k;
  Walk w = {.k = &k};
  kernel_init(&k, &arena, "test");
  kernel_add_axis(&k, "n", 100, 0);
  kernel_add_axis(&k, "h", 20, 1);
  kernel_add_axis(&k, "w", 1, 0);
  for (int accumulators = 1; accumulators <= 8; accumulators++) {
    const int64_t group = (int64_t)LANES * accumulators, longest = LONGEST_RUN * group;
    for (int64_t width = 1; width <= longest + 2 * group; width++) {
      k.axes[W] = (Axis){.name = "w", .extent = width};
      const Runs literal = runs_of_row(&k, accumulators);
      k.axes[W].monomial = 1;
      const Runs open = runs_of_row(&k, accumulators);
      const Index *chain = index_chain(&b, index_number(&b, width, 0), group);
      const bool is_long = walk_index(&w, chain) > LONGEST_RUN;
      const Index *run = index_replace(&b, index_run_length(&b), loop_var(VAR_CHAIN), chain);
      assert_true(open.is_open && !literal.is_open && open.vector_run == longest);
      assert_int_equal(literal.vector_run, is_long ? longest : 0);
      if (!is_long) assert_int_equal(literal.middle_run, walk_index(&w, run));
    }
  }
  arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nests_follow_from_loops),
                                     cmocka_unit_test(open_runs_are_those_of_literal_widths)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
