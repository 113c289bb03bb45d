// Gradients at singular points, infinities and NaN, and of numbers whose products leave the type's range on the way:
// tests/unit/gradient_edges.h. The gradients of all rows are one graph, interpreted and compiled; the values that it
// takes from the forward graph are interpreted. Each operator with a gradient must have a row.
#include "frontend/api/ngrad.h"
#include "ir/operators/operator.h"
#include "passes/gradient/gradient.h"
#include "tests/unit/gradient_edges.h"
#include "tests/unit/literals.h"
#include "tests/unit/quick_compiler.h"

#include <math.h>

enum { NAME_BYTES = 64 };

// The graph of all rows. Row i has the inputs i<i>_0, i<i>_1… and the output o<i>.
static ng_graph *read_rows(ng_context *ctx) {
  Literal literals[MOST_IN_CASE], diff[MOST_IN_CASE];
  Text text, nodes, outputs;
  text_init(&text, &system_allocator);
  text_init(&nodes, &system_allocator);
  text_init(&outputs, &system_allocator);
  text_add_string(&text, "format: ngrad/1\ninputs:\n");
  for (size_t i = 0; i < NGRADIENT_EDGES; i++) {
    const GradientEdge *row = &gradient_edges[i];
    const Operator *op = operator_find(row->op).op;
    const size_t n = read_literals(row->inputs, literals);
    assert_int_equal(read_literals(row->diff, diff), 1);
    text_format(&nodes, "  - {op: %s, attributes: {%s}, inputs: [", row->op, row->attributes);
    for (size_t k = 0; k < n; k++) {
      text_format(&text, "  - {name: i%zu_%zu, type: %s, shape: %s}\n", i, k, literals[k].type, literals[k].shape);
      text_format(&nodes, "%si%zu_%zu", k ? ", " : "", i, k);
    }
    text_format(&nodes, "], outputs: [{name: o%zu, type: %s, shape: %s}", i, diff->type, diff->shape);
    for (uint32_t slot = 1; slot < op->noutputs && !op->outputs[slot].is_optional; slot++)
      text_format(&nodes, ", s%zu_%u", i, slot);
    text_add_string(&nodes, "]}\n");
    text_format(&outputs, "%so%zu", i ? ", " : "", i);
  }
  text_format(&text, "nodes:\n%soutputs: [%s]\n", text_string(&nodes), text_string(&outputs));
  ng_graph *g = ng_graph_read(ctx, "rows", text_string(&text), strlen(text_string(&text)), NULL);
  text_deinit(&text);
  text_deinit(&nodes);
  text_deinit(&outputs);
  return g;
}

typedef struct Tensors { // named
  size_t count;
  ng_tensor *items;
  char (*names)[NAME_BYTES];
} Tensors;

static Tensors tensors_of(ng_context *ctx, ng_graph *g, size_t count,
                          ng_tensor_info (*info_of)(const ng_graph *, size_t)) {
  Tensors t = {count, calloc(count, sizeof *t.items), calloc(count, sizeof *t.names)};
  assert_true(t.items && t.names);
  for (size_t i = 0; i < count; i++) {
    const ng_tensor_info info = info_of(g, i);
    snprintf(t.names[i], NAME_BYTES, "%s", info.name);
    assert_int_equal(ng_tensor_new(ctx, &info, &t.items[i]), NG_OK);
  }
  return t;
}

static void tensors_free(ng_context *ctx, Tensors *t) {
  for (size_t i = 0; i < t->count; i++) ng_tensor_free(ctx, &t->items[i]);
  free(t->items);
  free(t->names);
}

static ng_tensor *find(const Tensors *t, const char *name) {
  size_t i = 0;
  while (i < t->count && strcmp(t->names[i], name) != 0) i++;
  return i < t->count ? &t->items[i] : NULL;
}

static void fill(ng_tensor *t, const Literal *l) {
  for (size_t e = 0; t && e < l->count; e++)
    if (t->type == NG_S64) ((int64_t *)t->data)[e] = l->integers[e];
    else type_store((Type)t->type, t->data, e, l->numbers[e]);
}

// Fills the inputs of the rows, and the gradients of their outputs, as far as the graph takes them.
static void fill_rows(const Tensors *inputs) {
  Literal literals[MOST_IN_CASE];
  char name[NAME_BYTES];
  for (size_t i = 0; i < NGRADIENT_EDGES; i++) {
    const size_t n = read_literals(gradient_edges[i].inputs, literals);
    for (size_t k = 0; k < n; k++) {
      snprintf(name, sizeof name, "i%zu_%zu", i, k);
      fill(find(inputs, name), &literals[k]);
    }
    read_literals(gradient_edges[i].diff, literals);
    snprintf(name, sizeof name, "diff_o%zu", i);
    fill(find(inputs, name), literals);
  }
}

// Passes values that the forward graph computes to the gradient graph.
static void fill_saved(const Tensors *inputs, const Tensors *outputs) {
  for (size_t i = 0; i < inputs->count; i++) {
    const ng_tensor *saved = find(outputs, inputs->names[i]);
    if (saved) memcpy(inputs->items[i].data, saved->data, ng_tensor_nbytes(saved));
  }
}

// Relative to the number itself, however small it is. The sign of a zero does not matter.
static bool is_near(double got, double wanted) {
  const double tolerance = 4e-6;
  if (isnan(wanted) || isinf(wanted)) return isnan(wanted) ? isnan(got) : got == wanted;
  return fabs(got - wanted) <= tolerance * fabs(wanted);
}

