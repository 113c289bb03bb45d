// Builds new nodes in a pass. Types and shapes of a node's outputs are inferred when the node is finished.
#ifndef NGRAD_PASSES_REWRITE_BUILDER_H
#define NGRAD_PASSES_REWRITE_BUILDER_H

#include "ir/operators/operator.h"

typedef struct Builder {
  Graph *graph;
  Diagnostics refusals; // errors of nodes that inference rejected; not printed
  bool out_of_memory;
} Builder;

// These functions return NULL or false when out of memory (and set out_of_memory), or when inference rejects a node's
// inputs. Nodes built before are then dead code. `stands_for`: a value whose producer's position and origins the new
// node gets.

Node *builder_add_node(Builder *b, OperatorId id, const Value *stands_for);
Value *builder_add_output(Builder *b, Node *node, uint32_t slot, Type type); // a new value as output `slot`
bool builder_finish_node(Builder *b, Node *node); // sets unset attributes to defaults and infers the outputs
AttributeValue *node_attribute_to_set(Node *node, const char *name); // the attribute, which must exist, marked as set
bool builder_set_list(Builder *b, Node *node, const char *name, const int64_t *items, int count);

Value *builder_add_unary(Builder *b, OperatorId id, Value *src, const Value *stands_for);
Value *builder_add_constant(Builder *b, const Shape *shape, Type type, double number);        // a splat
Node *builder_add_reshape(Builder *b, Value *v, const Shape *shape, const Value *stands_for); // the output is not added
Value *builder_in_shape(Builder *b, Value *v, const Shape *shape, const Value *stands_for);   // v if it has the shape

#endif
