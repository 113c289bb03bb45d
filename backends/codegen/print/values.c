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
    tree_printf(l, ", %c_places(", *l->own->prefix);
    add_vector(l, offset);
  } else {
    tree_add_text(l, access_has_addresses(a) ? " + (ptrdiff_t)(" : " + (size_t)(");
    add_scalar(l, offset);
  }
  tree_add_text(l, ")");
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

void add_scalar_load(TreePrinter *l, const LoopNode *n) {
  const Access *a = access_of(l, n);
  const char *convert = element_types[a->type].from;
  const bool is_call = *convert && a->type != TYPE_BOOLEAN, has_addresses = access_has_addresses(a);
  const Bound *bound = l->own->elements && n->from.within ? node_lane_bound(l->t, n) : NULL;
  if (n->test) tree_say(l, n, bound ? "{test} && " : "{test} ? ");
  if (bound) {
    tree_say(l, n, "(size_t){within} < ");
    tree_printf(l, "%lld ? ", (long long)bound->extent);
  }
  if (!expr_of(l, n)->is_s64) tree_add_text(l, scalar_cast(a->type, l->k));
  tree_printf(l, "%s%s", convert, is_call ? "(" : "");
  const ExprId offset = expr_of(l, n)->args[0];
  if (offset && l->own->elements && has_addresses) { // the place of an element is a size_t, its offset may be negative
    tree_say(l, n, "({at})[(ptrdiff_t)(");
    add_scalar(l, offset);
    tree_add_text(l, ")");
  } else {
    open_element(l, &n->from);
    if (offset) add_offset(l, a, offset, false);
  }
  tree_add_text(l, !has_addresses ? ")" : is_call ? "])" : "]");
  if (n->test || bound) tree_say(l, n, " : {outside}");
}

// The distance from lane 0's address to the first lane within the bound.
void add_to_first(TreePrinter *l, const LoopNode *n) {
  const int64_t step = n->step->number;
  if (n->step->monomial) {
    tree_say(l, n, " + (ptrdiff_t)within_{expr}.first * (ptrdiff_t)");
    add_factor(l, n->step);
    return;
  }
  tree_say(l, n, step < 0 ? " - within_{expr}.first" : " + within_{expr}.first");
  if (step != 1 && step != -1) tree_printf(l, " * %lld", (long long)llabs(step));
}

void add_vector_load(TreePrinter *l, const LoopNode *n, char to, bool is_part) {
  const bool is_gathered = node_load(l->t, n) == LOAD_GATHERED, is_strided = is_gathered || node_is_strided(n);
  const Access *a = access_of(l, n);
  const ExprId offset = expr_of(l, n)->args[0];
  if (access_is_mask(a)) {
    tree_say(l, n, "{mask}_load({at})");
    return;
  }
  const char memory = access_prefix(l, a->type);
  if (memory != to) tree_printf(l, "%c_from_%c(", to, memory);
  tree_printf(l, "%c_%s", memory, is_gathered ? "gather_at" : is_strided ? "gather" : "load");
  tree_say(l, n, is_part ? "_n{suffix}({memory}" : "{_n}{suffix}({memory}");
  if (is_part) add_to_first(l, n);
  if (offset && !is_gathered) add_offset(l, a, offset, false);
  if (is_strided) tree_say(l, n, "{stride}");
  if (is_gathered) add_offset(l, a, offset, true);
  tree_say(l, n, is_part ? ", within_{expr}.count)" : "{lanes})");
  if (memory != to) tree_add_text(l, ")");
}

void add_span(TreePrinter *l, const LoopNode *n) {
  const Bound *bound = n->from.within ? node_lane_bound(l->t, n) : NULL;
  if (!bound) return;
  tree_say(l, n, "const v_span within_{expr} = v_within((ptrdiff_t){within}, ");
  tree_printf(l, "%lld, %lld, ", (long long)bound->factor[loop_lane_axis(l->t->loop)], (long long)bound->extent);
  tree_say(l, n, n->test ? "{test} ? {nloaded} : 0);\n" : "{nloaded});\n");
}

void add_whole_load(TreePrinter *l, const LoopNode *n) {
  add_vector_load(l, n, *l->own->prefix, false);
}

void add_part_load(TreePrinter *l, const LoopNode *n) {
  add_vector_load(l, n, *l->own->prefix, true);
}

