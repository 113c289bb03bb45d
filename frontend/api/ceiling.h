// The ceiling: the time of a plain loop that reads and writes as many bytes as a kernel.
#ifndef NGRAD_FRONTEND_API_CEILING_H
#define NGRAD_FRONTEND_API_CEILING_H

#include "ir/support/memory.h"

#include <stdint.h>

typedef struct Ceiling {
  const Allocator *allocator;
  void *block;            // the allocation
  char *from, *to;        // 64-byte aligned
  size_t nread, nwritten; // in lines of 64 bytes
  int threads;
  bool bypasses_cache; // writes with streaming stores
} Ceiling;

// Allocates buffers; the thread that will use a page also touches it first. False: out of memory, nothing to free.
bool ceiling_init(Ceiling *c, const Allocator *allocator, uint64_t nread, uint64_t nwritten, int threads);
void ceiling_deinit(Ceiling *c);

// z[i] = x[i] + y[i] + ... over as many arrays as the ratio of bytes read to bytes written needs; each thread computes
// a part.
void ceiling_run(const Ceiling *c);

// Flushes the bytes from every cache. False: this processor has no instruction for it.
bool cache_flush(const void *bytes, size_t nbytes);

#endif
