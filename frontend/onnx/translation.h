// Functions shared by the translators of ONNX's operators. The nodes of a model are translated one at a time, in the
// model's order, into nodes of the graph (frontend/foreign/build.h). Shapes that a model computes from constants are
// folded to constants.
//
// Translators return false after a message, after out of memory, or if an input is absent; the caller reports absent
// inputs. Nodes that use results of a failed node are left out, so that everything unsupported is reported in one run.
//
// Shapes with named extents: the result of Shape is a constant, too, and negative numbers in it stand for named extents
// (frontend/onnx/extents.c). Operators that only move elements preserve these numbers; Reshape, Expand and
// ConstantOfShape accept them.
#ifndef NGRAD_FRONTEND_ONNX_TRANSLATION_H
#define NGRAD_FRONTEND_ONNX_TRANSLATION_H

#include "frontend/foreign/build.h"
#include "frontend/names.h"
#include "frontend/onnx/model.h"
#include "frontend/read_settings.h"
#include "ir/operators/operator.h"

enum {
  MOST_INTS = 64,
  ONNX_NEWEST = 28,      // opset whose rules are known
  OPERANDS_OF_A_NODE = 8 // this many inputs and outputs count as another node
};

typedef struct Ints {
  int64_t items[MOST_INTS];
  size_t count;
} Ints;

// The source of an element beyond an edge.
typedef enum PadMode { PAD_REFLECTS, PAD_REPEATS, PAD_WRAPS } PadMode;

typedef struct OnnxRow OnnxRow;

typedef struct OnnxScope {
  Names values;                  // by ONNX's name
  const struct OnnxScope *outer; // of the enclosing graph; NULL: nothing of it is visible
} OnnxScope;

typedef struct Onnx {
  Builder build; // the first member: onnx_finish finds the Onnx by its address
  Foreign foreign;
  OnnxReading reading;
  const ReadSettings *settings;
  GivenExtent *given; // numbers of named extents: the settings', and those of shapes that they give
  size_t ngiven, given_capacity;
  OnnxScope *scope;
  Names infos; // OnnxInfo of the graph's values, by name; filled at the first node of the domain "ngrad"
  bool has_infos;
  const OnnxGraph *model; // the graph that is read
  Bytes properties;       // the message with the model's properties
  Names dims, functions;  // of the model; functions by domain and name
  Names weights;          // by the address of the tensor in the model
  bool has_weights;       // as initializers of floating point with axes
  Names parts, files;     // of external data: elements by place, and the files (external.c)
  Names graphs;           // OnnxGraph of branches and bodies, by their place in the file, so that each is parsed once
  size_t nbytes;          // of the arrays of the file's graphs and functions
  Value failed, absent;   // placeholders: `failed` for a result of a failed node, `absent` for a function's input that
                          // the call omits
  uint8_t *has_extents;   // by a value's index: some elements of the constant stand for extents
  size_t nextents, extents_capacity;
  Extent *stood_for; // by the numbers that stand for extents
  size_t nstood_for, stood_for_capacity;
  const OnnxNode *caller; // the call of the current function
  int depth;              // of calls and branches
  size_t nnodes;          // translated so far, including the nodes that operands and calls count as
  size_t ncalled;         // bytes of functions called so far
  bool may_wait, waits;   // the current node may, and does: until another makes its inputs
  size_t nwaited;         // bytes of names of inputs looked for
  bool has_too_many;      // and this was reported
  int64_t opset;
  Value *calls; // the number of the call, from 1, for dropout; NULL: not used yet
  uint32_t ndropouts;
  // The current node:
  const OnnxNode *node;
  const OnnxRow *row;
  Value **inputs; // [node->ninputs]; NULL: absent
} Onnx;

typedef bool (*OnnxTranslator)(Onnx *x);

// An attribute whose number becomes an attribute of the graph's operator.
typedef struct OnnxAttributeRow {
  const char *onnx, *own; // NULL: the end of the list
  double default_number;
} OnnxAttributeRow;

// An operator of ONNX, from an opset up to the next row of the same name.
struct OnnxRow {
  const char *name;
  int since;
  OnnxTranslator translate; // NULL: the operator `op` with the same inputs and the attributes below
  OperatorId op;
  const char *known; // names of further attributes; NULL: the operator's body has them
  OnnxAttributeRow attributes[3];
  bool takes_sequences;
};

