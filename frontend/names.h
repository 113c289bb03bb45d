// Names: a hash table from strings to pointers, in an arena.
//
// The strings come from untrusted files, so the hash has a random key: nobody can write a file whose names all collide.
// No result depends on the order in the table.
#ifndef NGRAD_FRONTEND_NAMES_H
#define NGRAD_FRONTEND_NAMES_H

#include "ir/support/memory.h"

#include <stdint.h>

typedef struct NameSlot {
  const char *name; // NULL: free; not copied, so it must outlive the table
  void *item;
} NameSlot;

typedef struct Names {
  Arena *arena;
  NameSlot *slots;
  size_t count, capacity; // capacity is 0 or a power of two
  uint64_t key[2];
} Names;

void names_init(Names *names, Arena *arena);

// The item of `name`; NULL: none.
void *names_find(const Names *names, const char *name);

// Adds a name or replaces its item; false when out of memory.
bool names_set(Names *names, const char *name, void *item);

#endif
