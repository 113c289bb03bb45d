// Dropout drops the elements that the generator's published algorithm gives for oneDNN's counters and keys.
#include "tests/unit/interpreter_case.h"

// x, seed, offset, p -> y, m
static Node *dropout(Case *c, Shape shape, double seed, double offset, double probability, const double *x,
                     size_t count) {
  case_input(c, "x", TYPE_F32, shape, x, count);
  case_input(c, "seed", TYPE_S64, SCALAR, &seed, 1);
  case_input(c, "offset", TYPE_S64, SCALAR, &offset, 1);
  case_input(c, "p", TYPE_F32, SCALAR, &probability, 1);
  return case_node(c, "Dropout", "x seed offset p", "y m");
}

static void elements_are_kept_by_index_seed_and_offset(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  dropout(&c, SHAPE(4, 4), 1, 7, 0.5, VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
  case_expect(&c, "m", VALUES(0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1));
  case_expect(&c, "y", VALUES(0, 0, 6, 8, 0, 12, 14, 0, 0, 0, 22, 0, 0, 28, 0, 32));
  case_passes(&c);
}

static void without_an_offset_four_neighbours_share_a_fate(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  double ones[64];
  for (int i = 0; i < 64; i++) ones[i] = 1;
  dropout(&c, SHAPE(16, 4), 3, 0, 0.5, ones, 64);
  case_set_list(case_node(&c, "ReduceSum", "y", "sum"), "axes", (const int64_t[]){1}, 1);
  case_expect(&c, "sum", VALUES(0, 0, 0, 8, 8, 0, 8, 0, 8, 8, 0, 0, 0, 8, 0, 8));
  case_passes(&c);
}

static void layouts_do_not_matter(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  dropout(&c, SHAPE(4, 4), 1, 7, 0.5, VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
  case_value(&c, "y")->layout = layout_of_axes((const int[]){1, 0}, 2);
  case_expect(&c, "m", VALUES(0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1));
  case_passes(&c);
}

static void probabilities_have_ends(void **state) {
  (void)state;
  static const struct {
    double probability, kept;
  } rows[] = {{0, 1}, {-0.0, 1}, {-2, 1}, {1, 0}, {2, 0}, {INFINITY, 0}, {-INFINITY, 1}, {NAN, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Case c;
    case_init(&c);
    const double kept = rows[i].kept;
    dropout(&c, SHAPE(3), 1, 7, rows[i].probability, VALUES(2, -0.5, 3));
    case_expect(&c, "m", VALUES(kept, kept, kept));
    case_expect(&c, "y", kept != 0 ? (const double[]){2, -0.5, 3} : (const double[]){0, 0, 0}, 3);
    case_passes(&c);
  }
}

// A dropped element becomes 0, also if it is NaN or infinite.
static void unusual_elements_pass_or_vanish(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  dropout(&c, SHAPE(8), 1, 7, 0.5, VALUES(NAN, INFINITY, NAN, -INFINITY, -0.0, -0.0, 0x1p127, 1));
  case_expect(&c, "y", VALUES(0, 0, NAN, -INFINITY, 0, -0.0, INFINITY, 0));
  case_passes(&c);
}

static void no_elements_and_one_are_fine(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  dropout(&c, SHAPE(0, 3), 1, 7, 0.5, NO_VALUES);
  case_expect(&c, "y", NO_VALUES);
  case_expect(&c, "m", NO_VALUES);
  case_passes(&c);
  case_init(&c);
  dropout(&c, SCALAR, 1, 7, 0.25, VALUES(3));
  case_expect(&c, "m", VALUES(1));
  case_expect(&c, "y", VALUES(4));
  case_passes(&c);
}

// 2^53 + 1 and 2^53 are one double: here they are two seeds, and given as inputs or constants alike.
static void seeds_have_64_bits(void **state) {
  (void)state;
  static const struct {
    int64_t seed;
    double mask[8];
  } rows[] = {{INT64_C(0x20000000000000), {1, 0, 1, 1, 0, 0, 1, 1}},
              {INT64_C(0x20000000000001), {1, 0, 0, 1, 0, 1, 0, 0}},
              {INT64_MIN, {0, 1, 0, 1, 1, 0, 1, 0}},
              {-1, {0, 1, 1, 0, 1, 1, 1, 0}}};
  for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
    Case c;
    case_init(&c);
    dropout(&c, SHAPE(8), 0, 7, 0.5, VALUES(1, 1, 1, 1, 1, 1, 1, 1));
    memcpy(c.inputs[1].data, &rows[i / 2].seed, sizeof(int64_t));
    int64_t seed = rows[i / 2].seed;
    Constant constant = {.data = &seed, .is_splat = true};
    if (i % 2) {
      Value *v = graph_add_value(c.graph, "constant", TYPE_S64, &SCALAR);
      assert_non_null(v);
      v->constant = &constant;
      node_set_input(c.graph->nodes[0], 1, v);
    }
    case_expect(&c, "m", rows[i / 2].mask, 8);
    case_passes(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_are_kept_by_index_seed_and_offset),
      cmocka_unit_test(without_an_offset_four_neighbours_share_a_fate),
      cmocka_unit_test(layouts_do_not_matter),
      cmocka_unit_test(probabilities_have_ends),
      cmocka_unit_test(unusual_elements_pass_or_vanish),
      cmocka_unit_test(no_elements_and_one_are_fine),
      cmocka_unit_test(seeds_have_64_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
