// Inference of single nodes: the rows of infer_rows.h as they are, with any one extent or shape unknown, and with any
// one extent wrong.
#include "tests/unit/infer_rows.h"

#include "ir/graph/extents.h"
#include "ir/operators/infer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct Graphlet { // a graph of one node
  Graph *graph;
  Diagnostics diagnostics;
  Node *node;
  OperatorName as;
} Graphlet;

static Extent parse_extent(Graph *g, const char *word);

// 2*N, or N-1: a formula of two parts.
static Extent parse_formula(Graph *g, const char *word, const char *operation) {
  char first[16];
  snprintf(first, sizeof first, "%.*s", (int)(operation - word), word);
  const Extent a = parse_extent(g, first), b = parse_extent(g, operation + 1);
  Extent e;
  assert_true(*operation == '*' ? extent_multiply(g, a, b, &e) : extent_add(g, a, *operation == '-' ? -1 : 1, b, &e));
  return e;
}

static Extent parse_extent(Graph *g, const char *word) {
  const char *operation = strpbrk(word, "+-");
  if (!operation) operation = strchr(word, '*');
  if (operation) return parse_formula(g, word, operation);
  if (word[0] == '_') return EXTENT_UNKNOWN;
  if (word[0] >= '0' && word[0] <= '9') return EXTENT(strtoll(word, NULL, 10));
  Dim *dim = graph_find_dim(g, word);
  if (!dim) dim = graph_add_dim(g, word, word[0] == 'N' ? 4 : -1);
  assert_non_null(dim);
  return (Extent){dim, -1};
}

// f32[N,_,3]
static Value *parse_value(Graph *g, const char *name, char *word, bool is_input) {
  size_t length = word[0] == '?' ? 1 : strcspn(word, "[?");
  Shape shape = {.rank = -1};
  char *rest = NULL, *extents = word + length;
  if (*extents == '[') {
    shape.rank = 0;
    for (char *e = strtok_r(extents, "[,]", &rest); e; e = strtok_r(NULL, "[,]", &rest))
      shape.extent[shape.rank++] = parse_extent(g, e);
  } else {
    assert_string_equal(extents, "?");
  }
  word[length] = 0;
  Type type = type_from_name(word);
  assert_true(type != TYPE_NONE || word[0] == '?' || word[0] == 0);
  Value *v = is_input ? graph_add_input(g, name, type, &shape) : graph_add_value(g, name, type, &shape);
  assert_non_null(v);
  return v;
}

// 0,-1
static void parse_list(Graph *g, AttributeValue *value, const char *numbers) {
  int64_t *items = ARENA_ARRAY(&g->arena, int64_t, strlen(numbers) + 1);
  assert_non_null(items);
  value->list.items = items;
  value->list.count = 0;
  for (char *end; *numbers; numbers = end + (*end == ',')) items[value->list.count++] = strtoll(numbers, &end, 10);
}

static void parse_numbers(Graph *g, AttributeValue *value, char *numbers) {
  double *items = ARENA_ARRAY(&g->arena, double, strlen(numbers) + 1);
  assert_non_null(items);
  value->numbers.items = items;
  value->numbers.count = 0;
  for (char *end; *numbers; numbers = end + (*end == ',')) items[value->numbers.count++] = strtod(numbers, &end);
}

static void parse_attribute(Graph *g, Node *node, char *word) {
  char *number = strchr(word, '=');
  assert_non_null(number);
  *number++ = 0;
  uint32_t k = 0;
  while (strcmp(node->op->attributes[k].name, word) != 0) assert_true(++k < node->op->nattributes);
  const Attribute *row = &node->op->attributes[k];
  AttributeValue *value = &node->attributes[k];
  value->is_set = true;
  if (row->kind == ATTRIBUTE_BOOL) value->boolean = strcmp(number, "true") == 0;
  else if (row->kind == ATTRIBUTE_S64) value->s64 = strtoll(number, NULL, 10);
  else if (row->kind == ATTRIBUTE_F32) value->f32 = strtod(number, NULL);
  else if (row->kind == ATTRIBUTE_S64_LIST) parse_list(g, value, number);
  else if (row->kind == ATTRIBUTE_F32_LIST) parse_numbers(g, value, number);
  else
    for (value->s64 = 0; strcmp(row->choices[value->s64], number) != 0;) assert_true(++value->s64 < MAX_CHOICES);
}

