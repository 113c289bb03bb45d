// Compiled reductions and softmaxes against the other rungs of the ladder (ladder.h): any axes of any rank, extents
// around the lane count, all types.
#include "ir/kernel/kernel.h"
#include "tests/random_graph.h"
#include "tests/unit/ladder.h"

static const char *const reduce_ops[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
                                         "ReduceL1",  "ReduceL2",   "ReduceProd"};
enum { NREDUCTIONS = sizeof reduce_ops / sizeof *reduce_ops };

// Over the axes whose bit is set in `axes`.
static void reduction(GraphText *g, const char *op, const char *type, Extents s, unsigned axes, bool keeps) {
  const char *list = "";
  for (int axis = 0; axis < s.rank; axis++)
    if (axes >> axis & 1) list = arena_format(&g->arena, "%s%s%d", list, *list ? ", " : "", axis);
  graph_text_case(g, "%zu: %s %s %s over [%s]%s", g->nodes.nbytes, op, type, extents_text(g, s, "x"), list,
                  keeps ? " kept" : "");
  graph_text_node(g, op, "inputs: [%s], outputs: [%s], attributes: {axes: [%s], keep_dims: %s}",
                  graph_text_input(g, "x", type, s), graph_text_result(g, "y"), list, keeps ? "true" : "false");
}

static void softmax(GraphText *g, const char *op, const char *type, const char *to, Extents s, int axis,
                    const char *rest) {
  bool is_gradient = strstr(op, "Backward") != NULL, has_stats = strcmp(op, "SoftMax") == 0;
  graph_text_case(g, "%s %s %s %s at %d%s", op, type, to, extents_text(g, s, "x"), axis, rest);
  const char *x = graph_text_input(g, is_gradient ? "dy" : "x", type, s), *y = graph_text_result(g, "y");
  const char *dst = is_gradient ? graph_text_input(g, "x", type, s) : NULL;
  graph_text_node(g, op, "inputs: [%s%s%s], outputs: [{name: %s, type: %s}%s%s], attributes: {axis: %d%s}", x,
                  dst ? ", " : "", dst ? dst : "", y, to, has_stats ? ", " : "",
                  has_stats ? graph_text_result(g, "stats") : "", axis, rest);
}

// Any axes of the shape that are not too many to write down.
static void reductions_of_any_axes(void **state) {
  (void)state;
  static const int64_t extents[] = {1, 2, 3, 5, 15, 16, 17, 33, 70};
  enum { CASES = 84, MOST_ELEMENTS = 20000 };
  uint64_t random = 1;
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < CASES; i++) {
    Extents s = {0};
    int rank = (int)random_below(&random, MAX_RANK + 1);
    for (int64_t nelems = 1; s.rank < rank; nelems *= s.extent[s.rank - 1])
      s.extent[s.rank++] = nelems > MOST_ELEMENTS / 70
                               ? 1 + random_below(&random, 2)
                               : extents[random_below(&random, sizeof extents / sizeof *extents)];
    reduction(&g, reduce_ops[i % NREDUCTIONS], "f32", s, random_below(&random, 1U << rank), random_chance(&random, 50));
  }
  climb(&g, (Climb){.name = "reductions", .unusual_too = true, .is_misaligned = true});
}

static void reductions_of_any_width(void **state) {
  (void)state;
  static const int64_t widths[] = {1, 15, 16, 17, 31, 33, 64, 65, 300, 5000};
  GraphText g;
  graph_text_init(&g);
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    reduction(&g, reduce_ops[i % NREDUCTIONS], "f32", EXTENTS(5, widths[i]), 2, false);
    reduction(&g, reduce_ops[(i + 3) % NREDUCTIONS], "f32", EXTENTS(widths[i], 5), 1, true);
    reduction(&g, reduce_ops[(i + 5) % NREDUCTIONS], "f32", EXTENTS(widths[i]), 1, false);
  }
  for (int i = 0; i < NREDUCTIONS; i++) {
    reduction(&g, reduce_ops[i], "f32", EXTENTS(70000), 1, false); // many blocks
    reduction(&g, reduce_ops[i], "f32", EXTENTS(3, 400, 40), 5, true);
    reduction(&g, reduce_ops[i], "f32", EXTENTS(3, 400, 40), 2, true);
  }
  climb(&g, (Climb){.name = "reduction widths", .unusual_too = true});
}

