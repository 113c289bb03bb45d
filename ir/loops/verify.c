// Walks over the functions of a tree: step, tail step, block. A node's declarations are in scope for the nodes that
// follow it in its list. An effect is an event that must happen exactly once, such as the store of a result. An effect
// inside a loop counts once; so does an effect that occurs in all pieces that cover an axis, or in both branches of a
// condition.
#include "ir/loops/verify.h"

#include "ir/kernel/scatter.h"
#include "ir/loops/print.h"
#include "ir/loops/verifying.h"
#include "ir/support/escape.h"

#include <stdarg.h>
#include <string.h>

// Messages

static void add_where(Verifying *v) {
  text_format(v->why, "loop %zu of the kernel of ", (size_t)(v->plan - v->t->schedule->loops));
  kernel_print_nodes(v->k, v->why);
  text_format(v->why, ", %s: ", v->function);
}

bool verify_fail(Verifying *v, const LoopNode *n, const char *format, ...) {
  va_list args;
  add_where(v);
  if (n) loops_print_node(v->t, n, v->why);
  if (n) text_add_string(v->why, ": ");
  va_start(args, format);
  text_format_list(v->why, format, args);
  va_end(args);
  text_add_string(v->why, "\n");
  return false;
}

static void add_expr(Verifying *v, ExprId id) {
  const Expr *e = &v->k->exprs[id];
  text_format(v->why, "expression %u (%s", id, expr_info[e->op].name ? expr_info[e->op].name : "a leaf");
  if (e->label) text_add_string(v->why, " ");
  if (e->label) text_add_user_string(v->why, SINK_TERMINAL, e->label);
  text_add_string(v->why, ")");
}

bool verify_fail_expr(Verifying *v, const LoopNode *n, ExprId id, const char *what) {
  add_where(v);
  loops_print_node(v->t, n, v->why);
  text_add_string(v->why, ": ");
  add_expr(v, id);
  text_format(v->why, " %s\n", what);
  return false;
}

static void add_index(Verifying *v, const Index *i) {
  if (i) loops_print_index(v->t, i, v->why);
  else text_add_string(v->why, "none");
}

bool verify_fail_index(Verifying *v, const LoopNode *n, const char *what, const Index *found, const Index *expected) {
  add_where(v);
  loops_print_node(v->t, n, v->why);
  text_format(v->why, ": %s is ", what);
  add_index(v, found);
  text_add_string(v->why, ", expected ");
  add_index(v, expected);
  text_add_string(v->why, "\n");
  return false;
}

static void add_root(Verifying *v, size_t root) {
  static const char *const verbs[] = {
      [ROOT_STORE] = "the store of ", [ROOT_REDUCE_INNER] = "the sum ", [ROOT_REDUCE_OUTER] = "the partial sum of "};
  const Root *r = &v->plan->roots[root];
  const Access *a = &v->k->accesses[r->access];
  text_add_string(v->why, verbs[r->kind]);
  if (r->kind == ROOT_REDUCE_INNER) add_expr(v, r->expr);
  else
    text_add_user_string(v->why, SINK_TERMINAL,
                         a->value ? a->value->name : v->t->schedule->temporaries[a->temporary].name);
}

static bool fail_effect(Verifying *v, const LoopNode *n, size_t effect, const char *what) {
  const size_t root = effect / NEFFECTS;
  add_where(v);
  if (n) loops_print_node(v->t, n, v->why);
  if (n) text_add_string(v->why, ": ");
  if (root < v->plan->nroots) {
    static const char *const effects[] = {[EFFECT_DONE] = "",
                                          [EFFECT_PREPARED] = "the preparation of ",
                                          [EFFECT_REDUCED] = "the reduction over lanes of "};
    text_add_string(v->why, effects[effect % NEFFECTS]);
    add_root(v, root);
  } else if (effect == effect_of_step(v)) {
    text_add_string(v->why, "the call of the step");
  } else {
    text_add_string(v->why, "the spill of ");
    add_expr(v, v->plan->spills[effect - v->plan->nroots * NEFFECTS].expr);
  }
  text_format(v->why, " %s\n", what);
  return false;
}

bool verify_out_of_memory(Verifying *v) {
  v->why->out_of_memory = true;
  return false;
}

// Scopes

bool scope_add(Verifying *v, bool *is_in_scope, bool (*close)(Verifying *v, uint32_t id), uint32_t id) {
  if (!arena_grow(v->arena, &v->scoped, v->nscoped, &v->scoped_capacity, sizeof *v->scoped))
    return verify_out_of_memory(v);
  v->scoped[v->nscoped++] = (Scoped){is_in_scope, close, id};
  if (is_in_scope) *is_in_scope = true;
  return true;
}

