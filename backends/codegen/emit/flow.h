// What flows from loop to loop of a scheduled program: which outputs a loop works for, which memory is read again.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_FLOW_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_FLOW_H

#include "backends/codegen/codegen.h"
#include "ir/kernel/kernel.h"

enum { MOST_TOLD_APART = 64 };

typedef struct OutputSet { // of a graph's outputs, by number
  bool is_all;             // every output; so is a set of more than MOST_TOLD_APART
  uint32_t count;
  const uint32_t *outputs; // ascending; none where is_all
} OutputSet;

typedef struct Read {
  size_t kernel;
  size_t loop;       // in the numbering of all
  struct Read *next; // of an earlier loop; NULL: there is none
} Read;

typedef struct Flow {
  const Program *program;
  size_t nloops;
  size_t *first_loop; // by kernel: where its loops start in the numbering of all
  OutputSet *serves;  // by loop: the outputs that it works for
  size_t ntemporaries;
  size_t *first_temporary;     // by kernel: where its temporaries start in the numbering of all
  OutputSet *temporary_serves; // by temporary: likewise
  uint32_t *next_alike;        // by output: the next that is the same value, plus one; 0: none
  bool *is_read_again;         // by value->index: a loop, or a copy at the end, reads what another has stored
  Read **value_reads;          // by value->index: the loops that read it
  Read **temporary_reads;      // by temporary: likewise
} Flow;

// False: out of memory. All that it points to is the arena's.
bool flow_find(Flow *f, const Program *p, Arena *arena);

// By output, inputs of which it may be in place: the program is still right when the output's memory is the input's,
// for nothing reads the input after its element of the output is stored. False: out of memory.
bool flow_find_in_place(const Flow *f, InPlace *in_place, const Allocator *allocator);

// Whether a graph output is an input, a constant or an earlier output: a copy of it is made at the end.
bool output_is_copy(const Graph *g, size_t i);

#endif
