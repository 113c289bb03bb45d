// Shared by the files of the executor: the state of a walk through a loop tree, with the variables of its C functions.
#ifndef NGRAD_TESTS_LOOPS_WALK_H
#define NGRAD_TESTS_LOOPS_WALK_H

#include "ir/loops/loops.h"
#include "tests/loops/memory.h"
#include "tests/loops/vocabulary.h"

// Variables

typedef enum CellType {
  CELL_NONE,  // not declared, or out of scope
  CELL_INDEX, // size_t, ptrdiff_t, int
  CELL_POINTER,
  CELL_S64,
  CELL_TRUTH, // int, of a condition
  CELL_F32,
  CELL_F64,
  CELL_VEC,
  CELL_DVEC,
  CELL_MASK,
  CELL_DMASK
} CellType;

typedef struct Pointer {
  Memory *memory; // NULL: a null pointer, or the index of an element without storage
  uint64_t at;
} Pointer;

typedef union Item {
  uint64_t number; // CELL_INDEX, CELL_S64
  Pointer pointer;
  Lanes lanes; // a scalar is lane 0
} Item;

typedef struct Cell { // a C variable: a scalar, or an array with an element for each row or accumulator
  CellType type;
  int count;       // elements of an array; 0: a plain variable
  uint32_t is_set; // bit i: element i has a value
  Item *items;     // `capacity` elements
  int capacity;
  Memory *memory; // of a local array, to which the variable is a pointer
} Cell;

typedef enum Family { // variables whose C names have the same prefix
  OF_VALUE,           // by ExprId
  OF_ACCUMULATOR,
  OF_TOTAL,
  OF_SPILLED,
  OF_POINTER, // by AccessId
  OF_ROWS,
  OF_PARTIALS,
  OF_PARTIAL_VECTOR,
  OF_WANTED,
  OF_STREAMED,
  OF_DISTANCE,
  OF_VAR, // by var_number
  FAMILIES
} Family;

enum { PLAIN = -1, MOST_ITEMS = 32 }; // PLAIN: not an element of an array. MOST_ITEMS: bits of Cell.is_set

typedef struct Walk {
  const Kernel *k;
  const LoopTree *tree;
  Arena *arena;
  Blocks blocks;
  Memory *const *values;       // by value->index; NULL: the caller left it out, or it is never in memory
  Memory *const *temporaries;  // by number in the kernel; NULL: local to steps, or not needed in this call
  const int64_t *dims;         // values of the open dims
  const uint64_t *lengths;     // by loop: iterations in a block
  const uint64_t *ncut_blocks; // by loop: blocks for each index on the free axes
  Cell *cells[FAMILIES];       // of the function being walked: block or step
  Cell *other_cells[FAMILIES]; // of the other function
  Cell **declared;             // variables in scope, in the order of their declarations
  size_t ndeclared, declared_capacity;
  const LoopNode *at;
  Text *why;
  bool has_failed;
} Walk;

// The type of the kernel's vectors.
static inline Arithmetic walk_arithmetic(const Walk *w) {
  return w->k->is_s64 ? IN_S64 : w->k->is_f64 ? IN_F64 : IN_F32;
}

// Records a failure; later failures are ignored.
void walk_fail(Walk *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

// cells.c: variables and index expressions. A wrong use of a variable is recorded, and yields 0.

bool walk_init_cells(Walk *w);                                          // false: out of memory
Item *walk_declare(Walk *w, Family family, uint32_t id, CellType type); // the caller sets its value
void walk_declare_array(Walk *w, Family family, uint32_t id, CellType type, int count);
void walk_leave(Walk *w, size_t ndeclared); // ends a scope: all variables but the first `ndeclared`
Item *walk_read(Walk *w, Family family, uint32_t id, int element, CellType type);
Item *walk_write(Walk *w, Family family, uint32_t id, int element, CellType type);
// Declares a local array in memory, and a pointer to it.
void walk_declare_memory(Walk *w, Family family, uint32_t id, Type type, int64_t nelems);
const char *walk_access_name(const Walk *w, AccessId id);

uint64_t walk_number(Walk *w, int64_t number, Monomial monomial); // at the dims' values
uint64_t walk_index(Walk *w, const Index *i);                     // NULL: 0
uint64_t walk_var(Walk *w, VarKind kind);
void walk_declare_var(Walk *w, Var v, uint64_t value);
void walk_set_var(Walk *w, Var v, uint64_t value);
uint64_t walk_get_var(Walk *w, Var v);
bool walk_has_var(const Walk *w, Var v);     // whether it is declared
int walk_nlanes(Walk *w, const LoopNode *n); // lanes that hold elements

// addresses.c: addresses, loads and stores.

Memory *walk_member(Walk *w, AccessId id); // the tensor's or temporary's memory; NULL: none in this call
Pointer walk_address(Walk *w, const Address *at);
uintptr_t walk_machine_address(const Pointer *p);
// `in`: the type of the vector's lanes. `type` is the type of the elements, and must be the memory's. e.first is
// ignored: elements begin at the pointer.
void walk_load(Walk *w, Type type, Arithmetic in, Lanes *y, Pointer p, Elements e);
void walk_store(Walk *w, Type type, Arithmetic in, Pointer p, const Lanes *x, Elements e);
void walk_load_mask(Walk *w, bool is_f64, Lanes *y, Pointer p);
void walk_store_mask(Walk *w, bool is_f64, Pointer p, const Lanes *x);
int64_t walk_load_s64(Walk *w, Pointer p);
double walk_load_number(Walk *w, Type type, Pointer p);
void walk_store_number(Walk *w, Type type, Pointer p, double x);

// values.c: expressions.

CellType walk_scalar_type(const Walk *w, ExprId id);
CellType vector_cell(bool is_f64);
double walk_scalar(Walk *w, ExprId id);
const Lanes *walk_vector(Walk *w, ExprId id, Lanes *buffer); // of a scalar: repeated in all lanes, in `buffer`
void walk_let(Walk *w, const LoopNode *n);
void walk_store_node(Walk *w, const LoopNode *n);
void walk_spill(Walk *w, const LoopNode *n);
void walk_load_rows(Walk *w, const LoopNode *n);
void walk_store_rows(Walk *w, const LoopNode *n);
void walk_copy_rows(Walk *w, const LoopNode *n);
void walk_load_column(Walk *w, const LoopNode *n);
void walk_gather_rows(Walk *w, const LoopNode *n);
void walk_scatter_rows(Walk *w, const LoopNode *n);

// sums.c

void walk_combine(Walk *w, const LoopNode *n);
void walk_begin_sum(Walk *w, const LoopNode *n);
void walk_update(Walk *w, const LoopNode *n);
void walk_end_run(Walk *w, const LoopNode *n);
void walk_end_sum(Walk *w, const LoopNode *n);
void walk_scatter(Walk *w, const LoopNode *n);
void walk_load_partial(Walk *w, const LoopNode *n);
void walk_store_partial(Walk *w, const LoopNode *n);
void walk_partials(Walk *w, const LoopNode *n);
void walk_init_partial(Walk *w, const LoopNode *n);

// nodes.c

const char *node_name(LoopNodeKind kind);
void walk_block(Walk *w, uint64_t block);

#endif
