// Nests of loops, in the words of nest_print, and runs of sums with open extents.
#include "ir/kernel/nest.h"
#include "ir/loops/execute.h"
#include "passes/schedule/build/nest_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N, H, W, C, K, M };

static const LoopLevel rows[] = {LOOP_BATCH, LOOP_CUT, LOOP_ROWS, LOOP_MIDDLE, LOOP_LANES, LOOP_END};
static const LoopLevel tiles[] = {LOOP_BATCH, LOOP_CUT, LOOP_COLUMNS, LOOP_ROWS, LOOP_LANES, LOOP_MIDDLE, LOOP_END};
static const LoopLevel sums_in_lanes[] = {LOOP_BATCH, LOOP_CUT, LOOP_ROWS, LOOP_LANES, LOOP_MIDDLE, LOOP_END};
static const LoopLevel rows_in_lanes[] = {LOOP_BATCH, LOOP_CUT, LOOP_ROW_LANES, LOOP_ROW_ELEMENTS, LOOP_END};

typedef struct Case {
  Loop loop;
  const char *nest;
  AxisSet reduced;    // by the sums of a row; 0: the loop has no sums
  bool adds_segments; // these sums add those of a long sum's segments
} Case;

static const Case cases[] = {
    // A row norm: lanes are innermost, and 64 vectors make a segment.
    {{.axes = {N, C}, .nouter = 1, .ninner = 1, .cut = {.length = 8}, .rows = 1, .levels = rows},
     "cut n by 8; serial n; micro-kernel: segments c by 1024; lanes c by 16",
     1U << C},
    // Sums over two axes: 3 vectors of w are an iteration's chain, so that 21 iterations of k make a segment.
    {{.axes = {N, C, K, W}, .nouter = 2, .nbatch = 1, .ninner = 2, .cut = {.length = 8}, .rows = 2, .levels = rows},
     "batch n; cut c by 8; rows c by 2; micro-kernel: segments k by 21; serial k; lanes w by 16",
     1U << K | 1U << W},
    // Over three: 20 iterations of h have 60 vectors, and are a segment.
    {{.axes = {N, K, H, W}, .nouter = 1, .ninner = 3, .cut = {.length = 8}, .rows = 1, .levels = rows},
     "cut n by 8; serial n; micro-kernel: serial k; segments k by 1; serial h; lanes w by 16",
     1U << K | 1U << H | 1U << W},
    // The same, nested: sums over w end in each iteration of h.
    {{.axes = {N, H, W}, .nouter = 1, .ninner = 2, .cut = {.length = 8}, .rows = 1, .levels = rows},
     "cut n by 8; serial n; micro-kernel: serial h; lanes w by 16",
     1U << W},
    // A chain of 38 vectors in each iteration of h: each is a segment.
    {{.axes = {N, H, K}, .nouter = 1, .ninner = 2, .cut = {.length = 8}, .rows = 1, .levels = rows},
     "cut n by 8; serial n; micro-kernel: serial h; segments h by 1; lanes k by 16",
     1U << H | 1U << K},
    // A product: lanes are outside of the serial levels, so that each lane has a sum of its own. 3000 products are
    // three chains.
    {{.axes = {N, H, W, M, C},
      .nouter = 3,
      .nbatch = 1,
      .ninner = 2,
      .cut = {.length = 24},
      .rows = 6,
      .vectors = 2,
      .columns = 512,
      .levels = tiles},
     "batch n; cut h w by 24; cut c by 512; rows h w by 6; micro-kernel: lanes c by 16 x 2; segments m by 1000; serial "
     "m",
     1U << M},
    // Each chain has as many whole iterations of k as have at most 1024 products, 21 of 48; 30 chains have 20 each.
    {{.axes = {N, K, W, C},
      .nouter = 1,
      .ninner = 3,
      .cut = {.length = 24},
      .rows = 1,
      .vectors = 1,
      .levels = sums_in_lanes},
     "cut n by 24; serial n; micro-kernel: lanes c by 16; segments k by 20; serial k w",
     1U << K | 1U << W},
    // A sum of the sums of chains adds each of them to its total.
    {{.axes = {N, K, C},
      .nouter = 1,
      .ninner = 2,
      .cut = {.length = 24},
      .rows = 1,
      .vectors = 1,
      .levels = sums_in_lanes},
     "cut n by 24; serial n; micro-kernel: lanes c by 16; serial k; segments k by 1",
     1U << K,
     true},
    // Rows in lanes.
    {{.axes = {N, W}, .nouter = 1, .ninner = 1, .cut = {.length = 64}, .rows = 1, .levels = rows_in_lanes},
     "cut n by 64; lanes n by 16; micro-kernel: serial w"},
    // Tiles: a micro-kernel takes a part of the only axis.
    {{.axes = {C}, .ninner = 1, .cut = {.length = 512}, .rows = 1, .levels = rows},
     "cut c by 512; micro-kernel: lanes c by 16"},
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
  kernel_add_axis(&k, "k", 600, 0);
  kernel_add_axis(&k, "m", 3000, 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Loop loop = cases[i].loop;
    Expr sum = {.op = EXPR_REDUCE_SUM, .axes = (1U << k.naxes) - 1 - cases[i].reduced, .reduced = cases[i].reduced};
    SumOrder order;
    Root root = {.kind = ROOT_REDUCE_INNER, .order = &order};
    k.exprs = &sum;
    loop.roots = &root;
    loop.nroots = cases[i].reduced != 0;
    if (loop.nroots) order = loop_sum_order(&(Schedule){.kernel = &k}, &loop, &root, cases[i].adds_segments);
    const Segments segments = loop_segments(&loop);
    const Nest nest = loop_nest(&k, &loop, &segments);
    Text text;
    text_init(&text, &system_allocator);
    nest_print(&k, &loop, &nest, &text);
    assert_string_equal(text_string(&text), cases[i].nest);
    text_deinit(&text);
  }
  arena_deinit(&arena);
}

