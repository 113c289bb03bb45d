// Prints numbers that depend on open dims. The dims are members of the argument struct; `args` is the text before a
// member's name, such as "a->". Returned texts are in the scratch arena.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_WORKSPACE_LAYOUT_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_WORKSPACE_LAYOUT_H

#include "backends/codegen/print/printer.h"

// `number` times the open dims in the monomial.
const char *size_text(Printer *p, int64_t number, Monomial monomial, const char *args);
// The number of blocks of a loop.
const char *nblocks_text(Printer *p, size_t kernel, size_t loop, const char *args);
// The size of a temporary: its elements times nbytes_each.
const char *temporary_text(Printer *p, size_t kernel, size_t temporary, size_t nbytes_each, const char *args);
// Whether output i has memory in the workspace, for calls in which it is NULL: other loops read it.
bool output_has_memory(const Printer *p, size_t i);
// Prints IDENTIFIER_layout, which emit.h describes.
void print_layout(Printer *p);

#endif
