// Comparison relative to the magnitude of the terms of sums: roundings of terms that cancel pass, and errors as large
// as a term fail.
#include "ir/graph/type.h"
#include "tests/unit/api_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// A graph, its expected results, and actual results to spoil.
typedef struct Case {
  ng_context *ctx;
  ng_graph *graph;
  Data data; // out: actual
  ng_tensor expected[8];
  ng_difference differences[8];
} Case;

static void *data_of(const ng_tensor *t) {
  if (!t->data) abort(); // not reached, as no reader of the code can tell
  return t->data;
}

// Inputs are random and then multiplied by scale.
static void case_init(Case *c, const char *text, double scale) {
  *c = (Case){.ctx = new_context()};
  c->graph = must_read(c->ctx, text);
  assert_int_equal(data_make(&c->data, c->ctx, c->graph), NG_OK);
  for (size_t i = 0; i < ng_graph_input_count(c->graph); i++) {
    ng_tensor *t = &c->data.in[i];
    for (int64_t e = 0; scale != 1 && e < ng_tensor_nelems(t); e++) {
      if (t->type == NG_F64) ((double *)data_of(t))[e] *= scale;
      else ((float *)data_of(t))[e] *= (float)scale;
    }
  }
  for (size_t i = 0; i < ng_graph_output_count(c->graph); i++) {
    ng_tensor_info info = ng_graph_output(c->graph, i);
    assert_int_equal(ng_tensor_new(c->ctx, &info, &c->expected[i]), NG_OK);
  }
  assert_int_equal(ng_interpret(c->graph, c->data.in, c->expected, 0), NG_OK);
  for (size_t i = 0; i < ng_graph_output_count(c->graph); i++)
    memcpy(data_of(&c->data.out[i]), data_of(&c->expected[i]), ng_tensor_nbytes(&c->expected[i]));
}

static void case_deinit(Case *c) {
  data_free(&c->data, c->ctx);
  for (size_t i = 0; i < 8; i++) ng_tensor_free(c->ctx, &c->expected[i]);
  ng_graph_free(c->graph);
  ng_context_free(c->ctx);
}

static ng_status compare(Case *c) {
  return ng_compare_outputs(c->graph, NULL, c->data.in, c->data.out, c->expected, -1, c->differences);
}

// Whether element e of the first output may be off by this.
static ng_status off_by(Case *c, int64_t e, double error) {
  ng_tensor *t = &c->data.out[0];
  double *wide = t->data;
  float *narrow = t->data;
  double before = ng_tensor_get(t, e);
  if (t->type == NG_F64) wide[e] = before + error;
  else narrow[e] = (float)(before + error);
  ng_status status = compare(c);
  if (t->type == NG_F64) wide[e] = before;
  else narrow[e] = (float)before;
  return status;
}

#define BEGIN "format: ngrad/1\nname: magnitude\n"

// Sums of deviations from a mean, all of them 0.
#define DEVIATIONS(type)                                                                                               \
  BEGIN "inputs: [{name: x, type: " type ", shape: [4, 100]}]\n"                                                       \
        "nodes:\n"                                                                                                     \
        "  - {op: ReduceMean, inputs: [x], outputs: [m], attributes: {axes: [1], keep_dims: true}}\n"                  \
        "  - {op: Subtract, inputs: [x, m], outputs: [c]}\n"                                                           \
        "  - {op: ReduceSum, inputs: [c], outputs: [y], attributes: {axes: [1]}}\n"                                    \
        "outputs: [y]\n"

static void roundings_of_terms_that_cancel_pass(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double scale, rounding; // of a term
  } cases[] = {{DEVIATIONS("f64"), 1, 0x1p-53},
               {DEVIATIONS("f64"), 1e-10, 1e-10 * 0x1p-53},
               {DEVIATIONS("f32"), 1, 0x1p-24},
               {DEVIATIONS("f32"), 1e10, 1e10 * 0x1p-24}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Case c;
    case_init(&c, cases[i].text, cases[i].scale);
    assert_true(fabs(ng_tensor_get(&c.expected[0], 1)) < 100 * cases[i].rounding);
    assert_int_equal(off_by(&c, 1, 8 * cases[i].rounding), NG_OK);
    assert_true(c.differences[0].norm > 10 * cases[i].scale);
    assert_int_equal(off_by(&c, 1, cases[i].scale), NG_DIFFERENT); // a term
    assert_int_equal(off_by(&c, 1, INFINITY), NG_DIFFERENT);
    assert_int_equal(off_by(&c, 1, NAN), NG_DIFFERENT);
    case_deinit(&c);
  }
}

