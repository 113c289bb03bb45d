// The elementwise operators on literal values.
#include "tests/unit/interpreter_case.h"

#include <stdlib.h>

static void unary(const char *op, Type type, const double *src, size_t nsrc, const double *dst, size_t ndst) {
  Case c;
  case_init(&c);
  case_input(&c, "x", type, SHAPE((int64_t)nsrc), src, nsrc);
  case_node(&c, op, "x", "y");
  case_expect(&c, "y", dst, ndst);
  case_passes(&c);
}

static void binary(const char *op, Shape shape_a, const double *a, size_t na, Shape shape_b, const double *b, size_t nb,
                   const double *dst, size_t ndst) {
  Case c;
  case_init(&c);
  case_input(&c, "a", TYPE_F64, shape_a, a, na);
  case_input(&c, "b", TYPE_F64, shape_b, b, nb);
  case_node(&c, op, "a b", "y");
  case_expect(&c, "y", dst, ndst);
  case_passes(&c);
}

// Attributes as "alpha=0.7 use_dst=0"; a choice is its index.
static void set_all(Node *node, const char *settings) {
  char name[32], *end;
  for (; *settings; settings = end + (*end == ' ')) {
    int length = (int)strcspn(settings, "=");
    snprintf(name, sizeof name, "%.*s", length, settings);
    case_set(node, name, strtod(settings + length + 1, &end));
  }
}

// Of src, or with `dy` of src or dst and diff_dst.
static void formula(const char *op, const char *settings, Type type, double tolerance, const double *x,
                    const double *dy, size_t n, const double *expected) {
  Case c;
  case_init(&c);
  c.tolerance = tolerance;
  case_input(&c, "x", type, SHAPE((int64_t)n), x, n);
  if (dy) case_input(&c, "dy", type, SHAPE((int64_t)n), dy, n);
  set_all(case_node(&c, op, dy ? "x dy" : "x", "y"), settings);
  case_expect(&c, "y", expected, n);
  case_passes(&c);
}

static const Type float_types[] = {TYPE_F64, TYPE_F32, TYPE_F16, TYPE_BF16};
enum { NFLOAT_TYPES = sizeof float_types / sizeof *float_types };

static void relu_keeps_what_is_positive(void **state) {
  (void)state;
  for (size_t i = 0; i < NFLOAT_TYPES; i++)
    unary("ReLU", float_types[i], VALUES(1.5, -2, 0, 256, -0.25), VALUES(1.5, 0, 0, 256, 0));
}

static void relu_of_special_values(void **state) {
  (void)state;
  for (size_t i = 0; i < NFLOAT_TYPES; i++)
    unary("ReLU", float_types[i], VALUES(NAN, INFINITY, -INFINITY, -0.0), VALUES(NAN, INFINITY, 0, 0));
}

static void relu_of_a_scalar_and_of_nothing(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "scalar", TYPE_F32, SCALAR, VALUES(-3));
  case_input(&c, "nothing", TYPE_F32, SHAPE(2, 0, 3), NO_VALUES);
  case_node(&c, "ReLU", "scalar", "y");
  case_node(&c, "ReLU", "nothing", "z");
  case_expect(&c, "y", VALUES(0));
  case_expect(&c, "z", NO_VALUES);
  case_passes(&c);
}

static void relu_backward(bool use_dst, Type type) {
  Case c;
  case_init(&c);
  case_input(&c, "data", type, SHAPE(2, 4), VALUES(1, -1, 0, -0.0, NAN, INFINITY, -INFINITY, 0.5));
  case_input(&c, "dy", type, SHAPE(2, 4), VALUES(2, 3, 4, 5, 6, 7, NAN, NAN));
  case_set(case_node(&c, "ReLUBackward", "data dy", "dx"), "use_dst", use_dst);
  case_expect(&c, "dx", VALUES(2, 0, 0, 0, 0, 7, 0, NAN));
  case_passes(&c);
}

static void relu_backward_passes_where_data_is_positive(void **state) {
  (void)state;
  for (size_t i = 0; i < NFLOAT_TYPES; i++) {
    relu_backward(true, float_types[i]);
    relu_backward(false, float_types[i]);
  }
}

// Activations

