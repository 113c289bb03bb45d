// Prints the nodes of a loop tree. The table `printers` has, for each kind of node, a line of C or a function.
// Directives in lines stand for fields of the node (lines.c).
#include "backends/codegen/print/tree_printer.h"
#include "ir/kernel/scatter.h"

// Computed values

static void print_end_sum(TreePrinter *l, const LoopNode *n) {
  if (n->is_vector && tree_element_sums(l->t, n->expr)) {
    begin_line(l);
    tree_say(l, n, "const %K %e = v_%l_of_each(%F, ");
    tree_printf(l, "%d);\n", tree_element_sums(l->t, n->expr));
    return;
  }
  if (n->is_vector) {
    tree_say_line(l, n, node_is_widened(l->t, n) ? "const %K %e = v_from_d(%F);" : "const %K %e = %F;");
    return;
  }
  const bool is_row = node_is_of_rows(l->t, n);
  if (is_row) {
    begin_line(l);
    tree_say(l, n, "%k %e");
    tree_printf(l, "[%d];\n", l->t->loop->rows);
  }
  begin_line(l);
  tree_say(l, n, is_row ? "%R%e[r] = " : "const %k %e = ");
  tree_say(l, n, n->from.buffer == BUFFER_SUM ? "%p_%l(%F);\n" : "(%k)%F;\n");
}

static void print_let(TreePrinter *l, const LoopNode *n) {
  if (node_ends_sum(n)) {
    print_end_sum(l, n);
    return;
  }
  if (n->from.within) print_lanes_within(l, n);
  begin_line(l);
  if (l->t->form[n->expr] == FORM_ROWS) tree_say(l, n, "%e[r] = ");
  else if (!n->is_vector) tree_printf(l, "const %s %s = ", scalar_type(l, expr_of(l, n)), l->name[n->expr]);
  else
    tree_say(l, n, n->from.buffer != BUFFER_SPILL && expr_is_mask(l->k, n->expr) ? "const %Q %e = " : "const %K %e = ");
  if (n->is_held) add_text(l, "v_hold(");
  add_value(l, n);
  add_text(l, n->is_held ? ");\n" : ";\n");
}

// Sums

static void print_begin_sum(TreePrinter *l, const LoopNode *n) {
  if (n->count == 1) {
    tree_say_line(l, n, n->is_vector ? "%V %G = %p_set(%i);" : "double %G = %i;");
  } else {
    tree_say_line(l, n, n->is_vector ? "%V %G[%#];" : "double %G[%#];");
    tree_say_line(l, n, "UNROLL for (int u = 0; u < %#; u++)");
    tree_say_line(l, n, n->is_vector ? "  %G[u] = %p_set(%i);" : "  %G[u] = %i;");
  }
}

static void print_end_run(TreePrinter *l, const LoopNode *n) {
  tree_say_line(l, n,
                node_adds_lanes(l->t, n) ? "%R%G = f64_%c(%G, (double)v_%l(%F));" : "%R%G = d_%c(%G, d_from_v(%F));");
}

static void print_combine(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  tree_say(l, n, n->is_vector ? "%G = d_%c(%G, " : "%G = f64_%c(%G, (double)%[");
  if (n->is_vector) add_vector_load(l, n, 'd', false);
  add_text(l, ");\n");
}

static void print_update(TreePrinter *l, const LoopNode *n) {
  if (n->from.buffer) {
    if (node_ends_run(n)) print_end_run(l, n);
    else print_combine(l, n);
    return;
  }
  begin_line(l);
  tree_say(l, n, "%f%g = ");
  if (n->has_fewer_lanes) tree_say(l, n, "%p_merge(n, ");
  if (n->is_fused) tree_say(l, n, "%p_fma(%1, %2, %g)");
  else if (n->is_vector && node_is_widened(l->t, n)) tree_say(l, n, "d_%c(%g, d_from_v(%o))");
  else if (n->is_vector) tree_say(l, n, "%p_%c(%g, %o)");
  else tree_say(l, n, "f64_%c(%g, (double)%O)");
  if (n->has_fewer_lanes) tree_say(l, n, ", %g)");
  add_text(l, ";\n");
}

