// The operators that move elements: results worked out by hand.
#include "tests/unit/interpreter_case.h"

static void set_list(Node *node, const char *name, const int64_t *items, size_t count) {
  uint32_t i = 0;
  while (strcmp(node->op->attributes[i].name, name) != 0) assert_true(++i < node->op->nattributes);
  node->attributes[i].is_set = true;
  node->attributes[i].list.items = items;
  node->attributes[i].list.count = count;
}

#define LIST(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static void transpose_is_numpys(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(1, 2, 3), VALUES(0, 1, 2, 3, 4, 5));
  case_input(&c, "y", TYPE_F32, SHAPE(2, 1, 2), VALUES(0, -0.0, NAN, INFINITY));
  set_list(case_node(&c, "StaticTranspose", "x", "a"), "order", LIST(2, 0, 1));
  set_list(case_node(&c, "StaticTranspose", "x", "b"), "order", LIST(-3, -2, -1));
  set_list(case_node(&c, "StaticTranspose", "y", "c"), "order", NULL, 0);
  case_expect(&c, "a", VALUES(0, 3, 1, 4, 2, 5));
  case_expect(&c, "b", VALUES(0, 1, 2, 3, 4, 5));
  case_expect(&c, "c", VALUES(0, NAN, -0.0, INFINITY));
  case_passes(&c);
}

static void reshape_keeps_row_major_order(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2, 3), VALUES(0, 1, 2, 3, 4, 5));
  case_input(&c, "one", TYPE_F32, SHAPE(1, 1), VALUES(7));
  Node *a = case_node(&c, "StaticReshape", "x", "a"), *b = case_node(&c, "StaticReshape", "one", "b");
  set_list(a, "shape", LIST(0, 1, -1));
  case_set(a, "special_zero", 1);
  set_list(b, "shape", NULL, 0);
  case_set(b, "special_zero", 0);
  set_list(case_node(&c, "StaticTranspose", "a", "c"), "order", LIST(2, 1, 0));
  case_expect(&c, "a", VALUES(0, 1, 2, 3, 4, 5));
  case_expect(&c, "b", VALUES(7));
  case_expect(&c, "c", VALUES(0, 3, 1, 4, 2, 5));
  case_passes(&c);
}

static void nothing_moves_where_there_is_nothing(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(0, 3), NO_VALUES);
  case_input(&c, "s", TYPE_BF16, SCALAR, VALUES(2));
  Node *a = case_node(&c, "StaticReshape", "x", "a");
  set_list(a, "shape", LIST(5, 0));
  case_set(a, "special_zero", 0);
  set_list(case_node(&c, "StaticTranspose", "x", "b"), "order", LIST(1, 0));
  set_list(case_node(&c, "StaticTranspose", "s", "c"), "order", NULL, 0);
  case_expect(&c, "a", NO_VALUES);
  case_expect(&c, "b", NO_VALUES);
  case_expect(&c, "c", VALUES(2));
  case_passes(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transpose_is_numpys),
      cmocka_unit_test(reshape_keeps_row_major_order),
      cmocka_unit_test(nothing_moves_where_there_is_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
