// The operator table: the operands, attributes, types, traits and inference function of each operator.
//
// A row of ir/operators/operators.def describes one operator in its canonical form. A row of ir/operators/signatures.c
// is another name for an operator, with the operand order, operand names, defaults and stricter type rules of another
// system (a dialect). Interpreter, lowering and gradient include operators.def, too, and bind a function to each row by
// name.
#ifndef NGRAD_IR_OPERATORS_OPERATOR_H
#define NGRAD_IR_OPERATORS_OPERATOR_H

#include "ir/graph/graph.h"

enum { MAX_OPERANDS = 8, MAX_ATTRIBUTES = 12, MAX_CHOICES = 6, MAX_VARIADIC = 64 };

typedef enum OperatorId {
#define OP(name, ...) OP_##name,
#include "ir/operators/operators.def"
#undef OP
  OP_COUNT
} OperatorId;

// The part that an operand takes in a convolution or pooling (ir/operators/window.h).
typedef enum WindowSide {
  SIDE_NONE,
  SIDE_LARGE,  // windows lie on it: src of Convolution and pooling, dst of ConvTranspose, and their gradients
  SIDE_SMALL,  // has an element for each window
  SIDE_WEIGHTS // has the kernel
} WindowSide;

typedef struct Operand {
  const char *name;
  char type;            // type variable: operands with the same letter have the same type
  bool is_optional;     // an input may be absent; an output need not be computed
  bool is_hidden;       // can only be given through a signature that names it
  bool is_positive;     // random data for it must be > 0: a variance, say
  bool is_scale;        // of quantised numbers; random data for it is small, so that what they stand for is not large
  bool is_probability;  // random data for it must be in (0, 1)
  bool is_index;        // of elements along the attribute axis of input 0, or of the output if this is input 0; random
                        // data for it is below that extent
  bool counts_from_end; // an index may be negative: -1 is the last element
  const char *power;    // the attribute that is its exponent: if a whole number >= 0, is_positive does not apply
  bool is_count;        // a small whole number, which kernels take as the nearest float
  bool is_per_channel;  // when of rank 1, its axis is src's channel axis, as data_format says
  bool is_statistic;    // an output for use by the gradient, through which no gradients flow; or an input for such
  WindowSide side;
  const char *dst_name; // its name when use_dst is true: it is then the forward output, not src; NULL: always src
} Operand;

typedef enum AttributeKind {
  ATTRIBUTE_BOOL,
  ATTRIBUTE_S64,
  ATTRIBUTE_F32,
  ATTRIBUTE_CHOICE,
  ATTRIBUTE_S64_LIST,
  ATTRIBUTE_F32_LIST
} AttributeKind;

// What the numbers of an s64 list are.
typedef enum ListContents {
  LIST_ANY,
  LIST_SPATIAL, // for each spatial axis, at least 1
  LIST_PADDING, // for each spatial axis, at least 0
  LIST_SHAPE    // extents, of each axis
} ListContents;

typedef struct Attribute {
  const char *name;
  AttributeKind kind;
  bool is_required; // has no default and must be given
  bool is_optional; // has no default and may be unset
  bool is_hidden;   // can only be set by a signature
  bool must_be_positive;
  bool may_be_infinite;             // ATTRIBUTE_F32
  ListContents list;                // ATTRIBUTE_S64_LIST
  double default_value;             // bool, s64, f32: the number; choice: its index
  const char *choices[MAX_CHOICES]; // ATTRIBUTE_CHOICE: the names; the value is an index
} Attribute;

typedef struct TypeVariable {
  char letter; // 0 ends the list
  TypeSet types;
} TypeVariable;

