// Walks over the functions of a tree, as the executor does (execute.c): from the block into the step at each call. But
// a loop is entered once, with a variable that may be any of its numbers, and both branches of a condition are.
#include "ir/loops/verify.h"

#include "ir/kernel/scatter.h"
#include "ir/loops/verifying.h"
#include "ir/operators/window.h"

#include <string.h>

static bool verify_nodes(Verifying *v, const LoopNode *n);

// Indices

static bool set_value(Verifying *v, Variable *var, const Amount *value) {
  var->value = amount_keep(&v->x, value);
  return var->value;
}

static Variable *counter_of(const Verifying *v, Var var) { // NULL: it is none
  Variable *own = variable(v, var);
  return own->is_set && own->is_counter ? own : NULL;
}

// Sets a counter to any number in its steps, which is at most each bound; NULL: not known.
static bool count_on(Verifying *v, Variable *counter, int64_t step, const Amount *bound, const Amount *other) {
  const Amount *given[] = {bound, other}, *bounds[2] = {NULL}, *base = counter->base;
  Amount own = amount_copy(counter->value), below[2];
  if (base) amount_add(&own, base, -1);
  if (!step && !own.nterms) return true; // it has not advanced
  for (int i = 0; i < 2; i++) {
    if (!given[i]) continue;
    below[i] = amount_copy(given[i]);
    if (base) amount_add(&below[i], base, -1);
    bounds[i] = &below[i];
  }
  Amount value = reach_symbol(&v->x, greatest_divisor(reach_multiple(&v->x, &own), step), bounds[0], bounds[1]);
  if (base) amount_add(&value, base, 1);
  return set_value(v, counter, &value);
}

static Amount minus(const Amount *p, const Amount *other, int64_t number) {
  Amount difference = amount_copy(p);
  if (other) amount_add(&difference, other, -1);
  amount_add_number(&difference, -number);
  return difference;
}

// Whether the lanes are 1 to LANES, and all that is left of the counter: behind a loop over whole steps, or few in all.
static bool verify_lanes(Verifying *v, const LoopNode *n, VarKind kind, const Amount *lanes) {
  const Variable *counter = counter_of(v, loop_var(kind));
  if (!counter || !counter->is_below) return verify_fail(v, n, "it must be in the tail of a counter");
  const Amount one = amount_of(1, 0), beyond = minus(lanes, NULL, LANES), left = minus(counter->to, counter->value, 0),
               other = minus(&left, lanes, 0), before = minus(&one, lanes, 0);
  const int64_t step = counter->step, multiple = greatest_divisor(reach_multiple(&v->x, counter->value), step),
                rest = step ? reach_rest(&v->x, counter->to, multiple) : 0;
  const bool is_behind =
      counter->left >= 0 ? counter->left <= LANES : step && step - multiple + (rest < 0 ? multiple - 1 : rest) <= LANES;
  return (!other.nterms && (is_behind || reach_is_never_positive(&v->x, &beyond)) &&
          reach_is_never_positive(&v->x, &before)) ||
         verify_fail(v, n, "it must be the number of elements that are left, at most those of a vector");
}

bool verify_set(Verifying *v, const LoopNode *n) {
  if (!n->value) return verify_fail(v, n, "it must have a value");
  const Amount value = reach_of(v, n->value);
  if (n->var.kind == VAR_LANES && n->value->op != INDEX_TO_LINE && !verify_lanes(v, n, VAR_LANE, &value)) return false;
  const bool is_advance = n->is_counter && n->value->op == INDEX_ADD && index_is_var(n->value->args[0], n->var);
  if (is_advance && counter_of(v, n->var)) return set_value(v, variable(v, n->var), &value);
  const Amount *kept = amount_keep(&v->x, &value);
  if (!kept || !var_set(v, n, n->var, kept)) return false;
  variable(v, n->var)->is_counter = n->is_counter;
  // Outer iterations are divided into indices on axes: those on its batch axes are the same in all of a block.
  const Variable *start = variable(v, loop_var(VAR_START));
  if (n->var.kind == VAR_OUTER && v->loop->nbatch) variable(v, n->var)->base = start->is_set ? start->value : kept;
  return true;
}

