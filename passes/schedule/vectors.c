// The innermost loop of a sweep: whole groups of vectors, whole vectors, what is left of a row; and what it fetches
// ahead.
#include "passes/schedule/recipe.h"

Flag part_flag(const Recipe *r, AccessId id) {
  return may_be_unwanted(r, id) && !r->loop->is_across && !r->is_part_tested ? FLAG_HAS_PART : FLAG_NONE;
}

static void update_vector(Recipe *r, const Root *root) {
  const bool is_held = root->kind == ROOT_REDUCE_OUTER, is_widened = is_widened_sum(r, root);
  add(r, (LoopNode){.kind = NODE_UPDATE,
                    .sum = is_held ? SUM_HELD : SUM_ACCUMULATOR,
                    .part = is_held ? PART_ONLY : r->part,
                    .expr = is_held ? root_operand(r, root) : root->expr,
                    .is_vector = true,
                    .is_part = r->is_tail && r->loop->is_across == is_held,
                    .is_fused = root->is_fused,
                    .reduction = root_reduction(r, root),
                    .is_f64 = r->k->is_f64 || is_widened,
                    .is_widened = is_widened,
                    .flag = is_held ? part_flag(r, root->access) : FLAG_NONE,
                    .access = root->access});
}

static void build_vector_root(Recipe *r, const Root *root) {
  if (root->kind == ROOT_STORE) store_vector(r, root);
  else update_vector(r, root);
}

// Vectors of partial sums, to where they are held, or from there.
static void move_array_sums(Recipe *r, int sweep, LoopNodeKind kind) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (root->sweep != sweep || !is_array_sum(r, root)) continue;
    const Access *a = &r->k->accesses[root->access];
    const bool is_across = r->loop->is_across;
    const Index *lane = is_across ? index_of(&r->b, INDEX_MULTIPLY, r->lane, number(r, LANES)) : r->lane;
    const Index *middle = add_terms(r, a, loop_inner_axes(r->loop) & ~(1U << vector_axis(r)), NULL);
    const bool may_be_null = may_be_unwanted(r, root->access) && !is_across;
    add(r, (LoopNode){.kind = kind,
                      .access = root->access,
                      .is_f64 = r->k->is_f64 || is_widened_sum(r, root),
                      .is_part = r->is_tail && !is_across,
                      .flag = kind == NODE_RELEASE ? part_flag(r, root->access)
                              : may_be_null        ? FLAG_HAS_PART
                                                   : FLAG_NONE,
                      .address = {.base = BASE_PART,
                                  .access = root->access,
                                  .index = middle ? index_of(&r->b, INDEX_ADD, middle, lane) : lane}});
  }
}

bool is_prefetched(const Recipe *r, AccessId id) {
  if (r->loop->is_across && !is_column(r, id)) return false;
  for (ExprId e = 1; e < r->k->nexprs; e++)
    if (r->is_needed[e] && r->k->exprs[e].op == EXPR_LOAD && r->k->exprs[e].access == id && !r->k->exprs[e].args[0] &&
        access_has_addresses(&r->k->accesses[id]) && !expr_is_mask(r->k, e) && expr_level(r, e) == LEVEL_VECTOR &&
        varies_by_row(r, r->k->exprs[e].axes))
      return true;
  return false;
}

bool fetches_ahead(const Recipe *r) {
  for (AccessId id = 0; r->loop->ahead && id < r->k->naccesses; id++)
    if (is_prefetched(r, id)) return true;
  return false;
}

// Sweeps that go along rows: after the last of them there may be one that only stores what they have added up.
static int count_long_sweeps(const Recipe *r) {
  int count = 0;
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (is_in_sweep(r, &r->loop->roots[i], r->loop->roots[i].sweep) && r->loop->roots[i].sweep >= count)
      count = r->loop->roots[i].sweep + 1;
  return count;
}

// What later rows need is on its way while these are worked on: a share of it in each sweep, so that the bus is never
// idle, and to the second level only, as the first is full of these rows.
static void fetch_rows(Recipe *r, int sweep) {
  size_t count = 0, at = 0;
  need_all(r);
  for (AccessId id = 0; id < r->k->naccesses; id++) count += is_prefetched(r, id);
  for (AccessId id = 0; count && id < r->k->naccesses; id++) {
    if (!is_prefetched(r, id) || (int)(at++ * (size_t)count_long_sweeps(r) / count) != sweep) continue;
    Address to = vector_address(r, id);
    const Index *ahead = r->loop->nouter > 1 ? var(r, VAR_DISTANCE, id)
                                             : index_of(&r->b, INDEX_MULTIPLY, var(r, VAR_AHEAD, 0),
                                                        stride_of(r, &r->k->accesses[id], r->loop->order[0]));
    to.index = to.index ? index_of(&r->b, INDEX_ADD, to.index, ahead) : ahead;
    add(r, (LoopNode){.kind = NODE_PREFETCH, .address = to});
  }
  need_sweep(r, sweep);
}

