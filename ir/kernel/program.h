// Programs: the scheduled kernels of a graph, and the offsets in the workspace of the values between kernels.
#ifndef NGRAD_IR_KERNEL_PROGRAM_H
#define NGRAD_IR_KERNEL_PROGRAM_H

#include "ir/graph/partition.h"
#include "ir/kernel/liveness.h"
#include "ir/kernel/schedule.h"
#include "ir/kernel/workspace.h"

// An arena in the workspace, for all values whose numbers of elements have the same monomial.
typedef struct MonomialArena {
  Monomial monomial;
  size_t nbytes; // of the arena, divided by the monomial's value
  size_t *free;  // by kernel: the end of the values that live while it runs, divided likewise
} MonomialArena;

// A slice group's slices are split into chunks of consecutive slices. Chunks may run in parallel, each on one thread.
// Each chunk has its own memory for private values and temporaries.
enum { MOST_SLICE_CHUNKS = 32 };
typedef struct ProgramSliceGroup {
  const SliceGroup *slices;
  uint32_t first, end; // the slice group's kernels
  int64_t nchunks;
  size_t offset, chunk_nbytes; // the chunks' memory in the workspace; offsets of private values and temporaries are in
                               // the first chunk's
} ProgramSliceGroup;

struct LoopTree; // ir/loops/loops.h

typedef struct Program {
  Arena arena;
  const Graph *graph;
  const Partition *partition; // the graph's regions, which became kernels
  Schedule **schedules;       // one for each kernel, in the order of execution
  size_t nkernels;
  ProgramSliceGroup *slice_groups; // in the order of their kernels
  size_t nslice_groups;
#define NOT_IN_KERNEL UINT32_MAX
  uint32_t *first_kernel; // by node->index: the node's first kernel; NOT_IN_KERNEL: the node is an alias
  size_t *value_offset;   // by value->index, for values in the workspace: bytes from its start; with open dims, bytes
                          // from the start of the value's arena, divided by the monomial's value
  bool *is_in_workspace;  // by value->index: the value lives between kernels and is not an output, or is staged
  // By value->index: an update that the end of a call copies from the workspace to its output; or a state that the
  // beginning of a call copies to the workspace, because it is the update of another state.
  bool *is_staged;
  // With open dims: arenas in sequence, each padded to whole cache lines. One is the last; in it, temporaries begin
  // where the values end that live while their kernel runs.
  MonomialArena *arenas;
  size_t narenas, last_arena;
  size_t workspace_nbytes;
  OpenWorkspace open_workspace;
  struct LoopTree **trees; // by loop, numbered through all kernels; NULL before pipeline_build_trees
  Arena tree_arena;
  bool has_optional_outputs; // of the trees: a call may leave out outputs
  const char *unsound;    // why the trees do not compute the kernels, a bug in ngrad; NULL: they do, or are not built
  Liveness *liveness;     // set by find_liveness
  size_t unshared_nbytes; // bytes that the workspace would have if no two values shared memory
} Program;

void program_free(Program *p);
struct LoopTree *program_tree(const Program *p, size_t kernel, size_t loop); // the trees are built
void program_number_kernels(Program *p);                                     // sets first_kernel
// The bytes of a value in an arena, divided by the monomial's value: whole cache lines, except few bytes in an arena
// with a monomial, where rounding would be multiplied by the monomial's value.
size_t program_slot_nbytes(const Program *p, Type type, int64_t nelems, Monomial monomial);

// The types in which nodes are computed, by node->index, in the arena; TYPE_NONE: the node is an alias. NULL: out of
// memory.
const Type *program_node_types(const Program *p, Arena *arena);

bool output_is_update(const Graph *g, size_t i); // the update of a state; every call computes it
bool output_is_copy(const Graph *g, size_t i);   // an input, a constant or the same value as an earlier output

// Whether the end of a call copies output i: it is a copy, or staged.
bool program_copies_output(const Program *p, size_t i);
// Whether output i needs memory also in calls that leave it out: loops read it.
bool program_keeps_output(const Program *p, size_t i);
OpenSize program_temporary_size(const Program *p, uint32_t kernel, uint32_t temporary); // in elements

// A unit: the kernels of a slice group, or a kernel and the kernels with Schedule.follows behind it. A unit's kernels
// run without other kernels in between.
uint32_t program_unit_first(const Program *p, uint32_t kernel);
uint32_t program_unit_end(const Program *p, uint32_t kernel);
// The kernel that stores the elements of the temporary with index *temporary in `kernel`: `kernel` itself, or, if
// Temporary.is_reused is set, an earlier kernel. Sets *temporary to the temporary's index in the kernel that is
// returned.
size_t program_maker(const Program *p, size_t kernel, uint32_t *temporary);
const ProgramSliceGroup *program_slice_group(const Program *p, size_t kernel); // the kernel's slice group; NULL: none
int64_t slice_group_first_slice(const ProgramSliceGroup *v, int64_t chunk);  // for chunk nchunks, the number of slices
bool slice_group_is_private(const ProgramSliceGroup *v, const Value *value); // v may be NULL

// Prints the kernels with their schedules, as `ngrad show` does.
void program_print(const Program *p, Text *out);

#endif
