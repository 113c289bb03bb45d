// Bounds of accesses in kernels: building, verification, simplification.
#include "ir/kernel/simplify.h"
#include "ir/kernel/verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { OUT = 0, TAP = 1, CHANNEL = 2 };

typedef struct Fixture {
  Arena arena;
  Kernel kernel;
  Value x, y; // [extent, channels], [outputs, channels]
} Fixture;

static int set_up(void **state) {
  static Fixture f;
  memset(&f, 0, sizeof f);
  arena_init(&f.arena, &system_allocator);
  kernel_init(&f.kernel, &f.arena, "test");
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  arena_deinit(&((Fixture *)*state)->arena);
  return 0;
}

static void add_axes(Fixture *f, int64_t outputs, int64_t taps, int64_t extent, int64_t channels) {
  kernel_add_axis(&f->kernel, "o", outputs, 0);
  kernel_add_axis(&f->kernel, "k", taps, 0);
  kernel_add_axis(&f->kernel, "c", channels, 0);
  f->x = (Value){.name = "x", .type = TYPE_F32, .shape = {.rank = 2, .extent = {EXTENT(extent), EXTENT(channels)}}};
  f->y = (Value){.name = "y", .type = TYPE_F32, .shape = {.rank = 2, .extent = {EXTENT(outputs), EXTENT(channels)}}};
}

// Row stride * o + dilation * k - padding of x, and all channels.
static ExprId load(Fixture *f, int64_t stride, int64_t dilation, int64_t padding, double outside) {
  const int64_t row = f->kernel.axes[CHANNEL].extent, extent = f->x.shape.extent[0].value;
  Bound b = {.offset = -padding, .extent = extent, .factor = {stride, dilation}, .stride = row};
  Access a = {.value = &f->x,
              .type = TYPE_F32,
              .offset = -padding * row,
              .stride = {stride * row, dilation * row, 1},
              .bounds = &b,
              .nbounds = 1,
              .outside = outside};
  return expr_load(&f->kernel, kernel_add_access(&f->kernel, &a));
}

static void store_sum(Fixture *f, ExprId e) {
  Access a = {.value = &f->y, .type = TYPE_F32, .stride = {f->kernel.axes[CHANNEL].extent, 0, 1}};
  kernel_store(&f->kernel, kernel_add_access(&f->kernel, &a), expr_sum(&f->kernel, e, 1U << TAP));
}

static Access *access_of(Fixture *f, ExprId e) {
  return &f->kernel.accesses[f->kernel.exprs[e].access];
}

static void must_be_right(const Fixture *f) {
  Text why;
  text_init(&why, &system_allocator);
  if (!kernel_verify(&f->kernel, &why)) fail_msg("%s", text_string(&why));
  text_deinit(&why);
}

static void must_be_wrong(const Fixture *f, const char *expected) {
  Text why;
  text_init(&why, &system_allocator);
  assert_false(kernel_verify(&f->kernel, &why));
  if (!strstr(text_string(&why), expected)) assert_string_equal(text_string(&why), expected);
  text_deinit(&why);
}

static void accesses_with_other_bounds_are_others(void **state) {
  Fixture *f = *state;
  add_axes(f, 8, 3, 8, 4);
  const ExprId x = load(f, 1, 1, 1, 0);
  assert_int_equal(load(f, 1, 1, 1, 0), x);
  assert_int_not_equal(load(f, 1, 1, 1, -1), x);
  f->x.shape.extent[0] = EXTENT(9);
  assert_int_not_equal(load(f, 1, 1, 1, 0), x);
  assert_int_equal(f->kernel.exprs[x].axes, 7);
}

// A tensor axis of extent 1 has no stride, and the load varies over the axes of the window.
static void loads_vary_over_the_axes_of_their_bounds(void **state) {
  Fixture *f = *state;
  add_axes(f, 1, 3, 1, 4);
  Bound b = {.offset = -1, .extent = 1, .factor = {1, 1}};
  Access a = {.value = &f->x, .type = TYPE_F32, .stride = {0, 0, 1}, .bounds = &b, .nbounds = 1};
  const ExprId x = expr_load(&f->kernel, kernel_add_access(&f->kernel, &a));
  assert_int_equal(f->kernel.exprs[x].axes, 7);
  store_sum(f, x);
  must_be_right(f);
}