// Results that are 0 because an operator cancels internally, which changes of its inputs do not show.
static void operators_that_cancel_within_pass(void **state) {
  (void)state;
  static const char text[] =
      BEGIN "inputs: [{name: x, type: f32, shape: [64, 1]}, {name: dy, type: f32, shape: [64, 1]}]\n"
            "nodes:\n"
            "  - {op: RMSNormBackward, inputs: [x, dy], outputs: [y],\n"
            "     attributes: {epsilon: 1.0e-30, begin_norm_axis: -1}}\n"
            "outputs: [y]\n";
  Case c;
  case_init(&c, text, 1);
  assert_int_equal(off_by(&c, 5, 1e-7), NG_OK);
  assert_int_equal(off_by(&c, 5, 1e-2), NG_DIFFERENT);
  case_deinit(&c);
}

static void a_missing_term_of_a_million_is_seen(void **state) {
  (void)state;
  static const char text[] = BEGIN "inputs: [{name: x, type: f32, shape: [1000000]}]\n"
                                   "nodes: [{op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [0]}}]\n"
                                   "outputs: [y]\n";
  Case c;
  case_init(&c, text, 1);
  assert_int_equal(off_by(&c, 0, 0.25), NG_DIFFERENT);
  case_deinit(&c);
}

// The gradient of a norm over two elements is about epsilon, the difference of terms near 1. In f32 nothing of it is
// right, but an error of 1/200 of a term is no rounding error, even in a single element.
static void a_small_error_among_terms_that_cancel_is_seen(void **state) {
  (void)state;
  static const char text[] =
      BEGIN "inputs: [{name: x, type: f32, shape: [2000, 2]}, {name: dy, type: f32, shape: [2000, 2]}]\n"
            "nodes:\n"
            "  - {op: LayerNorm, inputs: [x], outputs: {dst: z, mean: m, variance: v},\n"
            "     attributes: {begin_norm_axis: -1, use_affine: false, keep_stats: true, epsilon: 1.0e-7}}\n"
            "  - {op: LayerNormBackward, inputs: {src: x, diff_dst: dy, mean: m, variance: v}, outputs: [y],\n"
            "     attributes: {begin_norm_axis: -1, use_affine: false, epsilon: 1.0e-7}}\n"
            "outputs: [y]\n";
  Case c;
  case_init(&c, text, 1);
  for (int64_t e = 0; e < 20; e++) {
    const double variance =
        pow(ng_tensor_get(&c.data.in[0], e / 2 * 2) - ng_tensor_get(&c.data.in[0], e / 2 * 2 + 1), 2);
    if (variance < 1) continue; // terms much larger than others
    assert_int_equal(off_by(&c, e, 1e-7), NG_OK);
    assert_int_equal(off_by(&c, e, 5e-3), NG_DIFFERENT);
  }
  case_deinit(&c);
}

// However many elements are right, and however large a few of them are.
static void many_right_elements_excuse_no_wrong_one(void **state) {
  (void)state;
  static const char text[] = BEGIN "inputs: [{name: x, type: f32, shape: [30000]}]\n"
                                   "nodes: [{op: Exp, inputs: [x], outputs: [y]}]\n"
                                   "outputs: [y]\n";
  Case c;
  case_init(&c, text, 1);
  ((float *)data_of(&c.data.in[0]))[5] = 60;
  assert_int_equal(ng_interpret(c.graph, c.data.in, c.expected, 0), NG_OK);
  assert_int_equal(ng_interpret(c.graph, c.data.in, c.data.out, 0), NG_OK);
  assert_int_equal(off_by(&c, 29999, 1e-3 * ng_tensor_get(&c.expected[0], 29999)), NG_DIFFERENT);
  assert_true(c.differences[0].worst_element == 29999 && c.differences[0].largest_error > 1e-4);
  assert_int_equal(off_by(&c, 29999, 3e-7 * ng_tensor_get(&c.expected[0], 29999)), NG_OK);
  case_deinit(&c);
}

static void a_sum_over_the_wrong_axis_is_seen(void **state) {
  (void)state;
  static const char text[] = BEGIN "inputs: [{name: x, type: f32, shape: [64, 64]}]\n"
                                   "nodes:\n"
                                   "  - {op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [0]}}\n"
                                   "  - {op: ReduceSum, inputs: [x], outputs: [z], attributes: {axes: [1]}}\n"
                                   "outputs: [y, z]\n";
  Case c;
  case_init(&c, text, 1);
  memcpy(c.data.out[0].data, c.expected[1].data, 64 * sizeof(float));
  assert_int_equal(compare(&c), NG_DIFFERENT);
  assert_true(!c.differences[0].is_within && c.differences[1].is_within);
  case_deinit(&c);
}

