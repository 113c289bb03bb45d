// Graphs that recognise must leave alone: they are a norm in real numbers, but a value cancels that may be infinite,
// NaN, huge or 0. Each is similar to a spelling that is recognised; both are interpreted on such values.
#include "tests/unit/api_case.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum { ROWS = 8 };
static const int64_t nelems = 48; // 6 columns

#define MEAN(x, y) "  - {op: ReduceMean, inputs: [" x "], outputs: [" y "], attributes: {axes: [1], keep_dims: true}}\n"
#define SUM(x, y) "  - {op: ReduceSum, inputs: [" x "], outputs: [" y "], attributes: {axes: [1], keep_dims: true}}\n"
#define NODE(op, inputs, output) "  - {op: " op ", inputs: [" inputs "], outputs: [" output "]}\n"
// c = x - E[x], xhat = c / sqrt(E[c^2] + epsilon)
#define MOMENTS                                                                                                        \
  MEAN("x", "m")                                                                                                       \
  NODE("Subtract", "x, m", "c")                                                                                        \
  NODE("Square", "c", "cc") MEAN("cc", "v") NODE("Add", "v, epsilon", "w") NODE("Sqrt", "w", "s")
#define NORM MOMENTS NODE("Divide", "c, s", "xhat")
// The derivative of xhat, with g for its gradient; dv is half of the variance's gradient.
#define GRADIENT                                                                                                       \
  NODE("Reciprocal", "s", "r")                                                                                         \
  NODE("Multiply", "g, c", "gc")                                                                                       \
  SUM("gc", "sgc")                                                                                                     \
  NODE("Square", "r", "rr")                                                                                            \
  NODE("Multiply", "rr, r", "rrr")                                                                                     \
  NODE("Multiply", "sgc, rrr", "dv6")                                                                                  \
  NODE("Divide", "dv6, six", "dv")                                                                                     \
  NODE("Multiply", "c, dv", "along")                                                                                   \
  NODE("Multiply", "g, r", "direct")                                                                                   \
  NODE("Subtract", "direct, along", "dc") MEAN("dc", "dm") NODE("Subtract", "dc, dm", "dx")

typedef struct Row {
  const char *name, *nodes, *output;
  bool is_recognised; // the last node, which makes the output, becomes a norm or its gradient
} Row;

static const Row rows[] = {
    {"a norm", NORM, "xhat", true},
    {"the norm of a sum",
     NODE("Add", "z, q", "x0") MEAN("x0", "m") NODE("Subtract", "x0, m", "c") NODE("Square", "c", "cc") MEAN("cc", "v")
         NODE("Add", "v, epsilon", "w") NODE("Sqrt", "w", "s") NODE("Divide", "c, s", "xhat"),
     "xhat", true},
    {"a gradient", MOMENTS GRADIENT, "dx", true},
    {"a term beside y", NORM NODE("Add", "xhat, z", "a") NODE("Subtract", "a, z", "y"), "y", false},
    {"a term in x",
     NODE("Add", "x, z", "a") NODE("Subtract", "a, z", "b") MEAN("b", "m") NODE("Subtract", "x, m", "c")
         NODE("Square", "c", "cc") MEAN("cc", "v") NODE("Add", "v, epsilon", "w") NODE("Sqrt", "w", "s")
             NODE("Divide", "c, s", "y"),
     "y", true}, // the RMS norm of c
    {"a number", NORM NODE("Add", "xhat, huge", "a") NODE("Subtract", "a, huge", "y"), "y", false},
    {"a scale", NORM NODE("Multiply", "xhat, huge", "a") NODE("Divide", "a, huge", "y"), "y", false},
    {"a factor", NORM NODE("Multiply", "xhat, z", "a") NODE("Divide", "a, z", "y"), "y", false},
    {"a factor and its reciprocal",
     NORM NODE("Reciprocal", "z", "i") NODE("Multiply", "xhat, i", "a") NODE("Multiply", "a, z", "y"), "y", false},
    {"a root squared",
     NORM NODE("Sqrt", "z", "root") NODE("Square", "root", "positive") NODE("Add", "xhat, positive", "y"), "y", false},
    {"zero times a term", NORM NODE("Multiply", "z, zero", "n") NODE("Add", "xhat, n", "y"), "y", false},
    {"terms of a row", NORM NODE("Add", "xhat, k", "a") NODE("Subtract", "a, k", "y"), "y", false},
    {"a row's sum of another", NORM MEAN("z", "mz") NODE("Add", "xhat, mz", "a") NODE("Subtract", "a, mz", "y"), "y",
     false},
    {"another times what adds up to 0",
     NORM MEAN("c", "nothing") NODE("Multiply", "nothing, z", "n") NODE("Add", "xhat, n", "y"), "y", false},
    {"twice x less x",
     NODE("Add", "x, x", "a") NODE("Subtract", "a, x", "b") MEAN("b", "m") NODE("Subtract", "x, m", "c")
         NODE("Square", "c", "cc") MEAN("cc", "v") NODE("Add", "v, epsilon", "w") NODE("Sqrt", "w", "s")
             NODE("Divide", "c, s", "y"),
     "y", true}, // the RMS norm of c
    {"a term in a gradient", MOMENTS GRADIENT NODE("Add", "dx, z", "a") NODE("Subtract", "a, z", "y"), "y", false},
    {"a term of sums in a gradient",
     MOMENTS GRADIENT MEAN("c", "nothing") NODE("Multiply", "nothing, z", "n") NODE("Add", "dx, n", "y"), "y", false},
    {"a mean square's row",
     NODE("Square", "x", "xx") MEAN("xx", "v") NODE("Add", "v, epsilon", "w") NODE("Sqrt", "w", "s")
         NODE("Divide", "x, s", "xhat") MEAN("x", "m") NODE("Subtract", "x, m", "c") MEAN("c", "nothing")
             NODE("Add", "xhat, nothing", "y"),
     "y", false},
};

