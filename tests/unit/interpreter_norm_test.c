// The normalisations and their gradients on literal values. Variances and epsilon are such that 1/sqrt(variance +
// epsilon) is a power of two, so that results are exact in every type; they were worked out in rational numbers from
// the operators' formulas.
#include "tests/unit/interpreter_case.h"

#define EPSILON 0.125 // variance 0.875: r = 1; 3.875: r = 1/2; 0.125: r = 2

// The data that most gradients below are of.
#define X VALUES(1, 2, 3, 4, 5, 6, 7, 8)
#define DY VALUES(1, 0, 2, -1, 3, 1, 0, 2)

typedef struct TypePair {
  Type data, statistics;
} TypePair;

static const TypePair type_pairs[] = {
    {TYPE_F32, TYPE_F32}, {TYPE_BF16, TYPE_F32}, {TYPE_BF16, TYPE_BF16},
    {TYPE_F16, TYPE_F32}, {TYPE_F64, TYPE_F32},  {TYPE_F64, TYPE_F64},
};
enum { NTYPE_PAIRS = sizeof type_pairs / sizeof *type_pairs };

static void norm_init(Case *c) {
  case_init(c);
  c->tolerance = 0x1p-1000; // exact, but -0 will do for 0
}

static void gradient_init(Case *c, TypePair types, Shape shape) {
  norm_init(c);
  case_input(c, "x", types.data, shape, X);
  case_input(c, "dy", types.data, shape, DY);
}

// Two channels; r is 1 and 1/2.
static void channel_inputs(Case *c, Type type, Shape shape) {
  case_input(c, "mean", type, shape, VALUES(2, 5));
  case_input(c, "var", type, shape, VALUES(0.875, 3.875));
  case_input(c, "gamma", type, shape, VALUES(2, -4));
}

static void batch_norm_inference_uses_the_given_statistics(void **state) {
  (void)state;
  for (size_t i = 0; i < NTYPE_PAIRS; i++) {
    Type data = type_pairs[i].data, type = type_pairs[i].statistics;
    Case c;
    norm_init(&c);
    case_input(&c, "x", data, SHAPE(1, 2, 2), VALUES(1, 2, 3, 4));
    case_input(&c, "gamma", type, SHAPE(2), VALUES(2, 4));
    case_input(&c, "beta", type, SHAPE(2), VALUES(1, -1));
    case_input(&c, "mean", type, SHAPE(2), VALUES(0, 5));
    case_input(&c, "var", type, SHAPE(2), VALUES(0.875, 3.875));
    Node *ncx = case_node(&c, "BatchNormInference", "x gamma beta mean var", "ncx");
    Node *nxc = case_node(&c, "BatchNormInference", "x gamma beta mean var", "nxc");
    case_set(ncx, "epsilon", EPSILON);
    case_set(ncx, "data_format", FORMAT_NCX);
    case_set(nxc, "epsilon", EPSILON);
    case_expect(&c, "ncx", VALUES(3, 5, -5, -3));
    case_expect(&c, "nxc", VALUES(3, -7, 7, -3));
    case_passes(&c);
  }
}

static void batch_norm_forward_training_of_one_channel(void **state) {
  (void)state;
  for (size_t i = 0; i < NTYPE_PAIRS; i++) {
    Type data = type_pairs[i].data, type = type_pairs[i].statistics;
    Case c;
    norm_init(&c);
    case_input(&c, "x", data, SHAPE(4, 1), VALUES(1, 2, 3, 4));
    case_input(&c, "mean", type, SHAPE(1), VALUES(10));
    case_input(&c, "var", type, SHAPE(1), VALUES(100));
    case_input(&c, "gamma", type, SHAPE(1), VALUES(2));
    case_input(&c, "beta", type, SHAPE(1), VALUES(1));
    Node *node = case_node(&c, "BatchNormForwardTraining", "x mean var gamma beta", "y rm rv bm bv");
    case_set(node, "epsilon", 2.75); // r = 1/2
    case_expect(&c, "y", VALUES(-0.5, 0.5, 1.5, 2.5));
    case_expect(&c, "rm", VALUES(6.25));                        // momentum is 1/2 unless given
    if (type == TYPE_BF16) case_expect(&c, "rv", VALUES(50.5)); // 50.625, between 50.5 and 50.75
    else case_expect(&c, "rv", VALUES(50.625));
    case_expect(&c, "bm", VALUES(2.5));
    case_expect(&c, "bv", VALUES(1.25));
    case_passes(&c);
  }
}

