// The state of the walk: messages, scopes and variables. A node's declarations are in scope for the nodes that follow
// it in its list.
#include "ir/loops/print.h"
#include "ir/loops/verifying.h"
#include "ir/support/escape.h"

#include <stdarg.h>

// Messages

static void add_where(Verifying *v, const LoopNode *n) {
  text_format(v->why, "loop %zu of the kernel of ", (size_t)(v->loop - v->t->schedule->loops));
  kernel_print_nodes(v->k, v->why);
  text_format(v->why, ", %s: ", v->function);
  if (!n) return;
  loops_print_node(v->t, n, v->why);
  text_add_string(v->why, ": ");
}

bool verify_fail(Verifying *v, const LoopNode *n, const char *format, ...) {
  va_list args;
  add_where(v, n);
  va_start(args, format);
  text_format_list(v->why, format, args);
  va_end(args);
  text_add_string(v->why, "\n");
  return false;
}

static void add_expr(Verifying *v, ExprId id) {
  const Expr *e = &v->k->exprs[id];
  text_format(v->why, "expression %u (%s", id, expr_info[e->op].name ? expr_info[e->op].name : "a leaf");
  if (e->label) text_add_string(v->why, " ");
  if (e->label) text_add_user_string(v->why, SINK_TERMINAL, e->label);
  text_add_string(v->why, ")");
}

bool verify_fail_expr(Verifying *v, const LoopNode *n, ExprId id, const char *what) {
  add_where(v, n);
  add_expr(v, id);
  text_format(v->why, " %s\n", what);
  return false;
}

static void add_index(Verifying *v, const Index *i) {
  if (i) loops_print_index(v->t, i, v->why);
  else text_add_string(v->why, "none");
}

bool verify_equal(Verifying *v, const LoopNode *n, const char *what, const Index *found, const Index *expected) {
  if (v->b.out_of_memory || index_equals(found, expected)) return !v->b.out_of_memory;
  add_where(v, n);
  text_format(v->why, "%s is ", what);
  add_index(v, found);
  text_add_string(v->why, ", expected ");
  add_index(v, expected);
  text_add_string(v->why, "\n");
  return false;
}

// Scopes

bool scope_end(Verifying *v, bool *is_in_scope) {
  v->why->out_of_memory |= !arena_grow(v->arena, &v->scoped, v->nscoped, &v->scoped_capacity, sizeof *v->scoped);
  if (!v->why->out_of_memory) v->scoped[v->nscoped++] = is_in_scope;
  return !v->why->out_of_memory;
}

bool scope_add(Verifying *v, bool *is_in_scope) {
  *is_in_scope = true;
  return scope_end(v, is_in_scope);
}

void scope_close(Verifying *v, size_t nscoped) {
  while (v->nscoped > nscoped) *v->scoped[--v->nscoped] = false;
}

Scoped *state_of(const Verifying *v, BufferKind kind, uint32_t of) {
  return &v->buffers[kind][of];
}

const Root *root_of(const Verifying *v, RootKind kind, AccessId id) {
  for (size_t i = 0; i < v->loop->nroots; i++)
    if (v->loop->roots[i].kind == kind && v->loop->roots[i].access == id) return &v->loop->roots[i];
  return NULL;
}

// Variables

size_t vars_count(const Kernel *k, VarKind kind) {
  const VarOwner owner = var_info[kind].owner;
  return owner == OWNER_ACCESS ? k->naccesses : owner == OWNER_AXIS ? MAX_AXES : 1;
}

VarState *var_state(const Verifying *v, Var var) {
  return &v->vars[var.kind][var.of];
}

static bool is_var(const Verifying *v, Var var) {
  return var.kind > VAR_NONE && var.kind <= VAR_ELEMENT && var.of < vars_count(v->k, var.kind);
}

bool var_set(Verifying *v, const LoopNode *n, Var var, const Index *value) {
  if (!is_var(v, var)) return verify_fail(v, n, "its variable does not exist");
  VarState *state = var_state(v, var);
  if (state->is_set) return verify_fail(v, n, "its variable is already set");
  state->value = value;
  state->loop = NULL;
  return scope_add(v, &state->is_set);
}

