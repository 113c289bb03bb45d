// Prints a program as C: the part that code that is loaded immediately (emit.c) and files that users keep (file.c) have
// in common.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_EMIT_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_EMIT_H

#include "backends/codegen/print/printer.h"

// Prints the standard includes, and macros that hide differences between compilers. Precedes any program.
void print_prologue(Text *out);

// Prints the argument struct, the kernels, and IDENTIFIER_run(inputs, outputs, memory, pool), which runs all loops and
// calls PREFIX_for to run the blocks of a parallel loop. Constant tensors are printed to p->constants as arrays, unless
// the pool gives them. Sets p's names and p->workspace_nbytes, the bytes of `memory` that a run needs.
//
// With open dims, IDENTIFIER_run has a parameter `const int64_t *extents`, the values of the dims, before `memory`. It
// calls IDENTIFIER_layout(args, extents, memory), which sets the pointers into `memory` unless that is NULL, and
// returns the bytes that a run needs. False: out of memory.
bool print_program(Printer *p);
// Prints an array `static const TYPE NAME[]` of a constant's elements. False: out of memory.
void print_array(const Value *v, const char *name, Text *out);

// Adds a description of the tensor for a comment: "f32 [4096, 768]", with "x: " before it if the value is called x and
// `name` differs.
void add_tensor_comment(Text *out, const Value *v, const char *name);

#endif
