// The rewrite engine and the rules: which graphs match. Each rule has a graph on which it is applied, and
// which then gives the same bits, for all pairs of operands among NaN, infinities, both zeros and others.
#include "backends/interpreter/interpreter.h"
#include "frontend/yaml/yaml.h"
#include "ir/graph/verify.h"
#include "passes/pipeline.h"
#include "passes/rewrite/rewrite.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// x varies along the rows and y along the columns, so that all pairs of numbers meet; z is one of many shapes.
#define FILE_BEGIN                                                                                                     \
  "format: ngrad/1\nname: test\ninputs:\n- {name: x, type: f32, shape: [9, 9]}\n"                                      \
  "- {name: y, type: f32, shape: [9, 9]}\n- {name: row, type: f32, shape: [9]}\n"                                      \
  "- {name: half, type: bf16, shape: [9, 9]}\nconstants:\n"                                                            \
  "- {name: zero, type: f32, shape: [], value: 0}\n- {name: minus_zero, type: f32, shape: [], value: -0.0}\n"          \
  "- {name: one, type: f32, shape: [], value: 1}\n- {name: minus_one, type: f32, shape: [], value: -1}\n"              \
  "- {name: eight, type: f32, shape: [], value: -8}\n- {name: three, type: f32, shape: [], value: 3}\n"                \
  "- {name: two, type: f32, shape: [], value: 2}\n- {name: sevens, type: f32, shape: [9], value: 7}\n"                 \
  "- {name: ones, type: f32, shape: [9, 9], value: 1}\nnodes:\n"
#define NODE_OF(op, inputs, output) "- {op: " op ", inputs: [" inputs "], outputs: [" output "]}\n"
#define WITH(op, inputs, output, attributes)                                                                           \
  "- {op: " op ", inputs: [" inputs "], outputs: [" output "], attributes: {" attributes "}}\n"
#define OUTPUTS(names) "outputs: [" names "]\n"
// The result of a rule that leaves one of its operands needs another node to be an output: this one keeps all bits.
#define LAST NODE_OF("Subtract", "r, zero", "out") OUTPUTS("out")

static Graph *read_text(const char *text) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "test.yaml", text, strlen(text), NULL, &d);
  if (!g) fail_msg("%s", d.items[0].message);
  diagnostics_deinit(&d);
  return g;
}

static const double numbers[] = {0, -0.0, 1, -1, 2.5, -3, INFINITY, -INFINITY, NAN};
static const double ordinary[] = {0.25, 0.5, 1, 1.5, 2.5, 3, 4, 5, 6};

static void fill(const Value *v, Tensor *t, const double *from) {
  *t = tensor_like(v);
  assert_true(tensor_alloc(t, &system_allocator));
  int64_t n = tensor_nelems(t);
  for (int64_t i = 0; i < n; i++)
    type_store(t->type, t->data, (size_t)i, from[strcmp(v->name, "y") ? i / 9 % 9 : i % 9]);
}

static void interpret_on(const Graph *g, const double *from, Tensor *output) {
  Diagnostics d;
  Tensor inputs[8];
  diagnostics_init(&d, &system_allocator);
  for (size_t i = 0; i < g->ninputs; i++) fill(g->inputs[i], &inputs[i], from);
  *output = tensor_like(g->outputs[0]);
  assert_true(tensor_alloc(output, &system_allocator));
  assert_true(interpret(g, inputs, output, &(InterpreterOptions){.allocator = &system_allocator}, &d));
  for (size_t i = 0; i < g->ninputs; i++) tensor_free(&inputs[i], &system_allocator);
  diagnostics_deinit(&d);
}

