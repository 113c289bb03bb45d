// Prints the integers and addresses of a loop tree, and text that all files of the printer of trees print.
#include "backends/codegen/print/tree_printer.h"

#include <stdarg.h>

void add_text(TreePrinter *l, const char *text) {
  text_add_string(l->out, text);
}

void tree_printf(TreePrinter *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_format_list(l->out, format, args);
  va_end(args);
}

void begin_line(TreePrinter *l) {
  for (int i = 0; i < l->indent && !l->is_line_begun; i++) add_text(l, "  ");
  l->is_line_begun = false;
}

const char *number_text(TreePrinter *l, int64_t number, Monomial monomial) {
  const char *names[MAX_OPEN_DIMS] = {NULL};
  for (size_t i = 0; number && monomial && i < l->k->graph->ndims; i++) {
    names[i] = l->name[l->k->nexprs + i];
    l->mentions_dim[i] |= monomial_exponent(monomial, i) > 0;
    l->mentions_args |= l->mentions_dim[i];
  }
  return open_number_text(l->p, number, monomial, names, false);
}

void add_var(TreePrinter *l, Var v) {
  l->mentions_lanes |= v.kind == VAR_LANES;
  if (v.kind == VAR_LANE && (l->is_panel || l->element)) {
    if (l->is_panel)
      tree_printf(l, l->element ? "((i + %d) / %d * %d)" : "(i / %d * %d)", l->element ? l->element : LANES, LANES,
                  LANES);
    else tree_printf(l, "(i + %d)", l->element);
    return;
  }
  const VarInfo *info = &var_info[v.kind];
  add_text(l, info->prefix);
  if (info->owner == OWNER_AXIS) add_text(l, l->k->axes[v.of].name);
  if (info->owner == OWNER_ACCESS) add_text(l, l->access_name[v.of]);
  add_text(l, info->suffix);
}

const char *var_type(Var v) {
  return var_info[v.kind].is_int ? "int" : v.kind == VAR_DISTANCE ? "ptrdiff_t" : "size_t";
}

static bool is_compound(const Index *i) {
  return i->op >= INDEX_ADD && i->op != INDEX_SIGNED;
}

static void add_index_within(TreePrinter *l, const Index *i, int precedence);

static void add_line_test(TreePrinter *l, const Index *i) {
  const bool is_test = i->op == INDEX_IS_AT_LINE;
  tree_printf(l, is_test ? "(uintptr_t)(" : "(int)(-(uintptr_t)(");
  add_address(l, i->address);
  if (is_test) tree_printf(l, ") %% %d == 0", LINE_NBYTES);
  else tree_printf(l, ") %% %d / %zu)", LINE_NBYTES, type_nbytes(l->k->accesses[i->address->of].type));
}

// An operand. An int operand of a size_t operator gets a cast, because compilers warn of the implicit conversion
// (-Wsign-conversion).
static void add_operand(TreePrinter *l, const Index *i, int precedence, bool is_size) {
  if (is_size && index_type(i) == INDEX_INT) {
    tree_printf(l, "(size_t)");
    precedence = is_compound(i) ? PRECEDENCE_VALUE : 0;
  }
  add_index_within(l, i, precedence);
}

static void add_index_within(TreePrinter *l, const Index *i, int precedence) {
  const bool is_size = index_type(i) == INDEX_SIZE;
  switch (i->op) {
  case INDEX_NUMBER: add_text(l, number_text(l, i->number, i->monomial)); return;
  case INDEX_VAR: add_var(l, i->var); return;
  case INDEX_BLOCK_LENGTH:
  case INDEX_NCUT_BLOCKS:
    l->mentions_args = true;
    tree_printf(l, "a->k%zu_loop%u_%s", l->number, (unsigned)i->loop, i->op == INDEX_NCUT_BLOCKS ? "chunks" : "block");
    return;
  case INDEX_SIGNED:
    tree_printf(l, "(ptrdiff_t)(");
    add_index(l, i->args[0]);
    tree_printf(l, ")");
    return;
  case INDEX_EXISTS:
    if (i->address->buffer == BUFFER_TENSOR) add_member(l, i->address->of);
    else add_buffer(l, i->address);
    return;
  case INDEX_IS_AT_LINE:
  case INDEX_TO_LINE: add_line_test(l, i); return;
  default: break;
  }
  const int own = index_operators[i->op].precedence;
  if (own < precedence) tree_printf(l, "(");
  if (i->op == INDEX_CHOOSE) {
    add_index_within(l, i->args[0], PRECEDENCE_COMPARISON);
    tree_printf(l, " ? ");
    add_index_within(l, i->args[1], PRECEDENCE_CHOICE);
    tree_printf(l, " : ");
    add_index_within(l, i->args[2], PRECEDENCE_CHOICE);
  } else {
    add_operand(l, i->args[0], own, is_size);
    add_text(l, index_operators[i->op].text);
    add_operand(l, i->args[1], own + 1, is_size);
  }
  if (own < precedence) tree_printf(l, ")");
}