// What a run along the vector axis will need is on its way as well, from the next run on when this one ends.
static void fetch_run(Recipe *r) {
  const Index *lane = r->lane, *extent = axes_nelems_index(r, 1U << vector_axis(r));
  const uint32_t axis = (uint32_t)last_middle_axis(r);
  const Index *far = index_of(&r->b, INDEX_ADD, lane, number(r, r->loop->ahead)), *is_next = var(r, VAR_IS_AHEAD, 0);
  add(r,
      (LoopNode){.kind = NODE_INDEX, .var = {VAR_IS_AHEAD, 0}, .value = index_of(&r->b, INDEX_AT_LEAST, far, extent)});
  add(r, (LoopNode){.kind = NODE_INDEX,
                    .var = {VAR_AHEAD_AXIS, axis},
                    .value = index_choose(&r->b, is_next, var(r, VAR_NEXT, axis), var(r, VAR_AXIS, axis))});
  add(r, (LoopNode){.kind = NODE_INDEX,
                    .var = {VAR_AHEAD_LANE, 0},
                    .value = index_choose(&r->b, is_next, index_of(&r->b, INDEX_SUBTRACT, far, extent), far)});
  r->is_ahead = true;
  r->lane = var(r, VAR_AHEAD_LANE, 0);
  for (AccessId id = 0; id < r->k->naccesses; id++)
    if (is_prefetched(r, id)) add(r, (LoopNode){.kind = NODE_PREFETCH, .address = vector_address(r, id)});
  r->is_ahead = false;
  r->lane = lane;
}

// How far it is in each tensor to a row ahead of the one at hand, where that is not the same everywhere.
void make_distances(Recipe *r) {
  need_all(r);
  for (AccessId id = 0; r->loop->nouter > 1 && id < r->k->naccesses; id++) {
    if (!is_prefetched(r, id)) continue;
    const Access *a = &r->k->accesses[id];
    const Index *here = var(r, VAR_OUTER, 0), *distance = number(r, 0);
    const Index *there = index_of(&r->b, INDEX_ADD, here, var(r, VAR_AHEAD, 0));
    AxisSet inside = 0; // outer axes inside of this one
    for (int i = r->loop->nouter - 1; i >= 0; i--) {
      const int axis = r->loop->order[i];
      if (a->stride[axis])
        distance = index_of(&r->b, INDEX_ADD, distance,
                            index_apart(&r->b, there, here, axes_nelems_index(r, inside),
                                        axes_nelems_index(r, 1U << axis), stride_of(r, a, axis)));
      inside |= 1U << axis;
    }
    add(r, (LoopNode){.kind = NODE_INDEX, .var = {VAR_DISTANCE, id}, .value = distance});
  }
}

static bool is_vector_root(const Recipe *r, const Root *root, int sweep) {
  return is_in_sweep(r, root, sweep) && (is_vector_sum(r, root) || root_level(r, root) == LEVEL_VECTOR);
}

// The one sum in memory of a sweep where it is the last that is added up: that and its store stand under one condition.
static const Root *find_lone_sum(const Recipe *r, int sweep) {
  const Root *last = NULL;
  size_t count = 0;
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    count += root->sweep == sweep && is_array_sum(r, root);
    if (is_vector_root(r, root, sweep)) last = root;
  }
  const bool is_lone = last && count == 1 && is_array_sum(r, last) && !has_rows(r) && !r->loop->is_across;
  return is_lone && may_be_unwanted(r, last->access) ? last : NULL;
}

static void make_vectors(Recipe *r, bool by_row) {
  for (ExprId id = 1; id < r->k->nexprs; id++)
    if (is_made(r, id) && expr_level(r, id) == LEVEL_VECTOR && varies_by_row(r, r->k->exprs[id].axes) == by_row)
      make_vector(r, id);
}

