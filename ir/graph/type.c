// The table of element types, and conversions. A narrow float is converted directly from a double, so that each
// conversion rounds once.
#include "ir/graph/type.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// clang-format off
static const struct {
  const char *name;
  uint8_t nbytes;
  bool is_float;
  double least, greatest;
} types[TYPE_COUNT] = {
    [TYPE_NONE] =    {"?", 0, false, 0, 0},
    [TYPE_F64] =     {"f64", 8, true, -DBL_MAX, DBL_MAX},
    [TYPE_F32] =     {"f32", 4, true, -FLT_MAX, FLT_MAX},
    [TYPE_F16] =     {"f16", 2, true, -65504, 65504},
    [TYPE_BF16] =    {"bf16", 2, true, -0x1.fep127, 0x1.fep127},
    [TYPE_F8_E4M3] = {"f8_e4m3", 1, false, -448, 448},
    [TYPE_F8_E5M2] = {"f8_e5m2", 1, false, -57344, 57344},
    [TYPE_S64] =     {"s64", 8, false, -0x1p63, 0x1p63},
    [TYPE_S32] =     {"s32", 4, false, INT32_MIN, INT32_MAX},
    [TYPE_S16] =     {"s16", 2, false, INT16_MIN, INT16_MAX},
    [TYPE_S8] =      {"s8", 1, false, INT8_MIN, INT8_MAX},
    [TYPE_S4] =      {"s4", 1, false, -8, 7},
    [TYPE_U64] =     {"u64", 8, false, 0, 0x1p64},
    [TYPE_U32] =     {"u32", 4, false, 0, UINT32_MAX},
    [TYPE_U16] =     {"u16", 2, false, 0, UINT16_MAX},
    [TYPE_U8] =      {"u8", 1, false, 0, UINT8_MAX},
    [TYPE_U4] =      {"u4", 1, false, 0, 15},
    [TYPE_BOOLEAN] = {"boolean", 1, false, 0, 1},
};
// clang-format on

const char *type_name(Type type) {
  return types[type].name;
}

Type type_from_name(const char *name) {
  for (Type type = TYPE_F64; type < TYPE_COUNT; type++)
    if (strcmp(name, types[type].name) == 0) return type;
  return TYPE_NONE;
}

size_t type_nbytes(Type type) {
  return types[type].nbytes;
}

bool type_is_packed(Type type) {
  return TYPES_4_BITS & TYPE_BIT(type);
}

size_t type_array_nbytes(Type type, size_t nelems) {
  return type_is_packed(type) ? nelems / 2 + nelems % 2 : nelems * type_nbytes(type);
}

bool type_is_float(Type type) {
  return types[type].is_float;
}

bool type_widens(Type from, Type to) {
  static const TypeSet wider[TYPE_COUNT] = {
      [TYPE_F16] = TYPE_BIT(TYPE_F32) | TYPE_BIT(TYPE_F64),
      [TYPE_BF16] = TYPE_BIT(TYPE_F32) | TYPE_BIT(TYPE_F64),
      [TYPE_F32] = TYPE_BIT(TYPE_F64),
  };
  return wider[from] & TYPE_BIT(to);
}

