// Every operator on literal numbers: interpreted, in scalar code and for the best ISA here. All cases are one graph.
// The test also checks that each operator has cases, including cases that operators often get wrong.
#include "frontend/api/ngrad.h"
#include "ir/operators/infer.h"
#include "ir/operators/operator.h"
#include "ir/operators/rules.h"
#include "tests/unit/literals.h"
#include "tests/unit/operator_cases.h"
#include "tests/unit/quick_compiler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Indices reach their operator through an addition, so that the graph computes them: runs refuse inputs with indices of
// what does not exist.
static bool is_computed(const OperatorCase *c, size_t k, const Literal *l) {
  const Operator *op = operator_find(c->op).op;
  return op && k < op->ninputs && op->inputs[k].is_index && strcmp(l->type, "s32") == 0;
}

// The graph of all cases, whose operands are called i1_0, i1_1, o1_0…
static char *graph_text(void) {
  Literal literals[MOST_IN_CASE];
  Text inputs, nodes, outputs;
  text_init(&inputs, &system_allocator);
  text_init(&nodes, &system_allocator);
  text_init(&outputs, &system_allocator);
  for (size_t i = 0; i < NOPERATOR_CASES; i++) {
    const OperatorCase *c = &operator_cases[i];
    size_t n = read_literals(c->inputs, literals);
    for (size_t k = 0; k < n; k++) {
      text_format(&inputs, "  - {name: i%zu_%zu, type: %s, shape: %s}\n", i, k, literals[k].type, literals[k].shape);
      if (is_computed(c, k, &literals[k]))
        text_format(&nodes, "  - {op: Add, inputs: [i%zu_%zu, %s_five], outputs: [c%zu_%zu]}\n", i, k, literals[k].type,
                    i, k);
    }
    text_format(&nodes, "  - {op: %s, attributes: {%s}, inputs: [", c->op, c->attributes);
    for (size_t k = 0; k < n; k++)
      text_format(&nodes, "%s%c%zu_%zu", k ? ", " : "", is_computed(c, k, &literals[k]) ? 'c' : 'i', i, k);
    text_add_string(&nodes, "], outputs: [");
    n = read_literals(c->outputs, literals);
    for (size_t k = 0; k < n; k++) {
      text_format(&nodes, "%s{name: o%zu_%zu, type: %s, shape: %s}", k ? ", " : "", i, k, literals[k].type,
                  literals[k].shape);
      text_format(&outputs, "%so%zu_%zu", outputs.nbytes ? ", " : "", i, k);
    }
    text_add_string(&nodes, "]}\n");
  }
  size_t nbytes = inputs.nbytes + nodes.nbytes + outputs.nbytes + 200;
  char *text = malloc(nbytes);
  assert_non_null(text);
  snprintf(text, nbytes,
           "format: ngrad/1\ninputs:\n%sconstants:\n  - {name: s32_five, type: s32, shape: [], value: "
           "5}\nnodes:\n%soutputs: [%s]\n",
           text_string(&inputs), text_string(&nodes), text_string(&outputs));
  text_deinit(&inputs);
  text_deinit(&nodes);
  text_deinit(&outputs);
  return text;
}

typedef struct Cases {
  ng_context *ctx;
  ng_graph *graph;
  size_t ninputs, noutputs;
  ng_tensor *inputs, *outputs;
} Cases;

