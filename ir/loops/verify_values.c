// Verifies values, stores, spills and transposed copies, and the declarations of pointers, local arrays and flags: what
// they use is in scope, of the type that it has in C, and inside of its tensor or array.
#include "ir/loops/verifying.h"

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
  const Form form = n->is_row ? FORM_ROWS : n->is_vector ? FORM_VECTOR : FORM_SCALAR;
  Scoped *s = state_of(v, BUFFER_VALUE, n->expr);
  if (v->t->form[n->expr] != form)
    return verify_fail_expr(v, n, n->expr, "has another form (scalar, rows or vector) in the tree's table");
  if (s->is_set) return verify_fail_expr(v, n, n->expr, "is already computed");
  if (form != FORM_ROWS || node_ends_sum(n)) return scope_add(v, &s->is_set);
  s->is_set = true;
  return (s->is_declared && is_in_row(v)) ||
         verify_fail_expr(v, n, n->expr,
                          "must have a declared array with an element for each row, and be in a loop over rows");
}

static bool verify_load(Verifying *v, const LoopNode *n, const Expr *e) {
  const Access *a = &v->k->accesses[e->access];
  const Load load = node_load(v->t, n);
  if (e->args[0] && !verify_operand(v, n, e->args[0], load == LOAD_GATHERED)) return false;
  if (load == LOAD_WHOLE) return verify_copied(v, n, node_access(n), &n->from);
  if (!verify_access(v, n, &n->from, e->access)) return false;
  if (access_is_mask(a) && v->lanes == v->vector) return verify_mask(v, n);
  if (!n->is_vector) return true;
  return verify_panel(v, n, a) && verify_lane_step(v, n, e->access);
}

static bool verify_coordinate(Verifying *v, const LoopNode *n, const Expr *e) {
  const Var axis = {VAR_AXIS, (uint32_t)__builtin_ctz(e->axes)};
  if (!n->is_vector)
    return var_state(v, axis)->is_set || verify_fail(v, n, "the index on its axis must be set before it");
  return n->value ? verify_index(v, n, n->value) : verify_fail(v, n, "it must have a value");
}

static bool verify_operands(Verifying *v, const LoopNode *n, const Expr *e) {
  const bool is_vector = n->is_vector && e->op != EXPR_IS_KEPT;
  for (int a = 0; a < expr_info[e->op].narguments; a++)
    if (!verify_operand(v, n, e->args[a], is_vector)) return false;
  if (e->op != EXPR_IS_KEPT) return true;
  return verify_access(v, n, &n->from, e->access) && (!n->is_vector || verify_lane_step(v, n, e->access));
}

bool verify_let(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  const bool is_spilled = n->from.buffer == BUFFER_SPILL;
  if (node_ends_sum(n)) return verify_end_sum(v, n);
  if (!n->expr || expr_is_reduction(e) || e->op == EXPR_COMBINE)
    return verify_fail(v, n, "its expression is a sum, which NODE_LET cannot compute, or does not exist");
  if (is_spilled && !n->is_vector) return verify_fail(v, n, "it must load a whole vector");
  if (n->is_vector ? !is_spilled && !verify_lanes(v, n)
                   : n->has_fewer_lanes && !verify_fail(v, n, "has_fewer_lanes is set, but it is a scalar"))
    return false;
  if (expr_has_access(e) && !is_spilled && node_access(n) != e->access)
    return verify_fail(v, n, "its access differs from the access of its expression");
  if (n->from.buffer && !is_spilled && !expr_has_access(e))
    return verify_fail(v, n, "it has an address, but its expression is not a load");
  const bool ok = is_spilled            ? verify_spilled(v, n, &n->from)
                  : e->op == EXPR_LOAD  ? verify_load(v, n, e)
                  : e->op == EXPR_INDEX ? verify_coordinate(v, n, e)
                                        : verify_operands(v, n, e);
  return ok && verify_bounds(v, n) && verify_define(v, n);
}

