// Prints the nodes of a loop tree. The table `printers` has, for each kind of node, a line of C or a function.
//
// In a line, directives stand for fields of the node: %v is its variable. add_directive lists all directives. A scalar
// becomes a C variable, or an element x[r] of an array if several rows are computed at once. A vector becomes a
// variable in the body of the innermost loop. A constant is written where it is used.
#include "backends/codegen/print/tree_printer.h"
#include "ir/kernel/scatter.h"
#include "ir/support/escape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add(TreePrinter *l, const char *text) {
  text_add_string(l->out, text);
}

static const Access *access_of(const TreePrinter *l, const LoopNode *n) {
  return &l->k->accesses[n->access];
}

static const Expr *expr_of(const TreePrinter *l, const LoopNode *n) {
  return &l->k->exprs[n->expr];
}

// Values

// The result of a load outside of the tensor.
static void add_outside(TreePrinter *l, double number) {
  if (l->k->is_s64) add_integer(l->out, type_integer(number));
  else add_number(l->out, number, l->k->is_f64);
}

static void add_scalar(TreePrinter *l, ExprId id) {
  const Form form = l->t->form[id];
  if (form == FORM_NUMBER && l->k->is_s64) add_integer(l->out, l->k->exprs[id].integer);
  else if (form == FORM_NUMBER) add_number(l->out, l->k->exprs[id].number, l->k->is_f64);
  else tree_printf(l, "%s%s", l->name[id], form == FORM_ROWS ? "[r]" : "");
}

static void add_vector(TreePrinter *l, ExprId id) {
  if (l->t->form[id] == FORM_VECTOR) {
    add(l, l->name[id]);
    return;
  }
  tree_printf(l, "%c_set(", l->prefix);
  add_scalar(l, id);
  add(l, ")");
}

static const char *scalar_type(const TreePrinter *l, const Expr *e) {
  return e->is_s64 ? "int64_t" : expr_info[e->op].is_mask ? "int" : l->scalar;
}

// Lines

static void say(TreePrinter *l, const LoopNode *n, const char *line);

static void add_merged(TreePrinter *l, const LoopNode *n, const Merge *m) {
  if (!m) {
    say(l, n, "acc_%e%r");
  } else if (!m->args[0]) {
    tree_printf(l, "acc_%s[%d]", l->name[n->expr], m->accumulator);
  } else {
    say(l, n, "%P_%c(");
    add_merged(l, n, m->args[0]);
    add(l, ", ");
    add_merged(l, n, m->args[1]);
    add(l, ")");
  }
}

// Adds an element with its closing bracket or parenthesis.
static void add_element(TreePrinter *l, const LoopNode *n) {
  open_element(l, &n->address);
  add(l, access_has_addresses(&l->k->accesses[n->address.access]) ? "]" : ")");
}

static void add_offset_of(TreePrinter *l, const Address *at) {
  if (at->index) add_index(l, at->index);
  else add(l, "0");
}

static void add_lane_step(TreePrinter *l, const LoopNode *n) {
  add(l, index_type(n->step) == INDEX_SIZE ? ", (ptrdiff_t)" : ", ");
  add_factor(l, n->step);
}

static const char *const sums[] = {
    [SUM_ACCUMULATOR] = "acc_%e%r",     [SUM_TOTAL] = "total_%e%r",   [SUM_SCALAR] = "total_%e",
    [SUM_PARTIAL_REGISTER] = "held_%a", [SUM_PARTIAL_ELEMENT] = "%[", [SUM_PARTIAL_LANES] = "v_load(part_%a)",
};

static const char *const flag_tests[] = {
    [FLAG_NONE] = "",
    [FLAG_WANTED] = "if (wants_%a) ",
    [FLAG_STREAMED] = "if (streams_%a) ",
    [FLAG_HAS_PARTIAL] = "if (part_%a) ",
    [FLAG_HAS_ALL_PARTIALS] = "if (%m) ",
};

