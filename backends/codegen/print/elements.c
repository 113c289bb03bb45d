// Prints loops over vectors as loops over elements, for the least code (Loop.by_element). A vector becomes the scalar
// of one lane. A sum that has lanes is a vector in memory, of which element i is added to lane i modulo LANES; the sums
// of other lanes, which end within the loop, are scalars.
#include "backends/codegen/print/tree_printer.h"

#include <string.h>

// By operation, in f32 and f64: what scalar_formulas lacks. The bits are those of lanes of the scalar instruction set,
// whose parts have one lane.
static const char *const formulas[EXPR_OP_COUNT][2] = {
    [EXPR_FMA] = {"V_FMA(%0, %1, %2)", "D_FMA(%0, %1, %2)"},
    [EXPR_ABS] = {"V_ABS(%0)", "D_ABS(%0)"},
    [EXPR_MAXIMUM] = {"V_PART_MAXIMUM(%0, %1)", "V_MAXIMUM(%0, %1)"},
    [EXPR_ROUND] = {"v_part_round(%0)", "d_part_round(%0)"},
    [EXPR_FLOOR] = {"v_part_floor(%0)", "d_part_floor(%0)"},
    [EXPR_EXP] = {"v_part_exp(%0)", "d_part_exp_of_sum(%0, 0.0)"},
    [EXPR_EXPM1] = {"v_part_expm1(%0)", "d_part_expm1(%0)"},
    [EXPR_LOG] = {"v_part_log(%0)", "d_part_log(%0)"},
    [EXPR_LOG1P] = {"v_part_log1p(%0)", "d_part_log1p(%0)"},
    [EXPR_TANH] = {"v_part_tanh(%0)", "d_part_tanh(%0)"},
    [EXPR_ERF] = {"v_part_erf(%0)", "d_part_erf(%0)"},
    [EXPR_GELU] = {"v_part_gelu(%0)", "d_part_gelu(%0)"},
    [EXPR_GELU_SLOPE] = {"v_part_gelu_slope(%0)", "d_part_gelu_slope(%0)"},
    [EXPR_SIN] = {"v_lane_0(v_sin(v_set(%0)))", "d_lane_0(d_sin(d_set(%0)))"},
    [EXPR_COS] = {"v_lane_0(v_cos(v_set(%0)))", "d_lane_0(d_cos(d_set(%0)))"},
    [EXPR_POW] = {"(float)d_part_pow_of_f32((double)%0, (double)%1)", "d_part_pow(%0, %1)"},
};

const char *element_formula(const TreePrinter *l, ExprOp op) {
  return l->k->is_s64 ? NULL : formulas[op][l->k->is_f64];
}

// Sums

// Whether each lane has a sum of its own.
static bool is_lanes_own(const TreePrinter *l, ExprId sum) {
  return !(l->k->exprs[sum].reduced >> loop_lane_axis(l->t->loop) & 1);
}

static const char *sum_type(const TreePrinter *l, const LoopNode *n) {
  return node_is_f64(l->t, n) ? "double" : "float";
}

static void print_begin_sum(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  tree_printf(l, "%s ", sum_type(l, n));
  if (n->count == 1) {
    tree_say(l, n, "%g = %i;\n");
    return;
  }
  tree_say(l, n, "%g[%#];\n");
  tree_say_line(l, n, "for (int u = 0; u < %#; u++) %g[u] = %i;");
}

// The sum that the node updates.
static void add_sum(TreePrinter *l, const LoopNode *n) {
  const bool has_lanes = n->sum == SUM_ACCUMULATOR && !is_lanes_own(l, n->expr);
  const Index *begin = l->elements->value;
  tree_say(l, n, "%g");
  if (!has_lanes) return;
  add_text(l, index_is(begin, 0) ? ".p[i" : ".p[(i - ");
  if (!index_is(begin, 0)) add_factor(l, begin);
  tree_printf(l, "%s %% %d]", index_is(begin, 0) ? "" : ")", LANES);
}

static void print_update(TreePrinter *l, const LoopNode *n) {
  const bool is_f64 = node_is_f64(l->t, n);
  const ExprOp op = reductions[node_reduction(l->t, n)].combine;
  const ExprId operand = node_operand(l->t, n);
  begin_line(l);
  tree_say(l, n, "%f");
  add_sum(l, n);
  add_text(l, " = ");
  if (n->is_fused) {
    add_text(l, is_f64 ? "D_FMA(" : "V_FMA(");
    add_scalar(l, l->k->exprs[operand].args[0]);
    add_text(l, ", ");
    add_scalar(l, l->k->exprs[operand].args[1]);
    add_text(l, ", ");
  } else {
    tree_say(l, n, is_f64 ? "f64_%c(" : op == EXPR_MAXIMUM ? "V_PART_MAXIMUM(" : "(");
  }
  if (!n->is_fused) {
    add_sum(l, n);
    add_text(l, is_f64 ? ", (double)" : op == EXPR_MAXIMUM ? ", " : op == EXPR_MUL ? " * " : " + ");
    add_scalar(l, operand);
  } else {
    add_sum(l, n);
  }
  add_text(l, ");\n");
}

static void print_end_run(TreePrinter *l, const LoopNode *n) {
  if (node_is_widened(l->t, n)) tree_say_line(l, n, "%Rtotal_%e%r = f64_%c(total_%e%r, (double)acc_%e%r);");
  else tree_say_line(l, n, "%Rtotal_%e%r = total_%e%r + acc_%e%r;");
}

static void print_end_sum(TreePrinter *l, const LoopNode *n) {
  tree_say_line(l, n, node_is_widened(l->t, n) ? "const %k %e = (%k)%g;" : "const %k %e = %g;");
}

static void print_load_partial(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  tree_printf(l, "%s ", sum_type(l, n));
  tree_say(l, n, n->flag ? "held_%a = part_%a ? %[ : %i;\n" : "held_%a = %[;\n");
}

// Which nodes have vectors, and so another form here.
bool print_of_element(TreePrinter *l, const LoopNode *n) {
  switch (n->kind) {
  case NODE_BEGIN_SUM: print_begin_sum(l, n); return true;
  case NODE_END_RUN: print_end_run(l, n); return true;
  case NODE_LOAD_PARTIAL: print_load_partial(l, n); return true;
  case NODE_STORE_PARTIAL: tree_say_line(l, n, "%f%[ = held_%a;"); return true;
  case NODE_UPDATE:
    if (n->is_vector) print_update(l, n);
    return n->is_vector;
  case NODE_END_SUM:
    if (n->is_vector) print_end_sum(l, n);
    return n->is_vector;
  default: return false;
  }
}
