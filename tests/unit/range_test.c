// Random data is in the range that operators require, also with other nodes between the input and the operator.
#include "frontend/api/ngrad.h"
#include "frontend/yaml/yaml.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct Row {
  const char *nodes; // of v, w and x, all [4, 6] and f32, and of the constants below
  ValueRange v, w;   // that follow for v and w
} Row;

#define NODE(op, inputs, output) "{op: " op ", inputs: [" inputs "], outputs: [" output "]}, "
#define WITH(op, inputs, output, attributes)                                                                           \
  "{op: " op ", inputs: [" inputs "], outputs: [" output "], attributes: {" attributes "}}, "
#define SQRT(input) NODE("Sqrt", input, "y")

static const Row rows[] = {
    {NODE("Tanh", "v", "y"), RANGE_ANY, RANGE_ANY},
    {SQRT("v"), RANGE_POSITIVE, RANGE_ANY},
    {NODE("Add", "v, epsilon", "a") SQRT("a"), RANGE_POSITIVE, RANGE_ANY},
    {NODE("Add", "v, v", "a") SQRT("a"), RANGE_POSITIVE, RANGE_ANY},
    {NODE("Add", "v, w", "a") NODE("Log", "a", "y"), RANGE_POSITIVE, RANGE_POSITIVE},
    {NODE("Maximum", "v, w", "a") NODE("Log", "a", "y"), RANGE_POSITIVE, RANGE_POSITIVE},
    {NODE("Multiply", "v, half", "a") NODE("Add", "a, epsilon", "b") WITH("Pow", "b", "y", "beta: -0.5"),
     RANGE_POSITIVE, RANGE_ANY},
    {NODE("Divide", "half, v", "a") SQRT("a"), RANGE_POSITIVE, RANGE_ANY},
    {NODE("Reciprocal", "v", "a") SQRT("a"), RANGE_POSITIVE, RANGE_ANY},
    {WITH("ReduceMean", "v", "a", "axes: [1]") SQRT("a"), RANGE_POSITIVE, RANGE_ANY},
    {WITH("ReduceSum", "v", "a", "axes: [1]") SQRT("a"), RANGE_POSITIVE, RANGE_ANY},
    {WITH("Concat", "v, w", "a", "axis: 0") SQRT("a"), RANGE_POSITIVE, RANGE_POSITIVE},
    {NODE("GreaterEqual", "x, v", "c") NODE("Select", "c, w, x", "a") SQRT("a"), RANGE_ANY, RANGE_POSITIVE},
    {WITH("StaticReshape", "v", "a", "shape: [3, 8], special_zero: false") //
     WITH("StaticTranspose", "a", "b", "order: [1, 0]") "{op: TypeCast, inputs: [b], outputs: [{name: c, type: "
                                                        "bf16}]}, {op: TypeCast, inputs: [c], outputs: [{name: d, "
                                                        "type: f32}]}, " NODE("Reorder", "d", "e") SQRT("e"),
     RANGE_POSITIVE, RANGE_ANY},
    {WITH("ReduceMean", "v", "a", "axes: [0]") WITH("ReduceMax", "w", "b", "axes: [0]")
         WITH("BatchNormInference", "x, half6, half6, half6, a", "y", "epsilon: 1.0e-5, data_format: NXC")
             NODE("Sqrt", "b", "z"),
     RANGE_POSITIVE, RANGE_POSITIVE},
    {WITH("ReduceMean", "v", "a", "axes: [0, 1]") NODE("Dropout", "w, seed, seed, a", "y"), RANGE_PROBABILITY,
     RANGE_ANY},
    // A value that several use
    {NODE("Add", "v, w", "a") SQRT("a") NODE("Tanh", "v", "z"), RANGE_POSITIVE, RANGE_POSITIVE},
    // Graphs whose operands are in range for any data
    {NODE("Multiply", "v, v", "a") SQRT("a"), RANGE_ANY, RANGE_ANY},
    {NODE("Square", "v", "a") NODE("Add", "a, epsilon", "b") SQRT("b"), RANGE_ANY, RANGE_ANY},
    {NODE("Exp", "v", "a") WITH("ReduceSum", "a", "b", "axes: [1]") NODE("Log", "b", "y"), RANGE_ANY, RANGE_ANY},
    {WITH("Pow", "v", "y", "beta: 2"), RANGE_ANY, RANGE_ANY},
    {WITH("Pow", "v", "y", "beta: 1.5"), RANGE_POSITIVE, RANGE_ANY},
    {WITH("Pow", "v", "y", "beta: -1"), RANGE_POSITIVE, RANGE_ANY},
    // No data would be in range
    {NODE("Multiply", "v, minus", "a") SQRT("a"), RANGE_ANY, RANGE_ANY},
    {NODE("Subtract", "v, w", "a") SQRT("a"), RANGE_ANY, RANGE_ANY},
};

