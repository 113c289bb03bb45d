// Writes .npy files.
#include "frontend/npy/npy.h"

#include "frontend/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { START_BYTES = 10, ALIGNMENT = 64, BUFFER_ELEMENTS = 1 << 11 };

static const char *type_code(Type type) {
  static const char *const codes[TYPE_COUNT] = {
      [TYPE_F64] = "f8",     [TYPE_F32] = "f4", [TYPE_F16] = "f2", [TYPE_BF16] = "f4",    [TYPE_S64] = "i8",
      [TYPE_S32] = "i4",     [TYPE_S8] = "i1",  [TYPE_U8] = "u1",  [TYPE_BOOLEAN] = "b1", [TYPE_F8_E4M3] = "V1",
      [TYPE_F8_E5M2] = "V1", [TYPE_S4] = "i1",  [TYPE_U4] = "u1",  [TYPE_S16] = "i2",     [TYPE_U64] = "u8",
      [TYPE_U32] = "u4",     [TYPE_U16] = "u2"};
  return codes[type];
}

static char byte_order(Type type) {
  if (type_nbytes(type) == 1) return '|';
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
}

// Prints magic, version and dictionary, padded with spaces so that the data is aligned.
size_t npy_header(const Tensor *t, char header[NPY_HEADER_BYTES]) {
  int n = snprintf(header, NPY_HEADER_BYTES, "%cNUMPY%c%c..{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                   '\x93', 1, 0, byte_order(t->type), type_code(t->type));
  for (int i = 0; i < t->rank; i++)
    n += snprintf(header + n, NPY_HEADER_BYTES - (size_t)n, "%s%" PRId64 "%s", i ? ", " : "", t->extent[i],
                  t->rank == 1 ? "," : "");
  n += snprintf(header + n, NPY_HEADER_BYTES - (size_t)n, "), }");
  size_t nbytes = ((size_t)n + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  memset(header + n, ' ', nbytes - (size_t)n);
  header[nbytes - 1] = '\n';
  header[8] = (char)((nbytes - START_BYTES) & 0xFFU);
  header[9] = (char)((nbytes - START_BYTES) >> 8);
  return nbytes;
}

// The type in which elements are written.
static Type written_type(Type type) {
  return type == TYPE_BF16 ? TYPE_F32 : type == TYPE_S4 ? TYPE_S8 : type == TYPE_U4 ? TYPE_U8 : type;
}

static bool write_elements(int fd, const Tensor *t) {
  const Type type = written_type(t->type);
  if (type == t->type) return file_write_all(fd, t->data, tensor_nbytes(t));
  float buffer[BUFFER_ELEMENTS]; // float is the widest
  int64_t nelems = tensor_nelems(t);
  for (int64_t done = 0; done < nelems;) {
    int64_t n = nelems - done < BUFFER_ELEMENTS ? nelems - done : BUFFER_ELEMENTS;
    for (int64_t i = 0; i < n; i++)
      type_store(type, buffer, (size_t)i, type_load(t->type, t->data, (size_t)(done + i)));
    if (!file_write_all(fd, buffer, type_array_nbytes(type, (size_t)n))) return false;
    done += n;
  }
  return true;
}

bool npy_data(const Tensor *t, Tensor *data, bool *is_copy, const Allocator *allocator) {
  *data = *t;
  data->type = written_type(t->type);
  data->layout = (Layout){{0}};
  *is_copy = data->type != t->type || !layout_is_row_major(&t->layout);
  if (!*is_copy) return true;
  if (!tensor_alloc(data, allocator)) return *is_copy = false;
  if (data->type == t->type) {
    tensor_copy(t, data);
    return true;
  }
  for (int64_t i = 0, nelems = tensor_nelems(t); i < nelems; i++)
    type_store(data->type, data->data, (size_t)i, type_load(t->type, t->data, (size_t)tensor_offset(t, i)));
  return true;
}

static bool write_tensor(int fd, const void *tensor) {
  char header[NPY_HEADER_BYTES];
  return file_write_all(fd, header, npy_header(tensor, header)) && write_elements(fd, tensor);
}

bool npy_write(const char *path, const Tensor *t, Diagnostics *d) {
  return file_replace(path, write_tensor, t, d);
}