bool scope_close(Verifying *v, size_t nscoped) {
  bool ok = true;
  while (v->nscoped > nscoped) {
    const Scoped *s = &v->scoped[--v->nscoped];
    if (s->close) ok = s->close(v, s->id) && ok;
    if (s->is_in_scope) *s->is_in_scope = false;
    if (!ok) return false;
  }
  return ok;
}

// Effects

size_t effect_of(uint32_t root, Effect effect) {
  return (size_t)root * NEFFECTS + effect;
}

size_t effect_of_spill(const Verifying *v, int spill) {
  return v->plan->nroots * NEFFECTS + (size_t)spill;
}

size_t effect_of_step(const Verifying *v) {
  return v->plan->nroots * NEFFECTS + (size_t)v->plan->nspills;
}

bool effect_do(Verifying *v, const LoopNode *n, size_t effect) {
  if (v->count[effect]) return fail_effect(v, n, effect, "happens twice");
  if (!arena_grow(v->arena, &v->log, v->nlog, &v->log_capacity, sizeof *v->log)) return verify_out_of_memory(v);
  v->log[v->nlog++] = (uint32_t)effect;
  v->count[effect] = 1;
  return true;
}

void effects_begin(Verifying *v, Pieces *p) {
  *p = (Pieces){.first = v->nlog, .end = v->nlog};
}

// Each further piece must have the effects of the first: this function resets them, and effects_end_piece compares.
bool effects_begin_piece(Verifying *v, const LoopNode *n, const Pieces *p) {
  if (p->count && v->nlog != p->end)
    return fail_effect(v, n, v->log[v->nlog - 1], "happens between the pieces that cover an axis");
  for (size_t i = p->first; i < p->end; i++) v->count[v->log[i]] = 0;
  return true;
}

bool effects_end_piece(Verifying *v, const LoopNode *n, Pieces *p) {
  if (!p->count++) {
    p->end = v->nlog;
    return true;
  }
  for (size_t i = p->first; i < p->end; i++)
    if (!v->count[v->log[i]])
      return fail_effect(v, n, v->log[i], "is missing in this piece of the axis, but the first piece has it");
  for (size_t i = p->end; v->nlog - p->end > p->end - p->first && i < v->nlog; i++) {
    bool is_in_first = false;
    for (size_t j = p->first; j < p->end; j++) is_in_first |= v->log[j] == v->log[i];
    if (!is_in_first)
      return fail_effect(v, n, v->log[i], "happens in this piece of the axis, but not in the first piece");
  }
  v->nlog = p->end;
  return true;
}

bool effects_are_of(Verifying *v, const LoopNode *n, const Pieces *p, AccessId access) {
  for (size_t i = p->first; i < v->nlog; i++) {
    const size_t root = v->log[i] / NEFFECTS;
    const bool is_of_access = root < v->plan->nroots && v->plan->roots[root].kind != ROOT_REDUCE_INNER &&
                              v->plan->roots[root].access == access;
    if (!is_of_access) return fail_effect(v, n, v->log[i], "depends on the flag of another access");
  }
  return true;
}

// The walk

static bool verify_nothing(Verifying *v, const LoopNode *n) {
  (void)v;
  (void)n;
  return true;
}

static bool verify_unused(Verifying *v, const LoopNode *n) {
  return var_state(v, n->var)->is_set || verify_fail(v, n, "its variable is not declared here");
}

static bool verify_scope(Verifying *v, const LoopNode *n) {
  return verify_nodes(v, n->body);
}

// A scatter node must compute all rows of the block, which the kernel stores as its result.
static bool verify_scatter(Verifying *v, const LoopNode *n) {
  Scatter s;
  if (!v->plan->is_scatter || !kernel_find_scatter(v->k, &s) || n->expr != s.sum || n->access != s.to)
    return verify_fail(v, n, "the kernel is not a scatter with this sum and this result");
  if (!var_state(v, loop_var(VAR_BEGIN))->is_set || !var_state(v, loop_var(VAR_END))->is_set)
    return verify_fail(v, n, "the first and last row of the block (VAR_BEGIN, VAR_END) must be set before it");
  return effect_do(v, n, effect_of_step(v));
}

