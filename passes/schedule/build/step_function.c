// Builds the step function, which computes one outer iteration, or several rows, of a loop. Flags, indices, pointers
// and arrays of spilled vectors come first, then sections (sections.c: nodes outside of sweeps) and sweeps in turn.
#include "passes/schedule/build/nest_builder.h"

static void declare_flags(NestBuilder *r) {
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) {
    if (root->kind == ROOT_STORE) declare_wanted(r, root->access);
  }
}

void build_step(NestBuilder *r, LoopNode **step) {
  tree_open(&r->b, step);
  need_all(r);
  declare_flags(r);
  find_indices(r, mentioned_shared_axes(r), false);
  for_each_pointer(r, declare_pointer);
  for (int i = 0; i < r->loop->nspills; i++)
    add(r, (LoopNode){.kind = NODE_BUFFER,
                      .to = {.buffer = BUFFER_SPILL, .of = r->loop->spills[i].expr},
                      .count = loop_row_nelems(r->k, r->loop) *
                               (loop_has(r->loop, LOOP_ROW_LANES) ? LANES : r->loop->rows)});
  for (int sweep = 0; sweep <= r->loop->nsweeps; sweep++) {
    build_section(r, sweep);
    if (sweep < r->loop->nsweeps) build_sweep(r, sweep);
  }
  tree_close(&r->b);
}
