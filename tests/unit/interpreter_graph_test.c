// Running whole graphs: lifetimes of values, messages, and failing allocations.
#include "tests/unit/failing_allocator.h"
#include "tests/unit/interpreter_case.h"

static Constant *constant_of(Case *c, double *data, bool is_splat) {
  Constant *constant = ARENA_NEW(&c->graph->arena, Constant);
  assert_non_null(constant);
  constant->data = data;
  constant->is_splat = is_splat;
  return constant;
}

static void nodes_run_after_what_they_need(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2), VALUES(3, -4));
  case_node(&c, "Add", "y z", "sum"); // written first, run last
  case_node(&c, "Multiply", "y y", "z");
  case_node(&c, "ReLU", "x", "y");
  case_expect(&c, "sum", VALUES(12, 0));
  case_passes(&c);
}

static void an_operand_may_occur_twice(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2), VALUES(3, -4));
  case_node(&c, "Add", "x x", "double");
  case_node(&c, "Multiply", "double double", "square");
  case_expect(&c, "square", VALUES(36, 64));
  case_passes(&c);
}

static void any_value_may_be_an_output_and_more_than_once(void **state) {
  (void)state;
  double splat = 7, numbers[] = {1, 2, 3};
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(3), VALUES(1, -1, NAN));
  Shape three = SHAPE(3);
  Value *sevens = graph_add_value(c.graph, "sevens", TYPE_F64, &three);
  Value *list = graph_add_value(c.graph, "list", TYPE_F64, &three);
  sevens->constant = constant_of(&c, &splat, true);
  list->constant = constant_of(&c, numbers, false);
  case_node(&c, "Add", "sevens list", "y");
  case_expect(&c, "x", VALUES(1, -1, NAN));
  case_expect(&c, "y", VALUES(8, 9, 10));
  case_expect(&c, "sevens", VALUES(7, 7, 7));
  case_expect(&c, "y", VALUES(8, 9, 10));
  case_expect(&c, "list", VALUES(1, 2, 3));
  case_passes(&c);
}

static void a_graph_may_have_no_nodes_and_nodes_no_users(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(1), VALUES(2));
  case_expect(&c, "x", VALUES(2));
  case_passes(&c);
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(1), VALUES(2));
  case_node(&c, "ReLU", "x", "unused");
  case_node(&c, "Add", "x x", "y");
  case_expect(&c, "y", VALUES(4));
  case_passes(&c);
}

// A norm, a cast and a chain of elementwise operators.
static void build_mixture(Case *c, const Allocator *allocator) {
  case_init(c);
  c->options.allocator = allocator;
  c->options.nan_check = true;
  c->tolerance = 1e-6;
  case_input(c, "x", TYPE_F32, SHAPE(2, 2), VALUES(1, 3, 6, 4));
  case_set(case_node(c, "LayerNorm", "x ~ ~", "norm mean var"), "use_affine", false);
  case_set(c->graph->nodes[0], "epsilon", 3);
  case_node(c, "ReLU", "norm", "relu");
  case_value(c, "cast")->type = TYPE_BF16;
  case_node(c, "TypeCast", "relu", "cast");
  case_node(c, "Add", "cast x", "sum");
  case_expect(c, "sum", VALUES(1, 3.5, 6.5, 4));
  case_expect(c, "var", VALUES(1, 1));
  case_finish(c);
}

static void running_out_of_memory_is_told_and_leaks_nothing(void **state) {
  (void)state;
  for (size_t failing = 0;; failing++) {
    FailingAllocator memory;
    failing_allocator_init(&memory, failing);
    Case c;
    build_mixture(&c, &memory.allocator);
    bool done = case_run(&c, &c.diagnostics);
    assert_int_equal(memory.nlive, 0);
    assert_int_equal(c.diagnostics.out_of_memory, !done);
    assert_int_equal(c.diagnostics.nerrors, 0);
    case_free(&c);
    if (done) {
      assert_true(failing > 5); // it did allocate
      return;
    }
  }
}

static void values_are_freed_after_their_last_use(void **state) {
  (void)state;
  size_t most[2];
  for (int i = 0; i < 2; i++) {
    FailingAllocator memory;
    failing_allocator_init(&memory, NEVER_FAIL);
    Case c;
    case_init(&c);
    c.options.allocator = &memory.allocator;
    case_input(&c, "x", TYPE_F32, SHAPE(1), VALUES(1));
    char from[24] = "x", to[24], unused[24];
    for (int n = 0; n < (i ? 40 : 4); n++) {
      snprintf(to, sizeof to, "y%d", n);
      snprintf(unused, sizeof unused, "unused%d", n);
      case_node(&c, "ReLU", from, to);
      case_node(&c, "ReLU", from, unused);
      memcpy(from, to, sizeof from);
    }
    case_expect(&c, from, VALUES(1));
    case_finish(&c);
    assert_true(case_run(&c, &c.diagnostics));
    assert_int_equal(memory.nlive, 0);
    most[i] = memory.nmost;
    case_free(&c);
  }
  assert_int_equal(most[0], most[1]);
}

