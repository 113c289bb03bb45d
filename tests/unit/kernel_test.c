// Building kernels: equal expressions are merged, sums of products are found, axes are dropped and merged.
#include "ir/kernel/schedule.h"
#include "ir/kernel/simplify.h"
#include "tests/unit/failing_allocator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROW = 0, COLUMN = 1 };

typedef struct Fixture {
  Arena arena;
  Kernel kernel;
  Value value[4]; // the tensors of accesses
} Fixture;

static int set_up(void **state) {
  static Fixture f;
  arena_init(&f.arena, &system_allocator);
  kernel_init(&f.kernel, &f.arena, "test");
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  arena_deinit(&((Fixture *)*state)->arena);
  return 0;
}

// A load of value i with these strides along the first two axes.
static ExprId load(Fixture *f, int i, int64_t row_stride, int64_t column_stride) {
  Access a = {.value = &f->value[i], .type = TYPE_F32, .stride = {row_stride, column_stride}};
  return expr_load(&f->kernel, kernel_add_access(&f->kernel, &a));
}

static const Expr *expr(const Fixture *f, ExprId id) {
  assert_true(id > 0 && id < f->kernel.nexprs);
  return &f->kernel.exprs[id];
}

static void add_axes(Fixture *f, int64_t rows, int64_t columns) {
  assert_int_equal(kernel_add_axis(&f->kernel, "row", rows, 0), ROW);
  assert_int_equal(kernel_add_axis(&f->kernel, "column", columns, 0), COLUMN);
}

// Stores value 3 over both axes.
static void store(Fixture *f, ExprId id) {
  Access a = {.value = &f->value[3], .type = TYPE_F32, .stride = {f->kernel.axes[COLUMN].extent, 1}};
  kernel_store(&f->kernel, kernel_add_access(&f->kernel, &a), id);
}

// Expressions

static void equal_expressions_are_made_once(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 3, 5);
  ExprId x = load(f, 0, 5, 1), y = load(f, 1, 0, 1);
  assert_int_equal(load(f, 0, 5, 1), x);
  assert_int_not_equal(load(f, 0, 1, 3), x); // other strides
  assert_int_equal(k->naccesses, 3);
  assert_int_equal(expr_binary(k, EXPR_MUL, x, y), expr_binary(k, EXPR_MUL, x, y));
  assert_int_not_equal(expr_binary(k, EXPR_SUB, x, y), expr_binary(k, EXPR_SUB, y, x));
  assert_int_not_equal(expr_binary(k, EXPR_ADD, x, y), expr_binary(k, EXPR_MUL, x, y));
  assert_int_equal(expr_constant(k, 2), expr_constant(k, 2));
  assert_int_not_equal(expr_constant(k, 0.0), expr_constant(k, -0.0));
  assert_int_equal(expr_sum(k, x, 1U << ROW), expr_sum(k, x, 1U << ROW));
  assert_int_not_equal(expr_sum(k, x, 1U << ROW), expr_sum(k, x, 1U << COLUMN));
}

static void expressions_vary_over_their_operands_axes(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 3, 5);
  ExprId row = load(f, 0, 1, 0), column = load(f, 1, 0, 1), number = expr_constant(k, 3);
  assert_int_equal(expr(f, row)->axes, 1U << ROW);
  assert_int_equal(expr(f, number)->axes, 0);
  assert_int_equal(expr(f, expr_unary(k, EXPR_SQRT, column))->axes, 1U << COLUMN);
  assert_int_equal(expr(f, expr_binary(k, EXPR_ADD, row, number))->axes, 1U << ROW);
  assert_int_equal(expr(f, expr_fma(k, row, column, number))->axes, 3);
  assert_int_equal(expr(f, expr_select(k, expr_binary(k, EXPR_GT, row, number), column, number))->axes, 3);
  assert_int_equal(expr(f, expr_sum(k, expr_binary(k, EXPR_MUL, row, column), 1U << ROW))->axes, 1U << COLUMN);
}

static void constants_have_the_precision_that_the_kernel_computes_in(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  assert_true(expr(f, expr_constant(k, 0.1))->number == (double)0.1F);
  k->is_f64 = true;
  assert_true(expr(f, expr_constant(k, 0.1))->number == 0.1);
}

static void first_label_stays(void **state) {
  Fixture *f = *state;
  ExprId x = expr_constant(&f->kernel, 1);
  assert_int_equal(expr_label(&f->kernel, x, "one"), x);
  expr_label(&f->kernel, x, "other");
  assert_string_equal(expr(f, x)->label, "one");
  assert_int_equal(expr_label(&f->kernel, 0, "nothing"), 0);
}