static void row_text(const Row *row, char text[static 2048]) {
  snprintf(text, 2048,
           "format: ngrad/1\nname: range\ninputs:\n"
           "  - {name: v, type: f32, shape: [4, 6]}\n"
           "  - {name: w, type: f32, shape: [4, 6]}\n"
           "  - {name: x, type: f32, shape: [4, 6]}\n"
           "constants:\n"
           "  - {name: epsilon, type: f32, shape: [], value: 1.0e-5}\n"
           "  - {name: half, type: f32, shape: [], value: 0.5}\n"
           "  - {name: half6, type: f32, shape: [6], value: 0.5}\n"
           "  - {name: minus, type: f32, shape: [], value: -1.0}\n"
           "  - {name: seed, type: s64, shape: [], value: 7}\n"
           "nodes: [%s]\noutputs: [y]\n",
           row->nodes);
}

static void ranges_pass_through_what_lies_between(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[2048];
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    row_text(&rows[i], text);
    Graph *g = yaml_read(&system_allocator, "range.yaml", text, strlen(text), NULL, &d);
    if (!g) fail_msg("%s: %s", rows[i].nodes, d.items[0].message);
    Graph *clone = graph_clone(g);
    assert_non_null(clone);
    if (clone->inputs[0]->range != rows[i].v || clone->inputs[1]->range != rows[i].w)
      fail_msg("%s: the inputs have ranges %d and %d", rows[i].nodes, clone->inputs[0]->range, clone->inputs[1]->range);
    graph_free(clone);
    graph_free(g);
    diagnostics_deinit(&d);
  }
}

// A batch norm spelled out, its variance in another type and shape: half of normal data would make NaNs.
static const char spelled[] =
    "format: ngrad/1\nname: spelled\ninputs:\n"
    "  - {name: x, type: f32, shape: [3, 4, 5]}\n"
    "  - {name: mean, type: f32, shape: [5]}\n"
    "  - {name: variance, type: bf16, shape: [5, 1, 1]}\n"
    "constants:\n"
    "  - {name: epsilon, type: f32, shape: [], value: 1.0e-3}\n"
    "nodes:\n"
    "  - {op: TypeCast, inputs: [variance], outputs: [{name: wide, type: f32}]}\n"
    "  - {op: StaticReshape, inputs: [wide], outputs: [flat], attributes: {shape: [5], special_zero: false}}\n"
    "  - {op: Add, inputs: [flat, epsilon], outputs: [shifted]}\n"
    "  - {op: Sqrt, inputs: [shifted], outputs: [deviation]}\n"
    "  - {op: Subtract, inputs: [x, mean], outputs: [centred]}\n"
    "  - {op: Divide, inputs: [centred, deviation], outputs: [y]}\n"
    "outputs: [y]\n";

static void gradients_of_spelled_norms_are_checked_on_data_that_they_take(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 10; seed++) {
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = ng_graph_read(ctx, "spelled.yaml", spelled, strlen(spelled), NULL);
    assert_non_null(g);
    ng_gradcheck_result results[3];
    assert_int_equal(ng_gradcheck(g, &(ng_gradcheck_options){.seed = seed}, results), NG_OK);
    for (size_t i = 0; i < 3; i++) assert_true(isfinite(results[i].largest_error) && results[i].nskipped == 0);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranges_pass_through_what_lies_between),
      cmocka_unit_test(gradients_of_spelled_norms_are_checked_on_data_that_they_take),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