// Prints what a directive stands for: the node's field of that name, unless the line says otherwise.
static void add_directive(TreePrinter *l, const LoopNode *n, char directive) {
  switch (directive) {
  case '%': add(l, "%"); return;
  case 'L': tree_printf(l, "%d", LANES); return;
  case 'C': tree_printf(l, "%d", LINE_NBYTES); return;
  case 'w':
    if (!l->p->is_canonical) text_add_user_string(l->out, SINK_COMMENT, n->words);
    return;
  case 'v': add_var(l, n->var); return;
  case 'y': add(l, var_type(n->var)); return;
  case 'x': add_index_as(l, n->value, var_is_int(n->var) ? INDEX_INT : INDEX_SIZE); return; // value, as var's type
  case 'X': add_factor(l, n->value); return;                                                // value, as an operand
  case 'B': add_index(l, n->value); return;                                                 // value, a loop's begin
  case 'E': add_index(l, n->end); return;
  case 'b': add_index(l, n->bound); return;
  case 's': add_index(l, n->step); return;
  case 'S': add_lane_step(l, n); return; // ", step": the distance in memory from lane to lane
  case '?': add_index(l, n->test); return;
  case 'I': add_index(l, n->inside); return;
  case 'j': add_factor(l, n->within); return;
  case 'u': add_outside(l, access_of(l, n)->outside); return;
  case '#': tree_printf(l, "%d", n->count); return;
  case 'z': tree_printf(l, "%lld", (long long)n->nelems); return;
  case 'a': add(l, l->access_name[n->access]); return;
  case 'm': add_member(l, n->access); return;                                  // a->x: the accessed tensor
  case 'T': add(l, element_types[access_of(l, n)->type].name); return;         // its element type in C
  case 'Z': tree_printf(l, "%zu", type_nbytes(access_of(l, n)->type)); return; // bytes of an element
  case 't': add(l, element_types[access_of(l, n)->type].suffix); return;       // suffix of functions on such elements
  case '@': add_address(l, &n->address); return;
  case 'M': add_memory(l, &n->address); return;    // address, as the arguments of functions on such elements
  case '[': add_element(l, n); return;             // the element at address
  case '+': add_offset_of(l, &n->address); return; // the address relative to its base
  case 'e': add(l, l->name[n->expr]); return;
  case 'o': add_vector(l, node_operand(l->t, n)); return;
  case 'O': add_scalar(l, node_operand(l->t, n)); return;
  case '1': add_vector(l, l->k->exprs[node_operand(l->t, n)].args[0]); return; // first factor of a product
  case '2': add_vector(l, l->k->exprs[node_operand(l->t, n)].args[1]); return; // second factor
  case 'k': add(l, l->scalar); return;                                         // the kernel's types
  case 'K': add(l, l->vec); return;
  case 'Q': add(l, l->mask); return;
  case 'P': tree_printf(l, "%c", l->prefix); return;          // v, d or l: prefix of functions on the kernel's vectors
  case 'p': add(l, node_is_f64(l->t, n) ? "d" : "v"); return; // v or d: prefix of functions on the sum's vectors
  case 'V': add(l, node_is_f64(l->t, n) ? "dvec" : "vec"); return; // the sum's type
  case 'n': add(l, n->has_fewer_lanes ? "_n" : ""); return;        // suffix of functions on the first n lanes
  case 'N': add(l, n->has_fewer_lanes ? ", n" : ""); return;       // their argument n
  case 'c': add(l, expr_info[reductions[node_reduction(l->t, n)].combine].name); return; // combines two operands: add
  case 'l': add(l, expr_info[node_reduction(l->t, n)].name); return;                     // combines all lanes: sum
  case 'i': add_number(l->out, reductions[node_reduction(l->t, n)].identity, node_is_f64(l->t, n)); return;
  case 'r': add(l, accumulator_indices[n->accumulator]); return; // the accumulator's index
  case 'g': say(l, n, sums[n->sum]); return;
  case 'G': add_merged(l, n, n->merged); return; // the accumulators, combined
  case 'R': add(l, n->is_row ? "UNROLL for (int r = 0; r < rows; r++) " : ""); return;
  case 'f': say(l, n, flag_tests[n->flag]); return;
  default: abort(); // an unknown directive in a line below
  }
}

static void say(TreePrinter *l, const LoopNode *n, const char *line) {
  while (*line) {
    const size_t nbytes = strcspn(line, "%");
    text_add(l->out, line, nbytes);
    line += nbytes;
    if (!*line) return;
    add_directive(l, n, line[1]);
    line += 2;
  }
}

static void say_line(TreePrinter *l, const LoopNode *n, const char *line) {
  begin_line(l);
  say(l, n, line);
  add(l, "\n");
}