// Loops and conditions

static bool verify_body(Verifying *v, const LoopNode *n, const LoopNode *body, bool is_empty) {
  const bool never_runs = v->never_runs;
  if (v->depth == MOST_NESTED) return verify_fail(v, n, "it is nested too deeply");
  v->never_runs |= is_empty;
  v->depth++;
  const bool ok = verify_nodes(v, body);
  v->depth--;
  v->never_runs = never_runs;
  return ok;
}

// All loops and tests of a counter have the same end.
static bool verify_end(Verifying *v, const LoopNode *n, Variable *counter, const Amount *end) {
  const Amount other = minus(end, counter->to, 0);
  if (counter->to && other.nterms) return verify_fail(v, n, "it ends elsewhere than the counter's other loops");
  if (counter->to) return true;
  const Amount all = minus(end, counter->value, 0);
  counter->left = amount_is_literal(&all) ? amount_literal(&all) : -1;
  counter->to = amount_keep(&v->x, end);
  return counter->to;
}

// From a first value to a last one there is none.
static bool is_empty(Verifying *v, const Amount *first, const Amount *last) {
  const Amount count = minus(last, first, -1);
  return reach_is_never_positive(&v->x, &count);
}

typedef struct Range {       // of a loop: kept, as loops are nested and stacks are small
  const Amount *end, *bound; // bound: the greatest value; NULL: there is none
  const Amount *last, *left; // the greatest value before the end; what is behind the value
  bool is_empty;             // it is known to go over nothing
} Range;

// While a whole step is left.
static bool count_steps(Verifying *v, const LoopNode *n, Range *r) {
  Variable *counter = counter_of(v, n->var);
  const int64_t step = n->step->op == INDEX_NUMBER && !n->step->monomial ? n->step->number : 0;
  if (!counter || step < 1) return verify_fail(v, n, "it must continue a counter, with a step that is a literal");
  if (!verify_end(v, n, counter, r->end)) return false;
  const Amount most = minus(r->end, NULL, step);
  r->last = amount_keep(&v->x, &most);
  r->is_empty = is_empty(v, counter->value, &most);
  return r->last && count_on(v, counter, step, r->last, r->bound);
}

// Each number.
static bool go_over(Verifying *v, const LoopNode *n, Range *r) {
  const bool has_steps = n->vectors || n->var.kind == VAR_RUN || n->var.kind == VAR_RUN_BEGIN;
  const bool is_part = has_steps || n->var.kind == VAR_AXIS || n->var.kind == VAR_LANE;
  if (!n->value || (!has_steps && !index_is(n->step, 1)) || (!is_part && !index_is(n->value, 0)))
    return verify_fail(v, n, "it must go over all numbers: from 0, with step 1");
  const Amount begin = reach_of(v, n->value), step = reach_of(v, n->step), last = minus(r->end, NULL, 1);
  const int64_t multiple = greatest_divisor(reach_multiple(&v->x, &begin), reach_multiple(&v->x, &step));
  const Amount value = reach_symbol(&v->x, multiple, &last, r->bound), left = minus(&last, &value, 0);
  r->last = amount_keep(&v->x, &last);
  r->left = amount_keep(&v->x, &left);
  r->is_empty = is_empty(v, &begin, &last);
  return r->last && r->left && var_set(v, n, n->var, amount_keep(&v->x, &value));
}

static bool begin_loop(Verifying *v, const LoopNode *n, Range *r) {
  if (!n->step || !n->end) return verify_fail(v, n, "a loop must have an end and a step");
  const Amount end = reach_of(v, n->end), bound = reach_of(v, n->bound), before = minus(&bound, NULL, 1);
  r->end = amount_keep(&v->x, &end);
  r->bound = n->bound ? amount_keep(&v->x, &before) : NULL;
  if (!r->end || (n->bound && !r->bound)) return false;
  return n->is_counter && !n->vectors ? count_steps(v, n, r) : go_over(v, n, r);
}