// Rules that hold for every value keep each bit but a NaN's; others, a few digits of ordinary numbers.
static void must_be_alike(const Graph *before, const Graph *after, const Rule *rule) {
  Tensor expected, got;
  interpret_on(before, rule->is_fast_math ? ordinary : numbers, &expected);
  interpret_on(after, rule->is_fast_math ? ordinary : numbers, &got);
  assert_int_equal(tensor_nelems(&expected), tensor_nelems(&got));
  for (int64_t i = 0; i < tensor_nelems(&got); i++) {
    double e = type_load(expected.type, expected.data, (size_t)i), x = type_load(got.type, got.data, (size_t)i);
    bool is_same = (x == e && !signbit(x) == !signbit(e)) || (isnan(x) && isnan(e)) ||
                   (rule->is_fast_math && fabs(x - e) <= 1e-6 * fabs(e));
    if (!is_same) fail_msg("%s: element %lld is %g, expected %g", rule->name, (long long)i, x, e);
  }
  tensor_free(&expected, &system_allocator);
  tensor_free(&got, &system_allocator);
}

static const Rule *find_rule(const char *name) {
  for (size_t i = 0; i < npasses; i++)
    for (size_t k = 0; passes[i].rules && k < passes[i].rules->count; k++)
      if (strcmp(passes[i].rules->items[k].name, name) == 0) return &passes[i].rules->items[k];
  fail_msg("there is no rule %s", name);
  return NULL;
}

static PassContext context(Diagnostics *d) {
  diagnostics_init(d, &system_allocator);
  return (PassContext){.diagnostics = d, .allocator = &system_allocator, .fast_math = true};
}

// The operators that are left, in order.
static void print_operators(const Graph *g, Text *out) {
  for (size_t i = 0; i < g->nnodes; i++) text_format(out, "%s%s", i ? " " : "", g->nodes[i]->op->name);
}

typedef struct Case {
  const char *rule, *text, *left; // operators
} Case;

#define QUANTISED WITH("Quantize", "x", "{name: q, type: s8}", "scales: [1]")
#define MOVE_BACK WITH("StaticTranspose", "r", "out", "order: [1, 0]") OUTPUTS("out")
#define FLAT "shape: [81], special_zero: false"
#define SQUARE "shape: [9, 9], special_zero: false"
#define FLATTEN_BACK WITH("StaticReshape", "r", "out", SQUARE) OUTPUTS("out")

