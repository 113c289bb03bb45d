// What the files of the executor share: a walk through a loop's tree, with the variables that its C would have.
#ifndef NGRAD_TESTS_LOOPS_WALK_H
#define NGRAD_TESTS_LOOPS_WALK_H

#include "ir/loops/loops.h"
#include "tests/loops/memory.h"
#include "tests/loops/vocabulary.h"

// Variables

typedef enum CellType { // in C
  CELL_NONE,            // it is not declared where the walk is
  CELL_INDEX,           // size_t, ptrdiff_t, int
  CELL_POINTER,
  CELL_S64,
  CELL_TRUTH, // int
  CELL_F32,
  CELL_F64,
  CELL_VEC,
  CELL_DVEC,
  CELL_MASK,
  CELL_DMASK
} CellType;

typedef struct Pointer {
  Memory *memory; // NULL: a null pointer, or the place of an element without an address
  uint64_t at;
} Pointer;

typedef union Item {
  uint64_t number; // CELL_INDEX, CELL_S64
  Pointer pointer;
  Lanes lanes; // scalars are lane 0
} Item;

typedef struct Cell { // a variable, or an array of one for each row or accumulator
  CellType type;
  int count;       // of an array; 0: it is none
  uint32_t is_set; // bit i: element i has a value
  Item *items;     // room for `capacity` elements
  int capacity;
  Memory *room; // of a step's own, that the pointer leads to
} Cell;

typedef enum Family { // of variables, by what they are called after
  OF_VALUE,           // by ExprId
  OF_ACCUMULATOR,
  OF_TOTAL,
  OF_SPILLED,
  OF_POINTER, // by AccessId
  OF_ROWS,
  OF_PART,
  OF_HELD,
  OF_WANTED,
  OF_STREAMED,
  OF_DISTANCE,
  OF_VAR, // by var_number
  FAMILIES
} Family;

enum { PLAIN = -1, MOST_ITEMS = 32 }; // no element of an array; of an array

typedef struct Walk { // of a kernel's loop
  const Kernel *k;
  const LoopTree *tree;
  Arena *arena;
  Blocks blocks;
  Memory *const *values;       // by value->index; NULL: the caller does not want it, or it is never in memory
  Memory *const *temporaries;  // by number in the kernel; NULL: it is the step's own, or nobody wants it
  const int64_t *dims;         // values of the open dims
  const uint64_t *lengths;     // by loop: of a block
  const uint64_t *chunks;      // by loop
  Cell *cells[FAMILIES];       // of the function at hand
  Cell *other_cells[FAMILIES]; // of the step in a block, of the block in a step
  Cell **declared;             // in the order of their declarations
  size_t ndeclared, declared_capacity;
  const LoopNode *at;
  Text *why;
  bool has_failed;
} Walk;

// Tells what is wrong, the first time.
void walk_fail(Walk *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

// cells.c: variables. What is not there, or of another type, is told, and stands for some value.

bool walk_init_cells(Walk *w);                                          // false: out of memory
Item *walk_declare(Walk *w, Family family, uint32_t id, CellType type); // which gets its value at once
void walk_declare_array(Walk *w, Family family, uint32_t id, CellType type, int count);
void walk_leave(Walk *w, size_t ndeclared); // the scope that began with so many
Item *walk_read(Walk *w, Family family, uint32_t id, int element, CellType type);
Item *walk_write(Walk *w, Family family, uint32_t id, int element, CellType type);
// Memory of the step's own, to which a pointer is declared.
void walk_declare_room(Walk *w, Family family, uint32_t id, Type type, int64_t nelems);
const char *walk_access_name(const Walk *w, AccessId id);

uint64_t walk_number(Walk *w, int64_t number, Monomial monomial); // at the values of the dims
uint64_t walk_index(Walk *w, const Index *i);                     // NULL: 0
uint64_t walk_var(Walk *w, VarKind kind);
void walk_declare_var(Walk *w, Var v, uint64_t value);
void walk_set_var(Walk *w, Var v, uint64_t value);
uint64_t walk_get_var(Walk *w, Var v);
bool walk_has_var(const Walk *w, Var v);     // whether it is declared
int walk_nlanes(Walk *w, const LoopNode *n); // that are there

// addresses.c: where elements lie, and elements as vectors.

Memory *walk_member(Walk *w, AccessId id); // that a tensor or temporary has in the call; NULL: none
Pointer walk_address(Walk *w, const Address *at);
uintptr_t walk_machine_address(const Pointer *p);
// Vectors of f32, or of f64. The type is what the function of the vocabulary takes, which the memory must have.
void walk_load(Walk *w, Type type, bool is_f64, Lanes *y, Pointer p, Elements e); // e.first is the pointer's
void walk_store(Walk *w, Type type, bool is_f64, Pointer p, const Lanes *x, Elements e);
void walk_load_mask(Walk *w, bool is_f64, Lanes *y, Pointer p);
void walk_store_mask(Walk *w, bool is_f64, Pointer p, const Lanes *x);
int64_t walk_load_s64(Walk *w, Pointer p);
double walk_load_number(Walk *w, Type type, Pointer p);
void walk_store_number(Walk *w, Type type, Pointer p, double x);

// values.c: expressions.

CellType walk_scalar_type(const Walk *w, ExprId id);
CellType vector_cell(bool is_f64);
double walk_scalar(Walk *w, ExprId id);                    // a number
const Lanes *walk_vector(Walk *w, ExprId id, Lanes *room); // of numbers; a scalar in all lanes, in the room
void walk_let(Walk *w, const LoopNode *n);
void walk_store_node(Walk *w, const LoopNode *n);
void walk_keep(Walk *w, const LoopNode *n);
void walk_load_rows(Walk *w, const LoopNode *n);
void walk_store_rows(Walk *w, const LoopNode *n);
void walk_load_column(Walk *w, const LoopNode *n);

// sums.c

void walk_combine(Walk *w, const LoopNode *n);
void walk_sum(Walk *w, const LoopNode *n);
void walk_update(Walk *w, const LoopNode *n);
void walk_run_done(Walk *w, const LoopNode *n);
void walk_sum_done(Walk *w, const LoopNode *n);
void walk_hold(Walk *w, const LoopNode *n);
void walk_release(Walk *w, const LoopNode *n);
void walk_parts(Walk *w, const LoopNode *n);
void walk_clear(Walk *w, const LoopNode *n);
void walk_lane_part(Walk *w, const LoopNode *n);

// nodes.c: statements, and a table of all.

const char *node_name(LoopNodeKind kind);
void walk_block(Walk *w, uint64_t block);

#endif
