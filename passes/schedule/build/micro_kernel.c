// Builds the micro-kernel, which computes one outer iteration, or several rows, of a loop. Flags, indices, pointers
// and arrays of spilled vectors come first, then hoisted code and sweeps in turn.
#include "passes/schedule/build/nest_builder.h"

void build_micro_kernel(NestBuilder *r, LoopNode **nodes) {
  tree_open(&r->b, nodes);
  need_sweep(r, ALL_SWEEPS);
  for (const Root *root = r->loop->roots; root < roots_end(r); root++)
    if (root->kind == ROOT_STORE) declare_wanted(r, root->access);
  find_indices(r, mentioned_shared_axes(r), false);
  for_each_pointer(r, declare_pointer);
  for (int i = 0; i < r->loop->nspills; i++)
    add(r, (LoopNode){.kind = NODE_BUFFER,
                      .to = {.buffer = BUFFER_SPILL, .of = r->loop->spills[i].expr},
                      .count = loop_row_nelems(r->k, r->loop) *
                               (loop_has(r->loop, LOOP_ROW_LANES) ? LANES : r->loop->rows)});
  for (int sweep = 0; sweep <= r->loop->nsweeps; sweep++) {
    build_hoisted(r, sweep);
    if (sweep < r->loop->nsweeps) build_sweep(r, sweep);
  }
  tree_close(&r->b);
}