const OnnxRow *onnx_find_row(Bytes name, int64_t opset);      // NULL: not supported
const OnnxRow *onnx_find_plain(OperatorId op, int64_t opset); // a row without a translator; NULL: none

bool onnx_knows(const OnnxRow *row, int64_t opset, Bytes name);  // whether the operator has the attribute
const char *onnx_body_attributes(const char *op, int64_t opset); // with kinds and defaults (bodies.c)

// Names and messages

const char *onnx_text_of(Onnx *x, Bytes bytes); // as a string; NULL after out of memory
bool onnx_is_name(const char *text);            // whether the graph can use the name unchanged
const char *onnx_own_name(Onnx *x, const char *name);
const char *onnx_title(Onnx *x, const OnnxNode *node); // "Conv conv1 (opset 13)"

// Files (files.c)
const char *onnx_given(const Onnx *x, const char *name); // the file of an input given as a constant; NULL: not given
bool onnx_check_given(Onnx *x, const OnnxGraph *g);      // reports given names that are no inputs
Value *onnx_tensor_file(Onnx *x, const char *path, const char *name, Type type, const Shape *shape);

// Extents as elements (extents.c)
int64_t onnx_integer(const Value *v, size_t i);   // element of a constant
bool onnx_must_be_known(Onnx *x, const Value *v); // reports how to make it constant; false
// v as a constant, also if it is computed from weights, which are not folded; v itself if it depends on inputs.
Value *onnx_known(Onnx *x, Value *v);
bool onnx_has_extents(const Onnx *x, const Value *v);
bool onnx_mark_extents(Onnx *x, const Value *v); // if any element is no number
// The extent's own number, or the number that stands for it. False: out of memory.
bool onnx_extent_number(Onnx *x, Extent e, int64_t *number);
Extent onnx_extent_of(const Onnx *x, int64_t number);
int64_t onnx_opposite(int64_t number); // -1 times a number or extent: onnx_extent_of is unknown for that of an extent
bool onnx_finish(Builder *b, Node *node); // build_finish for ONNX; b is the first member of an Onnx
// The sum, difference, product or quotient of such constants; NULL after a message.
Value *onnx_combine_extents(Onnx *x, OperatorId id, const Value *a, const Value *b);
Value *onnx_multiply_extents(Onnx *x, const Value *v, bool keeps_axes); // the product of all; NULL after a message
Value *onnx_float_of_extent(Onnx *x, const Value *v, Type type); // one extent, as a number that the graph computes
// The extent that such a constant of one element is, or that has become such a number; unknown: neither, or v is NULL.
Extent onnx_one_extent(const Onnx *x, const Value *v);
Value *onnx_reshape_extents(Onnx *x, Value *v, const Shape *to); // an unknown extent is the remaining one

// The node's operands and attributes

Value *onnx_in(const Onnx *x, size_t i); // NULL: absent
bool onnx_out(Onnx *x, size_t i, Value *v);
bool onnx_wants(const Onnx *x, size_t i); // whether the model has output i
// Attributes; an attribute of the wrong kind is reported, and counts as absent.
bool onnx_attribute(Onnx *x, const char *name, OnnxKind kind, OnnxAttribute *a);
int64_t onnx_int(Onnx *x, const char *name, int64_t otherwise);
double onnx_float(Onnx *x, const char *name, double otherwise);
Bytes onnx_text(Onnx *x, const char *name);                             // empty: absent
size_t onnx_texts(Onnx *x, const char *name, Bytes *list, size_t most); // returns their number
bool onnx_list(Onnx *x, const char *name, Ints *list);                  // false: absent, or too long, which is reported
bool onnx_has(const Onnx *x, const char *name);
// The integers of a constant input; false after a message: the input is no constant.
bool onnx_constant_ints(Onnx *x, size_t i, Ints *list);
// The same as extents, which may be named; negative numbers are kept.
bool onnx_constant_shape(Onnx *x, size_t i, Shape *shape);
// The same as bounds, at most `most`: named extents are in `named`, beside a 0 in the list; numbers are unknown there.
bool onnx_constant_bounds(Onnx *x, size_t i, size_t most, const Ints *axes, Ints *list, Extent *named);
// From input i if present, else from the attribute; *is_given: one of them is present.
bool onnx_ints_of(Onnx *x, size_t i, const char *name, Ints *list, bool *is_given);
bool onnx_axis(Onnx *x, int64_t given, int rank, int *axis); // negative: counted from the end
bool onnx_number(Onnx *x, Value *v, double *number);         // the element of a constant of one element