// The line of a load some of whose lanes may be outside of the tensor.
static const char *load_within(const TreePrinter *l, const LoopNode *n, Load load) {
  const bool is_plain = access_of(l, n)->type == kernel_type(l->k) && !l->k->is_s64 && !expr_of(l, n)->args[0];
  if (is_plain && load == LOAD_DENSE)
    return "{unless_within}{prefix}_load_within({memory}{to_first}, within_{expr}, {outside}){else_outside}";
  if (is_plain && load == LOAD_STRIDED)
    return "{unless_within}{prefix}_gather_within({memory}{to_first}{stride}, within_{expr}, {outside}){else_outside}";
  return "{unless_within}{prefix}_place({part_load}, within_{expr}, {outside}){else_outside}";
}

static const char *load_line(const TreePrinter *l, const LoopNode *n, Load load) {
  if (load == LOAD_ELEMENT || l->own->elements) return "{scalar_load}";
  if (load == LOAD_WHOLE) return "v_load({at})";
  if (load == LOAD_BROADCAST) return "v_set({to_f32}(*({memory})))";
  if (n->from.within) return load_within(l, n, load);
  return n->test ? "{test} ? {whole_load}{else_outside}" : "{whole_load}";
}

// Computed values

// A scalar operation without a formula is computed as lane 0 of the vector function, because libm may give other bits.
static const char *formula_of(const TreePrinter *l, const LoopNode *n) {
  const ExprOp op = expr_of(l, n)->op;
  if (n->is_vector && !l->own->elements) {
    if (op == EXPR_INDEX) return "{prefix}_index({begin})";
    if (op == EXPR_IS_KEPT) return "{prefix}_is_kept({0}, {1}, (double){2}, {at}{stride})";
    const bool is_for_all_lanes = op == EXPR_SELECT && l->t->form[expr_of(l, n)->args[0]] != FORM_VECTOR;
    return is_for_all_lanes ? "{0} ? {second} : {third}" : "{vector_call}";
  }
  if (l->k->is_s64) return integer_formulas[op];
  const char *own = l->t->loop->by_element ? element_formulas[op][l->k->is_f64] : NULL;
  if (own) return expr_is_long(op) ? "{file}_one_{prefix}_{operator}({arguments})" : own;
  return scalar_formulas[op] ? scalar_formulas[op] : "{prefix}_lane_0({vector_call})";
}

void add_formula_operand(TreePrinter *l, const LoopNode *n, size_t argument) {
  const ExprId id = expr_of(l, n)->args[argument];
  const Expr *e = &l->k->exprs[id];
  const bool is_negative = e->op == EXPR_CONSTANT && signbit(e->number);
  if (l->own->is_callable) tree_add_text(l, argument ? "b" : "a");
  else if (is_negative) tree_say(l, &(LoopNode){.expr = id}, "({operand})");
  else add_scalar(l, id);
}

void add_vector_arguments(TreePrinter *l, const LoopNode *n) {
  const Expr *e = expr_of(l, n);
  for (int a = 0; a < expr_info[e->op].narguments; a++) {
    if (a) tree_add_text(l, ", ");
    add_vector(l, e->args[a]);
  }
}

void add_reciprocal(TreePrinter *l, const LoopNode *n) {
  const bool is_of_0 = expr_of(l, n)->number == 0;
  if (is_of_0) add_number(l->out, 1, l->k->is_f64);
  else tree_say(l, n, "{to_kernel}(1 / (double)({number} > 0 ? {number} : 1))");
}

void add_computed(TreePrinter *l, const LoopNode *n) {
  const Load load = node_load(l->t, n);
  const bool is_held = n->is_held && !l->own->elements;
  if (is_held) tree_add_text(l, "v_hold(");
  tree_say(l, n, load ? load_line(l, n, load) : formula_of(l, n));
  if (is_held) tree_add_text(l, ")");
}

void add_scalar_store(TreePrinter *l, const LoopNode *n) {
  const Access *a = access_of(l, n);
  const bool wants_f64 = element_types[a->type].prefix == 'd', has_addresses = access_has_addresses(a);
  const bool is_own = access_prefix(l, a->type) == 'l';
  const char *convert = has_addresses && !is_own ? element_types[a->type].to : "";
  const bool is_call = *convert && a->type != TYPE_BOOLEAN;
  if (!has_addresses) tree_say(l, n, "put{suffix}(");
  open_element(l, &n->to);
  tree_printf(l, "%s%s%s", has_addresses ? "] = " : ", ", convert, is_call ? "(" : "");
  if (is_own && a->type == TYPE_U64) tree_add_text(l, "(uint64_t)");
  if (wants_f64 != l->k->is_f64 && a->type != TYPE_BOOLEAN) tree_add_text(l, wants_f64 ? "(double)" : "(float)");
  add_scalar(l, n->expr);
  tree_printf(l, "%s%s", is_call ? ")" : "", has_addresses ? "" : ")");
}