static void batch_norm_forward_training_of_two_channels(void **state) {
  (void)state;
  Case c;
  norm_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2, 2, 2), X);
  case_input(&c, "mean", TYPE_F32, SHAPE(2), VALUES(0, 1));
  case_input(&c, "var", TYPE_F32, SHAPE(2), VALUES(1, 0));
  Node *node = case_node(&c, "BatchNormForwardTraining", "x mean var", "y rm rv bm bv");
  case_set(node, "epsilon", 11.75); // r = 1/4
  case_set(node, "data_format", FORMAT_NCX);
  case_set(node, "momentum", 0.75);
  case_expect(&c, "y", VALUES(-0.625, -0.375, -0.625, -0.375, 0.375, 0.625, 0.375, 0.625));
  case_expect(&c, "rm", VALUES(0.875, 2.125));
  case_expect(&c, "rv", VALUES(1.8125, 1.0625));
  case_expect(&c, "bm", VALUES(3.5, 5.5));
  case_expect(&c, "bv", VALUES(4.25, 4.25));
  case_passes(&c);
}

static void the_variance_is_two_pass(void **state) {
  (void)state;
  Case c;
  norm_init(&c);
  case_input(&c, "x", TYPE_F64, SHAPE(4, 1), VALUES(1e12 + 1, 1e12 + 2, 1e12 + 3, 1e12 + 4));
  case_input(&c, "old", TYPE_F64, SHAPE(1), VALUES(1));
  Node *node = case_node(&c, "BatchNormForwardTraining", "x old old", "y rm rv bm bv");
  case_set(node, "epsilon", 2.75);
  case_expect(&c, "y", VALUES(-0.75, -0.25, 0.25, 0.75));
  case_expect(&c, "bv", VALUES(1.25));
  case_passes(&c);
}

static void batch_norm_forward_training_of_no_elements(void **state) {
  (void)state;
  Case c;
  norm_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(0, 2), NO_VALUES);
  case_input(&c, "mean", TYPE_F32, SHAPE(2), VALUES(4, 6));
  case_input(&c, "var", TYPE_F32, SHAPE(2), VALUES(8, 2));
  case_set(case_node(&c, "BatchNormForwardTraining", "x mean var", "y rm rv bm bv"), "epsilon", EPSILON);
  case_expect(&c, "y", NO_VALUES);
  case_expect(&c, "rm", VALUES(2, 3));
  case_expect(&c, "rv", VALUES(4, 1));
  case_expect(&c, "bm", VALUES(0, 0));
  case_expect(&c, "bv", VALUES(0, 0));
  case_passes(&c);
}

static void batch_norm_gradient_matches_the_known_answer(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  c.tolerance = 5e-9; // the digits of the answer
  case_input(&c, "x", TYPE_F64, SHAPE(4, 1), VALUES(1, 2, 3, 4));
  case_input(&c, "dy", TYPE_F64, SHAPE(4, 1), VALUES(0.1, 0.1, 0.2, 0.2));
  case_input(&c, "mean", TYPE_F64, SHAPE(1), VALUES(2.5));
  case_input(&c, "var", TYPE_F64, SHAPE(1), VALUES(1.25));
  case_input(&c, "gamma", TYPE_F64, SHAPE(1), VALUES(2));
  case_set(case_node(&c, "BatchNormTrainingBackward", "x dy mean var gamma", "dx dgamma dbeta"), "epsilon", 1e-30);
  case_expect(&c, "dx", VALUES(0.01788854, -0.05366563, 0.05366563, -0.01788854));
  case_expect(&c, "dgamma", VALUES(0.17888544));
  case_expect(&c, "dbeta", VALUES(0.6));
  case_passes(&c);
}

// The same numbers under all the names of this gradient, in all their types.
static void training_gradient(const char *op, const char *inputs, TypePair types, int format) {
  Case c;
  gradient_init(&c, types, SHAPE(2, 2, 2));
  channel_inputs(&c, types.statistics, SHAPE(2));
  Node *node = case_node(&c, op, inputs, "dx dgamma dbeta");
  case_set(node, "epsilon", EPSILON);
  if (format >= 0) case_set(node, "data_format", format);
  if (format == FORMAT_NXC) {
    case_expect(&c, "dx", VALUES(4, -2, -4, 2, -12, 0, -28, 0));
    case_expect(&c, "dgamma", VALUES(10, 4));
    case_expect(&c, "dbeta", VALUES(6, 2));
  } else {
    case_expect(&c, "dx", VALUES(5.5, -2.5, -3.25, 3.125, -14.5, -24.5, 2.25, -1.375));
    case_expect(&c, "dgamma", VALUES(12, 1.5));
    case_expect(&c, "dbeta", VALUES(5, 3));
  }
  case_passes(&c);
}

