// Words for formulas: each adds an expression to the kernel `k`, which must be in scope. See ExprOp
// (ir/kernel/kernel.h) for what the operations do with special values.
#ifndef NGRAD_PASSES_LOWER_FORMULAS_H
#define NGRAD_PASSES_LOWER_FORMULAS_H

#include "ir/kernel/kernel.h"

#define NUMBER(number) expr_constant(k, (double)(number))
#define ABS(a) expr_unary(k, EXPR_ABS, a)
#define NEG(a) expr_unary(k, EXPR_NEG, a)
#define SQRT(a) expr_unary(k, EXPR_SQRT, a)
#define ROUND(a) expr_unary(k, EXPR_ROUND, a)
#define FLOOR(a) expr_unary(k, EXPR_FLOOR, a)
#define EXP(a) expr_unary(k, EXPR_EXP, a)
#define EXPM1(a) expr_unary(k, EXPR_EXPM1, a)
#define LOG(a) expr_unary(k, EXPR_LOG, a)
#define LOG1P(a) expr_unary(k, EXPR_LOG1P, a)
#define TANH(a) expr_unary(k, EXPR_TANH, a)
#define ERF(a) expr_unary(k, EXPR_ERF, a)
#define SIN(a) expr_unary(k, EXPR_SIN, a)
#define COS(a) expr_unary(k, EXPR_COS, a)
#define GELU(a) expr_unary(k, EXPR_GELU, a)
#define GELU_SLOPE(a) expr_unary(k, EXPR_GELU_SLOPE, a)
#define ADD(a, b) expr_binary(k, EXPR_ADD, a, b)
#define SUB(a, b) expr_binary(k, EXPR_SUB, a, b)
#define MUL(a, b) expr_binary(k, EXPR_MUL, a, b)
#define DIV(a, b) expr_binary(k, EXPR_DIV, a, b)
#define POW(a, b) expr_binary(k, EXPR_POW, a, b)
#define FMOD(a, b) expr_binary(k, EXPR_FMOD, a, b)
#define MAX(a, b) expr_binary(k, EXPR_MAX, a, b) // b if either is NaN
#define MIN(a, b) expr_binary(k, EXPR_MIN, a, b) // b if either is NaN
#define MAXIMUM(a, b) expr_binary(k, EXPR_MAXIMUM, a, b)
#define GT(a, b) expr_binary(k, EXPR_GT, a, b)
#define GE(a, b) expr_binary(k, EXPR_GE, a, b)
#define EQ(a, b) expr_binary(k, EXPR_EQ, a, b)
#define FMA(a, b, c) expr_fma(k, a, b, c)
#define SELECT(mask, a, b) expr_select(k, mask, a, b)

#endif
