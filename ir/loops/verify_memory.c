// Verifies stores, spills and transposed copies, and the declarations of pointers, local arrays and flags.
#include "ir/loops/verifying.h"

// Stores

// The root that the node stores. NULL after saying that there is none.
static const Root *store_root(Verifying *v, const LoopNode *n, AccessId id) {
  const Root *root = root_of(v, id);
  const bool has_expr = n->kind == NODE_STORE || n->kind == NODE_COPY_ROWS;
  if (root && root->kind == ROOT_STORE && (!has_expr || root->expr == n->expr)) return root;
  verify_fail(v, n, "no result of the loop is a store of this expression through this access");
  return NULL;
}

// If the tensor begins at a cache line, streamed vectors must, too (vectors of narrow types: at multiples of their
// size); or the rows must be peeled.
static bool verify_streamed(Verifying *v, const LoopNode *n, AccessId id) {
  const Memory *m = &v->memory[id];
  const Access *a = &v->k->accesses[id];
  const bool is_rows = n->kind == NODE_STORE_ROWS, rows_in_lanes = v->lanes == OUTER;
  const int lane_axis = loop_lane_axis(v->loop);
  const Range *r = &v->range[v->lanes];
  v->has_streams = true;
  if (!is_guarded(v, FLAG_STREAMED, id)) return verify_fail(v, n, "it must depend on FLAG_STREAMED");
  if (n->has_fewer_lanes || (!is_rows && (!n->is_vector || node_is_strided(n))))
    return verify_fail(v, n, "only whole vectors of adjacent elements can be streamed");
  if (m->is_peeled)
    return r->line_access == id + 1 ||
           verify_fail(v, n,
                       "its loop must peel the elements before a row's first cache line, by the address of this store");
  for (int axis = 0; axis < v->k->naxes; axis++) {
    const int64_t stride = kernel_factor(v->k, a->stride[axis], a->stride_monomial[axis]);
    const bool is_contiguous = axis == lane_axis || (is_rows && axis == v->vector);
    if (!is_contiguous && stride * (int64_t)type_nbytes(a->type) % LINE_NBYTES)
      return verify_fail(v, n, "streamed rows must begin at cache lines");
  }
  const bool is_aligned = rows_in_lanes ? are_blocks_aligned(v->loop) : r->is_aligned;
  const bool is_dense = !is_rows || a->stride[lane_axis] == v->k->axes[v->vector].extent;
  return (is_aligned && is_dense) || verify_fail(v, n, "streamed vectors must begin at multiples of their size");
}

// A store of an optional output must depend on FLAG_WANTED, a streamed store on FLAG_STREAMED.
static bool verify_conditions(Verifying *v, const LoopNode *n, AccessId id) {
  const Memory *m = &v->memory[id];
  if (m->is_wanted_found && !is_guarded(v, FLAG_WANTED, id))
    return verify_fail(v, n, "the caller may not want its output, so it must depend on FLAG_WANTED");
  return !n->is_streamed || verify_streamed(v, n, id);
}

// No two outer iterations may store the same element. There are two only along axes of more than one index.
static bool varies_by_row(Verifying *v, const LoopNode *n, const Root *root) {
  AxisSet others = v->outer & ~root_axes(v->k, root);
  for (int axis = 0; axis < v->k->naxes; axis++)
    if (v->k->axes[axis].extent == 1 && !v->k->axes[axis].monomial) others &= ~(1U << axis);
  return !others || v->memory[root->access].is_step_local ||
         verify_fail(
             v, n, "its result does not vary over all outer axes, so several outer iterations store the same element");
}

static bool verify_vector_store(Verifying *v, const LoopNode *n, AccessId id) {
  const Access *a = &v->k->accesses[id];
  if (access_is_mask(a))
    return verify_fewer_lanes(v, n) &&
           (v->range[v->vector].is_aligned || verify_fail(v, n, "a vector of a bit mask must begin at a whole byte"));
  if (!is_at_panel(v, a)) return verify_fail(v, n, "a vector of a panel must begin at the panel's first lane");
  return verify_lanes(v, n) && verify_lane_step(v, n, id);
}

// Stores to the transposed copy, which NODE_STORE_ROWS copies to the tensor.
static bool verify_store_to_copy(Verifying *v, const LoopNode *n, const Root *root) {
  if (n->is_streamed || n->has_fewer_lanes || !n->is_vector)
    return verify_fail(v, n, "a store to the transposed copy must store a whole vector, without streaming");
  return verify_copied(v, n, n->access, &n->address) && effect_do(v, n, effect_of(v, root, EFFECT_PREPARED));
}

