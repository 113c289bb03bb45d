// Data flow between the loops of a scheduled program: finds the outputs that need each loop, and the values that are
// read after they were stored.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_LIVENESS_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_LIVENESS_H

#include "backends/codegen/codegen.h"
#include "ir/kernel/program.h"

enum { MOST_TOLD_APART = 64 };

typedef struct OutputSet { // a set of the graph's outputs
  bool is_all;             // all outputs; a set of more than MOST_TOLD_APART is rounded up to all
  uint32_t count;
  const uint32_t *outputs; // their numbers, ascending; none if is_all
} OutputSet;

typedef struct Read {
  size_t kernel;
  size_t loop;       // numbered through all kernels
  struct Read *next; // a read by an earlier loop; NULL: none
} Read;

typedef struct Flow {
  const Program *program;
  size_t nloops;
  size_t *first_loop; // by kernel: the number of its first loop, counted through all kernels
  OutputSet *serves;  // by loop: the outputs that need it
  size_t ntemporaries;
  size_t *first_temporary;     // by kernel: the number of its first temporary, counted through all kernels
  OutputSet *temporary_serves; // by temporary: the outputs that need it
  uint32_t *next_alike;        // by output: the next output that is the same value, plus 1; 0: none
  bool *is_read_again;         // by value->index: a loop after the one that stores it, or a copy at the end, reads it
  Read **value_reads;          // by value->index: reads by loops, the last loop first
  Read **temporary_reads;      // by temporary: likewise
} Flow;

// Analyses a program. The result is allocated from the arena. False: out of memory.
bool flow_find(Flow *f, const Program *p, Arena *arena);

// Sets in_place[i] to the inputs whose memory output i may use: the program may get the same pointer for both, because
// no element of the input is read after the output's element at the same place was stored. False: out of memory.
bool flow_find_in_place(const Flow *f, InPlace *in_place, const Allocator *allocator);

bool output_is_update(const Graph *g, size_t i); // the update of a state; every call computes it

// Whether output i is an input, a constant or the same value as an earlier output, so that it is copied at the end.
bool output_is_copy(const Graph *g, size_t i);

#endif
