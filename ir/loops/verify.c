// Walks over the functions of a tree: step, tail step, block. A table has the check of each kind of node.
#include "ir/loops/verify.h"

#include "ir/kernel/scatter.h"
#include "ir/loops/verifying.h"
#include "ir/operators/window.h"

#include <string.h>

static bool verify_nodes(Verifying *v, const LoopNode *n);

// Loops and conditions

static bool verify_body(Verifying *v, const LoopNode *n, const LoopNode *body, int direction, const Range *r) {
  const Range before = v->range[direction];
  if (v->depth == MOST_NESTED) return verify_fail(v, n, "it is nested too deeply");
  if (direction != NO_DIRECTION) {
    v->range[direction] = *r;
    v->range[direction].is_piece = true;
  }
  v->depth++;
  const bool ok = verify_nodes(v, body);
  v->depth--;
  v->range[direction] = before;
  return ok;
}

bool verify_for(Verifying *v, const LoopNode *n) {
  const size_t nscoped = v->nscoped;
  int direction;
  Range r;
  const bool ok = begin_for(v, n, &direction, &r) && verify_body(v, n, n->body, direction, &r);
  scope_close(v, nscoped);
  return ok;
}

bool verify_if(Verifying *v, const LoopNode *n) {
  int direction = NO_DIRECTION;
  Range r;
  if (!n->test) return verify_nodes(v, n->body) && verify_nodes(v, n->otherwise);
  if (!verify_test(v, n) || !begin_if(v, n, &direction, &r)) return false;
  const AccessId before = v->streamed;
  if (n->test->op == INDEX_VAR && n->test->var.kind == VAR_STREAMED) v->streamed = n->test->var.of + 1;
  const bool ok = verify_body(v, n, n->body, direction, &r);
  v->streamed = before;
  return ok && verify_body(v, n, n->otherwise, NO_DIRECTION, NULL);
}

// Other nodes

bool verify_nothing(Verifying *v, const LoopNode *n) {
  (void)v;
  (void)n;
  return true;
}

// A scatter node must compute all rows of the block, which the kernel stores as its result.
bool verify_scatter(Verifying *v, const LoopNode *n) {
  Scatter s;
  if (!kernel_find_scatter(v->k, &s) || n->expr != s.sum || n->to.buffer != BUFFER_TENSOR || n->to.of != s.to)
    return verify_fail(v, n, "the kernel is not a scatter with this sum and this result");
  return (var_state(v, loop_var(VAR_BEGIN))->is_set && var_state(v, loop_var(VAR_END))->is_set) ||
         verify_fail(v, n, "the first and last row of the block (VAR_BEGIN, VAR_END) must be set before it");
}

#define ROW(kind, check) [NODE_##kind] = verify_##check,
static bool (*const verifiers[])(Verifying *, const LoopNode *) = {NODE_CHECKS(ROW)};
#undef ROW

static bool is_known_address(const Kernel *k, const Address *at) {
  if (at->buffer > BUFFER_HELD || at->item > ITEM_OF_ELEMENT) return false;
  if (!at->buffer) return !at->of && !at->item && !at->index;
  return at->of < (buffer_info[at->buffer].is_of_expr ? k->nexprs : k->naccesses ? k->naccesses : 1);
}

// Whether the node's enumerators and ids are in range, so that verifiers may index tables with them.
static bool is_known(const Verifying *v, const LoopNode *n) {
  const Kernel *k = v->k;
  return n->kind <= NODE_FENCE && n->expr < k->nexprs && is_known_address(k, &n->to) && is_known_address(k, &n->from) &&
         n->var.kind <= VAR_ELEMENT && n->var.of < (uint32_t)vars_count(k, n->var.kind);
}

static bool verify_nodes(Verifying *v, const LoopNode *n) {
  const size_t nscoped = v->nscoped;
  for (; n; n = n->next) {
    if (!is_known(v, n))
      return verify_fail(v, NULL, "a node has a kind, variable, flag, expression or access that does not exist");
    if (v->vector == NO_DIRECTION && n->is_vector)
      return verify_fail(v, n, "it is a vector, but the loop has no axis that vectors lie along");
    if (!verifiers[n->kind](v, n)) return false;
  }
  scope_close(v, nscoped);
  return true;
}

// Functions

