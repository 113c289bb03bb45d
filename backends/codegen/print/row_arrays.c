// Prints loads and stores of rows that are adjacent in memory while the lanes of a vector are not. They are printed
// before or after the loop over rows, for all rows at once, through an array with a vector for each row.
//
//   float rows_y[14 * 16];
//   for (int r = 0; r < rows; r++) { ... v_store(rows_y + r * 16, y); }
//   v_scatter_rows(p_y, j * 784, 784, rows_y, rows);
#include "backends/codegen/print/tree_printer.h"

bool is_transposed_in_rows(const TreePrinter *l, const LoopNode *n) {
  return l->is_in_rows && n->has_near_rows && !n->has_fewer_lanes;
}

bool is_stored_in_rows(const TreePrinter *l, const LoopNode *n) {
  return n->kind == NODE_STORE && is_transposed_in_rows(l, n);
}

static void declare_rows(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  tree_printf(l, "float rows_%s[%d * 16];\n", l->access_name[n->access], l->t->plan->rows);
}

// "p_y, j * 784, 784"
static void add_places(TreePrinter *l, const LoopNode *n) {
  tree_printf(l, "p_%s, ", l->access_name[n->access]);
  if (n->address.index) add_index(l, n->address.index);
  else tree_printf(l, "0");
  tree_printf(l, ", (ptrdiff_t)");
  add_factor(l, n->step);
}

void print_loads_of_rows(TreePrinter *l, const LoopNode *body) {
  for (const LoopNode *n = body; n; n = n->next) {
    if (n->kind == NODE_IF) print_loads_of_rows(l, n->body);
    if (!is_transposed_in_rows(l, n)) continue;
    declare_rows(l, n);
    if (n->kind != NODE_LET) continue;
    begin_line(l);
    tree_printf(l, "v_gather_rows(rows_%s, ", l->access_name[n->access]);
    add_places(l, n);
    tree_printf(l, ", rows);\n");
  }
}

static void print_stores(TreePrinter *l, const LoopNode *body, bool is_optional) {
  for (const LoopNode *n = body; n; n = n->next) {
    if (n->kind == NODE_IF) print_stores(l, n->body, true);
    if (!is_stored_in_rows(l, n)) continue;
    begin_line(l);
    if (is_optional) tree_printf(l, "if (wants_%s) ", l->access_name[n->access]);
    tree_printf(l, "v_scatter_rows(");
    add_places(l, n);
    tree_printf(l, ", rows_%s, rows);\n", l->access_name[n->access]);
  }
}

void print_stores_of_rows(TreePrinter *l, const LoopNode *body) {
  print_stores(l, body, false);
}
