// The table of choices (backends/interpreter/choices.c) against the interpreter: results jump only where an operand
// decides, and what is exact has no rounding error.
#include "backends/interpreter/choices.h"

#include "backends/interpreter/interpreter.h"
#include "tests/random_seeds.h"

#include <math.h>

enum { COUNT = 4000 };

static const RandomGraphOptions options = {.most_nodes = 1, .most_nelems = 300};

typedef struct Arrays {
  double *in[MAX_OPERANDS + MAX_VARIADIC], *out[MAX_OPERANDS];
} Arrays;

static size_t nelems_of(const Value *v) {
  return v ? (size_t)shape_nelems(&v->shape) : 0;
}

// The operands of the graph's only node: multiples of 1/2 from -4 to 4, where many thresholds lie.
static void fill(const Node *node, uint64_t *random, Arena *arena, Arrays *a) {
  *a = (Arrays){{NULL}, {NULL}};
  for (uint32_t k = 0; k < node->ninputs; k++) {
    const Value *v = node->inputs[k];
    if (!v) continue;
    const size_t n = nelems_of(v);
    a->in[k] = ARENA_ARRAY(arena, double, n + 1);
    assert_non_null(a->in[k]);
    for (size_t i = 0; i < n; i++) {
      const int number = (int)random_below(random, 17) - 8;
      const bool is_bounded = v->range != RANGE_ANY || !type_is_float(v->type);
      const double element = v->range == RANGE_PROBABILITY ? 0.5 : is_bounded ? abs(number) % 3 : number / 2.0;
      if (v->type == TYPE_S64) memcpy(&a->in[k][i], &(int64_t){(int64_t)element}, sizeof(int64_t));
      else a->in[k][i] = v->range == RANGE_POSITIVE ? element + 1 : element;
    }
  }
  for (uint32_t k = 0; k < node->noutputs; k++)
    if (node->outputs[k]) a->out[k] = ARENA_ARRAY(arena, double, nelems_of(node->outputs[k]) + 1);
}

static void run(const Node *node, const Arrays *a) {
  assert_true(interpret_node(node, (const double *const *)a->in, a->out, &system_allocator));
}

// Whether a change of operand k by 1e-12 changes a result by more than a thousandth.
static bool jumps(const Node *node, uint32_t k, Arrays *a, Arena *arena) {
  const size_t n = nelems_of(node->inputs[k]);
  double *before[MAX_OPERANDS] = {NULL};
  bool has_jumped = false;
  run(node, a);
  for (uint32_t o = 0; o < node->noutputs; o++) {
    if (!a->out[o]) continue;
    before[o] = ARENA_ARRAY(arena, double, nelems_of(node->outputs[o]) + 1);
    if (!before[o]) fail();
    memcpy(before[o], a->out[o], nelems_of(node->outputs[o]) * sizeof(double));
  }
  for (int sign = -1; sign <= 1; sign += 2) {
    for (size_t i = 0; i < n; i++) a->in[k][i] += sign * 1e-12;
    run(node, a);
    for (uint32_t o = 0; o < node->noutputs; o++)
      for (size_t i = 0; before[o] && node->outputs[o]->type != TYPE_S64 && i < nelems_of(node->outputs[o]); i++) {
        const double moved = fabs(a->out[o][i] - before[o][i]);
        has_jumped |= isfinite(moved) && moved > 1e-3 * (1 + fabs(before[o][i]));
      }
    for (size_t i = 0; i < n; i++) a->in[k][i] -= sign * 1e-12;
    for (size_t i = 0; i < n; i++) a->in[k][i] = nearbyint(a->in[k][i] * 2) / 2;
  }
  return has_jumped;
}

static void operands_at_which_results_jump_decide(void **state) {
  (void)state;
  bool has_jumped[OP_COUNT] = {false};
  for (RandomSeeds s = random_seeds(COUNT); random_next_seed(&s);) {
    Diagnostics d;
    Arena arena;
    Arrays a;
    uint64_t random = s.seed;
    diagnostics_init(&d, &system_allocator);
    arena_init(&arena, &system_allocator);
    Graph *g = random_graph(&system_allocator, s.seed, &options, &d);
    assert_true(g && graph_bind_dims(g, &d) && graph_infer(g, &d));
    const Node *node = g->nodes[0];
    fill(node, &random, &arena, &a);
    for (uint32_t k = 0; k < node->ninputs; k++) {
      if (!node->inputs[k] || !type_is_float(node->inputs[k]->type) || !jumps(node, k, &a, &arena)) continue;
      if (!operand_decides(node, k)) fail_msg("%s: results jump at operand %u", node->op->name, (unsigned)k);
      has_jumped[node->op->id] = true;
    }
    graph_free(g);
    arena_deinit(&arena);
    diagnostics_deinit(&d);
  }
  static const OperatorId jumping[] = {OP_Less, OP_Equal, OP_ReLUBackward, OP_ClampBackward, OP_Round, OP_Mod};
  for (size_t i = 0; i < sizeof jumping / sizeof *jumping && random_seeds_are_usual(); i++)
    if (!has_jumped[jumping[i]]) fail_msg("%s never jumped, so this tests too little", operators[jumping[i]].name);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      random_unit_test(operands_at_which_results_jump_decide),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
