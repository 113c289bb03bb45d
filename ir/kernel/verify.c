// Expressions, then accesses, then loops in their order.
#include "ir/kernel/verify.h"

#include "ir/kernel/uses.h"
#include "ir/support/escape.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct Verifying {
  const Kernel *k;
  Text *why;
  bool *is_needed;   // by ExprId: of the sweep at hand
  bool *is_made;     // by temporary: an earlier sweep or loop has filled it
  uint32_t *nstored; // by AccessId: how many roots store it
} Verifying;

static bool wrong_expr(const Verifying *v, ExprId id, const char *what) {
  text_format(v->why, "expression %u (%s): %s\n", id, expr_info[v->k->exprs[id].op].name, what);
  return false;
}

static const char *name_of(const Kernel *k, const Access *a) {
  return a->value ? a->value->name : a->type == TYPE_NONE ? "a place" : k->temporaries[a->temporary].name;
}

static bool wrong_access(const Verifying *v, AccessId id, const char *what) {
  text_format(v->why, "access %u (", id);
  text_add_user_string(v->why, SINK_TERMINAL, name_of(v->k, &v->k->accesses[id]));
  text_format(v->why, "): %s\n", what);
  return false;
}

static bool wrong_root(const Verifying *v, const Loop *loop, const Root *root, const char *what) {
  text_format(v->why, "loop %zu, sweep %d, expression %u (%s): %s\n", (size_t)(loop - v->k->loops), root->sweep + 1,
              root->expr, expr_info[v->k->exprs[root->expr].op].name, what);
  return false;
}

// Expressions

static bool is_mask_argument(const Expr *e, int argument) {
  return e->op == EXPR_SELECT && argument == 0;
}

static bool verify_arguments(const Verifying *v, ExprId id) {
  const Expr *e = &v->k->exprs[id];
  for (int a = 0; a < 3; a++) {
    if (a >= expr_info[e->op].narguments && !(e->op == EXPR_LOAD && a == 0)) {
      if (e->args[a]) return wrong_expr(v, id, "it has more arguments than the operation takes");
      continue;
    }
    if (!e->args[a] && e->op == EXPR_LOAD) continue;
    if (!e->args[a]) return wrong_expr(v, id, "an argument is missing");
    if (e->args[a] >= id) return wrong_expr(v, id, "an argument does not stand before it");
    if (expr_is_mask(v->k, e->args[a]) != is_mask_argument(e, a))
      return wrong_expr(v, id, "a mask where a number is wanted, or a number where a mask is");
  }
  return true;
}

static bool verify_axes(const Verifying *v, ExprId id) {
  const Kernel *k = v->k;
  const Expr *e = &k->exprs[id];
  AxisSet axes = 0;
  if (e->axes >> k->naxes) return wrong_expr(v, id, "it varies over an axis that the kernel does not have");
  for (int a = 0; a < 3; a++) axes |= e->args[a] ? k->exprs[e->args[a]].axes : 0;
  if (expr_has_access(e)) axes |= access_axes(k, &k->accesses[e->access]);
  if (e->op == EXPR_CONSTANT || e->op == EXPR_COMBINE) return true; // as a tensor in their place would
  if (e->op == EXPR_INDEX) return (e->axes && !(e->axes & (e->axes - 1))) || wrong_expr(v, id, "not along one axis");
  if (expr_is_reduction(e) && (e->reduced & ~axes)) return wrong_expr(v, id, "its operand does not vary over an axis");
  if (expr_is_reduction(e)) axes &= ~e->reduced;
  return e->axes == axes || wrong_expr(v, id, "it does not vary over the axes that its arguments do");
}

static bool verify_exprs(const Verifying *v) {
  const Kernel *k = v->k;
  for (ExprId id = 1; id < k->nexprs; id++) {
    const Expr *e = &k->exprs[id];
    if (e->op == EXPR_NONE || e->op >= EXPR_OP_COUNT) return wrong_expr(v, id, "no operation");
    bool has_access = expr_has_access(e) || e->op == EXPR_COMBINE;
    if (has_access && e->access >= k->naccesses) return wrong_expr(v, id, "no such access");
    if (!verify_arguments(v, id) || !verify_axes(v, id)) return false;
  }
  return true;
}

// Accesses

// Elements of the memory that an access is of: a value's, a temporary's, a block's part of partial sums. Masks: bits.
static int64_t memory_nelems(const Kernel *k, const Access *a) {
  if (a->value) return shape_nelems(&a->value->shape);
  const Temporary *t = &k->temporaries[a->temporary];
  return access_is_mask(a) ? t->nelems * 8 : t->nelems;
}

static int64_t last_element(const Kernel *k, const Access *a) {
  int64_t last = access_is_mask(a) ? a->offset * 8 : a->offset;
  for (int axis = 0; axis < k->naxes; axis++) {
    const bool is_in_bytes = access_is_mask(a) && a->stride[axis] != 1;
    last += (k->axes[axis].extent - 1) * a->stride[axis] * (is_in_bytes ? 8 : 1);
  }
  return last;
}

