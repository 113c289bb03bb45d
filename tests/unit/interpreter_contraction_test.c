// Products and convolutions have the bits of their formulas. The test writes these as one nest of loops over every
// element, tap and window, also outside of tensors: on random shapes with much padding, dilation, strides larger than
// the kernel, groups and extents of 0, and with numbers that are not finite.
#include "backends/interpreter/sum.h"
#include "ir/operators/window.h"
#include "ir/support/splitmix.h"
#include "tests/effort.h"
#include "tests/unit/interpreter_case.h"

#include <stdlib.h>

enum { COUNT = 3000, SPATIAL = MOST_SPATIAL_AXES, MOST_ELEMENTS = 1 << 16 };

typedef struct Random {
  uint64_t state;
} Random;

static int64_t below(Random *r, int64_t n) {
  r->state += SPLITMIX_STEP;
  return (int64_t)(splitmix64(r->state) % (uint64_t)n);
}

static double *random_numbers(Random *r, int64_t n, bool are_finite) {
  double *x = malloc(((size_t)n + 1) * sizeof *x);
  assert_non_null(x);
  for (int64_t i = 0; x && i < n; i++) {
    x[i] = (double)(below(r, 1 << 20) - (1 << 19)) / 3;
    if (!are_finite && below(r, 40) == 0) x[i] = (const double[]){INFINITY, -INFINITY, NAN}[below(r, 3)];
  }
  return x;
}

static void expect_sums(const double *got, const Sum *sums, int64_t n, const char *of) {
  for (int64_t i = 0; i < n; i++) {
    const double expected = sum_value(&sums[i], NULL);
    if (!case_is_near(got[i], expected, TYPE_F64, 0))
      fail_msg("%s[%lld]: expected %a, found %a", of, (long long)i, expected, got[i]);
  }
}

// Convolutions

typedef struct Axis {
  int64_t kernel, stride, dilation, pad_begin, pad_end, large, small;
} Axis;

typedef struct Convolution {
  int64_t nspatial, batch, groups, nlarge, nsmall; // channels of a group
  Axis axis[SPATIAL];                              // missing ones are the last
  bool is_channels_last, is_kernel_first;
} Convolution;

// is_exact: the last window ends with the padding, and the large side has elements.
static Axis random_axis(Random *r, bool is_exact) {
  Axis a = {.large = -1};
  while (a.large < is_exact) {
    a = (Axis){
        .kernel = 1 + below(r, 4), .stride = 1 + below(r, 7), .dilation = 1 + below(r, 4), .small = 1 + below(r, 5)};
    const int64_t reach = (a.kernel - 1) * a.dilation + 1, wide = below(r, 3) ? reach : 4 * reach;
    a.pad_begin = below(r, wide);
    a.pad_end = below(r, wide);
    a.large = (a.small - 1) * a.stride + reach - a.pad_begin - a.pad_end + (is_exact ? 0 : below(r, a.stride));
  }
  return a;
}

static Convolution random_convolution(Random *r, bool is_exact) {
  Convolution c = {.nspatial = 1 + below(r, SPATIAL), .batch = below(r, 4), .groups = 1 + below(r, 3)};
  c.nlarge = below(r, below(r, 3) ? 4 : 20);
  c.nsmall = 1 + below(r, below(r, 3) ? 3 : 40);
  c.is_channels_last = below(r, 2);
  c.is_kernel_first = below(r, 2);
  for (int i = 0; i < SPATIAL; i++)
    c.axis[i] = i < c.nspatial ? random_axis(r, is_exact)
                               : (Axis){.kernel = 1, .stride = 1, .dilation = 1, .large = 1, .small = 1};
  return c;
}

static Shape side_shape(const Convolution *c, WindowSide side) {
  Shape s = {.rank = (int)c->nspatial + 2};
  const int64_t channels = c->groups * (side == SIDE_LARGE ? c->nlarge : c->nsmall);
  s.extent[0] = EXTENT(c->batch);
  s.extent[c->is_channels_last ? s.rank - 1 : 1] = EXTENT(channels);
  for (int i = 0; i < c->nspatial; i++)
    s.extent[(c->is_channels_last ? 1 : 2) + i] = EXTENT(side == SIDE_LARGE ? c->axis[i].large : c->axis[i].small);
  return s;
}

static Shape weights_shape(const Convolution *c) {
  Shape s = {.rank = (int)c->nspatial + 2};
  s.extent[c->is_kernel_first ? s.rank - 1 : 0] = EXTENT(c->groups * c->nsmall);
  s.extent[c->is_kernel_first ? s.rank - 2 : 1] = EXTENT(c->nlarge);
  for (int i = 0; i < c->nspatial; i++) s.extent[(c->is_kernel_first ? 0 : 2) + i] = EXTENT(c->axis[i].kernel);
  return s;
}

