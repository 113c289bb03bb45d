// Writing .npy files.
#include "frontend/npy/npy.h"

#include "frontend/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { START_BYTES = 10, ALIGNMENT = 64, LONGEST_HEADER = 320, CHUNK = 1 << 11 };

static const char *type_code(Type type) {
  static const char *const codes[TYPE_COUNT] = {
      [TYPE_F64] = "f8",     [TYPE_F32] = "f4", [TYPE_F16] = "f2", [TYPE_BF16] = "f4",    [TYPE_S64] = "i8",
      [TYPE_S32] = "i4",     [TYPE_S8] = "i1",  [TYPE_U8] = "u1",  [TYPE_BOOLEAN] = "b1", [TYPE_F8_E4M3] = "V1",
      [TYPE_F8_E5M2] = "V1", [TYPE_S4] = "i1",  [TYPE_U4] = "u1"};
  return codes[type];
}

static char byte_order(Type type) {
  if (type_nbytes(type) == 1) return '|';
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
}

// Magic, version and the dictionary, filled up with spaces so that the data is aligned.
static bool write_header(int fd, const Tensor *t) {
  char text[LONGEST_HEADER];
  int n = snprintf(text, sizeof text, "%cNUMPY%c%c..{'descr': '%c%s', 'fortran_order': False, 'shape': (", '\x93', 1, 0,
                   byte_order(t->type), type_code(t->type));
  for (int i = 0; i < t->rank; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRId64 "%s", i ? ", " : "", t->extent[i],
                  t->rank == 1 ? "," : "");
  n += snprintf(text + n, sizeof text - (size_t)n, "), }");
  size_t nbytes = ((size_t)n + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  memset(text + n, ' ', nbytes - (size_t)n);
  text[nbytes - 1] = '\n';
  text[8] = (char)((nbytes - START_BYTES) & 0xFFU);
  text[9] = (char)((nbytes - START_BYTES) >> 8);
  return file_write_all(fd, text, nbytes);
}

// The type that elements are written as.
static Type written_type(Type type) {
  return type == TYPE_BF16 ? TYPE_F32 : type == TYPE_S4 ? TYPE_S8 : type == TYPE_U4 ? TYPE_U8 : type;
}

static bool write_elements(int fd, const Tensor *t) {
  const Type type = written_type(t->type);
  if (type == t->type) return file_write_all(fd, t->data, tensor_nbytes(t));
  float chunk[CHUNK]; // of the widest of them
  int64_t nelems = tensor_nelems(t);
  for (int64_t done = 0; done < nelems;) {
    int64_t n = nelems - done < CHUNK ? nelems - done : CHUNK;
    for (int64_t i = 0; i < n; i++) type_store(type, chunk, (size_t)i, type_load(t->type, t->data, (size_t)(done + i)));
    if (!file_write_all(fd, chunk, type_array_nbytes(type, (size_t)n))) return false;
    done += n;
  }
  return true;
}

static bool write_tensor(int fd, const void *tensor) {
  return write_header(fd, tensor) && write_elements(fd, tensor);
}

bool npy_write(const char *path, const Tensor *t, Diagnostics *d) {
  return file_replace(path, write_tensor, t, d);
}
