// Walks the loops in order: loops before the store may read the source anywhere, loops after it may not read the
// source.
#include "ir/kernel/overwrite.h"

#include "ir/kernel/needed.h"
#include "ir/kernel/scatter.h"

#include <string.h>

// Marks the expressions that the sweeps first .. last compute or load. A sum that an earlier sweep finishes is marked
// without its operand.
static void mark_sweeps(const Kernel *k, const Loop *loop, int first, int last, bool *is_needed) {
  memset(is_needed, 0, k->nexprs * sizeof *is_needed);
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].sweep >= first && loop->roots[i].sweep <= last)
      loop_mark_root(k, loop, &loop->roots[i], is_needed);
}

static bool reads(const Kernel *k, const bool *is_needed, const Value *v) {
  for (ExprId id = 1; id < k->nexprs; id++)
    if (is_needed[id] && k->exprs[id].op == EXPR_LOAD && k->accesses[k->exprs[id].access].value == v) return true;
  return false;
}

// Whether all needed loads of the value have the offset and strides of `stored`.
static bool reads_as_stored(const Kernel *k, const bool *is_needed, const Value *v, const Access *stored) {
  for (ExprId id = 1; id < k->nexprs; id++) {
    const Expr *e = &k->exprs[id];
    if (!is_needed[id] || e->op != EXPR_LOAD || k->accesses[e->access].value != v) continue;
    const Access *a = &k->accesses[e->access];
    bool is_at_same_element =
        !e->args[0] && !a->nbounds && a->offset == stored->offset && a->offset_monomial == stored->offset_monomial;
    if (!is_at_same_element || !access_strides_equal(a, stored)) return false;
  }
  return true;
}

// Whether each iteration of the loop accesses an element that no other iteration accesses: all axes have a stride. With
// sums in lanes, the middle axes count as one iteration, as sums end before results are stored. (A scatter stores zeros
// first.)
static bool is_one_to_one(const Kernel *k, const Loop *loop, const Access *a) {
  AxisSet axes = loop_outer_axes(loop) | loop_inner_axes(loop);
  if (loop_sums_in_lanes(loop)) axes &= loop_outer_axes(loop) | 1U << loop_vector_axis(loop);
  for (int i = 0; i < k->naxes; i++)
    if (axes >> i & 1 && (k->axes[i].extent > 1 || k->axes[i].monomial) && !a->stride[i]) return false;
  return true;
}

static bool loop_may_overwrite(const Kernel *k, const Loop *loop, const Root *store, const Value *source,
                               bool *is_needed) {
  const Access *stored = &k->accesses[store->access];
  mark_sweeps(k, loop, store->sweep + 1, loop->nsweeps, is_needed);
  if (reads(k, is_needed, source)) return false;
  mark_sweeps(k, loop, 0, store->sweep, is_needed);
  return !reads(k, is_needed, source) ||
         (!kernel_is_scatter(k) && is_one_to_one(k, loop, stored) && reads_as_stored(k, is_needed, source, stored));
}

static bool loop_reads(const Kernel *k, const Loop *loop, const Value *v, bool *is_needed) {
  mark_sweeps(k, loop, 0, loop->nsweeps, is_needed);
  return reads(k, is_needed, v);
}

bool schedule_may_overwrite(const Schedule *s, const Value *source, const Value *target, bool *is_stored,
                            bool *is_needed) {
  const Kernel *k = s->kernel;
  bool has_stored = false; // this kernel has stored elements of target
  for (size_t l = 0; l < s->nloops; l++) {
    const Loop *loop = &s->loops[l];
    const bool had_stored = has_stored;
    for (size_t r = 0; r < loop->nroots; r++) {
      const Root *root = &loop->roots[r];
      if (root->kind != ROOT_STORE || k->accesses[root->access].value != target) continue;
      if (has_stored || !loop_may_overwrite(k, loop, root, source, is_needed)) return false;
      has_stored = true;
    }
    const bool stores = has_stored && !had_stored;
    if (*is_stored && !stores && loop_reads(k, loop, source, is_needed)) return false;
    *is_stored |= has_stored;
  }
  return true;
}
