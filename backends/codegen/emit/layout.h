// Numbers that depend on open dims, which are members of the struct that `args` leads to ("a->").
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_LAYOUT_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_LAYOUT_H

#include "backends/codegen/emit/flow.h"
#include "backends/codegen/print/printer.h"

const char *size_text(Printer *p, int64_t number, Monomial monomial, const char *args);
const char *nblocks_text(Printer *p, size_t kernel, size_t loop, const char *args);
// A temporary's elements, or bytes.
const char *temporary_text(Printer *p, size_t kernel, size_t temporary, size_t nbytes_each, const char *args);
void print_layout(Printer *p, const Flow *flow);

#endif
