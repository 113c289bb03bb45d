// Optimizers have no gradients.
#include "passes/gradient/gradient.h"

#define ENDS_STEP REFUSED("it ends a training step")
NO_GRADIENT(SGD, ENDS_STEP)
NO_GRADIENT(Momentum, ENDS_STEP)
NO_GRADIENT(Adam, ENDS_STEP)
NO_GRADIENT(AdamW, ENDS_STEP)
NO_GRADIENT(Adagrad, ENDS_STEP)
