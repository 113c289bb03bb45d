// The variables of the executed function, with types and scopes as in C, and index expressions. Using a variable
// outside of its scope, or with another type, is a failure: the tree's C would not compile.
#include "tests/loops/walk.h"

#include "ir/graph/open_dims.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

static const char *const family_names[FAMILIES] = {
    [OF_VALUE] = "",        [OF_ACCUMULATOR] = "acc_",  [OF_TOTAL] = "total_",    [OF_SPILLED] = "spilled_",
    [OF_POINTER] = "p_",    [OF_ROWS] = "rows_",        [OF_PARTIALS] = "part_",  [OF_PARTIAL_VECTOR] = "held_",
    [OF_WANTED] = "wants_", [OF_STREAMED] = "streams_", [OF_DISTANCE] = "ahead_", [OF_VAR] = "variable ",
};

const char *walk_access_name(const Walk *w, AccessId id) {
  const Access *a = &w->k->accesses[id];
  if (a->value) return a->value->name;
  return a->type == TYPE_NONE ? "place" : w->tree->schedule->temporaries[a->temporary].name;
}

static const char *expr_name(const Walk *w, ExprId id) {
  return w->k->exprs[id].label ? w->k->exprs[id].label : expr_info[w->k->exprs[id].op].name;
}

static bool is_by_expr(Family family) {
  return family <= OF_SPILLED;
}

static const char *cell_name(const Walk *w, Family family, uint32_t id) {
  if (family == OF_VAR) return "";
  return is_by_expr(family) ? expr_name(w, id) : walk_access_name(w, id);
}

void walk_fail(Walk *w, const char *format, ...) {
  if (w->has_failed) return;
  w->has_failed = true;
  va_list args;
  va_start(args, format);
  text_format(w->why, "%s in loop %td of kernel %s, block %u: ", node_name(w->at->kind),
              w->tree->loop - w->tree->schedule->loops, w->k->name, w->blocks.now - w->blocks.first);
  text_format_list(w->why, format, args);
  va_end(args);
}

// Variables

enum { VAR_NUMBERS = (VAR_ELEMENT + 1) * MAX_AXES };

static bool init_function(Walk *w, Cell **cells) {
  for (Family f = 0; f < FAMILIES; f++) {
    const size_t count = f == OF_VAR ? VAR_NUMBERS : is_by_expr(f) ? w->k->nexprs : w->k->naccesses + 1;
    cells[f] = ARENA_ARRAY(w->arena, Cell, count);
    if (!cells[f]) return false;
  }
  return true;
}

bool walk_init_cells(Walk *w) {
  return init_function(w, w->cells) && init_function(w, w->other_cells);
}

static Item *no_item(void) {
  static Item none;
  memset(&none, 0, sizeof none);
  return &none;
}

static Cell *declare(Walk *w, Family family, uint32_t id, CellType type, int count) {
  Cell *c = &w->cells[family][id];
  const int needed = count ? count : 1;
  if (c->type != CELL_NONE) {
    walk_fail(w, "%s%s (%u) is declared twice", family_names[family], cell_name(w, family, id), (unsigned)id);
    return NULL;
  }
  if (needed > MOST_ITEMS || needed < 0) {
    walk_fail(w, "%s%s is an array of %d", family_names[family], cell_name(w, family, id), needed);
    return NULL;
  }
  if (needed > c->capacity) c->items = ARENA_ARRAY(w->arena, Item, (size_t)needed);
  if (needed > c->capacity) c->capacity = needed;
  if (!c->items || !arena_grow(w->arena, &w->declared, w->ndeclared, &w->declared_capacity, sizeof(Cell *))) {
    walk_fail(w, "out of memory");
    return NULL;
  }
  w->declared[w->ndeclared++] = c;
  c->type = type;
  c->count = count;
  c->is_set = 0;
  return c;
}

Item *walk_declare(Walk *w, Family family, uint32_t id, CellType type) {
  Cell *c = declare(w, family, id, type, 0);
  if (!c) return no_item();
  c->is_set = 1;
  return c->items;
}

void walk_declare_array(Walk *w, Family family, uint32_t id, CellType type, int count) {
  declare(w, family, id, type, count);
}

void walk_leave(Walk *w, size_t ndeclared) {
  while (w->ndeclared > ndeclared) w->declared[--w->ndeclared]->type = CELL_NONE;
}

static Item *item(Walk *w, Family family, uint32_t id, int element, CellType type, bool is_written) {
  Cell *c = &w->cells[family][id];
  const int at = element == PLAIN ? 0 : element;
  const char *why = c->type == CELL_NONE                     ? "is not declared here"
                    : c->type != type                        ? "is of another type"
                    : element != PLAIN && c->count == 0      ? "is used as an array, which it is not"
                    : element == PLAIN && c->count != 0      ? "is an array, and is used without an index"
                    : at < 0 || (c->count && at >= c->count) ? "is accessed outside of the array"
                    : !is_written && !(c->is_set >> at & 1)  ? "is read before it has a value"
                                                             : NULL;
  if (why) {
    walk_fail(w, "%s%s (%u) %s", family_names[family], cell_name(w, family, id), (unsigned)id, why);
    return no_item();
  }
  c->is_set |= 1U << at;
  return &c->items[at];
}

