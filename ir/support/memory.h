// Memory: an allocator that the caller may replace, and arenas on top of it.
//
// Everything that belongs to one graph lives in one arena and is freed with it; a pass takes a scratch arena of
// its own. Out of memory is a NULL result, never an exit: whoever calls must pass it on.
#ifndef NGRAD_IR_SUPPORT_MEMORY_H
#define NGRAD_IR_SUPPORT_MEMORY_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>

// `resize(context, p, 0)` frees p, `resize(context, NULL, n)` allocates; NULL on failure, and p is then untouched.
// Blocks are aligned for any type.
typedef struct Allocator {
  void *(*resize)(void *context, void *p, size_t nbytes);
  void *context;
} Allocator;

extern const Allocator system_allocator;

void *allocator_alloc(const Allocator *a, size_t nbytes);
void allocator_free(const Allocator *a, void *p);

typedef struct ArenaBlock ArenaBlock;

typedef struct Arena {
  const Allocator *allocator; // must outlive the arena
  ArenaBlock *blocks;         // newest first
  char *next, *end;           // the free part of the newest block
  size_t nbytes;              // taken from the allocator so far
} Arena;

void arena_init(Arena *arena, const Allocator *allocator);
void arena_deinit(Arena *arena);

// Zeroed memory, aligned for any type; NULL when out of memory. arena_array also refuses a product that overflows.
void *arena_alloc(Arena *arena, size_t nbytes);
void *arena_array(Arena *arena, size_t count, size_t nbytes_each);
char *arena_copy_text(Arena *arena, const char *text, size_t nbytes); // adds the final zero
char *arena_format(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define ARENA_NEW(arena, T) ((T *)arena_alloc((arena), sizeof(T)))
#define ARENA_ARRAY(arena, T, count) ((T *)arena_array((arena), (count), sizeof(T)))

// What allocates from the arena, uninitialised, and frees nothing: blocks end with the arena, which it must not
// outlive.
Allocator arena_allocator(Arena *arena);

// Makes room for one more element in an arena array that grows by doubling; false when out of memory.
// `array` is a pointer to the array pointer, `capacity` its allocated length in elements.
bool arena_grow(Arena *arena, void *array, size_t count, size_t *capacity, size_t nbytes_each);

#endif