// Building

enum { SHAPE_TO_GIVE = 320 };
// "give the shape of x, as in --shape x=1,256", of an input with unknown extents from which v (NULL: unknown) follows.
const char *onnx_shape_to_give(const Onnx *x, const Value *v, char *text, size_t nbytes);
bool onnx_has_number(Onnx *x, const Value *v, int axis);          // whether its extent is a number; reports if not
bool onnx_has_numbers(Onnx *x, const Value *v);                   // for all axes
Value *onnx_extent_tensor(Onnx *x, Extent e);                     // s64; a named one is computed by the graph
Value *onnx_iota(Onnx *x, Extent n, Extent step, int behind);     // s64: 0, step, ...; then `behind` axes of 1
Value *onnx_flat(Onnx *x, Value *v);                              // as a vector
Extent onnx_product(Onnx *x, const Value *v, int first, int end); // of extents; unknown if it is no formula
Value *onnx_reshape_to(Onnx *x, Value *v, int rank, const Extent *extents);
Value *onnx_gather_along(Onnx *x, Value *data, Value *indices, int axis); // indices: as many axes as the data
Value *onnx_take(Onnx *x, Value *v, const int64_t *indices, int64_t count, int axis);
// Zeros of the shape; each update, [count, ...], is added to the row at its position, [count].
Value *onnx_scatter(Onnx *x, Value *places, Value *updates, const Shape *rows);
// The indices of the elements of each row of [rows, n] in order, in which NaN is greater than all numbers
// (along_axis.c). Equal elements stay in their order.
Value *onnx_sort(Onnx *x, Value *v, bool is_descending);
// Bisection in sorted blocks of `keys`, a vector. The blocks begin at the places `base`; each has an element `own`, of
// the same shape, that is looked for.
typedef struct OnnxSearch {
  Value *keys, *base, *own;
  Value *counts_equal; // booleans: whether elements that are equal to `own` are before it; NULL: they are
  bool is_descending;
} OnnxSearch;
// How many elements of the block, which has `length`, a power of two, are before `own`.
Value *onnx_count_before(Onnx *x, const OnnxSearch *s, int64_t length);
// v with n elements on axis 1, of which those behind its own are no better than any.
Value *onnx_lengthened(Onnx *x, Value *v, int64_t n, bool is_descending);
// The positions in the flat data for indices along an axis; indices have as many axes as the data.
Value *onnx_places_along(Onnx *x, const Value *data, Value *indices, int axis);
// The positions of rows in data, viewed as [number of rows, ...]. The coordinates of a row are in the last axis of
// indices, and index the axes behind the nbatch axes that data and indices share. *nrow_axes: how many axes of data a
// position replaces.
Value *onnx_places_of_rows(Onnx *x, const Value *data, Value *indices, int64_t nbatch, int *nrow_axes);
Value *onnx_as_rows(Onnx *x, Value *data, int nrow_axes); // data as [rows, ...]
Value *onnx_pad_with_elements(Onnx *x, Value *v, const Ints *pads, PadMode mode);
// v; before opset 13, with all axes from the attribute `axis` on merged. *axis: the attribute, counted from the start.
Value *onnx_flat_from(Onnx *x, Value *v, int *axis);
Value *onnx_convolve(Onnx *x, Value *v, Value *weights, Value *bias); // with the node's attributes

// Casts to and from 8-bit floats and 4-bit integers (quantize.c); others are build_cast's.
Value *onnx_unpack(Onnx *x, Value *v); // of such a type: to f32
// What a quantisation, or a sum of products of integers, cast to the integers v, saturated as by the cast, so that a
// gradient reaches it; else v. NaN is 0.
Value *onnx_before_cast(Onnx *x, Value *v);
Value *onnx_pack(Onnx *x, Value *v, Type type, bool saturates); // 8-bit floats beyond the range: the greatest, or none

