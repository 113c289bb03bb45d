// The names of element types in C and in the vocabulary, and their numbers in C.
#ifndef NGRAD_BACKENDS_CODEGEN_PRINT_TYPES_H
#define NGRAD_BACKENDS_CODEGEN_PRINT_TYPES_H

#include "ir/graph/type.h"
#include "ir/support/text.h"

const char *element_type(Type type); // the C type in memory: "float", "uint16_t"
const char *type_suffix(Type type);  // of vocabulary functions that access memory: "_bf16"; "" for f32 and f64
char memory_prefix(Type type);       // of the vector that a load returns: v (f32 lanes) or d (f64 lanes)
// The function or operator that converts an element to f32: "f32_from_bf16", "0 != " for boolean; "": C converts it.
const char *scalar_from(Type type);
// The reverse conversion, from f32, or from f64 for s32.
const char *scalar_to(Type type);

void add_number(Text *out, double number, bool is_f64); // else of f32
void add_integer(Text *out, int64_t integer);

#endif
