// Graphs: values (tensors with a type and a shape) and the nodes that compute them.
//
// A graph owns one arena, which holds all its values, nodes and names. A function without a Diagnostics parameter
// returns NULL or false only when memory runs out; it then leaves the graph unchanged. Operators are described in
// ir/operators/operator.h. graph_verify (ir/graph/verify.h) checks that a graph is valid; every stage after reading
// relies on this check.
#ifndef NGRAD_IR_GRAPH_GRAPH_H
#define NGRAD_IR_GRAPH_GRAPH_H

#include "ir/graph/type.h"
#include "ir/support/diagnostics.h"

enum { MAX_RANK = 8, MAX_ORIGINS = 32, MAX_OPEN_DIMS = 8, MOST_LEAVES = 1 << 20 };
#define MAX_ELEMENTS ((int64_t)1 << 47) // every tensor has fewer

typedef struct Graph Graph;
typedef struct Node Node;
typedef struct Value Value;
typedef struct Operator Operator;       // ir/operators/operator.h
typedef struct Signature Signature;     // ir/operators/operator.h
typedef struct Formula Formula;         // ir/graph/formula.h
typedef struct FormulaTerm FormulaTerm; // ir/graph/formula.h

// A product of powers of a graph's open dims. Byte i is the exponent of dim i; the monomial 1 is all zeros. A number
// that depends on open dims is a literal factor times a monomial: in 4 * N * N, the monomial is N^2
// (ir/graph/open_dims.h).
typedef uint64_t Monomial;

// A named extent. `value` is the number that `ngrad run` and `ngrad bench` use; -1: no number was given. An extent that
// is computed from named ones has a dim, too, which is in extents only: its name is its formula (ir/graph/formula.h).
typedef struct Dim {
  const char *name;
  int64_t value;
  Position position;
  bool is_fixed;            // the caller fixed the dim to `value`, so graph_with_open_dims does not leave it open
  Monomial monomial;        // not 0: the dim is open (ir/graph/open_dims.h) and `value` is only a hint
  const FormulaTerm *terms; // the formula; NULL: the dim is one of the graph's
  bool is_place;            // a sum of open dims that is no extent, only an index, and may be -1
  uint32_t nterms;
} Dim;

// The length of an axis: known (dim NULL, value >= 0), named (dim set), or unknown (dim NULL, value -1).
typedef struct Extent {
  const Dim *dim;
  int64_t value;
} Extent;

#define EXTENT_UNKNOWN ((Extent){NULL, -1})
#define EXTENT(n) ((Extent){NULL, (n)})
bool extent_is_unknown(Extent e);
bool extent_is_literal(Extent e);           // a known number
bool extent_equals(Extent a, Extent b);     // the same number, dim or formula; unknown equals nothing
bool extents_are_apart(Extent a, Extent b); // they differ by a number that is not 0
int64_t extent_value(Extent e);             // a literal's number, or a dim's or formula's value; -1 when it has none
Monomial extent_monomial(Extent e);         // 0 unless the extent is an open dim

typedef struct Shape {
  int rank; // -1: not known yet
  Extent extent[MAX_RANK];
} Shape;

bool shape_equals(const Shape *a, const Shape *b); // rank and every extent, by extent_equals
bool shape_is_known(const Shape *s);               // rank and every extent have a number
bool shape_is_too_large(const Shape *s);           // the known extents above 0 have a product of 2^47 or more
int64_t shape_nelems(const Shape *s);        // -1 when an extent has no number or the product exceeds MAX_ELEMENTS
void shape_print(const Shape *s, Text *out); // [N, 768]; ? for an unknown rank, _ for an unknown extent
Monomial shape_monomial(const Shape *s);     // the monomial of the number of elements
const char *shape_string(const Shape *s, char *buffer, size_t nbytes); // the same, truncated; returns buffer

// A layout: the axes of a tensor in memory, from the slowest to the fastest varying, without gaps between elements.
// Row-major is always written as all zeros, so layouts can be compared byte by byte.
typedef struct Layout {
  uint8_t axis[MAX_RANK];
} Layout;

bool layout_is_row_major(const Layout *o);
bool layout_is_valid(const Layout *o, int rank);  // a permutation of `rank` axes, or row-major
int layout_axis(const Layout *o, int i);          // the i-th slowest axis
Layout layout_of_axes(const int *axes, int rank); // `axes`: a permutation, slowest first
// Fills stride[axis] with the number of elements between neighbours along the axis. An extent of 0 counts as 1.
void layout_strides(const Layout *o, int rank, const int64_t *extent, int64_t *stride);
// Computes the monomials of these strides from the monomials of the extents.
void layout_stride_monomial(const Layout *o, int rank, const Monomial *extent, Monomial *stride);

typedef struct Constant {
  void *data;          // elements of the value's type in row-major order; one element when is_splat
  bool is_splat;       // one number for all elements
  const char *file;    // the .npy file of the data, relative to the graph file; NULL: the numbers are in the graph file
  bool is_initializer; // an initializer of a foreign model (ONNX): training makes it a parameter, written to `file`
} Constant;

