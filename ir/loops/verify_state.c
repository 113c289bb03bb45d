// The state of the walk: messages, scopes, and what indices and addresses may be. A node's declarations are in scope
// for the nodes that follow it in its list.
#include "ir/graph/open_dims.h"
#include "ir/loops/print.h"
#include "ir/loops/verifying.h"
#include "ir/operators/window.h"

#include <stdarg.h>

bool verify_fail(Verifying *v, const LoopNode *n, const char *format, ...) {
  va_list args;
  text_format(v->why, "loop %zu of the kernel of ", (size_t)(v->loop - v->t->schedule->loops));
  kernel_print_nodes(v->k, v->why);
  text_format(v->why, ", %s: ", v->function);
  if (n) loops_print_node(v->t, n, v->why);
  if (n) text_add_string(v->why, ": ");
  va_start(args, format);
  text_format_list(v->why, format, args);
  va_end(args);
  text_add_string(v->why, "\n");
  return false;
}

// Scopes

bool scope_end(Verifying *v, bool *is_in_scope) {
  v->x.out_of_memory |= !arena_grow(v->arena, &v->scoped, v->nscoped, &v->scoped_capacity, sizeof *v->scoped);
  if (!v->x.out_of_memory) v->scoped[v->nscoped++] = is_in_scope;
  return !v->x.out_of_memory;
}

bool scope_add(Verifying *v, bool *is_in_scope) {
  *is_in_scope = true;
  return scope_end(v, is_in_scope);
}

void scope_close(Verifying *v, size_t nscoped) {
  while (v->nscoped > nscoped) *v->scoped[--v->nscoped] = false;
}

Scoped *state_of(const Verifying *v, const Address *at) {
  return &v->buffers[v->slots.buffers[at->buffer] + at->of];
}

Variable *variable(const Verifying *v, Var var) {
  return &v->vars[v->slots.vars[var.kind] + var.of];
}

bool is_var(const Verifying *v, Var var) {
  const size_t counts[] = {[OWNER_FUNCTION] = 1, [OWNER_AXIS] = MAX_AXES, [OWNER_ACCESS] = v->k->naccesses};
  return var.kind < VAR_KINDS && var.of < counts[var_info[var.kind].owner];
}

bool var_set(Verifying *v, const LoopNode *n, Var var, const Amount *value) {
  if (!var.kind || !is_var(v, var)) return verify_fail(v, n, "its variable does not exist");
  Variable *own = variable(v, var);
  if (own->is_set) return verify_fail(v, n, "its variable is already set");
  *own = (Variable){.value = value};
  return value && scope_add(v, &own->is_set);
}

bool is_in_row(const Verifying *v) {
  return variable(v, loop_var(VAR_ROW))->is_set;
}

// Indices

static bool verify_address_of(Verifying *v, const LoopNode *n, const Index *i) {
  const Address *at = i->address;
  const bool is_access = !buffer_info[at->buffer].is_of_expr && at->of < v->k->naccesses;
  if (!is_access || (at->buffer != BUFFER_TENSOR && !state_of(v, at)->is_set))
    return verify_fail(v, n, "it takes an address in memory that is not declared before it");
  return verify_index(v, n, at->index);
}

bool verify_index(Verifying *v, const LoopNode *n, const Index *i) {
  if (!i) return true;
  if (i->op == INDEX_VAR && (!is_var(v, i->var) || !variable(v, i->var)->is_set))
    return verify_fail(v, n, "it uses a variable that is not set before it");
  if (i->address && !verify_address_of(v, n, i)) return false;
  if ((i->op == INDEX_NCUT_BLOCKS || i->op == INDEX_BLOCK_LENGTH) && i->loop >= v->t->schedule->nloops)
    return verify_fail(v, n, "it uses the block length or number of blocks of a loop that does not exist");
  if (i->op == INDEX_NUMBER && i->monomial && i->number % monomial_value(v->k->graph, i->monomial, NULL))
    return verify_fail(v, n, "it uses a number that is no multiple of the open dims in it");
  for (int a = 0; a < 3; a++)
    if (!verify_index(v, n, i->args[a])) return false;
  return true;
}

