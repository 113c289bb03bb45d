// Builds the bodies of a sweep, which compute, store and add up vectors (build_nest.c says where).
//
//   vectors that are the same for all rows of the micro-kernel
//   partial sums, into registers
//   for r in 0..rows, unrolled                            outside of the loop over vectors if rows are peeled
//     end the sums of the level; vectors; stores, and additions to sums
//   partial sums, back to memory
#include "passes/schedule/build/nest_builder.h"

// The accumulator that the sum is added to: the row's, or with rows in lanes that of the element.
static const Index *item_of(NestBuilder *r, ExprId sum) {
  if (has_rows(r)) return &item_of_row;
  return tree_element_sums(r->t, sum) ? index_of(&r->b, INDEX_REMAINDER, lane_index(r), number(r, LANES)) : NULL;
}

static void update_vector(NestBuilder *r, const Root *root) {
  const bool is_held = root->kind == ROOT_REDUCE_OUTER;
  const Address held = {.buffer = BUFFER_HELD, .of = root->access};
  const Address sum = {.buffer = BUFFER_SUM, .of = root->expr, .item = item_of(r, root->expr)};
  add(r, (LoopNode){.kind = NODE_UPDATE,
                    .to = is_held ? held : sum,
                    .expr = root_operand(r->k, root),
                    .is_vector = true,
                    .is_fused = root->order && root->order->is_fused,
                    .test = is_held ? partial_test(r, root->access) : NULL});
}

static void build_vector_root(NestBuilder *r, const Root *root) {
  if (root->kind == ROOT_STORE) store_vector(r, root);
  else update_vector(r, root);
}

// Loads the vectors of partial sums that the body adds to into registers, or stores them back.
static void move_array_sums(NestBuilder *r, int depth, bool is_store) {
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) {
    if (!is_root_at(r, root, depth) || !is_array_sum(r, root)) continue;
    const Access *a = &r->k->accesses[root->access];
    const Index *middle = add_terms(r, a, loop_middle_axes(r->loop), NULL);
    const Address held = {.buffer = BUFFER_HELD, .of = root->access};
    const Address part = {.buffer = BUFFER_PARTIALS, .of = root->access, .index = plus(r, middle, lane_index(r))};
    add(r, (LoopNode){.kind = is_store ? NODE_STORE : NODE_BUFFER,
                      .to = is_store ? part : held,
                      .from = is_store ? held : part,
                      .is_vector = true,
                      .test = partial_test(r, root->access)});
  }
}

// The only array of partial sums of a body, if its update comes last: then one test of its flag guards both the update
// and the store.
static const Root *find_lone_sum(const NestBuilder *r, int depth) {
  const Root *last = NULL;
  size_t count = 0;
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) {
    if (!is_root_at(r, root, depth)) continue;
    count += is_array_sum(r, root);
    last = root;
  }
  const bool is_lone = last && count == 1 && is_array_sum(r, last) && !has_rows(r);
  return is_lone && may_be_unwanted(r, last->access) ? last : NULL;
}

static void need_body(NestBuilder *r, int depth) {
  need_none(r);
  for (const Root *root = r->loop->roots; root < roots_end(r); root++)
    if (is_root_at(r, root, depth)) need_root(r, root);
}

// Whether an expression is computed before the loop over rows: it takes nothing of single rows, and needs no sum that
// ends in this body.
static bool is_before_rows(const NestBuilder *r, ExprId id) {
  return !r->is_of_row[id] && r->ready[id] <= r->sweep;
}

static void make_vectors(NestBuilder *r, bool before_rows) {
  for (ExprId id = 1; id < r->k->nexprs; id++)
    if (is_emitted(r, id) && expr_level(r, id) == LEVEL_VECTOR && is_before_rows(r, id) == before_rows)
      make_vector(r, id);
}

static void make_scalars_of_row(NestBuilder *r) {
  for (ExprId id = 1; id < r->k->nexprs; id++)
    if (is_emitted(r, id) && expr_level(r, id) == LEVEL_MIDDLE && has_rows(r) && r->is_of_row[id])
      make_scalar(r, id, ~0U);
}

// What a body does for each row: all but the lone sum.
static void build_row(NestBuilder *r, int depth, const Root *lone) {
  end_sums(r, depth);
  find_bounded_indices(r);
  make_scalars_of_row(r);
  make_vectors(r, false);
  for (const Root *root = r->loop->roots; root < roots_end(r); root++)
    if (is_root_at(r, root, depth) && root != lone) build_vector_root(r, root);
}

void build_body(NestBuilder *r, int depth) {
  need_body(r, depth);
  make_vectors(r, true);
  move_array_sums(r, depth, false);
  const Root *lone = find_lone_sum(r, depth);
  if (!peels_rows(r)) open_rows(r);
  build_row(r, depth, lone);
  if (!peels_rows(r)) close_rows(r);
  if (lone) {
    open_if(r, partial_test(r, lone->access));
    r->is_partial_tested = true;
    build_vector_root(r, lone);
  }
  move_array_sums(r, depth, true);
  r->is_partial_tested = false;
  if (lone) close_body(r);
}
