// An ONNX model as stored in its file: nodes, tensors and types, whose texts and numbers stay in the file's bytes.
// frontend/onnx/translation.h gives their meaning. Field numbers are those of onnx.proto.
#ifndef NGRAD_FRONTEND_ONNX_MODEL_H
#define NGRAD_FRONTEND_ONNX_MODEL_H

#include "frontend/onnx/wire.h"
#include "ir/graph/graph.h"

// Limits of a model; the limits of a file in ngrad/1 are in frontend/yaml/yaml.h.
enum {
  ONNX_MAX_NODES = 1 << 18, // also of initializers, inputs, outputs and functions
  ONNX_MAX_OPERANDS = 1 << 12,
  ONNX_MAX_ATTRIBUTES = 256,
  ONNX_MAX_BYTES = 1 << 29 // of what these, operands and attributes become, in all graphs and functions of the file
};

typedef struct OnnxTensor {
  Bytes name;
  int rank;
  int64_t extent[MAX_RANK];
  uint64_t type; // of TensorProto.DataType
  bool is_external;
  bool has_raw;
  Bytes raw;     // its elements, little-endian
  Bytes message; // the message with its elements in other fields, or with the external file's name
} OnnxTensor;

// An input or an output. A dim has a number, a name, or neither.
typedef struct OnnxInfo {
  Bytes name;
  uint64_t type; // 0: not a tensor, or not declared
  int rank;      // -1: not declared
  Extent extent[MAX_RANK];
  Bytes dim[MAX_RANK];
  Bytes message;
} OnnxInfo;

// An attribute whose value is in its message, or is the caller's attribute `of_caller`.
typedef struct OnnxNamed {
  Bytes name, message;
  Bytes of_caller; // empty: the value is in the message
} OnnxNamed;

typedef struct OnnxAttributes {
  OnnxNamed *items;
  size_t count;
} OnnxAttributes;

typedef struct OnnxNode {
  Bytes op, domain, name;
  Bytes *inputs, *outputs; // an empty name is an absent operand
  size_t ninputs, noutputs;
  OnnxAttributes attributes;
  OnnxAttributes defaults;       // of a call: the function's values of attributes that the call lacks
  const struct OnnxNode *caller; // the call of the function that contains the node, whose attributes the node may refer
                                 // to; NULL: in no function
} OnnxNode;

// Of AttributeProto.AttributeType.
typedef enum OnnxKind {
  ONNX_FLOAT = 1,
  ONNX_INT,
  ONNX_STRING,
  ONNX_TENSOR,
  ONNX_GRAPH,
  ONNX_FLOATS,
  ONNX_INTS,
  ONNX_STRINGS
} OnnxKind;

typedef struct OnnxAttribute {
  uint64_t type; // an OnnxKind, or an unknown number; 0 in models from before 2017
  float f;
  int64_t i;
  Bytes s;
  Bytes t, g;    // a tensor, a graph
  Bytes message; // the message with lists
} OnnxAttribute;

typedef struct OnnxGraph {
  Bytes name;
  OnnxNode *nodes;
  OnnxTensor *initializers;
  OnnxInfo *inputs, *outputs;
  size_t nnodes, ninitializers, ninputs, noutputs;
  Bytes message; // the message with types and shapes of other values
} OnnxGraph;

// A function of the model: an operator whose nodes are in the file. Its inputs and outputs have no types.
typedef struct OnnxFunction {
  Bytes name, domain;
  int64_t opset; // 0: the model's
  OnnxGraph graph;
  OnnxAttributes defaults; // of its attributes
  size_t nbytes;           // its length in the file
} OnnxFunction;

typedef struct OnnxModel {
  int64_t opset; // of ONNX's own operators; 0: none is imported
  OnnxGraph graph;
  OnnxFunction *functions;
  size_t nfunctions;
  Bytes message; // the message with properties
} OnnxModel;

// The place of a tensor's elements in an external file.
typedef struct OnnxExternal {
  Bytes location;
  uint64_t offset, nbytes;
  bool has_nbytes;
} OnnxExternal;

// The message that is read, for errors: node 12 (Conv "conv1"), attribute 1 ("pads").
typedef struct OnnxPlace {
  const struct OnnxPlace *outer; // NULL: none
  const char *noun;
  size_t index; // in the list of the outer message
  Bytes message;
  uint32_t name_field, op_field; // of texts in the message; 0: none
} OnnxPlace;

// The results of reading: messages, and an arena for everything that is not in the file's bytes.
typedef struct OnnxReading {
  Diagnostics *d;
  Arena *arena;
  const Source *source;
  Bytes file;
  size_t *nbytes;         // of arrays so far, at most ONNX_MAX_BYTES; NULL: not counted
  const char *title;      // of the node that is translated; NULL: none
  const OnnxPlace *place; // NULL: the file as a whole
} OnnxReading;

// Reports an error with its place; at: the byte of the file, or NULL. False.
bool onnx_tell(const OnnxReading *r, const uint8_t *at, const char *format, ...) __attribute__((format(printf, 3, 4)));
void onnx_warn(const OnnxReading *r, const uint8_t *at, const char *what);

// All return false after a message.
bool onnx_read_model(const OnnxReading *r, Bytes bytes, OnnxModel *model);
bool onnx_read_graph(const OnnxReading *r, Bytes bytes, OnnxGraph *graph);
bool onnx_read_tensor(const OnnxReading *r, Bytes bytes, OnnxTensor *tensor);
bool onnx_read_info(const OnnxReading *r, Bytes bytes, OnnxInfo *info);
bool onnx_read_external(const OnnxReading *r, const OnnxTensor *tensor, OnnxExternal *external);

// The next of a model's properties, which are texts by key. Begin with *rest = model->message. False at the end.
bool onnx_next_property(Bytes *rest, Bytes *key, Bytes *value);

// The attribute of that name, or the caller's attribute that it refers to; false: the node has neither.
bool onnx_find_attribute(const OnnxNode *node, const char *name, OnnxAttribute *a);
// Reads the numbers of a list, at most `most`; returns the list's length.
size_t onnx_ints(const OnnxAttribute *a, int64_t *items, size_t most);
size_t onnx_floats(const OnnxAttribute *a, double *items, size_t most);
size_t onnx_strings(const OnnxAttribute *a, Bytes *items, size_t most);

bool bytes_are(Bytes bytes, const char *text);

#endif