// The number of blocks of a loop for each index on its free axes, or their length, which open dims choose.
static Amount of_loop(const Verifying *v, IndexOp op, uint32_t loop) {
  return amount_of_symbol(v->of_loop[op == INDEX_BLOCK_LENGTH][loop]);
}

static Amount at_most(Verifying *v, int64_t most) {
  const Amount bound = amount_of(most, 0);
  return reach_symbol(&v->x, 1, &bound, NULL);
}

static Amount choose(Verifying *v, const Index *i) {
  const Index *test = i->args[0];
  const bool is_least =
      test->op == INDEX_LESS && index_equals(test->args[0], i->args[1]) && index_equals(test->args[1], i->args[2]);
  const Amount a = reach_of(v, i->args[1]), b = reach_of(v, i->args[2]);
  const int64_t multiple = greatest_divisor(reach_multiple(&v->x, &a), reach_multiple(&v->x, &b));
  return reach_symbol(&v->x, multiple, is_least ? &a : NULL, is_least ? &b : NULL);
}

static Amount of_two(Verifying *v, const Index *i) {
  Amount a = reach_of(v, i->args[0]);
  const Amount b = reach_of(v, i->args[1]);
  Amount quotient, rest;
  switch (i->op) {
  case INDEX_ADD: amount_add(&a, &b, 1); return a;
  case INDEX_SUBTRACT: amount_add(&a, &b, -1); return a;
  case INDEX_MULTIPLY: return amount_times(&a, &b);
  default: reach_divide(&v->x, &a, &b, &quotient, &rest); return i->op == INDEX_DIVIDE ? quotient : rest;
  }
}

Amount reach_of(Verifying *v, const Index *i) {
  enum { LINE = 64 };
  if (!i) return amount_of(0, 0);
  Amount p;
  switch (i->op) {
  case INDEX_NUMBER: return amount_of(i->number, i->monomial);
  case INDEX_VAR: return amount_copy(variable(v, i->var)->value);
  case INDEX_BLOCK_LENGTH:
  case INDEX_NCUT_BLOCKS: return of_loop(v, i->op, i->loop);
  case INDEX_SIGNED: return reach_of(v, i->args[0]);
  case INDEX_CHOOSE: return choose(v, i);
  case INDEX_TO_LINE: return at_most(v, (int64_t)(LINE / type_nbytes(v->k->accesses[i->address->of].type)) - 1);
  case INDEX_ADD:
  case INDEX_SUBTRACT:
  case INDEX_MULTIPLY:
  case INDEX_DIVIDE:
  case INDEX_REMAINDER: p = of_two(v, i); break;
  default: return at_most(v, 1);
  }
  return p.nterms < 0 ? reach_symbol(&v->x, 1, NULL, NULL) : p;
}

void add_facts(Verifying *v, const Index *test) {
  if (test && test->op == INDEX_BOTH) {
    add_facts(v, test->args[0]);
    add_facts(v, test->args[1]);
  }
  if (!test || test->op != INDEX_LESS || v->nfacts == MOST_FACTS) return;
  Fact *fact = &v->facts[v->nfacts++];
  const Amount end = reach_of(v, test->args[1]);
  fact->index = reach_of(v, test->args[0]);
  fact->most = amount_of(-1, 0);
  amount_add(&fact->most, &end, 1);
}

// Buffers

static bool is_memory(const Verifying *v, const Address *at) { // else the number of an element without storage
  return buffer_info[at->buffer].is_of_expr || v->k->accesses[at->of].type != TYPE_NONE;
}

