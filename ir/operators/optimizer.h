// The input slots of optimizers.
#ifndef NGRAD_IR_OPERATORS_OPTIMIZER_H
#define NGRAD_IR_OPERATORS_OPTIMIZER_H

enum { WEIGHTS_SLOT, DIFF_SLOT };                                                // of all optimizers
enum { SGD_RATE_SLOT = 2 };                                                      // of SGD
enum { STATE_SLOT = 2, RATE_SLOT, STEP_SLOT };                                   // of Momentum and Adagrad
enum { ADAM_MEAN_SLOT = 2, ADAM_VARIANCE_SLOT, ADAM_RATE_SLOT, ADAM_STEP_SLOT }; // of Adam and AdamW

#endif