static void batch_norm_training_gradient(void **state) {
  (void)state;
  static const char *const names[] = {"BatchNormTrainingBackward", "onednn.BatchNormTrainingBackward",
                                      "BatchNormTrainingBackprop", "onednn_spec.BatchNormTrainingBackprop"};
  for (size_t n = 0; n < 4; n++)
    for (size_t i = 0; i < NTYPE_PAIRS; i++)
      for (int format = FORMAT_NXC; format <= FORMAT_NCX; format++)
        training_gradient(names[n], "x dy mean var gamma", type_pairs[i], format);
}

static void ngraph_takes_its_own_order_and_channel_axis_1(void **state) {
  (void)state;
  static const Type types[] = {TYPE_F32, TYPE_F64, TYPE_BF16, TYPE_F16};
  for (size_t i = 0; i < 4; i++)
    training_gradient("ngraph.BatchNormTrainingBackprop", "x gamma gamma mean var dy", (TypePair){types[i], types[i]},
                      -1);
}

static void rank_2_is_the_same_in_both_formats(void **state) {
  (void)state;
  for (int format = FORMAT_NXC; format <= FORMAT_NCX; format++) {
    Case c;
    gradient_init(&c, type_pairs[0], SHAPE(4, 2));
    channel_inputs(&c, TYPE_F32, SHAPE(2));
    Node *node = case_node(&c, "BatchNormTrainingBackward", "x dy mean var gamma", "dx dgamma dbeta");
    case_set(node, "epsilon", EPSILON);
    case_set(node, "data_format", format);
    case_expect(&c, "dx", VALUES(4, -2, -4, 2, -12, 0, -28, 0));
    case_expect(&c, "dgamma", VALUES(10, 4));
    case_expect(&c, "dbeta", VALUES(6, 2));
    case_passes(&c);
  }
}

static void only_diff_src(const char *op, const double *dx, size_t n) {
  Case c;
  gradient_init(&c, type_pairs[0], SHAPE(2, 2, 2));
  channel_inputs(&c, TYPE_F32, SHAPE(2));
  Node *node = case_node(&c, op, "x dy mean var gamma", "dx");
  case_set(node, "epsilon", EPSILON);
  case_set(node, "data_format", FORMAT_NCX);
  case_expect(&c, "dx", dx, n);
  case_passes(&c);
}

static void gamma_of_diff_src_alone_counts_but_under_one_name(void **state) {
  (void)state;
  only_diff_src("BatchNormTrainingBackprop", VALUES(5.5, -2.5, -3.25, 3.125, -14.5, -24.5, 2.25, -1.375));
  only_diff_src("BatchNormTrainingBackward", VALUES(2.75, -1.25, 0.8125, -0.78125, -7.25, -12.25, -0.5625, 0.34375));
}

static void absent_gamma_is_ones(void **state) {
  (void)state;
  Case c;
  gradient_init(&c, type_pairs[0], SHAPE(2, 2, 2));
  channel_inputs(&c, TYPE_F32, SHAPE(2));
  Node *node = case_node(&c, "BatchNormTrainingBackward", "x dy mean var", "dx dgamma dbeta");
  case_set(node, "epsilon", EPSILON);
  case_set(node, "data_format", FORMAT_NCX);
  case_expect(&c, "dx", VALUES(2.75, -1.25, 0.8125, -0.78125, -7.25, -12.25, -0.5625, 0.34375));
  case_expect(&c, "dgamma", VALUES(12, 1.5));
  case_expect(&c, "dbeta", VALUES(5, 3));
  case_passes(&c);
}

static void gradients_over_no_elements_are_zero(void **state) {
  (void)state;
  const Shape shapes[] = {SHAPE(0, 2, 3), SHAPE(3, 2, 0)};
  static const char *const names[] = {"BatchNormTrainingBackward", "BatchNormInferenceBackward"};
  for (size_t i = 0; i < 4; i++) {
    Case c;
    norm_init(&c);
    case_input(&c, "x", TYPE_F32, shapes[i % 2], NO_VALUES);
    case_input(&c, "dy", TYPE_F32, shapes[i % 2], NO_VALUES);
    channel_inputs(&c, TYPE_F32, SHAPE(2));
    Node *node = case_node(&c, names[i / 2], "x dy mean var gamma", "dx dgamma dbeta");
    case_set(node, "epsilon", EPSILON);
    case_set(node, "data_format", FORMAT_NCX);
    case_expect(&c, "dx", NO_VALUES);
    case_expect(&c, "dgamma", VALUES(0, 0));
    case_expect(&c, "dbeta", VALUES(0, 0));
    case_passes(&c);
  }
}

