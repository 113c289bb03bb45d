// Loops are looked at from the last to the first: who reads what a loop leaves works on with it, so a loop works for
// all outputs that its readers work for.
#include "backends/codegen/flow.h"

#include "ir/overwrite.h"

bool output_is_copy(const Graph *g, size_t i) {
  const Value *v = g->outputs[i];
  if (!v->producer) return true;
  for (size_t k = 0; k < i; k++)
    if (g->outputs[k] == v) return true;
  return false;
}

static bool is_inner_result(const Loop *loop, ExprId id) {
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_REDUCE_INNER && loop->roots[i].expr == id) return true;
  return false;
}

// Marks the expressions that one needs to be known; what a sweep has added up is.
static void mark(const Kernel *k, const Loop *loop, ExprId id, bool is_operand, bool *is_marked) {
  if (!id || (!is_operand && is_inner_result(loop, id)) || is_marked[id]) return;
  is_marked[id] = true;
  for (int a = 0; a < 3; a++) mark(k, loop, k->exprs[id].args[a], false, is_marked);
}

// The expressions that the roots of sweep `first` and later need. NULL: out of memory.
static bool *mark_from(const Kernel *k, const Loop *loop, int first, Arena *arena) {
  bool *is_marked = ARENA_ARRAY(arena, bool, k->nexprs);
  for (size_t i = 0; is_marked && i < loop->nroots; i++)
    if (loop->roots[i].sweep >= first)
      mark(k, loop, loop->roots[i].expr, loop->roots[i].kind == ROOT_REDUCE_INNER, is_marked);
  return is_marked;
}

static bool is_memory_access(const Expr *e) {
  return e->op == EXPR_LOAD || e->op == EXPR_COMBINE;
}

// Whether a marked expression reads what `stored`, of kernel `maker`, writes.
static bool reads(const Kernel *k, const bool *is_marked, const Kernel *maker, const Access *stored) {
  for (ExprId id = 1; id < k->nexprs; id++) {
    if (!is_marked[id] || !is_memory_access(&k->exprs[id])) continue;
    const Access *a = &k->accesses[k->exprs[id].access];
    if (stored->value ? a->value == stored->value : k == maker && !a->value && a->temporary == stored->temporary)
      return true;
  }
  return false;
}

// The outputs that a root of a loop works for: those of its own value where nobody else reads that, or all of the
// loop's.
static bool root_serves(const Flow *f, const Kernel *k, size_t loop, const Root *root, size_t output) {
  const Graph *g = f->program->graph;
  const Value *v = root->kind == ROOT_STORE ? k->accesses[root->access].value : NULL;
  size_t count = 0;
  for (size_t o = 0; v && o < g->noutputs; o++) count += g->outputs[o] == v;
  return count == 1 && !f->is_read_again[v->index] ? g->outputs[output] == v : f->serves[loop][output];
}

// A kernel's temporary works for what those roots of a later loop work for that read it.
static bool add_temporary_readers(Flow *f, size_t kernel, uint32_t temporary, size_t reader, Arena *arena) {
  const Kernel *k = f->program->kernels[kernel];
  const Loop *loop = &k->loops[reader];
  const Access stored = {.temporary = temporary};
  for (size_t r = 0; r < loop->nroots; r++) {
    bool *is_marked = ARENA_ARRAY(arena, bool, k->nexprs);
    if (!is_marked) return false;
    mark(k, loop, loop->roots[r].expr, loop->roots[r].kind == ROOT_REDUCE_INNER, is_marked);
    if (!reads(k, is_marked, k, &stored)) continue;
    for (size_t o = 0; o < f->program->graph->noutputs; o++)
      f->temporary_serves[f->first_temporary[kernel] + temporary][o] |=
          root_serves(f, k, f->first_loop[kernel] + reader, &loop->roots[r], o);
  }
  return true;
}

