// Copies of rows, and sums of lanes, for rows in lanes: a vector holds one element of each of LANES rows, so that sums
// over a row need no reduction over lanes.
//
//   for o in the block by LANES                     step: lane l computes row o + l
//     rows_x = x[o .. o + LANES][:], transposed     NODE_LOAD_ROWS; NODE_LOAD_COLUMN if columns are dense
//     for each sweep
//       for each element i of a row
//         vector x = rows_x[i]; compute; acc += x; rows_y[i] = y
//       y[o .. o + LANES][:] = rows_y, transposed   NODE_STORE_ROWS
//   if o < end: tail step                           fewer than LANES rows: strided loads, no copies
//
// A loop that only copies rows into panels has a single node, NODE_COPY_ROWS, for rows of any length.
#include "passes/schedule/nest_builder.h"

void copy_into_panel(NestBuilder *r) {
  const Root *root = &r->loop->roots[0];
  const AccessId from = r->k->exprs[root->expr].access;
  add(r, (LoopNode){.kind = NODE_COPY_ROWS,
                    .access = from,
                    .expr = root->expr,
                    .address = {.base = BASE_POINTER, .access = root->access},
                    .step = stride_of(r, &r->k->accesses[from], loop_lane_axis(r->loop)),
                    .nelems = r->k->axes[loop_vector_axis(r->loop)].extent});
}

void store_rows(NestBuilder *r) {
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) {
    if (root->kind != ROOT_STORE || root->sweep != r->sweep || !is_transposed(r, root->access)) continue;
    const bool is_open = open_wanted(r, root->access);
    add(r, (LoopNode){.kind = NODE_STORE_ROWS,
                      .access = root->access,
                      .step = stride_of(r, &r->k->accesses[root->access], r->loop->axes[0]),
                      .nelems = r->k->axes[vector_axis(r)].extent});
    if (is_open) close_body(r);
  }
}

static void copy_column(NestBuilder *r, AccessId id, int64_t width) {
  const Access *a = &r->k->accesses[id];
  const Index *lane = var(r, VAR_LANE, 0);
  const Index *from = times(r, lane, stride_of(r, a, r->loop->axes[r->loop->nouter]));
  open_for(r, VAR_LANE, number(r, 0), number(r, width), number(r, 1));
  add(r, (LoopNode){.kind = NODE_LOAD_COLUMN,
                    .access = id,
                    .value = times(r, lane, number(r, LANES)),
                    .address = {.base = BASE_POINTER, .access = id, .index = from}});
  close_body(r);
}

void copy_rows(NestBuilder *r, AccessId id, bool is_written) {
  const bool is_copied = copies_columns(r, id) && !is_written;
  if (loop_has(r->loop, LOOP_ROW_COPY) || (!is_transposed(r, id) && !is_copied)) return;
  const int64_t width = r->k->axes[r->loop->axes[r->loop->nouter]].extent;
  add(r, (LoopNode){.kind = NODE_LOCAL, .local = LOCAL_COPY, .access = id, .nelems = width * LANES});
  if (is_copied) copy_column(r, id, width);
  else if (!is_written)
    add(r, (LoopNode){.kind = NODE_LOAD_ROWS,
                      .access = id,
                      .step = stride_of(r, &r->k->accesses[id], r->loop->axes[0]),
                      .nelems = width});
}
