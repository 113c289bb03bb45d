// Executes control flow, indices and pointers.
#include "ir/loops/executing.h"

static void execute_nodes(Executing *x, const LoopNode *n);

// Loops and conditions

static bool goes_on(Executing *x, const LoopNode *n) {
  const uint64_t at = *var_place(x, n->var), end = index_of_run(x, n->end);
  const bool is_before_end = n->is_counter ? at + index_of_run(x, n->step) <= end : at < end;
  return is_before_end && (!n->bound || at < index_of_run(x, n->bound)) && !x->has_failed;
}

static void execute_down(Executing *x, const LoopNode *n) {
  const uint64_t begin = index_of_run(x, n->value);
  for (uint64_t i = index_of_run(x, n->end); i > begin && !x->has_failed;) {
    *var_place(x, n->var) = --i;
    execute_nodes(x, n->body);
  }
}

// Of vectors as they are before schedule_split_vectors, the last one has fewer lanes.
static void execute_up(Executing *x, const LoopNode *n) {
  uint64_t *at = var_place(x, n->var);
  if (!n->is_counter) *at = index_of_run(x, n->value);
  while (goes_on(x, n)) {
    const uint64_t step = index_of_run(x, n->step), left = index_of_run(x, n->end) - *at;
    if (!step) execute_fail(x, "its step is 0");
    if (n->vectors) x->left = left < LANES ? (int)left : 0;
    execute_nodes(x, n->body);
    *at += step;
  }
  if (n->vectors) x->left = 0;
}

void execute_loop(Executing *x, const LoopNode *n) {
  if (n->is_down) execute_down(x, n);
  else execute_up(x, n);
}

void execute_choose(Executing *x, const LoopNode *n) {
  execute_nodes(x, is_on(x, n) ? n->body : n->otherwise);
}

// Integers

void execute_set(Executing *x, const LoopNode *n) {
  *var_place(x, n->var) = is_on(x, n) ? index_of_run(x, n->value) : 0;
}

// Pointers, local arrays

void execute_point(Executing *x, const LoopNode *n) {
  if (n->to.item || make_items(x, &n->to, 1)) point_to(x, &n->to, address_of(x, &n->from));
}

// Partial sums that the caller does not need are NULL.
void execute_begin_part(Executing *x, const LoopNode *n) {
  const Pointer p = address_of(x, &n->from);
  if (!p.buffer && !n->test) execute_fail(x, "it has no memory");
  if (make_items(x, &n->to, 1)) point_to(x, &n->to, is_on(x, n) ? p : (Pointer){NULL, 0});
}

// An array of pointers or values has an item for each row; other arrays have elements.
void execute_array(Executing *x, const LoopNode *n) {
  const bool is_own = n->to.buffer == BUFFER_ROW && access_is_own(x->tree, n->to.of);
  const Access *a = &x->k->accesses[node_access(n)];
  if (is_own) make_array(x, &n->to, a->type, n->count * (access_is_mask(a) ? 8 : 1));
  else if (buffer_info[n->to.buffer].space == SPACE_STACK)
    make_array(x, &n->to, TYPE_F32, n->count * (n->is_vector ? LANES : 1));
  else make_items(x, &n->to, n->count);
}

// Block and step are two functions in C: the step sees only the variables of the block that are its parameters.

static uint64_t argument_of(Executing *x, const LoopNode *n, Var parameter) {
  switch (parameter.kind) {
  case VAR_ROWS: return (uint64_t)n->count;
  case VAR_LANES: return index_of_run(x, n->value);
  case VAR_COLUMN_END: return index_of_run(x, n->end);
  default: return *var_place(x, parameter);
  }
}

