// Memory of a walk through loop trees, in which every access is checked: it stays within its tensor, reads what was
// written, and does not meet another block of the same loop, which may run at the same time.
#ifndef NGRAD_TESTS_LOOPS_MEMORY_H
#define NGRAD_TESTS_LOOPS_MEMORY_H

#include "ir/kernel/kernel.h"

typedef struct Blocks { // of all loops of a program, numbered from 1 on in the order in which they run
  uint32_t first, now;  // of the loop at hand: its first block, and the one that runs
  bool are_parallel;    // the loop's blocks may be shared out
} Blocks;

typedef struct Memory {
  const char *name;
  Type type;
  int64_t nelems;
  unsigned char *data;
  uint32_t *writers;   // by element: the block that wrote it last; 0: none did. NULL: all is there and must stay
  uint32_t *readers;   // by element: the first block that read it in the loop that last did
  bool is_stored_once; // a loop writes no element twice
} Memory;

typedef struct Fault {
  const char *what;
  int64_t at; // the element
} Fault;

typedef struct Elements { // of a memory: `count` of them, from `first` on
  uint64_t first, step;
  const int64_t *further; // how many elements further each one is; NULL: none
  int count;
  int nidle; // of the last ones, which may be read though nobody wrote them
} Elements;

// Elements of the type in the arena, poisoned. False: out of memory.
bool memory_init(Memory *m, const char *name, Type type, int64_t nelems, Arena *arena);
// The same over what somebody else owns.
bool memory_init_of(Memory *m, const char *name, Type type, int64_t nelems, void *data, Arena *arena);
void memory_forget(Memory *m); // nothing of it is written

// Copies elements, one behind the other, packed ones from a whole byte on. False: one of them must not be accessed.
bool memory_read(const Memory *m, const Blocks *b, Elements e, void *to, Fault *fault);
bool memory_write(const Memory *m, const Blocks *b, Elements e, const void *from, Fault *fault);
// The first element that nobody wrote; -1: there is none.
int64_t memory_first_unwritten(const Memory *m);

#endif
