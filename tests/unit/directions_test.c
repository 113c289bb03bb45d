// Derivatives other than gradients, and gradients of gradients, of whole graphs: Jacobians and tangents are adjoint,
// Hessians symmetric and equal to their products with vectors, and branches that were not taken give no NaN.
#include "ir/graph/type.h"
#include "tests/unit/api_case.h"
#include "tests/unit/failing_allocator.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 16, NAME_BYTES = 64, MOST_NELEMS = 4096 };
static const double tolerance = 1e-12;

typedef struct Result { // of a graph: its outputs, with names
  size_t count;
  ng_tensor tensors[MOST];
  char names[MOST][NAME_BYTES];
} Result;

// Numbers by the tensor's name and the index, so that graphs with equal inputs get equal data.
static void fill(ng_tensor *t, const char *name) {
  uint64_t word = 1469598103934665603U;
  for (const char *c = name; *c; c++) word = (word ^ (unsigned char)*c) * 1099511628211U;
  for (int64_t i = 0; i < ng_tensor_nelems(t); i++) {
    word = word * 6364136223846793005U + 1442695040888963407U;
    const double number = 0.25 + (double)(word >> 11) * 0x1p-53;
    if (t->type == NG_S64) ((int64_t *)t->data)[i] = (int64_t)(word >> 60) % 3;
    else
      type_store((Type)t->type, t->data, (size_t)i, word >> 10 & 1 && strncmp(name, "var", 3) != 0 ? -number : number);
  }
}

// Interprets the graph; given: the data of inputs by name, NULL at the end.
static void run(ng_context *ctx, ng_graph *g, const char *const *given_names, const double *const *given, Result *r) {
  ng_tensor inputs[MOST] = {{0}};
  *r = (Result){.count = ng_graph_output_count(g)};
  assert_true(ng_graph_input_count(g) <= MOST && r->count <= MOST);
  for (size_t i = 0; i < ng_graph_input_count(g); i++) {
    const ng_tensor_info info = ng_graph_input(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &inputs[i]), NG_OK);
    fill(&inputs[i], info.name);
    for (size_t k = 0; given_names && given_names[k]; k++) {
      if (strcmp(given_names[k], info.name) != 0) continue;
      assert_int_equal(info.type, NG_F64);
      memcpy(inputs[i].data, given[k], ng_tensor_nbytes(&inputs[i]));
    }
  }
  for (size_t i = 0; i < r->count; i++) {
    const ng_tensor_info info = ng_graph_output(g, i);
    snprintf(r->names[i], NAME_BYTES, "%s", info.name);
    assert_int_equal(ng_tensor_new(ctx, &info, &r->tensors[i]), NG_OK);
  }
  if (ng_interpret(g, inputs, r->tensors, 0) != NG_OK) fail_msg("%s", ng_messages_text(ctx, 0));
  for (size_t i = 0; i < ng_graph_input_count(g); i++) ng_tensor_free(ctx, &inputs[i]);
}

static void result_free(ng_context *ctx, Result *r) {
  for (size_t i = 0; i < r->count; i++) ng_tensor_free(ctx, &r->tensors[i]);
}

static const ng_tensor *find(const Result *r, const char *prefix, const char *name) {
  char whole[2 * NAME_BYTES];
  snprintf(whole, sizeof whole, "%s%s", prefix, name);
  for (size_t i = 0; i < r->count; i++)
    if (strcmp(r->names[i], whole) == 0) return &r->tensors[i];
  return NULL;
}

static ng_graph *derivative(ng_context *ctx, ng_graph *g, ng_derivative form, const char *wrt, const char *of) {
  const ng_gradient_options options = {
      .wrt = wrt ? &wrt : NULL, .nwrt = wrt != NULL, .of = of ? &of : NULL, .nof = of != NULL, .derivative = form};
  ng_graph *made = ng_graph_gradient(g, &options);
  if (!made) fail_msg("%s", ng_messages_text(ctx, 0));
  return made;
}

static void tangent_of(const ng_tensor *like, const char *name, double *numbers) {
  char whole[2 * NAME_BYTES];
  ng_tensor t = *like;
  snprintf(whole, sizeof whole, "tangent_%s", name);
  t.type = NG_F64;
  t.data = numbers;
  fill(&t, whole);
}

// Compares product with the sum of rows[i] * tangent, row by row; adds to the products of further inputs.
static void add_products(const ng_tensor *rows, int64_t count, const double *tangent, double *sums, double *sizes) {
  const int64_t nelems = ng_tensor_nelems(rows) / count;
  for (int64_t i = 0; i < count; i++)
    for (int64_t e = 0; e < nelems; e++) {
      sums[i] += ng_tensor_get(rows, i * nelems + e) * tangent[e];
      sizes[i] += fabs(ng_tensor_get(rows, i * nelems + e) * tangent[e]);
    }
}

static void must_be_near(const ng_tensor *products, const double *sums, const double *sizes, const char *what) {
  for (int64_t i = 0; i < ng_tensor_nelems(products); i++)
    if (!(fabs(ng_tensor_get(products, i) - sums[i]) <= tolerance * fmax(sizes[i], 1)))
      fail_msg("%s[%d]: %.17g, expected %.17g", what, (int)i, ng_tensor_get(products, i), sums[i]);
}

static void must_be_adjoint(ng_context *ctx, ng_graph *g, const char *of) {
  static double tangent[MOST_NELEMS], sums[64], sizes[64];
  Result jacobian, tangents;
  ng_graph *matrix = derivative(ctx, g, NG_JACOBIAN, NULL, of), *forward = derivative(ctx, g, NG_TANGENTS, NULL, of);
  run(ctx, matrix, NULL, NULL, &jacobian);
  run(ctx, forward, NULL, NULL, &tangents);
  const ng_tensor *product = find(&tangents, "tangent_", of);
  assert_non_null(product);
  memset(sums, 0, sizeof sums);
  memset(sizes, 0, sizeof sizes);
  for (size_t i = 0; i < ng_graph_input_count(g); i++) {
    const char *name = ng_graph_input(g, i).name;
    const ng_tensor *rows = find(&jacobian, "jacobian_", name);
    if (!rows) continue;
    assert_int_equal(rows->extent[0], ng_tensor_nelems(product));
    ng_tensor one = *rows;
    for (int k = 0; k + 1 < one.rank; k++) one.extent[k] = one.extent[k + 1];
    one.rank--;
    tangent_of(&one, name, tangent);
    add_products(rows, ng_tensor_nelems(product), tangent, sums, sizes);
  }
  must_be_near(product, sums, sizes, of);
  result_free(ctx, &jacobian);
  result_free(ctx, &tangents);
  ng_graph_free(matrix);
  ng_graph_free(forward);
}