static void activations_have_known_values(void **state) {
  (void)state;
  static const struct {
    const char *op;
    const char *settings;
    double x[4], y[4];
  } rows[] = {
      {"Abs", "", {1.5, -2, 0, -0.25}, {1.5, 2, 0, 0.25}},
      {"Clamp", "min=-1 max=2", {-3, -1, 0.5, 7}, {-1, -1, 0.5, 2}},
      {"Clamp", "min=0 max=0", {-3, -1, 0.5, 7}, {0, 0, 0, 0}},
      {"Elu", "alpha=0.7", {-1, 0, 2, -50}, {-0.44248439, 0, 2, -0.7}},
      {"Elu", "alpha=0", {-1, 0, 2, -50}, {0, 0, 2, 0}},
      {"Exp", "", {0, 1, -1, 2}, {1, 2.71828183, 0.36787944, 7.38905610}},
      {"GELU", "", {1, -1, 0, 100}, {0.84134475, -0.15865525, 0, 100}},
      {"GELU", "mode=1", {1, -1, 0, 100}, {0.84119199, -0.15880801, 0, 100}},
      {"HardSigmoid", "alpha=0.2 beta=0.5", {1, -2.5, 2.5, -9}, {0.7, 0, 1, 0}},
      {"HardSigmoid", "alpha=0 beta=1", {1, -2.5, 2.5, -9}, {1, 1, 1, 1}},
      {"HardSwish", "", {1, -3, 3, -1}, {0.66666667, 0, 3, -0.33333333}},
      {"LeakyReLU", "alpha=0.1", {1, -3, 0, -0.5}, {1, -0.3, 0, -0.05}},
      {"Log", "", {1, 2, 0.5, 1e300}, {0, 0.69314718, -0.69314718, 690.77552790}},
      {"Mish", "", {1, 0, -1, 1000}, {0.86509839, 0, -0.30340146, 1000}},
      {"Pow", "beta=3", {2, -2, 0, 0.5}, {8, -8, 0, 0.125}},
      {"Pow", "beta=-0.5", {4, 0.25, 1, 100}, {0.5, 2, 1, 0.1}},
      {"Reciprocal", "", {4, -0.5, 1, -8}, {0.25, -2, 1, -0.125}},
      {"Round", "", {2.5, 3.5, -1.5, 0.49999999999999994}, {2, 4, -2, 0}},
      {"Sigmoid", "", {0, 1, -1, 40}, {0.5, 0.73105858, 0.26894142, 1}},
      {"SoftPlus", "beta=2", {1, 0, -1, 1000}, {1.06346401, 0.34657359, 0.06346401, 1000}},
      {"SoftPlus", "beta=-1", {1, 0, -1, -1000}, {-0.31326169, -0.69314718, -1.31326169, -1000}},
      {"SoftPlus", "", {1, 0, -1, 1000}, {1.31326169, 0.69314718, 0.31326169, 1000}},
      {"Sqrt", "", {4, 2, 0, 0.25}, {2, 1.41421356, 0, 0.5}},
      {"Square", "", {4, -3, 0, 0.5}, {16, 9, 0, 0.25}},
      {"Tanh", "", {0, 1, -1, 40}, {0, 0.76159416, -0.76159416, 1}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    formula(rows[i].op, rows[i].settings, TYPE_F64, 5e-9, rows[i].x, NULL, 4, rows[i].y);
}

static void activations_of_special_values(void **state) {
  (void)state;
  static const double x[] = {NAN, INFINITY, -INFINITY, -0.0};
  static const struct {
    const char *op;
    const char *settings;
    double y[4];
  } rows[] = {
      {"Abs", "", {NAN, INFINITY, INFINITY, 0}},
      {"Clamp", "min=-1 max=2", {-1, 2, -1, -0.0}},
      {"Clamp", "min=0 max=2", {0, 2, 0, 0}},
      {"Elu", "alpha=0.75", {NAN, INFINITY, -0.75, -0.0}},
      {"Elu", "alpha=0", {NAN, INFINITY, -0.0, -0.0}},
      {"Exp", "", {NAN, INFINITY, 0, 1}},
      {"GELU", "", {NAN, INFINITY, -0.0, -0.0}},
      {"GELU", "mode=1", {NAN, INFINITY, -0.0, -0.0}},
      {"HardSigmoid", "alpha=0.5 beta=0.5", {NAN, 1, 0, 0.5}},
      {"HardSigmoid", "alpha=0 beta=1", {NAN, NAN, NAN, 1}},
      {"HardSwish", "", {NAN, INFINITY, -0.0, -0.0}},
      {"LeakyReLU", "alpha=0.5", {NAN, INFINITY, -INFINITY, -0.0}},
      {"LeakyReLU", "alpha=0", {NAN, INFINITY, NAN, -0.0}},
      {"Log", "", {NAN, INFINITY, NAN, -INFINITY}},
      {"Mish", "", {NAN, INFINITY, -0.0, -0.0}},
      {"Pow", "beta=0", {1, 1, 1, 1}},
      {"Pow", "beta=-1", {NAN, 0, -0.0, -INFINITY}},
      {"Pow", "beta=0.5", {NAN, INFINITY, INFINITY, 0}},
      {"Reciprocal", "", {NAN, 0, -0.0, -INFINITY}},
      {"Round", "", {NAN, INFINITY, -INFINITY, -0.0}},
      {"Sigmoid", "", {NAN, 1, 0, 0.5}},
      {"SoftPlus", "", {NAN, INFINITY, 0, 0.69314718055994531}},
      {"SoftPlus", "beta=-1", {NAN, -0.0, -INFINITY, -0.69314718055994531}},
      {"SoftPlus", "beta=0", {NAN, NAN, NAN, INFINITY}},
      {"Sqrt", "", {NAN, INFINITY, NAN, -0.0}},
      {"Square", "", {NAN, INFINITY, INFINITY, 0}},
      {"Tanh", "", {NAN, 1, -1, -0.0}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t t = 0; t < NFLOAT_TYPES; t++)
      formula(rows[i].op, rows[i].settings, float_types[t], 0, x, NULL, 4, rows[i].y);
  formula("Pow", "beta=0.5", TYPE_F32, 0, (const double[]){-4, 0}, NULL, 2, (const double[]){NAN, 0});
  formula("Pow", "beta=-1", TYPE_F32, 0, (const double[]){-4, 0}, NULL, 2, (const double[]){-0.25, INFINITY});
  formula("Round", "", TYPE_F32, 0, (const double[]){-0.5, 0.5}, NULL, 2, (const double[]){-0.0, 0});
}

// Where functions are almost saturated, nothing cancels: the tails are about e^-40.
static void tails_keep_their_digits(void **state) {
  (void)state;
  const double tail = 4.248354255291589e-18; // e^-40
  const double one[] = {1}, left[] = {-40}, right[] = {40}, twenty[] = {20}, ten[] = {-10};
  formula("Sigmoid", "", TYPE_F64, 1e-32, left, NULL, 1, &tail);
  formula("SoftPlus", "", TYPE_F64, 1e-32, left, NULL, 1, &tail);
  formula("SoftPlusBackward", "", TYPE_F64, 1e-32, left, one, 1, &tail);
  formula("SigmoidBackward", "use_dst=0", TYPE_F64, 1e-32, left, one, 1, &tail);
  formula("SigmoidBackward", "use_dst=0", TYPE_F64, 1e-32, right, one, 1, &tail);
  formula("TanhBackward", "use_dst=0", TYPE_F64, 1e-31, twenty, one, 1, (const double[]){4 * tail});
  formula("Mish", "", TYPE_F64, 1e-30, left, NULL, 1, (const double[]){-40 * tail});
  formula("MishBackward", "", TYPE_F64, 1e-30, left, one, 1, (const double[]){-39 * tail});
  formula("GELU", "", TYPE_F64, 1e-36, ten, NULL, 1, (const double[]){-7.619853024160526e-23});
  formula("Elu", "alpha=1", TYPE_F64, 0, (const double[]){-1e-20}, NULL, 1, (const double[]){-1e-20});
}

static void coefficients_have_the_type_of_the_data(void **state) {
  (void)state;
  const double third = 0x1.5555555555555p-2, below[] = {-7}, x[] = {(float)third}, one[] = {1}, none[] = {0};
  formula("Clamp", "min=0x1.5555555555555p-2 max=1", TYPE_F32, 0, below, NULL, 1, x);
  formula("Clamp", "min=0x1.5555555555555p-2 max=1", TYPE_F64, 0, below, NULL, 1, &third);
  formula("ClampBackward", "min=0x1.5555555555555p-2 max=1", TYPE_F32, 0, x, one, 1, none); // on the bound
  formula("ClampBackward", "min=0x1.5555555555555p-2 max=1", TYPE_F64, 0, x, one, 1, one);
}

// Gradients

static void gradients_have_known_values(void **state) {
  (void)state;
  static const double dy[] = {1, 2, -1};
  static const struct {
    const char *op;
    const char *settings;
    double x[3], dx[3];
  } rows[] = {
      {"AbsBackward", "", {2, -3, 0}, {1, -2, 0}},
      {"ClampBackward", "min=-1 max=1", {0.5, -1, 1}, {1, 0, 0}},
      {"ClampBackward", "min=-1 max=1 use_dst=0", {-0.5, -2, 2}, {1, 0, 0}},
      {"EluBackward", "alpha=0.7 use_dst=0", {-1, 3, 0}, {0.25751561, 2, -0.7}},
      {"EluBackward", "alpha=0.7", {-0.44248439, 3, 0}, {0.25751561, 2, -0.7}},
      {"EluBackward", "alpha=-2 use_dst=0", {-1, 3, 0}, {-0.73575888, 2, 2}},
      {"GELUBackward", "", {1, -1, 0}, {1.08331547, -0.16663094, -0.5}},
      {"GELUBackward", "mode=1", {1, -1, 0}, {1.08296408, -0.16592816, -0.5}},
      {"HardSigmoidBackward", "alpha=0.5 beta=0.5", {0, -1, 1}, {0.5, 0, 0}},
      {"HardSwishBackward", "", {1, -3, 3}, {0.83333333, 0, -1}},
      {"HardSwishBackward", "", {-1.5, -2.25, 0}, {0, -0.5, -0.5}},
      {"MishBackward", "", {1, -1, 0}, {1.04903622, 0.11843352, -0.6}},
      {"SigmoidBackward", "use_dst=0", {0, 1, -1}, {0.25, 0.39322387, -0.19661193}},
      {"SigmoidBackward", "", {0.5, 1, 0.25}, {0.25, 0, -0.1875}},
      {"SoftPlusBackward", "beta=2", {1, 0, -1}, {0.88079708, 1, -0.11920292}},
      {"SoftPlusBackward", "beta=-1", {1, 0, -1}, {0.26894142, 1, -0.73105858}},
      {"SqrtBackward", "use_dst=0", {4, 0.25, 1}, {0.25, 2, -0.5}},
      {"SqrtBackward", "", {4, 0.25, 1}, {0.125, 4, -0.5}},
      {"TanhBackward", "use_dst=0", {0, 1, -1}, {1, 0.83994868, -0.41997434}},
      {"TanhBackward", "", {0, 1, -0.5}, {1, 0, -0.75}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    formula(rows[i].op, rows[i].settings, TYPE_F64, 2e-8, rows[i].x, dy, 3, rows[i].dx);
}

static void gradients_of_special_values(void **state) {
  (void)state;
  static const double x[] = {NAN, INFINITY, -INFINITY, -0.0}, dy[] = {2, 2, 2, 2};
  static const struct {
    const char *op;
    const char *settings;
    double dx[4];
  } rows[] = {
      {"AbsBackward", "", {0, 2, -2, 0}},
      {"ClampBackward", "min=-1 max=1", {0, 0, 0, 2}},
      {"ClampBackward", "min=-1 max=1 use_dst=0", {0, 0, 0, 2}},
      {"EluBackward", "alpha=0.75 use_dst=0", {NAN, 2, 0, 1.5}},
      {"EluBackward", "alpha=0.75", {NAN, 2, -INFINITY, 1.5}},
      {"GELUBackward", "", {NAN, 2, -0.0, 1}},
      {"GELUBackward", "mode=1", {NAN, 2, -0.0, 1}},
      {"HardSigmoidBackward", "alpha=0.5 beta=0.5", {0, 0, 0, 1}},
      {"HardSwishBackward", "", {NAN, 2, 0, 1}},
      {"MishBackward", "", {NAN, 2, -0.0, 1.2}},
      {"SigmoidBackward", "use_dst=0", {NAN, 0, 0, 0.5}},
      {"SigmoidBackward", "", {NAN, -INFINITY, -INFINITY, -0.0}},
      {"SoftPlusBackward", "", {NAN, 2, 0, 1}},
      {"SqrtBackward", "use_dst=0", {NAN, 0, NAN, -INFINITY}},
      {"SqrtBackward", "", {NAN, 0, -0.0, -INFINITY}},
      {"TanhBackward", "use_dst=0", {NAN, 0, 0, 2}},
      {"TanhBackward", "", {NAN, -INFINITY, -INFINITY, 2}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t t = 0; t < NFLOAT_TYPES; t++)
      formula(rows[i].op, rows[i].settings, float_types[t], 0, x, dy, 4, rows[i].dx);
  const double zeros[] = {0, 0}, numbers[] = {1, 0}, quotients[] = {INFINITY, NAN};
  formula("SqrtBackward", "", TYPE_F32, 0, zeros, numbers, 2, quotients);
  formula("SqrtBackward", "use_dst=0", TYPE_F32, 0, zeros, numbers, 2, quotients);
  // An operand that is not selected has no effect.
  const double off[] = {-4, -4}, unusual[] = {NAN, INFINITY};
  formula("HardSwishBackward", "", TYPE_F32, 0, off, unusual, 2, zeros);
  formula("ClampBackward", "min=-1 max=1", TYPE_F32, 0, off, unusual, 2, zeros);
  formula("HardSigmoidBackward", "alpha=1 beta=0", TYPE_F32, 0, off, unusual, 2, zeros);
}

enum { NPOINTS = 8 };
typedef double Points[NPOINTS];

static void evaluate(const char *op, const char *settings, const Points x, const double *dy, Points result) {
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F64, SHAPE(NPOINTS), x, NPOINTS);
  if (dy) case_input(&c, "dy", TYPE_F64, SHAPE(NPOINTS), dy, NPOINTS);
  set_all(case_node(&c, op, dy ? "x dy" : "x", "y"), settings);
  case_expect(&c, "y", ANY_VALUES);
  case_finish(&c);
  Tensor y = tensor_like(c.graph->outputs[0]);
  assert_true(tensor_alloc(&y, &system_allocator) && interpret(c.graph, c.inputs, &y, &c.options, &c.diagnostics));
  memcpy(result, y.data, sizeof(Points));
  tensor_free(&y, &system_allocator);
  case_free(&c);
}

// Central differences, away from joints.
static void gradients_are_the_slopes_of_their_operators(void **state) {
  (void)state;
  static const struct {
    const char *op;
    const char *settings;
    bool has_use_dst, is_of_positive;
  } rows[] = {
      {"Abs", "", false, false},
      {"Clamp", "min=-2 max=1.25", true, false},
      {"Elu", "alpha=0.7", true, false},
      {"GELU", "", false, false},
      {"GELU", "mode=1", false, false},
      {"HardSigmoid", "alpha=0.3 beta=0.4", false, false},
      {"HardSwish", "", false, false},
      {"Mish", "", false, false},
      {"ReLU", "", true, false},
      {"Sigmoid", "", true, false},
      {"SoftPlus", "beta=2", false, false},
      {"SoftPlus", "beta=-0.5", false, false},
      {"Sqrt", "", true, true},
      {"Tanh", "", true, false},
  };
  const double h = 1e-5;
  const Points x = {-4.1, -2.3, -1.2, -0.3, 0.4, 1.1, 2.2, 5.3}, ones = {1, 1, 1, 1, 1, 1, 1, 1};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Points at, above, below, y, slope;
    for (int p = 0; p < NPOINTS; p++) {
      at[p] = rows[i].is_of_positive ? fabs(x[p]) : x[p];
      above[p] = at[p] + h;
      below[p] = at[p] - h;
    }
    char gradient[64];
    snprintf(gradient, sizeof gradient, "%sBackward", rows[i].op);
    evaluate(rows[i].op, rows[i].settings, at, NULL, y);
    evaluate(rows[i].op, rows[i].settings, above, NULL, above);
    evaluate(rows[i].op, rows[i].settings, below, NULL, below);
    for (int use_dst = 0; use_dst <= rows[i].has_use_dst; use_dst++) {
      char settings[64];
      snprintf(settings, sizeof settings, "%s", rows[i].settings);
      if (rows[i].has_use_dst) snprintf(settings, sizeof settings, "use_dst=%d %s", use_dst, rows[i].settings);
      evaluate(gradient, settings, use_dst ? y : at, ones, slope);
      for (int p = 0; p < NPOINTS; p++)
        if (!(fabs(slope[p] - (above[p] - below[p]) / (2 * h)) < 1e-8))
          fail_msg("%s at %g: %g, expected %g", gradient, at[p], slope[p], (above[p] - below[p]) / (2 * h));
    }
  }
}

// Of several operands

static void quotients_follow_ieee(void **state) {
  (void)state;
  binary("Divide", SHAPE(4), VALUES(1, 0, -1, 6), SHAPE(4), VALUES(0, 0, 0, 4), VALUES(INFINITY, NAN, -INFINITY, 1.5));
  binary("Divide", SHAPE(4), VALUES(INFINITY, 1, -1, INFINITY), SHAPE(4), VALUES(2, INFINITY, INFINITY, INFINITY),
         VALUES(INFINITY, 0, -0.0, NAN));
  binary("Divide", SCALAR, VALUES(1), SHAPE(2, 2), VALUES(1, 2, 4, -0.0), VALUES(1, 0.5, 0.25, -INFINITY));
}

// A comparison with NaN, and a comparison of equal numbers, yield the second operand.
static void greater_and_lesser_of_two(void **state) {
  (void)state;
  binary("Maximum", SHAPE(6), VALUES(1, 2, NAN, 1, 0, -0.0), SHAPE(6), VALUES(3, -1, 1, NAN, -0.0, 0),
         VALUES(3, 2, 1, NAN, -0.0, 0));
  binary("Minimum", SHAPE(6), VALUES(1, 2, NAN, 1, 0, -0.0), SHAPE(6), VALUES(3, -1, 1, NAN, -0.0, 0),
         VALUES(1, -1, 1, NAN, -0.0, 0));
  binary("Maximum", SHAPE(2, 1), VALUES(-INFINITY, 5), SHAPE(2), VALUES(1, INFINITY), VALUES(1, INFINITY, 5, INFINITY));
  binary("Minimum", SHAPE(1), VALUES(2), SHAPE(2, 1), VALUES(1, 3), VALUES(1, 2));
}

static void squared_differences(void **state) {
  (void)state;
  binary("SquaredDifference", SHAPE(4), VALUES(1, -2, NAN, INFINITY), SHAPE(4), VALUES(4, -2, 1, -INFINITY),
         VALUES(9, 0, NAN, INFINITY));
  binary("SquaredDifference", SHAPE(2), VALUES(1, 2), SHAPE(2, 1), VALUES(0, 5), VALUES(1, 4, 16, 9));
}

static void comparisons_give_booleans(void **state) {
  (void)state;
  binary("GreaterEqual", SHAPE(8), VALUES(1, 2, 2, NAN, 1, NAN, -0.0, -INFINITY), SHAPE(8),
         VALUES(2, 1, 2, 1, NAN, NAN, 0, -INFINITY), VALUES(0, 1, 1, 0, 0, 0, 1, 1));
  binary("GreaterEqual", SHAPE(2, 1), VALUES(1, 3), SHAPE(3), VALUES(0, 1, 2), VALUES(1, 1, 0, 1, 1, 1));
  Case c;
  case_init(&c);
  case_input(&c, "a", TYPE_S32, SHAPE(3), VALUES(16777216, 16777217, INT32_MIN));
  case_input(&c, "b", TYPE_S32, SHAPE(3), VALUES(16777217, 16777216, INT32_MAX));
  case_node(&c, "GreaterEqual", "a b", "y");
  case_expect(&c, "y", VALUES(0, 1, 0)); // an f32 would not tell the first two apart
  case_finish(&c);
  assert_int_equal(c.graph->outputs[0]->type, TYPE_BOOLEAN);
  assert_true(case_run(&c, &c.diagnostics));
  case_free(&c);
}

static void choose(Shape shape_c, const double *cond, size_t nc, Shape shape_a, const double *a, size_t na,
                   Shape shape_b, const double *b, size_t nb, const double *dst, size_t ndst) {
  Case c;
  case_init(&c);
  case_input(&c, "c", TYPE_BOOLEAN, shape_c, cond, nc);
  case_input(&c, "a", TYPE_BF16, shape_a, a, na);
  case_input(&c, "b", TYPE_BF16, shape_b, b, nb);
  case_node(&c, "Select", "c a b", "y");
  case_expect(&c, "y", dst, ndst);
  case_passes(&c);
}

static void what_is_not_chosen_has_no_effect(void **state) {
  (void)state;
  choose(SHAPE(4), VALUES(1, 0, 1, 0), SHAPE(4), VALUES(1, NAN, -0.0, 4), SHAPE(4), VALUES(NAN, 6, INFINITY, -0.0),
         VALUES(1, 6, -0.0, -0.0));
  choose(SHAPE(1, 2), VALUES(1, 0), SHAPE(1), VALUES(7), SHAPE(2, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8),
         VALUES(7, 2, 7, 4, 7, 6, 7, 8));
  choose(SCALAR, VALUES(0), SHAPE(2, 1), VALUES(1, 2), SHAPE(3), VALUES(3, 4, 5), VALUES(3, 4, 5, 3, 4, 5));
  choose(SHAPE(2, 1), VALUES(1, 0), SHAPE(2, 1), VALUES(1, 2), SHAPE(3), VALUES(3, 4, 5), VALUES(1, 1, 1, 3, 4, 5));
  choose(SHAPE(1), VALUES(1), SHAPE(0), NO_VALUES, SHAPE(1), VALUES(3), NO_VALUES);
}

// Channels

static void biases_lie_along_the_channels(void **state) {
  (void)state;
  for (int is_ncx = 0; is_ncx < 2; is_ncx++) {
    Case c;
    case_init(&c);
    case_input(&c, "x", TYPE_F32, SHAPE(1, 2, 3), VALUES(1, 2, 3, 4, 5, 6));
    case_input(&c, "b", TYPE_F32, is_ncx ? SHAPE(2) : SHAPE(3), (const double[]){10, 20, 30}, is_ncx ? 2 : 3);
    case_set(case_node(&c, "BiasAdd", "x b", "y"), "data_format", is_ncx);
    case_set(case_node(&c, "BiasAddBackward", "x", "db"), "data_format", is_ncx);
    if (is_ncx) case_expect(&c, "y", VALUES(11, 12, 13, 24, 25, 26));
    else case_expect(&c, "y", VALUES(11, 22, 33, 14, 25, 36));
    if (is_ncx) case_expect(&c, "db", VALUES(6, 15));
    else case_expect(&c, "db", VALUES(5, 7, 9));
    case_passes(&c);
  }
}

static void sums_of_nothing_are_zero(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(0, 3), NO_VALUES);
  case_input(&c, "slope", TYPE_F32, SHAPE(3), VALUES(1, 2, 3));
  case_node(&c, "BiasAddBackward", "x", "db");
  case_node(&c, "PReLUBackward", "x slope x", "dx ds");
  case_expect(&c, "db", VALUES(0, 0, 0));
  case_expect(&c, "dx", NO_VALUES);
  case_expect(&c, "ds", VALUES(0, 0, 0));
  case_passes(&c);
}

static void prelu(Shape shape, const char *settings, const double *slope, size_t nslope, const double *dst,
                  size_t ndst) {
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(1, 2, 3), VALUES(1, -2, 3, -4, -5, -6));
  case_input(&c, "slope", TYPE_F32, shape, slope, nslope);
  set_all(case_node(&c, "PReLU", "x slope", "y"), settings);
  case_expect(&c, "y", dst, ndst);
  case_passes(&c);
}

static void slopes_lie_along_the_channels_or_are_broadcast(void **state) {
  (void)state;
  prelu(SHAPE(2), "data_format=1", VALUES(10, 100), VALUES(1, -20, 3, -400, -500, -600));
  prelu(SHAPE(3), "", VALUES(1, 10, 100), VALUES(1, -20, 3, -4, -50, -600));
  prelu(SHAPE(3), "data_format=1 per_channel_broadcast=0", VALUES(1, 10, 100), VALUES(1, -20, 3, -4, -50, -600));
  prelu(SHAPE(1), "per_channel_broadcast=0", VALUES(10), VALUES(1, -20, 3, -40, -50, -60));
  prelu(SHAPE(2, 1), "", VALUES(10, 100), VALUES(1, -20, 3, -400, -500, -600));
  prelu(SHAPE(1, 2, 3), "data_format=1", VALUES(1, 2, 3, 4, 5, 6), VALUES(1, -4, 3, -16, -25, -36));
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(5), VALUES(0, -0.0, NAN, INFINITY, -INFINITY));
  case_input(&c, "slope", TYPE_F32, SHAPE(5), VALUES(2, 2, 2, NAN, 0));
  case_set(case_node(&c, "PReLU", "x slope", "y"), "data_format", 1); // of one axis, which is the last
  case_expect(&c, "y", VALUES(0, -0.0, NAN, INFINITY, NAN));
  case_passes(&c);
}

static void prelu_backward(Shape shape, const double *slope, size_t nslope, const double *dx, size_t ndx,
                           const double *ds, size_t nds) {
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(1, 2, 2, 2), VALUES(-1, -2, -3, -4, -5, -6, 0, 8));
  case_input(&c, "slope", TYPE_F32, shape, slope, nslope);
  case_input(&c, "dy", TYPE_F32, SHAPE(1, 2, 2, 2), VALUES(1, 1, 1, 1, 1, 1, 1, 2));
  case_set(case_node(&c, "PReLUBackward", "x slope dy", "dx ds"), "data_format", 1);
  case_expect(&c, "dx", dx, ndx);
  case_expect(&c, "ds", ds, nds);
  case_passes(&c);
}

