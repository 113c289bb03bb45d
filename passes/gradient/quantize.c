// Quantisation has no gradients.
#include "passes/gradient/gradient.h"

NO_GRADIENT(Quantize, "it is flat between its steps")
NO_GRADIENT(Dequantize, "what it takes has steps")
NO_GRADIENT(DynamicQuantize, "it is flat between its steps")
NO_GRADIENT(DynamicDequantize, "what it takes has steps")
