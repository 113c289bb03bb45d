// Element types: their names and sizes, and conversions to and from f64 against the formats' definitions.
#include "ir/graph/type.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

// A 16-bit float as IEEE 754 defines it.
typedef struct Format {
  Type type;
  int exponent_bits, mantissa_bits;
  float (*to_f32)(uint16_t bits);
  uint16_t (*from_f64)(double value);
} Format;

static const Format formats[] = {
    {TYPE_F16, 5, 10, f16_to_f32, f16_from_f64},
    {TYPE_BF16, 8, 7, bf16_to_f32, bf16_from_f64},
};
enum { NFORMATS = sizeof formats / sizeof *formats };

static unsigned exponent_of(const Format *f, unsigned bits) {
  return bits >> f->mantissa_bits & ((1U << f->exponent_bits) - 1);
}

static unsigned mantissa_of(const Format *f, unsigned bits) {
  return bits & ((1U << f->mantissa_bits) - 1);
}

static unsigned infinity_of(const Format *f) {
  return ((1U << f->exponent_bits) - 1) << f->mantissa_bits;
}

// The value that the definition gives to the bits.
static double defined_value(const Format *f, unsigned bits) {
  int bias = (1 << (f->exponent_bits - 1)) - 1;
  int exponent = (int)exponent_of(f, bits);
  double fraction = ldexp(mantissa_of(f, bits), -f->mantissa_bits);
  double magnitude = exponent ? ldexp(1 + fraction, exponent - bias) : ldexp(fraction, 1 - bias);
  if ((bits & 0x7FFFU) == infinity_of(f)) magnitude = INFINITY;
  if ((bits & 0x7FFFU) > infinity_of(f)) magnitude = NAN;
  return bits & 0x8000U ? -magnitude : magnitude;
}

static void half_values_are_as_defined(void **state) {
  (void)state;
  for (size_t k = 0; k < NFORMATS; k++)
    for (unsigned bits = 0; bits <= 0xFFFF; bits++) {
      double value = (double)formats[k].to_f32((uint16_t)bits), expected = defined_value(&formats[k], bits);
      if (isnan(expected)) assert_true(isnan(value));
      else assert_true(value == expected && !signbit(value) == !signbit(expected));
    }
}

static void half_bits_come_back(void **state) {
  (void)state;
  for (size_t k = 0; k < NFORMATS; k++)
    for (unsigned bits = 0; bits <= 0xFFFF; bits++) {
      unsigned back = formats[k].from_f64((double)formats[k].to_f32((uint16_t)bits));
      if (isnan(defined_value(&formats[k], bits))) assert_true(isnan(formats[k].to_f32((uint16_t)back)));
      else assert_int_equal(back, bits);
    }
}

// For every interval between neighbours, up to the interval that ends in infinity: numbers below the middle round down,
// numbers above it up, also if they are the doubles next to the middle; the middle rounds to the even neighbour.
static void halves_round_once_to_nearest_even(void **state) {
  (void)state;
  for (size_t k = 0; k < NFORMATS; k++)
    for (unsigned sign = 0; sign <= 0x8000U; sign += 0x8000U)
      for (unsigned low = 0; low < infinity_of(&formats[k]); low++) {
        const Format *f = &formats[k];
        // Infinity takes the place of the number that would follow the largest.
        double a = defined_value(f, low);
        double step = ldexp(1, (exponent_of(f, low) ? (int)exponent_of(f, low) : 1) + 1 -
                                   (1 << (f->exponent_bits - 1)) - f->mantissa_bits);
        double middle = a + step / 2, direction = sign ? -1 : 1;
        unsigned even = low % 2 ? low + 1 : low;
        assert_int_equal(f->from_f64(direction * middle), sign | even);
        assert_int_equal(f->from_f64(direction * nextafter(middle, 0)), sign | low);
        assert_int_equal(f->from_f64(direction * nextafter(middle, INFINITY)), sign | (low + 1));
        assert_int_equal(f->from_f64(direction * (a + step / 4)), sign | low);
        assert_int_equal(f->from_f64(direction * (a + step * 3 / 4)), sign | (low + 1));
      }
}

