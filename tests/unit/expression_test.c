// Every expression of a kernel as compiled code on each ISA of this machine, against C's functions: on operands that
// vary along vectors and on operands that do not, with the same bits.
#include "backends/codegen/codegen.h"
#include "backends/codegen/print/tree_printer.h"
#include "frontend/api/handles.h"
#include "ir/kernel/program.h"
#include "ir/loops/target.h"
#include "passes/memory/liveness.h"
#include "passes/pipeline.h"
#include "passes/schedule/order/order.h"
#include "passes/schedule/tune/tune.h"
#include "tests/loops/vocabulary.h"
#include "tests/unit/quick_compiler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
  ROWS = 24,
  COLUMNS = 37,
  NELEMS = ROWS * COLUMNS,
  NINPUTS = 4
}; // x and y of ROWS by COLUMNS; their first columns, of ROWS

static double add(double a, double b) {
  return a + b;
}
static double subtract(double a, double b) {
  return a - b;
}
static double multiply(double a, double b) {
  return a * b;
}
static double divide(double a, double b) {
  return a / b;
}
static double negate(double a, double b) {
  (void)b;
  return -a;
}
static double greater(double a, double b) {
  return a > b ? a : b;
}
static double less(double a, double b) {
  return a < b ? a : b;
}
static double a_gelu(double a, double b) { // in the tail erfc multiplies the error of its argument
  (void)b;
  return (double)(a * erfcl(-a * 0.70710678118654752440L) / 2);
}
static double a_if_equal(double a, double b) {
  return a == b ? a : b + 1;
}
static double a_if_not_less(double a, double b) {
  return a >= b ? a : b + 1;
}

#define UNARY(function)                                                                                                \
  static double a_##function(double a, double b) {                                                                     \
    (void)b;                                                                                                           \
    return function(a);                                                                                                \
  }
UNARY(sqrt)
UNARY(fabs)
UNARY(exp)
UNARY(expm1)
UNARY(log)
UNARY(log1p)
UNARY(tanh)
UNARY(sin)
UNARY(cos)
UNARY(floor)
UNARY(nearbyint)

static const struct {
  ExprOp op;
  double (*definition)(double, double); // of a mask: the result of selecting a by it, else b + 1
  double bound;                         // in units in the last place; 0: 2
} rows[] = {
    {EXPR_ADD, add},     {EXPR_SUB, subtract},  {EXPR_MUL, multiply},      {EXPR_DIV, divide},
    {EXPR_NEG, negate},  {EXPR_SQRT, a_sqrt},   {EXPR_MAX, greater},       {EXPR_GT, greater},
    {EXPR_ABS, a_fabs},  {EXPR_MIN, less},      {EXPR_EQ, a_if_equal},     {EXPR_GE, a_if_not_less},
    {EXPR_EXP, a_exp},   {EXPR_EXPM1, a_expm1}, {EXPR_LOG, a_log},         {EXPR_LOG1P, a_log1p},
    {EXPR_TANH, a_tanh}, {EXPR_SIN, a_sin},     {EXPR_COS, a_cos},         {EXPR_GELU, a_gelu, 6.5},
    {EXPR_POW, pow},     {EXPR_FLOOR, a_floor}, {EXPR_ROUND, a_nearbyint}, {EXPR_FMOD, fmod},
};
enum { NROWS = sizeof rows / sizeof *rows, NOUTPUTS = 2 * NROWS };

typedef struct Case {
  ng_context *ctx;
  ng_graph *graph;
  Program program;
  Kernel kernel;
  Schedule *schedules[1];
  size_t nbytes; // of an element
  void *inputs[NINPUTS], *outputs[NOUTPUTS], *expected[NOUTPUTS];
} Case;

// Values for the kernel to read and write; that they are sums here is of no account.
static void read_graph(Case *c, const char *type) {
  Text t;
  text_init(&t, &system_allocator);
  text_format(&t, "format: ngrad/1\nname: expressions\ninputs:\n");
  for (int i = 0; i < NINPUTS; i++)
    text_format(&t, "  - {name: in%d, type: %s, shape: [%d, %d]}\n", i, type, ROWS, i < 2 ? COLUMNS : 1);
  text_add_string(&t, "nodes:\n");
  for (int i = 0; i < NOUTPUTS; i++)
    text_format(&t, "  - {op: Add, inputs: [in%d, in%d], outputs: [out%d]}\n", i % 2 * 2, i % 2 * 2 + 1, i);
  text_add_string(&t, "outputs: [out0");
  for (int i = 1; i < NOUTPUTS; i++) text_format(&t, ", out%d", i);
  text_add_string(&t, "]\n");
  c->ctx = ng_context_new(NULL);
  c->graph = ng_graph_read(c->ctx, "test.yaml", text_string(&t), t.nbytes, NULL);
  if (!c->graph) fail_msg("%s", ng_messages_text(c->ctx, 0));
  assert_int_equal(ng_graph_bind(c->graph), NG_OK);
  text_deinit(&t);
}

