// Random graphs with states whose updates read other states, swap them, or transpose them; and runs in place.
#ifndef NGRAD_TESTS_UNIT_STATE_GRAPH_H
#define NGRAD_TESTS_UNIT_STATE_GRAPH_H

#include "frontend/api/build.h"
#include "passes/memory/verify.h"
#include "tests/unit/api_case.h"
#include "tests/unit/quick_compiler.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_VALUES = 48, MOST_NAME = 24, MOST_TENSORS = 256, NSTEPS = 1 << 26 };

// Random graphs: groups of states and nodes that do not touch each other, so that one run of the compiler serves many

typedef enum Form { MATRIX, SQUARE, ROW, NFORMS } Form; // [R, C], [C, C], [C]

typedef struct Group {
  uint64_t random;
  int number, rows, columns;
  char names[NFORMS][MOST_VALUES][MOST_NAME];
  int counts[NFORMS];
} Group;

static inline int draw(Group *g, int count) {
  g->random = g->random * 6364136223846793005U + 1442695040888963407U;
  return (int)((g->random >> 33) % (uint64_t)count);
}

static inline const char *pick(Group *g, Form form) {
  return g->names[form][draw(g, g->counts[form])];
}

static inline const char *add_name(Group *g, Form form) {
  char *name = g->names[form][g->counts[form]];
  snprintf(name, MOST_NAME, "%c%d_%d", "msr"[form], g -> number, g -> counts[form]);
  g->counts[form]++;
  return name;
}

static inline void add_tensor(Text *t, Group *g, Form form, const char *init) {
  const char *name = add_name(g, form);
  text_format(t, "  - {name: %s, type: f32, shape: [", name);
  if (form != ROW) text_format(t, "%d, ", form == MATRIX ? g->rows : g->columns);
  text_format(t, "%d]%s}\n", g->columns, init);
}

static inline void add_node(Text *t, Group *g) {
  static const char *const binary[] = {"Multiply", "Add", "Subtract"};
  const Form form = (Form)draw(g, NFORMS);
  const char *a = pick(g, form), *b = pick(g, form), *matrix = pick(g, MATRIX), *other = pick(g, MATRIX);
  const char *square = pick(g, SQUARE), *row = pick(g, ROW), *op = binary[draw(g, 3)];
  const int way = draw(g, 4);
  const char *out = add_name(g, form);
  if (way == 0 && form == MATRIX)
    text_format(t, "  - {op: MatMul, inputs: [%s, %s], outputs: [%s]}\n", matrix, square, out);
  else if (way == 0 && form == SQUARE)
    text_format(t, "  - {op: MatMul, inputs: [%s, %s], outputs: [%s], attributes: {transpose_a: true}}\n", matrix,
                other, out);
  else if (way == 0)
    text_format(t, "  - {op: ReduceSum, inputs: [%s], outputs: [%s], attributes: {axes: [0]}}\n", matrix, out);
  else if (way == 1 && form == SQUARE)
    text_format(t, "  - {op: StaticTranspose, inputs: [%s], outputs: [%s], attributes: {order: [1, 0]}}\n", a, out);
  else if (way == 1) text_format(t, "  - {op: Tanh, inputs: [%s], outputs: [%s]}\n", a, out);
  else text_format(t, "  - {op: %s, inputs: [%s, %s], outputs: [%s]}\n", op, a, way == 2 ? row : b, out);
}

typedef struct GraphParts {
  Text inputs, states, nodes, outputs, updates;
} GraphParts;

static inline void add_group(GraphParts *p, int number, uint64_t seed, int most_nodes) {
  static const int extents[] = {1, 2, 3, 5, 16, 17, 40, 65};
  enum { NSTATES = 3 };
  Group g = {.random = seed * 7919 + (uint64_t)number, .number = number};
  g.rows = extents[draw(&g, 8)];
  g.columns = extents[draw(&g, 8)];
  for (Form form = MATRIX; form < NFORMS; form++)
    for (int i = 0; i < NSTATES; i++) add_tensor(&p->states, &g, form, ", init: zeros");
  for (Form form = MATRIX; form < NFORMS; form++) add_tensor(&p->inputs, &g, form, "");
  for (int i = 2 + draw(&g, most_nodes); i > 0; i--) add_node(&p->nodes, &g);
  text_format(&p->outputs, "%s%s", number ? ", " : "", pick(&g, (Form)draw(&g, NFORMS)));
  for (Form form = MATRIX; form < NFORMS; form++)
    for (int i = 0; i < NSTATES; i++)
      if (draw(&g, 4))
        text_format(&p->updates, "%s%s: %s", p->updates.nbytes ? ", " : "", g.names[form][i], pick(&g, form));
}

