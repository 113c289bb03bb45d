// What stands around code that is for an instruction set.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_TARGET_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_TARGET_H

#include "backends/codegen/isa.h"
#include "ir/support/text.h"

// For the compiler, around functions that it is to make for the instruction set.
void print_target(const Isa *isa, Text *out);
void print_target_end(const Isa *isa, Text *out);

// For the preprocessor: what a compiler may only do for an instruction set stands between two of these. `open` is the
// condition that is open, if any (NULL); without an instruction set it ends.
void change_guard(const char **open, const Isa *isa, Text *out);

#endif
