// Executes control flow, pointers and flags. Has the table of node kinds, like the printer
// (backends/codegen/print/tree.c).
#include "tests/loops/walk.h"

#include <string.h>

static void walk_nodes(Walk *w, const LoopNode *n);

static void walk_body(Walk *w, const LoopNode *body) {
  const size_t outside = w->ndeclared;
  const LoopNode *at = w->at;
  walk_nodes(w, body);
  if (!w->has_failed) w->at = at;
  walk_leave(w, outside);
}

// Loops and conditions

static bool is_flag_set(Walk *w, const LoopNode *n) {
  switch (n->flag) {
  case FLAG_HAS_ALL_PARTIALS: return walk_member(w, n->access) != NULL;
  case FLAG_WANTED: return walk_read(w, OF_WANTED, n->access, PLAIN, CELL_TRUTH)->number;
  case FLAG_STREAMED: return walk_read(w, OF_STREAMED, n->access, PLAIN, CELL_TRUTH)->number;
  default: return walk_read(w, OF_PARTIALS, n->access, PLAIN, CELL_POINTER)->pointer.memory != NULL;
  }
}

static bool goes_on(Walk *w, const LoopNode *n) {
  const uint64_t at = walk_get_var(w, n->var), end = walk_index(w, n->end);
  const bool is_before_end = n->is_whole ? at + walk_index(w, n->step) <= end : at < end;
  return is_before_end && (!n->bound || at < walk_index(w, n->bound)) && !w->has_failed;
}

static void walk_down(Walk *w, const LoopNode *n) {
  const uint64_t begin = walk_index(w, n->value);
  walk_declare_var(w, n->var, walk_index(w, n->end));
  while (walk_get_var(w, n->var) > begin && !w->has_failed) {
    walk_set_var(w, n->var, walk_get_var(w, n->var) - 1);
    walk_body(w, n->body);
  }
}

static void walk_for(Walk *w, const LoopNode *n) {
  const size_t outside = w->ndeclared;
  if (n->flag && !is_flag_set(w, n)) return;
  if (n->is_down && (n->is_whole || n->bound))
    walk_fail(w, "a loop that counts down has a bound, or goes over a counter");
  if (n->is_down) {
    walk_down(w, n);
  } else {
    if (!n->is_whole) walk_declare_var(w, n->var, walk_index(w, n->value));
    while (goes_on(w, n)) {
      walk_body(w, n->body);
      const uint64_t step = walk_index(w, n->step);
      if (!step) walk_fail(w, "the step of a loop is 0");
      walk_set_var(w, n->var, walk_get_var(w, n->var) + step);
    }
  }
  walk_leave(w, outside);
}

static void walk_if(Walk *w, const LoopNode *n) {
  walk_body(w, (n->test ? walk_index(w, n->test) != 0 : is_flag_set(w, n)) ? n->body : n->otherwise);
}

static void walk_scope(Walk *w, const LoopNode *n) {
  walk_body(w, n->body);
}

static void walk_nothing(Walk *w, const LoopNode *n) {
  (void)w;
  (void)n;
}

// Integers

static void walk_unused(Walk *w, const LoopNode *n) {
  (void)walk_get_var(w, n->var);
}

static void walk_index_node(Walk *w, const LoopNode *n) {
  walk_declare_var(w, n->var, walk_index(w, n->value));
}

static void walk_advance(Walk *w, const LoopNode *n) {
  walk_set_var(w, n->var, walk_get_var(w, n->var) + walk_index(w, n->value));
}

static void walk_peel_count(Walk *w, const LoopNode *n) {
  enum { LINE = 64 };
  if (n->flag && !walk_read(w, OF_WANTED, n->access, PLAIN, CELL_TRUTH)->number) {
    walk_declare_var(w, n->var, 0);
    return;
  }
  const Pointer p = walk_address(w, &n->address);
  if (p.memory) walk_declare_var(w, n->var, -walk_machine_address(&p) % LINE / type_nbytes(p.memory->type));
  else walk_fail(w, "the address is a null pointer");
}

