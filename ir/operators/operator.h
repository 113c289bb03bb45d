// The operator table: what operators there are, and what each takes, gives, allows and infers.
//
// A row of ir/operators/operators.def is everything that is known of one operator in its canonical form. A row of
// ir/operators/signatures.c is another name for one: a dialect's operand order, operand names, defaults and narrower
// rules. Interpreter, lowering and gradient include operators.def too and bind a function to each row by name.
#ifndef NGRAD_IR_OPERATORS_OPERATOR_H
#define NGRAD_IR_OPERATORS_OPERATOR_H

#include "ir/graph/graph.h"

enum { MAX_OPERANDS = 8, MAX_ATTRIBUTES = 8, MAX_CHOICES = 4, MAX_VARIADIC = 64 };

typedef enum OperatorId {
#define OP(name, ...) OP_##name,
#include "ir/operators/operators.def"
#undef OP
  OP_COUNT
} OperatorId;

typedef struct Operand {
  const char *name;
  char type;            // type variable: operands with the same letter have the same type
  bool is_optional;     // optional inputs may be absent, optional outputs need not be asked for
  bool is_hidden;       // only reachable through a signature that names it
  bool is_positive;     // a variance or the like: random data for it must be > 0
  bool is_probability;  // random data for it must be in (0, 1)
  const char *power;    // the attribute whose power it is raised to: if that is whole and not below 0, any data will do
  bool is_per_channel;  // with one axis, it lies along the channels, which data_format names
  bool is_statistic;    // an output kept for gradients, which do not flow through it; an input that takes such a one
  const char *dst_name; // what it is called, and is, when the attribute use_dst is true; NULL: the same
} Operand;

typedef enum AttributeKind {
  ATTRIBUTE_BOOL,
  ATTRIBUTE_S64,
  ATTRIBUTE_F32,
  ATTRIBUTE_CHOICE,
  ATTRIBUTE_S64_LIST,
  ATTRIBUTE_F32_LIST
} AttributeKind;

typedef struct Attribute {
  const char *name;
  AttributeKind kind;
  bool is_required; // without default
  bool is_optional; // may stay unset
  bool is_hidden;   // settable by a signature only
  bool must_be_positive;
  double default_value;             // bool, s64, f32: the number; choice: its index
  const char *choices[MAX_CHOICES]; // ATTRIBUTE_CHOICE
} Attribute;

typedef struct TypeVariable {
  char letter; // 0 ends the list
  TypeSet types;
} TypeVariable;

typedef enum Trait {
  TRAIT_ELEMENTWISE = 1 << 0, // output element i depends on the inputs' elements i, after numpy broadcasting
  TRAIT_ALONG_AXIS = 1 << 1,  // elementwise, but its result differs along the axis that the attribute `axis` names
  TRAIT_REDUCES = 1 << 2,     // reduces the axes that the attribute `axes` names; `keep_dims` keeps them, of extent 1
  TRAIT_VARIADIC = 1 << 3,    // the last input repeats, up to MAX_VARIADIC
  TRAIT_MOVES = 1 << 4,       // the output's elements are input 0's at other places
  TRAIT_PIECES = 1 << 5,      // each input becomes a part of the output by itself
  TRAIT_ADJOINT = 1 << 6,     // the output's elements are sums over taps: ir/operators/interpolate.h
  TRAIT_RESAMPLES = 1 << 7,   // attributes and operands are as in ir/operators/interpolate.h
  TRAIT_CANCELS = 1 << 8,     // a norm's gradient through its statistics: over very few elements nearly all cancels
  TRAIT_QUANTIZES = 1 << 9,   // rounds to so few digits that another last place of what it rounds may show as a step
  TRAIT_WIDE = 1 << 10,       // what it passes through leaves f32's range where its result does not
} Trait;

// The elements of src that one statistic of a norm is taken over (ir/operators/norm.h).
typedef enum NormScope {
  SCOPE_NONE,    // the operator is no norm
  SCOPE_CHANNEL, // a channel, in all of the batch; of broadcast statistics: all along their axes of extent 1
  SCOPE_ROW,     // the axes from the attribute `begin_norm_axis` on
  SCOPE_GROUP    // a group of channels, in one element of the batch: the attribute `groups` says how many there are
} NormScope;

// What is known of the first result from the ranges of the inputs of its kind (ir/operators/range.h).
typedef enum Keeps {
  KEEPS_NOTHING,
  KEEPS_SIGN,         // of positive elements it is positive
  KEEPS_PRODUCT_SIGN, // the same; but a square is positive of any, and one negative factor makes it negative
  KEEPS_RANGE         // each element lies between some of theirs
} Keeps;