static void constant_gradients_vanish(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  c.tolerance = 1e-16;
  case_input(&c, "x", TYPE_F64, SHAPE(4, 1), VALUES(1, 2, 3, 4));
  case_input(&c, "dy", TYPE_F64, SHAPE(4, 1), VALUES(0.1, 0.1, 0.1, 0.1));
  case_input(&c, "mean", TYPE_F64, SHAPE(1), VALUES(2.5));
  case_input(&c, "var", TYPE_F64, SHAPE(1), VALUES(1.25));
  case_set(case_node(&c, "BatchNormTrainingBackward", "x dy mean var", "dx dgamma dbeta"), "epsilon", 1e-5);
  case_expect(&c, "dx", VALUES(0, 0, 0, 0));
  case_expect(&c, "dgamma", VALUES(0));
  case_expect(&c, "dbeta", VALUES(0.4));
  case_passes(&c);
}

static void sums_do_not_cancel(void **state) {
  (void)state;
  Case c;
  norm_init(&c);
  case_input(&c, "x", TYPE_F64, SHAPE(4, 1), VALUES(3, 3, 3, 3));
  case_input(&c, "dy", TYPE_F64, SHAPE(4, 1), VALUES(1e16, 1, -1e16, 1));
  case_input(&c, "mean", TYPE_F64, SHAPE(1), VALUES(2));
  case_input(&c, "var", TYPE_F64, SHAPE(1), VALUES(0.875));
  case_set(case_node(&c, "BatchNormTrainingBackward", "x dy mean var", "dx dgamma dbeta"), "epsilon", EPSILON);
  case_expect(&c, "dx", ANY_VALUES);
  case_expect(&c, "dgamma", VALUES(2));
  case_expect(&c, "dbeta", VALUES(2));
  case_passes(&c);
}

static void results_round_once_to_their_types(void **state) {
  (void)state;
  for (size_t i = 0; i < NTYPE_PAIRS; i++) {
    Type data = type_pairs[i].data, type = type_pairs[i].statistics;
    if (data == TYPE_F64) continue; // no third has few enough digits
    Case c;
    case_init(&c);
    case_input(&c, "x", data, SHAPE(3, 1), VALUES(0, 0, 0));
    case_input(&c, "dy", data, SHAPE(3, 1), VALUES(1, 0, 0));
    case_input(&c, "mean", type, SHAPE(1), VALUES(0));
    case_input(&c, "var", type, SHAPE(1), VALUES(0.875));
    case_set(case_node(&c, "BatchNormTrainingBackward", "x dy mean var", "dx"), "epsilon", EPSILON);
    case_expect(&c, "dx", VALUES(2.0 / 3, -1.0 / 3, -1.0 / 3));
    case_passes(&c);
  }
}

static void what_is_not_finite_stays_in_its_channel(void **state) {
  (void)state;
  Case c;
  norm_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2, 4), VALUES(1, 1, NAN, 1, 3, 3, 3, 3));
  case_input(&c, "dy", TYPE_F32, SHAPE(2, 4), VALUES(1, INFINITY, 1, 1, 3, 1, 3, 3));
  case_input(&c, "mean", TYPE_F32, SHAPE(4), VALUES(2, 2, 2, 2));
  case_input(&c, "var", TYPE_F32, SHAPE(4), VALUES(0.875, 0.875, 0.875, NAN));
  Node *node = case_node(&c, "BatchNormTrainingBackward", "x dy mean var", "dx dgamma dbeta");
  case_set(node, "epsilon", EPSILON);
  case_set(case_node(&c, "BatchNormInferenceBackward", "x dy mean var", "frozen"), "epsilon", EPSILON);
  case_expect(&c, "dx", VALUES(0, NAN, NAN, NAN, 0, NAN, NAN, NAN));
  case_expect(&c, "dgamma", VALUES(2, -INFINITY, NAN, NAN));
  case_expect(&c, "dbeta", VALUES(4, INFINITY, 4, 4));
  case_expect(&c, "frozen", VALUES(1, INFINITY, 1, NAN, 3, 1, 3, NAN));
  case_passes(&c);
}