// The number of elements of the gradient that are not as written.
static size_t compare(const char *how, const GradientEdge *row, size_t k, const ng_tensor *got, const Literal *wanted) {
  size_t nfailures = 0;
  if (!got != (strcmp(wanted->type, "none") == 0)) {
    print_error("%s {%s} of %s: input %zu has %s gradient\n", row->op, row->attributes, row->inputs, k,
                got ? "a" : "no");
    return 1;
  }
  for (size_t e = 0; got && e < wanted->count; e++) {
    const double number = ng_tensor_get(got, (int64_t)e);
    if (is_near(number, wanted->numbers[e])) continue;
    print_error("%s: %s {%s} of %s: gradient %zu, element %zu is %.9g, expected %.9g\n", how, row->op, row->attributes,
                row->inputs, k, e, number, wanted->numbers[e]);
    nfailures++;
  }
  return nfailures;
}

// The number of elements that are not as written.
static size_t compare_rows(const Tensors *outputs, const char *how) {
  Literal inputs[MOST_IN_CASE], gradients[MOST_IN_CASE];
  char name[NAME_BYTES];
  size_t nfailures = 0;
  for (size_t i = 0; i < NGRADIENT_EDGES; i++) {
    const size_t n = read_literals(gradient_edges[i].inputs, inputs);
    const size_t ngradients = read_literals(gradient_edges[i].gradients, gradients);
    size_t k = 0;
    for (size_t input = 0; input < n; input++) {
      if (!type_is_float(type_from_name(inputs[input].type))) continue;
      assert_true(k < ngradients);
      snprintf(name, sizeof name, "diff_i%zu_%zu", i, input);
      nfailures += compare(how, &gradient_edges[i], input, find(outputs, name), &gradients[k++]);
    }
    assert_int_equal(k, ngradients);
  }
  return nfailures;
}

// The inputs of the rows that have gradients, by name: statistics have some on request alone.
static size_t list_inputs(const ng_graph *g, const char **names) {
  Literal inputs[MOST_IN_CASE], gradients[MOST_IN_CASE];
  size_t count = 0;
  for (size_t i = 0, input = 0; i < NGRADIENT_EDGES; i++) {
    const size_t n = read_literals(gradient_edges[i].inputs, inputs);
    read_literals(gradient_edges[i].gradients, gradients);
    for (size_t own = 0, k = 0; own < n; own++, input++) {
      if (!type_is_float(type_from_name(inputs[own].type))) continue;
      if (strcmp(gradients[k++].type, "none") != 0) names[count++] = ng_graph_input(g, input).name;
    }
  }
  return count;
}

static void gradients_are_right_at_edges(void **state) {
  (void)state;
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_rows(ctx);
  if (!g) fail_msg("%s", ng_messages_text(ctx, 0));
  const char **wrt = calloc(ng_graph_input_count(g), sizeof *wrt);
  const ng_gradient_options options = {.wrt = wrt, .nwrt = list_inputs(g, wrt)};
  ng_graph *forward = ng_graph_gradient_forward(g, &options), *backward = ng_graph_gradient(g, &options);
  if (!forward || !backward) fail_msg("%s", ng_messages_text(ctx, 0));
  Tensors forward_inputs = tensors_of(ctx, forward, ng_graph_input_count(forward), ng_graph_input);
  Tensors forward_outputs = tensors_of(ctx, forward, ng_graph_output_count(forward), ng_graph_output);
  Tensors inputs = tensors_of(ctx, backward, ng_graph_input_count(backward), ng_graph_input);
  Tensors outputs = tensors_of(ctx, backward, ng_graph_output_count(backward), ng_graph_output);
  fill_rows(&forward_inputs);
  assert_int_equal(ng_interpret(forward, forward_inputs.items, forward_outputs.items, 0), NG_OK);
  fill_rows(&inputs);
  fill_saved(&inputs, &forward_outputs);
  assert_int_equal(ng_interpret(backward, inputs.items, outputs.items, 0), NG_OK);
  size_t nfailures = compare_rows(&outputs, "interpreter");
  for (size_t o = 0; o < outputs.count; o++)
    if (ng_tensor_nbytes(&outputs.items[o])) memset(outputs.items[o].data, 0xA5, ng_tensor_nbytes(&outputs.items[o]));
  ng_kernel *kernel = ng_compile(backward, NULL);
  if (!kernel) fail_msg("%s", ng_messages_text(ctx, 0));
  assert_int_equal(ng_kernel_run(kernel, inputs.items, outputs.items, 1), NG_OK);
  nfailures += compare_rows(&outputs, "compiled");
  assert_int_equal(nfailures, 0);
  ng_kernel_free(kernel);
  tensors_free(ctx, &forward_inputs);
  tensors_free(ctx, &forward_outputs);
  tensors_free(ctx, &inputs);
  tensors_free(ctx, &outputs);
  ng_graph_free(forward);
  free(wrt);
  ng_graph_free(backward);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void each_operator_with_a_gradient_has_a_row(void **state) {
  (void)state;
  size_t nmissing = 0;
  for (size_t id = 0; id < OP_COUNT; id++) {
    bool has_row = gradient_rules[id]->of_all.why || operators[id].traits & TRAIT_COLLECTIVE; // these: leaves_test.c
    for (size_t i = 0; i < NGRADIENT_EDGES; i++) has_row |= strcmp(gradient_edges[i].op, operators[id].name) == 0;
    if (has_row) continue;
    print_error("%s has no row\n", operators[id].name);
    nmissing++;
  }
  assert_int_equal(nmissing, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_operator_with_a_gradient_has_a_row),
      cmocka_unit_test(gradients_are_right_at_edges),
  };
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
