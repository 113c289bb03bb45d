// Programs: the kernels of a graph with their schedules, and where in memory the values between them are.
#ifndef NGRAD_IR_KERNEL_PROGRAM_H
#define NGRAD_IR_KERNEL_PROGRAM_H

#include "ir/graph/partition.h"
#include "ir/kernel/schedule.h"

// A part of the workspace for the values whose numbers of elements have the same monomial.
typedef struct Room {
  Monomial monomial;
  size_t nbytes; // of the room, divided by the monomial's value
} Room;

// A visit's slices are cut into chunks of neighbours. Chunks may run in parallel; each has memory of its own for
// private values and the kernels' temporaries, and takes its slices one after the other.
enum { MOST_VISIT_CHUNKS = 32 };
typedef struct ProgramVisit {
  const Visit *plan;
  uint32_t first, end; // its kernels
  int64_t nchunks;
  size_t offset, chunk_nbytes; // the chunks' memory in the workspace: private values and temporaries are in the first
} ProgramVisit;

struct LoopTree; // ir/loops/loops.h
struct Wants;

typedef struct Program {
  Arena arena;
  const Graph *graph;
  const Partition *partition; // of the graph into the regions that became kernels
  Schedule **schedules;       // one for each kernel, in the order in which they run
  size_t nkernels;
  ProgramVisit *visits; // in the order of their kernels
  size_t nvisits;
  uint32_t *first_kernel; // by node->index: the first kernel that computes the node; NOT_IN_KERNEL: it is an alias
  size_t *value_offset;   // by value->index, of the values in the workspace: bytes from its start; with open dims,
                          // bytes from the start of the room, divided by the monomial's value
  bool *is_in_workspace;  // by value->index: the value lives between kernels and is no output, or is_staged
  // By value->index: an update that is copied from the workspace to its output at the end of a call, or a state that is
  // copied to the workspace at the beginning, as it is the update of another state.
  bool *is_staged;
  Room *rooms; // with open dims: one after the other, each padded to whole cache lines, then temporaries
  size_t nrooms;
  size_t workspace_nbytes;
  // Builds the tree of one loop. Trees are not kept, as all of them together are large. NULL: out of memory.
  struct LoopTree *(*loop_tree)(const Schedule *s, uint32_t loop, const struct Wants *wants, Arena *arena);
  size_t unshared_nbytes; // bytes of the workspace if no two values shared memory
} Program;

void program_free(Program *p);
void program_number_kernels(Program *p); // sets first_kernel
// By node->index, in the arena. NULL: out of memory.
const NodeKernel *program_node_kernels(const Program *p, Arena *arena);

// Whether output i is copied at the end of a call: an input, a constant, the same value as an earlier output, or
// staged.
bool program_copies_output(const Program *p, size_t i);

// A unit: the kernels of a visit, or a kernel with those that follow it. Nothing comes between them.
uint32_t program_unit_first(const Program *p, uint32_t kernel);
uint32_t program_unit_end(const Program *p, uint32_t kernel);
// The kernel whose loop stores what the kernel's temporary holds, and *temporary there (Temporary.is_made).
size_t program_maker(const Program *p, size_t kernel, uint32_t *temporary);
const ProgramVisit *program_visit(const Program *p, size_t kernel); // the kernel's visit; NULL: it is in none
int64_t visit_first_slice(const ProgramVisit *v, int64_t chunk);    // of the chunk; of chunk nchunks, the number of all
bool visit_is_private(const ProgramVisit *v, const Value *value);   // v may be NULL

// Prints the kernels with their schedules, for people.
void program_print(const Program *p, Text *out);

#endif