typedef struct Inference Inference; // ir/operators/infer.h

struct Operator {
  const char *name;
  OperatorId id;
  const char *family; // the file that holds its functions, in every layer
  Operand inputs[MAX_OPERANDS];
  Operand outputs[MAX_OPERANDS];
  uint32_t ninputs, noutputs; // hidden ones included, and last
  Attribute attributes[MAX_ATTRIBUTES];
  uint32_t nattributes;
  TypeVariable types[5];
  // Refines types and shapes of the node's values in both directions; false after telling what contradicts.
  // May be called any number of times.
  bool (*infer)(Inference *inf, Node *node);
  // What holds for a node apart from types and shapes (counts of operands, attributes that need each other);
  // tells warnings too, and resolves what a name's document says of absent operands. Called once, by readers.
  bool (*check)(Node *node, Diagnostics *d);
  unsigned traits;
  NormScope norm_scope;
  Keeps keeps;
  bool is_commutative; // in its first two inputs, the bits of the result included
  const char *doc;     // one line
  const char *formula; // one line or a few
};

extern const Operator operators[OP_COUNT];

// Another name for an operator.
typedef struct SignatureOperand {
  const char *name;
  uint8_t slot;
  bool is_optional;
} SignatureOperand;

typedef struct SignatureAttribute {
  const char *name;      // in the dialect; NULL: not settable, always `value`
  const char *canonical; // the operator's name for it
  bool is_required;
  double value; // default, or the fixed value
} SignatureAttribute;

struct Signature {
  const char *dialect;   // "ngraph"
  const char *name;      // within the dialect
  const char *full_name; // dialect.name
  bool is_canonical_too; // may be written without the dialect
  OperatorId op;
  SignatureOperand inputs[MAX_OPERANDS], outputs[MAX_OPERANDS];
  uint32_t ninputs, noutputs;
  SignatureAttribute attributes[MAX_ATTRIBUTES];
  uint32_t nattributes;
  TypeSet types; // of every operand together: all have one type out of these; 0: the operator's own rule
};

ValueRange operand_range(const Operand *row); // random data's, as the row says
// Whether there is one right result for each element: it is no float that is computed with, and was not quantised.
bool value_is_exact(const Value *v);

extern const Signature signatures[];
extern const size_t nsignatures;

// An operator under one of its names, as readers and printers see it: `signature` NULL is the canonical name.
typedef struct OperatorName {
  const Operator *op; // NULL: no such name
  const Signature *signature;
} OperatorName;

// `text` is Name or dialect.Name. Every operator is also onednn.Name unless a signature takes that name.
OperatorName operator_find(const char *text);
const char *operator_nearest(const char *text); // for "did you mean"; NULL: nothing is near
// The full name to print for a node's operator: Name, or dialect.Name.
void operator_print_name(const Operator *op, const Signature *signature, Text *out);
// The same, for messages about a node; returns buffer.
enum { NODE_TITLE_BYTES = 96 };
const char *node_title(const Node *node, char buffer[NODE_TITLE_BYTES]);

// The named form's operands in its own order: counts, and for the i-th its name, canonical slot and optionality.
uint32_t named_ninputs(OperatorName n);
uint32_t named_noutputs(OperatorName n);
SignatureOperand named_input(OperatorName n, uint32_t i);
SignatureOperand named_output(OperatorName n, uint32_t i);
// The i-th input's name beside these attributes, one for each of the operator's; unset ones have their defaults.
const char *named_input_beside(OperatorName n, uint32_t i, const AttributeValue *attributes);

// The named form's settable attributes: `index` is the canonical attribute's.
typedef struct NamedAttribute {
  const char *name;
  uint32_t index;
  bool is_required, has_default;
  double default_value;
} NamedAttribute;
uint32_t named_nattributes(OperatorName n);
NamedAttribute named_attribute(OperatorName n, uint32_t i);

// Fills in what the node's file did not say: defaults, and what its signature fixes.
void node_set_defaults(Node *node);

bool operator_has_attribute(const Operator *op, const char *name);

// Whether an attribute names an axis that operands or results lie along, so that numpy's alignment at the right does
// not say where they are.
bool operator_places_by_axis(const Operator *op);

// Attribute of a valid node by canonical name; it must exist.
const AttributeValue *node_attribute(const Node *node, const char *name);
AttributeValue *node_attribute_slot(Node *node, const char *name); // the same, of a node in the making
bool node_bool(const Node *node, const char *name);
int64_t node_s64(const Node *node, const char *name);
double node_f32(const Node *node, const char *name);

#endif
