// Batches: samples of a data set, in any order, converted to another type.
#include "frontend/data/data.h"

#include <string.h>

// The type's integers are from -2^bits (if signed) to 2^bits.
static int integer_bits(Type type) {
  static const signed char bits[TYPE_COUNT] = {
      [TYPE_F64] = 53, [TYPE_F32] = 24, [TYPE_F16] = 11, [TYPE_BF16] = 8,    [TYPE_S64] = 63,
      [TYPE_S32] = 31, [TYPE_S8] = 7,   [TYPE_U8] = 8,   [TYPE_BOOLEAN] = 1, [TYPE_S16] = 15,
      [TYPE_U64] = 64, [TYPE_U32] = 32, [TYPE_U16] = 16};
  return bits[type];
}

// An element of one type is one of the other: u16 may be the bits of bf16, for which .npy has no type.
static bool has_same_bits(Type from, Type to) {
  return from == to || (from == TYPE_U16 && to == TYPE_BF16);
}

bool data_type_fits(Type from, Type to) {
  if (has_same_bits(from, to)) return true;
  if (to == TYPE_BOOLEAN || type_is_packed(from) || type_is_packed(to) || !integer_bits(from) || !integer_bits(to))
    return false;
  if (type_is_float(from)) return type_widens(from, to) || to == TYPE_BF16;
  if (type_least(from) < 0 && type_least(to) == 0) return false; // it may be negative
  return integer_bits(from) <= integer_bits(to);
}

#define CONVERT(FROM, TO)                                                                                              \
  for (int64_t i = 0; i < nelems; i++) ((TO *)to)[i] = (TO)((const FROM *)from)[i]

static void convert(Type from_type, const void *from, Type to_type, void *to, int64_t nelems) {
  if (from_type == TYPE_U8 && to_type == TYPE_F32) CONVERT(uint8_t, float);
  else if (from_type == TYPE_U8 && to_type == TYPE_S32) CONVERT(uint8_t, int32_t);
  else if (from_type == TYPE_U8 && to_type == TYPE_S64) CONVERT(uint8_t, int64_t);
  else if (from_type == TYPE_S32 && to_type == TYPE_S64) CONVERT(int32_t, int64_t);
  else
    for (int64_t i = 0; i < nelems; i++) type_store(to_type, to, (size_t)i, type_load(from_type, from, (size_t)i));
}

static void gather_elements(const Tensor *from, const int64_t *samples, int64_t count, int64_t nelems,
                            const Tensor *to) {
  const size_t nbytes = type_nbytes(from->type);
  for (int64_t s = 0; s < count; s++)
    for (int64_t i = 0; i < nelems; i++) {
      const size_t source = (size_t)(samples[s] * nelems + i), target = (size_t)tensor_offset(to, s * nelems + i);
      if (has_same_bits(from->type, to->type) && !type_is_packed(to->type))
        memcpy((char *)to->data + target * nbytes, (const char *)from->data + source * nbytes, nbytes);
      else type_store(to->type, to->data, target, type_load(from->type, from->data, source));
    }
}

void data_gather(const Tensor *from, const int64_t *samples, int64_t count, const Tensor *to) {
  if (!count) return;
  const int64_t nelems = tensor_nelems(to) / count;
  const size_t from_nbytes = (size_t)nelems * type_nbytes(from->type),
               to_nbytes = (size_t)nelems * type_nbytes(to->type);
  if (!layout_is_row_major(&to->layout) || type_is_packed(to->type)) {
    gather_elements(from, samples, count, nelems, to);
    return;
  }
  for (int64_t s = 0; s < count; s++) {
    const char *source = (const char *)from->data + (size_t)samples[s] * from_nbytes;
    char *target = (char *)to->data + (size_t)s * to_nbytes;
    if (has_same_bits(from->type, to->type)) memcpy(target, source, from_nbytes);
    else convert(from->type, source, to->type, target, nelems);
  }
}