static AccessId kernel_access(Kernel *k, Value *v, bool is_row) {
  Access a = {.value = v, .type = v->type, .stride = {is_row ? 1 : COLUMNS, is_row ? 0 : 1}};
  return kernel_add_access(k, &a);
}

// Of a and b as rows[i] has it.
static ExprId make_expr(Kernel *k, size_t i, ExprId a, ExprId b) {
  const ExprInfo *info = &expr_info[rows[i].op];
  ExprId e = info->narguments == 1 ? expr_unary(k, rows[i].op, a) : expr_binary(k, rows[i].op, a, b);
  if (!info->is_mask) return e;
  return expr_select(k, e, a, rows[i].op == EXPR_GT ? b : expr_binary(k, EXPR_ADD, b, expr_constant(k, 1)));
}

static void make_program(Case *c) {
  static size_t value_offset[NINPUTS + NOUTPUTS];
  static bool is_in_workspace[NINPUTS + NOUTPUTS], is_staged[NINPUTS + NOUTPUTS];
  Graph *g = c->graph->graph;
  Kernel *k = &c->kernel;
  assert_true(g->nvalues <= NINPUTS + NOUTPUTS);
  arena_init(&c->program.arena, &system_allocator);
  kernel_init(k, &c->program.arena, "expressions");
  k->is_f64 = c->nbytes == 8;
  kernel_add_axis(k, "d0", ROWS, 0);
  kernel_add_axis(k, "d1", COLUMNS, 0);
  for (size_t i = 0; i < NOUTPUTS; i++) {
    size_t of = i % 2 * 2; // row after vector
    ExprId a = expr_load(k, kernel_access(k, g->inputs[of], of)),
           b = expr_load(k, kernel_access(k, g->inputs[of + 1], of));
    kernel_store(k, kernel_access(k, g->outputs[i], of), make_expr(k, i / 2, a, b));
  }
  Target target = target_of_machine();
  c->schedules[0] = kernel_order(k, BEST_AXIS, NULL);
  assert_true(c->schedules[0] && schedule_tune(c->schedules[0], &target, NULL));
  c->program.graph = g;
  c->program.schedules = c->schedules;
  c->program.nkernels = 1;
  c->program.value_offset = value_offset;
  c->program.is_in_workspace = is_in_workspace;
  c->program.is_staged = is_staged;
  assert_true(find_liveness(&c->program) && pipeline_build_trees(&c->program, false));
}