static const Case cases[] = {
    {"add-negative-zero", FILE_BEGIN NODE_OF("Add", "minus_zero, x", "r") LAST, "Subtract"},
    {"subtract-zero", FILE_BEGIN NODE_OF("Square", "x", "s") NODE_OF("Subtract", "s, zero", "r") OUTPUTS("r"),
     "Square"},
    {"multiply-one", FILE_BEGIN NODE_OF("Multiply", "one, x", "r") LAST, "Subtract"},
    {"ones-left", FILE_BEGIN NODE_OF("Multiply", "row, ones", "r") NODE_OF("Subtract", "r, x", "s") OUTPUTS("s"),
     "Subtract"},
    {"ones-right", FILE_BEGIN NODE_OF("Multiply", "row, ones", "r") NODE_OF("Subtract", "x, r", "s") OUTPUTS("s"),
     "Subtract"},
    {"divide-one", FILE_BEGIN NODE_OF("Divide", "x, one", "r") LAST, "Subtract"},
    {"power-one", FILE_BEGIN WITH("Pow", "x", "r", "beta: 1") LAST, "Subtract"},
    {"raised-to-one", FILE_BEGIN NODE_OF("Power", "x, one", "r") LAST, "Subtract"},
    {"raised-to-two", FILE_BEGIN NODE_OF("Power", "x, two", "r") OUTPUTS("r"), "Square"},
    {"raised-to-minus-one", FILE_BEGIN NODE_OF("Power", "x, minus_one", "r") OUTPUTS("r"), "Reciprocal"},
    {"maximum-itself", FILE_BEGIN NODE_OF("Maximum", "x, x", "r") LAST, "Subtract"},
    {"minimum-itself", FILE_BEGIN NODE_OF("Minimum", "x, x", "r") LAST, "Subtract"},
    {"select-either", FILE_BEGIN NODE_OF("GreaterEqual", "x, y", "c") NODE_OF("Select", "c, y, y", "r") LAST,
     "Subtract"},
    {"absolute-absolute", FILE_BEGIN NODE_OF("Abs", "x", "a") NODE_OF("Abs", "a", "r") LAST, "Abs Subtract"},
    {"round-round", FILE_BEGIN NODE_OF("Round", "x", "a") NODE_OF("Round", "a", "r") LAST, "Round Subtract"},
    {"multiply-itself", FILE_BEGIN NODE_OF("Multiply", "x, x", "r") LAST, "Square Subtract"},
    {"power-two", FILE_BEGIN WITH("Pow", "x", "r", "beta: 2") LAST, "Square Subtract"},
    {"power-minus-one", FILE_BEGIN WITH("Pow", "x", "r", "beta: -1") LAST, "Reciprocal Subtract"},
    {"one-divided", FILE_BEGIN NODE_OF("Divide", "one, x", "r") LAST, "Reciprocal Subtract"},
    {"add-negated", FILE_BEGIN NODE_OF("Multiply", "minus_one, y", "n") NODE_OF("Add", "n, x", "r") LAST,
     "Subtract Subtract"},
    {"subtract-negated", FILE_BEGIN NODE_OF("Multiply", "y, minus_one", "n") NODE_OF("Subtract", "x, n", "r") LAST,
     "Add Subtract"},
    {"square-negated", FILE_BEGIN NODE_OF("Multiply", "x, minus_one", "n") NODE_OF("Square", "n", "r") LAST,
     "Square Subtract"},
    {"square-absolute", FILE_BEGIN NODE_OF("Abs", "x", "n") NODE_OF("Square", "n", "r") LAST, "Square Subtract"},
    {"divide-power-of-two", FILE_BEGIN NODE_OF("Divide", "x, eight", "r") LAST, "Multiply Subtract"},
    {"add-zero", FILE_BEGIN NODE_OF("Add", "x, zero", "r") LAST, "Subtract"},
    {"multiply-zero", FILE_BEGIN NODE_OF("Multiply", "zero, x", "r") LAST, "Subtract"},
    {"subtract-itself", FILE_BEGIN NODE_OF("Subtract", "x, x", "r") LAST, "Subtract"},
    {"divide-itself", FILE_BEGIN NODE_OF("Divide", "x, x", "r") LAST, "Subtract"},
    {"reciprocal-reciprocal", FILE_BEGIN NODE_OF("Reciprocal", "x", "n") NODE_OF("Reciprocal", "n", "r") LAST,
     "Subtract"},
    {"multiply-reciprocal", FILE_BEGIN NODE_OF("Reciprocal", "y", "n") NODE_OF("Multiply", "n, x", "r") LAST,
     "Divide Subtract"},
    {"square-root-squared", FILE_BEGIN NODE_OF("Sqrt", "x", "n") NODE_OF("Square", "n", "r") LAST, "Subtract"},
    {"multiply-constants", FILE_BEGIN NODE_OF("Multiply", "three, x", "n") NODE_OF("Multiply", "eight, n", "r") LAST,
     "Multiply Subtract"},
    {"power-half", FILE_BEGIN WITH("Pow", "x", "r", "beta: 0.5") LAST, "Sqrt Subtract"},
    {"logarithm-exponential", FILE_BEGIN NODE_OF("Exp", "x", "n") NODE_OF("Log", "n", "r") LAST, "Subtract"},
    {"cast-back",
     FILE_BEGIN NODE_OF("TypeCast", "half", "{name: n, type: f32}") NODE_OF("TypeCast", "n", "{name: m, type: bf16}")
         NODE_OF("Abs", "m", "r") OUTPUTS("r"),
     "Abs"},
    {"reshape-reshape",
     FILE_BEGIN WITH("StaticReshape", "x", "n", FLAT)
         WITH("StaticReshape", "n", "r", "shape: [3, 27], special_zero: false") OUTPUTS("r"),
     "StaticReshape"},
    {"reshape-nothing", FILE_BEGIN WITH("StaticReshape", "x", "r", SQUARE) LAST, "Subtract"},
    {"transpose-nothing", FILE_BEGIN WITH("StaticTranspose", "x", "r", "order: [0, -1]") LAST, "Subtract"},
    {"transpose-to-reshape",
     FILE_BEGIN WITH("StaticReshape", "row", "n", "shape: [9, 1], special_zero: false")
         WITH("StaticTranspose", "n", "r", "order: [1, 0]") OUTPUTS("r"),
     "StaticReshape StaticReshape"},
    {"transpose-transpose",
     FILE_BEGIN WITH("StaticReshape", "x", "n", "shape: [3, 3, 9], special_zero: false")
         WITH("StaticTranspose", "n", "m", "order: [2, 0, 1]") WITH("StaticTranspose", "m", "r", "order: [1, 0, 2]")
             OUTPUTS("r"),
     "StaticReshape StaticTranspose"},
    {"sink-transpose", FILE_BEGIN WITH("StaticTranspose", "x", "n", "order: [1, 0]") NODE_OF("Abs", "n", "r") MOVE_BACK,
     "Abs StaticTranspose StaticTranspose"},
    {"sink-transpose", // one scale belongs to no axis
     FILE_BEGIN QUANTISED WITH("StaticTranspose", "q", "n", "order: [1, 0]")
         WITH("Dequantize", "n", "r", "scales: [0.5]") MOVE_BACK,
     "Quantize Dequantize StaticTranspose StaticTranspose"},
    {"sink-reshape", FILE_BEGIN WITH("StaticReshape", "x", "n", FLAT) NODE_OF("Abs", "n", "r") FLATTEN_BACK,
     "Abs StaticReshape StaticReshape"},
    {"sink-transposes",
     FILE_BEGIN WITH("StaticTranspose", "x", "n", "order: [1, 0]") WITH("StaticTranspose", "y", "m", "order: []")
         NODE_OF("Add", "n, m", "r") MOVE_BACK,
     "Add StaticTranspose StaticTranspose"},
    {"sink-reshapes",
     FILE_BEGIN WITH("StaticReshape", "x", "n", FLAT) WITH("StaticReshape", "y", "m", FLAT)
         NODE_OF("Divide", "n, m", "r") FLATTEN_BACK,
     "Divide StaticReshape StaticReshape"},
    {"sink-transpose-before-number",
     FILE_BEGIN WITH("StaticTranspose", "x", "n", "order: [1, 0]") NODE_OF("Subtract", "n, three", "r") MOVE_BACK,
     "Subtract StaticTranspose StaticTranspose"},
    {"sink-reshape-before-number",
     FILE_BEGIN WITH("StaticReshape", "x", "n", FLAT) NODE_OF("Subtract", "n, three", "r") FLATTEN_BACK,
     "Subtract StaticReshape StaticReshape"},
    {"sink-transpose-after-number",
     FILE_BEGIN WITH("StaticTranspose", "x", "n", "order: [1, 0]") NODE_OF("Subtract", "three, n", "r") MOVE_BACK,
     "Subtract StaticTranspose StaticTranspose"},
    {"sink-reshape-after-number",
     FILE_BEGIN WITH("StaticReshape", "x", "n", FLAT) NODE_OF("Subtract", "three, n", "r") FLATTEN_BACK,
     "Subtract StaticReshape StaticReshape"},
    {"broadcast-left",
     FILE_BEGIN WITH("StaticReshape", "row", "n", "shape: [1, 9], special_zero: false") NODE_OF("Subtract", "n, x", "r")
         OUTPUTS("r"),
     "Subtract"},
    {"broadcast-right",
     FILE_BEGIN WITH("StaticReshape", "row", "n", "shape: [1, 1, 9], special_zero: false")
         WITH("StaticReshape", "x", "m", "shape: [1, 9, 9], special_zero: false") NODE_OF("Divide", "m, n", "r")
             OUTPUTS("r"),
     "StaticReshape Divide"},
    {"spread-number-left",
     FILE_BEGIN NODE_OF("Divide", "three, sevens", "n") WITH(
         "StaticReshape", "n", "m", "shape: [9, 1], special_zero: false") NODE_OF("Subtract", "m, x", "r") OUTPUTS("r"),
     "Divide Subtract"},
    {"spread-number-right",
     FILE_BEGIN NODE_OF("Divide", "three, sevens", "n") WITH(
         "StaticReshape", "n", "m", "shape: [9, 1], special_zero: false") NODE_OF("Subtract", "x, m", "r") OUTPUTS("r"),
     "Divide Subtract"},
};
enum { NCASES = sizeof cases / sizeof *cases };