static void cases_init(Cases *c) {
  char *text = graph_text();
  Literal literals[MOST_IN_CASE];
  *c = (Cases){.ctx = ng_context_new(NULL)};
  c->graph = ng_graph_read(c->ctx, "cases", text, strlen(text), NULL);
  free(text);
  if (!c->graph) fail_msg("%s", ng_messages_text(c->ctx, 0));
  c->ninputs = ng_graph_input_count(c->graph);
  c->noutputs = ng_graph_output_count(c->graph);
  c->inputs = calloc(c->ninputs, sizeof *c->inputs);
  c->outputs = calloc(c->noutputs, sizeof *c->outputs);
  assert_true(c->inputs && c->outputs);
  for (size_t i = 0, at = 0; i < NOPERATOR_CASES; i++) {
    size_t n = read_literals(operator_cases[i].inputs, literals);
    for (size_t k = 0; k < n; k++, at++) {
      ng_tensor_info info = ng_graph_input(c->graph, at);
      assert_int_equal(ng_tensor_new(c->ctx, &info, &c->inputs[at]), NG_OK);
      for (size_t e = 0; e < literals[k].count; e++) {
        if (info.type == NG_S64 || info.type == NG_U64) {
          ((int64_t *)c->inputs[at].data)[e] = literals[k].integers[e];
          continue;
        }
        type_store((Type)info.type, c->inputs[at].data, e,
                   literals[k].numbers[e] - (is_computed(&operator_cases[i], k, &literals[k]) ? 5 : 0));
      }
    }
  }
  for (size_t at = 0; at < c->noutputs; at++) {
    ng_tensor_info info = ng_graph_output(c->graph, at);
    assert_int_equal(ng_tensor_new(c->ctx, &info, &c->outputs[at]), NG_OK);
  }
}

static void cases_deinit(Cases *c) {
  for (size_t i = 0; i < c->ninputs; i++) ng_tensor_free(c->ctx, &c->inputs[i]);
  for (size_t i = 0; i < c->noutputs; i++) ng_tensor_free(c->ctx, &c->outputs[i]);
  free(c->inputs);
  free(c->outputs);
  ng_graph_free(c->graph);
  ng_context_free(c->ctx);
}

// Zeros are compared with their sign.
static bool is_near(double got, double wanted, double tolerance) {
  if (isnan(wanted) || isinf(wanted)) return isnan(wanted) ? isnan(got) : got == wanted;
  if (wanted == 0 && (got == 0 || tolerance == 0)) return got == 0 && !signbit(got) == !signbit(wanted);
  return fabs(got - wanted) <= tolerance * fmax(fabs(wanted), 1);
}

static void must_be_as_written(const Cases *c, const char *how, double tolerance) {
  Literal literals[MOST_IN_CASE];
  size_t nfailures = 0;
  for (size_t i = 0, at = 0; i < NOPERATOR_CASES; i++) {
    const OperatorCase *row = &operator_cases[i];
    size_t n = read_literals(row->outputs, literals);
    for (size_t k = 0; k < n; k++, at++) // in f32, compiled code may round a zero, and its sign, away
      for (size_t e = 0; e < literals[k].count; e++) {
        double got = ng_tensor_get(&c->outputs[at], (int64_t)e), wanted = literals[k].numbers[e];
        Type type = (Type)c->outputs[at].type;
        bool is_exact = type != TYPE_F32 || (wanted == 0 && tolerance < 1e-6);
        if (TYPES_64_BITS & TYPE_BIT(type)
                ? ((const int64_t *)c->outputs[at].data)[e] == literals[k].integers[e]
                : is_near(got, is_exact ? wanted : (double)(float)wanted, is_exact ? 0 : tolerance))
          continue;
        print_error("%s: %s {%s} of %s: output %zu, element %zu is %.9g, expected %.9g\n", how, row->op,
                    row->attributes, row->inputs, k, e, got, wanted);
        nfailures++;
      }
  }
  assert_int_equal(nfailures, 0);
}

static void results_are_those_of_the_definitions(void **state) {
  (void)state;
  Cases c;
  cases_init(&c);
  assert_int_equal(ng_interpret(c.graph, c.inputs, c.outputs, 0), NG_OK);
  must_be_as_written(&c, "interpreter", 0x1p-23);
  static const char *const isas[] = {NULL, "scalar"};
  for (int i = 0; i < 2; i++) {
    for (size_t o = 0; o < c.noutputs; o++)
      if (ng_tensor_nbytes(&c.outputs[o])) memset(c.outputs[o].data, 0xA5, ng_tensor_nbytes(&c.outputs[o]));
    ng_kernel *kernel = ng_compile(c.graph, &(ng_options){.isa = isas[i]});
    if (!kernel) fail_msg("%s", ng_messages_text(c.ctx, 0));
    assert_int_equal(ng_kernel_run(kernel, c.inputs, c.outputs, 1), NG_OK);
    must_be_as_written(&c, isas[i] ? isas[i] : "compiled", 4e-6);
    ng_kernel_free(kernel);
  }
  cases_deinit(&c);
}

