// The verifier of loop trees, or the proof by running, refuses deliberate mistakes, with a message.
// loops_mutation_test.c tests that they accept trees of all kinds, and that each node and field matters.
#include "ir/loops/prove.h"
#include "tests/unit/loop_trees.h"

#define HEAD "format: ngrad/1\nname: test\n"

static const Program *program; // of the tree

static bool is_sound(const LoopTree *t, Text *why) {
  int64_t nsteps = 1 << 26;
  const bool ok = loops_verify(t, why) && unit_prove(program, 0, &nsteps, why);
  assert_true(nsteps >= 0);
  return ok;
}

static void must_be_sound(const LoopTree *t, const char *what) {
  Text why;
  text_init(&why, &system_allocator);
  if (!is_sound(t, &why)) fail_msg("%s: %s", what, text_string(&why));
  text_deinit(&why);
}

static void must_be_wrong(const LoopTree *t, const char *expected) {
  Text why;
  text_init(&why, &system_allocator);
  if (is_sound(t, &why)) fail_msg("the tree is accepted, expected the message: %s", expected);
  if (!strstr(text_string(&why), expected)) assert_string_equal(text_string(&why), expected);
  text_deinit(&why);
}

// One tree, whose nodes are spoilt and mended

typedef struct Tree {
  Lowered l;
  Arena arena;
  LoopTree *t;
} Tree;

static Tree make_tree(const char *text, const char *const *schedule, bool is_open) {
  Tree tree;
  begin(&tree.l);
  for (; schedule && *schedule; schedule++) assert_true(schedule_override(&tree.l.overrides, *schedule, &tree.l.d));
  lower_graph(&tree.l, yaml_read(&system_allocator, "test.yaml", text, strlen(text), NULL, &tree.l.d), is_open, false);
  assert_non_null(tree.l.p);
  arena_init(&tree.arena, &system_allocator);
  program = tree.l.p;
  assert_true(pipeline_build_trees(tree.l.p, false));
  tree.t = program_tree(program, 0, 0);
  must_be_sound(tree.t, text);
  return tree;
}

static Tree tree_of(const char *text, const char *const *schedule) {
  return make_tree(text, schedule, false);
}

static void end(Tree *tree) {
  must_be_sound(tree->t, "mended");
  arena_deinit(&tree->arena);
  deinit(&tree->l);
}

typedef struct Wanted {
  LoopNodeKind kind;
  BufferKind to, from; // BUFFER_NONE: any
  int nth;
} Wanted;

static bool is_wanted(const LoopNode *n, const Wanted *w) {
  return n->kind == w->kind && (!w->to || n->to.buffer == w->to) && (!w->from || n->from.buffer == w->from);
}

// The link to the nth such node, in the order of the text.
static LoopNode **find_link(LoopNode **link, Wanted *w) {
  LoopNode **found = NULL;
  for (; *link && !found; link = &(*link)->next) {
    if (is_wanted(*link, w) && !w->nth--) return link;
    found = find_link(&(*link)->body, w);
    if (!found) found = find_link(&(*link)->otherwise, w);
  }
  return found;
}

static LoopNode **link_of(LoopNode **nodes, Wanted w) {
  LoopNode **link = find_link(nodes, &w);
  assert_non_null(link);
  return link;
}

static LoopNode **link_to(LoopNode **nodes, LoopNodeKind kind, int nth) {
  return link_of(nodes, (Wanted){.kind = kind, .nth = nth});
}

static LoopNode *node_of(LoopNode **nodes, LoopNodeKind kind, int nth) {
  return *link_to(nodes, kind, nth);
}

// That declares, or writes, the buffer.
static LoopNode **link_of_buffer(LoopNode **nodes, LoopNodeKind kind, BufferKind to, int nth) {
  return link_of(nodes, (Wanted){.kind = kind, .to = to, .nth = nth});
}

static LoopNode *node_of_buffer(LoopNode **nodes, LoopNodeKind kind, BufferKind to, int nth) {
  return *link_of_buffer(nodes, kind, to, nth);
}

// The first NODE_INDEX that sets the variable, to such an index.
static LoopNode **link_of_var(LoopNode **nodes, VarKind kind, IndexOp op) {
  for (int i = 0;; i++) {
    LoopNode **link = link_to(nodes, NODE_INDEX, i);
    if ((*link)->var.kind == kind && (*link)->value->op == op) return link;
  }
}