static void gradients_of_slopes_are_sums_where_they_were_broadcast(void **state) {
  (void)state;
  prelu_backward(SHAPE(2), VALUES(1, 10), VALUES(1, 1, 1, 1, 10, 10, 10, 2), VALUES(-10, -11));
  prelu_backward(SHAPE(1), VALUES(3), VALUES(3, 3, 3, 3, 3, 3, 3, 2), VALUES(-21));
  prelu_backward(SHAPE(2, 1), VALUES(1, 10), VALUES(1, 1, 10, 10, 1, 1, 10, 2), VALUES(-14, -7));
  prelu_backward(SHAPE(1, 1, 1, 2), VALUES(1, 10), VALUES(1, 10, 1, 10, 1, 10, 1, 2), VALUES(-9, -12));
  prelu_backward(SHAPE(1, 2, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8), VALUES(1, 2, 3, 4, 5, 6, 7, 2),
                 VALUES(-1, -2, -3, -4, -5, -6, 0, 0));
}

static void binary_operators_on_equal_shapes(void **state) {
  (void)state;
  binary("Add", SHAPE(3), VALUES(1, 2, -3), SHAPE(3), VALUES(10, 0.5, 3), VALUES(11, 2.5, 0));
  binary("Subtract", SHAPE(3), VALUES(1, 2, -3), SHAPE(3), VALUES(10, 0.5, -3), VALUES(-9, 1.5, 0));
  binary("Multiply", SHAPE(3), VALUES(1, 2, -3), SHAPE(3), VALUES(10, 0.5, 3), VALUES(10, 1, -9));
}