// The properties of an operator's case.
enum {
  HAS_NAN = 1 << 0,
  HAS_INFINITY = 1 << 1,
  HAS_NEGATIVE_ZERO = 1 << 2,
  HAS_NO_ELEMENTS = 1 << 3,
  HAS_EXTENT_1 = 1 << 4, // in two or more axes, as one axis of extent 1 is a number
  HAS_LEFT_SPREAD = 1 << 5,
  HAS_RIGHT_SPREAD = 1 << 6,
  EVERYWHERE = HAS_NAN | HAS_INFINITY | HAS_NEGATIVE_ZERO | HAS_NO_ELEMENTS | HAS_EXTENT_1,
  WHERE_BROADCAST = HAS_LEFT_SPREAD | HAS_RIGHT_SPREAD,
};
static const char *const names_of_features[] = {
    "NaN", "an infinity", "-0", "no elements", "an axis of extent 1", "the first operand spread", "the last spread"};

// Whether numpy spreads the first over the second along some axis.
static bool is_spread(const Shape *from, const Shape *to) {
  for (int i = 1; i <= to->rank; i++) {
    int64_t own = i <= from->rank ? from->extent[from->rank - i].value : 1;
    if (own == 1 && to->extent[to->rank - i].value > 1) return true;
  }
  return false;
}

static unsigned features_of(const OperatorCase *c) {
  Literal in[MOST_IN_CASE];
  size_t n = read_literals(c->inputs, in);
  unsigned features = 0;
  for (size_t k = 0; k < n; k++) {
    for (size_t e = 0; e < in[k].count; e++) {
      double x = in[k].numbers[e];
      features |=
          (isnan(x) ? HAS_NAN : 0) | (isinf(x) ? HAS_INFINITY : 0) | (x == 0 && signbit(x) ? HAS_NEGATIVE_ZERO : 0);
    }
    features |= shape_nelems(&in[k].extents) == 0 ? HAS_NO_ELEMENTS : 0;
    for (int i = 0; i < in[k].extents.rank && in[k].extents.rank > 1; i++)
      features |= in[k].extents.extent[i].value == 1 ? HAS_EXTENT_1 : 0;
  }
  if (n > 1 && is_spread(&in[n - 2].extents, &in[n - 1].extents)) features |= HAS_LEFT_SPREAD;
  if (n > 1 && is_spread(&in[n - 1].extents, &in[n - 2].extents)) features |= HAS_RIGHT_SPREAD;
  return features;
}

static bool broadcasts(const Operator *op) {
  return op->infer == infer_binary || op->infer == infer_binary_arithmetic;
}

static bool takes_floats(const Operator *op) {
  bool takes = false;
  for (uint32_t i = 0; i < op->ninputs; i++)
    for (const TypeVariable *t = op->types; t->letter; t++)
      takes |= t->letter == op->inputs[i].type && (t->types & TYPES_FLOAT);
  return takes;
}

static void no_operator_lacks_a_case_of_what_goes_wrong(void **state) {
  (void)state;
  size_t nmissing = 0;
  for (size_t id = 0; id < OP_COUNT; id++) {
    const Operator *op = &operators[id];
    if (op->traits & TRAIT_COLLECTIVE) continue; // leaves_test.c
    unsigned wanted = EVERYWHERE | (broadcasts(op) ? WHERE_BROADCAST : 0), found = 0;
    if (!takes_floats(op)) wanted &= ~(unsigned)(HAS_NAN | HAS_INFINITY | HAS_NEGATIVE_ZERO);
    for (size_t i = 0; i < NOPERATOR_CASES; i++)
      if (strcmp(operator_cases[i].op, op->name) == 0) found |= features_of(&operator_cases[i]);
    for (int bit = 0; wanted >> bit; bit++) {
      if (!((wanted & ~found) >> bit & 1)) continue;
      print_error("%s: no case of %s\n", op->name, names_of_features[bit]);
      nmissing++;
    }
  }
  assert_int_equal(nmissing, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_operator_lacks_a_case_of_what_goes_wrong),
      cmocka_unit_test(results_are_those_of_the_definitions),
  };
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