// Loads

// Adds a load's computed offset in elements: a scalar that is added to the address, or an argument with one offset per
// lane.
static void add_offset(TreePrinter *l, const Access *a, ExprId offset, bool is_lanes) {
  if (is_lanes) {
    tree_printf(l, ", %c_places(", l->prefix);
    add_vector(l, offset);
  } else {
    add(l, access_has_addresses(a) ? " + (ptrdiff_t)(" : " + (size_t)(");
    add_scalar(l, offset);
  }
  add(l, ")");
}

// The prefix of vocabulary functions on elements of the type.
static char access_prefix(const TreePrinter *l, Type type) {
  return l->k->is_s64 && type == TYPE_S64 ? 'l' : element_types[type].prefix;
}

// The cast from an element, after scalar_from's conversion, to the kernel's type. Vectors of s64 are converted through
// f64, too.
static const char *scalar_cast(Type type, const Kernel *k) {
  if (k->is_s64) return "";
  if (k->is_f64) return type == TYPE_F64 ? "" : "(double)";
  return type == TYPE_S64 ? "(float)(double)" : type == TYPE_S32 ? "(float)" : "";
}

static void add_scalar_load(TreePrinter *l, const LoopNode *n) {
  const Access *a = access_of(l, n);
  const char *convert = element_types[a->type].from;
  const bool is_call = *convert && a->type != TYPE_BOOLEAN, has_addresses = access_has_addresses(a);
  if (n->inside) say(l, n, "%I ? ");
  if (!expr_of(l, n)->is_s64) add(l, scalar_cast(a->type, l->k));
  tree_printf(l, "%s%s", convert, is_call ? "(" : "");
  open_element(l, &n->address);
  if (expr_of(l, n)->args[0]) add_offset(l, a, expr_of(l, n)->args[0], false);
  add(l, !has_addresses ? ")" : is_call ? "])" : "]");
  if (n->inside) say(l, n, " : %u");
}

// Adds the distance from lane 0's address to the first lane within the bound.
static void add_first_within(TreePrinter *l, const LoopNode *n) {
  const int64_t step = n->load == LOAD_DENSE ? 1 : n->step->number;
  say(l, n, step < 0 ? " - within_%e.first" : " + within_%e.first");
  if (step != 1 && step != -1) tree_printf(l, " * %lld", (long long)llabs(step));
}

// Adds a load of all lanes, of the first n lanes, or (is_part) of the lanes within the bound, as a vector that
// functions with the prefix `to` take.
static void add_vector_load(TreePrinter *l, const LoopNode *n, char to, bool is_part) {
  const bool is_gathered = n->load == LOAD_GATHERED, is_strided = is_gathered || node_is_strided(n);
  const Access *a = access_of(l, n);
  const ExprId offset = expr_of(l, n)->args[0];
  if (access_is_mask(a)) {
    say(l, n, "%Q_load(%@)");
    return;
  }
  const char memory = access_prefix(l, a->type);
  if (memory != to) tree_printf(l, "%c_from_%c(", to, memory);
  tree_printf(l, "%c_%s", memory, is_gathered ? "gather_at" : is_strided ? "gather" : "load");
  say(l, n, is_part ? "_n%t(%M" : "%n%t(%M");
  if (is_part) add_first_within(l, n);
  if (offset && !is_gathered) add_offset(l, a, offset, false);
  if (is_strided) say(l, n, "%S");
  if (is_gathered) add_offset(l, a, offset, true);
  say(l, n, is_part ? ", within_%e.count)" : "%N)");
  if (memory != to) add(l, ")");
}

// Adds a load some of whose lanes may be outside of the tensor.
static void add_load_within(TreePrinter *l, const LoopNode *n) {
  if (!n->has_fewer_lanes) {
    say(l, n, "within_%e.count == %L ? ");
    add_vector_load(l, n, l->prefix, false);
    add(l, " : ");
  }
  const Access *a = access_of(l, n);
  if (a->type == kernel_type(l->k) && !l->k->is_s64 && n->load != LOAD_GATHERED && !expr_of(l, n)->args[0]) {
    const bool is_dense = n->load == LOAD_DENSE;
    say(l, n, is_dense ? "within_%e.count ? %P_load_within(%M" : "within_%e.count ? %P_gather_within(%M");
    add_first_within(l, n);
    say(l, n, is_dense ? ", within_%e, %u) : %P_set(%u)" : "%S, within_%e, %u) : %P_set(%u)");
    return;
  }
  say(l, n, "within_%e.count ? %P_place(");
  add_vector_load(l, n, l->prefix, true);
  say(l, n, ", within_%e, %u) : %P_set(%u)");
}

