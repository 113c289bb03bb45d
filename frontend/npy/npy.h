// NumPy's .npy files, format versions 1.0 to 3.0, as tensors. Files are not trusted: a header is checked against the
// file's length before memory is allocated for it.
//
// Types by descr: f8 f64, f4 f32, f2 f16, i8 s64, i4 s32, i2 s16, i1 s8, u8 u64, u4 u32, u2 u16 or, if that is
// wanted, the bits of bf16, u1 u8, b1 boolean, V2 the bits of bf16; either byte order. A file is read as its own type;
// only bf16 may also be rounded from f4 and f8. V1 are the bits of an 8-bit float, whose format the reader must state.
// No descr has 4 bits: s4 and u4 are stored as i1 and u1, whose elements must be in range.
#ifndef NGRAD_FRONTEND_NPY_NPY_H
#define NGRAD_FRONTEND_NPY_NPY_H

#include "frontend/file.h"
#include "ir/graph/tensor.h"

// Reads a file into a tensor of the wanted type and shape. Extents of `shape` without a number, or an unknown rank, are
// taken from the file; shape NULL accepts any shape. TYPE_NONE accepts the file's type (expected results are f64
// whatever their graph's type). The caller frees out->data with tensor_free. False after a message with the found and
// the wanted type and shape.
bool npy_read(const char *path, Type type, const Shape *shape, Tensor *out, const Allocator *allocator, Diagnostics *d);

// Whether the shape of a file is the wanted one: the extents that have a number, and the rank, if it is known.
bool npy_shape_fits(const Shape *wanted, const Shape *found);

// What to do about a file of another type than `wanted`, to end the message that says so; may be "".
const char *npy_conversion_hint(Type wanted);

// Reads from memory; `name` stands for the bytes in messages.
bool npy_read_bytes(const char *name, const void *bytes, size_t nbytes, Type type, const Shape *shape, Tensor *out,
                    const Allocator *allocator, Diagnostics *d);

// Reads a file that a graph calls `name`; messages are at `at` in the graph's text.
bool npy_read_named(const char *path, const char *name, Position at, Type type, const Shape *shape, Tensor *out,
                    const Allocator *allocator, Diagnostics *d);

// Reads from a stream; each message begins with `prefix`.
typedef struct NpyStream {
  // Reads exactly nbytes; false: `problem` is the reason.
  bool (*read)(void *context, void *to, size_t nbytes, char problem[PROBLEM_BYTES]);
  void *context;
  size_t nbytes; // in total
} NpyStream;
bool npy_read_stream(const NpyStream *stream, const char *prefix, Position at, Type type, const Shape *shape,
                     Tensor *out, const Allocator *allocator, Diagnostics *d);

// The length that a file in memory must have, from its first NPY_START_BYTES bytes, or all bytes of a shorter file.
enum { NPY_START_BYTES = (1 << 16) + 12 };
bool npy_whole_nbytes(const char *name, const void *start, size_t nbytes, uint64_t *whole, const Allocator *allocator,
                      Diagnostics *d);

// A file in memory as a tensor whose data is in these bytes. data is NULL if the bytes are not a tensor's: other byte
// order, column-major, booleans (which may be any byte), or data that is not aligned to its elements.
bool npy_view_bytes(const char *name, const void *bytes, size_t nbytes, Tensor *out, const Allocator *allocator,
                    Diagnostics *d);

// Writes format 1.0, with bf16 as f32, which is exact. The file is written whole or not at all:
// beside `path`, then renamed.
bool npy_write(const char *path, const Tensor *t, Diagnostics *d);

// The two parts of a file: the header, of at most NPY_HEADER_BYTES, and the data, a row-major
// tensor of the written type. *data is *t itself, or a copy, to be freed with tensor_free; false:
// out of memory.
enum { NPY_HEADER_BYTES = 320 };
size_t npy_header(const Tensor *t, char header[NPY_HEADER_BYTES]);
bool npy_data(const Tensor *t, Tensor *data, bool *is_copy, const Allocator *allocator);

#endif
