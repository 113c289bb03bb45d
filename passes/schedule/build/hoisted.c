// Builds hoisted code: what a micro-kernel computes outside of the loops of its sweeps, before the first sweep, between
// two and after the last. It computes scalars, sets row pointers, stores scalars and adds to sums. `before`: the number
// of the sweep that comes next.
#include "passes/schedule/build/nest_builder.h"

// A load with conditions.
static bool is_bounded(const NestBuilder *r, ExprId id) {
  const Expr *e = &r->k->exprs[id];
  return e->op == EXPR_LOAD && access_has_conditions(r->k, &r->k->accesses[e->access]);
}

// The outer axes whose indices this hoisted code uses.
static AxisSet mentioned_axes(NestBuilder *r, int before) {
  const bool is_whole = !has_rows(r);
  AxisSet axes = 0;
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    const Expr *e = &r->k->exprs[id];
    if (!r->is_needed[id] || (!expr_has_access(e) && e->op != EXPR_COMBINE && e->op != EXPR_INDEX)) continue;
    // Row pointers are set before the first sweep.
    const bool is_vector =
        expr_has_access(e) ? has_row_pointer(r, expr_level(r, id), e->access) : expr_level(r, id) == LEVEL_VECTOR;
    if (is_vector && !has_vectors(r)) continue;
    if (loop_row_axes(r->k, r->loop) && is_bounded(r, id)) continue; // it has no pointer; see find_bounded_indices
    const AxisSet own = expr_has_access(e) ? access_axes(r->k, &r->k->accesses[e->access]) : e->axes;
    if (is_whole || (is_vector ? before == 0 : r->ready[id] == before)) axes |= own;
  }
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) {
    if (root->kind != ROOT_STORE) continue;
    const bool is_vector = root_level(r, root) == LEVEL_VECTOR;
    if (is_vector && !has_vectors(r)) continue;
    if (is_whole || (is_vector ? before == 0 : r->ready[root->expr] == before))
      axes |= access_axes(r->k, &r->k->accesses[root->access]);
  }
  return axes & loop_outer_axes(r->loop);
}

// A store, or an addition to a sum over rows, that belongs here.
static bool is_root_of(const NestBuilder *r, const Root *root, int before) {
  return root->kind != ROOT_REDUCE_INNER && root_level(r, root) <= LEVEL_ROW && r->ready[root->expr] == before;
}

static bool has_row_work(NestBuilder *r, int before) {
  if (before == 0 && (!loop_row_axes(r->k, r->loop) || mentioned_axes(r, 0) & ~shared_axes(r))) return true;
  for (ExprId id = 1; id < r->k->nexprs; id++)
    if (is_emitted(r, id) && r->ready[id] == before && expr_level(r, id) <= LEVEL_ROW) return true;
  for (const Root *root = r->loop->roots; root < roots_end(r); root++)
    if (is_root_of(r, root, before)) return true;
  return false;
}

// Adds the row's contribution to a scalar outer reduction.
static void add_contribution(NestBuilder *r, const Root *root) {
  add(r, (LoopNode){.kind = NODE_UPDATE,
                    .to = {.buffer = BUFFER_PARTIALS, .of = root->access},
                    .expr = root->expr,
                    .test = partial_test(r, root->access)});
}

static void store_row(NestBuilder *r, int before) {
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) {
    if (!is_root_of(r, root, before)) continue;
    if (root->kind == ROOT_STORE && loop_has(r->loop, LOOP_ROW_LANES)) store_vector(r, root);
    else if (root->kind == ROOT_STORE) store_scalar(r, root);
    else add_contribution(r, root);
  }
}

AxisSet mentioned_shared_axes(NestBuilder *r) {
  AxisSet axes = 0;
  need_sweep(r, ALL_SWEEPS);
  for (ExprId id = 1; id < r->k->nexprs; id++)
    if (r->is_needed[id] && expr_has_access(&r->k->exprs[id]))
      axes |= access_axes(r->k, &r->k->accesses[r->k->exprs[id].access]);
    else if (r->is_needed[id] && r->k->exprs[id].op == EXPR_INDEX) axes |= r->k->exprs[id].axes;
  for (const Root *root = r->loop->roots; root < roots_end(r); root++)
    if (root->kind == ROOT_STORE) axes |= access_axes(r->k, &r->k->accesses[root->access]);
  return axes & shared_axes(r);
}

void find_indices(NestBuilder *r, AxisSet axes, bool by_row) {
  const Loop *loop = r->loop;
  const AxisSet of_rows = by_row ? loop_row_axes(r->k, loop) : 0;
  const Index *row = var(r, VAR_OUTER, 0);
  if (of_rows) row = var(r, VAR_ROW, 0);
  else if (by_row) row = plus(r, row, var(r, VAR_ROW, 0));
  int64_t below = 1;
  Monomial monomial = 0;
  for (int i = loop->nouter - 1; i >= 0; i--) {
    const int axis = loop->axes[i];
    const Axis *own = &r->k->axes[axis];
    if (axes >> axis & 1) {
      const Index *index = index_of(&r->b, INDEX_DIVIDE, row, index_number(&r->b, below, monomial));
      const bool is_first = of_rows ? below * own->extent == loop->rows : i == 0;
      if (!own->extent) index = index_number(&r->b, 0, 0); // there are no iterations
      else if (!is_first)
        index = index_of(&r->b, INDEX_REMAINDER, index, index_number(&r->b, own->extent, own->monomial));
      set(r, (Var){VAR_AXIS, (uint32_t)axis}, index);
    }
    if (!own->extent) continue;
    below *= own->extent;
    monomial += own->monomial;
  }
}

// The axes of rows whose indices the conditions of loads test.
static AxisSet bounded_axes(const NestBuilder *r) {
  AxisSet axes = 0;
  for (ExprId id = 1; id < r->k->nexprs; id++)
    if (is_emitted(r, id) && is_bounded(r, id)) axes |= access_axes(r->k, &r->k->accesses[r->k->exprs[id].access]);
  return axes & loop_outer_axes(r->loop) & ~shared_axes(r);
}

void find_bounded_indices(NestBuilder *r) {
  if (has_rows(r)) find_indices(r, bounded_axes(r), true);
}

void build_hoisted(NestBuilder *r, int before) {
  need_sweep(r, ALL_SWEEPS);
  if (!has_row_work(r, before)) return;
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    if (!is_emitted(r, id) || r->ready[id] != before) continue;
    const Level level = expr_level(r, id);
    if (level == LEVEL_CALL) make_scalar(r, id, 0);
    else if (level == LEVEL_ROW && has_rows(r))
      add(r, (LoopNode){.kind = NODE_BUFFER, .to = {.buffer = BUFFER_VALUE, .of = id}, .count = r->loop->rows});
  }
  open_rows(r);
  if (before == 0 || has_rows(r)) find_indices(r, mentioned_axes(r, before) & ~shared_axes(r), has_rows(r));
  if (before == 0) for_each_pointer(r, set_pointer);
  if (before == 0 && loop_has(r->loop, LOOP_ROW_LANES)) for_each_pointer(r, copy_rows);
  for (ExprId id = 1; id < r->k->nexprs; id++)
    if (is_emitted(r, id) && r->ready[id] == before && expr_level(r, id) == LEVEL_ROW) {
      if (loop_has(r->loop, LOOP_ROW_LANES)) make_vector(r, id);
      else make_scalar(r, id, loop_outer_axes(r->loop));
    }
  store_row(r, before);
  close_rows(r);
}