static void print_lanes_within(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  say(l, n, "const v_span within_%e = v_within((ptrdiff_t)%j, ");
  const Bound *bound = node_lane_bound(l->t, n);
  if (!bound) return; // never in a verified tree
  tree_printf(l, "%lld, %lld, ", (long long)bound->factor[loop_lane_axis(l->t->loop)], (long long)bound->extent);
  if (n->inside) say(l, n, "%I ? ");
  say(l, n, n->has_fewer_lanes ? "n" : "%L");
  add(l, n->inside ? " : 0);\n" : ");\n");
}

static void add_load(TreePrinter *l, const LoopNode *n) {
  switch (n->load) {
  case LOAD_ELEMENT: add_scalar_load(l, n); return;
  case LOAD_COPIED:
  case LOAD_SPILLED: say(l, n, "v_load(%@)"); return;
  case LOAD_BROADCAST:
    tree_printf(l, "v_set(%s", element_types[access_of(l, n)->type].from);
    say(l, n, "(*(%M)))");
    return;
  default:
    if (n->within) {
      add_load_within(l, n);
      return;
    }
    if (n->inside) say(l, n, "%I ? ");
    add_vector_load(l, n, l->prefix, false);
    if (n->inside) say(l, n, " : %P_set(%u)");
  }
}

// Computed values

static void add_call(TreePrinter *l, const Expr *e) {
  if (l->t->calls_long && expr_is_long(e->op)) tree_printf(l, "%s_call_", l->p->identifier);
  tree_printf(l, "%c_%s(", l->prefix, expr_info[e->op].name);
  for (int a = 0; a < expr_info[e->op].narguments; a++) {
    if (a) add(l, ", ");
    add_vector(l, e->args[a]);
  }
  add(l, ")");
}

static void add_formula_operand(TreePrinter *l, ExprId id) {
  const Expr *e = &l->k->exprs[id];
  const bool is_negative = e->op == EXPR_CONSTANT && signbit(e->number);
  if (is_negative) add(l, "(");
  add_scalar(l, id);
  if (is_negative) add(l, ")");
}

// A scalar operation without a formula is computed as lane 0 of the vector function, because libm may give other bits.
static void add_formula(TreePrinter *l, const Expr *e) {
  const char *formula = l->k->is_s64 ? integer_formulas[e->op] : scalar_formulas[e->op];
  if (!formula) {
    tree_printf(l, "%c_lane_0(", l->prefix);
    add_call(l, e);
    add(l, ")");
  }
  for (const char *c = formula; c && *c; c++) {
    if (*c == '%') add_formula_operand(l, e->args[*++c - '0']);
    else if (*c == 'F') add(l, l->k->is_f64 ? "" : "f");
    else if (*c == 'N') add(l, l->k->is_f64 ? "(float)" : "");
    else if (*c == 'W') add(l, l->k->is_f64 ? "(double)" : "");
    else text_add(l->out, c, 1);
  }
}

// Adds a count, or 1 / count, computed in f64 and then rounded, as constants are.
static void add_element_count(TreePrinter *l, const Expr *e) {
  const char *count = number_text(l, (int64_t)e->number, e->monomial), *cast = l->k->is_f64 ? "" : "(float)";
  if (e->op == EXPR_COUNT) tree_printf(l, "%s(double)%s", cast, count);
  else if (strcmp(count, "0") == 0) add_number(l->out, 1, l->k->is_f64);
  else tree_printf(l, "%s(1 / (double)(%s > 0 ? %s : 1))", cast, count, count);
}

// The call that tests whether dropout keeps an element, or the elements of a vector.
static void add_is_kept(TreePrinter *l, const LoopNode *n) {
  const Expr *e = expr_of(l, n);
  add(l, "is_kept(");
  add_scalar(l, e->args[0]);
  add(l, ", ");
  add_scalar(l, e->args[1]);
  add(l, ", (double)");
  add_scalar(l, e->args[2]);
  say(l, n, n->is_vector ? ", %@%S)" : ", %@)");
}

