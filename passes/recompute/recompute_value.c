#include "passes/recompute/recompute_value.h"

#include "ir/kernel/needed.h"
#include "ir/kernel/reference.h"
#include "ir/kernel/verify.h"

#include <stdlib.h>
#include <string.h>

// Reducing a schedule to one result

typedef struct Reducing {
  Schedule *s;
  const Value *target;
  bool *is_needed;      // by ExprId: a root that stays in the current loop needs it
  bool *is_marked;      // by ExprId: scratch
  bool *is_accessed;    // by AccessId
  bool *needs;          // by temporary
  bool *root_is_needed; // by root of the current loop
} Reducing;

static bool is_wanted(const Reducing *r, const Root *root) {
  if (root->kind == ROOT_REDUCE_INNER) return r->is_needed[root->expr];
  const Access *a = &r->s->kernel->accesses[root->access];
  return a->value ? a->value == r->target : r->needs[a->temporary];
}

static void need_root(Reducing *r, const Loop *loop, const Root *root) {
  const Kernel *k = r->s->kernel;
  memset(r->is_marked, 0, k->nexprs * sizeof *r->is_marked);
  loop_mark_root(k, loop, root, r->is_marked);
  for (ExprId id = 1; id < k->nexprs; id++) r->is_needed[id] |= r->is_marked[id];
  if (root->kind != ROOT_REDUCE_INNER) r->is_accessed[root->access] = true;
}

static void note_accesses(Reducing *r) {
  const Kernel *k = r->s->kernel;
  for (ExprId id = 1; id < k->nexprs; id++) {
    if (!r->is_needed[id] || (!expr_has_access(&k->exprs[id]) && k->exprs[id].op != EXPR_COMBINE)) continue;
    const AccessId access = k->exprs[id].access;
    r->is_accessed[access] = true;
    if (!k->accesses[access].value && k->accesses[access].type != TYPE_NONE)
      r->needs[k->accesses[access].temporary] = true;
  }
}

// Removes the loop's roots that the result does not need. A needed root may need sums that are roots, too, so that the
// search repeats until no root is added.
static void reduce_loop(Reducing *r, Loop *loop) {
  memset(r->is_needed, 0, r->s->kernel->nexprs * sizeof *r->is_needed);
  memset(r->root_is_needed, 0, loop->nroots * sizeof *r->root_is_needed);
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (size_t i = 0; i < loop->nroots; i++) {
      if (r->root_is_needed[i] || !is_wanted(r, &loop->roots[i])) continue;
      r->root_is_needed[i] = goes_on = true;
      need_root(r, loop, &loop->roots[i]);
    }
    note_accesses(r); // another sweep of the loop may store a temporary
  }
  size_t count = 0;
  for (size_t i = 0; i < loop->nroots; i++)
    if (r->root_is_needed[i]) loop->roots[count++] = loop->roots[i];
  if (count < loop->nroots) loop->nspills = 0;
  loop->nroots = count;
}

// Removes the sums whose roots were removed.
static void drop_sums(Schedule *s) {
  size_t count = 0;
  Summation unused;
  for (size_t i = 0; i < s->nsums; i++)
    if (schedule_summation(s, &s->sums[i], &unused)) s->sums[count++] = s->sums[i];
  s->nsums = count;
}

// Keeps the kernel's expressions of the result, as they were before operands were copied.
static void keep_specification(Reducing *r) {
  const Kernel *k = r->s->kernel;
  memset(r->is_needed, 0, k->nexprs * sizeof *r->is_needed);
  for (size_t i = 0; i < k->nstores; i++) r->is_needed[k->stores[i].value] = true;
  for (ExprId id = (ExprId)k->nexprs; id-- > 1;)
    for (int a = 0; a < 3 && r->is_needed[id]; a++) r->is_needed[k->exprs[id].args[a]] = true;
  note_accesses(r);
}