// Noise may move an element over a threshold, which moves the result far: one wrong element must be seen all the same.
// If noise moves the maximum of a row, the element that is the maximum must still equal it.
static void thresholds_excuse_nothing(void **state) {
  (void)state;
  static const char *const texts[] = {
      BEGIN "inputs: [{name: x, type: f32, shape: [300000]}, {name: dy, type: f32, shape: [300000]}]\n"
            "nodes:\n"
            "  - {op: Tanh, inputs: [x], outputs: [t]}\n"
            "  - {op: ClampBackward, inputs: [t, dy], outputs: [y],\n"
            "     attributes: {min: -0.5, max: 0.5, use_dst: false}}\n"
            "outputs: [y]\n",
      BEGIN "inputs: [{name: x, type: f32, shape: [500, 600]}, {name: dy, type: f32, shape: [500, 1]}]\n"
            "constants: [{name: zero, type: f32, shape: [], value: 0.0}]\n"
            "nodes:\n"
            "  - {op: Tanh, inputs: [x], outputs: [t]}\n"
            "  - {op: ReduceMax, inputs: [t], outputs: [m], attributes: {axes: [1], keep_dims: true}}\n"
            "  - {op: GreaterEqual, inputs: [t, m], outputs: [c]}\n"
            "  - {op: Add, inputs: [t, dy], outputs: [s]}\n"
            "  - {op: Select, inputs: [c, s, zero], outputs: [y]}\n"
            "outputs: [y]\n"};
  for (size_t i = 0; i < 2; i++) {
    Case c;
    case_init(&c, texts[i], 1);
    assert_int_equal(off_by(&c, 299999, 0.5), NG_DIFFERENT);
    case_deinit(&c);
  }
}

// Places of elements in a sorted order, counted by comparisons: sums of booleans, compared with constants. Nothing of
// it is rounded, so each element is right or wrong.
static void choices_by_exact_values_excuse_nothing(void **state) {
  (void)state;
  static const char text[] =
      BEGIN "inputs: [{name: x, type: f32, shape: [3]}]\n"
            "constants:\n"
            "  - {name: j, type: f32, shape: [2, 1], values: [0, 1]}\n"
            "  - {name: zero, type: f32, shape: [], value: 0}\n"
            "nodes:\n"
            "  - {op: StaticReshape, inputs: [x], outputs: [c], attributes: {shape: [3, 1], special_zero: false}}\n"
            "  - {op: Greater, inputs: [x, c], outputs: [g]}\n"
            "  - {op: TypeCast, inputs: [g], outputs: [{name: f, type: f32}]}\n"
            "  - {op: ReduceSum, inputs: [f], outputs: [rank], attributes: {axes: [1]}}\n"
            "  - {op: Equal, inputs: [j, rank], outputs: [is]}\n"
            "  - {op: Select, inputs: [is, x, zero], outputs: [p]}\n"
            "  - {op: ReduceSum, inputs: [p], outputs: [y], attributes: {axes: [1]}}\n"
            "outputs: [y, p, rank]\n";
  Case c;
  case_init(&c, text, 1);
  memcpy(data_of(&c.data.in[0]), (const float[]){2, 5, 1}, 3 * sizeof(float));
  assert_int_equal(ng_interpret(c.graph, c.data.in, c.expected, 0), NG_OK);
  assert_int_equal(ng_interpret(c.graph, c.data.in, c.data.out, 0), NG_OK);
  assert_true(ng_tensor_get(&c.expected[0], 0) == 5 && ng_tensor_get(&c.expected[0], 1) == 2);
  static const double errors[] = {1, 0.3, 0.001, -1, -5};
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) assert_int_equal(off_by(&c, 0, errors[i]), NG_DIFFERENT);
  assert_int_equal(off_by(&c, 1, 0.2), NG_DIFFERENT);
  assert_int_equal(off_by(&c, 0, 1e-6), NG_OK);
  case_deinit(&c);
}

