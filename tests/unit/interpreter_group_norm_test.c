// Group, instance and RMS norms and their gradients, from their definitions. Variances and epsilon are such that
// 1 / sqrt(variance + epsilon) is a short decimal.
#include "tests/unit/interpreter_case.h"

static void group_norm_of_either_format(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "ncx", TYPE_F64, SHAPE(1, 4, 2), VALUES(1, 2, 5, 6, 11, 12, 15, 16));
  case_input(&c, "nxc", TYPE_F64, SHAPE(1, 2, 4), VALUES(1, 5, 11, 15, 2, 6, 12, 16));
  case_input(&c, "gamma", TYPE_F64, SHAPE(4), VALUES(1, 2, 1, 1));
  case_input(&c, "beta", TYPE_F64, SHAPE(4), VALUES(0, 1, 0, -1));
  for (int is_last = 0; is_last < 2; is_last++) {
    Node *node = case_node(&c, "GroupNorm", is_last ? "nxc gamma beta" : "ncx gamma beta",
                           is_last ? "y_nxc mean_nxc var_nxc" : "y mean var");
    case_set(node, "groups", 2);
    case_set(node, "epsilon", 2);
    case_set(node, "data_format", is_last ? FORMAT_NXC : FORMAT_NCX);
  }
  case_expect(&c, "y", VALUES(-1, -0.6, 2.2, 3, -1, -0.6, -0.4, 0));
  case_expect(&c, "mean", VALUES(3.5, 13.5));
  case_expect(&c, "var", VALUES(4.25, 4.25));
  case_expect(&c, "y_nxc", VALUES(-1, 2.2, -1, -0.4, -0.6, 3, -0.6, 0));
  case_expect(&c, "mean_nxc", VALUES(3.5, 13.5));
  c.tolerance = 1e-15;
  case_passes(&c);
}

static void groups_are_neighbours(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(1, 2, 4), VALUES(1, 2, 3, 4, 5, 6, 7, 9));
  Node *node = case_node(&c, "GroupNorm", "x", "y mean var");
  case_set(node, "groups", 2);
  case_set(node, "use_affine", false);
  case_expect(&c, "mean", VALUES(3.5, 5.75));
  case_expect(&c, "var", VALUES(4.25, 5.6875));
  case_passes(&c);
}

static void group_norm_gradient_of_either_format(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F64, SHAPE(1, 2, 2), VALUES(1, 2, 5, 6));
  case_input(&c, "dy", TYPE_F64, SHAPE(1, 2, 2), VALUES(1, 0, 0, 1));
  case_input(&c, "mean", TYPE_F64, SHAPE(1, 1), VALUES(3.5));
  case_input(&c, "var", TYPE_F64, SHAPE(1, 1), VALUES(4.25));
  case_input(&c, "gamma", TYPE_F64, SHAPE(2), VALUES(1, 2));
  Node *node = case_node(&c, "GroupNormBackward", "x dy mean var gamma", "dx dgamma dbeta");
  case_set(node, "groups", 1);
  case_set(node, "epsilon", 2);
  case_set(node, "data_format", FORMAT_NCX);
  case_expect(&c, "dx", VALUES(0.2, -0.24, -0.36, 0.4));
  case_expect(&c, "dgamma", VALUES(-1, 1));
  case_expect(&c, "dbeta", VALUES(1, 1));
  c.tolerance = 1e-15;
  case_passes(&c);

  case_init(&c); // and a second group, whose gradient is zero
  case_input(&c, "x", TYPE_F64, SHAPE(1, 2, 4), VALUES(1, 5, 1, 5, 2, 6, 2, 6));
  case_input(&c, "dy", TYPE_F64, SHAPE(1, 2, 4), VALUES(1, 0, 0, 0, 0, 1, 0, 0));
  case_input(&c, "mean", TYPE_F64, SHAPE(1, 2), VALUES(3.5, 3.5));
  case_input(&c, "var", TYPE_F64, SHAPE(1, 2), VALUES(4.25, 4.25));
  case_input(&c, "gamma", TYPE_F64, SHAPE(4), VALUES(1, 2, 3, 4));
  node = case_node(&c, "GroupNormBackward", "x dy mean var gamma", "dx dgamma dbeta");
  case_set(node, "groups", 2);
  case_set(node, "epsilon", 2);
  case_expect(&c, "dx", VALUES(0.2, -0.36, 0, 0, -0.24, 0.4, 0, 0));
  case_expect(&c, "dgamma", VALUES(-1, 1, 0, 0));
  case_expect(&c, "dbeta", VALUES(1, 1, 0, 0));
  c.tolerance = 1e-15;
  case_passes(&c);
}

static void instance_norm_of_channels(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2, 2, 2), VALUES(1, 3, 6, 4, 0, 2, 9, 7));
  case_input(&c, "gamma", TYPE_F32, SHAPE(2), VALUES(1, 2));
  case_input(&c, "beta", TYPE_F32, SHAPE(2), VALUES(0, 1));
  Node *node = case_node(&c, "InstanceNorm", "x gamma beta", "y mean var");
  case_set(node, "epsilon", 3);
  case_set(node, "data_format", FORMAT_NCX);
  case_expect(&c, "y", VALUES(-0.5, 0.5, 2, 0, -0.5, 0.5, 2, 0));
  case_expect(&c, "mean", VALUES(2, 5, 1, 8));
  case_expect(&c, "var", VALUES(1, 1, 1, 1));
  case_passes(&c);
}

