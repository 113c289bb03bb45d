// Gradient graphs that save few values: which values they compute again, and that their results equal those of graphs
// that save all.
#include "backends/interpreter/interpreter.h"
#include "frontend/api/ngrad.h"
#include "frontend/yaml/yaml.h"
#include "passes/gradient/gradient.h"
#include "tests/random_seeds.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// A forward graph with its saved values as outputs, and the backward graph; both with all floats in f64, so that
// saved values are not rounded and equal recomputed values.
typedef struct Pair {
  Graph *forward, *backward;
  GradientEnds ends;
  double nbytes; // that the backward graph is given of the forward graph
} Pair;

static void to_f64(Graph *g) {
  for (size_t i = 0; i < g->nvalues; i++) {
    Value *v = g->values[i];
    v->layout = (Layout){0};
    if (!type_is_float(v->type)) continue;
    if (v->constant) {
      Constant *own = ARENA_NEW(&g->arena, Constant);
      const size_t nelems = v->constant->is_splat ? 1 : (size_t)shape_nelems(&v->shape);
      double *data = ARENA_ARRAY(&g->arena, double, nelems + 1);
      for (size_t k = 0; k < nelems; k++) data[k] = type_load(v->type, v->constant->data, k);
      *own = (Constant){.data = data, .is_splat = v->constant->is_splat};
      v->constant = own;
    }
    v->type = TYPE_F64;
  }
}

static bool make_pair(Pair *p, const Graph *g, bool saves_least, Diagnostics *d) {
  *p = (Pair){0};
  p->backward = graph_gradient(g, &(GradientRequest){.saves_least = saves_least}, &p->ends, d);
  if (!p->backward) return false;
  p->forward = graph_with_saved(g, p->backward, &p->ends);
  assert_non_null(p->forward);
  assert_true(graph_verify(p->forward, d));
  for (size_t i = 0; i < p->backward->ninputs - p->ends.ndiffs; i++) {
    const Value *v = p->backward->inputs[i];
    p->nbytes += (double)type_nbytes(v->type) * (double)shape_nelems(&v->shape);
  }
  to_f64(p->forward);
  to_f64(p->backward);
  return true;
}

static void free_pair(Pair *p) {
  graph_free(p->forward);
  graph_free(p->backward);
}

static Tensor *tensors_of(Value *const *values, size_t count) {
  Tensor *tensors = calloc(count + 1, sizeof *tensors);
  assert_non_null(tensors);
  for (size_t i = 0; i < count; i++) {
    tensors[i] = tensor_like(values[i]);
    assert_true(tensor_alloc(&tensors[i], &system_allocator));
  }
  return tensors;
}

static void free_tensors(Tensor *tensors, size_t count) {
  for (size_t i = 0; i < count; i++) tensor_free(&tensors[i], &system_allocator);
  free(tensors);
}

static const Tensor *tensor_named(const char *name, Value *const *values, const Tensor *tensors, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(values[i]->name, name) == 0) return &tensors[i];
  return NULL;
}

// The results of the backward graph on random data, saved values by their names.
static Tensor *run_pair(const Pair *p, uint64_t seed, Diagnostics *d) {
  const Graph *f = p->forward, *b = p->backward;
  const InterpreterOptions options = {.allocator = &system_allocator};
  Tensor *inputs = tensors_of(f->inputs, f->ninputs), *outputs = tensors_of(f->outputs, f->noutputs);
  Tensor *taken = tensors_of(b->inputs, b->ninputs), *results = tensors_of(b->outputs, b->noutputs);
  for (size_t i = 0; i < f->ninputs; i++)
    random_elements(&(uint64_t){seed + i}, f->inputs[i]->type, f->inputs[i]->range, inputs[i].data,
                    tensor_nelems(&inputs[i]));
  assert_true(interpret(f, inputs, outputs, &options, d));
  for (size_t i = 0; i < b->ninputs; i++) {
    const char *name = b->inputs[i]->name;
    const Tensor *from = tensor_named(name, f->inputs, inputs, f->ninputs);
    if (!from) from = tensor_named(name, f->outputs, outputs, f->noutputs);
    if (i >= b->ninputs - p->ends.ndiffs) {
      const size_t index = p->ends.inputs[i]->index;
      random_elements(&(uint64_t){seed ^ index}, TYPE_F64, RANGE_ANY, taken[i].data, tensor_nelems(&taken[i]));
    } else {
      assert_non_null(from);
      memcpy(taken[i].data, from->data, tensor_nbytes(from));
    }
  }
  assert_true(interpret(b, taken, results, &options, d));
  free_tensors(inputs, f->ninputs);
  free_tensors(outputs, f->noutputs);
  free_tensors(taken, b->ninputs);
  return results;
}

