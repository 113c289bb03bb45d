// Resampling: results worked out by hand.
#include "ir/operators/interpolate.h"

#include "tests/unit/interpreter_case.h"

static AttributeValue *attribute(Node *node, const char *name) {
  uint32_t i = 0;
  while (strcmp(node->op->attributes[i].name, name) != 0) assert_true(++i < node->op->nattributes);
  node->attributes[i].is_set = true;
  return &node->attributes[i];
}

// Along one axis; `extents` has one for it.
static Node *resample(Case *c, const char *inputs, const char *dst, int mode, const int64_t *extents) {
  Node *node = case_node(c, "Interpolate", inputs, dst);
  attribute(node, "mode")->s64 = mode;
  attribute(node, "sizes")->list.items = extents;
  attribute(node, "sizes")->list.count = 1;
  return node;
}

static Node *give_back(Case *c, const char *inputs, const char *dst, int mode) {
  Node *node = case_node(c, "InterpolateBackward", inputs, dst);
  attribute(node, "mode")->s64 = mode;
  return node;
}

static const int64_t one = 1, two = 2, three = 3, four = 4, five = 5;

static void nearest_takes_the_place_that_is_nearest(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x3", TYPE_F32, SHAPE(1, 3, 1), VALUES(0, 1, 2));
  case_input(&c, "x4", TYPE_F32, SHAPE(1, 4, 1), VALUES(0, 1, 2, 3));
  case_input(&c, "x5", TYPE_F32, SHAPE(1, 5, 1), VALUES(0, 1, NAN, 3, 4));
  case_input(&c, "x1", TYPE_F32, SHAPE(1, 1, 2), VALUES(7, -INFINITY));
  resample(&c, "x3", "a", INTERPOLATE_NEAREST, &five);
  resample(&c, "x4", "b", INTERPOLATE_NEAREST, &two);
  resample(&c, "x5", "c", INTERPOLATE_NEAREST, &three);
  resample(&c, "x1", "d", INTERPOLATE_NEAREST, &three);
  case_expect(&c, "a", VALUES(0, 0, 1, 2, 2));
  case_expect(&c, "b", VALUES(1, 3));
  case_expect(&c, "c", VALUES(0, NAN, 4));
  case_expect(&c, "d", VALUES(7, -INFINITY, 7, -INFINITY, 7, -INFINITY));
  case_passes(&c);
}

static void linear_weighs_the_two_places_beside(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x2", TYPE_F64, SHAPE(1, 2, 1), VALUES(1, 2));
  case_input(&c, "x3", TYPE_F64, SHAPE(1, 3, 1), VALUES(0, 1, 2));
  case_input(&c, "x4", TYPE_F64, SHAPE(1, 4, 1), VALUES(0, 1, 2, 4));
  c.tolerance = 1e-15;
  resample(&c, "x2", "a", INTERPOLATE_LINEAR, &four);
  resample(&c, "x3", "b", INTERPOLATE_TRILINEAR, &five);
  resample(&c, "x4", "c", INTERPOLATE_BILINEAR, &two);
  resample(&c, "x2", "d", INTERPOLATE_LINEAR, &one);
  case_expect(&c, "a", VALUES(1, 1.25, 1.75, 2));
  case_expect(&c, "b", VALUES(0, 0.4, 1, 1.6, 2));
  case_expect(&c, "c", VALUES(0.5, 3));
  case_expect(&c, "d", VALUES(1.5));
  case_passes(&c);
}

static void a_place_of_weight_0_is_not_read(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F64, SHAPE(1, 3, 1), VALUES(5, NAN, 6));
  resample(&c, "x", "a", INTERPOLATE_LINEAR, &five);
  case_expect(&c, "a", VALUES(5, NAN, NAN, NAN, 6));
  case_passes(&c);
}

static void corners_are_aligned(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F64, SHAPE(1, 3, 1), VALUES(0, 2, 8));
  attribute(resample(&c, "x", "a", INTERPOLATE_LINEAR, &five), "coordinate_transformation_mode")->s64 =
      COORDINATES_ALIGN_CORNERS;
  attribute(resample(&c, "x", "b", INTERPOLATE_NEAREST, &five), "coordinate_transformation_mode")->s64 =
      COORDINATES_ALIGN_CORNERS;
  attribute(resample(&c, "x", "c", INTERPOLATE_LINEAR, &one), "coordinate_transformation_mode")->s64 =
      COORDINATES_ALIGN_CORNERS;
  case_expect(&c, "a", VALUES(0, 1, 2, 5, 8));
  case_expect(&c, "b", VALUES(0, 2, 2, 8, 8)); // halves up
  case_expect(&c, "c", VALUES(0));
  case_passes(&c);
}

static void gradients_go_back_where_they_came_from(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x2", TYPE_F64, SHAPE(1, 2, 1), VALUES(0, 0));
  case_input(&c, "x3", TYPE_F64, SHAPE(1, 3, 1), VALUES(0, NAN, 0));
  case_input(&c, "dy4", TYPE_F64, SHAPE(1, 4, 1), VALUES(1, 2, 3, 4));
  case_input(&c, "dy5", TYPE_F64, SHAPE(1, 5, 1), VALUES(1, 2, 4, 8, 16));
  case_input(&c, "tens", TYPE_F64, SHAPE(1, 5, 1), VALUES(1, 10, 100, 1000, 10000));
  case_input(&c, "dy1", TYPE_F64, SHAPE(1, 1, 1), VALUES(3));
  c.tolerance = 1e-15;
  give_back(&c, "x3 dy5", "a", INTERPOLATE_NEAREST);
  give_back(&c, "x2 dy4", "b", INTERPOLATE_LINEAR);
  give_back(&c, "x3 tens", "c", INTERPOLATE_LINEAR);
  give_back(&c, "x3 dy1", "d", INTERPOLATE_LINEAR);
  case_expect(&c, "a", VALUES(3, 4, 24));
  case_expect(&c, "b", VALUES(3.25, 6.75));
  case_expect(&c, "c", VALUES(7, 504, 10600));
  case_expect(&c, "d", VALUES(0, 3, 0)); // an element from which no result was computed has the gradient 0
  case_passes(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nearest_takes_the_place_that_is_nearest), cmocka_unit_test(linear_weighs_the_two_places_beside),
      cmocka_unit_test(a_place_of_weight_0_is_not_read),         cmocka_unit_test(corners_are_aligned),
      cmocka_unit_test(gradients_go_back_where_they_came_from),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