// The number of an element of a side; -1: outside.
static int64_t at_side(const Convolution *c, WindowSide side, int64_t n, int64_t channel, const int64_t at[SPATIAL]) {
  const int64_t channels = c->groups * (side == SIDE_LARGE ? c->nlarge : c->nsmall);
  int64_t number = c->is_channels_last ? n : n * channels + channel;
  for (int i = 0; i < SPATIAL; i++) {
    const int64_t extent = side == SIDE_LARGE ? c->axis[i].large : c->axis[i].small;
    if (at[i] < 0 || at[i] >= extent) return -1;
    number = number * extent + at[i];
  }
  return c->is_channels_last ? number * channels + channel : number;
}

static int64_t at_weights(const Convolution *c, int64_t small, int64_t large, const int64_t tap[SPATIAL]) {
  int64_t number = c->is_kernel_first ? 0 : small * c->nlarge + large;
  for (int i = 0; i < SPATIAL; i++) number = number * c->axis[i].kernel + tap[i];
  return c->is_kernel_first ? (number * c->nlarge + large) * (c->groups * c->nsmall) + small : number;
}

// The next index, from `first` to below `end`; false after the last.
static bool next(int64_t at[SPATIAL], const int64_t first[SPATIAL], const int64_t end[SPATIAL]) {
  for (int i = SPATIAL - 1; i >= 0; i--) {
    if (++at[i] < end[i]) return true;
    at[i] = first[i];
  }
  return false;
}

// A node that makes one of the three operands of the other two.
typedef struct Run {
  Convolution c;
  const Operator *op;
  WindowSide made;
  Shape shape[SIDE_WEIGHTS + 1];
  double *data[SIDE_WEIGHTS + 1], *bias; // of `made`: the interpreter's results; bias NULL: none
  Sum *sums;                             // parallel to the result
} Run;

static int64_t made_nelems(const Run *r) {
  return shape_nelems(&r->shape[r->made]);
}

static int64_t made_channels(const Run *r) {
  return r->c.groups * (r->made == SIDE_LARGE ? r->c.nlarge : r->c.nsmall);
}

static Run new_run(Random *r, const char *op, Convolution c, bool are_finite) {
  Run run = {.c = c, .op = operator_find(op).op};
  assert_non_null(run.op);
  run.made = run.op->outputs[0].side;
  run.shape[SIDE_LARGE] = side_shape(&run.c, SIDE_LARGE);
  run.shape[SIDE_SMALL] = side_shape(&run.c, SIDE_SMALL);
  run.shape[SIDE_WEIGHTS] = weights_shape(&run.c);
  for (int side = SIDE_LARGE; side <= SIDE_WEIGHTS; side++)
    run.data[side] = random_numbers(r, shape_nelems(&run.shape[side]), are_finite);
  if (run.op->ninputs > 2 && strcmp(run.op->inputs[2].name, "bias") == 0 && below(r, 2))
    run.bias = random_numbers(r, made_channels(&run), are_finite);
  run.sums = calloc((size_t)made_nelems(&run) + 1, sizeof(Sum));
  assert_non_null(run.sums);
  return run;
}

static void free_run(Run *r) {
  for (int side = SIDE_LARGE; side <= SIDE_WEIGHTS; side++) free(r->data[side]);
  free(r->bias);
  free(r->sums);
}

static double element(const Run *r, WindowSide side, int64_t at) {
  return at < 0 ? 0 : r->data[side][at];
}

// Adds what window u adds by one tap, also where the window would not exist, but its place does.
static void add_product(const Run *r, int64_t n, int64_t small, int64_t large, const int64_t tap[SPATIAL],
                        const int64_t u[SPATIAL]) {
  int64_t place[SPATIAL], at[SIDE_WEIGHTS + 1];
  for (int i = 0; i < SPATIAL; i++)
    place[i] = u[i] * r->c.axis[i].stride + tap[i] * r->c.axis[i].dilation - r->c.axis[i].pad_begin;
  at[SIDE_LARGE] = at_side(&r->c, SIDE_LARGE, n, small / r->c.nsmall * r->c.nlarge + large, place);
  at[SIDE_SMALL] = at_side(&r->c, SIDE_SMALL, n, small, u);
  at[SIDE_WEIGHTS] = at_weights(&r->c, small, large, tap);
  if (at[r->made] < 0 || (r->made == SIDE_WEIGHTS && at[SIDE_SMALL] < 0)) return;
  const WindowSide x = r->made == SIDE_LARGE ? SIDE_SMALL : SIDE_LARGE;
  const WindowSide y = r->made == SIDE_WEIGHTS ? SIDE_SMALL : SIDE_WEIGHTS;
  sum_add(&r->sums[at[r->made]], element(r, x, at[x]) * element(r, y, at[y]));
}