static void each_rule_keeps_what_is_computed(void **state) {
  (void)state;
  for (size_t i = 0; i < NCASES; i++) {
    const Rule *rule = find_rule(cases[i].rule);
    const Rules one = {rule, 1};
    Diagnostics d;
    PassContext c = context(&d);
    Graph *before = read_text(cases[i].text), *after = read_text(cases[i].text);
    if (!rewrite_graph(after, &c, &one)) fail_msg("rule %s does not match the graph of its case", rule->name);
    if (!graph_verify(after, &d)) fail_msg("%s: %s", rule->name, d.items[0].message);
    Text left;
    text_init(&left, &system_allocator);
    print_operators(after, &left);
    if (strcmp(text_string(&left), cases[i].left) != 0)
      fail_msg("rule %s gives %s, expected %s", rule->name, text_string(&left), cases[i].left);
    text_deinit(&left);
    must_be_alike(before, after, rule);
    assert_false(rewrite_graph(after, &c, &one)); // nothing is left to do
    graph_free(before);
    graph_free(after);
    diagnostics_deinit(&d);
  }
}

static void each_rule_has_a_case(void **state) {
  (void)state;
  for (size_t i = 0; i < npasses; i++) {
    for (size_t k = 0; passes[i].rules && k < passes[i].rules->count; k++) {
      size_t n = 0;
      while (n < NCASES && strcmp(cases[n].rule, passes[i].rules->items[k].name) != 0) n++;
      if (n == NCASES) fail_msg("%s has no case", passes[i].rules->items[k].name);
    }
  }
}