static bool verify_access(const Verifying *v, AccessId id) {
  const Kernel *k = v->k;
  const Access *a = &k->accesses[id];
  if (a->type == TYPE_NONE) return !a->value || wrong_access(v, id, "a place has a value");
  if (!a->value && a->temporary >= k->ntemporaries) return wrong_access(v, id, "no such temporary");
  if (a->type != (a->value ? a->value->type : k->temporaries[a->temporary].type))
    return wrong_access(v, id, "its type is not its tensor's");
  if (access_axes(k, a) >> k->naxes) return wrong_access(v, id, "it has a stride along an axis that there is not");
  for (int axis = 0; axis < k->naxes; axis++) {
    if (a->stride[axis] < 0) return wrong_access(v, id, "a stride below zero");
    if (!k->axes[axis].extent) return true; // nothing is accessed
  }
  if (a->offset < 0 || last_element(k, a) >= memory_nelems(k, a)) return wrong_access(v, id, "it leaves its tensor");
  return true;
}

// Loads at computed places are bounded by the operator that computes them.
static bool verify_accesses(const Verifying *v, bool *is_computed) {
  const Kernel *k = v->k;
  memset(is_computed, 0, k->naccesses);
  for (ExprId id = 1; id < k->nexprs; id++)
    if (k->exprs[id].op == EXPR_LOAD && k->exprs[id].args[0]) is_computed[k->exprs[id].access] = true;
  for (AccessId id = 0; id < k->naccesses; id++)
    if (!is_computed[id] && !verify_access(v, id)) return false;
  return true;
}

// Whether different indices lie at different elements: with its axes by growing stride, each steps over all before.
static bool is_injective(const Kernel *k, const Access *a) {
  int64_t reached = 0;
  for (AxisSet left = access_axes(k, a); left;) {
    int next = -1;
    for (int axis = 0; axis < k->naxes; axis++)
      if (left >> axis & 1 && (next < 0 || a->stride[axis] < a->stride[next])) next = axis;
    assert(next >= 0); // an axis of the kernel's is left
    left &= ~(1U << next);
    if (!k->axes[next].extent) return true;
    if (k->axes[next].extent == 1) continue;
    if (a->stride[next] <= reached) return false;
    reached += (k->axes[next].extent - 1) * a->stride[next];
  }
  return true;
}

static bool verify_stores(const Verifying *v) {
  const Kernel *k = v->k;
  for (size_t i = 0; i < k->nstores; i++) {
    const Store *s = &k->stores[i];
    if (s->access >= k->naccesses || !s->value || s->value >= k->nexprs) {
      text_format(v->why, "store %zu: no such access or expression\n", i);
      return false;
    }
    const Access *a = &k->accesses[s->access];
    if (!a->value) return wrong_access(v, s->access, "a result that is no value");
    if (!axes_nelems(k, k->exprs[s->value].axes)) continue; // strides of nothing are 0
    if (k->exprs[s->value].axes & ~access_axes(k, a)) return wrong_access(v, s->access, "the result varies over more");
    if (!is_injective(k, a)) return wrong_access(v, s->access, "two indices store one element");
  }
  return true;
}

// Loops

static bool wrong_loop(const Verifying *v, const Loop *loop, const char *what) {
  text_format(v->why, "loop %zu: %s\n", (size_t)(loop - v->k->loops), what);
  return false;
}

static bool verify_order(const Verifying *v, const Loop *loop) {
  AxisSet seen = 0;
  for (int i = 0; i < loop->nouter + loop->ninner; i++) {
    int axis = loop->order[i];
    if (axis < 0 || axis >= v->k->naxes || seen >> axis & 1) {
      return wrong_loop(v, loop, "an axis twice, or none");
    }
    seen |= 1U << axis;
  }
  return true;
}

// Whether what other loops leave for a root is there: the rest the loop's tree shows (ir/loops/verify.h).
static bool verify_needed(const Verifying *v, const Loop *loop, const Root *root) {
  const Kernel *k = v->k;
  memset(v->is_needed, 0, k->nexprs * sizeof *v->is_needed);
  loop_mark_root(k, loop, root, v->is_needed);
  for (ExprId id = 1; id < k->nexprs; id++) {
    const Expr *e = &k->exprs[id];
    if (!v->is_needed[id] || (e->op != EXPR_COMBINE && e->op != EXPR_LOAD)) continue;
    if (e->op == EXPR_COMBINE && e->loop >= (uint32_t)(loop - k->loops))
      return wrong_root(v, loop, root, "partial sums that it needs are not there");
    const Access *a = &k->accesses[e->access];
    if (!a->value && !v->is_made[a->temporary]) return wrong_root(v, loop, root, "a temporary that it reads is empty");
  }
  return true;
}

static bool verify_root(const Verifying *v, const Loop *loop, const Root *root) {
  const Kernel *k = v->k;
  if (root->sweep < 0 || root->sweep >= loop->nsweeps) return wrong_root(v, loop, root, "no such sweep");
  if (!verify_needed(v, loop, root)) return false;
  if (root->kind == ROOT_REDUCE_INNER)
    return expr_is_reduction(&k->exprs[root->expr]) || wrong_root(v, loop, root, "it is no sum");
  if (root->kind == ROOT_STORE) v->nstored[root->access]++;
  return true;
}