static void reduce_kernel(Reducing *r) {
  Kernel *k = r->s->kernel;
  size_t count = 0;
  for (size_t i = 0; i < k->nstores; i++)
    if (k->accesses[k->stores[i].access].value == r->target) k->stores[count++] = k->stores[i];
  k->nstores = count;
  for (size_t i = r->s->nloops; i-- > 0;) reduce_loop(r, &r->s->loops[i]);
  drop_sums(r->s);
  keep_specification(r);
  for (AccessId a = 0; a < k->naccesses; a++) { // unneeded expressions keep an access without storage
    if (r->is_accessed[a]) continue;
    k->accesses[a].value = NULL;
    k->accesses[a].type = TYPE_NONE;
  }
  for (size_t i = 0; i < r->s->ntemporaries; i++)
    if (!r->needs[i]) r->s->temporaries[i].nelems = 0;
}

static void *copy_array(Arena *arena, const void *items, size_t count, size_t nbytes_each) {
  void *copy = arena_alloc(arena, (count + 1) * nbytes_each);
  if (copy && count) memcpy(copy, items, count * nbytes_each);
  return copy;
}
#define COPY(arena, items, count) ((items) = copy_array(arena, items, count, sizeof *(items)))

// A copy of the schedule that can be reduced; only expressions and their bounds are not copied.
static Schedule *copy_schedule(Arena *arena, const Schedule *s) {
  Schedule *copy = ARENA_NEW(arena, Schedule);
  Kernel *k = ARENA_NEW(arena, Kernel);
  if (!copy || !k) return NULL;
  *copy = *s;
  *k = *s->kernel;
  copy->kernel = k;
  bool ok = COPY(arena, k->accesses, k->naccesses) && COPY(arena, k->stores, k->nstores) &&
            COPY(arena, copy->temporaries, s->ntemporaries) && COPY(arena, copy->loops, s->nloops) &&
            COPY(arena, copy->sums, s->nsums);
  for (size_t i = 0; ok && i < s->nloops; i++) ok = COPY(arena, copy->loops[i].roots, copy->loops[i].nroots);
  return ok ? copy : NULL;
}

static Schedule *reduce_schedule(const Schedule *s, const Value *target, Arena *arena) {
  Schedule *copy = copy_schedule(arena, s);
  if (!copy) return NULL;
  size_t most_roots = 0;
  for (size_t i = 0; i < s->nloops; i++)
    if (s->loops[i].nroots > most_roots) most_roots = s->loops[i].nroots;
  Arena scratch;
  arena_init(&scratch, arena->allocator);
  Reducing r = {.s = copy,
                .target = target,
                .is_needed = ARENA_ARRAY(&scratch, bool, copy->kernel->nexprs + 1),
                .is_marked = ARENA_ARRAY(&scratch, bool, copy->kernel->nexprs + 1),
                .is_accessed = ARENA_ARRAY(&scratch, bool, copy->kernel->naccesses + 1),
                .needs = ARENA_ARRAY(&scratch, bool, s->ntemporaries + 1),
                .root_is_needed = ARENA_ARRAY(&scratch, bool, most_roots + 1)};
  const bool ok = r.is_needed && r.is_marked && r.is_accessed && r.needs && r.root_is_needed;
  if (ok) reduce_kernel(&r);
  arena_deinit(&scratch);
  return ok ? copy : NULL;
}

// Elementwise nodes

enum { MOST_CHAIN = 32 }; // nodes

typedef struct Chain {
  const Program *p;
  bool *is_listed; // by node->index
  Node *nodes[MOST_CHAIN];
  size_t count;
} Chain;

static bool is_in_memory(const Program *p, const Value *v) {
  if (!v->producer || v->is_output) return true;
  return p->is_in_workspace[v->index] &&
         !slice_group_is_private(program_slice_group(p, p->first_kernel[v->producer->index]), v);
}

