// The list of what happens to the gradient by each operand (gradient_by_input, gradient_of_result) against finite
// differences. For each operand of each operator a graph is made in which the operand depends on an input that reaches
// an output by another path, too: a gradient that is left out is then wrong, not absent.
#include "frontend/api/ngrad.h"
#include "frontend/yaml/yaml.h"
#include "passes/gradient/gradient.h"
#include "tests/random_graph.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_NELEMS = 64, MOST_INPUTS = MAX_OPERANDS + 1 };

typedef struct Drawn { // a node of an operator, in a graph of its own
  RandomGraph r;
  RandomDraft draft;
  Diagnostics diagnostics;
} Drawn;

static void drawn_free(Drawn *d) {
  graph_free(d->draft.graph);
  graph_free(d->r.graph);
  diagnostics_deinit(&d->diagnostics);
}

// Draws the operator's attributes, types and shapes. False: they contradict each other.
static bool draw(Drawn *d, OperatorId id, uint64_t seed) {
  static const int64_t extents[RANDOM_EXTENTS] = {1, 2, 3, 5};
  *d = (Drawn){.r = {.random = seed, .options = {.most_nodes = 1, .most_nelems = MOST_NELEMS}, .rank = -1}};
  diagnostics_init(&d->diagnostics, &system_allocator);
  for (int i = 0; i < RANDOM_EXTENTS; i++) d->r.extents[i] = EXTENT(extents[i]);
  d->r.graph = graph_new(&system_allocator, "drawn");
  d->draft = (RandomDraft){.r = &d->r, .graph = graph_new(&system_allocator, "draft")};
  assert_true(d->r.graph && d->draft.graph);
  return random_draft_begin(&d->draft, (OperatorName){&operators[id], NULL}) &&
         random_draft_finish(&d->draft, &d->diagnostics);
}

// Whether gradcheck can draw data for the node: not for a shape that is an operand.
static bool can_run(const Node *node) {
  bool can = true;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Operand *row = &node->op->inputs[i < node->op->ninputs ? i : node->op->ninputs - 1];
    can &=
        !node->inputs[i] || (!operator_has_attribute(node->op, row->name) && shape_nelems(&node->inputs[i]->shape) > 0);
  }
  return can;
}

static Value *apply(Graph *g, OperatorId id, Value *a, Value *b, Type type, const char *name) {
  const Operator *op = &operators[id];
  Node *node = graph_add_node(g, op, NULL, op->ninputs, op->noutputs);
  Value *v = graph_add_value(g, name, type, &a->shape);
  assert_true(node && v);
  node_set_input(node, 0, a);
  if (b) node_set_input(node, 1, b);
  node_set_output(node, 0, v);
  node_set_defaults(node);
  return v;
}

// The graph, as text: input `slot` of the node is p * 7/8, outputs are result `result` and p^2. Other inputs are i0,
// ...
static void make_graph(const Drawn *d, uint32_t slot, uint32_t result, Text *text) {
  const Node *from = d->draft.node;
  Graph *g = graph_new(&system_allocator, "derivative");
  Node *node = graph_add_node(g, from->op, NULL, from->ninputs, from->noutputs);
  char name[16];
  assert_true(g && node);
  memcpy(node->attributes, from->attributes, from->op->nattributes * sizeof *node->attributes);
  for (uint32_t i = 0; i < from->ninputs; i++) {
    const Value *v = from->inputs[i];
    if (!v) continue;
    snprintf(name, sizeof name, i == slot ? "p" : "i%u", i);
    Value *own = graph_add_input(g, name, v->type, &v->shape);
    assert_non_null(own);
    if (i == slot) {
      assert_true(graph_add_output(g, apply(g, OP_Square, own, NULL, v->type, "other")));
      Value *number = graph_add_number(g, "number", v->type, &(Shape){.rank = 0}, 0.875);
      own = apply(g, OP_Multiply, own, number, v->type, "operand");
    }
    node_set_input(node, i, own);
  }
  for (uint32_t i = 0; i < from->noutputs; i++) {
    const Value *v = from->outputs[i];
    if (!v) continue;
    snprintf(name, sizeof name, "r%u", i);
    Value *own = graph_add_value(g, name, v->type, &v->shape);
    assert_non_null(own);
    node_set_output(node, i, own);
    if (i != result) continue;
    if (v->type == TYPE_BOOLEAN) own = apply(g, OP_TypeCast, own, NULL, TYPE_F32, "number_of_boolean");
    else if (type_is_float(v->type)) own = apply(g, OP_Neg, own, NULL, v->type, "negative");
    assert_true(graph_add_output(g, own));
  }
  assert_true(graph_sort(g, NULL));
  yaml_print(g, text);
  graph_free(g);
}