// What all rows share, then each row.
void build_body(Recipe *r, int sweep) {
  need_sweep(r, sweep);
  make_vectors(r, false);
  move_array_sums(r, sweep, NODE_HOLD);
  open_rows(r);
  if (r->loop->prefetch && !r->is_tail && !r->loop->is_across) fetch_rows(r, sweep);
  if (fetches_ahead(r) && !r->is_tail) fetch_run(r);
  make_vectors(r, true);
  const Root *lone = find_lone_sum(r, sweep);
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (is_vector_root(r, &r->loop->roots[i], sweep) && &r->loop->roots[i] != lone)
      build_vector_root(r, &r->loop->roots[i]);
  close_rows(r);
  if (lone) {
    open_body(r, add(r, (LoopNode){.kind = NODE_IF, .flag = FLAG_HAS_PART, .access = lone->access}));
    r->is_part_tested = true;
    build_vector_root(r, lone);
  }
  move_array_sums(r, sweep, NODE_RELEASE);
  r->is_part_tested = false;
  if (lone) close_body(r);
}

// The elements before the first whole cache line of what the sweep streams.
static void build_peel(Recipe *r, int sweep) {
  open_body(r, add(r, (LoopNode){.kind = NODE_GROUP}));
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (root->sweep != sweep || root->kind != ROOT_STORE) continue;
    r->lane = var(r, VAR_LANE, 0);
    add(r, (LoopNode){.kind = NODE_TO_LINE,
                      .var = {VAR_LANES, 0},
                      .access = root->access,
                      .address = vector_address(r, root->access)});
  }
  open_body(r, add(r, (LoopNode){.kind = NODE_IF, .test = var(r, VAR_LANES, 0)}));
  r->is_tail = true;
  build_body(r, sweep);
  r->is_tail = false;
  close_body(r);
  add(r, (LoopNode){.kind = NODE_ADVANCE, .var = {VAR_LANE, 0}, .value = var(r, VAR_LANES, 0)});
  close_body(r);
}

static LoopNode whole_steps(Recipe *r, int64_t step, const Index *to) {
  return (LoopNode){.kind = NODE_FOR, .var = {VAR_LANE, 0}, .end = to, .step = number(r, step), .is_whole = true};
}

void build_vector_loops(Recipe *r, int sweep, const Index *from, const Index *to, bool has_sums) {
  const int ways = has_sums ? r->loop->accumulators : 1;
  const bool is_peeled = r->loop->is_peeled && sweep == r->loop->nsweeps - 1;
  const Index *lane = var(r, VAR_LANE, 0);
  add(r, (LoopNode){.kind = NODE_COUNTER, .var = {VAR_LANE, 0}, .value = from});
  if (is_peeled) build_peel(r, sweep);
  if (ways > 1) {
    open_body(r, add(r, whole_steps(r, (int64_t)ways * LANES, to)));
    open_body(r, add(r, (LoopNode){.kind = NODE_FOR,
                                   .var = {VAR_WAY, 0},
                                   .value = number(r, 0),
                                   .end = number(r, ways),
                                   .step = number(r, 1),
                                   .is_unrolled = true}));
    const Index *of_way = index_of(&r->b, INDEX_MULTIPLY, var(r, VAR_WAY, 0), number(r, LANES));
    add(r, (LoopNode){.kind = NODE_INDEX, .var = {VAR_WAY_LANE, 0}, .value = index_of(&r->b, INDEX_ADD, lane, of_way)});
    r->lane = var(r, VAR_WAY_LANE, 0);
    r->part = PART_WAY;
    build_body(r, sweep);
    close_body(r);
    close_body(r);
  }
  r->lane = lane;
  r->part = has_rows(r) ? PART_ROW : r->loop->accumulators > 1 ? PART_FIRST : PART_ONLY;
  open_body(r, add(r, whole_steps(r, LANES, to)));
  build_body(r, sweep);
  close_body(r);
  const Axis *axis = &r->k->axes[vector_axis(r)];
  if (!is_peeled && r->loop->tile % LANES == 0 && kernel_factor(r->k, axis->extent, axis->powers) % LANES == 0) return;
  open_body(r, add(r, (LoopNode){.kind = NODE_IF, .test = index_of(&r->b, INDEX_LESS, lane, to)}));
  add(r, (LoopNode){.kind = NODE_INDEX, .var = {VAR_LANES, 0}, .value = index_of(&r->b, INDEX_SUBTRACT, to, lane)});
  r->is_tail = true;
  build_body(r, sweep);
  r->is_tail = false;
  close_body(r);
}
