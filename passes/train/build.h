// Adding nodes and copies of graphs to a graph that is being made.
//
// Names may collide while a graph is made; builder_finish gives later values fresh ones. Running out of memory is
// recorded in the builder: functions then return NULL and do nothing, so that operands may be NULL.
#ifndef NGRAD_PASSES_TRAIN_BUILD_H
#define NGRAD_PASSES_TRAIN_BUILD_H

#include "ir/operators/leaves.h"
#include "ir/operators/operator.h"

typedef struct Builder {
  Graph *graph;
  Diagnostics *diagnostics;
  Arena scratch;
  const char *comment; // of the next node
  Value **numbers;     // made by builder_number
  size_t nnumbers, numbers_capacity;
  bool failed;
} Builder;

void *builder_out_of_memory(Builder *b); // reports it; NULL

// A new graph of this name with copies of forward's inputs and states, and none of its nodes or outputs.
void builder_init(Builder *b, const Graph *forward, const char *suffix, Diagnostics *d);
// The same, with copies of nothing but its dims, and no leaves. The graph keeps a reference to `from`.
void builder_init_empty(Builder *b, const Graph *from, const char *suffix, Diagnostics *d);
// Gives the graph dims of its own and its values unique names, sorts and verifies it. NULL after reporting why not.
Graph *builder_finish(Builder *b);

// Adds an input like another graph's.
Value *builder_copy_input(Builder *b, const Value *like);

// Adds copies of the nodes and constants of `from`. Its inputs become the values `inputs`, parallel to them. Returns
// the values of b's graph by the index of those in `from`; NULL where there is none.
Value **builder_inline(Builder *b, const Graph *from, Value *const *inputs);

// Adds copies of the wanted nodes (NULL: all) and of the constants that they read, or that are outputs of `from`.
// Values that others make are in `map`, by the index of those in `from`; what is added is put there. False: it failed.
bool builder_copy(Builder *b, const Graph *from, const bool *is_wanted, Value **map);

// A node with default attributes; a reduction goes over all axes. Returns its output 0, whose shape is inferred, and
// with `type` TYPE_NONE its type, too.
Value *builder_add(Builder *b, OperatorId id, Value *const *inputs, uint32_t ninputs, const char *name, Type type);
// A reduction over a mask of axes.
Value *builder_reduce(Builder *b, OperatorId id, Value *a, uint32_t axes, bool keep_dims, const char *name);
Value *builder_output(Builder *b, Value *first, uint32_t slot, const char *name); // another of first's node
Value *builder_unary(Builder *b, OperatorId op, Value *a, const char *name);
Value *builder_binary(Builder *b, OperatorId op, Value *a, Value *c, const char *name);
Value *builder_cast(Builder *b, Value *v, Type type, const char *name); // v if it has the type
Value *builder_all_reduce(Builder *b, Value *v, Reduction how, const char *name);
// A constant of rank 0; each name stands for one number.
Value *builder_number(Builder *b, const char *name, Type type, double number);
const char *builder_name(Builder *b, const char *format, const char *name); // one %s

#endif