static void binary_operators_follow_ieee(void **state) {
  (void)state;
  binary("Add", SHAPE(4), VALUES(NAN, INFINITY, INFINITY, -0.0), SHAPE(4), VALUES(1, 1, -INFINITY, -0.0),
         VALUES(NAN, INFINITY, NAN, -0.0));
  binary("Subtract", SHAPE(4), VALUES(1, INFINITY, 1, 0), SHAPE(4), VALUES(NAN, INFINITY, INFINITY, 0),
         VALUES(NAN, NAN, -INFINITY, 0));
  binary("Multiply", SHAPE(4), VALUES(NAN, INFINITY, INFINITY, -0.0), SHAPE(4), VALUES(0, 0, -2, 5),
         VALUES(NAN, NAN, -INFINITY, -0.0));
}

static void either_side_broadcasts(void **state) {
  (void)state;
  binary("Subtract", SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, 6), SHAPE(3), VALUES(10, 20, 30),
         VALUES(-9, -18, -27, -6, -15, -24));
  binary("Subtract", SHAPE(3), VALUES(10, 20, 30), SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, 6), VALUES(9, 18, 27, 6, 15, 24));
  binary("Add", SHAPE(2, 1), VALUES(1, 2), SHAPE(1, 3), VALUES(10, 20, 30), VALUES(11, 21, 31, 12, 22, 32));
  binary("Add", SHAPE(2, 1, 2), VALUES(1, 2, 3, 4), SHAPE(3, 1), VALUES(10, 20, 30),
         VALUES(11, 12, 21, 22, 31, 32, 13, 14, 23, 24, 33, 34));
  binary("Multiply", SCALAR, VALUES(2), SHAPE(2, 2), VALUES(1, 2, 3, 4), VALUES(2, 4, 6, 8));
  binary("Multiply", SHAPE(2, 2), VALUES(1, 2, 3, 4), SHAPE(1), VALUES(2), VALUES(2, 4, 6, 8));
  binary("Multiply", SCALAR, VALUES(2), SCALAR, VALUES(3), VALUES(6));
  binary("Add", SHAPE(1, 1, 1, 1, 1, 1, 1, 2), VALUES(1, 2), SHAPE(2, 1, 1, 1, 1, 1, 1, 1), VALUES(10, 20),
         VALUES(11, 12, 21, 22));
}

