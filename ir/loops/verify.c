// Walks over the functions of a tree: step, tail step, block. A table has the check of each kind of node; a loop or
// condition first says which piece of a range its body covers, and then the body is verified in that piece.
#include "ir/loops/verify.h"

#include "ir/kernel/scatter.h"
#include "ir/loops/verifying.h"
#include "ir/operators/window.h"

#include <string.h>

static bool verify_nodes(Verifying *v, const LoopNode *n);

// Loops and conditions

static bool frame_push(Verifying *v, const LoopNode *n, int direction) {
  if (v->nframes == MOST_FRAMES)
    return verify_fail(v, n, "loops are nested too deeply, expected at most %d levels", MOST_FRAMES);
  v->frames[v->nframes++] = (Frame){.node = n, .direction = direction, .serial = ++v->nserials};
  return true;
}

static bool guard_push(Verifying *v, const LoopNode *n, Flag flag, AccessId access) {
  if (v->nguards == MOST_FRAMES)
    return verify_fail(v, n, "conditions are nested too deeply, expected at most %d levels", MOST_FRAMES);
  v->guards[v->nguards++] = (Guard){flag, access};
  return true;
}

static bool verify_piece(Verifying *v, const LoopNode *n, const Piece *piece) {
  Range *r = piece->direction == UNKNOWN_DIRECTION ? NULL : &v->range[piece->direction], before = {0};
  if (piece->pieces && !effects_begin_piece(v, n, piece->pieces)) return false;
  if (!frame_push(v, n, piece->direction)) return false;
  if (r) {
    before = *r;
    *r = piece->range;
    r->is_piece = true;
  }
  const bool ok = verify_nodes(v, n->body);
  if (r) *r = before;
  v->nframes--;
  return ok && (!piece->pieces || effects_end_piece(v, n, piece->pieces));
}

// The nodes in `body` take effect only if the flag is set.
static bool verify_flagged(Verifying *v, const LoopNode *n, const Piece *piece) {
  Pieces done;
  if (!effects_begin(v, &done) || !guard_push(v, n, n->flag, n->access)) return false;
  const bool ok = piece ? verify_piece(v, n, piece) : verify_nodes(v, n->body);
  v->nguards--;
  return ok && effects_are_of(v, n, &done, n->access);
}

bool verify_for(Verifying *v, const LoopNode *n) {
  const size_t nscoped = v->nscoped;
  Piece piece;
  return begin_for(v, n, &piece) && (n->flag ? verify_flagged(v, n, &piece) : verify_piece(v, n, &piece)) &&
         scope_close(v, nscoped);
}

// Both branches must have the same effects.
static bool verify_branches(Verifying *v, const LoopNode *n) {
  const Chain chain = v->chain;
  const Index *test = n->test;
  const bool is_of_chain = test && test->op == INDEX_MORE && index_is_var(test->args[0], loop_var(VAR_CHAIN)) &&
                           index_is(test->args[1], LONGEST_RUN);
  Pieces pieces;
  if (!effects_begin(v, &pieces) || !guard_push(v, n, n->flag, n->access)) return false;
  if (is_of_chain) v->chain = CHAIN_LONG;
  bool ok = verify_nodes(v, n->body) && effects_end_piece(v, n, &pieces);
  if (is_of_chain) v->chain = CHAIN_SHORT;
  v->guards[v->nguards - 1].flag = FLAG_NONE;
  ok = ok && effects_begin_piece(v, n, &pieces) && verify_nodes(v, n->otherwise) && effects_end_piece(v, n, &pieces);
  v->chain = chain;
  v->nguards--;
  return ok;
}

bool verify_if(Verifying *v, const LoopNode *n) {
  Piece piece;
  if (n->test) {
    if (!verify_index(v, n, n->test)) return false;
    if (!is_piece_of_counter(v, n)) return verify_branches(v, n);
    return begin_if(v, n, &piece) && verify_piece(v, n, &piece);
  }
  if (!n->flag) return verify_fail(v, n, "a condition must have a test or a flag");
  if (!verify_flag(v, n)) return false;
  if (n->flag == FLAG_STREAMED) return verify_branches(v, n);
  if (n->otherwise) return verify_fail(v, n, "a condition on its flag must have no else branch");
  return verify_flagged(v, n, NULL);
}

bool verify_scope(Verifying *v, const LoopNode *n) {
  return verify_nodes(v, n->body);
}

// Other nodes

bool verify_nothing(Verifying *v, const LoopNode *n) {
  (void)v;
  (void)n;
  return true;
}

bool verify_unused(Verifying *v, const LoopNode *n) {
  return var_state(v, n->var)->is_set || verify_fail(v, n, "its variable is not declared here");
}