static void add_scalar_result(TreePrinter *l, const LoopNode *n) {
  const Expr *e = expr_of(l, n);
  switch (e->op) {
  case EXPR_INDEX: tree_printf(l, "(%s)%s", l->scalar, l->k->axes[__builtin_ctz(e->axes)].name); return;
  case EXPR_INTEGER: add_integer(l->out, e->integer); return;
  case EXPR_IS_KEPT: add_is_kept(l, n); return;
  case EXPR_COUNT:
  case EXPR_RECIPROCAL: add_element_count(l, e); return;
  default: add_formula(l, e);
  }
}

static void add_vector_result(TreePrinter *l, const LoopNode *n) {
  const Expr *e = expr_of(l, n);
  if (e->op == EXPR_INDEX) {
    say(l, n, "%P_index(%B)");
  } else if (e->op == EXPR_IS_KEPT) {
    say(l, n, "%P_");
    add_is_kept(l, n);
  } else if (e->op == EXPR_SELECT && l->t->form[e->args[0]] != FORM_VECTOR) { // the condition is the same for all lanes
    add_scalar(l, e->args[0]);
    add(l, " ? ");
    add_vector(l, e->args[1]);
    add(l, " : ");
    add_vector(l, e->args[2]);
  } else {
    add_call(l, e);
  }
}

static void print_let(TreePrinter *l, const LoopNode *n) {
  if (n->within) print_lanes_within(l, n);
  begin_line(l);
  if (n->is_row) say(l, n, "%e[r] = ");
  else if (!n->is_vector) tree_printf(l, "const %s %s = ", scalar_type(l, expr_of(l, n)), l->name[n->expr]);
  else say(l, n, n->load != LOAD_SPILLED && expr_is_mask(l->k, n->expr) ? "const %Q %e = " : "const %K %e = ");
  if (n->is_held) add(l, "v_hold(");
  if (n->load) add_load(l, n);
  else if (n->is_vector) add_vector_result(l, n);
  else add_scalar_result(l, n);
  add(l, n->is_held ? ");\n" : ";\n");
}

// Sums

static void print_begin_sum(TreePrinter *l, const LoopNode *n) {
  if (n->sum == SUM_SCALAR) {
    say_line(l, n, "double %g = %i;");
  } else if (n->count == 1) {
    say_line(l, n, "%V %g = %p_set(%i);");
  } else {
    say_line(l, n, "%V %g[%#];");
    say_line(l, n, "UNROLL for (int u = 0; u < %#; u++)");
    say_line(l, n, "  %g[u] = %p_set(%i);");
  }
}

static void print_update(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  say(l, n, n->sum == SUM_PARTIAL_LANES ? "%fv_store(part_%a, " : "%f%g = ");
  if (n->has_fewer_lanes) say(l, n, "%p_merge(n, ");
  if (n->is_fused) say(l, n, "%p_fma(%1, %2, %g)");
  else if (node_is_widened(l->t, n)) say(l, n, "d_%c(%g, d_from_v(%o))");
  else if (n->is_vector) say(l, n, "%p_%c(%g, %o)");
  else say(l, n, "f64_%c(%g, (double)%O)");
  if (n->has_fewer_lanes) say(l, n, ", %g)");
  add(l, n->sum == SUM_PARTIAL_LANES ? ");\n" : ";\n");
}

static void print_end_run(TreePrinter *l, const LoopNode *n) {
  say_line(l, n,
           node_is_widened(l->t, n) ? "%Rtotal_%e%r = d_%c(total_%e%r, d_from_v(%G));"
                                    : "%Rtotal_%e%r = v_%c(total_%e%r, %G);");
}

static void print_end_sum(TreePrinter *l, const LoopNode *n) {
  if (n->is_vector) {
    say_line(l, n, node_is_widened(l->t, n) ? "const %K %e = v_from_d(%g);" : "const %K %e = %g;");
    return;
  }
  if (n->is_row) {
    begin_line(l);
    say(l, n, "%k %e");
    tree_printf(l, "[%d];\n", tree_naccumulators(l->t));
  }
  begin_line(l);
  say(l, n, n->is_row ? "%R%e[r] = " : "const %k %e = ");
  if (n->sum == SUM_SCALAR) say(l, n, "(%k)total_%e;\n");
  else if (n->sum == SUM_TOTAL) say(l, n, "(float)d_%l(%g);\n");
  else say(l, n, node_is_f64(l->t, n) && !l->k->is_f64 ? "(float)d_%l(d_from_v(%G));\n" : "%p_%l(%G);\n");
}