// Sums of products that no tensor holds, over axes other than the vector axis: in registers, with the operations that
// follow.
static void products_over_middle_axes(void **state) {
  (void)state;
  static const int64_t widths[] = {16, 17, 31, 33, 64, 65, 200}, depths[] = {1, 2, 24, 25, 49, 100};
  static const char *const types[] = {"f32", "bf16", "f16", "f64"};
  enum { NWIDTHS = sizeof widths / sizeof *widths, NDEPTHS = sizeof depths / sizeof *depths, ROWS = 19 };
  GraphText g;
  graph_text_init(&g);
  for (size_t i = 0; i < (size_t)NWIDTHS * NDEPTHS; i++) {
    const int64_t width = widths[i % NWIDTHS], depth = depths[i / NWIDTHS];
    const char *type = types[i % 4], *op = reduce_ops[i % NREDUCTIONS];
    graph_text_case(&g, "%s %s of products [%d, %d, 1] * [%d, %d]", op, type, ROWS, (int)depth, (int)depth, (int)width);
    const char *a = graph_text_input(&g, "a", type, EXTENTS(ROWS, depth, 1));
    const char *b = graph_text_input(&g, "b", type, EXTENTS(depth, width));
    const char *c = graph_text_input(&g, "c", type, EXTENTS(width));
    const char *p = graph_text_name(&g, "p"), *sum = graph_text_name(&g, "sum"), *y = graph_text_result(&g, "y");
    graph_text_node(&g, "Multiply", "inputs: [%s, %s], outputs: [%s]", a, b, p);
    graph_text_node(&g, op, "inputs: [%s], outputs: [%s], attributes: {axes: [1]}", p, sum);
    graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", sum, c, y);
  }
  climb(&g, (Climb){.name = "products over middle axes", .unusual_too = true, .is_misaligned = true});
}

static void reductions_of_any_type_and_of_nothing(void **state) {
  (void)state;
  static const char *const types[] = {"f64", "f32", "f16", "bf16"};
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NREDUCTIONS; i++) {
    for (int t = 0; t < 4; t++) {
      reduction(&g, reduce_ops[i], types[t], EXTENTS(5, 40), 2, false);
      reduction(&g, reduce_ops[i], types[t], EXTENTS(5, 0), 2, true);
    }
    reduction(&g, reduce_ops[i], "f32", EXTENTS(0, 4), 2, false);
    reduction(&g, reduce_ops[i], "f32", EXTENTS(2, 0, 4), 3, false);
    reduction(&g, reduce_ops[i], "f32", EXTENTS(2, 3, 4), 0, false);
    reduction(&g, reduce_ops[i], "f32", EXTENTS(1, 20, 1), 5, false);
    reduction(&g, reduce_ops[i], "f32", NO_EXTENTS, 0, true);
    graph_text_case(&g, "%s of one number", reduce_ops[i]); // the same everywhere along an axis
    graph_text_node(&g, reduce_ops[i], "inputs: [%s], outputs: [%s], attributes: {axes: [0, 2]}",
                    graph_text_splat(&g, "c", "f32", EXTENTS(3, 4, 5), "-1.25"), graph_text_result(&g, "y"));
  }
  climb(&g, (Climb){.name = "reduction types", .unusual_too = true});
}

static void softmaxes_of_any_axis(void **state) {
  (void)state;
  static const char *const ops[] = {"SoftMax", "LogSoftmax", "SoftMaxBackward", "LogSoftmaxBackward"};
  const Extents shapes[] = {EXTENTS(5, 70), EXTENTS(3, 17, 33), EXTENTS(2, 3, 4, 5)};
  GraphText g;
  graph_text_init(&g);
  for (int op = 0; op < 4; op++) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      for (int axis = 0; axis < shapes[i].rank; axis++)
        if ((axis + (int)i + op) % 2) softmax(&g, ops[op], "f32", "f32", shapes[i], axis, "");
    softmax(&g, ops[op], "f32", "f32", EXTENTS(40), 0, "");
    softmax(&g, ops[op], "f32", "f32", EXTENTS(40, 7), 1, ""); // rows across lanes
    softmax(&g, ops[op], "f32", "f32", EXTENTS(40, 1), 1, "");
    softmax(&g, ops[op], "f32", "f32", EXTENTS(2, 0), 1, "");
    softmax(&g, ops[op], "f32", "f32", EXTENTS(0, 2), 1, "");
    softmax(&g, ops[op], "f64", "f64", EXTENTS(5, 20), -1, "");
    softmax(&g, ops[op], "bf16", op % 2 ? "bf16" : "f32", EXTENTS(5, 20), -1, "");
  }
  softmax(&g, "SoftMax", "f32", "f16", EXTENTS(5, 20), -1, ", mode: inf_as_zero");
  softmax(&g, "SoftMax", "f32", "f32", EXTENTS(2, 0), 1, ", mode: inf_as_zero");
  softmax(&g, "SoftMax", "f32", "f32", EXTENTS(2, 1), 1, ", mode: inf_as_zero");
  climb(&g, (Climb){.name = "softmaxes", .unusual_too = true, .is_misaligned = true});
}

