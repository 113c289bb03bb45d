// The peak: the rate of f32 fused multiply-adds on registers, when nothing stalls the arithmetic units of the threads.
#ifndef NGRAD_FRONTEND_API_PEAK_H
#define NGRAD_FRONTEND_API_PEAK_H

#include <stdint.h>

// isa: an available name of ng_isa_at. For "scalar", the peak is that of the compiler's own vectors, without fused
// multiply-adds. A run takes less than a millisecond.
void peak_run(const char *isa, int threads);
// The operations of a run; a multiply-add counts as two, fused or not.
double peak_operations(const char *isa, int threads);

#endif