// Graphs that no rule may change without --fast-math.
static void what_only_looks_like_an_identity_stays(void **state) {
  (void)state;
#define KEPT NODE_OF("Reciprocal", "r", "out") OUTPUTS("out")
#define NINE "[1, 2, 3, 4, 5, 6, 7, 8, 9]"
  static const char *const texts[] = {
      FILE_BEGIN NODE_OF("Add", "x, zero", "r") KEPT,            // -0 + 0 is 0
      FILE_BEGIN NODE_OF("Subtract", "x, minus_zero", "r") KEPT, // likewise
      FILE_BEGIN NODE_OF("Multiply", "x, zero", "r") KEPT,       // NaN, infinities, -0
      FILE_BEGIN NODE_OF("Subtract", "x, x", "r") KEPT,          // NaN for infinities
      FILE_BEGIN NODE_OF("Divide", "x, x", "r") KEPT,
      FILE_BEGIN NODE_OF("Divide", "x, three", "r") KEPT, // 1/3 is rounded
      FILE_BEGIN WITH("Pow", "x", "r", "beta: 0.5") KEPT, // -0 and -infinity
      FILE_BEGIN NODE_OF("Maximum", "x, y", "r") KEPT,
      FILE_BEGIN NODE_OF("Multiply", "x, one", "r") OUTPUTS("r"), // an input cannot have an output's name
      FILE_BEGIN NODE_OF("TypeCast", "x", "{name: n, type: bf16}") NODE_OF("TypeCast", "n", "{name: r, type: f32}")
          KEPT,
      FILE_BEGIN WITH("StaticTranspose", "x", "n", "order: [1, 0]") NODE_OF("Abs", "n", "r") KEPT, // meets no other
      FILE_BEGIN WITH("StaticReshape", "row", "n", "shape: [9, 1], special_zero: false") NODE_OF("Add", "n, x", "r")
          KEPT, // a column
      // The scales belong to an axis of the moved tensor.
      FILE_BEGIN QUANTISED WITH("StaticTranspose", "q", "n", "order: [1, 0]")
          WITH("Dequantize", "n", "r", "qtype: per_channel, axis: 1, scales: " NINE) MOVE_BACK,
      FILE_BEGIN QUANTISED WITH("StaticReshape", "q", "n", "shape: [9, 1, 9], special_zero: false")
          WITH("Dequantize", "n", "r", "qtype: per_channel, axis: 0, scales: " NINE) FLATTEN_BACK,
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    Graph *g = read_text(texts[i]);
    Diagnostics d;
    PassContext c = context(&d);
    c.fast_math = false;
    for (size_t k = 0; k < npasses; k++)
      if (passes[k].rules && rewrite_graph(g, &c, passes[k].rules)) fail_msg("%s changed %s", passes[k].name, texts[i]);
    graph_free(g);
    diagnostics_deinit(&d);
  }
}

