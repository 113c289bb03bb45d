// Functions shared by the translators of nGraph's operators. They return false after an error message, or if an input
// has failed before.
#ifndef NGRAD_FRONTEND_NGRAPH_TRANSLATION_H
#define NGRAD_FRONTEND_NGRAPH_TRANSLATION_H

#include "frontend/foreign/build.h"
#include "frontend/yaml/reader.h"

enum { MOST_NGRAPH_ATTRIBUTES = 8, MOST_NGRAPH_INPUTS = 64, MOST_SPELLINGS = 3 };

// A result of an operator. If it is constant along an axis, `value` has the extent 1 there; ngraph_in broadcasts it to
// the result's shape.
typedef struct NgraphResult {
  Value *value; // NULL: it failed
  Value *full;  // the broadcast value, made when first requested
  Shape shape;  // its extents are numbers
} NgraphResult;

typedef struct NgraphResults {
  NgraphResult *items;
  size_t count;
  bool is_element; // of GetOutputElement: references to it mean its only result, whatever index they give
  bool is_parameter;
} NgraphResults;

typedef enum NgraphKind {
  NGRAPH_INTS,      // at most MAX_RANK
  NGRAPH_INT,       // at least 0
  NGRAPH_BOOL,      //
  NGRAPH_NUMBER,    // a number
  NGRAPH_TYPE,      // of elements
  NGRAPH_VALUES,    // of a constant; `y` holds them
  NGRAPH_ZERO,      // a number, list or word that means the same as no attribute
  NGRAPH_BROADCAST, // {type, axis}
  NGRAPH_IGNORED
} NgraphKind;

// An attribute, with its names in the versions of nGraph, latest first.
typedef struct NgraphAttribute {
  const char *names[MOST_SPELLINGS]; // names[0] NULL: the end of the list
  NgraphKind kind;
  bool is_optional;
} NgraphAttribute;

typedef struct NgraphArgument {
  const Yaml *y; // NULL: not given
  int64_t items[MAX_RANK];
  size_t count;
  double number; // also of an int and a bool
  Type type;
} NgraphArgument;

typedef struct Ngraph Ngraph;
typedef bool (*NgraphTranslator)(Ngraph *x);

// An operator of nGraph by name, in the versions of its semantics from 0 to last_version.
typedef struct NgraphRow {
  const char *name;
  NgraphTranslator translate;
  OperatorId op; // for translators that several rows share
  int last_version;
  size_t least_inputs, most_inputs;
  NgraphAttribute attributes[MOST_NGRAPH_ATTRIBUTES + 1];
} NgraphRow;

struct Ngraph {
  Builder build;
  Foreign foreign;
  Reader *reader;
  Names operators; // NgraphResults, by the name of the operator
  // The current operator:
  const Yaml *at;
  const char *name;
  const NgraphRow *row;
  NgraphArgument arguments[MOST_NGRAPH_ATTRIBUTES];
  NgraphResult *inputs[MOST_NGRAPH_INPUTS];
  size_t ninputs;
  NgraphResults *referred; // the operator of input 0
  NgraphResults *results;
};

const NgraphRow *ngraph_find_row(const char *name); // NULL: not supported

bool ngraph_tell(Ngraph *x, const Yaml *at, const char *format, ...) __attribute__((format(printf, 3, 4))); // false

// Operands. NULL: failed before.

Value *ngraph_in(Ngraph *x, size_t i);
const Shape *ngraph_shape(const Ngraph *x, size_t i);
bool ngraph_out(Ngraph *x, size_t i, Value *v);
bool ngraph_out_broadcast(Ngraph *x, size_t i, Value *v, const Shape *shape);

// The arguments of the row's attributes, by each attribute's first name.

const NgraphArgument *ngraph_argument(const Ngraph *x, const char *name);
// The `count` numbers of a list; all are `otherwise` if the attribute is absent.
bool ngraph_numbers(Ngraph *x, const char *name, size_t count, int64_t otherwise, int64_t *items);
bool ngraph_axes(Ngraph *x, const char *name, int rank, bool *is_axis); // as a set: is_axis[rank]
bool ngraph_extents(Ngraph *x, const char *name, Shape *shape);         // a shape

// Reading

bool ngraph_read_arguments(Ngraph *x, const Yaml *y); // of the operator y, whose keys must all be known
bool ngraph_read_type(Ngraph *x, const Yaml *y, Type *type);
bool ngraph_read_shape(Ngraph *x, const Yaml *y, Shape *shape);
// Type and shape of an operator, from value_type, or from element_type and shape; a NULL pointer is not set.
bool ngraph_read_info(Ngraph *x, const Yaml *y, Type *type, Shape *shape);
const Yaml *ngraph_find(const Yaml *map, const char *key); // NULL: absent
bool ngraph_number(const Yaml *y, double *number, int64_t *integer, bool *is_integer);

// Casts a value for operator `op`: integers and booleans that `op` does not accept become wider numbers.
Value *ngraph_carry(Ngraph *x, OperatorId op, Value *v);
// Moves elements of values of any type. Lists have a number for each axis. If nothing changes, no node is made.
Value *ngraph_slice(Ngraph *x, Value *v, const int64_t *starts, const int64_t *ends, const int64_t *steps);
Value *ngraph_reshape(Ngraph *x, Value *v, const int64_t *extents, size_t rank);
Value *ngraph_transpose(Ngraph *x, Value *v, const int64_t *order);
Value *ngraph_pad(Ngraph *x, Value *v, const int64_t *below, const int64_t *above, const int64_t *interior,
                  double number);

// Translators by family.
bool ngraph_elementwise(Ngraph *x), ngraph_acos(Ngraph *x), ngraph_asin(Ngraph *x), ngraph_atan(Ngraph *x),
    ngraph_cosh(Ngraph *x), ngraph_sinh(Ngraph *x), ngraph_tan(Ngraph *x), ngraph_sign(Ngraph *x),
    ngraph_floor(Ngraph *x), ngraph_ceiling(Ngraph *x), ngraph_divide(Ngraph *x), ngraph_select(Ngraph *x),
    ngraph_convert(Ngraph *x), ngraph_backprop(Ngraph *x), ngraph_identity(Ngraph *x), ngraph_constant(Ngraph *x),
    ngraph_parameter(Ngraph *x), ngraph_element(Ngraph *x);
bool ngraph_broadcast(Ngraph *x), ngraph_concat(Ngraph *x), ngraph_one_hot(Ngraph *x), ngraph_pad_node(Ngraph *x),
    ngraph_replace_slice(Ngraph *x), ngraph_reshape_node(Ngraph *x), ngraph_reverse(Ngraph *x),
    ngraph_slice_node(Ngraph *x);
bool ngraph_reduce(Ngraph *x), ngraph_softmax(Ngraph *x), ngraph_batch_norm(Ngraph *x),
    ngraph_batch_norm_training(Ngraph *x), ngraph_batch_norm_backprop(Ngraph *x);
bool ngraph_dot(Ngraph *x), ngraph_convolution(Ngraph *x), ngraph_convolution_backprop_data(Ngraph *x),
    ngraph_convolution_backprop_filters(Ngraph *x), ngraph_pool(Ngraph *x), ngraph_avg_pool_backprop(Ngraph *x),
    ngraph_max_pool_backprop(Ngraph *x);

#endif