static void add_channels(const Run *r, int64_t n, int64_t small, int64_t large) {
  const int64_t zero[SPATIAL] = {0};
  int64_t first[SPATIAL], end[SPATIAL], kernel[SPATIAL], tap[SPATIAL] = {0};
  for (int i = 0; i < SPATIAL; i++) { // windows that have a place on the large side
    const Axis *a = &r->c.axis[i];
    kernel[i] = a->kernel;
    first[i] = -(a->kernel * a->dilation / a->stride) - 1;
    end[i] = (a->large + a->pad_begin) / a->stride + 1;
    if (r->made != SIDE_LARGE) first[i] = 0, end[i] = a->small;
    if (first[i] >= end[i]) return;
  }
  do {
    int64_t u[SPATIAL] = {first[0], first[1], first[2]};
    do add_product(r, n, small, large, tap, u);
    while (next(u, first, end));
  } while (next(tap, zero, kernel));
}

static void expect_formula(const Run *r) {
  const Convolution *c = &r->c;
  const int64_t nelems = made_nelems(r), channels = made_channels(r);
  for (int64_t n = 0; n < c->batch; n++)
    for (int64_t small = 0; small < c->groups * c->nsmall; small++)
      for (int64_t large = 0; large < c->nlarge; large++) add_channels(r, n, small, large);
  const int64_t places = c->is_channels_last || !r->bias || !nelems ? 1 : nelems / c->batch / channels;
  for (int64_t i = 0; r->bias && i < nelems; i++) sum_add(&r->sums[i], r->bias[i / places % channels]);
  expect_sums(r->data[r->made], r->sums, nelems, r->op->name);
}

typedef struct Lists {
  int64_t strides[SPATIAL], dilations[SPATIAL], pads_begin[SPATIAL], pads_end[SPATIAL], shape[MAX_RANK];
} Lists;

static void set_attributes(Node *node, const Run *r, Lists *l) {
  const Convolution *c = &r->c;
  const size_t count = (size_t)c->nspatial;
  for (int i = 0; i < SPATIAL; i++) {
    l->strides[i] = c->axis[i].stride;
    l->dilations[i] = c->axis[i].dilation;
    l->pads_begin[i] = c->axis[i].pad_begin;
    l->pads_end[i] = c->axis[i].pad_end;
  }
  for (int i = 0; i < r->shape[r->made].rank; i++) l->shape[i] = extent_value(r->shape[r->made].extent[i]);
  case_set_list(node, "strides", l->strides, count);
  case_set_list(node, "dilations", l->dilations, count);
  case_set_list(node, "pads_begin", l->pads_begin, count);
  case_set_list(node, "pads_end", l->pads_end, count);
  case_set(node, "groups", (double)c->groups);
  case_set(node, "data_format", c->is_channels_last ? 0 : 1);
  case_set(node, "weights_format", c->is_kernel_first ? 0 : 1);
  if (operator_has_attribute(node->op, "dst_shape")) case_set_list(node, "dst_shape", l->shape, count + 2);
  if (operator_has_attribute(node->op, "weights_shape")) case_set_list(node, "weights_shape", l->shape, count + 2);
}

static void interpret_run(const Run *r) {
  const double *inputs[3] = {r->data[r->op->inputs[0].side], r->data[r->op->inputs[1].side], r->bias};
  const Shape bias = SHAPE(made_channels(r));
  double *outputs[1] = {r->data[r->made]};
  Lists lists;
  Case c;
  case_init(&c);
  for (int i = 0; i < 3; i++)
    if (inputs[i])
      assert_non_null(graph_add_input(c.graph, (const char *const[]){"a", "b", "c"}[i], TYPE_F64,
                                      i < 2 ? &r->shape[r->op->inputs[i].side] : &bias));
  Node *node = case_node(&c, r->op->name, r->bias ? "a b c" : "a b", "y");
  set_attributes(node, r, &lists);
  case_expect(&c, "y", ANY_VALUES);
  case_finish(&c);
  assert_int_equal(shape_nelems(&node->outputs[0]->shape), made_nelems(r));
  assert_true(interpret_node(node, inputs, outputs, &system_allocator));
  case_free(&c);
}

static void convolutions_have_the_bits_of_their_formula(void **state) {
  (void)state;
  static const char *const names[] = {"Convolution",   "ConvolutionBackwardData",   "ConvolutionBackwardWeights",
                                      "ConvTranspose", "ConvTransposeBackwardData", "ConvTransposeBackwardWeights"};
  Random r = {7};
  for (int i = 0; i < (takes_all() ? COUNT : COUNT / 3); i++) {
    const Convolution c = random_convolution(&r, strcmp(names[i % 6], "ConvTranspose") == 0);
    Run run = new_run(&r, names[i % 6], c, below(&r, 2));
    interpret_run(&run);
    expect_formula(&run);
    free_run(&run);
  }
}