// A quotient of whole numbers that is one, and a sum of numbers with few digits, are exact.
static void exact_arithmetic_excuses_nothing(void **state) {
  (void)state;
  static const char *const nodes[] = {"{op: Divide, inputs: [x, three], outputs: [q]}",
                                      "{op: Subtract, inputs: [x, four], outputs: [q]}",
                                      "{op: Multiply, inputs: [x, third], outputs: [q]}"};
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    char text[1024];
    snprintf(
        text, sizeof text,
        BEGIN
        "inputs: [{name: x, type: f32, shape: [3]}]\n"
        "constants: [{name: three, type: f32, shape: [], value: 3}, {name: four, type: f32, shape: [], value: 4},\n"
        "  {name: third, type: f32, shape: [], value: 0.333251953125}, {name: two, type: f32, shape: [], value: 2},\n"
        "  {name: other, type: f32, shape: [], value: 1.99951171875}, {name: zero, type: f32, shape: [], value: 0}]\n"
        "outputs: [y]\n"
        "nodes:\n"
        "  - %s\n"
        "  - {op: Equal, inputs: [q, %s], outputs: [is]}\n"
        "  - {op: Select, inputs: [is, x, zero], outputs: [y]}\n",
        nodes[i], i == 2 ? "other" : "two");
    Case c;
    case_init(&c, text, 1);
    memcpy(data_of(&c.data.in[0]), (const float[]){6, 5, 9}, 3 * sizeof(float));
    assert_int_equal(ng_interpret(c.graph, c.data.in, c.expected, 0), NG_OK);
    assert_int_equal(ng_interpret(c.graph, c.data.in, c.data.out, 0), NG_OK);
    assert_true(ng_tensor_get(&c.expected[0], 0) == 6 && ng_tensor_get(&c.expected[0], 2) == 0);
    assert_int_equal(off_by(&c, 0, -6), NG_DIFFERENT);
    assert_int_equal(off_by(&c, 2, 9), NG_DIFFERENT);
    case_deinit(&c);
  }
}

// a * b and e^c, which are equal at element 7 but for roundings.
#define NEAR                                                                                                           \
  BEGIN "inputs: [{name: a, type: f32, shape: [50]}, {name: b, type: f32, shape: [50]}, "                              \
        "{name: c, type: f32, shape: [50]}]\n"                                                                         \
        "constants: [{name: two, type: f32, shape: [], value: 2}, {name: five, type: f32, shape: [], value: 5},\n"     \
        "  {name: half, type: f32, shape: [], value: 2.5}]\n"                                                          \
        "outputs: [y]\n"                                                                                               \
        "nodes:\n"                                                                                                     \
        "  - {op: Multiply, inputs: [a, b], outputs: [p]}\n"                                                           \
        "  - {op: Exp, inputs: [c], outputs: [e]}\n"                                                                   \
        "  - {op: Subtract, inputs: [p, e], outputs: [d]}\n"
#define STEPS                                                                                                          \
  "  - {op: Add, inputs: [d, half], outputs: [h]}\n"                                                                   \
  "  - {op: Quantize, inputs: [h], outputs: [{name: q, type: s8}], attributes: {scales: [1.0], zps: [0]}}\n"

static void near_init(Case *c, const char *text) {
  case_init(c, text, 1);
  ((float *)data_of(&c->data.in[0]))[7] = 0.9F;
  ((float *)data_of(&c->data.in[1]))[7] = (float)exp((double)0.3F) / 0.9F;
  ((float *)data_of(&c->data.in[2]))[7] = 0.3F;
  assert_int_equal(ng_interpret(c->graph, c->data.in, c->expected, 0), NG_OK);
  assert_int_equal(ng_interpret(c->graph, c->data.in, c->data.out, 0), NG_OK);
}

static ng_status with_element(Case *c, int64_t e, double number) {
  const ng_tensor *y = &c->data.out[0];
  const double before = ng_tensor_get(y, e);
  type_store((Type)y->type, data_of(y), (size_t)e, number);
  const ng_status status = compare(c);
  type_store((Type)y->type, data_of(y), (size_t)e, before);
  return status;
}