void execute_call(Executing *x, const LoopNode *n) {
  Var parameters[MOST_PARAMETERS];
  uint64_t arguments[MOST_PARAMETERS];
  const int count = tree_parameters(x->tree, n->has_fewer_lanes, parameters);
  if (x->function) execute_fail(x, "a step calls a step");
  if (x->has_failed) return;
  for (int i = 0; i < count; i++) arguments[i] = argument_of(x, n, parameters[i]);
  x->function = 1;
  for (int i = 0; i < count; i++) *var_place(x, parameters[i]) = arguments[i];
  execute_nodes(x, n->has_fewer_lanes ? x->tree->tail_step : x->tree->step);
  x->function = 0;
}

static void (*const executors[ACTIONS])(Executing *x, const LoopNode *n) = {
#define ACTION(NAME, name, ...) [ACTION_##NAME] = execute_##name,
#define IDLE(...)
#include "ir/loops/actions.def"
};

static void execute_node(Executing *x, const LoopNode *n) {
  void (*const execute)(Executing * x, const LoopNode *n) = executors[node_action(n)];
  const bool is_declared =
      n->kind == NODE_INDEX || n->kind == NODE_BUFFER || n->kind == NODE_IF || n->kind == NODE_LET; // whatever the test
  if (!execute || !(is_declared || is_on(x, n))) return;
  if (!node_is_of_rows(x->tree, n)) {
    execute(x, n);
    return;
  }
  uint64_t *row = var_place(x, loop_var(VAR_ROW));
  for (*row = 0; *row < var_of(x, VAR_ROWS) && *row < MOST_ITEMS && !x->has_failed; ++*row) execute(x, n);
}

static void execute_nodes(Executing *x, const LoopNode *n) {
  const LoopNode *around = x->at;
  for (; n && !x->has_failed; n = n->next) {
    x->at = n;
    if (x->run.nsteps) x->has_failed = --*x->run.nsteps < 0;
    if (!x->has_failed) execute_node(x, n);
  }
  if (!x->has_failed) x->at = around;
}

static bool make_variables(Executing *x) {
  const Kernel *k = x->k;
  for (int f = 0; f < 2; f++) x->vars[f] = ARENA_ARRAY(x->arena, uint64_t, x->slots.vars[VAR_KINDS]);
  x->buffers = ARENA_ARRAY(x->arena, Storage, x->slots.buffers[BUFFER_KINDS]);
  bool ok = x->vars[0] && x->vars[1] && x->buffers;
  for (ExprId id = 0; ok && id < k->nexprs; id++) {
    const Expr *e = &k->exprs[id];
    const Address value = {.buffer = BUFFER_VALUE, .of = id};
    if (!x->tree->is_made[id] && e->op != EXPR_CONSTANT) continue;
    ok = make_items(x, &value, 1);
    if (!ok || e->op != EXPR_CONSTANT) continue;
    const Datum number =
        k->is_s64 ? x->domain->integer(x->domain->context, e->integer) : number_of(x, x->type, e->number);
    set_lanes(lanes_of(x, &value), number, 0, LANES);
  }
  x->why->out_of_memory |= !ok;
  return ok;
}

bool tree_execute(const LoopRun *run, int64_t first, int64_t end, Blocks *blocks, Text *why) {
  Arena arena;
  arena_init(&arena, why->allocator);
  Executing *x = ARENA_NEW(&arena, Executing);
  bool ok = x;
  if (ok) {
    *x = (Executing){.run = *run,
                     .tree = run->tree,
                     .k = run->tree->k,
                     .slots = tree_slots(run->tree),
                     .domain = run->domain,
                     .type = kernel_type(run->tree->k),
                     .arena = &arena,
                     .why = why};
    if (!blocks->are_one) blocks->first = blocks->now + 1;
    ok = make_variables(x);
  }
  for (int64_t b = first; b < end && ok; b++) {
    blocks->now += !blocks->are_one;
    x->blocks = *blocks;
    *var_place(x, loop_var(VAR_BLOCK)) = (uint64_t)b;
    x->at = NULL;
    execute_nodes(x, run->tree->block);
    ok = !x->has_failed;
  }
  why->out_of_memory |= !x;
  arena_deinit(&arena);
  return ok;
}
