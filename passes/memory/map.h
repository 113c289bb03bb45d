// A memory plan for people: which value or temporary is where in the workspace, and from which kernel to which.
#ifndef NGRAD_PASSES_MEMORY_MAP_H
#define NGRAD_PASSES_MEMORY_MAP_H

#include "ir/kernel/program.h"
#include "ir/support/escape.h"

typedef enum TenantKind { TENANT_VALUE, TENANT_STAGED, TENANT_TEMPORARIES, TENANT_SLICES, NTENANT_KINDS } TenantKind;

typedef struct Tenant { // an occupant of a part of the workspace
  TenantKind kind;
  const Value *value;    // the value; TENANT_STAGED: it is copied to or from the caller's memory
  size_t offset, nbytes; // nbytes: in whole cache lines, as program_slot_nbytes rounds
  uint32_t first, last;  // the kernels from the first that stores it to the last that reads it
} Tenant;

typedef struct MemoryMap {
  const Program *program;
  const MonomialArena *of; // the arena; NULL: the whole workspace
  Tenant *tenants;         // sorted by first kernel, then by offset
  size_t count;
  size_t *live;                              // by kernel: bytes of the workspace that are in use
  uint32_t peak;                             // the first kernel during which most bytes are in use
  size_t parameter_nbytes, optimizer_nbytes; // bytes of parameters, and of an optimizer's other states, such as moments
  Arena arena;
} MemoryMap;

// `arena` NULL: of a program without open dims. Else of an arena of a program with open dims, which has only values;
// all bytes are divided by its monomial's value. False: out of memory. memory_map_deinit follows in any case.
bool memory_map_init(MemoryMap *m, const Program *p, const MonomialArena *arena);
void memory_map_deinit(MemoryMap *m);

// "value h1, lines 4 to 6", "temporaries", "slices of kernels 3 to 5", escaped for the sink.
void tenant_print(const MemoryMap *m, const Tenant *t, Sink sink, Text *out);

// Both: false: out of memory.
bool memory_print_table(const Program *p, Text *out);
// A picture over time as SVG: kernels from left to right, addresses upwards.
bool memory_print_picture(const Program *p, Text *out);

#endif
