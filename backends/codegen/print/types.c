// Names of types in C.
#include "backends/codegen/print/types.h"

const char *element_type(Type type) {
  static const char *const names[TYPE_COUNT] = {
      [TYPE_F64] = "double",      [TYPE_F32] = "float",       [TYPE_F16] = "uint16_t",    [TYPE_BF16] = "uint16_t",
      [TYPE_S64] = "int64_t",     [TYPE_S32] = "int32_t",     [TYPE_S8] = "int8_t",       [TYPE_U8] = "uint8_t",
      [TYPE_BOOLEAN] = "uint8_t", [TYPE_F8_E4M3] = "uint8_t", [TYPE_F8_E5M2] = "uint8_t", [TYPE_S4] = "uint8_t",
      [TYPE_U4] = "uint8_t"};
  return names[type];
}

const char *type_suffix(Type type) {
  static const char *const names[TYPE_COUNT] = {
      [TYPE_F16] = "_f16",    [TYPE_BF16] = "_bf16", [TYPE_S32] = "_s32",      [TYPE_S8] = "_s8",
      [TYPE_U8] = "_u8",      [TYPE_S64] = "_s64",   [TYPE_F8_E4M3] = "_e4m3", [TYPE_F8_E5M2] = "_e5m2",
      [TYPE_BOOLEAN] = "_b8", [TYPE_S4] = "_s4",     [TYPE_U4] = "_u4"};
  return names[type] ? names[type] : "";
}

char memory_prefix(Type type) {
  return type == TYPE_F64 || type == TYPE_S32 || type == TYPE_S64 ? 'd' : 'v';
}

const char *scalar_from(Type type) {
  static const char *const names[TYPE_COUNT] = {
      [TYPE_F16] = "f32_from_f16",      [TYPE_BF16] = "f32_from_bf16",    [TYPE_BOOLEAN] = "0 != ",
      [TYPE_F8_E4M3] = "f32_from_e4m3", [TYPE_F8_E5M2] = "f32_from_e5m2", [TYPE_S4] = "f32_from_s4",
      [TYPE_U4] = "f32_from_u4",
  };
  return names[type] ? names[type] : "";
}

const char *scalar_to(Type type) {
  static const char *const names[TYPE_COUNT] = {
      [TYPE_F16] = "f16_from_f32", [TYPE_BF16] = "bf16_from_f32",    [TYPE_S32] = "s32_from_f64",
      [TYPE_S64] = "s64_from_f64", [TYPE_S8] = "s8_from_f32",        [TYPE_U8] = "u8_from_f32",
      [TYPE_BOOLEAN] = "0 != ",    [TYPE_F8_E4M3] = "e4m3_from_f32", [TYPE_F8_E5M2] = "e5m2_from_f32",
  };
  return names[type] ? names[type] : "";
}

void add_number(Text *out, double number, bool is_f64) {
  const char *cast = is_f64 ? "(double)" : ""; // NAN and INFINITY are floats
  if (number != number) text_format(out, "%sNAN", cast);
  else if (number - number != 0) text_format(out, "%s%sINFINITY", number > 0 ? "" : "-", cast);
  else {
    text_add_number(out, number, !is_f64);
    if (!is_f64) text_add_string(out, "f");
  }
}

void add_integer(Text *out, int64_t integer) {
  text_format(out, integer == INT64_MIN ? "INT64_MIN" : "%lld", (long long)integer);
}