static void instance_norm_gradient_of_channels(void **state) {
  (void)state;
  for (int is_last = 0; is_last < 2; is_last++) { // one channel lies alike in both
    Case c;
    case_init(&c);
    Shape shape = is_last ? SHAPE(2, 2, 1) : SHAPE(2, 1, 2);
    case_input(&c, "x", TYPE_F32, shape, VALUES(1, 3, 6, 4));
    case_input(&c, "dy", TYPE_F32, shape, VALUES(1, 0, 1, 1));
    case_input(&c, "mean", TYPE_F32, SHAPE(2, 1), VALUES(2, 5));
    case_input(&c, "var", TYPE_F32, SHAPE(2, 1), VALUES(1, 1));
    case_input(&c, "gamma", TYPE_F32, SHAPE(1), VALUES(2));
    Node *node = case_node(&c, "InstanceNormBackward", "x dy mean var gamma", "dx dgamma dbeta");
    case_set(node, "epsilon", 3);
    case_set(node, "data_format", is_last ? FORMAT_NXC : FORMAT_NCX);
    case_expect(&c, "dx", VALUES(0.375, -0.375, 0, 0));
    case_expect(&c, "dgamma", VALUES(-0.5));
    case_expect(&c, "dbeta", VALUES(3));
    case_passes(&c);
  }
}

static void rms_norm_with_any_gamma(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2, 2), VALUES(1, 2, 3, 4));
  case_input(&c, "scalar", TYPE_F32, SCALAR, VALUES(2));
  case_input(&c, "row", TYPE_F32, SHAPE(2), VALUES(1, 10));
  case_input(&c, "column", TYPE_F32, SHAPE(2, 1), VALUES(1, 10));
  static const char *const inputs[] = {"x", "x scalar", "x row", "x column"};
  static const char *const outputs[] = {"y", "by_scalar", "by_row", "by_column"};
  for (int i = 0; i < 4; i++) {
    Node *node = case_node(&c, "RMSNorm", inputs[i], outputs[i]);
    case_set(node, "epsilon", 0.5);
    case_set(node, "begin_norm_axis", 0);
  }
  case_expect(&c, "y", VALUES(0.35355339, 0.70710678, 1.06066017, 1.41421356));
  case_expect(&c, "by_scalar", VALUES(0.70710678, 1.41421356, 2.12132034, 2.82842712));
  case_expect(&c, "by_row", VALUES(0.35355339, 7.0710678, 1.06066017, 14.1421356));
  case_expect(&c, "by_column", VALUES(0.35355339, 0.70710678, 10.6066017, 14.1421356));
  c.tolerance = 1e-6;
  case_passes(&c);
}

static void rms_norm_gradient_with_any_gamma(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2, 2), VALUES(1, 1, 1, -1));
  case_input(&c, "dy", TYPE_F32, SHAPE(2, 2), VALUES(1, 2, 3, 1));
  case_input(&c, "row", TYPE_F32, SHAPE(2), VALUES(2, 1));
  case_input(&c, "column", TYPE_F32, SHAPE(2, 1), VALUES(1, 1));
  case_input(&c, "one", TYPE_F32, SHAPE(1), VALUES(1));
  static const char *const inputs[] = {"x dy row", "x dy column", "x dy one", "x dy"};
  static const char *const outputs[] = {"dx drow", "dx_column dcolumn", "dx_one done", "dx_alone"};
  for (int i = 0; i < 4; i++) case_set(case_node(&c, "RMSNormBackward", inputs[i], outputs[i]), "epsilon", 3);
  case_expect(&c, "dx", VALUES(0.75, 0.75, 2.6875, 0.8125));
  case_expect(&c, "drow", VALUES(2, 0.5));
  case_expect(&c, "dcolumn", VALUES(1.5, 1));
  case_expect(&c, "done", VALUES(2.5));
  case_expect(&c, "dx_alone", VALUES(0.3125, 0.8125, 1.375, 0.625)); // g = dy
  case_passes(&c);
}

static void norms_of_nothing(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(0, 4, 2), NO_VALUES);
  case_input(&c, "gamma", TYPE_F32, SHAPE(4), VALUES(1, 2, 3, 4));
  case_input(&c, "g", TYPE_F32, SHAPE(2), VALUES(1, 2));
  case_input(&c, "s", TYPE_F32, SHAPE(0, 2), NO_VALUES);
  Node *node = case_node(&c, "GroupNormBackward", "x x s s gamma", "dx dgamma dbeta");
  case_set(node, "groups", 2);
  case_set(node, "data_format", FORMAT_NCX);
  case_node(&c, "RMSNormBackward", "x x g", "dx_rms dg");
  case_expect(&c, "dx", NO_VALUES);
  case_expect(&c, "dgamma", VALUES(0, 0, 0, 0));
  case_expect(&c, "dbeta", VALUES(0, 0, 0, 0));
  case_expect(&c, "dg", VALUES(0, 0));
  case_passes(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(group_norm_of_either_format),          cmocka_unit_test(groups_are_neighbours),
      cmocka_unit_test(group_norm_gradient_of_either_format), cmocka_unit_test(instance_norm_of_channels),
      cmocka_unit_test(instance_norm_gradient_of_channels),   cmocka_unit_test(rms_norm_with_any_gamma),
      cmocka_unit_test(rms_norm_gradient_with_any_gamma),     cmocka_unit_test(norms_of_nothing),
  };
  return cmocka_run_group_tests_name("interpreter_group_norm", tests, NULL, NULL);
}
