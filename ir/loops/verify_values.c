// Verifies values, stores, spills and transposed copies, and the declarations of pointers, local arrays and flags: what
// they use is in scope, of the type that it has in C, and inside of its tensor or array.
#include "ir/loops/verifying.h"

// Values of expressions

bool verify_operand(Verifying *v, const LoopNode *n, ExprId id, bool is_vector) {
  if (!id) return verify_fail(v, n, "it must have an operand");
  const Form form = v->t->form[id];
  if (form == FORM_NUMBER) return true;
  if (!v->exprs[id].is_made) return verify_fail_expr(v, n, id, "must be computed before it");
  if (form == FORM_VECTOR && !is_vector) return verify_fail_expr(v, n, id, "is a vector, expected a scalar");
  if (form == FORM_ROWS && !is_in_row(v))
    return verify_fail_expr(v, n, id, "differs from row to row, so it must be used in a loop over rows");
  return true;
}

// Scalars that differ from row to row are elements of an array declared before (LOCAL_SCALARS), and stay in scope for
// later loops over rows.
bool verify_define(Verifying *v, const LoopNode *n) {
  const Form form = n->is_row ? FORM_ROWS : n->is_vector ? FORM_VECTOR : FORM_SCALAR;
  OfExpr *e = &v->exprs[n->expr];
  if (v->t->form[n->expr] != form)
    return verify_fail_expr(v, n, n->expr, "has another form (scalar, rows or vector) in the tree's table");
  if (e->is_made) return verify_fail_expr(v, n, n->expr, "is already computed");
  if (form != FORM_ROWS || n->kind != NODE_LET) return scope_add(v, &e->is_made);
  e->is_made = true;
  return (e->is_declared && is_in_row(v)) ||
         verify_fail_expr(v, n, n->expr,
                          "must have a declared array with an element for each row, and be in a loop over rows");
}

static bool verify_load(Verifying *v, const LoopNode *n, const Expr *e) {
  const Access *a = &v->k->accesses[e->access];
  const int lane_axis = loop_lane_axis(v->loop);
  if (e->args[0] && !verify_operand(v, n, e->args[0], n->load == LOAD_GATHERED)) return false;
  if (n->load == LOAD_COPIED) return verify_copied(v, n, n->access, &n->address);
  if (!verify_access(v, n, e->access)) return false;
  if (access_is_mask(a) && v->lanes == v->vector) return verify_mask(v, n);
  if (!n->is_vector) return n->load == LOAD_ELEMENT || verify_fail(v, n, "a scalar load must load one element");
  if (n->load == LOAD_BROADCAST)
    return !a->stride[lane_axis] ||
           verify_fail(v, n, "it loads one element for all lanes, but the element differs from lane to lane");
  if (n->load != LOAD_DENSE && n->load != LOAD_STRIDED && n->load != LOAD_GATHERED)
    return verify_fail(v, n, "a vector's load must be dense, strided or gathered");
  if (n->load == LOAD_GATHERED ? !e->args[0] : (n->load == LOAD_DENSE) != (access_lane_stride(a, lane_axis) == 1))
    return verify_fail(v, n,
                       "its load must be dense if the stride from lane to lane is 1, and else strided or gathered");
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
  return verify_access(v, n, e->access) && (!n->is_vector || verify_lane_step(v, n, e->access));
}

bool verify_let(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  if (!n->expr || expr_is_reduction(e) || e->op == EXPR_COMBINE)
    return verify_fail(v, n, "its expression is a sum, which NODE_LET cannot compute, or does not exist");
  if (n->is_vector ? n->load != LOAD_SPILLED && !verify_lanes(v, n)
                   : n->has_fewer_lanes && !verify_fail(v, n, "has_fewer_lanes is set, but it is a scalar"))
    return false;
  if (expr_has_access(e) && n->load != LOAD_SPILLED && n->access != e->access)
    return verify_fail(v, n, "its access differs from the access of its expression");
  if (n->load && n->load != LOAD_SPILLED && e->op != EXPR_LOAD)
    return verify_fail(v, n, "it has a load, but its expression is not a load");
  const bool ok = n->load == LOAD_SPILLED ? verify_spilled(v, n)
                  : e->op == EXPR_LOAD    ? verify_load(v, n, e)
                  : e->op == EXPR_INDEX   ? verify_coordinate(v, n, e)
                                          : verify_operands(v, n, e);
  return ok && verify_bounds(v, n) && verify_define(v, n);
}

// Stores

static bool verify_root(Verifying *v, const LoopNode *n, AccessId id) {
  const Root *root = root_of(v, ROOT_STORE, id);
  const bool has_expr = n->kind == NODE_STORE || n->kind == NODE_COPY_ROWS;
  return (root && (!has_expr || root->expr == n->expr)) ||
         verify_fail(v, n, "no result of the loop is a store of this expression through this access");
}

bool verify_store(Verifying *v, const LoopNode *n) {
  const Access *a = &v->k->accesses[n->access];
  if (!verify_root(v, n, n->access) || !verify_streamed(v, n) || !verify_operand(v, n, n->expr, n->is_vector))
    return false;
  if (n->is_vector && !verify_lanes(v, n)) return false;
  if (n->address.base == BASE_ROWS)
    return n->is_vector ? verify_copied(v, n, n->access, &n->address)
                        : verify_fail(v, n, "it must store a whole vector to the transposed copy");
  if (!verify_access(v, n, n->access)) return false;
  if (!n->is_vector) return !n->has_fewer_lanes || verify_fail(v, n, "has_fewer_lanes is set, but it is a scalar");
  return access_is_mask(a) ? verify_mask(v, n) : verify_panel(v, n, a) && verify_lane_step(v, n, n->access);
}

