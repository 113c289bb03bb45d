// The state of the walk: messages, scopes, effects and variables. A node's declarations are in scope for the nodes that
// follow it in its list. An effect is an event that must happen exactly once, such as the store of a result. An effect
// inside a loop counts once; so does an effect that occurs in all pieces that cover an axis, or in both branches of a
// condition.
#include "ir/loops/print.h"
#include "ir/loops/verifying.h"
#include "ir/support/escape.h"

#include <stdarg.h>
#include <string.h>

// Messages

static void add_where(Verifying *v, const LoopNode *n) {
  text_format(v->why, "loop %zu of the kernel of ", (size_t)(v->loop - v->t->schedule->loops));
  kernel_print_nodes(v->k, v->why);
  text_format(v->why, ", %s: ", v->function);
  if (!n) return;
  loops_print_node(v->t, n, v->why);
  text_add_string(v->why, ": ");
}

bool verify_fail(Verifying *v, const LoopNode *n, const char *format, ...) {
  va_list args;
  add_where(v, n);
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
  add_where(v, n);
  add_expr(v, id);
  text_format(v->why, " %s\n", what);
  return false;
}

static void add_index(Verifying *v, const Index *i) {
  if (i) loops_print_index(v->t, i, v->why);
  else text_add_string(v->why, "none");
}

bool verify_equal(Verifying *v, const LoopNode *n, const char *what, const Index *found, const Index *expected) {
  if (v->b.out_of_memory || index_equals(found, expected)) return !v->b.out_of_memory;
  add_where(v, n);
  text_format(v->why, "%s is ", what);
  add_index(v, found);
  text_add_string(v->why, ", expected ");
  add_index(v, expected);
  text_add_string(v->why, "\n");
  return false;
}

static void add_root(Verifying *v, const Root *r) {
  static const char *const verbs[] = {
      [ROOT_STORE] = "the store of ", [ROOT_REDUCE_INNER] = "the sum ", [ROOT_REDUCE_OUTER] = "the partial sum of "};
  const Access *a = &v->k->accesses[r->access];
  text_add_string(v->why, verbs[r->kind]);
  if (r->kind == ROOT_REDUCE_INNER) add_expr(v, r->expr);
  else
    text_add_user_string(v->why, SINK_TERMINAL,
                         a->value ? a->value->name : v->t->schedule->temporaries[a->temporary].name);
}

bool effect_fail(Verifying *v, const LoopNode *n, size_t effect, const char *what) {
  static const char *const effects[] = {[EFFECT_DONE] = "", [EFFECT_PREPARED] = "the preparation of "};
  const size_t root = effect / NEFFECTS;
  add_where(v, n);
  if (root < v->loop->nroots) {
    text_add_string(v->why, effects[effect % NEFFECTS]);
    add_root(v, &v->loop->roots[root]);
  } else if (effect == effect_of_step(v)) {
    text_add_string(v->why, "the call of the step");
  } else {
    text_add_string(v->why, "the spill of ");
    add_expr(v, v->loop->spills[effect - v->loop->nroots * NEFFECTS].expr);
  }
  text_format(v->why, " %s\n", what);
  return false;
}

bool verify_out_of_memory(Verifying *v) {
  v->why->out_of_memory = true;
  return false;
}

// Scopes

static bool add_scoped(Verifying *v, Scoped scoped) {
  if (!arena_grow(v->arena, &v->scoped, v->nscoped, &v->scoped_capacity, sizeof *v->scoped))
    return verify_out_of_memory(v);
  v->scoped[v->nscoped++] = scoped;
  return true;
}

bool scope_end(Verifying *v, bool *is_in_scope) {
  return add_scoped(v, (Scoped){.is_in_scope = is_in_scope});
}

bool scope_add(Verifying *v, bool *is_in_scope) {
  *is_in_scope = true;
  return scope_end(v, is_in_scope);
}

bool scope_add_open(Verifying *v, bool *is_in_scope, bool *is_open, const LoopNode *n, const char *what) {
  *is_in_scope = *is_open = true;
  return add_scoped(v, (Scoped){is_in_scope, is_open, n, what});
}

bool scope_close(Verifying *v, size_t nscoped) {
  while (v->nscoped > nscoped) {
    const Scoped *s = &v->scoped[--v->nscoped];
    if (s->is_open && *s->is_open) return verify_fail(v, s->node, "%s", s->what);
    *s->is_in_scope = false;
  }
  return true;
}

// Effects

const Root *root_of(const Verifying *v, AccessId id) {
  return v->root_of_access[id];
}

SumState *sum_of(const Verifying *v, const Root *root) {
  return &v->sums[root - v->loop->roots];
}

size_t effect_of(const Verifying *v, const Root *root, Effect effect) {
  return (size_t)(root - v->loop->roots) * NEFFECTS + effect;
}

size_t effect_of_spill(const Verifying *v, int spill) {
  return v->loop->nroots * NEFFECTS + (size_t)spill;
}

size_t effect_of_step(const Verifying *v) {
  return v->loop->nroots * NEFFECTS + (size_t)v->loop->nspills;
}

static size_t neffects(const Verifying *v) {
  return effect_of_step(v) + 1;
}

bool effects_clear(Verifying *v) {
  v->done = ARENA_ARRAY(v->arena, bool, neffects(v));
  return v->done || verify_out_of_memory(v);
}

static const bool *copy_effects(Verifying *v) {
  bool *copy = ARENA_ARRAY(v->arena, bool, neffects(v));
  if (copy) memcpy(copy, v->done, neffects(v) * sizeof *copy);
  else verify_out_of_memory(v);
  return copy;
}