static void halves_of_extreme_numbers(void **state) {
  (void)state;
  for (size_t k = 0; k < NFORMATS; k++) {
    const Format *f = &formats[k];
    assert_int_equal(f->from_f64(INFINITY), infinity_of(f));
    assert_int_equal(f->from_f64(-INFINITY), 0x8000U | infinity_of(f));
    assert_int_equal(f->from_f64(1.7976931348623157e308), infinity_of(f));
    assert_int_equal(f->from_f64(-1e300), 0x8000U | infinity_of(f));
    assert_int_equal(f->from_f64(5e-324), 0);
    assert_int_equal(f->from_f64(-5e-324), 0x8000U);
    assert_int_equal(f->from_f64(-0.0), 0x8000U);
  }
}

static void no_nan_becomes_a_number(void **state) {
  (void)state;
  for (size_t k = 0; k < NFORMATS; k++)
    for (int bit = 0; bit < 52; bit++) // a payload that the narrow mantissa has no room for
      for (uint64_t sign = 0; sign < 2; sign++) {
        uint64_t bits = sign << 63 | (uint64_t)0x7FF << 52 | (uint64_t)1 << bit;
        double nan;
        memcpy(&nan, &bits, sizeof nan);
        assert_true(isnan(formats[k].to_f32(formats[k].from_f64(nan))));
      }
}

static void halves_of_known_numbers(void **state) {
  (void)state;
  assert_int_equal(f16_from_f64(1), 0x3C00);
  assert_int_equal(f16_from_f64(65504), 0x7BFF);
  assert_int_equal(f16_from_f64(65520), 0x7C00);
  assert_int_equal(f16_from_f64(0x1p-24), 0x0001);
  assert_int_equal(f16_from_f64(-2), 0xC000);
  assert_int_equal(bf16_from_f64(1), 0x3F80);
  assert_int_equal(bf16_from_f64(3.140625), 0x4049);
  assert_int_equal(bf16_from_f64(-0.1), 0xBDCD);
}

static double stored(Type type, double value) {
  unsigned char cells[16];
  memset(cells, 0xA5, sizeof cells);
  type_store(type, cells, 1, value);
  for (size_t i = 0; i < type_nbytes(type); i++) // its neighbours are untouched
    assert_true(cells[i] == 0xA5 && (2 * type_nbytes(type) + i >= 16 || cells[2 * type_nbytes(type) + i] == 0xA5));
  double loaded = type_load(type, cells, 1), rounded = type_round(type, value);
  assert_true(loaded == rounded || (isnan(loaded) && isnan(rounded)));
  return loaded;
}

static void floats_store_what_they_can_hold(void **state) {
  (void)state;
  static const Type types[] = {TYPE_F64, TYPE_F32, TYPE_F16, TYPE_BF16};
  for (size_t i = 0; i < 4; i++) {
    assert_true(stored(types[i], 1.5) == 1.5);
    assert_true(stored(types[i], -0.0) == 0 && signbit(stored(types[i], -0.0)));
    assert_true(isnan(stored(types[i], NAN)));
    assert_true(stored(types[i], -INFINITY) == -(double)INFINITY);
  }
  assert_true(stored(TYPE_F64, 0.1) == 0.1);
  assert_true(stored(TYPE_F32, 0.1) == (double)0.1F);
  assert_true(stored(TYPE_F32, 1e39) == (double)INFINITY);
  assert_true(stored(TYPE_F32, 0x1p-149) == 0x1p-149);
}