// Takes the numbers of named extents of the settings, and of inputs whose shapes they give. False: out of memory.
bool onnx_take_given_extents(Onnx *x, const OnnxGraph *g);
// The shape that the settings give to an input, and whose rank and numbers do not contradict the declared ones; else
// false.
bool onnx_given_shape(Onnx *x, const OnnxInfo *info, Ints *shape);
// Sets the extents of a declared value.
bool onnx_set_extents(Onnx *x, const OnnxInfo *info, Shape *shape);

Type onnx_type(uint64_t type); // TYPE_NONE: unsupported
const char *onnx_type_name(uint64_t type);
uint64_t onnx_type_of_name(Bytes name);                                  // "FLOAT" as onnx.proto has it: 1
Value *onnx_tensor(Onnx *x, const OnnxTensor *tensor, const char *what); // as a constant
Value *onnx_constant(Onnx *x, const char *name, Type type, const Shape *shape, void *data); // name NULL: out of memory
// A tensor that may be a parameter, under its name. What is read more than once, such as a loop's body, has one weight.
Value *onnx_weight(Onnx *x, const OnnxTensor *tensor, const char *what, const char *name);

// Graphs inside of the model (read.c): their nodes replace the node that has or calls them. All return false after a
// message, or where a result has failed, which has been reported.
bool onnx_translate_by_row(Onnx *x); // the current node
// Translates g, whose inputs have values in the scope, and finds its outputs.
bool onnx_translate_inside(Onnx *x, const OnnxGraph *g, OnnxScope *scope, const OnnxNode *caller, int64_t opset,
                           Value **results);
// Translates g in its own scope, and makes its outputs the results of the current node.
bool onnx_inline_graph(Onnx *x, const OnnxGraph *g, const OnnxScope *outer, const OnnxNode *caller, int64_t opset);
bool onnx_give_result(Onnx *x, size_t i, Value *v);     // output i of the current node
bool onnx_count_call(Onnx *x, size_t nbytes);           // towards the limit of what is repeated
Value *onnx_apply(Onnx *x, const char *name, Value *v); // the only output of the attribute's graph of one input

// Translates a node of the domain "ngrad", an operator of the graph under its own name.
bool onnx_own_node(Onnx *x);

// Integers in a type with arithmetic, with the same low bits (integers.c); other types as they are. A cast back keeps
// the low bits.
Value *onnx_wide(Onnx *x, Value *v);
// The same, but for u64 other integers in the same order; and such integers in their own type again.
Value *onnx_ordered(Onnx *x, Value *v);
Value *onnx_from_ordered(Onnx *x, Value *v, Type type);
// Floats as 64-bit integers, of which a cast to the type keeps the low bits.
Value *onnx_to_wrap(Onnx *x, Value *v, Type type);

// Whether a node of a plain row needs onnx_arithmetic: it has integers without arithmetic, or extents.
bool onnx_needs_arithmetic(const Onnx *x);
bool onnx_arithmetic(Onnx *x);

// What the model declares (declared.c); false: out of memory, or an error of an output. An input with an error, or an
// initializer, becomes `failed`, so that nodes that use it are left out. `inputs`: the OnnxInfo by name, of those
// added.
bool onnx_take_input(Onnx *x, const OnnxInfo *info, size_t i, Names *inputs);
bool onnx_give_output(Onnx *x, const OnnxInfo *info, size_t i);
bool onnx_take_initializers(Onnx *x, const OnnxGraph *g);
Value *onnx_find_value(const Onnx *x, const char *name); // in this scope and the enclosing ones; NULL: nothing makes it

Value *onnx_at_index(Onnx *x, Value *v, int axis, int64_t i);      // v[..., i, ...] without the axis
Value *onnx_stack(Onnx *x, Value **items, size_t count, int axis); // along a new axis; changes the list

// Whether it stands for a sequence of tensors (sequences.c); only rows that take sequences get such values.
bool onnx_is_sequence(const Value *v);

// Translators: onnx_NAME of each row of the table.
#define PLAIN(...)
#define OPERATOR(name, since, translate, ...) bool onnx_##translate(Onnx *x);
#define SEQUENCES OPERATOR
#include "frontend/onnx/operators.def"
#undef PLAIN
#undef OPERATOR
#undef SEQUENCES

#endif