bool verify_spill(Verifying *v, const LoopNode *n) {
  return verify_operand(v, n, n->expr, true) && verify_spilled(v, n);
}

// Copies

bool verify_load_rows(Verifying *v, const LoopNode *n) {
  return verify_rows(v, n);
}

bool verify_store_rows(Verifying *v, const LoopNode *n) {
  return verify_root(v, n, n->access) && verify_streamed(v, n) && verify_rows(v, n);
}

bool verify_copy_rows(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  if (!verify_root(v, n, n->address.access)) return false;
  if (e->op != EXPR_LOAD || e->args[0] || e->access != n->access ||
      access_has_conditions(v->k, &v->k->accesses[n->access]))
    return verify_fail(v, n, "it copies rows that are not loaded, or under conditions");
  return verify_rows(v, n);
}

bool verify_load_column(Verifying *v, const LoopNode *n) {
  const Address to = {.base = BASE_ROWS, .access = n->access, .index = n->value};
  return verify_access(v, n, n->access) && verify_copied(v, n, n->access, &to) &&
         (v->k->accesses[n->access].stride[loop_lane_axis(v->loop)] == 1 ||
          verify_fail(v, n, "the LANES rows of a column must be adjacent in memory"));
}

bool verify_gather_rows(Verifying *v, const LoopNode *n) {
  return verify_row_vectors(v, n);
}

bool verify_scatter_rows(Verifying *v, const LoopNode *n) {
  return verify_root(v, n, n->access) && verify_flag(v, n) && verify_row_vectors(v, n);
}

// Pointers, local arrays, flags

// A prefetch may have any address, even outside of the tensor.
bool verify_prefetch(Verifying *v, const LoopNode *n) {
  Linear base;
  return verify_index(v, n, n->address.index) && verify_base(v, n, &base);
}

bool verify_pointer(Verifying *v, const LoopNode *n) {
  OfAccess *a = &v->accesses[n->access];
  if (n->address.access != n->access || n->address.base != BASE_TENSOR)
    return verify_fail(v, n, "a row pointer must point into the tensor of its access");
  if (!verify_flag(v, n) || !verify_index(v, n, n->address.index)) return false;
  if (a->has_pointer) return verify_fail(v, n, "its row pointer is already set");
  if (n->is_row != is_in_row(v) || (n->is_row && !a->has_pointer_array))
    return verify_fail(v, n, "pointers of single rows must be set in a loop over rows, after their array is declared");
  a->pointer = linear_of(v, n->address.index);
  a->is_pointer_row = n->is_row;
  a->is_step_local = false;
  a->has_pointer = true;
  return n->is_row || scope_end(v, &a->has_pointer);
}

static bool declare(Verifying *v, const LoopNode *n, bool *is_in_scope, bool is_right) {
  return (!*is_in_scope && is_right) ? scope_add(v, is_in_scope)
                                     : verify_fail(v, n,
                                                   "the array must be declared once, with an element for each row, "
                                                   "vector or element that it holds");
}

// Arrays of pointers and scalars are in scope to the end of their list, and so is what is set in loops over rows.
bool verify_local(Verifying *v, const LoopNode *n) {
  OfAccess *a = &v->accesses[n->access];
  OfExpr *e = &v->exprs[n->expr];
  const Access *access = &v->k->accesses[n->access];
  const Temporary *t =
      access->value || access->type == TYPE_NONE ? NULL : &v->t->schedule->temporaries[access->temporary];
  const bool has_rows = n->nelems >= v->loop->rows;
  switch (n->local) {
  case LOCAL_TEMPORARY:
    a->is_step_local = true;
    a->pointer = (Linear){0};
    a->is_pointer_row = false;
    return declare(v, n, &a->has_pointer, t && t->is_own && n->nelems == t->nelems);
  case LOCAL_POINTERS: return declare(v, n, &a->has_pointer_array, has_rows) && scope_end(v, &a->has_pointer);
  case LOCAL_COPY:
    return declare(v, n, &a->has_copy, v->lanes == OUTER && n->nelems >= v->k->axes[v->vector].extent * LANES);
  case LOCAL_ROWS: return declare(v, n, &a->has_copy, v->lanes != OUTER && has_rows);
  case LOCAL_SPILLED: e->nspilled = n->nelems; return declare(v, n, &e->has_spill, true);
  default:
    return declare(v, n, &e->is_declared, has_rows && !e->is_made && v->t->form[n->expr] == FORM_ROWS) &&
           scope_end(v, &e->is_made);
  }
}

bool verify_set_flag(Verifying *v, const LoopNode *n) {
  OfAccess *a = &v->accesses[n->access];
  if (!verify_root(v, n, n->access)) return false;
  if (n->flag == FLAG_WANTED && !n->is_peeled) return scope_add(v, &a->is_wanted_found);
  if (n->flag != FLAG_STREAMED) return verify_fail(v, n, "only FLAG_WANTED and FLAG_STREAMED can be computed");
  const Linear first = access_index(v, n->access, 0);
  if (n->is_peeled != (v->loop->is_peeled && root_of(v, ROOT_STORE, n->access)->sweep == v->loop->nsweeps - 1))
    return verify_fail(v, n, "is_peeled must be set if, and only if, the loop peels the rows of this store");
  return (n->is_peeled || verify_address(v, n, n->access, &first)) && scope_add(v, &a->is_streamed_found);
}