static void nothing_broadcasts_to_nothing(void **state) {
  (void)state;
  binary("Add", SHAPE(0, 3), NO_VALUES, SHAPE(3), VALUES(1, 2, 3), NO_VALUES);
  binary("Add", SHAPE(1), VALUES(1), SHAPE(0), NO_VALUES, NO_VALUES);
}

static void without_broadcasting_shapes_are_equal(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "a", TYPE_F32, SHAPE(1, 2), VALUES(1, 2));
  case_input(&c, "b", TYPE_F32, SHAPE(1, 2), VALUES(3, 5));
  case_set(case_node(&c, "Add", "a b", "y"), "auto_broadcast", 1);
  case_expect(&c, "y", VALUES(4, 7));
  case_passes(&c);
}

static void mixed_types_give_f32(void **state) {
  (void)state;
  const Type narrow[] = {TYPE_F16, TYPE_BF16};
  const char *const operators_tested[] = {"Add", "Subtract", "Multiply"};
  const double expected[] = {1 + 0x1p-20, 1 - 0x1p-20, 0x1p-20};
  for (size_t i = 0; i < 6; i++) {
    Case c;
    case_init(&c);
    case_input(&c, "a", narrow[i % 2], SHAPE(1), VALUES(1));
    case_input(&c, "b", TYPE_F32, SHAPE(1), VALUES(0x1p-20));
    case_node(&c, operators_tested[i / 2], "a b", "y");
    case_expect(&c, "y", &expected[i / 2], 1);
    case_finish(&c);
    assert_int_equal(c.graph->outputs[0]->type, TYPE_F32);
    assert_true(case_run(&c, &c.diagnostics));
    case_free(&c);
  }
}

