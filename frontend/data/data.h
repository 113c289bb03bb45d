// Data sets: arrays in .npy files or in the idx format of MNIST, possibly compressed with gzip. Files are not trusted:
// a header is checked before memory is allocated for it.
//
// A file whose bytes are a tensor's is mapped; other files are unpacked, or converted to this machine's byte order, in
// memory. A mapped file must not shrink: reading past its new end raises SIGBUS.
//
// Any file can be a text, whose bytes are the samples.
//
// idx: two zero bytes, a type (8 u8, 9 s8, 11 s16, 12 s32, 13 f32, 14 f64), the rank, each extent as 32 bits, then the
// elements, row-major; all big-endian. s16 becomes s32.
#ifndef NGRAD_FRONTEND_DATA_DATA_H
#define NGRAD_FRONTEND_DATA_DATA_H

#include "ir/graph/tensor.h"

typedef struct DataSet {
  Tensor tensor; // row-major; data is in `mapping` or `bytes`, or a copy if is_copy
  bool is_copy;
  void *mapping; // NULL: none
  size_t mapping_nbytes;
  void *bytes; // unpacked; NULL: none
} DataSet;

// False after a message; data_close is not needed then.
bool data_open(const char *path, DataSet *data, const Allocator *allocator, Diagnostics *d);
// The bytes of a file in samples of `length` bytes: u8 [(bytes - 1) / length, length]. With is_next, all samples begin
// one byte later.
bool data_open_text(const char *path, int64_t length, bool is_next, DataSet *data, const Allocator *allocator,
                    Diagnostics *d);
void data_close(DataSet *data, const Allocator *allocator);

// The idx format, for data_open. The first function needs the file's first IDX_START_BYTES, or all bytes of a shorter
// file.
enum { IDX_START_BYTES = 4 + 4 * MAX_RANK };
bool idx_whole_nbytes(const char *name, const void *start, size_t nbytes, uint64_t *whole, Diagnostics *d);
// *is_copy: the data is a copy; otherwise it is in `bytes`.
bool idx_read_bytes(const char *name, const void *bytes, size_t nbytes, Tensor *out, bool *is_copy,
                    const Allocator *allocator, Diagnostics *d);

// Whether every number of type `from` can be stored as type `to`, or `to` is bf16 and `from` a float, which is rounded,
// or u16, its bits.
bool data_type_fits(Type from, Type to);

// Copies samples, which are slices of `from` along its first axis, by index, one after the other into `to`. `to` has
// the same number of elements in row-major order. Numbers are converted to its type.
void data_gather(const Tensor *from, const int64_t *samples, int64_t count, const Tensor *to);

#endif