// Stores

static void print_vector_store(TreePrinter *l, const LoopNode *n) {
  const char memory = access_prefix(l, access_of(l, n)->type);
  const bool converts = memory != l->prefix;
  begin_line(l);
  tree_printf(l, "%c_%s", memory, n->is_streamed ? "stream" : node_is_strided(n) ? "scatter" : "store");
  tree_say(l, n, node_is_strided(n) ? "%n%t(%M%S, " : "%n%t(%M, ");
  if (converts) tree_printf(l, "%c_from_%c(", memory, l->prefix);
  tree_say(l, n, converts ? "%o)%N);\n" : "%o%N);\n");
}

static void print_store(TreePrinter *l, const LoopNode *n) {
  if (n->from.buffer) tree_say_line(l, n, "%f%p_store%n(%@, %F%N);");
  else if (!n->expr) tree_say_line(l, n, "%[ = %i;");
  else if (!n->is_vector) print_scalar_store(l, n);
  else if (buffer_info[n->to.buffer].space == SPACE_STACK) tree_say_line(l, n, "v_store(%@, %o);");
  else if (access_is_mask(access_of(l, n))) tree_say_line(l, n, "%Q_store(%@, %o);");
  else print_vector_store(l, n);
}

static void print_move(TreePrinter *l, const LoopNode *n) {
  const bool is_store = n->from.buffer == BUFFER_COPY;
  if (node_is_of_rows(l->t, n))
    tree_say_line(l, n,
                  is_store ? "%fv_scatter_rows(p_%a, %+, (ptrdiff_t)%s, %F, rows);"
                           : "v_gather_rows(%G, p_%a, %+, (ptrdiff_t)%s, rows);");
  else if (!n->count) tree_say_line(l, n, "v_store(%>, v_load%t(%@));");
  else if (n->is_streamed) tree_say_line(l, n, "v_stream_rows%t(%G, %F, %#);");
  else tree_say_line(l, n, is_store ? "v_store_rows%t(%G%S, %F, %#);" : "v_load_rows%t(%G, %F%S, %#);");
}

// Pointers, local arrays, flags

// Prints the beginning of a row: a pointer, or, for elements without addresses, an element's number.
static void print_pointer(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  if (n->to.item) tree_say(l, n, "%G = ");
  else if (!access_has_addresses(access_of(l, n))) tree_say(l, n, "const size_t %G = ");
  else tree_say(l, n, tree_stores(l->t, n->to.of) ? "%T *const %G = " : "const %T *const %G = ");
  tree_say(l, n, n->test ? "%? ? %@ : NULL;\n" : "%@;\n");
}

static void print_array(TreePrinter *l, const LoopNode *n) {
  const bool are_pointers = n->to.buffer == BUFFER_ROW && !access_is_own(l->t, n->to.of);
  begin_line(l);
  if (are_pointers && !access_has_addresses(access_of(l, n))) add_text(l, "size_t ");
  else if (are_pointers) tree_say(l, n, tree_stores(l->t, n->to.of) ? "%T *" : "const %T *");
  else if (n->to.buffer == BUFFER_ROW) tree_say(l, n, "%T ");
  else tree_printf(l, "%s ", n->to.buffer == BUFFER_VALUE ? scalar_type(l, &l->k->exprs[n->to.of]) : "float");
  tree_say(l, n, n->is_vector ? "%G[%# * %L];\n" : "%G[%#];\n");
}

static void print_buffer(TreePrinter *l, const LoopNode *n) {
  static const char *const lines[BUFFER_KINDS][2] = {
      // [has a test]
      [BUFFER_PARTIALS] = {"%T *const %G = %@;", "%T *const %G = %? ? %@ : NULL;"},
      [BUFFER_HELD] = {"%V %G = %p_load%n(%@%N);", "%V %G = %? ? %p_load%n(%@%N) : %p_set(%i);"}};
  const char *line = lines[n->to.buffer][n->test != NULL];
  if (line) tree_say_line(l, n, line);
  else if (n->from.buffer) print_pointer(l, n);
  else if (n->to.buffer == BUFFER_SUM || n->to.buffer == BUFFER_TOTAL) print_begin_sum(l, n);
  else print_array(l, n);
}

