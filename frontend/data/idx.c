// Reads the idx format.
#include "frontend/data/data.h"

#include <inttypes.h>
#include <string.h>

typedef struct IdxType {
  unsigned char code;
  Type type; // the type of the tensor
  size_t nbytes_each;
} IdxType;

static const IdxType types[] = {
    {0x08, TYPE_U8, 1},  {0x09, TYPE_S8, 1},  {0x0B, TYPE_S32, 2},
    {0x0C, TYPE_S32, 4}, {0x0D, TYPE_F32, 4}, {0x0E, TYPE_F64, 8},
};
enum { NTYPES = sizeof types / sizeof *types };

typedef struct Header {
  IdxType type;
  Shape shape;
  size_t nbytes;
} Header;

static uint64_t load_big_endian(const unsigned char *bytes, size_t nbytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < nbytes; i++) value = value << 8 | bytes[i];
  return value;
}

static bool read_header(Position at, const unsigned char *bytes, size_t nbytes, Header *header, Diagnostics *d) {
  *header = (Header){0};
  if (nbytes < 4 || bytes[0] || bytes[1]) return error_at(d, at, "not an idx file");
  for (size_t i = 0; i < NTYPES; i++)
    if (types[i].code == bytes[2]) header->type = types[i];
  if (!header->type.nbytes_each)
    return error_at(d, at, "holds idx type 0x%02X, expected 0x08, 0x09, 0x0B, 0x0C, 0x0D or 0x0E", bytes[2]);
  const int rank = bytes[3];
  if (rank > MAX_RANK) return error_at(d, at, "more than %d axes", MAX_RANK);
  header->nbytes = 4 + 4 * (size_t)rank;
  if (nbytes < header->nbytes) return error_at(d, at, "damaged: the file ends early, after %zu bytes", nbytes);
  header->shape.rank = rank;
  for (int i = 0; i < rank; i++)
    header->shape.extent[i] = EXTENT((int64_t)load_big_endian(bytes + 4 + 4 * (size_t)i, 4));
  return shape_nelems(&header->shape) >= 0 || error_at(d, at, "expected fewer than 2^47 elements");
}

static uint64_t whole_nbytes(const Header *header) {
  return header->nbytes + (uint64_t)shape_nelems(&header->shape) * header->type.nbytes_each;
}

bool idx_whole_nbytes(const char *name, const void *start, size_t nbytes, uint64_t *whole, Diagnostics *d) {
  const Source source = {.name = name};
  Header header;
  if (!read_header((Position){&source, 0, 0}, start, nbytes, &header, d)) return false;
  *whole = whole_nbytes(&header);
  return true;
}

static void convert(const unsigned char *from, const IdxType *type, const Tensor *to) {
  for (int64_t i = 0, nelems = tensor_nelems(to); i < nelems; i++, from += type->nbytes_each) {
    const uint64_t bits = load_big_endian(from, type->nbytes_each);
    const uint32_t low = type->nbytes_each == 2 ? (uint32_t)(int32_t)(int16_t)bits : (uint32_t)bits;
    if (type->nbytes_each == 8) memcpy((char *)to->data + 8 * i, &bits, 8);
    else memcpy((char *)to->data + 4 * i, &low, 4);
  }
}

bool idx_read_bytes(const char *name, const void *bytes, size_t nbytes, Tensor *out, bool *is_copy,
                    const Allocator *allocator, Diagnostics *d) {
  const Source source = {.name = name};
  const Position at = {&source, 0, 0};
  Header header;
  *out = (Tensor){0};
  *is_copy = false;
  if (!read_header(at, bytes, nbytes, &header, d)) return false;
  if (whole_nbytes(&header) != nbytes)
    return error_at(d, at, "damaged: expected %" PRIu64 " bytes, found %zu", whole_nbytes(&header), nbytes);
  Tensor t = {.type = header.type.type, .rank = header.shape.rank};
  for (int i = 0; i < t.rank; i++) t.extent[i] = header.shape.extent[i].value;
  const unsigned char *elements = (const unsigned char *)bytes + header.nbytes;
  if (header.type.nbytes_each == 1) {
    t.data = (void *)elements;
  } else {
    if (!tensor_alloc(&t, allocator)) return error_out_of_memory(d);
    *is_copy = true;
    convert(elements, &header.type, &t);
  }
  *out = t;
  return true;
}
