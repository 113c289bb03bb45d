// Optimizers: PyTorch's formulas (ir/operators/operators.def).
#include "ir/operators/optimizer.h"

#include "backends/interpreter/evaluation.h"

#include <math.h>

static int64_t nweights(const Evaluation *e) {
  return shape_nelems(&e->node->outputs[0]->shape);
}

static double step_of(const Evaluation *e, uint32_t slot) {
  return e->node->inputs[slot]->type == TYPE_S64 ? (double)evaluation_s64(e, slot) : e->inputs[slot][0];
}

// The gradient of the loss plus weight_decay times half the square of the weights. With weight_decay 0, infinite
// weights have no effect.
static double decayed_gradient(const Evaluation *e, int64_t i) {
  const double decay = node_f32(e->node, "weight_decay"), diff = e->inputs[DIFF_SLOT][i];
  return decay > 0 ? diff + decay * e->inputs[WEIGHTS_SLOT][i] : diff;
}

bool interpret_SGD(const Evaluation *e) {
  for (int64_t i = 0; i < nweights(e); i++)
    e->outputs[0][i] = e->inputs[WEIGHTS_SLOT][i] - e->inputs[SGD_RATE_SLOT][0] * decayed_gradient(e, i);
  return true;
}

bool interpret_Momentum(const Evaluation *e) {
  const double momentum = node_f32(e->node, "momentum"), dampening = node_f32(e->node, "dampening");
  const bool nesterov = node_bool(e->node, "nesterov");
  for (int64_t i = 0; i < nweights(e); i++) {
    const double g = decayed_gradient(e, i), velocity = momentum * e->inputs[STATE_SLOT][i] + (1 - dampening) * g;
    const double change = nesterov ? g + momentum * velocity : velocity;
    e->outputs[0][i] = e->inputs[WEIGHTS_SLOT][i] - e->inputs[RATE_SLOT][0] * change;
    e->outputs[1][i] = velocity;
  }
  return true;
}

// past + factor * g * g. Compiled code computes g * g as an intermediate value, which may overflow.
static double with_square(const Evaluation *e, double past, double factor, double g) {
  const double sum = past + factor * g * g;
  return e->noise && isinf(noise_overflow(e->noise, g * g)) ? (double)INFINITY : noise_overflow(e->noise, sum);
}

static bool take_adam_step(const Evaluation *e, bool is_decoupled) {
  const double beta1 = node_f32(e->node, "beta1"), beta2 = node_f32(e->node, "beta2");
  const double epsilon = node_f32(e->node, "epsilon"), decay = node_f32(e->node, "weight_decay");
  const double rate = e->inputs[ADAM_RATE_SLOT][0], step = step_of(e, ADAM_STEP_SLOT);
  const double correction1 = 1 - pow(beta1, step), correction2 = 1 - pow(beta2, step);
  for (int64_t i = 0; i < nweights(e); i++) {
    const double g = is_decoupled ? e->inputs[DIFF_SLOT][i] : decayed_gradient(e, i);
    const double mean = beta1 * e->inputs[ADAM_MEAN_SLOT][i] + (1 - beta1) * g;
    const double variance = with_square(e, beta2 * e->inputs[ADAM_VARIANCE_SLOT][i], 1 - beta2, g);
    const double w = e->inputs[WEIGHTS_SLOT][i], decayed = is_decoupled && decay > 0 ? w * (1 - rate * decay) : w;
    e->outputs[0][i] = decayed - rate * (mean / correction1) / (sqrt(variance / correction2) + epsilon);
    e->outputs[1][i] = mean;
    e->outputs[2][i] = variance;
  }
  return true;
}

INTERPRET(Adam, take_adam_step(e, false))
INTERPRET(AdamW, take_adam_step(e, true))

bool interpret_Adagrad(const Evaluation *e) {
  const double epsilon = node_f32(e->node, "epsilon");
  const double rate = e->inputs[RATE_SLOT][0] / (1 + (step_of(e, STEP_SLOT) - 1) * node_f32(e->node, "lr_decay"));
  for (int64_t i = 0; i < nweights(e); i++) {
    const double g = decayed_gradient(e, i), sum = with_square(e, e->inputs[STATE_SLOT][i], 1, g);
    e->outputs[0][i] = e->inputs[WEIGHTS_SLOT][i] - rate * g / (sqrt(sum) + epsilon);
    e->outputs[1][i] = sum;
  }
  return true;
}
