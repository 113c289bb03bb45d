// Shared by the files of the executor: the state of a run, with the variables of the functions in emitted C.
#ifndef NGRAD_IR_LOOPS_EXECUTING_H
#define NGRAD_IR_LOOPS_EXECUTING_H

#include "ir/loops/execute.h"

typedef struct Pointer {
  Buffer *buffer; // NULL: a null pointer, or the number of an element without storage
  uint64_t at;
} Pointer;

typedef struct Vector { // a scalar stands in all lanes
  Datum lane[LANES];
} Vector;

enum { MOST_ITEMS = 64 };
typedef struct Storage { // of a buffer of a kind, which belongs to an access or expression
  Vector *values;        // in registers
  Pointer *pointers;     // in memory: one, or one for each row of the step
  int count;             // of either
  Buffer array;          // a local one
} Storage;

typedef struct Executing {
  LoopRun run;
  const LoopTree *tree;
  const Kernel *k;
  const ValueDomain *domain;
  Type type; // of the kernel
  Arena *arena;
  Blocks blocks;
  TreeSlots slots;
  Storage *buffers;  // by slot
  uint64_t *vars[2]; // likewise; of the block, and of the step
  int function;      // 0: the block, 1: the step
  int left;          // elements of the last vector of an is_vectors loop; 0: a whole vector
  const LoopNode *at;
  Text *why;
  bool has_failed;
} Executing;

// execute_memory.c: failures, indices, addresses, buffers.

// Records a failure; later ones are ignored.
void execute_fail(Executing *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t *var_place(Executing *x, Var v);
uint64_t var_of(Executing *x, VarKind kind);
uint64_t index_of_run(Executing *x, const Index *i); // NULL: 0
int lanes_of_node(Executing *x, const LoopNode *n);  // that hold elements
Buffer *buffer_of(const Executing *x, AccessId id);  // the tensor's or temporary's; NULL: none in this call
Pointer address_of(Executing *x, const Address *at);
void point_to(Executing *x, const Address *at, Pointer p); // to the buffer
Storage *storage_of(const Executing *x, const Address *at);
Datum *lanes_of(Executing *x, const Address *at); // of the item in registers
bool make_items(Executing *x, const Address *at, int64_t count);
void make_array(Executing *x, const Address *at, Type type, int64_t nelems); // whose elements have no values yet

typedef struct Elements { // `count` of them, `step` apart, from a pointer on
  uint64_t step;
  int count;
  const Datum *offsets; // added to the elements by the domain; NULL: none
} Elements;
void read_elements(Executing *x, AccessId id, Type in, Pointer p, Elements e, Datum *y);
void write_elements(Executing *x, AccessId id, Type in, Pointer p, Elements e, const Datum *y, bool is_mask);

// Operations on LANES lanes

Datum number_of(const Executing *x, Type type, double number); // in s64, an integer
void set_lanes(Datum *y, Datum x, int first, int end);
void apply(Executing *x, ExprOp op, Type type, const Datum *const *args, Datum *y);
void convert(Executing *x, Type from, Type to, const Datum *in, Datum *y);

bool is_on(Executing *x, const LoopNode *n); // its test is not 0

// execute.c has control flow, indices and pointers, execute_values.c what reads and writes buffers, execute_scatter.c
// scatters.

#define ACTION(NAME, name, ...) void execute_##name(Executing *x, const LoopNode *n);
#define IDLE(...)
#include "ir/loops/actions.def"

#endif
