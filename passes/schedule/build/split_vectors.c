// Splits each loop over vectors into loops over groups of vectors and single vectors, with peeled elements and a tail:
//
//   count i from begin
//   n = elements up to the next cache line; the first n elements; i += n      if rows are peeled
//   for i += count * 16 while i + count * 16 <= end                           if there are sums
//     for u in 0..count, unrolled: vector i + u * 16, accumulator u            inside of any loop over rows of sums
//   for i += rest * 16 while i + rest * 16 <= end                             if that many vectors remain
//     for u in 0..rest, unrolled: the same
//   for i += 16 while i + 16 <= end: vector i, accumulator 0
//   if i < end: n = end - i; the last n elements, accumulator 0
#include "passes/schedule/build/tree_passes.h"

static bool is_of_prefetch(const LoopNode *n) {
  return n->kind == NODE_PREFETCH ||
         (n->kind == NODE_INDEX &&
          (n->var.kind == VAR_IS_AHEAD || n->var.kind == VAR_AHEAD_AXIS || n->var.kind == VAR_AHEAD_LANE));
}

static bool is_sum(const Address *a) {
  return a->buffer == BUFFER_SUM || a->buffer == BUFFER_TOTAL;
}

// Edits a node copied into a group of `count` vectors (an edit of tree_add_copy). If each lane has a sum of its own,
// the group has an accumulator for each vector, beside those for each row, and an update adds to its vector's; else all
// vectors of the group are parts of the same sum.
static bool use_own_accumulator(LoopNode *n, const LoopTree *t, int count) {
  if (node_combines(t, n) || !loop_sums_in_lanes(t->loop)) return true;
  Address *const sums[] = {&n->to, &n->from};
  for (int i = 0; i < 2 && n->kind != NODE_BUFFER; i++)
    if (is_sum(sums[i])) sums[i]->item = sums[i]->item ? &item_of_both : &item_of_vector;
  if (n->kind == NODE_BUFFER && is_sum(&n->to)) n->count *= count;
  return true;
}

// The same for a group of many vectors of f32, each of which stays in a register for all rows.
static bool use_held(LoopNode *n, const LoopTree *t, int count) {
  n->is_held = n->kind == NODE_LET && n->is_vector && node_load(t, n) == LOAD_DENSE;
  return use_own_accumulator(n, t, count);
}

// Edits a node copied into the peeled elements or the tail: it has fewer lanes. Prefetches are dropped unless there are
// no whole vectors (is_alone).
static bool use_fewer_lanes(LoopNode *n, const LoopTree *t, int is_alone) {
  const bool is_computed = n->kind == NODE_LET || n->kind == NODE_UPDATE || n->kind == NODE_STORE ||
                           (n->kind == NODE_BUFFER && n->to.buffer == BUFFER_HELD);
  const bool is_in_registers = is_sum(&n->from) || (n->kind == NODE_UPDATE && n->to.buffer == BUFFER_HELD);
  n->has_fewer_lanes = is_computed && n->is_vector && !is_in_registers &&
                       buffer_info[n->to.buffer].space != SPACE_STACK && !node_uses_all_lanes(t, n);
  return is_alone || !is_of_prefetch(n);
}

static void open(TreeBuilder *b, LoopNode node) {
  tree_open(b, &tree_add(b, node)->body);
}

static LoopNode whole_steps(TreeBuilder *b, const LoopNode *loop, int64_t step) {
  return (LoopNode){
      .kind = NODE_FOR, .var = loop->var, .end = loop->end, .step = tree_number(b, step), .is_counter = true};
}

static const LoopNode *find_store(const LoopNode *nodes, AccessId access) {
  const LoopNode *found = NULL;
  for (const LoopNode *n = nodes; n && !found; n = n->next)
    found = n->kind == NODE_STORE && n->to.of == access && !buffer_info[n->to.buffer].is_of_expr
                ? n
                : find_store(n->body, access);
  return found;
}

// The test inside of the nodes that guards the store of the access, as the caller may not want the output; NULL: none.
static const Index *find_test(const LoopNode *nodes, AccessId access) {
  const Index *found = NULL;
  for (const LoopNode *n = nodes; n && !found; n = n->next)
    found =
        n->kind == NODE_IF && index_is_var(n->test, (Var){VAR_WANTED, access}) ? n->test : find_test(n->body, access);
  return found;
}