static void windows_may_leave_their_tensor(void **state) {
  static const struct {
    int64_t stride, dilation, padding;
  } rows[] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 2}, {1, -1, -1}, {-1, 1, -7}, {3, 5, 100}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Fixture *f = *state;
    kernel_init(&f->kernel, &f->arena, "test");
    add_axes(f, 8, 3, 8, 4);
    store_sum(f, load(f, rows[i].stride, rows[i].dilation, rows[i].padding, 0));
    must_be_right(f);
  }
}

static void spoilt_bounds_are_found(void **state) {
  Fixture *f = *state;
  add_axes(f, 8, 3, 8, 4);
  const ExprId e = load(f, 2, 1, 1, 0);
  store_sum(f, e);
  Access *x = access_of(f, e);
  Bound *b = x->bounds, before = *b;
  must_be_right(f);
  b->extent = 9;
  must_be_wrong(f, "it reaches elements");
  *b = before;
  b->offset = 0;
  must_be_wrong(f, "it reaches elements");
  *b = before;
  b->factor[OUT] = 1;
  must_be_wrong(f, "its stride along o is");
  *b = before;
  b->factor[OUT] = b->factor[TAP] = 0;
  must_be_wrong(f, "has a factor for no axis");
  *b = before;
  b->stride = 8;
  must_be_wrong(f, "its stride along o is");
  *b = before;
  f->kernel.axes[TAP].monomial = 1;
  must_be_wrong(f, "must not depend on open dims");
  f->kernel.axes[TAP].monomial = 0;
  x->nbounds = 0;
  must_be_wrong(f, "it reaches elements");
  x->nbounds = 1;
  Access *y = &f->kernel.accesses[f->kernel.stores[0].access];
  Bound whole = {.extent = 8, .factor = {1}, .stride = 4};
  y->bounds = &whole;
  y->nbounds = 1;
  must_be_wrong(f, "it is stored, expected no bounds");
}

static void bounds_follow_their_axes(void **state) {
  Fixture *f = *state;
  add_axes(f, 8, 1, 8, 4);
  const ExprId e = load(f, 2, 1, 1, 0);
  store_sum(f, e);
  kernel_drop_unneeded(&f->kernel);
  kernel_simplify_axes(&f->kernel);
  assert_int_equal(f->kernel.naxes, 2); // the tap is none
  assert_int_equal(f->kernel.accesses[0].nbounds, 1);
  assert_true(f->kernel.accesses[0].bounds[0].factor[0] == 2 && !f->kernel.accesses[0].bounds[0].factor[1]);
  must_be_right(f);
}

// Rows and channels could be one axis but for the bound; a bound that always holds says nothing, and goes.
static void bounds_keep_axes_apart(void **state) {
  for (int64_t padding = 0; padding < 2; padding++) {
    Fixture *f = *state;
    kernel_init(&f->kernel, &f->arena, "test");
    add_axes(f, 8, 1, 8, 4);
    store_sum(f, load(f, 1, 1, padding, 0));
    kernel_drop_unneeded(&f->kernel);
    kernel_simplify_axes(&f->kernel);
    assert_int_equal(f->kernel.naxes, padding ? 2 : 1);
    assert_int_equal(f->kernel.accesses[0].nbounds, padding ? 1 : 0);
    must_be_right(f);
  }
}

// Windows keep their bounds, whether these hold or not: scheduling looks at them.
static void windows_keep_their_bounds(void **state) {
  Fixture *f = *state;
  add_axes(f, 6, 3, 8, 4);
  const ExprId e = load(f, 1, 1, 0, 0);
  store_sum(f, e);
  kernel_simplify_axes(&f->kernel);
  const Access *x = access_of(f, e);
  assert_int_equal(x->nbounds, 1);
  assert_true(bound_always_holds(&f->kernel, &x->bounds[0]));
  assert_int_equal(access_nelems_along(&f->kernel, x, ~0U), 8 * 4);
  must_be_right(f);
}

static void loads_from_outside_are_constants(void **state) {
  Fixture *f = *state;
  add_axes(f, 8, 3, 8, 4);
  const ExprId e = load(f, 1, 1, 100, 0.1);
  store_sum(f, e);
  kernel_drop_unneeded(&f->kernel);
  assert_int_equal(f->kernel.naccesses, 1);
  const Expr *outside = &f->kernel.exprs[f->kernel.exprs[f->kernel.stores[0].value].args[0]];
  assert_int_equal(outside->op, EXPR_CONSTANT);
  assert_true(outside->number == (double)0.1F);
  must_be_right(f);
}