// The number of elements of a tensor or temporary. Partial sums have a part for each block.
static Amount tensor_nelems(Verifying *v, const Access *a) {
  const Schedule *s = v->t->schedule;
  if (a->value) return amount_of(shape_nelems(&a->value->shape), shape_monomial(&a->value->shape));
  const Temporary *t = &s->temporaries[a->temporary];
  const Loop *maker = &s->loops[t->loop];
  const int64_t nblocks = t->reduction && v->k->graph ? loop_nblocks(v->k, maker) : 0;
  if (!nblocks) return amount_of(t->nelems, t->monomial);
  const AxisSet free = loop_outer_axes(maker) & ~loop_cut_axes(maker);
  const Amount part = amount_of(t->nelems / nblocks, t->monomial),
               own = loop_has_open_cut_blocks(v->k, maker) ? of_loop(v, INDEX_NCUT_BLOCKS, t->loop)
                                                           : amount_of(loop_ncut_blocks(v->k, maker), 0),
               others = amount_of(axes_nelems(v->k, free), axes_monomial(v->k, free)),
               all = amount_times(&own, &others);
  return amount_times(&part, &all);
}

static Amount buffer_nelems(Verifying *v, const Address *at) {
  const Scoped *s = state_of(v, at);
  const Access *a = &v->k->accesses[at->of];
  if (buffer_info[at->buffer].space == SPACE_STACK || (at->buffer == BUFFER_ROW && access_is_own(v->t, at->of)))
    return amount_of(s->node->count * (s->node->is_vector ? LANES : 1), 0);
  if (at->buffer == BUFFER_PARTIALS)
    return amount_of(axes_nelems(v->k, access_axes(v->k, a)), axes_monomial(v->k, access_axes(v->k, a)));
  return tensor_nelems(v, a);
}

// The fact's index times what makes a symbol of it vanish from the sum. False: it has none.
static bool find_factor(const Fact *fact, const Amount *p, Term *factor) {
  for (int i = 0; i < fact->index.nterms; i++)
    for (int j = 0; j < p->nterms; j++) {
      const Term *own = &fact->index.terms[i], *t = &p->terms[j];
      const bool is_same = own->symbols[0] && !own->symbols[1] && !t->symbols[1] && own->symbols[0] == t->symbols[0];
      if (!is_same || own->monomial || t->number % own->number) continue;
      *factor = (Term){.number = t->number / own->number, .monomial = t->monomial};
      return true;
    }
  return false;
}

// Replaces the indices of facts by their ends, or where it is to be the least, by 0.
static void use_facts(const Verifying *v, Amount *p, bool is_least) {
  for (int i = 0; i < v->nfacts; i++) {
    Term factor;
    if (!find_factor(&v->facts[i], p, &factor)) continue;
    const Amount times = amount_of(factor.number, factor.monomial), index = amount_times(&times, &v->facts[i].index),
                 most = amount_times(&times, &v->facts[i].most);
    amount_add(p, &index, -1);
    if ((factor.number > 0) != is_least) amount_add(p, &most, 1);
  }
}

// Whether all that the amount may be is from 0 to below `end`.
static bool is_below(Verifying *v, const Amount *p, const Amount *end) {
  for (int with_facts = 0; with_facts <= (v->nfacts > 0); with_facts++) {
    Amount least = amount_copy(p), most = amount_copy(p), before = amount_of(0, 0), beyond = amount_of(1, 0);
    if (with_facts) use_facts(v, &least, true);
    if (with_facts) use_facts(v, &most, false);
    amount_add(&before, &least, -1);
    amount_add(&beyond, &most, 1);
    amount_add(&beyond, end, -1);
    if (reach_is_never_positive(&v->x, &before) && reach_is_never_positive(&v->x, &beyond)) return true;
  }
  return false;
}

