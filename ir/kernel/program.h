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

struct LoopTree; // ir/loops/loops.h
struct Wants;

typedef struct Program {
  Arena arena;
  const Graph *graph;
  const Partition *partition; // of the graph into the regions that became kernels
  Schedule **schedules;       // one for each kernel, in the order in which they run
  size_t nkernels;
  uint32_t *first_kernel; // by node->index: the first kernel that computes the node
  size_t *value_offset;   // by value->index, of the values in the workspace: bytes from its start; with open dims,
                          // bytes from the start of the room, divided by the monomial's value
  bool *is_in_workspace;  // by value->index: the value lives between kernels, and is no output
  Room *rooms;            // with open dims: one after the other, each padded to whole cache lines, then temporaries
  size_t nrooms;
  size_t workspace_nbytes;
  // Builds the tree of one loop. Trees are not kept, as all of them together are large. NULL: out of memory.
  struct LoopTree *(*loop_tree)(const Schedule *s, uint32_t loop, const struct Wants *wants, Arena *arena);
  size_t unshared_nbytes; // bytes of the workspace if no two values shared memory
} Program;

void program_free(Program *p);

// Prints the kernels with their schedules, for people.
void program_print(const Program *p, Text *out);

#endif