// What gradcheck finds of the gradient by p: whether it is refused with this reason, or right.
static bool is_as_listed(const char *text, const Derivative *listed, bool *was_checked) {
  static const char *const wrt[] = {"p"};
  const ng_gradcheck_options options = {.gradient = {.wrt = wrt, .nwrt = 1}};
  ng_gradcheck_result results[MOST_INPUTS] = {{0}};
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "derivative", text, strlen(text), NULL);
  if (!g) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
  const ng_status status = ng_gradcheck(g, &options, results);
  bool is_right;
  *was_checked = true;
  if (listed->kind == DERIVATIVE_REFUSED) {
    is_right = status == NG_WRONG && strstr(ng_messages_text(ctx, 0), listed->why);
  } else {
    size_t p = 0;
    while (strcmp(ng_graph_input(g, p).name, "p") != 0) p++;
    *was_checked = isfinite(results[p].expected) && results[p].nskipped < results[p].nchecked;
    is_right = status == NG_OK || (status == NG_DIFFERENT && !*was_checked);
  }
  if (!is_right) print_error("%s\n", ng_messages_text(ctx, 0));
  ng_graph_free(g);
  ng_context_free(ctx);
  return is_right;
}

// A result that the gradient comes from: the drawn one's first, or another part of Split.
static uint32_t result_of(const Node *node, uint64_t seed) {
  const uint32_t other = (uint32_t)(seed % node->noutputs);
  const bool is_part = node->outputs[other] && gradient_of_result(node->op->id, other).kind == DERIVATIVE_COMPUTED;
  return is_part ? other : 0;
}

static uint64_t seed_of(const char *name, uint64_t turn) {
  uint64_t seed = turn;
  for (; *name; name++) seed = seed * 31 + (unsigned char)*name;
  return seed;
}

static void each_operand_is_as_listed(void **state) {
  enum { MOST_TURNS = 100000 };
  const int most = takes_all() ? 100 : 8;
  (void)state;
  for (uint32_t id = 0; id < OP_COUNT; id++) {
    const Operator *op = &operators[id];
    if (op->traits & TRAIT_COLLECTIVE || random_exception((OperatorId)id)) continue; // leaves_test.c
    for (uint32_t slot = 0; slot < op->ninputs; slot++) {
      const Derivative listed = gradient_by_input((OperatorId)id, slot);
      if (op->inputs[slot].is_hidden) continue; // only a signature names it, and only to ignore it
      TypeSet types = 0;
      for (const TypeVariable *t = op->types; t->letter; t++)
        if (t->letter == op->inputs[slot].type) types = t->types;
      int ntimes = 0;
      for (uint64_t turn = 0; ntimes < most && types & TYPES_FLOAT; turn++) {
        const uint64_t seed = seed_of(op->name, turn);
        Drawn d;
        if (turn == MOST_TURNS) fail_msg("%s: no graph for %s", op->name, op->inputs[slot].name);
        const Node *node = draw(&d, (OperatorId)id, seed) ? d.draft.node : NULL;
        if (node && can_run(node) && node->inputs[slot] && type_is_float(node->inputs[slot]->type)) {
          Text text;
          bool was_checked;
          text_init(&text, &system_allocator);
          make_graph(&d, slot, result_of(node, seed), &text);
          if (!is_as_listed(text_string(&text), &listed, &was_checked))
            fail_msg("%s, by %s: expected it to be %s%s\n%s", op->name, op->inputs[slot].name,
                     listed.kind == DERIVATIVE_COMPUTED ? "derived"
                     : listed.kind == DERIVATIVE_ZERO   ? "0: "
                                                        : "refused: ",
                     listed.why ? listed.why : "", text_string(&text));
          ntimes += was_checked;
          text_deinit(&text);
        }
        drawn_free(&d);
      }
    }
  }
}