static void must_be_symmetric(ng_context *ctx, ng_graph *g, const char *of, const char *wrt) {
  static double tangent[MOST_NELEMS], sums[64], sizes[64];
  Result hessian, products;
  ng_graph *matrix = derivative(ctx, g, NG_HESSIAN, wrt, of), *hvp = derivative(ctx, g, NG_HVP, wrt, of);
  run(ctx, matrix, NULL, NULL, &hessian);
  run(ctx, hvp, NULL, NULL, &products);
  const ng_tensor *h = find(&hessian, "hessian_", wrt), *product = find(&products, "tangent_diff_", wrt);
  assert_true(h && product);
  const int64_t n = ng_tensor_nelems(product);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < i; k++)
      if (!(fabs(ng_tensor_get(h, i * n + k) - ng_tensor_get(h, k * n + i)) <= tolerance))
        fail_msg("%s: %.17g, but %.17g", wrt, ng_tensor_get(h, i * n + k), ng_tensor_get(h, k * n + i));
  tangent_of(product, wrt, tangent);
  memset(sums, 0, sizeof sums);
  memset(sizes, 0, sizeof sizes);
  add_products(h, n, tangent, sums, sizes);
  must_be_near(product, sums, sizes, wrt);
  result_free(ctx, &hessian);
  result_free(ctx, &products);
  ng_graph_free(matrix);
  ng_graph_free(hvp);
}

static const struct {
  const char *text, *of, *loss, *wrt; // a small output, a single number, an input
} networks[] = {
    // a perceptron with a norm
    {"format: ngrad/1\ninputs: [{name: x, type: f64, shape: [4, 3]}, {name: w, type: f64, shape: [3, 6]}, {name: "
     "gamma, type: "
     "f64, shape: [6]}, {name: v, type: f64, shape: [6, 3]}, {name: b, type: f64, shape: [3]}, {name: l, type: s64, "
     "shape: [4]}]\n"
     "nodes:\n  - {op: MatMul, inputs: [x, w], outputs: [h]}\n"
     "  - {op: LayerNorm, inputs: [h, gamma, gamma], outputs: [n], attributes: {keep_stats: false}}\n"
     "  - {op: GELU, inputs: [n], outputs: [a], attributes: {mode: gelu_tanh}}\n"
     "  - {op: MatMul, inputs: [a, v, b], outputs: [y]}\n"
     "  - {op: SoftmaxCrossEntropy, inputs: [y, l], outputs: [loss], attributes: {label_smoothing: 0.25}}\n"
     "outputs: [y, loss]\n",
     "y", "loss", "x"},
    // a convolution, whose norm has statistics that are used twice
    {"format: ngrad/1\ninputs: [{name: x, type: f64, shape: [2, 2, 7]}, {name: w, type: f64, shape: [3, 2, 3]}, {name: "
     "m, type: "
     "f64, shape: [3]}, {name: var, type: f64, shape: [3]}]\n"
     "nodes:\n  - {op: Convolution, inputs: [x, w], outputs: [c], attributes: {strides: [1], pads_begin: [1], "
     "pads_end: [1], "
     "dilations: [1], data_format: NCX, weights_format: OIX}}\n"
     "  - {op: BatchNormForwardTraining, inputs: [c, m, var], outputs: [n, rm, rv, bm, bv], attributes: {epsilon: "
     "0.001, "
     "data_format: NCX}}\n"
     "  - {op: Mish, inputs: [n], outputs: [a]}\n"
     "  - {op: MaxPool, inputs: [a], outputs: [p], attributes: {kernel: [2], strides: [2], pads_begin: [0], pads_end: "
     "[0], "
     "data_format: NCX}}\n"
     "  - {op: ReduceMean, inputs: [p], outputs: [y], attributes: {axes: [2]}}\n"
     "  - {op: SquaredDifference, inputs: [y, bv], outputs: [d]}\n"
     "  - {op: ReduceSum, inputs: [d], outputs: [loss], attributes: {axes: [0, 1]}}\n"
     "outputs: [y, loss]\n",
     "y", "loss", "w"},
    // attention, whose logarithm of a sum of powers is used
    {"format: ngrad/1\ninputs: [{name: x, type: f64, shape: [2, 3, 4]}, {name: w, type: f64, shape: [4, 4]}, {name: g, "
     "type: f64, "
     "shape: [4]}]\n"
     "nodes:\n  - {op: RMSNorm, inputs: [x, g], outputs: [n]}\n"
     "  - {op: MatMul, inputs: [n, w], outputs: [q]}\n"
     "  - {op: MatMul, inputs: [q, n], outputs: [scores], attributes: {transpose_b: true}}\n"
     "  - {op: SoftMax, inputs: [scores], outputs: [s, stats], attributes: {axis: 2}}\n"
     "  - {op: MatMul, inputs: [s, n], outputs: [o]}\n"
     "  - {op: GroupNorm, inputs: [o], outputs: [y, mean, variance], attributes: {groups: 2, use_affine: false}}\n"
     "  - {op: LogSoftmax, inputs: [o], outputs: [log]}\n"
     "  - {op: ReduceL2, inputs: [log], outputs: [norm], attributes: {axes: [0, 1, 2]}}\n"
     "  - {op: ReduceSum, inputs: [stats], outputs: [sum], attributes: {axes: [0, 1, 2]}}\n"
     "  - {op: Multiply, inputs: [norm, sum], outputs: [product]}\n"
     "  - {op: ReduceProd, inputs: [variance], outputs: [all], attributes: {axes: [0, 1]}}\n"
     "  - {op: Add, inputs: [product, all], outputs: [loss]}\n"
     "outputs: [y, loss]\n",
     "y", "loss", "x"},
    // the other norms, one after the other
    {"format: ngrad/1\ninputs: [{name: x, type: f64, shape: [2, 4, 3]}, {name: c, type: f64, shape: [4]}, {name: var, "
     "type: f64, shape: [4]}, {name: w, type: f64, shape: [12]}, {name: v, type: f64, shape: [3]}]\n"
     "nodes:\n  - {op: InstanceNorm, inputs: [x, c, c], outputs: [i, im, iv], attributes: {data_format: NCX, epsilon: "
     "0.1}}\n"
     "  - {op: BatchNormInference, inputs: [i, c, c, c, var], outputs: [b], attributes: {data_format: NCX, epsilon: "
     "0.1}}\n"
     "  - {op: GroupNorm, inputs: [b, c, c], outputs: [g, gm, gv], attributes: {groups: 2, data_format: NCX}}\n"
     "  - {op: StaticReshape, inputs: [g], outputs: [flat], attributes: {shape: [2, 12], special_zero: false}}\n"
     "  - {op: LayerNorm, inputs: [flat, w, w], outputs: [l, lm, lv], attributes: {epsilon: 0.1}}\n"
     "  - {op: StaticReshape, inputs: [l], outputs: [rows], attributes: {shape: [8, 3], special_zero: false}}\n"
     "  - {op: RMSNorm, inputs: [rows, v], outputs: [r]}\n"
     "  - {op: ReduceMean, inputs: [r], outputs: [y], attributes: {axes: [1]}}\n"
     "  - {op: Exp, inputs: [y], outputs: [e]}\n  - {op: ReduceSum, inputs: [e], outputs: [p], attributes: {axes: "
     "[0]}}\n  - {op: ReduceSum, inputs: [gv], outputs: [q], attributes: {axes: [0, 1]}}\n"
     "  - {op: Multiply, inputs: [p, q], outputs: [loss]}\noutputs: [y, loss]\n",
     "y", "loss", "x"},
    // a residual block and its end
    {"format: ngrad/1\ninputs: [{name: x, type: f64, shape: [2, 2, 4, 4]}, {name: w, type: f64, shape: [2, 2, 3, 3]}, "
     "{name: g, type: f64, shape: [2]}, {name: m, type: f64, shape: [2]}, {name: u, type: f64, shape: [2, 3]}, {name: "
     "l, type: s64, shape: [2]}]\nnodes:\n"
     "  - {op: Convolution, inputs: [x, w], outputs: [c1], attributes: &same {strides: [1, 1], pads_begin: [1, 1], "
     "pads_end: [1, 1], data_format: NCX, weights_format: OIX}}\n"
     "  - {op: BatchNormForwardTraining, inputs: [c1, m, m, g, g], outputs: [n1, m1, v1, b1, s1], attributes: &norm "
     "{epsilon: 0.1, data_format: NCX}}\n  - {op: ReLU, inputs: [n1], outputs: [r1]}\n"
     "  - {op: Convolution, inputs: [r1, w], outputs: [c2], attributes: *same}\n"
     "  - {op: BatchNormForwardTraining, inputs: [c2, m, m, g, g], outputs: [n2, m2, v2, b2, s2], attributes: *norm}\n"
     "  - {op: Add, inputs: [n2, x], outputs: [a]}\n  - {op: SoftPlus, inputs: [a], outputs: [r2]}\n"
     "  - {op: ReduceMean, inputs: [r2], outputs: [pooled], attributes: {axes: [2, 3]}}\n"
     "  - {op: MatMul, inputs: [pooled, u], outputs: [y]}\n"
     "  - {op: SoftmaxCrossEntropy, inputs: [y, l], outputs: [loss]}\noutputs: [y, loss]\n",
     "y", "loss", "w"},
    // a layer of a GPT
    {"format: ngrad/1\ninputs: [{name: x, type: f64, shape: [1, 3, 4]}, {name: g, type: f64, shape: [4]}, {name: qkv, "
     "type: f64, shape: [4, 12]}, {name: proj, type: f64, shape: [4, 4]}, {name: up, type: f64, shape: [4, 8]}, {name: "
     "down, type: f64, shape: [8, 4]}]\nconstants: [{name: never, type: f64, shape: [], value: -.inf}]\nnodes:\n"
     "  - {op: LayerNorm, inputs: [x, g, g], outputs: [n1, nm1, nv1], attributes: {epsilon: 0.1}}\n"
     "  - {op: MatMul, inputs: [n1, qkv], outputs: [all]}\n"
     "  - {op: Split, inputs: [all], outputs: [q, k, v], attributes: {axis: 2, parts: 3}}\n"
     "  - {op: StaticReshape, inputs: [q], outputs: [qh], attributes: &heads {shape: [1, 3, 2, 2], special_zero: "
     "false}}\n"
     "  - {op: StaticReshape, inputs: [k], outputs: [kh], attributes: *heads}\n"
     "  - {op: StaticReshape, inputs: [v], outputs: [vh], attributes: *heads}\n"
     "  - {op: StaticTranspose, inputs: [qh], outputs: [qs], attributes: &first {order: [0, 2, 1, 3]}}\n"
     "  - {op: StaticTranspose, inputs: [kh], outputs: [ks], attributes: *first}\n"
     "  - {op: StaticTranspose, inputs: [vh], outputs: [vs], attributes: *first}\n"
     "  - {op: MatMul, inputs: [qs, ks], outputs: [scores], attributes: {transpose_b: true}}\n"
     "  - {op: GenIndex, inputs: [scores], outputs: [row], attributes: {axis: 2}}\n"
     "  - {op: GenIndex, inputs: [scores], outputs: [column], attributes: {axis: 3}}\n"
     "  - {op: GreaterEqual, inputs: [row, column], outputs: [is_before]}\n"
     "  - {op: Select, inputs: [is_before, scores, never], outputs: [masked]}\n"
     "  - {op: SoftMax, inputs: [masked], outputs: [attention], attributes: {axis: -1}}\n"
     "  - {op: MatMul, inputs: [attention, vs], outputs: [mixed]}\n"
     "  - {op: StaticTranspose, inputs: [mixed], outputs: [tokens], attributes: *first}\n"
     "  - {op: StaticReshape, inputs: [tokens], outputs: [rows], attributes: {shape: [1, 3, 4], special_zero: false}}\n"
     "  - {op: MatMul, inputs: [rows, proj], outputs: [p]}\n  - {op: Add, inputs: [x, p], outputs: [a]}\n"
     "  - {op: LayerNorm, inputs: [a, g, g], outputs: [n2, nm2, nv2], attributes: {epsilon: 0.1}}\n"
     "  - {op: MatMul, inputs: [n2, up], outputs: [h]}\n"
     "  - {op: GELU, inputs: [h], outputs: [act], attributes: {mode: gelu_tanh}}\n"
     "  - {op: MatMul, inputs: [act, down], outputs: [d]}\n  - {op: Add, inputs: [a, d], outputs: [y]}\n"
     "  - {op: Square, inputs: [y], outputs: [s]}\n"
     "  - {op: ReduceMean, inputs: [s], outputs: [loss], attributes: {axes: [0, 1, 2]}}\noutputs: [y, loss]\n",
     "y", "loss", "x"},
};