// Each of 10^6 windows has one of its 10^6 taps on the large side, and each tap is in one window. So this is done in no
// time, unless the others are visited.
static void taps_in_the_padding_are_not_visited(void **state) {
  (void)state;
  enum { EXTENT = 1000 };
  const Axis axis = {EXTENT, 1, 1, EXTENT - 1, EXTENT - 1, .large = 1, .small = EXTENT};
  const Convolution c = {2, 1, 1, 1, 1, {axis, axis, {1, 1, 1, 0, 0, 1, 1}}, false, false};
  static const char *const names[] = {"Convolution", "ConvolutionBackwardData", "ConvolutionBackwardWeights"};
  Random r = {13};
  for (int i = 0; i < 3; i++) {
    Run run = new_run(&r, names[i], c, true);
    free(run.bias);
    run.bias = NULL;
    interpret_run(&run);
    const double *small = run.data[SIDE_SMALL], *weights = run.data[SIDE_WEIGHTS], *large = run.data[SIDE_LARGE];
    const int64_t last = EXTENT * EXTENT - 1;
    if (run.made == SIDE_LARGE)
      for (int64_t k = 0; k <= last; k++) sum_add(&run.sums[0], weights[k] * small[last - k]);
    for (int64_t k = 0; k <= last && run.made != SIDE_LARGE; k++)
      sum_add(&run.sums[k], large[0] * (run.made == SIDE_SMALL ? weights : small)[last - k]);
    expect_sums(run.data[run.made], run.sums, made_nelems(&run), names[i]);
    free_run(&run);
  }
}

// Products

typedef struct Factors {
  int64_t batch_a, batch_b, rows, depth, columns;
  bool transposes_a, transposes_b;
  double *a, *b, *got;
  Sum *sums;
} Factors;

static void expect_product(const Factors *f) {
  const int64_t nelems = f->batch_a * f->rows * f->columns;
  for (int64_t i = 0; i < nelems; i++) {
    const int64_t n = i % f->columns, m = i / f->columns % f->rows, image = i / f->columns / f->rows;
    const double *a = &f->a[image * f->rows * f->depth];
    const double *b = &f->b[(f->batch_b == 1 ? 0 : image) * f->depth * f->columns];
    for (int64_t k = 0; k < f->depth; k++)
      sum_add(&f->sums[i], a[f->transposes_a ? k * f->rows + m : m * f->depth + k] *
                               b[f->transposes_b ? n * f->depth + k : k * f->columns + n]);
  }
  expect_sums(f->got, f->sums, nelems, "MatMul");
}

static void interpret_product(const Factors *f) {
  const Shape a = f->transposes_a ? SHAPE(f->batch_a, f->depth, f->rows) : SHAPE(f->batch_a, f->rows, f->depth);
  const Shape b = f->transposes_b ? SHAPE(f->batch_b, f->columns, f->depth) : SHAPE(f->batch_b, f->depth, f->columns);
  Case c;
  case_init(&c);
  assert_non_null(graph_add_input(c.graph, "a", TYPE_F64, &a));
  assert_non_null(graph_add_input(c.graph, "b", TYPE_F64, &b));
  Node *node = case_node(&c, "MatMul", "a b", "y");
  case_set(node, "transpose_a", f->transposes_a);
  case_set(node, "transpose_b", f->transposes_b);
  case_expect(&c, "y", ANY_VALUES);
  case_finish(&c);
  assert_true(interpret_node(node, (const double *[]){f->a, f->b, NULL}, (double *[]){f->got}, &system_allocator));
  case_free(&c);
}

static void products_have_the_bits_of_their_formula(void **state) {
  (void)state;
  Random r = {11};
  for (int i = 0; i < COUNT / 10; i++) {
    Factors f = {.batch_a = below(&r, 3), .rows = below(&r, 40), .depth = below(&r, 40), .columns = below(&r, 70)};
    f.batch_b = below(&r, 2) ? f.batch_a : 1;
    f.transposes_a = below(&r, 2);
    f.transposes_b = below(&r, 2);
    const bool are_finite = below(&r, 2);
    f.a = random_numbers(&r, f.batch_a * f.rows * f.depth, are_finite);
    f.b = random_numbers(&r, f.batch_b * f.depth * f.columns, are_finite);
    f.got = random_numbers(&r, f.batch_a * f.rows * f.columns, true);
    f.sums = calloc((size_t)(f.batch_a * f.rows * f.columns) + 1, sizeof(Sum));
    assert_non_null(f.sums);
    interpret_product(&f);
    expect_product(&f);
    free(f.a);
    free(f.b);
    free(f.got);
    free(f.sums);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions_have_the_bits_of_their_formula),
      cmocka_unit_test(taps_in_the_padding_are_not_visited),
      cmocka_unit_test(products_have_the_bits_of_their_formula),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
