// The peak: what the arithmetic units of the threads do when nothing holds them up, in fused multiply-adds of f32 on
// registers alone.
#ifndef NGRAD_FRONTEND_API_PEAK_H
#define NGRAD_FRONTEND_API_PEAK_H

#include <stdint.h>

// isa: a name of ng_isa_at that is available; of "scalar" the peak is that of the compiler's own vectors, without fused
// multiply-adds. A run takes less than a millisecond.
void peak_run(const char *isa, int threads);
// What a run does; a multiplication and an addition are two operations, fused or not.
double peak_operations(const char *isa, int threads);

#endif