static void integers_round_half_to_even_and_saturate(void **state) {
  (void)state;
  static const struct {
    Type type;
    double least, greatest;
  } rows[] = {{TYPE_S8, -128, 127},
              {TYPE_U8, 0, 255},
              {TYPE_S32, -0x1p31, 0x1p31 - 1},
              {TYPE_S64, -0x1p63, 0x1p63}}; // INT64_MAX, as a double
  for (size_t i = 0; i < 4; i++) {
    Type type = rows[i].type;
    assert_true(stored(type, 0.5) == 0 && stored(type, 1.5) == 2 && stored(type, 2.5) == 2);
    assert_true(stored(type, 100) == 100);
    assert_true(stored(type, NAN) == 0);
    assert_true(stored(type, INFINITY) == rows[i].greatest && stored(type, -INFINITY) == rows[i].least);
    assert_true(stored(type, 1e300) == rows[i].greatest && stored(type, -1e300) == rows[i].least);
    assert_true(stored(type, rows[i].greatest) == rows[i].greatest && stored(type, rows[i].least) == rows[i].least);
  }
  assert_true(stored(TYPE_S8, -2.5) == -2);
  assert_true(stored(TYPE_U8, -0.4) == 0);
  int64_t greatest;
  type_store(TYPE_S64, &greatest, 0, 0x1p63);
  assert_true(greatest == INT64_MAX);
}

static void booleans_are_0_or_1(void **state) {
  (void)state;
  assert_true(stored(TYPE_BOOLEAN, 0) == 0 && stored(TYPE_BOOLEAN, -0.0) == 0);
  assert_true(stored(TYPE_BOOLEAN, 1) == 1 && stored(TYPE_BOOLEAN, 0.25) == 1 && stored(TYPE_BOOLEAN, -7) == 1);
  const uint8_t two = 2;
  assert_true(type_load(TYPE_BOOLEAN, &two, 0) == 1);
}

static void f8_has_these_bits(void **state) {
  (void)state;
  static const struct {
    Type type;
    double value;
    uint8_t bits;
  } rows[] = {{TYPE_F8_E4M3, 1, 56},          {TYPE_F8_E4M3, 448, 126},   {TYPE_F8_E4M3, 464, 126},
              {TYPE_F8_E4M3, 465, 127},       {TYPE_F8_E4M3, -1000, 255}, {TYPE_F8_E4M3, 0.001, 1},
              {TYPE_F8_E4M3, 248, 120},       {TYPE_F8_E4M3, -0.0, 128},  {TYPE_F8_E4M3, INFINITY, 127},
              {TYPE_F8_E4M3, 0x1p-10, 0},     {TYPE_F8_E4M3, 0x3p-11, 1}, {TYPE_F8_E5M2, 1, 60},
              {TYPE_F8_E5M2, 57344, 123},     {TYPE_F8_E5M2, 61408, 123}, {TYPE_F8_E5M2, 61440, 124},
              {TYPE_F8_E5M2, -INFINITY, 252}, {TYPE_F8_E5M2, 0x1p-16, 1}, {TYPE_F8_E5M2, 1.125, 60}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint8_t bits;
    type_store(rows[i].type, &bits, 0, rows[i].value);
    assert_int_equal(bits, rows[i].bits);
  }
  for (Type type = TYPE_F8_E4M3; type <= TYPE_F8_E5M2; type++) {
    for (int b = 0; b < 256; b++) { // each comes back as it was, but for a NaN
      uint8_t bits = (uint8_t)b, again;
      double value = type_load(type, &bits, 0);
      type_store(type, &again, 0, value);
      if (isnan(value)) assert_true(isnan(type_load(type, &again, 0)));
      else assert_int_equal(again, bits);
    }
  }
}

