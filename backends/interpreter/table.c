// The function of each operator.
#include "backends/interpreter/evaluation.h"

bool (*const interpreter_functions[OP_COUNT])(const Evaluation *) = {
#define OP(name, ...) [OP_##name] = interpret_##name,
#include "ir/operators/operators.def"
#undef OP
};
