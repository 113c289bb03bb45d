// The executor of loop trees finds accesses that are wrong: each case changes the tree of a layer norm's gradient in
// one way, like a bug in passes/schedule, and states a part of the expected message.
#include "frontend/yaml/yaml.h"
#include "ir/loops/loops.h"
#include "passes/costs/costs.h"
#include "tests/unit/loops_case.h"

static const char graph_text[] =
    "format: ngrad/1\nname: layer_norm_gradient\n"
    "inputs:\n"
    "- {name: src, type: f32, shape: [300, 100]}\n- {name: diff_dst, type: f32, shape: [300, 100]}\n"
    "- {name: mean, type: f32, shape: [300]}\n- {name: var, type: f32, shape: [300]}\n"
    "- {name: gamma, type: f32, shape: [100]}\n"
    "nodes:\n"
    "- op: LayerNormBackward\n"
    "  inputs: {src: src, diff_dst: diff_dst, mean: mean, variance: var, gamma: gamma}\n"
    "  outputs: {diff_src: dx, diff_gamma: dgamma, diff_beta: dbeta}\n"
    "outputs: [dx, dgamma, dbeta]\n";

typedef struct Spoiling {
  const char *name;
  bool (*spoil)(LoopNode *n); // false: it does nothing to this node
  const char *told;           // part of the executor's message
} Spoiling;

static void leave_out(LoopNode *n) {
  n->kind = NODE_COMMENT;
}

static bool leave_out_store(LoopNode *n) {
  if (n->kind != NODE_STORE || !n->expr || !n->has_fewer_lanes) return false;
  leave_out(n);
  return true;
}

static bool leave_out_clear(LoopNode *n) {
  if (n->kind != NODE_STORE || n->expr || n->from.buffer) return false;
  leave_out(n);
  return true;
}

static bool make_steps_longer(LoopNode *n) {
  static const Index two = {.op = INDEX_NUMBER, .number = 32};
  if (n->kind != NODE_FOR || !n->is_counter || n->var.kind != VAR_LANE) return false;
  n->step = &two;
  return true;
}

static bool make_steps_shorter(LoopNode *n) {
  static const Index half = {.op = INDEX_NUMBER, .number = 8};
  if (n->kind != NODE_FOR || !n->is_counter || n->var.kind != VAR_LANE) return false;
  n->step = &half;
  return true;
}

static bool go_beyond(LoopNode *n) {
  static const Index many = {.op = INDEX_NUMBER, .number = 1000};
  if (n->kind != NODE_INDEX || n->var.kind != VAR_END) return false;
  n->value = &many;
  return true;
}

static bool go_to_the_end(LoopNode *n) {
  static const Index all = {.op = INDEX_NUMBER, .number = 300};
  if (n->kind != NODE_INDEX || n->var.kind != VAR_END) return false;
  n->value = &all;
  return true;
}

static bool take_whole_vectors(LoopNode *n) {
  if (n->kind != NODE_STORE || !n->expr || !n->has_fewer_lanes) return false;
  n->has_fewer_lanes = false;
  return true;
}

static bool store_at_the_first_row(LoopNode *n) {
  if (n->kind != NODE_STORE || !n->expr || n->has_fewer_lanes) return false;
  n->to.buffer = BUFFER_TENSOR;
  n->to.item = NULL;
  return true;
}

static bool share_partial_sums(LoopNode *n) {
  static const Index none = {.op = INDEX_NUMBER};
  if (n->kind != NODE_BUFFER || n->to.buffer != BUFFER_PARTIALS) return false;
  n->from.index = &none;
  return true;
}

static bool combine_more(LoopNode *n) {
  static const Index many = {.op = INDEX_NUMBER, .number = 100};
  if (n->kind != NODE_FOR || n->var.kind != VAR_COMBINED_BLOCK) return false;
  n->end = &many;
  return true;
}

static const Spoiling spoilings[] = {
    {"no store of the last lanes", leave_out_store, "element 96 of dx is never written"},
    {"partial sums are not cleared", leave_out_clear, "reads what is not written"},
    {"vectors are left out", make_steps_longer, "element 16 of dx is never written"},
    {"vectors go beyond the row", make_steps_shorter, "reads out of bounds: element 100 of gamma"},
    {"blocks go beyond the last row", go_beyond, "out of bounds"},
    {"blocks overlap", go_to_the_end, "another block of the loop writes"},
    {"the last lanes are a whole vector", take_whole_vectors, "writes an element that"},
    {"rows are stored over each other", store_at_the_first_row, "writes an element that the loop has written already"},
    {"blocks share their partial sums", share_partial_sums, "another block of the loop writes"},
    {"more blocks are combined than there are", combine_more, "reads out of bounds"},
};

static const Spoiling *spoiling; // the one that spoil_trees applies
static size_t nspoilt;

static void spoil_nodes(LoopNode *n) {
  for (; n; n = n->next) {
    nspoilt += spoiling->spoil(n);
    spoil_nodes(n->body);
    spoil_nodes(n->otherwise);
  }
}

// Builds the trees anew, and spoils them.
static void spoil_trees(Program *p) {
  assert_true(pipeline_build_trees(p, true) && pipeline_build_trees(p, false));
  nspoilt = 0;
  for (size_t i = 0; i < p->liveness->nloops; i++) {
    spoil_nodes(p->trees[i]->step);
    spoil_nodes(p->trees[i]->tail_step);
    spoil_nodes(p->trees[i]->block);
  }
}

static void must_be_told(const LoopsCase *c, Program *p, const Tensor *outputs) {
  Text why;
  text_init(&why, &system_allocator);
  spoil_trees(p);
  const bool ok = execute_program(p, c->inputs, outputs, NULL, &why);
  if (!nspoilt) fail_msg("%s: no tree has a node to change", spoiling->name);
  if (ok) fail_msg("%s: the executor found no mistake, expected a message", spoiling->name);
  if (!strstr(text_string(&why), spoiling->told))
    fail_msg("%s: expected \"%s\", found \"%s\"", spoiling->name, spoiling->told, text_string(&why));
  text_deinit(&why);
}

static void what_is_wrong_with_a_tree_is_told(void **state) {
  (void)state;
  Diagnostics d;
  LoopsCase c;
  Tensor outputs[MOST_TENSORS];
  const Target target = target_of_any_machine();
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "test.yaml", graph_text, sizeof graph_text - 1, NULL, &d);
  if (!g) {
    fail_msg("%s", d.items[0].message);
    return;
  }
  diagnostics_deinit(&d);
  loops_case_init(&c, "a layer norm's gradient", g, 1);
  Costs costs = usual_costs;
  costs.peel_row = 1000; // rows begin with whole vectors
  c.costs = &costs;
  Lowered l = loops_lower(&c, &target, false, NULL);
  loops_new_outputs(g, outputs);
  assert_non_null(l.program);
  if (!l.program) return; // not reached, as no reader of the code can tell
  assert_true(loops_execute(&c, l.program, outputs, NULL, "as it is"));
  for (size_t i = 0; i < sizeof spoilings / sizeof *spoilings; i++) {
    spoiling = &spoilings[i];
    must_be_told(&c, l.program, outputs);
  }
  loops_free_outputs(g, outputs);
  lowered_free(&l);
  loops_case_deinit(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_wrong_with_a_tree_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