static bool (*const verifiers[])(Verifying *, const LoopNode *) = {
    [NODE_COMMENT] = verify_nothing,
    [NODE_UNUSED] = verify_unused,
    [NODE_INDEX] = verify_set_index,
    [NODE_COUNTER] = verify_counter,
    [NODE_ADVANCE] = verify_advance,
    [NODE_FOR] = verify_for,
    [NODE_SCOPE] = verify_scope,
    [NODE_IF] = verify_if,
    [NODE_FLAG] = verify_set_flag,
    [NODE_POINTER] = verify_pointer,
    [NODE_LOCAL] = verify_local,
    [NODE_LET] = verify_let,
    [NODE_COMBINE] = verify_combine,
    [NODE_BEGIN_SUM] = verify_begin_sum,
    [NODE_UPDATE] = verify_update,
    [NODE_END_RUN] = verify_end_run,
    [NODE_END_SUM] = verify_end_sum,
    [NODE_LOAD_PARTIAL] = verify_load_partial,
    [NODE_STORE_PARTIAL] = verify_store_partial,
    [NODE_STORE] = verify_store,
    [NODE_SPILL] = verify_spill,
    [NODE_LOAD_ROWS] = verify_load_rows,
    [NODE_STORE_ROWS] = verify_store_rows,
    [NODE_COPY_ROWS] = verify_copy_rows,
    [NODE_LOAD_COLUMN] = verify_load_column,
    [NODE_PREFETCH] = verify_prefetch,
    [NODE_PEEL_COUNT] = verify_peel_count,
    [NODE_PARTIALS] = verify_partials,
    [NODE_INIT_PARTIAL] = verify_init_partial,
    [NODE_STEP] = verify_step_call,
    [NODE_REDUCE_PARTIAL] = verify_reduce_partial,
    [NODE_SCATTER] = verify_scatter,
    [NODE_FENCE] = verify_nothing,
};

// Whether the node's enumerators and ids are in range, so that verifiers may index tables with them.
static bool is_known(const Verifying *v, const LoopNode *n) {
  const Kernel *k = v->k;
  const size_t naccesses = k->naccesses ? k->naccesses : 1; // in a kernel without accesses, nodes have access 0
  return n->kind <= NODE_FENCE && n->expr < k->nexprs && n->access < naccesses && n->address.access < naccesses &&
         n->address.expr < k->nexprs && n->address.base <= BASE_PARTIAL && n->var.kind <= VAR_ELEMENT &&
         n->flag <= FLAG_HAS_ALL_PARTIALS && n->local <= LOCAL_SCALARS && n->load <= LOAD_SPILLED &&
         n->sum <= SUM_PARTIAL_LANES && n->accumulator <= ACCUMULATOR_FIRST && n->reduction < EXPR_OP_COUNT;
}

bool verify_nodes(Verifying *v, const LoopNode *n) {
  const size_t nscoped = v->nscoped;
  for (; n; n = n->next) {
    if (!is_known(v, n))
      return verify_fail(v, NULL, "a node has a kind, variable, flag, expression or access that does not exist");
    if (v->vector < 0 && (n->is_vector || n->load == LOAD_SPILLED || n->load == LOAD_COPIED))
      return verify_fail(v, n, "it is a vector, but the loop has no axis that vectors lie along");
    if (!verifiers[n->kind](v, n)) return false;
  }
  return scope_close(v, nscoped);
}

// Functions

// Whether each root of the loop has been computed. A root along inner axes needs no computation if these axes are
// empty.
static bool verify_roots(Verifying *v) {
  const bool is_empty = !axes_nelems(v->k, v->inner);
  for (uint32_t i = 0; i < v->plan->nroots; i++) {
    const Root *root = &v->plan->roots[i];
    const bool is_sum = root->kind == ROOT_REDUCE_INNER;
    const AxisSet axes = is_sum ? v->k->exprs[v->k->exprs[root->expr].args[0]].axes : root_axes(v->k, root);
    if (is_empty && axes & v->inner) continue;
    if (is_sum ? !v->sums[i].is_ever_done : !v->count[effect_of(i, EFFECT_DONE)])
      return fail_effect(v, NULL, effect_of(i, EFFECT_DONE), "is missing");
  }
  return true;
}

static void begin_function(Verifying *v, const char *name) {
  const size_t neffects = effect_of_step(v) + 1;
  v->function = name;
  memset(v->count, 0, neffects * sizeof *v->count);
  memset(v->sums, 0, v->plan->nroots * sizeof *v->sums);
  memset(v->spilled, 0, MOST_SPILLS * sizeof *v->spilled);
  v->nlog = 0;
}