// The tangent of the output is the difference of outputs at x + h t and x - h t, divided by 2 h.
static void tangents_must_be_differences(ng_context *ctx, ng_graph *g, const char *of, const char *wrt) {
  enum { SIDES = 2 };
  static const double step = 1e-6, bound = 1e-7;
  static double tangent[MOST_NELEMS], sides[SIDES][MOST_NELEMS];
  const char *const names[] = {wrt, NULL};
  Result tangents, results[SIDES];
  size_t slot = 0;
  while (strcmp(ng_graph_input(g, slot).name, wrt) != 0) slot++;
  const ng_tensor_info info = ng_graph_input(g, slot);
  ng_tensor x;
  assert_int_equal(ng_tensor_new(ctx, &info, &x), NG_OK);
  fill(&x, wrt);
  tangent_of(&x, wrt, tangent);
  for (int64_t e = 0; e < ng_tensor_nelems(&x); e++)
    for (int side = 0; side < SIDES; side++) sides[side][e] = ng_tensor_get(&x, e) + (side ? -step : step) * tangent[e];
  for (int side = 0; side < SIDES; side++) run(ctx, g, names, &(const double *){sides[side]}, &results[side]);
  ng_graph *forward = derivative(ctx, g, NG_TANGENTS, wrt, of);
  run(ctx, forward, NULL, NULL, &tangents);
  const ng_tensor *got = find(&tangents, "tangent_", of), *high = find(&results[0], "", of),
                  *low = find(&results[1], "", of);
  for (int64_t e = 0; e < ng_tensor_nelems(got); e++) {
    const double expected = (ng_tensor_get(high, e) - ng_tensor_get(low, e)) / (2 * step);
    if (!(fabs(ng_tensor_get(got, e) - expected) <= bound * fmax(fabs(expected), 1)))
      fail_msg("tangent_%s[%d]: %.12g, differences give %.12g", of, (int)e, ng_tensor_get(got, e), expected);
  }
  result_free(ctx, &tangents);
  for (int side = 0; side < SIDES; side++) result_free(ctx, &results[side]);
  ng_tensor_free(ctx, &x);
  ng_graph_free(forward);
}