bool verify_store(Verifying *v, const LoopNode *n) {
  const Root *root = store_root(v, n, n->access);
  if (!root || !verify_operand(v, n, n->expr, n->is_vector) || !varies_by_row(v, n, root)) return false;
  if (!verify_goes_over(v, n, 0, directions_of(v, root_axes(v->k, root)), n->is_vector)) return false;
  if (n->address.base == BASE_ROWS) return verify_store_to_copy(v, n, root);
  if (!verify_access(v, n, n->access) || !verify_conditions(v, n, n->access)) return false;
  if (n->is_vector && !verify_vector_store(v, n, n->access)) return false;
  return effect_do(v, n, effect_of(v, root, EFFECT_DONE));
}

// Spills

bool verify_spill(Verifying *v, const LoopNode *n) {
  Linear address;
  if (!verify_operand(v, n, n->expr, true) || !verify_spilled(v, n, &address)) return false;
  if (!verify_goes_over(v, n, 0, directions_of(v, 1U << v->vector), true)) return false;
  const int spill = find_spill(v, n->expr);
  SpillState *spilled = &v->spilled[spill];
  const int64_t extent = v->k->axes[v->vector].extent, whole = (extent + LANES - 1) / LANES * LANES;
  const int64_t lanes = loop_has(v->loop, LOOP_ROW_LANES) ? extent * LANES
                        : v->range[v->vector].is_aligned  ? whole
                                                          : extent + LANES - 1;
  const int64_t row = linear_factor(&address, VAR_ROW), last = (v->loop->rows - 1) * row;
  if ((v->loop->rows > 1 && row < lanes) || lanes + last > spilled->nelems || v->k->axes[v->vector].monomial)
    return verify_fail(v, n, "it goes beyond the end of its local array");
  if (!spilled->address && !(spilled->address = ARENA_NEW(v->arena, Linear))) return verify_out_of_memory(v);
  *spilled->address = address;
  spilled->serial = v->frames[v->nframes - 1].serial;
  return effect_do(v, n, effect_of_spill(v, spill));
}

// Rows in lanes

// Whether the row pointer points to the first row of the step.
static bool is_at_row(Verifying *v, AccessId id) {
  const Memory *m = &v->memory[id];
  const Linear row = access_index(v, id, v->outer);
  return m->has_pointer && m->pointer && linear_equals(m->pointer, &row);
}

static bool has_dense_rows(const Verifying *v, const LoopNode *n) {
  const Access *a = &v->k->accesses[n->access];
  return a->stride[v->vector] == 1 && !a->stride_monomial[v->vector] && !v->k->axes[v->vector].monomial &&
         n->nelems == v->k->axes[v->vector].extent;
}

// Whether LANES rows of the access can be copied and transposed: rows are dense, with any stride between rows.
static bool verify_rows(Verifying *v, const LoopNode *n) {
  if (v->lanes != OUTER || has_fewer_lanes(v) || v->loop->nouter != 1 || !v->memory[n->access].has_copy)
    return verify_fail(v, n, "it needs rows in lanes, all lanes in use, and a declared transposed copy");
  if (!is_at_row(v, n->access)) return verify_fail(v, n, "its row pointer must point to the step's first row");
  if (!has_dense_rows(v, n)) return verify_fail(v, n, "its rows must be dense, and as long as the inner axis");
  return verify_lane_step(v, n, n->access) && verify_goes_over(v, n, 0, 1U << OUTER, true);
}

bool verify_load_rows(Verifying *v, const LoopNode *n) {
  if (!verify_rows(v, n)) return false;
  v->memory[n->access].is_copied = true;
  v->memory[n->access].copy_serial = 0;
  return true;
}

bool verify_store_rows(Verifying *v, const LoopNode *n) {
  const Root *root = store_root(v, n, n->access);
  if (!root || !verify_rows(v, n) || !verify_conditions(v, n, n->access)) return false;
  if (!v->done[effect_of(v, root, EFFECT_PREPARED)])
    return verify_fail(v, n, "the vectors of its rows must be stored in the transposed copy before it");
  return effect_do(v, n, effect_of(v, root, EFFECT_DONE));
}

// Whether rows of the access can be copied to panels: they are loaded without conditions.
static bool is_copied_in_rows(const Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  const Access *a = &v->k->accesses[n->access];
  return e->op == EXPR_LOAD && !e->args[0] && e->access == n->access && !access_has_conditions(v->k, a) &&
         !v->k->is_f64 && (a->type == TYPE_F32 || a->type == TYPE_BF16 || a->type == TYPE_F16);
}

// Whether the vectors of a panel are contiguous.
static bool has_panels(const Verifying *v, const Access *a) {
  return !a->value && a->type == TYPE_F32 && a->stride[v->vector] == LANES && !a->stride_monomial[v->vector] &&
         a->panel_axis == loop_lane_axis(v->loop) + 1 && is_at_panel(v, a);
}

