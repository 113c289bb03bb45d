// Prints the nodes of a loop tree. The table `printers` has, for each kind of node, a line of C or a function.
// Directives in lines stand for fields of the node (lines.c).
#include "backends/codegen/print/tree_printer.h"
#include "ir/kernel/scatter.h"

// Computed values

static void print_let(TreePrinter *l, const LoopNode *n) {
  if (n->within) print_lanes_within(l, n);
  begin_line(l);
  if (n->is_row) tree_say(l, n, "%e[r] = ");
  else if (!n->is_vector) tree_printf(l, "const %s %s = ", scalar_type(l, expr_of(l, n)), l->name[n->expr]);
  else tree_say(l, n, n->load != LOAD_SPILLED && expr_is_mask(l->k, n->expr) ? "const %Q %e = " : "const %K %e = ");
  if (n->is_held) add_text(l, "v_hold(");
  add_value(l, n);
  add_text(l, n->is_held ? ");\n" : ";\n");
}

// Sums

static void print_begin_sum(TreePrinter *l, const LoopNode *n) {
  const bool is_scalar = n->sum == SUM_SCALAR || (n->sum == SUM_TOTAL && node_adds_lanes(l->t, n));
  if (n->count == 1) {
    tree_say_line(l, n, is_scalar ? "double %g = %i;" : "%V %g = %p_set(%i);");
  } else {
    tree_say_line(l, n, is_scalar ? "double %g[%#];" : "%V %g[%#];");
    tree_say_line(l, n, "UNROLL for (int u = 0; u < %#; u++)");
    tree_say_line(l, n, is_scalar ? "  %g[u] = %i;" : "  %g[u] = %p_set(%i);");
  }
}

static void print_update(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  tree_say(l, n, "%f%g = ");
  if (n->has_fewer_lanes) tree_say(l, n, "%p_merge(n, ");
  if (n->is_fused) tree_say(l, n, "%p_fma(%1, %2, %g)");
  else if (node_is_widened(l->t, n)) tree_say(l, n, "d_%c(%g, d_from_v(%o))");
  else if (n->is_vector) tree_say(l, n, "%p_%c(%g, %o)");
  else tree_say(l, n, "f64_%c(%g, (double)%O)");
  if (n->has_fewer_lanes) tree_say(l, n, ", %g)");
  add_text(l, ";\n");
}

static void print_end_run(TreePrinter *l, const LoopNode *n) {
  tree_say_line(l, n,
                node_adds_lanes(l->t, n) ? "%Rtotal_%e%r = f64_%c(total_%e%r, (double)v_%l(acc_%e%r));"
                                         : "%Rtotal_%e%r = d_%c(total_%e%r, d_from_v(acc_%e%r));");
}

static void print_end_sum(TreePrinter *l, const LoopNode *n) {
  if (n->is_vector && tree_element_sums(l->t, n->expr)) {
    begin_line(l);
    tree_say(l, n, "const %K %e = v_%l_of_each(%g, ");
    tree_printf(l, "%d);\n", tree_element_sums(l->t, n->expr));
    return;
  }
  if (n->is_vector) {
    tree_say_line(l, n, node_is_widened(l->t, n) ? "const %K %e = v_from_d(%g);" : "const %K %e = %g;");
    return;
  }
  if (n->is_row) {
    begin_line(l);
    tree_say(l, n, "%k %e");
    tree_printf(l, "[%d];\n", l->t->loop->rows);
  }
  begin_line(l);
  tree_say(l, n, n->is_row ? "%R%e[r] = " : "const %k %e = ");
  tree_say(l, n, n->sum == SUM_ACCUMULATOR ? "%p_%l(%g);\n" : "(%k)%g;\n");
}

static void print_combine(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  tree_say(l, n, n->is_vector ? "total_%e = d_%c(total_%e, " : "total_%e = f64_%c(total_%e, (double)%[");
  if (n->is_vector) add_vector_load(l, n, 'd', false);
  add_text(l, ");\n");
}

static void print_load_partial(TreePrinter *l, const LoopNode *n) {
  tree_say_line(l, n,
                n->flag ? "%V held_%a = part_%a ? %p_load%n(%@%N) : %p_set(%i);" : "%V held_%a = %p_load%n(%@%N);");
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
  if (!n->is_vector) print_scalar_store(l, n);
  else if (n->address.base == BASE_ROWS) tree_say_line(l, n, "v_store(%@, %o);");
  else if (access_is_mask(access_of(l, n))) tree_say_line(l, n, "%Q_store(%@, %o);");
  else print_vector_store(l, n);
}

