// Prints what a node computes as an expression of C: a load, or the result of an operation.
#include "backends/codegen/print/tree_printer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Loads

// Adds a load's computed offset in elements: a scalar that is added to the address, or an argument with one offset per
// lane.
static void add_offset(TreePrinter *l, const Access *a, ExprId offset, bool is_lanes) {
  if (is_lanes) {
    tree_printf(l, ", %c_places(", l->prefix);
    add_vector(l, offset);
  } else {
    add_text(l, access_has_addresses(a) ? " + (ptrdiff_t)(" : " + (size_t)(");
    add_scalar(l, offset);
  }
  add_text(l, ")");
}

char access_prefix(const TreePrinter *l, Type type) {
  return l->k->is_s64 && TYPES_64_BITS & TYPE_BIT(type) ? 'l' : element_types[type].prefix;
}

// The cast from an element, after scalar_from's conversion, to the kernel's type. Vectors of integers of 32 and 64 bits
// are converted through f64, too.
static const char *scalar_cast(Type type, const Kernel *k) {
  if (k->is_s64) return type == TYPE_U64 ? "(int64_t)" : "";
  if (k->is_f64) return type == TYPE_F64 ? "" : "(double)";
  return !(TYPES_INTEGER & TYPE_BIT(type)) ? "" : element_types[type].prefix == 'd' ? "(float)(double)" : "(float)";
}

static void add_scalar_load(TreePrinter *l, const LoopNode *n) {
  const Access *a = access_of(l, n);
  const char *convert = element_types[a->type].from;
  const bool is_call = *convert && a->type != TYPE_BOOLEAN, has_addresses = access_has_addresses(a);
  const Bound *bound = l->elements && n->from.within ? node_lane_bound(l->t, n) : NULL;
  if (n->test) tree_say(l, n, bound ? "%? && " : "%? ? ");
  if (bound) {
    tree_say(l, n, "(size_t)%j < ");
    tree_printf(l, "%lld ? ", (long long)bound->extent);
  }
  if (!expr_of(l, n)->is_s64) add_text(l, scalar_cast(a->type, l->k));
  tree_printf(l, "%s%s", convert, is_call ? "(" : "");
  const ExprId offset = expr_of(l, n)->args[0];
  if (offset && l->elements && has_addresses) { // the place of an element is a size_t, its offset may be negative
    tree_say(l, n, "(%@)[(ptrdiff_t)(");
    add_scalar(l, offset);
    add_text(l, ")");
  } else {
    open_element(l, &n->from);
    if (offset) add_offset(l, a, offset, false);
  }
  add_text(l, !has_addresses ? ")" : is_call ? "])" : "]");
  if (n->test || bound) tree_say(l, n, " : %u");
}

// Adds the distance from lane 0's address to the first lane within the bound.
static void add_first_within(TreePrinter *l, const LoopNode *n) {
  const int64_t step = n->step->number;
  if (n->step->monomial) {
    tree_say(l, n, " + (ptrdiff_t)within_%e.first * (ptrdiff_t)");
    add_factor(l, n->step);
    return;
  }
  tree_say(l, n, step < 0 ? " - within_%e.first" : " + within_%e.first");
  if (step != 1 && step != -1) tree_printf(l, " * %lld", (long long)llabs(step));
}

void add_vector_load(TreePrinter *l, const LoopNode *n, char to, bool is_part) {
  const bool is_gathered = node_load(l->t, n) == LOAD_GATHERED, is_strided = is_gathered || node_is_strided(n);
  const Access *a = access_of(l, n);
  const ExprId offset = expr_of(l, n)->args[0];
  if (access_is_mask(a)) {
    tree_say(l, n, "%Q_load(%@)");
    return;
  }
  const char memory = access_prefix(l, a->type);
  if (memory != to) tree_printf(l, "%c_from_%c(", to, memory);
  tree_printf(l, "%c_%s", memory, is_gathered ? "gather_at" : is_strided ? "gather" : "load");
  tree_say(l, n, is_part ? "_n%t(%M" : "%n%t(%M");
  if (is_part) add_first_within(l, n);
  if (offset && !is_gathered) add_offset(l, a, offset, false);
  if (is_strided) tree_say(l, n, "%S");
  if (is_gathered) add_offset(l, a, offset, true);
  tree_say(l, n, is_part ? ", within_%e.count)" : "%N)");
  if (memory != to) add_text(l, ")");
}

