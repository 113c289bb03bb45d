// The system's allocator and the arena: bump allocation in blocks that double up to a limit.
#include "ir/support/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20, ALIGNMENT = alignof(max_align_t) };
enum { STEP_NBYTES = 1 << 7 }; // bytes that a step pays for, so that the steps of a call bound its memory, too

struct ArenaBlock {
  ArenaBlock *older;
  alignas(max_align_t) char bytes[];
};

static void *system_resize(void *context, void *p, size_t nbytes) {
  (void)context;
  if (nbytes == 0) {
    free(p);
    return NULL;
  }
  return realloc(p, nbytes);
}

const Allocator system_allocator = {.resize = system_resize};

void *allocator_alloc(const Allocator *a, size_t nbytes) {
  return a->resize(a->context, NULL, nbytes ? nbytes : 1);
}

void allocator_free(const Allocator *a, void *p) {
  if (p) a->resize(a->context, p, 0);
}

void arena_init(Arena *arena, const Allocator *allocator) {
  *arena = (Arena){.allocator = allocator};
}

void arena_deinit(Arena *arena) {
  for (ArenaBlock *block = arena->blocks; block;) {
    ArenaBlock *older = block->older;
    allocator_free(arena->allocator, block);
    block = older;
  }
  arena_init(arena, arena->allocator);
}

static bool arena_add_block(Arena *arena, size_t at_least) {
  size_t nbytes = arena->nbytes < FIRST_BLOCK ? FIRST_BLOCK : arena->nbytes;
  if (nbytes > LARGEST_BLOCK) nbytes = LARGEST_BLOCK;
  if (nbytes < at_least) nbytes = at_least;
  if (nbytes > SIZE_MAX - sizeof(ArenaBlock)) return false;
  ArenaBlock *block = allocator_alloc(arena->allocator, sizeof *block + nbytes);
  if (!block) return false;
  block->older = arena->blocks;
  arena->blocks = block;
  arena->next = block->bytes;
  arena->end = block->bytes + nbytes;
  arena->nbytes += sizeof *block + nbytes;
  return true;
}

static void *arena_take(Arena *arena, size_t nbytes, int64_t nsteps) {
  if (nbytes > PTRDIFF_MAX || !arena_step(arena, nsteps)) return NULL;
  if (nbytes == 0) nbytes = 1; // NULL would mean out of memory
  nbytes = (nbytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if ((size_t)(arena->end - arena->next) < nbytes && !arena_add_block(arena, nbytes)) return NULL;
  void *p = arena->next;
  arena->next += nbytes;
  return p;
}

void *arena_alloc(Arena *arena, size_t nbytes) {
  void *p = arena_take(arena, nbytes, 1 + (int64_t)(nbytes / STEP_NBYTES));
  if (p) memset(p, 0, nbytes);
  return p;
}

static void *arena_resize(void *context, void *p, size_t nbytes) {
  return p || !nbytes ? NULL : arena_take(context, nbytes, 1);
}

Allocator arena_allocator(Arena *arena) {
  return (Allocator){.resize = arena_resize, .context = arena, .steps = arena->allocator->steps};
}

void *arena_array(Arena *arena, size_t count, size_t nbytes_each) {
  if (nbytes_each && count > PTRDIFF_MAX / nbytes_each) return NULL;
  return arena_alloc(arena, count * nbytes_each);
}

uint64_t arena_most_nbytes(uint64_t nbytes) {
  const uint64_t unused = nbytes < LARGEST_BLOCK ? nbytes : LARGEST_BLOCK; // of the last block
  return nbytes > UINT64_MAX - unused ? UINT64_MAX : nbytes + unused;
}

char *arena_copy_text(Arena *arena, const char *text, size_t nbytes) {
  char *copy = arena_alloc(arena, nbytes + 1);
  if (copy && nbytes) memcpy(copy, text, nbytes);
  return copy;
}

char *arena_format(Arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char *text = length < 0 ? NULL : arena_alloc(arena, (size_t)length + 1);
  if (!text) return NULL;
  va_start(args, format);
  vsnprintf(text, (size_t)length + 1, format, args);
  va_end(args);
  return text;
}

bool arena_grow(Arena *arena, void *array, size_t count, size_t *capacity, size_t nbytes_each) {
  if (count < *capacity) return true;
  size_t wanted = *capacity ? *capacity * 2 : 8;
  void *larger = arena_array(arena, wanted, nbytes_each);
  if (!larger) return false;
  void *smaller;
  memcpy(&smaller, array, sizeof smaller);
  if (*capacity) memcpy(larger, smaller, count * nbytes_each); // count may be above 0 before the array exists
  memcpy(array, &larger, sizeof larger);
  *capacity = wanted;
  return true;
}