static void frozen_gradient_of_vector_statistics(void **state) {
  (void)state;
  for (size_t i = 0; i < NTYPE_PAIRS; i++) {
    Case c;
    gradient_init(&c, type_pairs[i], SHAPE(2, 2, 2));
    channel_inputs(&c, type_pairs[i].statistics, SHAPE(2));
    Node *node = case_node(&c, "BatchNormInferenceBackward", "x dy mean var gamma", "dx dgamma dbeta");
    case_set(node, "epsilon", EPSILON);
    case_expect(&c, "dx", VALUES(2, 0, 4, 2, 6, -2, 0, -4));
    case_expect(&c, "dgamma", VALUES(10, 4));
    case_expect(&c, "dbeta", VALUES(6, 2));
    case_passes(&c);
  }
}

// DirectML: statistics of src's rank. FROZEN is BATCH_NORMALIZATION_GRAD, whose mean is the given one throughout;
// CENTRED is BATCH_NORMALIZATION_TRAINING_GRAD, which takes the mean of src instead for dx alone.
#define FROZEN "directml.BATCH_NORMALIZATION_GRAD"
#define CENTRED "directml.BATCH_NORMALIZATION_TRAINING_GRAD"

static void directml_by_channel(const char *op, Type type, const double *dx, size_t n, const double *dgamma,
                                size_t nchannels) {
  Case c;
  gradient_init(&c, (TypePair){type, type}, SHAPE(2, 2, 2));
  channel_inputs(&c, type, SHAPE(1, 2, 1));
  case_set(case_node(&c, op, "x dy mean var gamma", "dx dgamma dbeta"), "epsilon", EPSILON);
  case_expect(&c, "dx", dx, n);
  case_expect(&c, "dgamma", dgamma, nchannels);
  case_expect(&c, "dbeta", VALUES(5, 3));
  case_passes(&c);
}

static void directml_sums_where_statistics_have_extent_1(void **state) {
  (void)state;
  const Type types[] = {TYPE_F32, TYPE_F16};
  for (size_t i = 0; i < 2; i++) {
    directml_by_channel(FROZEN, types[i], VALUES(2, 0, -4, 2, 6, 2, 0, -4), VALUES(12, 1.5));
    directml_by_channel(CENTRED, types[i], VALUES(5.125, 0.875, -2.96875, 3.21875, 0.125, -6.125, 1.78125, -2.03125),
                        VALUES(12, 1.5));
  }
}

static void directml_along_one_axis(const char *op, const double *dx, size_t n, const double *dgamma, size_t nsums) {
  Case c;
  gradient_init(&c, type_pairs[0], SHAPE(2, 2, 2));
  case_input(&c, "mean", TYPE_F32, SHAPE(2, 1, 2), VALUES(2, 5, 1, 0));
  case_input(&c, "var", TYPE_F32, SHAPE(2, 1, 2), VALUES(0.875, 3.875, 0.125, 0.875));
  case_input(&c, "scale", TYPE_F32, SHAPE(2, 1, 2), VALUES(2, -4, 1, 3));
  case_set(case_node(&c, op, "x dy mean var scale", "dx dgamma dbeta"), "epsilon", EPSILON);
  case_expect(&c, "dx", dx, n);
  case_expect(&c, "dgamma", dgamma, nsums);
  case_expect(&c, "dbeta", VALUES(3, -1, 3, 3));
  case_passes(&c);
}

static void directml_keeps_several_axes(void **state) {
  (void)state;
  directml_along_one_axis(FROZEN, VALUES(2, 0, 4, 2, 6, 3, 0, 6), VALUES(1, 0.5, 24, 22));
  directml_along_one_axis(CENTRED, VALUES(0, -0.75, 0, 0.75, -9, 0, 9, 0), VALUES(1, 0.5, 24, 22));
}

static void directml_reduces_nothing_when_no_extent_is_1(void **state) {
  (void)state;
  const double frozen[] = {2, 0, 4, -3}, dgamma[] = {-1, 0, 4, -2}, centred[] = {0, 0, 0, 0};
  for (int i = 0; i < 2; i++) {
    Case c;
    norm_init(&c);
    case_input(&c, "x", TYPE_F32, SHAPE(2, 2), VALUES(1, 2, 3, 4));
    case_input(&c, "dy", TYPE_F32, SHAPE(2, 2), VALUES(1, 0, 2, -1));
    case_input(&c, "mean", TYPE_F32, SHAPE(2, 2), VALUES(2, 2, 2, 2));
    case_input(&c, "var", TYPE_F32, SHAPE(2, 2), VALUES(0.875, 3.875, 0.125, 0.875));
    case_input(&c, "scale", TYPE_F32, SHAPE(2, 2), VALUES(2, -4, 1, 3));
    case_set(case_node(&c, i ? CENTRED : FROZEN, "x dy mean var scale", "dx dgamma dbeta"), "epsilon", EPSILON);
    case_expect(&c, "dx", i ? centred : frozen, 4);
    case_expect(&c, "dgamma", dgamma, 4);
    case_expect(&c, "dbeta", VALUES(1, 0, 2, -1));
    case_passes(&c);
  }
}