static void directions_of_networks_agree(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
    ng_context *ctx = new_context();
    ng_graph *g = must_read(ctx, networks[i].text);
    must_be_adjoint(ctx, g, networks[i].of);
    must_be_symmetric(ctx, g, networks[i].loss, networks[i].wrt);
    tangents_must_be_differences(ctx, g, networks[i].of, networks[i].wrt);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// A gradient by gamma alone needs gamma as an operand of its node; the tangent of it needs no cotangent in its place.
static void tangents_take_inputs_and_tangents_alone(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(
      ctx, "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [4, 3]}, {name: c, type: f64, shape: [3]}]\nnodes:\n"
           "  - {op: BatchNormForwardTraining, inputs: [x, c, c, c, c], outputs: [y, rm, rv, bm, bv], attributes: "
           "{epsilon: 0.1}}\n  - {op: Abs, inputs: [y], outputs: [a]}\n"
           "  - {op: Gradient, inputs: [a, c], outputs: [z]}\noutputs: [z]\n");
  ng_graph *forward = derivative(ctx, g, NG_TANGENTS, "x", "z");
  for (size_t i = 0; i < ng_graph_input_count(forward); i++) {
    const char *name = ng_graph_input(forward, i).name;
    if (strcmp(name, "x") != 0 && strcmp(name, "c") != 0 && strcmp(name, "tangent_x") != 0)
      fail_msg("%s: expected an input of the graph or a tangent", name);
  }
  tangents_must_be_differences(ctx, g, "z", "x");
  ng_graph_free(forward);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// models/train/resnet8.yaml with 2, 6 and 3 channels in place of 16, 32 and 64, for three images of 6 x 6.
static ng_graph *small_resnet(ng_context *ctx) {
  static const char *const numbers[][2] = {{"16", "2"}, {"32", "6"}, {"64", "3"}};
  static char text[1 << 15], small[1 << 15];
  FILE *file = fopen("models/train/resnet8.yaml", "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  bool is_shape = false;
  size_t used = 0;
  for (const char *c = text; *c;) {
    size_t k = 0;
    if (strncmp(c, "shape: [", 8) == 0) is_shape = true;
    if (*c == ']') is_shape = false;
    while (is_shape && k < 3 && (strncmp(c, numbers[k][0], 2) != 0 || c[-1] == 'w')) k++;
    small[used++] = is_shape && k < 3 ? *numbers[k][1] : *c;
    c += is_shape && k < 3 ? 2 : 1;
  }
  ng_graph *g = ng_graph_read(ctx, "resnet8", small, used, NULL);
  if (!g) fail_msg("%s", ng_messages_text(ctx, 0));
  assert_int_equal(ng_graph_set_dim(g, "N", 3), NG_OK);
  return g;
}

static void must_have_third_derivatives(ng_context *ctx, ng_graph *g, const char *loss) {
  enum { MOST_INPUTS = 128 };
  static ng_gradcheck_result results[MOST_INPUTS];
  ng_graph *hvp = derivative(ctx, g, NG_HVP, NULL, loss);
  assert_true(ng_graph_input_count(hvp) <= MOST_INPUTS);
  if (ng_gradcheck(hvp, NULL, results) != NG_OK) fail_msg("%s: %s", ng_graph_name(g), ng_messages_text(ctx, 0));
  ng_graph_free(hvp);
}

// The gradients of the product of the Hessian with a vector are third derivatives.
static void third_derivatives_of_networks_are_those_of_differences(void **state) {
  (void)state;
  for (size_t i = 0; i <= sizeof networks / sizeof *networks; i++) {
    const bool is_last = i == sizeof networks / sizeof *networks;
    ng_context *ctx = new_context();
    ng_graph *g = is_last ? small_resnet(ctx) : must_read(ctx, networks[i].text);
    must_have_third_derivatives(ctx, g, is_last ? "loss" : networks[i].loss);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Derivatives of a sum of functions of each element, of the orders 1 to 3.
static void derivatives_are_as_stated_at_singular_points(void **state) {
  static const struct {
    const char *nodes;
    double x[3], expected[3][3];
  } rows[] = {
      {"  - {op: Abs, inputs: [x], outputs: [y]}\n", {0, -0.0, -2}, {{0, 0, -1}, {0, 0, 0}, {0, 0, 0}}},
      {"  - {op: ReLU, inputs: [x], outputs: [y]}\n", {0, -0.0, 2}, {{0, 0, 1}, {0, 0, 0}, {0, 0, 0}}},
      {"  - {op: Square, inputs: [x], outputs: [y]}\n", {0, -1, 3}, {{0, -2, 6}, {2, 2, 2}, {0, 0, 0}}},
      {"  - {op: Pow, inputs: [x], outputs: [y], attributes: {beta: 2}}\n",
       {0, -1, 3},
       {{0, -2, 6}, {2, 2, 2}, {0, 0, 0}}},
      {"  - {op: Add, inputs: [one, one], outputs: [exponent]}\n  - {op: Power, inputs: [x, exponent], outputs: [y]}\n",
       {0, -1, 3},
       {{0, -2, 6}, {2, 2, 2}, {0, 0, 0}}},
      {"  - {op: Pow, inputs: [x], outputs: [y], attributes: {beta: 1}}\n",
       {0, -1, 3},
       {{1, 1, 1}, {0, 0, 0}, {0, 0, 0}}},
      {"  - {op: Maximum, inputs: [x, zero], outputs: [y]}\n", {0, -1, 3}, {{0, 0, 1}, {0, 0, 0}, {0, 0, 0}}},
      {"  - {op: Maximum, inputs: [zero, x], outputs: [y]}\n", {0, -1, 3}, {{1, 0, 1}, {0, 0, 0}, {0, 0, 0}}},
      {"  - {op: Sqrt, inputs: [x], outputs: [y]}\n",
       {0, 4, 1},
       {{INFINITY, 0.25, 0.5}, {-INFINITY, -0.03125, -0.25}, {INFINITY, 0.01171875, 0.375}}},
      {"  - {op: Log, inputs: [x], outputs: [y]}\n",
       {0, 1, INFINITY},
       {{INFINITY, 1, 0}, {-INFINITY, -1, 0}, {INFINITY, 2, 0}}},
      {"  - {op: ReduceL2, inputs: [x], outputs: [y], attributes: {axes: [1], keep_dims: true}}\n",
       {0, -2, 3},
       {{0, -1, 1}, {0, 0, 0}, {0, 0, 0}}},
      {"  - {op: ReduceMax, inputs: [x], outputs: [m], attributes: {axes: [0], keep_dims: true}}\n"
       "  - {op: Square, inputs: [m], outputs: [y]}\n",
       {3, 3, 1},
       {{3, 3, 0}, {1, 1, 0}, {0, 0, 0}}},
      {"  - {op: ReduceProd, inputs: [x], outputs: [y], attributes: {axes: [0], keep_dims: true}}\n",
       {0, 2, 3},
       {{6, 0, 0}, {5, 3, 2}, {2, 2, 2}}},
      {"  - {op: ReduceProd, inputs: [x], outputs: [y], attributes: {axes: [0], keep_dims: true}}\n",
       {0, -0.0, 3},
       {{0, 0, 0}, {3, 3, 0}, {2, 2, 2}}},
      {"  - {op: ReduceProd, inputs: [x], outputs: [y], attributes: {axes: [0], keep_dims: true}}\n",
       {0, 0, 0},
       {{0, 0, 0}, {0, 0, 0}, {2, 2, 2}}},
      {"  - {op: LayerNorm, inputs: [x], outputs: [n], attributes: {begin_norm_axis: 1, use_affine: false, keep_stats: "
       "false}}\n  - {op: Exp, inputs: [n], outputs: [y]}\n",
       {0, 1e30, -3},
       {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}}, // rows of one number
      // branches that were not taken
      // x > 0 ? ln(x) : 0
      {"  - {op: Log, inputs: [x], outputs: [f]}\n  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, 0.5}, {0, 0, -0.25}, {0, 0, 0.25}}},
      // x > 0 ? sqrt(x) : x^2
      {"  - {op: Sqrt, inputs: [x], outputs: [f]}\n  - {op: Square, inputs: [x], outputs: [s]}\n"
       "  - {op: Select, inputs: [c, f, s], outputs: [y]}\n",
       {0, -3, 4},
       {{0, -6, 0.25}, {2, 2, -0.03125}, {0, 0, 0.01171875}}},
      // x > 0 ? (x > 0 ? x * ln(x) : 0 / x) : 1, as the logarithm's factor x is also the input
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: Multiply, inputs: [x, l], outputs: [f]}\n"
       "  - {op: Divide, inputs: [zero, x], outputs: [q]}\n  - {op: Select, inputs: [c, f, q], outputs: [inner]}\n"
       "  - {op: Select, inputs: [c, inner, one], outputs: [y]}\n",
       {0, -1, 1},
       {{0, 0, 1}, {0, 0, 1}, {0, 0, -1}}},
      // x > 0 ? 1 / |x| by a reduction that keeps its axes : 0
      {"  - {op: ReduceL1, inputs: [x], outputs: [n], attributes: {axes: [1], keep_dims: true}}\n"
       "  - {op: Reciprocal, inputs: [n], outputs: [f]}\n  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -0.0, 2},
       {{0, 0, -0.25}, {0, 0, 0.25}, {0, 0, -0.375}}},
      // x > 0 ? ln(x) * 2 : 0, by a product of matrices
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: MatMul, inputs: [l, two], outputs: [f]}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, 1}, {0, 0, -0.5}, {0, 0, 0.5}}},
      // x > 0 ? ln(x)^2 : 0, through reshapes
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: Multiply, inputs: [l, l], outputs: [l2]}\n"
       "  - {op: StaticReshape, inputs: [l2], outputs: [flat], attributes: {shape: [3], special_zero: false}}\n"
       "  - {op: StaticReshape, inputs: [flat], outputs: [f], attributes: {shape: [3, 1], special_zero: false}}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 1},
       {{0, 0, 0}, {0, 0, 2}, {0, 0, -6}}},
      // a transpose, and a reduction that removes its axis
      {"  - {op: Sqrt, inputs: [x], outputs: [s]}\n"
       "  - {op: StaticTranspose, inputs: [s], outputs: [t], attributes: {order: [1, 0]}}\n"
       "  - {op: ReduceSum, inputs: [t], outputs: [r], attributes: {axes: [0]}}\n"
       "  - {op: StaticReshape, inputs: [r], outputs: [f], attributes: {shape: [3, 1], special_zero: false}}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 4},
       {{0, 0, 0.25}, {0, 0, -0.03125}, {0, 0, 0.01171875}}},
      // x > 0 ? (1 / x) (1 / x) : 0, a product of matrices whose operands both have poles
      {"  - {op: Reciprocal, inputs: [x], outputs: [q]}\n"
       "  - {op: StaticReshape, inputs: [q], outputs: [a], attributes: {shape: [3, 1, 1], special_zero: false}}\n"
       "  - {op: MatMul, inputs: [a, a], outputs: [p], attributes: {transpose_b: true}}\n"
       "  - {op: StaticReshape, inputs: [p], outputs: [f], attributes: {shape: [3, 1], special_zero: false}}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -0.0, 2},
       {{0, 0, -0.25}, {0, 0, 0.375}, {0, 0, -0.75}}},
      // x > 0 ? ln(x) : 0, behind operators that move elements; x beside it has a branch of its own
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: Concat, inputs: [l, x], outputs: [f], attributes: {axis: "
       "1}}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, 1.5}, {0, 0, -0.25}, {0, 0, 0.25}}},
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: Tile, inputs: [l], outputs: [t], attributes: {repeats: [1, "
       "3]}}\n"
       "  - {op: Slice, inputs: [t], outputs: [f], attributes: {starts: [2], ends: [-9], axes: [1], steps: [-2]}}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, 1}, {0, 0, -0.5}, {0, 0, 0.5}}},
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: Concat, inputs: [l, x], outputs: [b], attributes: {axis: "
       "1}}\n"
       "  - {op: Split, inputs: [b], outputs: [f, r], attributes: {axis: 1, parts: 2}}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [s]}\n  - {op: Add, inputs: [s, r], outputs: [y]}\n",
       {0, -1, 2},
       {{1, 1, 1.5}, {0, 0, -0.25}, {0, 0, 0.25}}},
      {"  - {op: Log, inputs: [x], outputs: [l]}\n"
       "  - {op: Pad, inputs: [l], outputs: [f], attributes: {pads_begin: [0, 1], pads_end: [0, 2]}}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, 0.5}, {0, 0, -0.25}, {0, 0, 0.25}}},
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: Gather, inputs: [l, turned], outputs: [g]}\n"
       "  - {op: GatherBackward, inputs: [turned, g], outputs: [{name: f, shape: [3, 1]}]}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, 0.5}, {0, 0, -0.25}, {0, 0, 0.25}}},
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: Tile, inputs: [l], outputs: [t], attributes: {repeats: [1, "
       "3]}}\n"
       "  - {op: Diagonal, inputs: [t], outputs: [d]}\n  - {op: Reorder, inputs: [d], outputs: [o]}\n"
       "  - {op: StaticReshape, inputs: [o], outputs: [f], attributes: {shape: [3, 1], special_zero: false}}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, 0.5}, {0, 0, -0.25}, {0, 0, 0.25}}},
      // windows over each row alone
      {"  - {op: Log, inputs: [x], outputs: [l]}\n"
       "  - {op: StaticReshape, inputs: [l], outputs: [i], attributes: {shape: [3, 1, 1], special_zero: false}}\n"
       "  - {op: Convolution, inputs: [i, kernel], outputs: [k], attributes: {strides: [1], pads_begin: [0], pads_end: "
       "[0], "
       "data_format: NCX, weights_format: OIX}}\n"
       "  - {op: MaxPool, inputs: [k], outputs: [m], attributes: {kernel: [1], strides: [1], pads_begin: [0], "
       "pads_end: [0], data_format: NCX}}\n"
       "  - {op: AvgPool, inputs: [m], outputs: [a], attributes: {kernel: [1], strides: [1], pads_begin: [0], "
       "pads_end: [0], "
       "data_format: NCX, exclude_pad: false}}\n"
       "  - {op: Interpolate, inputs: [a], outputs: [r], attributes: {mode: linear, sizes: [2], data_format: NCX}}\n"
       "  - {op: StaticReshape, inputs: [r], outputs: [f], attributes: {shape: [3, 2], special_zero: false}}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, 2}, {0, 0, -1}, {0, 0, 1}}},
      // rows of a softmax's logarithm, and of a norm
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: Concat, inputs: [l, x], outputs: [b], attributes: {axis: "
       "1}}\n"
       "  - {op: LogSoftmax, inputs: [b], outputs: [f]}\n  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, -0.2869860421615985}, {0, 0, -0.22731252688300996}, {0, 0, 0.041818790603600914}}},
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: Square, inputs: [x], outputs: [q]}\n"
       "  - {op: Concat, inputs: [l, q], outputs: [b], attributes: {axis: 1}}\n"
       "  - {op: LayerNorm, inputs: [b], outputs: [n], attributes: {use_affine: false, keep_stats: false, epsilon: "
       "1}}\n"
       "  - {op: Exp, inputs: [n], outputs: [f]}\n  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, 0.46763475470028854}, {0, 0, -0.6231145319837981}, {0, 0, 0.13455594429794226}}},
      // losses of each element, and of each row
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: BinaryCrossEntropy, inputs: [l, half], outputs: [f], "
       "attributes: {reduction: none}}\n  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, 0.08333333333333333}, {0, 0, 0.013888888888888888}, {0, 0, -0.05092592592592592}}},
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: Concat, inputs: [l, x], outputs: [b], attributes: {axis: "
       "1}}\n"
       "  - {op: SoftmaxCrossEntropy, inputs: [b, first], outputs: [e], attributes: {reduction: none}}\n"
       "  - {op: StaticReshape, inputs: [e], outputs: [f], attributes: {shape: [3, 1], special_zero: false}}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, 0.39349302108079925}, {0, 0, 0.23865626344150495}, {0, 0, -0.14590939530180047}}},
      // groups of ln(x) and x, of one image
      {"  - {op: Log, inputs: [x], outputs: [l]}\n  - {op: Concat, inputs: [l, x], outputs: [b], attributes: {axis: "
       "1}}\n"
       "  - {op: StaticReshape, inputs: [b], outputs: [i], attributes: {shape: [1, 6, 1], special_zero: false}}\n"
       "  - {op: GroupNorm, inputs: [i], outputs: [n], attributes: {groups: 3, data_format: NCX, use_affine: false, "
       "keep_stats: false, epsilon: 1}}\n"
       "  - {op: StaticReshape, inputs: [n], outputs: [r], attributes: {shape: [3, 2], special_zero: false}}\n"
       "  - {op: Slice, inputs: [r], outputs: [f], attributes: {starts: [0], ends: [1], axes: [1]}}\n"
       "  - {op: Select, inputs: [c, f, zero], outputs: [y]}\n",
       {0, -1, 2},
       {{0, 0, -0.146662653182864483}, {0, 0, -0.0229622676866807419}, {0, 0, 0.139325231338361359}}},
      // max(ln(x)) > 100 ? max(ln(x)) : x, whose branch is broadcast, and taken nowhere
      {"  - {op: Log, inputs: [x], outputs: [l]}\n"
       "  - {op: ReduceMax, inputs: [l], outputs: [f], attributes: {axes: [0, 1]}}\n"
       "  - {op: Greater, inputs: [f, big], outputs: [d]}\n  - {op: StaticReshape, inputs: [d], outputs: [none], "
       "attributes: {shape: [1], special_zero: false}}\n  - {op: LogicalAnd, inputs: [c, none], outputs: [e]}\n"
       "  - {op: Select, inputs: [e, f, x], outputs: [y]}\n",
       {2, 0, 3},
       {{1, 1, 1}, {0, 0, 0}, {0, 0, 0}}},
      // x > 0 ? e^(1000 x) * 0 : x, whose power overflows
      {"  - {op: Multiply, inputs: [x, big], outputs: [t]}\n  - {op: Exp, inputs: [t], outputs: [f]}\n"
       "  - {op: LessEqual, inputs: [x, zero], outputs: [d]}\n  - {op: Select, inputs: [d, f, x], outputs: [y]}\n",
       {1, 5, 0},
       {{1, 1, 1000}, {0, 0, 1e6}, {0, 0, 1e9}}},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[4096];
    snprintf(text, sizeof text,
             "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [3, 1]}]\nconstants: [{name: zero, type: f64, "
             "shape: [], "
             "value: 0}, {name: one, type: f64, shape: [], value: 1}, {name: big, type: f64, shape: [], value: 1000}, "
             "{name: two, type: f64, shape: [1, 1], value: 2}, {name: kernel, type: f64, shape: [1, 1, 1], value: 2}, "
             "{name: "
             "turned, type: s64, shape: [3], values: [2, 0, 1]}, {name: first, type: s64, shape: [3], value: 0}, "
             "{name: half, "
             "type: f64, shape: [3, 1], value: 0.5}]\n"
             "nodes:\n  - {op: Greater, inputs: [x, zero], outputs: [c]}\n%s"
             "  - {op: ReduceSum, inputs: [y], outputs: [sum0], attributes: {axes: [0, 1]}}\noutputs: [sum0]\n",
             rows[i].nodes);
    ng_context *ctx = new_context();
    ng_graph *g = must_read(ctx, text);
    static const double ones[3] = {1, 1, 1};
    const char *const names[] = {"x", "tangent_x", "tangent2_x", NULL};
    const double *const given[] = {rows[i].x, ones, ones, ones};
    for (int order = 1; order <= 3; order++) {
      if (ng_graph_input_count(g) == 0 || strcmp(ng_graph_input(g, 0).name, "x") != 0) { // it depends on x no more
        for (int e = 0; e < 3; e++) assert_true(rows[i].expected[order - 1][e] == 0);
        continue;
      }
      // the diagonal: of the sum over elements, tangents of ones give sums; so the gradient of a tangent is the next
      // order
      ng_graph *gradient = derivative(ctx, g, NG_JACOBIAN, "x", NULL);
      Result r;
      run(ctx, gradient, names, given, &r);
      for (int e = 0; e < 3; e++) {
        const double got = ng_tensor_get(&r.tensors[0], e), expected = rows[i].expected[order - 1][e];
        if (got != expected && !(fabs(got - expected) <= 1e-9 * fabs(expected)))
          fail_msg("row %zu, order %d, element %d: %.17g, expected %.17g", i, order, e, got, expected);
      }
      result_free(ctx, &r);
      ng_graph_free(gradient);
      ng_graph *next = derivative(ctx, g, NG_TANGENTS, "x", ng_graph_output(g, 0).name);
      ng_graph_free(g);
      g = next;
    }
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Rows whose branch was not taken add nothing to the gradient of a weight, be their numbers infinite; x gets none, or
// does not ask for one.
static void weights_get_nothing_from_branches_not_taken(void **state) {
  static const struct {
    const char *node;
    double by_w[2], by_both[2]; // at x = 2, and l = ln(x)
  } rows[] = {{"MatMul, inputs: [l, w], outputs: [h]", {M_LN2, M_LN2}, {0.5, 0.5}},
              {"BiasAdd, inputs: [both, v], outputs: [h]", {1, 1}, {0, 0}},
              {"LayerNorm, inputs: [both, v, v], outputs: [h], attributes: {keep_stats: false, epsilon: 1.0e-30}",
               {0, 2},
               {0, 0}},
              {"LayerNorm, inputs: [both, v, v], outputs: [h, m, s], attributes: {epsilon: 1.0e-30}", {0, 2}, {0, 0}}};
  static const double x[] = {0, -1, 2}, w[] = {3, 5}, ones[] = {1, 1, 1};
  static const char *const names[] = {"x", "w", "tangent_x", NULL};
  const double *const given[] = {x, w, ones};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [3, 1]}, {name: w, type: f64, shape: [1, 2]}]\n"
             "constants: [{name: zero, type: f64, shape: [], value: 0}]\nnodes:\n"
             "  - {op: Greater, inputs: [x, zero], outputs: [c]}\n  - {op: Log, inputs: [x], outputs: [l]}\n"
             "  - {op: Concat, inputs: [l, x], outputs: [both], attributes: {axis: 1}}\n"
             "  - {op: StaticReshape, inputs: [w], outputs: [v], attributes: {shape: [2], special_zero: false}}\n"
             "  - {op: %s}\n  - {op: Select, inputs: [c, h, zero], outputs: [y]}\n"
             "  - {op: ReduceSum, inputs: [y], outputs: [sum], attributes: {axes: [0, 1]}}\noutputs: [sum]\n",
             rows[i].node);
    ng_context *ctx = new_context();
    ng_graph *g = must_read(ctx, text), *by_w = derivative(ctx, g, NG_JACOBIAN, "w", NULL);
    ng_graph *by_both = derivative(ctx, by_w, NG_TANGENTS, "x", NULL);
    Result first, second;
    run(ctx, by_w, names, given, &first);
    run(ctx, by_both, names, given, &second);
    for (int64_t e = 0; e < 2; e++) {
      const double one = ng_tensor_get(&first.tensors[0], e), both = ng_tensor_get(&second.tensors[0], e);
      if (!(fabs(one - rows[i].by_w[e]) <= tolerance && fabs(both - rows[i].by_both[e]) <= tolerance))
        fail_msg("row %zu, element %d: %.17g and %.17g", i, (int)e, one, both);
    }
    result_free(ctx, &first);
    result_free(ctx, &second);
    ng_graph_free(by_both);
    ng_graph_free(by_w);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// An output that is an input has the input's tangent, and ones on the diagonal of its Jacobian. What depends on no
// input has derivatives of 0, whether inputs are named or not.
static void ends_and_constants_have_derivatives(void **state) {
  static const struct {
    ng_derivative form;
    const char *wrt, *of, *output;
    double expected[4];
  } rows[] = {
      {NG_TANGENTS, NULL, NULL, "tangent_x", {5, 7}},      {NG_TANGENTS, NULL, NULL, "tangent_y", {10, 14}},
      {NG_TANGENTS, "b", "x", "tangent_x", {0, 0}},        {NG_JACOBIAN, "x", "x", "jacobian_x", {1, 0, 0, 1}},
      {NG_JACOBIAN, "b", "x", "jacobian_b", {0, 0}},       {NG_JACOBIAN, NULL, "three", "jacobian_x", {0, 0}},
      {NG_TANGENTS, NULL, "three", "tangent_three", {0}},  {NG_HVP, NULL, "three", "tangent_diff_x", {0, 0}},
      {NG_HVP, "b", "three", "tangent_diff_b", {0}},       {NG_HVP, NULL, "b", "tangent_diff_b", {0}},
      {NG_HESSIAN, NULL, "three", "hessian_b", {0, 0, 0}}, {NG_HESSIAN, "x", "three", "hessian_x", {0, 0, 0, 0}}};
  static const char *const names[] = {"x", "b", "tangent_x", "tangent_b", NULL};
  const double *const given[] = {(double[]){1, 2}, (double[]){2}, (double[]){5, 7}, (double[]){0}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ng_context *ctx = new_context();
    ng_graph *g =
        must_read(ctx, "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [2]}, {name: b, type: f64, shape: "
                       "[]}, {name: n, type: s64, shape: []}]\nconstants: [{name: two, type: f64, shape: [], "
                       "value: 2}]\nnodes:\n  - {op: Multiply, inputs: [x, b], outputs: [y]}\n"
                       "  - {op: Square, inputs: [two], outputs: [three]}\noutputs: [x, y, b, three]\n");
    ng_graph *made = derivative(ctx, g, rows[i].form, rows[i].wrt, rows[i].of);
    Result r;
    run(ctx, made, names, given, &r);
    const ng_tensor *t = find(&r, "", rows[i].output);
    if (!t) fail_msg("row %zu has no %s", i, rows[i].output);
    for (int64_t e = 0; e < ng_tensor_nelems(t); e++)
      if (ng_tensor_get(t, e) != rows[i].expected[e])
        fail_msg("row %zu: %s[%d] is %g, expected %g", i, rows[i].output, (int)e, ng_tensor_get(t, e),
                 rows[i].expected[e]);
    result_free(ctx, &r);
    ng_graph_free(made);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Matrices are of extents with numbers, which the caller may give.
static void named_extents_take_numbers(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g =
      must_read(ctx, "format: ngrad/1\ndims: {N: 3, M: 2}\ninputs: [{name: x, type: f64, shape: [N]}, {name: w, type: "
                     "f64, shape: [M]}]\nnodes:\n  - {op: Square, inputs: [x], outputs: [y]}\n"
                     "  - {op: ReduceSum, inputs: [y], outputs: [sum], attributes: {axes: [0]}}\n"
                     "  - {op: Square, inputs: [w], outputs: [z]}\noutputs: [y, sum, z]\n");
  const char *y = "y", *x = "x", *sum = "sum";
  assert_null(ng_graph_gradient(g, &(ng_gradient_options){.of = &y, .nof = 1, .derivative = NG_JACOBIAN}));
  must_have_said(ctx,
                 "y [N]: expected 1 to 64 elements, by extents that are numbers, as the matrix is computed for each "
                 "of them, and fewer than 8 axes; --dim N=4 gives a number");
  for (int64_t n = 2; n <= 4; n += 2) { // the graph's own extents stay named
    assert_int_equal(ng_graph_set_dim(g, "N", n), NG_OK);
    ng_graph *jacobian = derivative(ctx, g, NG_JACOBIAN, NULL, y), *hessian = derivative(ctx, g, NG_HESSIAN, x, sum);
    Result r;
    run(ctx, jacobian, NULL, NULL, &r);
    assert_int_equal(ng_tensor_nelems(&r.tensors[0]), n * n);
    result_free(ctx, &r);
    run(ctx, hessian, NULL, NULL, &r);
    for (int64_t e = 0; e < n * n; e++) assert_true(ng_tensor_get(&r.tensors[0], e) == (e % (n + 1) ? 0 : 2));
    result_free(ctx, &r);
    ng_graph_free(hessian);
    ng_graph_free(jacobian);
  }
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void what_has_no_matrix_is_told(void **state) {
  static const struct {
    ng_derivative form;
    const char *wrt, *of, *told;
  } rows[] = {
      {NG_JACOBIAN, NULL, NULL, "test: expected one output to differentiate, found 2; --of names it"},
      {NG_JACOBIAN, NULL, "y",
       "y [65]: expected 1 to 64 elements, by extents that are numbers, as the matrix is computed for each of them, "
       "and fewer than 8 axes"},
      {NG_HVP, NULL, "y",
       "y [65]: expected an output that is a single number, as its Hessian is wanted; --of names it"},
      {NG_HESSIAN, NULL, "sum",
       "x [65]: expected 1 to 64 elements of all together, by extents that are numbers, as the matrix is computed for "
       "each of them, and fewer than 8 axes"},
      {NG_HESSIAN, "x", "sum",
       "x [65]: expected 1 to 64 elements, by extents that are numbers, as the matrix is computed for each of them, "
       "and fewer than 8 axes"},
      {(ng_derivative)7, NULL, NULL, "expected a derivative from 0 to 5, found 7"},
  };
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g =
      must_read(ctx, "format: ngrad/1\nname: test\ninputs: [{name: x, type: f64, shape: [65]}, {name: b, type: f64, "
                     "shape: []}]\nnodes:\n  - {op: Multiply, inputs: [x, b], outputs: [y]}\n"
                     "  - {op: ReduceSum, inputs: [y], outputs: [sum], attributes: {axes: [0]}}\noutputs: [y, sum]\n");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const ng_gradient_options options = {.wrt = rows[i].wrt ? &rows[i].wrt : NULL,
                                         .nwrt = rows[i].wrt != NULL,
                                         .of = rows[i].of ? &rows[i].of : NULL,
                                         .nof = rows[i].of != NULL,
                                         .derivative = rows[i].form};
    assert_null(ng_graph_gradient(g, &options));
    must_have_said(ctx, rows[i].told);
  }
  // a Hessian of 0, and one by a number
  Result r;
  ng_graph *hessian = derivative(ctx, g, NG_HESSIAN, "b", "sum");
  run(ctx, hessian, NULL, NULL, &r);
  assert_int_equal(ng_tensor_nelems(&r.tensors[0]), 1);
  assert_true(ng_tensor_get(&r.tensors[0], 0) == 0 && ng_graph_input_count(hessian) == 0);
  result_free(ctx, &r);
  ng_graph_free(hessian);
  // without names, of the outputs that are single numbers
  ng_graph *hvp = derivative(ctx, g, NG_HVP, NULL, NULL);
  assert_int_equal(ng_graph_output_count(hvp), 2);
  ng_graph_free(hvp);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Whichever allocation fails, nothing is left, and the next call succeeds.
static void without_memory_there_is_no_derivative(void **state) {
  (void)state;
  const char *text =
      "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [2, 2]}, {name: w, type: f32, shape: [2, 2]}]\n"
      "constants: [{name: zero, type: f32, shape: [], value: 0}]\nnodes:\n"
      "  - {op: MatMul, inputs: [x, w], outputs: [h]}\n"
      "  - {op: LayerNorm, inputs: [h], outputs: [n], attributes: {use_affine: false, keep_stats: false}}\n"
      "  - {op: Greater, inputs: [n, zero], outputs: [c]}\n  - {op: Log, inputs: [n], outputs: [l]}\n"
      "  - {op: Select, inputs: [c, l, n], outputs: [s]}\n  - {op: Slice, inputs: [s], outputs: [t], attributes: "
      "{starts: "
      "[0], ends: [1]}}\n  - {op: ReduceSum, inputs: [t], outputs: [y], attributes: {axes: [0, 1]}}\noutputs: [y]\n";
  FailingAllocator memory;
  failing_allocator_init(&memory, NEVER_FAIL);
  ng_allocator allocator = {failing_resize, &memory};
  ng_context *ctx = ng_context_new(&allocator);
  ng_graph *g = must_read(ctx, text);
  const char *wrt = "x";
  for (ng_derivative form = NG_TANGENTS; form <= NG_VJP; form++) {
    ng_graph *made = NULL;
    const ng_gradient_options options = {.wrt = &wrt, .nwrt = 1, .derivative = form};
    for (size_t failing = 0; !made; failing++) {
      memory.ncalls = 0;
      memory.failing = failing;
      made = ng_graph_gradient(g, &options);
      if (!made) assert_int_equal(ng_last_status(ctx), NG_OUT_OF_MEMORY);
    }
    memory.failing = NEVER_FAIL;
    ng_graph_free(made);
  }
  ng_graph_free(g);
  ng_context_free(ctx);
  assert_int_equal(memory.nlive, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(directions_of_networks_agree),
      cmocka_unit_test(tangents_take_inputs_and_tangents_alone),
      cmocka_unit_test(third_derivatives_of_networks_are_those_of_differences),
      cmocka_unit_test(derivatives_are_as_stated_at_singular_points),
      cmocka_unit_test(weights_get_nothing_from_branches_not_taken),
      cmocka_unit_test(ends_and_constants_have_derivatives),
      cmocka_unit_test(named_extents_take_numbers),
      cmocka_unit_test(what_has_no_matrix_is_told),
      cmocka_unit_test(without_memory_there_is_no_derivative),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
