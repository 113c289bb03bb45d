// Verifies what nodes compute, load, store and add up: what they use is in scope, of the type that it has in C, and
// inside of its buffer. That it is the right value is proved by running (ir/loops/prove.h).
#include "ir/loops/verifying.h"

// Values of expressions

static Scoped *value_of(const Verifying *v, ExprId id) {
  return state_of(v, &(Address){.buffer = BUFFER_VALUE, .of = id});
}

static bool verify_operand(Verifying *v, const LoopNode *n, ExprId id, bool is_vector) {
  if (!id) return verify_fail(v, n, "it must have an operand");
  const Form form = v->t->form[id];
  if (form == FORM_NUMBER) return true;
  if (!value_of(v, id)->is_set) return verify_fail(v, n, "its operand must be computed before it");
  if (form == FORM_VECTOR && !is_vector) return verify_fail(v, n, "its operand is a vector, expected a scalar");
  if (form == FORM_ROWS && !is_in_row(v))
    return verify_fail(v, n, "its operand differs from row to row, so it must be used in a loop over rows");
  return true;
}

// Scalars that differ from row to row are elements of an array declared before (NODE_BUFFER), and stay in scope for
// later loops over rows.
static bool define(Verifying *v, const LoopNode *n) {
  const Form form = v->t->form[n->expr];
  Scoped *s = value_of(v, n->expr);
  if (form == FORM_NUMBER || (form == FORM_VECTOR) != n->is_vector)
    return verify_fail(v, n, "its value has another form (scalar, rows or vector) in the tree's table");
  if (s->is_set) return verify_fail(v, n, "its value is already computed");
  if (form != FORM_ROWS || node_ends_sum(n)) return scope_add(v, &s->is_set);
  s->is_set = true;
  return (s->is_declared && is_in_row(v)) ||
         verify_fail(v, n,
                     "its value must have a declared array with an element for each row, and be in a loop over rows");
}

// Of a node that is repeated for each row of the step.
static bool begin_each_row(Verifying *v, const LoopNode *n) {
  const Amount *rows = variable(v, loop_var(VAR_ROWS))->value;
  if (!variable(v, loop_var(VAR_ROWS))->is_set) return verify_fail(v, n, "the step has no rows");
  Amount last = amount_of(-1, 0);
  amount_add(&last, rows, 1);
  const Amount row = reach_symbol(&v->x, 1, &last, NULL);
  return var_set(v, n, loop_var(VAR_ROW), amount_keep(&v->x, &row));
}

// A scalar is reduced over lanes, a vector has a sum in each lane; sums of scalars have no lanes.
static bool verify_end_sum(Verifying *v, const LoopNode *n) {
  const size_t nscoped = v->nscoped;
  if (n->from.of != n->expr || n->test) return verify_fail(v, n, "it must take the sum of its expression");
  if (node_is_of_rows(v->t, n) && !begin_each_row(v, n)) return false;
  const bool ok = verify_buffer_of(v, n, &n->from);
  scope_close(v, nscoped);
  const LoopNode *begin = state_of(v, &n->from)->node;
  if (!ok) return false;
  if (n->from.buffer == BUFFER_TOTAL ? n->is_vector != begin->is_vector : n->is_vector == node_adds_lanes(v->t, n))
    return verify_fail(v, n, "it must take all lanes unless each has a sum");
  if (node_is_of_rows(v->t, n) && begin->count != v->loop->rows)
    return verify_fail(v, n, "it must take the accumulators of all rows");
  return define(v, n);
}