static bool is_streamed_test(const Index *test) {
  return test && test->op == INDEX_VAR && test->var.kind == VAR_STREAMED;
}

static void must_be_needed(const LoopTree *t, LoopNode **link, const char *expected) {
  LoopNode *n = *link;
  *link = n->next;
  must_be_wrong(t, expected);
  *link = n;
}

static void must_be_done_once(const LoopTree *t, LoopNode *n, const char *expected) {
  LoopNode twice = *n;
  n->next = &twice;
  must_be_wrong(t, expected);
  n->next = twice.next;
}

// Rows of vectors with a rest, two at once; sums along rows, in runs, and over rows.
static const char layer_norm_gradient[] =
    HEAD "inputs:\n- {name: x, type: f32, shape: [10, 1240]}\n- {name: dy, type: f32, shape: [10, 1240]}\n"
         "- {name: mean, type: f32, shape: [10]}\n- {name: variance, type: f32, shape: [10]}\n"
         "- {name: gamma, type: f32, shape: [1240]}\nnodes:\n"
         "- {op: LayerNormBackward, inputs: [x, dy, mean, variance, gamma, ~], outputs: [dx, dgamma, dbeta]}\n"
         "outputs: [dx, dgamma, dbeta]\n";

static void spoilt_loops_are_found(void **state) {
  (void)state;
  Tree tree = tree_of(layer_norm_gradient, NULL);
  LoopTree *t = tree.t;
  LoopNode *runs = node_of(&t->step, NODE_FOR, 1);
  assert_int_equal(runs->var.kind, VAR_RUN_BEGIN);
  const LoopNode before = *runs;
  runs->value = index_number(&(TreeBuilder){.arena = &tree.arena}, 16, 0);
  must_be_wrong(t, "element 0 of dx has another value than the kernel says");
  *runs = before;
  LoopNode *whole = node_of(&runs->body, NODE_FOR, 0);
  const LoopNode steps = *whole;
  whole->step = index_number(&(TreeBuilder){.arena = &tree.arena}, 32, 0);
  must_be_wrong(t, "it must be the number of elements that are left, at most those of a vector");
  *whole = steps;
  must_be_needed(t, link_to(&runs->body, NODE_IF, 0), "element 0 of dx has another value than the kernel says");
  LoopNode *rows = node_of(&whole->body, NODE_FOR, 0);
  rows->end = index_number(&(TreeBuilder){.arena = &tree.arena}, 2, 0);
  must_be_wrong(t, "element 2480 of dx has another value than the kernel says");
  rows->end = node_of(&t->step, NODE_FOR, 0)->end;
  must_be_needed(t, link_to(&t->block, NODE_FOR, 3), "element 9920 of dx is never stored");
  end(&tree);
}

// Output row oy meets input row 2 * oy + ky - 1 of 7: oy 0 reaches above the first row, oy 3 below the last one.
static void interiors_have_loops_of_their_own(void **state) {
  (void)state;
  static const int64_t ends[] = {0, 1, 3, 4};
  Tree tree = tree_of(HEAD "inputs: [{name: x, type: f32, shape: [2, 16, 7, 8]}, "
                           "{name: dy, type: f32, shape: [2, 16, 4, 8]}]\nnodes:\n"
                           "- {op: ConvolutionBackwardWeights, inputs: {src: x, diff_dst: dy}, outputs: [dw], "
                           "attributes: {strides: [2, 1], pads_begin: [1, 0], pads_end: [1, 0], dilations: [1, 1], "
                           "groups: 16, data_format: NCX, weights_format: OIX, weights_shape: [16, 1, 3, 1]}}\n"
                           "outputs: [dw]\n",
                      NULL);
  LoopTree *t = tree.t;
  LoopNode **link = link_to(&node_of(&t->step, NODE_FOR, 0)->body, NODE_FOR, 0), *parts[3];
  for (int i = 0; i < 3; i++) {
    parts[i] = i ? parts[i - 1]->next : *link;
    assert_int_equal(parts[i]->kind, NODE_FOR);
    assert_true(index_is(parts[i]->value, ends[i]) && index_is(parts[i]->end, ends[i + 1]));
  }
  assert_null(parts[2]->next);
  must_be_needed(t, link, "element 0 of dw has another value than the kernel says");
  must_be_needed(t, &parts[0]->next, "element 0 of dw has another value than the kernel says");
  must_be_needed(t, &parts[1]->next, "element 0 of dw has another value than the kernel says");
  must_be_done_once(t, parts[1], "element 0 of dw has another value than the kernel says");
  end(&tree);
}