static void directml_of_rank_1_and_8(void **state) {
  (void)state;
  const double frozen[] = {2, 0, 4, -2}, centred[] = {-0.25, -1.625, 3, -1.125};
  const Shape shapes[] = {SHAPE(4), SHAPE(1, 2, 1, 1, 1, 1, 2, 1)};
  const Shape ones[] = {SHAPE(1), SHAPE(1, 1, 1, 1, 1, 1, 1, 1)};
  for (int i = 0; i < 4; i++) {
    Case c;
    norm_init(&c);
    case_input(&c, "x", TYPE_F32, shapes[i / 2], VALUES(1, 2, 3, 6));
    case_input(&c, "dy", TYPE_F32, shapes[i / 2], VALUES(1, 0, 2, -1));
    case_input(&c, "mean", TYPE_F32, ones[i / 2], VALUES(2));
    case_input(&c, "var", TYPE_F32, ones[i / 2], VALUES(3.875));
    case_input(&c, "scale", TYPE_F32, ones[i / 2], VALUES(4));
    case_set(case_node(&c, i % 2 ? CENTRED : FROZEN, "x dy mean var scale", "dx dgamma dbeta"), "epsilon", EPSILON);
    case_expect(&c, "dx", i % 2 ? centred : frozen, 4);
    case_expect(&c, "dgamma", VALUES(-1.5));
    case_expect(&c, "dbeta", VALUES(2));
    case_passes(&c);
  }
}

static void layer_norm_of_rows(void **state) {
  (void)state;
  for (size_t i = 0; i < NTYPE_PAIRS; i++) {
    Type data = type_pairs[i].data, type = type_pairs[i].statistics;
    Case c;
    norm_init(&c);
    case_input(&c, "x", data, SHAPE(2, 2), VALUES(1, 3, 6, 4));
    case_input(&c, "gamma", type, SHAPE(2), VALUES(2, 4));
    case_input(&c, "beta", type, SHAPE(2), VALUES(1, -1));
    case_set(case_node(&c, "LayerNorm", "x gamma beta", "y mean var"), "epsilon", 3); // variances 1, r = 1/2
    case_expect(&c, "y", VALUES(0, 1, 2, -3));
    case_expect(&c, "mean", VALUES(2, 5));
    case_expect(&c, "var", VALUES(1, 1));
    case_passes(&c);
  }
}

static void layer_norm_of_everything(void **state) {
  (void)state;
  Case c;
  norm_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2, 2), VALUES(1, 3, 5, 7));
  case_input(&c, "gamma", TYPE_F32, SHAPE(2, 2), VALUES(4, 4, 8, 8));
  case_input(&c, "beta", TYPE_F32, SHAPE(2, 2), VALUES(0, 1, 0, -1));
  Node *node = case_node(&c, "LayerNorm", "x gamma beta", "y mean var");
  case_set(node, "epsilon", 11); // variance 5, r = 1/4
  case_set(node, "begin_norm_axis", -2);
  case_expect(&c, "y", VALUES(-3, 0, 2, 5));
  case_expect(&c, "mean", VALUES(4));
  case_expect(&c, "var", VALUES(5));
  case_passes(&c);
}

static void layer_norm_with_flat_parameters(void **state) {
  (void)state;
  Case c;
  norm_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(1, 2, 2), VALUES(1, 3, 5, 7));
  case_input(&c, "gamma", TYPE_F32, SHAPE(4), VALUES(4, 4, 8, 8));
  case_input(&c, "beta", TYPE_F32, SHAPE(4), VALUES(0, 1, 0, -1));
  Node *node = case_node(&c, "LayerNorm", "x gamma beta", "y");
  case_set(node, "epsilon", 11);
  case_set(node, "begin_norm_axis", 1);
  case_set(node, "keep_stats", false);
  case_expect(&c, "y", VALUES(-3, 0, 2, 5));
  case_passes(&c);
}

