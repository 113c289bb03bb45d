// Integers and addresses in C, and operands. Elements of 4 bits have no addresses: such an element is described by its
// tensor's memory and a place, its number. A scalar is a variable, or an element x[r] of an array if several rows are
// computed at once. A vector is a variable in the body of the innermost loop. A constant is written where it is used.
#include "backends/codegen/print/tree_printer.h"

const char *var_type(Var v) {
  return var_info[v.kind].is_int ? "int" : v.kind == VAR_DISTANCE ? "ptrdiff_t" : "size_t";
}

const char *scalar_type(const TreePrinter *l, const Expr *e) {
  return e->is_s64 ? "int64_t" : expr_info[e->op].is_mask ? "int" : l->own->scalar;
}

const char *number_text(TreePrinter *l, int64_t number, Monomial monomial) {
  const char *names[MAX_OPEN_DIMS] = {NULL};
  for (size_t i = 0; number && monomial && i < l->k->graph->ndims; i++) {
    names[i] = l->expr_name[l->k->nexprs + i];
    l->own->mentions_dim[i] |= monomial_exponent(monomial, i) > 0;
    l->own->mentions_args |= l->own->mentions_dim[i];
  }
  return open_number_text(l->own->p, number, monomial, names, false);
}

void add_own_number(TreePrinter *l, int64_t number, Monomial monomial, int precedence) {
  (void)precedence; // a product is in parentheses
  tree_add_text(l, number_text(l, number, monomial));
}

static void add_line_test(TreePrinter *l, const Index *i) {
  const bool is_test = i->op == INDEX_IS_AT_LINE;
  tree_add_text(l, is_test ? "(uintptr_t)(" : "(int)(-(uintptr_t)(");
  tree_add_address(l, i->address);
  if (is_test) tree_printf(l, ") %% %d == 0", LINE_NBYTES);
  else tree_printf(l, ") %% %d / %zu)", LINE_NBYTES, type_nbytes(l->k->accesses[i->address->of].type));
}

bool add_index(TreePrinter *l, const Index *i, int precedence) {
  (void)precedence;
  switch (i->op) {
  case INDEX_BLOCK_LENGTH:
  case INDEX_NCUT_BLOCKS:
    l->own->mentions_args = true;
    tree_printf(l, "a->k%zu_loop%u_%s", l->own->number, (unsigned)i->loop,
                i->op == INDEX_NCUT_BLOCKS ? "blocks" : "block");
    return true;
  case INDEX_SIGNED:
    tree_add_text(l, "(ptrdiff_t)(");
    tree_add_index(l, i->args[0], 0);
    tree_add_text(l, ")");
    return true;
  case INDEX_EXISTS:
    if (i->address->buffer == BUFFER_TENSOR) add_member(l, i->address->of);
    else tree_add_buffer(l, i->address);
    return true;
  case INDEX_IS_AT_LINE:
  case INDEX_TO_LINE: add_line_test(l, i); return true;
  default: return false;
  }
}

void add_factor(TreePrinter *l, const Index *i) {
  tree_add_index(l, i, PRECEDENCE_VALUE);
}

const char *member_name(TreePrinter *l, AccessId id) {
  const Access *a = &l->k->accesses[id];
  Printer *p = l->own->p;
  l->own->mentions_args = true;
  return a->value ? p->value_member[a->value->index] : *temporary_member(p, l->own->kernel_index, a->temporary);
}

void add_member(TreePrinter *l, AccessId id) {
  tree_add_text(l, "a->");
  tree_add_text(l, member_name(l, id));
}

void add_tensor(TreePrinter *l, AccessId id) {
  if (access_has_addresses(&l->k->accesses[id])) add_member(l, id);
  else tree_add_text(l, "(size_t)0");
}

// Of an access; false: elements of 4 bits.
static bool has_addresses(const TreePrinter *l, const Address *at) {
  return buffer_info[at->buffer].is_of_expr || access_has_addresses(&l->k->accesses[at->of]);
}

void add_memory(TreePrinter *l, const Address *at) {
  if (!has_addresses(l, at)) {
    add_member(l, at->of);
    tree_add_text(l, ", ");
  }
  tree_add_address(l, at);
}

void open_element(TreePrinter *l, const Address *at) {
  if (!has_addresses(l, at)) {
    add_memory(l, at);
    return;
  }
  const int panel_axis = at->buffer == BUFFER_PARTIALS ? 0 : l->k->accesses[at->of].panel_axis;
  tree_add_buffer(l, at);
  tree_add_text(l, "[");
  l->own->is_panel = l->own->elements && panel_axis && panel_axis == loop_lane_axis(l->t->loop) + 1;
  if (at->index) tree_add_index(l, at->index, 0);
  else tree_add_text(l, "0");
  if (l->own->is_panel) tree_printf(l, " + (i + %d) %% %d", l->own->element, LANES);
  l->own->is_panel = false;
}

// Adds an element with its closing bracket or parenthesis.
void add_element(TreePrinter *l, const LoopNode *n) {
  open_element(l, node_memory(n));
  tree_add_text(l, has_addresses(l, node_memory(n)) ? "]" : ")");
}

void add_element_number(TreePrinter *l) {
  if (l->own->elements && l->t->loop->by_element > 1) tree_printf(l, "[%d]", l->own->element);
}

void add_scalar(TreePrinter *l, ExprId id) {
  const Form form = l->t->form[id];
  if (form == FORM_NUMBER && l->k->is_s64) add_integer(l->out, l->k->exprs[id].integer);
  else if (form == FORM_NUMBER) add_number(l->out, l->k->exprs[id].number, l->k->is_f64);
  else tree_add_text(l, l->expr_name[id]);
  if (form == FORM_ROWS) tree_add_text(l, "[r]");
  if (form == FORM_VECTOR) add_element_number(l);
}

void add_vector(TreePrinter *l, ExprId id) {
  if (l->t->form[id] == FORM_VECTOR && !l->own->elements) {
    tree_add_text(l, l->expr_name[id]);
    return;
  }
  tree_printf(l, "%c_set(", *l->own->prefix);
  add_scalar(l, id);
  tree_add_text(l, ")");
}
