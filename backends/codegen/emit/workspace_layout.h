// Prints numbers that depend on open dims. The dims are members of the argument struct; `args` is the text before a
// member's name, such as "a->". Returned texts are in the scratch arena.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_WORKSPACE_LAYOUT_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_WORKSPACE_LAYOUT_H

#include "backends/codegen/print/printer.h"

// `number` times the open dims in the monomial; a product is in parentheses, unless is_bare.
const char *product_text(Printer *p, int64_t number, Monomial monomial, const char *args, bool is_bare);
// The number of elements over the axes, without parentheses.
const char *nelems_text(Printer *p, const Kernel *k, AxisSet axes);
// The number of blocks of a loop.
const char *nblocks_text(Printer *p, size_t kernel, size_t loop, const char *args);
const char *size_text(Printer *p, const OpenSize *size, const char *args, bool is_bare);
// Prints IDENTIFIER_layout, which emit.h describes.
void print_layout(Printer *p);

#endif
