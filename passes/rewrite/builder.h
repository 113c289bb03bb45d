// New nodes for what a pass has found: made one after another, of which each infers what it makes.
#ifndef NGRAD_PASSES_REWRITE_BUILDER_H
#define NGRAD_PASSES_REWRITE_BUILDER_H

#include "ir/operators/operator.h"

typedef struct Builder {
  Graph *graph;
  Diagnostics refusals; // of nodes that did not fit; nobody reads them
  bool out_of_memory;
} Builder;

// All return NULL or false after setting out_of_memory, and where a node does not fit its inputs; what was made until
// then is dead code. `stands_for` is a value whose place in the file the node has.

Node *builder_add_node(Builder *b, OperatorId id, const Value *stands_for);
Value *builder_add_output(Builder *b, Node *node, uint32_t slot, Type type); // gives the node a new value there
bool builder_finish_node(Builder *b, Node *node); // sets what is left to defaults, and infers what the node makes
AttributeValue *node_attribute_to_set(Node *node, const char *name); // one that its operator has, marked as set
bool builder_set_list(Builder *b, Node *node, const char *name, const int64_t *items, int count);

Value *builder_add_unary(Builder *b, OperatorId id, Value *src, const Value *stands_for);
Value *builder_add_constant(Builder *b, const Shape *shape, Type type, double number);        // one number everywhere
Node *builder_add_reshape(Builder *b, Value *v, const Shape *shape, const Value *stands_for); // without its output
Value *builder_in_shape(Builder *b, Value *v, const Shape *shape, const Value *stands_for);   // v itself if it is

#endif
