// Types of elements in C and in the vocabulary.
#ifndef NGRAD_BACKENDS_CODEGEN_PRINT_TYPES_H
#define NGRAD_BACKENDS_CODEGEN_PRINT_TYPES_H

#include "ir/graph/type.h"

const char *element_type(Type type); // in C: "float", "uint16_t"
const char *type_suffix(Type type);  // of functions that access memory: "_bf16", "" for floats
char memory_prefix(Type type);       // of vectors that are read: v of f32, d of f64
// What converts an element to an f32, to stand before its parentheses; "": nothing needs to.
const char *scalar_from(Type type);
const char *scalar_to(Type type); // likewise an f32, or for s32 an f64, to an element

#endif