static void must_agree(const Pair *all, const Pair *least, uint64_t seed, Diagnostics *d) {
  const Graph *b = least->backward;
  Tensor *expected = run_pair(all, seed, d), *actual = run_pair(least, seed, d);
  assert_int_equal(b->noutputs, all->backward->noutputs);
  for (size_t i = 0; i < b->noutputs; i++) {
    const double *e = expected[i].data, *a = actual[i].data;
    assert_string_equal(b->outputs[i]->name, all->backward->outputs[i]->name);
    for (int64_t k = 0; k < tensor_nelems(&actual[i]); k++)
      if (e[k] != a[k] && !(isnan(e[k]) && isnan(a[k])))
        fail_msg("seed %d: %s[%d] is %.17g, expected %.17g", (int)seed, b->outputs[i]->name, (int)k, a[k], e[k]);
  }
  free_tensors(expected, b->noutputs);
  free_tensors(actual, b->noutputs);
}

static void saving_little_changes_no_gradient_of_random_graphs(void **state) {
  (void)state;
  enum { NGRAPHS = 4000, LEAST_DIFFERENTIATED = 100, LEAST_BETTER = 20 };
  int ndifferentiated = 0, nbetter = 0;
  for (RandomSeeds s = random_seeds(NGRAPHS); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    const RandomGraphOptions options = {
        .most_nodes = 3 + (uint32_t)(seed % 6), .most_nelems = 256, .is_focused = seed % 3 > 0};
    Diagnostics d;
    Pair all, least;
    diagnostics_init(&d, &system_allocator);
    Graph *g = random_graph(&system_allocator, seed, &options, &d);
    if (!g) fail_msg("seed %d gives no graph", (int)seed);
    assert_true(graph_bind_dims(g, &d) && graph_infer(g, &d));
    const bool is_differentiated = make_pair(&all, g, false, &d);
    assert_true(make_pair(&least, g, true, &d) == is_differentiated);
    if (is_differentiated) {
      must_agree(&all, &least, seed, &d);
      if (least.nbytes > all.nbytes)
        fail_msg("seed %d: saved values have %g bytes, expected at most %g", (int)seed, least.nbytes, all.nbytes);
      ndifferentiated++;
      nbetter += least.nbytes < all.nbytes;
    }
    free_pair(&all);
    free_pair(&least);
    graph_free(g);
    diagnostics_deinit(&d);
  }
  assert_true(ndifferentiated >= LEAST_DIFFERENTIATED || !random_seeds_are_usual());
  assert_true(nbetter >= LEAST_BETTER || !random_seeds_are_usual());
}

// The policy

static void must_save(const char *inputs, const char *nodes, const char *of, const char *expected) {
  char text[2048], found[256] = "";
  snprintf(text, sizeof text, "format: ngrad/1\ninputs: [%s]\nnodes:\n%s\noutputs: [%s]\n", inputs, nodes, of);
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "forward", text, strlen(text), NULL);
  if (!g) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
  const ng_gradient_options options = {.save_least = 1};
  ng_graph *gradient = ng_graph_gradient(g, &options);
  if (!gradient) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
  for (size_t i = 0; i < ng_graph_input_count(gradient); i++) {
    const size_t used = strlen(found);
    snprintf(found + used, sizeof found - used, "%s%s", used ? " " : "", ng_graph_input(gradient, i).name);
  }
  assert_string_equal(found, expected);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
}

