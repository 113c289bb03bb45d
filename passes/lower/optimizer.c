// Lowers optimizers: PyTorch's formulas (ir/operators/operators.def), with one division for each weight.
#include "ir/operators/optimizer.h"

#include "passes/lower/formulas.h"
#include "passes/lower/lower.h"

#define ATTRIBUTE(name) NUMBER(node_f32(node, name))

static ExprId operand(Lowering *l, const Node *node, uint32_t slot) {
  return lower_value(l, node->inputs[slot]);
}

static ExprId decayed_gradient(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const ExprId diff = operand(l, node, DIFF_SLOT);
  return node_f32(node, "weight_decay") > 0 ? FMA(ATTRIBUTE("weight_decay"), operand(l, node, WEIGHTS_SLOT), diff)
                                            : diff;
}

// weights - rate * change
static void lower_new_weights(Lowering *l, const Node *node, ExprId weights, ExprId rate, ExprId change) {
  Kernel *k = l->kernel;
  lower_result(l, node, 0, FMA(NEG(rate), change, weights), NULL);
}

LOWER(SGD, lower_new_weights(l, node, operand(l, node, WEIGHTS_SLOT), operand(l, node, SGD_RATE_SLOT),
                             decayed_gradient(l, node)))

void lower_Momentum(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const ExprId g = decayed_gradient(l, node), momentum = ATTRIBUTE("momentum");
  const ExprId damped = MUL(NUMBER(1 - node_f32(node, "dampening")), g);
  const ExprId velocity = FMA(momentum, operand(l, node, STATE_SLOT), damped);
  const ExprId change = node_bool(node, "nesterov") ? FMA(momentum, velocity, g) : velocity;
  lower_new_weights(l, node, operand(l, node, WEIGHTS_SLOT), operand(l, node, RATE_SLOT), change);
  lower_result(l, node, 1, velocity, NULL);
}

// 1 - beta^step = -(e^(step ln(beta)) - 1), where ln(beta) = ln(1 + (beta - 1)): rounding beta - 1 to f32 loses fewer
// digits than rounding a beta near 1.
static ExprId bias_correction(Kernel *k, ExprId step, double beta) {
  const ExprId log = LOG1P(NUMBER(beta - 1));
  return NEG(EXPM1(MUL(step, log)));
}

// beta * average + (1 - beta) * x
static ExprId moving_average(Kernel *k, double beta, ExprId average, ExprId x) {
  return FMA(NUMBER(beta), average, MUL(NUMBER(1 - beta), x));
}

// Numerator and denominator of the quotient are multiplied by c = sqrt(1 - beta2^step):
// m / (sqrt(v / c^2) + epsilon) = c m / (sqrt(v) + c epsilon).
static void lower_adam(Lowering *l, const Node *node, bool is_decoupled) {
  Kernel *k = l->kernel;
  const double beta1 = node_f32(node, "beta1"), beta2 = node_f32(node, "beta2");
  const ExprId g = is_decoupled ? operand(l, node, DIFF_SLOT) : decayed_gradient(l, node);
  const ExprId rate = operand(l, node, ADAM_RATE_SLOT), step = operand(l, node, ADAM_STEP_SLOT);
  const ExprId c = SQRT(bias_correction(k, step, beta2));
  const ExprId corrected = DIV(MUL(rate, c), bias_correction(k, step, beta1));
  const ExprId mean = moving_average(k, beta1, operand(l, node, ADAM_MEAN_SLOT), g);
  const ExprId variance = moving_average(k, beta2, operand(l, node, ADAM_VARIANCE_SLOT), MUL(g, g));
  ExprId weights = operand(l, node, WEIGHTS_SLOT);
  if (is_decoupled && node_f32(node, "weight_decay") > 0)
    weights = MUL(weights, FMA(NEG(rate), ATTRIBUTE("weight_decay"), NUMBER(1)));
  const ExprId change = DIV(mean, FMA(c, ATTRIBUTE("epsilon"), SQRT(variance)));
  lower_new_weights(l, node, weights, corrected, change);
  lower_result(l, node, 1, mean, NULL);
  lower_result(l, node, 2, variance, NULL);
}

LOWER(Adam, lower_adam(l, node, false))
LOWER(AdamW, lower_adam(l, node, true))

void lower_Adagrad(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const ExprId g = decayed_gradient(l, node), sum = FMA(g, g, operand(l, node, STATE_SLOT));
  const ExprId past = SUB(operand(l, node, STEP_SLOT), NUMBER(1));
  const ExprId rate = DIV(operand(l, node, RATE_SLOT), FMA(past, ATTRIBUTE("lr_decay"), NUMBER(1)));
  lower_new_weights(l, node, operand(l, node, WEIGHTS_SLOT), rate, DIV(g, ADD(SQRT(sum), ATTRIBUTE("epsilon"))));
  lower_result(l, node, 1, sum, NULL);
}
