// Finds the expressions that a sweep needs, and the level at which each is computed.
#include "passes/schedule/build/nest_builder.h"

#include <string.h>

const Root *roots_end(const NestBuilder *r) {
  return r->loop->roots + r->loop->nroots;
}

int vector_axis(const NestBuilder *r) {
  return loop_vector_axis(r->loop);
}

bool has_rows(const NestBuilder *r) {
  return r->loop->rows > 1;
}

bool peels_rows(const NestBuilder *r) {
  return r->loop->is_peeled && r->sweep == r->loop->nsweeps - 1;
}

AxisSet shared_axes(const NestBuilder *r) {
  const AxisSet rows = loop_row_axes(r->k, r->loop);
  return loop_shares_factors(r->loop) && has_rows(r)
             ? loop_outer_axes(r->loop) & ~(rows ? rows : loop_cut_axes(r->loop))
             : 0;
}

bool varies_by_row(const NestBuilder *r, AxisSet axes) {
  return axes & loop_outer_axes(r->loop) & ~shared_axes(r);
}

bool is_row_pointer(const NestBuilder *r, AccessId id) {
  const Access *a = &r->k->accesses[id];
  return loop_has(r->loop, LOOP_COLUMNS) && has_rows(r) && !access_has_conditions(r->k, a) &&
         varies_by_row(r, access_axes(r->k, a));
}

int depth_of(const NestBuilder *r, AxisSet axes) {
  int depth = r->nest.nlevels;
  while (depth > r->nest.inside && !(nest_level_axes(r->loop, &r->nest.levels[depth - 1]) & axes)) depth--;
  return depth;
}

int root_depth(const NestBuilder *r, const Root *root) {
  AxisSet axes = root_axes(r->k, root);
  if (root->kind == ROOT_REDUCE_INNER)
    axes |= r->k->exprs[root->expr].reduced | r->k->exprs[root_operand(r->k, root)].axes;
  return depth_of(r, axes);
}

bool is_root_at(const NestBuilder *r, const Root *root, int depth) {
  return is_in_sweep(r, root, r->sweep) && root_depth(r, root) == depth;
}

bool has_body(const NestBuilder *r, int depth) {
  return depth == r->nest.nlevels || (depth > r->nest.inside && r->nest.levels[depth - 1].role == ROLE_LANES);
}

static Level level_of(const NestBuilder *r, AxisSet axes) {
  if (axes & loop_inner_axes(r->loop)) return axes >> vector_axis(r) & 1 ? LEVEL_VECTOR : LEVEL_MIDDLE;
  return axes & loop_outer_axes(r->loop) ? LEVEL_ROW : LEVEL_CALL;
}

Level expr_level(const NestBuilder *r, ExprId id) {
  return level_of(r, r->k->exprs[id].axes);
}

Level root_level(const NestBuilder *r, const Root *root) {
  return level_of(r, root_axes(r->k, root));
}

// Whether an expression is a vector: it varies over the innermost axis, or, with rows in lanes, over rows.
bool is_lanewise(const NestBuilder *r, ExprId id) {
  Level level = expr_level(r, id);
  return level == LEVEL_VECTOR || (loop_has(r->loop, LOOP_ROW_LANES) && level == LEVEL_ROW);
}

bool is_row_sum(const NestBuilder *r, ExprId id) {
  return loop_finishes(r->loop, id, r->loop->nsweeps);
}

bool is_reloaded(const NestBuilder *r, ExprId id) {
  return r->sweep > loop_spilling_sweep(r->loop, id);
}

bool is_spilled(const NestBuilder *r, ExprId id) {
  return r->sweep == loop_spilling_sweep(r->loop, id);
}

// The values that the current sweep loads or has: sums of sweeps up to this sweep (the hoisted code after a sweep uses
// its sums), and vectors that earlier sweeps spilled.
static Available available_values(const NestBuilder *r) {
  const bool is_one = r->sweep != ALL_SWEEPS;
  return (Available){
      .k = r->k, .loop = r->loop, .sums = is_one ? r->sweep + 1 : r->loop->nsweeps, .vectors = is_one ? r->sweep : 0};
}

void need_expr(NestBuilder *r, ExprId id) {
  const Available available = available_values(r);
  mark_needed(&available, id, r->is_needed);
}

bool is_array_sum(const NestBuilder *r, const Root *root) {
  return root->kind == ROOT_REDUCE_OUTER && root_level(r, root) == LEVEL_VECTOR;
}

bool is_in_sweep(const NestBuilder *r, const Root *root, int sweep) {
  return root->sweep == sweep && root_is_in_sweep(r->k, r->loop, root);
}

void need_root(NestBuilder *r, const Root *root) {
  ExprId operand = root_operand(r->k, root);
  // Of a fused product, only the factors are needed, unless the product is spilled.
  if (expr_level(r, operand) == LEVEL_VECTOR && root->order && root->order->is_fused && !is_spilled(r, operand)) {
    need_expr(r, r->k->exprs[operand].args[0]);
    need_expr(r, r->k->exprs[operand].args[1]);
  } else {
    need_expr(r, operand);
  }
}

void need_none(NestBuilder *r) {
  memset(r->is_needed, 0, r->k->nexprs * sizeof *r->is_needed);
}

void need_sweep(NestBuilder *r, int sweep) {
  r->sweep = sweep;
  need_none(r);
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) {
    if (sweep != ALL_SWEEPS && !is_in_sweep(r, root, sweep)) continue;
    need_root(r, root);
    if (sweep == ALL_SWEEPS && root->kind == ROOT_REDUCE_INNER) need_expr(r, root->expr);
  }
}

bool is_emitted(const NestBuilder *r, ExprId id) {
  const Expr *e = &r->k->exprs[id];
  return r->is_needed[id] && e->op != EXPR_CONSTANT && !is_row_sum(r, id);
}

void find_ready(NestBuilder *r) {
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    int *ready = &r->ready[id];
    for (int a = 0; a < 3; a++)
      if (r->ready[r->k->exprs[id].args[a]] > *ready) *ready = r->ready[r->k->exprs[id].args[a]];
    for (const Root *root = r->loop->roots; root < roots_end(r); root++)
      if (root->kind == ROOT_REDUCE_INNER && root->expr == id) *ready = root->sweep + 1;
  }
}
