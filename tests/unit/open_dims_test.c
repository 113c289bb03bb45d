// Open dims: which extents become products of them, which dims cannot stay open, and how the stages treat the others.
// Expected numbers are worked out by hand.
#include "frontend/yaml/yaml.h"
#include "ir/graph/open_dims.h"
#include "ir/loops/target.h"
#include "ir/operators/indices.h"
#include "ir/operators/operator.h"
#include "passes/pipeline.h"
#include "tests/unit/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define FILE_BEGIN "format: ngrad/1\nname: test\n"
enum { N = 0, M = 1 };
#define POWER(dim) ((Monomial)1 << (8 * (dim)))

typedef struct Opened {
  Graph *given, *graph; // graph NULL: it cannot be
  Diagnostics diagnostics;
} Opened;

static Opened open_text(const Allocator *allocator, const char *text) {
  Opened o = {0};
  diagnostics_init(&o.diagnostics, allocator);
  o.given = yaml_read(allocator, "test.yaml", text, strlen(text), NULL, &o.diagnostics);
  o.graph = o.given ? graph_with_open_dims(o.given, &o.diagnostics) : NULL;
  return o;
}

static void deinit(Opened *o) {
  graph_free(o->graph);
  graph_free(o->given);
  diagnostics_deinit(&o->diagnostics);
}

static Extent extent_of(const Graph *g, const char *name, int axis) {
  for (size_t i = 0; i < g->nvalues; i++)
    if (strcmp(g->values[i]->name, name) == 0) return g->values[i]->shape.extent[axis];
  fail_msg("the graph has no value %s", name);
  return EXTENT_UNKNOWN;
}

static const char heads[] = FILE_BEGIN
    "dims: {N: 6, M: ~}\n"
    "inputs: [{name: x, type: f32, shape: [N, M, 12]}, {name: y, type: f32, shape: [N, M, 12]}]\nnodes:\n"
    "- {op: Concat, inputs: [x, y], outputs: [both], attributes: {axis: 0}}\n"
    "- {op: StaticReshape, inputs: [both], outputs: [flat], attributes: {shape: [-1, 4], special_zero: false}}\n"
    "- {op: StaticReshape, inputs: [x], outputs: [split], attributes: {shape: [0, 0, 3, 4], special_zero: true}}\n"
    "outputs: [flat, split]\n";

static void extents_are_products_of_literals_and_names(void **state) {
  (void)state;
  Opened o = open_text(&system_allocator, heads);
  if (!o.graph) {
    fail();
    return;
  }
  assert_int_equal(o.graph->ndims, 2);
  assert_int_equal(o.graph->dims[N]->value, 6);
  assert_int_equal(o.graph->dims[M]->value, 64); // there is none in the file
  Extent both = extent_of(o.graph, "both", 0), flat = extent_of(o.graph, "flat", 0);
  assert_int_equal(extent_monomial(both), POWER(N));
  assert_int_equal(extent_value(both), 12);
  assert_int_equal(extent_monomial(flat), POWER(N) + POWER(M));
  assert_int_equal(extent_value(flat), 6 * 6 * 64); // 2 N M 12 / 4
  assert_int_equal(open_factor(o.graph, extent_value(flat), extent_monomial(flat)), 6);
  assert_string_equal(flat.dim->name, "6 * M * N");
  assert_int_equal(open_number(o.graph, extent_value(flat), extent_monomial(flat), (int64_t[]){5, 7}), 6 * 5 * 7);
  assert_ptr_equal(extent_of(o.graph, "split", 1).dim, o.graph->dims[M]);
  assert_int_equal(o.given->dims[N]->monomial, 0);
  assert_string_equal(extent_of(o.given, "both", 0).dim->name, "2 * N");
  deinit(&o);
}

static void binding_evaluates_products(void **state) {
  (void)state;
  Opened o = open_text(&system_allocator, heads);
  Graph *bound = graph_with_dims(o.graph, (int64_t[]){5, 0}, &o.diagnostics);
  assert_non_null(bound);
  assert_int_equal(extent_of(bound, "both", 0).value, 10);
  assert_int_equal(extent_of(bound, "flat", 0).value, 0);
  assert_int_equal(bound->ndims, 0);
  graph_free(bound);
  deinit(&o);
}

