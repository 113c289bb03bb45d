// Memory in which every access is checked: it must be within bounds, read initialised elements, and not race with
// another block of the same loop (blocks of a loop may run in parallel).
#ifndef NGRAD_TESTS_LOOPS_MEMORY_H
#define NGRAD_TESTS_LOOPS_MEMORY_H

#include "ir/kernel/kernel.h"

typedef struct Blocks { // numbered from 1 on, through all loops of a program in order
  uint32_t first, now;  // the first block of the running loop; the running block
  bool are_parallel;    // several threads may run the loop's blocks
} Blocks;

typedef struct Memory {
  const char *name;
  Type type;
  int64_t nelems;
  unsigned char *data;
  uint32_t *writers;   // by element: the last block that wrote it; 0: none. NULL: read-only
  uint32_t *readers;   // by element: of the last loop that read it, the first block that did
  bool is_stored_once; // a loop must not write an element twice
} Memory;

typedef struct Fault {
  const char *what;
  int64_t at; // index of the element
} Fault;

typedef struct Elements { // the indices of `count` elements: first, first + step, first + 2 * step and so on
  uint64_t first, step;
  const int64_t *offsets; // added to the indices, one for each; NULL: 0
  int count;
  int npadding; // the last elements, which may be uninitialised: lanes whose results are not stored
} Elements;

// Poisoned, uninitialised elements in the arena. False: out of memory.
bool memory_init(Memory *m, const char *name, Type type, int64_t nelems, Arena *arena);
// The same with the caller's data, which is not poisoned.
bool memory_init_of(Memory *m, const char *name, Type type, int64_t nelems, void *data, Arena *arena);
void memory_forget(Memory *m); // all elements are uninitialised again

// Copies elements from or to a dense array (packed types: two a byte). False: *fault says which element must not be
// accessed, and why.
bool memory_read(const Memory *m, const Blocks *b, Elements e, void *to, Fault *fault);
bool memory_write(const Memory *m, const Blocks *b, Elements e, const void *from, Fault *fault);
// The first uninitialised element; -1: none.
int64_t memory_first_unwritten(const Memory *m);

#endif
