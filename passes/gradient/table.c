// The rule of each operator.
#include "passes/gradient/gradient.h"

const GradientRule *const gradient_rules[OP_COUNT] = {
#define OP(name, ...) [OP_##name] = &gradient_##name,
#include "ir/operators/operators.def"
#undef OP
};