// Adds the elements before the first cache line of the stored row.
static void add_peel(TreeBuilder *b, const LoopTree *t, const LoopNode *loop) {
  const LoopNode *store = find_store(loop->body, loop->vectors->peeled);
  const Index *lane = index_var(b, VAR_LANE, 0);
  if (!store || !lane) return;
  open(b, (LoopNode){.kind = NODE_IF});
  tree_add(b, (LoopNode){.kind = NODE_INDEX,
                         .var = loop_var(VAR_LANES),
                         .value = index_of_address(b, INDEX_TO_LINE, store->to),
                         .test = find_test(loop->body, store->to.of)});
  open(b, (LoopNode){.kind = NODE_IF, .test = index_var(b, VAR_LANES, 0)});
  tree_add_copy(b, loop->body, loop->var, lane, use_fewer_lanes, t, 0);
  tree_close(b);
  tree_add(b, (LoopNode){.kind = NODE_INDEX,
                         .var = loop->var,
                         .value = index_of(b, INDEX_ADD, lane, index_var(b, VAR_LANES, 0)),
                         .is_counter = true});
  tree_close(b);
}

static LoopNode alone(const LoopNode *n) {
  LoopNode node = *n;
  node.next = NULL;
  return node;
}

static bool is_shared(const LoopTree *t, const LoopNode *n) { // once for all vectors of a group
  const LoopNode only = alone(n);
  return (n->kind == NODE_BUFFER && is_sum(&n->to) && !node_combines(t, n)) || n->kind == NODE_INDEX ||
         (n->kind == NODE_LET && !n->is_vector && !node_ends_sum(n)) ||
         (n->kind == NODE_PREFETCH && !nodes_mention(&only, loop_var(VAR_LANE)));
}

static bool is_around_vectors(const LoopNode *n) {
  return n->kind == NODE_FOR && !n->is_unrolled && n->var.kind != VAR_COMBINED_BLOCK;
}

static bool is_per_vector(const LoopTree *t, const LoopNode *n) {
  return !is_shared(t, n) && !is_around_vectors(n);
}

// Compilers compute such a value once even if it is written several times.
static bool is_plain_value(const LoopTree *t, const LoopNode *n) {
  return n->kind == NODE_LET && !node_ends_sum(n) && !expr_is_long(t->k->exprs[n->expr].op);
}

// The loop over rows after n, if the loop only adds to sums and only plain values precede it: then the loop over rows
// can enclose the loop over vectors. NULL: no such loop.
static const LoopNode *find_rows_of_sums(const LoopTree *t, const LoopNode *n) {
  while (n && is_plain_value(t, n)) n = n->next;
  if (!n || n->kind != NODE_FOR || !n->is_unrolled || (n->next && is_per_vector(t, n->next))) return NULL;
  for (const LoopNode *own = n->body; own; own = own->next)
    if (!is_plain_value(t, own) && own->kind != NODE_UPDATE) return NULL;
  return n;
}

// The node after the prefetches that begin at n, if a loop over rows that adds to sums follows. NULL: it does not.
static const LoopNode *find_end_of_prefetches(const LoopTree *t, const LoopNode *n) {
  const LoopNode *end = n;
  while (end && end->kind == NODE_PREFETCH) end = end->next;
  return end != n && find_rows_of_sums(t, end) ? end : NULL;
}

static void open_vectors(TreeBuilder *b, int count) {
  open(b, (LoopNode){.kind = NODE_FOR,
                     .var = loop_var(VAR_VECTOR),
                     .value = tree_number(b, 0),
                     .end = tree_number(b, count),
                     .step = tree_number(b, 1),
                     .is_unrolled = true});
}

// Adds a loop over the vectors of a group, with the consecutive nodes from n on that depend on the vector. Returns the
// first node after them.
//
// With at most FEW_VECTORS, a loop over rows that adds to sums encloses the loop over vectors: then only one row's
// scalar is in a register at a time, and the other registers hold the sums of all rows and vectors. Prefetches before
// it get their own loop.
static const LoopNode *add_vectors_of_group(TreeBuilder *b, const LoopTree *t, const LoopNode *n, int count) {
  const Index *lane = index_var(b, VAR_LANE, 0), *vector = index_var(b, VAR_VECTOR, 0);
  const Index *value = index_of(b, INDEX_ADD, lane, index_of(b, INDEX_MULTIPLY, vector, tree_number(b, LANES)));
  const Index *vector_lane = index_var(b, VAR_VECTOR_LANE, 0);
  const LoopNode *sums = find_rows_of_sums(t, n), *rows = count <= FEW_VECTORS ? sums : NULL;
  const LoopNode *own = rows ? rows->body : NULL;
  const LoopNode *end = find_end_of_prefetches(t, n);
  bool has_lane = false;
  for (const LoopNode *next = n; next && next != end && is_per_vector(t, next); next = next->next) {
    const LoopNode only = alone(next);
    has_lane |= nodes_mention(&only, loop_var(VAR_LANE));
  }
  if (rows) {
    LoopNode node = alone(rows);
    node.body = NULL;
    open(b, node);
    for (; own && is_shared(t, own) && own->kind != NODE_BUFFER; own = own->next) tree_add(b, alone(own));
  }
  open_vectors(b, count);
  if (has_lane) tree_set(b, loop_var(VAR_VECTOR_LANE), value);
  for (; n && n != end && is_per_vector(t, n) && n != rows && vector_lane; n = n->next) {
    const LoopNode only = alone(n);
    tree_add_copy(b, &only, loop_var(VAR_LANE), vector_lane,
                  sums && !rows && !t->k->is_f64 ? use_held : use_own_accumulator, t, count);
  }
  if (rows) {
    tree_add_copy(b, own, loop_var(VAR_LANE), vector_lane, use_own_accumulator, t, count);
    tree_close(b);
    n = rows->next;
  }
  tree_close(b);
  return vector_lane ? n : NULL;
}