// Roundings may flip element 7, and no other: it may be one of two numbers, but nothing between or beyond.
static void flips_excuse_two_results(void **state) {
  (void)state;
  static const struct {
    const char *nodes;
    double right[2], wrong[2];
  } rows[] = {
      {"  - {op: Greater, inputs: [p, e], outputs: [y]}\n", {0, 1}, {0, 0}},
      {"  - {op: Greater, inputs: [p, e], outputs: [g]}\n"
       "  - {op: Select, inputs: [g, five, two], outputs: [y]}\n",
       {2, 5},
       {3.5, 6}},
      {"  - {op: ReLUBackward, inputs: [d, a], outputs: [y], attributes: {use_dst: false}}\n", {0, 0.9F}, {0.45, 1.8}},
      {STEPS "  - {op: TypeCast, inputs: [q], outputs: [{name: y, type: s32}]}\n", {2, 3}, {4, 1}},
      {STEPS "  - {op: TypeCast, inputs: [q], outputs: [{name: y, type: f32}]}\n", {2, 3}, {2.5, 1}},
      {STEPS "  - {op: StaticReshape, inputs: [q], outputs: [y], attributes: {shape: [50], special_zero: false}}\n",
       {2, 3},
       {4, 1}},
      {"  - {op: Add, inputs: [d, half], outputs: [h]}\n"
       "  - {op: Round, inputs: [h], outputs: [y]}\n",
       {2, 3},
       {2.5, 4}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[2048];
    snprintf(text, sizeof text, NEAR "%s", rows[i].nodes);
    Case c;
    near_init(&c, text);
    for (int k = 0; k < 2; k++) assert_int_equal(with_element(&c, 7, rows[i].right[k]), NG_OK);
    for (int k = 0; k < 2 && rows[i].wrong[k] != 0; k++)
      assert_int_equal(with_element(&c, 7, rows[i].wrong[k]), NG_DIFFERENT);
    assert_int_equal(with_element(&c, 3, ng_tensor_get(&c.expected[0], 3) == 0), NG_DIFFERENT);
    case_deinit(&c);
  }
}

// Expected results must be right, too: a flip excuses no others.
static void flips_excuse_no_wrong_expectation(void **state) {
  (void)state;
  Case c;
  near_init(&c, NEAR "  - {op: Greater, inputs: [p, e], outputs: [g]}\n"
                     "  - {op: Select, inputs: [g, five, two], outputs: [y]}\n");
  static const double wrong[] = {3, 7, INFINITY, NAN};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    type_store(TYPE_F32, data_of(&c.expected[0]), 7, wrong[i]);
    assert_int_equal(compare(&c), NG_DIFFERENT);
  }
  case_deinit(&c);
}

// Inputs have no rounding error, whatever their type, and products of them are added in f32.
static void narrow_inputs_excuse_no_errors_of_their_type(void **state) {
  (void)state;
  static const char *const nodes[] = {
      "{op: MatMul, inputs: [x, w], outputs: [{name: y, type: f32}]}",
      "{op: SoftMax, inputs: [x], outputs: [{name: y, type: f32}], attributes: {axis: 1}}"};
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    char text[512];
    snprintf(text, sizeof text,
             BEGIN "inputs: [{name: x, type: bf16, shape: [4, 16]}, {name: w, type: bf16, shape: [16, 16]}]\n"
                   "nodes: [%s]\noutputs: [y]\n",
             nodes[i]);
    Case c;
    case_init(&c, text, 1);
    const double y = ng_tensor_get(&c.expected[0], 5);
    assert_int_equal(off_by(&c, 5, 1e-6 * y), NG_OK);
    assert_int_equal(off_by(&c, 5, 1e-3 * y), NG_DIFFERENT);
    case_deinit(&c);
  }
}

// In each of many rows the same sum is computed in two orders, and roundings decide which is greater.
static void each_of_many_ties_may_flip(void **state) {
  (void)state;
  static const char *const choices[] = {
      "  - {op: Greater, inputs: [s, t], outputs: [y]}\n",
      "  - {op: Concat, inputs: {src: [s, t]}, outputs: [both], attributes: {axis: 1}}\n"
      "  - {op: ArgMax, inputs: [both], outputs: [y], attributes: {axis: 1}}\n"};
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             BEGIN "inputs: [{name: a, type: f32, shape: [2000, 1]}, {name: b, type: f32, shape: [2000, 1]}]\n"
                   "nodes:\n"
                   "  - {op: Exp, inputs: [a], outputs: [ea]}\n"
                   "  - {op: Exp, inputs: [b], outputs: [eb]}\n"
                   "  - {op: Multiply, inputs: [ea, eb], outputs: [s]}\n"
                   "  - {op: Add, inputs: [a, b], outputs: [ab]}\n"
                   "  - {op: Exp, inputs: [ab], outputs: [t]}\n"
                   "%soutputs: [y]\n",
             choices[i]);
    Case c;
    case_init(&c, text, 1);
    ng_tensor *y = &c.data.out[0];
    for (int64_t e = 0; e < ng_tensor_nelems(y); e++)
      type_store((Type)y->type, data_of(y), (size_t)e, 1 - ng_tensor_get(y, e));
    assert_int_equal(compare(&c), NG_OK);
    assert_true(c.differences[0].nflipped == ng_tensor_nelems(y));
    case_deinit(&c);
  }
}

