// Memory: an allocator that the caller may replace, and arenas on top of allocators.
//
// Everything that belongs to one graph lives in one arena and is freed with it; a pass has a scratch arena of its own.
// Out of memory is a NULL result, never an exit: each caller propagates it.
#ifndef NGRAD_IR_SUPPORT_MEMORY_H
#define NGRAD_IR_SUPPORT_MEMORY_H

#include "ir/support/steps.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINE_NBYTES = 64, PAGE_NBYTES = 4096 }; // of every target: a cache line, a page

static inline size_t whole_lines(size_t nbytes) {
  return (nbytes + LINE_NBYTES - 1) / LINE_NBYTES * LINE_NBYTES;
}

// `resize(context, p, 0)` frees p, `resize(context, NULL, n)` allocates. On failure the result is NULL and p remains
// valid. Blocks are aligned for any type.
typedef struct Allocator {
  void *(*resize)(void *context, void *p, size_t nbytes);
  void *context;
  Steps *steps; // work budget that arenas take from; NULL: unlimited
} Allocator;

extern const Allocator system_allocator;

void *allocator_alloc(const Allocator *a, size_t nbytes);
void allocator_free(const Allocator *a, void *p);

typedef struct ArenaBlock ArenaBlock;

typedef struct Arena {
  const Allocator *allocator; // must outlive the arena
  ArenaBlock *blocks;         // newest first
  char *next, *end;           // the free part of the newest block
  size_t nbytes;              // allocated so far, block headers included
} Arena;

void arena_init(Arena *arena, const Allocator *allocator);
void arena_deinit(Arena *arena);

// Takes steps from the allocator's budget. False: the budget is used up.
static inline bool arena_step(const Arena *arena, int64_t count) {
  return steps_take(arena->allocator->steps, count);
}

// Zeroed memory, aligned for any type; NULL when out of memory or out of steps. arena_array also refuses a product that
// overflows.
void *arena_alloc(Arena *arena, size_t nbytes);
void *arena_array(Arena *arena, size_t count, size_t nbytes_each);
// The most bytes that an arena allocates for arrays of `nbytes` in total; saturates at UINT64_MAX.
uint64_t arena_most_nbytes(uint64_t nbytes);
char *arena_copy_text(Arena *arena, const char *text, size_t nbytes); // adds the final zero
char *arena_format(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define ARENA_NEW(arena, T) ((T *)arena_alloc((arena), sizeof(T)))
#define ARENA_ARRAY(arena, T, count) ((T *)arena_array((arena), (count), sizeof(T)))

// An allocator whose blocks are uninitialised memory of the arena, for the data of files: a block takes one step, as
// its file is at least as long. It frees and resizes nothing: the blocks live as long as the arena, which must outlive
// the allocator.
Allocator arena_allocator(Arena *arena);

// Ensures that an arena array of `count` elements has capacity for one more, by doubling; false when out of memory.
// `array` is a pointer to the array pointer, `capacity` its allocated length in elements.
bool arena_grow(Arena *arena, void *array, size_t count, size_t *capacity, size_t nbytes_each);

#endif
