// Element types of tensors, and conversions between them and f64.
#ifndef NGRAD_IR_GRAPH_TYPE_H
#define NGRAD_IR_GRAPH_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum Type {
  TYPE_NONE, // not known yet
  TYPE_F64,
  TYPE_F32,
  TYPE_F16,  // IEEE binary16
  TYPE_BF16, // the upper half of an f32
  TYPE_S64,
  TYPE_S32,
  TYPE_S8,
  TYPE_U8,
  TYPE_BOOLEAN, // one byte, 0 or 1
  TYPE_F8_E4M3, // no infinities: numbers above 464 become NaN. Conversions to 8-bit floats round to f16 first, as
                // oneDNN does
  TYPE_F8_E5M2, // the upper half of an f16
  TYPE_S4,      // two elements in a byte, the first in the low half; TYPE_U4 likewise
  TYPE_U4,
  TYPE_S16,
  TYPE_U16,
  TYPE_U32,
  TYPE_U64,
  TYPE_COUNT
} Type;

// Sets of types, as masks.
typedef uint32_t TypeSet;
#define TYPE_BIT(type) (1U << (type))
enum {
  TYPES_F16_F32 = TYPE_BIT(TYPE_F16) | TYPE_BIT(TYPE_F32),
  TYPES_FLOAT = TYPES_F16_F32 | TYPE_BIT(TYPE_BF16) | TYPE_BIT(TYPE_F64),
  TYPES_BYTE = TYPE_BIT(TYPE_U8) | TYPE_BIT(TYPE_S8),
  TYPES_16_BITS = TYPE_BIT(TYPE_S16) | TYPE_BIT(TYPE_U16),
  TYPES_64_BITS = TYPE_BIT(TYPE_S64) | TYPE_BIT(TYPE_U64), // integers that f64 cannot represent
  TYPES_INTEGER = TYPES_BYTE | TYPES_16_BITS | TYPE_BIT(TYPE_S32) | TYPE_BIT(TYPE_U32) | TYPES_64_BITS,
  TYPES_F8 = TYPE_BIT(TYPE_F8_E4M3) | TYPE_BIT(TYPE_F8_E5M2),
  TYPES_4_BITS = TYPE_BIT(TYPE_S4) | TYPE_BIT(TYPE_U4),
  TYPES_QUANTIZED = TYPES_BYTE | TYPES_4_BITS | TYPES_F8,
  TYPES_FLOAT_OR_S32 = TYPES_FLOAT | TYPE_BIT(TYPE_S32),
  TYPES_ARITHMETIC = TYPES_FLOAT_OR_S32 | TYPE_BIT(TYPE_S64),
  TYPES_COMPARED = TYPES_FLOAT | TYPES_INTEGER,
  TYPES_CAST = TYPES_COMPARED | TYPE_BIT(TYPE_BOOLEAN),
  // Types whose elements a kernel can copy bit by bit. 4-bit elements are not among them: they have no byte address.
  TYPES_MOVED = TYPES_CAST | TYPES_F8,
};

const char *type_name(Type type);      // "f32"; "?" for TYPE_NONE
Type type_from_name(const char *name); // TYPE_NONE when there is no such type
size_t type_nbytes(Type type);         // bytes of an element; 1 for 4-bit types
bool type_is_packed(Type type);        // a 4-bit type: a byte holds two elements
size_t type_array_nbytes(Type type, size_t nelems);
bool type_is_float(Type type);        // kernels compute in the type; false for 8-bit floats, which are storage types
bool type_widens(Type from, Type to); // both are float types, they differ, and `to` represents every number of `from`
// "f32, f16 or bf16", written to buffer; returns buffer.
char *type_set_names(TypeSet set, char *buffer, size_t nbytes);

float f16_to_f32(uint16_t bits);
uint16_t f16_from_f64(double value); // one rounding, to nearest even; NaN stays NaN
float bf16_to_f32(uint16_t bits);
uint16_t bf16_from_f64(double value);

// Element i of an array of `type`. A store rounds once, to nearest even; stores to integers saturate, and turn NaN into
// 0. Storing an element of a packed type leaves the other element of the byte unchanged.
double type_load(Type type, const void *data, size_t i);
void type_store(Type type, void *data, size_t i, double value);
// The same with the interpreter's 8-byte elements: a double, but for TYPES_64_BITS the bits of the integer, as a double
// cannot represent each.
void type_load_wide(Type type, const void *data, size_t i, double *wide);
void type_store_wide(Type type, void *data, size_t i, const double *wide);
int64_t type_integer(double value); // as s64: saturated, 0 for NaN
// The integer of the type with the same low bits, in two's complement; of a boolean, whether the value is not 0. One of
// u64 stands for the unsigned integer with its bits, here and below.
int64_t type_wrap(Type type, int64_t value);
double type_number(Type type, int64_t integer); // rounded to f64
bool type_less(Type type, int64_t a, int64_t b);
double type_tolerance(Type type); // relative difference allowed between two computations of a result
// The least and the greatest finite number; of s64 and u64, the greatest is the number above, 2^63 and 2^64.
double type_least(Type type);
double type_greatest(Type type);
double type_round(Type type, double value); // the value after a store and a load

#endif