static void fixed_dims_are_numbers_and_hints_are_at_least_2(void **state) {
  (void)state;
  Opened o = {0};
  const char text[] = FILE_BEGIN "dims: {N: 1, M: 3}\ninputs: [{name: x, type: f32, shape: [N, M]}]\n"
                                 "nodes: [{op: Abs, inputs: [x], outputs: [y]}]\noutputs: [y]\n";
  diagnostics_init(&o.diagnostics, &system_allocator);
  o.given = yaml_read(&system_allocator, "test.yaml", text, sizeof text - 1, NULL, &o.diagnostics);
  assert_non_null(o.given);
  o.given->dims[M]->is_fixed = true;
  o.graph = graph_with_open_dims(o.given, &o.diagnostics);
  if (!o.graph) {
    fail();
    return;
  }
  assert_int_equal(o.graph->ndims, 1);
  assert_int_equal(o.graph->dims[N]->value, 2);
  assert_true(extent_equals(extent_of(o.graph, "y", 1), EXTENT(3)));
  deinit(&o);
}

static const struct {
  const char *text, *message;
} closed[] = {
    {FILE_BEGIN "dims: {N: 8}\ninputs: [{name: a, type: f32, shape: [N, 4]}, {name: b, type: f32, shape: [3, 4]}]\n"
                "nodes: [{op: Slice, inputs: [a], outputs: [y], attributes: {starts: [0], ends: [99], steps: [2]}}]\n"
                "outputs: [y, b]\n",
     "N cannot stay open: an extent here is neither a product nor a sum of dims and numbers; --dim N=8 bakes it in"},
    {FILE_BEGIN
     "dims: {N: 8, T: 8}\ninputs: [{name: a, type: f32, shape: [N, 4]}, {name: b, type: f32, shape: [T, 4]}]\n"
     "nodes: [{op: Slice, inputs: [a], outputs: [y], attributes: {starts: [0], ends: [T], axes: [0]}},\n"
     "{op: Slice, inputs: [b], outputs: [z], attributes: {starts: [0], ends: [N], axes: [0]}}]\n"
     "outputs: [y, z]\n",
     "N cannot stay open: an extent here is neither a product nor a sum of dims and numbers; --dim N=8 bakes it in"},
    {FILE_BEGIN "dims: {C: 8}\ninputs: [{name: a, type: f32, shape: [2, C, 4]}]\n"
                "nodes: [{op: GroupNorm, inputs: [a], outputs: [y],\n"
                "attributes: {groups: 4, use_affine: false, keep_stats: false, data_format: NCX}}]\noutputs: [y]\n",
     "C cannot stay open: at 9, GroupNorm: groups: expected a divisor of 9, the channels of a, found 4; --dim C=8 "
     "bakes "
     "it in"},
    {FILE_BEGIN "dims: {N: 8}\ninputs: [{name: a, type: f32, shape: [N, 6]}]\n"
                "nodes: [{op: StaticReshape, inputs: [a], outputs: [y], attributes: {shape: [8, 3, 2], special_zero: "
                "false}}]\noutputs: [y]\n",
     "N cannot stay open: at 16, StaticReshape: shape: expected as many elements as src, found a of [16, 6]; --dim N=8 "
     "bakes it in"},
    {FILE_BEGIN
     "dims: {A: 2, B: 2, C: 2, D: 2, E: 2, F: 2, G: 2, H: 2, I: 2}\n"
     "inputs: [{name: a, type: f32, shape: [A]}]\nnodes: [{op: Abs, inputs: [a], outputs: [y]}]\noutputs: [y]\n",
     "I cannot stay open: at most 8 dims can stay open, and 8 others are; --dim I=2 bakes it in"},
    {FILE_BEGIN "dims: {N: ~}\ninputs: [{name: a, type: f32, shape: [N, _]}]\n"
                "nodes: [{op: Abs, inputs: [a], outputs: [y]}]\noutputs: [y]\n",
     "a [64, _]: expected every extent to follow from the inputs and dims"},
};

static void what_cannot_stay_open_is_told(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
    Opened o = open_text(&system_allocator, closed[i].text);
    assert_null(o.graph);
    assert_int_equal(o.diagnostics.nerrors, 1);
    assert_string_equal(o.diagnostics.items[0].message, closed[i].message);
    assert_int_not_equal(o.diagnostics.items[0].line, 0);
    deinit(&o);
  }
}

// From open dims to kernels

