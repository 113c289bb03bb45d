// What a graph is read with, besides its file.
#ifndef NGRAD_FRONTEND_READ_H
#define NGRAD_FRONTEND_READ_H

#include <stddef.h>
#include <stdint.h>

typedef struct GivenExtent {
  const char *name;
  int64_t value;
} GivenExtent;

typedef struct ReadSettings {
  const char *folder; // where the files are that the graph names; NULL: naming one is an error
  // Inputs of an ONNX model that are constants, as NAME=FILE: a .npy file, or a TensorProto in a file of its own.
  const char *const *constants;
  size_t nconstants;
  // Named extents of an ONNX model that have a number when it is read: what the model computes from them is one, too.
  const GivenExtent *extents;
  size_t nextents;
} ReadSettings;

#endif