static bool end_steps(Verifying *v, const LoopNode *n) {
  Variable *counter = counter_of(v, n->var);
  const int64_t step = n->step->number;
  if (!count_on(v, counter, step, NULL, NULL)) return false;
  counter->step = step;
  counter->left = counter->left < 0 || n->bound ? -1 : counter->left % step;
  return true;
}

bool verify_loop(Verifying *v, const LoopNode *n) {
  const size_t nscoped = v->nscoped;
  const Amount *before = v->left;
  Range r = {NULL};
  if (!begin_loop(v, n, &r)) return false;
  if (n->vectors) v->left = r.left;
  bool ok = verify_body(v, n, n->body, r.is_empty);
  v->left = before;
  if (!r.left) ok = ok && end_steps(v, n);
  scope_close(v, nscoped);
  return ok;
}

// Below its end, behind its other loops.
static bool is_left(Verifying *v, const LoopNode *n, Variable *counter) {
  const Amount end = reach_of(v, n->test->args[1]), most = minus(&end, NULL, 1);
  if (!verify_end(v, n, counter, &end) || !count_on(v, counter, 0, &most, NULL)) return false;
  counter->is_below = true;
  return true;
}

bool verify_choose(Verifying *v, const LoopNode *n) {
  const Index *test = n->test, *x = test && test->op == INDEX_LESS ? test->args[0] : NULL;
  const AccessId streamed = v->streamed;
  const int nfacts = v->nfacts;
  Variable *counter = x && x->op == INDEX_VAR ? counter_of(v, x->var) : NULL, before;
  if (counter) {
    before = *counter;
    if (!is_left(v, n, counter)) return false;
    before.to = counter->to;
  } else {
    add_facts(v, test);
  }
  if (test && test->op == INDEX_VAR && test->var.kind == VAR_STREAMED) v->streamed = test->var.of + 1;
  const bool ok = verify_body(v, n, n->body, false);
  if (counter) *counter = before;
  v->streamed = streamed;
  v->nfacts = nfacts;
  return ok && verify_body(v, n, n->otherwise, false);
}

// Other nodes

// A scatter node computes all rows of the block, which the kernel stores as its result.
bool verify_scatter(Verifying *v, const LoopNode *n) {
  Scatter s;
  const Variable *begin = variable(v, loop_var(VAR_BEGIN)), *end = variable(v, loop_var(VAR_END));
  if (!kernel_find_scatter(v->k, &s) || n->expr != s.sum || n->to.of != s.to)
    return verify_fail(v, n, "the kernel is not a scatter with this sum and this result");
  if (!begin->is_set || !end->is_set)
    return verify_fail(v, n, "the first and last row of the block (VAR_BEGIN, VAR_END) must be set before it");
  const Axis *columns = &v->k->axes[s.columns];
  const Amount last = minus(end->value, NULL, 1), row = reach_symbol(&v->x, 1, &last, NULL),
               width = amount_of(columns->extent, columns->monomial), first = amount_times(&row, &width);
  return verify_inside(v, n, &n->to, &first, &(Lanes){.step = amount_of(1, 0), .last = minus(&width, NULL, 1)});
}

// Block and step are two functions in C: the step sees only the variables of the block that are its parameters.

static const Amount *argument_of(Verifying *v, const LoopNode *n, Var parameter) {
  const Index *i = parameter.kind == VAR_LANES ? n->value : n->end;
  Amount value = amount_of(n->count, 0);
  if (parameter.kind == VAR_LANES || parameter.kind == VAR_COLUMN_END) {
    if (!i) return NULL;
    value = reach_of(v, i);
    if (parameter.kind == VAR_LANES && !verify_lanes(v, n, VAR_OUTER, &value)) return NULL;
  } else if (parameter.kind != VAR_ROWS) {
    return variable(v, parameter)->is_set ? variable(v, parameter)->value : NULL;
  }
  return amount_keep(&v->x, &value);
}

