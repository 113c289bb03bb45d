// Replaces the matched values of a norm by the results of a norm operator.
#ifndef NGRAD_PASSES_REWRITE_RECOGNISE_NORM_REPLACE_H
#define NGRAD_PASSES_REWRITE_RECOGNISE_NORM_REPLACE_H

#include "passes/rewrite/recognise/norm_match.h"

// False: the operator does not accept the operands, or out of memory. New nodes are then dead code.
bool norm_replace_gradient(Norm *n, NormGradient *d);
bool norm_replace_forward(Norm *n, const NormForward *y);

#endif
