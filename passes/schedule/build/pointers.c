// Row pointers.
#include "passes/schedule/build/nest_builder.h"

bool has_vectors(const NestBuilder *r) {
  return axes_nelems(r->k, loop_inner_axes(r->loop)) != 0;
}

bool has_row_pointer(const NestBuilder *r, Level level, AccessId access) {
  return level == LEVEL_VECTOR || (level == LEVEL_MIDDLE && is_row_pointer(r, access));
}

void for_each_pointer(NestBuilder *r, void (*f)(NestBuilder *, AccessId, bool)) {
  if (!has_vectors(r)) return; // an inner axis has no elements: nothing is loaded or stored
  need_sweep(r, ALL_SWEEPS);
  bool *seen = ARENA_ARRAY(r->b.arena, bool, r->k->naccesses + 1);
  if (!seen) {
    r->b.out_of_memory = true;
    return;
  }
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    const Expr *e = &r->k->exprs[id];
    if (!r->is_needed[id] || !expr_has_access(e) || seen[e->access]) continue;
    if (!has_row_pointer(r, expr_level(r, id), e->access)) continue;
    if (access_has_conditions(r->k, &r->k->accesses[e->access])) continue; // addressed from the tensor's first element
    seen[e->access] = true;
    f(r, e->access, loop_root(r->loop, ROOT_STORE, e->access));
  }
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) {
    if (root->kind != ROOT_STORE || root_level(r, root) != LEVEL_VECTOR || seen[root->access]) continue;
    seen[root->access] = true;
    f(r, root->access, true);
  }
}

void declare_pointer(NestBuilder *r, AccessId id, bool is_written) {
  (void)is_written;
  const Access *a = &r->k->accesses[id];
  const bool differs_by_row = varies_by_row(r, access_axes(r->k, a));
  if (access_is_own(r->t, id))
    add(r, (LoopNode){.kind = NODE_BUFFER,
                      .to = {.buffer = BUFFER_ROW, .of = id},
                      .count = r->schedule->temporaries[a->temporary].nelems});
  else if (has_rows(r) && differs_by_row)
    add(r, (LoopNode){.kind = NODE_BUFFER, .to = {.buffer = BUFFER_ROW, .of = id}, .count = r->loop->rows});
  else if (!differs_by_row) // else set_pointer declares it, after the row's indices
    add(r, (LoopNode){
               .kind = NODE_BUFFER,
               .to = {.buffer = BUFFER_ROW, .of = id},
               .from = element_address(r, id, shared_axes(r)),
           });
}

void set_pointer(NestBuilder *r, AccessId id, bool is_written) {
  const Access *a = &r->k->accesses[id];
  if (!varies_by_row(r, access_axes(r->k, a))) return;
  const bool may_be_null = is_written && access_has_addresses(a) && is_optional(r, id);
  add(r, (LoopNode){.kind = NODE_BUFFER,
                    .to = {.buffer = BUFFER_ROW, .of = id, .item = has_rows(r) ? &item_of_row : NULL},
                    .from = element_address(r, id, loop_outer_axes(r->loop)),
                    .test = may_be_null ? var(r, VAR_WANTED, id) : NULL});
}
