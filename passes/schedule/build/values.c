// Builds nodes that compute, load and store the values of expressions.
#include "passes/schedule/build/nest_builder.h"

LoopNode *add(NestBuilder *r, LoopNode node) {
  return tree_add(&r->b, node);
}

void open_body(NestBuilder *r, LoopNode *node) {
  tree_open(&r->b, &node->body);
}

void set(NestBuilder *r, Var var, const Index *value) {
  add(r, (LoopNode){.kind = NODE_INDEX, .var = var, .value = value});
}

LoopNode *open_if(NestBuilder *r, const Index *test) {
  LoopNode *node = add(r, (LoopNode){.kind = NODE_IF, .test = test});
  open_body(r, node);
  return node;
}

void close_body(NestBuilder *r) {
  tree_close(&r->b);
}

LoopNode *open_for(NestBuilder *r, VarKind kind, const Index *from, const Index *to, const Index *step) {
  LoopNode *loop = add(r, (LoopNode){.kind = NODE_FOR, .var = loop_var(kind), .value = from, .end = to, .step = step});
  open_body(r, loop);
  return loop;
}

void open_rows(NestBuilder *r) {
  if (!has_rows(r)) return;
  r->rows = r->b.end;
  open_for(r, VAR_ROW, number(r, 0), var(r, VAR_ROWS, 0), number(r, 1))->is_unrolled = true;
}

void close_rows(NestBuilder *r) {
  if (!has_rows(r)) return;
  const bool is_empty = !r->b.out_of_memory && r->b.end == &(*r->rows)->body;
  close_body(r);
  if (!is_empty) return;
  *r->rows = (*r->rows)->next;
  r->b.end = r->rows;
}

// The distance in memory between neighbouring lanes.
static const Index *lane_step(NestBuilder *r, const Access *a) {
  const int axis = loop_lane_axis(r->loop);
  return a->panel_axis == axis + 1 ? number(r, 1) : stride_of(r, a, axis);
}

// Whether vectors of the access are in a panel, which has memory for all lanes, also of the tail.
static bool is_of_panel(const NestBuilder *r, const Access *a) {
  return a->panel_axis && a->panel_axis == loop_lane_axis(r->loop) + 1;
}

// The stride, along an axis, of the partial sums that EXPR_COMBINE reads: an array [batch axes, block, inner axes], as
// the blocks of each index on the batch axes are adjacent. NULL: the partial sums do not vary over the axis.
static const Index *partial_stride(NestBuilder *r, const Expr *e, int axis) {
  const Kernel *k = r->k;
  const Loop *maker = &r->schedule->loops[e->loop];
  const Access *a = &k->accesses[e->access];
  const AxisSet own = access_axes(k, a);
  AxisSet below = 0; // batch axes inside of this one
  int at = maker->nbatch;
  while (at-- > 0 && maker->axes[at] != axis) below |= 1U << maker->axes[at];
  if (at < 0) return a->stride[axis] ? stride_of(r, a, axis) : NULL;
  if (!(e->axes >> axis & 1)) return NULL;            // its blocks are combined
  const int64_t nelems = axes_nelems(k, own | below); // the two sets are disjoint
  const Monomial monomial = axes_monomial(k, own | below);
  if (!loop_has_open_cut_blocks(k, maker)) return index_number(&r->b, nelems * loop_ncut_blocks(k, maker), monomial);
  return times(r, ncut_blocks(r, e->loop), index_number(&r->b, nelems, monomial));
}

// The address of the partial sum of block VAR_COMBINED_BLOCK, at the current indices; lane_axis: at lane 0 along this
// axis, -1: of a scalar.
static Address partial_address(NestBuilder *r, const Expr *e, int lane_axis) {
  const Access *a = &r->k->accesses[e->access];
  const Index *index = times(r, var(r, VAR_COMBINED_BLOCK, 0), axes_nelems_index(r, access_axes(r->k, a)));
  for (int axis = 0; axis < r->k->naxes; axis++) {
    const Index *stride = axis != lane_axis ? partial_stride(r, e, axis) : NULL;
    if (!stride || index_is(stride, 0)) continue;
    index = plus(r, index, times(r, var(r, VAR_AXIS, (uint32_t)axis), stride));
  }
  if (lane_axis >= 0)
    index = index_of(&r->b, INDEX_ADD, index,
                     index_of(&r->b, INDEX_MULTIPLY, lane_index(r), partial_stride(r, e, lane_axis)));
  return (Address){.buffer = BUFFER_TENSOR, .of = e->access, .index = index};
}

static const Index *count_combined(NestBuilder *r, const Expr *e) {
  const Loop *maker = &r->schedule->loops[e->loop];
  const Index *count = number(r, loop_ncombined(r->k, maker, e));
  return loop_has_open_cut_blocks(r->k, maker) ? times(r, count, ncut_blocks(r, e->loop)) : count;
}

