// Scalar expressions as C.
#ifndef NGRAD_BACKENDS_CODEGEN_PRINT_FORMULAS_H
#define NGRAD_BACKENDS_CODEGEN_PRINT_FORMULAS_H

#include "ir/kernel/kernel.h"

// C text with %0, %1 and %2 for the arguments. In a kernel that computes in f32, F becomes an f; in one that computes
// in f64, N becomes a conversion to f32 and W one back. NULL: the expression is lane 0 of its vector function, whose
// bits libm does not promise, or no function of its arguments.
extern const char *const scalar_formulas[EXPR_OP_COUNT];

#endif