// Checks the gradient of the gradient, and of this one's. False: a graph has no gradient, or another than differences.
static bool higher_orders_are_right(const char *text, uint64_t seed) {
  enum { ORDERS = 3, MOST_CHECKED = 64 };
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "derivative", text, strlen(text), NULL);
  bool is_right = g != NULL;
  for (int order = 2; order <= ORDERS && is_right; order++) {
    ng_gradcheck_result results[MOST_CHECKED] = {{0}};
    ng_graph *gradient = ng_graph_gradient(g, NULL);
    ng_graph_free(g);
    g = gradient;
    if (!g) break; // the order before is constant
    assert_true(ng_graph_input_count(g) <= MOST_CHECKED);
    const ng_status status = ng_gradcheck(g, &(ng_gradcheck_options){.seed = seed}, results);
    if (status == NG_WRONG && strstr(ng_messages_text(ctx, 0), "expected an output that depends")) break;
    is_right = status == NG_OK || status == NG_DIFFERENT;
    for (size_t i = 0; i < ng_graph_input_count(g) && is_right; i++) {
      const ng_gradcheck_result *r = &results[i];
      is_right = !r->nchecked || r->is_within || r->nskipped == r->nchecked || !isfinite(r->expected);
      if (!is_right)
        print_error("order %d by %s: %.12g, differences give %.12g\n", order, ng_graph_input(g, i).name, r->gradient,
                    r->expected);
    }
    if (is_right) continue;
    char *shown = ng_graph_show(g, "yaml", NULL);
    print_error("%s\n%s\n", shown, ng_messages_text(ctx, 0));
    ng_text_free(ctx, shown);
  }
  ng_graph_free(g);
  ng_context_free(ctx);
  return is_right;
}

// Whether all floating-point operands that may be f64 are: numbers of narrower types are not as exact as differences.
static bool is_exact(const Node *node) {
  bool all = true;
  for (uint32_t i = 0; i < node->ninputs + node->noutputs; i++) {
    const Operand *row;
    const Value *v = node_operand_at(node, i, &row);
    for (const TypeVariable *t = node->op->types; v && t->letter; t++)
      if (t->letter == row->type && t->types & TYPE_BIT(TYPE_F64) && type_is_float(v->type)) all &= v->type == TYPE_F64;
  }
  return all;
}

// A node of f64 whose data gradcheck can draw. False: none was found.
static bool draw_one(Drawn *d, OperatorId id, uint64_t *turn) {
  enum { MOST_TURNS = 100000 };
  for (; *turn < MOST_TURNS; ++*turn) {
    if (draw(d, id, seed_of(operators[id].name, *turn)) && can_run(d->draft.node) && is_exact(d->draft.node))
      return true;
    drawn_free(d);
  }
  return false;
}

// Interprets a graph on the data of the first one by its name, and on other numbers.
static void run_on(ng_context *ctx, ng_graph *first, ng_graph *g, ng_tensor *outputs) {
  ng_tensor inputs[2 * MOST_INPUTS] = {{0}};
  const size_t ninputs = ng_graph_input_count(g), nfirst = ng_graph_input_count(first);
  assert_true(ninputs <= sizeof inputs / sizeof *inputs);
  for (size_t i = 0; i < ninputs; i++) {
    const char *name = ng_graph_input(g, i).name;
    size_t k = 0;
    while (k < nfirst && strcmp(ng_graph_input(first, k).name, name) != 0) k++;
    assert_int_equal(k < nfirst ? ng_tensor_random(first, k, 3, &inputs[i]) : ng_tensor_random(g, i, 5, &inputs[i]),
                     NG_OK);
  }
  for (size_t i = 0; i < ng_graph_output_count(g); i++) {
    const ng_tensor_info info = ng_graph_output(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &outputs[i]), NG_OK);
  }
  if (ng_interpret(g, inputs, outputs, 0) != NG_OK) fail_msg("%s", ng_messages_text(ctx, 0));
  for (size_t i = 0; i < ninputs; i++) ng_tensor_free(ctx, &inputs[i]);
}

static ng_graph *derivative(ng_graph *g, ng_derivative form, const char *wrt) {
  return ng_graph_gradient(g, &(ng_gradient_options){.wrt = &wrt, .nwrt = 1, .derivative = form});
}

