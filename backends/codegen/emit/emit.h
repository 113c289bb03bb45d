// Prints a program as C: the part that code that is loaded immediately (emit.c) and files that users keep (file.c) have
// in common.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_EMIT_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_EMIT_H

#include "backends/codegen/print/printer.h"

// Prints the standard includes, and macros that hide differences between compilers. Precedes any program.
void print_prologue(Text *out);

// Prints the argument struct, the kernels, and IDENTIFIER_run(inputs, outputs, memory, pool), which runs all loops and
// calls PREFIX_for to run a loop on several threads. Constant tensors are printed to p->constants as arrays, unless
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

// isa_guards.c: pragmas and conditions around code for an instruction set.

// Pragmas before and after functions that the compiler must compile for the instruction set.
void print_target(const Isa *isa, Text *out);
void print_target_end(const Isa *isa, Text *out);

// Prints #if and #endif around text that only some compilers can compile for an instruction set. *open is the condition
// that is currently open; NULL: none. Call it before the text of each instruction set, and at the end with isa NULL;
// consecutive equal conditions become one.
void change_guard(const char **open, const Isa *isa, Text *out);

// equal_kernels.c: kernels that differ only in their operands' memory, such as the kernels of a network's equal layers,
// call the same emitted functions.

// Sets p->first_alike and p->is_shared. False: out of memory.
bool find_alike(Printer *p);

// Prints struct IDENTIFIER_kernelK_args: the members of the program's argument struct that the kernel uses.
void print_own_struct(Printer *p, size_t kernel, Text *out);
// Prints the values of its members, with commas between, from the program's struct at `a`.
void print_own_members(Printer *p, size_t kernel, Text *out);

// workspace_layout.c: numbers that depend on open dims. The dims are members of the argument struct; `args` is the text
// before a member's name, such as "a->". Returned texts are in the scratch arena.

// `number` times the open dims in the monomial; a product is in parentheses, unless is_bare.
const char *product_text(Printer *p, int64_t number, Monomial monomial, const char *args, bool is_bare);
// The number of elements over the axes, without parentheses.
const char *nelems_text(Printer *p, const Kernel *k, AxisSet axes);
// The number of blocks of a loop.
const char *nblocks_text(Printer *p, size_t kernel, size_t loop, const char *args);
const char *size_text(Printer *p, const OpenSize *size, const char *args, bool is_bare);
// Prints IDENTIFIER_layout, which print_program describes.
void print_layout(Printer *p);

// calls.c: the calls of a program's loops.

// Prints IDENTIFIER_slicesN(args, chunk) for each slice group, after the kernels' functions.
void print_slice_groups(Printer *p);

// Prints the calls of all loops and slice groups, in a function with the arguments `a`, `outputs` and `pool`. With
// p->is_marked, the pool may have a function `mark`, which is called with 1 + a loop's number after the loop; a slice
// group counts as its first loop.
void print_parts(Printer *p); // functions that contain the calls of a long program
void print_calls(Printer *p);

bool program_has_shared_loops(const Program *p); // some loop may run on several threads (PREFIX_for)

#endif
