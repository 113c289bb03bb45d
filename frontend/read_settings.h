// Settings for reading a graph.
#ifndef NGRAD_FRONTEND_READ_SETTINGS_H
#define NGRAD_FRONTEND_READ_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct GivenExtent {
  const char *name;
  int64_t value;
} GivenExtent;

typedef struct ReadSettings {
  const char *folder; // the folder of the files that the graph names; NULL: naming a file is an error
  // Inputs of an ONNX model that become constants, as NAME=FILE: a .npy file, or a file with a TensorProto.
  const char *const *constants;
  size_t nconstants;
  // Named extents of an ONNX model with their numbers. Values that the model computes from these become constants.
  const GivenExtent *extents;
  size_t nextents;
  // The extents of the data of an input of an ONNX model, at most MAX_RANK; -1 for what the model says. Returns their
  // number; -1: no shape is known. NULL: of no input.
  int (*find_shape)(void *user, const char *input, int64_t *extents);
  void *find_shape_user;
  bool trains_batch_norms; // those of an ONNX model compute the statistics of each batch, whatever their mode
} ReadSettings;

#endif