// Stores

bool verify_root(Verifying *v, const LoopNode *n, AccessId id) {
  const Root *root = root_of(v, ROOT_STORE, id);
  return (root && (!n->expr || root->expr == n->expr)) ||
         verify_fail(v, n, "no result of the loop is a store of this expression through this access");
}

bool verify_store(Verifying *v, const LoopNode *n) {
  const Access *a = &v->k->accesses[node_access(n)];
  if (n->to.buffer == BUFFER_PARTIALS) return verify_store_partial(v, n);
  if (!n->expr || n->from.buffer) return verify_fail(v, n, "it must store the value of an expression");
  if (n->to.buffer == BUFFER_SPILL)
    return n->is_vector && !n->has_fewer_lanes ? verify_operand(v, n, n->expr, true) && verify_spilled(v, n, &n->to)
                                               : verify_fail(v, n, "it must store a whole vector");
  if (n->to.of != node_access(n)) return verify_fail(v, n, "it must store to the memory of its access");
  if (!verify_root(v, n, node_access(n)) || !verify_streamed(v, n) || !verify_operand(v, n, n->expr, n->is_vector))
    return false;
  if (n->is_vector && !verify_lanes(v, n)) return false;
  if (n->to.buffer == BUFFER_COPY)
    return n->is_vector ? verify_copied(v, n, node_access(n), &n->to)
                        : verify_fail(v, n, "it must store a whole vector to the transposed copy");
  if (!verify_access(v, n, &n->to, node_access(n))) return false;
  if (!n->is_vector) return !n->has_fewer_lanes || verify_fail(v, n, "has_fewer_lanes is set, but it is a scalar");
  return access_is_mask(a) ? verify_mask(v, n) : verify_panel(v, n, a) && verify_lane_step(v, n, node_access(n));
}

// Moves

// A loop that only copies rows to panels.
static bool verify_panels(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  if (!verify_root(v, n, n->to.of)) return false;
  if (n->is_row || e->op != EXPR_LOAD || e->args[0] || e->access != node_access(n) || n->from.of != node_access(n) ||
      access_has_conditions(v->k, &v->k->accesses[node_access(n)]))
    return verify_fail(v, n, "it copies rows that are not loaded, or under conditions");
  return verify_rows(v, n);
}

bool verify_move(Verifying *v, const LoopNode *n) {
  const bool is_store = n->from.buffer == BUFFER_COPY;
  if (n->expr) return verify_panels(v, n);
  if (is_store && !(verify_root(v, n, n->to.of) && verify_streamed(v, n) && verify_test(v, n))) return false;
  if (n->is_row) return !n->count ? verify_row_vectors(v, n) : verify_fail(v, n, "it takes a vector of each row");
  if (n->count) return verify_rows(v, n);
  return verify_access(v, n, &n->from, node_access(n)) && verify_copied(v, n, node_access(n), &n->to) &&
         (v->k->accesses[node_access(n)].stride[loop_lane_axis(v->loop)] == 1 ||
          verify_fail(v, n, "the LANES rows of a column must be adjacent in memory"));
}

// Pointers, local arrays, flags

// A prefetch may have any address, even outside of the tensor.
bool verify_prefetch(Verifying *v, const LoopNode *n) {
  Linear base;
  return verify_index(v, n, n->from.index) && verify_base(v, n, &n->from, &base);
}

static bool verify_pointer(Verifying *v, const LoopNode *n) {
  Scoped *s = state_of(v, BUFFER_ROW, node_access(n));
  if (n->to.of != node_access(n) || n->from.of != node_access(n) || n->from.buffer != BUFFER_TENSOR || n->to.index)
    return verify_fail(v, n, "a row pointer must point into the tensor of its access");
  if (!verify_test(v, n) || !verify_index(v, n, n->from.index)) return false;
  if (s->is_set) return verify_fail(v, n, "its row pointer is already set");
  if (n->to.item != (is_in_row(v) ? ITEM_OF_ROW : ITEM_ONLY) || (n->to.item && !s->is_declared))
    return verify_fail(v, n, "pointers of single rows must be set in a loop over rows, after their array is declared");
  s->pointer = linear_of(v, n->from.index);
  s->has_rows = n->to.item;
  s->is_set = true;
  return n->to.item || scope_end(v, &s->is_set);
}