static void print_combine(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  say(l, n, n->is_vector ? "total_%e = d_%c(total_%e, " : "total_%e = f64_%c(total_%e, (double)%[");
  if (n->is_vector) add_vector_load(l, n, 'd', false);
  add(l, ");\n");
}

static void print_load_partial(TreePrinter *l, const LoopNode *n) {
  say_line(l, n, n->flag ? "%V held_%a = part_%a ? %p_load%n(%@%N) : %p_set(%i);" : "%V held_%a = %p_load%n(%@%N);");
}

// Stores

static void print_scalar_store(TreePrinter *l, const LoopNode *n) {
  const Access *a = access_of(l, n);
  const bool wants_f64 = element_types[a->type].prefix == 'd', has_addresses = access_has_addresses(a);
  const bool is_own = l->k->is_s64 && a->type == TYPE_S64;
  const char *convert = has_addresses && !is_own ? element_types[a->type].to : "";
  const bool is_call = *convert && a->type != TYPE_BOOLEAN;
  begin_line(l);
  if (!has_addresses) say(l, n, "put%t(");
  open_element(l, &n->address);
  tree_printf(l, "%s%s%s", has_addresses ? "] = " : ", ", convert, is_call ? "(" : "");
  if (wants_f64 != l->k->is_f64 && a->type != TYPE_BOOLEAN) add(l, wants_f64 ? "(double)" : "(float)");
  say(l, n, "%O");
  tree_printf(l, "%s%s;\n", is_call ? ")" : "", has_addresses ? "" : ")");
}

static void print_vector_store(TreePrinter *l, const LoopNode *n) {
  const char memory = access_prefix(l, access_of(l, n)->type);
  const bool converts = memory != l->prefix;
  begin_line(l);
  tree_printf(l, "%c_%s", memory, n->is_streamed ? "stream" : node_is_strided(n) ? "scatter" : "store");
  say(l, n, node_is_strided(n) ? "%n%t(%M%S, " : "%n%t(%M, ");
  if (converts) tree_printf(l, "%c_from_%c(", memory, l->prefix);
  say(l, n, converts ? "%o)%N);\n" : "%o%N);\n");
}

static void print_store(TreePrinter *l, const LoopNode *n) {
  if (!n->is_vector) print_scalar_store(l, n);
  else if (n->address.base == BASE_ROWS) say_line(l, n, "v_store(%@, %o);");
  else if (access_is_mask(access_of(l, n))) say_line(l, n, "%Q_store(%@, %o);");
  else print_vector_store(l, n);
}

static void print_store_rows(TreePrinter *l, const LoopNode *n) {
  say_line(l, n, n->is_streamed ? "v_stream_rows%t(p_%a, rows_%a, %z);" : "v_store_rows%t(p_%a%S, rows_%a, %z);");
}

// Pointers, local arrays, flags

// Prints the beginning of a row: a pointer, or, for elements without addresses, an element's number.
static void print_pointer(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  if (n->is_row) say(l, n, "p_%a[r] = ");
  else if (!access_has_addresses(access_of(l, n))) say(l, n, "const size_t p_%a = ");
  else say(l, n, tree_stores(l->t, n->access) ? "%T *const p_%a = " : "const %T *const p_%a = ");
  say(l, n, n->flag ? "wants_%a ? %@ : NULL;\n" : "%@;\n");
}

static void print_local(TreePrinter *l, const LoopNode *n) {
  static const char *const lines[] = {
      [LOCAL_TEMPORARY] = "%T p_%a[%z];",        [LOCAL_POINTERS] = "%T *p_%a[%z];",
      [LOCAL_COPY] = "float rows_%a[%z];",       [LOCAL_ROWS] = "float rows_%a[%z * %L];",
      [LOCAL_SPILLED] = "float spilled_%e[%z];", [LOCAL_SCALARS] = " %e[%z];"};
  const bool are_places = n->local == LOCAL_POINTERS && !access_has_addresses(access_of(l, n));
  begin_line(l);
  if (n->local == LOCAL_SCALARS) add(l, scalar_type(l, expr_of(l, n)));
  if (n->local == LOCAL_POINTERS && !tree_stores(l->t, n->access) && !are_places) add(l, "const ");
  say(l, n, are_places ? "size_t p_%a[%z];" : lines[n->local]);
  add(l, "\n");
}