// The segments of sums over h, an open extent, and w.
static Segments segments_of_row(Kernel *k) {
  Expr sum = {.op = EXPR_REDUCE_SUM, .reduced = 1U << H | 1U << W};
  Root root = {.kind = ROOT_REDUCE_INNER};
  const Loop loop = {.axes = {N, H, W}, .nouter = 1, .ninner = 2, .levels = rows, .roots = &root, .nroots = 1};
  k->exprs = &sum;
  const SumOrder order = loop_sum_order(&(Schedule){.kernel = k}, &loop, &root, false);
  root.order = &order;
  return order.segments;
}

// Numbers, and the only variable.
static uint64_t number_or_extent(void *extent, const Index *i) {
  assert_true(i->op == INDEX_NUMBER || i->op == INDEX_VAR);
  return i->op == INDEX_NUMBER ? (uint64_t)i->number : *(const uint64_t *)extent;
}

// What emitted code computes, where the only variable is `extent`.
static int64_t value_at(const Index *i, uint64_t extent) {
  return (int64_t)index_value(i, number_or_extent, &extent);
}

// What emitted code computes of an open width is what follows from the same literal width.
static void open_runs_are_those_of_literal_widths(void **state) {
  (void)state;
  Arena arena;
  arena_init(&arena, &system_allocator);
  TreeBuilder b = {.arena = &arena};
  Kernel k;
  kernel_init(&k, &arena, "test");
  kernel_add_axis(&k, "n", 100, 0);
  kernel_add_axis(&k, "h", 20, 1);
  kernel_add_axis(&k, "w", 1, 0);
  const int64_t longest = (int64_t)LONGEST_SEGMENT * LANES;
  for (int64_t width = 1; width <= longest + (int64_t)2 * LANES; width++) {
    k.axes[W] = (Axis){.name = "w", .extent = width};
    const Segments literal = segments_of_row(&k);
    k.axes[W].monomial = 1;
    const Segments open = segments_of_row(&k);
    const Index *chain = index_chain(&b, index_number(&b, width, 0));
    const bool is_long = value_at(chain, 0) > LONGEST_SEGMENT;
    const Index *run = index_replace(&b, index_run_length(&b), loop_var(VAR_CHAIN), chain);
    assert_true(open.is_open && !literal.is_open && open.elements == longest);
    assert_int_equal(literal.elements, is_long ? longest : 0);
    if (!is_long) assert_int_equal(literal.iterations, value_at(run, 0));
  }
  arena_deinit(&arena);
}

// A chain's iterations for any extent: less than 2048 operands in all, a whole number of chains where 4 numbers of
// chains allow it, and the same in emitted code.
static void open_chains_are_those_of_literal_extents(void **state) {
  (void)state;
  static const int64_t insides[] = {1, 2, 3, 9, 48, 196, 1023, 1024, 1025, 2047};
  Arena arena;
  arena_init(&arena, &system_allocator);
  Kernel k;
  kernel_init(&k, &arena, "test");
  for (size_t i = 0; i < sizeof insides / sizeof *insides; i++) {
    const int64_t inside = insides[i];
    TreeBuilder b = {.arena = &arena};
    const Index *open = index_chain_iterations(&b, index_var(&b, VAR_LANE, 0), inside);
    for (int64_t extent = 0; extent <= 5000; extent++) {
      const int64_t iterations = chain_iterations(extent, inside);
      assert_int_equal(value_at(open, (uint64_t)extent), extent ? iterations : 1);
      if (extent * inside < (int64_t)2 * CHAIN) assert_int_equal(iterations, extent);
      else assert_true(iterations >= 1 && iterations < extent && iterations * inside < (int64_t)2 * CHAIN);
    }
  }
  arena_deinit(&arena);
}

// Chains worked out by hand.
static void chains_have_equal_lengths_if_they_can(void **state) {
  static const struct {
    int64_t extent, inside, iterations;
  } chains[] = {
      {2047, 1, 2047},                                  // short
      {2048, 1, 1024},                                  // two chains
      {2049, 1, 683},                                   // three of them: the least number
      {3001, 1, 1024},                                  // a prime
      {2062, 1, 1031},                                  // 2 * 1031: a chain of more than 1024
      {2055, 1, 685},  {2060, 1, 515}, {2345, 1, 1024}, // 5 would divide it, but into chains below half of 1024: 469
      {227, 9, 227},   {228, 9, 76},   {229, 9, 113},   {300, 48, 20}, {50, 1024, 1}, {2, 1023, 2}, {3, 1023, 1}};
  (void)state;
  for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
    assert_int_equal(chain_iterations(chains[i].extent, chains[i].inside), chains[i].iterations);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nests_follow_from_loops),
                                     cmocka_unit_test(open_runs_are_those_of_literal_widths),
                                     cmocka_unit_test(open_chains_are_those_of_literal_extents),
                                     cmocka_unit_test(chains_have_equal_lengths_if_they_can)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
