// Verifies values, stores, spills and transposed copies, and the declarations of pointers, local arrays and flags: what
// they use is in scope, of the type that it has in C, and inside of its tensor or array.
#include "ir/loops/verifying.h"

// Values of expressions

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
  return verify_address(v, n, &n->from);
}

static bool verify_load(Verifying *v, const LoopNode *n, const Expr *e) {
  const bool is_gathered = node_load(v->t, n) == LOAD_GATHERED;
  return (!e->args[0] || verify_operand(v, n, e->args[0], is_gathered)) && verify_address(v, n, &n->from);
}

bool verify_let(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  const bool is_spilled = n->from.buffer == BUFFER_SPILL;
  if (node_ends_sum(n)) return verify_end_sum(v, n);
  if (!n->expr || expr_is_reduction(e) || e->op == EXPR_COMBINE)
    return verify_fail(v, n, "its expression is a sum, which NODE_LET cannot compute, or does not exist");
  if (!is_spilled && (expr_has_access(e) ? node_access(n) != e->access : n->from.buffer != BUFFER_NONE))
    return verify_fail(v, n, "its access differs from the access of its expression");
  if (!n->from.buffer && !verify_lanes(v, n)) return false;
  const bool ok = is_spilled            ? verify_address(v, n, &n->from)
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
  if (n->to.buffer == BUFFER_PARTIALS) return verify_store_partial(v, n);
  if (!n->expr || n->from.buffer) return verify_fail(v, n, "it must store the value of an expression");
  const bool is_spill = n->to.buffer == BUFFER_SPILL;
  return (is_spill ? !n->has_fewer_lanes || verify_fail(v, n, "it must store a whole vector")
                   : verify_root(v, n, n->to.of) && verify_streamed(v, n)) &&
         verify_operand(v, n, n->expr, n->is_vector) && verify_address(v, n, &n->to);
}

// A loop that only copies rows to panels stores an expression, else a move is to or from a copy.
bool verify_move(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  const bool is_load = e->op == EXPR_LOAD && !e->args[0] && e->access == node_access(n) && !node_is_of_rows(v->t, n) &&
                       !access_has_conditions(v->k, &v->k->accesses[e->access]);
  if (n->expr && !is_load) return verify_fail(v, n, "it copies rows that are not loaded, or under conditions");
  if ((n->expr || n->from.buffer == BUFFER_COPY) && !(verify_root(v, n, n->to.of) && verify_streamed(v, n)))
    return false;
  return verify_test(v, n) && verify_moved(v, n);
}

// Pointers, local arrays, flags

// A prefetch may have any address, even outside of the tensor.
bool verify_prefetch(Verifying *v, const LoopNode *n) {
  return verify_index(v, n, n->from.index) && verify_base(v, n, &n->from);
}

static bool verify_pointer(Verifying *v, const LoopNode *n) {
  Scoped *s = state_of(v, BUFFER_ROW, node_access(n));
  if (n->to.of != node_access(n) || n->from.of != node_access(n) || n->from.buffer != BUFFER_TENSOR || n->to.index)
    return verify_fail(v, n, "a row pointer must point into the tensor of its access");
  if (!verify_test(v, n) || !verify_index(v, n, n->from.index)) return false;
  if (s->is_set) return verify_fail(v, n, "its row pointer is already set");
  if (n->to.item != (is_in_row(v) ? ITEM_OF_ROW : ITEM_ONLY) || (n->to.item && !s->is_declared))
    return verify_fail(v, n, "pointers of single rows must be set in a loop over rows, after their array is declared");
  Linear *pointer = ARENA_NEW(v->arena, Linear);
  v->why->out_of_memory |= !pointer;
  if (!pointer) return false;
  *pointer = linear_of(v, n->from.index);
  s->pointer = pointer;
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
  case BUFFER_SPILL: {
    const int64_t extent = v->k->axes[v->vector].extent, row = loop_row_nelems(v->k, v->loop);
    const int64_t most = v->lanes == OUTER ? extent : v->loop->is_peeled ? extent + LANES - 1 : extent;
    return row >= most && n->count >= row * (v->lanes == OUTER ? LANES : v->loop->rows) &&
           (v->lanes == OUTER || row % LANES == 0) && !v->k->axes[v->vector].monomial;
  }
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
  s->pointer = NULL;
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
  case BUFFER_HELD:
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
  const bool is_peeled = v->loop->is_peeled && root_of(v, ROOT_STORE, id)->sweep == v->loop->nsweeps - 1;
  if (value != n->value && n->value->args[1]->op != INDEX_EXCEEDS)
    return verify_fail(v, n, "only the tensor's size may be tested, too");
  if (is_peeled) return index_is(value, 1) || verify_fail(v, n, "it must be 1, as the loop peels the store's rows");
  return value->op == INDEX_IS_AT_LINE && at->of == id
             ? verify_first(v, n, at)
             : verify_fail(v, n, "rows must begin at cache lines, or be peeled");
}