static void integers_are_exact_and_wrap_around(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "a", TYPE_S32, SHAPE(4), VALUES(16777217, INT32_MAX, INT32_MIN, -5));
  case_input(&c, "b", TYPE_S32, SHAPE(4), VALUES(0, 1, 1, 7));
  case_node(&c, "Add", "a b", "sum");
  case_node(&c, "Subtract", "a b", "difference");
  case_node(&c, "Subtract", "sum b", "back");
  case_expect(&c, "sum", VALUES(16777217, INT32_MIN, (double)INT32_MIN + 1, 2));
  case_expect(&c, "difference", VALUES(16777217, INT32_MAX - 1, INT32_MAX, -12));
  case_expect(&c, "back", VALUES(16777217, INT32_MAX, INT32_MIN, -5));
  case_passes(&c);
}

static void type_cast(Type from, Type to, const double *src, size_t nsrc, const double *dst, size_t ndst) {
  Case c;
  case_init(&c);
  case_input(&c, "x", from, SHAPE((int64_t)nsrc), src, nsrc);
  case_value(&c, "y")->type = to;
  case_node(&c, "TypeCast", "x", "y");
  case_expect(&c, "y", dst, ndst);
  case_passes(&c);
}

static void type_cast_rounds_to_nearest_even(void **state) {
  (void)state;
  type_cast(TYPE_F32, TYPE_BF16, VALUES(1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1.8p-8, 0x1.FFp127),
            VALUES(1, 1 + 0x2p-7, 1 + 0x1p-7, INFINITY));
  type_cast(TYPE_F32, TYPE_F16, VALUES(1 + 0x1p-11, 1 + 0x3p-11, 65519, 65520, 0x1p-25, 0x1.8p-25),
            VALUES(1, 1 + 0x2p-10, 65504, INFINITY, 0, 0x1p-24));
  type_cast(TYPE_F64, TYPE_F32, VALUES(1 + 0x1p-24, 1 + 0x3p-24, 1e300, -1e-300),
            VALUES(1, 1 + 0x1p-22, INFINITY, -0.0));
  const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 0.5};
  for (size_t i = 0; i < NFLOAT_TYPES; i++) {
    if (float_types[i] == TYPE_F32) continue;
    type_cast(TYPE_F32, float_types[i], special, 5, special, 5);
    type_cast(float_types[i], TYPE_F32, special, 5, special, 5);
  }
}

