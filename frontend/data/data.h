// Data sets: arrays in .npy files or in the idx format of MNIST, either of which gzip may have compressed. Files are
// not trusted: what a header says is checked before memory is taken for it.
//
// A file whose bytes are a tensor's is mapped and not copied; others are unpacked, or brought to this machine's byte
// order, in memory. A mapped file must not become shorter: reading behind its new end is SIGBUS.
//
// Any file is a text: its bytes are what is learnt from.
//
// idx: two zero bytes, a type (8 u8, 9 s8, 11 s16, 12 s32, 13 f32, 14 f64), the rank, each extent as 32 bits, then the
// elements, row-major; all big-endian. s16 become s32, as no tensor is of that type.
#ifndef NGRAD_FRONTEND_DATA_DATA_H
#define NGRAD_FRONTEND_DATA_DATA_H

#include "ir/graph/tensor.h"

typedef struct DataSet {
  Tensor tensor; // row-major; data is in `mapping` or `bytes`, or its own if is_copy
  bool is_copy;
  void *mapping; // NULL: none
  size_t mapping_nbytes;
  void *bytes; // unpacked; NULL: none
} DataSet;

// False after telling what is wrong; data_close need not follow then.
bool data_open(const char *path, DataSet *data, const Allocator *allocator, Diagnostics *d);
// The bytes of a file in samples of `length`: u8 [(bytes - 1) / length, length]. With is_next, each is a byte later.
bool data_open_text(const char *path, int64_t length, bool is_next, DataSet *data, const Allocator *allocator,
                    Diagnostics *d);
void data_close(DataSet *data, const Allocator *allocator);

// The idx format, for data_open. The first is for the file's first IDX_START_BYTES, or all of it.
enum { IDX_START_BYTES = 4 + 4 * MAX_RANK };
bool idx_whole_nbytes(const char *name, const void *start, size_t nbytes, uint64_t *whole, Diagnostics *d);
// *is_copy: the data is a copy, else in `bytes`.
bool idx_read_bytes(const char *name, const void *bytes, size_t nbytes, Tensor *out, bool *is_copy,
                    const Allocator *allocator, Diagnostics *d);

// Whether every number of a type can be stored as another, or the other is bf16 and the first a float, which is
// rounded.
bool data_type_fits(Type from, Type to);

// Copies samples, the slices of `from` along its first axis with these indices, one behind the other into `to`, which
// has as many elements in row-major order. Numbers are converted to its type.
void data_gather(const Tensor *from, const int64_t *samples, int64_t count, const Tensor *to);

#endif