// Two a byte, the first in the low half.
static void halves_of_bytes_are_apart(void **state) {
  (void)state;
  uint8_t bytes[3] = {0xA5, 0xA5, 0xA5};
  type_store(TYPE_S4, bytes, 1, -8);
  assert_memory_equal(bytes, ((uint8_t[]){0x85, 0xA5, 0xA5}), 3);
  type_store(TYPE_S4, bytes, 2, -1);
  assert_memory_equal(bytes, ((uint8_t[]){0x85, 0xAF, 0xA5}), 3);
  type_store(TYPE_U4, bytes, 0, 14.5);
  assert_memory_equal(bytes, ((uint8_t[]){0x8E, 0xAF, 0xA5}), 3);
  assert_true(type_load(TYPE_S4, bytes, 0) == -2 && type_load(TYPE_S4, bytes, 1) == -8);
  assert_true(type_load(TYPE_S4, bytes, 2) == -1 && type_load(TYPE_S4, bytes, 3) == -6);
  assert_true(type_load(TYPE_U4, bytes, 0) == 14 && type_load(TYPE_U4, bytes, 3) == 10);
  for (int i = -8; i < 16; i++) {
    if (i < 8) assert_true(type_round(TYPE_S4, i) == i);
    if (i >= 0) assert_true(type_round(TYPE_U4, i) == i);
  }
  static const struct {
    double number, s4, u4;
  } rows[] = {{7.5, 7, 8}, {6.5, 6, 6}, {-8.5, -8, 0}, {1e9, 7, 15}, {-1e9, -8, 0}, {NAN, 0, 0}, {-0.5, 0, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_true(type_round(TYPE_S4, rows[i].number) == rows[i].s4);
    assert_true(type_round(TYPE_U4, rows[i].number) == rows[i].u4);
  }
  assert_int_equal(type_array_nbytes(TYPE_S4, 0), 0);
  assert_int_equal(type_array_nbytes(TYPE_U4, 1), 1);
  assert_int_equal(type_array_nbytes(TYPE_S4, 7), 4);
  assert_int_equal(type_array_nbytes(TYPE_F16, 7), 14);
}

// A double has not all integers of 64 bits, so the interpreter's arrays hold them as they are.
static void wide_integers_stay_themselves(void **state) {
  (void)state;
  const int64_t numbers[] = {INT64_C(0x20000000000001), INT64_MIN, -1, INT64_MAX};
  double wide, half = 0;
  for (int k = 0; k < 2; k++) {
    int64_t back[4];
    for (size_t i = 0; i < 4; i++) {
      type_load_wide(k ? TYPE_U64 : TYPE_S64, numbers, i, &wide);
      type_store_wide(k ? TYPE_U64 : TYPE_S64, back, i, &wide);
    }
    assert_memory_equal(back, numbers, sizeof back);
  }
  type_load_wide(TYPE_F16, (uint16_t[]){0, 0x3E00}, 1, &wide);
  assert_true(wide == 1.5);
  type_store_wide(TYPE_F64, &half, 0, &wide);
  assert_true(half == 1.5);
}

// Stores round and saturate, NaN is 0; casts between integers keep the low bits.
static void integers_have_ranges(void **state) {
  (void)state;
  static const struct {
    Type type;
    double least, greatest; // of 64 bits: the double nearest to it
    int64_t wrapped;        // from -3 * 2^31 - 2
  } rows[] = {{TYPE_S64, -0x1p63, 0x1p63, -6442450946},
              {TYPE_U64, 0, 0x1p64, -6442450946}, // its bits
              {TYPE_S32, -0x1p31, 0x1p31 - 1, 2147483646},
              {TYPE_U32, 0, 0x1p32 - 1, 2147483646},
              {TYPE_S16, -32768, 32767, -2},
              {TYPE_U16, 0, 65535, 65534},
              {TYPE_S8, -128, 127, -2},
              {TYPE_U8, 0, 255, 254}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const Type type = rows[i].type;
    assert_true(TYPES_INTEGER & TYPE_BIT(type));
    assert_true(type_least(type) == rows[i].least && type_greatest(type) == rows[i].greatest);
    assert_true(type_round(type, 1e30) == rows[i].greatest && type_round(type, -1e30) == rows[i].least);
    assert_true(type_round(type, NAN) == 0 && type_round(type, 2.5) == 2 && type_round(type, 3.5) == 4);
    assert_true(type_wrap(type, -6442450946) == rows[i].wrapped);
  }
  assert_true(type_number(TYPE_U64, -1) == 0x1p64 && type_number(TYPE_S64, -1) == -1);
  assert_true(type_less(TYPE_U64, 1, -1) && !type_less(TYPE_S64, 1, -1));
}

static void types_have_names_and_sizes(void **state) {
  (void)state;
  static const struct {
    Type type;
    const char *name;
    size_t nbytes;
    bool is_float;
  } rows[] = {
      {TYPE_F64, "f64", 8, true},          {TYPE_F32, "f32", 4, true},          {TYPE_F16, "f16", 2, true},
      {TYPE_BF16, "bf16", 2, true},        {TYPE_S64, "s64", 8, false},         {TYPE_S32, "s32", 4, false},
      {TYPE_S8, "s8", 1, false},           {TYPE_U8, "u8", 1, false},           {TYPE_BOOLEAN, "boolean", 1, false},
      {TYPE_F8_E4M3, "f8_e4m3", 1, false}, {TYPE_F8_E5M2, "f8_e5m2", 1, false}, {TYPE_S4, "s4", 1, false},
      {TYPE_U4, "u4", 1, false},           {TYPE_S16, "s16", 2, false},         {TYPE_U16, "u16", 2, false},
      {TYPE_U32, "u32", 4, false},         {TYPE_U64, "u64", 8, false}};
  assert_int_equal(sizeof rows / sizeof *rows, TYPE_COUNT - 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_string_equal(type_name(rows[i].type), rows[i].name);
    assert_int_equal(type_from_name(rows[i].name), rows[i].type);
    assert_int_equal(type_nbytes(rows[i].type), rows[i].nbytes);
    assert_int_equal(type_is_float(rows[i].type), rows[i].is_float);
  }
  assert_string_equal(type_name(TYPE_NONE), "?");
  static const char *const wrong[] = {"", "?", "f", "F32", "f32 ", "float", "f8"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_int_equal(type_from_name(wrong[i]), TYPE_NONE);
}

static void sets_of_types_are_listed(void **state) {
  (void)state;
  char buffer[64];
  assert_string_equal(type_set_names(TYPE_BIT(TYPE_F32), buffer, sizeof buffer), "f32");
  assert_string_equal(type_set_names(TYPES_F16_F32, buffer, sizeof buffer), "f32 or f16");
  assert_string_equal(type_set_names(TYPES_FLOAT, buffer, sizeof buffer), "f64, f32, f16 or bf16");
  assert_string_equal(type_set_names(0, buffer, sizeof buffer), "");
  assert_true(strlen(type_set_names(TYPES_FLOAT, buffer, 6)) < 6); // cut to fit
}

static void nothing_finite_is_above_the_greatest(void **state) {
  (void)state;
  static const Type floats[] = {TYPE_F64, TYPE_F32, TYPE_F16, TYPE_BF16};
  static const double wanted[] = {0x1.fffffffffffffp1023, 0x1.fffffep127, 65504, 0x1.fep127};
  for (int i = 0; i < 4; i++) {
    double greatest = type_greatest(floats[i]);
    assert_true(greatest == wanted[i] && type_round(floats[i], greatest) == greatest);
    assert_true(isinf(type_round(floats[i], greatest * (1 + 0x1p-8))));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(half_values_are_as_defined),
      cmocka_unit_test(half_bits_come_back),
      cmocka_unit_test(halves_round_once_to_nearest_even),
      cmocka_unit_test(halves_of_extreme_numbers),
      cmocka_unit_test(no_nan_becomes_a_number),
      cmocka_unit_test(halves_of_known_numbers),
      cmocka_unit_test(floats_store_what_they_can_hold),
      cmocka_unit_test(integers_round_half_to_even_and_saturate),
      cmocka_unit_test(booleans_are_0_or_1),
      cmocka_unit_test(f8_has_these_bits),
      cmocka_unit_test(halves_of_bytes_are_apart),
      cmocka_unit_test(wide_integers_stay_themselves),
      cmocka_unit_test(integers_have_ranges),
      cmocka_unit_test(types_have_names_and_sizes),
      cmocka_unit_test(sets_of_types_are_listed),
      cmocka_unit_test(nothing_finite_is_above_the_greatest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
