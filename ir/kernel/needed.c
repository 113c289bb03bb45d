// Which expressions a loop, or one of its sweeps, needs.
#include "ir/kernel/needed.h"

bool loop_finishes(const Loop *loop, ExprId sum, int before) {
  for (size_t i = 0; i < loop->nroots; i++) {
    const Root *root = &loop->roots[i];
    if (root->kind == ROOT_REDUCE_INNER && root->expr == sum && root->sweep < before) return true;
  }
  return false;
}

int loop_spilling_sweep(const Loop *loop, ExprId vector) {
  for (int i = 0; i < loop->nspills; i++)
    if (loop->spills[i].expr == vector) return loop->spills[i].sweep;
  return loop->nsweeps;
}

bool is_available(const Available *f, ExprId id) {
  return id == f->expr || loop_finishes(f->loop, id, f->sums) || loop_spilling_sweep(f->loop, id) < f->vectors;
}

// The recursion is as deep as the DAG: a few dozen levels at most.
void mark_needed(const Available *f, ExprId id, bool *is_needed) {
  if (!id || is_needed[id]) return;
  is_needed[id] = true;
  for (int a = 0; a < 3 && !is_available(f, id); a++) mark_needed(f, f->k->exprs[id].args[a], is_needed);
}

void loop_mark_root(const Kernel *k, const Loop *loop, const Root *root, bool *is_needed) {
  mark_needed(&(Available){.k = k, .loop = loop, .sums = root->sweep}, root->expr, is_needed);
}
