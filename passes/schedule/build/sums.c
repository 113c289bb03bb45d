// Builds the initialisation and the final reduction of sums over inner axes. To keep sequences of f32 additions
// short, a sum may be cut into segments: each segment's sum is added to a total.
#include "passes/schedule/build/nest_builder.h"

// The number of levels inside of which the sum begins and ends.
static int sum_depth(const NestBuilder *r, ExprId id) {
  int depth = r->nest.inside;
  while (depth < r->nest.nlevels && !(nest_level_axes(r->loop, &r->nest.levels[depth]) & r->k->exprs[id].reduced))
    depth++;
  return depth;
}

// A sum of scalars, which are computed outside of the level of lanes.
static bool is_scalar_sum(const NestBuilder *r, const Root *root) {
  return !has_body(r, root_depth(r, root));
}

// A sum over inner axes that the sweep adds vectors to.
static bool is_lane_sum(const NestBuilder *r, const Root *root) {
  return root->kind == ROOT_REDUCE_INNER && root->sweep == r->sweep && !is_scalar_sum(r, root);
}

bool has_lane_sums(const NestBuilder *r) {
  bool has_any = false;
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) has_any |= is_lane_sum(r, root);
  return has_any;
}

Segments sweep_segments(const NestBuilder *r) {
  for (const Root *root = r->loop->roots; root < roots_end(r); root++)
    if (is_lane_sum(r, root) && sum_order_has_segments(root->order)) return root->order->segments;
  return (Segments){0};
}

static bool has_own_lanes(const NestBuilder *r, ExprId sum) { // each lane has a sum of its own
  return !(r->k->exprs[sum].reduced >> loop_lane_axis(r->loop) & 1);
}

static void begin_total(NestBuilder *r, ExprId id, int count, bool is_vector) {
  add(r, (LoopNode){
             .kind = NODE_BUFFER, .to = {.buffer = BUFFER_TOTAL, .of = id}, .is_vector = is_vector, .count = count});
}

static void begin_accumulator(NestBuilder *r, ExprId id) {
  const int elements = tree_element_sums(r->t, id);
  add(r, (LoopNode){.kind = NODE_BUFFER,
                    .to = {.buffer = BUFFER_SUM, .of = id},
                    .is_vector = true,
                    .count = elements ? elements : r->loop->rows});
}

// A sum over inner axes that begins and ends at this depth.
static bool is_sum_at(const NestBuilder *r, const Root *root, int depth) {
  return root->kind == ROOT_REDUCE_INNER && root->sweep == r->sweep && sum_depth(r, root->expr) == depth;
}

void begin_sums(NestBuilder *r, int depth) {
  for (const Root *root = r->loop->roots; root < roots_end(r); root++)
    if (!is_sum_at(r, root, depth)) continue;
    else if (is_scalar_sum(r, root)) begin_total(r, root->expr, 1, false);
    else if (sum_order_has_segments(root->order))
      begin_total(r, root->expr, r->loop->rows, has_own_lanes(r, root->expr));
    else begin_accumulator(r, root->expr);
}

void begin_segments(NestBuilder *r) {
  for (const Root *root = r->loop->roots; root < roots_end(r); root++)
    if (is_lane_sum(r, root) && sum_order_has_segments(root->order)) begin_accumulator(r, root->expr);
}

void end_segments(NestBuilder *r) {
  const Index *item = has_rows(r) ? &item_of_row : NULL;
  for (const Root *root = r->loop->roots; root < roots_end(r); root++)
    if (is_lane_sum(r, root) && sum_order_has_segments(root->order))
      add(r, (LoopNode){.kind = NODE_UPDATE,
                        .to = {.buffer = BUFFER_TOTAL, .of = root->expr, .item = item},
                        .from = {.buffer = BUFFER_SUM, .of = root->expr, .item = item},
                        .is_vector = has_own_lanes(r, root->expr)});
}

static void end_sum(NestBuilder *r, const Root *root) {
  const Level level = expr_level(r, root->expr);
  const bool has_total = sum_order_has_segments(root->order);
  const bool differs = level == LEVEL_ROW || level == LEVEL_VECTOR; // else the sum is the same in all rows
  const Index *item = !has_rows(r) ? NULL : differs ? &item_of_row : number(r, 0);
  add(r, (LoopNode){.kind = NODE_LET,
                    .from = {.buffer = has_total ? BUFFER_TOTAL : BUFFER_SUM, .of = root->expr, .item = item},
                    .expr = root->expr,
                    .is_vector = level == LEVEL_VECTOR || loop_has(r->loop, LOOP_ROW_LANES)});
}

void end_sums(NestBuilder *r, int depth) {
  for (const Root *root = r->loop->roots; root < roots_end(r); root++)
    if (!is_sum_at(r, root, depth)) continue;
    else if (is_scalar_sum(r, root))
      add(r, (LoopNode){.kind = NODE_LET, .from = {.buffer = BUFFER_TOTAL, .of = root->expr}, .expr = root->expr});
    else end_sum(r, root);
}