static Program *lower(Opened *o) {
  static const Target target = {
      .isa = "avx2", .vector_registers = 16, .l1_nbytes = 1 << 15, .l2_nbytes = 1 << 20, .threads = 1};
  PassContext c = {.diagnostics = &o->diagnostics, .allocator = &system_allocator, .target = &target};
  return o->graph && pipeline_run(o->graph, &c) ? pipeline_lower(o->graph, &c) : NULL;
}

static void neighbours_that_are_alike_only_at_the_hint_stay_apart(void **state) {
  (void)state;
  // x's stride along its first axis is 5 N, and 5 M is as much at the hints.
  Opened o =
      open_text(&system_allocator, FILE_BEGIN "dims: {N: 7, M: 7}\ninputs: [{name: x, type: f32, shape: [3, N, 5]},\n"
                                              "{name: z, type: f32, shape: [3, M, 5]}]\nnodes:\n"
                                              "- {op: Abs, inputs: [x], outputs: [y]}\n"
                                              "- {op: Abs, inputs: [z], outputs: [w]}\noutputs: [y, w]\n");
  Program *p = lower(&o);
  assert_non_null(p);
  assert_int_equal(p->nkernels, 2); // not one over both
  for (size_t i = 0; i < p->nkernels; i++) {
    const Kernel *k = p->schedules[i]->kernel;
    const Monomial monomial = k->axes[0].monomial;
    assert_int_equal(k->naxes, 1);
    assert_int_equal(k->axes[0].extent, 105);
    assert_true(monomial == POWER(N) || monomial == POWER(M));
    assert_int_equal(kernel_factor(k, 105, monomial), 15);
  }
  program_free(p);
  deinit(&o);
}

static void a_literal_that_is_the_hint_is_no_mean(void **state) {
  (void)state;
  // A sum over N divided by N's hint is a mean at the hint alone, so that no norm is recognised: all stays spelled out.
  for (int is_fixed = 0; is_fixed < 2; is_fixed++) {
    const char text[] = FILE_BEGIN
        "dims: {N: 4096}\ninputs: [{name: x, type: f32, shape: [N, 3]}]\n"
        "constants: [{name: n, type: f32, shape: [], value: 4096}, {name: e, type: f32, shape: [], value: "
        "1.0e-5}]\nnodes:\n"
        "- {op: ReduceSum, inputs: [x], outputs: [s], attributes: {axes: [0], keep_dims: true}}\n"
        "- {op: Divide, inputs: [s, n], outputs: [mean]}\n- {op: Subtract, inputs: [x, mean], outputs: [c]}\n"
        "- {op: Square, inputs: [c], outputs: [q]}\n"
        "- {op: ReduceSum, inputs: [q], outputs: [t], attributes: {axes: [0], keep_dims: true}}\n"
        "- {op: Divide, inputs: [t, n], outputs: [var]}\n- {op: Add, inputs: [var, e], outputs: [shifted]}\n"
        "- {op: Sqrt, inputs: [shifted], outputs: [root]}\n- {op: Divide, inputs: [c, root], outputs: [y]}\noutputs: "
        "[y]\n";
    Opened o = {0};
    bool has_norm = false;
    diagnostics_init(&o.diagnostics, &system_allocator);
    o.given = yaml_read(&system_allocator, "test.yaml", text, sizeof text - 1, NULL, &o.diagnostics);
    assert_non_null(o.given);
    o.given->dims[N]->is_fixed = is_fixed;
    o.graph = graph_with_open_dims(o.given, &o.diagnostics);
    Program *p = lower(&o);
    assert_non_null(p);
    for (size_t i = 0; i < o.graph->nnodes; i++) has_norm |= strstr(o.graph->nodes[i]->op->name, "Norm") != NULL;
    assert_int_equal(has_norm, is_fixed);
    program_free(p);
    deinit(&o);
  }
}

#define WINDOW_OF(stride, pads)                                                                                        \
  "strides: [" stride "], pads_begin: [" pads "], pads_end: [" pads "], dilations: [1], data_format: NCX"