typedef struct Use { // node->inputs[slot] is the value
  Node *node;
  uint32_t slot;
  struct Use *next, **link; // link: the pointer that points at this use
} Use;

// The range of random data for a value, chosen so that the graph does not compute NaN (ir/operators/range.h).
typedef enum ValueRange { RANGE_ANY, RANGE_POSITIVE, RANGE_PROBABILITY } ValueRange;

// The place of a value that has no memory of its own, inside the memory of another value (passes/lower/aliases.h).
typedef struct Alias {
  Value *of;      // the value that has the memory
  int64_t offset; // of the first element, in elements; grows with offset_monomial
  Monomial offset_monomial;
  int64_t stride[MAX_RANK]; // in elements; stride[i] grows with monomial[i]
  Monomial monomial[MAX_RANK];
} Alias;

struct Value {
  const char *name; // unique in its graph
  Type type;        // TYPE_NONE until inferred
  Shape shape;
  Layout layout;  // in memory; constants are row-major
  Node *producer; // NULL for inputs and constants
  uint32_t output_slot;
  Use *uses;
  Constant *constant; // NULL: the value is not a constant
  const Alias *alias; // NULL: the value has memory of its own. Clones drop aliases
  Position position;
  uint32_t index;           // in graph->values
  ValueRange range;         // derived from the graph as read; clones copy it
  uint16_t nproducts;       // matrix products on the longest path to the value; derived and copied likewise
  bool is_in_chain;         // the value is in a graph with a long path of products; derived and copied likewise
  bool is_input, is_output; // of the graph
  bool is_of_leaf;  // an input of which each leaf of the batch has its own copy, as in the gradient of a graph with
                    // leaves
  bool is_detached; // no gradient flows through the value, as the results do not depend on its exact number
  uint32_t first_output; // if is_output: the first index in graph->outputs, which may list the value more than once
};

static inline bool value_is_used(const Value *v) { // NULL: not
  return v && (v->uses || v->is_output);
}

typedef struct AttributeValue {
  bool is_set;     // the attribute is given, or has its default; in a valid graph only optional attributes are unset
  bool is_default; // the number is the default, not given by the file
  union {
    bool boolean;
    int64_t s64; // also the index of a choice
    double f32;  // any real number
    struct {
      const int64_t *items;
      size_t count;
      const Extent *extents; // parallel to items: a named extent in place of the item; NULL: all items are numbers
    } list;
    struct {
      const double *items; // as f32
      size_t count;
    } numbers;
  };
} AttributeValue;

struct Node {
  const Operator *op;
  const Signature *signature; // the operator's name in the graph file; NULL: the canonical name
  Value **inputs;             // [ninputs], in the operator's order; NULL: an optional input that is absent
  Value **outputs;            // [noutputs], likewise
  uint32_t ninputs, noutputs; // op->ninputs (a variadic operator: at least as many), op->noutputs
  AttributeValue *attributes; // [op->nattributes]
  Use *input_uses;            // parallel to inputs
  const char *label;          // messages print it after the operator's name; NULL: none
  const char *comment;        // printed above the node, and lost when the file is read again; NULL: none
  Position position;
  Position *origins; // file positions of the nodes that a pass replaced by this node, in the file's order
  uint32_t norigins;
  uint32_t index; // in graph->nodes
};

// How a state is initialised (ir/graph/init.h).
typedef enum InitKind { INIT_ZEROS, INIT_ONES, INIT_UNIFORM, INIT_NORMAL, INIT_FAN_IN, INIT_FILE } InitKind;

typedef struct Init {
  InitKind kind;
  double low, high;         // INIT_UNIFORM: the numbers lie in [low, high)
  double deviation;         // INIT_NORMAL: the standard deviation; the mean is 0
  double fan_in;            // INIT_FAN_IN: uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in))
  const Constant *constant; // INIT_FILE: row-major
} Init;

// A tensor that lives from call to call: a call reads it as an input of the graph, and replaces it by an output.
typedef struct State {
  uint32_t input; // in graph->inputs
  int64_t output; // in graph->outputs, whose last nupdates are updates; -1: no call changes the state
  Init init;
  Position update; // the line of the file that names the update
} State;

struct Graph {
  Arena arena;
  Graph *origin;             // the graph that this one was cloned from, and holds a reference to; NULL: none
  _Atomic uint32_t nkeepers; // references besides the first
  const char *name;
  Source *source; // the file it was read from; NULL for one made by a program
  Dim **dims;
  size_t ndims, dims_capacity;
  size_t nsums;   // of open dims, the last of dims (ir/graph/open_dims.h)
  bool is_open;   // the dims are open
  Value **values; // inputs, constants and results in the order of their creation; some may be dead
  size_t nvalues, values_capacity;
  Node **nodes; // in topological order after graph_sort
  size_t nnodes, nodes_capacity;
  Value **inputs; // in the file's order, then the inputs of states; outputs likewise, then updates of states
  size_t ninputs, inputs_capacity;
  Value **outputs;
  size_t noutputs, outputs_capacity;
  State *states; // in the file's order
  size_t nstates, states_capacity;
  size_t nupdates;                  // states with an output
  int64_t nleaves;                  // leaves of the batch (ir/graph/leaves.h); 0: the graph declares none
  size_t largest_suffix, nsuffixes; // the largest number at the end of a name, among the first nsuffixes values
};

