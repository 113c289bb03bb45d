// The operator table: the operands, attributes, types, traits and inference function of each operator.
//
// A row of ir/operators/operators.def describes one operator in its canonical form. A row of ir/operators/signatures.c
// gives an operator the name, operand order, operand names, defaults and stricter type rules of another system (a
// dialect). Interpreter, lowering and gradients also include operators.def, and bind a function to each row by its
// name.
#ifndef NGRAD_IR_OPERATORS_OPERATOR_H
#define NGRAD_IR_OPERATORS_OPERATOR_H

#include "ir/graph/graph.h"

enum { MAX_OPERANDS = 8, MAX_ATTRIBUTES = 12, MAX_CHOICES = 6, MAX_VARIADIC = 64 };

typedef enum OperatorId {
#define OP(name, ...) OP_##name,
#include "ir/operators/operators.def"
#undef OP
  OP_COUNT,
  OP_Gradient = OP_COUNT, // only graphs as read have it: passes/gradient/inside.h expands it
  NREADABLE
} OperatorId;

// The role of an operand in a convolution or pooling (ir/operators/window.h).
typedef enum WindowSide {
  SIDE_NONE,
  SIDE_LARGE,  // windows move over it: src of Convolution and pooling, dst of ConvTranspose, and their gradients
  SIDE_SMALL,  // has one element for each window
  SIDE_WEIGHTS // the convolution's kernel
} WindowSide;

typedef struct Operand {
  const char *name;
  char type;        // type variable: operands with the same letter have the same type
  bool is_optional; // an input may be absent; an output need not be computed
  bool is_hidden;   // can be given only through a signature that names it
  bool is_positive; // random data for it must be > 0: a variance, say
  bool is_scale; // a scale of quantised numbers; random data for it is small, so that dequantised numbers are not large
  bool is_probability; // random data for it must be in (0, 1)
  bool is_index; // indices along the attribute `axis` of input 0, or of the output if this is input 0; random data for
                 // it is below that axis's extent
  bool is_label; // likewise for random data, but other numbers are allowed
  bool counts_from_end; // an index may be negative: -1 is the last element
  const char *power;    // the attribute with its exponent: if a whole number >= 0, is_positive does not apply
  bool is_count;        // a small whole number, which kernels convert to the nearest float
  bool is_per_channel;  // of rank 1, it has an element for each channel of src (attribute data_format)
  bool is_statistic;    // an output that only the gradient uses, and that is differentiated on request alone; or an
                        // input that takes such an output, or class weights: a constant there is given, not trained
  WindowSide side;
  const char *dst_name; // its name if use_dst is true, when it is the forward output instead of src; NULL: always src
} Operand;

typedef enum AttributeKind {
  ATTRIBUTE_BOOL,
  ATTRIBUTE_S64,
  ATTRIBUTE_F32,
  ATTRIBUTE_CHOICE,
  ATTRIBUTE_S64_LIST,
  ATTRIBUTE_F32_LIST
} AttributeKind;

// The meaning of the numbers of an s64 list.
typedef enum ListContents {
  LIST_ANY,
  LIST_SPATIAL, // one for each spatial axis, at least 1
  LIST_PADDING, // one for each spatial axis, at least 0
  LIST_SHAPE    // the extents of all axes
} ListContents;

