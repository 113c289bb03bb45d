// Kernels that differ only in their operands' memory, such as the kernels of a network's equal layers, call the same
// emitted functions.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_EQUAL_KERNELS_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_EQUAL_KERNELS_H

#include "backends/codegen/print/printer.h"

// Sets p->first_alike and p->is_shared. False: out of memory.
bool find_alike(Printer *p);

// Prints struct IDENTIFIER_kernelK_args: the members of the program's argument struct that the kernel uses.
void print_own_struct(Printer *p, size_t kernel, Text *out);
// Prints the values of its members, with commas between, from the program's struct at `a`.
void print_own_members(Printer *p, size_t kernel, Text *out);

#endif