static double get(const Case *c, const void *data, size_t i) {
  return c->nbytes == 8 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void put(const Case *c, void *data, size_t i, double x) {
  if (c->nbytes == 8) ((double *)data)[i] = x;
  else ((float *)data)[i] = (float)x;
}

static void make_tensors(Case *c) {
  static const double numbers[] = {0,     -0.0, 1,    -1,   0.5, 2,    -2.5, 0.0625, 3,   17.5,
                                   -17.5, 1e-6, 1e-3, 80.5, -90, 0.75, 1.25, -0.625, 400, 0.1};
  enum { NNUMBERS = sizeof numbers / sizeof *numbers };
  for (size_t i = 0; i < NINPUTS; i++) {
    size_t width = i < 2 ? COLUMNS : 1;
    c->inputs[i] = malloc(ROWS * width * c->nbytes);
    assert_non_null(c->inputs[i]);
    for (size_t e = 0; e < ROWS * width; e++) {
      size_t row = e / width, column = e % width;
      double x = numbers[(i % 2 ? 7 * row + 3 * column : row + column) % NNUMBERS];
      put(c, c->inputs[i], e, row == 20 ? (double)NAN : row == 21 ? (double)INFINITY : row == 22 ? -x : x);
    }
  }
  for (size_t i = 0; i < NOUTPUTS; i++) {
    c->outputs[i] = calloc(NELEMS, c->nbytes);
    c->expected[i] = calloc(NELEMS, c->nbytes);
    assert_true(c->outputs[i] && c->expected[i]);
  }
}

static void case_deinit(Case *c) {
  for (size_t i = 0; i < NINPUTS; i++) free(c->inputs[i]);
  for (size_t i = 0; i < NOUTPUTS; i++) free(c->outputs[i]), free(c->expected[i]);
  arena_deinit(&c->program.tree_arena);
  arena_deinit(&c->program.arena);
  ng_graph_free(c->graph);
  ng_context_free(c->ctx);
}

static bool is_same(double a, double b) {
  return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : a == b && !signbit(a) == !signbit(b);
}

// To so many units in the last place; the sign of zero counts.
static bool is_near(const Case *c, double got, double wanted, double bound) {
  if (c->nbytes == 4) wanted = (double)(float)wanted;
  if (isnan(wanted) || isinf(wanted) || wanted == 0) return is_same(got, wanted);
  return fabs(got - wanted) <= fabs(wanted) * bound * (c->nbytes == 8 ? 0x1p-52 : 0x1p-23);
}

static void compare(const Case *c, const char *isa, bool is_first) {
  for (size_t i = 0; i < NOUTPUTS; i++) {
    size_t of = i % 2 * 2, width = of ? 1 : COLUMNS;
    const char *name = expr_info[rows[i / 2].op].name;
    for (size_t e = 0; e < ROWS * width; e++) {
      double a = get(c, c->inputs[of], e), b = get(c, c->inputs[of + 1], e), got = get(c, c->outputs[i], e);
      double wanted = rows[i / 2].definition(a, b);
      if (!is_near(c, got, wanted, rows[i / 2].bound > 0 ? rows[i / 2].bound : 2))
        fail_msg("%s: %s%s(%g, %g) is %.17g, expected %.17g", isa, of ? "scalar " : "", name, a, b, got, wanted);
      if (of && !is_same(got, get(c, c->outputs[i - 1], e * COLUMNS)))
        fail_msg("%s: the bits of %s(%g, %g) differ between vector and scalar", isa, name, a, b);
      if (is_first) put(c, c->expected[i], e, got);
      else if (!is_same(got, get(c, c->expected[i], e)))
        fail_msg("%s: the bits of %s(%g, %g) differ from scalar C", isa, name, a, b);
    }
  }
}

static void expressions_are_as_defined(const char *type, size_t nbytes) {
  Case c = {.nbytes = nbytes};
  read_graph(&c, type);
  make_program(&c);
  make_tensors(&c);
  for (size_t i = 0; i < nisas; i++) { // scalar is the first
    CompileTimes times;
    bool compiler_failed;
    if (!isas[i].is_available()) continue;
    assert_true(use_quick_compiler(i == 0 && !takes_all())); // scalar C takes gcc longer than all vectors together
    Compiled *compiled =
        codegen_compile(&c.program, &isas[i], 0, &system_allocator, &times, &compiler_failed, &c.ctx->diagnostics);
    if (!compiled) fail_msg("%s", ng_messages_text(c.ctx, 0));
    assert_true(compiled_run(compiled, c.inputs, c.outputs, 1, NULL));
    compare(&c, isas[i].name, i == 0);
    compiled_free(compiled);
  }
  assert_true(use_quick_compiler(false));
  case_deinit(&c);
}

static void expressions_in_f32(void **state) {
  (void)state;
  expressions_are_as_defined("f32", 4);
}

static void expressions_in_f64(void **state) {
  (void)state;
  expressions_are_as_defined("f64", 8);
}

// What kernels of s64 may have is what printer and executor compute there.
static void expressions_in_s64(void **state) {
  (void)state;
  const Lanes operand = {.m64 = {0}}, *operands[3] = {&operand, &operand, &operand};
  for (ExprOp op = EXPR_NONE + 1; op < EXPR_OP_COUNT; op++) {
    Lanes result;
    const bool has_operands = expr_info[op].narguments, has_s64 = expr_info[op].has_s64 && has_operands;
    // Indices, counts and what a dropout keeps have words in kernels of any type.
    const bool is_arithmetic = has_operands && op != EXPR_IS_KEPT;
    if (is_arithmetic && has_s64 != (integer_formulas[op] != NULL))
      fail_msg("%s: has_s64 and integer_formulas differ", expr_info[op].name);
    if (has_operands && has_s64 != lanes_apply(op, IN_S64, &result, operands))
      fail_msg("%s: has_s64 and the executor differ", expr_info[op].name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(expressions_in_f32),
      cmocka_unit_test(expressions_in_f64),
      cmocka_unit_test(expressions_in_s64),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