static void a_tensor_without_elements_is_never_loaded(void **state) {
  Fixture *f = *state;
  add_axes(f, 2, 3, 0, 4);
  store_sum(f, load(f, 1, 1, 1, 5));
  kernel_drop_unneeded(&f->kernel);
  for (ExprId i = 1; i < f->kernel.nexprs; i++) assert_int_not_equal(f->kernel.exprs[i].op, EXPR_LOAD);
}

static void bounds_are_printed(void **state) {
  Fixture *f = *state;
  Text text;
  text_init(&text, &system_allocator);
  add_axes(f, 8, 3, 8, 4);
  access_print_bounds(&f->kernel, access_of(f, load(f, 2, -1, 1, 0)), &text);
  assert_string_equal(text_string(&text), "[2 * o - k - 1 in 0..8], else 0.0");
  text_deinit(&text);
}

static bool holds_at_all_others(const Fixture *f, const Bound *b, int64_t index) {
  bool holds = true;
  for (int64_t k = 0; k < f->kernel.axes[TAP].extent; k++) {
    const int64_t place = b->offset + b->factor[OUT] * index + b->factor[TAP] * k;
    holds &= place >= 0 && place < b->extent;
  }
  return holds;
}

static void interior_is_where_a_search_finds_it(void **state) {
  Fixture *f = *state;
  enum { OUTPUTS = 7, TAPS = 3, LEAST = -9, MOST = 9 };
  add_axes(f, OUTPUTS, TAPS, 1, 1);
  for (int64_t factor = -3; factor <= 3; factor++)
    for (int64_t of_tap = -2; of_tap <= 2; of_tap++)
      for (int64_t offset = LEAST; offset <= MOST; offset++)
        for (int64_t extent = 0; extent <= MOST && factor; extent++) {
          const Bound b = {.offset = offset, .extent = extent, .factor = {factor, of_tap}};
          int64_t begin = 0, end, found_begin, found_end;
          while (begin < OUTPUTS && !holds_at_all_others(f, &b, begin)) begin++;
          for (end = begin; end < OUTPUTS && holds_at_all_others(f, &b, end);) end++;
          bound_interior(&f->kernel, &b, OUT, &found_begin, &found_end);
          assert_int_equal(found_begin, begin);
          assert_int_equal(found_end, end);
        }
}

static void interior_of_very_many_indices_is_found_at_once(void **state) {
  Fixture *f = *state;
  int64_t begin, end;
  add_axes(f, INT64_C(1) << 40, 1, 1, 1);
  const Bound b = {.offset = -(INT64_C(1) << 35), .extent = INT64_C(1) << 36, .factor = {2}};
  bound_interior(&f->kernel, &b, OUT, &begin, &end);
  assert_int_equal(begin, INT64_C(1) << 34);
  assert_int_equal(end, (INT64_C(1) << 34) + (INT64_C(1) << 35));
}

static void counts_of_indices_do_not_overflow(void **state) {
  Fixture *f = *state;
  add_axes(f, INT64_C(1) << 40, INT64_C(1) << 31, 1, 0);
  assert_int_equal(axes_nelems(&f->kernel, 1U << OUT | 1U << TAP), GREATEST_NELEMS);
  assert_int_equal(axes_nelems(&f->kernel, 1U << OUT), INT64_C(1) << 40);
  assert_int_equal(axes_nelems(&f->kernel, 1U << OUT | 1U << TAP | 1U << CHANNEL), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(accesses_with_other_bounds_are_others),
      TEST(loads_vary_over_the_axes_of_their_bounds),
      TEST(windows_may_leave_their_tensor),
      TEST(spoilt_bounds_are_found),
      TEST(bounds_follow_their_axes),
      TEST(bounds_keep_axes_apart),
      TEST(windows_keep_their_bounds),
      TEST(loads_from_outside_are_constants),
      TEST(a_tensor_without_elements_is_never_loaded),
      TEST(bounds_are_printed),
      TEST(interior_is_where_a_search_finds_it),
      TEST(interior_of_very_many_indices_is_found_at_once),
      TEST(counts_of_indices_do_not_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