static void print_index(TreePrinter *l, const LoopNode *n) {
  const bool is_sum = n->is_counter && n->value->op == INDEX_ADD && index_is_var(n->value->args[0], n->var);
  if (is_sum) {
    begin_line(l);
    tree_say(l, n, "%v += ");
    add_index_as(l, n->value->args[1], INDEX_SIZE);
    add_text(l, ";\n");
  } else if (n->value->op == INDEX_EXISTS) tree_say_line(l, n, "const %y %v = %x != NULL;");
  else if (n->test) tree_say_line(l, n, "const %y %v = !%? ? 0 : %x;");
  else tree_say_line(l, n, n->is_counter ? "%y %v = %x;" : "const %y %v = %x;");
}

// Loops

static void print_body(TreePrinter *l, const LoopNode *body) {
  add_text(l, "{\n");
  l->indent++;
  print_nodes(l, body);
  l->indent--;
  tree_say_line(l, body, "}");
}

static void print_for(TreePrinter *l, const LoopNode *n) {
  const bool is_one = n->vectors ? l->t->loop->by_element == 1 : index_is(n->step, 1);
  begin_line(l);
  tree_say(l, n, n->is_unrolled ? "%fUNROLL for (" : "%ffor (");
  // Only whole steps, without the tail. Said as `o + 4 <= end`, gcc 12 -O2 drops some second loops over whole steps.
  if (n->is_counter) tree_say(l, n, is_one ? "; %v < %E" : "; %E - %v >= %s");
  else tree_say(l, n, n->is_down ? "%y %v = %E; %v-- > %B" : "%y %v = %B; %v < %E");
  if (n->bound) tree_say(l, n, " && %v < %b");
  if (n->vectors && !is_one) tree_printf(l, "; i += %d) ", l->t->loop->by_element);
  else tree_say(l, n, n->is_down ? ";) " : is_one ? "; %v++) " : "; %v += %s) ");
  if (n->vectors) l->elements = n;
  print_body(l, n->body);
  if (n->vectors) l->elements = NULL;
}

static bool is_line(const LoopNode *nodes) {
  return nodes && !nodes->next && nodes->kind != NODE_FOR && nodes->kind != NODE_IF;
}

// Two branches of a line each have no braces.
static void print_branch(TreePrinter *l, const LoopNode *n, const LoopNode *branch) {
  if (!is_line(n->body) || !is_line(n->otherwise)) {
    print_body(l, branch);
    return;
  }
  l->is_line_begun = true;
  print_nodes(l, branch);
}

static void print_if(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  tree_say(l, n, "%f");
  print_branch(l, n, n->body);
  if (!n->otherwise) return;
  begin_line(l);
  add_text(l, "else ");
  print_branch(l, n, n->otherwise);
}

// Blocks

void print_partial_parameters(TreePrinter *l, bool is_call) {
  for (const LoopNode *n = l->t->block; n; n = n->next)
    if (n->kind == NODE_BUFFER) tree_say(l, n, is_call ? ", %G" : ", %T *%G");
}

void print_step_name(TreePrinter *l, bool is_tail) {
  tree_printf(l, "%s_kernel%zu_%s%zu", l->p->identifier, l->number, is_tail ? "rest" : "step", l->loop_index);
}

static void add_argument(TreePrinter *l, const LoopNode *n, Var parameter) {
  switch (parameter.kind) {
  case VAR_ROWS: tree_say(l, n, ", %#"); return;
  case VAR_LANES: tree_say(l, n, ", (int)%X"); return;
  case VAR_COLUMN_END: tree_say(l, n, ", %E"); return;
  default: add_text(l, ", "); add_var(l, parameter);
  }
}