static void sum_over_axes_that_do_not_vary_is_a_product(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 3, 5);
  ExprId column = load(f, 0, 0, 1);
  const Expr *sum = expr(f, expr_sum(k, column, 1U << ROW));
  assert_int_equal(sum->op, EXPR_ADD); // with 0, as -0 does not stay
  const Expr *product = expr(f, sum->args[0]);
  assert_int_equal(product->op, EXPR_MUL);
  assert_int_equal(product->args[0], column);
  assert_true(expr(f, product->args[1])->number == 3);
  sum = expr(f, expr_sum(k, column, 3)); // over one that does and one that does not
  assert_int_equal(sum->op, EXPR_REDUCE_SUM);
  assert_int_equal(sum->reduced, 1U << COLUMN);
  assert_int_equal(expr(f, sum->args[0])->op, EXPR_MUL);
  assert_int_equal(expr(f, expr_sum(k, column, 0))->op, EXPR_ADD);
}

static void maximum_over_axes_that_do_not_vary_is_its_operand(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 3, 5);
  ExprId column = load(f, 0, 0, 1);
  assert_int_equal(expr_reduce(k, EXPR_REDUCE_MAXIMUM, column, 1U << ROW), column);
  const Expr *maximum = expr(f, expr_reduce(k, EXPR_REDUCE_MAXIMUM, column, 3));
  assert_int_equal(maximum->op, EXPR_REDUCE_MAXIMUM);
  assert_int_equal(maximum->reduced, 1U << COLUMN);
  assert_int_equal(maximum->args[0], column);
}

// x^13 = x * x^4 * x^8
static void product_over_axes_that_do_not_vary_is_a_power(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 13, 5);
  ExprId x = load(f, 0, 0, 1), square = expr_binary(k, EXPR_MUL, x, x),
         fourth = expr_binary(k, EXPR_MUL, square, square);
  ExprId eighth = expr_binary(k, EXPR_MUL, fourth, fourth);
  ExprId power = expr_binary(k, EXPR_MUL, expr_binary(k, EXPR_MUL, x, fourth), eighth);
  assert_int_equal(expr_reduce(k, EXPR_REDUCE_PRODUCT, x, 1U << ROW), power);
}

static void reduction_of_no_elements_is_its_identity(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 0, 5);
  ExprId x = load(f, 0, 0, 1);
  assert_true(expr(f, expr_reduce(k, EXPR_REDUCE_MAXIMUM, x, 1U << ROW))->number == -INFINITY);
  assert_true(expr(f, expr_reduce(k, EXPR_REDUCE_PRODUCT, x, 1U << ROW))->number == 1);
}

static void what_no_store_needs_goes(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 3, 5);
  ExprId x = load(f, 0, 5, 1), y = load(f, 1, 0, 1);
  expr_sum(k, expr_binary(k, EXPR_MUL, x, y), 3);
  Access out = {.value = k->accesses[0].value, .type = TYPE_F32, .stride = {5, 1}};
  out.type = TYPE_BF16; // another than x's
  kernel_store(k, kernel_add_access(k, &out), expr_unary(k, EXPR_NEG, x));
  kernel_drop_unneeded(k);
  assert_int_equal(k->nexprs, 3); // none, x, -x
  assert_int_equal(k->naccesses, 2);
  assert_int_equal(k->exprs[k->stores[0].value].op, EXPR_NEG);
  assert_int_equal(k->exprs[k->exprs[k->stores[0].value].args[0]].op, EXPR_LOAD);
  assert_int_equal(k->accesses[k->stores[0].access].type, TYPE_BF16);
}

static void sum_of_no_elements_is_zero(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 0, 5);
  const Expr *sum = expr(f, expr_sum(k, load(f, 0, 0, 1), 1U << ROW));
  assert_int_equal(sum->op, EXPR_CONSTANT);
  assert_true(sum->number == 0);
}

static void expression_is_made_again_with_other_operands(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 3, 5);
  ExprId x = load(f, 0, 5, 1), y = load(f, 1, 0, 1), sum = expr_sum(k, x, 1U << ROW);
  Expr e = *expr(f, sum);
  const Expr *again = expr(f, expr_with_arguments(k, &e, (ExprId[]){y, 0, 0}));
  assert_int_equal(expr(f, again->args[0])->op, EXPR_MUL); // y does not vary over rows
  e = *expr(f, expr_fma(k, x, x, x));
  assert_int_equal(expr_with_arguments(k, &e, (ExprId[]){x, y, x}), expr_fma(k, x, y, x));
}

// Axes