bool verify_let(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  const bool is_spilled = n->from.buffer == BUFFER_SPILL, is_vector = n->is_vector && e->op != EXPR_IS_KEPT;
  if (node_ends_sum(n)) return verify_end_sum(v, n);
  if (!n->expr || expr_is_reduction(e) || e->op == EXPR_COMBINE)
    return verify_fail(v, n, "its expression is a sum, which NODE_LET cannot compute, or does not exist");
  if (is_spilled           ? n->from.of != n->expr
      : expr_has_access(e) ? node_access(n) != e->access || !n->from.buffer
                           : n->from.buffer != BUFFER_NONE)
    return verify_fail(v, n, "its access differs from the access of its expression");
  if ((!expr_has_access(e) || is_spilled || n->from.buffer != BUFFER_TENSOR) && (n->test || n->from.within))
    return verify_fail(v, n, "a load with conditions must be relative to its tensor: a row pointer may point outside");
  if (n->from.within && !node_lane_bound(v->t, n))
    return verify_fail(v, n, "it tests lanes, but no bound varies from lane to lane");
  if (e->op == EXPR_INDEX && !is_vector && !variable(v, (Var){VAR_AXIS, (uint32_t)__builtin_ctz(e->axes)})->is_set)
    return verify_fail(v, n, "the index on its axis must be set before it");
  if (e->op == EXPR_INDEX && is_vector && !(n->value && verify_index(v, n, n->value)))
    return verify_fail(v, n, "it must have a value");
  const bool is_gathered = e->op == EXPR_LOAD && e->args[0]; // the operator that computes the offset clamps it
  const int narguments = is_spilled ? 0 : is_gathered ? 1 : expr_info[e->op].narguments;
  for (int a = 0; a < narguments; a++)
    if (!verify_operand(v, n, e->args[a], is_gathered ? node_load(v->t, n) == LOAD_GATHERED : is_vector)) return false;
  if (is_gathered && !is_spilled) {
    if (!verify_buffer_of(v, n, &n->from) || !verify_index(v, n, n->from.index) || !verify_index(v, n, n->step))
      return false;
  } else if (n->from.buffer && !verify_access(v, n, &n->from)) {
    return false;
  }
  return define(v, n);
}

// Sums

static const LoopNode *declaration(const Verifying *v, const Address *at) {
  return state_of(v, at)->node;
}

static bool verify_summand(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  if (!n->is_fused) return verify_operand(v, n, n->expr, n->is_vector);
  if (e->op != EXPR_MUL || node_reduction(v->t, n) != EXPR_REDUCE_SUM || node_is_widened(v->t, n) || !n->is_vector)
    return verify_fail(v, n, "only a sum of vectors of products, in the type of the products, can be fused");
  return verify_operand(v, n, e->args[0], true) && verify_operand(v, n, e->args[1], true);
}

// Adds accumulators to totals, or combines the partial sums of blocks.
static bool verify_addition(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->to.of];
  if (n->expr || n->is_fused || n->to.buffer != BUFFER_TOTAL || n->is_vector != declaration(v, &n->to)->is_vector)
    return verify_fail(v, n, "it adds a buffer, so it must add it to a total, as a vector if the total is one");
  if (node_ends_run(n))
    return n->from.of == n->to.of && index_equals(n->from.item, n->to.item) && declaration(v, &n->from) &&
                   declaration(v, &n->from)->count == declaration(v, &n->to)->count
               ? verify_buffer_of(v, n, &n->from)
               : verify_fail(v, n, "it must add all accumulators of the sum to as many totals");
  return e->op == EXPR_COMBINE && n->from.buffer == BUFFER_TENSOR && n->from.of == e->access
             ? verify_access(v, n, &n->from)
             : verify_fail(v, n, "its expression must combine partial sums through the same access");
}

bool verify_update(Verifying *v, const LoopNode *n) {
  const size_t nscoped = v->nscoped;
  const bool is_register = buffer_info[n->to.buffer].space == SPACE_REGISTERS, is_held = n->to.buffer == BUFFER_HELD;
  const bool is_sum = n->to.buffer == BUFFER_SUM || n->to.buffer == BUFFER_TOTAL;
  if (!(is_sum || is_held || n->to.buffer == BUFFER_PARTIALS))
    return verify_fail(v, n, "it must add to a sum, or to partial sums");
  if (!verify_index(v, n, n->test)) return false;
  if (node_is_of_rows(v->t, n) && !begin_each_row(v, n)) return false;
  const bool ok = is_register || n->from.buffer ? verify_buffer_of(v, n, &n->to) : verify_access(v, n, &n->to);
  const bool is_right = ok && (!n->from.buffer || verify_addition(v, n));
  scope_close(v, nscoped);
  if (!ok || n->from.buffer) return is_right;
  if (n->is_vector != (n->to.buffer == BUFFER_SUM || is_held) ||
      (is_sum && (v->k->exprs[n->to.of].op == EXPR_COMBINE || declaration(v, &n->to)->is_vector != n->is_vector)))
    return verify_fail(v, n, "a vector must be added to accumulators or a register, a scalar to a scalar or element");
  if (n->has_fewer_lanes && !variable(v, loop_var(VAR_LANES))->is_set)
    return verify_fail(v, n, "has_fewer_lanes is set, but all lanes hold elements here");
  return verify_summand(v, n);
}

// Stores

