// An allocator for tests: fails on demand, counts blocks that were not freed, and fills new memory with garbage, so
// that code cannot rely on zeros.
#ifndef NGRAD_TESTS_UNIT_FAILING_ALLOCATOR_H
#define NGRAD_TESTS_UNIT_FAILING_ALLOCATOR_H

#include "ir/support/memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct FailingAllocator {
  Allocator allocator;
  size_t ncalls;  // allocations and resizings so far
  size_t failing; // the call that fails, from 0; NEVER_FAIL: none
  size_t nlive;   // blocks not freed
  size_t nmost;   // the most there were at a time
} FailingAllocator;

#define NEVER_FAIL SIZE_MAX

static inline void *failing_resize(void *context, void *p, size_t nbytes) {
  FailingAllocator *self = context;
  if (nbytes == 0) {
    self->nlive -= p != NULL;
    free(p);
    return NULL;
  }
  if (self->ncalls++ == self->failing) return NULL;
  size_t old = p ? malloc_usable_size(p) : 0;
  char *q = realloc(p, nbytes);
  if (!q) return NULL;
  if (!p && ++self->nlive > self->nmost) self->nmost = self->nlive;
  if (old < nbytes) memset(q + old, 0xA5, nbytes - old);
  return q;
}

// `self` must stay where it is while its allocator is used.
static inline void failing_allocator_init(FailingAllocator *self, size_t failing) {
  *self = (FailingAllocator){.allocator = {.resize = failing_resize, .context = self}, .failing = failing};
}

#endif
