// Quantisation has no gradients.
#include "passes/gradient/gradient.h"

NO_GRADIENT(Quantize, "its derivative is 0 almost everywhere")
NO_GRADIENT(Dequantize, "its input is quantised, so it is not continuous")
NO_GRADIENT(DynamicQuantize, "its derivative is 0 almost everywhere")
NO_GRADIENT(DynamicDequantize, "its input is quantised, so it is not continuous")