static void axes_of_extent_one_are_dropped(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 1, 5);
  ExprId x = load(f, 0, 0, 1);
  store(f, expr_binary(k, EXPR_ADD, x, x));
  kernel_simplify_axes(k);
  assert_int_equal(k->naxes, 1);
  assert_int_equal(k->axes[0].extent, 5);
  assert_int_equal(expr(f, x)->axes, 1);
  assert_int_equal(k->accesses[k->stores[0].access].stride[0], 1);
  assert_int_equal(k->accesses[k->stores[0].access].stride[1], 0);
}

// Lowering may sum along an axis of extent 1 that an operand claims to vary over.
static void sum_over_dropped_axes_is_its_operand(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 5, 1);
  ExprId x = load(f, 0, 1, 1), sum = expr_sum(k, x, 1U << COLUMN);
  assert_int_equal(expr(f, sum)->op, EXPR_REDUCE_SUM);
  ExprId twice = expr_binary(k, EXPR_ADD, sum, sum);
  store(f, sum);
  kernel_simplify_axes(k);
  assert_int_equal(k->stores[0].value, x);
  assert_int_equal(expr(f, twice)->args[0], x);
  assert_int_equal(expr(f, twice)->args[1], x);
}

static void neighbours_that_all_treat_alike_are_merged(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 3, 5);
  ExprId x = load(f, 0, 5, 1), number = load(f, 1, 0, 0);
  ExprId sum = expr_sum(k, x, 3);
  store(f, expr_fma(k, x, number, sum));
  kernel_simplify_axes(k);
  assert_int_equal(k->naxes, 1);
  assert_int_equal(k->axes[0].extent, 15);
  assert_int_equal(expr(f, sum)->reduced, 1);
  assert_int_equal(expr(f, x)->axes, 1);
  assert_int_equal(k->accesses[expr(f, x)->access].stride[0], 1);
}

static void axes_that_something_treats_differently_stay(void **state) {
  for (int which = 0; which < 3; which++) {
    Fixture *f = *state;
    Kernel *k = &f->kernel;
    kernel_init(k, &f->arena, "test");
    add_axes(f, 3, 5);
    ExprId x = which == 0 ? load(f, 0, 1, 3) : load(f, 0, 5, 1);                // transposed
    ExprId y = which == 1 ? load(f, 1, 0, 1) : expr_constant(k, 1);             // broadcast along one
    ExprId z = which == 2 ? expr_sum(k, x, 1U << COLUMN) : expr_constant(k, 1); // summed along one
    store(f, expr_fma(k, x, y, z));
    kernel_simplify_axes(k);
    assert_int_equal(k->naxes, 2);
  }
}

static void only_some_of_several_axes_are_merged(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  const int64_t extents[] = {2, 3, 1, 5, 7};
  for (int i = 0; i < 5; i++) kernel_add_axis(k, "axis", extents[i], 0);
  Access whole = {.value = &f->value[0], .type = TYPE_F32, .stride = {105, 35, 0, 7, 1}};
  Access channel = {.value = &f->value[1], .type = TYPE_F32, .stride = {0, 1}};
  ExprId x = expr_load(k, kernel_add_access(k, &whole)), c = expr_load(k, kernel_add_access(k, &channel));
  whole.value = &f->value[2];
  kernel_store(k, kernel_add_access(k, &whole), expr_binary(k, EXPR_ADD, x, c));
  kernel_simplify_axes(k);
  assert_int_equal(k->naxes, 3);
  assert_int_equal(k->axes[2].extent, 35);
  const int64_t *stride = k->accesses[expr(f, x)->access].stride;
  assert_true(stride[0] == 105 && stride[1] == 35 && stride[2] == 1 && stride[3] == 0);
  assert_int_equal(expr(f, c)->axes, 1U << 1);
}

// [2, 3, 5, 7] in memory as [2, 5, 7, 3]: the two middle axes of memory are merged, and channels come last. A broadcast
// operand in another layout does not decide, as it is small.
static void axes_stand_as_most_of_memory_has_them(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  const int64_t extents[] = {2, 3, 5, 7};
  for (int i = 0; i < 4; i++) kernel_add_axis(k, "axis", extents[i], 0);
  Access whole = {.value = &f->value[0], .type = TYPE_F32, .stride = {105, 1, 21, 3}};
  Access small = {.value = &f->value[1], .type = TYPE_F32, .stride = {3, 1}};
  ExprId x = expr_load(k, kernel_add_access(k, &whole)), y = expr_load(k, kernel_add_access(k, &small));
  ExprId sum = expr_sum(k, expr_binary(k, EXPR_ADD, x, y), 1U << 2 | 1U << 3);
  kernel_store(k, kernel_add_access(k, &small), sum);
  kernel_simplify_axes(k);
  assert_int_equal(k->naxes, 3);
  assert_true(k->axes[0].extent == 2 && k->axes[1].extent == 35 && k->axes[2].extent == 3);
  const int64_t *stride = k->accesses[expr(f, x)->access].stride;
  assert_true(stride[0] == 105 && stride[1] == 3 && stride[2] == 1 && stride[3] == 0);
  assert_int_equal(expr(f, y)->axes, 1U << 0 | 1U << 2);
  assert_int_equal(expr(f, sum)->reduced, 1U << 1);
  assert_int_equal(expr(f, sum)->axes, 1U << 0 | 1U << 2);
}