// Batches and rows stay open, and so do spatial extents that windows keep or multiply.
static void extents_of_products_and_convolutions_stay_open(void **state) {
  (void)state;
  Opened o =
      open_text(&system_allocator, FILE_BEGIN
                "dims: {N: 6, M: 10}\n"
                "inputs: [{name: x, type: f32, shape: [N, 2, M]}, {name: w, type: f32, shape: [4, 2, 3]},\n"
                "         {name: v, type: f32, shape: [4, 5, 2]}, {name: p, type: f32, shape: [N, M, 7]}]\nnodes:\n"
                "- {op: Convolution, inputs: [x, w], outputs: [same], attributes: {" WINDOW_OF(
                    "1", "1") ", "
                              "weights_format: OIX}}\n"
                              "- {op: ConvTranspose, inputs: [same, v], outputs: [twice], attributes: {" WINDOW_OF(
                                  "2", "0") ", "
                                            "weights_format: IOX}}\n"
                                            "- {op: MatMul, inputs: [same, p], outputs: [y]}\n"
                                            "- {op: ConvolutionBackwardWeights, inputs: [x, same], outputs: [{name: "
                                            "dw, type: f32, shape: [4, 2, 3]}],\n"
                                            "   attributes: {" WINDOW_OF("1", "1") ", weights_format: OIX}}\n"
                                                                                   "outputs: [twice, y, dw]\n");
  if (!o.graph) {
    fail_msg("%s", o.diagnostics.items[0].message);
    return;
  }
  assert_ptr_equal(extent_of(o.graph, "same", 0).dim, o.graph->dims[N]);
  assert_ptr_equal(extent_of(o.graph, "same", 2).dim, o.graph->dims[M]);
  assert_int_equal(extent_monomial(extent_of(o.graph, "twice", 2)), POWER(M));
  assert_int_equal(extent_value(extent_of(o.graph, "twice", 2)), 20);
  assert_ptr_equal(extent_of(o.graph, "y", 0).dim, o.graph->dims[N]);
  assert_int_equal(extent_of(o.graph, "y", 2).value, 7);
  deinit(&o);
}

static void extents_of_other_windows_are_sums(void **state) {
  (void)state;
  Opened o = open_text(&system_allocator,
                       FILE_BEGIN "dims: {M: 10}\ninputs: [{name: x, type: f32, shape: [1, 2, M]},\n"
                                  "         {name: w, type: f32, shape: [4, 2, 3]}]\nnodes:\n"
                                  "- {op: Convolution, inputs: [x, w], outputs: [y], attributes: {" WINDOW_OF(
                                      "1", "0") ", "
                                                "weights_format: OIX}}\noutputs: [y]\n");
  assert_non_null(o.graph);
  if (!o.graph) return; // for the analyzer
  assert_int_equal(o.graph->ndims, 2);
  assert_int_equal(graph_narguments(o.graph), 1);
  assert_string_equal(o.graph->dims[1]->name, "M - 2");
  assert_int_equal(extent_monomial(extent_of(o.graph, "y", 2)), POWER(1));
  assert_int_equal(open_number(o.graph, 24, POWER(1), (int64_t[]){21}), 57);
  assert_int_equal(open_dim_value(o.graph, 1, (int64_t[]){1}), -1);
  deinit(&o);
}

// A call refuses values for which a slice would not end on its axis.
static void slices_to_another_extent_stay_open(void **state) {
  (void)state;
  static const char *const bounds[] = {"starts: [0], ends: [T], axes: [0]",
                                       "starts: [T], ends: [2 * T], axes: [0]",
                                       "starts: [T], ends: [N + T], axes: [1]",
                                       "starts: [2 * T], ends: [3 * T], axes: [0]",
                                       "starts: [0], ends: [T], axes: [1]",
                                       "starts: [T], ends: [N], axes: [0]",
                                       "starts: [T], ends: [-1], axes: [0]",
                                       "starts: [N], ends: [N + T], axes: [1]",
                                       "starts: [0], ends: [N], axes: [2]",
                                       "starts: [0], ends: [T], axes: [3]",
                                       "starts: [T], ends: [512], axes: [3]",
                                       "starts: [N], ends: [T + 1], axes: [2]",
                                       "starts: [0], ends: [2 * T], axes: [3], steps: [2]",
                                       "starts: [T, 1, 2], ends: [2 * N, T, 9], axes: [1, 2, 3]"};
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
    char text[512];
    snprintf(text, sizeof text,
             FILE_BEGIN "dims: {N: ~, T: ~}\ninputs: [{name: x, type: f32, shape: [N, 2 * N + T, T, 512]}]\nnodes:\n"
                        "- {op: Slice, inputs: [x], outputs: [y], attributes: {%s}}\noutputs: [y]\n",
             bounds[i]);
    Opened o = open_text(&system_allocator, text);
    Program *p = lower(&o);
    if (!p) fail_msg("%s: %s", bounds[i], o.diagnostics.count ? o.diagnostics.items[0].message : "");
    program_free(p);
    deinit(&o);
  }
}

