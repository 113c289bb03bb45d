// The options of mixed precision, translated for passes/train.
#ifndef NGRAD_FRONTEND_API_PRECISION_H
#define NGRAD_FRONTEND_API_PRECISION_H

#include "frontend/api/handles.h"
#include "passes/train/mixed_precision.h"

// precision: "f32", "bf16" or "f16"; NULL: "f32". keep_f32: names of operators that stay f32, and with each its
// gradients, whose names begin with NAMEBackward. The flags are allocated in the arena.
ng_status precision_choose(ng_context *ctx, const char *precision, const char *const *keep_f32, size_t nkeep_f32,
                           Arena *arena, MixedPrecision *mixed);

#endif
