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
typedef struct Slot { // a variable, or an array of them: for each row of the step, or accumulator of a sum
  Vector *items;
  int count;
} Slot;

typedef struct OfAccess {      // the variables that belong to an access
  Pointer pointer[MOST_ITEMS]; // p_x: of the step, or of each row
  Pointer copy;                // rows_x
  Pointer partials;            // part_x
  Vector held;                 // held_x
  bool is_wanted, is_streamed;
  uint64_t distance;
  Buffer own, rows; // local arrays of the step: of a temporary, of a transposed copy
} OfAccess;

typedef struct OfExpr { // the variables that belong to an expression
  Slot value, accumulators, totals;
  Pointer spilled;
  Buffer spill; // a local array
} OfExpr;

typedef struct Executing {
  LoopRun run;
  const LoopTree *tree;
  const Kernel *k;
  const ValueDomain *domain;
  Type type; // of the kernel
  Arena *arena;
  Blocks blocks;
  OfAccess *accesses;
  OfExpr *exprs;
  uint64_t vars[2][VAR_ELEMENT + 1][MAX_AXES]; // of the block, and of the step
  int function;                                // 0: the block, 1: the step
  int left;                                    // elements of the last vector of an is_vectors loop; 0: a whole vector
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
Vector *item_of(Executing *x, Slot *s, int i); // i must be in the array
bool make_slot(Executing *x, Slot *s, int count);
Pointer make_local(Executing *x, Buffer *b, Type type, int64_t nelems); // an array whose elements have no values yet

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

// execute_values.c

Datum *value_of(Executing *x, ExprId id);
void execute_let(Executing *x, const LoopNode *n);
void execute_store(Executing *x, const LoopNode *n);
void execute_spill(Executing *x, const LoopNode *n);
void execute_load_rows(Executing *x, const LoopNode *n);
void execute_store_rows(Executing *x, const LoopNode *n);
void execute_copy_rows(Executing *x, const LoopNode *n);
void execute_load_column(Executing *x, const LoopNode *n);
void execute_gather_rows(Executing *x, const LoopNode *n);
void execute_scatter_rows(Executing *x, const LoopNode *n);

// execute_sums.c

void execute_begin_sum(Executing *x, const LoopNode *n);
void execute_update(Executing *x, const LoopNode *n);
void execute_end_run(Executing *x, const LoopNode *n);
void execute_end_sum(Executing *x, const LoopNode *n);
void execute_combine(Executing *x, const LoopNode *n);
void execute_load_partial(Executing *x, const LoopNode *n);
void execute_store_partial(Executing *x, const LoopNode *n);
void execute_partials(Executing *x, const LoopNode *n);
void execute_init_partial(Executing *x, const LoopNode *n);
void execute_scatter(Executing *x, const LoopNode *n);

#endif