static void print_store_rows(TreePrinter *l, const LoopNode *n) {
  tree_say_line(l, n, n->is_streamed ? "v_stream_rows%t(p_%a, rows_%a, %z);" : "v_store_rows%t(p_%a%S, rows_%a, %z);");
}

// Pointers, local arrays, flags

// Prints the beginning of a row: a pointer, or, for elements without addresses, an element's number.
static void print_pointer(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  if (n->is_row) tree_say(l, n, "p_%a[r] = ");
  else if (!access_has_addresses(access_of(l, n))) tree_say(l, n, "const size_t p_%a = ");
  else tree_say(l, n, tree_stores(l->t, n->access) ? "%T *const p_%a = " : "const %T *const p_%a = ");
  tree_say(l, n, n->flag ? "wants_%a ? %@ : NULL;\n" : "%@;\n");
}

static void print_local(TreePrinter *l, const LoopNode *n) {
  static const char *const lines[] = {
      [LOCAL_TEMPORARY] = "%T p_%a[%z];",        [LOCAL_POINTERS] = "%T *p_%a[%z];",
      [LOCAL_COPY] = "float rows_%a[%z];",       [LOCAL_ROWS] = "float rows_%a[%z * %L];",
      [LOCAL_SPILLED] = "float spilled_%e[%z];", [LOCAL_SCALARS] = " %e[%z];"};
  const bool are_places = n->local == LOCAL_POINTERS && !access_has_addresses(access_of(l, n));
  begin_line(l);
  if (n->local == LOCAL_SCALARS) add_text(l, scalar_type(l, expr_of(l, n)));
  if (n->local == LOCAL_POINTERS && !tree_stores(l->t, n->access) && !are_places) add_text(l, "const ");
  tree_say(l, n, are_places ? "size_t p_%a[%z];" : lines[n->local]);
  add_text(l, "\n");
}

static void print_flag(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  if (n->flag == FLAG_WANTED) tree_say(l, n, "const int wants_%a = %m != NULL;\n");
  else tree_say(l, n, n->is_peeled ? "const int streams_%a = 1" : "const int streams_%a = (uintptr_t)(%@) %% %C == 0");
  if (n->flag == FLAG_STREAMED) tree_say(l, n, n->value ? " && %B > %E;\n" : ";\n");
}

static void print_peel_count(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  tree_say(l, n, n->flag ? "const int n = !wants_%a ? 0 : " : "const int n = ");
  tree_say(l, n, "(int)(-(uintptr_t)(%@) %% %C / %Z);\n");
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
  const bool is_one = n->is_vectors ? l->t->loop->by_element == 1 : index_is(n->step, 1);
  begin_line(l);
  tree_say(l, n, n->is_unrolled ? "%fUNROLL for (" : "%ffor (");
  // Only whole steps, without the tail. Said as `o + 4 <= end`, gcc 12 -O2 drops some second loops over whole steps.
  if (n->is_whole) tree_say(l, n, is_one ? "; %v < %E" : "; %E - %v >= %s");
  else tree_say(l, n, n->is_down ? "%y %v = %E; %v-- > %B" : "%y %v = %B; %v < %E");
  if (n->bound) tree_say(l, n, " && %v < %b");
  if (n->is_vectors && !is_one) tree_printf(l, "; i += %d) ", l->t->loop->by_element);
  else tree_say(l, n, n->is_down ? ";) " : is_one ? "; %v++) " : "; %v += %s) ");
  if (n->is_vectors) l->elements = n;
  print_body(l, n->body);
  if (n->is_vectors) l->elements = NULL;
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
  tree_say(l, n, n->test ? "if (%?) " : "%f");
  print_branch(l, n, n->body);
  if (!n->otherwise) return;
  begin_line(l);
  add_text(l, "else ");
  print_branch(l, n, n->otherwise);
}

// Blocks

void print_partial_parameters(TreePrinter *l, bool is_call) {
  for (const LoopNode *n = l->t->block; n; n = n->next) {
    if (n->kind != NODE_PARTIALS) continue;
    tree_say(l, n, is_call ? ", part_%a" : ", %T *part_%a");
  }
}