typedef struct Attribute {
  const char *name;
  AttributeKind kind;
  bool is_required; // no default: must be given
  bool is_optional; // no default: may be unset
  bool is_hidden;   // can be set only by a signature
  bool must_be_positive;
  bool may_be_infinite;             // ATTRIBUTE_F32
  bool may_be_named;                // ATTRIBUTE_S64_LIST: items may be named extents
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
  TRAIT_ALONG_AXIS = 1 << 1,  // elementwise, but the formula depends on the index along the attribute `axis`
  TRAIT_REDUCES = 1 << 2,     // reduces the axes in the attribute `axes`; with `keep_dims` they remain with extent 1
  TRAIT_VARIADIC = 1 << 3,    // the last input may be repeated, up to MAX_VARIADIC inputs in total
  TRAIT_MOVES = 1 << 4,       // an output element depends on elements of input 0 at other indices, without a sum
  TRAIT_PIECES = 1 << 5,    // a kernel for each input iterates over the input, and writes a part of the output (Concat)
  TRAIT_ADJOINT = 1 << 6,   // each output element is a sum over taps (ir/operators/interpolate.h)
  TRAIT_RESAMPLES = 1 << 7, // resamples: has the attributes and operands of ir/operators/interpolate.h
  TRAIT_CANCELS = 1 << 8,   // a norm's gradient through its statistics: terms cancel if a statistic has few elements
  TRAIT_QUANTIZES = 1 << 9, // rounds coarsely: a rounding error in its operand can change the result by a whole step
  TRAIT_WIDE = 1 << 10,     // intermediate results may leave f32's range even if the result does not
  TRAIT_POINTWISE = 1 << 11,  // no sums: a result's element depends on one element of each tensor and on parameters
  TRAIT_MULTIPLIES = 1 << 12, // sums of products of inputs 0 and 1 (ir/operators/contraction.h)
  TRAIT_BOUNDED = 1 << 13,    // its loads may have bounds, as the loads of Pad and of a backwards Slice
  TRAIT_SCATTERS = 1 << 15,   // adds rows of an input to rows of the output at given indices
  TRAIT_PERMUTES = 1 << 14,   // output 0 has each element of input 0 once, perhaps converted
  TRAIT_COLLECTIVE = 1 << 16, // relates the leaves of the batch (ir/graph/leaves.h)
} Trait;

// The elements of src that one statistic of a norm is computed from (ir/operators/norm.h).
typedef enum NormScope {
  SCOPE_NONE,    // the operator is no norm
  SCOPE_CHANNEL, // a channel of the whole batch; with broadcast statistics, the axes on which these have extent 1
  SCOPE_ROW,     // the axes from `begin_norm_axis` on
  SCOPE_GROUP    // one of `groups` groups of channels, in one element of the batch
} NormScope;

// What the ranges of floating-point inputs imply for output 0 (ir/operators/range.h).
typedef enum Preserves {
  PRESERVES_NOTHING,
  PRESERVES_SIGN,         // positive inputs give a positive result
  PRESERVES_PRODUCT_SIGN, // likewise, but x * x needs no positive x, and a negative constant factor changes the sign
  PRESERVES_RANGE         // each result lies between two input elements
} Preserves;

typedef struct Inference Inference; // ir/operators/infer.h

// The iteration domain of a node's kernel.
enum { MOST_EXTRA_AXES = 8 };
typedef struct Domain {
  Shape shape;                   // the result's
  Extent extra[MOST_EXTRA_AXES]; // further axes, which the node reduces: taps, channels
  int nextra;
  int64_t ngroups; // more than 1: axis split_axis is split into this many groups, each with its own channels
  int split_axis;
} Domain;

struct Operator {
  const char *name;
  OperatorId id;
  const char *family; // the file name of its functions in ir/operators, the interpreter, the gradients, ...
  Operand inputs[MAX_OPERANDS];
  Operand outputs[MAX_OPERANDS];
  uint32_t ninputs, noutputs; // including hidden operands, which are last
  Attribute attributes[MAX_ATTRIBUTES];
  uint32_t nattributes;
  TypeVariable types[5];
  // Refines types and shapes of the node's values, from inputs to outputs and back. False after reporting a
  // contradiction. May be called repeatedly.
  bool (*infer)(Inference *inf, Node *node);
  // Checks everything but types and shapes (operands and attributes that require each other) and gives warnings. May
  // remove operands that have no effect with the node's attributes. Readers call it once. NULL: nothing to check.
  bool (*check)(Node *node, Diagnostics *d);
  // Sets the domain of a node that reduces axes that are no operand's own, such as the taps of windows. NULL: the
  // domain is a shape without extra axes.
  void (*domain)(const Node *node, Domain *d);
  // Gives warnings that depend on types and shapes, on a valid node. Readers call it once. NULL: there are none.
  void (*warn)(const Node *node, Diagnostics *d);
  unsigned traits;
  NormScope norm_scope;
  Preserves preserves;
  bool is_commutative; // exchanging the first two inputs does not change a bit of the result
  const char *doc;     // one line
  const char *formula; // one line or a few
};

