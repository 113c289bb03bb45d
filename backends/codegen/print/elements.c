// Prints loops over vectors as loops over elements, for the least code (Loop.by_element). A vector becomes the scalar
// of one lane. A sum that has lanes is a vector in memory, of which element i is added to lane i modulo LANES; the sums
// of other lanes, which end within the loop, are scalars.
#include "backends/codegen/print/tree_printer.h"

#include <string.h>

// Whether several elements are computed together: each value is an array with constant indices, which compilers keep in
// registers.
static int group_of(const TreePrinter *l) {
  return l->t->loop->by_element;
}

// Declares a variable of the type, before its value; of several elements, an array before the first.
static void declare(TreePrinter *l, const LoopNode *n, const char *type, const char *name) {
  const bool is_array = group_of(l) > 1;
  if (is_array && !l->element) {
    begin_line(l);
    tree_printf(l, "%s ", type);
    tree_say(l, n, name);
    tree_printf(l, "[%d];\n", group_of(l));
  }
  begin_line(l);
  if (!is_array) tree_printf(l, "%s ", type);
  tree_say(l, n, name);
  add_element_number(l);
  add_text(l, " = ");
}

static void declare_element(TreePrinter *l, const LoopNode *n, const char *type) {
  if (group_of(l) > 1) {
    declare(l, n, type, "%e");
    return;
  }
  begin_line(l);
  tree_printf(l, "const %s ", type);
  tree_say(l, n, "%e = ");
}

static void print_let(TreePrinter *l, const LoopNode *n) {
  declare_element(l, n, scalar_type(l, expr_of(l, n)));
  add_value(l, n);
  add_text(l, ";\n");
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
  if (n->count == 1) {
    declare(l, n, sum_type(l, n), "%G");
    tree_say(l, n, "%i;\n");
    return;
  }
  begin_line(l);
  tree_printf(l, "%s ", sum_type(l, n));
  tree_say(l, n, "%G[%#];\n");
  tree_say_line(l, n, "for (int u = 0; u < %#; u++) %G[u] = %i;");
}

// The sum that the node adds to.
static void add_sum(TreePrinter *l, const LoopNode *n) {
  const bool has_lanes = n->to.buffer == BUFFER_SUM && !is_lanes_own(l, n->to.of);
  const Index *begin = l->elements->value;
  tree_say(l, n, n->kind == NODE_LET ? "%F" : "%g");
  if (!has_lanes) {
    add_element_number(l);
    return;
  }
  add_text(l, index_is(begin, 0) ? ".p[i" : ".p[(i - ");
  if (!index_is(begin, 0)) add_factor(l, begin);
  tree_printf(l, "%s %% %d]", index_is(begin, 0) ? "" : ")", LANES);
}

static void print_update(TreePrinter *l, const LoopNode *n) {
  const bool is_f64 = node_is_f64(l->t, n);
  const ExprOp op = reductions[node_reduction(l->t, n)].combine;
  begin_line(l);
  tree_say(l, n, "%f");
  add_sum(l, n);
  if (n->is_fused) {
    add_text(l, is_f64 ? " = D_FMA(" : " = V_FMA(");
    add_scalar(l, expr_of(l, n)->args[0]);
    add_text(l, ", ");
    add_scalar(l, expr_of(l, n)->args[1]);
    add_text(l, ", ");
    add_sum(l, n);
    add_text(l, ");\n");
  } else if (op == EXPR_MAXIMUM) {
    add_text(l, is_f64 ? " = f64_maximum(" : " = V_PART_MAXIMUM(");
    add_sum(l, n);
    add_text(l, is_f64 ? ", (double)" : ", ");
    add_scalar(l, n->expr);
    add_text(l, ");\n");
  } else {
    tree_printf(l, " %s= %s", op == EXPR_MUL ? "*" : "+", is_f64 ? "(double)" : "");
    add_scalar(l, n->expr);
    add_text(l, ";\n");
  }
}

static void print_end_run(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  tree_say(l, n, "%R%G");
  add_element_number(l);
  add_text(l, node_is_widened(l->t, n) ? " += (double)" : " += ");
  tree_say(l, n, "%F");
  add_element_number(l);
  add_text(l, ";\n");
}

static void print_end_sum(TreePrinter *l, const LoopNode *n) {
  declare_element(l, n, l->scalar);
  if (node_is_widened(l->t, n)) tree_say(l, n, "(%k)");
  add_sum(l, n);
  add_text(l, ";\n");
}

static void print_combine(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  tree_say(l, n, "%G");
  add_element_number(l);
  tree_say(l, n, " = f64_%c(%G");
  add_element_number(l);
  tree_say(l, n, ", (double)%[);\n");
}

static void print_load_partial(TreePrinter *l, const LoopNode *n) {
  declare(l, n, sum_type(l, n), "%G");
  tree_say(l, n, n->test ? "%? ? %[ : %i;\n" : "%[;\n");
}

static void print_store_partial(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  tree_say(l, n, "%f%[ = %F");
  add_element_number(l);
  add_text(l, ";\n");
}

typedef void Print(TreePrinter *l, const LoopNode *n);

// How a node with vectors prints as one with scalars. NULL: it has none.
static Print *printer_of(const LoopNode *n) {
  const bool is_sum = n->to.buffer == BUFFER_SUM || n->to.buffer == BUFFER_TOTAL;
  if (node_ends_run(n)) return print_end_run;
  if (!n->is_vector) return NULL;
  switch (n->kind) {
  case NODE_LET: return node_ends_sum(n) ? print_end_sum : print_let;
  case NODE_STORE: return n->from.buffer ? print_store_partial : print_scalar_store;
  case NODE_UPDATE: return n->from.buffer ? print_combine : print_update;
  case NODE_BUFFER: return is_sum ? print_begin_sum : n->to.buffer == BUFFER_HELD ? print_load_partial : NULL;
  default: return NULL;
  }
}

bool print_of_elements(TreePrinter *l, const LoopNode *n) {
  Print *print = printer_of(n);
  for (l->element = 0; print && l->element < group_of(l); l->element++) print(l, n);
  l->element = 0;
  return print;
}
