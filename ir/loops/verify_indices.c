// Verifies variables and indices: converts them to linear forms of indices on axes, and compares indices on outer axes,
// ranges of blocks and lengths of runs with the expected forms.
#include "ir/loops/verifying.h"

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
  *state = (VarState){.value = value};
  return scope_add(v, &state->is_set, NULL, 0);
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
  const Range *r = v->vector < 0 ? NULL : &v->range[v->vector];
  const bool is_start =
      r && r->progress != RANGE_UNTOUCHED && r->start.kind && r->start.kind == var.kind && r->start.of == var.of;
  return is_start ? (Var){VAR_AXIS, (uint32_t)v->vector} : var;
}

Linear linear_of(const Verifying *v, const Index *i) {
  Linear l;
  l.nterms = 0;
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

int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b) {
    const int64_t remainder = a % b;
    a = b;
    b = remainder;
  }
  return a;
}

// Axes and blocks

// The index on an outer axis is the flattened index / (elements of the axes inside of it) % extent.
bool verify_axis_index(Verifying *v, const LoopNode *n) {
  const Loop *plan = v->plan;
  int at = 0;
  AxisSet below = 0;
  while (at < plan->nouter && plan->axes[at] != (int)n->var.of) at++;
  if (at == plan->nouter) return verify_fail(v, n, "the axis of its index must be an outer axis of the loop");
  for (int i = at + 1; i < plan->nouter; i++) below |= 1U << plan->axes[i];
  const bool has_rows = v->range[OUTER].start.kind == VAR_ROW;
  const AxisSet rows = has_rows ? loop_row_axes(v->k, plan) : 0;
  if (!has_rows && v->range[OUTER].width == WIDTH_ROWS && !(verify_shared_axes(v) >> n->var.of & 1))
    return verify_fail(v, n,
                       "the rows of a step have different indices on its axis, so it must be in a loop over rows");
  const Index *index = var_index(v, VAR_OUTER);
  if (rows >> n->var.of & 1) index = var_index(v, VAR_ROW);
  else if (has_rows) index = index_of(&v->b, INDEX_ADD, index, var_index(v, VAR_ROW));
  const int64_t nelems = axes_nelems(v->k, below);
  const bool is_first = rows >> n->var.of & 1 ? !(rows & ~below & ~(1U << n->var.of)) : !at;
  index = index_of(&v->b, INDEX_DIVIDE, index, nelems ? nelems_index(v, below) : number_index(v, 1));
  if (!is_first) index = index_of(&v->b, INDEX_REMAINDER, index, nelems_index(v, 1U << n->var.of));
  if (v->b.out_of_memory) return false;
  return !nelems || index_equals(n->value, index) || verify_fail_index(v, n, "the index on its axis", n->value, index);
}

static bool verify_value(Verifying *v, const LoopNode *n, VarKind kind, const Index *expected) {
  const VarState *state = var_state(v, (Var){kind, 0});
  if (v->b.out_of_memory) return false;
  if (!state->is_set || !state->value)
    return verify_fail(v, n, "variable %s of the block's range must be set before it", var_names[kind]);
  return index_equals(state->value, expected) || verify_fail_index(v, n, var_names[kind], state->value, expected);
}

static const Index *least(Verifying *v, const Index *x, const Index *y) {
  return index_choose(&v->b, index_of(&v->b, INDEX_LESS, x, y), x, y);
}

