// Copies of rows, and sums of lanes, for rows in lanes: a vector holds one element of each of LANES rows, so that sums
// over a row need no reduction over lanes.
//
//   for o in the block by LANES                     a micro-kernel: lane l computes row o + l
//     rows_x = x[o .. o + LANES][:], transposed     NODE_MOVE; of each column if columns are dense
//     for each sweep
//       for each element i of a row
//         vector x = rows_x[i]; compute; acc += x; rows_y[i] = y
//       y[o .. o + LANES][:] = rows_y, transposed   NODE_MOVE
//   if o < end: tail micro-kernel                   fewer than LANES rows: strided loads, no copies
//
// A loop that only copies rows into panels has a single NODE_MOVE, for rows of any length.
#include "passes/schedule/build/nest_builder.h"

void copy_into_panel(NestBuilder *r) {
  const Root *root = &r->loop->roots[0];
  const AccessId from = r->k->exprs[root->expr].access;
  add(r, (LoopNode){.kind = NODE_MOVE,
                    .to = {.buffer = BUFFER_ROW, .of = root->access},
                    .from = {.buffer = BUFFER_ROW, .of = from},
                    .expr = root->expr,
                    .step = stride_of(r, &r->k->accesses[from], loop_lane_axis(r->loop)),
                    .count = r->k->axes[loop_vector_axis(r->loop)].extent});
}

void store_rows(NestBuilder *r) {
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) {
    if (root->kind != ROOT_STORE || root->sweep != r->sweep || !is_transposed(r, root->access)) continue;
    const bool is_open = open_wanted(r, root->access);
    add(r, (LoopNode){.kind = NODE_MOVE,
                      .to = {.buffer = BUFFER_ROW, .of = root->access},
                      .from = {.buffer = BUFFER_COPY, .of = root->access},
                      .step = stride_of(r, &r->k->accesses[root->access], r->loop->axes[0]),
                      .count = r->k->axes[vector_axis(r)].extent});
    if (is_open) close_body(r);
  }
}

// Rows in lanes are neighbours: an element of all of them is a vector in memory, which is copied as it is.
static void copy_column(NestBuilder *r, AccessId id, int64_t width) {
  const Access *a = &r->k->accesses[id];
  const Index *lane = var(r, VAR_LANE, 0);
  const Index *from = times(r, lane, stride_of(r, a, r->loop->axes[r->loop->nouter]));
  open_for(r, VAR_LANE, number(r, 0), number(r, width), number(r, 1));
  add(r, (LoopNode){.kind = NODE_MOVE,
                    .to = {.buffer = BUFFER_COPY, .of = id, .index = times(r, lane, number(r, LANES))},
                    .from = {.buffer = BUFFER_ROW, .of = id, .index = from},
                    .step = number(r, 1),
                    .is_vector = true});
  close_body(r);
}

void copy_rows(NestBuilder *r, AccessId id, bool is_written) {
  const bool is_copied = copies_columns(r, id) && !is_written;
  if (loop_has(r->loop, LOOP_ROW_COPY) || (!is_transposed(r, id) && !is_copied)) return;
  const int64_t width = r->k->axes[r->loop->axes[r->loop->nouter]].extent;
  const Address copy = {.buffer = BUFFER_COPY, .of = id};
  add(r, (LoopNode){.kind = NODE_BUFFER, .to = copy, .count = width * LANES});
  if (is_copied) copy_column(r, id, width);
  else if (!is_written)
    add(r, (LoopNode){.kind = NODE_MOVE,
                      .to = copy,
                      .from = {.buffer = BUFFER_ROW, .of = id},
                      .step = stride_of(r, &r->k->accesses[id], r->loop->axes[0]),
                      .count = width});
}