// A graph of numbers refuses the slices that emitted C refuses: those of which a sum is negative.
static void slices_are_refused_open_and_bound(void **state) {
  (void)state;
  static const struct {
    const char *bounds, *told;
    int64_t n, t; // the greatest T that is right for this N
  } cases[] = {
      {"starts: [0], ends: [T]", "with N - T at least 0, found N 9 and T 10", 9, 9},
      {"starts: [T], ends: [N]", "with N - T at least 0, found N 7 and T 8", 7, 7},
      {"starts: [T], ends: [2147483647000000]", "with N - T at least 0", 5, 5},
      {"starts: [0], ends: [2 * T], steps: [2]", "with N - 2 * T + 1 at least 0", 7, 4},
      {"starts: [0], ends: [2 * T], steps: [2]", "with N - 2 * T + 1 at least 0", 8, 4},
      {"starts: [T], ends: [0], steps: [-1]", "with N - T - 1 at least 0", 6, 5},
      {"starts: [N - T], ends: [N]", "with N - T at least 0", 6, 6},
      {"starts: [T], ends: [9]", "with 9 - T at least 0, found T 10", 11, 9},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text,
             FILE_BEGIN
             "dims: {N: 64, T: 3}\ninputs: [{name: x, type: f32, shape: [N]}, {name: t, type: f32, shape: [T]}]\n"
             "nodes:\n- {op: Slice, inputs: [x], outputs: [y], attributes: {%s}}\noutputs: [y]\n",
             cases[i].bounds);
    Opened o = open_text(&system_allocator, text);
    if (!o.graph) {
      fail_msg("%s: %s", cases[i].bounds, o.diagnostics.count ? o.diagnostics.items[0].message : "");
      return;
    }
    for (int64_t t = 1; t < 12; t++) {
      const int64_t values[] = {cases[i].n, t};
      bool is_right = true;
      for (size_t k = 0; k < o.graph->ndims; k++)
        is_right &= o.graph->dims[k]->is_place || open_dim_value(o.graph, k, values) >= 0;
      Diagnostics told;
      diagnostics_init(&told, &system_allocator);
      Graph *bound = graph_with_dims(o.given, values, &told);
      assert_true(is_right == (t <= cases[i].t));
      assert_true(is_right == (bound != NULL));
      if (t == cases[i].t + 1 && !strstr(told.items[0].message, cases[i].told))
        fail_msg("expected %s, found %s", cases[i].told, told.items[0].message);
      graph_free(bound);
      diagnostics_deinit(&told);
    }
    deinit(&o);
  }
}

// 100 - T, of a table of 100 rows, has no hint of T that is too great for it.
static void hints_are_lowered_until_no_sum_is_negative(void **state) {
  (void)state;
  static const char *const starts_with[] = {"T: 64", "T: 2"};
  for (size_t i = 0; i < 2; i++) {
    char text[512];
    snprintf(text, sizeof text,
             FILE_BEGIN "dims: {%s}\ninputs: [{name: x, type: f32, shape: [100, 3]}]\nnodes:\n"
                        "- {op: Slice, inputs: [x], outputs: [y], attributes: {starts: [0], ends: [T], axes: [0]}}\n"
                        "outputs: [y]\n",
             starts_with[i]);
    Opened o = open_text(&system_allocator, text);
    if (!o.graph) {
      fail_msg("%s", o.diagnostics.items[0].message);
      return;
    }
    assert_int_equal(o.graph->dims[0]->value, i ? 2 : 32); // twice 64 is more than 100
    assert_string_equal(o.graph->dims[1]->name, "100 - T");
    assert_int_equal(open_dim_value(o.graph, 1, (int64_t[]){100}), 0);
    assert_int_equal(open_dim_value(o.graph, 1, (int64_t[]){101}), -1);
    deinit(&o);
  }
}

