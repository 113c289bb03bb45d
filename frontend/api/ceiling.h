// The ceiling: what a plain loop needs to read and to write as many bytes as a kernel must.
#ifndef NGRAD_FRONTEND_API_CEILING_H
#define NGRAD_FRONTEND_API_CEILING_H

#include "ir/support/memory.h"

#include <stdint.h>

typedef struct Ceiling {
  const Allocator *allocator;
  void *block;            // what was allocated
  char *from, *to;        // 64-byte aligned
  size_t nread, nwritten; // in lines of 64 bytes
  int threads;
  bool bypasses_cache; // writes with streaming stores
} Ceiling;

// Buffers of its own, every page touched by the thread that will use it. False: out of memory, nothing to free.
bool ceiling_init(Ceiling *c, const Allocator *allocator, uint64_t nread, uint64_t nwritten, int threads);
void ceiling_deinit(Ceiling *c);

// z[i] = x[i] + y[i] + ... over as many arrays as are needed to read and write those bytes; each thread has its share.
void ceiling_run(const Ceiling *c);

// The bytes leave every cache. False: this processor has no instruction for that.
bool cache_flush(const void *bytes, size_t nbytes);

#endif