bool verify_copy_rows(Verifying *v, const LoopNode *n) {
  const AccessId to = n->address.access;
  const Root *root = store_root(v, n, to);
  if (!root) return false;
  if (!loop_has(v->loop, LOOP_ROW_COPY) || v->loop->ninner != 1 || has_fewer_lanes(v))
    return verify_fail(v, n, "the loop does not copy rows to panels (LOOP_ROW_COPY), or lanes are not all in use");
  if (!is_copied_in_rows(v, n) || !has_dense_rows(v, n))
    return verify_fail(v, n, "its rows must be dense, and as long as the inner axis");
  if (!has_panels(v, &v->k->accesses[to]))
    return verify_fail(v, n, "its result must be in panels of LANES rows whose vectors are contiguous");
  if (n->address.base != BASE_POINTER || n->address.index || n->address.is_row || !is_at_row(v, to) ||
      !is_at_row(v, n->access))
    return verify_fail(v, n, "its row pointers must point to the step's first row");
  return varies_by_row(v, n, root) && verify_lane_step(v, n, n->access) &&
         verify_goes_over(v, n, 0, 1U << OUTER, true) && effect_do(v, n, effect_of(v, root, EFFECT_DONE));
}

bool verify_load_column(Verifying *v, const LoopNode *n) {
  const Address to = {.base = BASE_ROWS, .access = n->access, .index = n->value};
  if (!verify_access(v, n, n->access) || !verify_copied(v, n, n->access, &to)) return false;
  if (v->k->accesses[n->access].stride[loop_lane_axis(v->loop)] != 1)
    return verify_fail(v, n, "the LANES rows of a column must be adjacent in memory");
  if (!verify_goes_over(v, n, 0, directions_of(v, 1U << v->vector), true)) return false;
  v->memory[n->access].is_copied = true;
  v->memory[n->access].copy_serial = v->frames[v->nframes - 1].serial;
  return true;
}

// Vectors of all rows

// Verifies the address of the vectors as in a loop over the rows.
static bool verify_row_vectors(Verifying *v, const LoopNode *n) {
  Range *r = &v->range[OUTER];
  const Range before = *r;
  VarState *row = var_state(v, loop_var(VAR_ROW));
  if (r->width != WIDTH_ROWS || has_fewer_lanes(v) || !v->memory[n->access].has_copy)
    return verify_fail(v, n,
                       "it needs a step of several rows, all lanes in use, and a declared array of their vectors");
  r->start = loop_var(VAR_ROW);
  r->width = 1;
  row->is_set = true;
  const bool ok = verify_access(v, n, n->access) && verify_lane_step(v, n, n->access) &&
                  verify_has_axes(v, n, access_axes(v->k, &v->k->accesses[n->access]), true);
  row->is_set = false;
  *r = before;
  return ok;
}

bool verify_gather_rows(Verifying *v, const LoopNode *n) {
  if (!verify_row_vectors(v, n)) return false;
  v->memory[n->access].is_copied = true;
  v->memory[n->access].copy_serial = 0;
  return true;
}

bool verify_scatter_rows(Verifying *v, const LoopNode *n) {
  const Root *root = store_root(v, n, n->access);
  if (!root || !verify_flag(v, n) || !verify_row_vectors(v, n) || !varies_by_row(v, n, root)) return false;
  if (n->flag != FLAG_WANTED && !verify_conditions(v, n, n->access)) return false;
  if (!v->done[effect_of(v, root, EFFECT_PREPARED)])
    return verify_fail(v, n, "the vectors of its rows must be stored in their array before it");
  v->done[effect_of(v, root, EFFECT_PREPARED)] = false; // the tail has no array
  return effect_do(v, n, effect_of(v, root, EFFECT_DONE));
}

// Pointers, local arrays, flags

// A prefetch may have any address, even outside of the tensor.
bool verify_prefetch(Verifying *v, const LoopNode *n) {
  Linear base;
  return verify_index(v, n, n->address.index) && verify_base(v, n, &base);
}

bool verify_pointer(Verifying *v, const LoopNode *n) {
  if (n->address.access != n->access || n->address.base != BASE_TENSOR)
    return verify_fail(v, n, "a row pointer must point into the tensor of its access");
  Memory *m = &v->memory[n->access];
  if (!verify_flag(v, n)) return false;
  if (m->has_pointer) return verify_fail(v, n, "its row pointer is already set");
  if (n->is_row != is_in_row(v) || (n->is_row && (!m->has_pointer_array || v->nguards)))
    return verify_fail(
        v, n, "pointers of single rows must be set in an unconditional loop over rows, after their array is declared");
  if (!verify_index(v, n, n->address.index)) return false;
  if (!m->pointer && !(m->pointer = ARENA_NEW(v->arena, Linear))) return verify_out_of_memory(v);
  *m->pointer = linear_of(v, n->address.index);
  m->is_pointer_row = n->is_row;
  m->is_step_local = false;
  if (!n->is_row) return scope_add(v, &m->has_pointer);
  m->has_pointer = true;
  return true;
}