// The first effect that is not as it was; neffects: all are.
static size_t find_change(const Verifying *v, const bool *was_done) {
  size_t effect = 0;
  while (effect < neffects(v) && v->done[effect] == was_done[effect]) effect++;
  return effect;
}

bool effect_do(Verifying *v, const LoopNode *n, size_t effect) {
  if (v->done[effect]) return effect_fail(v, n, effect, "happens twice");
  v->done[effect] = true;
  return true;
}

bool effects_begin(Verifying *v, Pieces *p) {
  *p = (Pieces){.before = copy_effects(v)};
  return p->before;
}

bool effects_begin_piece(Verifying *v, const LoopNode *n, const Pieces *p) {
  if (!p->first) return true;
  const size_t effect = find_change(v, p->first);
  if (effect < neffects(v)) return effect_fail(v, n, effect, "happens between the pieces that cover an axis");
  memcpy(v->done, p->before, neffects(v) * sizeof *v->done);
  return true;
}

bool effects_end_piece(Verifying *v, const LoopNode *n, Pieces *p) {
  if (!p->first) return (p->first = copy_effects(v)) != NULL;
  const size_t effect = find_change(v, p->first);
  if (effect == neffects(v)) return true;
  return effect_fail(v, n, effect,
                     v->done[effect] ? "happens in this piece of the axis, but not in the first piece"
                                     : "is missing in this piece of the axis, but the first piece has it");
}

bool effects_are_of(Verifying *v, const LoopNode *n, const Pieces *p, AccessId access) {
  for (size_t effect = 0; effect < neffects(v); effect++) {
    const size_t root = effect / NEFFECTS;
    const bool is_of_access = root < v->loop->nroots && v->loop->roots[root].kind != ROOT_REDUCE_INNER &&
                              v->loop->roots[root].access == access;
    if (!is_of_access && v->done[effect] != p->before[effect])
      return effect_fail(v, n, effect, "depends on the flag of another access");
  }
  return true;
}

// Variables

enum { // the order in `vars`: variables of axes, of the function, of accesses
  FIRST_OF_NOTHING = (VAR_AHEAD_LANE - VAR_AXIS) * MAX_AXES,
  FIRST_OF_ACCESSES = FIRST_OF_NOTHING + VAR_ELEMENT - VAR_AHEAD_LANE + 1
};

size_t vars_count(const Kernel *k) {
  return FIRST_OF_ACCESSES + k->naccesses;
}

VarState *var_state(const Verifying *v, Var var) {
  if (var.kind == VAR_DISTANCE) return &v->vars[FIRST_OF_ACCESSES + var.of];
  if (var.kind >= VAR_AHEAD_LANE) return &v->vars[FIRST_OF_NOTHING + (size_t)(var.kind - VAR_AHEAD_LANE)];
  return &v->vars[(size_t)(var.kind - VAR_AXIS) * MAX_AXES + var.of];
}

static bool is_var(const Verifying *v, Var var) {
  if (var.kind == VAR_NONE || var.kind > VAR_ELEMENT) return false;
  return var.kind == VAR_DISTANCE ? var.of < v->k->naccesses : var.kind >= VAR_AHEAD_LANE || var.of < MAX_AXES;
}

bool var_set(Verifying *v, const LoopNode *n, Var var, const Index *value) {
  if (!is_var(v, var)) return verify_fail(v, n, "its variable does not exist");
  VarState *state = var_state(v, var);
  if (state->is_set) return verify_fail(v, n, "its variable is already set");
  state->value = value;
  return scope_add(v, &state->is_set);
}

bool verify_index(Verifying *v, const LoopNode *n, const Index *i) {
  if (!i) return true;
  if (i->op == INDEX_VAR && (!is_var(v, i->var) || !var_state(v, i->var)->is_set))
    return verify_fail(v, n, "it uses a variable that is not set before it");
  if ((i->op == INDEX_NCUT_BLOCKS || i->op == INDEX_BLOCK_LENGTH) && i->loop >= v->t->schedule->nloops)
    return verify_fail(v, n, "it uses the block length or number of blocks of a loop that does not exist");
  for (int a = 0; a < 3; a++)
    if (!verify_index(v, n, i->args[a])) return false;
  return true;
}

// The variable for the piece's first index, or the counter, stands for the index on the vector axis.
static Var meaning_of(const void *context, Var var) {
  const Verifying *v = context;
  const Range *r = &v->range[v->vector];
  const bool is_start =
      (r->is_piece || r->is_counted) && r->start.kind && r->start.kind == var.kind && r->start.of == var.of;
  return is_start ? (Var){VAR_AXIS, (uint32_t)v->vector} : var;
}

Linear linear_of(const Verifying *v, const Index *i) {
  Linear l = {0};
  linear_add_index(&l, i, meaning_of, v);
  return l;
}

const Index *number_index(Verifying *v, int64_t number) {
  return index_number(&v->b, number, 0);
}

const Index *nelems_index(Verifying *v, AxisSet axes) {
  return index_number(&v->b, axes_nelems(v->k, axes), axes_monomial(v->k, axes));
}

const Index *var_index(Verifying *v, VarKind kind) {
  return index_var(&v->b, kind, 0);
}

const Index *least_index(Verifying *v, const Index *x, const Index *y) {
  return index_choose(&v->b, index_of(&v->b, INDEX_LESS, x, y), x, y);
}
