// The rule of each operator, and what follows for each operand.
#include "passes/gradient/gradient.h"

#include <string.h>

const GradientRule *const gradient_rules[NREADABLE] = {
#define OP(name, ...) [OP_##name] = &gradient_##name,
#include "ir/operators/operators.def"
#undef OP
    [OP_COUNT] = &gradient_Gradient};

// Why operands of these types have no gradient; NULL: some are floating-point numbers.
static const char *why_discrete(const Operator *op, char letter) {
  const TypeVariable *t = op->types;
  while (t->letter && t->letter != letter) t++;
  if (t->types & TYPES_FLOAT) return NULL;
  if (t->types == TYPE_BIT(TYPE_BOOLEAN)) return "it is boolean";
  return t->types & TYPES_4_BITS ? "they are quantised" : "they are integers";
}

static Derivative exception_of(const GradientRule *rule, const char *name) {
  for (size_t i = 0; i < MOST_EXCEPTIONS && rule->exceptions[i].operand; i++)
    if (strcmp(rule->exceptions[i].operand, name) == 0) return rule->exceptions[i].derivative;
  return rule->of_all;
}

Derivative gradient_by_input(OperatorId id, uint32_t slot) {
  const Operator *op = &operators[id];
  const Operand *row = &op->inputs[slot < op->ninputs ? slot : op->ninputs - 1];
  const char *why = why_discrete(op, row->type);
  if (why) return (Derivative)ZERO(why);
  return exception_of(gradient_rules[id], row->name);
}

Derivative gradient_of_result(OperatorId id, uint32_t slot) {
  const Operator *op = &operators[id];
  const char *why = why_discrete(op, op->outputs[slot].type);
  if (why) return (Derivative)ZERO(why);
  return exception_of(gradient_rules[id], op->outputs[slot].name);
}