// Runs a case with nan_check; `message` NULL: nothing is found.
static void nan_check_says(Case *c, const char *message) {
  c->options.nan_check = true;
  case_finish(c);
  Diagnostics told;
  diagnostics_init(&told, &system_allocator);
  assert_int_equal(case_run(c, &told), !message);
  assert_int_equal(told.count, message != NULL);
  if (message) assert_string_equal(told.items[0].message, message);
  diagnostics_deinit(&told);
  case_free(c);
}

static void nan_check_names_the_first_node_that_makes_one(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2, 3), VALUES(1, INFINITY, 1, 1, 1, INFINITY));
  case_input(&c, "y", TYPE_F32, SHAPE(3), VALUES(1, 1, INFINITY));
  case_node(&c, "Add", "x y", "sum");
  case_node(&c, "Subtract", "sum y", "difference");
  case_node(&c, "ReLU", "difference", "z");
  case_expect(&c, "z", ANY_VALUES);
  nan_check_says(&c, "Subtract computes NaN from inputs without NaN: 'difference'[0, 2]");
}

// In f64 the product would be finite.
static void finite_check_names_the_first_node_that_overflows(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  c.options.finite_check = c.options.rounds_values = true;
  case_input(&c, "x", TYPE_F32, SHAPE(2), VALUES(1, 1e30));
  case_node(&c, "Multiply", "x x", "square");
  case_node(&c, "Multiply", "square x", "cube");
  case_expect(&c, "cube", ANY_VALUES);
  nan_check_says(&c, "Multiply computes an infinity from finite inputs: 'square'[1]");
}

// (1 + 2^-4)^2 = 1 + 2^-3 + 2^-8, which bf16 rounds to 1 + 2^-3.
static void values_are_rounded_between_nodes(void **state) {
  (void)state;
  for (int rounds = 0; rounds <= 1; rounds++) {
    Case c;
    case_init(&c);
    c.options.rounds_values = rounds;
    case_input(&c, "x", TYPE_BF16, SHAPE(1), VALUES(1 + 0x1p-4));
    case_input(&c, "one", TYPE_BF16, SHAPE(1), VALUES(1));
    case_node(&c, "Multiply", "x x", "p");
    case_node(&c, "Subtract", "p one", "y");
    case_expect(&c, "y", VALUES(rounds ? 0x1p-3 : 0x1p-3 + 0x1p-8));
    case_passes(&c);
  }
}

// What a node computes on the way overflows the type in which it computes, whichever type its result has.
static void sums_overflow_the_type_that_a_node_computes_in(void **state) {
  (void)state;
  static const Type types[] = {TYPE_F32, TYPE_F64};
  for (size_t i = 0; i < 2; i++) {
    Case c;
    case_init(&c);
    c.options.rounds_values = true;
    c.options.types = &types[i];
    case_input(&c, "x", TYPE_F32, SHAPE(2), VALUES((float)3e38, (float)3e38));
    case_node(&c, "ReduceMean", "x", "y");
    case_set_list(c.graph->nodes[0], "axes", (int64_t[]){0}, 1);
    case_expect(&c, "y", VALUES(i ? (float)3e38 : INFINITY));
    case_passes(&c);
  }
}

static void nan_check_uses_the_name_in_the_file(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(1, 2, 1), VALUES(1, 1));
  case_input(&c, "s", TYPE_F32, SHAPE(2), VALUES(1, -1));
  case_node(&c, "ngraph.BatchNormTrainingBackprop", "x s s s s x", "dx dgamma dbeta");
  case_set(c.graph->nodes[0], "epsilon", 0.5);
  case_expect(&c, "dbeta", ANY_VALUES);
  nan_check_says(&c, "ngraph.BatchNormTrainingBackprop computes NaN from inputs without NaN: 'dx'[0, 1, 0]");
}

static void nan_check_of_a_scalar(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SCALAR, VALUES(INFINITY));
  case_node(&c, "Subtract", "x x", "y");
  case_expect(&c, "y", ANY_VALUES);
  nan_check_says(&c, "Subtract computes NaN from inputs without NaN: 'y'[]");
}