void print_step_name(TreePrinter *l, bool is_tail) {
  tree_printf(l, "%s_kernel%zu_%s%zu", l->p->identifier, l->number, is_tail ? "rest" : "step", l->loop_index);
}

static void add_argument(TreePrinter *l, const LoopNode *n, Var parameter) {
  switch (parameter.kind) {
  case VAR_ROWS: tree_say(l, n, ", %#"); return;
  case VAR_LANES: tree_say(l, n, ", (int)%X"); return;
  case VAR_COLUMN_END: tree_say(l, n, ", %E"); return;
  default: tree_printf(l, ", %s", var_names[parameter.kind]);
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

static void print_partials(TreePrinter *l, const LoopNode *n) {
  tree_say_line(l, n,
                n->flag ? "%T *const part_%a = %m ? %m + block * %X : NULL;" : "%T *const part_%a = %m + block * %X;");
}

typedef struct NodePrinter {
  const char *line; // with directives; NULL: `print` prints the node
  void (*print)(TreePrinter *l, const LoopNode *n);
} NodePrinter;

// All rows from begin to end have one index on the free axis. Arithmetic is modulo 2^64, so that an index out of range
// selects no row.
static void print_scatter(TreePrinter *l, const LoopNode *n) {
  Scatter s;
  if (!kernel_find_scatter(l->k, &s)) return; // never in a verified tree
  const Axis *axes = l->k->axes;
  const char *nrows = number_text(l, axes[s.rows].extent, axes[s.rows].monomial);
  const char *width = number_text(l, axes[s.columns].extent, axes[s.columns].monomial);
  const char *count = number_text(l, axes[s.summed].extent, axes[s.summed].monomial);
  if (s.free < 0) tree_printf(l, "  const size_t first = 0, others = 0;\n");
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
    [NODE_UNUSED] = {"(void)%v;", NULL},
    [NODE_INDEX] = {"const %y %v = %x;", NULL},
    [NODE_COUNTER] = {"%y %v = %x;", NULL},
    [NODE_ADVANCE] = {"%v += %x;", NULL},
    [NODE_FOR] = {NULL, print_for},
    [NODE_SCOPE] = {NULL, print_if},
    [NODE_IF] = {NULL, print_if},
    [NODE_FLAG] = {NULL, print_flag},
    [NODE_POINTER] = {NULL, print_pointer},
    [NODE_LOCAL] = {NULL, print_local},
    [NODE_LET] = {NULL, print_let},
    [NODE_BEGIN_SUM] = {NULL, print_begin_sum},
    [NODE_LEAVE] = {"V_LEAVE(total_%e);", NULL},
    [NODE_UPDATE] = {NULL, print_update},
    [NODE_END_RUN] = {NULL, print_end_run},
    [NODE_END_SUM] = {NULL, print_end_sum},
    [NODE_COMBINE] = {NULL, print_combine},
    [NODE_LOAD_PARTIAL] = {NULL, print_load_partial},
    [NODE_STORE_PARTIAL] = {"%f%p_store%n(%@, held_%a%N);", NULL},
    [NODE_STORE] = {NULL, print_store},
    [NODE_SPILL] = {"v_store(%@, %e);", NULL},
    [NODE_LOAD_ROWS] = {"v_load_rows%t(rows_%a, p_%a%S, %z);", NULL},
    [NODE_STORE_ROWS] = {NULL, print_store_rows},
    [NODE_COPY_ROWS] = {"v_load_rows%t(%@, p_%a%S, %z);", NULL},
    [NODE_LOAD_COLUMN] = {"v_store(rows_%a + %B, v_load%t(%@));", NULL},
    [NODE_GATHER_ROWS] = {"v_gather_rows(rows_%a, p_%a, %+, (ptrdiff_t)%s, rows);", NULL},
    [NODE_SCATTER_ROWS] = {"%fv_scatter_rows(p_%a, %+, (ptrdiff_t)%s, rows_%a, rows);", NULL},
    [NODE_PREFETCH] = {"v_prefetch_l2(%@);", NULL},
    [NODE_PEEL_COUNT] = {NULL, print_peel_count},
    [NODE_PARTIALS] = {NULL, print_partials},
    [NODE_INIT_PARTIAL] = {"%[ = %i;", NULL},
    [NODE_STEP] = {NULL, print_step_call},
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