static const Root *root_of(const Verifying *v, RootKind kind, AccessId id) { // NULL: the loop has none
  for (size_t i = 0; i < v->loop->nroots; i++)
    if (v->loop->roots[i].kind == kind && v->loop->roots[i].access == id) return &v->loop->roots[i];
  return NULL;
}

// The loop stores through the access, and bypasses the caches only where they may be bypassed.
static bool verify_result(Verifying *v, const LoopNode *n) {
  const Root *root = root_of(v, ROOT_STORE, n->to.of);
  if (!root || (n->expr && root->expr != n->expr))
    return verify_fail(v, n, "no result of the loop is a store of this expression through this access");
  return !n->is_streamed || v->streamed == n->to.of + 1 || verify_fail(v, n, "it must depend on VAR_STREAMED");
}

static bool verify_store_partial(Verifying *v, const LoopNode *n) {
  if (n->expr || (n->from.buffer ? !n->is_vector || n->from.buffer != BUFFER_HELD || n->from.of != n->to.of
                                 : n->is_vector || n->has_fewer_lanes))
    return verify_fail(v, n, "it must store a vector of partial sums, or one identity");
  return (!n->from.buffer || verify_buffer_of(v, n, &n->from)) && verify_access(v, n, &n->to);
}

bool verify_store(Verifying *v, const LoopNode *n) {
  const bool is_array = buffer_info[n->to.buffer].space == SPACE_STACK;
  if (n->to.buffer == BUFFER_PARTIALS) return verify_store_partial(v, n);
  if (!n->expr || n->from.buffer) return verify_fail(v, n, "it must store the value of an expression");
  if (is_array && (!n->is_vector || n->has_fewer_lanes)) return verify_fail(v, n, "it must store a whole vector");
  if (n->to.buffer == BUFFER_SPILL && n->to.of != n->expr) return verify_fail(v, n, "it spills another expression");
  if (n->to.buffer != BUFFER_SPILL && !verify_result(v, n)) return false;
  if (n->is_streamed && (!n->is_vector || n->has_fewer_lanes))
    return verify_fail(v, n, "it streams less than a whole vector");
  return verify_operand(v, n, n->expr, n->is_vector) && verify_access(v, n, &n->to);
}

// Moves

// LANES rows of `count` elements, which are transposed; or a vector of one row, or of each row of the step.
bool verify_move(Verifying *v, const LoopNode *n) {
  const size_t nscoped = v->nscoped;
  const bool is_store = n->from.buffer == BUFFER_COPY, is_of_rows = node_is_of_rows(v->t, n);
  const Address *tensor = is_store ? &n->to : &n->from, *copy = is_store ? &n->from : &n->to;
  const bool is_panel = n->expr; // a loop that only copies rows to panels stores an expression
  const Expr *e = &v->k->exprs[n->expr];
  if (is_panel && (e->op != EXPR_LOAD || e->args[0] || e->access != n->from.of))
    return verify_fail(v, n, "it copies rows that are not loaded");
  if ((is_panel ? is_store || copy->buffer != BUFFER_ROW : copy->buffer != BUFFER_COPY || copy->of != tensor->of) ||
      buffer_info[tensor->buffer].space != SPACE_TENSOR || !verify_index(v, n, n->test) || !verify_index(v, n, n->step))
    return verify_fail(v, n, "it must copy between a tensor and the step's copy of it, or to a panel");
  if ((is_panel || is_store) && !verify_result(v, n)) return false;
  if (n->count < 0 || (is_of_rows && n->count)) return verify_fail(v, n, "it has no rows of such a length");
  if (is_of_rows && !begin_each_row(v, n)) return false;
  const Amount step = !n->count && !is_of_rows ? amount_of(1, 0)
                      : n->is_streamed         ? amount_of(n->count, 0)
                                               : reach_of(v, n->step),
               one = amount_of(1, 0), last = amount_of(LANES - 1, 0), width = amount_of(n->count - 1, 0),
               lanes = amount_of(LANES, 0);
  const Amount column = n->count     ? reach_symbol(&v->x, 1, &width, NULL)
                        : is_of_rows ? amount_copy(variable(v, loop_var(VAR_ROW))->value)
                                     : amount_of(0, 0),
               vector = amount_times(&column, &lanes);
  const bool ok = verify_inside(v, n, tensor, n->count ? &column : NULL, &(Lanes){.step = step, .last = last}) &&
                  verify_inside(v, n, copy, &vector, &(Lanes){.step = one, .last = last});
  scope_close(v, nscoped);
  return ok;
}