// Whether an array has the items that nodes use: one for each row of the step, each element, each vector.
static bool is_array(const Verifying *v, const LoopNode *n) {
  const bool has_rows = n->count >= v->loop->rows;
  switch (n->to.buffer) {
  case BUFFER_ROW: {
    if (!access_is_own(v->t, n->to.of)) return has_rows;
    return n->count == v->t->schedule->temporaries[v->k->accesses[n->to.of].temporary].nelems;
  }
  case BUFFER_COPY:
    return v->lanes == OUTER ? !n->is_vector && n->count >= v->k->axes[v->vector].extent * LANES
                             : n->is_vector && has_rows;
  case BUFFER_SPILL: return true; // verify_spilled compares
  default: return has_rows && v->t->form[n->to.of] == FORM_ROWS;
  }
}

// Arrays of pointers and values are in scope to the end of their list, and so is what is set in loops over rows.
static bool verify_array(Verifying *v, const LoopNode *n) {
  Scoped *s = state_of(v, n->to.buffer, n->to.of);
  const bool is_set_later =
      n->to.buffer == BUFFER_VALUE || (n->to.buffer == BUFFER_ROW && !access_is_own(v->t, n->to.of));
  if (s->is_set || s->is_declared || n->to.item || n->to.index || !is_array(v, n))
    return verify_fail(
        v, n, "the array must be declared once, with an element for each row, vector or element that it holds");
  s->node = n;
  s->pointer = (Linear){0};
  s->has_rows = false;
  return is_set_later ? scope_add(v, &s->is_declared) && scope_end(v, &s->is_set) : scope_add(v, &s->is_set);
}

bool verify_buffer(Verifying *v, const LoopNode *n) {
  if ((n->from.buffer && n->count) || (n->has_fewer_lanes && n->to.buffer != BUFFER_HELD))
    return verify_fail(v, n, "it declares a pointer or register as an array");
  switch (n->to.buffer) {
  case BUFFER_NONE:
  case BUFFER_TENSOR: return verify_fail(v, n, "it declares no buffer");
  case BUFFER_SUM:
  case BUFFER_TOTAL: return verify_begin_sum(v, n);
  case BUFFER_HELD: return verify_hold(v, n);
  case BUFFER_PARTIALS: return verify_partials(v, n);
  default: return n->from.buffer ? verify_pointer(v, n) : verify_array(v, n);
  }
}

bool verify_flag(Verifying *v, const LoopNode *n) {
  const Index *value = n->value->op == INDEX_BOTH ? n->value->args[0] : n->value;
  const AccessId id = n->var.of;
  const Address *at = value->address;
  if (!verify_root(v, n, id)) return false;
  if (n->var.kind == VAR_WANTED)
    return (n->value->op == INDEX_EXISTS && at->buffer == BUFFER_TENSOR && at->of == id) ||
           verify_fail(v, n, "an output is wanted if its tensor exists");
  const Linear first = access_index(v, id, 0);
  const bool is_peeled = v->loop->is_peeled && root_of(v, ROOT_STORE, id)->sweep == v->loop->nsweeps - 1;
  if (value != n->value && n->value->args[1]->op != INDEX_EXCEEDS)
    return verify_fail(v, n, "only the tensor's size may be tested, too");
  if (is_peeled) return index_is(value, 1) || verify_fail(v, n, "it must be 1, as the loop peels the store's rows");
  return value->op == INDEX_IS_AT_LINE ? verify_address(v, n, at, id, &first)
                                       : verify_fail(v, n, "rows must begin at cache lines, or be peeled");
}