// Adds a load some of whose lanes may be outside of the tensor.
static void add_load_within(TreePrinter *l, const LoopNode *n) {
  if (!n->has_fewer_lanes) {
    tree_say(l, n, "within_%e.count == %L ? ");
    add_vector_load(l, n, l->prefix, false);
    add_text(l, " : ");
  }
  const Access *a = access_of(l, n);
  const Load load = node_load(l->t, n);
  if (a->type == kernel_type(l->k) && !l->k->is_s64 && load != LOAD_GATHERED && !expr_of(l, n)->args[0]) {
    const bool is_dense = load == LOAD_DENSE;
    tree_say(l, n, is_dense ? "within_%e.count ? %P_load_within(%M" : "within_%e.count ? %P_gather_within(%M");
    add_first_within(l, n);
    tree_say(l, n, is_dense ? ", within_%e, %u) : %P_set(%u)" : "%S, within_%e, %u) : %P_set(%u)");
    return;
  }
  tree_say(l, n, "within_%e.count ? %P_place(");
  add_vector_load(l, n, l->prefix, true);
  tree_say(l, n, ", within_%e, %u) : %P_set(%u)");
}

void print_lanes_within(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  tree_say(l, n, "const v_span within_%e = v_within((ptrdiff_t)%j, ");
  const Bound *bound = node_lane_bound(l->t, n);
  if (!bound) return; // never in a verified tree
  tree_printf(l, "%lld, %lld, ", (long long)bound->factor[loop_lane_axis(l->t->loop)], (long long)bound->extent);
  if (n->test) tree_say(l, n, "%? ? ");
  if (n->has_fewer_lanes) add_var(l, loop_var(VAR_LANES));
  else tree_say(l, n, "%L");
  add_text(l, n->test ? " : 0);\n" : ");\n");
}

static void add_load(TreePrinter *l, const LoopNode *n, Load load) {
  switch (l->elements ? LOAD_ELEMENT : load) {
  case LOAD_ELEMENT: add_scalar_load(l, n); return;
  case LOAD_WHOLE: tree_say(l, n, "v_load(%@)"); return;
  case LOAD_BROADCAST:
    tree_printf(l, "v_set(%s", element_types[access_of(l, n)->type].from);
    tree_say(l, n, "(*(%M)))");
    return;
  default:
    if (n->from.within) {
      add_load_within(l, n);
      return;
    }
    if (n->test) tree_say(l, n, "%? ? ");
    add_vector_load(l, n, l->prefix, false);
    if (n->test) tree_say(l, n, " : %P_set(%u)");
  }
}

const char *scalar_type(const TreePrinter *l, const Expr *e) {
  return e->is_s64 ? "int64_t" : expr_info[e->op].is_mask ? "int" : l->scalar;
}

// Computed values

static void add_call(TreePrinter *l, const Expr *e) {
  if (l->t->calls_long && expr_is_long(e->op)) tree_printf(l, "%s_call_", l->p->identifier);
  tree_printf(l, "%c_%s(", l->prefix, expr_info[e->op].name);
  for (int a = 0; a < expr_info[e->op].narguments; a++) {
    if (a) add_text(l, ", ");
    add_vector(l, e->args[a]);
  }
  add_text(l, ")");
}

static void add_formula_operand(TreePrinter *l, ExprId id) {
  const Expr *e = &l->k->exprs[id];
  const bool is_negative = e->op == EXPR_CONSTANT && signbit(e->number);
  if (is_negative) add_text(l, "(");
  add_scalar(l, id);
  if (is_negative) add_text(l, ")");
}