// The matcher

static Value *value_named(const Graph *g, const char *name) {
  for (size_t i = 0; i < g->nvalues; i++)
    if (strcmp(g->values[i]->name, name) == 0) return g->values[i];
  fail_msg("the graph has no value %s", name);
  return NULL;
}

static bool fits(const Rule *rule, Graph *g, const char *root, Match *m) {
  return rule_matches(rule, g, value_named(g, root), m);
}

static void operands_of_commutative_operators_match_in_either_order(void **state) {
  (void)state;
  const Rule sum = {.pattern = NODE(Add, NODE(Abs, X), Y)}, difference = {.pattern = NODE(Subtract, NODE(Abs, X), Y)};
  Graph *g = read_text(FILE_BEGIN NODE_OF("Abs", "x", "a") NODE_OF("Add", "y, a", "s") NODE_OF("Add", "a, y", "t")
                           NODE_OF("Subtract", "y, a", "d") OUTPUTS("s, t, d"));
  Match m;
  assert_true(fits(&sum, g, "s", &m));
  assert_ptr_equal(m.values[0], value_named(g, "x"));
  assert_ptr_equal(m.values[1], value_named(g, "y"));
  assert_true(fits(&sum, g, "t", &m));
  assert_false(fits(&difference, g, "d", &m));
  assert_false(fits(&sum, g, "a", &m));
  graph_free(g);
}

static void a_letter_is_one_value(void **state) {
  (void)state;
  const Rule rule = {.pattern = NODE(Add, NODE(Abs, X), NODE(Square, X))};
  Graph *g = read_text(FILE_BEGIN NODE_OF("Abs", "x", "a") NODE_OF("Square", "x", "b") NODE_OF("Square", "y", "c")
                           NODE_OF("Add", "b, a", "s") NODE_OF("Add", "c, a", "t") OUTPUTS("s, t"));
  Match m;
  assert_true(fits(&rule, g, "s", &m));
  assert_false(fits(&rule, g, "t", &m));
  graph_free(g);
}

// x*y + y*x': the first operand of the first product binds a symbol that matches only if the operands of the second or
// of the first product are exchanged. Each graph matches with one combination of operand orders.
static void the_matcher_goes_back_on_every_choice(void **state) {
  (void)state;
  const Rule rule = {.pattern = NODE(Add, NODE(Multiply, X, Y), NODE(Multiply, X, Z))};
  static const char *const products[] = {"x, y", "y, x"}, *const others[] = {"x, row", "row, x"};
  for (int i = 0; i < 8; i++) {
    char text[2048];
    snprintf(text, sizeof text,
             FILE_BEGIN "- {op: Multiply, inputs: [%s], outputs: [p]}\n- {op: Multiply, inputs: [%s], outputs: [q]}\n"
                        "- {op: Add, inputs: [%s], outputs: [s]}\noutputs: [s]\n",
             products[i & 1], others[i >> 1 & 1], i >> 2 ? "p, q" : "q, p");
    Graph *g = read_text(text);
    Match m;
    assert_true(fits(&rule, g, "s", &m));
    assert_ptr_equal(m.values[0], value_named(g, "x"));
    assert_int_equal(m.nmatched, 3);
    graph_free(g);
  }
}