static ng_graph *read_row(ng_context *ctx, const Row *row) {
  char text[8192];
  const char *size = "type: f32, shape: [8, 6]}\n";
  snprintf(
      text, sizeof text,
      "format: ngrad/1\nname: test\ninputs:\n  - {name: x, %s  - {name: z, %s  - {name: q, %s  - {name: g, %s"
      "  - {name: k, type: f32, shape: [8, 1]}\nconstants:\n"
      "  - {name: epsilon, type: f32, shape: [], value: 1e-5}\n  - {name: huge, type: f32, shape: [], value: 1e30}\n"
      "  - {name: zero, type: f32, shape: [], value: 0}\n"
      "  - {name: six, type: f32, shape: [], value: 6}\nnodes:\n%soutputs: [%s]\n",
      size, size, size, size, row->nodes, row->output);
  return must_read(ctx, text);
}

// Each row of an input but the first two has something unusual in it.
static void fill(ng_tensor *t, size_t input) {
  static const float unusual[ROWS] = {0.25F, -0.5F, INFINITY, -INFINITY, NAN, 1e30F, 0, FLT_MAX};
  float *x = t->data;
  size_t columns = ng_tensor_nbytes(t) / sizeof *x / ROWS;
  for (size_t i = 0; i < ROWS * columns; i++) {
    size_t row = i / columns + input;
    x[i] = row % columns == i % columns ? unusual[row % ROWS] : (float)((i * 7 + input * 5) % 11) * 0.25F - 1;
  }
}

static void must_be_of_one_class(const Row *row, const ng_tensor *got, const ng_tensor *expected, const char *how) {
  for (int64_t i = 0; i < nelems; i++) {
    double x = ng_tensor_get(got, i), y = ng_tensor_get(expected, i);
    if (!isfinite(x) != !isfinite(y)) fail_msg("%s, %s: [%lld] is %g, expected %g", row->name, how, (long long)i, x, y);
  }
}

static void no_value_of_the_users_cancels(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ng_context *ctx = new_context();
    ng_graph *g = read_row(ctx, &rows[i]);
    char *left = ng_graph_show(g, "yaml", &(ng_options){.after = "recognise"});
    assert_non_null(left);
    const char *last = left;
    for (const char *at = left; (at = strstr(at, "op: ")); at++) last = at;
    const char *norm = strstr(last, "Norm"), *end = strchr(last, '\n');
    if ((norm && end && norm < end) != rows[i].is_recognised) fail_msg("%s:\n%s", rows[i].name, left);
    ng_text_free(ctx, left);
    ng_tensor inputs[8], expected, got;
    ng_tensor_info info = ng_graph_output(g, 0);
    assert_int_equal(ng_tensor_new(ctx, &info, &expected), NG_OK);
    assert_int_equal(ng_tensor_new(ctx, &info, &got), NG_OK);
    for (size_t k = 0; k < ng_graph_input_count(g); k++) {
      info = ng_graph_input(g, k);
      assert_int_equal(ng_tensor_new(ctx, &info, &inputs[k]), NG_OK);
      fill(&inputs[k], k);
    }
    assert_int_equal(ng_interpret(g, inputs, &expected, 0), NG_OK);
    ng_graph *after = ng_graph_run_passes(g, NULL);
    assert_non_null(after);
    assert_int_equal(ng_interpret(after, inputs, &got, 0), NG_OK);
    must_be_of_one_class(&rows[i], &got, &expected, "interpreter");
    ng_graph_free(after);
    for (size_t k = 0; k < ng_graph_input_count(g); k++) ng_tensor_free(ctx, &inputs[k]);
    ng_tensor_free(ctx, &expected);
    ng_tensor_free(ctx, &got);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_value_of_the_users_cancels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
