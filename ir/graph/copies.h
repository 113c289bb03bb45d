// Makes graphs of copies of other graphs' nodes, and of nodes that a builder adds to them.
//
// Names may collide until builder_end, which renames later values. Where a function fails, b->failed is set: those
// below then do nothing.
#ifndef NGRAD_IR_GRAPH_COPIES_H
#define NGRAD_IR_GRAPH_COPIES_H

#include "ir/graph/builder.h"

// Begins a graph named after `from`, plus the suffix, with copies of the dims of `from` only, and without leaves. The
// graph keeps a reference to `from`. Values that are made have no names until build_name.
void builder_begin(Builder *b, const Graph *from, const char *suffix, Diagnostics *d);
// The same, with copies of the inputs and states of `from`, and its leaves.
void builder_begin_with_inputs(Builder *b, const Graph *from, const char *suffix, Diagnostics *d);
void builder_begin_clone(Builder *b, const Graph *from, Diagnostics *d); // with a copy of everything
// Gives the graph its own dims, and its values unique names; sorts and verifies the graph. NULL after reporting an
// error.
Graph *builder_end(Builder *b);

// Adds an input with the name, type, shape and layout of another graph's.
Value *build_input_like(Builder *b, const Value *like);
// Adds a state of zeros with the shape and layout of `like` (NULL: rank 0) as the graph's last input. Returns the
// state's index.
size_t build_state_like(Builder *b, const char *name, Type type, const Value *like);

// Adds copies of the nodes and constants of `from`; inputs[i] replaces its input i. Returns the value in b's graph of
// each value of `from`, by the index in `from`; NULL for values without a copy.
Value **build_inlined(Builder *b, const Graph *from, Value *const *inputs);

// Adds copies of the wanted nodes (NULL: all), of the constants that they read, and of constants that are outputs of
// `from`. `map` has the value in b's graph of each value of `from`, by index: on entry, of values that the wanted nodes
// read and do not make; on return, also of the copies. False: the builder failed.
bool build_copies(Builder *b, const Graph *from, const bool *is_wanted, Value **map);

// A constant of rank 0. Two calls with the same name must have the same number, and get the same value.
Value *build_shared_number(Builder *b, const char *name, Type type, double number);
Value *build_named_cast(Builder *b, Value *v, Type type, const char *name); // v itself if it has the type
const char *build_text(Builder *b, const char *format, const char *name);   // the format has one %s

#endif