// A scatter node must compute all rows of the block, which the kernel stores as its result.
bool verify_scatter(Verifying *v, const LoopNode *n) {
  Scatter s;
  if (!kernel_find_scatter(v->k, &s) || n->expr != s.sum || n->access != s.to)
    return verify_fail(v, n, "the kernel is not a scatter with this sum and this result");
  if (!var_state(v, loop_var(VAR_BEGIN))->is_set || !var_state(v, loop_var(VAR_END))->is_set)
    return verify_fail(v, n, "the first and last row of the block (VAR_BEGIN, VAR_END) must be set before it");
  return effect_do(v, n, effect_of_step(v));
}

#define ROW(kind, check) [NODE_##kind] = verify_##check,
static bool (*const verifiers[])(Verifying *, const LoopNode *) = {NODE_CHECKS(ROW)};
#undef ROW

// Whether the node's enumerators and ids are in range, so that verifiers may index tables with them.
static bool is_known(const Verifying *v, const LoopNode *n) {
  const Kernel *k = v->k;
  const size_t naccesses = k->naccesses ? k->naccesses : 1; // in a kernel without accesses, nodes have access 0
  return n->kind <= NODE_FENCE && n->expr < k->nexprs && n->access < naccesses && n->address.access < naccesses &&
         n->address.expr < k->nexprs && n->address.base <= BASE_PARTIAL && n->var.kind <= VAR_ELEMENT &&
         n->flag <= FLAG_HAS_ALL_PARTIALS && n->local <= LOCAL_SCALARS && n->load <= LOAD_SPILLED &&
         n->sum <= SUM_PARTIAL_ELEMENT && n->accumulator <= ACCUMULATOR_OF_ELEMENT;
}

static bool verify_nodes(Verifying *v, const LoopNode *n) {
  const size_t nscoped = v->nscoped;
  for (; n; n = n->next) {
    if (!is_known(v, n))
      return verify_fail(v, NULL, "a node has a kind, variable, flag, expression or access that does not exist");
    if (v->vector == NO_DIRECTION && (n->is_vector || n->load == LOAD_SPILLED || n->load == LOAD_COPIED))
      return verify_fail(v, n, "it is a vector, but the loop has no axis that vectors lie along");
    if (!verifiers[n->kind](v, n)) return false;
  }
  return scope_close(v, nscoped);
}

// Functions

static void begin_ranges(Verifying *v) {
  const Kernel *k = v->k;
  for (int d = 0; d <= NO_DIRECTION; d++) v->range[d] = (Range){.divisor = 1};
  for (int axis = 0; axis < k->naxes; axis++) {
    Range *r = &v->range[axis];
    r->from = number_index(v, 0);
    r->to = nelems_index(v, 1U << axis);
    r->divisor = kernel_factor(k, k->axes[axis].extent, k->axes[axis].monomial);
  }
  v->nframes = v->nguards = 0;
  v->chain = CHAIN_UNKNOWN;
}

static void begin_tile(Verifying *v) {
  Range *r = &v->range[v->vector];
  r->from = var_index(v, VAR_BEGIN);
  r->to = var_index(v, VAR_END);
  r->divisor = loop_has_open_length(v->k, v->loop) ? 1 : greatest_divisor(v->loop->cut.length, r->divisor);
}

// The step takes a part of the vector axis. All parts but the last have Loop.columns elements.
static void begin_columns(Verifying *v) {
  Range *r = &v->range[v->vector];
  r->from = var_index(v, VAR_COLUMN);
  r->to = var_index(v, VAR_COLUMN_END);
  r->divisor = greatest_divisor(v->loop->columns, r->divisor);
}

static bool begin_step(Verifying *v, bool is_tail) {
  const Loop *loop = v->loop;
  Var parameters[MOST_PARAMETERS];
  const int count = tree_parameters(v->t, is_tail, parameters);
  for (int i = 0; i < count; i++)
    if (!var_set(v, NULL, parameters[i], NULL)) return false;
  if (loop->columns && (v->vector == NO_DIRECTION || !loop_has(loop, LOOP_COLUMNS)))
    return verify_fail(v, NULL, "the loop takes parts of columns, but no level of its nest cuts its last axis");
  if (loop->columns) begin_columns(v);
  if (loop_tile(loop)) begin_tile(v);
  if (loop_tile(loop) || v->b.out_of_memory) return !v->b.out_of_memory;
  if (loop_has(loop, LOOP_ROW_LANES) && loop->nouter > 1 && loop->nfree != loop->nouter - 1)
    return verify_fail(v, NULL,
                       "with rows in lanes, all outer axes but the last must be free, or lanes may leave their axis");
  Range *r = &v->range[OUTER];
  r->is_piece = true;
  r->start = loop_var(VAR_OUTER);
  r->width = loop->rows > 1 ? WIDTH_ROWS : !loop_has(loop, LOOP_ROW_LANES) ? 1 : is_tail ? WIDTH_LANES : LANES;
  return frame_push(v, NULL, OUTER);
}

