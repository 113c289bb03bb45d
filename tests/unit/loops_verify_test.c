// The verifier of loop trees, or the proof by running, refuses deliberate mistakes, with a message.
// loops_prove_test.c tests that they accept trees of all kinds, loops_mutation_test.c that each node and field matters.
#include "ir/loops/print.h"
#include "ir/loops/prove.h"
#include "passes/schedule/build/tree.h"
#include "tests/unit/loop_trees.h"

#define HEAD "format: ngrad/1\nname: test\n"

static const Program *program; // of the tree
static bool is_only_run;       // it is not verified

static bool is_sound(const LoopTree *t, Text *why) {
  int64_t nsteps = 1 << 26;
  const bool ok = (is_only_run || loops_verify(t, why)) && unit_prove(program, 0, &nsteps, why);
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

// Nodes are found by their lines in `ngrad show --format loops`.

static bool has_line(const LoopTree *t, const LoopNode *n, const char *line) {
  Text text;
  text_init(&text, &system_allocator);
  loops_print_node(t, n, &text);
  const bool is_equal = strncmp(text_string(&text), line, strlen(line)) == 0;
  text_deinit(&text);
  return is_equal;
}

// The link to the nth node whose line begins so; NULL: there are fewer.
static LoopNode **find_link(const LoopTree *t, LoopNode **link, const char *line, int *nth) {
  LoopNode **found = NULL;
  for (; *link && !found; link = &(*link)->next) {
    if (has_line(t, *link, line) && !(*nth)--) return link;
    found = find_link(t, &(*link)->body, line, nth);
    if (!found) found = find_link(t, &(*link)->otherwise, line, nth);
  }
  return found;
}

static LoopNode **link_to(LoopTree *t, const char *line, int nth) {
  LoopNode **link = find_link(t, &t->step, line, &nth);
  if (!link) link = find_link(t, &t->tail_step, line, &nth);
  if (!link) link = find_link(t, &t->block, line, &nth);
  if (!link) fail_msg("no node has the line %s", line);
  return link;
}

static LoopNode *node_of(LoopTree *t, const char *line) {
  return *link_to(t, line, 0);
}

// Rows of vectors with a rest; sums along rows, in runs, and over rows.
static const char layer_norm_gradient[] =
    HEAD "inputs:\n- {name: x, type: f32, shape: [10, 1240]}\n- {name: dy, type: f32, shape: [10, 1240]}\n"
         "- {name: mean, type: f32, shape: [10]}\n- {name: variance, type: f32, shape: [10]}\n"
         "- {name: gamma, type: f32, shape: [1240]}\nnodes:\n"
         "- {op: LayerNormBackward, inputs: [x, dy, mean, variance, gamma, ~], outputs: [dx, dgamma, dbeta]}\n"
         "outputs: [dx, dgamma, dbeta]\n";

// Planes that begin within cache lines, and so are peeled; sums in groups of four vectors.
static const char planes[] =
    HEAD "inputs:\n- {name: x, type: f32, shape: [2, 8, 71, 71]}\n- {name: g, type: f32, shape: [8]}\nnodes:\n"
         "- {op: BatchNormForwardTraining, inputs: [x, g, g, g, g], outputs: [y, m, v, bm, bv],\n"
         "   attributes: {epsilon: 1.0e-5, data_format: NCX}}\noutputs: [y]\n";

// Rows 2 * oy + ky - 1 of 7: oy 0 reaches above the first row, oy 3 below the last one.
static const char windows[] =
    HEAD "inputs: [{name: x, type: f32, shape: [2, 16, 7, 8]}, {name: dy, type: f32, shape: [2, 16, 4, 8]}]\nnodes:\n"
         "- {op: ConvolutionBackwardWeights, inputs: {src: x, diff_dst: dy}, outputs: [dw], "
         "attributes: {strides: [2, 1], pads_begin: [1, 0], pads_end: [1, 0], dilations: [1, 1], "
         "groups: 16, data_format: NCX, weights_format: OIX, weights_shape: [16, 1, 3, 1]}}\noutputs: [dw]\n";

// With rows in lanes, element 17 of a row is added where lane 1 would add it.
static const char sums_of_rows[] =
    HEAD "inputs: [{name: x, type: f32, shape: [400, 18]}]\n"
         "nodes: [{op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [1]}}]\noutputs: [y]\n";

static const char copies[] = HEAD "inputs: [{name: x, type: f32, shape: [50, 7]}]\nnodes:\n"
                                  "- {op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}\noutputs: [y]\n";

typedef struct Change {
  enum { REMOVE_NODE, DOUBLE_NODE, SWAP_NODES, SET_INDEX, ADD_TO_COUNT, FLIP, SET_BUFFER } type;
  size_t member; // of LoopNode
  int64_t number;
} Change;

typedef struct Fault {
  const char *line; // the change is made to the nth node whose line begins so
  int nth;
  Change change;
  const char *expected; // a part of the message
} Fault;

#define REMOVE                                                                                                         \
  { REMOVE_NODE }
#define TWICE                                                                                                          \
  { DOUBLE_NODE }
#define SWAP                                                                                                           \
  { SWAP_NODES } // with the next one
#define SET(member, number)                                                                                            \
  { SET_INDEX, offsetof(LoopNode, member), number }
#define COUNT(number)                                                                                                  \
  { ADD_TO_COUNT, 0, number }
#define NOT(member)                                                                                                    \
  { FLIP, offsetof(LoopNode, member) }
#define TO(kind)                                                                                                       \
  { SET_BUFFER, offsetof(LoopNode, to.buffer), kind }

static const Fault faults_of_layer_norm[] = {
    {"for i0 in 0..1240", 0, SET(value, 16), "element 0 of dx has another value"},
    {"for i0 in 0..1240", 0, SET(step, 192), "element 0 of dx has another value"},
    {"for i += 16 while i + 16 <= i1", 0, SET(step, 32), "it must be the number of elements that are left, at most"},
    {"if i < i1", 0, REMOVE, "element 0 of dx has another value"},
    {"for r in 0..rows", 1, SET(end, 2), "element 2480 of dx has another value"},
    {"for o += 1 while", 0, REMOVE, "element 9920 of dx is never stored"},
    {"acc_sum_g[", 0, COUNT(-1), "there are 3 accumulators"},
    {"total_sum_g[", 0, COUNT(1), "it must add all accumulators of the sum to as many totals"},
    {"acc_sum_g[r] = fma", 0, SET(to.item, 0), "element 0 of dx has another value"},
    {"acc_sum_g[r] = fma", 0, NOT(is_fused), "its operand must be computed before it"},
    {"acc_sum_g[r] = fma", 0, TWICE, "element 0 of dx has another value"},
    {"acc_sum_g[r] = fma", 1, REMOVE, "element 0 of dx has another value"}, // of the tail
    {"total_sum_g[r] +=", 0, REMOVE, "element 0 of dx has another value"},
    {"held_dbeta = load", 0, REMOVE, "the buffer must be declared before it"},
    {"store held_dgamma", 0, REMOVE, "element 0 of dgamma has another value"},
    {"part_dbeta[i] = 0", 0, REMOVE, "reads what is not written: element 0 of dbeta"},
    {"part_dgamma = ", 0, REMOVE, "the buffer must be declared before it"},
    {"held_dbeta +=", 0, TO(BUFFER_PARTIALS), "part_dbeta[0] += dy: a vector must be added to accumulators"},
    {"scalar t8[r] = ", 0, SWAP, "must be computed before it"},
    {"scalar t8[r] = ", 0, TWICE, "is already computed"},
    {"local mean[", 0, REMOVE, "must have a declared array with an element for each row"},
    {"p_dy[r] = ", 0, REMOVE, "dy[r] + i: the buffer must be declared before it"},
    {"scalar sum_g[r] = ", 0, REMOVE, "mul(sum_g[r], 0.0008064516): its operand must be computed before"},
    {"store dx to p_dx[r] + i", 1, SET(to.index, 1240), "store dx to p_dx[r] + 1240: an element may lie outside"},
    {"store dx to p_dx[r] + i", 1, NOT(has_fewer_lanes), "has_fewer_lanes is set, but it is a scalar, or all lanes"},
    {"store dx to p_dx[r] + i", 1, TWICE, "writes an element that the loop has written already: element 0 of dx"},
    {"store dx to p_dx[r] + i", 2, REMOVE, "element 1232 of dx is never stored"}, // of the tail
    {NULL}};

static const Fault faults_of_windows[] = {{"for d6 in 0..1", 0, REMOVE, "element 0 of dw has another value"},
                                          {"for d6 in 1..3", 0, REMOVE, "element 0 of dw has another value"},
                                          {"for d6 in 1..3", 0, TWICE, "element 0 of dw has another value"},
                                          {"for d6 in 3..4", 0, REMOVE, "element 0 of dw has another value"},
                                          {NULL}};

static const Fault faults_of_sums_of_rows[] = {
    {"acc_y[16] = ", 0, COUNT(-15), "there are 1 accumulators"},
    {"acc_y[i % 16] +=", 0, SET(to.item, 0), "element 0 of y has another value"},
    {NULL}};

static const Fault faults_of_copies[] = {
    {"store power to spilled_power", 0, REMOVE, "element 0 of y has another value"},
    {"rows_x = rows of 7", 0, REMOVE, "element 0 of y has another value"},
    {"store rows_y to rows of 7", 0, REMOVE, "element 0 of y is never stored"},
    {"store y to rows_y", 0, REMOVE, "element 0 of y has another value"},
    {"if o < end", 0, REMOVE, "element 336 of y is never stored"},
    {"local spilled_power", 0, COUNT(-1), "store power to spilled_power + i * 16: an element may lie outside"},
    {"vector x = load p_x + i with stride 7", 0, NOT(has_fewer_lanes),
     "tail step: vector x = load p_x + i with stride"},
    {NULL}};

// What the executor finds without the verifier. Three blocks of rows, the last lanes of which are fewer.
static const char blocks[] =
    HEAD "inputs:\n- {name: x, type: f32, shape: [300, 100]}\n- {name: dy, type: f32, shape: [300, 100]}\n"
         "- {name: mean, type: f32, shape: [300]}\n- {name: variance, type: f32, shape: [300]}\n"
         "- {name: gamma, type: f32, shape: [100]}\nnodes:\n"
         "- {op: LayerNormBackward, inputs: [x, dy, mean, variance, gamma, ~], outputs: [dx, dgamma, dbeta]}\n"
         "outputs: [dx, dgamma, dbeta]\n";

static const Fault faults_of_runs[] = {
    {"for i += 16 while i + 16 <= 100", 1, SET(step, 32), "there are 24 lanes"},
    {"for i += 16 while i + 16 <= 100", 0, SET(step, 8), "reads out of bounds: element 100 of gamma"},
    {"end = ", 0, SET(value, 1000), "out of bounds"},
    {"end = ", 0, SET(value, 300), "another block of the loop writes"},
    {"store dx to p_dx[r] + i, n lanes", 1, NOT(has_fewer_lanes), "writes an element that"},
    {"store dx to p_dx[r] + i", 1, TO(BUFFER_TENSOR), "writes an element that the loop has written already"},
    {"part_dbeta = ", 0, SET(from.index, 0), "another block of the loop writes"},
    {NULL}};

static const Fault faults_of_streams[] = {
    {"fence", 0, REMOVE, "a block with streamed stores must end with a fence"},
    {"streams_y = 1", 0, REMOVE, "it uses a variable that is not set before it"},
    {"store y to p_y + d0 * 40328 + i", 2, NOT(is_streamed), "it must depend on VAR_STREAMED"},
    {"i += n", 0, REMOVE, "element 40328 of y, which is not aligned"},
    {"n = elements from p_y + d0", 0, REMOVE, "it uses a variable that is not set before it"},
    {NULL}};

static void change(LoopNode **link, const Change *c, Arena *arena) {
  LoopNode *n = *link, *next = n->next, *copy = ARENA_NEW(arena, LoopNode);
  char *member = (char *)n + c->member;
  assert_non_null(copy);
  *copy = *n;
  switch (c->type) {
  case REMOVE_NODE: *link = next; break;
  case DOUBLE_NODE: n->next = copy; break;
  case SWAP_NODES:
    if (!next) break; // nothing is wrong then, and the test fails
    *link = next;
    n->next = next->next;
    next->next = n;
    break;
  case SET_INDEX: *(const Index **)member = index_number(&(TreeBuilder){.arena = arena}, c->number, 0); break;
  case ADD_TO_COUNT: n->count += c->number; break;
  case FLIP: *(bool *)member = !*(bool *)member; break;
  case SET_BUFFER: *(BufferKind *)member = (BufferKind)c->number; break;
  }
}

static void faults_are_found(const char *text, const char *const *schedule, const Fault *faults) {
  Tree tree = tree_of(text, schedule);
  for (const Fault *f = faults; f->line; f++) {
    LoopNode **link = link_to(tree.t, f->line, f->nth), *n = *link, *next = n->next;
    const LoopNode before = *n, after = next ? *next : (LoopNode){0};
    change(link, &f->change, &tree.arena);
    must_be_wrong(tree.t, f->expected);
    *n = before;
    if (next) *next = after;
    *link = n;
  }
  end(&tree);
}

static void spoilt_sums_and_values_are_found(void **state) {
  (void)state;
  faults_are_found(layer_norm_gradient, NULL, faults_of_layer_norm);
  faults_are_found(sums_of_rows, NULL, faults_of_sums_of_rows);
}

static void interiors_have_loops_of_their_own(void **state) {
  (void)state;
  faults_are_found(windows, NULL, faults_of_windows);
}

static void spoilt_copies_are_found(void **state) {
  (void)state;
  faults_are_found(copies, NULL, faults_of_copies);
}

static void faults_are_found_by_running(void **state) {
  (void)state;
  is_only_run = true;
  faults_are_found(blocks, NULL, faults_of_runs);
  is_only_run = false;
}

static void spoilt_streams_are_found(void **state) {
  (void)state;
  faults_are_found(planes, (const char *const[]){"stream=1", NULL}, faults_of_streams);
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
  Index *end_of_rows = (Index *)node_of(tree.t, "for o += 16")->end;
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
  LoopNode *run = node_of(tree.t, "run = ");
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
  assert_int_equal(node_of(tree.t, "step, rows")->count, 4);
  LoopNode *run_end = node_of(tree.t, "i1 = ");
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
  LoopNode **link = link_to(tree.t, "store y", 0), *n = *link;
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
      cmocka_unit_test(spoilt_sums_and_values_are_found),
      cmocka_unit_test(interiors_have_loops_of_their_own),
      cmocka_unit_test(spoilt_copies_are_found),
      cmocka_unit_test(faults_are_found_by_running),
      cmocka_unit_test(spoilt_streams_are_found),
      cmocka_unit_test(streams_begin_at_cache_lines_whatever_is_set),
      cmocka_unit_test(trees_of_spoilt_loops_are_found),
      cmocka_unit_test(blocks_that_share_bytes_are_found),
      cmocka_unit_test(addresses_are_inside_for_all_extents),
      cmocka_unit_test(chains_of_open_extents_are_proved),
      cmocka_unit_test(steps_that_never_run_vouch_for_none),
      cmocka_unit_test(addresses_of_many_axes_are_accepted),
      cmocka_unit_test(names_are_made_visible),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
