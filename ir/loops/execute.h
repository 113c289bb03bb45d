// Executes loop trees over a domain of values (ir/kernel/domain.h), without a compiler. In numbers, the results have
// the bits of the emitted scalar C.
//
// A run checks the tree as it goes: each access must be inside of its buffer, read what has been written, and not race
// with another block of the loop; a loop must store each element once. Values are not checked: a caller compares them
// with what the kernel computes by definition (ir/kernel/reference.h). The tree must pass loops_verify first, which
// checks scopes and types.
#ifndef NGRAD_IR_LOOPS_EXECUTE_H
#define NGRAD_IR_LOOPS_EXECUTE_H

#include "ir/kernel/domain.h"
#include "ir/kernel/program.h"
#include "ir/loops/loops.h"

typedef struct Buffer { // the elements of a tensor or temporary
  const char *name;
  Type type;
  int64_t nelems;      // of a temporary of booleans: bits
  uint64_t address;    // of the first element, in bytes: it may lie anywhere in a cache line
  Datum *values;       // NULL: a tensor, whose elements the domain loads and stores
  uint32_t *writers;   // by element: the last block that wrote it; 0: none. NULL: read-only, or local to a step
  uint32_t *readers;   // by element: of the last loop that read it, the first block that did
  bool is_stored_once; // a loop must not write an element twice
  bool is_mapped;      // the domain loads, stores and checks elements, also of a temporary: writers is NULL
} Buffer;

// False: out of memory. has_values: its elements are not the domain's.
bool buffer_init(Buffer *b, const char *name, Type type, int64_t nelems, bool has_values, Arena *arena);
void buffer_forget(Buffer *b);                   // no element is written any more
int64_t buffer_first_unwritten(const Buffer *b); // -1: none

// What a buffer in memory makes of values, or of its elements: those of partial sums, and of copies in f32, are
// narrower or wider than values. Elements of other types are values as they are, and must not be loaded again.
void buffer_convert(const Buffer *b, const ValueDomain *d, Type from, Type to, int n, const Datum *x, Datum *y);

typedef struct Blocks { // numbered from 1 on, through all loops that are run on the same buffers, in order
  uint32_t first, now;  // the first block of the running loop; the running block
  bool are_parallel;    // several threads may run the loop's blocks
  bool are_one;         // blocks run one after the other, in one block: those of a slice
} Blocks;

typedef struct LoopRun {
  const LoopTree *tree;
  const ValueDomain *domain;
  const int64_t *dims;        // values of the open dims; NULL: the hints
  Buffer *const *tensors;     // by value->index; NULL: the caller leaves the output out, or it is never in memory
  Buffer *const *temporaries; // by number in the schedule; NULL: local to steps, or not needed in this call
  bool is_large;              // tensors do not fit into the caches, whatever the tree compares with their sizes
  int64_t *nsteps;            // how many nodes and operations on numbers may still be executed; NULL: any number
} LoopRun;

int64_t run_nblocks(const Schedule *s, const Loop *loop, const int64_t *dims); // blocks of the loop in a call
// Of a kernel's temporary in a call; of booleans, bits.
int64_t run_temporary_nelems(const Program *p, size_t kernel, uint32_t temporary, const int64_t *dims);
bool run_is_parallel(const Kernel *k, const Loop *loop, const int64_t *dims); // several threads run the blocks

// Runs blocks first .. end - 1 of the loop. False: the tree is wrong, memory is exhausted, or *nsteps is negative now.
// Then `why` says what is wrong, or nothing if steps are used up.
bool tree_execute(const LoopRun *run, int64_t first, int64_t end, Blocks *blocks, Text *why);

// A run of a program's kernels, one after the other.
typedef struct ProgramRun {
  const Program *program;
  const ValueDomain *domain;
  const int64_t *dims;     // as in LoopRun
  const bool *is_left_out; // by output: the call does not want it; NULL: it wants all
  Buffer **tensors;        // by value->index
  Buffer **temporaries;    // by number in the program
  bool keeps_invariant;    // what is the same for several slices has been computed for an earlier one
  bool is_large;           // as in LoopRun
  int64_t *nsteps;         // likewise
  Blocks blocks;
} ProgramRun;
bool run_wants(const ProgramRun *r, const OutputSet *outputs);        // any of them
bool run_needs(const ProgramRun *r, size_t kernel, size_t loop);      // the call runs the loop
bool run_add_temporaries(ProgramRun *r, size_t kernel, Arena *arena); // false: out of memory
bool run_kernel_loops(ProgramRun *r, size_t kernel, Text *why);       // as tree_execute

// The value of an index (NULL: 0). leaf: of one without operands; also asked of a division by 0, and whether a tensor
// that fits into the caches by its size exceeds them all the same (INDEX_EXCEEDS).
typedef uint64_t LeafValue(void *context, const Index *i);
uint64_t index_value(const Index *i, LeafValue *leaf, void *context);

#endif
