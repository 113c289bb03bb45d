#ifndef NGRAD_PASSES_TRAIN_SYNC_BATCH_NORM_H
#define NGRAD_PASSES_TRAIN_SYNC_BATCH_NORM_H

#include "passes/train/build.h"

// Batch norms of values that are a leaf's own take the statistics of all leaves, and so do their running statistics and
// statistics of the batch, which all leaves then have in common. is_own, by index, is that of graph_find_own_values.
// The replaced nodes are left without inputs, for pass_dead_code. False: b has failed.
bool train_sync_batch_norms(Builder *b, const bool *is_own);

#endif