bool verify_call(Verifying *v, const LoopNode *n) {
  const Loop *loop = v->loop;
  const LoopNode *step = n->has_fewer_lanes ? v->t->tail_step : v->t->step;
  Var parameters[MOST_PARAMETERS];
  const Amount *arguments[MOST_PARAMETERS];
  const int count = tree_parameters(v->t, n->has_fewer_lanes, parameters);
  if (v->vars != v->of_block) return verify_fail(v, n, "a step must not call a step");
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_REDUCE_OUTER &&
        !state_of(v, &(Address){.buffer = BUFFER_PARTIALS, .of = loop->roots[i].access})->is_set)
      return verify_fail(v, n, "the block's partial sums must be declared before the first step");
  for (int i = 0; i < count; i++)
    if (!(arguments[i] = argument_of(v, n, parameters[i])))
      return verify_fail(v, n, "an argument of the step is not set before it");
  const size_t nscoped = v->nscoped;
  const int depth = v->depth;
  if (loop->rows > 1 && (n->count < 1 || n->count > loop->rows))
    return verify_fail(v, n, "it computes no row, or more than the step's arrays have elements");
  v->vars = v->of_step;
  v->depth = 0;
  v->function = n->has_fewer_lanes ? "tail step" : "step";
  bool ok = true;
  for (int i = 0; i < count && ok; i++) ok = var_set(v, n, parameters[i], arguments[i]);
  ok = ok && verify_nodes(v, step);
  scope_close(v, nscoped);
  v->vars = v->of_block;
  v->depth = depth;
  v->function = "block";
  return ok;
}

static bool (*const verifiers[ACTIONS])(Verifying *v, const LoopNode *n) = {
#define ACTION(NAME, name, ...) [ACTION_##NAME] = verify_##name,
#define IDLE(...)
#include "ir/loops/actions.def"
};

static bool is_known_address(const Kernel *k, const Address *at) {
  if (at->buffer >= BUFFER_KINDS) return false;
  if (!at->buffer) return !at->of && !at->item && !at->index;
  return at->of < (buffer_info[at->buffer].is_of_expr ? k->nexprs : k->naccesses ? k->naccesses : 1);
}

// Whether the node's enumerators and ids are in range, so that verifiers may index tables with them.
static bool is_known(const Verifying *v, const LoopNode *n) {
  const Kernel *k = v->k;
  return n->kind <= NODE_FENCE && n->expr < k->nexprs && is_known_address(k, &n->to) && is_known_address(k, &n->from) &&
         is_var(v, n->var);
}

// What holds for every action: indices are in scope, and so are the buffers that the node does not declare.
static bool verify_operands(Verifying *v, const LoopNode *n) {
  if (!v->loop->ninner && n->is_vector)
    return verify_fail(v, n, "it is a vector, but the loop has no axis that vectors lie along");
  if (n->count < 0) return verify_fail(v, n, "it has a negative number of items");
  if (n->has_fewer_lanes && n->kind != NODE_CALL && !(n->is_vector && variable(v, loop_var(VAR_LANES))->is_set))
    return verify_fail(v, n, "has_fewer_lanes is set, but it is a scalar, or all lanes hold elements here");
  for (int i = 0; i < NODE_INDICES; i++)
    if (!verify_index(v, n, *node_index((LoopNode *)n, i))) return false;
  if (n->kind != NODE_BUFFER && n->to.buffer && !verify_buffer_of(v, n, &n->to)) return false;
  return !n->from.buffer || verify_buffer_of(v, n, &n->from);
}