// Each group has at most most_nodes + 1 nodes.
static inline void make_graph(Text *t, uint64_t seed, int ngroups, int most_nodes) {
  GraphParts p;
  Text *parts[] = {&p.inputs, &p.states, &p.nodes, &p.outputs, &p.updates};
  for (size_t i = 0; i < 5; i++) text_init(parts[i], &system_allocator);
  for (int i = 0; i < ngroups; i++) add_group(&p, i, seed, most_nodes);
  text_format(t, "format: ngrad/1\nname: random\ninputs:\n%sstate:\n%snodes:\n%soutputs: [%s]\nupdates: {%s}\n",
              text_string(&p.inputs), text_string(&p.states), text_string(&p.nodes), text_string(&p.outputs),
              text_string(&p.updates));
  for (size_t i = 0; i < 5; i++) text_deinit(parts[i]);
}

// Runs

typedef struct Tensors {
  ng_tensor in[MOST_TENSORS], out[MOST_TENSORS];
} Tensors;

static inline void make_tensors(Tensors *t, ng_context *ctx, ng_graph *g) {
  *t = (Tensors){0};
  assert_int_equal(ng_graph_bind(g), NG_OK);
  assert_true(ng_graph_input_count(g) <= MOST_TENSORS && ng_graph_output_count(g) <= MOST_TENSORS);
  for (size_t i = 0; i < ng_graph_input_count(g); i++) assert_int_equal(ng_tensor_random(g, i, 7, &t->in[i]), NG_OK);
  for (size_t i = 0; i < ng_graph_output_count(g); i++) {
    ng_tensor_info info = ng_graph_output(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &t->out[i]), NG_OK);
  }
}

static inline void free_tensors(Tensors *t, ng_context *ctx, const ng_graph *g) {
  for (size_t i = 0; i < ng_graph_input_count(g); i++) ng_tensor_free(ctx, &t->in[i]);
  for (size_t i = 0; i < ng_graph_output_count(g); i++) ng_tensor_free(ctx, &t->out[i]);
}

// Gives each update its state's memory.
static inline void alias_updates(const ng_graph *g, const Tensors *t, ng_tensor *outputs) {
  memcpy(outputs, t->out, sizeof t->out);
  for (size_t i = 0; i < ng_graph_state_count(g); i++) {
    const ng_state state = ng_graph_state(g, i);
    if (state.is_updated) outputs[state.output].data = t->in[state.input].data;
  }
}

static inline bool has_same_bits(const ng_tensor *a, const ng_tensor *b) {
  if (!a->data || !b->data) return ng_tensor_nbytes(a) == 0;
  return memcmp(a->data, b->data, ng_tensor_nbytes(a)) == 0;
}

static inline void run_both(ng_context *ctx, ng_graph *g, ng_kernel *k, const char *text, int threads) {
  Tensors apart, together;
  ng_tensor outputs[MOST_TENSORS];
  make_tensors(&apart, ctx, g);
  make_tensors(&together, ctx, g);
  assert_int_equal(ng_kernel_run(k, apart.in, apart.out, threads), NG_OK);
  alias_updates(g, &together, outputs);
  assert_int_equal(ng_kernel_run(k, together.in, outputs, threads), NG_OK);
  for (size_t i = 0; i < ng_graph_output_count(g); i++)
    if (!has_same_bits(&apart.out[i], &outputs[i]))
      fail_msg("%d threads: output %s differs if states are updated in place\n%s", threads, ng_graph_output(g, i).name,
               text);
  free_tensors(&apart, ctx, g);
  free_tensors(&together, ctx, g);
}

static inline void verify_plan(ng_graph *g, const ng_options *options, const char *text) {
  Build b = {0};
  Text why;
  text_init(&why, &system_allocator);
  int64_t nsteps = NSTEPS;
  assert_int_equal(build_graph(&b, g, options), NG_OK);
  assert_int_equal(build_kernels(&b), NG_OK);
  if (!pipeline_build_trees(b.program, false)) fail_msg("%s%s", b.program->unsound, text);
  if (!memory_verify(b.program, &nsteps, &why)) fail_msg("%s%s", text_string(&why), text);
  assert_true(nsteps > 0);
  text_deinit(&why);
  build_deinit(&b);
}

#endif
