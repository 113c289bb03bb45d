// Builds the loop over vectors of a sweep, and its body.
#include "passes/schedule/recipe.h"

void update_vector(Recipe *r, const Root *root) {
  const bool is_in_register = root->kind == ROOT_REDUCE_OUTER;
  const bool has_lane_sums = !is_in_register && !(r->k->exprs[root->expr].reduced >> vector_axis(r) & 1);
  add(r, (LoopNode){.kind = NODE_UPDATE,
                    .sum = is_in_register ? SUM_PARTIAL_REGISTER : SUM_ACCUMULATOR,
                    .accumulator = is_in_register ? ACCUMULATOR_ONLY : r->accumulator,
                    .expr = is_in_register ? root_operand(r, root) : root->expr,
                    .is_vector = true,
                    .has_fewer_lanes = r->is_tail && is_in_register,
                    .uses_all_lanes = has_lane_sums,
                    .is_fused = root->is_fused,
                    .flag = is_in_register ? partial_flag(r, root->access) : FLAG_NONE,
                    .access = root->access});
}

void build_vector_root(Recipe *r, const Root *root) {
  if (root->kind == ROOT_STORE) store_vector(r, root);
  else update_vector(r, root);
}

// Loads the vectors of partial sums that the sweep adds to into registers, or stores them back.
void move_array_sums(Recipe *r, int sweep, LoopNodeKind kind) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (root->sweep != sweep || !is_array_sum(r, root)) continue;
    const Access *a = &r->k->accesses[root->access];
    const bool are_lanes = r->info->rows_in_lanes;
    const Index *lane = are_lanes ? times(r, r->lane, number(r, LANES)) : r->lane;
    const Index *middle = add_terms(r, a, loop_inner_axes(r->loop) & ~(1U << vector_axis(r)), NULL);
    const bool may_be_null = may_be_unwanted(r, root->access) && !are_lanes;
    add(r, (LoopNode){.kind = kind,
                      .access = root->access,
                      .flag = kind == NODE_STORE_PARTIAL ? partial_flag(r, root->access)
                              : may_be_null              ? FLAG_HAS_PARTIAL
                                                         : FLAG_NONE,
                      .address = {.base = BASE_PARTIAL, .access = root->access, .index = plus(r, middle, lane)}});
  }
}

static bool is_vector_root(const Recipe *r, const Root *root, int sweep) {
  return is_in_sweep(r, root, sweep) && (is_vector_sum(r, root) || root_level(r, root) == LEVEL_VECTOR);
}

// The only array of partial sums of a sweep, if its update comes last: then one test of its flag guards both the update
// and the store.
static const Root *find_lone_sum(const Recipe *r, int sweep) {
  const Root *last = NULL;
  size_t count = 0;
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    count += root->sweep == sweep && is_array_sum(r, root);
    if (is_vector_root(r, root, sweep)) last = root;
  }
  const bool is_lone = last && count == 1 && is_array_sum(r, last) && !has_rows(r) && !r->info->rows_in_lanes;
  return is_lone && may_be_unwanted(r, last->access) ? last : NULL;
}

static void make_vectors(Recipe *r, bool by_row) {
  for (ExprId id = 1; id < r->k->nexprs; id++)
    if (is_made(r, id) && expr_level(r, id) == LEVEL_VECTOR && varies_by_row(r, r->k->exprs[id].axes) == by_row)
      make_vector(r, id);
}

// First the vectors that are the same for all rows, then a loop over rows.
void build_body(Recipe *r, int sweep) {
  need_sweep(r, sweep);
  make_vectors(r, false);
  move_array_sums(r, sweep, NODE_LOAD_PARTIAL);
  open_rows(r);
  find_bounded_indices(r);
  make_vectors(r, true);
  const Root *lone = find_lone_sum(r, sweep);
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (is_vector_root(r, &r->loop->roots[i], sweep) && &r->loop->roots[i] != lone)
      build_vector_root(r, &r->loop->roots[i]);
  close_rows(r);
  if (lone) {
    open_body(r, add(r, (LoopNode){.kind = NODE_IF, .flag = FLAG_HAS_PARTIAL, .access = lone->access}));
    r->is_partial_tested = true;
    build_vector_root(r, lone);
  }
  move_array_sums(r, sweep, NODE_STORE_PARTIAL);
  r->is_partial_tested = false;
  if (lone) close_body(r);
}

// The loop over vectors from one index to another. Until schedule_split_vectors runs, the loop uses only the first
// accumulator. has_sums: it will be split into groups with an accumulator for each vector.
void build_vector_loop(Recipe *r, int sweep, const Index *from, const Index *to, bool has_sums) {
  const Loop *loop = r->loop;
  const Axis *axis = &r->k->axes[vector_axis(r)];
  LoopNode node = {.kind = NODE_FOR,
                   .var = loop_var(VAR_LANE),
                   .value = from,
                   .end = to,
                   .step = number(r, LANES),
                   .is_vectors = true,
                   .count = has_sums ? loop->accumulators : 1,
                   .sweep = sweep,
                   .is_peeled = loop->is_peeled && sweep == loop->nsweeps - 1};
  for (size_t i = 0; node.is_peeled && i < loop->nroots; i++)
    if (loop->roots[i].sweep == sweep && loop->roots[i].kind == ROOT_STORE) node.peeled = loop->roots[i].access;
  node.has_tail =
      node.is_peeled || loop->tile % LANES != 0 || kernel_factor(r->k, axis->extent, axis->monomial) % LANES != 0;
  r->lane = var(r, VAR_LANE, 0);
  r->accumulator = has_rows(r) ? ACCUMULATOR_OF_ROW : loop->accumulators > 1 ? ACCUMULATOR_FIRST : ACCUMULATOR_ONLY;
  open_body(r, add(r, node));
  build_body(r, sweep);
  close_body(r);
}
