// The verifier of loop trees and the proof by running (ir/loops/prove.h) on trees of many graphs: one of them refuses
// the tree without any one of its nodes, or with any field of a node changed, except those in the tables below, and
// nodes that no run of the proof reaches. Where all extents are literal, the proof runs all that there is to run: a
// changed tree that it accepts computes the same, as where an axis has one index. Such trees are counted, and must be
// few. That both accept each tree as passes make it is tested in loops_prove_test.c.
#include "ir/loops/print.h"
#include "ir/loops/prove.h"
#include "tests/unit/loop_trees.h"
#include "tests/unit/window_kernels.h"

// Nodes

// Nodes without which a tree does the same, if more slowly.
static const struct Spare {
  LoopNodeKind kind;
  VarKind var;          // VAR_NONE: any
  bool is_behind_whole; // behind a loop over whole steps, which may leave nothing
  bool is_group;        // goes over groups of vectors
} spares[] = {
    {NODE_COMMENT, VAR_NONE},
    {NODE_PREFETCH, VAR_NONE},
    {NODE_BARRIER, VAR_NONE},
    {NODE_FOR, VAR_OUTER},  // several rows at once: the loop behind it takes one by one
    {NODE_FOR, VAR_COLUMN}, // several columns at once: the condition behind it takes all that are left
    {NODE_FOR, VAR_LANE, .is_behind_whole = true},
    {NODE_FOR, VAR_LANE, .is_group = true}, // several vectors at once, likewise
};

static bool only_prefetches(const LoopNode *nodes) {
  for (const LoopNode *n = nodes; n; n = n->next)
    if (n->kind != NODE_PREFETCH && n->kind != NODE_INDEX) return false;
  return true;
}

static bool has_streams(const Loop *loop) {
  bool is_any = false;
  for (size_t i = 0; i < loop->nroots; i++) is_any |= loop->roots[i].is_streamed;
  return is_any;
}

static bool is_peel(const LoopNode *n) {
  return n->kind == NODE_IF && !n->test && n->body && n->body->kind == NODE_INDEX &&
         n->body->value->op == INDEX_TO_LINE;
}

static bool is_spare(const LoopTree *t, const LoopNode *before, const LoopNode *n) {
  const bool is_behind = before && before->kind == NODE_FOR && before->is_counter;
  const bool is_group = n->kind == NODE_FOR && n->step->op == INDEX_NUMBER && n->step->number > LANES;
  if (n->kind == NODE_FOR && only_prefetches(n->body)) return true;
  // The elements in front of the first cache line, which else are in the first vectors.
  if (is_peel(n) && !has_streams(t->loop)) return true;
  for (size_t i = 0; i < sizeof spares / sizeof *spares; i++)
    if (n->kind == spares[i].kind && (!spares[i].var || n->var.kind == spares[i].var) &&
        is_behind >= spares[i].is_behind_whole && is_group >= spares[i].is_group)
      return true;
  return false;
}

// The program whose trees are spoilt, and the unit of kernels of the tree.
static const Program *program;
static size_t unit;
static size_t nfailures, nmutants, nrefused, nproved, nunreached, nequal; // refused by the verifier; by the proof
enum { STEPS = 1 << 22, MOST_STEPS = 1 << 18 };                           // MOST_STEPS: of units whose trees are spoilt

static bool is_proved(int64_t *nsteps, Text *why) {
  const int64_t before = *nsteps;
  const bool ok = unit_prove(program, unit, nsteps, why);
  *nsteps = before - *nsteps;
  return ok;
}

// Whether a run of the proof executes the node; of a loop or condition, a node inside of it.
static bool is_reached(LoopNode *n) {
  static const Index zero = {.op = INDEX_NUMBER}, one = {.op = INDEX_NUMBER, .number = 1};
  bool is_any = false;
  for (int b = 0; b < 2; b++)
    for (LoopNode *inner = b ? n->otherwise : n->body; inner && !is_any; inner = inner->next)
      is_any = is_reached(inner);
  if (is_any || n->body || n->otherwise) return is_any;
  const LoopNode before = *n;
  int64_t nsteps = STEPS;
  Text why;
  text_init(&why, &system_allocator);
  *n = (LoopNode){// a loop that fails
                  .kind = NODE_FOR, .next = before.next, .var = {VAR_LANE, 0},
                  .value = &zero,   .end = &one,         .step = &zero};
  is_any = !is_proved(&nsteps, &why);
  *n = before;
  text_deinit(&why);
  return is_any;
}

