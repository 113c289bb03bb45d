// NumPy's .npz files, which are zip archives of .npy files, as named tensors: checkpoints.
//
// What is written depends on the tensors alone: stored entries NAME.npy in order, made by version 0x33F for version 10,
// with the time 1980-01-01 00:00:00 and the external attributes 0x81B60000; zip64 records only where lengths need them.
// The CRC-32 of each entry is the checksum. Archives that others wrote may be compressed. They are not trusted.
#ifndef NGRAD_FRONTEND_NPZ_NPZ_H
#define NGRAD_FRONTEND_NPZ_NPZ_H

#include "ir/graph/tensor.h"

typedef struct NpzEntry {
  const char *name; // without .npy
  Tensor tensor;
} NpzEntry;

// Writes an archive. It appears whole or not at all, and is on the disk when this returns true: it is written beside
// its place, flushed, and then renamed.
bool npz_write(const char *path, const NpzEntry *entries, size_t count, const Allocator *allocator, Diagnostics *d);

// Reads entries by their names into new tensors of the types, shapes and layouts that `entries` say; negative extents
// are taken from the file. Entries of the archive that have no such name are ignored. The caller frees the data with
// tensor_free. When `takes_some`, data is NULL where the archive has no such entry. False after telling what is wrong
// with each of the entries; then none has data.
bool npz_read(const char *path, NpzEntry *entries, size_t count, bool takes_some, const Allocator *allocator,
              Diagnostics *d);

#endif