Graph *graph_new(const Allocator *allocator, const char *name);
// Adds a reference, which graph_free releases; returns g. A compiled kernel holds one to the graph whose constants it
// reads.
Graph *graph_keep(Graph *g);
void graph_free(Graph *g);

// A copy that may be rewritten without changing g. Its values and nodes have the same indices as g's. It shares g's
// dims, source, attribute lists and constant data, and holds a reference to g for them.
Graph *graph_clone(const Graph *g);

Dim *graph_add_dim(Graph *g, const char *name, int64_t value);
Dim *graph_find_dim(const Graph *g, const char *name);
bool graph_share_dims(Graph *g, const Graph *from); // makes the dims of `from` those of g, which must not outlive it
bool graph_own_dims(Graph *g);                      // copies the dims that g shares
// Replaces each dim in extents and in attributes, also where formulas have it. `to` gives dims that live as long as g,
// or numbers.
bool graph_replace_dims(Graph *g, Extent (*to)(const Dim *, const void *context), const void *context);

// Values. Names are copied. The caller ensures that they are unique, for instance by graph_fresh_name.
Value *graph_add_value(Graph *g, const char *name, Type type, const Shape *shape); // shape NULL: unknown rank
// A constant whose elements are all `number`. A NULL `name`, from a graph_fresh_name that ran out of memory, gives
// NULL.
Value *graph_add_number(Graph *g, const char *name, Type type, const Shape *shape, double number);
Value *graph_add_input(Graph *g, const char *name, Type type, const Shape *shape);
bool graph_add_output(Graph *g, Value *v);
// Adds a state and its input. All its extents are numbers.
State *graph_add_state(Graph *g, const char *name, Type type, const Shape *shape, const Init *init);
// Makes v the state's update: a call ends by copying v to the state. v has the state's type and shape. Updates are the
// last outputs, so no other output may be added afterwards.
bool graph_add_update(Graph *g, State *state, Value *v, Position position);
bool graph_name_file(Graph *g, Value *constant);          // sets constant->file to a new .npy name if it is NULL
const char *graph_fresh_name(Graph *g, const char *stem); // stem_NUMBER, which no value of g has
// Gives a fresh name to each value whose name another value has, or is longer than graph files allow. An input or
// output of the graph, else the earliest value, retains the name.
bool graph_make_names_unique(Graph *g);

// A node whose operands are all absent and whose attributes are unset. The setters below keep use lists and producers
// consistent.
Node *graph_add_node(Graph *g, const Operator *op, const Signature *signature, uint32_t ninputs, uint32_t noutputs);
void node_set_input(Node *node, uint32_t slot, Value *v); // v NULL: absent
void node_set_output(Node *node, uint32_t slot, Value *v);
void value_replace_uses(Value *old, Value *replacement); // in node inputs, not in the graph's outputs
size_t value_count_uses(const Value *v);
size_t value_nbytes(const Value *v); // of its elements; its extents must have values

static inline Value *graph_state(const Graph *g, size_t state) { // the input that holds the state
  return g->inputs[g->states[state].input];
}

bool graph_has_state(const Graph *g, const Value *v); // whether the value is a state

static inline Value *graph_update(const Graph *g, size_t state) { // NULL: the state has no update
  return g->states[state].output < 0 ? NULL : g->outputs[g->states[state].output];
}

// Adds the origins of `from`, or its position if it has none, to node->origins; at most MAX_ORIGINS are recorded.
bool node_add_origin(Graph *g, Node *node, const Node *from);
void node_print_lines(const Node *node, Text *out); // "line 4", "lines 4, 7 to 9"; nothing when no line is known
void node_print(const Node *node, Text *out);       // "LayerNorm (lines 4, 7 to 9)"

// Sorts nodes topologically and sets their indices. The sort is stable: it moves a producer only if the producer comes
// after a user, and then directly in front of its first user. Several such producers are moved in the order of the
// user's inputs. False after reporting a cycle or out of memory.
bool graph_sort(Graph *g, Diagnostics *d);

// Reports Slices from or to named places that are outside of the axis if each dim is value_of(dim, context).
bool graph_check_slices(const Graph *g, int64_t (*value_of)(const Dim *, const void *context), const void *context,
                        Diagnostics *d);

// Replaces every named extent by its dim's value; reports dims that have no value. The caller then runs inference
// again.
bool graph_bind_dims(Graph *g, Diagnostics *d);

// The same for fixed dims only. Unless is_always, only in a graph with unknown extents: inference may derive these from
// the fixed ones.
bool graph_bind_fixed_dims(Graph *g, bool is_always, Diagnostics *d);

#endif