// Three numbers that are equal but for roundings: each of them may be the greatest in each of many rows.
static void ties_of_three_may_be_decided_in_three_ways(void **state) {
  (void)state;
  static const char text[] =
      BEGIN "inputs: [{name: a, type: f32, shape: [2000, 1]}, {name: b, type: f32, shape: [2000, 1]}]\n"
            "nodes:\n"
            "  - {op: Exp, inputs: [a], outputs: [ea]}\n"
            "  - {op: Exp, inputs: [b], outputs: [eb]}\n"
            "  - {op: Multiply, inputs: [ea, eb], outputs: [s]}\n"
            "  - {op: Add, inputs: [a, b], outputs: [ab]}\n"
            "  - {op: Exp, inputs: [ab], outputs: [t]}\n"
            "  - {op: Neg, inputs: [b], outputs: [nb]}\n"
            "  - {op: Exp, inputs: [nb], outputs: [enb]}\n"
            "  - {op: Divide, inputs: [ea, enb], outputs: [u]}\n"
            "  - {op: Concat, inputs: {src: [s, t, u]}, outputs: [all], attributes: {axis: 1}}\n"
            "  - {op: ArgMax, inputs: [all], outputs: [y], attributes: {axis: 1}}\n"
            "outputs: [y]\n";
  Case c;
  case_init(&c, text, 1);
  ng_tensor *y = &c.data.out[0];
  for (int other = 1; other < 3; other++) {
    for (int64_t e = 0; e < ng_tensor_nelems(y); e++)
      type_store((Type)y->type, data_of(y), (size_t)e, fmod(ng_tensor_get(&c.expected[0], e) + other, 3));
    assert_int_equal(compare(&c), NG_OK);
  }
  type_store((Type)y->type, data_of(y), 1234, 3);
  assert_int_equal(compare(&c), NG_DIFFERENT);
  case_deinit(&c);
}

static void what_is_exact_is_compared_exactly(void **state) {
  (void)state;
  static const char text[] = BEGIN "inputs: [{name: x, type: f32, shape: [5]}]\n"
                                   "nodes: [{op: GenIndex, inputs: [x], outputs: [y], attributes: {axis: 0}}]\n"
                                   "outputs: [y]\n";
  Case c;
  case_init(&c, text, 1);
  ((int32_t *)c.data.out[0].data)[3]++;
  assert_int_equal(compare(&c), NG_DIFFERENT);
  assert_true(c.differences[0].tolerance == 0);
  case_deinit(&c);
}

// Elements of inputs in other places have every bit of them, also the signs of zeros.
static void what_is_moved_is_compared_exactly(void **state) {
  (void)state;
  static const char *const nodes[] = {
      "{op: StaticTranspose, inputs: [x], outputs: [t], attributes: {order: [1, 0]}}\n"
      "  - {op: Slice, inputs: [t], outputs: [y], attributes: {axes: [1], starts: [0], ends: [3]}}",
      "{op: Concat, inputs: [x, c], outputs: [y], attributes: {axis: 0}}"};
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    char text[512];
    snprintf(text, sizeof text,
             BEGIN "inputs: [{name: x, type: f32, shape: [5, 4]}]\n"
                   "constants: [{name: c, type: f32, shape: [1, 4], values: [1, 2, 3, 4]}]\n"
                   "nodes:\n  - %s\noutputs: [y]\n",
             nodes[i]);
    Case c;
    case_init(&c, text, 1);
    ((float *)data_of(&c.data.in[0]))[0] = 0;
    assert_int_equal(ng_interpret(c.graph, c.data.in, c.expected, 0), NG_OK);
    float *y = data_of(&c.data.out[0]);
    y[0] = 0;
    assert_int_equal(compare(&c), NG_OK);
    assert_int_equal(off_by(&c, 1, 1e-6), NG_DIFFERENT);
    y[0] = -0.0F;
    assert_int_equal(compare(&c), NG_DIFFERENT);
    assert_int_equal(c.differences[0].worst_element, 0);
    case_deinit(&c);
  }
}

// The sign of a zero is exact in the results of one elementwise operator, but not where a sum may round to zero.
static void signs_of_zeros_are_compared_where_they_are_exact(void **state) {
  (void)state;
  static const struct {
    const char *node;
    ng_status with_wrong_sign;
  } rows[] = {{"{op: Neg, inputs: [x], outputs: [y]}", NG_DIFFERENT},
              {"{op: Multiply, inputs: [x, x], outputs: [y]}", NG_DIFFERENT},
              {"{op: ReLU, inputs: [x], outputs: [y]}", NG_DIFFERENT},
              {"{op: Round, inputs: [x], outputs: [y]}", NG_DIFFERENT},
              {"{op: Tanh, inputs: [x], outputs: [y]}", NG_OK},
              {"{op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [1], keep_dims: true}}", NG_OK}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[512];
    snprintf(text, sizeof text, BEGIN "inputs: [{name: x, type: f32, shape: [9, 1]}]\nnodes:\n  - %s\noutputs: [y]\n",
             rows[i].node);
    Case c;
    case_init(&c, text, 1);
    ((float *)data_of(&c.data.in[0]))[3] = 0;
    assert_int_equal(ng_interpret(c.graph, c.data.in, c.expected, 0), NG_OK);
    assert_int_equal(ng_interpret(c.graph, c.data.in, c.data.out, 0), NG_OK);
    assert_int_equal(compare(&c), NG_OK);
    float *y = data_of(&c.data.out[0]);
    y[3] = -y[3];
    assert_int_equal(compare(&c), rows[i].with_wrong_sign);
    case_deinit(&c);
  }
}