// Refused, after saying why.
static void must_be_wrong(const LoopTree *t, const LoopNode *n, bool is_there, const char *what, const char *how) {
  Text why;
  int64_t nsteps = STEPS;
  text_init(&why, &system_allocator);
  nmutants++;
  if (!loops_verify(t, &why)) nrefused++;
  else if (!is_proved(&nsteps, &why)) nproved++;
  else if (!is_there) nunreached++;
  else if (!program->graph->ndims) nequal++;
  else {
    loops_print_node(t, n, &why);
    print_error("%s: accepted though %s: %s (kind %d)\n", what, how, text_string(&why), n->kind);
    nfailures++;
  }
  assert_true(!is_there || !program->graph->ndims || (why.nbytes > 0 && !why.out_of_memory));
  text_deinit(&why);
}

static void delete_each(const LoopTree *t, LoopNode **link, const char *what) {
  const LoopNode *before = NULL;
  for (; *link; before = *link, link = &(*link)->next) {
    LoopNode *n = *link;
    if (!is_spare(t, before, n)) {
      const bool is_there = is_reached(n);
      *link = n->next;
      must_be_wrong(t, n, is_there, what, "it is not there");
      *link = n;
    }
    delete_each(t, &n->body, what);
    delete_each(t, &n->otherwise, what);
  }
}

// Of loops over nothing much is idle.
static bool has_elements(const LoopTree *t) {
  return axes_nelems(t->k, loop_inner_axes(t->loop) | loop_outer_axes(t->loop)) != 0;
}

static void delete_nodes(LoopTree *t, Arena *arena, const char *what) {
  (void)arena;
  if (!has_elements(t)) return;
  delete_each(t, &t->step, what);
  delete_each(t, &t->tail_step, what);
  delete_each(t, &t->block, what);
}

// Fields

typedef enum FieldType { FIELD_BOOL, FIELD_INT, FIELD_INT64, FIELD_INDEX, FIELD_CONDITION } FieldType; // that may go

