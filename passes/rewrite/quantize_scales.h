// Turns lists of scales into constant tensors.
#ifndef NGRAD_PASSES_REWRITE_QUANTIZE_SCALES_H
#define NGRAD_PASSES_REWRITE_QUANTIZE_SCALES_H

#include "passes/pass.h"

// Replaces each Quantize and Dequantize that has several scales by DynamicQuantize and DynamicDequantize with constant
// operands. Lowering relies on this pass, as it supports only a single scale as an attribute.
bool pass_quantize_scales(Graph *g, PassContext *c);

#endif