// Between nodes nothing else is rounded: the sum of three rounds once. A cast in between shows the difference.
static void only_casts_and_outputs_round(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "one", TYPE_F32, SHAPE(1), VALUES(1));
  case_input(&c, "tiny", TYPE_F32, SHAPE(1), VALUES(0x1p-24));
  case_node(&c, "Add", "one tiny", "exact");
  case_node(&c, "Add", "exact tiny", "twice");
  case_value(&c, "cast")->type = TYPE_F16;
  case_node(&c, "TypeCast", "exact", "cast");
  case_node(&c, "Add", "cast tiny", "once");
  case_expect(&c, "twice", VALUES(1 + 0x1p-23));
  case_expect(&c, "once", VALUES(1)); // 1 + 2^-24, a tie that goes to even
  case_passes(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(relu_keeps_what_is_positive),
      cmocka_unit_test(relu_of_special_values),
      cmocka_unit_test(relu_of_a_scalar_and_of_nothing),
      cmocka_unit_test(relu_backward_passes_where_data_is_positive),
      cmocka_unit_test(activations_have_known_values),
      cmocka_unit_test(activations_of_special_values),
      cmocka_unit_test(tails_keep_their_digits),
      cmocka_unit_test(coefficients_have_the_type_of_the_data),
      cmocka_unit_test(gradients_have_known_values),
      cmocka_unit_test(gradients_of_special_values),
      cmocka_unit_test(gradients_are_the_slopes_of_their_operators),
      cmocka_unit_test(quotients_follow_ieee),
      cmocka_unit_test(greater_and_lesser_of_two),
      cmocka_unit_test(squared_differences),
      cmocka_unit_test(comparisons_give_booleans),
      cmocka_unit_test(what_is_not_chosen_has_no_effect),
      cmocka_unit_test(biases_lie_along_the_channels),
      cmocka_unit_test(sums_of_nothing_are_zero),
      cmocka_unit_test(slopes_lie_along_the_channels_or_are_broadcast),
      cmocka_unit_test(gradients_of_slopes_are_sums_where_they_were_broadcast),
      cmocka_unit_test(binary_operators_on_equal_shapes),
      cmocka_unit_test(binary_operators_follow_ieee),
      cmocka_unit_test(either_side_broadcasts),
      cmocka_unit_test(nothing_broadcasts_to_nothing),
      cmocka_unit_test(without_broadcasting_shapes_are_equal),
      cmocka_unit_test(mixed_types_give_f32),
      cmocka_unit_test(integers_are_exact_and_wrap_around),
      cmocka_unit_test(type_cast_rounds_to_nearest_even),
      cmocka_unit_test(only_casts_and_outputs_round),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