static void layer_norm_without_parameters(void **state) {
  (void)state;
  Case c;
  norm_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2, 2), VALUES(1, 3, 6, 4));
  Node *node = case_node(&c, "LayerNorm", "x", "y mean var");
  case_set(node, "epsilon", 3);
  case_set(node, "use_affine", false);
  case_expect(&c, "y", VALUES(-0.5, 0.5, 0.5, -0.5));
  case_expect(&c, "mean", VALUES(2, 5));
  case_expect(&c, "var", VALUES(1, 1));
  case_passes(&c);
}

static void layer_norm_of_nothing(void **state) {
  (void)state;
  const int64_t many = (int64_t)1 << 46; // rows that have no elements take no memory
  Case c;
  norm_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(many, 0), NO_VALUES);
  case_input(&c, "rows", TYPE_F32, SHAPE(2, 0), NO_VALUES);
  Node *node = case_node(&c, "LayerNorm", "x", "y");
  case_set(node, "use_affine", false);
  case_set(node, "keep_stats", false);
  case_set(case_node(&c, "LayerNorm", "rows", "z mean var"), "use_affine", false);
  case_expect(&c, "y", NO_VALUES);
  case_expect(&c, "z", NO_VALUES);
  case_expect(&c, "mean", VALUES(0, 0));
  case_expect(&c, "var", VALUES(0, 0));
  case_passes(&c);
}

static void layer_norm_gradient_of_rows(TypePair types, const char *inputs) {
  Case c;
  gradient_init(&c, types, SHAPE(2, 2, 2));
  case_input(&c, "mean", types.statistics, SHAPE(2, 2), VALUES(1, 3, 6, 7));
  case_input(&c, "var", types.statistics, SHAPE(2, 2), VALUES(0.875, 3.875, 0.125, 0.875));
  case_input(&c, "gamma", types.statistics, SHAPE(2), VALUES(2, -1));
  case_set(case_node(&c, "LayerNormBackward", inputs, "dx dgamma dbeta"), "epsilon", EPSILON);
  case_expect(&c, "dx", VALUES(1, -1, 0.75, -0.8125, -17, -7, 1, 0));
  case_expect(&c, "dgamma", VALUES(-6, 1.5));
  case_expect(&c, "dbeta", VALUES(6, 2));
  case_passes(&c);
}

static void layer_norm_gradient_of_the_last_axis(void **state) {
  (void)state;
  for (size_t i = 0; i < NTYPE_PAIRS; i++) {
    layer_norm_gradient_of_rows(type_pairs[i], "x dy mean var gamma");
    layer_norm_gradient_of_rows(type_pairs[i], "x dy mean var gamma gamma"); // beta's values do not count
  }
}

static void layer_norm_gradient_with_full_and_flat_gamma(void **state) {
  (void)state;
  const Shape shapes[] = {SHAPE(2, 2), SHAPE(4)};
  for (size_t i = 0; i < 4; i++) {
    Case c;
    gradient_init(&c, type_pairs[0], SHAPE(2, 2, 2));
    case_input(&c, "mean", TYPE_F32, SHAPE(2), VALUES(2, 6));
    case_input(&c, "var", TYPE_F32, SHAPE(2), VALUES(0.875, 3.875));
    case_input(&c, "gamma", TYPE_F32, shapes[i / 2], VALUES(2, -1, 1, 4));
    Node *node = case_node(&c, "LayerNormBackward", "x dy mean var gamma", "dx dgamma dbeta");
    case_set(node, "epsilon", EPSILON);
    case_set(node, "begin_norm_axis", i % 2 ? 1 : -2);
    case_expect(&c, "dx", VALUES(0, 0, 4, 0, 1.6875, -2.125, -1.9375, 1.75));
    case_expect(&c, "dgamma", VALUES(-2.5, 0, 2, 0));
    case_expect(&c, "dbeta", VALUES(4, 1, 2, 1));
    case_passes(&c);
  }
}

static void layer_norm_gradient_of_everything(void **state) {
  (void)state;
  Case c;
  gradient_init(&c, type_pairs[0], SHAPE(2, 2, 2));
  case_input(&c, "mean", TYPE_F32, SCALAR, VALUES(4));
  case_input(&c, "var", TYPE_F32, SCALAR, VALUES(3.875));
  case_input(&c, "gamma", TYPE_F32, SHAPE(8), VALUES(2, -1, 1, 4, 1, 2, 1, -2));
  Node *node = case_node(&c, "LayerNormBackward", "x dy mean var gamma", "dx dgamma dbeta");
  case_set(node, "epsilon", EPSILON);
  case_set(node, "begin_norm_axis", 0);
  case_expect(&c, "dx", VALUES(0.140625, -0.59375, 0.671875, -2.0625, 1.703125, 1.46875, 0.734375, -1));
  case_expect(&c, "dgamma", VALUES(-1.5, 0, -1, 0, 1.5, 1, 0, 4));
  case_expect(&c, "dbeta", VALUES(1, 0, 2, -1, 3, 1, 0, 2));
  case_passes(&c);
}