// Buffers

static bool begin_sum(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->to.of];
  const bool is_total = n->to.buffer == BUFFER_TOTAL, combines = e->op == EXPR_COMBINE;
  if (!(expr_is_reduction(e) || combines) || n->count < 1)
    return verify_fail(v, n, "it must begin accumulators, a total or a scalar of a sum");
  if (combines && (!is_total || n->count != 1 || n->is_vector != (v->t->form[n->to.of] == FORM_VECTOR)))
    return verify_fail(v, n, "it must begin one total of its partial sums, a vector if the sum is one");
  if (!is_total && !n->is_vector) return verify_fail(v, n, "accumulators must be vectors");
  return !(is_total && v->k->is_f64 && n->is_vector && !combines) || verify_fail(v, n, "only sums of f32 have totals");
}

static bool begin_partials(Verifying *v, const LoopNode *n) {
  const bool is_held = n->to.buffer == BUFFER_HELD;
  if (n->to.of != n->from.of || n->is_vector != is_held || (v->depth && !is_held) ||
      n->from.buffer != (is_held ? BUFFER_PARTIALS : BUFFER_TENSOR) || !root_of(v, ROOT_REDUCE_OUTER, n->to.of))
    return verify_fail(v, n, "partial sums must be declared once in a block, and once where they are held");
  if (is_held) return verify_access(v, n, &n->from);
  const Access *a = &v->k->accesses[n->to.of];
  const AxisSet axes = access_axes(v->k, a);
  Lanes all = {.step = amount_of(1, 0), .last = amount_of(-1, 0)};
  const Amount part = amount_of(axes_nelems(v->k, axes), axes_monomial(v->k, axes));
  amount_add(&all.last, &part, 1);
  return verify_inside(v, n, &n->from, NULL, &all);
}

static bool set_pointer(Verifying *v, const LoopNode *n, Scoped *s) {
  if (n->to.of != node_access(n) || n->from.of != node_access(n) || n->from.buffer != BUFFER_TENSOR)
    return verify_fail(v, n, "a row pointer must point into the tensor of its access");
  if (!verify_index(v, n, n->from.index)) return false;
  if (!index_equals(n->to.item, is_in_row(v) ? &item_of_row : NULL) || (n->to.item && !s->is_declared))
    return verify_fail(v, n, "pointers of single rows must be set in a loop over rows, after their array is declared");
  const Amount pointer = reach_of(v, n->from.index);
  s->pointer = amount_keep(&v->x, &pointer);
  s->has_rows = n->to.item;
  s->is_set = true;
  return n->to.item || scope_end(v, &s->is_set);
}

bool verify_buffer(Verifying *v, const LoopNode *n) {
  Scoped *s = state_of(v, &n->to);
  const BufferKind kind = n->to.buffer;
  const bool is_own = kind == BUFFER_ROW && access_is_own(v->t, n->to.of), is_array = !n->from.buffer;
  if (kind == BUFFER_NONE || kind == BUFFER_TENSOR || n->to.index || (!is_array && n->count) ||
      (n->has_fewer_lanes && kind != BUFFER_HELD) || (is_array && (kind == BUFFER_HELD || kind == BUFFER_PARTIALS)))
    return verify_fail(v, n, "it declares no buffer, or a pointer or register as an array");
  if (s->is_set || (is_array && s->is_declared)) return verify_fail(v, n, "its buffer is already declared");
  if (!verify_index(v, n, n->test)) return false;
  if (!is_array && kind == BUFFER_ROW) return set_pointer(v, n, s);
  if (n->to.item) return verify_fail(v, n, "it declares an item");
  if ((kind == BUFFER_SUM || kind == BUFFER_TOTAL) && !begin_sum(v, n)) return false;
  if ((kind == BUFFER_HELD || kind == BUFFER_PARTIALS) && !begin_partials(v, n)) return false;
  const bool has_rows = kind == BUFFER_VALUE || (kind == BUFFER_ROW && !is_own);
  if (is_array && (n->count < 0 || (has_rows && n->count < v->loop->rows)))
    return verify_fail(v, n, "the array must have an element for each row, vector or element that it holds");
  if (kind == BUFFER_VALUE && v->t->form[n->to.of] != FORM_ROWS)
    return verify_fail(v, n, "only values that differ from row to row have arrays");
  *s = (Scoped){.node = n};
  return has_rows ? scope_add(v, &s->is_declared) && scope_end(v, &s->is_set) : scope_add(v, &s->is_set);
}
