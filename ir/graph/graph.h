// Graphs: values (tensors of a type and a shape) and the nodes that compute them.
//
// A graph owns one arena with everything that hangs off it. Functions that return NULL or false have run out of
// memory; they leave the graph as it was. Operators are described in ir/operators/operator.h; what makes a graph valid
// is checked by ir/graph/verify.h, and every stage after reading may rely on it.
#ifndef NGRAD_IR_GRAPH_GRAPH_H
#define NGRAD_IR_GRAPH_GRAPH_H

#include "ir/graph/type.h"
#include "ir/support/diagnostics.h"

enum { MAX_RANK = 8, MAX_ORIGINS = 32, MAX_OPEN_DIMS = 8 };
#define MAX_ELEMENTS ((int64_t)1 << 47) // a tensor has fewer

typedef struct Graph Graph;
typedef struct Node Node;
typedef struct Value Value;
typedef struct Operator Operator;   // ir/operators/operator.h
typedef struct Signature Signature; // ir/operators/operator.h

// How often each of a graph's open dims is a factor of a number, a byte for each; 0: it is a literal. What a number is
// beside it depends on their values: it is a literal times that power product.
typedef uint64_t Monomial;

// A named extent. `value` is what run and bench use; -1: none was given.
typedef struct Dim {
  const char *name;
  int64_t value;
  Position position;
  bool is_fixed;     // to the value, by who uses the graph: ir/graph/open.h does not leave it open
  Monomial monomial; // of an open one (ir/graph/open.h), whose value is then a hint; 0: it is not open
} Dim;

// The length of an axis: known (dim NULL, value >= 0), named (dim set), or unknown (dim NULL, value -1).
typedef struct Extent {
  const Dim *dim;
  int64_t value;
} Extent;

#define EXTENT_UNKNOWN ((Extent){NULL, -1})
#define EXTENT(n) ((Extent){NULL, (n)})
bool extent_is_unknown(Extent e);
bool extent_is_literal(Extent e);       // a known number
bool extent_equals(Extent a, Extent b); // the same number, or the same name; unknown equals nothing
int64_t extent_value(Extent e);         // a literal's number or a dim's current value; -1 when there is none
Monomial extent_monomial(Extent e);

typedef struct Shape {
  int rank; // -1: not known yet
  Extent extent[MAX_RANK];
} Shape;

bool shape_equals(const Shape *a, const Shape *b); // rank and every extent, by extent_equals
bool shape_is_known(const Shape *s);               // rank and every extent have a number
int64_t shape_nelems(const Shape *s); // product of extent_value(); -1 when one is missing or it exceeds MAX_ELEMENTS
void shape_print(const Shape *s, Text *out); // [N, 768]; ? for an unknown rank, _ for an unknown extent
Monomial shape_monomial(const Shape *s);     // of its number of elements
const char *shape_string(const Shape *s, char *buffer, size_t nbytes); // the same, cut to fit; returns buffer

// How a tensor's elements lie in memory: its axes from the slowest to the fastest, without gaps between elements.
// All zeros: row-major, which has no other form.
typedef struct Order {
  uint8_t axis[MAX_RANK];
} Order;

bool order_is_row_major(const Order *o);
bool order_is_valid(const Order *o, int rank);  // a permutation of the rank's axes, or row-major
int order_axis(const Order *o, int i);          // the i-th slowest axis
Order order_of_axes(const int *axes, int rank); // of a permutation of the rank's axes
// Elements from one index to the next along each axis; an extent of 0 counts as 1.
void order_strides(const Order *o, int rank, const int64_t *extent, int64_t *stride);
void order_stride_monomial(const Order *o, int rank, const Monomial *extent,
                           Monomial *stride); // and what they are made of

typedef struct Constant {
  void *data;       // elements of the value's type in row-major order; one element when is_splat
  bool is_splat;    // one number for all elements
  const char *file; // the .npy it was read from, relative to the graph file; NULL when written in the graph
} Constant;

typedef struct Use { // node->inputs[slot] is the value
  Node *node;
  uint32_t slot;
  struct Use *next, **link; // link: what points at this one
} Use;

// What random data for a value must keep to, so that the graph makes no NaN of it (ir/operators/range.h).
typedef enum ValueRange { RANGE_ANY, RANGE_POSITIVE, RANGE_PROBABILITY } ValueRange;

struct Value {
  const char *name; // unique in its graph
  Type type;        // TYPE_NONE until inferred
  Shape shape;
  Order order;    // wherever it is in memory; constants are row-major
  Node *producer; // NULL for inputs and constants
  uint32_t output_slot;
  Use *uses;
  Constant *constant; // NULL unless the value is one
  Position position;
  uint32_t index;           // in graph->values
  ValueRange range;         // as the graph that was read says; clones keep it
  bool is_input, is_output; // of the graph
  uint32_t first_output;    // is_output: the first of the graph's outputs that it is
};