// Half in one order and half in the other: as the domain had them.
static void axes_stay_when_memory_is_divided(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 3, 5);
  store(f, load(f, 0, 1, 3));
  kernel_simplify_axes(k);
  assert_true(k->axes[ROW].extent == 3 && k->axes[COLUMN].extent == 5);
}

// A store may repeat a value along axes of its own.
static void root_works_along_the_axes_of_what_it_stores_to(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 3, 5);
  ExprId column = load(f, 0, 0, 1);
  store(f, column);
  Root root = {.kind = ROOT_STORE, .expr = column, .access = k->stores[0].access};
  assert_int_equal(root_axes(k, &root), 3);
  root.kind = ROOT_REDUCE_OUTER;
  assert_int_equal(root_axes(k, &root), 1U << COLUMN);
}

static void blocks_do_not_straddle_kept_axes(void **state) {
  Fixture *f = *state;
  Kernel *k = &f->kernel;
  add_axes(f, 3, 5);
  Loop loop = {.axes = {ROW, COLUMN}, .nouter = 2, .nbatch = 1, .cut = {.length = 2}};
  assert_int_equal(loop_nblocks(k, &loop), 3 * 3);
  loop.nbatch = 0;
  assert_int_equal(loop_nblocks(k, &loop), 8);
  loop = (Loop){.axes = {COLUMN}, .ninner = 1, .cut = {.length = 2}};
  assert_int_equal(loop_nblocks(k, &loop), 3);
  k->axes[COLUMN].extent = 0;
  assert_int_equal(loop_nblocks(k, &loop), 0);
}

// Memory

static void build(Kernel *k, Value *value) {
  kernel_add_axis(k, "axis", 5, 0);
  Access a = {.value = value, .type = TYPE_F32, .stride = {1}};
  ExprId x = expr_load(k, kernel_add_access(k, &a));
  for (int i = 0; i < 200; i++) x = expr_label(k, expr_fma(k, x, expr_constant(k, i), expr_sum(k, x, 1)), "x");
  x = expr_select(k, expr_binary(k, EXPR_GT, x, expr_unary(k, EXPR_NEG, x)), x, x);
  Schedule *s = schedule_new(k);
  if (s) schedule_add_temporary(s, "t", TYPE_F32, 5);
  Loop *loop = s ? schedule_add_loop(s) : NULL;
  if (loop) loop_add_root(k, loop, (Root){.kind = ROOT_STORE, .expr = x});
  kernel_store(k, 0, x);
}

static void failing_allocation_is_remembered(void **state) {
  (void)state;
  bool out_of_memory = true;
  for (size_t failing = 0; out_of_memory; failing++) {
    FailingAllocator memory;
    Arena arena;
    Kernel k;
    Value value = {0};
    failing_allocator_init(&memory, failing);
    arena_init(&arena, &memory.allocator);
    kernel_init(&k, &arena, "test");
    build(&k, &value);
    out_of_memory = k.out_of_memory;
    assert_int_equal(out_of_memory, memory.ncalls > failing);
    arena_deinit(&arena);
    assert_int_equal(memory.nlive, 0);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(equal_expressions_are_made_once),
      TEST(expressions_vary_over_their_operands_axes),
      TEST(constants_have_the_precision_that_the_kernel_computes_in),
      TEST(first_label_stays),
      TEST(sum_over_axes_that_do_not_vary_is_a_product),
      TEST(maximum_over_axes_that_do_not_vary_is_its_operand),
      TEST(product_over_axes_that_do_not_vary_is_a_power),
      TEST(reduction_of_no_elements_is_its_identity),
      TEST(what_no_store_needs_goes),
      TEST(sum_of_no_elements_is_zero),
      TEST(expression_is_made_again_with_other_operands),
      TEST(axes_of_extent_one_are_dropped),
      TEST(sum_over_dropped_axes_is_its_operand),
      TEST(neighbours_that_all_treat_alike_are_merged),
      TEST(axes_that_something_treats_differently_stay),
      TEST(only_some_of_several_axes_are_merged),
      TEST(axes_stand_as_most_of_memory_has_them),
      TEST(axes_stay_when_memory_is_divided),
      TEST(root_works_along_the_axes_of_what_it_stores_to),
      TEST(blocks_do_not_straddle_kept_axes),
      TEST(failing_allocation_is_remembered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