// An f64 output may have errors of values inside that are rounded to bf16.
static void outputs_are_as_exact_as_what_they_are_made_of(void **state) {
  (void)state;
  static const char text[] = BEGIN "inputs: [{name: x, type: bf16, shape: [50]}]\n"
                                   "nodes:\n"
                                   "  - {op: Tanh, inputs: [x], outputs: [t]}\n"
                                   "  - {op: TypeCast, inputs: [t], outputs: [{name: u, type: f32}]}\n"
                                   "  - {op: TypeCast, inputs: [u], outputs: [{name: y, type: f64}]}\n"
                                   "outputs: [y]\n";
  Case c;
  case_init(&c, text, 1);
  assert_int_equal(off_by(&c, 3, 0x1p-9), NG_OK);
  assert_int_equal(off_by(&c, 3, 0.5), NG_DIFFERENT);
  case_deinit(&c);
}

// A step of 1/125 is about as much as roundings to bf16 change numbers near 1 by; those to f32 change them by less, so
// that an element may be a step off only where they flip it, or an element before it.
static void quantised_outputs_may_be_off_as_roundings_move_them(void **state) {
  (void)state;
  static const struct {
    const char *type, *between;
    ng_status one_off, two_off;
  } rows[] = {{"bf16", "{op: TypeCast, inputs: [t], outputs: [{name: u, type: f32}]}", NG_OK, NG_OK},
              {"f32", "{op: Tanh, inputs: [t], outputs: [u]}", NG_DIFFERENT, NG_DIFFERENT},
              {"f32",
               "{op: Quantize, inputs: [t], outputs: [{name: q, type: s8}], attributes: {scales: [0.02], zps: [0]}}\n"
               "  - {op: Dequantize, inputs: [q], outputs: [u], attributes: {scales: [0.02], zps: [0]}}",
               NG_OK, NG_DIFFERENT}};
  for (size_t i = 0; i < 3; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             BEGIN "inputs: [{name: x, type: %s, shape: [50]}]\n"
                   "nodes:\n"
                   "  - {op: Tanh, inputs: [x], outputs: [t]}\n"
                   "  - %s\n"
                   "  - {op: Quantize, inputs: [u], outputs: [{name: y, type: s8}],\n"
                   "     attributes: {scales: [0.008], zps: [0]}}\n"
                   "outputs: [y]\n",
             rows[i].type, rows[i].between);
    Case c;
    case_init(&c, text, 1);
    int8_t *y = data_of(&c.data.out[0]);
    const int8_t before = y[7];
    y[7] = (int8_t)(before + (before > 0 ? -1 : 1));
    assert_int_equal(compare(&c), rows[i].one_off);
    y[7] = (int8_t)(before + (before > 0 ? -2 : 2));
    assert_int_equal(compare(&c), rows[i].two_off);
    y[7] = (int8_t)(before + (before > 0 ? -100 : 100));
    assert_int_equal(compare(&c), NG_DIFFERENT);
    case_deinit(&c);
  }
}

// 40000 x is infinite in f16 for x > 1.64, but the exact result is finite. A program that has f32 between the operators
// gets the exact result; a program that stores f16 gets infinity.
static void a_value_between_operators_may_overflow(void **state) {
  (void)state;
  static const char text[] = BEGIN "inputs: [{name: x, type: f16, shape: [50]}]\n"
                                   "constants:\n"
                                   "  - {name: large, type: f16, shape: [], value: 40000}\n"
                                   "  - {name: small, type: f16, shape: [], value: 0.001}\n"
                                   "nodes:\n"
                                   "  - {op: Multiply, inputs: [x, large], outputs: [t]}\n"
                                   "  - {op: Multiply, inputs: [t, small], outputs: [y]}\n"
                                   "outputs: [y]\n";
  Case c;
  case_init(&c, text, 1);
  size_t noverflows = 0;
  uint16_t *y = data_of(&c.data.out[0]);
  for (int64_t e = 0; e < 50; e++) {
    if (!isinf(type_round(TYPE_F16, 40000 * ng_tensor_get(&c.data.in[0], e)))) continue;
    type_store(TYPE_F16, y, (size_t)e, ng_tensor_get(&c.data.in[0], e) > 0 ? INFINITY : -INFINITY);
    noverflows++;
  }
  assert_true(noverflows > 0);
  assert_int_equal(compare(&c), NG_OK);
  y[0] = f16_from_f64(1000);
  assert_int_equal(compare(&c), NG_DIFFERENT);
  case_deinit(&c);
}