// Adds the node after the nodes that it depends on. False: some of them is not elementwise in f32, or there are too
// many. A kernel in f64 does not round values between its nodes, so that a single node of it would compute other bits.
static bool add_chain(Chain *c, Node *node) {
  if (c->is_listed[node->index]) return true;
  const uint32_t kernel = c->p->first_kernel[node->index];
  if (kernel != UINT32_MAX && c->p->schedules[kernel]->kernel->is_f64) return false;
  if (!(node->op->traits & TRAIT_ELEMENTWISE) || node->noutputs != 1 || c->count == MOST_CHAIN) return false;
  if (node->outputs[0]->type != TYPE_F32) return false;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Value *v = node->inputs[i];
    if (!v) continue;
    if (v->type != TYPE_F32 || (!is_in_memory(c->p, v) && !add_chain(c, v->producer))) return false;
  }
  if (c->count == MOST_CHAIN) return false;
  c->is_listed[node->index] = true;
  c->nodes[c->count++] = node;
  return true;
}

static int compare_nodes(const void *a, const void *b) {
  const Node *x = *(Node *const *)a, *y = *(Node *const *)b;
  return (x->index > y->index) - (x->index < y->index);
}

// *out NULL: the value depends on nodes that are not elementwise.
static bool lower_chain(const Program *p, const RegionLowering *l, const Value *v, Arena *arena, Schedule **out) {
  Arena scratch;
  arena_init(&scratch, arena->allocator);
  Chain c = {.p = p, .is_listed = ARENA_ARRAY(&scratch, bool, p->graph->nnodes + 1)};
  const bool ok = c.is_listed;
  *out = NULL;
  if (ok && add_chain(&c, v->producer)) {
    qsort(c.nodes, c.count, sizeof *c.nodes, compare_nodes);
    Node **nodes = copy_array(arena, c.nodes, c.count, sizeof *c.nodes);
    *out = nodes ? lower_and_schedule(l, arena, nodes, c.count, NULL, 0) : NULL;
  }
  arena_deinit(&scratch);
  return ok && !l->context->failed;
}

// The kernel

static RecomputationCost cost_of(const Schedule *s) {
  RecomputationCost cost = RECOMPUTE_ELEMENTWISE;
  for (size_t l = 0; l < s->nloops; l++)
    for (size_t r = 0; r < s->loops[l].nroots; r++) {
      const SumOrder *order = s->loops[l].roots[r].order;
      if (!order) continue;
      if (loop_sums_in_lanes(&s->loops[l]) || loop_has(&s->loops[l], LOOP_TAPS) || order->is_fused)
        return RECOMPUTE_PRODUCTS;
      cost = RECOMPUTE_SUMS;
    }
  return cost;
}

// The schedule of the only kernel that stores the value; NULL: several kernels do, or a slice group's kernel.
static const Schedule *find_maker(const Program *p, const Value *v) {
  const Schedule *maker = NULL;
  for (uint32_t i = 0; i < p->nkernels; i++) {
    const Kernel *k = p->schedules[i]->kernel;
    for (size_t s = 0; s < k->nstores; s++) {
      if (k->accesses[k->stores[s].access].value != v) continue;
      if (maker || k->slice_group) return NULL;
      maker = p->schedules[i];
    }
  }
  return maker;
}

bool recompute_value(const Program *p, const RegionLowering *l, const Value *v, Recomputation *out) {
  Arena *arena = (Arena *)&p->arena;
  Schedule *chain;
  *out = (Recomputation){.schedule = NULL};
  if (!lower_chain(p, l, v, arena, &chain)) return false;
  const Schedule *from = chain ? chain : find_maker(p, v);
  if (!from) return true;
  Schedule *s = reduce_schedule(from, v, arena);
  Text why;
  text_init(&why, arena->allocator);
  if (s && schedule_verify(s, &why)) out->schedule = s;
  const bool ok = s && !why.out_of_memory;
  text_deinit(&why);
  if (!ok || !out->schedule) return ok;
  out->cost = cost_of(s);
  return kernel_count_operations(s->kernel, arena, &out->operations);
}