// Along an axis that is not the last, up to as long as a column is copied, and one longer; of many blocks.
static void softmaxes_of_columns(void **state) {
  (void)state;
  static const char *const ops[] = {"SoftMax", "LogSoftmax", "SoftMaxBackward", "LogSoftmaxBackward"};
  GraphText g;
  graph_text_init(&g);
  for (int op = 0; op < 4; op++) {
    softmax(&g, ops[op], "f32", "f32", EXTENTS(2, LONGEST_CHAIN + op % 2, 20), 1, "");
    softmax(&g, ops[op], "f32", "f32", EXTENTS(5, 21000), 0, "");
    softmax(&g, ops[op], op % 2 ? "f16" : "bf16", op % 2 ? "f16" : "f32", EXTENTS(2, 21, 5, 20), 1, "");
    softmax(&g, ops[op], "f64", "f64", EXTENTS(2, 21, 20), 1, "");
    softmax(&g, ops[op], "f32", "f32", EXTENTS(2, 0, 20), 1, "");
  }
  softmax(&g, "SoftMax", "f32", "f32", EXTENTS(2, 3, 20), 1, ", mode: inf_as_zero");
  graph_text_case(&g, "there and back");
  const char *x = graph_text_input(&g, "x", "f32", EXTENTS(3, 9, 50)), *y = graph_text_result(&g, "y");
  graph_text_node(&g, "SoftMax", "inputs: [%s], outputs: [%s], attributes: {axis: 1}", x, y);
  graph_text_node(&g, "SoftMaxBackward", "inputs: [%s, %s], outputs: [%s], attributes: {axis: 1}",
                  graph_text_input(&g, "dy", "f32", EXTENTS(3, 9, 50)), y, graph_text_result(&g, "dx"));
  climb(&g, (Climb){.name = "softmax columns", .unusual_too = true, .is_misaligned = true});
}

// The domain is larger than any operand: blocks are few and long, and their sums are f64.
static void sums_of_long_blocks(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  graph_text_case(&g, "spread");
  const char *b = graph_text_input(&g, "b", "f32", EXTENTS(1, 4099));
  graph_text_node(&g, "Multiply", "inputs: [%s, %s], outputs: [%s]", graph_text_input(&g, "a", "f32", EXTENTS(2048, 1)),
                  b, graph_text_name(&g, "product"));
  graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_name(&g, "product"), b,
                  graph_text_name(&g, "sum"));
  graph_text_node(&g, "ReduceSum", "inputs: [%s], outputs: [%s], attributes: {axes: [0]}", graph_text_name(&g, "sum"),
                  graph_text_result(&g, "y"));
  graph_text_node(&g, "ReduceMax", "inputs: [%s], outputs: [%s], attributes: {axes: [0]}", graph_text_name(&g, "sum"),
                  graph_text_result(&g, "z"));
  climb(&g, (Climb){.name = "long blocks"});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reductions_of_any_axes),    cmocka_unit_test(reductions_of_any_width),
      cmocka_unit_test(products_over_middle_axes), cmocka_unit_test(reductions_of_any_type_and_of_nothing),
      cmocka_unit_test(softmaxes_of_any_axis),     cmocka_unit_test(softmaxes_of_columns),
      cmocka_unit_test(sums_of_long_blocks),
  };
  return cmocka_run_group_tests_name("codegen_reduce", tests, NULL, NULL);
}
