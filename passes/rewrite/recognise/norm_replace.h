// A norm's operator in the place of the values that were found to be its results.
#ifndef NGRAD_PASSES_REWRITE_RECOGNISE_NORM_REPLACE_H
#define NGRAD_PASSES_REWRITE_RECOGNISE_NORM_REPLACE_H

#include "passes/rewrite/recognise/norm_match.h"

// False: the operator does not fit its operands, or out of memory. What was made until then is dead code.
bool norm_replace_gradient(Norm *n, NormGradient *d);
bool norm_replace_forward(Norm *n, const NormForward *y);

#endif