static void begin_ranges(Verifying *v) {
  const Kernel *k = v->k;
  memset(v->range, 0, sizeof v->range);
  for (int axis = 0; axis < k->naxes; axis++) {
    v->range[axis].to = nelems_index(v, 1U << axis);
    v->range[axis].divisor = kernel_factor(k, k->axes[axis].extent, k->axes[axis].monomial);
  }
  v->range[OUTER].to = var_index(v, VAR_END);
}

// A step takes an iteration, several rows, or LANES of them; or a tile, or a part of the vector axis.
static bool begin_step(Verifying *v, bool is_tail) {
  const Loop *loop = v->loop;
  Var parameters[MOST_PARAMETERS];
  const int count = tree_parameters(v->t, is_tail, parameters);
  Range *vector = &v->range[v->vector], *outer = &v->range[OUTER];
  for (int i = 0; i < count; i++)
    if (!var_set(v, NULL, parameters[i], NULL)) return false;
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_REDUCE_OUTER &&
        !scope_add(v, &state_of(v, BUFFER_PARTIALS, loop->roots[i].access)->is_set))
      return false;
  if (loop->columns && (v->vector == NO_DIRECTION || !loop_has(loop, LOOP_COLUMNS)))
    return verify_fail(v, NULL, "the loop takes parts of columns, but no level of its nest cuts its last axis");
  if (loop->columns || loop_tile(loop)) {
    vector->to = var_index(v, loop->columns ? VAR_COLUMN_END : VAR_END);
    vector->divisor = !loop->columns && loop_has_open_length(v->k, loop)
                          ? 1
                          : greatest_divisor(loop->columns ? loop->columns : loop->cut.length, vector->divisor);
  }
  if (loop_tile(loop) && !loop->nouter) return true;
  if (loop_has(loop, LOOP_ROW_LANES) && loop->nouter > 1 && loop->nbatch != loop->nouter - 1)
    return verify_fail(v, NULL,
                       "with rows in lanes, all outer axes but the last must be free, or lanes may leave their axis");
  outer->is_piece = true;
  outer->start = loop_var(VAR_OUTER);
  outer->width = loop->rows > 1 ? WIDTH_ROWS : !loop_has(loop, LOOP_ROW_LANES) ? 1 : is_tail ? WIDTH_LANES : LANES;
  return true;
}

static bool begin_function(Verifying *v, const char *name) {
  v->function = name;
  v->depth = 0;
  begin_ranges(v);
  return !v->b.out_of_memory;
}

static bool verify_step(Verifying *v, const LoopNode *nodes, bool is_tail) {
  const bool ok = begin_function(v, is_tail ? "tail step" : "step") && begin_step(v, is_tail) && verify_nodes(v, nodes);
  scope_close(v, 0);
  return ok;
}

static bool has_streams(const LoopNode *n) {
  bool is_any = false;
  for (; n && !is_any; n = n->next) is_any = n->is_streamed || has_streams(n->body) || has_streams(n->otherwise);
  return is_any;
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
  if (!begin_function(v, "block") || !var_set(v, NULL, loop_var(VAR_BLOCK), NULL)) return false;
  if (!v->t->block || !verify_nodes(v, v->t->block) || !verify_bytes(v)) return false;
  const LoopNode *last = v->t->block;
  while (last->next) last = last->next;
  return !(has_streams(v->t->step) || has_streams(v->t->tail_step)) || last->kind == NODE_FENCE ||
         verify_fail(v, last, "a block with streamed stores must end with a fence");
}

static bool init(Verifying *v) {
  bool ok = true;
  for (int kind = 0; kind < VAR_KINDS && ok; kind++) {
    v->vars[kind] = ARENA_ARRAY(v->arena, VarState, vars_count(v->k, (VarKind)kind) + 1);
    ok = v->vars[kind];
  }
  for (int kind = 0; kind < BUFFER_KINDS && ok; kind++) {
    v->buffers[kind] =
        ARENA_ARRAY(v->arena, Scoped, buffer_info[kind].is_of_expr ? v->k->nexprs + 1 : v->k->naccesses + 1);
    ok = v->buffers[kind];
  }
  v->outer = loop_outer_axes(v->loop);
  v->inner = loop_inner_axes(v->loop);
  v->vector = v->loop->ninner ? loop_vector_axis(v->loop) : NO_DIRECTION;
  v->lanes = loop_has(v->loop, LOOP_ROW_LANES) ? OUTER : v->vector;
  return ok;
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