// A scalar operation without a formula is computed as lane 0 of the vector function, because libm may give other bits.
static void add_formula(TreePrinter *l, const Expr *e) {
  const char *own = l->t->loop->by_element && !l->k->is_s64 ? element_formulas[e->op][l->k->is_f64] : NULL;
  const char *formula = own ? own : l->k->is_s64 ? integer_formulas[e->op] : scalar_formulas[e->op];
  if (own && expr_is_long(e->op)) {
    tree_printf(l, "%s_one_%c_%s(", l->p->identifier, l->prefix, expr_info[e->op].name);
    formula = expr_info[e->op].narguments > 1 ? "%0, %1)" : "%0)";
  }
  if (!formula) {
    tree_printf(l, "%c_lane_0(", l->prefix);
    add_call(l, e);
    add_text(l, ")");
  }
  for (const char *c = formula; c && *c; c++) {
    if (*c == '%') add_formula_operand(l, e->args[*++c - '0']);
    else if (own) text_add(l->out, c, 1);
    else if (*c == 'F') add_text(l, l->k->is_f64 ? "" : "f");
    else if (*c == 'N') add_text(l, l->k->is_f64 ? "(float)" : "");
    else if (*c == 'W') add_text(l, l->k->is_f64 ? "(double)" : "");
    else text_add(l->out, c, 1);
  }
}

// Adds a count, or 1 / count, computed in f64 and then rounded, as constants are; in s64, the count itself.
static void add_element_count(TreePrinter *l, const Expr *e) {
  const char *count = number_text(l, (int64_t)e->number, e->monomial), *cast = l->k->is_f64 ? "" : "(float)";
  if (l->k->is_s64) tree_printf(l, "(int64_t)%s", count);
  else if (e->op == EXPR_COUNT) tree_printf(l, "%s(double)%s", cast, count);
  else if (strcmp(count, "0") == 0) add_number(l->out, 1, l->k->is_f64);
  else tree_printf(l, "%s(1 / (double)(%s > 0 ? %s : 1))", cast, count, count);
}

// The call that tests whether dropout keeps an element, or the elements of a vector.
static void add_is_kept(TreePrinter *l, const LoopNode *n) {
  const Expr *e = expr_of(l, n);
  add_text(l, "is_kept(");
  add_scalar(l, e->args[0]);
  add_text(l, ", ");
  add_scalar(l, e->args[1]);
  add_text(l, ", (double)");
  add_scalar(l, e->args[2]);
  tree_say(l, n, n->is_vector && !l->elements ? ", %@%S)" : ", %@)");
}

static void add_scalar_result(TreePrinter *l, const LoopNode *n) {
  const Expr *e = expr_of(l, n);
  switch (e->op) {
  case EXPR_INDEX:
    if (n->is_vector) {
      tree_say(l, n, "(%k)(%B)");
      return;
    }
    tree_printf(l, "(%s)%s", l->scalar, l->k->axes[__builtin_ctz(e->axes)].name);
    return;
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
    tree_say(l, n, "%P_index(%B)");
  } else if (e->op == EXPR_IS_KEPT) {
    tree_say(l, n, "%P_");
    add_is_kept(l, n);
  } else if (e->op == EXPR_SELECT && l->t->form[e->args[0]] != FORM_VECTOR) { // the condition is the same for all lanes
    add_scalar(l, e->args[0]);
    add_text(l, " ? ");
    add_vector(l, e->args[1]);
    add_text(l, " : ");
    add_vector(l, e->args[2]);
  } else {
    add_call(l, e);
  }
}

void add_value(TreePrinter *l, const LoopNode *n) {
  const Load load = node_load(l->t, n);
  if (load) add_load(l, n, load);
  else if (n->is_vector && !l->elements) add_vector_result(l, n);
  else add_scalar_result(l, n);
}

void print_scalar_store(TreePrinter *l, const LoopNode *n) {
  const Access *a = access_of(l, n);
  const bool wants_f64 = element_types[a->type].prefix == 'd', has_addresses = access_has_addresses(a);
  const bool is_own = access_prefix(l, a->type) == 'l';
  const char *convert = has_addresses && !is_own ? element_types[a->type].to : "";
  const bool is_call = *convert && a->type != TYPE_BOOLEAN;
  begin_line(l);
  if (!has_addresses) tree_say(l, n, "put%t(");
  open_element(l, &n->to);
  tree_printf(l, "%s%s%s", has_addresses ? "] = " : ", ", convert, is_call ? "(" : "");
  if (is_own && a->type == TYPE_U64) add_text(l, "(uint64_t)");
  if (wants_f64 != l->k->is_f64 && a->type != TYPE_BOOLEAN) add_text(l, wants_f64 ? "(double)" : "(float)");
  tree_say(l, n, "%O");
  tree_printf(l, "%s%s;\n", is_call ? ")" : "", has_addresses ? "" : ")");
}
