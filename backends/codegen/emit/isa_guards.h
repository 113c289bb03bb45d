// Pragmas and conditions around emitted code for an instruction set.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_ISA_GUARDS_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_ISA_GUARDS_H

#include "backends/codegen/isa.h"
#include "ir/support/text.h"

// Pragmas before and after functions that the compiler must compile for the instruction set.
void print_target(const Isa *isa, Text *out);
void print_target_end(const Isa *isa, Text *out);

// Prints #if and #endif around text that only some compilers can compile for an instruction set. *open is the condition
// that is currently open; NULL: none. Call it before the text of each instruction set, and at the end with isa NULL;
// consecutive equal conditions become one.
void change_guard(const char **open, const Isa *isa, Text *out);

#endif
