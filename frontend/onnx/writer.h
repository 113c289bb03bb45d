// Functions shared by the writers of ONNX's operators. A node of the graph becomes one or a few nodes of the model or,
// where ONNX has no equivalent operator, a node of the domain "ngrad" (frontend/onnx/ngrad_domain.c).
//
// Out of memory is detected at the end, as for every Text.
#ifndef NGRAD_FRONTEND_ONNX_WRITER_H
#define NGRAD_FRONTEND_ONNX_WRITER_H

#include "frontend/names.h"
#include "ir/operators/operator.h"
#include "ir/support/text.h"

#define OWN_DOMAIN "ngrad"

// Opsets of written models: the lowest that has the operators and types that are written.
enum { ONNX_OPSET = 17, OPSET_OF_F8 = 20, OPSET_OF_4_BITS = 21, OWN_OPSET = 1 };

enum { WRITER_NAME_BYTES = 48, MOST_OWN = 16 };

typedef struct OnnxWriter {
  const Graph *graph;
  Text nodes, initializers;           // fields of the GraphProto
  Text node, attribute;               // the messages being written
  char prefix[WRITER_NAME_BYTES / 2]; // no value's name begins with it
  size_t nfresh;
  int opset;
  const Node *source; // the node being written
  // Its operands' names, with type `type` where they are floats: casts, if the operands have other types. NULL: absent.
  const char *in[MAX_VARIADIC], *out[MAX_OPERANDS];
  Type type;
  bool has_own;              // the domain "ngrad" is in use
  const char *own[MOST_OWN]; // operators with nodes of this domain
  size_t nown;
  Names node_names; // of the nodes so far; each name is unique, because other readers refuse repeated ones
  size_t nrepeated; // number of labels that repeat an earlier node's name
} OnnxWriter;

// Fields of a message. A message that becomes a field is emptied.
void onnx_put_number(Text *out, uint32_t field, uint64_t value);
void onnx_put_text(Text *out, uint32_t field, const char *text);
void onnx_put_message(Text *out, uint32_t field, Text *message);
// A tensor with all its elements; name NULL: without a name.
void onnx_put_tensor(Text *out, uint32_t field, const char *name, Type type, const int64_t *extents, int rank,
                     const void *data);

// The name of a value that exists only in the model; "" after out of memory.
const char *onnx_fresh(OnnxWriter *w);

// Writes a node: begin, then further operands and attributes in any order, then end. onnx_begin takes the operator and
// its inputs, of which NULL ends the list.
#define onnx_begin(w, ...) onnx_begin_list(w, (const char *const[]){__VA_ARGS__, NULL})
void onnx_begin_list(OnnxWriter *w, const char *const *op_and_inputs);
void onnx_begin_own(OnnxWriter *w, const char *op);   // of the domain "ngrad"
void onnx_add_input(OnnxWriter *w, const char *name); // "": absent
void onnx_add_output(OnnxWriter *w, const char *name);
void onnx_add_int(OnnxWriter *w, const char *name, int64_t value);
void onnx_add_float(OnnxWriter *w, const char *name, double value);
void onnx_add_double(OnnxWriter *w, const char *name, double value); // as a tensor, because attributes are f32
void onnx_add_tensor(OnnxWriter *w, const char *name, Type type, const int64_t *extents, int rank, const void *data);
void onnx_add_text(OnnxWriter *w, const char *name, const char *value);
void onnx_add_ints(OnnxWriter *w, const char *name, const int64_t *items, size_t count);
void onnx_add_floats(OnnxWriter *w, const char *name, const double *items, size_t count);
// Axes of the reduction `op`: an attribute or, depending on operator and opset, the next input.
void onnx_add_axes(OnnxWriter *w, const char *op, const int64_t *axes, size_t count, bool keeps_dims);
const char *onnx_end(OnnxWriter *w, const char *to); // the last output, by default with a new name; returns its name
void onnx_close(OnnxWriter *w);                      // ends a node whose outputs were added

// Initializers; they return their names.
const char *onnx_put_initializer(OnnxWriter *w, Type type, const int64_t *extents, int rank, const void *data);
const char *onnx_put_numbers(OnnxWriter *w, const int64_t *items, size_t count); // s64 [count]
const char *onnx_put_scalar(OnnxWriter *w, Type type, double value);

uint64_t onnx_type_number(Type type); // in TensorProto.DataType

// Writes the node with ONNX's own operators if there is an equivalent; false: nothing was written.
bool onnx_write_standard(OnnxWriter *w, const Node *node);
bool onnx_is_written(OperatorId op); // whether some form of it has an equivalent
// Writes the node as a node of the domain "ngrad".
void onnx_write_own(OnnxWriter *w, const Node *node);

#endif