char *type_set_names(TypeSet set, char *buffer, size_t nbytes) {
  size_t used = 0;
  buffer[0] = 0;
  for (Type type = TYPE_F64; type < TYPE_COUNT; type++) {
    if (!(set & TYPE_BIT(type))) continue;
    set &= ~TYPE_BIT(type);
    const char *separator = used == 0 ? "" : set ? ", " : " or ";
    int n = snprintf(buffer + used, nbytes - used, "%s%s", separator, types[type].name);
    if (n < 0 || (size_t)n >= nbytes - used) break;
    used += (size_t)n;
  }
  return buffer;
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float f32_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds to nearest even in the IEEE format with these numbers of exponent and mantissa bits; returns the bits of the
// result.
static uint16_t narrow(double value, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  uint64_t bits = bits_of(value);
  uint32_t sign = (uint32_t)(bits >> 63) << (exponent_bits + mantissa_bits);
  uint32_t infinity = ((1U << exponent_bits) - 1) << mantissa_bits;
  if (isnan(value)) {
    uint32_t payload = (uint32_t)(bits >> (52 - mantissa_bits)) & ((1U << mantissa_bits) - 1);
    return (uint16_t)(sign | infinity | payload | 1U << (mantissa_bits - 1));
  }
  if (value == 0) return (uint16_t)sign;
  if (isinf(value)) return (uint16_t)(sign | infinity);
  int exponent;
  double fraction = frexp(fabs(value), &exponent); // in [1/2, 1)
  int lowest = 2 - bias - mantissa_bits - 1;       // exponent of a subnormal's last place
  int last = exponent - 1 - mantissa_bits;         // exponent of value's last place, if normal
  if (last < lowest) last = lowest;
  double units = nearbyint(ldexp(fraction, exponent - last)); // the scaling is exact: this is the only rounding
  if (units == 0) return (uint16_t)sign;
  uint32_t mantissa = (uint32_t)units;
  // For normal numbers the mantissa's leading 1 adds 1 to the exponent field; subnormals have none, and a field of 0. A
  // carry out of the mantissa increments the exponent.
  uint32_t field = mantissa + ((uint32_t)(last - lowest) << mantissa_bits);
  return (uint16_t)(sign | (field < infinity ? field : infinity));
}

float f16_to_f32(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000U) << 16, exponent = bits >> 10 & 0x1FU, mantissa = bits & 0x3FFU;
  if (exponent == 0x1F) return f32_of_bits(sign | 0x7F800000U | mantissa << 13 | (mantissa ? 0x400000U : 0));
  if (exponent == 0) {
    float magnitude = (float)mantissa * 0x1p-24F;
    return sign ? -magnitude : magnitude;
  }
  return f32_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t f16_from_f64(double value) {
  return narrow(value, 5, 10);
}

float bf16_to_f32(uint16_t bits) {
  return f32_of_bits((uint32_t)bits << 16);
}

uint16_t bf16_from_f64(double value) {
  return narrow(value, 8, 7);
}

// e4m3 has no infinities: a number that rounds above the greatest, 448, becomes NaN. 464 is halfway to the next number.
static uint8_t e4m3_from_f64(double value) {
  enum { NOT_A_NUMBER = 0x7F };
  double half = f16_to_f32(f16_from_f64(value));
  uint32_t sign = signbit(half) ? 0x80 : 0;
  if (!(fabs(half) <= 464)) return (uint8_t)(sign | NOT_A_NUMBER);
  return (uint8_t)(sign | (fabs(half) >= 256 ? 0x78 + (uint32_t)nearbyint((fabs(half) - 256) / 32)
                                             : narrow(fabs(half), 4, 3)));
}

static float e4m3_to_f32(uint8_t bits) {
  uint32_t exponent = bits >> 3 & 0xFU, mantissa = bits & 7U;
  if ((bits & 0x7FU) == 0x7FU) return NAN;
  float magnitude = ldexpf((float)(exponent ? mantissa + 8 : mantissa), (exponent ? (int)exponent : 1) - 10);
  return bits & 0x80U ? -magnitude : magnitude;
}

static uint8_t e5m2_from_f64(double value) {
  return (uint8_t)narrow(f16_to_f32(f16_from_f64(value)), 5, 2);
}

// The four bits of element i of a packed type.
static int load_half(const void *data, size_t i) {
  return ((const uint8_t *)data)[i / 2] >> i % 2 * 4 & 0xF;
}

static void store_half(void *data, size_t i, int value) {
  uint8_t *byte = (uint8_t *)data + i / 2;
  *byte = (uint8_t)(i % 2 ? (*byte & 0xF) | (value & 0xF) << 4 : (*byte & 0xF0) | (value & 0xF));
}

#define LOAD(T)                                                                                                        \
  do {                                                                                                                 \
    T value;                                                                                                           \
    memcpy(&value, (const char *)data + i * sizeof value, sizeof value);                                               \
    return (double)value;                                                                                              \
  } while (0)

double type_load(Type type, const void *data, size_t i) {
  uint16_t half;
  switch (type) {
  case TYPE_F64: LOAD(double);
  case TYPE_F32: LOAD(float);
  case TYPE_F16: memcpy(&half, (const char *)data + 2 * i, 2); return f16_to_f32(half);
  case TYPE_BF16: memcpy(&half, (const char *)data + 2 * i, 2); return bf16_to_f32(half);
  case TYPE_S64: LOAD(int64_t);
  case TYPE_S32: LOAD(int32_t);
  case TYPE_S8: LOAD(int8_t);
  case TYPE_S16: LOAD(int16_t);
  case TYPE_U64: LOAD(uint64_t);
  case TYPE_U32: LOAD(uint32_t);
  case TYPE_U16: LOAD(uint16_t);
  case TYPE_U8: LOAD(uint8_t);
  case TYPE_BOOLEAN: return ((const uint8_t *)data)[i] != 0;
  case TYPE_F8_E4M3: return e4m3_to_f32(((const uint8_t *)data)[i]);
  case TYPE_F8_E5M2: return f16_to_f32((uint16_t)(((const uint8_t *)data)[i] << 8));
  case TYPE_S4: return (load_half(data, i) ^ 8) - 8;
  case TYPE_U4: return load_half(data, i);
  default: return 0;
  }
}

static double saturate(Type type, double value) {
  const double least = types[type].least, greatest = types[type].greatest;
  if (isnan(value)) return 0;
  value = nearbyint(value);
  return value < least ? least : value > greatest ? greatest : value;
}

#define STORE(T, v)                                                                                                    \
  do {                                                                                                                 \
    T stored = (T)(v);                                                                                                 \
    memcpy((char *)data + i * sizeof stored, &stored, sizeof stored);                                                  \
    return;                                                                                                            \
  } while (0)

void type_store(Type type, void *data, size_t i, double value) {
  switch (type) {
  case TYPE_F64: STORE(double, value);
  case TYPE_F32: STORE(float, value);
  case TYPE_F16: STORE(uint16_t, f16_from_f64(value));
  case TYPE_BF16: STORE(uint16_t, bf16_from_f64(value));
  case TYPE_S64: STORE(int64_t, saturate(type, value) >= 0x1p63 ? INT64_MAX : (int64_t)saturate(type, value));
  case TYPE_S32: STORE(int32_t, saturate(type, value));
  case TYPE_S16: STORE(int16_t, saturate(type, value));
  case TYPE_S8: STORE(int8_t, saturate(type, value));
  case TYPE_U64: STORE(uint64_t, saturate(type, value) >= 0x1p64 ? UINT64_MAX : (uint64_t)saturate(type, value));
  case TYPE_U32: STORE(uint32_t, saturate(type, value));
  case TYPE_U16: STORE(uint16_t, saturate(type, value));
  case TYPE_U8: STORE(uint8_t, saturate(type, value));
  case TYPE_BOOLEAN: STORE(uint8_t, value != 0);
  case TYPE_F8_E4M3: STORE(uint8_t, e4m3_from_f64(value));
  case TYPE_F8_E5M2: STORE(uint8_t, e5m2_from_f64(value));
  case TYPE_S4:
  case TYPE_U4: store_half(data, i, (int)saturate(type, value)); return;
  default: return;
  }
}

void type_load_wide(Type type, const void *data, size_t i, double *wide) {
  if (TYPES_64_BITS & TYPE_BIT(type)) memcpy(wide, (const char *)data + i * sizeof *wide, sizeof *wide);
  else *wide = type_load(type, data, i);
}

void type_store_wide(Type type, void *data, size_t i, const double *wide) {
  if (TYPES_64_BITS & TYPE_BIT(type)) memcpy((char *)data + i * sizeof *wide, wide, sizeof *wide);
  else type_store(type, data, i, *wide);
}

double type_round(Type type, double value) {
  double cell = 0;
  type_store(type, &cell, 0, value);
  return type_load(type, &cell, 0);
}

int64_t type_integer(double value) {
  int64_t integer;
  type_store(TYPE_S64, &integer, 0, value);
  return integer;
}

int64_t type_wrap(Type type, int64_t value) {
  switch (type) {
  case TYPE_S32: return (int32_t)value;
  case TYPE_S8: return (int8_t)value;
  case TYPE_S16: return (int16_t)value;
  case TYPE_U32: return (uint32_t)value;
  case TYPE_U16: return (uint16_t)value;
  case TYPE_U8: return (uint8_t)value;
  case TYPE_BOOLEAN: return value != 0;
  default: return value;
  }
}

double type_number(Type type, int64_t integer) {
  return type == TYPE_U64 ? (double)(uint64_t)integer : (double)integer;
}

bool type_less(Type type, int64_t a, int64_t b) {
  return type == TYPE_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}

double type_tolerance(Type type) {
  switch (type) {
  case TYPE_F64: return 1e-12;
  case TYPE_F32: return 1e-5;
  case TYPE_F16: return 2e-3;
  case TYPE_BF16: return 1.6e-2;
  default: return 0;
  }
}

double type_least(Type type) {
  return types[type].least;
}

double type_greatest(Type type) {
  return types[type].greatest;
}