typedef enum Trait {
  TRAIT_ELEMENTWISE = 1 << 0, // output element i depends on the inputs' elements i, after numpy broadcasting
  TRAIT_ALONG_AXIS = 1 << 1,  // elementwise, but the formula depends on the index along the axis of attribute `axis`
  TRAIT_REDUCES = 1 << 2,     // reduces the axes in the attribute `axes`; with `keep_dims` they remain, of extent 1
  TRAIT_VARIADIC = 1 << 3,    // the last input may be repeated, for at most MAX_VARIADIC inputs in total
  TRAIT_MOVES = 1 << 4,       // an output element depends on elements of input 0 at other indices, and sums none
  TRAIT_PIECES = 1 << 5,      // a kernel for each input goes over that, and writes a part of the output (Concat, Tile)
  TRAIT_ADJOINT = 1 << 6,     // each output element is a sum over taps (ir/operators/interpolate.h)
  TRAIT_RESAMPLES = 1 << 7,   // has the attributes and operands of ir/operators/interpolate.h
  TRAIT_CANCELS = 1 << 8,     // a norm's gradient through its statistics: terms cancel when these have few elements
  TRAIT_QUANTIZES = 1 << 9,   // rounds so coarsely that a rounding error before it can change the result by a step
  TRAIT_WIDE = 1 << 10,       // intermediate results may leave f32's range although the result does not
  TRAIT_POINTWISE = 1 << 11,  // no sums: a result's element depends on one element of each tensor and on parameters
  TRAIT_MULTIPLIES = 1 << 12, // sums products of elements of inputs 0 and 1 (ir/operators/contraction.h)
  TRAIT_BOUNDED = 1 << 13,    // its loads may have bounds, as those of Pad and of a Slice backwards
  TRAIT_SCATTERS = 1 << 15,   // adds rows of an input to rows of the output at given indices
  TRAIT_PERMUTES = 1 << 14,   // output 0 has the elements of input 0, each once, though maybe converted
  TRAIT_COLLECTIVE = 1 << 16, // its meaning depends on the leaves of the batch (ir/graph/leaves.h)
} Trait;

// The elements of src that one statistic of a norm is computed from (ir/operators/norm.h).
typedef enum NormScope {
  SCOPE_NONE,    // the operator is no norm
  SCOPE_CHANNEL, // a channel of the whole batch; broadcast statistics: along their axes of extent 1
  SCOPE_ROW,     // the axes from `begin_norm_axis` on
  SCOPE_GROUP    // one of `groups` groups of channels, in one element of the batch
} NormScope;

// What the ranges of the floating-point inputs imply for output 0 (ir/operators/range.h).
typedef enum Preserves {
  PRESERVES_NOTHING,
  PRESERVES_SIGN,         // positive inputs give a positive result
  PRESERVES_PRODUCT_SIGN, // the same, but x * x needs no positive x, and a negative constant factor changes the sign
  PRESERVES_RANGE         // each result lies between two input elements
} Preserves;

typedef struct Inference Inference; // ir/operators/infer.h

// What the kernel of a node iterates over.
enum { MOST_EXTRA_AXES = 8 };
typedef struct Domain {
  Shape shape;                   // that of the result
  Extent extra[MOST_EXTRA_AXES]; // axes behind these, which the node reduces: taps, channels
  int nextra;
  int64_t ngroups; // more than 1: the axis split_axis is this many groups, each with its own channels
  int split_axis;
} Domain;

struct Operator {
  const char *name;
  OperatorId id;
  const char *family; // the name of the file with its functions, in ir/operators, the interpreter, the gradient, ...
  Operand inputs[MAX_OPERANDS];
  Operand outputs[MAX_OPERANDS];
  uint32_t ninputs, noutputs; // including hidden operands, which are last
  Attribute attributes[MAX_ATTRIBUTES];
  uint32_t nattributes;
  TypeVariable types[5];
  // Refines types and shapes of the node's values, from inputs to outputs and back; false after reporting a
  // contradiction. May be called any number of times.
  bool (*infer)(Inference *inf, Node *node);
  // Checks a node apart from types and shapes (operands and attributes that need each other) and gives warnings. May
  // remove operands that have no effect under the node's attributes. Readers call it once. NULL: nothing to check.
  bool (*check)(Node *node, Diagnostics *d);
  // Sets the domain of a node that reduces axes which no operand has by itself. NULL: its domain is a shape.
  void (*domain)(const Node *node, Domain *d);
  // Gives warnings on a valid node that follow from types and shapes. Readers call it once. NULL: there are none.
  void (*warn)(const Node *node, Diagnostics *d);
  unsigned traits;
  NormScope norm_scope;
  Preserves preserves;
  bool is_commutative; // exchanging the first two inputs does not change a bit of the result
  const char *doc;     // one line
  const char *formula; // one line or a few
};