#define FIELD(type, name)                                                                                              \
  { #name, type, offsetof(LoopNode, name) }
static const struct Field {
  const char *name;
  FieldType type;
  size_t offset;
} fields[] = {
    FIELD(FIELD_INDEX, value),          FIELD(FIELD_INDEX, end),         FIELD(FIELD_INDEX, step),
    FIELD(FIELD_INDEX, test),           FIELD(FIELD_INDEX, bound),       FIELD(FIELD_INDEX, to.index),
    FIELD(FIELD_INDEX, from.index),     FIELD(FIELD_INDEX, from.within), FIELD(FIELD_CONDITION, from.within),
    FIELD(FIELD_CONDITION, test),       FIELD(FIELD_BOOL, is_counter),   FIELD(FIELD_BOOL, is_vector),
    FIELD(FIELD_BOOL, has_fewer_lanes), FIELD(FIELD_BOOL, is_fused),     FIELD(FIELD_INT, var.kind),
    FIELD(FIELD_INT, var.of),           FIELD(FIELD_INT, to.buffer),     FIELD(FIELD_INT, to.of),
    FIELD(FIELD_INDEX, to.item),        FIELD(FIELD_INT, from.buffer),   FIELD(FIELD_INT, from.of),
    FIELD(FIELD_INDEX, from.item),      FIELD(FIELD_INT, expr),          FIELD(FIELD_INT64, count),
};

// The fields that decide what each kind of node does. Fields that affect only speed, or that some nodes of the kind do
// not use, are left out.
static const char *const matters[NODE_FENCE + 1] = {
    [NODE_FOR] = "value end step bound is_counter var.kind",
    [NODE_IF] = "test",
    [NODE_BUFFER] = "to.buffer to.of to.item from.index from.buffer from.of count has_fewer_lanes",
    [NODE_LET] = "from.index from.buffer from.of from.item is_vector expr test from.within",
    [NODE_UPDATE] = ("to.index to.buffer to.of to.item from.index from.buffer from.of from.item step is_vector "
                     "is_fused expr"),
    [NODE_STORE] = "to.index to.buffer to.of to.item from.buffer from.of has_fewer_lanes is_vector expr",
    [NODE_MOVE] = "to.index to.buffer to.of to.item from.index from.buffer from.of from.item step count expr",
    [NODE_CALL] = "value has_fewer_lanes",
    [NODE_SCATTER] = "to.buffer to.of expr",
};

// Of the indices: counters, flags, and the number of peeled elements. Others enter what other nodes do.
static const char *matters_of(const LoopNode *n) {
  const bool is_flag = n->var.kind == VAR_WANTED || n->var.kind == VAR_STREAMED;
  // A loop that stores only what the caller does not want does not run.
  if (n->kind == NODE_IF && n->test && (n->test->op == INDEX_EXISTS || n->test->var.kind == VAR_WANTED)) return NULL;
  if (n->kind != NODE_INDEX) return matters[n->kind];
  return n->is_counter || n->value->op == INDEX_TO_LINE ? "value test var.kind" : is_flag ? "var.kind var.of" : NULL;
}

static bool is_word_of(const char *words, const char *word) {
  const size_t nbytes = strlen(word);
  for (const char *at = words; at && (at = strstr(at, word)) != NULL; at += nbytes)
    if ((at == words || at[-1] == ' ') && (!at[nbytes] || at[nbytes] == ' ')) return true;
  return false;
}

static bool spoilt_is_reached; // the node that is spoilt

// The ends of a part of an axis that is cut into runs: two or three runs do not tell all of them apart.
static bool is_part_of_runs(const LoopNode *n, const struct Field *f) {
  const bool is_end = strcmp(f->name, "value") == 0 || strcmp(f->name, "end") == 0;
  return n->kind == NODE_FOR && is_end && (n->bound || (n->value && n->value->op == INDEX_CHOOSE));
}

static void spoil_index(const LoopTree *t, const LoopNode *n, Index *i, const char *what, const char *how) {
  if (!i) return;
  const Index before = *i;
  switch (i->op) {
  case INDEX_NUMBER: i->number++; break;
  case INDEX_VAR: *i = (Index){.op = INDEX_NUMBER, .number = 3}; break;
  case INDEX_BLOCK_LENGTH: i->op = INDEX_NCUT_BLOCKS; break;
  case INDEX_NCUT_BLOCKS: i->op = INDEX_BLOCK_LENGTH; break;
  case INDEX_CHOOSE: i->args[1] = before.args[2], i->args[2] = before.args[1]; break;
  default: i->op = i->op == INDEX_ADD ? INDEX_SUBTRACT : INDEX_ADD;
  }
  must_be_wrong(t, n, spoilt_is_reached, what, how);
  *i = before;
  for (int a = 0; a < 3; a++) spoil_index(t, n, (Index *)i->args[a], what, how);
}

// A copy, as nodes share indices.
static Index *copy_index(Arena *arena, const Index *i) {
  Index *copy = i ? ARENA_NEW(arena, Index) : NULL;
  if (!copy) return NULL;
  *copy = *i;
  for (int a = 0; a < 3; a++) copy->args[a] = copy_index(arena, i->args[a]);
  return copy;
}

static void spoil_field(const LoopTree *t, LoopNode *n, const struct Field *f, Arena *arena, const char *what) {
  const LoopNode before = *n;
  char *at = (char *)n + f->offset;
  if (f->type == FIELD_INDEX) {
    const Index **index = (const Index **)at;
    Index *copy = copy_index(arena, *index);
    *index = copy;
    spoil_index(t, n, copy, what, f->name);
  } else if (f->type == FIELD_CONDITION) {
    const Index **index = (const Index **)at;
    if (*index) {
      *index = NULL;
      must_be_wrong(t, &before, spoilt_is_reached, what, f->name);
    }
  } else {
    if (f->type == FIELD_BOOL) *(bool *)at = !*(bool *)at;
    else if (f->type == FIELD_INT64) --*(int64_t *)at;
    else ++*(int *)at;
    must_be_wrong(t, &before, spoilt_is_reached, what, f->name);
  }
  *n = before;
}

// Streams whatever the address.
static void spoil_flag(const LoopTree *t, LoopNode *n, const char *what) {
  static const Index always = {.op = INDEX_NUMBER, .number = 1};
  const Index *before = n->value;
  const bool is_aligned = before->op == INDEX_IS_AT_LINE || (before->op == INDEX_BOTH && before->args[0]->address);
  if (n->var.kind != VAR_STREAMED || !is_aligned) return;
  n->value = &always;
  must_be_wrong(t, n, true, what, "always");
  n->value = before;
}

static void spoil_each(const LoopTree *t, LoopNode *n, Arena *arena, const char *what) {
  for (; n; n = n->next) {
    spoilt_is_reached = matters_of(n) && is_reached(n);
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
      if (is_word_of(matters_of(n), fields[f].name) && !is_part_of_runs(n, &fields[f]))
        spoil_field(t, n, &fields[f], arena, what);
    if (n->kind == NODE_INDEX) spoil_flag(t, n, what);
    spoil_each(t, n->body, arena, what);
    spoil_each(t, n->otherwise, arena, what);
  }
}

static void spoil_fields(LoopTree *t, Arena *arena, const char *what) {
  if (!has_elements(t)) return;
  spoil_each(t, t->step, arena, what);
  spoil_each(t, t->tail_step, arena, what);
  spoil_each(t, t->block, arena, what);
}

static void (*spoil_tree)(LoopTree *t, Arena *arena, const char *what);

// Spoils the trees of units that are proved in a few steps.
static void spoil_program(Lowered *l, const char *what) {
  Arena arena;
  arena_init(&arena, &system_allocator);
  program = l->p;
  for (int is_optional = 0; is_optional < 2 && program; is_optional++) {
    assert_true(pipeline_build_trees(l->p, is_optional));
    for (size_t k = 0; k < program->nkernels; k++) {
      int64_t nsteps = STEPS;
      Text why;
      text_init(&why, &system_allocator);
      unit = program_unit_first(program, (uint32_t)k);
      if (!is_proved(&nsteps, &why)) fail_msg("%s: %s", what, text_string(&why));
      text_deinit(&why);
      for (size_t i = 0; i < program->schedules[k]->nloops && nsteps > 0 && nsteps < MOST_STEPS; i++)
        spoil_tree(program_tree(program, k, i), &arena, what);
    }
  }
  arena_deinit(&arena);
}

// Programs with nodes that the trees of other graphs rarely have

static void spoil_windows(void) {
  for (size_t i = 0; i < NWINDOWS; i++) {
    char text[1024];
    Lowered l;
    begin(&l);
    window_graph_text(&windows[i], text, sizeof text);
    lower_graph(&l, yaml_read(&system_allocator, "window.yaml", text, strlen(text), NULL, &l.d), false, false);
    assert_non_null(l.p);
    if (!l.p) return;
    l.p->schedules[0] = window_schedule(&windows[i], &l.p->arena, l.p->schedules[0]->kernel, NULL);
    snprintf(text, sizeof text, "window %zu", i);
    spoil_program(&l, text);
    deinit(&l);
  }
}

// Products whose trees have nodes that the trees of other graphs rarely have.
static const struct Product {
  const char *what, *text;
  int rows; // of a step; 0: as it is tuned
} products[] = {
    {"panels of rows, the last of them narrower",
     "format: ngrad/1\nname: copies\ninputs:\n  - {name: x, type: f32, shape: [20, 18]}\n"
     "  - {name: w, type: f32, shape: [37, 18]}\n"
     "nodes:\n  - {op: MatMul, inputs: [x, w], outputs: [y], attributes: {transpose_b: true}}\noutputs: [y]\n"},
    {"vectors of all rows of a micro-kernel",
     "format: ngrad/1\nname: rows\ninputs:\n  - {name: x, type: f32, shape: [1, 2, 8, 8]}\n"
     "  - {name: w, type: f32, shape: [20, 2, 3, 3]}\n  - {name: z, type: f32, shape: [1, 20, 8, 8]}\n"
     "nodes:\n  - {op: Convolution, inputs: [x, w], outputs: [c], attributes: {strides: [1, 1], pads_begin: [1, 1], "
     "pads_end: [1, 1], dilations: [1, 1], data_format: NCX, weights_format: OIX}}\n"
     "  - {op: Add, inputs: [c, z], outputs: [y]}\noutputs: [y]\n",
     8},
};

static void spoil_products(void) {
  for (const struct Product *p = products; p < products + sizeof products / sizeof *products; p++) {
    Lowered l;
    begin(&l);
    l.overrides.key[SCHEDULE_ROWS].is_set = p->rows > 0;
    l.overrides.key[SCHEDULE_ROWS].value = p->rows;
    lower_graph(&l, yaml_read(&system_allocator, "product.yaml", p->text, strlen(p->text), NULL, &l.d), false, false);
    assert_non_null(l.p);
    if (!l.p) return;
    assert_true(p->rows || loop_has(&l.p->schedules[0]->loops[0], LOOP_ROW_COPY));
    spoil_program(&l, p->what);
    deinit(&l);
  }
}

static void spoil_each_program(void (*spoil)(LoopTree *t, Arena *arena, const char *what), uint64_t count) {
  spoil_tree = spoil;
  nfailures = nmutants = nrefused = nproved = nunreached = nequal = 0;
  for (RandomSeeds s = random_seeds(count); random_next_seed(&s);) with_random_trees(s.seed, spoil_program);
  spoil_windows();
  spoil_products();
  with_trees_of("models/*.yaml", spoil_program);
  print_message("%zu mutants, %zu refused by the verifier, %zu by the proof, %zu not reached, %zu compute the same\n",
                nmutants, nrefused, nproved, nunreached, nequal);
  assert_int_equal(nfailures, 0);
  assert_true(nequal <= nmutants / 40);
}

static void each_node_matters(void **state) {
  (void)state;
  spoil_each_program(delete_nodes, number_of_graphs(60));
}

static void each_field_matters(void **state) {
  (void)state;
  spoil_each_program(spoil_fields, number_of_graphs(40));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      random_unit_test(each_node_matters),
      random_unit_test(each_field_matters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