// Labels that the graph computes are not checked before the run.
static void nan_check_tells_of_a_label_without_a_class(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, 6));
  case_input(&c, "tokens", TYPE_S64, SHAPE(3), VALUES(9, 2, 3));
  case_node(&c, "Slice", "tokens", "labels");
  case_set_list(c.graph->nodes[0], "starts", (int64_t[]){1}, 1);
  case_set_list(c.graph->nodes[0], "ends", (int64_t[]){3}, 1);
  case_node(&c, "SoftmaxCrossEntropy", "x labels", "loss");
  case_expect(&c, "loss", ANY_VALUES);
  nan_check_says(&c, "SoftmaxCrossEntropy computes NaN from inputs without NaN: 'loss'[], as 'labels'[1] is 3, "
                     "expected 0 to 2");
}

static void nan_check_lets_given_nans_pass(void **state) {
  (void)state;
  double nan = NAN;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2), VALUES(NAN, 1));
  Shape two = SHAPE(2);
  Value *constant = graph_add_value(c.graph, "constant", TYPE_F64, &two);
  constant->constant = constant_of(&c, &nan, true);
  case_input(&c, "y", TYPE_F64, SHAPE(2), VALUES(1, 2));
  case_node(&c, "ReLU", "x", "a");
  case_node(&c, "Add", "a x", "b");
  case_node(&c, "Add", "constant y", "c");
  case_expect(&c, "b", VALUES(NAN, 2));
  case_expect(&c, "c", VALUES(NAN, NAN));
  nan_check_says(&c, NULL);
}

static void count_progress(void *context, size_t done, size_t total) {
  size_t *calls = context;
  assert_int_equal(total, 3);
  assert_int_equal(done, ++*calls);
}

static void progress_is_told_after_each_node(void **state) {
  (void)state;
  size_t calls = 0;
  Case c;
  case_init(&c);
  c.options.progress = count_progress;
  c.options.progress_context = &calls;
  case_input(&c, "x", TYPE_F32, SHAPE(1), VALUES(1));
  case_node(&c, "ReLU", "x", "a");
  case_node(&c, "ReLU", "a", "b");
  case_node(&c, "ReLU", "b", "c");
  case_expect(&c, "c", VALUES(1));
  case_passes(&c);
  assert_int_equal(calls, 3);
}

static void named_extents_count_by_their_values(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  Dim *n = graph_add_dim(c.graph, "N", 2);
  Shape shape = {.rank = 2, .extent = {{n, -1}, EXTENT(3)}};
  case_input(&c, "x", TYPE_F32, shape, VALUES(1, 2, 3, 4, 5, 6));
  case_input(&c, "y", TYPE_F32, SHAPE(3), VALUES(10, 20, 30));
  case_node(&c, "Add", "x y", "sum");
  case_expect(&c, "sum", VALUES(11, 22, 33, 14, 25, 36));
  case_passes(&c);
}

static void a_single_node_runs_on_arrays(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_S32, SHAPE(2), VALUES(0, 0));
  case_node(&c, "Add", "x x", "y");
  case_expect(&c, "y", ANY_VALUES);
  case_finish(&c);
  const double x[] = {INT32_MAX, 4};
  double y[2];
  const double *inputs[] = {x, x};
  double *outputs[] = {y};
  assert_true(interpret_node(c.graph->nodes[0], inputs, outputs, &system_allocator));
  assert_true(y[0] == -2 && y[1] == 8); // integers wrap around
  case_free(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nodes_run_after_what_they_need),
      cmocka_unit_test(an_operand_may_occur_twice),
      cmocka_unit_test(any_value_may_be_an_output_and_more_than_once),
      cmocka_unit_test(a_graph_may_have_no_nodes_and_nodes_no_users),
      cmocka_unit_test(running_out_of_memory_is_told_and_leaks_nothing),
      cmocka_unit_test(values_are_freed_after_their_last_use),
      cmocka_unit_test(nan_check_names_the_first_node_that_makes_one),
      cmocka_unit_test(finite_check_names_the_first_node_that_overflows),
      cmocka_unit_test(values_are_rounded_between_nodes),
      cmocka_unit_test(sums_overflow_the_type_that_a_node_computes_in),
      cmocka_unit_test(nan_check_uses_the_name_in_the_file),
      cmocka_unit_test(nan_check_of_a_scalar),
      cmocka_unit_test(nan_check_tells_of_a_label_without_a_class),
      cmocka_unit_test(nan_check_lets_given_nans_pass),
      cmocka_unit_test(progress_is_told_after_each_node),
      cmocka_unit_test(named_extents_count_by_their_values),
      cmocka_unit_test(a_single_node_runs_on_arrays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