static bool verify_step(Verifying *v, const LoopNode *nodes, bool is_tail) {
  begin_function(v, is_tail ? "tail step" : "step");
  return begin_step(v, is_tail) && verify_nodes(v, nodes) && verify_roots(v) && scope_close(v, 0);
}

static bool verify_block(Verifying *v) {
  begin_function(v, "block");
  v->is_block = true;
  if (!begin_block(v) || !verify_nodes(v, v->t->block)) return false;
  if (!v->count[effect_of_step(v)]) return fail_effect(v, NULL, effect_of_step(v), "is missing");
  for (uint32_t i = 0; v->plan->rows_in_lanes && i < v->plan->nroots; i++)
    if (v->plan->roots[i].kind == ROOT_REDUCE_OUTER && !v->count[effect_of(i, EFFECT_REDUCED)])
      return fail_effect(v, NULL, effect_of(i, EFFECT_REDUCED), "is missing");
  const LoopNode *last = v->t->block;
  while (last->next) last = last->next;
  const bool has_threads = !v->plan->is_serial || v->plan->serial_work;
  for (size_t i = 0; i < v->plan->nroots && has_threads; i++)
    if (v->plan->roots[i].kind == ROOT_STORE &&
        loop_shares_bytes(v->k, v->plan, &v->k->accesses[v->plan->roots[i].access]))
      return verify_fail(v, NULL, "blocks run on several threads, but two blocks may store halves of the same byte");
  return !v->has_streams || last->kind == NODE_FENCE ||
         verify_fail(v, last, "a block with streamed stores must end with a fence");
}

// Finds the partial sums that may be NULL in the block: steps are verified before the block and need to know.
static void find_partials(Verifying *v) {
  for (const LoopNode *n = v->t->block; n; n = n->next)
    if (n->kind == NODE_PARTIALS && n->access < v->k->naccesses)
      v->memory[n->access].may_be_null = n->flag != FLAG_NONE;
}

static bool init(Verifying *v) {
  const Kernel *k = v->k;
  v->vars = ARENA_ARRAY(v->arena, VarState, vars_count(k));
  v->made = ARENA_ARRAY(v->arena, Made, k->nexprs);
  v->memory = ARENA_ARRAY(v->arena, Memory, k->naccesses + 1);
  v->sums = ARENA_ARRAY(v->arena, SumState, v->plan->nroots + 1);
  v->spilled = ARENA_ARRAY(v->arena, SpillState, MOST_SPILLS);
  v->count = ARENA_ARRAY(v->arena, uint8_t, effect_of_step(v) + 1);
  v->root_of_access = ARENA_ARRAY(v->arena, uint32_t, k->naccesses + 1);
  v->root_of_sum = ARENA_ARRAY(v->arena, uint32_t, k->nexprs);
  if (!v->vars || !v->made || !v->memory || !v->sums || !v->spilled || !v->count || !v->root_of_access ||
      !v->root_of_sum)
    return false;
  for (uint32_t i = 0; i < v->plan->nroots; i++) {
    const Root *root = &v->plan->roots[i];
    if (root->kind == ROOT_REDUCE_INNER) v->root_of_sum[root->expr] = i + 1;
    else v->root_of_access[root->access] = i + 1;
  }
  v->outer = loop_outer_axes(v->plan);
  v->inner = loop_inner_axes(v->plan);
  v->vector = v->plan->ninner ? v->plan->axes[v->plan->nouter + v->plan->ninner - 1] : -1;
  v->lanes = v->plan->rows_in_lanes ? OUTER : v->vector;
  find_partials(v);
  return true;
}

bool loops_verify(const LoopTree *t, Text *why) {
  Arena scratch;
  arena_init(&scratch, why->allocator);
  Verifying v = {.t = t, .k = t->k, .plan = t->plan, .why = why, .arena = &scratch, .b = {.arena = &scratch}};
  bool ok = init(&v);
  if (!ok) why->out_of_memory = true;
  if (ok && t->plan->is_scatter && t->step)
    ok = verify_fail(&v, NULL, "the loop is a scatter and must not have a step function");
  ok = ok && (t->plan->is_scatter || verify_step(&v, t->step, false)) &&
       (!t->tail_step || verify_step(&v, t->tail_step, true)) && verify_block(&v);
  why->out_of_memory |= v.b.out_of_memory;
  arena_deinit(&scratch);
  return ok && !why->out_of_memory;
}