// Of partial sums, or of a tensor; its index is verified as any other.
static bool verify_address_of(Verifying *v, const LoopNode *n, const Index *i) {
  const Address *at = i->address;
  const bool is_access = !buffer_info[at->buffer].is_of_expr && at->of < v->k->naccesses;
  if (!is_access || (at->buffer != BUFFER_TENSOR && !state_of(v, at->buffer, at->of)->is_set))
    return verify_fail(v, n, "it takes an address in memory that is not declared before it");
  return verify_index(v, n, at->index);
}

bool verify_index(Verifying *v, const LoopNode *n, const Index *i) {
  if (!i) return true;
  if (i->op == INDEX_VAR && (!is_var(v, i->var) || !var_state(v, i->var)->is_set))
    return verify_fail(v, n, "it uses a variable that is not set before it");
  if (i->address && !verify_address_of(v, n, i)) return false;
  if ((i->op == INDEX_NCUT_BLOCKS || i->op == INDEX_BLOCK_LENGTH) && i->loop >= v->t->schedule->nloops)
    return verify_fail(v, n, "it uses the block length or number of blocks of a loop that does not exist");
  for (int a = 0; a < 3; a++)
    if (!verify_index(v, n, i->args[a])) return false;
  return true;
}

// The variable for the piece's first index, or the counter, stands for the index on the vector axis.
static Var meaning_of(const void *context, Var var) {
  const Verifying *v = context;
  const Range *r = &v->range[v->vector];
  const bool is_start =
      (r->is_piece || r->is_counted) && r->start.kind && r->start.kind == var.kind && r->start.of == var.of;
  return is_start ? (Var){VAR_AXIS, (uint32_t)v->vector} : var;
}

Linear linear_of(const Verifying *v, const Index *i) {
  Linear l = {0};
  linear_add_index(&l, i, meaning_of, v);
  return l;
}

const Index *number_index(Verifying *v, int64_t number) {
  return index_number(&v->b, number, 0);
}

const Index *nelems_index(Verifying *v, AxisSet axes) {
  return index_number(&v->b, axes_nelems(v->k, axes), axes_monomial(v->k, axes));
}

const Index *var_index(Verifying *v, VarKind kind) {
  return index_var(&v->b, kind, 0);
}

const Index *least_index(Verifying *v, const Index *x, const Index *y) {
  return index_choose(&v->b, index_of(&v->b, INDEX_LESS, x, y), x, y);
}

bool is_in_row(const Verifying *v) {
  return v->range[OUTER].start.kind == VAR_ROW;
}

bool has_fewer_lanes(const Verifying *v) {
  return v->range[v->lanes].is_piece && v->range[v->lanes].width == WIDTH_LANES;
}

bool verify_test(Verifying *v, const LoopNode *n) {
  return !n->test || verify_index(v, n, n->test);
}

bool verify_streamed(Verifying *v, const LoopNode *n) {
  return !n->is_streamed || v->streamed == node_access(n) + 1 || verify_fail(v, n, "it must depend on VAR_STREAMED");
}

// Values of expressions

bool verify_operand(Verifying *v, const LoopNode *n, ExprId id, bool is_vector) {
  if (!id) return verify_fail(v, n, "it must have an operand");
  const Form form = v->t->form[id];
  if (form == FORM_NUMBER) return true;
  if (!state_of(v, BUFFER_VALUE, id)->is_set) return verify_fail_expr(v, n, id, "must be computed before it");
  if (form == FORM_VECTOR && !is_vector) return verify_fail_expr(v, n, id, "is a vector, expected a scalar");
  if (form == FORM_ROWS && !is_in_row(v))
    return verify_fail_expr(v, n, id, "differs from row to row, so it must be used in a loop over rows");
  return true;
}

// Scalars that differ from row to row are elements of an array declared before (NODE_BUFFER), and stay in scope for
// later loops over rows.
bool verify_define(Verifying *v, const LoopNode *n) {
  const Form form = v->t->form[n->expr];
  Scoped *s = state_of(v, BUFFER_VALUE, n->expr);
  if (form == FORM_NUMBER || (form == FORM_VECTOR) != n->is_vector)
    return verify_fail_expr(v, n, n->expr, "has another form (scalar, rows or vector) in the tree's table");
  if (s->is_set) return verify_fail_expr(v, n, n->expr, "is already computed");
  if (form != FORM_ROWS || node_ends_sum(n)) return scope_add(v, &s->is_set);
  s->is_set = true;
  return (s->is_declared && is_in_row(v)) ||
         verify_fail_expr(v, n, n->expr,
                          "must have a declared array with an element for each row, and be in a loop over rows");
}
