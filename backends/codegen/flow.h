// What flows from loop to loop of a scheduled program: which outputs a loop works for, which memory is read again.
#ifndef NGRAD_BACKENDS_CODEGEN_FLOW_H
#define NGRAD_BACKENDS_CODEGEN_FLOW_H

#include "ir/kernel.h"

typedef struct Flow {
  const Program *program;
  size_t *first_loop; // by kernel: where its loops start in the numbering of all
  bool **serves;      // by loop: which graph outputs, by number, it works for
  size_t ntemporaries;
  size_t *first_temporary; // by kernel: where its temporaries start in the numbering of all
  bool **temporary_serves; // by temporary: likewise
  bool *is_read_again;     // by value->index: a loop, or a copy at the end, reads what another has stored
} Flow;

// False: out of memory. All that it points to is the arena's.
bool flow_find(Flow *f, const Program *p, Arena *arena);

// Whether the program is still right when the output's memory is the input's: nothing reads the input after its
// element of the output is stored.
bool flow_allows_in_place(const Flow *f, size_t output, size_t input, Arena *arena);

// A graph output that is an input, a constant or an earlier output is a copy of it, made at the end.
bool output_is_copy(const Graph *g, size_t i);

#endif
