// A builder of graphs: makes nodes one after another, with their values, and infers types and shapes at once.
//
// Functions that return NULL or false have reported an error (out of memory, or what inference rejects), or got a value
// that is NULL and did nothing: it failed before. So formulas need no checks between their nodes; what a formula that
// fails has made before is dead code.
#ifndef NGRAD_IR_GRAPH_BUILDER_H
#define NGRAD_IR_GRAPH_BUILDER_H

#include "ir/operators/leaves.h"
#include "ir/operators/operator.h"

typedef struct Builder Builder;
struct Builder {
  Graph *graph;
  Diagnostics *d;
  bool failed;         // a function has reported an error
  Position at;         // of the nodes and values made
  const Node *origin;  // if not NULL: the nodes made have its position and origins
  const char *stem;    // of the names of made values; NULL: the name of the operator's output, or "constant"; "": they
                       // have no names until build_name
  const char *title;   // label of the nodes made, which foreign graphs have; NULL: none
  const char *comment; // of the next node made; NULL: none
  struct Foreign *foreign; // what the readers of foreign graphs need besides (frontend/foreign/build.h); NULL elsewhere
  bool (*finish)(Builder *b, Node *node); // called by build_finish; NULL: build_infer
  // Of a builder that builder_begin began (ir/graph/copies.h):
  Arena scratch;   // until builder_end
  Value **numbers; // made by build_shared_number
  size_t nnumbers, numbers_capacity;
};

void *build_out_of_memory(Builder *b); // reports it; NULL

Value *build_name(Builder *b, Value *v, const char *name); // v, with this name; NULL if one of them is

Node *build_bare_node(Builder *b, OperatorId id, uint32_t ninputs); // without inputs and outputs
// A node without outputs. NULL if a required input is.
Node *build_node(Builder *b, OperatorId id, uint32_t ninputs, Value *const *inputs);
AttributeValue *build_set(Node *node, const char *name); // marks the attribute as set; the operator must have it
bool build_set_list(Builder *b, Node *node, const char *name, const int64_t *items, size_t count);
bool build_set_choice(Node *node, const char *name, const char *choice);
Value *build_result(Builder *b, Node *node, uint32_t slot, Type type); // declares an output; TYPE_NONE: inferred
bool build_infer(Builder *b, Node *node); // sets unset attributes to defaults, and infers the outputs
bool build_finish(Builder *b, Node *node);
Value *build_one(Builder *b, Node *node); // the node's only output, after build_finish
Value *build_one_of_type(Builder *b, Node *node, Type type);

Value *build_number(Builder *b, Type type, const Shape *shape, double number); // a constant; shape NULL: a scalar
Value *build_unary(Builder *b, OperatorId id, Value *a);
Value *build_binary(Builder *b, OperatorId id, Value *a, Value *c);
Value *build_cast(Builder *b, Value *v, Type type);                            // v if it has the type
Value *build_in_shape(Builder *b, Value *v, const Shape *shape);               // v if it has the shape
Value *build_reshape(Builder *b, Value *v, const int64_t *shape, size_t rank); // all numbers
Value *build_slice(Builder *b, Value *v, int axis, int64_t from, int64_t to);
// Between positions along some axes. axes NULL: all axes; steps NULL: 1.
Value *build_slices(Builder *b, Value *v, const int64_t *starts, const int64_t *ends, const int64_t *axes,
                    const int64_t *steps, size_t count);
Value *build_pad(Builder *b, Value *v, const int64_t *begin, const int64_t *end, size_t rank, double number);
Value *build_reduce(Builder *b, OperatorId id, Value *v, const int64_t *axes, size_t count, bool keeps_axes);
Value *build_reduce_mask(Builder *b, OperatorId id, Value *v, uint32_t axes, bool keeps_axes);
Value *build_along(Builder *b, OperatorId id, Value *v, int64_t axis); // an operator with the attribute axis
Value *build_with(Builder *b, OperatorId id, Value *v, const char *attribute, double number);
Value *build_all_reduce(Builder *b, Value *v, Reduction how);

#endif
