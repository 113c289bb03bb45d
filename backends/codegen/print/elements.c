// Loops over vectors as loops over elements, for the least code (Loop.by_element): a table of lines for the nodes that
// differ. A vector becomes the scalar of one lane. A sum that has lanes is a vector in memory, of which element i is
// added to lane i modulo LANES; the sums of other lanes, which end within the loop, are scalars. Several elements are
// computed together in arrays with constant indices, which compilers keep in registers.
#include "backends/codegen/print/tree_printer.h"

void add_lane(TreePrinter *l, const Address *sum) {
  const LoopNode *elements = l->own->elements;
  if (!elements) return;
  const bool is_own =
      !(l->k->exprs[buffer_info[sum->buffer].is_of_expr ? sum->of : 0].reduced >> loop_lane_axis(l->t->loop) & 1);
  if (sum->buffer != BUFFER_SUM || is_own) {
    add_element_number(l);
    return;
  }
  const bool is_at_0 = index_is(elements->value, 0);
  tree_add_text(l, is_at_0 ? ".p[i" : ".p[(i - ");
  if (!is_at_0) tree_add_index(l, elements->value, PRECEDENCE_VALUE);
  tree_printf(l, "%s %% %d]", is_at_0 ? "" : ")", LANES);
}

bool add_var_of_element(TreePrinter *l, Var v) {
  const int element = l->own->element;
  if (v.kind != VAR_LANE || (!l->own->is_panel && !element)) return false;
  if (!l->own->is_panel) tree_printf(l, "(i + %d)", element);
  else if (element) tree_printf(l, "((i + %d) / %d * %d)", element, LANES, LANES);
  else tree_printf(l, "(i / %d * %d)", LANES, LANES);
  return true;
}

void add_next(TreePrinter *l, const LoopNode *n) {
  const int by_element = n->vectors ? l->t->loop->by_element : 0;
  if (by_element > 1) tree_printf(l, "i += %d", by_element);
  else tree_say(l, n, by_element || index_is(n->step, 1) ? "{var}++" : "{var} += {step}");
}

// Declares a value (const), or the node's buffer. The array of several elements is declared before the first.
static void declare(TreePrinter *l, const LoopNode *n, const char *type, bool is_value) {
  const int group = l->t->loop->by_element;
  const char *name = is_value ? "{expr}" : "{to}";
  if (group > 1 && !l->own->element) {
    const LoopNode *elements = l->own->elements;
    l->own->elements = NULL; // all of them
    tree_printf(l, "%s ", type);
    tree_say(l, n, name);
    tree_printf(l, "[%d];", group);
    tree_say(l, n, "\n");
    l->own->elements = elements;
  }
  if (group == 1) tree_printf(l, is_value ? "const %s " : "%s ", type);
  tree_say(l, n, name);
  if (is_value) add_element_number(l);
}

void add_each(TreePrinter *l, const LoopNode *n) {
  declare(l, n, node_ends_sum(n) ? l->own->scalar : scalar_type(l, expr_of(l, n)), true);
}

void add_register(TreePrinter *l, const LoopNode *n) {
  declare(l, n, node_is_f64(l->t, n) ? "double" : "float", false);
}

void add_element_sum(TreePrinter *l, const LoopNode *n) {
  switch (reductions[node_reduction(l->t, n)].combine) {
  case EXPR_MUL: tree_say(l, n, "{total} *= {operand_of_sum}"); return;
  case EXPR_MAXIMUM:
    tree_say(l, n, "{total} = ");
    tree_say(l, n,
             node_is_f64(l->t, n) ? "f64_maximum({total}, (double){operand})" : "V_PART_MAXIMUM({total}, {operand})");
    return;
  default: tree_say(l, n, "{total} += {operand_of_sum}");
  }
}

const Line element_lines[] = {{ACTION_BEGIN_SUM, WHEN_SEVERAL,
                               "{scalar_sum} {to}[{count}];\nfor (int u = 0; u < {count}; u++) {to}[u] = {identity};"},
                              {ACTION_BEGIN_SUM, WHEN_ALWAYS, "{register} = {identity};"},
                              {ACTION_HOLD, WHEN_ALWAYS, "{register} = {held_element};"},
                              {ACTION_COMPUTE, WHEN_ALWAYS, "{each} = {computed};"},
                              {ACTION_END_SUM, WHEN_VECTOR, "{each} = {narrowed_element};"},
                              {ACTION_END_TOTAL, WHEN_VECTOR, "{each} = {narrowed_element};"},
                              {ACTION_END_RUN, WHEN_ALWAYS, "{rows}{to} += {widened}{from};"},
                              {ACTION_COMBINE, WHEN_ALWAYS, "{to} = f64_{combine}({to}, (double){element});"},
                              {ACTION_ADD, WHEN_FUSED, "{if}{total} = {V}_FMA({first}, {second}, {total});"},
                              {ACTION_ADD, WHEN_ALWAYS, "{if}{element_sum};"},
                              {ACTION_STORE, WHEN_ALWAYS, "{store};"},
                              {ACTION_STORE_HELD, WHEN_ALWAYS, "{if}{element} = {from};"},
                              {0}};

bool print_of_elements(TreePrinter *l, const LoopNode *n) {
  const char *line = n->is_vector || node_action(n) == ACTION_END_RUN ? tree_line(l, n, element_lines) : NULL;
  int *element = &l->own->element;
  for (*element = 0; line && *element < l->t->loop->by_element; (*element)++) {
    tree_begin_line(l);
    tree_say(l, n, line);
    tree_add_text(l, "\n");
  }
  *element = 0;
  return line;
}
