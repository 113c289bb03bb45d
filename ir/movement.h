// What later stages ask of the operators that move elements.
#ifndef NGRAD_IR_MOVEMENT_H
#define NGRAD_IR_MOVEMENT_H

#include "ir/operator.h"

// axes[i]: the axis of a transpose's input that is its output's axis i. False when `order` is no order of `rank` axes.
bool transpose_axes(const Node *node, int rank, int axes[MAX_RANK]);

#endif
