// Graphs: values (tensors of a type and a shape) and the nodes that compute them.
//
// A graph owns one arena, which holds all its values, nodes and names. A function that returns NULL or false, and has
// no Diagnostics, has run out of memory; the graph is then unchanged. Operators are described in
// ir/operators/operator.h. graph_verify (ir/graph/verify.h) checks that a graph is valid; every stage after reading
// relies on that.
#ifndef NGRAD_IR_GRAPH_GRAPH_H
#define NGRAD_IR_GRAPH_GRAPH_H

#include "ir/graph/type.h"
#include "ir/support/diagnostics.h"

enum { MAX_RANK = 8, MAX_ORIGINS = 32, MAX_OPEN_DIMS = 8, MOST_LEAVES = 1 << 20 };
#define MAX_ELEMENTS ((int64_t)1 << 47) // every tensor has fewer

typedef struct Graph Graph;
typedef struct Node Node;
typedef struct Value Value;
typedef struct Operator Operator;   // ir/operators/operator.h
typedef struct Signature Signature; // ir/operators/operator.h

// A product of powers of a graph's open dims: byte i is the exponent of dim i; 0: the number 1. A number that depends
// on open dims is a literal factor times a monomial, as in 4 * N * N (ir/graph/open.h).
typedef uint64_t Monomial;