static void spoilt_sums_are_found(void **state) {
  (void)state;
  Tree tree = tree_of(layer_norm_gradient, NULL);
  LoopTree *t = tree.t;
  LoopNode *total = node_of_buffer(&t->step, NODE_BUFFER, BUFFER_TOTAL, 0);
  LoopNode *sum = node_of_buffer(&t->step, NODE_BUFFER, BUFFER_SUM, 0);
  sum->count--;
  must_be_wrong(t, "there are 3 accumulators");
  sum->count++;
  total->count++;
  must_be_wrong(t, "it must add all accumulators of the sum to as many totals");
  total->count--;
  LoopNode *update = node_of_buffer(&t->step, NODE_UPDATE, BUFFER_SUM, 0);
  update->to.item = index_number(&(TreeBuilder){.arena = &tree.arena}, 0, 0);
  must_be_wrong(t, "element 0 of dx has another value than the kernel says");
  update->to.item = &item_of_row;
  update->is_fused = false;
  must_be_wrong(t, "its operand must be computed before it");
  update->is_fused = true;
  must_be_done_once(t, update, "element 0 of dx has another value than the kernel says");
  must_be_done_once(t, update, "element 0 of dx has another value than the kernel says");
  must_be_needed(t, link_of_buffer(&t->step, NODE_UPDATE, BUFFER_SUM, 2),
                 "element 0 of dx has another value than the kernel says"); // of the tail
  must_be_needed(t, link_of_buffer(&t->step, NODE_UPDATE, BUFFER_TOTAL, 0),
                 "element 0 of dx has another value than the kernel says");
  TreeBuilder b = {.arena = &tree.arena};
  LoopNode *runs = node_of(&t->step, NODE_FOR, 1), *run_end = runs->body;
  const Index *step = runs->step, *least = run_end->value, *end_of_row = least->args[2];
  runs->step = index_number(&b, 192, 0);
  must_be_wrong(t, "element 0 of dx has another value than the kernel says");
  const Index *next = index_of(&b, INDEX_ADD, index_var(&b, VAR_RUN_BEGIN, 0), runs->step);
  run_end->value = index_choose(&b, index_of(&b, INDEX_LESS, next, end_of_row), next, end_of_row);
  must_be_wrong(t, "element 0 of dx has another value than the kernel says");
  runs->step = step;
  run_end->value = least;
  end(&tree);
}

// With rows in lanes, element 17 of a row is added where lane 1 would add it.
static void elements_of_rows_have_accumulators(void **state) {
  (void)state;
  Tree tree = tree_of(HEAD "inputs: [{name: x, type: f32, shape: [400, 18]}]\n"
                           "nodes: [{op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [1]}}]\n"
                           "outputs: [y]\n",
                      NULL);
  LoopTree *t = tree.t;
  LoopNode *sum = node_of_buffer(&t->step, NODE_BUFFER, BUFFER_SUM, 0), *update = node_of(&t->step, NODE_UPDATE, 0);
  assert_int_equal(sum->count, 16);
  sum->count = 1;
  must_be_wrong(t, "there are 1 accumulators");
  sum->count = 16;
  const Index *item = update->to.item;
  update->to.item = index_number(&(TreeBuilder){.arena = &tree.arena}, 0, 0);
  must_be_wrong(t, "element 0 of y has another value than the kernel says");
  update->to.item = item;
  end(&tree);
}

static void spoilt_partial_sums_are_found(void **state) {
  (void)state;
  Tree tree = tree_of(layer_norm_gradient, NULL);
  LoopTree *t = tree.t;
  must_be_needed(t, link_of_buffer(&t->step, NODE_BUFFER, BUFFER_HELD, 0), "the buffer must be declared before it");
  must_be_needed(t, link_of_buffer(&t->step, NODE_STORE, BUFFER_PARTIALS, 1),
                 "element 0 of dgamma has another value than the kernel says");
  must_be_needed(t, link_of_buffer(&t->block, NODE_STORE, BUFFER_PARTIALS, 0),
                 "reads what is not written: element 0 of dbeta");
  must_be_needed(t, link_of_buffer(&t->block, NODE_BUFFER, BUFFER_PARTIALS, 1),
                 "the buffer must be declared before it");
  LoopNode *held = node_of(&t->step, NODE_UPDATE, 0);
  held->to.buffer = BUFFER_PARTIALS;
  must_be_wrong(t, "part_dbeta[0] += dy: a vector must be added to accumulators or a register");
  held->to.buffer = BUFFER_HELD;
  end(&tree);
}

