// NumPy's .npy files, format versions 1.0 to 3.0, as tensors. Files are not trusted: what a header says is checked
// against the file's length before memory is taken for it.
//
// Types by descr: f8 f64, f4 f32, f2 f16, i8 s64, i4 s32, i1 s8, u1 u8, b1 boolean, u2 and V2 the bits of bf16;
// either byte order. A file is read as its own type, only bf16 is also rounded from f4 and f8. V1 are the bits of an
// 8-bit float, and can be read where it is known which. No descr is of 4 bits: s4 and u4 are read from i1 and u1, where
// all elements must be in range, and written so.
#ifndef NGRAD_FRONTEND_NPY_NPY_H
#define NGRAD_FRONTEND_NPY_NPY_H

#include "frontend/file.h"
#include "ir/graph/tensor.h"

// Reads a file into a tensor of the wanted type and shape; whatever extents of `shape` have no number, or its rank
// if unknown, are the file's; shape NULL wants any. TYPE_NONE wants the type that the file has (expected results
// are f64 whatever their graph's type). The caller frees out->data with tensor_free. False after telling what the
// file holds and what is wanted.
bool npy_read(const char *path, Type type, const Shape *shape, Tensor *out, const Allocator *allocator, Diagnostics *d);

// The same from memory; `name` is its name in messages.
bool npy_read_bytes(const char *name, const void *bytes, size_t nbytes, Type type, const Shape *shape, Tensor *out,
                    const Allocator *allocator, Diagnostics *d);

// The same for a file that a graph calls `name`: messages are at that place in the graph's text.
bool npy_read_named(const char *path, const char *name, Position at, Type type, const Shape *shape, Tensor *out,
                    const Allocator *allocator, Diagnostics *d);

// The same from elsewhere, with `prefix` before each message.
typedef struct NpyStream {
  // Gives exactly nbytes; false: `problem` says why not.
  bool (*read)(void *context, void *to, size_t nbytes, char problem[PROBLEM_BYTES]);
  void *context;
  size_t nbytes; // of all
} NpyStream;
bool npy_read_stream(const NpyStream *stream, const char *prefix, Position at, Type type, const Shape *shape,
                     Tensor *out, const Allocator *allocator, Diagnostics *d);

// How long a file in memory must be, by its first bytes: NPY_START_BYTES of them, or all.
enum { NPY_START_BYTES = (1 << 16) + 12 };
bool npy_whole_nbytes(const char *name, const void *start, size_t nbytes, uint64_t *whole, const Allocator *allocator,
                      Diagnostics *d);

// A file in memory as a tensor whose data is in these bytes. data is NULL where they are not those of a tensor: the
// other byte order, columns first, booleans, which may be any byte, or data that is not aligned to its elements.
bool npy_view_bytes(const char *name, const void *bytes, size_t nbytes, Tensor *out, const Allocator *allocator,
                    Diagnostics *d);

// Writes format 1.0, bf16 as f32 (exact). The file appears whole or not at all: it is written beside its place and
// then renamed.
bool npy_write(const char *path, const Tensor *t, Diagnostics *d);

// The parts of such a file: its header, of at most NPY_HEADER_BYTES, and its data: a tensor of the type that is
// written, row-major. *data is *t itself, or an own copy, for which tensor_free follows; false: no memory for that.
enum { NPY_HEADER_BYTES = 320 };
size_t npy_header(const Tensor *t, char header[NPY_HEADER_BYTES]);
bool npy_data(const Tensor *t, Tensor *data, bool *is_copy, const Allocator *allocator);

#endif