// A named extent. `value` is the number that run and bench use; -1: none was given.
typedef struct Dim {
  const char *name;
  int64_t value;
  Position position;
  bool is_fixed;     // the caller fixed it to `value`: graph_with_open_dims does not leave it open
  Monomial monomial; // not 0: the dim is open (ir/graph/open.h) and `value` is only a hint
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
bool extent_equals(Extent a, Extent b); // the same number, or the same dim; unknown equals nothing
int64_t extent_value(Extent e);         // a literal's number or a dim's value; -1 when it has none
Monomial extent_monomial(Extent e);     // 0 unless the extent is an open dim

typedef struct Shape {
  int rank; // -1: not known yet
  Extent extent[MAX_RANK];
} Shape;

bool shape_equals(const Shape *a, const Shape *b); // rank and every extent, by extent_equals
bool shape_is_known(const Shape *s);               // rank and every extent have a number
int64_t shape_nelems(const Shape *s); // product of extent_value(); -1 when one is missing or it exceeds MAX_ELEMENTS
void shape_print(const Shape *s, Text *out); // [N, 768]; ? for an unknown rank, _ for an unknown extent
Monomial shape_monomial(const Shape *s);     // of the number of elements
const char *shape_string(const Shape *s, char *buffer, size_t nbytes); // the same, cut to fit; returns buffer

// The layout of a tensor in memory: its axes from the slowest to the fastest varying, without gaps between elements.
// Row-major is always written as all zeros, so layouts can be compared byte by byte.
typedef struct Order {
  uint8_t axis[MAX_RANK];
} Order;

bool order_is_row_major(const Order *o);
bool order_is_valid(const Order *o, int rank);  // a permutation of `rank` axes, or row-major
int order_axis(const Order *o, int i);          // the i-th slowest axis
Order order_of_axes(const int *axes, int rank); // `axes`: a permutation, slowest first
// Fills stride[axis] with the number of elements between neighbours along the axis; an extent of 0 counts as 1.
void order_strides(const Order *o, int rank, const int64_t *extent, int64_t *stride);
// The monomials of these strides, from the monomials of the extents.
void order_stride_monomial(const Order *o, int rank, const Monomial *extent, Monomial *stride);

typedef struct Constant {
  void *data;          // elements of the value's type in row-major order; one element when is_splat
  bool is_splat;       // one number for all elements
  const char *file;    // the .npy it was read from, relative to the graph file; NULL when written in the graph
  bool is_initializer; // of a model of another system: a parameter when it is trained. It has a file to be written then
} Constant;

typedef struct Use { // node->inputs[slot] is the value
  Node *node;
  uint32_t slot;
  struct Use *next, **link; // link: the pointer that points at this use
} Use;

// The range that random data for a value must lie in, so that the graph does not compute NaN (ir/operators/range.h).
typedef enum ValueRange { RANGE_ANY, RANGE_POSITIVE, RANGE_PROBABILITY } ValueRange;

// Where the elements of a value without memory of its own are (passes/lower/aliases.h).
typedef struct Alias {
  Value *of;      // has memory
  int64_t offset; // in elements, of the first one, times the open dims in offset_monomial
  Monomial offset_monomial;
  int64_t stride[MAX_RANK]; // in elements, times the open dims in monomial
  Monomial monomial[MAX_RANK];
} Alias;

struct Value {
  const char *name; // unique in its graph
  Type type;        // TYPE_NONE until inferred
  Shape shape;
  Order order;    // its layout in memory; constants are row-major
  Node *producer; // NULL for inputs and constants
  uint32_t output_slot;
  Use *uses;
  Constant *constant; // NULL: the value is not a constant
  const Alias *alias; // NULL: the value has memory of its own. Clones have none
  Position position;
  uint32_t index;           // in graph->values
  ValueRange range;         // found in the graph as it was read; clones copy it
  uint16_t nproducts;       // matrix products on the longest path to it, likewise
  bool is_in_chain;         // of a graph with a long path of them, likewise
  bool is_input, is_output; // of the graph
  bool is_of_leaf;       // of an input: each leaf of the batch has its own, as in the gradient of a graph with leaves
  bool is_detached;      // no gradient flows through it: what is computed does not depend on its exact value
  uint32_t first_output; // if is_output: its first index in graph->outputs, which may list it more than once
};

typedef struct AttributeValue {
  bool is_set;     // given or set to its default; in a valid graph only an optional attribute may be unset
  bool is_default; // nobody has given it
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
  const Signature *signature; // the name under which the file has it; NULL: the canonical name
  Value **inputs;             // [ninputs], in the operator's order; NULL: an optional input that is absent
  Value **outputs;            // [noutputs], likewise
  uint32_t ninputs, noutputs; // op->ninputs (variadic operators: at least that), op->noutputs
  AttributeValue *attributes; // [op->nattributes]
  Use *input_uses;            // parallel to inputs
  const char *label;          // shown in messages behind the operator's name; NULL: none
  const char *comment;        // a line that is printed above the node; it is not read back; NULL: none
  Position position;
  Position *origins; // places of the nodes in the file that a pass replaced by this one, in the file's order
  uint32_t norigins;
  uint32_t index; // in graph->nodes
};

// How the first value of a state is made (ir/graph/init.h).
typedef enum InitKind { INIT_ZEROS, INIT_ONES, INIT_UNIFORM, INIT_NORMAL, INIT_FAN_IN, INIT_FILE } InitKind;

typedef struct Init {
  InitKind kind;
  double low, high;         // INIT_UNIFORM: the numbers lie in [low, high)
  double deviation;         // INIT_NORMAL: the standard deviation; the mean is 0
  double fan_in;            // INIT_FAN_IN: as INIT_UNIFORM, from -1 / sqrt(fan_in) to 1 / sqrt(fan_in)
  const Constant *constant; // INIT_FILE: row-major
} Init;

// A tensor that lives from call to call: an input of the graph, and an output, which a call leaves in its place.
typedef struct State {
  uint32_t input; // in graph->inputs
  int64_t output; // in graph->outputs, among the last nupdates of them; -1: no call changes the state
  Init init;
  Position update; // where the file says what updates it
} State;

struct Graph {
  Arena arena;
  Graph *origin;             // the graph it was cloned from, on which it holds a reference; NULL: none
  _Atomic uint32_t nkeepers; // references besides the first
  const char *name;
  Source *source; // the file it was read from; NULL for one made by a program
  Dim **dims;
  size_t ndims, dims_capacity;
  Value **values; // inputs, constants and results in the order of their creation; some may be dead
  size_t nvalues, values_capacity;
  Node **nodes; // in topological order after graph_sort
  size_t nnodes, nodes_capacity;
  Value **inputs; // inputs and outputs in the file's order; then those of states
  size_t ninputs, inputs_capacity;
  Value **outputs;
  size_t noutputs, outputs_capacity;
  State *states; // in the file's order
  size_t nstates, states_capacity;
  size_t nupdates;                  // states with an output
  int64_t nleaves;                  // of the batch (ir/graph/leaves.h); 0: none are declared
  size_t largest_suffix, nsuffixes; // the largest number that ends the name of one of the first nsuffixes values
};

Graph *graph_new(const Allocator *allocator, const char *name);
// Takes a reference, which graph_free releases. A kernel has one to the graph whose constants it reads. Returns g.
Graph *graph_keep(Graph *g);
void graph_free(Graph *g);

// A copy that may be rewritten without changing g. Its values and nodes have the same indices as g's. It shares g's
// dims, source, attribute lists and constant data, and holds a reference to g for them.
Graph *graph_clone(const Graph *g);

Dim *graph_add_dim(Graph *g, const char *name, int64_t value);
Dim *graph_find_dim(const Graph *g, const char *name);
bool graph_own_dims(Graph *g); // copies the dims, which g has in common with the graph that it was made of

// Values. Names are copied. The caller ensures that they are unique, for instance by graph_fresh_name.
Value *graph_add_value(Graph *g, const char *name, Type type, const Shape *shape); // shape NULL: unknown rank
// A constant with the same number everywhere. `name` may be the result of graph_fresh_name: NULL gives NULL.
Value *graph_add_number(Graph *g, const char *name, Type type, const Shape *shape, double number);
Value *graph_add_input(Graph *g, const char *name, Type type, const Shape *shape);
bool graph_add_output(Graph *g, Value *v);
// A state, which is an input too. All its extents are numbers.
State *graph_add_state(Graph *g, const char *name, Type type, const Shape *shape, const Init *init);
// Makes v, a value of the state's type and shape, what a call leaves in it. After this no output can be added that is
// not an update.
bool graph_add_update(Graph *g, State *state, Value *v, Position position);
bool graph_name_file(Graph *g, Value *constant);          // a .npy that its values can be kept in, if it has none
const char *graph_fresh_name(Graph *g, const char *stem); // stem_NUMBER, which no value of g has
// Gives values whose names an earlier one has, or whose names are longer than a graph file's may be, fresh ones.
bool graph_make_names_unique(Graph *g);

// A node whose operands are all absent and whose attributes are unset. The setters below keep use lists and producers
// consistent.
Node *graph_add_node(Graph *g, const Operator *op, const Signature *signature, uint32_t ninputs, uint32_t noutputs);
void node_set_input(Node *node, uint32_t slot, Value *v); // v NULL: absent
void node_set_output(Node *node, uint32_t slot, Value *v);
void value_replace_uses(Value *old, Value *replacement); // as node inputs; does not change the graph's outputs
size_t value_count_uses(const Value *v);

// Adds to node->origins the origins of `from`, or its own position when it has none; at most MAX_ORIGINS are recorded.
bool node_add_origin(Graph *g, Node *node, const Node *from);
void node_print_lines(const Node *node, Text *out); // "line 4", "lines 4, 7 to 9"; nothing when no line is known
void node_print(const Node *node, Text *out);       // "LayerNorm (lines 4, 7 to 9)"

// Sorts nodes topologically and sets their indices. The sort is stable: a producer that comes too late moves directly
// in front of its first user, in the order of that user's inputs. False after reporting a cycle or out of memory.
bool graph_sort(Graph *g, Diagnostics *d);

// Replaces every named extent by its dim's value; reports dims that have no value. Inference must run again after it.
bool graph_bind_dims(Graph *g, Diagnostics *d);

// The same for fixed dims alone, and only where the graph has unknown extents, which may follow from theirs.
bool graph_bind_fixed_dims(Graph *g, Diagnostics *d);

#endif
