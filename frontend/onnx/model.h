// An ONNX model as a file has it: nodes, tensors and types, whose texts and numbers stay in the file's bytes. What they
// mean is said in frontend/onnx/translation.h. The numbers of fields are those of onnx.proto.
#ifndef NGRAD_FRONTEND_ONNX_MODEL_H
#define NGRAD_FRONTEND_ONNX_MODEL_H

#include "frontend/onnx/wire.h"
#include "ir/graph/graph.h"

// What a model may have at most; those of a file in ngrad/1 are in frontend/yaml/yaml.h.
enum { ONNX_MAX_NODES = 1 << 18, ONNX_MAX_OPERANDS = 1 << 12, ONNX_MAX_ATTRIBUTES = 256 };

typedef struct OnnxTensor {
  Bytes name;
  int rank;
  int64_t extent[MAX_RANK];
  uint64_t type; // of TensorProto.DataType
  bool is_external;
  bool has_raw;
  Bytes raw;     // its elements, little-endian
  Bytes message; // in which else they are, one by one, or the external file's name
} OnnxTensor;

// An input or an output. A dim without a number has a name, or neither.
typedef struct OnnxInfo {
  Bytes name;
  uint64_t type; // 0: it is no tensor, or not said
  int rank;      // -1: not said
  Extent extent[MAX_RANK];
  Bytes dim[MAX_RANK];
} OnnxInfo;

// An attribute whose value is in its message, or is that of the caller's attribute `of_caller`.
typedef struct OnnxNamed {
  Bytes name, message;
  Bytes of_caller; // empty: it has a value of its own
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
  OnnxAttributes defaults;       // of a call: those of the function, for calls that lack them
  const struct OnnxNode *caller; // of the function whose node it is, whose attributes it may take; NULL: of none
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
  uint64_t type; // an OnnxKind, or another; 0 in models of before 2017
  float f;
  int64_t i;
  Bytes s;
  Bytes t, g;    // a tensor, a graph
  Bytes message; // in which lists are
} OnnxAttribute;

typedef struct OnnxGraph {
  Bytes name;
  OnnxNode *nodes;
  OnnxTensor *initializers;
  OnnxInfo *inputs, *outputs;
  size_t nnodes, ninitializers, ninputs, noutputs;
  Bytes message; // in which types and shapes of other values are
} OnnxGraph;

// A function of the model: an operator whose nodes stand in the file. Its graph has inputs and outputs without types.
typedef struct OnnxFunction {
  Bytes name, domain;
  int64_t opset; // 0: that of the model
  OnnxGraph graph;
  OnnxAttributes defaults; // of its attributes
  size_t nbytes;           // that it takes in the file
} OnnxFunction;

typedef struct OnnxModel {
  int64_t opset; // of ONNX's own operators; 0: none is imported
  OnnxGraph graph;
  OnnxFunction *functions;
  size_t nfunctions;
  Bytes message; // in which properties are
} OnnxModel;

// Where a tensor's elements are in a file of their own.
typedef struct OnnxExternal {
  Bytes location;
  uint64_t offset, nbytes;
  bool has_nbytes;
} OnnxExternal;

// Where a model is read to: messages, and an arena for what is not the file's.
typedef struct OnnxReading {
  Diagnostics *d;
  Arena *arena;
  const Source *source;
} OnnxReading;

// All return false after telling what is wrong.
bool onnx_read_model(const OnnxReading *r, Bytes bytes, OnnxModel *model);
bool onnx_read_graph(const OnnxReading *r, Bytes bytes, OnnxGraph *graph);
bool onnx_read_tensor(const OnnxReading *r, Bytes bytes, OnnxTensor *tensor);
bool onnx_read_info(const OnnxReading *r, Bytes bytes, OnnxInfo *info);
bool onnx_read_external(const OnnxReading *r, const OnnxTensor *tensor, OnnxExternal *external);

// The next of a model's properties, texts by key; begin with *rest = model->message. False at the end.
bool onnx_next_property(Bytes *rest, Bytes *key, Bytes *value);

// The attribute of that name, or the caller's that stands for it; false: the node has none.
bool onnx_find_attribute(const OnnxNode *node, const char *name, OnnxAttribute *a);
// The numbers of a list, at most `most`; returns how many there are.
size_t onnx_ints(const OnnxAttribute *a, int64_t *items, size_t most);
size_t onnx_floats(const OnnxAttribute *a, double *items, size_t most);
size_t onnx_strings(const OnnxAttribute *a, Bytes *items, size_t most);

bool bytes_are(Bytes bytes, const char *text);

#endif