static bool begin_block(Verifying *v) {
  v->range[OUTER].from = var_index(v, VAR_BEGIN);
  v->range[OUTER].to = var_index(v, VAR_END);
  if (loop_shares_factors(v->loop) && !loop_has_open_length(v->k, v->loop) && !v->loop->cut.most) {
    const AxisSet cut = loop_cut_axes(v->loop);
    v->range[OUTER].divisor =
        greatest_divisor(v->loop->cut.length, kernel_factor(v->k, axes_nelems(v->k, cut), axes_monomial(v->k, cut)));
  }
  return !v->b.out_of_memory && var_set(v, NULL, loop_var(VAR_BLOCK), NULL);
}

// Whether each root of the loop has been computed. A root along inner axes needs no computation if these axes are
// empty.
static bool verify_roots(Verifying *v) {
  const bool is_empty = !axes_nelems(v->k, v->inner);
  for (size_t i = 0; i < v->loop->nroots; i++) {
    const Root *root = &v->loop->roots[i];
    const bool is_sum = root->kind == ROOT_REDUCE_INNER;
    const AxisSet axes = is_sum ? v->k->exprs[v->k->exprs[root->expr].args[0]].axes : root_axes(v->k, root);
    const size_t effect = effect_of(v, root, EFFECT_DONE);
    if (is_empty && axes & v->inner) continue;
    if (is_sum ? !sum_of(v, root)->is_ever_done : !v->done[effect]) return effect_fail(v, NULL, effect, "is missing");
  }
  return true;
}

static bool begin_function(Verifying *v, const char *name) {
  v->function = name;
  memset(v->sums, 0, v->loop->nroots * sizeof *v->sums);
  memset(v->spilled, 0, MOST_SPILLS * sizeof *v->spilled);
  begin_ranges(v);
  return effects_clear(v);
}

static bool verify_step(Verifying *v, const LoopNode *nodes, bool is_tail) {
  return begin_function(v, is_tail ? "tail step" : "step") && begin_step(v, is_tail) && verify_nodes(v, nodes) &&
         verify_roots(v) && scope_close(v, 0);
}

// Whether two blocks that run at the same time store different bytes.
static bool verify_bytes(Verifying *v) {
  const bool has_threads = !v->loop->is_serial || v->loop->serial_work;
  for (size_t i = 0; i < v->loop->nroots && has_threads; i++)
    if (v->loop->roots[i].kind == ROOT_STORE &&
        loop_shares_bytes(v->k, v->loop, &v->k->accesses[v->loop->roots[i].access]))
      return verify_fail(v, NULL, "blocks run on several threads, but two blocks may store halves of the same byte");
  return true;
}

static bool verify_block(Verifying *v) {
  v->is_block = true;
  if (!begin_function(v, "block") || !begin_block(v) || !verify_nodes(v, v->t->block) || !verify_bytes(v)) return false;
  if (!v->done[effect_of_step(v)]) return effect_fail(v, NULL, effect_of_step(v), "is missing");
  const LoopNode *last = v->t->block;
  while (last->next) last = last->next;
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
  v->sums = ARENA_ARRAY(v->arena, SumState, v->loop->nroots + 1);
  v->combinations = ARENA_ARRAY(v->arena, Combination, k->nexprs);
  v->spilled = ARENA_ARRAY(v->arena, SpillState, MOST_SPILLS);
  v->root_of_access = ARENA_ARRAY(v->arena, const Root *, k->naccesses + 1);
  if (!v->vars || !v->made || !v->memory || !v->sums || !v->combinations || !v->spilled || !v->root_of_access)
    return false;
  for (size_t i = 0; i < v->loop->nroots; i++)
    if (v->loop->roots[i].kind != ROOT_REDUCE_INNER) v->root_of_access[v->loop->roots[i].access] = &v->loop->roots[i];
  v->outer = loop_outer_axes(v->loop);
  v->inner = loop_inner_axes(v->loop);
  v->vector = v->loop->ninner ? loop_vector_axis(v->loop) : NO_DIRECTION;
  v->lanes = loop_has(v->loop, LOOP_ROW_LANES) ? OUTER : v->vector;
  find_partials(v);
  return true;
}

bool loops_verify(const LoopTree *t, Text *why) {
  Arena scratch;
  arena_init(&scratch, why->allocator);
  Verifying v = {.t = t, .k = t->k, .loop = t->loop, .why = why, .arena = &scratch, .b = {.arena = &scratch}};
  const bool is_scatter = kernel_is_scatter(t->k);
  bool ok = init(&v);
  if (!ok) why->out_of_memory = true;
  if (ok && is_scatter && t->step)
    ok = verify_fail(&v, NULL, "the kernel is a scatter and must not have a step function");
  ok = ok && (is_scatter || verify_step(&v, t->step, false)) &&
       (!t->tail_step || verify_step(&v, t->tail_step, true)) && verify_block(&v);
  why->out_of_memory |= v.b.out_of_memory;
  arena_deinit(&scratch);
  return ok && !why->out_of_memory;
}