// An item of a register.
static bool verify_item(Verifying *v, const LoopNode *n, const Address *at, const LoopNode *begin) {
  const int64_t count = begin ? begin->count : 1;
  const bool takes_all = n->kind == NODE_BARRIER || (node_ends_sum(n) && tree_element_sums(v->t, at->of));
  const Amount item = reach_of(v, at->item), end = amount_of(count, 0);
  return (!at->index && (at->item ? count > 1 && is_below(v, &item, &end) : count == 1 || takes_all)) ||
         verify_fail(v, n, "there are %lld accumulators", (long long)count);
}

bool verify_buffer_of(Verifying *v, const LoopNode *n, const Address *at) {
  const Scoped *s = state_of(v, at);
  if (!at->buffer || (at->buffer != BUFFER_TENSOR && !s->is_set))
    return verify_fail(v, n, "the buffer must be declared before it");
  if (buffer_info[at->buffer].space == SPACE_REGISTERS)
    return verify_item(v, n, at, at->buffer == BUFFER_HELD ? NULL : s->node);
  return (s->has_rows ? index_equals(at->item, &item_of_row) && is_in_row(v) : !at->item) ||
         verify_fail(v, n, "it must take the row's pointer if, and only if, each row has its own pointer");
}

bool verify_inside(Verifying *v, const LoopNode *n, const Address *at, const Amount *offset, const Lanes *lanes) {
  if (buffer_info[at->buffer].space == SPACE_REGISTERS || !is_memory(v, at)) return true;
  const Scoped *s = state_of(v, at);
  const bool is_mask = !buffer_info[at->buffer].is_of_expr && access_is_mask(&v->k->accesses[at->of]);
  const Amount bits = amount_of(is_mask ? 8 : 1, 0), nelems = buffer_nelems(v, at), end = amount_times(&bits, &nelems);
  Amount first = reach_of(v, at->index);
  if (at->buffer != BUFFER_TENSOR && s->pointer) amount_add(&first, s->pointer, 1);
  if (offset) amount_add(&first, offset, 1);
  first = amount_times(&bits, &first);
  if (lanes) {
    const Amount lane = reach_symbol(&v->x, 1, &lanes->last, lanes->left), last = amount_times(&lane, &lanes->step);
    amount_add(&first, &last, 1);
    const Bound *bound = n->from.within ? node_lane_bound(v->t, n) : NULL;
    if (bound && v->nfacts < MOST_FACTS) {
      Fact *fact = &v->facts[v->nfacts++];
      fact->index = reach_of(v, n->from.within);
      amount_add(&fact->index, &lane, bound->factor[loop_lane_axis(v->loop)]);
      fact->most = amount_of(bound->extent - 1, 0);
    }
  }
  return v->never_runs || is_below(v, &first, &end) || verify_fail(v, n, "an element may lie outside of its buffer");
}

bool verify_access(Verifying *v, const LoopNode *n, const Address *at) {
  const Space space = buffer_info[at->buffer].space;
  const bool is_mask = !buffer_info[at->buffer].is_of_expr && access_is_mask(&v->k->accesses[at->of]);
  const int nfacts = v->nfacts;
  const size_t nsymbols = v->x.nsymbols;
  Lanes lanes = {.step = amount_of(1, 0), .last = amount_of(LANES - 1, 0)};
  if (n->is_vector && space != SPACE_STACK && !is_mask) {
    if (space == SPACE_TENSOR) lanes.step = reach_of(v, n->step);
    if (v->left && !n->has_fewer_lanes && !node_uses_all_lanes(v->t, n)) lanes.left = v->left;
    if (n->has_fewer_lanes) {
      lanes.last = amount_copy(variable(v, loop_var(VAR_LANES))->value);
      amount_add_number(&lanes.last, -1);
    }
  }
  add_facts(v, n->test);
  const bool ok = verify_inside(v, n, at, NULL, n->is_vector ? &lanes : NULL);
  v->nfacts = nfacts;
  v->x.nsymbols = nsymbols; // nothing that is kept has them
  return ok;
}