static void rooms_grow_by_one_product_each(void **state) {
  (void)state;
  // The result of Softmax has 1000 N elements; its sum over N, and the values computed from this sum, have a literal
  // number of elements.
  Opened o = open_text(
      &system_allocator, FILE_BEGIN
      "dims: {N: 16, M: 16}\ninputs: [{name: x, type: f32, shape: [N, 1000]}, {name: z, type: f32, shape: [M]}]\n"
      "nodes:\n- {op: StaticTranspose, inputs: [y], outputs: [t], attributes: {order: [1, 0]}}\n"
      "- {op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}\n"
      "- {op: SoftMax, inputs: [z], outputs: [w], attributes: {axis: 0}}\n"
      "- {op: StaticReshape, inputs: [w], outputs: [v], attributes: {shape: [-1, 1], special_zero: false}}\n"
      "outputs: [t, v]\n");
  Program *p = lower(&o);
  assert_non_null(p);
  size_t narenas = 0;
  for (size_t i = 0; i < p->narenas; i++) {
    const MonomialArena *room = &p->arenas[i];
    if (room->monomial == POWER(N)) assert_int_equal(room->nbytes, 4032);   // 4000, in whole lines
    else if (room->monomial == POWER(M)) assert_int_equal(room->nbytes, 8); // 4, so that all types are aligned
    else assert_int_equal(room->nbytes, 0);
    narenas += room->nbytes > 0;
  }
  assert_int_equal(narenas, 2);
  program_free(p);
  deinit(&o);
}

// b and c live together, then c and d: the first gap that fits would put c above both.
static void rooms_are_packed(void **state) {
  (void)state;
  static const int widths[] = {16, 64, 128, 256, 16};
  static const char names[] = "xabcd";
  Text text;
  text_init(&text, &system_allocator);
  text_format(&text, FILE_BEGIN "dims: {N: 16}\ninputs:\n- {name: x, type: f32, shape: [N, 16]}\n");
  for (int i = 1; i < 5; i++)
    text_format(&text, "- {name: w%d, type: f32, shape: [%d, %d]}\n", i, widths[i - 1], widths[i]);
  text_format(&text, "nodes:\n");
  for (int i = 1; i < 5; i++)
    text_format(&text, "- {op: MatMul, inputs: [%c, w%d], outputs: [%c]}\n", names[i - 1], i, names[i]);
  text_format(&text, "outputs: [d]\n");
  Opened o = open_text(&system_allocator, text_string(&text));
  Program *p = lower(&o);
  assert_non_null(p);
  const MonomialArena *last = &p->arenas[p->last_arena];
  assert_int_equal(last->monomial, POWER(N));
  assert_int_equal(last->nbytes, (128 + 256) * sizeof(float));
  assert_int_equal(p->nkernels, 4);
  const size_t b = (256 + 128) * sizeof(float), c = 256 * sizeof(float); // the ends of what lives in a kernel
  assert_int_equal(last->free[2], b);
  assert_int_equal(last->free[3], c);
  program_free(p);
  deinit(&o);
  text_deinit(&text);
}

// Strides without a sum: a stride of 1 beside N is a computed offset, other pairs need N's value. The sum over the
// diagonal is in the same kernel.
static void diagonals_stay_open(void **state) {
  (void)state;
  static const struct {
    const char *shape;
    bool is_open;
    size_t nkernels; // two where a sum along a row of the diagonals is one over rows of x
  } cases[] = {{"[N, N]", true, 1}, {"[8, 8, N]", true, 2}, {"[N, N, N]", false, 0}, {"[N, N, 5]", false, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text,
             FILE_BEGIN "dims: {N: 16}\ninputs: [{name: x, type: f32, shape: %s}]\nnodes:\n"
                        "- {op: Diagonal, inputs: [x], outputs: [d], attributes: {axis1: 0, axis2: 1}}\n"
                        "- {op: ReduceSum, inputs: [d], outputs: [y], attributes: {axes: [-1]}}\noutputs: [y]\n",
             cases[i].shape);
    Opened o = open_text(&system_allocator, text);
    assert_non_null(o.graph);
    Program *p = lower(&o);
    assert_int_equal(p != NULL, cases[i].is_open);
    if (p) assert_int_equal(p->nkernels, cases[i].nkernels);
    else
      assert_string_equal(o.diagnostics.items[0].message,
                          "Diagonal (line 6): N cannot stay open here; --dim N=16 bakes it in");
    program_free(p);
    deinit(&o);
  }
}