// Additions in f32 that an accumulator makes in an iteration of the middle axes; the first takes the rest, too.
static int64_t chain_length(int64_t width, int64_t group) {
  return width / group + width % group / LANES + (width % LANES != 0);
}

// Whether sums of rows go by runs that are short enough for f32. The greatest of numbers is one of them.
static bool verify_row_chains(const Verifying *v, const Loop *loop) {
  const Kernel *k = v->k;
  const Runs *runs = &loop->runs;
  bool is_any = false;
  for (size_t i = 0; i < loop->nroots; i++)
    is_any |= loop->roots[i].kind == ROOT_REDUCE_INNER && k->exprs[loop->roots[i].expr].op != EXPR_REDUCE_MAXIMUM;
  if (!is_any || !loop->ninner) return true;
  const int vector = loop_vector_axis(loop);
  const AxisSet middle = loop->is_nested ? 0 : loop_inner_axes(loop) & ~(1U << vector);
  const int64_t width = loop->tile ? loop->tile : k->axes[vector].extent, group = (int64_t)LANES * loop->accumulators;
  const int64_t chain = loop->sums_middle ? 1 : chain_length(width, group);
  const bool is_short = loop->rows_in_lanes ? width <= LONGEST_CHAIN
                        : runs->vector_run  ? runs->vector_run <= LONGEST_RUN * group
                        : runs->middle_run  ? runs->middle_run * chain <= LONGEST_RUN
                                            : runs->is_open || chain * axes_nelems(k, middle) <= LONGEST_RUN;
  return is_short || wrong_loop(v, loop, "a row's sum is too long a chain of additions in f32");
}

// Of sums along inner axes, which are in f32 unless blocks may be long.
static bool verify_block_chains(const Verifying *v, const Loop *loop) {
  const Kernel *k = v->k;
  const int64_t longest = (int64_t)LONGEST_CHAIN * (loop->rows_in_lanes ? LANES : 1);
  const int64_t length = loop->few_work && loop->many_block > loop->block ? loop->many_block : loop->block;
  for (size_t i = 0; i < loop->nroots && !loop->tile && length > longest; i++) {
    const Access *a = &k->accesses[loop->roots[i].access];
    const bool is_array = access_axes(k, a) && axes_nelems(k, access_axes(k, a));
    if (loop->roots[i].kind == ROOT_REDUCE_OUTER && a->type == TYPE_F32 && is_array)
      return wrong_loop(v, loop, "a block's sum is too long a chain of additions in f32");
  }
  return true;
}

static bool verify_loop(const Verifying *v, const Loop *loop) {
  const Kernel *k = v->k;
  if (!verify_order(v, loop)) return false;
  if (!v->k->is_f64 && (!verify_row_chains(v, loop) || !verify_block_chains(v, loop))) return false;
  for (int sweep = 0; sweep < loop->nsweeps; sweep++) {
    for (size_t i = 0; i < loop->nroots; i++)
      if (loop->roots[i].sweep == sweep && !verify_root(v, loop, &loop->roots[i])) return false;
    for (size_t i = 0; i < loop->nroots; i++) { // a step's own is there for its later sweeps, the rest for later loops
      const Root *root = &loop->roots[i];
      const Access *a = &k->accesses[root->access];
      if (root->kind == ROOT_STORE && !a->value && root->sweep == sweep) v->is_made[a->temporary] = true;
    }
  }
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_REDUCE_OUTER) v->is_made[k->accesses[loop->roots[i].access].temporary] = true;
  return true;
}

static bool verify_loops(const Verifying *v) {
  const Kernel *k = v->k;
  for (size_t i = 0; i < k->nloops; i++)
    if (!verify_loop(v, &k->loops[i])) return false;
  for (size_t i = 0; k->nloops && i < k->nstores; i++)
    if (v->nstored[k->stores[i].access] != 1) return wrong_access(v, k->stores[i].access, "not stored once");
  return true;
}

bool kernel_verify(const Kernel *k, Text *why) {
  Arena scratch;
  arena_init(&scratch, k->arena->allocator);
  Verifying v = {.k = k, .why = why};
  v.is_needed = ARENA_ARRAY(&scratch, bool, k->nexprs);
  v.is_made = ARENA_ARRAY(&scratch, bool, k->ntemporaries + 1);
  v.nstored = ARENA_ARRAY(&scratch, uint32_t, k->naccesses + 1);
  bool *is_computed = ARENA_ARRAY(&scratch, bool, k->naccesses + 1);
  if (!v.is_needed || !v.is_made || !v.nstored || !is_computed) why->out_of_memory = true;
  bool is_sound = !why->out_of_memory && verify_exprs(&v) && verify_accesses(&v, is_computed) && verify_stores(&v) &&
                  verify_loops(&v);
  arena_deinit(&scratch);
  return is_sound;
}