// Adds up the partial sums of a loop's blocks, in the order of the blocks.
static void make_combine(NestBuilder *r, ExprId id) {
  const Expr *e = &r->k->exprs[id];
  const bool is_vector = expr_level(r, id) == LEVEL_VECTOR;
  const int lane_axis = is_vector ? vector_axis(r) : -1;
  const Address total = {.buffer = BUFFER_TOTAL, .of = id};
  add(r, (LoopNode){.kind = NODE_BUFFER, .to = total, .is_vector = is_vector, .count = 1});
  if (loop_nblocks(r->k, &r->schedule->loops[e->loop]) > 0) {
    LoopNode *blocks = open_for(r, VAR_COMBINED_BLOCK, number(r, 0), count_combined(r, e), number(r, 1));
    blocks->test = all_partials_test(r, e->access);
    add(r, (LoopNode){.kind = NODE_UPDATE,
                      .to = total,
                      .from = partial_address(r, e, lane_axis),
                      .is_vector = is_vector,
                      .has_fewer_lanes = r->is_tail,
                      .step = is_vector ? partial_stride(r, e, lane_axis) : NULL});
    close_body(r);
  }
  add(r, (LoopNode){.kind = NODE_LET, .from = total, .expr = id, .is_vector = is_vector});
}

void make_scalar(NestBuilder *r, ExprId id, AxisSet axes) {
  const Expr *e = &r->k->exprs[id];
  if (e->op == EXPR_COMBINE) {
    make_combine(r, id);
    return;
  }
  LoopNode node = {.kind = NODE_LET, .expr = id};
  if (expr_has_access(e)) {
    const bool has_pointer = expr_level(r, id) == LEVEL_MIDDLE && is_row_pointer(r, e->access);
    node.from = has_pointer ? vector_address(r, e->access) : element_address(r, e->access, axes);
    add_bounds(r, &node, &r->k->accesses[e->access]);
  }
  add(r, node);
}

static Address spilled_address(NestBuilder *r, ExprId id) {
  const Index *lane = loop_has(r->loop, LOOP_ROW_LANES) ? times(r, lane_index(r), number(r, LANES)) : lane_index(r);
  if (has_rows(r)) lane = plus(r, times(r, var(r, VAR_ROW, 0), number(r, loop_row_nelems(r->k, r->loop))), lane);
  return (Address){.buffer = BUFFER_SPILL, .of = id, .index = lane};
}

static Address copied_address(NestBuilder *r, AccessId id) {
  return (Address){.buffer = BUFFER_COPY, .of = id, .index = times(r, lane_index(r), number(r, LANES))};
}

// Adds the node that loads or computes a vector.
static void compute_vector(NestBuilder *r, ExprId id) {
  const Expr *e = &r->k->exprs[id];
  LoopNode node = {.kind = NODE_LET, .expr = id, .is_vector = true, .has_fewer_lanes = r->is_tail};
  if (e->op == EXPR_LOAD) {
    const Access *a = &r->k->accesses[e->access];
    const bool is_copied = is_transposed(r, e->access) || copies_columns(r, e->access);
    node.from = is_copied           ? copied_address(r, e->access)
                : access_is_mask(a) ? vector_address(r, e->access)
                                    : lanes_address(r, e->access, expr_level(r, id));
    node.step = lane_step(r, a);
    node.has_fewer_lanes &= !is_of_panel(r, a);
    add_bounds(r, &node, a);
  } else if (e->op == EXPR_IS_KEPT) {
    node.from = vector_address(r, e->access);
    node.step = lane_step(r, &r->k->accesses[e->access]);
  } else if (e->op == EXPR_INDEX) {
    node.value = lane_index(r);
  }
  add(r, node);
}

void make_vector(NestBuilder *r, ExprId id) {
  if (is_reloaded(r, id)) {
    add(r, (LoopNode){.kind = NODE_LET, .expr = id, .is_vector = true, .from = spilled_address(r, id)});
    return;
  }
  if (r->k->exprs[id].op == EXPR_COMBINE) make_combine(r, id);
  else compute_vector(r, id);
  if (is_spilled(r, id))
    add(r, (LoopNode){.kind = NODE_STORE, .expr = id, .is_vector = true, .to = spilled_address(r, id)});
}

// Stores

void declare_wanted(NestBuilder *r, AccessId id) {
  if (is_optional(r, id)) set(r, (Var){VAR_WANTED, id}, exists(r, id));
}

bool open_wanted(NestBuilder *r, AccessId id) {
  if (!is_optional(r, id)) return false;
  open_if(r, var(r, VAR_WANTED, id));
  return true;
}

void store_vector(NestBuilder *r, const Root *root) {
  const Access *a = &r->k->accesses[root->access];
  LoopNode node = {.kind = NODE_STORE, .expr = root->expr, .is_vector = true};
  if (is_transposed(r, root->access)) { // into the copy, which NODE_MOVE stores at the end of the sweep
    node.to = copied_address(r, root->access);
    add(r, node);
    return;
  }
  if (access_is_mask(a)) {
    node.to = vector_address(r, root->access);
    add(r, node);
    return;
  }
  node.has_fewer_lanes = r->is_tail && !is_of_panel(r, a);
  node.step = lane_step(r, a);
  node.to = lanes_address(r, root->access, root_level(r, root));
  const bool is_open = open_wanted(r, root->access);
  add(r, node);
  if (is_open) close_body(r);
}

void store_scalar(NestBuilder *r, const Root *root) {
  const bool is_open = open_wanted(r, root->access);
  add(r, (LoopNode){.kind = NODE_STORE, .expr = root->expr, .to = element_address(r, root->access, ~0U)});
  if (is_open) close_body(r);
}