// Blocks of a product decide no bits, so that their length is whole steps of `rows`, for any rows of the call.
static void blocks_of_products_are_whole_steps(void **state) {
  (void)state;
  Opened o = open_text(&system_allocator, FILE_BEGIN "dims: {N: 1000}\ninputs: [{name: x, type: f32, shape: [N, 64]},\n"
                                                     "{name: w, type: f32, shape: [64, 64]}]\nnodes:\n"
                                                     "- {op: MatMul, inputs: [x, w], outputs: [y]}\noutputs: [y]\n");
  Program *p = lower(&o);
  assert_non_null(p);
  const Schedule *s = p->schedules[0];
  const Loop *product = &s->loops[s->nloops - 1];
  assert_true(loop_has(product, LOOP_COLUMNS) && product->rows > 1 && !product->cut.most);
  assert_int_equal(product->cut.length % product->rows, 0);
  program_free(p);
  deinit(&o);
}

static void lack_of_memory_is_told(void **state) {
  (void)state;
  for (size_t failing = 0;; failing++) {
    FailingAllocator a;
    failing_allocator_init(&a, failing);
    Opened o = open_text(&a.allocator, heads);
    bool is_done = o.graph != NULL && a.ncalls <= failing;
    if (!o.graph) assert_true(o.diagnostics.out_of_memory);
    deinit(&o);
    assert_int_equal(a.nlive, 0);
    if (is_done) return;
  }
}

// What emitted C checks before it computes: labels of a part that begins or ends at a named place.
static const char parts_of_labels[] = FILE_BEGIN
    "dims: {N: 6}\ninputs:\n- {name: table, type: f32, shape: [9]}\n- {name: a, type: s32, shape: [3, N + 4, "
    "1]}\nnodes:\n"
    "- {op: TypeCast, inputs: [a], outputs: [{name: wide, type: s64}]}\n"
    "- {op: StaticReshape, inputs: [wide], outputs: [flat], attributes: {shape: [3, N + 4], special_zero: false}}\n"
    "- {op: StaticTranspose, inputs: [flat], outputs: [swapped], attributes: {order: [1, 0]}}\n"
    "- {op: Slice, inputs: [swapped], outputs: [back], attributes: {starts: [N + 2], ends: [1], axes: [0], steps: "
    "[-1]}}\n"
    "- {op: Slice, inputs: [back], outputs: [part], attributes: {starts: [N - 1, 1], ends: [N, 2]}}\n"
    "- {op: Gather, inputs: [table, part], outputs: [b]}\noutputs: [b]\n";

static void labels_of_named_parts_are_checked(void **state) {
  (void)state;
  Opened o = open_text(&system_allocator, parts_of_labels);
  size_t count = 0;
  Extent begin = EXTENT(0);
  int64_t number;
  if (!o.graph) {
    fail();
    return;
  }
  const IndexCheck *checks = graph_index_checks(o.graph, false, &o.graph->arena, &count);
  if (!checks || count != 1) {
    fail();
    return;
  }
  assert_int_equal(checks->input, 1);
  const AxisPart *row = checks->part[0], *place = checks->part[1];
  if (!row || !place) {
    fail();
    return;
  }
  assert_null(checks->part[2]);
  assert_true(row->step == 1 && formula_is_number(&row->begin, &number) && number == 1);
  assert_true(formula_is_number(&row->count, &number) && number == 1);
  assert_true(place->step == -1 && formula_extent(&o.graph->arena, &place->begin, &begin)); // N + 2 - (N - 1)
  assert_true(extent_is_literal(begin) && begin.value == 3);
  assert_true(formula_is_number(&place->count, &number) && number == 1);
  deinit(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(extents_are_products_of_literals_and_names),
      cmocka_unit_test(binding_evaluates_products),
      cmocka_unit_test(fixed_dims_are_numbers_and_hints_are_at_least_2),
      cmocka_unit_test(what_cannot_stay_open_is_told),
      cmocka_unit_test(neighbours_that_are_alike_only_at_the_hint_stay_apart),
      cmocka_unit_test(a_literal_that_is_the_hint_is_no_mean),
      cmocka_unit_test(extents_of_products_and_convolutions_stay_open),
      cmocka_unit_test(extents_of_other_windows_are_sums),
      cmocka_unit_test(slices_to_another_extent_stay_open),
      cmocka_unit_test(slices_are_refused_open_and_bound),
      cmocka_unit_test(hints_are_lowered_until_no_sum_is_negative),
      cmocka_unit_test(rooms_grow_by_one_product_each),
      cmocka_unit_test(rooms_are_packed),
      cmocka_unit_test(blocks_of_products_are_whole_steps),
      cmocka_unit_test(diagonals_stay_open),
      cmocka_unit_test(labels_of_named_parts_are_checked),
      cmocka_unit_test(lack_of_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