Item *walk_read(Walk *w, Family family, uint32_t id, int element, CellType type) {
  return item(w, family, id, element, type, false);
}

Item *walk_write(Walk *w, Family family, uint32_t id, int element, CellType type) {
  return item(w, family, id, element, type, true);
}

void walk_declare_memory(Walk *w, Family family, uint32_t id, Type type, int64_t nelems) {
  Cell *c = &w->cells[family][id];
  Item *i = walk_declare(w, family, id, CELL_POINTER);
  if (w->has_failed) return;
  if (c->memory && c->memory->nelems == nelems) {
    memory_forget(c->memory);
  } else {
    c->memory = ARENA_NEW(w->arena, Memory);
    const char *name = arena_format(w->arena, "%s%s", family_names[family], cell_name(w, family, id));
    if (!c->memory || !name || !memory_init(c->memory, name, type, nelems, w->arena)) walk_fail(w, "out of memory");
  }
  i->pointer = (Pointer){c->memory, 0};
}

// Integers

static uint32_t var_number(Var v) {
  return (uint32_t)v.kind * MAX_AXES +
         (v.kind == VAR_AXIS || v.kind == VAR_NEXT || v.kind == VAR_AHEAD_AXIS ? v.of : 0);
}

static Family var_family(Var v) {
  return v.kind == VAR_DISTANCE ? OF_DISTANCE : OF_VAR;
}

static uint32_t var_id(Var v) {
  return v.kind == VAR_DISTANCE ? v.of : var_number(v);
}

static void check_int(Walk *w, Var v, uint64_t value) {
  if (var_is_int(v) && value > INT_MAX) walk_fail(w, "an int is %llu", (unsigned long long)value);
}

void walk_declare_var(Walk *w, Var v, uint64_t value) {
  walk_declare(w, var_family(v), var_id(v), CELL_INDEX)->number = value;
  check_int(w, v, value);
}

void walk_set_var(Walk *w, Var v, uint64_t value) {
  walk_write(w, var_family(v), var_id(v), PLAIN, CELL_INDEX)->number = value;
  check_int(w, v, value);
}

uint64_t walk_get_var(Walk *w, Var v) {
  return walk_read(w, var_family(v), var_id(v), PLAIN, CELL_INDEX)->number;
}

bool walk_has_var(const Walk *w, Var v) {
  return w->cells[var_family(v)][var_id(v)].type != CELL_NONE;
}

uint64_t walk_var(Walk *w, VarKind kind) {
  return walk_get_var(w, (Var){kind, 0});
}

int walk_nlanes(Walk *w, const LoopNode *n) {
  const uint64_t nlanes = n->has_fewer_lanes ? walk_var(w, VAR_LANES) : LANES;
  if (nlanes > LANES) walk_fail(w, "there are %llu lanes", (unsigned long long)nlanes);
  return nlanes > LANES ? 0 : (int)nlanes;
}

uint64_t walk_number(Walk *w, int64_t number, Monomial monomial) {
  return (uint64_t)(monomial && number ? open_number(w->k->graph, number, monomial, w->dims) : number);
}

static uint64_t divide(Walk *w, uint64_t a, uint64_t b, bool wants_remainder) {
  if (!b) walk_fail(w, "divides by 0");
  return !b ? 0 : wants_remainder ? a % b : a / b;
}

// Arithmetic modulo 2^64, as C's on size_t.
uint64_t walk_index(Walk *w, const Index *i) {
  if (!i) return 0;
  switch (i->op) {
  case INDEX_NUMBER: return walk_number(w, i->number, i->monomial);
  case INDEX_VAR: return walk_get_var(w, i->var);
  case INDEX_BLOCK_LENGTH: return w->lengths[i->loop];
  case INDEX_NCUT_BLOCKS: return w->ncut_blocks[i->loop];
  case INDEX_SIGNED: return walk_index(w, i->args[0]);
  case INDEX_CHOOSE: return walk_index(w, walk_index(w, i->args[0]) ? i->args[1] : i->args[2]);
  default: break;
  }
  const uint64_t a = walk_index(w, i->args[0]), b = walk_index(w, i->args[1]);
  switch (i->op) {
  case INDEX_ADD: return a + b;
  case INDEX_SUBTRACT: return a - b;
  case INDEX_MULTIPLY: return a * b;
  case INDEX_DIVIDE: return divide(w, a, b, false);
  case INDEX_REMAINDER: return divide(w, a, b, true);
  case INDEX_LESS: return a < b;
  case INDEX_AT_MOST: return a <= b;
  case INDEX_AT_LEAST: return a >= b;
  case INDEX_MORE: return a > b;
  case INDEX_DIFFERS: return a != b;
  case INDEX_BOTH: return a && b;
  default: walk_fail(w, "an index of an unknown kind"); return 0;
  }
}