static void print_flag(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  if (n->flag == FLAG_WANTED) say(l, n, "const int wants_%a = %m != NULL;\n");
  else say(l, n, n->is_peeled ? "const int streams_%a = 1" : "const int streams_%a = (uintptr_t)(%@) %% %C == 0");
  if (n->flag == FLAG_STREAMED) say(l, n, n->value ? " && %B > %E;\n" : ";\n");
}

static void print_peel_count(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  say(l, n, n->flag ? "const int n = !wants_%a ? 0 : " : "const int n = ");
  say(l, n, "(int)(-(uintptr_t)(%@) %% %C / %Z);\n");
}

// Loops

static void print_body(TreePrinter *l, const LoopNode *body) {
  add(l, "{\n");
  l->indent++;
  print_nodes(l, body);
  l->indent--;
  say_line(l, body, "}");
}

static void print_for(TreePrinter *l, const LoopNode *n) {
  const bool is_one = index_is(n->step, 1);
  begin_line(l);
  say(l, n, n->is_unrolled ? "%fUNROLL for (" : "%ffor (");
  // Only whole steps, without the tail. Said as `o + 4 <= end`, gcc 12 -O2 drops some second loops over whole steps.
  if (n->is_whole) say(l, n, is_one ? "; %v < %E" : "; %E - %v >= %s");
  else say(l, n, n->is_down ? "%y %v = %E; %v-- > %B" : "%y %v = %B; %v < %E");
  if (n->bound) say(l, n, " && %v < %b");
  say(l, n, n->is_down ? ";) " : is_one ? "; %v++) " : "; %v += %s) ");
  print_body(l, n->body);
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
  say(l, n, n->test ? "if (%?) " : "%f");
  print_branch(l, n, n->body);
  if (!n->otherwise) return;
  begin_line(l);
  add(l, "else ");
  print_branch(l, n, n->otherwise);
}

// Blocks

void print_partial_parameters(TreePrinter *l, bool is_call) {
  for (const LoopNode *n = l->t->block; n; n = n->next) {
    if (n->kind != NODE_PARTIALS) continue;
    say(l, n, is_call ? ", part_%a" : n->is_vector ? ", float *part_%a" : ", %T *part_%a");
  }
}

void print_step_name(TreePrinter *l, bool is_tail) {
  tree_printf(l, "%s_kernel%zu_%s%zu", l->p->identifier, l->number, is_tail ? "rest" : "step", l->loop_index);
}

static void add_argument(TreePrinter *l, const LoopNode *n, Var parameter) {
  switch (parameter.kind) {
  case VAR_ROWS: say(l, n, ", %#"); return;
  case VAR_LANES: say(l, n, ", (int)%X"); return;
  case VAR_COLUMN_END: say(l, n, ", %E"); return;
  default: tree_printf(l, ", %s", var_names[parameter.kind]);
  }
}

static void print_step_call(TreePrinter *l, const LoopNode *n) {
  Var parameters[MOST_PARAMETERS];
  const int count = tree_parameters(l->t, n->has_fewer_lanes, parameters);
  begin_line(l);
  print_step_name(l, n->has_fewer_lanes);
  add(l, "(a");
  l->mentions_args = true;
  print_partial_parameters(l, true);
  for (int i = 0; i < count; i++) add_argument(l, n, parameters[i]);
  add(l, ");\n");
}

static void print_partials(TreePrinter *l, const LoopNode *n) {
  if (n->is_vector) say_line(l, n, "float part_%a[%B];");
  else
    say_line(l, n,
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
  say_line(l, n, "%k *const to = %m;");
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
    [NODE_REDUCE_PARTIAL] = {"%[ = (%T)d_%l(d_from_v(v_load(part_%a + %B)));", NULL},
    [NODE_SCATTER] = {NULL, print_scatter},
    [NODE_FENCE] = {"v_fence();", NULL},
};

void print_nodes(TreePrinter *l, const LoopNode *n) {
  for (; n; n = n->next) {
    const NodePrinter *printer = &printers[n->kind];
    if (printer->line) say_line(l, n, printer->line);
    else printer->print(l, n);
  }
}