static void spoilt_values_are_found(void **state) {
  (void)state;
  Tree tree = tree_of(layer_norm_gradient, NULL);
  LoopTree *t = tree.t;
  LoopNode **rows = &node_of(&t->step, NODE_FOR, 0)->body;
  LoopNode **link = link_to(rows, NODE_LET, 2), *first = *link, *second = first->next;
  first->next = second->next; // sqrt(variance + epsilon) before the sum
  second->next = first;
  *link = second;
  must_be_wrong(t, "must be computed before it");
  second->next = first->next;
  first->next = second;
  *link = first;
  must_be_needed(t, link_of_buffer(&t->step, NODE_BUFFER, BUFFER_VALUE, 0),
                 "must have a declared array with an element for each row");
  must_be_needed(t, link_of_buffer(rows, NODE_BUFFER, BUFFER_ROW, 0),
                 "dy[r] + i: the buffer must be declared before it");
  must_be_needed(t, link_of(&t->step, (Wanted){NODE_LET, .from = BUFFER_TOTAL}),
                 "mul(sum_g[r], 0.0008064516): its operand must be computed before");
  must_be_done_once(t, first, "is already computed");
  end(&tree);
}

static void spoilt_places_are_found(void **state) {
  (void)state;
  Tree tree = tree_of(layer_norm_gradient, NULL);
  LoopTree *t = tree.t;
  TreeBuilder b = {.arena = &tree.arena};
  LoopNode *store = node_of_buffer(&t->step, NODE_STORE, BUFFER_ROW, 1); // after the peeled elements
  const LoopNode before = *store;
  store->to.index = index_of(&b, INDEX_ADD, store->to.index, index_number(&b, 1, 0));
  must_be_wrong(t, "store dx to p_dx[r] + i + 1: an element may lie outside of its buffer");
  *store = before;
  store->has_fewer_lanes = true;
  must_be_wrong(t, "it uses a variable that is not set before it");
  *store = before;
  must_be_done_once(t, store, "writes an element that the loop has written already: element 0 of dx");
  must_be_needed(t, link_of_buffer(&t->step, NODE_STORE, BUFFER_ROW, 2),
                 "element 1232 of dx is never stored"); // of the tail
  end(&tree);
}

static void spoilt_copies_are_found(void **state) {
  (void)state;
  Tree tree = tree_of(HEAD "inputs: [{name: x, type: f32, shape: [50, 7]}]\nnodes:\n"
                           "- {op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}\noutputs: [y]\n",
                      NULL);
  LoopTree *t = tree.t;
  must_be_needed(t, link_of_buffer(&t->step, NODE_STORE, BUFFER_SPILL, 0),
                 "element 0 of y has another value than the kernel says");
  must_be_needed(t, link_of_buffer(&t->step, NODE_MOVE, BUFFER_COPY, 0),
                 "element 0 of y has another value than the kernel says");
  must_be_needed(t, link_of_buffer(&t->step, NODE_MOVE, BUFFER_ROW, 0), "element 0 of y is never stored");
  must_be_needed(t, link_of_buffer(&t->step, NODE_STORE, BUFFER_COPY, 0),
                 "element 0 of y has another value than the kernel says");
  must_be_needed(t, link_to(&t->block, NODE_IF, 0), "element 336 of y is never stored");
  node_of_buffer(&t->step, NODE_BUFFER, BUFFER_SPILL, 0)->count--;
  must_be_wrong(t, "store power to spilled_power + i * 16: an element may lie outside of its buffer");
  node_of_buffer(&t->step, NODE_BUFFER, BUFFER_SPILL, 0)->count++;
  node_of(&t->tail_step, NODE_LET, 0)->has_fewer_lanes = false;
  must_be_wrong(t, "tail step: vector x = load p_x + i with stride 7: an element may lie outside of its buffer");
  node_of(&t->tail_step, NODE_LET, 0)->has_fewer_lanes = true;
  end(&tree);
}

// Planes that begin within cache lines, and so are peeled; sums in groups of four vectors.
static const char planes[] =
    HEAD "inputs:\n- {name: x, type: f32, shape: [2, 8, 71, 71]}\n- {name: g, type: f32, shape: [8]}\nnodes:\n"
         "- {op: BatchNormForwardTraining, inputs: [x, g, g, g, g], outputs: [y, m, v, bm, bv],\n"
         "   attributes: {epsilon: 1.0e-5, data_format: NCX}}\noutputs: [y]\n";

