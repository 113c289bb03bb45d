// What printing for loading (emit.c) and printing files for people (emit_file.c) share.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_H

#include "backends/codegen/printer.h"

// What stands before any program: headers, and macros for what compilers differ in.
void print_prologue(Text *out);
// Around what is compiled for an instruction set.
void print_target(const Isa *isa, Text *out);
void print_target_end(const Isa *isa, Text *out);

// The struct of arguments, the kernels and IDENTIFIER_run(inputs, outputs, memory, pool), which calls PREFIX_for to
// share out a loop; PREFIX_constant_NAME to another text, or nowhere (NULL). Sets the names and p->workspace_nbytes,
// the bytes of memory that it wants. False: out of memory.
bool print_program(Printer *p, Text *constants);
bool program_has_shared_loops(const Program *p); // so that it calls PREFIX_for

// Comments hold nothing that could end them, or looks like a call.
void add_comment_text(Text *out, const char *text);
void add_tensor_comment(Text *out, const Value *v); // "x: f32 [4096, 768]"

#endif
