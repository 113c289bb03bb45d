// What the functions that write ONNX's operators share. A node of the graph becomes one node of the model or a few, or,
// where ONNX has no operator that does the same, one of the domain "ngrad" (frontend/onnx/own.c).
//
// Out of memory is found at the end, as in every Text.
#ifndef NGRAD_FRONTEND_ONNX_WRITER_H
#define NGRAD_FRONTEND_ONNX_WRITER_H

#include "frontend/names.h"
#include "ir/operators/operator.h"
#include "ir/support/text.h"

#define OWN_DOMAIN "ngrad"
enum { ONNX_OPSET = 17, OWN_OPSET = 1 }; // that models are written for

enum { WRITER_NAME_BYTES = 48 };

typedef struct OnnxWriter {
  const Graph *graph;
  Text nodes, initializers;           // fields of the GraphProto
  Text node, attribute;               // the messages that are being written
  char prefix[WRITER_NAME_BYTES / 2]; // which no value's name begins with
  size_t nfresh;
  const Node *source; // which is written
  bool has_own;       // the domain "ngrad" is in use
  Names node_names;   // of the nodes so far, none twice: other readers refuse that
  size_t nrepeated;   // labels that were a node's name before
} OnnxWriter;

// The name of a value that the model has and the graph has not.
typedef struct FreshName {
  char text[WRITER_NAME_BYTES];
} FreshName;
FreshName onnx_fresh(OnnxWriter *w);

// A node: begin, then operands and attributes in any order, then end.
void onnx_begin(OnnxWriter *w, const char *op, const char *domain);
void onnx_add_input(OnnxWriter *w, const char *name); // "": absent
void onnx_add_output(OnnxWriter *w, const char *name);
void onnx_add_int(OnnxWriter *w, const char *name, int64_t value);
void onnx_add_float(OnnxWriter *w, const char *name, double value);
void onnx_add_double(OnnxWriter *w, const char *name, double value); // as a tensor, as attributes have f32 only
void onnx_add_text(OnnxWriter *w, const char *name, const char *value);
void onnx_add_ints(OnnxWriter *w, const char *name, const int64_t *items, size_t count);
void onnx_add_floats(OnnxWriter *w, const char *name, const double *items, size_t count);
void onnx_end(OnnxWriter *w);

// Initializers
FreshName onnx_add_numbers(OnnxWriter *w, const int64_t *items, size_t count); // s64 [count]
FreshName onnx_add_scalar(OnnxWriter *w, Type type, double value);

uint64_t onnx_type_number(Type type); // of TensorProto.DataType

// The node under ONNX's own names, if it has an equivalent there; false: nothing was written.
bool onnx_write_standard(OnnxWriter *w, const Node *node);
// The node as one of the domain "ngrad".
void onnx_write_own(OnnxWriter *w, const Node *node);

#endif