static void spoilt_streams_are_found(void **state) {
  (void)state;
  Tree tree = tree_of(planes, (const char *const[]){"stream=1", NULL});
  LoopTree *t = tree.t;
  must_be_needed(t, link_to(&t->block, NODE_FENCE, 0), "a block with streamed stores must end with a fence");
  must_be_needed(t, link_of_var(&t->step, VAR_STREAMED, INDEX_NUMBER), "it uses a variable that is not set before it");
  int nth = 0;
  while (!is_streamed_test(node_of(&t->step, NODE_IF, nth)->test)) nth++;
  LoopNode *choice = node_of(&t->step, NODE_IF, nth);
  LoopNode *streamed = choice->body, *stored = choice->otherwise;
  assert_true(streamed->is_streamed && !stored->is_streamed);
  choice->body = stored, choice->otherwise = streamed;
  must_be_wrong(t, "it must depend on VAR_STREAMED");
  choice->body = streamed, choice->otherwise = stored;
  must_be_needed(t, link_of_var(&t->step, VAR_LANE, INDEX_ADD), "element 40328 of y, which is not aligned");
  must_be_needed(t, link_of_var(&t->step, VAR_LANES, INDEX_TO_LINE), "it uses a variable that is not set before it");
  end(&tree);
}

// Tiles and blocks that are set from outside need not begin at multiples of a vector.
static void streams_begin_at_cache_lines_whatever_is_set(void **state) {
  (void)state;
  static const char *const graphs[] = {
      HEAD "inputs: [{name: x, type: f32, shape: [100000]}]\nnodes:\n"
           "- {op: ReLU, inputs: [x], outputs: [y]}\noutputs: [y]\n",
      HEAD "inputs: [{name: x, type: f32, shape: [5000, 7]}]\nnodes:\n"
           "- {op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}\noutputs: [y]\n"};
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
    for (int is_even = 0; is_even < 2; is_even++) {
      const char *const schedule[] = {"stream=1", is_even ? "tile=96" : "tile=100", is_even ? "block=32" : "block=20",
                                      NULL};
      Tree tree = tree_of(graphs[i], schedule);
      assert_int_equal(tree.t->loop->roots[tree.t->loop->nroots - 1].is_streamed, is_even);
      end(&tree);
    }
}

// Trees of loops that cannot be computed are refused; checked builds abort.
static void trees_of_spoilt_loops_are_found(void **state) {
  (void)state;
  Tree tree = tree_of(HEAD "inputs: [{name: x, type: f32, shape: [6, 40]}]\nnodes:\n"
                           "- {op: LayerNorm, inputs: [x], outputs: [y], "
                           "attributes: {use_affine: false, keep_stats: false}}\noutputs: [y]\n",
                      NULL);
  const Schedule *schedule = tree.t->schedule;
  Kernel *k = schedule->kernel;
  Loop *loop = &schedule->loops[0], before = *loop;
  Root *store = &loop->roots[loop->nroots - 1];
  assert_int_equal(store->kind, ROOT_STORE);
#ifdef NGRAD_CHECKED
  end(&tree);
  skip();
#endif
  store->sweep = 0;
  must_be_wrong(loop_tree(schedule, 0, NULL, &tree.arena), "must be computed before it");
  store->sweep = loop->nsweeps - 1;
  k->axes[k->naxes] = (Axis){.name = "again", .extent = 2};
  loop->axes[2] = loop->axes[1];
  loop->axes[1] = k->naxes;
  loop->nouter = 2;
  k->naxes++;
  LoopTree *sound = program->trees[0];
  program->trees[0] = loop_tree(schedule, 0, NULL, &tree.arena);
  must_be_wrong(program->trees[0], "writes an element that the loop has written already: element 0 of y");
  program->trees[0] = sound;
  k->naxes--;
  *loop = before;
  end(&tree);
}

