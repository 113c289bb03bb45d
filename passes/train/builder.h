// A builder of graphs: adds nodes, and copies of other graphs' nodes, to a graph.
//
// Names may collide until builder_finish, which renames later values. Running out of memory is recorded in the builder;
// all functions then do nothing and return NULL, so that operands may be NULL.
#ifndef NGRAD_PASSES_TRAIN_BUILDER_H
#define NGRAD_PASSES_TRAIN_BUILDER_H

#include "ir/operators/leaves.h"
#include "ir/operators/operator.h"

typedef struct Builder {
  Graph *graph;
  Diagnostics *diagnostics;
  Arena scratch;
  const char *comment; // of the nodes added next
  Value **numbers;     // made by builder_number
  size_t nnumbers, numbers_capacity;
  bool failed;
} Builder;

void *builder_out_of_memory(Builder *b); // reports it; NULL

// Makes a graph named after forward, plus the suffix, with copies of forward's inputs and states, but no nodes or
// outputs.
void builder_init(Builder *b, const Graph *forward, const char *suffix, Diagnostics *d);
// Makes a graph with copies of the dims of `from` only, and without leaves. The graph keeps a reference to `from`.
void builder_init_empty(Builder *b, const Graph *from, const char *suffix, Diagnostics *d);
// Gives the graph its own dims, and its values unique names; sorts and verifies the graph. NULL after reporting an
// error.
Graph *builder_finish(Builder *b);

// Adds an input with the name, type, shape and layout of another graph's.
Value *builder_copy_input(Builder *b, const Value *like);
// Adds a state of zeros with the shape and layout of `like` (NULL: rank 0) as the graph's last input. Returns the
// state's index.
size_t builder_state(Builder *b, const char *name, Type type, const Value *like);

// Adds copies of the nodes and constants of `from`; inputs[i] replaces its input i. Returns the value in b's graph of
// each value of `from`, by the index in `from`; NULL for values without a copy.
Value **builder_inline(Builder *b, const Graph *from, Value *const *inputs);

// Adds copies of the wanted nodes (NULL: all), of the constants that they read, and of constants that are outputs of
// `from`. `map` has the value in b's graph of each value of `from`, by index: on entry, of values that the wanted nodes
// read and do not make; on return, also of the copies. False: the builder failed.
bool builder_copy(Builder *b, const Graph *from, const bool *is_wanted, Value **map);

// Adds a node with default attributes; a reduction is over all axes. Returns output 0. Its shape is inferred, and with
// TYPE_NONE its type, too.
Value *builder_add(Builder *b, OperatorId id, Value *const *inputs, uint32_t ninputs, const char *name, Type type);
// Adds a reduction over a mask of axes.
Value *builder_reduce(Builder *b, OperatorId id, Value *a, uint32_t axes, bool keep_dims, const char *name);
Value *builder_output(Builder *b, Value *first, uint32_t slot, const char *name); // adds it to the node of `first`
Value *builder_unary(Builder *b, OperatorId op, Value *a, const char *name);
Value *builder_binary(Builder *b, OperatorId op, Value *a, Value *c, const char *name);
Value *builder_cast(Builder *b, Value *v, Type type, const char *name); // v if it has the type
// A vector of values of rank 0; changes the list.
Value *builder_vector(Builder *b, Value **items, size_t count, const char *name);
Value *builder_all_reduce(Builder *b, Value *v, Reduction how, const char *name);
// Returns a constant of rank 0. Two calls with the same name must have the same number.
Value *builder_number(Builder *b, const char *name, Type type, double number);
const char *builder_name(Builder *b, const char *format, const char *name); // the format has one %s

#endif