static void layer_norm_gradient_without_parameters(void **state) {
  (void)state;
  Case c;
  gradient_init(&c, type_pairs[0], SHAPE(2, 2, 2));
  case_input(&c, "mean", TYPE_F32, SHAPE(2), VALUES(2, 6));
  case_input(&c, "var", TYPE_F32, SHAPE(2), VALUES(0.875, 3.875));
  Node *node = case_node(&c, "LayerNormBackward", "x dy mean var", "dx");
  case_set(node, "epsilon", EPSILON);
  case_set(node, "begin_norm_axis", 1);
  case_set(node, "use_affine", false);
  case_expect(&c, "dx", VALUES(0.25, -0.5, 1.75, -1, 0.78125, -0.25, -0.78125, 0.1875));
  case_passes(&c);
}

static void layer_norm_gradient_of_nothing(void **state) {
  (void)state;
  Case c;
  norm_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(0, 2), NO_VALUES); // no rows
  case_input(&c, "mean", TYPE_F32, SHAPE(0), NO_VALUES);
  case_input(&c, "gamma", TYPE_F32, SHAPE(2), VALUES(1, 1));
  case_input(&c, "short", TYPE_F32, SHAPE(2, 0), NO_VALUES); // rows of nothing
  case_input(&c, "stats", TYPE_F32, SHAPE(2), VALUES(1, 1));
  case_input(&c, "none", TYPE_F32, SHAPE(0), NO_VALUES);
  case_node(&c, "LayerNormBackward", "x x mean mean gamma", "dx dgamma dbeta");
  case_node(&c, "LayerNormBackward", "short short stats stats none", "dx2 dgamma2 dbeta2");
  case_expect(&c, "dx", NO_VALUES);
  case_expect(&c, "dgamma", VALUES(0, 0));
  case_expect(&c, "dbeta", VALUES(0, 0));
  case_expect(&c, "dx2", NO_VALUES);
  case_expect(&c, "dgamma2", NO_VALUES);
  case_passes(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(batch_norm_inference_uses_the_given_statistics),
      cmocka_unit_test(batch_norm_forward_training_of_one_channel),
      cmocka_unit_test(batch_norm_forward_training_of_two_channels),
      cmocka_unit_test(the_variance_is_two_pass),
      cmocka_unit_test(batch_norm_forward_training_of_no_elements),
      cmocka_unit_test(batch_norm_gradient_matches_the_known_answer),
      cmocka_unit_test(batch_norm_training_gradient),
      cmocka_unit_test(ngraph_takes_its_own_order_and_channel_axis_1),
      cmocka_unit_test(rank_2_is_the_same_in_both_formats),
      cmocka_unit_test(gamma_of_diff_src_alone_counts_but_under_one_name),
      cmocka_unit_test(absent_gamma_is_ones),
      cmocka_unit_test(gradients_over_no_elements_are_zero),
      cmocka_unit_test(constant_gradients_vanish),
      cmocka_unit_test(sums_do_not_cancel),
      cmocka_unit_test(results_round_once_to_their_types),
      cmocka_unit_test(what_is_not_finite_stays_in_its_channel),
      cmocka_unit_test(frozen_gradient_of_vector_statistics),
      cmocka_unit_test(directml_sums_where_statistics_have_extent_1),
      cmocka_unit_test(directml_keeps_several_axes),
      cmocka_unit_test(directml_reduces_nothing_when_no_extent_is_1),
      cmocka_unit_test(directml_of_rank_1_and_8),
      cmocka_unit_test(layer_norm_of_rows),
      cmocka_unit_test(layer_norm_of_everything),
      cmocka_unit_test(layer_norm_with_flat_parameters),
      cmocka_unit_test(layer_norm_without_parameters),
      cmocka_unit_test(layer_norm_of_nothing),
      cmocka_unit_test(layer_norm_gradient_of_the_last_axis),
      cmocka_unit_test(layer_norm_gradient_with_full_and_flat_gamma),
      cmocka_unit_test(layer_norm_gradient_of_everything),
      cmocka_unit_test(layer_norm_gradient_without_parameters),
      cmocka_unit_test(layer_norm_gradient_of_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