// Rows of 99 elements of 4 bits, and an odd number of rows in a block.
static void blocks_that_share_bytes_are_found(void **state) {
  (void)state;
  Tree tree = tree_of(HEAD "inputs: [{name: x, type: f32, shape: [20000, 99]}]\nnodes:\n"
                           "- {op: SoftMax, inputs: [x], outputs: [h], attributes: {axis: 1}}\n"
                           "- {op: Quantize, inputs: [h], outputs: [{name: y, type: u4}],"
                           " attributes: {scales: [0.1], zps: [0]}}\noutputs: [y]\n",
                      (const char *const[]){"rows=5", NULL});
  Loop *loop = &tree.t->schedule->loops[tree.t->schedule->nloops - 1];
  assert_ptr_equal(loop, tree.t->loop);
  assert_int_equal(loop->cut.length % 2, 1);
  assert_true(loop->is_serial);
  loop->is_serial = false;
  must_be_wrong(tree.t, "blocks run on several threads, but two blocks may store halves of the same byte");
  loop->is_serial = true;
  end(&tree);
}

// An element behind the last one, if there are more than any run of the proof has.
static void addresses_are_inside_for_all_extents(void **state) {
  (void)state;
  static const char text[] = HEAD "dims: {N: 40}\ninputs: [{name: x, type: f32, shape: [N, 6]}]\nnodes:\n"
                                  "- {op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}\noutputs: [y]\n";
  Tree tree = make_tree(text, NULL, true);
  Text why;
  text_init(&why, &system_allocator);
  TreeBuilder b = {.arena = &tree.arena};
  Index *end_of_rows = (Index *)node_of(&tree.t->block, NODE_FOR, 0)->end;
  assert_int_equal(end_of_rows->op, INDEX_VAR);
  const Index before = *end_of_rows, *rows = index_number(&b, 40, monomial_of_dim(0)),
              *many = index_number(&b, 1 << 30, 0);
  const Index *own = index_var(&b, before.var.kind, 0), *one = index_number(&b, 1, 0);
  *end_of_rows = *index_choose(&b, index_of(&b, INDEX_MORE, rows, many), index_of(&b, INDEX_ADD, own, one), own);
  assert_false(loops_verify(tree.t, &why));
  assert_non_null(strstr(text_string(&why), "an element may lie outside of its buffer"));
  int64_t nsteps = 1 << 26;
  assert_true(unit_prove(program, 0, &nsteps, &why));
  *end_of_rows = before;
  text_deinit(&why);
  end(&tree);
}

// Open extents are also proved where the last choice of chains is taken: 2050 is two chains of more than 1024.
static void chains_of_open_extents_are_proved(void **state) {
  (void)state;
  Tree tree = make_tree(HEAD "dims: {K: 100}\n"
                             "inputs: [{name: x, type: f32, shape: [3, K]}, {name: w, type: f32, shape: [K, 20]}]\n"
                             "nodes: [{op: MatMul, inputs: [x, w], outputs: [y]}]\noutputs: [y]\n",
                        NULL, true);
  LoopNode *run = *link_of_var(&tree.t->step, VAR_RUN_LENGTH, INDEX_CHOOSE);
  const Index *length = run->value, *chain = index_number(&(TreeBuilder){.arena = &tree.arena}, CHAIN, 0);
  run->value = chain;
  must_be_wrong(tree.t, "with K = 2050: the kernel of MatMul (line 5): element 0 of y has another value");
  run->value = length;
  end(&tree);
}

// A step of four rows, of which a block has three: the loop over four never runs, and that over one calls the same
// step.
static void steps_that_never_run_vouch_for_none(void **state) {
  (void)state;
  Tree tree = tree_of(HEAD "inputs: [{name: x, type: f32, shape: [3, 5000]}]\n"
                           "nodes: [{op: ReduceMean, inputs: [x], outputs: [y], attributes: {axes: [1]}}]\n"
                           "outputs: [y]\n",
                      (const char *const[]){"rows=4", NULL});
  Text why;
  text_init(&why, &system_allocator);
  assert_int_equal(node_of(&tree.t->block, NODE_CALL, 0)->count, 4);
  LoopNode *run_end = *link_of_var(&tree.t->step, VAR_RUN_END, INDEX_CHOOSE);
  const Index *least = run_end->value;
  run_end->value = least->args[1];
  assert_false(loops_verify(tree.t, &why));
  assert_non_null(strstr(text_string(&why), "an element may lie outside of its buffer"));
  run_end->value = least;
  text_deinit(&why);
  end(&tree);
}