static bool add_readers(Flow *f, size_t kernel, size_t loop, bool **is_marked, Arena *arena) {
  const Program *p = f->program;
  const Kernel *maker = p->kernels[kernel];
  const Loop *own = &maker->loops[loop];
  size_t at = f->first_loop[kernel] + loop;
  for (size_t r = 0; r < own->nroots; r++) {
    if (own->roots[r].kind == ROOT_REDUCE_INNER) continue;
    const Access *stored = &maker->accesses[own->roots[r].access];
    for (size_t o = 0; o < p->graph->noutputs; o++)
      if (stored->value && p->graph->outputs[o] == stored->value) f->serves[at][o] = true;
    for (size_t i = kernel; i < p->nkernels; i++)
      for (size_t l = i == kernel ? loop + 1 : 0; l < p->kernels[i]->nloops; l++) {
        size_t reader = f->first_loop[i] + l;
        if (!reads(p->kernels[i], is_marked[reader], maker, stored)) continue;
        if (stored->value) f->is_read_again[stored->value->index] = true;
        for (size_t o = 0; o < p->graph->noutputs; o++) f->serves[at][o] |= f->serves[reader][o];
        if (!stored->value && !add_temporary_readers(f, kernel, stored->temporary, l, arena)) return false;
      }
  }
  return true;
}

bool flow_find(Flow *f, const Program *p, Arena *arena) {
  const Graph *g = p->graph;
  size_t nloops = 0, ntemporaries = 0, at = 0;
  *f = (Flow){.program = p, .first_loop = ARENA_ARRAY(arena, size_t, p->nkernels + 1)};
  f->first_temporary = ARENA_ARRAY(arena, size_t, p->nkernels + 1);
  f->is_read_again = ARENA_ARRAY(arena, bool, g->nvalues + 1);
  if (!f->first_loop || !f->first_temporary || !f->is_read_again) return false;
  for (size_t i = 0; i < p->nkernels; i++) {
    f->first_loop[i] = nloops;
    f->first_temporary[i] = ntemporaries;
    nloops += p->kernels[i]->nloops;
    ntemporaries += p->kernels[i]->ntemporaries;
  }
  f->ntemporaries = ntemporaries;
  f->serves = ARENA_ARRAY(arena, bool *, nloops + 1);
  bool **is_marked = ARENA_ARRAY(arena, bool *, nloops + 1);
  f->temporary_serves = ARENA_ARRAY(arena, bool *, ntemporaries + 1);
  if (!f->serves || !f->temporary_serves || !is_marked) return false;
  for (size_t t = 0; t < ntemporaries; t++)
    if (!(f->temporary_serves[t] = ARENA_ARRAY(arena, bool, g->noutputs + 1))) return false;
  for (size_t i = 0; i < p->nkernels; i++)
    for (size_t l = 0; l < p->kernels[i]->nloops; l++, at++) {
      f->serves[at] = ARENA_ARRAY(arena, bool, g->noutputs + 1);
      is_marked[at] = mark_from(p->kernels[i], &p->kernels[i]->loops[l], 0, arena);
      if (!f->serves[at] || !is_marked[at]) return false;
    }
  for (size_t i = p->nkernels; i-- > 0;)
    for (size_t l = p->kernels[i]->nloops; l-- > 0;)
      if (!add_readers(f, i, l, is_marked, arena)) return false;
  for (size_t o = 0; o < g->noutputs; o++)
    if (output_is_copy(g, o)) f->is_read_again[g->outputs[o]->index] = true;
  return true;
}

// In place

static bool is_alike(const Value *a, const Value *b) {
  bool is_alike = a->type == b->type && a->shape.rank == b->shape.rank;
  for (int i = 0; is_alike && i < a->shape.rank; i++) is_alike = extent_equals(a->shape.extent[i], b->shape.extent[i]);
  return is_alike;
}

bool flow_allows_in_place(const Flow *f, size_t output, size_t input, Arena *arena) {
  const Program *p = f->program;
  const Value *out = p->graph->outputs[output], *in = p->graph->inputs[input];
  bool is_stored = false;
  if (output_is_copy(p->graph, output) || f->is_read_again[in->index] || in->is_output || !is_alike(out, in))
    return false;
  for (size_t i = 0; i < p->nkernels; i++) {
    bool *is_needed = ARENA_ARRAY(arena, bool, p->kernels[i]->nexprs);
    if (!is_needed || !kernel_may_overwrite(p->kernels[i], in, out, &is_stored, is_needed)) return false;
  }
  return is_stored;
}