static void print_step_call(TreePrinter *l, const LoopNode *n) {
  Var parameters[MOST_PARAMETERS];
  const int count = tree_parameters(l->t, n->has_fewer_lanes, parameters);
  begin_line(l);
  print_step_name(l, n->has_fewer_lanes);
  add_text(l, "(a");
  l->mentions_args = true;
  print_partial_parameters(l, true);
  for (int i = 0; i < count; i++) add_argument(l, n, parameters[i]);
  add_text(l, ");\n");
}

typedef struct NodePrinter {
  const char *line; // with directives; NULL: `print` prints the node
  void (*print)(TreePrinter *l, const LoopNode *n);
} NodePrinter;

// All rows from begin to end have one index on the batch axis. Arithmetic is modulo 2^64, so that an index out of range
// selects no row.
static void print_scatter(TreePrinter *l, const LoopNode *n) {
  Scatter s;
  if (!kernel_find_scatter(l->k, &s)) return; // never in a verified tree
  const Axis *axes = l->k->axes;
  const char *nrows = number_text(l, axes[s.rows].extent, axes[s.rows].monomial);
  const char *width = number_text(l, axes[s.columns].extent, axes[s.columns].monomial);
  const char *count = number_text(l, axes[s.summed].extent, axes[s.summed].monomial);
  if (s.batch < 0) tree_printf(l, "  const size_t first = 0, others = 0;\n");
  else
    tree_printf(l, "  const size_t first = begin / %s * %s, others = begin / %s * %s;\n", nrows, nrows, nrows, count);
  tree_say_line(l, n, "%k *const to = %m;");
  tree_printf(l, "  const %s *const from = ", l->scalar);
  add_member(l, s.from);
  tree_printf(l, ";\n  const %s *const indices = ", element_types[l->k->accesses[s.indices].type].name);
  add_member(l, s.indices);
  tree_printf(l,
              ";\n  for (size_t e = begin * %s; e < end * %s; e++) to[e] = 0;\n"
              "  for (size_t i = 0; i < %s; i++) {\n"
              "    uint64_t place = (uint64_t)indices[i];\n    if (indices[i] < 0) place += %s;\n"
              "    const size_t row = first + (size_t)place;\n"
              "    if (place < %s && row >= begin && row < end)\n"
              "      %c_add_row(to + row * %s, from + (others + i) * %s, %s);\n  }\n",
              width, width, count, nrows, nrows, l->prefix, width, width, width);
}

static const NodePrinter printers[] = {
    [NODE_COMMENT] = {"// Sweep: %w", NULL},
    [NODE_INDEX] = {NULL, print_index},
    [NODE_FOR] = {NULL, print_for},
    [NODE_IF] = {NULL, print_if},
    [NODE_BUFFER] = {NULL, print_buffer},
    [NODE_LET] = {NULL, print_let},
    [NODE_UPDATE] = {NULL, print_update},
    [NODE_STORE] = {NULL, print_store},
    [NODE_MOVE] = {NULL, print_move},
    [NODE_BARRIER] = {"V_LEAVE(%G);", NULL},
    [NODE_PREFETCH] = {"v_prefetch_l2(%@);", NULL},
    [NODE_CALL] = {NULL, print_step_call},
    [NODE_SCATTER] = {NULL, print_scatter},
    [NODE_FENCE] = {"v_fence();", NULL},
};

void print_nodes(TreePrinter *l, const LoopNode *n) {
  bool has_lanes = false;
  for (; n; n = n->next) {
    const NodePrinter *printer = &printers[n->kind];
    if (l->elements && print_of_elements(l, n)) continue;
    if (printer->line) tree_say_line(l, n, printer->line);
    else printer->print(l, n);
    if (n->kind != NODE_INDEX || n->var.kind != VAR_LANES) continue;
    has_lanes = true;
    l->mentions_lanes = false;
  }
  if (!has_lanes || l->mentions_lanes) return;
  begin_line(l);
  add_text(l, "(void)n; // panels have memory for all lanes\n");
}