// Pointers, flags, local arrays

// The pointer to an output that the caller leaves out is NULL.
static void walk_pointer(Walk *w, const LoopNode *n) {
  const bool is_wanted = !n->flag || walk_read(w, OF_WANTED, n->access, PLAIN, CELL_TRUTH)->number;
  const Pointer p = is_wanted ? walk_address(w, &n->address) : (Pointer){NULL, 0};
  Item *i = n->is_row ? walk_write(w, OF_POINTER, n->access, (int)walk_var(w, VAR_ROW), CELL_POINTER)
                      : walk_declare(w, OF_POINTER, n->access, CELL_POINTER);
  i->pointer = p;
}

static void walk_local(Walk *w, const LoopNode *n) {
  switch (n->local) {
  case LOCAL_TEMPORARY:
    walk_declare_memory(w, OF_POINTER, n->access, w->k->accesses[n->access].type, n->nelems);
    return;
  case LOCAL_POINTERS: walk_declare_array(w, OF_POINTER, n->access, CELL_POINTER, (int)n->nelems); return;
  case LOCAL_COPY: walk_declare_memory(w, OF_ROWS, n->access, TYPE_F32, n->nelems); return;
  case LOCAL_ROWS: walk_declare_memory(w, OF_ROWS, n->access, TYPE_F32, n->nelems * LANES); return;
  case LOCAL_SPILLED: walk_declare_memory(w, OF_SPILLED, n->expr, TYPE_F32, n->nelems); return;
  case LOCAL_SCALARS: walk_declare_array(w, OF_VALUE, n->expr, walk_scalar_type(w, n->expr), (int)n->nelems); return;
  }
}

static void walk_flag(Walk *w, const LoopNode *n) {
  enum { LINE = 64 };
  if (n->flag == FLAG_WANTED) {
    walk_declare(w, OF_WANTED, n->access, CELL_TRUTH)->number = walk_member(w, n->access) != NULL;
    return;
  }
  bool is_set = true;
  if (!n->is_peeled) { // an output that the caller leaves out has no address
    const Pointer p = walk_address(w, &n->address);
    is_set = p.memory && walk_machine_address(&p) % LINE == 0;
  }
  if (n->value) is_set &= walk_index(w, n->value) > walk_index(w, n->end);
  walk_declare(w, OF_STREAMED, n->access, CELL_TRUTH)->number = is_set;
}

static void walk_prefetch(Walk *w, const LoopNode *n) {
  (void)walk_address(w, &n->address);
}

// Block and step are two functions in C: the step sees only the variables of the block that are its parameters.

static void exchange_functions(Walk *w) {
  for (int f = 0; f < FAMILIES; f++) {
    Cell *cells = w->cells[f];
    w->cells[f] = w->other_cells[f];
    w->other_cells[f] = cells;
  }
}

// Partial sums as parameters: the block must have declared them (!is_step), and the step declares them (is_step).
static void pass_partials(Walk *w, bool is_step) {
  const Loop *loop = w->tree->loop;
  for (size_t i = 0; i < loop->nroots; i++) {
    const AccessId id = loop->roots[i].access;
    if (loop->roots[i].kind != ROOT_REDUCE_OUTER) continue;
    if (is_step)
      walk_declare(w, OF_PARTIALS, id, CELL_POINTER)->pointer = w->other_cells[OF_PARTIALS][id].items->pointer;
    else (void)walk_read(w, OF_PARTIALS, id, PLAIN, CELL_POINTER);
  }
}

static uint64_t argument_of(Walk *w, const LoopNode *n, Var parameter) {
  switch (parameter.kind) {
  case VAR_ROWS: return (uint64_t)n->count;
  case VAR_LANES: return walk_index(w, n->value);
  case VAR_COLUMN_END: return walk_index(w, n->end);
  default: return walk_get_var(w, parameter);
  }
}