void add_index(TreePrinter *l, const Index *i) {
  add_index_within(l, i, 0);
}

void add_factor(TreePrinter *l, const Index *i) {
  add_index_within(l, i, PRECEDENCE_VALUE);
}

void add_index_as(TreePrinter *l, const Index *i, IndexType wanted) {
  if (wanted != INDEX_INT || index_type(i) != INDEX_SIZE) {
    add_operand(l, i, 0, wanted == INDEX_SIZE);
    return;
  }
  tree_printf(l, "(int)");
  add_factor(l, i);
}

void add_member(TreePrinter *l, AccessId id) {
  const Access *a = &l->k->accesses[id];
  l->mentions_args = true;
  add_text(l, "a->");
  add_text(l, a->value ? l->p->value_member[a->value->index] : *temporary_member(l->p, l->kernel_index, a->temporary));
}

void add_element_number(TreePrinter *l) {
  if (l->elements && l->t->loop->by_element > 1) tree_printf(l, "[%d]", l->element);
}

// In a loop over elements: a sum of all lanes is in memory, others are scalars.
static void add_lane(TreePrinter *l, const Address *sum) {
  const Index *begin = l->elements->value;
  const bool is_own =
      !(l->k->exprs[buffer_info[sum->buffer].is_of_expr ? sum->of : 0].reduced >> loop_lane_axis(l->t->loop) & 1);
  if (sum->buffer != BUFFER_SUM || is_own) {
    add_element_number(l);
    return;
  }
  add_text(l, index_is(begin, 0) ? ".p[i" : ".p[(i - ");
  if (!index_is(begin, 0)) add_factor(l, begin);
  tree_printf(l, "%s %% %d]", index_is(begin, 0) ? "" : ")", LANES);
}

void add_buffer(TreePrinter *l, const Address *at) {
  const BufferInfo *info = &buffer_info[at->buffer];
  if (at->buffer == BUFFER_TENSOR) {
    if (access_has_addresses(&l->k->accesses[at->of])) add_member(l, at->of);
    else tree_printf(l, "(size_t)0");
    return;
  }
  add_text(l, info->prefix);
  add_text(l, info->is_of_expr ? l->name[at->of] : l->access_name[at->of]);
  if (at->item) {
    tree_printf(l, "[");
    add_index(l, at->item);
    tree_printf(l, "]");
  }
  if (l->elements && info->space == SPACE_REGISTERS) add_lane(l, at);
}

void add_address(TreePrinter *l, const Address *at) {
  add_buffer(l, at);
  if (!at->index) return;
  const bool is_negated = at->index->op == INDEX_SUBTRACT && index_is(at->index->args[0], 0);
  const IndexOp op = is_negated ? INDEX_SUBTRACT : INDEX_ADD;
  add_text(l, index_operators[op].text);
  const Index *offset = is_negated ? at->index->args[1] : at->index;
  add_operand(l, offset, index_operators[op].precedence + is_negated, index_type(offset) != INDEX_INT);
}

// Of an access; false: elements of 4 bits.
static bool has_addresses(const TreePrinter *l, const Address *at) {
  return buffer_info[at->buffer].is_of_expr || access_has_addresses(&l->k->accesses[at->of]);
}

void add_memory(TreePrinter *l, const Address *at) {
  if (!has_addresses(l, at)) {
    add_member(l, at->of);
    tree_printf(l, ", ");
  }
  add_address(l, at);
}

void open_element(TreePrinter *l, const Address *at) {
  if (!has_addresses(l, at)) {
    add_memory(l, at);
    return;
  }
  const Access *access = &l->k->accesses[at->of];
  const bool is_panel = l->elements && at->buffer != BUFFER_PARTIALS && access->panel_axis &&
                        access->panel_axis == loop_lane_axis(l->t->loop) + 1;
  add_buffer(l, at);
  tree_printf(l, "[");
  l->is_panel = is_panel;
  if (at->index) add_index(l, at->index);
  else tree_printf(l, "0");
  l->is_panel = false;
  if (is_panel) tree_printf(l, " + (i + %d) %% %d", l->element, LANES);
}
