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

bool begin_each_row(Verifying *v, const LoopNode *n) {
  const Variable *rows = variable(v, loop_var(VAR_ROWS));
  Variable *row = variable(v, loop_var(VAR_ROW));
  if (!rows->is_set || row->is_set) return verify_fail(v, n, "the step has no rows, or it is in a loop over them");
  Amount last = amount_of(-1, 0);
  amount_add(&last, rows->value, 1);
  const Amount any = reach_symbol(&v->x, 1, &last, NULL);
  *row = (Variable){.is_set = true, .value = amount_keep(&v->x, &any)};
  return row->value;
}

bool verify_compute(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  const bool is_spilled = n->from.buffer == BUFFER_SPILL, is_vector = n->is_vector && e->op != EXPR_IS_KEPT;
  if (expr_is_reduction(e) || e->op == EXPR_COMBINE)
    return verify_fail(v, n, "its expression is a sum, which is no operator");
  if (is_spilled           ? n->from.of != n->expr
      : expr_has_access(e) ? node_access(n) != e->access || !n->from.buffer
                           : n->from.buffer != BUFFER_NONE)
    return verify_fail(v, n, "its access differs from the access of its expression");
  if ((!expr_has_access(e) || is_spilled || n->from.buffer != BUFFER_TENSOR) && (n->test || n->from.within))
    return verify_fail(v, n, "a load with conditions must be relative to its tensor: a row pointer may point outside");
  if (n->from.within && !node_lane_bound(v->t, n))
    return verify_fail(v, n, "it tests lanes, but no bound varies from lane to lane");
  if (e->op == EXPR_INDEX &&
      !(is_vector ? n->value != NULL : variable(v, (Var){VAR_AXIS, (uint32_t)__builtin_ctz(e->axes)})->is_set))
    return verify_fail(v, n, "the index on its axis must be set before it, and that of a vector be its value");
  const bool is_gathered = e->op == EXPR_LOAD && e->args[0]; // the operator that computes the offset clamps it
  const int narguments = is_spilled ? 0 : is_gathered ? 1 : expr_info[e->op].narguments;
  for (int a = 0; a < narguments; a++)
    if (!verify_operand(v, n, e->args[a], is_gathered ? node_load(v->t, n) == LOAD_GATHERED : is_vector)) return false;
  const bool has_address = n->from.buffer && (!is_gathered || is_spilled);
  return (!has_address || verify_access(v, n, &n->from)) && define(v, n);
}

// Buffers

static bool declare(Verifying *v, const LoopNode *n) {
  Scoped *s = state_of(v, &n->to);
  if (s->is_set || s->is_declared) return verify_fail(v, n, "its buffer is already declared");
  if (n->to.item || n->to.index || (n->has_fewer_lanes && !n->from.buffer))
    return verify_fail(v, n, "it declares an item, or a part of a buffer");
  *s = (Scoped){.node = n};
  return scope_add(v, &s->is_set);
}

// An array of scalars or pointers has an item for each row of the step, which is set later.
bool verify_array(Verifying *v, const LoopNode *n) {
  Scoped *s = state_of(v, &n->to);
  const bool has_rows = n->to.buffer == BUFFER_VALUE || (n->to.buffer == BUFFER_ROW && !access_is_own(v->t, n->to.of));
  if (has_rows && n->count < v->loop->rows) return verify_fail(v, n, "the array must have an element for each row");
  if (n->to.buffer == BUFFER_VALUE && v->t->form[n->to.of] != FORM_ROWS)
    return verify_fail(v, n, "only values that differ from row to row have arrays");
  if (!declare(v, n)) return false;
  s->is_set = !has_rows;
  return !has_rows || scope_add(v, &s->is_declared);
}

bool verify_point(Verifying *v, const LoopNode *n) {
  Scoped *s = state_of(v, &n->to);
  if (s->is_set) return verify_fail(v, n, "its buffer is already declared");
  if (n->to.of != n->from.of || n->to.index)
    return verify_fail(v, n, "a row pointer must point into the tensor of its access");
  if (!index_equals(n->to.item, is_in_row(v) ? &item_of_row : NULL) || (n->to.item && !s->is_declared))
    return verify_fail(v, n, "pointers of single rows must be set in a loop over rows, after their array is declared");
  const Amount pointer = reach_of(v, n->from.index);
  s->pointer = amount_keep(&v->x, &pointer);
  s->has_rows = n->to.item;
  s->is_set = true;
  return n->to.item || scope_end(v, &s->is_set);
}

