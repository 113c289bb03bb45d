// The workspace of a program with open dims, which a call lays out by taking rows in order. `at` is the end of the
// memory that the rows before have laid out, 0 at first.
#ifndef NGRAD_IR_KERNEL_WORKSPACE_H
#define NGRAD_IR_KERNEL_WORKSPACE_H

#include "ir/graph/graph.h"

typedef struct OpenSize {
  int64_t number;        // at the hints of open dims
  Monomial monomial;     // the open dims among its factors
  bool has_blocks;       // the number of blocks of the loop is one more factor
  uint32_t kernel, loop; // with has_blocks
} OpenSize;

typedef enum WorkspaceRowKind {
  WORKSPACE_PLACE,       // the memory of the value or temporary begins at `at` + size
  WORKSPACE_ADVANCE,     // at += size, rounded up to whole cache lines; the size is not 0
  WORKSPACE_TEMPORARIES, // the last arena and temporaries follow: they share memory, from here on
  WORKSPACE_KERNEL,      // at = the beginning of that memory + size, rounded up, for the temporaries of `kernel`
  WORKSPACE_END_KERNEL   // of the last arena, or of a kernel
} WorkspaceRowKind;

typedef struct WorkspaceRow {
  WorkspaceRowKind kind;
  const Value *value; // NULL: a temporary of `kernel`
  uint32_t kernel, temporary;
  OpenSize size;
  bool is_for_optional; // for an output that the call may leave out
} WorkspaceRow;

typedef struct OpenWorkspace {
  WorkspaceRow *rows; // the kernels' temporaries are last
  size_t nrows, capacity;
  bool has_temporaries; // there is a row WORKSPACE_TEMPORARIES
} OpenWorkspace;

#endif