// Right trees: addresses that are sums of many indices, loops over nothing from the first number on, numbers that no
// call has.
static void addresses_of_many_axes_are_accepted(void **state) {
  (void)state;
  static const struct Row {
    const char *text;
    bool is_open;
    const char *schedule;
  } rows[] = {
      {HEAD "dims: {A: 24}\ninputs: [{name: x, type: f32, shape: [A, A, A, A, A, A, 20]}]\n"
            "nodes: [{op: StaticTranspose, inputs: [x], outputs: [y], attributes: {order: [5, 1, 0, 3, 6, 4, 2]}}]\n"
            "outputs: [y]\n",
       true},
      {HEAD "dims: {A: 100, B: 3}\n"
            "inputs: [{name: x, type: f32, shape: [A, B, 15, 3, 48, A, 5], order: [0, 5, 2, 6, 1, 4, 3]}, "
            "{name: w, type: f32, shape: [5, B]}]\nnodes: [{op: MatMul, inputs: [x, w], outputs: [y]}]\n"
            "outputs: [y]\n",
       true},
      {HEAD "dims: {A: 6, C: 18, D: 2, E: 64}\n" // D may be less than a vector, or more
            "inputs: [{name: x, type: f32, shape: [33, E, 15, D, 48, C, A], order: [4, 1, 5, 2, 0, 6, 3]}]\n"
            "nodes: [{op: ArgMax, inputs: [x], outputs: [y], attributes: {axis: 6}}]\noutputs: [y]\n",
       true},
      {HEAD "dims: {A: 3, D: 2, E: 3, F: 6, G: 4}\n" // 14 axes, and as many terms
            "inputs: [{name: x, type: f32, shape: [G, D, 15, E, E, F, A]}]\n"
            "nodes: [{op: Tile, inputs: [x], outputs: [y], attributes: {repeats: [3, 2, 3, 3, 3, 2, 3]}}]\n"
            "outputs: [y]\n",
       true},
      {HEAD "dims: {A: 33, C: 64}\ninputs: [{name: x, type: f64, shape: [A, 64, C]}, " // a sum reads a saved mask
            "{name: r, type: f64, shape: [A, 64, C]}, {name: d, type: f64, shape: [A, 64, C]}]\nnodes:\n"
            "- {op: ReLUBackward, inputs: [r, d], outputs: [e], attributes: {use_dst: true}}\n"
            "- {op: LayerNorm, inputs: [x], outputs: [y, m, v], attributes: {use_affine: false, begin_norm_axis: 1}}\n"
            "- {op: LayerNormBackward, inputs: [x, e, m, v], outputs: [dx], attributes: {use_affine: false, "
            "begin_norm_axis: 1}}\noutputs: [dx]\n",
       true, "masks=1"},
      {HEAD "dims: {T: 3}\ninputs: [{name: x, type: f32, shape: [20, 3]}]\nnodes:\n" // T is at most 20
            "- {op: Slice, inputs: [x], outputs: [y], attributes: {starts: [T - 1], ends: [T], axes: [0]}}\n"
            "- {op: Pad, inputs: [x], outputs: [z], attributes: {pads_begin: [T, 0], pads_end: [20 - T, 0]}}\n"
            "outputs: [y, z]\n",
       true},
      {HEAD "dims: {A: 7, C: 100, D: 2}\n" // of which none may be 32771: the elements are more than numbers can count
            "inputs: [{name: x, type: f32, shape: [8]}]\n"
            "constants: [{name: ones, type: f32, shape: [A, C, D, D, D, 7], value: 1.0}]\nnodes:\n"
            "- {op: ReduceSum, inputs: [ones], outputs: [n], attributes: {axes: [0, 1, 2, 3, 4, 5]}}\n"
            "- {op: Divide, inputs: [x, n], outputs: [y]}\noutputs: [y]\n",
       true},
      {HEAD "dims: {A: 100, B: 24, C: 9, G: 2}\n" // blocks of 64 of the 105 elements of a sum, which begin anywhere
            "inputs: [{name: x, type: f32, shape: [A, G, 15, B, C, 7], order: [0, 5, 4, 2, 3, 1]}]\n"
            "nodes: [{op: ReduceL2, inputs: [x], outputs: [y], attributes: {axes: [2, 5]}}]\noutputs: [y]\n",
       true},
      {HEAD "inputs: [{name: x, type: f32, shape: [8, 100, 4, 4, 8, 100, 20], order: [3, 2, 6, 0, 4, 1, 5]}]\n"
            "nodes: [{op: Tile, inputs: [x], outputs: [y], attributes: {repeats: [1, 3, 2, 1, 2, 1, 3]}}]\n"
            "outputs: [y]\n"},
      {HEAD "inputs: [{name: x, type: f16, shape: [64, 64, 64]}, {name: w, type: f16, shape: [64, 7, 64]}, "
            "{name: z, type: f32, shape: [64, 1, 7]}]\n"
            "constants: [{name: c, type: f32, shape: [64, 64, 7], value: 0.0}]\nnodes:\n" // rows share j
            "- {op: MatMul, inputs: [x, w], outputs: [p], attributes: {transpose_b: true}}\n"
            "- {op: GenIndex, inputs: [c], outputs: [{name: i, type: s32}], attributes: {axis: 1}}\n"
            "- {op: GenIndex, inputs: [c], outputs: [{name: j, type: s32}], attributes: {axis: 0}}\n"
            "- {op: Equal, inputs: [j, i], outputs: [e]}\n- {op: Select, inputs: [e, z, c], outputs: [s]}\n"
            "- {op: TypeCast, inputs: [s], outputs: [{name: f, type: f16}]}\n"
            "- {op: Add, inputs: [p, f], outputs: [y]}\noutputs: [y]\n"},
      {HEAD "inputs: [{name: x, type: f32, shape: [2, 3, 8]}, {name: w, type: bf16, shape: [4, 3, 3]}]\nnodes:\n"
            "- {op: TypeCast, inputs: [x], outputs: [{name: h, type: bf16}]}\n" // a copy finds out what is inside, too
            "- {op: Convolution, inputs: [h, w], outputs: [y], attributes: {strides: [2], pads_begin: [1], "
            "pads_end: [1], dilations: [1], data_format: NCX, weights_format: OIX}}\noutputs: [y]\n"},
      {HEAD "inputs: [{name: x, type: f32, shape: [48, 48, 1]}, "
            "{name: z, type: f32, shape: [2, 48, 48, 1], order: [2, 3, 0, 1]}]\n"
            "nodes: [{op: MatMul, inputs: [x, z], outputs: [y], attributes: {transpose_a: true}}]\noutputs: [y]\n"},
  };
  for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) { // with and without fusion
    const struct Row *row = &rows[i / 2];
    Lowered l;
    begin(&l);
    if (row->schedule) assert_true(schedule_override(&l.overrides, row->schedule, &l.d));
    lower_graph(&l, yaml_read(&system_allocator, "test.yaml", row->text, strlen(row->text), NULL, &l.d), row->is_open,
                i % 2);
    if (!l.p || !pipeline_build_trees(l.p, true)) fail_msg("row %zu: %s", i / 2, l.p ? l.p->unsound : "no program");
    deinit(&l);
  }
}

