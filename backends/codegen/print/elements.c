// Prints loops over vectors as loops over elements, for the least code (Loop.by_element). A vector becomes the scalar
// of one lane. A sum that has lanes is a vector in memory, of which element i is added to lane i modulo LANES; the sums
// of other lanes, which end within the loop, are scalars.
#include "backends/codegen/print/tree_printer.h"

// Declares a value (const), or the node's buffer, before what it begins with. Several elements are computed together in
// arrays with constant indices, which compilers keep in registers; the array is declared before the first.
static void declare(TreePrinter *l, const LoopNode *n, const char *type, bool is_value) {
  const int group = l->t->loop->by_element;
  const char *name = is_value ? "%e" : "%G";
  begin_line(l);
  if (group > 1 && !l->element) {
    const LoopNode *elements = l->elements;
    l->elements = NULL; // all of them
    tree_printf(l, "%s ", type);
    tree_say(l, n, name);
    tree_printf(l, "[%d];\n", group);
    l->elements = elements;
    begin_line(l);
  }
  if (group == 1) tree_printf(l, is_value ? "const %s " : "%s ", type);
  tree_say(l, n, name);
  if (is_value) add_element_number(l);
  add_text(l, " = ");
}

static void print_let(TreePrinter *l, const LoopNode *n) {
  const bool is_sum = node_ends_sum(n);
  declare(l, n, is_sum ? l->scalar : scalar_type(l, expr_of(l, n)), true);
  if (is_sum) tree_say(l, n, node_is_widened(l->t, n) ? "(%k)%F" : "%F");
  else add_value(l, n);
  add_text(l, ";\n");
}

// A sum, or a vector of partial sums, that begins.
static void print_register(TreePrinter *l, const LoopNode *n) {
  const char *type = node_is_f64(l->t, n) ? "double" : "float";
  if (n->to.buffer == BUFFER_HELD || n->count == 1) {
    declare(l, n, type, false);
    tree_say(l, n, !n->from.buffer ? "%i;\n" : n->test ? "%? ? %[ : %i;\n" : "%[;\n");
    return;
  }
  begin_line(l);
  tree_printf(l, "%s ", type);
  tree_say(l, n, "%G[%#];\n");
  tree_say_line(l, n, "for (int u = 0; u < %#; u++) %G[u] = %i;");
}

static void print_update(TreePrinter *l, const LoopNode *n) {
  const bool is_f64 = node_is_f64(l->t, n);
  const ExprOp op = reductions[node_reduction(l->t, n)].combine;
  begin_line(l);
  tree_say(l, n, "%f%g");
  if (n->is_fused) {
    add_text(l, is_f64 ? " = D_FMA(" : " = V_FMA(");
    add_scalar(l, expr_of(l, n)->args[0]);
    add_text(l, ", ");
    add_scalar(l, expr_of(l, n)->args[1]);
    tree_say(l, n, ", %g);\n");
  } else if (op == EXPR_MAXIMUM) {
    tree_say(l, n, is_f64 ? " = f64_maximum(%g, (double)%O);\n" : " = V_PART_MAXIMUM(%g, %O);\n");
  } else {
    tree_printf(l, " %s= %s", op == EXPR_MUL ? "*" : "+", is_f64 ? "(double)" : "");
    tree_say(l, n, "%O;\n");
  }
}

static bool print_of_element(TreePrinter *l, const LoopNode *n) {
  const bool is_register = n->kind == NODE_BUFFER && buffer_info[n->to.buffer].space == SPACE_REGISTERS;
  if (node_ends_run(n)) tree_say_line(l, n, node_is_widened(l->t, n) ? "%R%G += (double)%F;" : "%R%G += %F;");
  else if (!n->is_vector) return false;
  else if (n->kind == NODE_LET) print_let(l, n);
  else if (is_register) print_register(l, n);
  else if (n->kind == NODE_UPDATE && n->from.buffer) tree_say_line(l, n, "%G = f64_%c(%G, (double)%[);");
  else if (n->kind == NODE_UPDATE) print_update(l, n);
  else if (n->kind == NODE_STORE && n->from.buffer) tree_say_line(l, n, "%f%[ = %F;");
  else if (n->kind == NODE_STORE) print_scalar_store(l, n);
  else return false;
  return true;
}

bool print_of_elements(TreePrinter *l, const LoopNode *n) {
  bool is_printed = true;
  for (l->element = 0; is_printed && l->element < l->t->loop->by_element; l->element++)
    is_printed = print_of_element(l, n);
  l->element = 0;
  return is_printed;
}