static bool y_is_named_row(Match *m) {
  return strcmp(m->values[1]->name, "row") == 0;
}

static void a_condition_that_fails_is_gone_back_on_too(void **state) {
  (void)state;
  const Rule rule = {.pattern = NODE(Add, X, Y), .condition = y_is_named_row};
  Graph *g = read_text(FILE_BEGIN NODE_OF("Add", "x, row", "a") NODE_OF("Add", "row, x", "b")
                           NODE_OF("Add", "x, y", "c") OUTPUTS("a, b, c"));
  Match m;
  assert_true(fits(&rule, g, "a", &m));
  assert_true(fits(&rule, g, "b", &m));
  assert_ptr_equal(m.values[0], value_named(g, "x"));
  assert_false(fits(&rule, g, "c", &m));
  graph_free(g);
}

static void a_node_for_this_match_only_has_no_other_user(void **state) {
  (void)state;
  const Rule rule = {.pattern = NODE(Square, ONLY(1, Abs, X))};
  Graph *g = read_text(FILE_BEGIN NODE_OF("Abs", "x", "a") NODE_OF("Square", "a", "s") NODE_OF("Abs", "y", "b")
                           NODE_OF("Square", "b", "t") NODE_OF("Exp", "b", "u") NODE_OF("Abs", "row", "c")
                               NODE_OF("Square", "c", "v") OUTPUTS("s, t, u, v, c"));
  Match m;
  assert_true(fits(&rule, g, "s", &m));
  assert_false(fits(&rule, g, "t", &m));
  assert_false(fits(&rule, g, "v", &m)); // the graph's output is a user
  graph_free(g);
}

static void numbers_have_a_sign_and_constants_may_be_any(void **state) {
  (void)state;
  const Rule zero = {.pattern = NODE(Add, X, NUMBER(0))}, minus = {.pattern = NODE(Add, X, NUMBER(-0.0))},
             any = {.pattern = NODE(Add, X, C)};
  Graph *g = read_text(FILE_BEGIN NODE_OF("Add", "x, zero", "a") NODE_OF("Add", "minus_zero, x", "b")
                           NODE_OF("Add", "x, y", "c") OUTPUTS("a, b, c"));
  Match m;
  assert_true(fits(&zero, g, "a", &m));
  assert_false(fits(&zero, g, "b", &m));
  assert_false(fits(&minus, g, "a", &m));
  assert_true(fits(&minus, g, "b", &m));
  assert_true(fits(&any, g, "b", &m));
  assert_ptr_equal(m.values[3], value_named(g, "minus_zero"));
  assert_false(fits(&any, g, "c", &m));
  graph_free(g);
}

// Graphs

static void outputs_keep_their_names(void **state) {
  (void)state;
  Graph *g = read_text(FILE_BEGIN NODE_OF("Abs", "x", "a") NODE_OF("Multiply", "a, one", "out")
                           NODE_OF("Add", "a, y", "b") OUTPUTS("out, b"));
  const Rules one = {find_rule("multiply-one"), 1};
  Diagnostics d;
  PassContext c = context(&d);
  assert_true(rewrite_graph(g, &c, &one));
  assert_true(graph_verify(g, &d));
  assert_int_equal(g->nnodes, 2);
  assert_string_equal(g->outputs[0]->name, "out");
  assert_ptr_equal(g->outputs[0]->producer->op, &operators[OP_Abs]);
  graph_free(g);
  diagnostics_deinit(&d);
}