// With free axes, each index on them has `cut_blocks` blocks, and the last of these may be shorter.
static bool verify_cut_blocks(Verifying *v, const LoopNode *n, const Index *total, const Index *length) {
  TreeBuilder *b = &v->b;
  const uint32_t loop = (uint32_t)(v->plan - v->t->schedule->loops);
  const bool is_open = loop_has_open_cut_blocks(v->k, v->plan);
  const int64_t ncut_blocks = loop_ncut_blocks(v->k, v->plan);
  const Index *block = var_index(v, VAR_BLOCK), *start = var_index(v, VAR_START),
              *cut_begin = var_index(v, VAR_CUT_BEGIN);
  const Index *cut_blocks = is_open ? index_loop(b, INDEX_NCUT_BLOCKS, loop) : number_index(v, ncut_blocks);
  if (!is_open && ncut_blocks <= 1)
    return verify_value(v, n, VAR_BEGIN, index_of(b, INDEX_MULTIPLY, block, total)) &&
           verify_value(v, n, VAR_END, index_of(b, INDEX_ADD, var_index(v, VAR_BEGIN), total));
  const Index *next = least(v, index_of(b, INDEX_ADD, cut_begin, length), total);
  return verify_value(v, n, VAR_START,
                      index_of(b, INDEX_MULTIPLY, index_of(b, INDEX_DIVIDE, block, cut_blocks), total)) &&
         verify_value(v, n, VAR_CUT_BEGIN,
                      index_of(b, INDEX_MULTIPLY, index_of(b, INDEX_REMAINDER, block, cut_blocks), length)) &&
         verify_value(v, n, VAR_BEGIN, index_of(b, INDEX_ADD, start, cut_begin)) &&
         verify_value(v, n, VAR_END, index_of(b, INDEX_ADD, start, next));
}

bool verify_block_range(Verifying *v, const LoopNode *n) {
  const Kernel *k = v->k;
  const Loop *plan = v->plan;
  TreeBuilder *b = &v->b;
  const bool is_open = loop_has_open_length(k, plan);
  const Index *total = nelems_index(v, loop_cut_axes(plan)), *begin = var_index(v, VAR_BEGIN);
  const Index *length = is_open ? index_loop(b, INDEX_BLOCK_LENGTH, (uint32_t)(plan - v->t->schedule->loops))
                                : number_index(v, loop_block_length(k, plan));
  if (plan->nfree) return verify_cut_blocks(v, n, total, length);
  if (!loop_has_open_cut_blocks(k, plan) && loop_nblocks(k, plan) == 1)
    return verify_value(v, n, VAR_BEGIN, number_index(v, 0)) && verify_value(v, n, VAR_END, total);
  return verify_value(v, n, VAR_BEGIN, index_of(b, INDEX_MULTIPLY, var_index(v, VAR_BLOCK), length)) &&
         verify_value(v, n, VAR_END, least(v, index_of(b, INDEX_ADD, begin, length), total));
}

// If the innermost extent is open, VAR_CHAIN is an accumulator's number of additions in one iteration of the middle
// axes, and VAR_RUN_LENGTH the number of iterations in a chain of at most LONGEST_RUN additions.
bool verify_chain(Verifying *v, const LoopNode *n) {
  TreeBuilder *b = &v->b;
  if (v->vector < 0 || !loop_runs(v->k, v->plan).is_open)
    return verify_fail(v, n, "VAR_CHAIN is only for loops whose runs depend on open dims");
  const Index *width = nelems_index(v, 1U << v->vector), *lanes = number_index(v, LANES);
  const Index *group = number_index(v, (int64_t)LANES * v->plan->accumulators);
  const Index *groups = index_of(b, INDEX_DIVIDE, width, group);
  const Index *vectors = index_of(b, INDEX_DIVIDE, index_of(b, INDEX_REMAINDER, width, group), lanes);
  const Index *tail = index_of(b, INDEX_DIFFERS, index_of(b, INDEX_REMAINDER, width, lanes), number_index(v, 0));
  const Index *chain = index_of(b, INDEX_ADD, index_of(b, INDEX_ADD, groups, vectors), tail);
  return !b->out_of_memory &&
         (index_equals(n->value, chain) || verify_fail_index(v, n, "the length of a chain", n->value, chain));
}

bool verify_run_length(Verifying *v, const LoopNode *n) {
  TreeBuilder *b = &v->b;
  const Index *chain = var_index(v, VAR_CHAIN), *longest = number_index(v, LONGEST_RUN);
  const Index *length = index_choose(b, chain, index_of(b, INDEX_DIVIDE, longest, chain), number_index(v, 1));
  return !b->out_of_memory &&
         (index_equals(n->value, length) || verify_fail_index(v, n, "the length of a run", n->value, length));
}