// The array of pointers is in scope to the end of its list, and so are the pointers that are set in loops over rows.
static bool verify_pointers(Verifying *v, const LoopNode *n) {
  Memory *m = &v->memory[n->access];
  if (m->has_pointer_array || n->nelems < v->loop->rows)
    return verify_fail(v, n, "the array must be declared once and have a pointer for each row");
  return scope_add(v, &m->has_pointer_array) && scope_end(v, &m->has_pointer);
}

// The transposed copy of rows in lanes, or a vector for each row.
static bool verify_copy(Verifying *v, const LoopNode *n) {
  Memory *m = &v->memory[n->access];
  const bool is_of_rows = n->local == LOCAL_ROWS;
  const int64_t nelems = is_of_rows ? v->loop->rows : v->k->axes[v->vector].extent * LANES;
  if (m->has_copy) return verify_fail(v, n, "the transposed copy is already declared");
  if (is_of_rows == (v->lanes == OUTER))
    return verify_fail(v, n, "rows in lanes need a transposed copy, and other rows a vector each");
  if (n->nelems < nelems)
    return verify_fail(v, n, "it has %lld elements, expected %lld", (long long)n->nelems, (long long)nelems);
  m->is_copied = false;
  return scope_add(v, &m->has_copy);
}

static bool verify_own_temporary(Verifying *v, const LoopNode *n) {
  Memory *m = &v->memory[n->access];
  const Access *a = &v->k->accesses[n->access];
  const Temporary *t = a->value || a->type == TYPE_NONE ? NULL : &v->t->schedule->temporaries[a->temporary];
  if (!t || !t->is_own || n->nelems != t->nelems || m->has_pointer)
    return verify_fail(v, n, "its access must be a temporary that is local to the step, with as many elements");
  m->is_step_local = true;
  m->pointer = NULL;
  m->is_pointer_row = false;
  return scope_add(v, &m->has_pointer);
}

static bool verify_spill_array(Verifying *v, const LoopNode *n) {
  const int spill = find_spill(v, n->expr);
  if (spill < 0 || v->spilled[spill].is_declared)
    return verify_fail(v, n, "the array must be declared once, for a vector that the loop spills");
  v->spilled[spill].nelems = n->nelems;
  return scope_add(v, &v->spilled[spill].is_declared);
}

static bool verify_scalars(Verifying *v, const LoopNode *n) {
  Made *made = &v->made[n->expr];
  if (made->is_declared || made->is_made || n->nelems < v->loop->rows || v->t->form[n->expr] != FORM_ROWS)
    return verify_fail(v, n,
                       "the array must be declared once, for an expression that differs from row to row, with an "
                       "element for each row");
  return scope_add(v, &made->is_declared) && scope_end(v, &made->is_made);
}

bool verify_local(Verifying *v, const LoopNode *n) {
  static bool (*const arrays[])(Verifying *, const LoopNode *) = {[LOCAL_TEMPORARY] = verify_own_temporary,
                                                                  [LOCAL_POINTERS] = verify_pointers,
                                                                  [LOCAL_COPY] = verify_copy,
                                                                  [LOCAL_ROWS] = verify_copy,
                                                                  [LOCAL_SPILLED] = verify_spill_array,
                                                                  [LOCAL_SCALARS] = verify_scalars};
  return arrays[n->local](v, n);
}

bool verify_set_flag(Verifying *v, const LoopNode *n) {
  Memory *m = &v->memory[n->access];
  const Root *root = store_root(v, n, n->access);
  if (!root) return false;
  const bool is_peeled = v->loop->is_peeled && root->sweep == v->loop->nsweeps - 1;
  if (n->is_peeled != (is_peeled && n->flag == FLAG_STREAMED))
    return verify_fail(v, n, "is_peeled must be set if, and only if, the loop peels the rows of this store");
  if (n->flag == FLAG_WANTED) return scope_add(v, &m->is_wanted_found);
  if (n->flag != FLAG_STREAMED) return verify_fail(v, n, "only FLAG_WANTED and FLAG_STREAMED can be computed");
  m->is_peeled = n->is_peeled;
  const Linear first = access_index(v, n->access, 0), is = linear_of(v, n->address.index);
  if (!n->is_peeled &&
      (n->address.base != BASE_TENSOR || n->address.access != n->access || !linear_equals(&is, &first)))
    return verify_fail(v, n, "its address must be the address of the tensor's first element");
  return scope_add(v, &m->is_streamed_found);
}