static void new_nodes_know_their_lines(void **state) {
  (void)state;
  Graph *g = read_text(FILE_BEGIN NODE_OF("Multiply", "y, minus_one", "n") NODE_OF("Exp", "x", "e")
                           NODE_OF("Subtract", "e, n", "r") OUTPUTS("r"));
  const Rules one = {find_rule("subtract-negated"), 1};
  Diagnostics d;
  PassContext c = context(&d);
  assert_true(rewrite_graph(g, &c, &one));
  Text text;
  text_init(&text, &system_allocator);
  node_print_lines(g->outputs[0]->producer, &text);
  assert_string_equal(text_string(&text), "lines 19, 21");
  text_deinit(&text);
  graph_free(g);
  diagnostics_deinit(&d);
}

static void rules_print_as_they_read(void **state) {
  (void)state;
  static const char *const expected[][2] = {{"add-negated", "Add(x, Multiply(y, -1.0)) -> Subtract(x, y)"},
                                            {"power-two", "Pow[beta: 2.0](x) -> Square(x)"},
                                            {"divide-power-of-two", "Divide(x, c) -> Multiply(x, k)"},
                                            {"sink-transpose", "op(StaticTranspose(x)) -> StaticTranspose(op(x))"}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    Text text;
    text_init(&text, &system_allocator);
    rule_print(find_rule(expected[i][0]), &text);
    assert_string_equal(text_string(&text), expected[i][1]);
    text_deinit(&text);
  }
}

static void rules_can_be_left_out(void **state) {
  (void)state;
  static const char *const disabled[] = {"multiply-one"};
  Graph *g = read_text(FILE_BEGIN NODE_OF("Multiply", "x, one", "r") NODE_OF("Abs", "r", "s") OUTPUTS("s"));
  const Rules one = {find_rule("multiply-one"), 1};
  Diagnostics d;
  PassContext c = context(&d);
  c.disabled = disabled;
  c.ndisabled = 1;
  assert_false(rewrite_graph(g, &c, &one));
  c.ndisabled = 0;
  assert_true(rewrite_graph(g, &c, &one));
  graph_free(g);
  diagnostics_deinit(&d);
}

// Rules that undo each other come to an end, and the graph is whole.
static void rewriting_ends(void **state) {
  (void)state;
  const Rule rules[] = {{.name = "there", .pattern = NODE(Add, X, Y), .replacement = NODE(Multiply, X, Y)},
                        {.name = "back", .pattern = NODE(Multiply, X, Y), .replacement = NODE(Add, X, Y)}};
  const Rules both = {rules, 2};
  Graph *g = read_text(FILE_BEGIN NODE_OF("Add", "x, y", "r") OUTPUTS("r"));
  Diagnostics d;
  PassContext c = context(&d);
  assert_true(rewrite_graph(g, &c, &both));
  assert_true(graph_verify(g, &d));
  assert_int_equal(g->nnodes, 1);
  graph_free(g);
  diagnostics_deinit(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_rule_keeps_what_is_computed),
      cmocka_unit_test(each_rule_has_a_case),
      cmocka_unit_test(what_only_looks_like_an_identity_stays),
      cmocka_unit_test(operands_of_commutative_operators_match_in_either_order),
      cmocka_unit_test(a_letter_is_one_value),
      cmocka_unit_test(the_matcher_goes_back_on_every_choice),
      cmocka_unit_test(a_condition_that_fails_is_gone_back_on_too),
      cmocka_unit_test(a_node_for_this_match_only_has_no_other_user),
      cmocka_unit_test(numbers_have_a_sign_and_constants_may_be_any),
      cmocka_unit_test(outputs_keep_their_names),
      cmocka_unit_test(new_nodes_know_their_lines),
      cmocka_unit_test(rules_print_as_they_read),
      cmocka_unit_test(rules_can_be_left_out),
      cmocka_unit_test(rewriting_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
