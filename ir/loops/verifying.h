// Shared by the files that verify loop trees: the state of the walk, that is, what is known at the current node.
#ifndef NGRAD_IR_LOOPS_VERIFYING_H
#define NGRAD_IR_LOOPS_VERIFYING_H

#include "ir/loops/reach.h"

typedef struct Variable {
  bool is_set, is_counter;
  const Amount *value; // what it may be
  // Of a counter: what it counts from, if its value is the sum of this and a symbol; where its loops end; the step of
  // the last one that it is behind, or 0; what is left behind it, or -1; whether a test says that it is below the end.
  const Amount *base, *to;
  int64_t step, left;
  bool is_below;
} Variable;

typedef struct Scoped {  // of a buffer of a kind, which belongs to an access or expression
  bool is_declared;      // an array for each row of the step
  bool is_set;           // it is in scope: declared, or for values and row pointers, set
  const LoopNode *node;  // that declares it
  bool has_rows;         // a row pointer: each row has one
  const Amount *pointer; // the element that a row pointer points to; NULL: the first
} Scoped;

typedef struct Fact { // 0 <= index <= most
  Amount index, most;
} Fact;
enum { MOST_FACTS = 8 };

typedef struct Verifying {
  const LoopTree *t;
  const Kernel *k;
  const Loop *loop;
  Text *why;
  Arena *arena;
  Reach x;
  const char *function; // name of the function being verified: "step"
  TreeSlots slots;
  Variable *of_block, *of_step; // by slot
  Variable *vars;               // of the function
  Scoped *buffers;              // by slot
  uint32_t *of_loop[2];         // by loop: the symbols of its number of blocks, and of their length
  bool **scoped;                // what is in scope: set to false at the end of the list of nodes
  size_t nscoped, scoped_capacity;
  AccessId streamed;  // 1 + the access whose VAR_STREAMED is known to be 1; 0: none
  const Amount *left; // in a loop over vectors: elements behind the first lane; NULL: all lanes hold elements
  Fact facts[MOST_FACTS];
  int nfacts;
  bool never_runs; // the node: a loop around it goes over nothing
  int depth;       // of loops and conditions around the node
} Verifying;

// The files, from the lowest to the highest: a file calls only files above it in this list.

// verify_state.c: messages, scopes, indices, addresses.

bool verify_fail(Verifying *v, const LoopNode *n, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool scope_add(Verifying *v, bool *is_in_scope); // sets it now, and unsets it at the end of the list of nodes
bool scope_end(Verifying *v, bool *is_in_scope); // only unsets it
void scope_close(Verifying *v, size_t nscoped);  // closes all but the first `nscoped` declarations
bool is_var(const Verifying *v, Var var);        // the variable exists
Variable *variable(const Verifying *v, Var var);
bool var_set(Verifying *v, const LoopNode *n, Var var, const Amount *value); // declares the variable
Scoped *state_of(const Verifying *v, const Address *at);
bool verify_index(Verifying *v, const LoopNode *n, const Index *i);        // all its variables are in scope; NULL: true
Amount reach_of(Verifying *v, const Index *i);                             // what the index may be; NULL: 0
bool is_in_row(const Verifying *v);                                        // in a loop over the rows of a step
void add_facts(Verifying *v, const Index *test);                           // that hold where the test does
bool verify_buffer_of(Verifying *v, const LoopNode *n, const Address *at); // it is in scope, and has the item
typedef struct Lanes { // the elements `step` apart, from an address on, of which the last is at most `last`
  Amount step, last;
  const Amount *left; // another end: NULL: none
} Lanes;
// All elements are inside of the buffer. lanes NULL: there is one.
bool verify_inside(Verifying *v, const LoopNode *n, const Address *at, const Amount *offset, const Lanes *lanes);
bool verify_access(Verifying *v, const LoopNode *n, const Address *at); // what the node reads or writes there

// verify_values.c: what nodes compute, load, store and add up. Their indices and buffers are in scope.

bool begin_each_row(Verifying *v, const LoopNode *n); // of a node that is repeated for each row of the step

#define ACTION(NAME, name, ...) bool verify_##name(Verifying *v, const LoopNode *n);
#define IDLE(...)
#include "ir/loops/actions.def"

#endif