// Empty windows of MaxPool have the lowest number of f32; a mean of two of them does not, but their sum is beyond f32.
static void a_sum_within_an_operator_may_overflow(void **state) {
  (void)state;
  static const char *const text =
      "format: ngrad/1\n"
      "name: windows\n"
      "inputs:\n"
      "  - {name: x, type: f32, shape: [1, 3, 8]}\n"
      "nodes:\n"
      "  - {op: MaxPool, inputs: [x], outputs: [t], attributes:\n"
      "     {kernel: [2], strides: [1], pads_begin: [2], pads_end: [3]}}\n"
      "  - {op: AvgPool, inputs: [t], outputs: [y], attributes:\n"
      "     {kernel: [3], strides: [1], pads_begin: [0], pads_end: [0], exclude_pad: true}}\n"
      "outputs: [y]\n";
  enum { WIDTH = 8, ONE_EMPTY = 3 * WIDTH, TWO_EMPTY = 4 * WIDTH };
  Case c;
  case_init(&c, text, 1);
  float *y = data_of(&c.data.out[0]);
  for (size_t e = TWO_EMPTY; e < TWO_EMPTY + WIDTH; e++) {
    assert_true(isfinite(y[e]));
    y[e] = -INFINITY;
  }
  assert_int_equal(compare(&c), NG_OK);
  y[ONE_EMPTY] = -INFINITY;
  assert_int_equal(compare(&c), NG_DIFFERENT);
  case_deinit(&c);
}

static void tolerances_are_of_the_magnitude(void **state) {
  (void)state;
  Case c;
  case_init(&c, DEVIATIONS("f32"), 1);
  ((float *)data_of(&c.data.out[0]))[2] += 1e-6F;
  assert_int_equal(ng_compare_outputs(c.graph, NULL, c.data.in, c.data.out, c.expected, 1e-6, c.differences), NG_OK);
  assert_int_equal(ng_compare_outputs(c.graph, NULL, c.data.in, c.data.out, c.expected, 1e-9, c.differences),
                   NG_DIFFERENT);
  assert_int_equal(ng_compare_outputs(c.graph, NULL, c.data.in, c.data.out, c.expected, 0, c.differences),
                   NG_DIFFERENT);
  case_deinit(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(roundings_of_terms_that_cancel_pass),
      cmocka_unit_test(operators_that_cancel_within_pass),
      cmocka_unit_test(a_missing_term_of_a_million_is_seen),
      cmocka_unit_test(a_small_error_among_terms_that_cancel_is_seen),
      cmocka_unit_test(many_right_elements_excuse_no_wrong_one),
      cmocka_unit_test(a_sum_over_the_wrong_axis_is_seen),
      cmocka_unit_test(thresholds_excuse_nothing),
      cmocka_unit_test(choices_by_exact_values_excuse_nothing),
      cmocka_unit_test(exact_arithmetic_excuses_nothing),
      cmocka_unit_test(flips_excuse_two_results),
      cmocka_unit_test(flips_excuse_no_wrong_expectation),
      cmocka_unit_test(narrow_inputs_excuse_no_errors_of_their_type),
      cmocka_unit_test(each_of_many_ties_may_flip),
      cmocka_unit_test(ties_of_three_may_be_decided_in_three_ways),
      cmocka_unit_test(what_is_exact_is_compared_exactly),
      cmocka_unit_test(what_is_moved_is_compared_exactly),
      cmocka_unit_test(signs_of_zeros_are_compared_where_they_are_exact),
      cmocka_unit_test(outputs_are_as_exact_as_what_they_are_made_of),
      cmocka_unit_test(quantised_outputs_may_be_off_as_roundings_move_them),
      cmocka_unit_test(a_value_between_operators_may_overflow),
      cmocka_unit_test(a_sum_within_an_operator_may_overflow),
      cmocka_unit_test(tolerances_are_of_the_magnitude),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