typedef struct AttributeValue {
  bool is_set; // given, or defaulted: always true in a valid graph unless the attribute is optional without default
  union {
    bool boolean;
    int64_t s64; // also the index of a choice
    double f32;  // any real number
    struct {
      const int64_t *items;
      size_t count;
    } list;
    struct {
      const double *items; // as f32
      size_t count;
    } numbers;
  };
} AttributeValue;

struct Node {
  const Operator *op;
  const Signature *signature; // the name it was written under; NULL: the canonical one
  Value **inputs;             // ninputs of them, in the operator's order; NULL: an optional one that is absent
  Value **outputs;            // noutputs of them, likewise
  uint32_t ninputs, noutputs; // op->ninputs, op->noutputs, but for variadic operators
  AttributeValue *attributes; // op->nattributes of them
  Use *input_uses;            // parallel to inputs
  const char *label;          // what messages call it beside its operator; NULL: nothing
  Position position;
  Position *origins; // of a node that a pass made: what it stands for, in the file's order; at most MAX_ORIGINS
  uint32_t norigins;
  uint32_t index; // in graph->nodes
};

struct Graph {
  Arena arena;
  Graph *origin;             // which it was cloned from, and keeps: it refers to that one's constants; NULL: none
  _Atomic uint32_t nkeepers; // that graph_free has yet to be called for, less one
  const char *name;
  Source *source; // the file it was read from; NULL for one made by a program
  Dim **dims;
  size_t ndims, dims_capacity;
  Value **values; // inputs, constants and results in the order of their making; may hold dead ones
  size_t nvalues, values_capacity;
  Node **nodes; // in topological order after graph_sort
  size_t nnodes, nodes_capacity;
  Value **inputs; // inputs and outputs in the file's order
  size_t ninputs, inputs_capacity;
  Value **outputs;
  size_t noutputs, outputs_capacity;
  size_t largest_suffix,
      nsuffixes; // of the first nsuffixes values' names, the largest number at the end: for fresh ones
};

Graph *graph_new(const Allocator *allocator, const char *name);
// One more graph_free is needed until it is gone. A kernel keeps the graph whose constants it reads.
Graph *graph_keep(Graph *g);
void graph_free(Graph *g);

// A graph that may be rewritten while g stays as it is. It refers to g's dims, source, lists in attributes and data of
// constants, and keeps g for these. Values and nodes have g's indices.
Graph *graph_clone(const Graph *g);

Dim *graph_add_dim(Graph *g, const char *name, int64_t value);
Dim *graph_find_dim(const Graph *g, const char *name);

// Values. Names are copied; uniqueness is the caller's to keep (graph_fresh_name helps passes).
Value *graph_add_value(Graph *g, const char *name, Type type, const Shape *shape); // shape NULL: unknown rank
// A constant, the same number everywhere; name NULL: none, as graph_fresh_name says that it is out of memory.
Value *graph_add_number(Graph *g, const char *name, Type type, const Shape *shape, double number);
Value *graph_add_input(Graph *g, const char *name, Type type, const Shape *shape);
bool graph_add_output(Graph *g, Value *v);
const char *graph_fresh_name(Graph *g, const char *stem);

// A node with all operands absent and attributes unset; attach them with the functions below.
Node *graph_add_node(Graph *g, const Operator *op, const Signature *signature, uint32_t ninputs, uint32_t noutputs);
void node_set_input(Node *node, uint32_t slot, Value *v); // v NULL: absent; keeps the use lists
void node_set_output(Node *node, uint32_t slot, Value *v);
void value_replace_uses(Value *old, Value *replacement); // in nodes; graph outputs are the caller's
size_t value_count_uses(const Value *v);

// A node that a pass makes remembers the places of those it stands for, which are one's own or those one stands for.
bool node_add_origin(Graph *g, Node *node, const Node *from);
void node_print_lines(const Node *node, Text *out); // "line 4", "lines 4, 7 to 9"; nothing when nothing is known
void node_print(const Node *node, Text *out);       // "LayerNorm (lines 4, 7 to 9)"

// Orders nodes so that producers come first: those that a node lacks are moved up in front of it, in the order of its
// inputs, and all else stays as written. False and a message that names the nodes when there is a cycle. Also gives
// each node its index.
bool graph_sort(Graph *g, Diagnostics *d);

// Fixes every named extent to its value; an error names the dims that have none. Inference must run again after it.
bool graph_bind_dims(Graph *g, Diagnostics *d);

#endif