extern const Operator operators[NREADABLE];

// An operand of a signature.
typedef struct SignatureOperand {
  const char *name;
  uint8_t slot; // in the operator's own order
  bool is_optional;
} SignatureOperand;

typedef struct SignatureAttribute {
  const char *name;      // in the dialect; NULL: cannot be given, always `value`
  const char *canonical; // the operator's name of the attribute
  bool is_required;
  double value; // the default or fixed value
} SignatureAttribute;

struct Signature {
  const char *dialect;   // "ngraph"
  const char *name;      // within the dialect
  const char *full_name; // "ngraph.Name"
  bool is_canonical_too; // may also be written without the dialect
  OperatorId op;
  SignatureOperand inputs[MAX_OPERANDS], outputs[MAX_OPERANDS];
  uint32_t ninputs, noutputs;
  SignatureAttribute attributes[MAX_ATTRIBUTES];
  uint32_t nattributes;
  TypeSet types; // not 0: all operands have the same type, one of these; 0: the operator's type variables apply
};

ValueRange operand_range(const Operand *row); // the range for random data
// Whether implementations must agree in every bit of the value, but for choices that rounding errors flip: it is not
// quantised, and has no float type (type_is_float) or consists of elements of inputs and constants in other places.
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
const char *operator_nearest(const char *given); // for "did you mean"; NULL: no name is similar
// The full name to print for a node's operator: Name, or dialect.Name.
void operator_print_name(const Operator *op, const Signature *signature, Text *out);
// The name that messages use for a node: the operator's name, and the node's label in parentheses. Returns buffer.
enum { NODE_TITLE_BYTES = 96 };
const char *node_title(const Node *node, char buffer[NODE_TITLE_BYTES]);

// The operands in the order of the name's signature, without hidden operands that the signature does not name.
uint32_t named_ninputs(OperatorName n);
uint32_t named_noutputs(OperatorName n);
SignatureOperand named_input(OperatorName n, uint32_t i);
SignatureOperand named_output(OperatorName n, uint32_t i);
// The name of the i-th input, which may depend on the attribute use_dst. `attributes` is parallel to the operator's
// list; unset attributes count as their defaults.
const char *named_input_beside(OperatorName n, uint32_t i, const AttributeValue *attributes);

// The attributes that can be given under a name; `index` is the index in the operator's list.
typedef struct NamedAttribute {
  const char *name;
  uint32_t index;
  bool is_required, has_default;
  double default_value;
} NamedAttribute;
uint32_t named_nattributes(OperatorName n);
NamedAttribute named_attribute(OperatorName n, uint32_t i);

// Sets unset attributes to the signature's fixed values, or to defaults.
void node_set_defaults(Node *node);

// The extent of the axis that an input with Operand.is_index or is_label holds indices along.
Extent node_indexed(const Node *node, uint32_t slot);
int64_t node_indexed_extent(const Node *node, uint32_t slot); // the extent's value; -1: the input holds no indices

bool operator_has_attribute(const Operator *op, const char *name);

// Whether the operator's meaning depends on an axis that an attribute names (data_format, axis). Aligning shapes at the
// right, as numpy does, then does not suffice to relate operands to the result.
bool operator_places_by_axis(const Operator *op);
bool node_places_by_axis(const Node *node); // the same, but false if one scale is for the whole tensor

// The i-th operand and its row; inputs come first, then outputs. NULL: it is absent.
Value *node_operand_at(const Node *node, uint32_t i, const Operand **row);

// The attribute of a valid node with this canonical name, which must exist.
const AttributeValue *node_attribute(const Node *node, const char *name);
AttributeValue *node_attribute_slot(Node *node, const char *name); // the same, to set it in a new node
// Sets it to a copy of the list in the graph's arena. False: out of memory.
bool node_set_list(Graph *g, Node *node, const char *name, const int64_t *items, size_t count);
// The same for a list of extents, some of which may be named (Attribute.may_be_named).
bool node_set_extents(Graph *g, Node *node, const char *name, const Extent *extents, size_t count);
bool node_bool(const Node *node, const char *name);
int64_t node_s64(const Node *node, const char *name);
double node_f32(const Node *node, const char *name);

#endif
