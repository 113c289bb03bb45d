// Names of element types, and numbers, in C.
#include "backends/codegen/print/printer.h"
#include "ir/graph/open_dims.h"

// clang-format off
const ElementType element_types[TYPE_COUNT] = {
    [TYPE_NONE] =    {NULL, 'v', "", "", ""},
    [TYPE_F64] =     {"double", 'd', "", "", ""},
    [TYPE_F32] =     {"float", 'v', "", "", ""},
    [TYPE_F16] =     {"uint16_t", 'v', "_f16", "f32_from_f16", "f16_from_f32"},
    [TYPE_BF16] =    {"uint16_t", 'v', "_bf16", "f32_from_bf16", "bf16_from_f32"},
    [TYPE_F8_E4M3] = {"uint8_t", 'v', "_e4m3", "f32_from_e4m3", "e4m3_from_f32"},
    [TYPE_F8_E5M2] = {"uint8_t", 'v', "_e5m2", "f32_from_e5m2", "e5m2_from_f32"},
    [TYPE_S64] =     {"int64_t", 'd', "_s64", "", "s64_from_f64"},
    [TYPE_S32] =     {"int32_t", 'd', "_s32", "", "s32_from_f64"},
    [TYPE_S16] =     {"int16_t", 'v', "_s16", "", "s16_from_f32"},
    [TYPE_S8] =      {"int8_t", 'v', "_s8", "", "s8_from_f32"},
    [TYPE_U64] =     {"uint64_t", 'd', "_u64", "", "u64_from_f64"},
    [TYPE_U32] =     {"uint32_t", 'd', "_u32", "", "u32_from_f64"},
    [TYPE_U16] =     {"uint16_t", 'v', "_u16", "", "u16_from_f32"},
    [TYPE_U8] =      {"uint8_t", 'v', "_u8", "", "u8_from_f32"},
    [TYPE_S4] =      {"uint8_t", 'v', "_s4", "f32_from_s4", ""},
    [TYPE_U4] =      {"uint8_t", 'v', "_u4", "f32_from_u4", ""},
    [TYPE_BOOLEAN] = {"uint8_t", 'v', "_b8", "0 != ", "0 != "},
};
// clang-format on

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

const char *checked(Printer *p, const char *text) {
  p->out_of_memory |= !text;
  return text ? text : "";
}

const char *open_number_text(Printer *p, int64_t number, Monomial monomial, const char *const *names, bool is_bare) {
  const Graph *g = p->program->graph;
  if (number == 0 || !monomial) return checked(p, arena_format(p->scratch, "%lld", (long long)number));
  const int64_t factor = open_factor(g, number, monomial);
  Text text;
  text_init(&text, p->scratch->allocator);
  int nfactors = factor != 1;
  if (nfactors) text_format(&text, "%lld", (long long)factor);
  for (size_t i = 0; i < g->ndims; i++)
    for (int n = monomial_exponent(monomial, i); n > 0; n--) text_format(&text, nfactors++ ? " * %s" : "%s", names[i]);
  const char *result =
      checked(p, arena_format(p->scratch, nfactors > 1 && !is_bare ? "(%s)" : "%s", text_string(&text)));
  p->out_of_memory |= text.out_of_memory;
  text_deinit(&text);
  return result;
}
