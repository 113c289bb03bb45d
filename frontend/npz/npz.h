// NumPy's .npz files, which are zip archives of .npy files, as named tensors: checkpoints.
//
// The written bytes depend on the tensors alone: stored entries NAME.npy in order, made by version 0x33F for version
// 10, with the time 1980-01-01 00:00:00 and the external attributes 0x81B60000; zip64 records only if lengths need
// them. The CRC-32 of each entry is the checksum. Archives from other programs may be compressed. They are not trusted.
#ifndef NGRAD_FRONTEND_NPZ_NPZ_H
#define NGRAD_FRONTEND_NPZ_NPZ_H

#include "ir/graph/tensor.h"

typedef struct NpzEntry {
  const char *name; // without .npy
  Tensor tensor;
} NpzEntry;

// Writes an archive, whole or not at all: writes a new file beside `path`, flushes it, then renames. When this returns
// true, the archive is on the disk.
bool npz_write(const char *path, const NpzEntry *entries, size_t count, const Allocator *allocator, Diagnostics *d);

// Reads entries by name into new tensors with the types, shapes and layouts in `entries`; negative extents are taken
// from the file. Other entries of the archive are ignored. The caller frees the data with tensor_free. With
// `takes_some`, the data of an entry missing in the archive is NULL. False after a message for each wrong entry; then
// no entry has data.
bool npz_read(const char *path, NpzEntry *entries, size_t count, bool takes_some, const Allocator *allocator,
              Diagnostics *d);

// Adds the names of the archive's entries, a line each, without those that begin with a dot. False after a message.
bool npz_names(const char *path, Text *names, Diagnostics *d);

#endif