static bool verify_node(Verifying *v, const LoopNode *n) {
  if (!is_known(v, n))
    return verify_fail(v, NULL, "a node has a kind, variable, flag, expression or access that does not exist");
  const Action action = node_action(n);
  if (!action) return verify_fail(v, n, "no node of its kind has such buffers, or an expression beside them");
  const bool is_of_rows = node_is_of_rows(v->t, n);
  if (is_of_rows && !begin_each_row(v, n)) return false;
  const bool ok = verify_operands(v, n) && (!verifiers[action] || verifiers[action](v, n));
  if (is_of_rows) variable(v, loop_var(VAR_ROW))->is_set = false;
  return ok;
}

static bool verify_nodes(Verifying *v, const LoopNode *n) {
  const size_t nscoped = v->nscoped;
  for (; n; n = n->next)
    if (!verify_node(v, n)) return false;
  scope_close(v, nscoped);
  return true;
}

// Blocks

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
  Index blocks = {.op = INDEX_NCUT_BLOCKS, .loop = (uint32_t)(v->loop - v->t->schedule->loops)};
  const AxisSet free = loop_outer_axes(v->loop) & ~loop_cut_axes(v->loop);
  if (!loop_has_open_cut_blocks(v->k, v->loop))
    blocks = (Index){.op = INDEX_NUMBER, .number = loop_ncut_blocks(v->k, v->loop)};
  const Amount cut = reach_of(v, &blocks), others = amount_of(axes_nelems(v->k, free), axes_monomial(v->k, free)),
               count = amount_times(&cut, &others), last = minus(&count, NULL, 1),
               block = reach_symbol(&v->x, 1, &last, NULL);
  if (!var_set(v, NULL, loop_var(VAR_BLOCK), amount_keep(&v->x, &block))) return false;
  if (!v->t->block || !verify_nodes(v, v->t->block) || !verify_bytes(v)) return false;
  const LoopNode *end = v->t->block;
  while (end->next) end = end->next;
  return !(has_streams(v->t->step) || has_streams(v->t->tail_step)) || end->kind == NODE_FENCE ||
         verify_fail(v, end, "a block with streamed stores must end with a fence");
}

static bool init(Verifying *v) {
  const size_t nloops = v->t->schedule->nloops;
  v->slots = tree_slots(v->t);
  v->vars = v->of_block = ARENA_ARRAY(v->arena, Variable, v->slots.vars[VAR_KINDS]);
  v->of_step = ARENA_ARRAY(v->arena, Variable, v->slots.vars[VAR_KINDS]);
  v->buffers = ARENA_ARRAY(v->arena, Scoped, v->slots.buffers[BUFFER_KINDS]);
  v->of_loop[0] = ARENA_ARRAY(v->arena, uint32_t, nloops);
  v->of_loop[1] = ARENA_ARRAY(v->arena, uint32_t, nloops);
  for (size_t i = 0; v->of_loop[0] && v->of_loop[1] && i < nloops; i++) {
    v->of_loop[0][i] = reach_fixed(&v->x, 1);
    v->of_loop[1][i] = reach_fixed(&v->x, cut_is_multiple(&v->t->schedule->loops[i].cut, LANES) ? LANES : 1);
  }
  return v->of_block && v->of_step && v->buffers && v->of_loop[0] && v->of_loop[1];
}

bool loops_verify(const LoopTree *t, Text *why) {
  Arena scratch;
  arena_init(&scratch, why->allocator);
  Verifying *v = ARENA_NEW(&scratch, Verifying);
  const bool is_scatter = kernel_is_scatter(t->k);
  if (v) {
    v->t = t, v->k = t->k, v->loop = t->loop, v->why = why, v->arena = &scratch;
    v->function = "block";
    reach_init(&v->x, t->k, &scratch);
    v->never_runs = loop_is_idle(t->k, t->loop);
  }
  bool ok = v && init(v);
  why->out_of_memory |= !ok;
  if (ok && is_scatter && t->step)
    ok = verify_fail(v, NULL, "the kernel is a scatter and must not have a step function");
  ok = ok && verify_block(v);
  why->out_of_memory |= v && v->x.out_of_memory;
  arena_deinit(&scratch);
  return ok && !why->out_of_memory;
}
