/* Steps of graphs with leaves (ir/graph/leaves.h), cut into functions without leaves: the order of calls, and the
   places of operands. */
#ifndef NGRAD_IR_LEAVES_STEP_H
#define NGRAD_IR_LEAVES_STEP_H

#include <stddef.h>
#include <stdint.h>

/* A message to or from another rank. */
struct ngrad_message {
  int64_t peer;
  void *data;
  size_t nbytes;
};

/* Ranks that take steps together, and functions that move bytes between ranks: as in the API's header. */
struct ngrad_ranks {
  int64_t rank, count;
  void *context;
  int (*start)(void *context, int slot, const struct ngrad_message *sends, size_t nsends,
               const struct ngrad_message *receives, size_t nreceives);
  int (*test)(void *context, int slot, int *is_done);
  int (*wait)(void *context, int slot);
};

/* The text of this file is also printed into emitted C, where PREFIX_leaves_ stands for ngrad_. */
#include "ir/leaves/places.h"

#endif
