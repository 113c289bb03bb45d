// Elements of tensors in files beside the model. A small model may name a file a million times, so a part of a file is
// read once, and the bytes read of a file are counted before they are read.
#ifndef NGRAD_FRONTEND_ONNX_EXTERNAL_H
#define NGRAD_FRONTEND_ONNX_EXTERNAL_H

#include "frontend/onnx/translation.h"

typedef struct OnnxPart {
  void *data;       // of an earlier tensor of this type; NULL: not read yet
  const char *key;  // the type, the place and the file
  const char *what; // for messages
  const char *file; // its resolved path
  uint64_t offset;
  size_t nbytes;
} OnnxPart;

// The part of a file with the tensor's elements, nelems of nbytes each. False after a message.
bool onnx_find_part(Onnx *x, const OnnxTensor *tensor, const char *what, size_t nelems, size_t nbytes, OnnxPart *part);

// Its bytes as the file has them, in the graph's memory; NULL after a message.
void *onnx_read_part(Onnx *x, const OnnxPart *part);

// Keeps the elements for later tensors; false when out of memory.
bool onnx_keep_part(Onnx *x, const OnnxPart *part, void *data);

#endif