// Sums

static const LoopNode *declaration(const Verifying *v, const Address *at) {
  return state_of(v, at)->node;
}

bool verify_begin_sum(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->to.of];
  const bool is_total = n->to.buffer == BUFFER_TOTAL, combines = e->op == EXPR_COMBINE;
  if (!(expr_is_reduction(e) || combines) || n->count < 1)
    return verify_fail(v, n, "it must begin accumulators, a total or a scalar of a sum");
  if (combines && (!is_total || n->count != 1 || n->is_vector != (v->t->form[n->to.of] == FORM_VECTOR)))
    return verify_fail(v, n, "it must begin one total of its partial sums, a vector if the sum is one");
  if (!is_total && !n->is_vector) return verify_fail(v, n, "accumulators must be vectors");
  if (is_total && v->k->is_f64 && n->is_vector && !combines) return verify_fail(v, n, "only sums of f32 have totals");
  return declare(v, n);
}

// A vector has a sum in each lane. A scalar is reduced over lanes; sums of scalars have no lanes.
static bool verify_end(Verifying *v, const LoopNode *n, bool has_lanes) {
  if (n->from.of != n->expr || n->test) return verify_fail(v, n, "it must take the sum of its expression");
  if (n->is_vector != has_lanes) return verify_fail(v, n, "it must take all lanes unless each has a sum");
  if (node_is_of_rows(v->t, n) && declaration(v, &n->from)->count != v->loop->rows)
    return verify_fail(v, n, "it must take the accumulators of all rows");
  return define(v, n);
}

bool verify_end_sum(Verifying *v, const LoopNode *n) {
  return verify_end(v, n, !node_adds_lanes(v->t, n));
}

bool verify_end_total(Verifying *v, const LoopNode *n) {
  return verify_end(v, n, declaration(v, &n->from)->is_vector);
}

bool verify_add(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  const bool is_total = n->to.buffer == BUFFER_TOTAL, is_scalar = is_total || n->to.buffer == BUFFER_PARTIALS;
  const bool is_other_total =
      is_total && (declaration(v, &n->to)->is_vector || v->k->exprs[n->to.of].op == EXPR_COMBINE);
  if (n->is_vector == is_scalar || is_other_total)
    return verify_fail(v, n, "a vector must be added to accumulators or a register, a scalar to a scalar or element");
  if (n->to.buffer == BUFFER_PARTIALS && !verify_access(v, n, &n->to)) return false;
  if (!n->is_fused) return verify_operand(v, n, n->expr, n->is_vector);
  if (e->op != EXPR_MUL || node_reduction(v->t, n) != EXPR_REDUCE_SUM || node_is_widened(v->t, n) || is_scalar)
    return verify_fail(v, n, "only a sum of vectors of products, in the type of the products, can be fused");
  return verify_operand(v, n, e->args[0], true) && verify_operand(v, n, e->args[1], true);
}

// What adds accumulators, or partial sums, to a total.
static bool verify_total(Verifying *v, const LoopNode *n) {
  return (!n->is_fused && n->is_vector == declaration(v, &n->to)->is_vector) ||
         verify_fail(v, n, "it must add to a total as a vector if the total is one");
}

bool verify_end_run(Verifying *v, const LoopNode *n) {
  const bool takes_all = n->from.of == n->to.of && index_equals(n->from.item, n->to.item) &&
                         declaration(v, &n->from)->count == declaration(v, &n->to)->count;
  return takes_all ? verify_total(v, n)
                   : verify_fail(v, n, "it must add all accumulators of the sum to as many totals");
}

bool verify_combine(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->to.of];
  if (e->op != EXPR_COMBINE || n->from.of != e->access)
    return verify_fail(v, n, "its expression must combine partial sums through the same access");
  return verify_total(v, n) && verify_access(v, n, &n->from);
}

// Stores

