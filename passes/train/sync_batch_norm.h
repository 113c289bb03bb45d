#ifndef NGRAD_PASSES_TRAIN_SYNC_BATCH_NORM_H
#define NGRAD_PASSES_TRAIN_SYNC_BATCH_NORM_H

#include "ir/graph/copies.h"

// Replaces each batch norm of a value that differs between leaves by nodes that use the statistics of all leaves
// together. Its running statistics and batch statistics are then the same in all leaves. is_own, by value index, is the
// result of graph_find_own_values. The replaced nodes are left without inputs, for pass_dead_code. False: b has failed.
bool train_sync_batch_norms(Builder *b, const bool *is_own);

#endif