// Whether the rows of the Jacobian by each input, times a tangent, are the tangents of the output.
static bool directions_agree(const char *text) {
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "derivative", text, strlen(text), NULL);
  bool agree = g != NULL;
  const bool is_float = agree && type_is_float((Type)ng_graph_output(g, 0).type);
  for (size_t k = 0; agree && is_float && k < ng_graph_input_count(g); k++) {
    const char *wrt = ng_graph_input(g, k).name;
    ng_graph *matrix = derivative(g, NG_JACOBIAN, wrt), *tangents = matrix ? derivative(g, NG_TANGENTS, wrt) : NULL;
    ng_tensor rows, product, tangent;
    if (tangents && ng_graph_input_count(tangents)) { // else it has no derivative, or one of 0
      const size_t last = ng_graph_input_count(tangents) - 1;
      run_on(ctx, g, matrix, &rows);
      run_on(ctx, g, tangents, &product);
      assert_int_equal(ng_tensor_random(tangents, last, 5, &tangent), NG_OK);
      const int64_t n = ng_tensor_nelems(&product), nelems = ng_tensor_nelems(&tangent);
      for (int64_t i = 0; i < n; i++) {
        double sum = 0, size = 1;
        for (int64_t e = 0; e < nelems; e++) {
          const double part = ng_tensor_get(&rows, i * nelems + e) * ng_tensor_get(&tangent, e);
          sum += part;
          size += fabs(part);
        }
        const double got = ng_tensor_get(&product, i);
        if (fabs(got - sum) <= 1e-12 * size || !isfinite(sum)) continue;
        print_error("by %s: tangent %d is %.17g, expected %.17g\n", wrt, (int)i, got, sum);
        agree = false;
      }
      ng_tensor_free(ctx, &rows);
      ng_tensor_free(ctx, &product);
      ng_tensor_free(ctx, &tangent);
    } else if (ng_last_status(ctx) != NG_OK) {
      static const char *const reasons[] = {"no gradient", "expected a floating-point type",
                                            "expected 1 to 64 elements", "fewer than 8 axes"};
      agree = false;
      for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        agree |= strstr(ng_messages_text(ctx, 0), reasons[i]) != NULL;
      if (!agree) print_error("%s\n", ng_messages_text(ctx, 0));
    }
    ng_messages_clear(ctx);
    ng_graph_free(matrix);
    ng_graph_free(tangents);
  }
  ng_graph_free(g);
  ng_context_free(ctx);
  return agree;
}

static void derivatives_of_higher_order_are_those_of_differences(void **state) {
  const int most = takes_all() ? 40 : 4;
  (void)state;
  for (uint32_t id = 0; id < OP_COUNT; id++) {
    const Operator *op = &operators[id];
    if (op->traits & TRAIT_COLLECTIVE || random_exception((OperatorId)id)) continue;
    if (gradient_rules[id]->of_all.why) continue;
    uint64_t turn = 0;
    for (int i = 0; i < most; i++, turn++) {
      Drawn d;
      Text text;
      if (!draw_one(&d, (OperatorId)id, &turn)) fail_msg("%s: no graph", op->name);
      text_init(&text, &system_allocator);
      make_graph(&d, d.draft.node->ninputs, result_of(d.draft.node, turn), &text);
      if (!higher_orders_are_right(text_string(&text), turn) || !directions_agree(text_string(&text)))
        fail_msg("%s\n%s", op->name, text_string(&text));
      text_deinit(&text);
      drawn_free(&d);
    }
  }
}

// A gradient by a statistic is refused, a result that is no number of its own has none.
static void each_result_is_as_listed(void **state) {
  (void)state;
  for (uint32_t id = 0; id < OP_COUNT; id++) {
    const Operator *op = &operators[id];
    for (uint32_t slot = 0; slot < op->noutputs; slot++) {
      const Derivative listed = gradient_of_result((OperatorId)id, slot);
      assert_true((listed.kind == DERIVATIVE_COMPUTED) == (listed.why == NULL));
      const bool is_of_statistic = op->outputs[slot].is_statistic && gradient_rules[id]->make_of_statistics;
      if (listed.kind == DERIVATIVE_COMPUTED)
        assert_true(slot == 0 || id == OP_Split || op->norm_scope || gradient_rules[id]->expand || is_of_statistic);
    }
  }
}

static void exceptions_name_operands(void **state) {
  (void)state;
  for (uint32_t id = 0; id < OP_COUNT; id++) {
    const GradientRule *rule = gradient_rules[id];
    const bool is_derived = rule->make || rule->expand;
    assert_true(!rule->make || !rule->expand);
    assert_true(is_derived == (rule->of_all.kind == DERIVATIVE_COMPUTED));
    assert_true(is_derived == (rule->of_all.why == NULL));
    for (size_t i = 0; i < MOST_EXCEPTIONS && rule->exceptions[i].operand; i++) {
      bool is_one = false;
      for (uint32_t slot = 0; slot < operators[id].ninputs; slot++)
        is_one |= strcmp(operators[id].inputs[slot].name, rule->exceptions[i].operand) == 0;
      for (uint32_t slot = 0; slot < operators[id].noutputs; slot++)
        is_one |= strcmp(operators[id].outputs[slot].name, rule->exceptions[i].operand) == 0;
      assert_true(is_one && rule->exceptions[i].derivative.why);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exceptions_name_operands),
      cmocka_unit_test(each_result_is_as_listed),
      cmocka_unit_test(each_operand_is_as_listed),
      cmocka_unit_test(derivatives_of_higher_order_are_those_of_differences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
