// What printing for loading (emit.c) and printing files for people (file.c) share.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_EMIT_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_EMIT_H

#include "backends/codegen/print/printer.h"

// What stands before any program: headers, and macros for what compilers differ in.
void print_prologue(Text *out);

// The struct of arguments, the kernels and IDENTIFIER_run(inputs, outputs, memory, pool), which calls PREFIX_for to
// share out a loop; PREFIX_constant_NAME, where constants are not given, to another text, or nowhere (NULL). Sets the
// names and p->workspace_nbytes, the bytes of memory that it wants. With open dims their values stand before `memory`,
// as int64_t[], and IDENTIFIER_layout(args, extents, memory) returns those bytes, without memory (NULL) too. False: out
// of memory.
bool print_program(Printer *p, Text *constants);
bool program_has_shared_loops(const Program *p); // so that it calls PREFIX_for

void add_tensor_comment(Text *out, const Value *v,
                        const char *name); // "f32 [4096, 768]", "x: " before it if that is not the name

#endif