extern const Operator operators[OP_COUNT];

// An operand as a signature names it.
typedef struct SignatureOperand {
  const char *name;
  uint8_t slot; // in the operator's own order
  bool is_optional;
} SignatureOperand;

typedef struct SignatureAttribute {
  const char *name;      // in the dialect; NULL: cannot be given, and is always `value`
  const char *canonical; // the operator's name for it
  bool is_required;
  double value; // the default or fixed value
} SignatureAttribute;

struct Signature {
  const char *dialect;   // "ngraph"
  const char *name;      // within the dialect
  const char *full_name; // "ngraph.Name"
  bool is_canonical_too; // may be written without the dialect
  OperatorId op;
  SignatureOperand inputs[MAX_OPERANDS], outputs[MAX_OPERANDS];
  uint32_t ninputs, noutputs;
  SignatureAttribute attributes[MAX_ATTRIBUTES];
  uint32_t nattributes;
  TypeSet types; // all operands have the same type, which is one of these; 0: the operator's own type rule
};

ValueRange operand_range(const Operand *row); // the range for random data
// Whether implementations must agree in every bit of the value: its type is no float type (type_is_float) and it is
// not the result of a quantisation.
bool value_is_exact(const Value *v);

extern const Signature signatures[];
extern const size_t nsignatures;

// An operator under one of its names; `signature` NULL: the canonical name.
typedef struct OperatorName {
  const Operator *op; // NULL: no such name
  const Signature *signature;
} OperatorName;

// `text` is Name or dialect.Name. Every operator is also onednn.Name unless a signature takes that name.
OperatorName operator_find(const char *text);
const char *operator_nearest(const char *text); // for "did you mean"; NULL: no name is similar, or ends alike
// The full name to print for a node's operator: Name, or dialect.Name.
void operator_print_name(const Operator *op, const Signature *signature, Text *out);
// The name that messages use for a node: the operator's name, and the node's label in parentheses. Returns buffer.
enum { NODE_TITLE_BYTES = 96 };
const char *node_title(const Node *node, char buffer[NODE_TITLE_BYTES]);

// The operands in the order of the name's signature. Hidden operands that a signature does not name are left out.
uint32_t named_ninputs(OperatorName n);
uint32_t named_noutputs(OperatorName n);
SignatureOperand named_input(OperatorName n, uint32_t i);
SignatureOperand named_output(OperatorName n, uint32_t i);
// The i-th input's name, which may depend on the attribute use_dst. `attributes` are parallel to the operator's; unset
// ones count as their defaults.
const char *named_input_beside(OperatorName n, uint32_t i, const AttributeValue *attributes);

// The attributes that can be given under a name; `index` is the attribute's in the operator's own list.
typedef struct NamedAttribute {
  const char *name;
  uint32_t index;
  bool is_required, has_default;
  double default_value;
} NamedAttribute;
uint32_t named_nattributes(OperatorName n);
NamedAttribute named_attribute(OperatorName n, uint32_t i);

// Sets attributes that are unset to the signature's fixed values and to defaults.
void node_set_defaults(Node *node);

// The extent along which the elements of an input, with Operand.is_index, are indices.
Extent node_indexed(const Node *node, uint32_t slot);
int64_t node_indexed_extent(const Node *node, uint32_t slot); // its value; -1: the elements are no indices

bool operator_has_attribute(const Operator *op, const char *name);

// Whether an operand's axis, or what the operator does, depends on an axis that an attribute names (data_format, axis).
// Aligning shapes at the right, as numpy does, is then not enough to relate operands to the result.
bool operator_places_by_axis(const Operator *op);
bool node_places_by_axis(const Node *node); // the same, but not where one scale is for the whole tensor

// Attribute of a valid node by canonical name; it must exist.
const AttributeValue *node_attribute(const Node *node, const char *name);
AttributeValue *node_attribute_slot(Node *node, const char *name); // the same, to set it in a new node
bool node_bool(const Node *node, const char *name);
int64_t node_s64(const Node *node, const char *name);
double node_f32(const Node *node, const char *name);

#endif