static void graphlet_init(Graphlet *t, const InferRow *row) {
  char operands[256], attributes[256], copy[64], *rest = NULL;
  snprintf(operands, sizeof operands, "%s", row->before);
  snprintf(attributes, sizeof attributes, "%s", row->attributes);
  t->graph = graph_new(&system_allocator, "test");
  diagnostics_init(&t->diagnostics, &system_allocator);
  t->as = operator_find(row->op);
  assert_true(t->graph && t->as.op);
  t->node = graph_add_node(t->graph, t->as.op, t->as.signature, t->as.op->ninputs, t->as.op->noutputs);
  assert_non_null(t->node);
  uint32_t i = 0;
  bool is_input = true;
  for (char *word = strtok_r(operands, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    if (word[0] == '>') {
      assert_int_equal(i, named_ninputs(t->as));
      is_input = false;
      i = 0;
      continue;
    }
    SignatureOperand named = is_input ? named_input(t->as, i++) : named_output(t->as, i++);
    if (word[0] == '~') continue;
    snprintf(copy, sizeof copy, "%s", word);
    Value *v = parse_value(t->graph, named.name, copy, is_input);
    if (is_input) node_set_input(t->node, named.slot, v);
    else node_set_output(t->node, named.slot, v);
  }
  assert_int_equal(i, named_noutputs(t->as));
  for (char *word = strtok_r(attributes, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    parse_attribute(t->graph, t->node, word);
  node_set_defaults(t->node);
}

static void graphlet_deinit(Graphlet *t) {
  graph_free(t->graph);
  diagnostics_deinit(&t->diagnostics);
}

static void print_value(const Value *v, Text *out) {
  char shape[128];
  if (!v) {
    text_add_string(out, "~");
    return;
  }
  text_add_string(out, type_name(v->type));
  shape_string(&v->shape, shape, sizeof shape);
  for (const char *c = shape; *c; c++)
    if (*c != ' ') text_add(out, c, 1);
}

// The node's operands as a row has them.
static Text graphlet_text(const Graphlet *t) {
  Text out;
  text_init(&out, &system_allocator);
  for (uint32_t i = 0; i < named_ninputs(t->as); i++) {
    print_value(t->node->inputs[named_input(t->as, i).slot], &out);
    text_add_string(&out, " ");
  }
  text_add_string(&out, ">");
  for (uint32_t i = 0; i < named_noutputs(t->as); i++) {
    text_add_string(&out, " ");
    print_value(t->node->outputs[named_output(t->as, i).slot], &out);
  }
  return out;
}

static bool is_message(const InferRow *row) {
  return strstr(row->after, ": ") != NULL;
}

static void assert_text(const Graphlet *t, const char *expected) {
  Text text = graphlet_text(t);
  assert_string_equal(text_string(&text), expected);
  text_deinit(&text);
}

static void check_row(const InferRow *row) {
  Graphlet t;
  graphlet_init(&t, row);
  bool ok = graph_infer(t.graph, &t.diagnostics);
  if (is_message(row)) {
    assert_false(ok);
    assert_int_equal(t.diagnostics.nerrors, 1);
    assert_string_equal(t.diagnostics.items[0].message, row->after);
  } else {
    if (!ok) print_error("%s %s: %s\n", row->op, row->before, t.diagnostics.items[0].message);
    assert_true(ok);
    assert_text(&t, row->after);
    assert_true(graph_infer(t.graph, &t.diagnostics)); // once more changes nothing
    assert_text(&t, row->after);
    assert_true(graph_infers_nothing_new(t.graph, &t.diagnostics));
  }
  graphlet_deinit(&t);
}

static void each_operator_infers_what_follows(void **state) {
  (void)state;
  for (size_t i = 0; i < NINFER_ROWS; i++) check_row(&infer_rows[i]);
}

static void each_operator_and_name_has_rows(void **state) {
  (void)state;
  bool has_result[OP_COUNT] = {0}, has_message[OP_COUNT] = {0};
  for (size_t i = 0; i < NINFER_ROWS; i++) {
    OperatorId id = operator_find(infer_rows[i].op).op->id;
    if (is_message(&infer_rows[i])) has_message[id] = true;
    else has_result[id] = true;
  }
  for (OperatorId id = 0; id < OP_COUNT; id++)
    if (!has_result[id] || !has_message[id])
      fail_msg("operator %s: expected a row with a result and a row with a message", operators[id].name);
  for (size_t k = 0; k < nsignatures; k++) {
    bool has_row = false;
    for (size_t i = 0; i < NINFER_ROWS; i++) has_row |= operator_find(infer_rows[i].op).signature == &signatures[k];
    if (!has_row) fail_msg("name %s: expected a row", signatures[k].full_name);
  }
}

static void what_is_not_inferred_is_found_and_left_as_it_is(void **state) {
  (void)state;
  for (size_t i = 0; i < NINFER_ROWS; i++) {
    if (is_message(&infer_rows[i]) || strcmp(infer_rows[i].before, infer_rows[i].after) == 0) continue;
    Graphlet t;
    graphlet_init(&t, &infer_rows[i]);
    assert_false(graph_infers_nothing_new(t.graph, &t.diagnostics));
    assert_text(&t, infer_rows[i].before);
    assert_int_equal(t.diagnostics.nerrors, 1);
    assert_non_null(strstr(t.diagnostics.items[0].message, " is not fully inferred"));
    graphlet_deinit(&t);
  }
}

// Calls back for each extent of each operand of each row whose result has no unknowns, on a graph of that result.
static void for_each_extent(void (*check)(Graphlet *t, const char *known, Value *v, int axis)) {
  for (size_t i = 0; i < NINFER_ROWS; i++) {
    if (strpbrk(infer_rows[i].after, "?_:")) continue;
    if (strcmp(infer_rows[i].op, "StaticReshape") == 0)
      continue; // extents of src and dst do not follow one from another
    const InferRow known = {infer_rows[i].op, infer_rows[i].attributes, infer_rows[i].after, NULL};
    for (size_t k = 0;; k++) { // the k-th extent of all
      Graphlet t;
      graphlet_init(&t, &known);
      size_t n = 0;
      for (size_t v = 0; v < t.graph->nvalues; v++)
        for (int axis = 0; axis < t.graph->values[v]->shape.rank; axis++)
          if (n++ == k) check(&t, known.before, t.graph->values[v], axis);
      graphlet_deinit(&t);
      if (n <= k) break;
    }
  }
}

// An operand that is broadcast may have been 1; an extent that is reduced or sliced stands nowhere else.
static bool may_be_lost(const Graphlet *t) {
  static const OperatorId losing[] = {OP_ReduceSum,
                                      OP_BiasAddBackward,
                                      OP_Leaf,
                                      OP_PReLU,
                                      OP_PReLUBackward,
                                      OP_Interpolate,
                                      OP_InterpolateBackward,
                                      OP_DynamicQuantize,
                                      OP_Quantize,
                                      OP_MaxPoolWinners,
                                      OP_MaxPoolScatter,
                                      OP_MaxPoolGather,
                                      OP_MaxPool,
                                      OP_MaxPoolBackward,
                                      OP_AvgPoolBackward,
                                      OP_MatMul,
                                      OP_Convolution,
                                      OP_Slice,
                                      OP_Tile,
                                      OP_SoftmaxCrossEntropy,
                                      OP_ArgMax,
                                      OP_Gather,
                                      OP_GatherBackward};
  const Operator *op = t->node->op;
  bool has_choice = op->attributes[0].name && strcmp(op->attributes[0].name, "auto_broadcast") == 0;
  for (size_t i = 0; i < sizeof losing / sizeof *losing; i++)
    if (op->infer == operators[losing[i]].infer) return true;
  bool broadcasts_gamma = op->id == OP_RMSNorm || op->id == OP_RMSNormBackward;
  return broadcasts_gamma || (has_choice && t->node->attributes[0].s64 == 0);
}

static void must_find_extent(Graphlet *t, const char *known, Value *v, int axis) {
  v->shape.extent[axis] = EXTENT_UNKNOWN;
  assert_true(graph_infer(t->graph, &t->diagnostics));
  if (!may_be_lost(t) || !extent_is_unknown(v->shape.extent[axis])) assert_text(t, known);
}

static void one_unknown_extent_follows_from_the_others(void **state) {
  (void)state;
  for_each_extent(must_find_extent);
}

static void must_find_rank(Graphlet *t, const char *known, Value *v, int axis) {
  if (axis) return;
  v->shape.rank = -1;
  assert_true(graph_infer(t->graph, &t->diagnostics));
  if (!may_be_lost(t)) assert_text(t, known);
}

static void one_unknown_shape_follows_from_the_others(void **state) {
  (void)state;
  for_each_extent(must_find_rank);
}

// Two more than is right, in one place (0 and 1 broadcast): told with both tensors, or the operand was broadcast.
static void must_tell_contradiction(Graphlet *t, const char *known, Value *v, int axis) {
  Extent right = v->shape.extent[axis];
  if (right.dim) return;
  v->shape.extent[axis] = EXTENT(right.value + 2);
  bool ok = graph_infer(t->graph, &t->diagnostics);
  if (ok && !may_be_lost(t))
    fail_msg("%s: a wrong extent of %s is not told; if it may be right, the operator belongs to `losing`",
             t->node->op->name, v->name);
  if (ok) return;
  const char *message = t->diagnostics.items[0].message, *bracket = strchr(message, '[');
  assert_int_equal(t->diagnostics.nerrors, 1);
  assert_non_null(bracket);
  assert_non_null(strchr(bracket + 1, '['));
  if (!strstr(message, v->name)) fail_msg("%s in %s: %s", v->name, known, message);
  assert_non_null(strstr(message, "axis"));
}

static void a_contradiction_names_both_tensors_and_the_axis(void **state) {
  (void)state;
  for_each_extent(must_tell_contradiction);
}

static void flat_parameters_of_too_many_elements_are_told_as_such(void **state) {
  (void)state;
  Graphlet t;
  graphlet_init(
      &t, &(InferRow){"LayerNorm", "begin_norm_axis=0", "f32[16777216,8388608] f32[5] f32[5] > ?? f32[] f32[]", NULL});
  assert_false(graph_infer(t.graph, &t.diagnostics));
  assert_int_equal(t.diagnostics.nerrors, 2);
  assert_string_equal(t.diagnostics.items[0].message, "src: too many elements, expected fewer than 2^47");
  assert_string_equal(t.diagnostics.items[1].message, "dst: too many elements, expected fewer than 2^47");
  graphlet_deinit(&t);
}

static void bound_dims_are_inferred_as_numbers(void **state) {
  (void)state;
  Graphlet t;
  graphlet_init(&t, &(InferRow){"Add", "", "f32[N,1] f32[_] > ??", NULL});
  assert_true(graph_infer(t.graph, &t.diagnostics));
  assert_text(&t, "f32[N,1] f32[_] > f32[N,_]");
  assert_true(graph_bind_dims(t.graph, &t.diagnostics));
  t.graph->values[1]->shape.extent[0] = EXTENT(1); // as data tells
  assert_true(graph_infer(t.graph, &t.diagnostics));
  assert_text(&t, "f32[4,1] f32[1] > f32[4,1]");
  graphlet_deinit(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_operator_infers_what_follows),
      cmocka_unit_test(each_operator_and_name_has_rows),
      cmocka_unit_test(what_is_not_inferred_is_found_and_left_as_it_is),
      cmocka_unit_test(one_unknown_extent_follows_from_the_others),
      cmocka_unit_test(one_unknown_shape_follows_from_the_others),
      cmocka_unit_test(a_contradiction_names_both_tensors_and_the_axis),
      cmocka_unit_test(flat_parameters_of_too_many_elements_are_told_as_such),
      cmocka_unit_test(bound_dims_are_inferred_as_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