static void names_are_made_visible(void **state) {
  (void)state;
  Tree tree = tree_of(HEAD "inputs: [{name: x, type: f32, shape: [50, 100]}]\nnodes:\n"
                           "- {op: Exp, inputs: [x], outputs: [y]}\noutputs: [y]\n",
                      NULL);
  Text why;
  text_init(&why, &system_allocator);
  LoopNode **link = link_to(&tree.t->step, NODE_STORE, 0), *n = *link;
  ((Value *)tree.t->k->accesses[n->to.of].value)->name = "a\x1b[31m";
  *link = n->next;
  assert_false(is_sound(tree.t, &why));
  assert_non_null(strstr(text_string(&why), "[31m"));
  assert_null(strchr(text_string(&why), '\x1b'));
  *link = n;
  text_deinit(&why);
  end(&tree);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spoilt_loops_are_found),
      cmocka_unit_test(interiors_have_loops_of_their_own),
      cmocka_unit_test(spoilt_sums_are_found),
      cmocka_unit_test(elements_of_rows_have_accumulators),
      cmocka_unit_test(spoilt_partial_sums_are_found),
      cmocka_unit_test(spoilt_values_are_found),
      cmocka_unit_test(spoilt_places_are_found),
      cmocka_unit_test(spoilt_copies_are_found),
      cmocka_unit_test(spoilt_streams_are_found),
      cmocka_unit_test(streams_begin_at_cache_lines_whatever_is_set),
      cmocka_unit_test(trees_of_spoilt_loops_are_found),
      cmocka_unit_test(blocks_that_share_bytes_are_found),
      cmocka_unit_test(names_are_made_visible),
      cmocka_unit_test(addresses_are_inside_for_all_extents),
      cmocka_unit_test(chains_of_open_extents_are_proved),
      cmocka_unit_test(steps_that_never_run_vouch_for_none),
      cmocka_unit_test(addresses_of_many_axes_are_accepted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
