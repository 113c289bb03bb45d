// Formulas of scalar expressions in C.
#ifndef NGRAD_BACKENDS_CODEGEN_PRINT_FORMULAS_H
#define NGRAD_BACKENDS_CODEGEN_PRINT_FORMULAS_H

#include "ir/kernel/kernel.h"

// By operation: C text with %0, %1 and %2 for the arguments. F becomes "f" in a kernel that computes in f32; N becomes
// a cast to f32, and W a cast to f64, in a kernel that computes in f64. NULL: no formula; a function such as exp is
// computed as lane 0 of its vector version, because libm's exp may give other bits.
extern const char *const scalar_formulas[EXPR_OP_COUNT];

// The same for kernels that compute in s64; all operations of such kernels have a formula.
extern const char *const integer_formulas[EXPR_OP_COUNT];

#endif