// The loop stores through the access, and bypasses the caches only where they may be bypassed.
static bool verify_result(Verifying *v, const LoopNode *n) {
  const Root *root = loop_root(v->loop, ROOT_STORE, n->to.of);
  if (!root || (n->expr && root->expr != n->expr))
    return verify_fail(v, n, "no result of the loop is a store of this expression through this access");
  return !n->is_streamed || v->streamed == n->to.of + 1 || verify_fail(v, n, "it must depend on VAR_STREAMED");
}

bool verify_store(Verifying *v, const LoopNode *n) {
  const bool is_array = buffer_info[n->to.buffer].space == SPACE_STACK;
  if (is_array && (!n->is_vector || n->has_fewer_lanes)) return verify_fail(v, n, "it must store a whole vector");
  if (n->to.buffer == BUFFER_SPILL && n->to.of != n->expr) return verify_fail(v, n, "it spills another expression");
  if (n->to.buffer != BUFFER_SPILL && !verify_result(v, n)) return false;
  if (n->is_streamed && (!n->is_vector || n->has_fewer_lanes))
    return verify_fail(v, n, "it streams less than a whole vector");
  return verify_operand(v, n, n->expr, n->is_vector) && verify_access(v, n, &n->to);
}

// Partial sums

static bool has_partials(const Verifying *v, const LoopNode *n) {
  return n->to.of == n->from.of && loop_root(v->loop, ROOT_REDUCE_OUTER, n->to.of);
}

bool verify_begin_part(Verifying *v, const LoopNode *n) {
  const AxisSet axes = access_axes(v->k, &v->k->accesses[n->to.of]);
  const Amount part = amount_of(axes_nelems(v->k, axes), axes_monomial(v->k, axes));
  Lanes all = {.step = amount_of(1, 0), .last = amount_of(-1, 0)};
  amount_add(&all.last, &part, 1);
  if (!has_partials(v, n) || n->is_vector || v->depth)
    return verify_fail(v, n, "partial sums must be declared once in a block, of the sum's temporary");
  return verify_inside(v, n, &n->from, NULL, &all) && declare(v, n);
}

bool verify_hold(Verifying *v, const LoopNode *n) {
  if (!has_partials(v, n) || !n->is_vector) return verify_fail(v, n, "it must hold a vector of its partial sums");
  return verify_access(v, n, &n->from) && declare(v, n);
}

bool verify_store_held(Verifying *v, const LoopNode *n) {
  if (!has_partials(v, n) || !n->is_vector) return verify_fail(v, n, "it must store a vector of its partial sums");
  return verify_access(v, n, &n->to);
}

bool verify_clear(Verifying *v, const LoopNode *n) {
  return n->is_vector ? verify_fail(v, n, "it must store one identity") : verify_access(v, n, &n->to);
}

// Copies and panels

// Moves LANES rows of `count` elements, which are transposed; or a vector of one row, or of each row of the step.
bool verify_move(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  const bool is_store = n->from.buffer == BUFFER_COPY, is_panel = n->expr, is_of_rows = node_is_of_rows(v->t, n);
  const Address *tensor = is_store ? &n->to : &n->from, *vectors = is_store ? &n->from : &n->to;
  if (is_panel ? e->op != EXPR_LOAD || e->args[0] || e->access != n->from.of : n->to.of != n->from.of)
    return verify_fail(v, n, "it must copy between a tensor and the step's copy of it, or what a panel's store loads");
  if ((is_panel || is_store) && !verify_result(v, n)) return false;
  if (is_of_rows && n->count) return verify_fail(v, n, "it has no rows of such a length");
  const Amount step = !n->count && !is_of_rows ? amount_of(1, 0)
                      : n->is_streamed         ? amount_of(n->count, 0)
                                               : reach_of(v, n->step),
               one = amount_of(1, 0), last = amount_of(LANES - 1, 0), width = amount_of(n->count - 1, 0),
               lanes = amount_of(LANES, 0);
  const Amount column = n->count     ? reach_symbol(&v->x, 1, &width, NULL)
                        : is_of_rows ? amount_copy(variable(v, loop_var(VAR_ROW))->value)
                                     : amount_of(0, 0),
               vector = amount_times(&column, &lanes);
  return verify_inside(v, n, tensor, n->count ? &column : NULL, &(Lanes){.step = step, .last = last}) &&
         verify_inside(v, n, vectors, &vector, &(Lanes){.step = one, .last = last});
}