#define INPUT(name, shape) "{name: " name ", type: f32, shape: " shape "}"
#define NODE(op, inputs, output) "  - {op: " op ", inputs: [" inputs "], outputs: [" output "]}\n"
#define NODE_WITH(op, inputs, output, attributes)                                                                      \
  "  - {op: " op ", inputs: [" inputs "], outputs: [" output "], attributes: {" attributes "}}\n"

static void activations_and_views_are_computed_again(void **state) {
  (void)state;
  const char *layer = INPUT("x", "[8, 4]") ", " INPUT("w", "[4, 16]") ", " INPUT("v", "[16, 4]");
  must_save(layer, NODE("MatMul", "x, w", "h") NODE("GELU", "h", "a") NODE("MatMul", "a, v", "y"), "y",
            "x w v h diff_y");
  must_save(layer,
            NODE("MatMul", "x, w", "h") NODE_WITH("StaticTranspose", "h", "t", "order: [1, 0]")
                NODE_WITH("MatMul", "t, h", "y", ""),
            "y", "x w h diff_y");
  // Neither view's source is saved otherwise: it takes the place of both.
  must_save(INPUT("x", "[8, 4]") ", " INPUT("w", "[4, 16]"),
            NODE("MatMul", "x, w", "h") NODE_WITH("StaticReshape", "h", "r", "shape: [16, 8], special_zero: false")
                NODE_WITH("StaticReshape", "h", "s", "shape: [8, 16], special_zero: false") NODE("MatMul", "r, s", "y"),
            "y", "x w h diff_y");
  // A cast that loses something is less to save than its source.
  must_save(INPUT("x", "[8, 4]") ", " INPUT("w", "[4, 16]") ", {name: v, type: bf16, shape: [16, 4]}",
            NODE("MatMul", "x, w",
                 "h") "  - {op: TypeCast, inputs: [h], outputs: [{name: b, type: bf16}]}\n" NODE("MatMul", "b, v", "y"),
            "y", "x w v b diff_y");
}

static void masks_and_one_hot_labels_are_computed_again(void **state) {
  (void)state;
  must_save(INPUT("x", "[8, 4]") ", " INPUT("w", "[4, 4]") ", {name: labels, type: s32, shape: [8]}",
            NODE("MatMul", "x, w", "h") NODE_WITH("OneHot", "labels", "hot", "depth: 4")
                NODE("Multiply", "h, hot", "y"),
            "y", "x w labels diff_y");
  must_save(INPUT("x", "[8, 4]") ", " INPUT("w", "[4, 4]") ", " INPUT("t", "[1]"),
            NODE("MatMul", "x, w", "h") NODE("Square", "h", "s") NODE("Greater", "h, t", "mask")
                NODE("Select", "mask, s, h", "y"),
            "y", "x w t h diff_y");
}

// Which elements are the greatest is decided by one computation of them: a saved result was rounded.
static void the_greatest_is_found_again(void **state) {
  (void)state;
  must_save(INPUT("x", "[8, 4]"), NODE("GELU", "x", "t") NODE_WITH("ReduceMax", "t", "y", "axes: [1]"), "y",
            "x diff_y");
  must_save(INPUT("x", "[8, 4]"), NODE("Exp", "x", "t") NODE_WITH("ReduceMin", "t", "y", "axes: [0], keep_dims: true"),
            "y", "t diff_y");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      random_unit_test(saving_little_changes_no_gradient_of_random_graphs),
      cmocka_unit_test(activations_and_views_are_computed_again),
      cmocka_unit_test(masks_and_one_hot_labels_are_computed_again),
      cmocka_unit_test(the_greatest_is_found_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