// Unroll and jam: loops over middle axes in the body stay outside, and a loop over the group's vectors is added inside
// each of them, and between them.
static void add_jammed(TreeBuilder *b, const LoopTree *t, const LoopNode *n, int count) {
  while (n) {
    if (is_per_vector(t, n)) {
      n = add_vectors_of_group(b, t, n, count);
      continue;
    }
    LoopNode node = alone(n);
    if (is_shared(t, n)) use_own_accumulator(&node, t, count);
    node.body = NULL;
    tree_open(b, &tree_add(b, node)->body);
    add_jammed(b, t, n->body, count);
    tree_close(b);
    n = n->next;
  }
}

static void add_groups(TreeBuilder *b, const LoopTree *t, const LoopNode *loop, int count) {
  open(b, whole_steps(b, loop, (int64_t)count * LANES));
  add_jammed(b, t, loop->body, count);
  tree_close(b);
}

// The number of elements of a loop; -1: not known.
static int64_t count_elements(const LoopNode *loop) {
  const Index *begin = loop->value, *end = loop->end;
  const bool is_literal =
      begin->op == INDEX_NUMBER && end->op == INDEX_NUMBER && !end->monomial && !loop->vectors->is_peeled;
  return is_literal ? end->number - begin->number : -1;
}

static bool may_have(int64_t nelems, int64_t nlanes) {
  return nelems < 0 || nelems >= nlanes;
}

// Adds a loop over groups of `count` vectors, if any. Returns the number of elements after them.
static int64_t add_groups_of(TreeBuilder *b, const LoopTree *t, const LoopNode *loop, int count, int64_t nelems) {
  const int64_t nlanes = (int64_t)count * LANES;
  if (count <= 1 || !may_have(nelems, nlanes)) return nelems;
  add_groups(b, t, loop, count);
  return nelems < 0 ? -1 : nelems % nlanes;
}

static void add_tail(TreeBuilder *b, const LoopTree *t, const LoopNode *loop) {
  const Index *lane = index_var(b, VAR_LANE, 0);
  open(b, (LoopNode){.kind = NODE_IF, .test = index_of(b, INDEX_LESS, lane, loop->end)});
  tree_set(b, loop_var(VAR_LANES), index_of(b, INDEX_SUBTRACT, loop->end, lane));
  tree_add_copy(b, loop->body, loop->var, lane, use_fewer_lanes, t, !may_have(count_elements(loop), LANES));
  tree_close(b);
}

// Replaces the loop at this link. Returns the link to the node after the loop.
static LoopNode **split(TreeBuilder *b, const LoopTree *t, LoopNode **at) {
  LoopNode *loop = *at;
  *at = loop->next;
  tree_open(b, at);
  tree_add(b, (LoopNode){.kind = NODE_INDEX, .var = loop->var, .value = loop->value, .is_counter = true});
  if (loop->vectors->is_peeled) add_peel(b, t, loop);
  const int64_t after_groups = add_groups_of(b, t, loop, loop->vectors->count, count_elements(loop));
  if (may_have(add_groups_of(b, t, loop, loop->vectors->rest, after_groups), LANES))
    tree_add(b, whole_steps(b, loop, LANES))->body = loop->body;
  if (loop->vectors->has_tail) add_tail(b, t, loop);
  LoopNode **end = b->end;
  tree_close(b);
  return end;
}

static void split_all(TreeBuilder *b, const LoopTree *t, LoopNode **nodes) {
  for (LoopNode **at = nodes; *at && !b->out_of_memory;) {
    if ((*at)->kind == NODE_FOR && (*at)->vectors) {
      at = split(b, t, at);
      continue;
    }
    split_all(b, t, &(*at)->body);
    split_all(b, t, &(*at)->otherwise);
    at = &(*at)->next;
  }
}

void schedule_split_vectors(TreeBuilder *b, LoopTree *t) {
  split_all(b, t, &t->step);
}