static void walk_step(Walk *w, const LoopNode *n) {
  const Loop *loop = w->tree->loop;
  const size_t outside = w->ndeclared;
  Var parameters[MOST_PARAMETERS];
  uint64_t arguments[MOST_PARAMETERS];
  const int count = tree_parameters(w->tree, n->has_fewer_lanes, parameters);
  for (int i = 0; i < count; i++) arguments[i] = argument_of(w, n, parameters[i]);
  if (!n->end != !loop->columns || !n->count != (loop->rows <= 1) || !n->value != !n->has_fewer_lanes)
    walk_fail(w, "the parameters of the step are not those of its loop");
  pass_partials(w, false);
  if (w->has_failed) return;
  exchange_functions(w);
  pass_partials(w, true);
  for (int i = 0; i < count; i++) walk_declare_var(w, parameters[i], arguments[i]);
  walk_nodes(w, n->has_fewer_lanes ? w->tree->tail_step : w->tree->step);
  walk_leave(w, outside);
  exchange_functions(w);
}

static const struct NodeRow {
  const char *name;
  void (*walk)(Walk *w, const LoopNode *n);
} rows[] = {
    [NODE_COMMENT] = {"comment", walk_nothing},
    [NODE_UNUSED] = {"unused", walk_unused},
    [NODE_INDEX] = {"index", walk_index_node},
    [NODE_COUNTER] = {"counter", walk_index_node},
    [NODE_ADVANCE] = {"advance", walk_advance},
    [NODE_FOR] = {"for", walk_for},
    [NODE_SCOPE] = {"scope", walk_scope},
    [NODE_IF] = {"if", walk_if},
    [NODE_FLAG] = {"flag", walk_flag},
    [NODE_POINTER] = {"pointer", walk_pointer},
    [NODE_LOCAL] = {"local", walk_local},
    [NODE_LET] = {"let", walk_let},
    [NODE_BEGIN_SUM] = {"begin sum", walk_begin_sum},
    [NODE_LEAVE] = {"leave", walk_nothing},
    [NODE_UPDATE] = {"update", walk_update},
    [NODE_END_RUN] = {"end run", walk_end_run},
    [NODE_END_SUM] = {"end sum", walk_end_sum},
    [NODE_COMBINE] = {"combine", walk_combine},
    [NODE_LOAD_PARTIAL] = {"load partial", walk_load_partial},
    [NODE_STORE_PARTIAL] = {"store partial", walk_store_partial},
    [NODE_STORE] = {"store", walk_store_node},
    [NODE_SPILL] = {"spill", walk_spill},
    [NODE_LOAD_ROWS] = {"load rows", walk_load_rows},
    [NODE_STORE_ROWS] = {"store rows", walk_store_rows},
    [NODE_COPY_ROWS] = {"copy rows", walk_copy_rows},
    [NODE_LOAD_COLUMN] = {"load column", walk_load_column},
    [NODE_GATHER_ROWS] = {"gather rows", walk_gather_rows},
    [NODE_SCATTER_ROWS] = {"scatter rows", walk_scatter_rows},
    [NODE_PREFETCH] = {"prefetch", walk_prefetch},
    [NODE_PEEL_COUNT] = {"peel count", walk_peel_count},
    [NODE_PARTIALS] = {"partials", walk_partials},
    [NODE_INIT_PARTIAL] = {"init partial", walk_init_partial},
    [NODE_STEP] = {"step", walk_step},
    [NODE_SCATTER] = {"scatter", walk_scatter},
    [NODE_FENCE] = {"fence", walk_nothing},
};

const char *node_name(LoopNodeKind kind) {
  return rows[kind].name;
}

static void walk_nodes(Walk *w, const LoopNode *n) {
  for (; n && !w->has_failed; n = n->next) {
    w->at = n;
    rows[n->kind].walk(w, n);
  }
}

void walk_block(Walk *w, uint64_t block) {
  walk_declare_var(w, (Var){VAR_BLOCK, 0}, block);
  walk_nodes(w, w->tree->block);
  walk_leave(w, 0);
}
