// Lists of scales become tensors.
#ifndef NGRAD_PASSES_REWRITE_QUANTIZE_SCALES_H
#define NGRAD_PASSES_REWRITE_QUANTIZE_SCALES_H

#include "passes/pass.h"

// Makes Quantize and Dequantize with a scale for each index on an axis take them from constants. The lowering relies
// on it.
bool pass_quantize_scales(Graph *g, PassContext *c);

#endif
